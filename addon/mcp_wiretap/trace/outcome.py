"""What became of an exchange, in one word (DESIGN.md `outcome`)."""

from mcp_wiretap.trace.model import Exchange, Message, Outcome


def settle(exchange: Exchange) -> None:
    """Set `outcome` and `error_code` from what has been seen so far. A released exchange keeps what it had."""
    if exchange.released:
        return
    exchange.error_code = None
    if exchange.kind == "mcp":
        exchange.outcome = _of_mcp(exchange)
    elif exchange.status is None:
        exchange.outcome = "broken" if exchange.over else "none"
    else:
        exchange.outcome = "complete" if exchange.status < 400 else "error"


def _of_mcp(exchange: Exchange) -> Outcome:
    answer = exchange.answer
    if answer is not None:
        return _of_answer(exchange, answer)
    if exchange.request is None:
        refusal = next((m for m in exchange.received if m.rpc.kind == "error"), None)
        if refusal is not None and exchange.stream is None:
            exchange.error_code = refusal.error_code
            return "error"
    if exchange.status is not None and exchange.status >= 400:
        return "error"
    if exchange.stream is not None and not exchange.over:
        return "stream"
    if exchange.stream is not None and exchange.http_method == "GET":
        return "stream"
    if exchange.ended_by == "client":
        return "cancelled"
    if exchange.over and (exchange.status is None or exchange.ended_by in ("server", "unknown")):
        return "broken"
    if exchange.status is None:
        return "none"
    if exchange.stream is not None:
        return "broken"
    if exchange.request is not None:
        return "accepted" if exchange.status == 202 else ("none" if not exchange.over else "broken")
    if exchange.sent:
        return "accepted"
    return "complete"


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
