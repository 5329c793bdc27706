"""STD: servers on stdio (2026-07-28 basic/transports/stdio)."""

from collections.abc import Iterator

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.streams.lines import CANCELLED_AT, GIVEN_UP, STRAY, Stray, after_cancellation, is_cut
from mcp_wiretap.wire.jsonrpc import dumps, read_text
from mcp_wiretap.wire.secret import one_line

STDIO = "2026-07-28 basic/transports/stdio"
CANCELLATION = "2026-07-28 basic/patterns/cancellation"
PATIENCE = 5.0  # seconds after the end of its input in which a server ends
LATE = 2  # messages for a cancelled request that are no race any more


@rule(
    "STD001",
    "stdout-not-mcp",
    "stdout carries what is no MCP message",
    on=("event", "exchange"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{STDIO}#messages",
    always=True,
    kinds=("mcp",),
    transport=("stdio",),
)
def stdout_not_mcp(fact: StreamItem | Exchange) -> Iterator[Finding]:
    """A server on stdio writes nothing to its stdout but MCP messages, each on one line, in UTF-8, with a newline at its end.

    Why: the client reads each line as a message. A greeting, a log line or a message spread over several lines is a parse error
    there: some clients close the connection, others drop the line and what belonged to it. It is the commonest fault of all, and
    mostly comes from `print`, `console.log` or a library that logs to stdout.

    Fix: write logs to stderr (`print(..., file=sys.stderr)`, `console.error`), write JSON without newlines and without a byte
    order mark.

    Wrong::

        stdio
          < Server starting up...
          modern tools/list
          -> result {"tools": []}

    Right::

        stdio
          errors Server starting up...\\n
          modern tools/list
          -> result {"tools": []}
    """
    exchange = fact.exchange if isinstance(fact, StreamItem) else fact
    stray = exchange.facts.get(STRAY)
    if stray is not None and isinstance(fact, StreamItem) and fact.where == stray.where:
        yield _of_stray("stdout", stray)
    elif (
        isinstance(fact, Exchange) and fact.http_method == "POST" and fact.answer_reading is not None and fact.answer_reading.bom
    ):
        yield Finding("the line begins with a byte order mark", [evidence("response.body", "EF BB BF", "JSON")])


@rule(
    "STD002",
    "stdin-not-mcp",
    "stdin carries what is no MCP message",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{STDIO}#messages",
    always=True,
    kinds=("mcp",),
    needs=(STRAY,),
    transport=("stdio",),
)
def stdin_not_mcp(exchange: Exchange) -> Iterator[Finding]:
    """A client writes nothing to a server's stdin but MCP messages, each on one line, in UTF-8, with a newline at its end.

    Why: the server reads each line as a message, and answers with a parse error at best.

    Fix: write JSON without newlines, and nothing else.

    Wrong::

        stdio
          > hello
          < {"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}

    Right::

        stdio
          modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    """
    stray = exchange.facts.get(STRAY)
    if stray is not None and exchange.http_method == "POST" and stray.where == "request.body":
        yield _of_stray("stdin", stray)


def _of_stray(pipe: str, stray: Stray) -> Finding:
    more = f", and {stray.count - 1} more line{'s' if stray.count > 2 else ''}" if stray.count > 1 else ""
    shown = one_line(dumps(stray.text), 120)
    if stray.only_empty:
        return Finding(
            f"{pipe} has {stray.count} empty line{'s' if more else ''}", [evidence(stray.where, "", "a message")], "info"
        )
    if stray.spread > 1:
        message = (
            f"a message is written over {stray.spread} lines of {pipe}: a newline ends it, so each line was read as a message"
        )
    elif stray.kind == "bom":
        message = f"{pipe} begins with a byte order mark"
    elif stray.kind == "utf8":
        message = f"a line of {pipe} is not UTF-8{more}"
    elif stray.kind == "json":
        message = f"{pipe} has JSON that is no JSON-RPC message: {shown}{more}"
    else:
        message = f"{pipe} has a line that is no JSON-RPC message: {shown}{more}" + (
            "; print to stderr" if pipe == "stdout" else ""
        )
    return Finding(message, [evidence(stray.where, stray.text, "a JSON-RPC message")])


@rule(
    "STD003",
    "client-writes-response",
    "Client writes a JSON-RPC response",
    on="reply",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=f"{STDIO}#messages",
    sep="2322",
    malformed=True,
    transport=("stdio",),
)
def client_writes_response(message: Message) -> Iterator[Finding]:
    """In the modern era a client never writes results or errors: it answers a server by calling again (MRTR). RPC007 says the same
    of HTTP.

    Why: there is no request of the server that it could answer; whatever waits for the answer waits for ever.

    Fix: retry the request with `inputResponses` and the `requestState` that came with `input_required`.

    Wrong::

        stdio
          modern tools/call {"name": "deploy"}
          -> result {"resultType": "input_required", "requestState": "s"}
          reply 1 {"action": "accept"}

    Right::

        stdio
          legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
          legacy-notify notifications/initialized
          legacy tools/call {"name": "deploy"}
          -> ask 1 elicitation/create {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
          reply 1 {"action": "accept", "content": {}}
    """
    yield Finding(
        f"the client wrote a JSON-RPC {message.kind}; the modern era has no requests of the server to answer",
        [evidence(message.place(), message.kind, "a request or a notification")],
    )


@rule(
    "STD004",
    "given-up-without-cancellation",
    "Request put again without a cancellation of the first",
    on="request",
    level="should",
    party="client",
    era="both",
    severity="info",
    spec=f"{CANCELLATION}#transport-specific-cancellation",
    needs=(GIVEN_UP,),
    transport=("stdio",),
)
def given_up_without_cancellation(message: Message) -> Iterator[Finding]:
    """On stdio a client that no longer waits for an answer says so: notifications/cancelled with the request's id. There is no
    stream of the request that it could close instead.

    Why: the server goes on working, and both answers come.

    Fix: send notifications/cancelled when a request times out, before it is put again.

    Wrong::

        stdio
          modern tools/call {"name": "slow"}
          after 60
          modern tools/call {"name": "slow"}
          -> result {"content": []}

    Right::

        stdio
          modern tools/call {"name": "slow"}
          after 60
          modern-notify notifications/cancelled {"requestId": 1}
          modern tools/call {"name": "slow"}
          -> result {"content": []}
    """
    before = message.exchange.facts[GIVEN_UP]
    id_ = one_line(dumps(before.id), 40)
    yield Finding(
        f"the same request was put {before.seconds:.0f} s before with id {id_}; it has no answer and was not cancelled",
        [evidence(message.place("id"), message.rpc.id, "notifications/cancelled for the first")],
        related=(before.flow,),
    )


@rule(
    "STD005",
    "goes-on-after-cancellation",
    "Messages for a cancelled request",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{CANCELLATION}#behavior-requirements",
    needs=(CANCELLED_AT,),
    transport=("stdio",),
)
def goes_on_after_cancellation(exchange: Exchange) -> Iterator[Finding]:
    """After notifications/cancelled a server sends nothing more for that request. One answer that crosses the cancellation is no
    fault: both sides have to bear that.

    Why: the client has forgotten the request; progress and results for it are noise, and the work costs.

    Fix: stop the work when the cancellation comes, and send neither progress nor an answer.

    Wrong::

        stdio
          modern tools/call {"name": "slow", "_meta": {"progressToken": "p"}}
          modern-notify notifications/cancelled {"requestId": 1}
          after 5
          -> to 1
          -> notify notifications/progress {"progressToken": "p", "progress": 1}
          after 5
          -> result {"content": []}

    Right::

        stdio
          modern tools/call {"name": "slow", "_meta": {"progressToken": "p"}}
          modern-notify notifications/cancelled {"requestId": 1}
    """
    late = after_cancellation(exchange)
    if len(late) >= LATE:
        seconds = late[-1].at - exchange.facts[CANCELLED_AT]
        yield Finding(
            f"{len(late)} messages for the request came after its cancellation, the last {seconds:.0f} s after it",
            [evidence(late[0].place(), late[0].method or late[0].kind, "nothing")],
        )


@rule(
    "STD006",
    "listen-ended-by-result",
    "Subscription ended without notifications/cancelled",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="info",
    spec=f"{CANCELLATION}#server-initiated-cancellation",
    sep="2575",
    methods=("subscriptions/listen",),
    sorts=("result",),
    transport=("stdio",),
)
def listen_ended_by_result(message: Message) -> Iterator[Finding]:
    """A server on stdio that tears a subscription down sends notifications/cancelled with the id of its subscriptions/listen. The
    page about subscriptions asks for a result as well: so this is a hint.

    Why: a client that waits for the cancellation takes the subscription for open.

    Fix: send notifications/cancelled for the id of the subscriptions/listen, then its result.

    Wrong::

        stdio
          modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> ack {"toolsListChanged": true}
          -> result {}

    Right::

        stdio
          modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> ack {"toolsListChanged": true}
          -> notify notifications/cancelled {"requestId": 1}
          -> result {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    """
    exchange = message.exchange
    told = any(m.method == "notifications/cancelled" for m in exchange.received)
    if not told and CANCELLED_AT not in exchange.facts:
        yield Finding(
            "the server ended the subscription by a result alone",
            [evidence(message.place("result"), message.result, "notifications/cancelled")],
        )


@rule(
    "STD007",
    "outlives-its-input",
    "Server goes on after the end of its input",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{STDIO}#shutdown",
    always=True,
    kinds=("process",),
    transport=("stdio",),
)
def outlives_its_input(exchange: Exchange) -> Iterator[Finding]:
    """A server ends promptly when its client closes its stdin, once it has answered what it was asked before.

    Why: clients wait a moment and then kill it: what it had to tidy up is left undone, and clients that do not kill leave it
    running.

    Fix: leave the read loop at the end of the input and exit.

    Wrong::

        stdio
          modern tools/list
          -> result {"tools": []}
          eof
          after 30
          exit 0

    Right::

        stdio
          modern tools/list
          -> result {"tools": []}
          eof
          exit 0
    """
    process = exchange.process
    if process is None or process.input_ended is None or process.ended is None or process.status is None:
        return
    seconds = process.ended - max(process.input_ended, process.last_said)  # what it was asked before, it may answer
    if seconds > PATIENCE:
        how = f", then signal {-process.status} ended it" if process.status < 0 else ""
        yield Finding(
            f"the server went on for {seconds:.0f} s after the end of its input and its last message{how}",
            [evidence("response.status", f"exit {process.status}", f"an exit within {PATIENCE:.0f} s")],
        )


@rule(
    "STD008",
    "output-cut-off",
    "Output ends inside a message",
    on="event",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{STDIO}#messages",
    always=True,
    kinds=("mcp",),
    transport=("stdio",),
)
def output_cut_off(item: StreamItem) -> Iterator[Finding]:
    """Each message ends with a newline; a server that ends has written its last one whole.

    Why: a client reads up to the newline: the last message is lost, even where it is whole but for that.

    Fix: write the newline with the message, flush, and only then exit.

    Wrong::

        stdio
          modern tools/list
          <| {"jsonrpc": "2.0", "id": 1, "result": {"tools": [
          exit 1

    Right::

        stdio
          modern tools/list
          -> result {"tools": []}
          exit 0
    """
    if not is_cut(item) or not item.event.data.lstrip().startswith("{"):
        return  # a text: STD001
    whole = read_text(item.event.data).kind == "single"
    state = "the message is whole but for its newline" if whole else "the message is cut off"
    yield Finding(f"the output ended without a newline: {state}", [evidence(item.where, item.event.data[-80:], "a newline")])
