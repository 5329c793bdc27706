"""The two sides of an exchange that was changed at the proxy: what the client sent and got, what the server was given and said.

The client is judged by its side, the server by its own. An exchange that nobody changed has one side, itself, and costs nothing
here. The trackers are told of the exchange itself (the request as it was received, the answer as the server gave it); a side is a
copy of it with the other message, for the rules: it shares the lists of findings, of what is unchecked and of faults.
"""

from collections.abc import Iterator
from dataclasses import replace

from mcp_wiretap.trace.era import claim
from mcp_wiretap.trace.facts import ExchangeFacts
from mcp_wiretap.trace.model import Change, Exchange, Message, Stream, StreamItem, ToolDefinition
from mcp_wiretap.trace.summary import outcome
from mcp_wiretap.wire.jsonrpc import id_key

# What trackers find out about the request that the client sent: it says nothing of another one that the server was given.
_OF_REQUEST = frozenset(
    {
        "list",
        "listen",
        "task",
        "cancels-task",
        "reuse",
        "cancels",
        "came-back",
        "negotiation",
        "capabilities-change",
        "repeats-refused",
        "stale",
        "stale-call",
        "reissue",
        "legacy",
        "listed-tasks",
        "drift",
        "posted-after-modern",
        "resumes",
    }
)
_OF_TOKEN = frozenset(
    {"token", "query-tokens", "session-tokens", "token-left-out", "authorization", "proof-used-before", "nonce-due", "let-in"}
)
_OF_SESSION = frozenset({"legacy", "dead-session", "session-tokens"})
_RESPONSE = (
    "kind",
    "endpoint",
    "status",
    "response_fields",
    "responded",
    "answer_reading",
    "ended",
    "ended_by",
    "failure",
    "dropped",
    "conversation",
    "round",
    "finished",
    "large",
)


def changed(exchange: Exchange) -> Change:
    """The note of what was changed, made where there is none."""
    if exchange.change is None:
        exchange.change = Change()
    return exchange.change


def settle(exchange: Exchange) -> None:
    """Who is judged by the exchange itself, now that its sides are known."""
    change = exchange.change
    if change is None:
        return
    if exchange.at_client is not None:
        exchange.judged = "nobody" if exchange.at_server is not None or change.answered_here else "server"
    elif exchange.at_server is not None or change.answered_here or change.unsure:
        exchange.judged = "client"


def of(exchange: Exchange) -> tuple[Exchange, ...]:
    """The sides that there are to be judged, up to date."""
    if exchange.change is None:
        return (exchange,)
    client, server = exchange.at_client, exchange.at_server
    if client is not None:
        _bring_up_to_date(exchange, client)
    if server is not None:
        _bring_up_to_date(exchange, server)
    itself = exchange if exchange.judged != "nobody" else None
    return tuple(side for side in (client, itself, server) if side is not None)


def copy_for_server(exchange: Exchange) -> Exchange:
    """The exchange as its server sees it, with nothing of the request yet."""
    side = _copy(exchange)
    side.judged = "server"
    side.header_checks, side.mrtr, side.tool, side.form = [], None, None, None
    return side


def copy_for_client(exchange: Exchange) -> Exchange:
    """The exchange as its client sees it, with nothing of the answer yet."""
    side = _copy(exchange)
    side.judged = "client"
    side.facts.take(exchange.facts)
    side.sent = [replace(message, exchange=side, answer=None) for message in exchange.sent]
    side.answer_reading = side.stream = side.late_answer = None
    return side


def _copy(exchange: Exchange) -> Exchange:
    side = replace(exchange, findings=exchange.findings)
    side.at_server = side.at_client = side._requests = None
    side.suppressed = 0
    side.facts, side.definitions = ExchangeFacts(), []
    side.sent, side.received = [], []
    return side


def receive(side: Exchange, message: Message) -> Message:
    """A message of the server, as it stands on that side: paired with the request there."""
    rpc = message.rpc
    twin = replace(message, exchange=side, request=None, answer=None, id_matches=True)
    if rpc.kind in ("result", "error"):
        found, requests = None, side.requests
        if rpc.has_id:
            found = requests.get(id_key(rpc.id))
        if found is None and len(requests) == 1 and side.http_method == "POST":
            found, twin.id_matches = next(iter(requests.values())), False
        if found is None and message.request is not None and message.request.exchange.flow != side.flow:
            found = message.request
        twin.request = found
        if found is not None and found.answer is None:
            found.answer = twin
    side.received.append(twin)
    return twin


def receive_item(side: Exchange, item: StreamItem, limit: int) -> StreamItem:
    """An event of the stream, as it stands on that side. Its messages come one by one (`receive`)."""
    twin = StreamItem(side, item.at, item.event, item.reading, [])
    if side.stream is None:
        side.stream = Stream()
    if len(side.stream.items) < limit:
        side.stream.items.append(twin)
    return twin


def _bring_up_to_date(exchange: Exchange, side: Exchange) -> None:
    """What the sides have in common, and the exchange has learned meanwhile."""
    if side.judged == "client":
        side.kind, side.endpoint, side.session = exchange.kind, exchange.endpoint, exchange.session
        side.mrtr, side.conversation, side.round = exchange.mrtr, exchange.conversation, exchange.round
        return
    for name in _RESPONSE:
        setattr(side, name, getattr(exchange, name))
    if exchange.stream is not None:
        items = side.stream.items if side.stream is not None else []
        side.stream = replace(exchange.stream, items=items)
    side.facts.take(exchange.facts, _withheld(exchange, side))
    side.definitions = list(_definitions(exchange, side))
    claim.settle(side)
    outcome.settle(side)
    if exchange.late_answer is not None and side.late_answer is None and side.request is not None:
        side.late_answer = replace(exchange.late_answer, request=side.request)
        side.request.answer = side.request.answer or side.late_answer


def _definitions(exchange: Exchange, side: Exchange) -> Iterator[ToolDefinition]:
    """The tools of the answer, each with the message of that side."""
    twins = {id(message): twin for message, twin in zip(exchange.received, side.received, strict=False)}
    for definition in exchange.definitions:
        twin = twins.get(id(definition.message))
        if twin is not None:
            yield replace(definition, message=twin)


def _withheld(exchange: Exchange, side: Exchange) -> frozenset[str]:
    """The facts that do not hold on the server's side."""
    withheld: frozenset[str] = frozenset({"stale"})
    if not same_subject(exchange, side):
        withheld |= _OF_REQUEST
    if exchange.auth != side.auth:
        withheld |= _OF_TOKEN
    if exchange.request_fields.all("mcp-session-id") != side.request_fields.all("mcp-session-id"):
        withheld |= _OF_SESSION
    return withheld


def same_subject(exchange: Exchange, side: Exchange) -> bool:
    """Whether both requests ask for the same, but for the arguments of a call."""
    one, other = exchange.request, side.request
    if one is None or other is None:
        return one is other and exchange.http_method == side.http_method
    if one.method != other.method or id_key(one.rpc.id) != id_key(other.rpc.id):
        return False
    left = {name: value for name, value in one.params.items() if name != "arguments"}
    right = {name: value for name, value in other.params.items() if name != "arguments"}
    return left == right
