"""Probes of a server of the legacy revisions, in a session of its own."""

from mcp_wiretap.rule.probes import Call, as_before, no_message, probe, refused, status, tool_error
from mcp_wiretap_rules.probes_modern import NO_SUCH

SESSIONS = "2025-11-25 basic/transports#session-management"
TRANSPORT = "2025-11-25 basic/transports#streamable-http"


@probe("L00", "the call unchanged, in a new session", era="legacy", right=[as_before()], level="must", spec=TRANSPORT, http=False)
def unchanged(call: Call) -> None:
    """What worked in the recording works at this server; without that nothing else can be told."""


@probe("L01", "no Mcp-Session-Id", era="legacy", right=[status(400)], level="should", spec=SESSIONS, needs=["session"])
def no_session(call: Call) -> None:
    """A server that gives session ids wants them back."""
    call.drop("Mcp-Session-Id")


@probe("L02", "a session that does not exist", era="legacy", right=[status(404)], level="must", spec=SESSIONS, needs=["session"])
def unknown_session(call: Call) -> None:
    """404 is how a client learns that it has to initialize anew."""
    call.put("Mcp-Session-Id", NO_SUCH)


@probe("L03", "an unsupported MCP-Protocol-Version", era="legacy", right=[status(400)], rule="HTS020")
def unknown_version(call: Call) -> None:
    """A version that the server does not know is 400."""
    call.put("MCP-Protocol-Version", "1999-01-01")


@probe(
    "L04",
    "no MCP-Protocol-Version",
    era="legacy",
    right=[as_before()],
    level="should",
    spec="2025-11-25 basic/transports#protocol-version-header",
)
def no_version(call: Call) -> None:
    """Without it a server takes 2025-03-26."""
    call.drop("MCP-Protocol-Version")


@probe(
    "L05", "a method that nobody knows", era="legacy", right=[refused(-32601)], level="must", spec="2025-11-25 basic", http=False
)
def unknown_method(call: Call) -> None:
    """An unknown method is -32601."""
    call.body["method"], call.body["params"] = "mcp-wiretap/there-is-no-such-method", {}


@probe("L06", "a batch", era="legacy", right=[status(400)], level="should", spec=TRANSPORT)
def batch(call: Call) -> None:
    """Batches are gone since 2025-06-18."""
    call.body = [call.body]


@probe("L07", "a body that is no JSON", era="legacy", right=[refused(-32700, 400), no_message(400)], level="must", spec=TRANSPORT)
def no_json(call: Call) -> None:
    """What cannot be read is refused, and the server goes on."""
    call.raw = b'{"jsonrpc": "2.0", '


@probe("L08", "a foreign Origin", era="legacy", right=[status(403)], rule="HTS009")
def foreign_origin(call: Call) -> None:
    """A page of another site must not reach the server through a browser (DNS rebinding)."""
    call.put("Origin", "http://mcp-wiretap.invalid")


@probe(
    "L09",
    "a tool that does not exist",
    era="legacy",
    right=[refused(-32602), tool_error()],
    level="must",
    spec="2025-11-25 server/tools#error-handling",
    needs=["tools"],
    http=False,
)
def unknown_tool(call: Call) -> None:
    """An unknown tool is an error."""
    call.body["method"], call.body["params"] = "tools/call", {"name": NO_SUCH, "arguments": {}}


@probe(
    "L10",
    "a request after DELETE of its session",
    era="legacy",
    right=[status(404), status(405)],
    rule="LEG006",
    needs=["session"],
    last=True,
)
def after_delete(call: Call) -> None:
    """A session that was ended is gone; 405 where the server has no DELETE."""
    call.after_end = True
