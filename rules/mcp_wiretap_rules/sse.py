"""SSE: event streams and progress (2026-07-28 basic/transports/streamable-http#receiving-messages, basic/patterns/progress)."""

from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.operations.progress import Progress
from mcp_wiretap.trace.operations.reissued import REISSUE
from mcp_wiretap.trace.streams.loops import LOOP
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps, id_key
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_number

HTTP = "2026-07-28 basic/transports/streamable-http"
PROGRESS = "2026-07-28 basic/patterns/progress"
# What belongs on a listen stream, or nowhere in the modern era; never on the stream of a call.
NOT_OF_A_REQUEST = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/elicitation/complete",
        "notifications/tasks",
    }
)
WITHOUT_BATCHES = rev.since("2025-06-18")
LINGER_S = 5.0  # a stream that stays open so long after its answer is kept open, not merely slow to close
BURST_S, LONG_S, MANY = 0.05, 1.0, 4  # events buffered upstream: so many within so little, after so long


@rule(
    "SSE001",
    "unrelated-notification",
    "Notification on a request stream not related to it",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{HTTP}#receiving-messages",
    sep="2575",
)
def unrelated_notification(message: Message) -> Iterator[Finding]:
    """The stream of a request carries notifications about that request only: its progress and its logs.

    Why: a client that reads the stream for one call does not look for list changes there, and loses them.

    Fix: send list changes and resource updates on the subscriptions/listen streams that asked for them.

    Wrong::

        modern tools/call {"name": "install"}
          -> sse
          -> notify notifications/tools/list_changed
          -> result {"content": []}

    Right::

        modern tools/call {"name": "install"}
          meta progressToken 1
          -> sse
          -> notify notifications/progress {"progressToken": 1, "progress": 1}
          -> result {"content": []}
    """
    method = message.method
    if method in NOT_OF_A_REQUEST and message.exchange.method != "subscriptions/listen" and message.rpc.kind == "notification":
        yield Finding(
            f"{method} does not belong on the stream of {one_line(message.exchange.method or 'a request', 60)}",
            [evidence(message.place("method"), method, "only this request's progress and logs")],
        )


def _by_server(exchange: Exchange) -> bool:
    return exchange.ended_by in ("complete", "server")


@rule(
    "SSE002",
    "no-final-response",
    "Stream ends without a response",
    on="exchange",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{HTTP}#receiving-messages",
    sep="2575",
    sorts=("stream",),
    transport=("http",),
)
def no_final_response(exchange: Exchange) -> Iterator[Finding]:
    """The server ends the stream of a request with the response.

    Why: streams cannot be resumed: the call is lost, and the client must ask again.

    Fix: send the result, or an error, before closing.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> notify notifications/message {"level": "info", "data": "hm"}

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> closed client
    """
    stream, request = exchange.stream, exchange.request
    if stream is None or request is None or request.answer is not None or request.method == "subscriptions/listen":
        return
    if not _by_server(exchange) or exchange.dropped or stream.decode_problem or stream.foreign:
        return  # HDR018: the body is no event stream
    if any(entry.what == "event stream" for entry in exchange.unchecked):
        return
    how = "closed" if exchange.ended_by == "complete" else "cut"
    yield Finding(
        f"the server {how} the stream after {stream.count} events without a response",
        [Evidence("response.body:", f"{stream.count} events", "a result or an error for the request")],
    )


def answer_before(message: Message) -> Message | None:
    """The answer that had been given on this stream before the message; None while answers are owed."""
    exchange = message.exchange
    if exchange.stream is None or exchange.http_method != "POST":
        return None
    requests = [m for m in exchange.sent if m.rpc.kind == "request"]
    if not requests:
        return None
    for request in requests:
        answer = request.answer
        if answer is None or answer is message or answer.exchange is not exchange:
            return None
    last = requests[-1].answer
    if last is None or _index(last) >= _index(message):
        return None
    return last


def _index(message: Message) -> int:
    digits = message.where.rpartition("[")[2].rstrip("]")
    return int(digits) if digits.isdigit() else -1


@rule(
    "SSE003",
    "message-after-response",
    "Message after the final response",
    on="push",
    level="should",
    party="server",
    era="both",
    severity="error",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    streamable=True,
)
def message_after_response(message: Message) -> Iterator[Finding]:
    """After the response to its request a stream carries nothing more; progress must stop with the response.

    Why: the client has stopped reading.

    Fix: send what belongs to the call before its response, and close.

    Wrong::

        modern tools/call {"name": "a"}
          meta progressToken 1
          -> sse
          -> result {"content": []}
          -> notify notifications/progress {"progressToken": 1, "progress": 1}

    Right::

        modern tools/call {"name": "a"}
          meta progressToken 1
          -> sse
          -> notify notifications/progress {"progressToken": 1, "progress": 1}
          -> result {"content": []}
    """
    exchange = message.exchange
    if exchange.method == "subscriptions/listen":
        return  # SUB010
    if answer_before(message) is None:
        return
    if "io.modelcontextprotocol/related-task" in message.meta:
        return
    severity: Severity = "warning"
    if message.method == "notifications/progress":
        token = id_key(message.params.get("progressToken"))
        of = next((m for m in exchange.sent if "progressToken" in m.meta and id_key(m.meta["progressToken"]) == token), None)
        if of is not None and isinstance(of.params.get("task"), dict):
            return  # the token of a legacy task lives until the task ends
        severity = "error" if of is not None else "warning"
    yield Finding(
        f"{one_line(message.method or 'a message', 60)} came after the response",
        [evidence(message.place(), message.method, "nothing after the response")],
        severity,
    )


@rule(
    "SSE004",
    "stream-kept-open",
    "Stream stays open after the response",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="info",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    streamable=True,
    sorts=("stream",),
    transport=("http",),
)
def stream_kept_open(exchange: Exchange) -> Iterator[Finding]:
    """The server closes the stream once the response is sent.

    Why: each open stream holds a connection at the client, the server and everything between.

    Fix: end the response body after the last event.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
          -> after 9
          -> closed client

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
    """
    request, stream = exchange.request, exchange.stream
    answer = request.answer if request is not None else None
    if answer is None or stream is None or not stream.timed or exchange.ended is None or answer.exchange is not exchange:
        return
    lingered = exchange.ended - answer.at
    if lingered > LINGER_S and exchange.http_method == "POST":
        yield Finding(
            f"the stream stayed open for {lingered:.0f} s after the response",
            [Evidence("response.body:", f"{lingered:.1f} s", f"closed within {LINGER_S:.0f} s")],
        )


@rule(
    "SSE005",
    "event-id-on-modern",
    "SSE id: field on modern",
    on="event",
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{HTTP}#receiving-messages",
    sep="2575",
    once="endpoint",
    transport=("http",),
)
def event_id_on_modern(item: StreamItem) -> Iterator[Finding]:
    """Modern streams are not resumable, so their events need no `id`.

    Why: a client may take the id for a promise that the stream can be resumed.

    Fix: leave `id` (and `retry`) out on modern streams. Clients ignore them: harmless.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> sse-raw id: 1\\ndata: {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}\\n\\n

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
    """
    event = item.event
    if event.id:
        shown = one_line(event.id, 40)
        yield Finding(f"the event has the id {shown}", [evidence(f"{item.where}:id", event.id, "no id")], once="id")
    retry = item.exchange.stream.retry if item.exchange.stream is not None else None
    if retry is not None:
        yield Finding(
            "the stream has a retry field", [Evidence("response.body:", f"retry: {retry}", "no retry")], "info", once="retry"
        )


@rule(
    "SSE006",
    "sse-parse-conformance",
    "Something of the stream was discarded or joined",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="info",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    sorts=("stream",),
    transport=("http",),
)
def sse_parse_conformance(exchange: Exchange) -> Iterator[Finding]:
    """An event is what stands before a blank line; what has none at the end of the stream is discarded by every reader.

    Why: it explains a message that is in the bytes and that no client ever saw.

    Fix: end each event with a blank line; write UTF-8.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> sse-raw data: {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}\\n
          -> closed server

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
    """
    stream = exchange.stream
    if stream is None:
        return
    if stream.unfinished and _by_server(exchange) and not exchange.dropped:
        yield Finding(
            "the stream ended inside an event, which was discarded",
            [Evidence(f"response.event[{stream.count}]", "(no blank line)", "a blank line after each event")],
        )
    for item in stream.items:
        event = item.event
        if event.not_utf8:
            yield Finding("an event is not UTF-8; bad bytes were replaced", [Evidence(item.where, "(bytes)", "UTF-8")])
            return
        if event.lines > 1 and item.messages:
            text = f"a message is spread over {event.lines} data lines"
            yield Finding(text, [Evidence(item.where, f"{event.lines} data lines")])
            return


@rule(
    "SSE007",
    "event-type-unusual",
    "Event type other than message",
    on="event",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    transport=("http",),
)
def event_type_unusual(item: StreamItem) -> Iterator[Finding]:
    """JSON-RPC travels in events of the type `message` (or without a type).

    Why: EventSource clients listen for `message` and never see other types.

    Fix: leave the `event` field out, or write `message`.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> sse-raw event: rpc\\ndata: {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}\\n\\n

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> sse-raw event: ping\\ndata:\\n\\n
          -> result {"content": []}
    """
    kind = item.event.event
    if kind != "message" and any(m.rpc.kind != "invalid" for m in item.messages):
        yield Finding(
            f"a JSON-RPC message came in an event of the type {one_line(kind, 40)!r}",
            [evidence(f"{item.where}:event", kind, "message, or no event field")],
        )


@rule(
    "SSE008",
    "event-data-not-jsonrpc",
    "Event data is not a JSON-RPC object",
    on="event",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    transport=("http",),
)
def event_data_not_jsonrpc(item: StreamItem) -> Iterator[Finding]:
    """The data of a message event is one JSON-RPC message.

    Why: the client cannot read it, and what was meant is lost.

    Fix: one JSON-RPC object an event; a keep-alive is a comment line (`: ping`).

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> sse-raw data: working...\\n\\n
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> sse-raw : working\\n\\n
          -> result {"content": []}
    """
    reading, event = item.reading, item.event
    if reading is None or event.truncated or not event.data.strip() or item.exchange.http_method not in ("GET", "POST"):
        return
    array = reading.kind == "batch" and item.exchange.revision in WITHOUT_BATCHES
    if not array and reading.kind not in ("not-json", "not-rpc") and not any(m.rpc.kind == "invalid" for m in item.messages):
        return
    if event.event == "endpoint" and item.exchange.http_method == "GET":
        return  # HTTP+SSE: LEG023's
    usual = event.event == "message"
    why = reading.problem or next((m.rpc.problem for m in item.messages if m.rpc.problem), "an array" if array else "")
    yield Finding(
        f"the data of an event is no JSON-RPC message ({one_line(why or reading.kind, 60)})",
        [Evidence(f"{item.where}:", one_line(event.data, 120), "one JSON-RPC message")],
        None if usual else "info",
    )


@rule(
    "SSE009",
    "progress-unknown-token",
    "Progress for a token that is not active",
    on=("push", "notification"),
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{PROGRESS}#behavior-requirements",
    methods=("notifications/progress",),
)
def progress_unknown_token(message: Message) -> Iterator[Finding]:
    """Progress names a token that a running request gave, with its JSON type: `7` and `"7"` are two tokens.

    Why: the receiver cannot say which request moved on, and drops it.

    Fix: echo `_meta.progressToken` as it came; send no progress where none was asked for, and none after the response.

    Wrong::

        modern tools/call {"name": "a"}
          meta progressToken 7
          -> sse
          -> notify notifications/progress {"progressToken": "7", "progress": 1}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta progressToken 7
          -> sse
          -> notify notifications/progress {"progressToken": 7, "progress": 1}
          -> result {"content": []}
    """
    found = message.found
    if not isinstance(found, Progress) or found.state == "active":
        return
    token = one_line(dumps(found.token), 40)
    place = message.place("params", "progressToken")
    words: dict[str, tuple[str, Severity | None]] = {
        "none-asked": (f"progress for token {token}, but the request asked for none", None),
        "type-change": (f"the token {token} has another JSON type than the one that was given", None),
        "unknown": (f"no request gave the token {token}", None),
        "unknown-session": (f"the token {token} was not given in what was recorded of the session", "info"),
        "answered": (f"the request of token {token} was answered before", None),
        "answered-elsewhere": (f"the request of token {token} was answered before, on another stream", "warning"),
    }
    text, severity = words[found.state]
    if message.exchange.method == "subscriptions/listen":
        return  # SUB009: no progress belongs there, whatever its token
    yield Finding(
        text,
        [evidence(place, found.token, None if dumps(found.token) == dumps(found.asked) else dumps(found.asked))],
        severity,
        related=(found.flow,) if found.flow and found.flow != message.exchange.flow else (),
    )


@rule(
    "SSE010",
    "progress-not-increasing",
    "progress does not strictly increase",
    on=("push", "notification"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{PROGRESS}#progress-flow",
    methods=("notifications/progress",),
)
def progress_not_increasing(message: Message) -> Iterator[Finding]:
    """`progress` rises with every notification for a token, even where the total is not known.

    Why: a bar that goes back tells the user nothing.

    Fix: count up; report a correction through `total` or `message`.

    Wrong::

        modern tools/call {"name": "a"}
          meta progressToken 7
          -> sse
          -> notify notifications/progress {"progressToken": 7, "progress": 2}
          -> notify notifications/progress {"progressToken": 7, "progress": 1}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta progressToken 7
          -> sse
          -> notify notifications/progress {"progressToken": 7, "progress": 0.5, "total": 2}
          -> notify notifications/progress {"progressToken": 7, "progress": 2, "total": 2}
          -> result {"content": []}
    """
    if message.party == "client" and message.exchange.claim.modern:
        return  # a modern server asks for nothing that a client could report on
    for finding in _progress_flaws(message):
        finding.party = message.party
        yield finding


def _progress_flaws(message: Message) -> Iterator[Finding]:
    params, found = message.params, message.found
    value, place = params.get("progress"), message.place("params", "progress")
    if not is_number(value):
        what = "absent" if "progress" not in params else one_line(dumps(value), 40)
        yield Finding(f"progress is {what}, not a number", [evidence(place, value, "a number")])
        return
    if isinstance(found, Progress) and is_number(found.before) and found.state == "active" and value <= found.before:
        yield Finding(
            f"progress went from {one_line(dumps(found.before), 40)} to {one_line(dumps(value), 40)}",
            [evidence(place, dumps(value), f"more than {one_line(dumps(found.before), 40)}")],
            None if found.same_stream else "info",
        )
    total = params.get("total")
    if value is not None and is_number(total) and value > total:
        yield Finding(
            f"progress {one_line(dumps(value), 40)} is more than the total {one_line(dumps(total), 40)}",
            [evidence(place, dumps(value), f"at most {one_line(dumps(total), 40)}")],
            "warning",
        )


@rule(
    "SSE011",
    "accel-buffering-missing",
    "X-Accel-Buffering: no missing",
    on="exchange",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{HTTP}#receiving-messages",
    sep="2575",
    once="endpoint",
    sorts=("stream",),
    transport=("http",),
)
def accel_buffering_missing(exchange: Exchange) -> Iterator[Finding]:
    """An event stream should come with `X-Accel-Buffering: no`.

    Why: nginx and its kin hold events back until a buffer is full; a listen stream then looks dead.

    Fix: send the header with every text/event-stream answer.

    Wrong::

        modern tools/call {"name": "a"}
          -> -header X-Accel-Buffering
          -> sse
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
    """
    fields = exchange.response_fields
    if exchange.stream is None or fields is None or exchange.http_method != "POST":
        return
    value = (fields.first("x-accel-buffering") or "").strip().lower()
    if value == "no":
        return
    proxied = fields.has("via") or "nginx" in (fields.first("server") or "").lower()
    listen = exchange.method == "subscriptions/listen"
    yield Finding(
        "the event stream came without X-Accel-Buffering: no" + (" (a proxy in front may have taken it out)" if proxied else ""),
        [evidence("response.header:X-Accel-Buffering", value or None, "no")],
        None if listen and not proxied else "info",
        once="listen" if listen else "",
    )


@rule(
    "SSE012",
    "events-buffered",
    "Events arrive in one burst at the end",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="info",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    sorts=("stream",),
    transport=("http",),
)
def events_buffered(exchange: Exchange) -> Iterator[Finding]:
    """Events are meant to be sent when they happen.

    Why: many at once after a long silence look as if something between had held them back.

    Fix: flush after each event; look for a buffering proxy or a compressing middleware before the server.

    Wrong::

        modern tools/call {"name": "a"}
          meta progressToken 7
          -> sse
          -> after 3
          -> notify notifications/progress {"progressToken": 7, "progress": 1}
          -> notify notifications/progress {"progressToken": 7, "progress": 2}
          -> notify notifications/progress {"progressToken": 7, "progress": 3}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta progressToken 7
          -> sse
          -> after 1
          -> notify notifications/progress {"progressToken": 7, "progress": 1}
          -> after 1
          -> notify notifications/progress {"progressToken": 7, "progress": 2}
          -> after 1
          -> notify notifications/progress {"progressToken": 7, "progress": 3}
          -> result {"content": []}
    """
    stream = exchange.stream
    if stream is None or not stream.timed or stream.count < MANY or exchange.request is None or not stream.times:
        return
    spread, waited = stream.times[-1] - stream.times[0], stream.times[0] - exchange.requested
    if spread <= BURST_S and waited >= LONG_S and any(m.method == "notifications/progress" for m in exchange.received):
        yield Finding(
            f"{stream.count} events came within {spread * 1000:.0f} ms after {waited:.1f} s: buffered on the way?",
            [Evidence("response.body:", f"{stream.count} events in {spread * 1000:.0f} ms")],
        )


@rule(
    "SSE014",
    "client-disconnect",
    "Client closed the stream before the response",
    on="exchange",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=f"{HTTP}#cancellation",
    sep="2575",
    sorts=("stream",),
    transport=("http",),
)
def client_disconnect(exchange: Exchange) -> Iterator[Finding]:
    """Closing the stream of a request cancels the request.

    Why: it says why there is no answer; losing the network looks the same.

    Fix: nothing is wrong if the client meant it.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> closed client

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
          -> closed client
    """
    request = exchange.request
    if exchange.ended_by != "client" or request is None or request.answer is not None or exchange.stream is None:
        return
    if exchange.dropped or exchange.stream.decode_problem not in (None, "cut short"):
        return  # the answer may have been in what was not read
    if request.method != "subscriptions/listen" and exchange.ended is not None:
        after = exchange.ended - exchange.requested
        yield Finding(
            f"the client closed the stream after {after:.1f} s: it cancelled the request",
            [Evidence("response.body:", "closed by the client")],
        )


@rule(
    "SSE015",
    "reissue-reuses-id",
    "Broken stream re-issued with the old id",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec="2026-07-28 changelog#major-changes",
    sep="2575",
    needs=(REISSUE,),
    transport=("http",),
)
def reissue_reuses_id(message: Message) -> Iterator[Finding]:
    """A request whose stream broke is sent again as a new request, with a new id.

    Why: whoever kept the first one by its id takes the second for a duplicate.

    Fix: take the next id.

    Wrong::

        modern tools/call {"name": "a"}
          id 3
          -> sse
          -> closed server
        modern tools/call {"name": "a"}
          id 3
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          id 3
          -> sse
          -> closed server
        modern tools/call {"name": "a"}
          id 4
          -> result {"content": []}
    """
    reissue = message.exchange.facts.get(REISSUE)
    if reissue is not None and reissue.same_id:
        yield Finding(
            f"the request was sent again with the id {one_line(dumps(message.rpc.id), 40)} of the broken one",
            [evidence(message.place("id"), dumps(message.rpc.id), "a new id")],
            "info" if reissue.by_client else None,  # a client that was ended and started anew counts from the same id again
            related=(reissue.broken,),
        )


@rule(
    "SSE017",
    "repeated-without-pause",
    "The same request again and again without a pause",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="info",
    spec=f"{HTTP}#receiving-messages",
    needs=(LOOP,),
    transport=("http",),
)
def repeated_without_pause(exchange: Exchange) -> Iterator[Finding]:
    """A stream stays open until there is nothing more to say, and a refused request is not sent again at once.

    Why: a stream that is completed at once is asked for again at once: client and server keep each other busy with nothing.

    Fix: on the server, keep the stream open; on the client, wait longer before each repetition.

    Wrong::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {}
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          after 0.01
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {}
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          after 0.01
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {}
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          after 0.01
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {}
        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          after 0.01
          -> sse
          -> ack {"toolsListChanged": true}
          -> result {}

    Right::

        modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
          -> sse
          -> ack {"toolsListChanged": true}
          -> open
    """
    loop = exchange.facts.get(LOOP)
    if loop is None or loop.backs_off:
        return
    often = f"{loop.count} times in {loop.seconds:.1f} s"
    if loop.stream:
        words = f"{loop.what} was completed at once {often}; the client asked again without a pause"
    else:
        words = f"{loop.what} was sent {often}, and refused each time with the same answer"
    yield Finding(
        words,
        [Evidence("response.body:", often)],
        party=None if loop.stream else "client",
        related=tuple(loop.flows),
        once=loop.what,
    )
