"""The page Protocol: one row an operation, whatever number of exchanges it took."""

from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.ledger import Ledger, worst
from mcp_wiretap.pages.words import (
    State,
    clock,
    day,
    duration,
    host,
    offset,
    outcome_state,
    server_name,
    severities,
    shown,
)
from mcp_wiretap.report import change
from mcp_wiretap.trace.model import Conversation, Exchange, Message
from mcp_wiretap.trace.schema import fits
from mcp_wiretap.trace.streams.logs import Announcement
from mcp_wiretap.trace.summary.clientele import client_key
from mcp_wiretap.view import calls, errors
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import lines
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import mask, masked

ROUNDS = 60  # of one operation that an opened row shows
BARS = 60
_WAYS = {
    "requestState": "requestState",
    "inputResponses": "what was asked and answered",
    "jsonrpc-id": "JSON-RPC id",
    "taskId": "taskId",
    "negotiation": "negotiation",
    "resumption": "Last-Event-ID",
}


def row(ledger: Ledger, head: Exchange, zone: tzinfo | None) -> dict[str, Any]:
    """The row of an operation, given its first exchange."""
    conversation = head.conversation
    rounds = ledger.rounds(head)
    last = _deciding(conversation, rounds)
    findings = [f for e in rounds for f in e.findings]
    state = _state(head, conversation, last)
    total = _total(head, conversation, rounds)
    return {
        "key": shown(head.flow, 80),
        "at": head.started,
        "order": (ledger.number, head.seq),
        "time": clock(head.started, zone),
        "day": day(head.started, zone),
        "method": shown(_method(head, conversation), 60),
        "call": (head.method or "").endswith("/call"),
        "subject": shown(_subject(head), 120),
        "summary": _summary(head, conversation, rounds, last),
        "tag": _tag(head, conversation),
        "changed": next((change.short(e.change) for e in rounds if e.change is not None), ""),
        "server": server_name(head.endpoint),
        "host": host(head.endpoint.url),
        "era": head.shown_era,
        "bars": bars(conversation, rounds),
        "total": duration(total) if total is not None else "–",
        "state": state,
        "counts": severities(findings),
        "worst": worst(findings),
        "slim": head.request is None and head.jsonrpc_id is None and _is_notification(head),
        "client": client_key(head.client_info, head.auth),
    }


def announcement(entry: Announcement, zone: tzinfo | None) -> dict[str, Any]:
    """The slim row of a notification that a server sends of itself."""
    return {
        "key": f"n-{shown(entry.flow, 80)}-{entry.number}",
        "at": entry.at,
        "time": clock(entry.at, zone),
        "method": shown(entry.method.removeprefix("notifications/"), 80),
        "subject": shown(entry.about, 120),
        "flow": shown(entry.flow, 80),
        "server": server_name(entry.endpoint),
        "era": entry.endpoint.era,
    }


def _is_notification(head: Exchange) -> bool:
    return (head.method or "").startswith("notifications/") or (head.http_method != "POST" and head.stream is None)


def _method(head: Exchange, conversation: Conversation | None) -> str:
    if conversation is not None and any(link.by == "negotiation" for link in conversation.links):
        return "negotiation"
    return head.method or head.http_method


def _subject(head: Exchange) -> str:
    if head.name is not None:
        return head.name
    if head.batch_items is not None:
        return f"batch of {len(head.batch_items)}"
    if head.method is None:
        if head.http_method == "GET":
            return "stream" if head.stream is not None else "GET"
        return {"DELETE": "end session", "POST": "answer to the server"}.get(head.http_method, head.http_method)
    return ""


def _deciding(conversation: Conversation | None, rounds: list[Exchange]) -> Exchange:
    if conversation is None or len(rounds) == 1:
        return rounds[0]
    return next((e for e in reversed(rounds) if e.outcome not in ("accepted", "none")), rounds[-1])


def _state(head: Exchange, conversation: Conversation | None, last: Exchange) -> State:
    negotiated = conversation is not None and any(link.by == "negotiation" for link in conversation.links)
    if negotiated and last.outcome == "complete" and last.claim.kind == "legacy" and head.claim.modern:
        return State("warn", "loop", "fell back")
    if conversation is not None and any(link.by == "taskId" for link in conversation.links):
        words = {
            "complete": State("ok", "task", "task completed"),
            "error": State("err", "x", "task failed"),
            "cancelled": State("off", "x", "task cancelled"),
        }
        if conversation.status in words:
            return words[conversation.status]
    return outcome_state(last, conversation)


def _total(head: Exchange, conversation: Conversation | None, rounds: list[Exchange]) -> float | None:
    if conversation is not None:
        if conversation.ended is None:
            return None
        return (conversation.ended - conversation.started) * 1000
    return (head.ended - head.started) * 1000 if head.ended is not None else None


def _tag(head: Exchange, conversation: Conversation | None) -> str:
    if conversation is not None:
        count = len(conversation.rounds)
        if any(link.by == "taskId" for link in conversation.links):
            return f"task, {count - 1} poll{'s' if count != 2 else ''}"
        if any(link.by in ("requestState", "inputResponses") for link in conversation.links):
            return f"{count} rounds"
        return f"{count} flows"
    if head.stream is not None:
        return f"SSE {head.stream.count} event{'s' if head.stream.count != 1 else ''}"
    return ""


def _summary(head: Exchange, conversation: Conversation | None, rounds: list[Exchange], last: Exchange) -> str:
    """What can be said without the bodies: findings first, then how it went."""
    found = max(
        (f for e in rounds for f in e.findings if f.severity != "info"), key=lambda f: f.severity == "error", default=None
    )
    if found is not None:
        return shown(found.message, 160)
    if conversation is not None:
        by = dict.fromkeys(_WAYS[link.by] for link in conversation.links)
        if any(link.by == "negotiation" for link in conversation.links):
            eras = dict.fromkeys(e.shown_era for e in rounds)
            return shown(
                " → ".join(f"{e.method or e.http_method} {e.status or ''}".strip() for e in rounds[:4]) or str(eras), 160
            )
        middle = [e.said for e in rounds[:-1] if e.said and e.outcome == "input_required"]
        words = [head.asked, " → ".join(middle[:3]), last.said if last is not head or not middle else ""]
        return shown(" · ".join(w for w in words if w), 200) or f"linked by {', '.join(by)}"
    return shown(" · ".join(words for words in (head.asked, head.said) if words), 200)


def bars(conversation: Conversation | None, rounds: list[Exchange]) -> list[dict[str, Any]]:
    """Who held the operation, one after the other: server, client that was asked, nobody (between polls, before another try).
    `w` is the share of the time."""
    if conversation is None:
        return [{"who": "s", "w": 1.0, "ms": _ms(rounds[0])}]
    polls = any(link.by == "taskId" for link in conversation.links)
    mrtr = any(link.by in ("requestState", "inputResponses") for link in conversation.links)
    answers = any(link.by == "jsonrpc-id" for link in conversation.links)
    out: list[dict[str, Any]] = []
    before: float | None = None
    for number, (_, start, end, _outcome) in enumerate(conversation.shape[:BARS], 1):
        if before is not None and start > before:
            asked = answers or conversation.shape[number - 2][3] == "input_required"
            word = "client" if asked else "idle" if polls else "pause"
            out.append({"who": "c" if asked else "q", "ms": (start - before) * 1000, "label": word})
        if end is not None:
            begin = start if before is None else max(start, before)
            if end > begin:
                out.append({"who": "s", "ms": (end - begin) * 1000, "label": f"{'round' if mrtr else 'exchange'} {number}"})
            before = max(end, before or end)
        else:
            before = before or start
    total = sum(b["ms"] for b in out) or 1.0
    for bar in out:
        bar["w"] = round(max(bar["ms"] / total, 0.004), 4)
        bar["text"] = duration(bar["ms"])
    return out or [{"who": "s", "w": 1.0, "ms": 0.0}]


def _ms(exchange: Exchange) -> float:
    return (exchange.ended - exchange.started) * 1000 if exchange.ended is not None else 0.0


# An opened row


def detail(ledger: Ledger, head: Exchange, whole: Any, zone: tzinfo | None) -> dict[str, Any]:
    """All that an opened row shows. `whole(flow)` gives the Subject of a flow, None where mitmproxy has it no more."""
    conversation = head.conversation
    exchanges = ledger.rounds(head)
    state = _state(head, conversation, _deciding(conversation, exchanges))
    total = _total(head, conversation, exchanges)
    found: dict[str, Any] = {
        "key": shown(head.flow, 80),
        "state": state,
        "total": duration(total) if total is not None else None,
        "flow": parts.link(head.flow),
        "line": _line(head),
        "client": client_key(head.client_info, head.auth),
        "findings": [f | {"flow": parts.link(e.flow)} for e in exchanges for f in parts.findings(e)][: parts.CASES],
        "unchecked": list(dict.fromkeys(line for e in exchanges for line in parts.unchecked(e)))[:10],
        "faults": [f"{w}: {shown(error)}" for e in exchanges for w, error in e.faults][:5],
        "conversation": None,
        "single": None,
    }
    if conversation is not None and len(conversation.rounds) > 1:
        found["conversation"] = _conversation(conversation, exchanges, whole)
    else:
        subject = whole(head.flow)
        found["single"] = single(subject) if subject is not None else {"missing": True, "headers": parts.headers_checked(head)}
    return found


def _line(exchange: Exchange) -> str:
    words = [f"HTTP {exchange.status}" if exchange.status is not None else "no response"]
    if exchange.jsonrpc_id is not None:
        words.append(f"id {parts.brief(exchange.jsonrpc_id, 60)}")
    words.append(f"{exchange.shown_era} {shown(exchange.revision or '', 20)}".strip())
    return " · ".join(words)


def single(subject: Subject) -> dict[str, Any]:
    """The parts of an exchange that stands alone."""
    whole = subject.whole
    request, answer = subject.request, subject.answer
    params: Any = None
    if request is not None:
        params = request.rpc.params if request.kind in ("request", "notification") else request.rpc.result or request.rpc.error
    reading = whole.reading
    batch = reading is not None and reading.kind == "batch"
    document = parts.document(whole, "request") if request is None or batch else None
    out: dict[str, Any] = {
        "missing": False,
        "headers": parts.headers_checked(subject.record),
        "params": parts.json_text(params) if params is not None and document is None else None,
        "request": document,
        "result": None,
        "error": None,
        "response": None,
        "rail": parts.rail(subject) if whole.stream is not None else None,
        "panel": None,
        "fits": _fits(subject),
    }
    if answer is not None and answer.kind == "result":
        out["result"] = parts.json_text(answer.rpc.result)
    elif answer is not None:
        out["error"] = parts.json_text(answer.rpc.error)
    elif whole.stream is None and whole.status is not None:
        out["response"] = parts.document(whole, "response")
    if whole.status is not None and (answer is None or answer.kind == "error"):
        panel = lines(errors.panel(subject))
        out["panel"] = "\n".join(panel) if panel else None
    return out


def _fits(subject: Subject) -> State | None:
    """Whether the arguments of a tools/call fit the inputSchema that was listed."""
    from mcp_wiretap.view import headers

    request = subject.request
    if request is None or request.method != "tools/call":
        return None
    definition = headers.definition_of(subject)
    if definition is None:
        return State("off", "minus", "schema not seen")
    arguments = request.params.get("arguments")
    verdict = fits.check(definition.raw.get("inputSchema"), arguments if arguments is not None else {})
    if verdict.problems:
        return State("warn", "warn", shown(f"does not fit the schema: {verdict.words}", 200))
    if verdict.unchecked is not None:
        return State("off", "minus", shown(f"not checked: {verdict.unchecked}", 200))
    return State("ok", "ok", "fits the schema")


def _conversation(conversation: Conversation, exchanges: list[Exchange], whole: Any) -> dict[str, Any]:
    subjects = {e.flow: whole(e.flow) for e in exchanges[:ROUNDS]}
    links = list(dict.fromkeys((link.confidence, link.by) for link in conversation.links))
    listed = bars(conversation, exchanges)
    times = {who: sum(b["ms"] for b in listed if b["who"] == who) for who in "scq"}
    out: dict[str, Any] = {
        "bars": listed,
        "server": duration(times["s"]),
        "client": duration(times["c"]) if times["c"] else None,
        "idle": duration(times["q"]) if times["q"] else None,
        "pause": "between polls" if any(link.by == "taskId" for link in conversation.links) else "in between",
        "count": len(conversation.rounds),
        "links": ", ".join(f"{confidence} by {_WAYS[by]}" for confidence, by in links),
        "mrtr": any(link.by in ("requestState", "inputResponses") for link in conversation.links),
        "rounds": [],
        "more": max(len(exchanges) - ROUNDS, 0),
    }
    states: dict[str, str] = {}
    for exchange in exchanges[:ROUNDS]:
        subject = subjects[exchange.flow]
        link = next((each for each in conversation.links if each.later == exchange.flow), None)
        earlier = subjects.get(link.earlier) if link is not None else None
        out["rounds"].append(_round(conversation, exchange, subject, earlier, link, states))
        given = _given(subject)
        if given is not None:
            states.setdefault(given, exchange.flow)
    return out


def _given(subject: Subject | None) -> str | None:
    answer = subject.answer if subject is not None else None
    state = answer.result.get("requestState") if answer is not None else None
    return state if isinstance(state, str) else None


def _round(
    conversation: Conversation,
    exchange: Exchange,
    subject: Subject | None,
    earlier: Subject | None,
    link: Any,
    states: dict[str, str],
) -> dict[str, Any]:
    out: dict[str, Any] = {
        "number": exchange.round,
        "of": len(conversation.rounds),
        "off": offset(exchange.started - conversation.started),
        "id": parts.brief(exchange.jsonrpc_id, 40) if exchange.jsonrpc_id is not None else "",
        "flow": parts.link(exchange.flow),
        "line": f"{exchange.status or '–'} {_type(exchange)} · {duration(_ms(exchange)) if exchange.over else 'open'}",
        "state": outcome_state(exchange),
        "by": _WAYS[link.by] if link is not None else "",
        "confidence": link.confidence if link is not None else "",
        "echo": None,
        "took": None,
        "sent": [],
        "said": [],
        "worst": worst(exchange.findings),
    }
    if link is not None:
        earlier_flow = conversation.rounds[(exchange.round or 2) - 2] if link.by == "taskId" else link.earlier
        before = next((end for flow, _, end, _ in conversation.shape if flow == earlier_flow), None)
        if before is not None and exchange.started > before:
            out["took"] = duration((exchange.started - before) * 1000)
            out["held"] = "client" if link.by in ("requestState", "inputResponses", "jsonrpc-id") else "pause"
    if subject is None:
        out["sent"] = [{"title": "", "text": "mitmproxy has this flow no more", "code": ""}]
        return out
    if link is not None and link.by in ("requestState", "inputResponses"):
        out["echo"] = _echo(subject, earlier, states)
    out["sent"] = _sent(subject, earlier)
    out["said"] = _said(subject)
    return out


def _type(exchange: Exchange) -> str:
    if exchange.stream is not None:
        return "SSE"
    fields = exchange.response_fields
    kind = (fields.first("content-type") or "").partition(";")[0] if fields is not None else ""
    return "JSON" if kind.endswith("json") else shown(kind, 40)


def _echo(subject: Subject, earlier: Subject | None, states: dict[str, str]) -> dict[str, Any]:
    """Whether the state that was given came back as it was."""
    request = subject.request
    echoed = request.params.get("requestState") if request is not None else None
    given = _given(earlier)
    echoed = echoed if isinstance(echoed, str) else None
    if given is None and echoed is None:
        return {"given": "", "state": State("off", "minus", "no state")}
    if given is None:
        known = echoed in states
        word = "REPLAYED: that of an earlier round" if known else "INVENTED: none was given"
        return {"given": "", "echoed": mask(echoed or ""), "state": State("err", "x", word)}
    if echoed is None:
        return {"given": mask(given), "state": State("err", "x", "MISSING")}
    if echoed == given:
        return {"given": mask(given), "state": State("ok", "eq", "echoed: same")}
    if echoed in states:
        return {"given": mask(given), "echoed": mask(echoed), "state": State("err", "x", "REPLAYED: that of an earlier round")}
    return {"given": mask(given), "echoed": mask(echoed), "state": State("err", "neq", "CHANGED")}


def _sent(subject: Subject, earlier: Subject | None) -> list[dict[str, Any]]:
    """What the client sent in a round: the first arguments, or its answers by key."""
    message = subject.request
    if message is None:
        return [{"title": subject.whole.http_method, "text": "", "code": shown(subject.whole.query, 200)}]
    if message.kind in ("result", "error"):
        return [_reply(message)]
    given = message.params.get("inputResponses")
    asked = _asked(earlier.answer) if earlier is not None else {}
    if isinstance(given, dict) and given:
        out = [_answer(name, answer, asked.get(name)) for name, answer in list(given.items())[:20]]
        out += [
            {"title": f"{shown(name, 60)}", "text": "", "code": "", "state": State("err", "x", "asked, not answered")}
            for name in asked
            if name not in given
        ]
        return out
    params = {k: v for k, v in message.params.items() if k not in ("_meta", "requestState", "inputResponses", "name")}
    word = "retry without answers" if message.params.get("requestState") is not None else shown(message.method, 60)
    return [{"title": word, "text": "", "code": parts.brief(params, 300) if params else ""}]


def _reply(message: Message) -> dict[str, Any]:
    content = message.rpc.result if message.kind == "result" else message.rpc.error
    title = f"answers {parts.brief(message.rpc.id, 40)}"
    return {"title": title, "text": "", "code": parts.brief(content, 300)}


def _answer(name: str, answer: Any, question: Any) -> dict[str, Any]:
    kind = question.get("method") if isinstance(question, dict) else None
    entry: dict[str, Any] = {"title": f"answer to {shown(name, 60)}", "note": shown(kind or "", 60), "text": "", "code": ""}
    shown_answer = masked(answer, entered=True)
    if isinstance(answer, dict) and "action" in answer:
        entry["text"] = shown(answer["action"], 40)
        content = answer.get("content")
        if content is not None:
            entry["code"] = parts.brief(shown_answer.get("content"), 300)
            fits = calls.content_fits(question, content)
            if fits:
                kind_ = {"✓": "ok", "✕": "err"}.get(fits[0], "off")
                entry["state"] = State(kind_, {"ok": "ok", "err": "x"}.get(kind_, "minus"), shown(fits[2:], 200))
    else:
        entry["code"] = parts.brief(shown_answer, 300)
    if question is None:
        entry["state"] = State("err", "x", "never asked in the round before")
    return entry


def _asked(answer: Message | None) -> dict[str, Any]:
    asked = answer.result.get("inputRequests") if answer is not None else None
    return asked if isinstance(asked, dict) else {}


def _said(subject: Subject) -> list[dict[str, Any]]:
    """What the server answered in a round."""
    out: list[dict[str, Any]] = []
    whole = subject.whole
    for message in [m for m in whole.received if m.kind == "request"][:10]:
        params = message.params
        out.append(
            {
                "title": f"asks {shown(message.method, 60)}",
                "note": f"id {parts.brief(message.rpc.id, 40)}",
                "text": shown(params.get("message") or "", 300),
                "code": _wanted(params),
            }
        )
    answer = subject.answer
    if answer is None:
        if not out:
            out.append({"title": "no answer here", "text": "", "code": "", "state": outcome_state(subject.record)})
        return out
    for name, question in list(_asked(answer).items())[:20]:
        found = question.get("params") if isinstance(question, dict) else None
        params = found if isinstance(found, dict) else {}
        method = question.get("method") if isinstance(question, dict) else "?"
        mode = params.get("mode")
        out.append(
            {
                "title": f"asks {shown(name, 60)}",
                "note": shown(f"{method}{f' · {mode}' if isinstance(mode, str) else ''}", 80),
                "text": shown(calls.question_text(question), 300),
                "code": _wanted(params),
            }
        )
    if answer.kind == "error":
        error = answer.rpc.error if isinstance(answer.rpc.error, dict) else {}
        out.append(
            {
                "title": "error",
                "text": shown(error.get("message", ""), 300),
                "code": parts.brief(error.get("data"), 300) if error.get("data") is not None else "",
                "state": outcome_state(subject.record),
            }
        )
    else:
        status = answer.result.get("status")
        state = outcome_state(subject.record)
        title = f"task {shown(status, 40)}" if isinstance(status, str) else "result"
        if subject.record.outcome == "input_required" and out:
            out[-1]["state"] = state
        else:
            out.append({"title": title, "text": "", "code": parts.result_brief(answer), "state": state})
    return out


def _wanted(params: dict[str, Any]) -> str:
    """The properties that an elicitation asks for: {name: string}."""
    wanted = params.get("requestedSchema")
    properties = wanted.get("properties") if isinstance(wanted, dict) else None
    if not isinstance(properties, dict):
        return shown(str(params["url"]), 200) if isinstance(params.get("url"), str) else ""
    words = []
    for name, spec in list(properties.items())[:20]:
        kind = spec.get("type", "any") if isinstance(spec, dict) else "any"
        choices = spec.get("enum") if isinstance(spec, dict) else None
        words.append(f"{name}: {'|'.join(map(str, choices[:6])) if isinstance(choices, list) else dumps(kind).strip(chr(34))}")
    return shown("{" + ", ".join(words) + "}", 300)
