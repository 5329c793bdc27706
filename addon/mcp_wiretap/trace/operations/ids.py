"""Ids and progress tokens in use: what is in flight, what a session has used before, what a cancellation names, what was
answered twice, who was asked to wait.

JSON-RPC ids are unique per sender only, and HTTP does not show the sender: two requests are known to be one sender's when they
came over one client connection, in one legacy session, or under a name that has shown one rising sequence of ids (catalogue
RPC004, A26).
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import ExchangeFact, SessionFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message, Session
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.secret import one_line

MOST = 2_000  # ids remembered of one connection or session
SESSIONLESS, SESSIONLESS_PLACES = 100, 100  # of one connection to a server that gives no session id, and of such connections
PLACES = 500  # connections that modern requests came over, clients that were asked to wait
RISING = 5  # ids in a row that show one sender
SETTLED_S = 2.0  # a cancellation may cross its answer on the way
_TASK_OVER = frozenset({"completed", "failed", "cancelled"})
_LIMITED = frozenset({429, 503})
_TRANSPORT_RETRY = frozenset({401, 403, 408, 429, 502, 503, 504})


@dataclass(slots=True)
class Reuse:
    """An id or a token that an earlier request had. `how`: in-flight (same connection), one-sender (another connection, but one
    sequence of ids), same-name (another connection, the same Authorization and clientInfo), in-session, transport-retry,
    no-session (same connection to a legacy server that gives no session id)."""

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
class AnsweredTwice:
    """A second answer to a request of a legacy session, on another stream and under another SSE event id."""

    where: str  # of the message
    value: Any  # the id
    flow: str  # of the first answer


@dataclass(slots=True)
class _Issued:
    flow: str
    method: str | None
    body: Any
    task: bool
    exchange: Exchange
    answered_at: float | None = None
    answer_flow: str = ""
    answer_event: str | None = None  # SSE event id of the answer


@dataclass(slots=True)
class _TaskToken:
    """The progress token of a request that was to become a task."""

    flow: str
    task: str = ""  # its taskId, while it runs


@dataclass(slots=True)
class _Sender:
    """Who goes by one Authorization and clientInfo: one client, or several copies of it."""

    open: dict[Hashable, Message] = field(default_factory=dict)
    last: int | None = None
    ids: int = 0
    rising: bool = True  # each id was greater than the one before

    @property
    def one(self) -> bool:
        return self.rising and self.ids >= RISING

    def used(self, value: Any) -> None:
        if not self.rising:
            return
        if not isinstance(value, int) or isinstance(value, bool) or (self.last is not None and value <= self.last):
            self.rising = False
        else:
            self.last, self.ids = value, self.ids + 1


@dataclass(slots=True, frozen=True, kw_only=True)
class CameBack:
    """A request that is repeated after the server had told the client to wait."""

    flow: str  # the answer with Retry-After
    retry_after: int  # seconds
    after_s: float  # how long the client waited


@dataclass(slots=True, frozen=True, kw_only=True)
class CapabilitiesChange:
    """Capabilities that a client declares otherwise than in its last request."""

    before: str  # flow of that request
    added: list[str]
    dropped: list[str]


CAME_BACK: ExchangeFact[CameBack] = ExchangeFact("came-back", "the client repeats a request for which it was told to wait")
CAPABILITIES_CHANGE: ExchangeFact[CapabilitiesChange] = ExchangeFact(
    "capabilities-change", "the client declares other capabilities than in its last request"
)
ANSWERED_TWICE: ExchangeFact[list[AnsweredTwice]] = ExchangeFact("answered-twice", "answers to a request that had one")
POSTED_AFTER_MODERN: ExchangeFact[bool] = ExchangeFact("posted-after-modern", "a client of the modern era posts an answer")
CANCELS: ExchangeFact[list[CancelTarget]] = ExchangeFact("cancels", "the requests that its notifications/cancelled name")
REUSE: ExchangeFact[list[Reuse]] = ExchangeFact("reuse", "ids that were used before")
ASKED: SessionFact[OrderedDict[Hashable, float | None]] = SessionFact("_asked", "ids of the server's requests, and when answered")
ASKED_DROPPED: SessionFact[bool] = SessionFact("_asked-dropped", "some of these are not kept")
ISSUED: SessionFact[OrderedDict[Hashable, _Issued]] = SessionFact("_issued", "ids of the client's requests")
ISSUED_DROPPED: SessionFact[bool] = SessionFact("_issued-dropped", "some of these are not kept")
TASK_TOKENS: SessionFact[OrderedDict[Hashable, _TaskToken]] = SessionFact("_task-tokens", "progress tokens of tasks")


class Requests(Tracker):
    """Writes `exchange.facts`: `reuse` (list of Reuse), `cancels` (list of CancelTarget), `answered-twice` (list of
    AnsweredTwice), `capabilities-change` (flow of the request before, words added, words gone), `posted-after-modern` (a response
    came over a connection that had carried modern requests), `came-back` (flow that asked to wait, seconds, seconds waited)."""

    name = "requests"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        # (endpoint, connection) -> id -> request in flight
        self._open: Recent[tuple[str, str], OrderedDict[Hashable, Message]] = Recent(lambda: self.limits.state)
        self._senders: Recent[tuple[str, str, tuple[str, str] | None], _Sender] = Recent(lambda: self.limits.state)
        # (endpoint, Authorization, clientInfo or else connection) -> flow and capabilities of the newest request
        self._declared: Recent[tuple[str, str, tuple[str, str] | str], tuple[str, dict[str, Any]]] = Recent(
            lambda: self.limits.state
        )
        self._modern_places: Recent[tuple[str, str], bool] = Recent(PLACES)  # (endpoint, connection) of modern requests
        self._limited: Recent[tuple[str, str, tuple[str, str] | None], tuple[str, float, int]] = Recent(PLACES)
        self._sessionless: Recent[tuple[str, str, str], OrderedDict[Hashable, Exchange]] = Recent(SESSIONLESS_PLACES)

    def requested(self, exchange: Exchange) -> None:
        if len(self._limited) and exchange.kind == "mcp":
            told = self._limited.pop((exchange.endpoint.url, exchange.auth, exchange.client_info))
            if told is not None and exchange.started - told[1] < told[2]:
                exchange.facts[CAME_BACK] = CameBack(flow=told[0], retry_after=told[2], after_s=exchange.started - told[1])

    def said(self, message: Message) -> None:
        kind, exchange = message.rpc.kind, message.exchange
        if kind == "request" and message.party == "client":
            if exchange.claim.modern:
                self._modern(message)
            elif exchange.session is not None:
                self._legacy(message, exchange.session)
            else:
                self._without_session(message)
        elif kind == "request":
            if exchange.session is not None:
                asked: OrderedDict[Hashable, float | None] = exchange.session.facts.setdefault(ASKED, OrderedDict())
                asked[id_key(message.rpc.id)] = None
                if len(asked) > MOST:
                    asked.popitem(last=False)
                    exchange.session.facts[ASKED_DROPPED] = True
        elif kind in ("result", "error"):
            if message.party == "server":
                self._answers(message)
            else:
                self._replies(message)
        elif kind == "notification" and message.method == "notifications/cancelled" and not exchange.claim.modern:
            self._cancels(message)
        elif message.method == "notifications/tasks/status" and exchange.session is not None:
            self._task_status(message, exchange.session, message.params)

    def ended(self, exchange: Exchange) -> None:
        if exchange.status in _LIMITED:
            self._asked_to_wait(exchange)
        table = self._open.get((exchange.endpoint.url, exchange.connection))
        if table is None:
            return
        sender = self._sender(exchange)
        for message in exchange.sent:
            key = id_key(message.rpc.id)
            if table.get(key) is message:
                del table[key]
            if sender.open.get(key) is message:
                del sender.open[key]
        if not table:
            self._open.pop((exchange.endpoint.url, exchange.connection))

    def _asked_to_wait(self, exchange: Exchange) -> None:
        fields = exchange.response_fields
        wait = (fields.first("retry-after") or "").strip() if fields is not None else ""
        if wait.isascii() and wait.isdigit() and len(wait) < 10 and exchange.ended is not None and exchange.kind == "mcp":
            key = (exchange.endpoint.url, exchange.auth, exchange.client_info)
            self._limited.put(key, (exchange.flow, exchange.ended, int(wait)))

    def _modern(self, message: Message) -> None:
        exchange = message.exchange
        place = (exchange.endpoint.url, exchange.connection)
        if place not in self._modern_places:
            self._modern_places.put(place, True)
        table = self._open.get(place)
        if table is None:
            table = OrderedDict()
            self._open.put(place, table)
        key = id_key(message.rpc.id)
        other = table.get(key)
        if other is not None and other.answer is None and not recorded_twice(other.exchange, exchange):
            _note(exchange, Reuse("id", message.rpc.id, other.exchange.flow, "in-flight"))
        self._token(message, table.values(), "in-flight")
        self._elsewhere(message, key, self._sender(exchange))
        self._capabilities(message)
        table[key] = message
        if len(table) > MOST:
            table.popitem(last=False)

    def _sender(self, exchange: Exchange) -> _Sender:
        """Who sent it, as far as it says so."""
        who = (exchange.endpoint.url, exchange.auth, exchange.client_info)
        sender = self._senders.get(who)
        if sender is None:
            sender = _Sender()
            self._senders.put(who, sender)
        return sender

    def _elsewhere(self, message: Message, key: Hashable, sender: _Sender) -> None:
        """What is in flight under the same name over other connections. Probes may well have one id in all clients."""
        connection = message.exchange.connection
        other, value = sender.open.get(key), message.rpc.id
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        # A number that goes back is another copy of the client, which counts from the beginning, too.
        one = sender.one and number is not None and sender.last is not None and number >= sender.last
        how = "one-sender" if one else "same-name"
        elsewhere = other is not None and other.answer is None and other.exchange.connection != connection
        if other is not None and elsewhere and (one or "server/discover" not in (message.method, other.method)):
            _note(message.exchange, Reuse("id", message.rpc.id, other.exchange.flow, how))
        if "progressToken" in message.meta:
            self._token(message, [m for m in sender.open.values() if m.exchange.connection != connection], how)
        sender.used(message.rpc.id)
        sender.open[key] = message
        if len(sender.open) > MOST:
            del sender.open[next(iter(sender.open))]

    def _capabilities(self, message: Message) -> None:
        """What a client declares differently from its request before (MET016)."""
        exchange = message.exchange
        who = (exchange.endpoint.url, exchange.auth, exchange.client_info or exchange.connection)
        declared = exchange.capabilities
        before = self._declared.get(who)
        self._declared.put(who, (exchange.flow, declared))
        if before is not None and before[1] != declared:
            now, then = _flat(declared), _flat(before[1])
            exchange.facts[CAPABILITIES_CHANGE] = CapabilitiesChange(
                before=before[0], added=sorted(now - then), dropped=sorted(then - now)
            )

    def _legacy(self, message: Message, session: Session) -> None:
        exchange, key = message.exchange, id_key(message.rpc.id)
        issued: OrderedDict[Hashable, _Issued] = session.facts.setdefault(ISSUED, OrderedDict())
        before = issued.get(key)
        if before is not None and before.exchange is not exchange and not recorded_twice(before.exchange, exchange):
            retry = _unanswered(before.exchange) and before.body == message.rpc.body
            _note(exchange, Reuse("id", message.rpc.id, before.flow, "transport-retry" if retry else "in-session"))
        self._token(message, [m for m in session.from_client.values() if m is not message], "in-session")
        task = isinstance(message.params.get("task"), dict)
        self._token_of_task(message, session, task)
        issued[key] = _Issued(exchange.flow, message.method, message.rpc.body, task, exchange)
        if len(issued) > MOST:
            issued.popitem(last=False)
            session.facts[ISSUED_DROPPED] = True

    @staticmethod
    def _token_of_task(message: Message, session: Session, task: bool) -> None:
        """A task of 2025-11-25 keeps the token of its request as long as it runs."""
        token = message.meta.get("progressToken")
        if token is None:
            return
        tokens: OrderedDict[Hashable, _TaskToken] = session.facts.get(TASK_TOKENS) or OrderedDict()
        used = tokens.get(id_key(token))
        if used is not None and used.task:
            _note(message.exchange, Reuse("progressToken", token, used.flow, "in-session"))
        elif task:
            session.facts[TASK_TOKENS] = tokens
            tokens[id_key(token)] = _TaskToken(message.exchange.flow)
            if len(tokens) > MOST:
                tokens.popitem(last=False)

    @staticmethod
    def _task_status(message: Message, session: Session, status: dict[str, Any]) -> None:
        """A task was created, or is over: its token is in use, or free."""
        tokens: OrderedDict[Hashable, _TaskToken] = session.facts.get(TASK_TOKENS) or OrderedDict()
        over = str(status.get("status")) in _TASK_OVER
        request = message.request
        created = request.meta.get("progressToken") if request is not None and "task" in request.params else None
        if created is not None and (known := tokens.get(id_key(created))) is not None:
            known.task = "" if over else one_line(str(status.get("taskId", "")), 200)
        elif over:
            gone = one_line(str(status.get("taskId", "")), 200)
            for key in [key for key, known in tokens.items() if known.task == gone]:
                del tokens[key]

    def _without_session(self, message: Message) -> None:
        """A legacy request to a server that gives no session id: other clients may share the connection."""
        exchange, key = message.exchange, id_key(message.rpc.id)
        place = (exchange.endpoint.url, exchange.connection, exchange.auth)
        known = self._sessionless.get(place)
        if known is None or message.method == "initialize":
            known = OrderedDict()
            self._sessionless.put(place, known)
        before = known.get(key)
        if before is not None and before is not exchange and not _unanswered(before):
            _note(exchange, Reuse("id", message.rpc.id, before.flow, "no-session"))
        if "progressToken" in message.meta:
            waiting = self.memory.sessions.stateless(exchange).from_client.values()
            self._token(
                message, [m for m in waiting if m.exchange.connection == exchange.connection and m is not message], "in-flight"
            )
        known[key] = exchange
        if len(known) > SESSIONLESS:
            known.popitem(last=False)

    def _answers(self, message: Message) -> None:
        """The server answers: the first answer in a legacy session is remembered, a second one on another stream is noted."""
        exchange, request = message.exchange, message.request
        session = exchange.session or (request.exchange.session if request is not None else None)
        if session is None or exchange.claim.modern:
            return
        if TASK_TOKENS in session.facts:
            task = message.result.get("task")
            self._task_status(message, session, task if isinstance(task, dict) else message.result)
        key = id_key(request.rpc.id if request is not None else message.rpc.id)
        table = session.facts.get(ISSUED)
        if request is not None and request.method == "initialize" and message.rpc.kind == "result":
            table = session.facts.setdefault(ISSUED, OrderedDict())
            if key not in table:  # the request came before the session that its answer opened
                table[key] = _Issued(request.exchange.flow, "initialize", request.rpc.body, False, request.exchange)
        issued = table.get(key) if table else None
        if issued is None:
            return
        event = _event_id(exchange)
        if issued.answered_at is None:
            issued.answered_at, issued.answer_flow, issued.answer_event = message.at, exchange.flow, event
        elif issued.answer_flow != exchange.flow and event and issued.answer_event and event != issued.answer_event:
            twice = AnsweredTwice(message.where, message.rpc.id, issued.answer_flow)
            exchange.facts.setdefault(ANSWERED_TWICE, []).append(twice)

    def _replies(self, message: Message) -> None:
        """The client posted a response."""
        exchange, session = message.exchange, message.exchange.session
        if session is not None:
            asked = session.facts.get(ASKED, OrderedDict())
            if id_key(message.rpc.id) in asked:
                asked[id_key(message.rpc.id)] = message.at
        elif (exchange.endpoint.url, exchange.connection) in self._modern_places:
            exchange.facts[POSTED_AFTER_MODERN] = True

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
        exchange, target = message.exchange, message.params.get("requestId")
        if target is None:
            return
        session, key = exchange.session, id_key(target)
        flow = ""
        if session is None:  # initialize may still be on its way: no other request is known to be this client's
            waiting = self.memory.sessions.stateless(exchange).from_client.get(key) if message.party == "client" else None
            if waiting is None or waiting.method != "initialize":
                return
            state, flow = "initialize", waiting.exchange.flow
        elif not session.initialize_flow or session.facts.get(ISSUED_DROPPED) or session.facts.get(ASKED_DROPPED):
            state = "unknown-session"
        elif message.party == "client":
            state, flow = _state(session.facts.get(ISSUED, OrderedDict()).get(key), message.at)
        else:
            asked = session.facts.get(ASKED)
            state = _state_of_asked(asked if asked is not None else {}, key, message.at)
        exchange.facts.setdefault(CANCELS, []).append(CancelTarget(target, state, flow))


def _flat(capabilities: dict[str, Any]) -> set[str]:
    """Capabilities as words: `elicitation`, `elicitation.url`; bounded."""
    words = set()
    for name, value in list(capabilities.items())[:50]:
        words.add(one_line(name, 60))
        if isinstance(value, dict):
            words |= {one_line(f"{name}.{inner}", 100) for inner in list(value)[:50]}
    return words


def _unanswered(exchange: Exchange) -> bool:
    """Nothing answered it, or what stands before the server: the client may send the same again."""
    status = exchange.status
    return status is None or status in _TRANSPORT_RETRY or 300 <= status < 400


def recorded_twice(one: Exchange, other: Exchange) -> bool:
    """Whether two exchanges are one that a recorder wrote down twice: writers of HAR do so where a stream broke."""
    return one.started == other.started and one.requested == other.requested


def _event_id(exchange: Exchange) -> str | None:
    """The SSE id of the event that is being read; None where it has none or the answer is no stream."""
    stream = exchange.stream
    return stream.items[-1].event.id if stream is not None and stream.items and stream.count == len(stream.items) else None


def _state_of_asked(asked: Mapping[Hashable, float | None], key: Hashable, at: float) -> str:
    """What became of a request of the server that it cancels."""
    if key not in asked:
        return "unknown"
    replied = asked[key]
    return "answered" if replied is not None and at - replied > SETTLED_S else "open"


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
    exchange.facts.setdefault(REUSE, []).append(reuse)
