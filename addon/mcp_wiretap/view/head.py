"""The top of a page: what the message is, the verdict, what became of it, and its era with the evidence."""

from mcp_wiretap.report import comment
from mcp_wiretap.report.words import duration, plural, short_flow
from mcp_wiretap.trace.finding import RANK
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject, side_of
from mcp_wiretap.view.yaml import Row, note, pairs, scalar
from mcp_wiretap.wire import jsonrpc

GLYPHS = {"error": "✕", "warning": "▲", "info": "i"}


def title(subject: Subject, side: str) -> list[str]:
    """Method, name, id, era and revision; of a response also status, type and time."""
    record, whole = subject.record, subject.whole
    reading = whole.reading
    if reading is not None and reading.kind == "batch":
        words = [f"batch of {plural(len(reading.messages), 'message')}"]
    else:
        words = [" ".join(comment.shown(w, 60) for w in (record.method or whole.http_method, record.name) if w)]
    first = subject.request
    if first is not None and first.kind == "request":
        words.append(f"id {comment.shown(jsonrpc.dumps(first.rpc.id), 40)}")
    elif first is not None and first.kind in ("notification", "result", "error"):
        words.append("notification" if first.kind == "notification" else f"answer to the server, {first.kind}")
    era = record.shown_era if record.shown_era != "unknown" else "era unknown"
    words.append(f"{era} {comment.shown(record.revision, 20)}" if record.revision else era)
    if place := comment.mrtr(record):
        number, _, total = place.partition("/")
        words.append(f"MRTR round {number} of {total}" if total else f"MRTR round {number}")
    if side == "response" and whole.status is not None:
        words.append(f"{whole.status} {_content_type(whole)}".strip())
        if whole.ended is not None:
            words.append(duration((whole.ended - whole.started) * 1000))
    return note("   ".join(words))


def _content_type(exchange: Exchange) -> str:
    fields = exchange.response_fields
    value = fields.first("content-type") if fields is not None else None
    return comment.shown((value or "").partition(";")[0].strip(), 60)


def verdict(subject: Subject, side: str) -> list[str]:
    """One line: is this message right?"""
    record = subject.record
    own = subject.findings(side)
    out: list[str] = []
    if own:
        counts = [
            plural(n, word if word != "info" else "note")
            for word in ("error", "warning", "info")
            if (n := sum(f.severity == word for f in own))
        ]
        worst = max(own, key=lambda f: RANK[f.severity or "info"])
        said = f"{GLYPHS[worst.severity or 'info']} {', '.join(counts)}: {worst.message}   [{worst.rule}, {worst.party}]"
        out += note(said)
    other = [f for f in record.findings if side_of(f) != side]
    if not own:
        serious = [f for f in other if f.severity == "error"]
        if side == "response" and serious and record.outcome == "error":
            out += note(f"✓ no findings on the response; the request is at fault, see its own view   [{serious[0].rule}, client]")
        elif other:
            what = "request" if side == "response" else "response"
            out += note(f"✓ no findings on this side; {plural(len(other), 'finding')} on the {what}")
        else:
            out += note("✓ no findings")
    if not subject.known:
        out += note("– read alone: mcp-wiretap has not followed this flow, so what came before and after it is not known")
    return out


def outcome(subject: Subject) -> list[Row]:
    """What became of the exchange."""
    record, whole = subject.record, subject.whole
    words = comment.outcome(record)
    if record.outcome == "error":
        words = f"error {words}" if record.error_code is not None else "error"
    return [(0, f"outcome: {scalar(words)}", _meaning(subject, whole))]


def _meaning(subject: Subject, whole: Exchange) -> str:
    record = subject.record
    took = duration((whole.ended - whole.started) * 1000) if whole.ended is not None else ""
    http = f"HTTP {whole.status}" if whole.status is not None else ""
    after = " after ".join(part for part in (http, took) if part)
    match record.outcome:
        case "input_required":
            answer = subject.answer
            asked = answer.result.get("inputRequests") if answer is not None else None
            if isinstance(asked, dict) and asked:
                return f"the client must answer {plural(len(asked), 'request')}, then call again"
            return "nothing is asked: the client may call again at once, with the state"
        case "none":
            return "no response was seen" if whole.status is None else after
        case "stream":
            return "open" if not whole.over else f"ended after {took}, by the {whole.ended_by}"
        case "cancelled":
            return f"the client closed it{f' after {took}' if took else ''}, before it had an answer"
        case "broken":
            why = record.failure or _unanswered(whole)
            return f"{after}: {why}" if after else why
        case "accepted":
            return f"{after}; the server took the message, no answer is due"
    if record.late_answer is not None or (record.outcome in ("complete", "error") and not _has_answer(whole) and record.method):
        return f"{after}; the answer came on another stream" if whole.status == 202 else after
    return after


def _unanswered(whole: Exchange) -> str:
    """What came in place of an answer."""
    reading = whole.answer_reading
    if reading is None or reading.kind == "empty":
        return "it ended without an answer"
    return "what came is no answer" if whole.received else "the body is no JSON-RPC message"


def _has_answer(whole: Exchange) -> bool:
    return any(m.kind in ("result", "error") for m in whole.received)


_CLAIMS = {
    "modern": "modern",
    "modern-unknown": "modern, of a version this tool does not know",
    "modern-malformed": "modern, malformed",
    "legacy-envelope": "a modern envelope that names a legacy revision",
    "legacy": "legacy",
    "legacy-transport": "legacy by its HTTP method or form",
    "unknown-body": "not known",
    "none": "none",
}


def era(subject: Subject) -> list[Row]:
    """The era of this exchange: what the request claims, and what the server has shown."""
    record = subject.record
    if record.kind != "mcp":
        return [(0, f"kind: {record.kind}", _KINDS.get(record.kind, ""))]
    endpoint = record.endpoint
    items = [
        ("is", record.shown_era, ""),
        ("revision", scalar(record.revision) if record.revision else "none", ""),
        ("claimed", scalar(_CLAIMS[record.claim.kind]), record.claim.basis),
    ]
    shown = [e for e in (endpoint.modern, endpoint.legacy) if e is not None]
    evidence = "; ".join(f"{e.what} (flow {short_flow(e.flow)})" for e in shown)
    items.append(("server", endpoint.era, evidence or "it has shown no sign of its era so far"))
    if endpoint.expected is not None:
        broken = any(f.rule == "ERA025" for f in record.findings)
        items.append(("expected", endpoint.expected, "mcp_era: ✕ broken here  [ERA025]" if broken else "mcp_era"))
    session = record.session
    if session is not None and session.transport == "http+sse":
        items.append(("transport", "HTTP+SSE", "the one of 2024-11-05: POST here, answers on the GET stream"))
    return [(0, "era:", ""), *pairs(items, 2)]


_KINDS = {
    "oauth": "a step of authorization for an MCP endpoint",
    "preflight": "a browser asks whether it may send an MCP request",
    "other": "not MCP",
}
