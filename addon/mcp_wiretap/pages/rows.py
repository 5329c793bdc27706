"""Pieces of an opened row that several pages show: findings, mirrored headers, event rails, JSON."""

from collections.abc import Iterable
from typing import Any

from mcp_wiretap.pages.words import SEVERITY, VERDICTS, State, duration, flow_link, offset, short_flow, shown, size
from mcp_wiretap.report import change
from mcp_wiretap.trace.finding import RANK
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.view import body, changes
from mcp_wiretap.view.calls import text_of
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.revision import error_name
from mcp_wiretap.wire.secret import concealed, mask_header, masked, visible

EVENTS = 150  # of one stream that an opened row shows: the first ones and the last ones
LONG = 4_000
CASES = 30  # findings of one exchange shown


def link(flow: str, side: str = "request") -> dict[str, str]:
    return {"href": flow_link(shown(flow, 80), side), "short": shown(short_flow(flow), 12), "id": shown(flow, 80)}


def findings(exchange: Exchange) -> list[dict[str, Any]]:
    """The findings of an exchange, the worst first; what is said again and again is said once."""
    ordered = sorted(exchange.findings, key=lambda f: -RANK[f.severity or "info"])
    told: dict[tuple[str, str | None, str], dict[str, Any]] = {}
    for f in ordered:
        there = told.get((f.rule, f.party, f.message))
        if there is not None:
            there["times"] += 1
        elif len(told) < CASES:
            told[f.rule, f.party, f.message] = {
                "rule": f.rule,
                "party": f.party,
                "state": SEVERITY[f.severity or "info"],
                "message": shown(f.message, 600),
                "spec": f.spec,
                "evidence": evidence(f.evidence),
                "times": 1,
            }
    return list(told.values())


def evidence(items: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "where": shown(e.where, 300).removesuffix(":"),
            "value": shown(e.value, 400),
            "expected": shown(e.expected, 400) if e.expected is not None else None,
        }
        for e in items
    ]


def unchecked(exchange: Exchange) -> list[str]:
    return [f"{shown(u.what)}: {shown(u.why)}" for u in exchange.unchecked[:20]]


def changed(exchange: Exchange, subject: Subject | None) -> dict[str, Any] | None:
    """What was changed at the proxy, with the lines that differ; None where nothing was."""
    if exchange.change is None:
        return None
    lines = (
        [line for side in ("request", "response") for line in changes.lines(subject.whole, side)] if subject is not None else []
    )
    return {
        "sentences": [shown(sentence, 300) for sentence in change.sentences(exchange.change)],
        "lines": [shown(line, 400) for line in lines],
    }


def headers_checked(exchange: Exchange) -> list[dict[str, Any]]:
    """Each mirrored header beside what the body says, with the rules that complain."""
    out = []
    for check in exchange.header_checks:
        where = f"request.header:{check.header}".lower()
        rules = dict.fromkeys(f.rule for f in exchange.findings if any(e.where.lower() == where for e in f.evidence))
        state = VERDICTS.get(check.verdict, State("off", "minus", shown(check.verdict, 40)))
        raw = check.raw
        decoded = check.decoded if check.decoded is not None and raw is not None and check.decoded != raw.strip(" \t") else None
        out.append(
            {
                "header": shown(check.header, 120),
                "raw": shown(mask_header(check.header, raw), 400) if raw is not None else None,
                "decoded": shown(decoded, 400) if decoded is not None else None,
                "body": shown(check.body, 400) if check.body is not None else None,
                "expected": shown(check.expected, 400) if check.expected is not None and state.kind == "err" else None,
                "state": state,
                "detail": shown(check.detail, 300),
                "rules": list(rules),
            }
        )
    return out


def headers(fields: Fields | None) -> list[dict[str, Any]]:
    """All headers as they came, those of MCP first; secrets masked."""
    if fields is None:
        return []
    out = [
        {
            "name": shown(name, 120),
            "value": shown(mask_header(name, value), 1_000),
            "mcp": name.lower().startswith("mcp-"),
        }
        for name, value in list(fields)[:200]
    ]
    return sorted(out, key=lambda h: not h["mcp"])


def json_text(value: Any) -> str:
    """JSON over several lines, secrets masked, long texts cut, everything visible."""
    return body.pretty(value)


def document(whole: Exchange, side: str) -> dict[str, Any]:
    """A body as it is shown: JSON, or why there is none."""
    found, problem = body.content(whole, side)
    if problem == "empty":
        return {"problem": "empty", "json": None}
    if problem is not None:
        return {"problem": shown(problem), "json": None}
    return {"problem": None, "json": json_text(found)}


def brief(value: Any, limit: int = 200) -> str:
    """A JSON value on one line."""
    if isinstance(value, str):
        return shown(value, limit)
    return shown(jsonrpc.dumps(masked(value), most=limit + 1), limit)


def rail(subject: Subject) -> list[dict[str, Any]]:
    """A stream as it went: request, head, each event with its offset and its gap, the end."""
    whole = subject.whole
    stream = whole.stream
    start = whole.started
    out: list[dict[str, Any]] = [
        {
            "off": offset(0),
            "gap": "",
            "mark": "first",
            "title": "request sent",
            "note": f"{size(whole.reading.size) if whole.reading is not None else 'no body'}, "
            f"last byte after {duration((whole.requested - start) * 1000)}",
        }
    ]
    before = start
    if whole.responded is not None:
        fields = whole.response_fields
        kind = (fields.first("content-type") or "") if fields is not None else ""
        ways = [f"{n}: {fields.first(n)}" for n in ("x-accel-buffering", "cache-control") if fields is not None and fields.has(n)]
        out.append(
            {
                "off": offset(whole.responded - start),
                "gap": _gap(whole.responded, before),
                "title": "response head",
                "code": shown(f"{whole.status} {kind}", 120),
                "note": shown(", ".join(ways), 120),
            }
        )
        before = whole.responded
    if stream is not None:
        before = _events(out, whole, stream.items, before, stream.timed)
        more = stream.count - len(stream.items)
        if more > 0:
            out.append({"off": "", "gap": "", "title": f"{more} more events", "note": "past what is kept of one stream"})
    if whole.ended is not None:
        title, note, mark = _end(subject)
        out.append(
            {"off": offset(whole.ended - start), "gap": _gap(whole.ended, before), "title": title, "note": note, "mark": mark}
        )
    elif stream is not None:
        out.append({"off": "", "gap": "", "title": "open", "note": "more may come", "mark": "live"})
    return out


def _events(out: list[dict[str, Any]], whole: Exchange, items: list[StreamItem], before: float, timed: bool) -> float:
    skipped = len(items) - EVENTS
    for place, item in enumerate(items):
        if skipped > 0 and EVENTS // 2 <= place < EVENTS // 2 + skipped:
            if place == EVENTS // 2:
                out.append(
                    {"off": "", "gap": "", "title": f"{skipped} events more", "note": "the flow in mitmweb has all of them"}
                )
            before = item.at
            continue
        line = event(item)
        line["off"] = offset(item.at - whole.started) if timed else "–"
        line["gap"] = _gap(item.at, before) if timed else ""
        out.append(line)
        before = item.at
    return before


def _gap(at: float, before: float) -> str:
    return f"Δ {duration(max(at - before, 0) * 1000)}"


def event(item: StreamItem) -> dict[str, Any]:
    """One event in words."""
    line: dict[str, Any] = {"index": item.event.index}
    if not item.messages:
        data = item.event.data
        line["title"] = "no data" if not data else shown(item.event.event or "event", 60)
        line["note"] = "priming event: an id for resumption" if not data and item.event.id else shown(data, 200)
        return line
    line |= message_line(item.messages[0])
    if len(item.messages) > 1:
        line["note"] = f"and {len(item.messages) - 1} more messages"
    return line


def message_line(message: Message) -> dict[str, Any]:
    """A message in words: its method without the prefix, and what is telling in it."""
    rpc = message.rpc
    if rpc.kind == "result":
        kind = message.result.get("resultType")
        word = "input required" if kind == "input_required" else "task" if kind == "task" else "complete"
        state = State("ok" if word == "complete" else "wait", "ok" if word == "complete" else "wait", word)
        return {"title": "result", "id": brief(rpc.id, 40), "state": state, "code": result_brief(message), "mark": "fin"}
    if rpc.kind == "error":
        code = message.error_code
        name = error_name(code)
        error = rpc.error if isinstance(rpc.error, dict) else {}
        return {
            "title": "error",
            "id": brief(rpc.id, 40),
            "state": State("err", "x", f"{code} {name or ''}".strip()),
            "code": brief(error.get("message", ""), 200),
            "mark": "bad",
        }
    method = rpc.method or rpc.kind
    params = message.params
    line: dict[str, Any] = {"title": shown(method.removeprefix("notifications/"), 80)}
    if method == "notifications/progress":
        total = params.get("total")
        line["code"] = f"{brief(params.get('progress'), 20)}" + (f"/{brief(total, 20)}" if total is not None else "")
        line["note"] = shown(params.get("message") or "", 200)
    elif method == "notifications/message":
        line["code"] = shown(f"{params.get('level')} {params.get('logger') or ''}", 80)
        line["note"] = brief(params.get("data"), 200)
    elif rpc.kind == "request":
        line["title"] = f"asks {line['title']}"
        line["id"] = brief(rpc.id, 40)
        line["code"] = brief(params.get("message", params), 200)
    elif telling := {k: v for k, v in params.items() if k != "_meta"}:
        line["code"] = brief(telling, 200)
    return line


def result_brief(message: Message) -> str:
    """What is telling in a result, on one line."""
    result = message.result
    if isinstance(result.get("content"), list):
        return shown(text_of(result["content"]), 200) if result["content"] else "no content"
    for name in ("tools", "resources", "resourceTemplates", "prompts"):
        if isinstance(result.get(name), list):
            return f"{len(result[name])} {name}"
    if isinstance(result.get("inputRequests"), dict):
        return shown("asks " + ", ".join(result["inputRequests"]), 200)
    inner_task = result.get("task")
    task = inner_task if isinstance(inner_task, dict) else result
    if isinstance(task.get("status"), str) and isinstance(task.get("taskId"), str):
        inner = task.get("result", task.get("error", task.get("inputRequests")))
        said = shown(task.get("statusMessage") or "", 200)
        return " ".join(words for words in (said, brief(inner, 200) if inner is not None else "") if words)
    return brief({k: v for k, v in result.items() if k not in ("_meta", "resultType", "ttlMs", "cacheScope")}, 200)


def _end(subject: Subject) -> tuple[str, str, str]:
    whole, record = subject.whole, subject.record
    by = record.ended_by
    answered = subject.answer is not None
    if by == "client":
        if record.method == "subscriptions/listen":
            return "client closed the stream", "this is how a modern subscription is ended", "cutt"
        return "client closed the stream", "after the answer" if answered else "before an answer: cancelled", "cutt"
    if by in ("server", "unknown"):
        why = shown(whole.failure or "", 200)
        return ("server broke off" if by == "server" else "broken off"), why, "cutt" if answered else "bad"
    return ("server ended the stream" if whole.stream is not None else "response complete"), "", "last"


def texts(value: str, limit: int = LONG) -> str:
    """A text of several lines, each visible."""
    cut = concealed(value)[:limit]
    lines = "\n".join(visible(line) for line in cut.split("\n"))
    return lines if len(value) <= limit else f"{lines}… ({len(value)} characters)"
