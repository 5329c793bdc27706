"""The gate (option `mcp_gate`): refuses requests before they reach the server, and says why.

It decides from the body; headers only confirm. Where everything else here lets traffic pass after a fault of ours, the gate is
closed: what cannot be read is refused. What it refuses is its own answer, never the server's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mitmproxy.http import HTTPFlow, Response

from mcp_wiretap.steering import GateLine
from mcp_wiretap.trace.mirrored import check as mirror
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.revision import HEADER_MISMATCH
from mcp_wiretap.wire.secret import one_line

METADATA = "mcp.gate"
DENIED = -31403  # outside of the ranges that JSON-RPC and MCP keep for themselves
_SUBJECTS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
    "tasks/result": "taskId",
}
_UNREAD = frozenset({"too-large", "too-deep", "invalid", "not-json", "not-rpc", "empty"})


@dataclass(slots=True, frozen=True)
class Refusal:
    """What the gate answers."""

    status: int
    code: int
    message: str
    id: Any = None

    def response(self) -> Response:
        body = jsonrpc.dumps({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.message}})
        return Response.make(self.status, body, {"Content-Type": "application/json"})


def refusal(flow: HTTPFlow, exchange: Exchange | None, lines: Sequence[GateLine]) -> Refusal | None:
    """Why the gate refuses a request; None where it lets it pass. Without an exchange it was not inspected."""
    if flow.request.method in ("GET", "HEAD", "OPTIONS", "DELETE") and not flow.request.raw_content:
        return None
    if exchange is None or exchange.faults or exchange.released:
        return unread("the request could not be inspected")
    if exchange.kind == "oauth" or (exchange.kind == "other" and not _may_be_mcp(flow, exchange)):
        return None
    reading = exchange.reading
    if reading is None or not reading.messages or reading.unread or any(m.kind == "invalid" for m in reading.messages):
        return unread((reading.problem if reading is not None else None) or "the body cannot be read")
    if reading.duplicates:
        return unread(f"the member {one_line(reading.duplicates[0], 40)} occurs twice, and readers differ in which one counts")
    for message in exchange.sent:
        found = _of_message(exchange, message, lines)
        if found is not None:
            return found
    return None


def _of_message(exchange: Exchange, message: Message, lines: Sequence[GateLine]) -> Refusal | None:
    method, id_ = message.method, message.rpc.id if message.rpc.has_id else None
    if method is None:
        return None  # an answer to the server
    source = _SUBJECTS.get(method)
    value = message.params.get(source) if source is not None else None
    name = value if isinstance(value, str) else None
    shown = one_line(f"{method} {name}" if name is not None else method, 120)
    for line in lines:
        match line.verb:
            case "headers":
                if faults := mirror.fatal(exchange) if exchange.claim.modern else []:
                    first = faults[0]
                    said = "is missing" if first.raw is None else f"says {one_line(first.decoded or first.raw, 60)}"
                    text = f"Header mismatch: {first.header} {said}, the body says {one_line(first.body or 'nothing', 60)}"
                    return Refusal(400, HEADER_MISMATCH, f"{text} (refused by the gate)", id_)
            case "readonly":
                if method == "tools/call" and not _is_readonly(exchange, message):
                    text = f"{shown} is not annotated as read-only (readOnlyHint), and only such tools may be called"
                    return Refusal(403, DENIED, f"{text} (refused by the gate)", id_)
            case "deny":
                if (source is not None and name is None and line.means(method, "*")) or line.means(method, name):
                    return Refusal(403, DENIED, f"{shown} is denied by policy (refused by the gate)", id_)
            case "allow":
                if line.means(method, name):
                    return None
    return None


def _is_readonly(exchange: Exchange, message: Message) -> bool:
    """Whether the newest definition of the tool says so. Of a batch only the first call is looked up."""
    view = exchange.tool
    if view is None or view.definition is None or message is not exchange.request or view.delisted:
        return False
    hints = view.definition.raw.get("annotations")
    return isinstance(hints, dict) and hints.get("readOnlyHint") is True


def _may_be_mcp(flow: HTTPFlow, exchange: Exchange) -> bool:
    """Whether a request that is not known to be MCP may be it all the same: JSON that cannot be read here."""
    if exchange.endpoint.proven or any(name.lower().startswith(b"mcp-") for name, _ in flow.request.headers.fields):
        return True
    content_type = flow.request.headers.get("content-type", "application/json").lower()
    if "json" not in content_type or exchange.form is not None:
        return False
    return exchange.reading is None or exchange.reading.kind in _UNREAD - {"not-rpc"}


def unread(why: str) -> Refusal:
    return Refusal(403, DENIED, f"the request is refused unread: {one_line(why, 200)} (refused by the gate)")
