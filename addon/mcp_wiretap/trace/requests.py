"""Ids and progress tokens in use: what is in flight, what a session has used before, what a cancellation names.

JSON-RPC ids are unique per sender only, and HTTP does not show the sender: two requests are known to be one sender's when they
came over one client connection, or in one legacy session (catalogue RPC004, A26).
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.sessions import Session
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.secret import one_line

MOST = 2_000  # ids remembered of one connection or session
SETTLED_S = 2.0  # a cancellation may cross its answer on the way
_TRANSPORT_RETRY = frozenset({401, 403, 408, 429, 502, 503, 504})


@dataclass(slots=True)
class Reuse:
    """An id or a token that an earlier request had. `how`: in-flight (same connection), in-session, transport-retry."""

    what: str  # id, progressToken
    value: Any
    flow: str
    how: str


@dataclass(slots=True)
class CancelTarget:
    """What notifications/cancelled names. `state`: open, answered, unknown, unknown-session, initialize, task."""

    value: Any
    state: str
    flow: str = ""


@dataclass(slots=True)
class _Issued:
    flow: str
    method: str | None
    body: Any
    task: bool
    exchange: Exchange
    answered_at: float | None = None


class Requests(Tracker):
    """Writes `exchange.facts`: `reuse` (list of Reuse), `cancels` (list of CancelTarget), `capabilities-change` (flow of the
    request before, words added, words gone)."""

    name = "requests"

    def __init__(self, inspector: Any) -> None:
        super().__init__(inspector)
        # (endpoint, connection) -> id -> request in flight
        self._open: OrderedDict[tuple[str, str], OrderedDict[Hashable, Message]] = OrderedDict()
        # (endpoint, Authorization, clientInfo) -> flow and capabilities of the newest request
        self._declared: OrderedDict[tuple[str, str, tuple[str, str]], tuple[str, dict[str, Any]]] = OrderedDict()

    def said(self, message: Message) -> None:
        kind, exchange = message.rpc.kind, message.exchange
        if kind == "request" and message.party == "client":
            if exchange.claim.modern:
                self._modern(message)
            elif exchange.session is not None:
                self._legacy(message, exchange.session)
        elif kind in ("result", "error") and message.party == "server" and message.request is not None:
            session = exchange.session or message.request.exchange.session
            if session is not None:
                issued = session.facts.get("issued", {}).get(id_key(message.request.rpc.id))
                if issued is not None and issued.answered_at is None:
                    issued.answered_at = message.at
        elif kind == "notification" and message.method == "notifications/cancelled" and not exchange.claim.modern:
            self._cancels(message)

    def ended(self, exchange: Exchange) -> None:
        table = self._open.get((exchange.endpoint.url, exchange.connection))
        if table is None:
            return
        for message in exchange.sent:
            key = id_key(message.rpc.id)
            if table.get(key) is message:
                del table[key]
        if not table:
            del self._open[exchange.endpoint.url, exchange.connection]

    def _modern(self, message: Message) -> None:
        exchange = message.exchange
        place = (exchange.endpoint.url, exchange.connection)
        table = self._open.get(place)
        if table is None:
            table = self._open[place] = OrderedDict()
            if len(self._open) > self.limits.state:
                self._open.popitem(last=False)
        key = id_key(message.rpc.id)
        other = table.get(key)
        if other is not None and other.answer is None:
            _note(exchange, Reuse("id", message.rpc.id, other.exchange.flow, "in-flight"))
        self._token(message, table.values(), "in-flight")
        self._capabilities(message)
        table[key] = message
        if len(table) > MOST:
            table.popitem(last=False)

    def _capabilities(self, message: Message) -> None:
        """What a client declares differently from its request before (MET016)."""
        exchange = message.exchange
        if exchange.client_info is None:
            return
        who = (exchange.endpoint.url, exchange.auth, exchange.client_info)
        declared = exchange.capabilities
        before = self._declared.get(who)
        self._declared[who] = (exchange.flow, declared)
        if before is None:
            if len(self._declared) > self.limits.state:
                self._declared.popitem(last=False)
        elif before[1] != declared:
            now, then = _flat(declared), _flat(before[1])
            exchange.facts["capabilities-change"] = (before[0], sorted(now - then), sorted(then - now))

    def _legacy(self, message: Message, session: Session) -> None:
        exchange, key = message.exchange, id_key(message.rpc.id)
        issued: OrderedDict[Hashable, _Issued] = session.facts.setdefault("issued", OrderedDict())
        before = issued.get(key)
        if before is not None and before.exchange is not exchange:
            first = before.exchange
            unanswered = first.status is None or first.status in _TRANSPORT_RETRY or 300 <= first.status < 400
            retry = unanswered and before.body == message.rpc.body
            _note(exchange, Reuse("id", message.rpc.id, before.flow, "transport-retry" if retry else "in-session"))
        self._token(message, [m for m in session.from_client.values() if m is not message], "in-session")
        params = message.params
        issued[key] = _Issued(exchange.flow, message.method, message.rpc.body, isinstance(params.get("task"), dict), exchange)
        if len(issued) > MOST:
            issued.popitem(last=False)
            session.facts["issued-dropped"] = True

    @staticmethod
    def _token(message: Message, others: Any, how: str) -> None:
        token = message.meta.get("progressToken")
        if token is None:
            return
        key = id_key(token)
        for other in others:
            theirs = other.meta.get("progressToken")
            if other.answer is None and theirs is not None and id_key(theirs) == key:
                _note(message.exchange, Reuse("progressToken", token, other.exchange.flow, how))
                return

    def _cancels(self, message: Message) -> None:
        session = message.exchange.session
        target = message.params.get("requestId")
        if session is None or target is None:
            return
        if not session.initialize_flow or session.facts.get("issued-dropped"):
            state, flow = "unknown-session", ""
        elif message.party == "client":
            state, flow = _state(session.facts.get("issued", {}).get(id_key(target)), message.at)
        else:
            waiting = session.from_server.get(id_key(target))
            state, flow = ("open", waiting.exchange.flow) if waiting is not None else ("unknown-session", "")
        message.exchange.facts.setdefault("cancels", []).append(CancelTarget(target, state, flow))


def _flat(capabilities: dict[str, Any]) -> set[str]:
    """Capabilities as words: `elicitation`, `elicitation.url`; bounded."""
    words = set()
    for name, value in list(capabilities.items())[:50]:
        words.add(one_line(name, 60))
        if isinstance(value, dict):
            words |= {one_line(f"{name}.{inner}", 100) for inner in list(value)[:50]}
    return words


def _state(issued: _Issued | None, at: float) -> tuple[str, str]:
    if issued is None:
        return "unknown", ""
    if issued.method == "initialize":
        return "initialize", issued.flow
    if issued.task:
        return "task", issued.flow
    if issued.answered_at is not None and at - issued.answered_at > SETTLED_S:
        return "answered", issued.flow
    return "open", issued.flow


def _note(exchange: Exchange, reuse: Reuse) -> None:
    exchange.facts.setdefault("reuse", []).append(reuse)
