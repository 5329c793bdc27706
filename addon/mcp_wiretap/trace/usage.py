"""How legacy sessions are used: ids left out or kept after their end, headers, the handshake, event ids and resumption.

Facts stand in `exchange.facts["legacy"]` (list of Note, judged by the LEG rules) and in the sessions' own facts. A resumption
(GET with Last-Event-ID) is linked to the broken exchange whose stream it goes on with.
Spec: 2025-11-25 basic/transports, basic/lifecycle.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.sessions import Session
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev

MOST_IDS = 5_000  # SSE event ids of one session
HANDSHAKE_S = 2.0  # notifications/initialized may travel beside the first requests
BROADCAST_S = 0.2
UNSUBSCRIBED_S = 2.0  # updates may be on their way while an unsubscribe is processed
_LONGEST_URI = 8_000  # characters
_CLIENT_NEEDS = {"roots/list": "roots", "sampling/createMessage": "sampling", "elicitation/create": "elicitation"}
_SERVER_NEEDS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "logging": "logging"}
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


@dataclass(slots=True)
class _EventId:
    exchange: Exchange
    closed: float | None = None


class Usage(Tracker):
    name = "legacy"

    def __init__(self, inspector: Any) -> None:
        super().__init__(inspector)
        self._connections: OrderedDict[tuple[str, str], Session] = OrderedDict()

    # Requests

    def requested(self, exchange: Exchange) -> None:
        if exchange.kind != "mcp" or exchange.claim.modern or exchange.claim.kind == "unknown-body":
            return
        session, request = exchange.session, exchange.request
        if session is None:
            self._without_session(exchange)
            return
        if session.transport == "http+sse":
            return
        self._version(exchange, session)
        if not session.live:
            self._after_end(exchange, session)
        if exchange.http_method == "GET":
            self._resumes(exchange, session)
            gets: list[Exchange] = session.facts.setdefault("gets", [])
            gets.append(exchange)
            del gets[:-20]
        if request is not None and request.method not in ("initialize", "ping"):
            self._handshake(exchange, session)

    def _without_session(self, exchange: Exchange) -> None:
        """Catalogue LEG001: the connection had a session, this request does not name it."""
        known = self._connections.get((exchange.endpoint.url, exchange.connection))
        if known is None or not known.live or exchange.http_method != "POST":
            return
        first = exchange.sent[0] if exchange.sent else None
        if first is None or first.method == "initialize" or first.rpc.kind == "invalid":
            return
        if exchange.auth != known.facts.get("auth"):
            return
        others = sum(1 for s in self.inspector.sessions if s.endpoint is exchange.endpoint and s.live)
        _note(exchange, Note("session-missing", None, known.id, known.initialize_flow, others <= 1))

    @staticmethod
    def _version(exchange: Exchange, session: Session) -> None:
        if session.initialize_flow in ("", exchange.flow) or session.revision is None:
            return
        if exchange.request is not None and exchange.request.method == "initialize":
            return
        header = exchange.request_fields.first("mcp-protocol-version")
        if header is None or not header.strip():
            if session.revision in ("2025-06-18", "2025-11-25") and exchange.started > session.facts.get("answered", 0.0):
                _note(exchange, Note("version-missing", None, session.revision, session.initialize_flow))
        elif header.strip() != session.revision:
            _note(exchange, Note("version-differs", header.strip(), session.revision, session.initialize_flow))

    def _after_end(self, exchange: Exchange, session: Session) -> None:
        if session.ended_at is None or exchange.started <= session.ended_at:
            return  # it was on its way already
        request = exchange.request
        if request is not None and request.method == "initialize":
            _note(exchange, Note("dead-initialize", session.id, None, session.deleted_flow))
        elif exchange.http_method == "POST":
            exchange.facts["dead-session"] = True

    @staticmethod
    def _handshake(exchange: Exchange, session: Session) -> None:
        if session.initialized_at is None and session.initialize_flow and not session.facts.get("handshake-noted"):
            since = exchange.started - session.facts.get("answered", exchange.started)
            if since > HANDSHAKE_S:
                session.facts["handshake-noted"] = True
                _note(exchange, Note("not-initialized", f"{since:.1f} s", None, session.initialize_flow))

    def _resumes(self, exchange: Exchange, session: Session) -> None:
        last = exchange.request_fields.first("last-event-id")
        if last is None:
            return
        ids: OrderedDict[str, _EventId] = session.facts.get("event-ids", OrderedDict())
        known = ids.get(last)
        if known is None:
            sure = _all_heard(session) and len(ids) < MOST_IDS
            _note(exchange, Note("unknown-event-id", last, None, "", sure))
            return
        broken = known.exchange
        retry = broken.facts.get("retry-ms") or session.facts.get("retry-ms")
        if broken.ended is not None and retry and exchange.started < broken.ended + 0.9 * retry / 1000:
            waited = (exchange.started - broken.ended) * 1000
            _note(exchange, Note("retry-ignored", f"{waited:.0f} ms", f"{retry} ms", broken.flow))
        exchange.facts["resumes"] = broken
        if broken.http_method == "POST" or broken.conversation is not None:
            origin = broken.facts.get("resumes", broken) if broken.conversation is None else broken
            if self.inspector.conversations.link(origin, exchange, "resumption", "exact") is not None:
                self.inspector.touched(origin)

    # Messages

    def said(self, message: Message) -> None:
        exchange = message.exchange
        session = exchange.session
        if message.rpc.kind == "result" and message.request is not None and message.request.method == "initialize":
            self._initialize_answered(message)
        if session is None or exchange.claim.modern:
            return
        if message.party == "client":
            if message.method == "notifications/initialized" and session.initialized_at is None:
                session.initialized_at = message.at
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
                    _remember(session, "elicitations", item["elicitationId"])

    def _initialize_answered(self, message: Message) -> None:
        request = message.request
        exchange = request.exchange if request is not None else message.exchange
        if exchange.claim.modern or request is None:
            return
        wanted, given = request.params.get("protocolVersion"), message.result.get("protocolVersion")
        negotiated: set[str] = exchange.endpoint.facts.setdefault("negotiated", set())
        if isinstance(given, str):
            if isinstance(wanted, str) and wanted != given and wanted in negotiated:
                _note(exchange, Note("version-not-echoed", given, wanted))
            if len(negotiated) < 20:
                negotiated.add(given)
        session = exchange.session
        if session is not None:
            session.facts["answered"] = message.at
            session.facts["auth"] = exchange.auth
            key = (exchange.endpoint.url, exchange.connection)
            self._connections[key] = session
            if len(self._connections) > self.limits.state:
                self._connections.popitem(last=False)

    @staticmethod
    def _client_method(message: Message, session: Session) -> None:
        method, advertised = message.method or "", session.server_capabilities
        if advertised is None or message.method == "ping":
            return
        group = method.partition("/")[0]
        needed = "completions" if group == "completion" and session.revision != "2024-11-05" else _SERVER_NEEDS.get(group)
        if needed is not None and needed not in advertised and method != "resources/subscribe":
            _note(message.exchange, Note("server-capability", method, needed, session.initialize_flow))

    @staticmethod
    def _subscribes(message: Message, session: Session) -> None:
        """`session.facts["subscribed"]`: URI -> when it was subscribed to, and when no longer. Oldest first, bounded."""
        uri = message.params.get("uri")
        if not isinstance(uri, str) or len(uri) > _LONGEST_URI:
            return
        table: OrderedDict[str, tuple[float, float]] = session.facts.setdefault("subscribed", OrderedDict())
        since, _ = table.pop(uri, (message.at, 0.0))
        table[uri] = (since, float("inf") if message.method == "resources/subscribe" else message.at)
        if len(table) > MOST_IDS:
            table.popitem(last=False)
            session.facts["subscriptions-lost"] = True

    def _server_request(self, message: Message, session: Session) -> None:
        exchange, method = message.exchange, message.method or ""
        if method == "ping":
            return
        needed, declared = _CLIENT_NEEDS.get(method), session.client_capabilities
        if needed is not None and declared is not None and needed not in declared:
            message.found = Note("client-capability", method, needed, session.initialize_flow)
        if session.transport == "http+sse":
            return
        if session.initialized_at is None and session.initialize_flow:
            _note(exchange, Note("early-server-request", method, None, session.initialize_flow))
        orphan = exchange.http_method == "GET" and "resumes" not in exchange.facts
        if orphan and method in _CLIENT_NEEDS and "io.modelcontextprotocol/related-task" not in message.meta:
            seen: set[str] = session.facts.setdefault("orphans", set())
            if method not in seen:
                seen.add(method)
                _note(exchange, Note("orphan-request", method, None))
        if method == "elicitation/create" and isinstance(message.params.get("elicitationId"), str):
            _remember(session, "elicitations", message.params["elicitationId"])

    @staticmethod
    def _notification(message: Message, session: Session) -> None:
        method = message.method or ""
        if method == "notifications/elicitation/complete":
            wanted = message.params.get("elicitationId")
            known = session.facts.get("elicitations", ())
            if isinstance(wanted, str) and wanted not in known:
                message.found = Note("unknown-elicitation", wanted, None, "", _all_heard(session))
        if session.id and method in _BROADCAST and session.transport == "streamable":
            recent: OrderedDict[str, tuple[Any, Exchange, float]] = session.facts.setdefault("broadcast", OrderedDict())
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
            exchange.facts["retry-ms"] = event.retry
        if event.id:
            exchange.facts["has-event-id"] = True
        if session is None:
            return
        if event.retry is not None:
            session.facts["retry-ms"] = event.retry
        if event.id:
            ids: OrderedDict[str, _EventId] = session.facts.setdefault("event-ids", OrderedDict())
            if event.id not in ids:
                ids[event.id] = _EventId(exchange)
                if len(ids) > MOST_IDS:
                    ids.popitem(last=False)

    # Ends

    def ended(self, exchange: Exchange) -> None:
        session = exchange.session
        if session is None or exchange.claim.modern or exchange.kind != "mcp":
            return
        if exchange.unchecked and exchange.stream is not None:
            session.facts["events-lost"] = True
        if not exchange.facts.get("dead-session") or exchange.status is None:
            return
        if exchange.status == 404 and session.ended_why in ("404", "DELETE"):
            if session.ended_why == "DELETE" and not session.facts.get("told-404"):
                session.facts["told-404"] = True  # the first after a DELETE may have been on its way
                return
            count = session.facts["dead-posts"] = session.facts.get("dead-posts", 0) + 1
            _note(exchange, Note("dead-session-used", count, None, session.deleted_flow))
        elif 200 <= exchange.status < 300:
            if session.ended_why == "404":
                session.ended_at, session.ended_why = None, ""  # the 404 had another cause
            else:
                _note(exchange, Note("dead-session-served", exchange.status, 404, session.deleted_flow))
        elif exchange.status == 400:
            _note(exchange, Note("dead-session-400", 400, 404, session.deleted_flow))


def was_subscribed(session: Session, uri: str, at: float) -> bool:
    """Whether a session had subscribed to a resource, or to one that it is part of; True where that is not known."""
    if not session.initialize_flow or session.facts.get("subscriptions-lost") or len(uri) > _LONGEST_URI:
        return True
    table: OrderedDict[str, tuple[float, float]] = session.facts.get("subscribed", OrderedDict())
    return any(
        since <= at <= until + UNSUBSCRIBED_S and (uri == known or uri.startswith(known.rstrip("/") + "/"))
        for known, (since, until) in table.items()
    )


def _all_heard(session: Session) -> bool:
    """Whether all that the server said in the session was seen. A GET stream from which nothing came may turn out to be one
    whose body was not recorded."""
    if not session.initialize_flow or session.facts.get("events-lost"):
        return False
    gets: list[Exchange] = session.facts.get("gets", [])
    return all(get.over or (get.stream is not None and get.stream.count) for get in gets)


def _note(exchange: Exchange, note: Note) -> None:
    notes: list[Note] = exchange.facts.setdefault("legacy", [])
    if len(notes) < 50:
        notes.append(note)


def _remember(session: Session, what: str, value: str) -> None:
    known: OrderedDict[str, None] = session.facts.setdefault(what, OrderedDict())
    known[value] = None
    if len(known) > 1_000:
        known.popitem(last=False)
