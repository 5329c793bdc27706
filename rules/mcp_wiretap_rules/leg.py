"""LEG: legacy sessions and transports, 2024-11-05 to 2025-11-25 (basic/transports, basic/lifecycle)."""

import re
from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.legacy.session_use import HAS_EVENT_ID, LEGACY, RESUMED_BY, RETRY_MS, Note
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.refusals.sessions import Refused
from mcp_wiretap.trace.refusals.tracker import VERSION_REFUSED
from mcp_wiretap.trace.refusals.words import Said
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import mask, one_line
from mcp_wiretap_rules.rpc import is_told

TRANSPORTS = "2025-11-25 basic/transports"
LIFECYCLE = "2025-11-25 basic/lifecycle"
SESSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
EXPIRES_LATER = 30.0
"""No session expires so many seconds after its handshake."""
WITH_HEADER = ("2025-06-18", "2025-11-25")
SHORTEST_SESSION_ID = 16
_SENT_AGAIN = {
    "event-id-twice": "was given before in this session",
    "replay-of-another": "belongs to another stream than the one that is resumed",
    "replay-of-earlier": "came before the event that the client had read last",
}
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_SESSION_HEADER = "response.header:Mcp-Session-Id"
_SENT_HEADER = "request.header:Mcp-Session-Id"


def _notes(fact: Exchange | Message, *what: str) -> list[Note]:
    exchange = fact if isinstance(fact, Exchange) else fact.exchange
    found = exchange.facts.get(LEGACY)
    return [n for n in found if n.what in what] if found else []


def _related(note: Note) -> tuple[str, ...]:
    return (note.flow,) if note.flow else ()


@rule(
    "LEG001",
    "session-id-missing",
    "Request without the assigned session id",
    on=("post", "exchange"),
    level="must",
    party="client",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    always=True,
    needs=(LEGACY,),
    transport=("http",),
)
def session_id_missing(exchange: Exchange) -> Iterator[Finding]:
    """A client that was given an Mcp-Session-Id sends it with every request that follows.

    Why: the server cannot find the session, and answers 400.

    Fix: keep the header of the initialize response and send it on each POST, GET and DELETE.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -header Mcp-Session-Id
          -> 400

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": []}
    """
    for note in _notes(exchange, "session-missing", "session-dropped"):
        if is_told(exchange, "LEG001"):
            return  # when it was sent
        yield Finding(
            "Mcp-Session-Id is missing, the server gave one" + (" that the page cannot read" if note.value else ""),
            [evidence(_SENT_HEADER, None, note.expected)],
            "info" if note.value else None if note.sure else "warning",
            related=_related(note),
        )


@rule(
    "LEG002",
    "session-id-charset",
    "Session id not visible ASCII",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    streamable=True,
    transport=("http",),
)
def session_id_charset(exchange: Exchange) -> Iterator[Finding]:
    """A session id is made of visible ASCII characters (0x21 to 0x7E).

    Why: other characters do not survive every proxy and header reader.

    Fix: a UUID, a hash or a JWT.

    Wrong::

        legacy initialize
          -> header Mcp-Session-Id: my session
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          -> header Mcp-Session-Id: 1868a90c-6a0e-4bd8-9cf6-7d8b1f0f8c55
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    value = exchange.response_fields.first("mcp-session-id") if exchange.response_fields is not None else None
    if value is not None and not _VISIBLE.fullmatch(value) and value != _session_id(exchange):
        at = next((i for i, c in enumerate(value) if not "!" <= c <= "~"), 0)
        what = f"U+{ord(value[at]):04X} at index {at}" if value else "empty"
        yield Finding(f"the session id has characters that are not visible ASCII ({what})", [evidence(_SESSION_HEADER, value)])


@rule(
    "LEG003",
    "session-id-weak",
    "Session id predictable",
    on="exchange",
    level="should",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    methods=("initialize",),
    once="endpoint",
    transport=("http",),
)
def session_id_weak(exchange: Exchange) -> Iterator[Finding]:
    """A session id is unique and cannot be guessed.

    Why: whoever guesses it speaks in the session of another.

    Fix: a UUID of version 4, or 128 random bits.

    Wrong::

        legacy initialize
          -> header Mcp-Session-Id: session-1
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          -> header Mcp-Session-Id: 1868a90c-6a0e-4bd8-9cf6-7d8b1f0f8c55
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    value = exchange.response_fields.first("mcp-session-id") if exchange.response_fields is not None else None
    if value and len(value) < SHORTEST_SESSION_ID and exchange.claim.kind == "legacy":
        text = f"the session id has {len(value)} characters: it can be guessed"
        yield Finding(text, [evidence(_SESSION_HEADER, value, f"{SHORTEST_SESSION_ID} random characters or more")])
    for note in _notes(exchange, "session-id-counts"):
        yield Finding(
            "session ids are counted up", [evidence(_SESSION_HEADER, note.value, "nothing that follows from another id")]
        )


@rule(
    "LEG004",
    "session-id-not-at-initialize",
    "Session id appears elsewhere",
    on="exchange",
    level="may-note",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    streamable=True,
    transport=("http",),
)
def session_id_not_at_initialize(exchange: Exchange) -> Iterator[Finding]:
    """A session id is given with the initialize response and stays the same.

    Why: clients read it there only; a new one in the middle splits the session.

    Fix: send the header with the initialize response.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> header Mcp-Session-Id: another
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> header Mcp-Session-Id: session-1-of-the-example
          -> result {"tools": []}
    """
    fields, status = exchange.response_fields, exchange.status or 0
    if exchange.method == "initialize" or fields is None or not 200 <= status < 300 or exchange.claim.kind != "legacy":
        return
    value, sent = fields.first("mcp-session-id"), exchange.request_fields.first("mcp-session-id")
    if value is None or value == sent:
        return
    if sent is None:
        yield Finding("a session id is given outside initialize", [evidence(_SESSION_HEADER, value)], "info")
    else:
        yield Finding("the session id changed in the middle of the session", [evidence(_SESSION_HEADER, value, sent)])


@rule(
    "LEG005",
    "session-404-not-followed",
    "404 with session id must lead to a new initialize",
    on="exchange",
    level="must",
    party="client",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    needs=(LEGACY,),
    transport=("http",),
)
def session_404_not_followed(exchange: Exchange) -> Iterator[Finding]:
    """A client whose session id was answered 404 begins anew: initialize, without the dead id.

    Why: the session is gone; every further request with the id is lost.

    Fix: on 404 to a request with Mcp-Session-Id drop the id and initialize.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> 404
        legacy tools/list
          -> 404

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> 404
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    """
    for note in _notes(exchange, "dead-session-used"):
        count = int(note.value)
        text = f"the session was answered 404 and is used again ({count} times by now)"
        yield Finding(
            text, [evidence(_SENT_HEADER, _session_id(exchange), "a new initialize")], None if count >= 3 else "warning"
        )
    for note in _notes(exchange, "refused-session-used"):
        text = f"the session id was refused {note.value} times by now with HTTP {note.expected}, and no initialize came"
        yield Finding(text, [evidence(_SENT_HEADER, _session_id(exchange), "a new initialize")], "info", related=_related(note))
    for note in _notes(exchange, "dead-initialize"):
        text = "initialize is sent with the id of a session that is gone"
        yield Finding(text, [evidence(_SENT_HEADER, note.value, "no Mcp-Session-Id")])


def _session_id(exchange: Exchange) -> str | None:
    return exchange.request_fields.first("mcp-session-id")


@rule(
    "LEG006",
    "terminated-session-served",
    "Ended session still answers",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    transport=("http",),
)
def terminated_session_served(exchange: Exchange) -> Iterator[Finding]:
    """After a session was ended the server answers its id with 404.

    Why: the client would go on in a session that has lost its state.

    Fix: drop the id on DELETE; answer 404 to ids that are not known.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        DELETE
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> 200
        legacy tools/list
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        DELETE
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> 200
        legacy tools/list
          -> 404
    """
    for note in _notes(exchange, "dead-session-served", "dead-session-400"):
        served = note.what == "dead-session-served"
        yield Finding(
            f"the session was ended, and its id is answered with HTTP {note.value}",
            [Evidence("response.status", str(note.value), "404")],
            None if served and note.sure else "warning",
            related=_related(note),
        )
    for note in _notes(exchange, "session-lives"):
        text = f"the id was answered 404 before, and now HTTP {note.value}: the 404 had another cause"
        yield Finding(text, [Evidence("response.status", str(note.value))], "info")


@rule(
    "LEG008",
    "version-header-missing-legacy",
    "MCP-Protocol-Version missing after initialize",
    on="post",
    level="must",
    party="client",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#protocol-version-header",
    versions=WITH_HEADER,
    streamable=True,
    once="client",
    always=True,
    needs=(LEGACY,),
    transport=("http",),
)
def version_header_missing_legacy(exchange: Exchange) -> Iterator[Finding]:
    """From 2025-06-18 on every request after initialize carries the negotiated version in MCP-Protocol-Version.

    Why: without it the server assumes 2025-03-26 and reads the request by another revision.

    Fix: send `MCP-Protocol-Version: <negotiated>` on each POST, GET and DELETE. Said once for a client.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -header MCP-Protocol-Version
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -header MCP-Protocol-Version
          -> result {"tools": []}
    """
    for note in _notes(exchange, "version-missing"):
        yield Finding(
            f"MCP-Protocol-Version is missing, {note.expected} was negotiated",
            [evidence("request.header:MCP-Protocol-Version", None, note.expected)],
            None if note.sure else "info",
            related=_related(note),
        )


@rule(
    "LEG009",
    "version-header-not-negotiated",
    "Header differs from negotiated version",
    on="post",
    level="should",
    party="client",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#protocol-version-header",
    streamable=True,
    transport=("http",),
)
def version_header_not_negotiated(exchange: Exchange) -> Iterator[Finding]:
    """MCP-Protocol-Version is the version that initialize settled on.

    Why: servers answer 400, or read the request by another revision.

    Fix: send what the initialize result says, not the newest version that you know. Said once for a session, with a count.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          version 2025-11-25
          -> 400

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": []}
    """
    for note in _notes(exchange, "version-differs"):
        times, related = (note.repeat.times, note.repeat.related) if note.repeat is not None else ("", [])
        yield Finding(
            f"MCP-Protocol-Version says {one_line(note.value, 40)}, {one_line(note.expected, 40)} was negotiated{times}",
            [evidence("request.header:MCP-Protocol-Version", note.value, note.expected)],
            None if note.expected in rev.LEGACY else "info",  # what a handshake cannot agree on is the server's fault
            related=(*_related(note), *related),
        )


@rule(
    "LEG010",
    "resumption",
    "Last-Event-ID usage",
    on=("post", "event"),
    level="must",
    party="either",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#resumability-and-redelivery",
    sep="1699",
    versions=SESSIONS,
    streamable=True,
    needs=(LEGACY, "header:last-event-id"),
    transport=("http",),
)
def resumption(fact: Exchange | StreamItem) -> Iterator[Finding]:
    """A stream is resumed by a GET whose Last-Event-ID is an event id of the session; the server sends what came after that event
    on the same stream. No id is given twice in a session.

    Why: with any other id the server has nothing to send again, and with two events of one id it cannot tell which was read.

    Fix: client: send the id of the last event that you read, as it came. Server: count events for the whole session.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          header Last-Event-ID: invented
          -> 400

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          -> sse
          -> sse-raw id: e1\\ndata:\\n\\n
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          header Last-Event-ID: e1
          -> sse
          -> closed client
    """
    if isinstance(fact, StreamItem):
        for note in _notes(fact.exchange, *_SENT_AGAIN):
            if note.value == fact.event.index:
                place = [evidence(f"{fact.where}:id", note.expected, "a later event of the resumed stream, or a new id")]
                yield Finding(
                    f"the event id {one_line(str(note.expected), 60)} {_SENT_AGAIN[note.what]}",
                    place,
                    party="server",
                    related=_related(note) if note.flow != fact.exchange.flow else (),
                )
        return
    exchange = fact
    for note in _notes(exchange, "unknown-event-id"):
        yield Finding(
            f"Last-Event-ID {one_line(note.value, 60)} was not seen in this session",
            [evidence("request.header:Last-Event-ID", note.value, "an event id of the session")],
            None if note.sure else "info",
        )
    if exchange.http_method == "POST" and exchange.request_fields.has("last-event-id"):
        text = "Last-Event-ID on a POST: streams are resumed by GET"
        yield Finding(text, [evidence("request.header:Last-Event-ID", exchange.request_fields.first("last-event-id"), "a GET")])


@rule(
    "LEG011",
    "sse-polling",
    "Server-side disconnect before response",
    on="exchange",
    level="should",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#sending-messages-to-the-server",
    sep="1699",
    versions=SESSIONS,
    streamable=True,
    transport=("http",),
)
def sse_polling(exchange: Exchange) -> Iterator[Finding]:
    """A server may close a stream before the response where the client can come back: from 2025-11-25 on, after an event id. In
    2025-03-26 and 2025-06-18 it should not, though a client that had an event id can come back there as well.

    Why: otherwise the response is lost.

    Fix: send an event with an id (and a retry time) first, or keep the stream open until the response.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          -> sse
          -> notify notifications/tools/list_changed

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          -> sse
          -> sse-raw id: e1\\nretry: 500\\ndata:\\n\\n
    """
    stream, request, session = exchange.stream, exchange.request, exchange.session
    if stream is None or request is None or exchange.http_method != "POST":
        return
    if request.answer is not None and RESUMED_BY not in exchange.facts:
        return
    if exchange.ended_by not in ("complete", "server") or exchange.dropped or stream.decode_problem:
        return
    if any(entry.what == "event stream" for entry in exchange.unchecked) or (session is not None and not session.live):
        return
    if HAS_EVENT_ID not in exchange.facts:
        text = "the server closed the stream without the response, and the client cannot come back"
        yield Finding(text, [Evidence("response.body:", f"{stream.count} events", "the response, or an event id")])
    elif exchange.revision != "2025-11-25":
        back: str | None = exchange.facts.get(RESUMED_BY)
        came = "and the client came back with its Last-Event-ID" if back is not None else "though the client can come back"
        text = f"the server closed the stream before the response, which it should not in {exchange.revision}, {came}"
        place = [Evidence("response.body:", f"{stream.count} events", "the response before the stream ends")]
        yield Finding(text, place, "info", related=(back,) if back is not None else ())
    elif RETRY_MS not in exchange.facts:
        text = "the server closed the stream before the response and named no retry time"
        yield Finding(text, [Evidence("response.body:", "no retry field", "retry before closing")], "info")


@rule(
    "LEG012",
    "retry-ignored",
    "Client reconnects before retry time",
    on="post",
    level="must",
    party="client",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#sending-messages-to-the-server",
    sep="1699",
    versions=("2025-11-25",),
    streamable=True,
    transport=("http",),
)
def retry_ignored(exchange: Exchange) -> Iterator[Finding]:
    """A client waits for the retry time of the stream before it comes back (10 % to spare).

    Why: the server asked for the pause to work in.

    Fix: honour the `retry` field, as EventSource does.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          -> sse
          -> sse-raw id: e1\\nretry: 9000\\ndata:\\n\\n
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          header Last-Event-ID: e1
          -> sse
          -> closed client

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          id 7
          label call
          -> sse
          -> sse-raw id: e1\\nretry: 9000\\ndata:\\n\\n
          -> after 2
          -> result {"content": []}
    """
    for note in _notes(exchange, "retry-ignored"):
        yield Finding(
            f"the client came back after {note.value}, the server asked for {note.expected}",
            [Evidence("request.time", str(note.value), f"at least {note.expected}")],
            related=_related(note),
        )


@rule(
    "LEG013",
    "response-on-get-stream",
    "Response on the standalone GET stream",
    on=("answer", "message"),
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#listening-for-messages-from-the-server",
    versions=SESSIONS,
    streamable=True,
    sorts=("result", "error"),
    transport=("http",),
)
def response_on_get_stream(message: Message) -> Iterator[Finding]:
    """The standalone GET stream carries no responses, unless it resumes the stream of a request.

    Why: the client reads the response on the stream of its request.

    Fix: answer on the POST; use Last-Event-ID to resume.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> sse
          -> event {"jsonrpc": "2.0", "id": 9, "result": {}}
          -> closed client

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> sse
          -> notify notifications/tools/list_changed
          -> closed client
    """
    exchange = message.exchange
    if exchange.http_method != "GET" or exchange.stream is None or message.rpc.kind not in ("result", "error"):
        return
    if exchange.request_fields.has("last-event-id") or exchange.stream.http_sse:
        return
    if any(f.rule == "LEG013" and f.evidence[0].where == message.place() for f in exchange.findings):
        return  # an answer is heard as `answer` and as `message`
    text = f"a JSON-RPC {message.kind} came on the GET stream"
    yield Finding(text, [evidence(message.place(), message.kind, "notifications and requests only")])


@rule(
    "LEG014",
    "get-not-sse-or-405",
    "GET neither SSE nor 405",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#listening-for-messages-from-the-server",
    versions=SESSIONS,
    streamable=True,
    once="endpoint",
    always=True,
    transport=("http",),
)
def get_not_sse_or_405(exchange: Exchange) -> Iterator[Finding]:
    """A GET for the event stream is answered by one, or by 405.

    Why: clients take anything else for a broken server and try again and again.

    Fix: answer 405 where you offer no stream.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> 200 text/html <p>hello</p>

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> 405
    """
    status, session = exchange.status, exchange.session
    if exchange.http_method != "GET" or status is None or exchange.stream is not None:
        return
    accept = (exchange.request_fields.first("accept") or "").lower()
    if "text/event-stream" not in accept:
        return
    if session is None:
        endpoint, early = exchange.endpoint, True
        if exchange.claim.modern or not endpoint.initialize_accepted or endpoint.modern or endpoint.http_sse:
            return
        if exchange.request_fields.has("mcp-session-id"):
            return
    else:
        if not session.initialize_flow or session.revision == "2024-11-05":
            return
        # Later on a 404 may say that the session has expired, which is right.
        begun = session.initialized_at
        early = (begun is None or exchange.started - begun < EXPIRES_LATER) and session.ended_why != "404"
    if 200 <= status < 300 or status == 501 or (status == 404 and early):
        yield Finding(
            f"the GET was answered with HTTP {status} and no event stream", [Evidence("response.status", str(status), "405")]
        )
    elif status == 409:
        text = "a second GET stream was refused with 409: one stream a session"
        yield Finding(text, [Evidence("response.status", "409")], "info", once="409")


@rule(
    "LEG015",
    "broadcast-duplicate",
    "Same message on two streams",
    on="push",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec=f"{TRANSPORTS}#multiple-connections",
    versions=SESSIONS,
    streamable=True,
    transport=("http",),
)
def broadcast_duplicate(message: Message) -> Iterator[Finding]:
    """A server sends each message on one stream of a session, not on all.

    Why: the client handles it twice.

    Fix: choose one open stream.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          label one
          -> sse
          -> open
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> sse
          -> notify notifications/tools/list_changed
          -> open
        continue one
          -> notify notifications/tools/list_changed
          -> open

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "s", "version": "1"}}
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> sse
          -> notify notifications/tools/list_changed
          -> notify notifications/tools/list_changed
          -> open
    """
    note = message.found
    if isinstance(note, Note) and note.what == "broadcast":
        text = f"{message.method} was sent on another open stream of the session at the same moment"
        place = [evidence(message.place("method"), message.method, "one stream")]
        yield Finding(text, place, "warning", related=_related(note))
    if message.rpc.kind == "request":
        for note in _notes(message, "asked-twice"):
            if note.value == message.where:
                text = f"the request {one_line(message.method or '', 60)} was sent on another open stream of the session as well"
                yield Finding(text, [evidence(message.place("id"), message.rpc.id, "one stream")], related=_related(note))


@rule(
    "LEG016",
    "orphan-server-request",
    "Server request on the standalone GET stream",
    on="exchange",
    level="may-note",
    party="server",
    era="legacy",
    severity="info",
    spec=f"{TRANSPORTS}#listening-for-messages-from-the-server",
    sep="2260",
    versions=SESSIONS,
    streamable=True,
    transport=("http",),
)
def orphan_server_request(exchange: Exchange) -> Iterator[Finding]:
    """The negotiated revision allows requests of the server that belong to no request of the client; 2026-07-28 has no such thing.

    Why: such a feature cannot be carried over to the modern era.

    Fix: ask in the course of a call, on its own stream (modern: by input_required).

    Wrong::

        legacy initialize
          params {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/initialized
          -> 202
        GET
          header Accept: text/event-stream
          header Mcp-Session-Id: session-1-of-the-example
          header MCP-Protocol-Version: 2025-11-25
          -> sse
          -> ask 1 roots/list
          -> closed client

    Right::

        legacy initialize
          params {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/initialized
          -> 202
        legacy tools/call {"name": "a"}
          -> sse
          -> ask 1 roots/list
          -> result {"content": []}
    """
    for note in _notes(exchange, "orphan-request"):
        where = "after the response" if note.expected == "after" else "on the GET stream"
        text = f"{note.value} {where} belongs to no request of the client (allowed here, gone in 2026-07-28)"
        yield Finding(text, [Evidence("response.body:", str(note.value))])


@rule(
    "LEG017",
    "initialize-order",
    "Traffic before initialization finished",
    on=("post", "push"),
    level="should",
    party="either",
    era="legacy",
    severity="warning",
    spec=f"{LIFECYCLE}#initialization",
)
def initialize_order(fact: Exchange | Message) -> Iterator[Finding]:
    """After the initialize result the client sends notifications/initialized; before that the server sends no requests but ping.

    Why: servers may refuse or ignore what comes before.

    Fix: send notifications/initialized at once.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          after 5
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/initialized
          -> 202
        legacy tools/list
          after 5
          -> result {"tools": []}
    """
    if isinstance(fact, Exchange):
        for note in _notes(fact, "not-initialized"):
            text = f"a request {note.value} after the initialize result, and no notifications/initialized yet"
            place = [Evidence("request.body:", one_line(fact.method or "", 60), "notifications/initialized first")]
            yield Finding(text, place, None if note.sure else "info", related=_related(note))
        for note in _notes(fact, "before-answer"):
            text = f"{one_line(str(note.value), 60)} was sent before initialize was answered"
            place = [Evidence("request.body:", one_line(fact.method or "", 60), "the initialize result first")]
            yield Finding(text, place, "info", related=_related(note))
    elif fact.rpc.kind == "request":
        for note in _notes(fact, "early-server-request"):
            if note.value == fact.where:
                text = f"the server sent {one_line(fact.method or '', 60)} before notifications/initialized"
                yield Finding(text, [evidence(fact.place("method"), fact.method, "ping only")], related=_related(note))
                return


@rule(
    "LEG018",
    "initialize-in-batch",
    "initialize inside a batch",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2025-03-26 basic/lifecycle#initialization",
    methods=("initialize",),
    always=True,
)
def initialize_in_batch(message: Message) -> Iterator[Finding]:
    """initialize is sent alone, never in a batch.

    Why: nothing else may be sent before it was answered.

    Fix: send it as a message of its own.

    Wrong::

        POST
          header Content-Type: application/json
          header Accept: application/json, text/event-stream
          body [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}]
          -> 400

    Right::

        legacy initialize
          version 2025-03-26
          -> result {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    if message.rpc.index is not None:
        yield Finding(
            "initialize is sent inside a batch", [evidence(message.place("method"), "initialize", "a message of its own")]
        )


@rule(
    "LEG019",
    "batch-mixed",
    "Batch mixes requests and responses",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2025-03-26 basic/transports#sending-messages-to-the-server",
    always=True,
    transport=("http",),
)
def batch_mixed(exchange: Exchange) -> Iterator[Finding]:
    """A batch holds requests and notifications, or responses; never both.

    Why: the server answers the first kind, and accepts the second with 202.

    Fix: send two batches.

    Wrong::

        POST
          header Content-Type: application/json
          header Accept: application/json, text/event-stream
          header MCP-Protocol-Version: 2025-03-26
          body [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "result": {}}]
          -> 400

    Right::

        POST
          header Content-Type: application/json
          header Accept: application/json, text/event-stream
          header MCP-Protocol-Version: 2025-03-26
          body [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"}]
          -> 200 application/json [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    """
    reading = exchange.reading
    if exchange.kind != "mcp" or reading is None or reading.kind != "batch":
        return
    if not reading.messages:
        yield Finding("the batch is empty", [Evidence("request.body:", "[]", "at least one message")])
        return
    kinds = {m.kind for m in reading.messages}
    if kinds & {"request", "notification"} and kinds & {"result", "error"}:
        text = "the batch mixes requests with responses"
        yield Finding(text, [Evidence("request.body:", ", ".join(sorted(kinds)), "one of the two")])


@rule(
    "LEG020",
    "version-echo",
    "Server must echo a supported version",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{LIFECYCLE}#version-negotiation",
    needs=(LEGACY,),
)
def version_echo(exchange: Exchange) -> Iterator[Finding]:
    """A server that supports the version that the client asks for answers with that version.

    Why: the client may not know the other one, and gives up.

    Fix: answer with the requested version where you support it, otherwise with your newest.

    Wrong::

        legacy initialize
          version 2025-06-18
          client a
          -> result {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy initialize
          version 2025-06-18
          client b
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          version 2025-03-26
          client a
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy initialize
          version 2025-11-25
          client b
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    for note in _notes(exchange, "version-not-echoed"):
        yield Finding(
            f"asked for {one_line(note.expected, 40)}, which this server has negotiated before, and got {one_line(note.value, 40)}",
            [evidence("response.body:/result/protocolVersion", note.value, note.expected)],
        )
    for note in _notes(exchange, "unknown-version"):
        text = f"the client goes on with {one_line(str(note.value), 40)}, a version that is not published"
        place = [evidence("request.header:MCP-Protocol-Version", exchange.request_fields.first("mcp-protocol-version"))]
        yield Finding(text, place, "info", "client", _related(note))


@rule(
    "LEG021",
    "capability-not-negotiated",
    "Feature used without negotiation",
    on=("post", "push"),
    level="must",
    party="either",
    era="legacy",
    severity="warning",
    spec=f"{LIFECYCLE}#operation",
)
def capability_not_negotiated(fact: Exchange | Message) -> Iterator[Finding]:
    """Each side uses only what the other declared in the handshake.

    Why: the other side answers -32601, or breaks.

    Fix: look at the capabilities of the initialize exchange.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": []}
    """
    if isinstance(fact, Exchange):
        for note in _notes(fact, "server-capability"):
            text = f"{note.value}, but the server did not declare {note.expected}"
            yield Finding(
                text,
                [evidence("request.body:/method", note.value, f"capabilities.{note.expected}")],
                "info" if note.expected == "completions" and fact.revision == "2025-03-26" else None,
                related=_related(note),
            )
        for note in _notes(fact, "own-capability"):
            text = f"{note.value}, but the client did not declare {note.expected}"
            place = [evidence("request.body:/method", note.value, f"capabilities.{note.expected}")]
            yield Finding(text, place, related=_related(note))
        return
    note = fact.found
    if isinstance(note, Note) and note.what == "server-list":
        text = f"{note.value}, but the server did not declare {note.expected}"
        place = [evidence(fact.place("method"), note.value, f"capabilities.{note.expected}")]
        yield Finding(text, place, related=_related(note), once=str(note.value))
    if isinstance(note, Note) and note.what == "client-capability":
        text = f"{note.value}, but the client did not declare {note.expected}"
        yield Finding(text, [evidence(fact.place("method"), note.value, f"capabilities.{note.expected}")], related=_related(note))


@rule(
    "LEG023",
    "http-sse-endpoint",
    "HTTP+SSE mechanics",
    on=("event", "post"),
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec="2024-11-05 basic/transports#http-with-sse",
    sep="2596",
    transport=("http",),
)
def http_sse_endpoint(item: StreamItem | Exchange) -> Iterator[Finding]:
    """On the HTTP+SSE transport the stream begins with one `endpoint` event; messages come in `message` events after it, and the
    client posts its own to the address that was announced.

    Why: the client does not know where to POST, or posts to a stranger.

    Fix: send `event: endpoint` first, once, with a path on the same origin.

    Wrong::

        GET /sse
          header Accept: text/event-stream
          -> sse
          -> sse-raw event: endpoint\\ndata: /messages?session_id=1\\n\\n
          -> sse-raw event: endpoint\\ndata: /messages?session_id=2\\n\\n
          -> closed client

    Right::

        GET /sse
          header Accept: text/event-stream
          -> sse
          -> sse-raw event: endpoint\\ndata: /messages?session_id=1\\n\\n
          -> closed client
    """
    if isinstance(item, Exchange):
        for note in _notes(item, "posted-elsewhere"):
            text = "a message of an HTTP+SSE conversation was posted to another address than the one announced"
            place = [Evidence("request.url", one_line(str(note.value), 120), one_line(str(note.expected), 120))]
            yield Finding(text, place, party="client", related=_related(note))
        return
    exchange, event = item.exchange, item.event
    if exchange.stream is None:
        return
    if not exchange.stream.http_sse:
        if event.event == "endpoint" and exchange.http_method == "GET" and not exchange.request_fields.has("mcp-session-id"):
            text = f"the endpoint event came after {event.index} other events"
            yield Finding(text, [evidence(f"{item.where}:", event.data, "the first event")])
        return
    if event.event == "endpoint":
        if event.index > 0:
            yield Finding("a second endpoint event", [evidence(f"{item.where}:", event.data, "one endpoint event")], "warning")
        other = _other_origin(exchange, event.data)
        if other:
            text = f"the endpoint event names another origin, {one_line(other, 60)}"
            yield Finding(text, [evidence(f"{item.where}:", event.data, "the same origin")], "warning")
    elif event.event != "message" and any(m.rpc.kind != "invalid" for m in item.messages):
        text = f"a message came in an event of the type {one_line(event.event, 40)!r}"
        yield Finding(text, [evidence(f"{item.where}:event", event.event, "message")], "warning")


def _other_origin(exchange: Exchange, address: str) -> str:
    """The origin of an announced address, where it is not the one that the client had called; "" where it is."""
    target, own = uri.split(address), uri.split(exchange.url)
    if not target.netloc or not exchange.authority:
        return ""
    if target.netloc.lower() not in (exchange.authority.lower(), own.netloc.lower()):
        return target.netloc
    # Behind a reverse proxy the client may have called by another scheme.
    return f"{target.scheme}://{target.netloc}" if target.scheme not in ("", own.scheme) and not exchange.reverse else ""


@rule(
    "LEG024",
    "http-sse-deprecated",
    "HTTP+SSE in use",
    on="exchange",
    level="should",
    party="server",
    era="legacy",
    severity="info",
    spec="2026-07-28 basic/transports/streamable-http#httpsse-transport-2024-11-05",
    sep="2596",
    once="endpoint",
    transport=("http",),
)
def http_sse_deprecated(exchange: Exchange) -> Iterator[Finding]:
    """The HTTP+SSE transport of 2024-11-05 is deprecated.

    Why: new clients drop it.

    Fix: serve Streamable HTTP beside it.

    Wrong::

        GET /sse
          header Accept: text/event-stream
          -> sse
          -> sse-raw event: endpoint\\ndata: /messages?session_id=1\\n\\n
          -> closed client

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    """
    if exchange.stream is not None and exchange.stream.http_sse:
        yield Finding("the deprecated HTTP+SSE transport is in use", [Evidence("response.event[0]:", "endpoint")])


@rule(
    "LEG025",
    "ping-result-empty",
    "ping result not empty",
    on=("answer", "reply"),
    level="must",
    party="either",
    era="legacy",
    severity="warning",
    spec="2025-11-25 basic/utilities/ping",
    methods=("ping",),
)
def ping_result_empty(message: Message) -> Iterator[Finding]:
    """A ping is answered by an empty result.

    Why: typed receivers refuse members that they do not know.

    Fix: answer `{}`.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy ping
          -> result {"pong": true}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy ping
          -> result {}
    """
    extra = [m for m in message.result if m != "_meta"]
    if message.rpc.kind == "result" and extra:
        text = f"the ping result has {one_line(', '.join(extra[:5]), 80)}"
        yield Finding(text, [evidence(message.place("result"), dumps(message.result), "{}")])


@rule(
    "LEG026",
    "url-elicitation-complete",
    "elicitation/complete correlation",
    on="push",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec="2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation",
    sep="1036",
    versions=("2025-11-25",),
    methods=("notifications/elicitation/complete",),
)
def url_elicitation_complete(message: Message) -> Iterator[Finding]:
    """notifications/elicitation/complete names an elicitationId that the server gave in this session.

    Why: the client cannot tell which dialog to close.

    Fix: send the id of the URL elicitation.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "pay"}
          -> sse
          -> notify notifications/elicitation/complete {}
          -> result {"content": []}

    Right::

        legacy initialize
          params {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"url": {}}}, "clientInfo": {"name": "c", "version": "1"}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/initialized
          -> 202
        legacy tools/call {"name": "pay"}
          -> sse
          -> ask 1 elicitation/create {"mode": "url", "elicitationId": "e1", "url": "https://example.com/pay", "message": "pay"}
          -> notify notifications/elicitation/complete {"elicitationId": "e1"}
          -> result {"content": []}
    """
    given = message.params.get("elicitationId")
    if not isinstance(given, str):
        text = "notifications/elicitation/complete has no elicitationId"
        yield Finding(text, [evidence(message.place("params", "elicitationId"), given, "a string")])
        return
    note = message.found
    if isinstance(note, Note) and note.what == "unknown-elicitation":
        text = f"the elicitationId {one_line(given, 60)} was not given in this session"
        place = message.place("params", "elicitationId")
        yield Finding(text, [evidence(place, mask(given), "an id given before")], "warning" if note.sure else "info")


@rule(
    "LEG027",
    "session-refused-without-404",
    "Unknown session not answered 404",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    streamable=True,
    always=True,
    needs=(LEGACY,),
    transport=("http",),
)
def session_refused_without_404(exchange: Exchange) -> Iterator[Finding]:
    """A server that does not know a session any more answers requests that name it with HTTP 404.

    Why: 404 is the sign by which a client begins anew with initialize. With another status it goes on with the dead id.

    Fix: answer 404 to an Mcp-Session-Id that is not known; 400 is for requests without one. Said once for a session.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> status 400
          -> error -32000 {"message": "Bad Request: No valid session ID provided"}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> 404
    """
    for note in _notes(exchange, "session-refused"):
        record: Refused = note.value
        times = f" ({record.count} times)" if record.count > 1 else ""
        yield Finding(
            f"a session that is not known is answered 404, not {exchange.status}: clients begin anew only then{times}",
            [Evidence("response.status", str(exchange.status), "404"), *_words(record.said)],
            related=(*_related(note), *record.related),
        )


def _words(said: Said | None) -> list[Evidence]:
    return [Evidence(said.where, said.quote)] if said is not None else []


@rule(
    "LEG028",
    "session-not-shared",
    "Session refused and served in turn",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    streamable=True,
    always=True,
    needs=(LEGACY,),
    transport=("http",),
)
def session_not_shared(exchange: Exchange) -> Iterator[Finding]:
    """A session that a server gave is known to every instance of it, until it is ended for all of them.

    Why: the client is told that its session is gone while it lives. It begins anew without need, or every other call fails.

    Fix: keep sessions where all instances find them, or route requests by Mcp-Session-Id. Said once for a session.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> 404 text/plain session not found
        legacy tools/list
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": []}
        legacy tools/list
          -> result {"tools": []}
    """
    for note in _notes(exchange, "session-in-turn"):
        record: Refused = note.value
        yield Finding(
            "requests of one session reach instances that do not share it"
            f" ({record.count} of {max(record.named, record.count + record.served)} refused)",
            [Evidence("response.status", str(exchange.status), "the session is served"), *_words(record.said)],
            related=(*_related(note), *record.related),
        )


@rule(
    "LEG029",
    "session-id-under-another-name",
    "Session id not given as Mcp-Session-Id",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{TRANSPORTS}#session-management",
    versions=SESSIONS,
    streamable=True,
    methods=("initialize",),
    needs=(LEGACY,),
    transport=("http",),
)
def session_id_under_another_name(exchange: Exchange) -> Iterator[Finding]:
    """A server that asks for a session gives its id in the header Mcp-Session-Id of the initialize response.

    Why: clients look for it there only. They have no id to send, and every request is refused.

    Fix: send `Mcp-Session-Id` with the initialize response; a cookie or a header of another name does not reach the client.

    Wrong::

        legacy initialize
          -> -header Mcp-Session-Id
          -> header X-Session-Id: 1868a90c-6a0e-4bd8-9cf6-7d8b1f0f8c55
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          version 2025-11-25
          -> 400 text/plain missing session id

    Right::

        legacy initialize
          -> -header Mcp-Session-Id
          -> header X-Session-Id: 1868a90c-6a0e-4bd8-9cf6-7d8b1f0f8c55
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          version 2025-11-25
          -> result {"tools": []}
    """
    for note in _notes(exchange, "session-id-elsewhere"):
        if note.expected:
            name = str(note.expected).rpartition(":")[2]
            text = f"the server asks for a session, whose id it gave as {one_line(name, 40)}, not as Mcp-Session-Id"
            shown = [Evidence(str(note.expected), mask(str(note.value)), "Mcp-Session-Id")]
        else:
            text = "the server asks for a session, and gave no Mcp-Session-Id"
            shown = [evidence(_SESSION_HEADER, None, "the id of the session")]
        yield Finding(text, shown, related=_related(note))


@rule(
    "LEG030",
    "initialize-refused-for-version",
    "initialize refused for its version",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{LIFECYCLE}#version-negotiation",
    methods=("initialize",),
    always=True,
    kinds=("mcp",),
    needs=(VERSION_REFUSED,),
)
def initialize_refused_for_version(exchange: Exchange) -> Iterator[Finding]:
    """A server that does not speak the version that initialize asks for answers with a version that it does speak.

    Why: an error ends the handshake, though both sides may well have a version in common; the client is told of none.

    Fix: answer initialize with the newest version that you support, and check MCP-Protocol-Version on later requests only.

    Wrong::

        legacy initialize
          -> error -32602 {"message": "Unsupported protocol version", "data": {"supportedVersions": ["2025-06-18"]}}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    told, request = exchange.facts.get(VERSION_REFUSED), exchange.request
    if told is None or request is None or exchange.endpoint.modern is not None:
        return
    wanted, header = request.params.get("protocolVersion"), exchange.request_fields.first("mcp-protocol-version")
    shown = [evidence(request.place("params", "protocolVersion"), wanted, "a result with a version that the server speaks")]
    by_header = header is not None and (header == wanted or "header" in told.said.text.lower() or header in told.said.text)
    if by_header:
        shown.append(evidence("request.header:MCP-Protocol-Version", header, "not judged before a version is negotiated"))
    asked = (
        one_line(str(wanted), 40) if not by_header or header == wanted else f"MCP-Protocol-Version {one_line(str(header), 40)}"
    )
    yield Finding(
        f"initialize was refused for its version ({asked}); the answer is a version that the server does speak"
        + (f", such as {told.listed[0]}" if told.listed else "")
        + told.repeat.times,
        [*shown, *_words(told.said)],
        related=(*([told.came_back] if told.came_back else ()), *told.repeat.related),
    )
