"""What became of an exchange, in one word (docs/architecture.md `outcome`)."""

from mcp_wiretap.trace.model import Exchange, Message, Outcome, Stream
from mcp_wiretap.trace.summary import error_words


def settle(exchange: Exchange) -> None:
    """Set `outcome` and `error_code` from what has been seen so far. A released exchange keeps what it had."""
    if exchange.released:
        return
    exchange.error_code = None
    if exchange.kind == "mcp":
        exchange.outcome = _of_mcp(exchange)
        if (posted := error_words.posted(exchange)) is not None and exchange.outcome != "error":
            exchange.error_code = posted.error_code
    elif exchange.kind == "process":
        exchange.outcome = "stream" if not exchange.over else "broken" if _failed(exchange) else "complete"
    elif exchange.status is None:
        exchange.outcome = "broken" if exchange.over else "none"
    else:
        exchange.outcome = "complete" if exchange.status < 400 else "error"
    error_words.settle(exchange)


def _failed(exchange: Exchange) -> bool:
    """Whether a process ended otherwise than with status 0. A client that ends its server by SIGTERM does nothing wrong."""
    return exchange.process is None or exchange.process.status not in (0, -15, 143)


def _of_mcp(exchange: Exchange) -> Outcome:
    answer = exchange.answer
    if answer is not None:
        return _of_answer(exchange, answer)
    if exchange.request is None:
        refusal = next((m for m in exchange.received if m.rpc.kind == "error"), None)
        if refusal is not None and exchange.stream is None:
            exchange.error_code = refusal.error_code
            return "error"
    if exchange.status is not None and exchange.status >= 300:
        refusal = error_words.refusal(exchange)
        exchange.error_code = refusal.error_code if refusal is not None else None
        return "error"
    if exchange.stream is not None:
        return _of_stream(exchange, exchange.stream)
    if exchange.ended_by == "client":
        # A listen that is no event stream: a client waits for events that it could not read, and gives up.
        return "broken" if exchange.method == "subscriptions/listen" and exchange.status is not None else "cancelled"
    if exchange.over and (exchange.status is None or exchange.ended_by in ("server", "unknown")):
        return "broken"
    if exchange.status is None:
        return "none"
    if exchange.request is not None:
        return _of_unanswered(exchange)
    if _is_page(exchange):
        return "error"
    return "accepted" if any(m.rpc.kind != "invalid" for m in exchange.sent) else "complete"


def _is_page(exchange: Exchange) -> bool:
    """Whether a client that asked for an event stream got a page: of a sign-in, or of something in between."""
    fields = exchange.response_fields
    content_type = (fields.first("content-type") or "").lower() if fields is not None else ""
    asked = (exchange.request_fields.first("accept") or "").lower()
    return exchange.http_method == "GET" and content_type.startswith("text/html") and "text/html" not in asked


def _of_stream(exchange: Exchange, stream: Stream) -> Outcome:
    """An event stream without the answer that it was to bring."""
    if not exchange.over or exchange.http_method == "GET":
        return "stream"
    if not stream.recorded or exchange.dropped or stream.decode_problem not in (None, "cut short"):
        return "none"  # the answer may have been in what was not read
    return "cancelled" if exchange.ended_by == "client" else "broken"


def _of_unanswered(exchange: Exchange) -> Outcome:
    """A request that got a 2xx, but no answer in its body."""
    session = exchange.session
    if exchange.status == 202:
        return "accepted" if session is None or session.live else "broken"
    if not exchange.over or _unread(exchange):
        return "none"
    return "broken"


def _unread(exchange: Exchange) -> bool:
    reading = exchange.answer_reading
    return reading is None or reading.kind in ("too-large", "too-deep", "cut")


def _of_answer(exchange: Exchange, answer: Message) -> Outcome:
    if answer.rpc.kind == "error":
        exchange.error_code = answer.error_code
        return "error"
    kind = answer.result.get("resultType")
    if kind == "input_required":
        return "input_required"
    if kind == "task":
        return "task"
    request = answer.request
    if request is not None and isinstance(request.params.get("task"), dict) and isinstance(answer.result.get("task"), dict):
        return "task"
    return "complete"
