"""Legacy sessions: who minted them, what was negotiated, and which requests are waiting for an answer on another stream.

A session is named by Mcp-Session-Id, or, on the 2024-11-05 transport, by the GET stream that announced the POST address. On stdio
it is the process.
Spec: 2025-11-25 basic/transports#session-management, 2024-11-05 basic/transports#http-with-sse.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message, Session
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.headers import trim_ows
from mcp_wiretap.wire.values import bounded

ASKED = 5_000  # requests of servers waiting in all sessions: a person answers them, so they may wait for long
ASKED_BYTES = 16 << 20  # and their size on the wire
_LONGEST_VERSION = 1_000  # characters; a revision has ten


class Sessions:
    """All sessions of a trace, bounded; the least recently used goes first."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._by_id: OrderedDict[tuple[str, str], Session] = OrderedDict()
        self._announced: OrderedDict[str, Session] = OrderedDict()  # POST address with query -> HTTP+SSE session
        self._stateless: OrderedDict[tuple[str, str], Session] = OrderedDict()  # endpoint, auth
        self._processes: OrderedDict[tuple[str, str], Session] = OrderedDict()  # endpoint, connection: legacy ones on stdio
        self._agreed: Recent[tuple[str, str, str], str] = Recent(most)  # endpoint, auth, program -> revision
        self._asked: deque[tuple[Session, Any, float, int]] = deque()  # session, id key, time, size; answered ones, too
        self._asked_bytes = 0
        self.dropped = 0

    def asked(self, session: Session, message: Message, key: Any, size: int) -> None:
        """A request of a server waits: forget the oldest ones where that is too much."""
        self._asked.append((session, key, message.at, size))
        self._asked_bytes += size
        while len(self._asked) > ASKED or self._asked_bytes > ASKED_BYTES:
            oldest, its_key, at, its_size = self._asked.popleft()
            self._asked_bytes -= its_size
            waiting = oldest.from_server.get(its_key)
            if waiting is not None and waiting.at == at:
                del oldest.from_server[its_key]
                self.dropped += 1

    def __iter__(self) -> Iterator[Session]:
        yield from self._by_id.values()
        yield from self._announced.values()
        yield from self._processes.values()

    def find(self, exchange: Exchange) -> Session | None:
        """The session that a request names; None without one. A session that ended is still found (`live` is False)."""
        if exchange.endpoint.on_stdio:
            return self._processes.get((exchange.endpoint.url, exchange.connection))
        announced = self._announced.get(exchange.url + ("?" + exchange.query if exchange.query else ""))
        if announced is not None:
            return announced
        session_id = exchange.request_fields.first("mcp-session-id")
        if not session_id:
            return None
        key = (exchange.endpoint.url, session_id)
        session = self._by_id.get(key)
        if session is not None:
            self._by_id.move_to_end(key)
        return session

    def adopt(self, exchange: Exchange) -> Session | None:
        """A session that is used though its initialize was not recorded; confirmed once the server accepts it."""
        session_id = exchange.request_fields.first("mcp-session-id")
        if not session_id:
            return None
        session = Session(session_id, exchange.endpoint, "streamable", exchange.started)
        version = trim_ows(exchange.request_fields.first("mcp-protocol-version") or "")
        session.revision = version if version in rev.LEGACY else None
        self._put(self._by_id, (exchange.endpoint.url, session_id), session)
        return session

    def initialized(self, exchange: Exchange, answer: Message) -> Session | None:
        """initialize succeeded: the session it opened, or None when the server gave no id (a stateless legacy server)."""
        request = answer.request
        session = exchange.session
        if exchange.endpoint.on_stdio:  # initialize makes the process a legacy one; again, it begins anew
            session = Session("", exchange.endpoint, "stdio", exchange.started)
            self._put(self._processes, (exchange.endpoint.url, exchange.connection), session)
        elif session is None or session.transport != "http+sse":
            fields = exchange.response_fields
            session_id = fields.first("mcp-session-id") if fields is not None else None
            if not session_id:
                agreed = answer.result.get("protocolVersion")
                self._agreed.put(_client(exchange), agreed[:_LONGEST_VERSION] if isinstance(agreed, str) else "")
                return None
            key = (exchange.endpoint.url, session_id)
            used = self._by_id.get(key)
            if used is not None and not used.initialize_flow and used.live and used.started >= exchange.started:
                session = used  # the client went on as soon as it had the event, while the stream was still open
            else:
                session = Session(session_id, exchange.endpoint, "streamable", exchange.started)
                self._put(self._by_id, key, session)
        result = answer.result
        version = result.get("protocolVersion")
        session.initialize_flow, session.confirmed = exchange.flow, True
        session.revision = version[:_LONGEST_VERSION] if isinstance(version, str) else None
        session.server_info = _object(result.get("serverInfo"))
        session.server_capabilities = _object(result.get("capabilities"))
        if request is not None:
            session.client_info = _object(request.params.get("clientInfo"))
            session.client_capabilities = _object(request.params.get("capabilities"))
        return session

    def passed(self, exchange: Exchange, version: str) -> None:
        """The client was told of another revision than the server, which gave no session, agreed on."""
        if self._agreed.get(_client(exchange)) is not None:
            self._agreed.put(_client(exchange), version[:_LONGEST_VERSION])

    def agreed(self, exchange: Exchange) -> str | None:
        """The revision that initialize agreed on with this client (its Authorization and User-Agent) without a session."""
        return self._agreed.get(_client(exchange)) if len(self._agreed) else None

    def stateless(self, exchange: Exchange) -> Session:
        """Where messages of a server that gives no session id are paired: by endpoint and Authorization (id "")."""
        key = (exchange.endpoint.url, exchange.auth)
        session = self._stateless.get(key)
        if session is None:
            session = Session("", exchange.endpoint, "streamable", exchange.started)
            self._put(self._stateless, key, session)
        return session

    def process_ended(self, exchange: Exchange) -> None:
        """The process that this exchange stands for has ended, and its session with it."""
        session = self._processes.get((exchange.endpoint.url, exchange.connection))
        if session is not None:
            session.ended_at, session.ended_why = exchange.ended, "the process ended"

    def announce(self, exchange: Exchange, address: str, at: float) -> Session:
        """The `endpoint` event of an HTTP+SSE stream: POSTs to that address belong to it."""
        base = exchange.url + ("?" + exchange.query if exchange.query else "")
        target = uri.resolve(base, address)
        # Behind a reverse proxy the announced origin may be the public one: the path decides.
        origin = exchange.url[: len(exchange.url) - len(uri.split(exchange.url).path)]
        url = origin + target.path + ("?" + target.query if target.query else "")
        session = Session(url, exchange.endpoint, "http+sse", at, confirmed=True)
        self._put(self._announced, url, session)
        return session

    def _put[K](self, table: OrderedDict[K, Session], key: K, session: Session) -> None:
        table[key] = session
        table.move_to_end(key)
        self._shrink(table)

    def shrink(self) -> None:
        """Forget what is over the limit: the sessions that were not used for the longest time."""
        for table in (self._by_id, self._announced, self._stateless):
            self._shrink(table)
        self._agreed.shrink()

    def _shrink(self, table: OrderedDict[Any, Session]) -> None:
        while len(table) > self._most():
            table.popitem(last=False)
            self.dropped += 1


def _client(exchange: Exchange) -> tuple[str, str, str]:
    return exchange.endpoint.url, exchange.auth, (exchange.request_fields.first("user-agent") or "")[:200]


def _object(value: Any) -> dict[str, Any] | None:
    """As it may be kept as long as the session lives."""
    return bounded(value) if isinstance(value, dict) else None
