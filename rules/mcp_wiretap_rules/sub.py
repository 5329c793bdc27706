"""SUB: subscriptions/listen streams (2026-07-28 basic/patterns/subscriptions)."""

import re
from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.streams.subscriptions import LIST_TYPES, LISTEN, LISTENS, Filter, Listen
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps, id_key
from mcp_wiretap.wire.secret import one_line

SUBSCRIPTIONS = "2026-07-28 basic/patterns/subscriptions"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
TASKS = "notifications/tasks"
MOST_URIS = 500  # of one filter that are looked at
WAIT_S = 10.0  # an acknowledgement that takes longer is missed
ROUND_S = (30, 60, 90, 100, 120, 125, 180, 240, 300, 600, 900, 1800, 3600)  # time-outs of balancers
LISTENING = ("subscriptions/listen",)
_JOINTS = frozenset("/?#:=&")  # where a URI may go on to something below it
_CLOSING = frozenset({"resultType", "_meta"})  # what a closing result is made of
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def _listen(message: Message) -> Listen | None:
    """The listen stream that a message of the server came on; None for messages of other streams."""
    return message.exchange.facts.get(LISTEN)


def _id_place(message: Message) -> str:
    return message.place("result" if message.rpc.kind == "result" else "params", "_meta", rev.SUBSCRIPTION_ID)


@rule(
    "SUB001",
    "ack-not-first",
    "Acknowledgement is not the first message",
    on=("push", "answer"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#acknowledgment",
    sep="2575",
    needs=(LISTEN,),
)
def ack_not_first(message: Message) -> Iterator[Finding]:
    """The first message of a listen stream is notifications/subscriptions/acknowledged, or the error that refuses the request.

    Why: the client learns from it what it will get; what comes before cannot be placed.

    Fix: send the acknowledgement before registering the stream for notifications. An empty filter is acknowledged, too.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> publish notifications/tools/list_changed
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {}
          -> closed client
    """
    listen, exchange = _listen(message), message.exchange
    if listen is None or exchange.stream is None or not exchange.received or exchange.received[0] is not message:
        return
    if message.method == ACKNOWLEDGED or message.rpc.kind == "error":
        return
    what = message.method or message.rpc.kind
    yield Finding(
        f"the first message of the stream is {one_line(what, 60)}, not the acknowledgement",
        [evidence(message.place(), what, ACKNOWLEDGED)],
    )


@rule(
    "SUB002",
    "ack-missing",
    "Stream open without acknowledgement",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{SUBSCRIPTIONS}#acknowledgment",
    sep="2575",
    methods=LISTENING,
    transport=("http",),
)
def ack_missing(exchange: Exchange) -> Iterator[Finding]:
    """A listen stream is acknowledged at once.

    Why: without it the client cannot tell a working subscription from a buffering proxy.

    Fix: send notifications/subscriptions/acknowledged as soon as the stream is open, and flush.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> sse
          -> after 20
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> sse
          -> closed client
    """
    stream = exchange.stream
    if stream is None or exchange.ended is None or exchange.dropped or stream.decode_problem:
        return
    if any(entry.what == "event stream" for entry in exchange.unchecked):
        return
    opened = exchange.responded or exchange.requested
    if exchange.received:
        late = exchange.received[0].at - opened
        if stream.timed and late > WAIT_S and exchange.received[0].method == ACKNOWLEDGED:
            yield Finding(
                f"the stream was open for {late:.1f} s before it was acknowledged",
                [evidence(exchange.received[0].place("method"), f"after {late:.1f} s", "at once")],
            )
        return
    waited = exchange.ended - opened
    if waited > WAIT_S or exchange.ended_by in ("complete", "server"):
        yield Finding(
            f"the stream was open for {waited:.1f} s and nothing came, not even the acknowledgement",
            [Evidence("response.body:", "no message", ACKNOWLEDGED)],
        )


@rule(
    "SUB003",
    "subscription-id-missing",
    "Message on listen stream lacks subscriptionId",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#receiving-notifications",
    sep="2575",
    needs=(LISTEN,),
)
def subscription_id_missing(message: Message) -> Iterator[Finding]:
    """Every notification on a listen stream, the acknowledgement too, carries the stream's subscriptionId in `params._meta`.

    Why: a client with several streams files notifications by it.

    Fix: put `"io.modelcontextprotocol/subscriptionId": <id of the listen request>` into `_meta` of each.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> notify notifications/subscriptions/acknowledged {"notifications": {"toolsListChanged": true}}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed client
    """
    listen = _listen(message)
    if listen is None or message.rpc.kind != "notification" or rev.SUBSCRIPTION_ID in message.meta:
        return
    method = message.method or ""
    if method == "notifications/cancelled" and message.exchange.transport == "stdio":
        return  # there it ends the subscription, and names it by requestId
    core = method in LIST_TYPES or method in (ACKNOWLEDGED, UPDATED, "notifications/progress", "notifications/message")
    yield Finding(
        f"{one_line(method, 60)} on a listen stream has no subscriptionId",
        [evidence(_id_place(message), None, dumps(listen.id))],
        None if core else "warning",
    )


@rule(
    "SUB004",
    "subscription-id-wrong",
    "subscriptionId differs from the listen id",
    on=("push", "answer"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#receiving-notifications",
    sep="2575",
    needs=(LISTEN,),
)
def subscription_id_wrong(message: Message) -> Iterator[Finding]:
    """The subscriptionId is the id of the listen request, the same value and JSON type.

    Why: `"1"` is not `1`: the client drops the message.

    Fix: echo the id as it came.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> answer-id "1"
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed client
    """
    listen = _listen(message)
    if listen is None or rev.SUBSCRIPTION_ID not in message.meta or message.rpc.kind == "result":
        return  # of the closing result: SUB010
    given = message.meta[rev.SUBSCRIPTION_ID]
    if id_key(given) != id_key(listen.id):
        yield Finding(
            f"the subscriptionId is {one_line(dumps(given), 40)}, the listen request's id is {one_line(dumps(listen.id), 40)}",
            [evidence(_id_place(message), dumps(given), dumps(listen.id))],
        )


def _lacks(method: str, wanted: Filter) -> bool:
    """Whether a filter does not ask for this type of notification."""
    if method in LIST_TYPES:
        return LIST_TYPES[method] not in wanted.flags
    if method == UPDATED:
        return not wanted.uris
    if method == TASKS:
        return not wanted.tasks
    return False


@rule(
    "SUB005",
    "type-not-requested",
    "Notification type not opted in",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#opening-a-stream",
    sep="2575",
    methods=(*LIST_TYPES, UPDATED, TASKS),
)
def type_not_requested(message: Message) -> Iterator[Finding]:
    """A listen stream carries the types of notification that its request asked for, and no others.

    Why: the client said what it wants to be woken for.

    Fix: filter by the request's `notifications`; a flag that is false is a flag that is absent.

    Wrong::

        modern subscriptions/listen {"notifications": {"promptsListChanged": true}}
          id 1
          -> sse
          -> ack {"promptsListChanged": true}
          -> publish notifications/tools/list_changed
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> publish notifications/tools/list_changed
          -> closed client
    """
    listen, method = _listen(message), message.method or ""
    if listen is not None and _lacks(method, listen.asked):
        yield Finding(f"{method} was not asked for", [evidence(message.place("method"), method, "a type that the filter names")])


@rule(
    "SUB006",
    "type-requested-not-acknowledged",
    "Notification type dropped in the ack but sent",
    on="push",
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{SUBSCRIPTIONS}#acknowledgment",
    sep="2575",
    methods=(*LIST_TYPES, UPDATED, TASKS),
)
def type_requested_not_acknowledged(message: Message) -> Iterator[Finding]:
    """What the acknowledgement leaves out is not sent.

    Why: the client has set itself up to poll for it.

    Fix: acknowledge exactly what you will send.

    Wrong::

        modern subscriptions/listen {"notifications": {"resourceSubscriptions": ["file:///a"]}}
          id "updates"
          -> sse
          -> ack {}
          -> publish notifications/resources/updated {"uri": "file:///a"}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"resourceSubscriptions": ["file:///a"]}}
          id "updates"
          -> sse
          -> ack {}
          -> result {"_meta": {"io.modelcontextprotocol/subscriptionId": "updates"}}
    """
    listen, method = _listen(message), message.method or ""
    if listen is None or listen.granted is None or _lacks(method, listen.asked):
        return
    if _lacks(method, listen.granted):
        yield Finding(
            f"{method} came although the acknowledgement left it out",
            [evidence(message.place("method"), method, "what was acknowledged")],
        )


@rule(
    "SUB007",
    "ack-not-subset",
    "Acknowledgement grants more than requested",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#acknowledgment",
    sep="2575",
    methods=(ACKNOWLEDGED,),
)
def ack_not_subset(message: Message) -> Iterator[Finding]:
    """The acknowledgement is the part of the request's filter that the server will honour: never more.

    Why: the client takes it for what it asked.

    Fix: intersect the filter with what you support; compare URIs as they stand.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true, "promptsListChanged": true}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"promptsListChanged": false}
          -> closed client
    """
    listen = _listen(message)
    if listen is None:
        return
    granted = Filter.of(message.params.get("notifications"))
    for member, more in (
        ("flags", _true(message) - _true(message.exchange.request)),
        ("resourceSubscriptions", granted.uris - listen.asked.uris),
        ("taskIds", granted.tasks - listen.asked.tasks),
    ):
        if more:
            shown = one_line(", ".join(sorted(more)[:5]), 120)
            yield Finding(
                f"the acknowledgement grants what was not asked for: {shown}",
                [evidence(message.place("params", "notifications"), shown, f"nothing beyond the {member} of the request")],
            )


def _true(message: Message | None) -> frozenset[str]:
    """The flags that are set in the filter of a message, those of extensions, too."""
    wanted = message.params.get("notifications") if message is not None else None
    return frozenset(name for name, value in wanted.items() if value is True) if isinstance(wanted, dict) else frozenset()


@rule(
    "SUB008",
    "resource-updated-unsubscribed",
    "resources/updated for an unrelated URI",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 schema#resourceupdatednotificationparams",
    sep="2575",
    methods=(UPDATED,),
)
def resource_updated_unsubscribed(message: Message) -> Iterator[Finding]:
    """An update is about a URI that was subscribed, or about something below one.

    Why: the client never asked for this resource.

    Fix: match the URI with the stream's `resourceSubscriptions` before sending.

    Wrong::

        modern subscriptions/listen {"notifications": {"resourceSubscriptions": ["file:///a"]}}
          id 1
          -> sse
          -> ack {"resourceSubscriptions": ["file:///a"]}
          -> publish notifications/resources/updated {"uri": "file:///b"}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"resourceSubscriptions": ["file:///a"]}}
          id 1
          -> sse
          -> ack {"resourceSubscriptions": ["file:///a"]}
          -> publish notifications/resources/updated {"uri": "file:///a/x"}
          -> closed client
    """
    listen, uri = _listen(message), message.params.get("uri")
    if listen is None or not listen.asked.uris or not isinstance(uri, str):
        return
    if _covers(listen.asked, uri):
        return
    others: list[Listen] = message.exchange.endpoint.facts.get(LISTENS, [])
    owner = next((other for other in others if _open_at(other, message.at) and _covers(other.asked, uri)), None)
    yield Finding(
        f"an update for {one_line(uri, 80)}, which {'another stream subscribed to' if owner is not None else 'was not subscribed'}",
        [evidence(message.place("params", "uri"), uri, "a subscribed URI or one below it")],
        None if owner is not None else "warning",
        related=(owner.flow,) if owner is not None else (),
    )


def _covers(wanted: Filter, uri: str) -> bool:
    """Whether a URI is subscribed, or lies below one that is: the path of that goes on, or its query or fragment begins."""
    if uri in wanted.uris:
        return True
    return any(uri.startswith(root) and (root[-1:] in _JOINTS or uri[len(root)] in _JOINTS) for root in wanted.uris)


def _open_at(listen: Listen, at: float) -> bool:
    return listen.opened <= at and (listen.ended is None or listen.ended >= at)


@rule(
    "SUB009",
    "request-scoped-on-listen",
    "progress or message on a listen stream",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 basic/transports/streamable-http#receiving-messages",
    sep="2575",
    methods=("notifications/progress", "notifications/message"),
)
def request_scoped_on_listen(message: Message) -> Iterator[Finding]:
    """Progress and logs belong to the stream of the request that they are about, never to a listen stream.

    Why: nobody looks for them there.

    Fix: send them on the request's own stream.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          meta io.modelcontextprotocol/logLevel "debug"
          -> sse
          -> ack {"toolsListChanged": true}
          -> publish notifications/message {"level": "info", "data": "x"}
          -> closed client

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "debug"
          -> sse
          -> notify notifications/message {"level": "info", "data": "x"}
          -> result {"content": []}
    """
    if _listen(message) is not None:
        yield Finding(
            f"{message.method} on a listen stream",
            [evidence(message.place("method"), message.method, "list changes and updates")],
        )


@rule(
    "SUB010",
    "graceful-close-shape",
    "Closing result malformed",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#graceful-closure",
    sep="2575",
    needs=(LISTEN,),
)
def graceful_close_shape(message: Message) -> Iterator[Finding]:
    """A server ends a listen stream by a result that carries the subscriptionId; nothing follows it.

    Why: the client knows by it that the end was meant and that it may listen anew.

    Fix: `{"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": <id>}}`, then close.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {}

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    """
    listen, exchange = _listen(message), message.exchange
    if listen is None or exchange.stream is None:
        return
    if message.rpc.kind == "result":
        if listen.granted is None:
            return  # SUB001
        given = message.meta.get(rev.SUBSCRIPTION_ID)
        if given is None or id_key(given) != id_key(listen.id):
            what = "no subscriptionId" if given is None else f"the subscriptionId {one_line(dumps(given), 40)}"
            yield Finding(
                f"the closing result has {what}",
                [evidence(_id_place(message), None if given is None else dumps(given), dumps(listen.id))],
            )
        yield from _closing_members(message)
        return
    request = exchange.request
    answer = request.answer if request is not None else None
    if answer is None or answer.rpc.kind != "result" or answer.exchange is not exchange:
        return
    if message in exchange.received and exchange.received.index(message) > exchange.received.index(answer):
        what = message.method or message.rpc.kind
        yield Finding(
            f"{one_line(what, 60)} came after the closing result", [evidence(message.place(), what, "nothing after it")]
        )


def _closing_members(message: Message) -> Iterator[Finding]:
    kind = message.result.get("resultType")
    if kind != "complete":
        what = "no resultType" if kind is None else f"the resultType {one_line(dumps(kind), 40)}"
        yield Finding(f"the closing result has {what}", [evidence(message.place("result", "resultType"), kind, "complete")])
    for name in [name for name in message.result if name not in _CLOSING][:5]:
        place = message.place("result", name)
        yield Finding(f"the closing result has the member {one_line(name, 40)}", [evidence(place, message.result[name])], "info")


@rule(
    "SUB011",
    "abrupt-server-close",
    "Server ended the stream without a result",
    on="exchange",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{SUBSCRIPTIONS}#graceful-closure",
    sep="2575",
    methods=LISTENING,
    transport=("http",),
)
def abrupt_server_close(exchange: Exchange) -> Iterator[Finding]:
    """A server that ends a listen stream says so by a result.

    Why: without it the client cannot tell a shutdown from a lost network.

    Fix: send the closing result on shutdown; raise the idle time-out of proxies in front, or send keep-alive comments.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed server

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed client
    """
    listen: Listen | None = exchange.facts.get(LISTEN)
    if listen is None or listen.state != "cut" or not exchange.received or exchange.ended is None or exchange.dropped:
        return
    lasted = exchange.ended - exchange.requested
    timed_out = any(abs(lasted - seconds) < 0.01 * seconds + 0.2 for seconds in ROUND_S)
    yield Finding(
        f"the server side ended the stream after {lasted:.0f} s without a result"
        + (" (a round number: a time-out on the way?)" if timed_out else ""),
        [Evidence("response.body:", f"ended by the server after {lasted:.1f} s", "a result that closes the subscription")],
        "info" if timed_out or exchange.ended_by == "unknown" else None,
    )


@rule(
    "SUB012",
    "filter-malformed",
    "listen filter invalid",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#notification-filter",
    sep="2575",
    methods=LISTENING,
)
def filter_malformed(message: Message) -> Iterator[Finding]:
    """`params.notifications` is an object: boolean flags, and an array of URI strings in resourceSubscriptions.

    Why: the server refuses the request, or listens for nothing.

    Fix: `{"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]}`.

    Wrong::

        modern subscriptions/listen {"notifications": ["toolsListChanged"]}
          -> error -32602

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true, "resourceSubscriptions": []}}
          id 1
          -> sse
          -> ack {}
          -> closed client
    """
    wanted, place = message.params.get("notifications"), message.place("params", "notifications")
    if not isinstance(wanted, dict):
        what = "absent" if "notifications" not in message.params else one_line(dumps(wanted), 40)
        yield Finding(f"params.notifications is {what}, not an object", [evidence(place, wanted, "an object")])
        return
    for name, value in list(wanted.items())[:50]:
        at = message.place("params", "notifications", name)
        if name in LIST_TYPES.values():
            if not isinstance(value, bool):
                yield Finding(
                    f"{name} is {one_line(dumps(value), 40)}, no boolean", [evidence(at, dumps(value), "true or false")]
                )
        elif name in ("resourceSubscriptions", "taskIds"):
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                yield Finding(f"{name} is no array of strings", [evidence(at, dumps(value), "an array of strings")])
            elif name == "resourceSubscriptions":
                for index, uri in enumerate(value[:MOST_URIS]):
                    if not _SCHEME.match(uri):
                        shown = one_line(uri, 80)
                        yield Finding(
                            f"the filter names {shown!r}, which is no URI: it has no scheme",
                            [evidence(message.place("params", "notifications", name, index), uri, "a URI")],
                        )
        else:
            yield Finding(f"the filter has the unknown member {one_line(name, 40)}", [evidence(at, value)], "info")
    if not wanted:
        yield Finding("the filter is empty: nothing will ever come", [evidence(place, "{}")], "info")


@rule(
    "SUB016",
    "listen-answered-json",
    "Listen answered with plain JSON result",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#opening-a-stream",
    sep="2575",
    methods=LISTENING,
    transport=("http",),
)
def listen_answered_json(message: Message) -> Iterator[Finding]:
    """A listen request is answered by an event stream, or refused by an error.

    Why: a plain result ends the subscription before it began.

    Fix: answer text/event-stream, acknowledge, and keep the stream open.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> result {}

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> error -32601
    """
    reading = message.exchange.answer_reading
    if message.rpc.kind == "result" and message.exchange.stream is None and not (reading is not None and reading.kind == "lines"):
        yield Finding(
            "subscriptions/listen was answered by a plain JSON result",
            [evidence("response.header:Content-Type", _content_type(message.exchange), "text/event-stream")],
        )


def _content_type(exchange: Exchange) -> str | None:
    return exchange.response_fields.first("content-type") if exchange.response_fields is not None else None


@rule(
    "SUB017",
    "capability-without-flag",
    "Opt-in for a feature the server never advertised",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=f"{SUBSCRIPTIONS}#acknowledgment",
    sep="2575",
    methods=LISTENING,
)
def capability_without_flag(message: Message) -> Iterator[Finding]:
    """A client may ask for anything; what the server does not advertise will not come.

    Why: it explains a subscription on which nothing ever arrives.

    Fix: look at `capabilities` of server/discover: `tools.listChanged`, `resources.subscribe` ...

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> error -32601

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}}
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          id 1
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed client
    """
    listen: Listen | None = message.exchange.facts.get(LISTEN)
    capabilities = message.exchange.endpoint.capabilities
    if listen is None or capabilities is None or not message.exchange.endpoint.modern:
        return
    missing = [flag for flag in sorted(listen.asked.flags) if not _has(capabilities, *_FLAG_OF[flag])]
    if listen.asked.uris and not _has(capabilities, "resources", "subscribe"):
        missing.append("resourceSubscriptions")
    if missing:
        yield Finding(
            f"the server does not advertise {', '.join(missing)}",
            [evidence(message.place("params", "notifications"), ", ".join(missing))],
        )


def _has(capabilities: dict[str, object], group: str, flag: str) -> bool:
    inner = capabilities.get(group)
    return isinstance(inner, dict) and inner.get(flag) is True


@rule(
    "SUB018",
    "listen-not-an-event-stream",
    "Listen stream is not text/event-stream",
    on=("head", "exchange"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SUBSCRIPTIONS}#opening-a-stream",
    sep="2575",
    always=True,
    methods=LISTENING,
)
def listen_not_an_event_stream(exchange: Exchange) -> Iterator[Finding]:
    """The response that carries a subscription is itself an event stream. Its head alone shows that it is not.

    Why: clients and proxies choose by Content-Type how to read a response. One that says application/json is kept back until it
    is whole, which a subscription never is: the client gets nothing and gives up.

    Fix: answer `Content-Type: text/event-stream`, and write each message as an event.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> 200 application/json {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> sse
          -> ack {"toolsListChanged": true}
          -> closed client
    """
    status, fields, reading = exchange.status, exchange.response_fields, exchange.answer_reading
    if status is None or fields is None or not 200 <= status < 300 or status in (202, 204, 205) or exchange.stream is not None:
        return
    value = fields.first("content-type")
    place = evidence("response.header:Content-Type", value, "text/event-stream")
    text = f"the listen stream is {one_line(value, 60)}" if value is not None else "the listen stream has no Content-Type"
    text += ", not text/event-stream"
    if not exchange.over:
        if not fields.has("content-length"):  # what has one is a refusal, or SUB016
            yield Finding(text, [place])
        return
    if exchange.answer is not None and (reading is None or reading.kind != "lines"):
        return  # a refusal, or SUB016
    if reading is None or not exchange.received:
        # Nothing could be read: a body without a length that its client gave up waiting for was a stream.
        if fields.has("content-length") or exchange.ended_by == "complete":
            return  # HDR018
        found = "no message"
    elif (value or "").partition(";")[0].strip().lower() != "application/json" and exchange.ended_by == "complete":
        return  # HDR018
    else:
        found = f"{len(exchange.received)} messages" if len(exchange.received) > 1 else exchange.received[0].method or "a message"
    yield Finding(text, [place, Evidence("response.body:", found)])


_FLAG_OF = {
    "toolsListChanged": ("tools", "listChanged"),
    "promptsListChanged": ("prompts", "listChanged"),
    "resourcesListChanged": ("resources", "listChanged"),
}
