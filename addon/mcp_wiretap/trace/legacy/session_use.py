"""How legacy sessions are used: ids left out or kept after their end, headers, the handshake, event ids and resumption.

Facts stand in `exchange.facts[LEGACY]` (list of Note, judged by the LEG rules) and in the sessions' own facts. A resumption
(GET with Last-Event-ID) is linked to the broken exchange whose stream it goes on with.
Spec: 2025-11-25 basic/transports, basic/lifecycle.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact, SessionFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.memory.repeats import Repeat, Repeats
from mcp_wiretap.trace.model import Exchange, Message, Session, StreamItem
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.values import bounded, digest

NAME = "legacy"
MOST_IDS = 5_000  # SSE event ids of one session
HANDSHAKE_S = 2.0  # notifications/initialized may travel beside the first requests
BROADCAST_S = 0.2
CLUSTER_S = 0.95  # about a second, in which the servers of a cluster learn that a session ended
MOST_ASKED = 200  # requests of the server that are compared with those on other streams of the session
MOST_EARLY = 100  # requests before notifications/initialized that wait for it
MOST_STREAMS = 20  # HTTP+SSE streams of one origin
MOST_POSTS = 50  # connections on which the messages of one of them came
COUNTS = 16  # session ids that are no further apart are counted up
UNSUBSCRIBED_S = 2.0  # updates may be on their way while an unsubscribe is processed
_LONGEST_URI = 8_000  # characters
_CLIENT_NEEDS = {"roots/list": "roots", "sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
_SERVER_NEEDS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "logging": "logging"}
_LISTS = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
_BROADCAST = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/elicitation/complete",
    }
)


@dataclass(slots=True)
class Note:
    """One thing that was seen, by a word that a rule knows."""

    what: str
    value: Any = None
    expected: Any = None
    flow: str = ""
    sure: bool = True
    repeat: Repeat | None = None  # of what is told once, on the first exchange that had it


@dataclass(slots=True)
class _EventId:
    exchange: Exchange
    stream: str  # flow of the exchange whose stream it belongs to; a resumption goes on with the same
    order: int


@dataclass(slots=True)
class _Sessionless:
    """What initialize settled with a server that gives no session id."""

    revision: str
    flow: str
    at: float
    connection: str
    program: str | None  # User-Agent
    clients: set[tuple[str, str] | None] = field(default_factory=set)


@dataclass(slots=True)
class _Asked:
    """A request of the server, as it is compared with one on another stream."""

    method: str
    params: bytes  # their digest
    exchange: Exchange
    event_id: str | None


LEGACY: ExchangeFact[list[Note]] = ExchangeFact("legacy", "what was seen of the use of a legacy session")
RETRY_MS: ExchangeFact[int] = ExchangeFact("retry-ms", "the newest retry field on this stream, in milliseconds")
HAS_EVENT_ID: ExchangeFact[bool] = ExchangeFact("has-event-id", "an event of this stream has an id")
RESUMED_BY: ExchangeFact[str] = ExchangeFact("resumed-by", "flow of the GET that came back for this stream")
RESUMES: ExchangeFact[Exchange] = ExchangeFact("resumes", "the exchange whose stream this GET goes on with")
RESUMED_STREAM: ExchangeFact[str] = ExchangeFact("stream", "flow of the exchange that the resumed stream began with")
DEAD_SESSION: ExchangeFact[bool] = ExchangeFact("dead-session", "the session that it names had ended")
SESSIONLESS_CLIENTS: EndpointFact[set[tuple[str, str] | None]] = EndpointFact("_sessionless-clients", "clients of it")
SESSION_IDS: EndpointFact[deque[str]] = EndpointFact("_session-ids", "the last session ids that the server gave")
NEGOTIATED: EndpointFact[set[str]] = EndpointFact("_negotiated", "revisions that initialize agreed on")
HANDSHAKE_NOTED: SessionFact[bool] = SessionFact("_handshake-noted", "a lack of notifications/initialized was told, or is unsure")
LAST_ID: SessionFact[Any] = SessionFact("_last-id", "id of the client's newest request")
POSTS: SessionFact[set[str]] = SessionFact("_posts", "connections of the messages of an HTTP+SSE session")
AUTH: SessionFact[str] = SessionFact("_auth", "the Authorization of its initialize")
GETS: SessionFact[list[Exchange]] = SessionFact("_gets", "the last GETs of this session")
VERSION_NOTED: SessionFact[bool] = SessionFact("_version-noted", "an unknown version was told")
ANSWERED: SessionFact[float] = SessionFact("_answered", "when initialize was answered")
EARLY: SessionFact[bool] = SessionFact("_early", "a request came before notifications/initialized")
EVENT_IDS: SessionFact[OrderedDict[str, _EventId]] = SessionFact("_event-ids", "SSE event ids, with their streams")
EVENT_ORDER: SessionFact[int] = SessionFact("_event-order", "how many event ids were seen")
EVENTS_LOST: SessionFact[bool] = SessionFact("_events-lost", "a stream of this session was not read whole")
RETRY_MS_OF_SESSION: SessionFact[int] = SessionFact("_retry-ms", "the newest retry field in this session, in milliseconds")
DEAD_POSTS: SessionFact[int] = SessionFact("_dead-posts", "requests after the end of this session")
TOLD_404: SessionFact[bool] = SessionFact("_told-404", "a request after DELETE was answered 404")
ORPHANS: SessionFact[set[str]] = SessionFact("_orphans", "methods of server requests that belong to no call")
ASKED_ON: SessionFact[OrderedDict[Any, _Asked]] = SessionFact("_asked-on", "requests of the server, with their streams")
BROADCASTS: SessionFact[OrderedDict[str, tuple[Any, Exchange, float]]] = SessionFact("_broadcast", "notifications of one kind")
SUBSCRIBED: SessionFact[OrderedDict[str, tuple[float, float]]] = SessionFact("_subscribed", "resources, since and until when")
SUBSCRIPTIONS_LOST: SessionFact[bool] = SessionFact("_subscriptions-lost", "some of these are not kept")
ELICITATIONS: SessionFact[OrderedDict[str, None]] = SessionFact("_elicitations", "ids of URL elicitations")
HIDDEN_SESSION: SessionFact[Exchange | None] = SessionFact("_hidden", "the initialize whose page may not read the id")
TOLD_MISSING: SessionFact[bool] = SessionFact("_told-missing", "a request that lacks the id of this session was told")
VERSION_DIFFERS: ExchangeFact[Note] = ExchangeFact("version-differs", "MCP-Protocol-Version is not what was negotiated")


class Usage(Tracker):
    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._connections: Recent[tuple[str, str], Session] = Recent(lambda: self.limits.state)
        self._newest: Recent[tuple[str, str], Session] = Recent(lambda: self.limits.state)  # by endpoint and Authorization
        self._sessionless: Recent[tuple[str, str], _Sessionless] = Recent(lambda: self.limits.state)  # likewise
        # initialize in flight, by endpoint and connection
        self._opening: Recent[tuple[str, str], Exchange] = Recent(lambda: self.limits.state)
        self._early: OrderedDict[str, tuple[Session, Exchange]] = OrderedDict()  # by flow
        self._announced: Recent[str, list[Exchange]] = Recent(lambda: self.limits.state)  # HTTP+SSE streams, by origin
        self._differing: Repeats[tuple[str, str, str]] = Repeats(memory.held, "version differs")
        self._closed_early: Recent[str, Exchange] = Recent(MOST_EARLY)  # streams that ended before their response, by flow
        self._now = 0.0

    # Requests

    def requested(self, exchange: Exchange) -> None:
        self._now = exchange.requested
        if exchange.kind != "mcp" or exchange.claim.modern or exchange.claim.kind == "unknown-body":
            if exchange.session is not None and exchange.claim.kind == "unknown-body":
                exchange.session.facts[HANDSHAKE_NOTED] = True  # it may have been notifications/initialized
            return
        session, request = exchange.session, exchange.request
        if request is not None and request.method == "initialize":
            self._opening.put((exchange.endpoint.url, exchange.connection), exchange)
        if session is None:
            self._without_session(exchange)
            return
        if request is not None and isinstance(request.rpc.id, int):
            session.facts[LAST_ID] = request.rpc.id
        if session.transport == "http+sse":
            posts: set[str] = session.facts.setdefault(POSTS, set())
            if len(posts) < MOST_POSTS:
                posts.add(exchange.connection)
            if request is not None and request.method not in ("initialize", "ping"):
                self._handshake(exchange, session)
            return
        self._version(exchange, session)
        if not session.live:
            self._after_end(exchange, session)
        if exchange.http_method == "GET":
            self._resumes(exchange, session)
            gets: list[Exchange] = session.facts.setdefault(GETS, [])
            gets.append(exchange)
            del gets[:-20]
        if request is not None and request.method not in ("initialize", "ping"):
            self._handshake(exchange, session)

    def _without_session(self, exchange: Exchange) -> None:
        """Catalogue LEG001: the connection had a session, this request does not name it."""
        if self._sessionless:
            self._version_without_session(exchange)
        if exchange.http_method == "GET":
            self._listens_without_session(exchange)
        first = exchange.sent[0] if exchange.sent else None
        if exchange.http_method != "POST" or first is None or first.rpc.kind == "invalid":
            return
        if self._announced:
            self._posts_elsewhere(exchange)
        if first.method == "initialize":
            return
        url = exchange.endpoint.url
        opening = self._opening.get((url, exchange.connection)) if self._opening else None
        if opening is not None and first.rpc.kind == "request" and first.method != "ping":
            add_note(exchange, Note("before-answer", first.method, None, opening.flow))
        known = self._connections.get((url, exchange.connection)) or self._continued(exchange, first)
        if known is None or not known.live or exchange.auth != known.facts.get(AUTH) or known.revision == "2024-11-05":
            return
        if isinstance(first.rpc.id, int) and first.rpc.kind == "request":
            known.facts[LAST_ID] = first.rpc.id
        self._session_missing(exchange, known)

    def _session_missing(self, exchange: Exchange, known: Session) -> None:
        others = sum(1 for s in self.memory.sessions if s.endpoint is exchange.endpoint and s.live)
        known.facts[TOLD_MISSING] = True
        add_note(exchange, Note("session-missing", is_hidden(known), known.id, known.initialize_flow, others <= 1))

    def _listens_without_session(self, exchange: Exchange) -> None:
        """A GET for the event stream on the connection of a session, without its id; a browser's GET asks for other things."""
        known = self._connections.get((exchange.endpoint.url, exchange.connection))
        if known is None or not known.live or known.transport != "streamable" or exchange.auth != known.facts.get(AUTH):
            return
        if "text/event-stream" in (exchange.request_fields.first("accept") or "").lower() and known.revision != "2024-11-05":
            self._session_missing(exchange, known)

    def _continued(self, exchange: Exchange, first: Message) -> Session | None:
        """The session whose count of ids a request goes on with, or to whose server an answer goes, on another connection."""
        newest = self._newest.get((exchange.endpoint.url, exchange.auth))
        if newest is None:
            return None
        if first.rpc.kind in ("result", "error"):
            return newest if id_key(first.rpc.id) in newest.from_server else None
        last, given = newest.facts.get(LAST_ID), first.rpc.id
        return newest if isinstance(last, int) and isinstance(given, int) and given == last + 1 else None

    def _version_without_session(self, exchange: Exchange) -> None:
        """Catalogue LEG008, where the server gave no session id: the client is told by its connection, or its program."""
        known = self._sessionless.get((exchange.endpoint.url, exchange.auth))
        if known is None or exchange.started <= known.at:
            return
        request = exchange.request
        if request is not None and request.method == "initialize":
            return
        fields = exchange.request_fields
        header = (fields.first("mcp-protocol-version") or "").strip()
        same_program = fields.first("user-agent") == known.program is not None
        if exchange.connection != known.connection and not same_program:
            return
        if header:
            # A client of another revision whose handshake was not recorded has another connection, if not another program.
            if header != known.revision and len(known.clients) == 1:
                self._version_differs(exchange, (exchange.endpoint.url, exchange.auth, header[:100]), known.revision, known.flow)
        elif known.revision in ("2025-06-18", "2025-11-25"):
            sure = len(known.clients) == 1 and exchange.connection == known.connection
            add_note(exchange, Note("version-missing", None, known.revision, known.flow, sure))

    def _posts_elsewhere(self, exchange: Exchange) -> None:
        """Catalogue LEG023: a message of an HTTP+SSE conversation goes to another address than the one announced."""
        if exchange.request_fields.has("mcp-session-id"):
            return
        for stream in self._announced.get(_origin(exchange.url)) or ():
            session = stream.session
            if stream.over or session is None or stream.auth != exchange.auth or exchange.endpoint.initialize_accepted:
                continue
            path, _, query = session.id.partition("?")
            lost = exchange.url == path and not exchange.query
            moved = bool(query) and exchange.query == query
            # Who accepts a stream for its answer speaks Streamable HTTP to another server of this origin.
            streamable = "text/event-stream" in (exchange.request_fields.first("accept") or "").lower()
            near = not streamable and exchange.connection in (stream.connection, *session.facts.get(POSTS, ()))
            if lost or moved or near:
                add_note(exchange, Note("posted-elsewhere", exchange.url, path, stream.flow))
                return

    def _version(self, exchange: Exchange, session: Session) -> None:
        if session.initialize_flow in ("", exchange.flow) or session.revision is None:
            return
        if exchange.request is not None and exchange.request.method == "initialize":
            return
        if session.revision not in rev.KNOWN and not session.facts.get(VERSION_NOTED):
            session.facts[VERSION_NOTED] = True
            add_note(exchange, Note("unknown-version", session.revision, None, session.initialize_flow))
        header = exchange.request_fields.first("mcp-protocol-version")
        if header is None or not header.strip():
            if session.revision in ("2025-06-18", "2025-11-25") and exchange.started > session.facts.get(ANSWERED, 0.0):
                add_note(exchange, Note("version-missing", None, session.revision, session.initialize_flow))
        elif header.strip() != session.revision:
            key = (exchange.endpoint.url, session.id, header.strip()[:100])
            self._version_differs(exchange, key, session.revision, session.initialize_flow)

    def _version_differs(self, exchange: Exchange, key: tuple[str, str, str], negotiated: str, flow: str) -> None:
        """Catalogue LEG009: told on one request of a session, and the others are counted there."""
        repeat = self._differing.add(key, exchange)
        note = exchange.facts[VERSION_DIFFERS] = Note("version-differs", key[2], negotiated, flow, repeat=repeat)
        if repeat.first is exchange:
            add_note(exchange, note)
        else:
            self.memory.rejudge(repeat.first)

    def _version_refused(self, exchange: Exchange, note: Note) -> None:
        """The first request that was refused bears the finding, rather than one before it that was let pass."""
        repeat = note.repeat
        if repeat is None or repeat.first is exchange or (repeat.first.status or 0) >= 400:
            return
        before = repeat.first
        self._differing.move(repeat, exchange)
        add_note(exchange, note)
        drop_notes(before, note.what)
        self.memory.rejudge(before)
        self._differing.let_go_of(before)

    def _after_end(self, exchange: Exchange, session: Session) -> None:
        if session.ended_at is None or exchange.started <= session.ended_at:
            return  # it was on its way already
        request = exchange.request
        if request is not None and request.method == "initialize":
            add_note(exchange, Note("dead-initialize", session.id, None, session.deleted_flow))
        elif exchange.http_method == "POST":
            exchange.facts[DEAD_SESSION] = True

    def _handshake(self, exchange: Exchange, session: Session) -> None:
        if session.initialized_at is None and session.initialize_flow and not session.facts.get(HANDSHAKE_NOTED):
            since = exchange.started - session.facts.get(ANSWERED, exchange.started)
            if since > HANDSHAKE_S:
                session.facts[HANDSHAKE_NOTED] = True
                add_note(exchange, Note("not-initialized", f"{since:.1f} s", None, session.initialize_flow))
                if self._early:
                    self._settle_early(session)
            elif not session.facts.get(EARLY):  # notifications/initialized may be on its way
                session.facts[EARLY] = True
                self._early[exchange.flow] = session, exchange
                self.memory.held.keep(exchange, NAME)
                if len(self._early) > MOST_EARLY:
                    self.memory.held.free(self._early.popitem(last=False)[1][1], NAME)

    def _settle_early(self, session: Session) -> None:
        """notifications/initialized came, or its lack was told of already: what waited for it is let go."""
        for flow, (of, exchange) in list(self._early.items()):
            if of is session:
                del self._early[flow]
                self.memory.held.free(exchange, NAME)

    def finished(self) -> Iterable[Exchange]:
        """Requests that were sent although notifications/initialized never came."""
        told = []
        for session, exchange in self._early.values():
            if session.initialized_at is None and not session.facts.get(HANDSHAKE_NOTED) and not exchange.released:
                since = exchange.started - session.facts.get(ANSWERED, exchange.started)
                went_on = self._now - exchange.started > 1
                add_note(exchange, Note("not-initialized", f"{since:.1f} s", None, session.initialize_flow, went_on))
                told.append(exchange)
        return told

    def _resumes(self, exchange: Exchange, session: Session) -> None:
        last = exchange.request_fields.first("last-event-id")
        if last is None:
            return
        ids: OrderedDict[str, _EventId] = session.facts.get(EVENT_IDS, OrderedDict())
        known = ids.get(last)
        if known is None:
            sure = _all_heard(session) and len(ids) < MOST_IDS
            add_note(exchange, Note("unknown-event-id", last, None, "", sure))
            return
        broken = known.exchange
        retry = broken.facts.get(RETRY_MS) or session.facts.get(RETRY_MS_OF_SESSION)
        if broken.ended is not None and retry and exchange.started < broken.ended + 0.9 * retry / 1000:
            waited = (exchange.started - broken.ended) * 1000
            add_note(exchange, Note("retry-ignored", f"{waited:.0f} ms", f"{retry} ms", broken.flow))
        exchange.facts[RESUMES], exchange.facts[RESUMED_STREAM] = broken, known.stream
        if self._closed_early.pop(broken.flow) is not None:
            broken.facts[RESUMED_BY] = exchange.flow
            self.memory.rejudge(broken)
            self.memory.held.free(broken, NAME)
        if broken.http_method == "POST" or broken.conversation is not None:
            origin = broken.facts.get(RESUMES, broken) if broken.conversation is None else broken
            if self.memory.conversations.link(origin, exchange, "resumption", "exact") is not None:
                self.memory.touched(origin)

    # Messages

    def said(self, message: Message) -> None:
        exchange = message.exchange
        session = exchange.session
        self._now = message.at
        if message.request is not None and message.request.method == "initialize":
            self._opening.pop((message.request.exchange.endpoint.url, message.request.exchange.connection))
            if message.rpc.kind == "result":
                self._initialize_answered(message)
        if session is None or exchange.claim.modern:
            return
        if message.party == "client":
            if message.method == "notifications/initialized" and session.initialized_at is None:
                session.initialized_at = message.at
                if self._early:
                    self._settle_early(session)
            elif message.method == "notifications/roots/list_changed":
                self._roots_changed(message, session)
            elif message.rpc.kind == "request":
                self._client_method(message, session)
                if message.method in ("resources/subscribe", "resources/unsubscribe"):
                    self._subscribes(message, session)
        elif message.rpc.kind == "request":
            self._server_request(message, session)
        elif message.rpc.kind == "notification":
            self._notification(message, session)
        elif message.error_code == rev.URL_ELICITATION_REQUIRED:
            error = message.rpc.error
            data = error.get("data") if isinstance(error, dict) else None
            asked = data.get("elicitations") if isinstance(data, dict) else None
            for item in asked[:50] if isinstance(asked, list) else ():
                if isinstance(item, dict) and isinstance(item.get("elicitationId"), str):
                    _remember(session, ELICITATIONS, item["elicitationId"])

    def passed(self, exchange: Exchange, side: Exchange) -> None:
        """The client keeps to the session id and the revision that it got. Of capabilities that differ nothing is held against
        either."""
        request, answer = exchange.request, side.answer
        if request is None or request.method != "initialize" or exchange.claim.modern:
            return
        if _session_id(exchange) != _session_id(side):
            self._connections.pop((exchange.endpoint.url, exchange.connection))
            self._newest.pop((exchange.endpoint.url, exchange.auth))
        given = answer.result if answer is not None else {}
        session, version = exchange.session, given.get("protocolVersion")
        if session is not None:
            if bounded(given.get("capabilities")) != session.server_capabilities:
                session.server_capabilities = None
            return
        known = self._sessionless.get((exchange.endpoint.url, exchange.auth))
        if known is not None and known.flow == exchange.flow:
            known.revision = version[:100] if isinstance(version, str) else ""
        self.memory.sessions.passed(exchange, version if isinstance(version, str) else "")

    def _initialize_answered(self, message: Message) -> None:
        request = message.request
        exchange = request.exchange if request is not None else message.exchange
        if exchange.claim.modern or request is None:
            return
        wanted, given = request.params.get("protocolVersion"), message.result.get("protocolVersion")
        negotiated: set[str] = exchange.endpoint.facts.setdefault(NEGOTIATED, set())
        if isinstance(given, str):
            if isinstance(wanted, str) and wanted != given and wanted in negotiated:
                add_note(exchange, Note("version-not-echoed", given, wanted))
            if len(negotiated) < 20:
                negotiated.add(given)
        session = exchange.session
        if session is not None:
            session.facts[ANSWERED] = message.at
            session.facts[AUTH] = exchange.auth
            session.facts.setdefault(LAST_ID, request.rpc.id)
            key = (exchange.endpoint.url, exchange.connection)
            self._connections.put(key, session)
            if session.transport == "streamable":
                self._newest.put((exchange.endpoint.url, exchange.auth), session)
                self._counts(exchange, session.id)
        elif message.exchange is exchange and isinstance(given, str):
            self._no_session(exchange, given, message.at)

    @staticmethod
    def _counts(exchange: Exchange, session_id: str) -> None:
        """Catalogue LEG003: an id that is one of the last ones, counted up."""
        if session_id.startswith("eyJ") and session_id.count(".") == 2:
            return  # a JWT
        given: deque[str] = exchange.endpoint.facts.setdefault(SESSION_IDS, deque(maxlen=5))
        before = next((earlier for earlier in given if _counted_up(earlier, session_id)), None)
        if before is not None:
            add_note(exchange, Note("session-id-counts", session_id, before))
        given.append(session_id[:200])

    def _no_session(self, exchange: Exchange, revision: str, at: float) -> None:
        key = (exchange.endpoint.url, exchange.auth)
        before = self._sessionless.get(key)
        fields = exchange.request_fields
        known = _Sessionless(revision[:100], exchange.flow, at, exchange.connection, fields.first("user-agent"))
        known.clients = exchange.endpoint.facts.setdefault(SESSIONLESS_CLIENTS, set())
        if len(known.clients) < 20:
            known.clients.add((exchange.auth, str(exchange.client_info)))
        if before is not None and before.revision != known.revision:
            known.clients.add(("", "another revision"))
        self._sessionless.put(key, known)

    @staticmethod
    def _roots_changed(message: Message, session: Session) -> None:
        declared = session.client_capabilities
        roots = declared.get("roots") if declared is not None else None
        if declared is not None and not (isinstance(roots, dict) and roots.get("listChanged") is True):
            add_note(message.exchange, Note("own-capability", message.method, "roots.listChanged", session.initialize_flow))

    @staticmethod
    def _client_method(message: Message, session: Session) -> None:
        method, advertised = message.method or "", session.server_capabilities
        if advertised is None or message.method == "ping":
            return
        group = method.partition("/")[0]
        needed = "completions" if group == "completion" and session.revision != "2024-11-05" else _SERVER_NEEDS.get(group)
        if needed is not None and needed not in advertised and method != "resources/subscribe":
            add_note(message.exchange, Note("server-capability", method, needed, session.initialize_flow))

    @staticmethod
    def _subscribes(message: Message, session: Session) -> None:
        """`session.facts[SUBSCRIBED]`: URI -> when it was subscribed to, and when no longer. Oldest first, bounded."""
        uri = message.params.get("uri")
        if not isinstance(uri, str) or len(uri) > _LONGEST_URI:
            return
        table: OrderedDict[str, tuple[float, float]] = session.facts.setdefault(SUBSCRIBED, OrderedDict())
        since, _ = table.pop(uri, (message.at, 0.0))
        table[uri] = (since, float("inf") if message.method == "resources/subscribe" else message.at)
        if len(table) > MOST_IDS:
            table.popitem(last=False)
            session.facts[SUBSCRIPTIONS_LOST] = True

    def _server_request(self, message: Message, session: Session) -> None:
        exchange, method = message.exchange, message.method or ""
        if method == "ping":
            return
        needed, declared = _CLIENT_NEEDS.get(method), session.client_capabilities
        if needed is not None and declared is not None and needed not in declared:
            message.found = Note("client-capability", method, needed, session.initialize_flow)
        if session.initialized_at is None and session.initialize_flow:
            add_note(exchange, Note("early-server-request", message.where, None, session.initialize_flow))
        if session.transport == "http+sse":
            return
        if session.id:
            self._asked(message, session)
        request = exchange.request
        answered = request is not None and request.answer is not None and request.answer.exchange is exchange
        orphan = answered if exchange.http_method == "POST" else RESUMES not in exchange.facts
        if orphan and method in _CLIENT_NEEDS and "io.modelcontextprotocol/related-task" not in message.meta:
            seen: set[str] = session.facts.setdefault(ORPHANS, set())
            if method not in seen:
                seen.add(method)
                add_note(exchange, Note("orphan-request", method, "after" if answered else None))
        if method == "elicitation/create" and isinstance(message.params.get("elicitationId"), str):
            _remember(session, ELICITATIONS, message.params["elicitationId"])

    @staticmethod
    def _asked(message: Message, session: Session) -> None:
        """Catalogue LEG015: the same request on two open streams, in events of their own."""
        exchange, method, key = message.exchange, message.method or "", id_key(message.rpc.id)
        items = exchange.stream.items if exchange.stream is not None else []
        asked: OrderedDict[Any, _Asked] = session.facts.setdefault(ASKED_ON, OrderedDict())
        now = _Asked(method, digest(message.rpc.params), exchange, items[-1].event.id if items else None)
        before = asked.pop(key, None)
        asked[key] = now
        if len(asked) > MOST_ASKED:
            asked.popitem(last=False)
        if before is None or before.exchange is exchange or not _together(before.exchange, exchange):
            return
        if (before.method, before.params) == (method, now.params) and (now.event_id is None or now.event_id != before.event_id):
            add_note(exchange, Note("asked-twice", message.where, None, before.exchange.flow))

    @staticmethod
    def _notification(message: Message, session: Session) -> None:
        method = message.method or ""
        if method == "notifications/elicitation/complete":
            wanted = message.params.get("elicitationId")
            known = session.facts.get(ELICITATIONS, ())
            if isinstance(wanted, str) and wanted not in known:
                message.found = Note("unknown-elicitation", wanted, None, "", _all_heard(session))
        told = session.server_capabilities
        if method in _LISTS and told is not None and session.initialize_flow:
            group = told.get(_LISTS[method])
            if not (isinstance(group, dict) and group.get("listChanged") is True):
                message.found = Note("server-list", method, f"{_LISTS[method]}.listChanged", session.initialize_flow)
        if session.id and method in _BROADCAST and session.transport == "streamable":
            recent: OrderedDict[str, tuple[Any, Exchange, float]] = session.facts.setdefault(BROADCASTS, OrderedDict())
            before = recent.get(method)
            recent[method] = (message.rpc.params, message.exchange, message.at)
            if before is None or before[1] is message.exchange or before[1].over:
                return
            if before[0] == message.rpc.params and message.at - before[2] < BROADCAST_S:
                message.found = Note("broadcast", method, None, before[1].flow)

    # Events

    def event(self, item: StreamItem) -> None:
        exchange, event = item.exchange, item.event
        session = exchange.session
        if exchange.claim.modern:
            return
        if event.retry is not None:
            exchange.facts[RETRY_MS] = event.retry
        if event.id:
            exchange.facts[HAS_EVENT_ID] = True
        if session is None:
            return
        if event.event == "endpoint" and event.index == 0 and session.transport == "http+sse":
            origin = _origin(exchange.url)
            self._announced.put(origin, [*(self._announced.get(origin) or ()), exchange][-MOST_STREAMS:])
        if event.retry is not None:
            session.facts[RETRY_MS_OF_SESSION] = event.retry
        if event.id:
            ids: OrderedDict[str, _EventId] = session.facts.setdefault(EVENT_IDS, OrderedDict())
            known = ids.get(event.id)
            if known is None:
                order = session.facts[EVENT_ORDER] = session.facts.get(EVENT_ORDER, 0) + 1
                ids[event.id] = _EventId(exchange, exchange.facts.get(RESUMED_STREAM, exchange.flow), order)
                if len(ids) > MOST_IDS:
                    ids.popitem(last=False)
            elif session.transport == "streamable" and session.id:
                self._sent_again(item, known, ids)

    @staticmethod
    def _sent_again(item: StreamItem, known: _EventId, ids: OrderedDict[str, _EventId]) -> None:
        """Catalogue LEG010: an event id for the second time: replayed, or not unique."""
        exchange = item.exchange
        if known.exchange.started == exchange.started and known.exchange is not exchange:
            return  # one stream, recorded twice
        what, resumed = "event-id-twice", exchange.request_fields.first("last-event-id")
        if resumed is not None:
            after = ids.get(resumed)
            if after is None:
                return  # what was resumed is not known
            if known.stream != after.stream:
                what = "replay-of-another"
            elif known.order <= after.order:
                what = "replay-of-earlier"
            else:
                return
        if not any(note.what == what for note in exchange.facts.get(LEGACY, ())):
            add_note(exchange, Note(what, item.event.index, item.event.id, known.exchange.flow))

    # Ends

    def ended(self, exchange: Exchange) -> None:
        session = exchange.session
        self._now = exchange.ended or self._now
        if (differs := exchange.facts.get(VERSION_DIFFERS)) is not None and (exchange.status or 0) >= 400:
            self._version_refused(exchange, differs)
        if self._opening and exchange.method == "initialize" and (session is None or session.transport != "http+sse"):
            self._opening.pop((exchange.endpoint.url, exchange.connection))
        if session is None or exchange.claim.modern or exchange.kind != "mcp":
            return
        if exchange.unchecked and exchange.stream is not None:
            session.facts[EVENTS_LOST] = True
        if exchange.stream is not None and exchange.stream.retry is not None:  # a retry field needs no event
            exchange.facts[RETRY_MS] = session.facts[RETRY_MS_OF_SESSION] = exchange.stream.retry
        if exchange.stream is not None and exchange.http_method == "POST" and HAS_EVENT_ID in exchange.facts:
            self._closed(exchange)
        if not exchange.facts.get(DEAD_SESSION) or exchange.status is None:
            return
        if exchange.status == 404 and session.ended_why in ("404", "DELETE"):
            if session.ended_why == "DELETE" and not session.facts.get(TOLD_404):
                session.facts[TOLD_404] = True  # the first after a DELETE may have been on its way
                return
            count = session.facts[DEAD_POSTS] = session.facts.get(DEAD_POSTS, 0) + 1
            add_note(exchange, Note("dead-session-used", count, None, session.deleted_flow))
        elif 200 <= exchange.status < 300:
            if session.ended_why == "404":
                session.ended_at, session.ended_why = None, ""  # the 404 had another cause, or came from another instance
                add_note(exchange, Note("session-lives", exchange.status))
            else:
                late = exchange.started - (session.ended_at or 0.0) > CLUSTER_S
                add_note(exchange, Note("dead-session-served", exchange.status, 404, session.deleted_flow, late))
        elif exchange.status == 400:
            add_note(exchange, Note("dead-session-400", 400, 404, session.deleted_flow))

    def _closed(self, exchange: Exchange) -> None:
        """A stream ended before its response: whether the client comes back with its Last-Event-ID is yet to be seen."""
        request = exchange.request
        if request is None or request.answer is not None or exchange.released:
            return
        self.memory.held.keep(exchange, NAME)
        for forgotten in self._closed_early.put(exchange.flow, exchange):
            self.memory.held.free(forgotten, NAME)


def is_hidden(session: Session) -> bool:
    """Whether the page that got the session id may not read it (as `trace.refusals.cors` finds)."""
    return session.facts.get(HIDDEN_SESSION) is not None


def _session_id(exchange: Exchange) -> str | None:
    return exchange.response_fields.first("mcp-session-id") if exchange.response_fields is not None else None


def _together(earlier: Exchange, exchange: Exchange) -> bool:
    """Whether two streams were open at once; where a recording has no times of their events, at any time at all."""
    if not earlier.over:
        return True
    if all(e.stream is None or e.stream.timed for e in (earlier, exchange)):
        return False
    return (earlier.ended or 0.0) > (exchange.responded or exchange.requested)


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


_COUNTER = re.compile(r"[0-9]+\Z")


def _counted_up(one: str, other: str) -> bool:
    """Whether two ids are alike up to a number at their end, and these numbers are near each other."""
    a, b = _COUNTER.search(one), _COUNTER.search(other)
    if a is None or b is None or one == other or one[: a.start()] != other[: b.start()]:
        return False
    return abs(int(a.group()) - int(b.group())) <= COUNTS


def was_subscribed(session: Session, uri: str, at: float) -> bool:
    """Whether a session had subscribed to a resource, or to one that it is part of; True where that is not known."""
    if not session.initialize_flow or session.facts.get(SUBSCRIPTIONS_LOST) or len(uri) > _LONGEST_URI:
        return True
    table: OrderedDict[str, tuple[float, float]] = session.facts.get(SUBSCRIBED, OrderedDict())
    return any(
        since <= at <= until + UNSUBSCRIBED_S
        and (uri == known or (uri.startswith(known) and uri[len(known.rstrip("/")) :][:1] in ("/", "?", "#", ":")))
        for known, (since, until) in table.items()
    )


def _all_heard(session: Session) -> bool:
    """Whether all that the server said in the session was seen. A GET stream from which nothing came may turn out to be one
    whose body was not recorded."""
    if not session.initialize_flow or session.facts.get(EVENTS_LOST):
        return False
    gets: list[Exchange] = session.facts.get(GETS, [])
    return all(get.over or (get.stream is not None and get.stream.count) for get in gets)


def add_note(exchange: Exchange, note: Note) -> None:
    """Write a note on an exchange, for the rules of the legacy transports."""
    notes: list[Note] = exchange.facts.setdefault(LEGACY, [])
    if len(notes) < 50:
        notes.append(note)


def drop_notes(exchange: Exchange, *what: str) -> None:
    """Take notes back that what came later has shown to be wrong."""
    if (notes := exchange.facts.get(LEGACY)) is not None:
        notes[:] = [note for note in notes if note.what not in what]


def _remember(session: Session, what: SessionFact[OrderedDict[str, None]], value: str) -> None:
    known: OrderedDict[str, None] = session.facts.setdefault(what, OrderedDict())
    known[value] = None
    if len(known) > 1_000:
        known.popitem(last=False)
