"""What was asked and what came of it, in a few words that stay when the bodies are let go: `exchange.asked`, `exchange.said`.

For lists that people read; no rule reads them. Secrets are masked by member name, as everywhere.
"""

from itertools import islice
from typing import Any

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import hidden_head, one_line

LONGEST = 120  # characters: a row shows less
VALUE = 40
_LISTS = ("tools", "resources", "resourceTemplates", "prompts", "tasks")


class Gists(Tracker):
    name = "gist"

    def requested(self, exchange: Exchange) -> None:
        message = exchange.request or next(iter(exchange.sent), None)
        if exchange.kind == "mcp" and message is not None and not exchange.asked:
            exchange.asked = _asked(message)

    def ended(self, exchange: Exchange) -> None:
        if exchange.kind != "mcp":
            return
        if exchange.error_message is not None and exchange.outcome != "complete":
            exchange.said = f"“{one_line(exchange.error_message, LONGEST)}”"
        elif exchange.answer is not None:
            exchange.said = _said(exchange.answer)


def _asked(message: Message) -> str:
    if message.rpc.kind in ("result", "error"):
        result = message.result
        return f"answers {one_line(str(result.get('action') or message.rpc.kind), 30)}"
    params = message.params
    given = params.get("inputResponses")
    if isinstance(given, dict) and given:
        return one_line("answers " + ", ".join(list(given)[:6]), LONGEST)
    arguments = params.get("arguments")
    if message.method == "subscriptions/listen":
        arguments = params.get("notifications")
    elif message.method == "logging/setLevel":
        arguments = {"level": params.get("level")}
    elif message.method == "completion/complete":
        arguments = params.get("argument")
    if not isinstance(arguments, dict):
        return ""
    words = [f"{name}={_value(name, value)}" for name, value in islice(arguments.items(), 6)]
    return one_line(" ".join(words), LONGEST)


def _value(name: str, value: Any) -> str:
    if type(value) is int and -1_000 < value < 1_000:
        return str(value)  # too short for a secret
    shown = hidden_head(name, value)
    return one_line(shown, VALUE) if isinstance(shown, str) else one_line(dumps(shown, most=VALUE + 1, shown=hidden_head), VALUE)


def _said(answer: Message) -> str:
    if answer.rpc.kind == "error":
        error = answer.rpc.error
        text = error.get("message") if isinstance(error, dict) else None
        return _quoted(text) if isinstance(text, str) else ""
    result = answer.result
    asked = result.get("inputRequests")
    if isinstance(asked, dict):
        return one_line("asks " + ", ".join(list(asked)[:6]), LONGEST)
    for name in _LISTS:
        items = result.get(name)
        if isinstance(items, list):
            return f"{len(items)} {'templates' if name == 'resourceTemplates' else name}"
    content = result.get("content")
    if isinstance(content, list):
        return _content(content, result)
    contents = result.get("contents")
    if isinstance(contents, list):
        return _content(contents, result)
    if isinstance(result.get("status"), str):
        return one_line(result["status"], VALUE)
    if isinstance(result.get("protocolVersion"), str):
        return f"agreed on {one_line(result['protocolVersion'], VALUE)}"
    versions = result.get("supportedVersions")
    if isinstance(versions, list):
        return one_line("offers " + ", ".join(str(v) for v in versions[:4]), LONGEST)
    return ""


def _content(blocks: list[Any], result: dict[str, Any]) -> str:
    first = blocks[0] if blocks else None
    if not isinstance(first, dict):
        return "no content"
    text = first.get("text")
    more = f" +{len(blocks) - 1}" if len(blocks) > 1 else ""
    kind = first.get("type") or first.get("mimeType") or "content"
    words = _quoted(text) if isinstance(text, str) else one_line(str(kind), VALUE)
    return f"{'isError: ' if result.get('isError') is True else ''}{words}{more}"


def _quoted(text: str) -> str:
    return f"“{one_line(text, LONGEST)}”"
