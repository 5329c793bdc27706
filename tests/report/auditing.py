"""Scripts in the notation of examples made into an audit, judged by a few rules of the tests' own: the built-in ones may change
without any report changing."""

from collections.abc import Iterable, Iterator

from mcp_wiretap.example import read_script
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.collect import Collector, Input, Trace
from mcp_wiretap.report.spool import MemorySpool
from mcp_wiretap.rule import Finding, Rule, RuleBook, Silence, evidence, rule
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange, Message

SPEC = "2026-07-28 basic/transports/streamable-http#server-validation"


@rule(
    "TST001",
    "method-header-differs",
    "Mcp-Method differs from the body's method",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=SPEC,
    sep="2243",
)
def method_header_differs(message: Message) -> Iterator[Finding]:
    """Mcp-Method repeats the `method` of the body.

    Why: gateways route by the header.

    Fix: write the header from the body.

    Wrong::

        modern tools/list
          header Mcp-Method: ping

    Right::

        modern tools/list
    """
    said = message.exchange.request_fields.first("mcp-method")
    if said is not None and said != message.method:
        yield Finding(
            f"Mcp-Method says {said}, the body says {message.method}",
            [evidence("request.header:Mcp-Method", said, message.method)],
        )


@rule(
    "TST002",
    "tool-fails",
    "A tool says that it failed",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=SPEC,
    methods={"tools/call"},
)
def tool_fails(message: Message) -> Iterator[Finding]:
    """Results with isError."""
    if message.result.get("isError") is True:
        text = str(message.result.get("content"))
        yield Finding(f"the tool failed: {text}", [evidence(message.place("result", "content"), text)])


@rule(
    "TST003",
    "cookie",
    "A request has a cookie",
    on="post",
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec="RFC 6265 4.2",
    always=True,
)
def cookie(exchange: Exchange) -> Iterator[Finding]:
    """Cookies."""
    if exchange.request_fields.has("cookie"):
        yield Finding(
            "the request has a cookie",
            [evidence("request.header:Cookie", exchange.request_fields.first("cookie"))],
            related=(exchange.flow,),
        )


@rule(
    "TST009",
    "faulty",
    "A rule with a fault",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=SPEC,
    methods={"break/rule"},
    always=True,
)
def faulty(message: Message) -> Iterator[Finding]:
    """Breaks."""
    raise RuntimeError("on purpose")


RULES: list[Rule] = [check.__rule__ for check in (method_header_differs, tool_fails, cookie, faulty)]  # type: ignore[attr-defined]


def trace(
    events: Iterable[Event] | str,
    spool: MemorySpool,
    *,
    path: str = "one.flow",
    error: str | None = None,
    silences: Iterable[Silence] = (),
    limits: Limits | None = None,
    expect: dict[str, str] | None = None,
) -> Trace:
    """What `audit` does with one file."""
    found = list(read_script(events) if isinstance(events, str) else events)
    index = {flow: number for number, flow in enumerate(dict.fromkeys(event.flow for event in found))}
    collector = Collector(spool, lambda flow: (path, index[flow]))
    book = RuleBook.of(RULES, silences=silences)
    inspector = Inspector(book, limits, expect=(expect or {}).get, retire=collector.retire)
    for event in found:
        inspector.feed(event)
    inspector.finish()
    return collector.close(inspector, book, [Input(path, len(index), error)])


def audit(*scripts: str, fail_on: str = "error", **options: object) -> Audit:
    """One audit of several files."""
    traces = []
    for number, script in enumerate(scripts):
        spool = MemorySpool()
        path = ("one", "two", "three")[number] + ".flow"
        traces.append((trace(script, spool, **({"path": path} | options)), spool))  # type: ignore[arg-type]
    return Audit.of(traces, RULES, fail_on)


BOTH_ERAS = """
modern tools/list
  -> result {"tools": [{"name": "deploy", "inputSchema": {"type": "object"}}]}
modern tools/list
  header Mcp-Method: ping
  -> error -32020 {"message": "Header mismatch"}
modern tools/list
  header Mcp-Method: ping
  -> error -32020 {"message": "Header mismatch"}
modern tools/call {"name": "deploy", "arguments": {}}
  -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}}}, "requestState": "st-1"}
modern tools/call {"name": "deploy", "arguments": {}, "inputResponses": {"who": {"action": "accept", "content": {}}}, "requestState": "st-1"}
  -> result {"content": [{"type": "text", "text": "no"}], "isError": true}
POST http://old.example/mcp
  header Content-Type: application/json
  header Accept: application/json, text/event-stream
  header Cookie: a=secret-value
  body {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}
  -> 200 application/json {"jsonrpc": "2.0", "id": "a", "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old-server", "version": "0.9"}}}
GET http://old.example/favicon.ico
  -> 404 text/html gone
"""  # noqa: E501 (a JSON value is one line of the notation)
