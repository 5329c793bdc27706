"""An event stream, event by event: when each came, how long after the one before, what it carries; and how the stream went."""

from itertools import pairwise
from typing import Any

from mcp_wiretap.report.words import duration, plural
from mcp_wiretap.trace.model import Exchange, Message, Stream, StreamItem
from mcp_wiretap.view.calls import text_of
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, columns, pairs, scalar, value
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.revision import error_name
from mcp_wiretap.wire.secret import mask

FIRST, LAST = 120, 40  # events shown of a long stream
_WAYS = ("x-accel-buffering", "cache-control", "content-encoding", "transfer-encoding")


def offset(seconds: float) -> str:
    """+5.5 ms, +1.012 s: aligned on the right."""
    ms = max(seconds, 0.0) * 1000
    return f"{f'+{ms:.1f} ms' if ms < 1000 else f'+{ms / 1000:.3f} s':>11}"


def table(subject: Subject) -> list[Row]:
    """One line an event."""
    whole = subject.whole
    stream = whole.stream
    if stream is None:
        return []
    if not stream.count and any(u.what == "event stream" for u in whole.unchecked):
        return [(0, "events: not recorded", "whoever recorded this did not keep the stream")]
    items = stream.items
    head = plural(stream.count, "event")
    if not stream.timed:
        rows: list[Row] = [(0, "events:", f"{head}; when each came was not recorded")]
    else:
        rows = [(0, "events:", f"{head}; offset from the request, gap to the one before")]
    if whole.responded is not None:
        rows.append(_line(offset(whole.responded - whole.started), "", "response head"))
    skipped = len(items) - FIRST - LAST
    before = whole.responded
    for place, item in enumerate(items):
        if skipped > 0 and FIRST <= place < FIRST + skipped:
            if place == FIRST:
                rows.append((2, f"# … {skipped} more", ""))
            before = item.at
            continue
        indent, text, _ = _item(whole, stream, item, before)
        rows.append((indent, text, _comment(item)))
        before = item.at
    if stream.count > len(items):
        rows.append((2, f"# … {stream.count - len(items)} more, past what is kept of one stream", ""))
    if whole.ended is not None:
        gap = duration((whole.ended - before) * 1000) if before is not None and stream.timed else ""
        rows.append(_line(offset(whole.ended - whole.started), gap, _end(subject)))
    return rows


def _line(when: str, gap: str, text: str) -> Row:
    return columns(f"{when}  {gap:>7}  ", text, 2)


def _item(whole: Exchange, stream: Stream, item: StreamItem, before: float | None) -> Row:
    text = f"[{item.event.index}] {describe(item)}"
    if not stream.timed:
        return columns("", text, 2)
    gap = duration(max(item.at - before, 0.0) * 1000) if before is not None else ""
    return _line(offset(item.at - whole.started), gap, text)


def _comment(item: StreamItem) -> str:
    event = item.event
    words = []
    if event.typed and event.event != "message":
        words.append(f"event {event.event}")
    if event.id is not None:
        words.append(f"id {event.id}")
    if event.retry is not None:
        words.append(f"retry {event.retry} ms")
    return ", ".join(words)


def describe(item: StreamItem) -> str:
    """What an event carries, in a few words."""
    if not item.messages:
        if not item.event.data:
            return "no data: a priming event" if item.event.id is not None else "no data"
        if item.event.event == "endpoint":
            return f"endpoint {item.event.data[:120]}"
        problem = item.reading.problem if item.reading is not None else None
        return f"not JSON-RPC: {problem}" if problem else f"not JSON-RPC: {item.event.data[:80]}"
    return "; ".join(message_words(message) for message in item.messages[:3])


def message_words(message: Message) -> str:
    """One message of the server in a few words."""
    rpc = message.rpc
    match rpc.kind:
        case "result":
            kind = message.result.get("resultType")
            failed = ", isError" if message.result.get("isError") is True else ""
            return f"result  id {_id(rpc.id)}{f', {kind}' if isinstance(kind, str) else ''}{failed}"
        case "error":
            name = error_name(message.error_code)
            text = rpc.error.get("message") if isinstance(rpc.error, dict) else None
            return f"error {message.error_code}{f' {name}' if name else ''}  {str(text)[:80]}"
        case "request":
            return f"request {rpc.method}  id {_id(rpc.id)}"
        case "notification":
            return _notification(message)
    return f"not JSON-RPC: {rpc.problem}"


def _id(item: Any) -> str:
    return jsonrpc.dumps(item)[:40]


def _notification(message: Message) -> str:
    params, method = message.params, message.method or ""
    if method == "notifications/progress":
        total = f"/{jsonrpc.dumps(params['total'])[:20]}" if "total" in params else ""
        text = params.get("message")
        return f"progress {jsonrpc.dumps(params.get('progress'))[:20]}{total}{f'  {text[:80]}' if isinstance(text, str) else ''}"
    if method == "notifications/message":
        data = params.get("data")
        said = data if isinstance(data, str) else jsonrpc.dumps(data)
        return f"log {params.get('level')}  {said[:100]}"
    about = params.get("uri") or params.get("taskId") or params.get("requestId")
    return f"{method}{f'  {text_of(about)[:80]}' if about is not None else ''}"


def _end(subject: Subject) -> str:
    whole = subject.whole
    answered = any(m.kind in ("result", "error") for m in whole.received)
    after = "after the answer" if answered else "without an answer"
    match whole.ended_by:
        case "client":
            return f"client closed the stream, {after}"
        case "server":
            return f"server dropped the stream, {after}"
        case "complete":
            return "end of the stream"
    return f"{subject.record.failure or 'the stream broke off'}, {after}"


def progress(subject: Subject) -> list[Row]:
    """Whether progress came with the token that was asked for, and rises."""
    whole, request = subject.whole, subject.request
    seen = [m for m in whole.received if m.method == "notifications/progress"]
    wanted = request.meta.get("progressToken") if request is not None else None
    if not seen:
        return []
    tokens = {jsonrpc.id_key(m.params.get("progressToken")) for m in seen}
    as_asked = wanted is not None and tokens == {jsonrpc.id_key(wanted)}
    values = [p for m in seen if isinstance(p := m.params.get("progress"), int | float) and not isinstance(p, bool)]
    rising = all(a < b for a, b in pairwise(values))
    total = next((m.params["total"] for m in reversed(seen) if "total" in m.params), None)
    said = "as the request asked" if as_asked else "✕ not the one that the request gave"
    items = [("token", value(seen[0].params.get("progressToken"), 60), said)]
    if values:
        span = f"{jsonrpc.dumps(values[0])} to {jsonrpc.dumps(values[-1])}"
        of = f" of {jsonrpc.dumps(total)}" if total is not None else ""
        items.append(("order", scalar(f"{'rising' if rising else 'not rising'}, {span}{of}", 120), ""))
    return [(0, "progress:", ""), *pairs(items, 2)]


def way(subject: Subject) -> list[Row]:
    """What the response says of the way: buffering, caching, codings; what was lost on it."""
    whole = subject.whole
    stream, fields = whole.stream, whole.response_fields
    if stream is None or fields is None:
        return []
    items = [(name, scalar(found, 80), "") for name in _WAYS if (found := fields.first(name))]
    session = fields.first("mcp-session-id")
    if session:
        items.append(("mcp-session-id", scalar(mask(session)), ""))
    if stream.comments:
        items.append(("comments", str(stream.comments), "lines that keep the connection alive"))
    if stream.unfinished:
        items.append(("tail", "unfinished", "✕ it ended inside an event, which counts for nothing"))
    if stream.decode_problem:
        items.append(("coding", scalar(stream.decode_problem), "✕ what came after that could not be read"))
    if whole.dropped:
        items.append(("not kept", f"{whole.dropped} bytes", "past mcp_max_stream; all of it was forwarded"))
    return [(0, "stream:", ""), *pairs(items, 2)] if items else []
