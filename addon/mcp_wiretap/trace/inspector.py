"""The one door into a trace: `Inspector.feed(event)`, for live use, for `audit` and for tests alike.

An event goes to the exchange it belongs to, then to the trackers, then to the rules. `feed` returns the exchanges whose
annotation changed. Nothing here reads a clock, a socket or a file; events come in time order and bring their times.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mcp_wiretap.trace import sides
from mcp_wiretap.trace.authorization import Authorization
from mcp_wiretap.trace.era import claim, evidence
from mcp_wiretap.trace.era.clients import Clients
from mcp_wiretap.trace.era.discover import Discoveries
from mcp_wiretap.trace.era.expectation import Expectations
from mcp_wiretap.trace.era.negotiation import Negotiations
from mcp_wiretap.trace.era.served import Served
from mcp_wiretap.trace.events import (
    AnsweredHere,
    AnswerPassed,
    Event,
    ExchangeEnded,
    Faulted,
    RequestSeen,
    RequestSent,
    ResponseStarted,
    StreamData,
)
from mcp_wiretap.trace.finding import Unchecked
from mcp_wiretap.trace.judge import Judge, NoRules
from mcp_wiretap.trace.legacy.session_use import Usage
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.lists.catalog import Listed
from mcp_wiretap.trace.lists.context_cost import ContextCost
from mcp_wiretap.trace.lists.fetched_schemas import Fetched
from mcp_wiretap.trace.lists.not_read_on import UnreadPages
from mcp_wiretap.trace.lists.pagination import Lists
from mcp_wiretap.trace.lists.promises import Promises
from mcp_wiretap.trace.lists.tools import Tools
from mcp_wiretap.trace.memory.conversations import Conversations
from mcp_wiretap.trace.memory.pairing import LATE, Pairing
from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.memory.sessions import Sessions
from mcp_wiretap.trace.mirrored import check as mirror
from mcp_wiretap.trace.model import (
    Claim,
    Endpoint,
    Exchange,
    Fault,
    Kind,
    Message,
    Process,
    ServerEvidence,
    Session,
    Stream,
    StreamItem,
)
from mcp_wiretap.trace.operations.ids import Requests
from mcp_wiretap.trace.operations.progress import ProgressTokens
from mcp_wiretap.trace.operations.reactions import Reactions
from mcp_wiretap.trace.operations.reissued import Broken
from mcp_wiretap.trace.operations.rounds import Rounds
from mcp_wiretap.trace.operations.tasks import Tasks
from mcp_wiretap.trace.promised import Promised
from mcp_wiretap.trace.refusals.cors import Cors
from mcp_wiretap.trace.refusals.sessions import SessionRefusals
from mcp_wiretap.trace.refusals.tracker import Refusals
from mcp_wiretap.trace.streams.lines import JUDGE_WHOLE, LINE, StdioLines
from mcp_wiretap.trace.streams.logs import Logs
from mcp_wiretap.trace.streams.loops import Loops
from mcp_wiretap.trace.streams.subscriptions import Listens
from mcp_wiretap.trace.summary import error_words, naming, outcome
from mcp_wiretap.trace.summary.call_counts import CallCounts
from mcp_wiretap.trace.summary.clientele import Clientele
from mcp_wiretap.trace.summary.in_words import Gists
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import form, jsonrpc
from mcp_wiretap.wire.coding import Decoder, decode_body
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.pace import breathe, paced
from mcp_wiretap.wire.secret import KnownSecrets, knowing
from mcp_wiretap.wire.sse import SseEvent, SseParser

# Why an exchange that is over is kept whole (`Held`), beside that its answer may still come: its server's era is open, its URL
# may still be proven an MCP endpoint.
_ERA, _UNPROVEN = "era", "unproven"
_ON_ITS_WAY = "on its way"  # what the server answered may still be changed before the client gets it

_LARGE = 16 << 10  # bytes of a message that take more than a moment to look through
_PIECE = 8 << 10  # bytes of an event stream read at once: more than a thousand events find room in them

_BODILESS = frozenset({202, 204, 205, 304})  # statuses whose responses have no body to record

TRACKERS: tuple[type[Tracker], ...] = (
    Negotiations,
    Expectations,
    Served,
    Tools,
    Fetched,
    Clients,
    Requests,
    Rounds,
    Discoveries,
    Lists,
    UnreadPages,
    Authorization,
    ProgressTokens,
    Listens,
    Loops,
    Broken,
    Tasks,
    Usage,
    SessionRefusals,
    Refusals,
    Cors,
    Clientele,
    Listed,
    CallCounts,
    Logs,
    StdioLines,
    Gists,
    Promises,
    Reactions,
    ContextCost,
)


@dataclass(slots=True)
class _Open:
    """An event stream that is being read."""

    decoder: Decoder | None
    parser: SseParser
    kept: int = 0


class Inspector:
    """Follows a trace. Not thread-safe; one trace, one Inspector.

    `expect(url)` gives the era that the user expects of an endpoint (mcp_era). `retire(exchange)` is called with each exchange
    that leaves the memory: nothing about it will change any more. `promised` is what the user holds servers to.
    """

    def __init__(
        self,
        judge: Judge | None = None,
        limits: Limits | None = None,
        expect: Callable[[str], str | None] | None = None,
        retire: Callable[[Exchange], None] | None = None,
        promised: Promised | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.judge: Judge = judge or NoRules()
        self.sessions = Sessions(lambda: self.limits.state)
        self.conversations = Conversations(lambda: self.limits.state)
        self.endpoints: OrderedDict[str, Endpoint] = OrderedDict()
        self.exchanges: OrderedDict[str, Exchange] = OrderedDict()
        self.dropped: dict[str, int] = {}
        self.fed = 0
        self.secrets = KnownSecrets()
        self.promised = promised or Promised()
        self._expect = expect
        self._retire = retire
        self._streams: dict[str, _Open] = {}
        self._waiting: dict[str, list[Exchange]] = {}  # URL -> exchanges of kind other, until the URL is proven MCP
        self._undecided: dict[str, list[Exchange]] = {}  # URL -> exchanges whose verdict hangs on what its server is
        self.held = Held(self.limits.held, self.limits.held_bytes, self._no_longer_held)
        self.pairing = Pairing(self.sessions, self.conversations, self.held)
        self._enlightened: set[str] = set()  # flows that brought evidence of their server's era themselves
        self._processes: OrderedDict[str, Process] = OrderedDict()  # of stdio servers, by connection
        self._spoken: OrderedDict[str, Claim] = OrderedDict()  # the newest modern claim, by connection of stdio
        self._changed: dict[str, Exchange] = {}
        self.watched: dict[str, Exchange] | None = None  # what changed since somebody looked; whoever sets it, empties it
        self.trackers = [tracker(self) for tracker in TRACKERS]
        self._authorization = self.tracker(Authorization)
        self._on_requested = [t.requested for t in self.trackers if type(t).requested is not Tracker.requested]
        self._on_said = [t.said for t in self.trackers if type(t).said is not Tracker.said]
        self._on_event = [t.event for t in self.trackers if type(t).event is not Tracker.event]
        self._on_ended = [t.ended for t in self.trackers if type(t).ended is not Tracker.ended]

    def tracker[T](self, kind: type[T]) -> T:
        """The tracker of that class."""
        return next(t for t in self.trackers if isinstance(t, kind))

    def feed(self, event: Event) -> list[Exchange]:
        """Take the next event. Returns the exchanges whose verdict or summary changed, the event's own first."""
        self.fed += 1
        with knowing(self.secrets):
            return self._feed(event)

    def _feed(self, event: Event) -> list[Exchange]:
        match event:
            case RequestSeen():
                self._request(event)
            case StreamData():
                self._stream_data(event)
            case ResponseStarted():
                self._response(event)
            case ExchangeEnded():
                self._ended(event)
            case RequestSent():
                self._request_sent(event)
            case AnsweredHere():
                self._answered_here(event)
            case AnswerPassed():
                self._answer_passed(event)
            case Faulted():
                self._faulted(event)
        own = self._changed.pop(event.flow, None)
        changed = [own, *self._changed.values()] if own is not None else list(self._changed.values())
        self._changed.clear()
        return changed

    def finish(self) -> list[Exchange]:
        """The trace is over (end of a recording). Returns the exchanges whose verdict changed by that."""
        with knowing(self.secrets):
            return self._finish()

    def _finish(self) -> list[Exchange]:
        for tracker in self.trackers:
            for exchange in tracker.finished() or ():
                if not exchange.released:
                    exchange.finished = True
                self.rejudge(exchange)
        changed = list(self._changed.values())
        self._changed.clear()
        if self._retire is not None:
            for exchange in list(self.exchanges.values()):
                self._retire(exchange)
        return changed

    def count_dropped(self, what: str, number: int = 1) -> None:
        """Something went past a limit."""
        self.dropped[what] = self.dropped.get(what, 0) + number

    def touched(self, exchange: Exchange) -> None:
        """What is shown of this exchange has changed."""
        self._changed[exchange.flow] = exchange
        if self.watched is not None:
            self.watched[exchange.flow] = exchange

    def silent_streams(self, session: Session | None, endpoint: Endpoint) -> bool:
        """Whether a stream of the session (without one: of the endpoint) is open of which nothing was read: a recording may tell
        what came on it at its end only."""
        for flow in self._streams:
            exchange = self.exchanges.get(flow)
            if exchange is None or exchange.stream is None or exchange.stream.count:
                continue
            if exchange.session is session if session is not None else exchange.endpoint is endpoint:
                return True
        return False

    def rejudge(self, exchange: Exchange) -> None:
        """Judge an earlier exchange anew, by what is known now."""
        breathe()
        if not exchange.released:
            claim.settle(exchange)
            self.judge.again(exchange)
        outcome.settle(exchange)
        self.conversations.refresh(exchange)
        self.touched(exchange)

    # The request

    def _request(self, event: RequestSeen) -> None:
        if event.flow in self.exchanges:
            return  # hooks may come twice
        path, _, query = event.target.partition("?")
        on_stdio = event.scheme == "stdio"
        url = f"stdio://{event.host}" if on_stdio else f"{event.scheme}://{event.host}:{event.port}{path or '/'}"
        fields = event.fields
        exchange = Exchange(
            event.flow,
            self.fed,
            "other",
            self._endpoint(url),
            event.http_method,
            url,
            query,
            event.authority,
            event.connection,
            event.started,
            event.at,
            fields,
            secrets=self.secrets,
        )
        self.secrets.learn_headers(fields)
        if query:
            self.secrets.learn_query(f"?{query}")
        exchange.auth = _hash(event.connection) if on_stdio else _auth(fields)
        if on_stdio:
            exchange.process = self._process(exchange, event.command)
        body = b"" if event.body is None and fields.first("content-length") == "0" else event.body
        exchange.reverse = event.reverse
        if event.probe:
            exchange.judged = "server"
        exchange.redacted = event.redacted
        exchange.reading = self._read(exchange, body, fields, "request body")
        if on_stdio and body and exchange.reading is not None and exchange.reading.kind in ("not-json", "not-utf8"):
            exchange.facts[LINE] = body[:_LONGEST_LINE].decode("utf-8", "replace")
        if body and event.http_method == "POST" and len(body) <= form.LONGEST and _is_form(fields):
            exchange.form = body
            self.secrets.learn_query(body.decode("latin-1"))
        if exchange.reading is not None and event.http_method not in ("GET", "HEAD", "OPTIONS"):
            exchange.sent = [Message(rpc, exchange, "client", "request.body", event.at) for rpc in exchange.reading.messages]
        exchange.kind = self._kind(exchange)
        self._remember(exchange)
        self.touched(exchange)
        if exchange.kind == "mcp":
            self._open_mcp(exchange)
        elif exchange.kind == "other":
            self._wait(exchange)
        self._tell(self._on_requested, exchange, exchange)
        if exchange.kind != "other":
            for message in exchange.sent:
                self._tell(self._on_said, message, message.exchange)
                breathe()
            if exchange.kind == "mcp" and not on_stdio:
                mirror.check(exchange)
            claim.settle(exchange)
            outcome.settle(exchange)
            self.judge.requested(exchange)

    def _open_mcp(self, exchange: Exchange) -> None:
        """Session, claim and pairing of a request that is known to be MCP."""
        endpoint = exchange.endpoint
        session = self.sessions.find(exchange)
        if session is not None and session.transport == "http+sse":
            endpoint = exchange.endpoint = session.endpoint
        if endpoint.on_stdio:
            exchange.claim = claim.on_stdio(exchange, session, self._spoken.get(exchange.connection))
            if exchange.claim.modern and exchange.sent:
                self._spoken[exchange.connection] = exchange.claim
                while len(self._spoken) > self.limits.state:
                    del self._spoken[next(iter(self._spoken))]
        else:
            named = session if session is not None and session.serves else None
            exchange.claim = claim.claim(exchange, named, self.sessions.agreed(exchange))
        if session is None and not exchange.claim.modern:
            session = self.sessions.adopt(exchange)
        exchange.session = session
        naming.name(exchange)
        if exchange.reading is None and exchange.claim.kind == "unknown-body" and not exchange.unchecked:
            exchange.unchecked.append(Unchecked("request body", "it was not recorded"))
        if not endpoint.proven and _proves(exchange):
            self._prove(endpoint)
        for message in exchange.sent:
            if (origin := self.pairing.sent(message)) is not None:
                self.touched(origin)

    # What was changed on the way (`sides`)

    def _request_sent(self, event: RequestSent) -> None:
        """The server was given another request than the client sent: it is judged by that one."""
        exchange = self.exchanges.get(event.flow)
        if exchange is None or exchange.released or exchange.at_server is not None:
            return
        change = sides.changed(exchange)
        change.request_by, change.unsure = event.by, event.unsure
        if event.unsure:
            exchange.unchecked.append(Unchecked("the server's answer", event.unsure))
        else:
            exchange.at_server = self._at_server(exchange, event)
        self._changed_on_its_way(exchange)

    def _at_server(self, exchange: Exchange, event: RequestSent) -> Exchange:
        side, fields = sides.copy_for_server(exchange), event.fields
        path, _, side.query = event.target.partition("?")
        side.http_method, side.url = event.http_method, f"{event.scheme}://{event.host}:{event.port}{path or '/'}"
        side.request_fields, side.auth = fields, _auth(fields)
        self.secrets.learn_headers(fields)
        if side.query:
            self.secrets.learn_query(f"?{side.query}")
        body = b"" if event.body is None and fields.first("content-length") == "0" else event.body
        side.reading = self._read(side, body, fields, "request body as sent")
        if side.reading is not None and event.http_method not in ("GET", "HEAD", "OPTIONS"):
            side.sent = [Message(rpc, side, "client", "request.body", event.at) for rpc in side.reading.messages]
        if exchange.kind == "mcp":
            self._open_at_server(exchange, side)
        return side

    def _open_at_server(self, exchange: Exchange, side: Exchange) -> None:
        """What is known of a request that was changed on its way, by what the server was given."""
        side.session = exchange.session
        if exchange.request_fields.all("mcp-session-id") != side.request_fields.all("mcp-session-id"):
            side.session = self.sessions.find(side)
        side.claim = claim.claim(side, side.session if side.session is not None and side.session.serves else None)
        naming.name(side)
        for tracker in self.trackers:
            tracker.sent(exchange, side)
        mirror.check(side)
        claim.settle(side)

    def _faulted(self, event: Faulted) -> None:
        """A fault was put in: what its client does next is watched."""
        exchange = self.exchanges.get(event.flow)
        if exchange is None or (exchange.released and exchange.fault is None):
            return
        exchange.fault = Fault(event.kind, event.argument, event.applied, event.state)
        self.tracker(Reactions).faulted(exchange, exchange.fault)
        self.touched(exchange)

    def _answered_here(self, event: AnsweredHere) -> None:
        """The answer is somebody's at the proxy: the server is not judged by it."""
        exchange = self.exchanges.get(event.flow)
        if exchange is None or exchange.released:
            return
        change = sides.changed(exchange)
        change.answered_here, change.response_by, exchange.at_server = True, event.by, None
        self._changed_on_its_way(exchange)

    def _answer_passed(self, event: AnswerPassed) -> None:
        """The client got another answer than the server gave: it is judged by that one."""
        exchange = self.exchanges.get(event.flow)
        if exchange is None or exchange.released or exchange.status is None:
            self.arrived(event.flow)
            return
        sides.changed(exchange).response_by = event.by
        side = exchange.at_client = sides.copy_for_client(exchange)
        side.status, side.response_fields = event.status, event.fields
        self.secrets.learn_headers(event.fields)
        if event.status is None:
            side.ended_by, side.failure = "unknown", "killed in mitmproxy"
        elif (event.fields.first("content-type") or "").lower().startswith("text/event-stream"):
            side.stream = Stream(timed=False, recorded=event.body is not None)
            for item in self._passed_events(side, event):
                side.stream.items.append(item)
                for rpc in item.reading.messages if item.reading is not None else ():
                    item.messages.append(sides.receive(side, Message(rpc, side, "server", item.where, item.at)))
        else:
            side.answer_reading = self._read(side, event.body, event.fields, "response body as passed on")
            for rpc in side.answer_reading.messages if side.answer_reading is not None else ():
                sides.receive(side, Message(rpc, side, "server", "response.body", event.at))
        outcome.settle(side)
        if exchange.kind == "mcp":
            evidence.passed(exchange, side)
            for tracker in self.trackers:
                tracker.passed(exchange, side)
        self._changed_on_its_way(exchange)
        if not event.on_its_way:
            self.held.free(exchange, _ON_ITS_WAY)

    def arrived(self, flow: str) -> None:
        """The answer of that flow went to the client unchanged."""
        exchange = self.exchanges.get(flow)
        if exchange is not None:
            self.held.free(exchange, _ON_ITS_WAY)

    def _passed_events(self, side: Exchange, event: AnswerPassed) -> Iterable[StreamItem]:
        body, coding = event.body or b"", event.fields.joined("content-encoding")
        if coding:
            body, _ = decode_body(body, coding, self.limits.stream)
        assert side.stream is not None
        for sse in SseParser(self.limits.stream).feed(body[: self.limits.stream]):
            side.stream.count += 1
            if len(side.stream.items) < self.limits.events:
                reading = (
                    jsonrpc.read_text(sse.data, max_bytes=self.limits.body, max_depth=self.limits.depth) if sse.data else None
                )
                yield StreamItem(side, event.at, sse, reading, [])

    def _changed_on_its_way(self, exchange: Exchange) -> None:
        sides.settle(exchange)
        if exchange.kind != "other":
            self.judge.again(exchange)
        self.touched(exchange)

    def _no_longer_held(self, exchange: Exchange) -> None:
        self.count_dropped("held exchanges")
        self.pairing.give_up(exchange)

    # The response

    def _response(self, event: ResponseStarted) -> None:
        exchange = self.exchanges.get(event.flow)
        if exchange is None or exchange.status is not None:
            return
        exchange.status, exchange.response_fields, exchange.responded = event.status, event.fields, event.at
        self.secrets.learn_headers(event.fields)
        content_type = (event.fields.first("content-type") or "").lower()
        if content_type.startswith("text/event-stream"):
            exchange.stream = Stream()
            coding = event.fields.joined("content-encoding")
            decoder = Decoder(coding, self.limits.stream) if coding else None
            self._streams[event.flow] = _Open(decoder, SseParser(self.limits.stream))
        if exchange.kind == "mcp" and evidence.served(exchange):
            self._decided(exchange.endpoint, exchange)
        if exchange.kind != "other":
            outcome.settle(exchange)
            self.judge.responded(exchange)
            self.touched(exchange)

    def _stream_data(self, event: StreamData) -> None:
        exchange, open_ = self.exchanges.get(event.flow), self._streams.get(event.flow)
        if exchange is not None and exchange.kind == "process" and exchange.process is not None:
            _add_errors(exchange.process, event.data)
            self.touched(exchange)
            return
        if exchange is None or open_ is None or exchange.stream is None or exchange.over:
            return
        data = event.data
        exchange.large = exchange.large or len(data) > _LARGE
        room = self.limits.stream - open_.kept
        if len(data) > room:
            self.count_dropped("stream bytes", len(data) - max(room, 0))
            exchange.dropped += len(data) - max(room, 0)
            data = data[: max(room, 0)]
        open_.kept += len(data)
        exchange.stream.timed = exchange.stream.timed and event.timed
        if open_.decoder is not None and not event.decoded:
            data = open_.decoder.feed(data)
        self._parse(exchange, open_, data, event.at)

    def _parse(self, exchange: Exchange, open_: _Open, data: bytes, at: float) -> None:
        stream = exchange.stream
        assert stream is not None
        for sse in self._events(stream, open_.parser, data):
            stream.count += 1
            stream.times.append(at)
            stream.first_at = stream.first_at if stream.first_at is not None else at
            stream.last_at = at
            item = StreamItem(exchange, at, sse, None, [])
            if sse.event == "endpoint" and sse.index == 0 and exchange.http_method == "GET":
                self.secrets.learn_query(sse.data)
                self._http_sse(exchange, sse.data, at)
            elif sse.data or exchange.endpoint.on_stdio:
                if exchange.http_method == "GET" and exchange.endpoint.on_stdio:
                    self._stdout(exchange)
                self.secrets.learn_text(sse.data)
                item.reading = jsonrpc.read_text(sse.data, max_bytes=self.limits.body, max_depth=self.limits.depth)
                item.messages = [Message(rpc, exchange, "server", item.where, at) for rpc in item.reading.messages]
                _leave_unread(exchange, item.reading, item.where)
            if exchange.kind == "other" and any(m.rpc.kind != "invalid" for m in item.messages):
                self._promote(exchange)
            if len(stream.items) < self.limits.events:
                stream.items.append(item)
            side = exchange.at_server
            there = sides.receive_item(side, item, self.limits.events) if side is not None else None
            self._tell(self._on_event, item, exchange)
            for message in item.messages:
                twin = self._receive(message, sse.size)
                if there is not None and twin is not None:
                    there.messages.append(twin)
            if exchange.kind != "other":
                self.judge.event(item)
                if there is not None:
                    self.judge.event(there)
            breathe()
        stream.comments = open_.parser.comments
        if exchange.kind != "other":
            outcome.settle(exchange)
            self.touched(exchange)

    def _events(self, stream: Stream, parser: SseParser, data: bytes) -> Iterator[SseEvent]:
        """The events that these bytes complete, up to the limit for a stream."""
        for start in range(0, len(data), _PIECE):
            if stream.unread:
                return
            events = parser.feed(data[start : start + _PIECE])
            stream.retry = parser.retry
            for event in events:
                if stream.count >= self.limits.stream_events:
                    stream.unread = True
                    self.count_dropped("unread streams")
                    return
                yield event

    def _http_sse(self, exchange: Exchange, address: str, at: float) -> None:
        """ERA012: a GET stream that begins with an `endpoint` event is the 2024-11-05 transport."""
        assert exchange.stream is not None
        endpoint = exchange.endpoint
        exchange.stream.http_sse = endpoint.http_sse = True
        if exchange.kind != "mcp":
            self._promote(exchange)
        self._prove(endpoint)
        exchange.session = self.sessions.announce(exchange, address, at)
        claim.settle(exchange)
        if endpoint.legacy is None or endpoint.legacy.flow == exchange.flow:
            endpoint.legacy = ServerEvidence(exchange.flow, "its stream began with an endpoint event (HTTP+SSE)")
            self._decided(endpoint, exchange)

    def _receive(self, message: Message, size: int = 0) -> Message | None:
        """Pair a message of the server, learn from it, tell the trackers, judge it. Returns it as it stands on the server's side,
        where that is another one."""
        exchange = message.exchange
        if len(exchange.received) < self.limits.events:
            exchange.received.append(message)
        replied = self.pairing.received(message, size)
        twin = sides.receive(exchange.at_server, message) if exchange.at_server is not None else None
        request = message.request
        owner = request.exchange if request is not None else exchange
        here = owner.change is not None and owner.change.answered_here  # it tells nothing of the server
        if request is not None and not here:
            if request.method == "initialize" and not owner.claim.modern and evidence.initialized(owner, message, self.sessions):
                self._decided(owner.endpoint, owner)
            if not exchange.endpoint.proven:
                self._prove(exchange.endpoint)
            seen, by_server = owner, message
            if twin is not None and twin.request is not None and twin.request.exchange is exchange.at_server:
                seen, by_server = twin.request.exchange, twin
            if evidence.answered(seen, by_server):
                self._decided(owner.endpoint, owner)
        claim.settle(owner)
        if owner is not exchange:
            outcome.settle(owner)
            self.conversations.refresh(owner)
            self.touched(owner)
        self._tell(self._on_said, message, message.exchange)
        if exchange.kind != "other":
            self.judge.said(message)
            if twin is not None:
                sides.of(exchange)
                self.judge.said(twin)
        if replied is not None:
            self.rejudge(replied)
            self.pairing.not_asked(replied)
        if owner is not exchange and owner.over:
            self.rejudge(owner)
            self.held.free(owner, LATE)
        return twin

    def _decided(self, endpoint: Endpoint, current: Exchange) -> None:
        """More is known of the server's era now: what was judged before that is judged anew."""
        self._enlightened.add(current.flow)
        waiting = self._undecided.pop(endpoint.url, [])
        still = []
        for earlier in waiting:
            if earlier is not current:
                self.rejudge(earlier)
            if claim.is_undecided(earlier):
                still.append(earlier)
            else:
                self.held.free(earlier, _ERA)
        if still:
            self._undecided[endpoint.url] = still

    def _ended(self, event: ExchangeEnded) -> None:
        exchange = self.exchanges.get(event.flow)
        if exchange is None or exchange.over:
            return
        if exchange.kind == "process":
            self._process_ended(exchange, event)
        else:
            self._last_bytes(exchange, event)
        exchange.ended, exchange.ended_by = event.at, event.ended_by
        if exchange.dropped:
            exchange.unchecked.append(Unchecked("response body", f"{exchange.dropped} bytes past the limit were not kept"))
        if exchange.kind == "other":
            self._tell(self._on_ended, exchange, exchange)
            if exchange.kind == "other":
                self.held.settle(exchange)
                return
        for waiting in self.pairing.end_session(exchange):
            self.rejudge(waiting)
            self.held.free(waiting, LATE)
        claim.settle(exchange)
        outcome.settle(exchange)
        self.conversations.refresh(exchange)
        self._tell(self._on_ended, exchange, exchange)
        outcome.settle(exchange)
        self.conversations.refresh(exchange)
        if exchange.flow in self._enlightened or JUDGE_WHOLE in exchange.facts:
            self._enlightened.discard(exchange.flow)
            self.judge.again(exchange)  # its earlier messages were judged before its server's era was known
        else:
            self.judge.ended(exchange)
        self.touched(exchange)
        if exchange.kind == "mcp":
            if claim.is_undecided(exchange):
                self._keep_undecided(exchange)
            self.pairing.ended(exchange)
        if event.on_its_way:
            self.held.keep(exchange, _ON_ITS_WAY)
        self.held.settle(exchange)

    def _process_ended(self, exchange: Exchange, event: ExchangeEnded) -> None:
        process = exchange.process
        assert process is not None
        exchange.failure, exchange.dropped = event.error, event.dropped
        process.ended = exchange.ended = event.at
        if event.process is not None:
            process.status, process.input_ended = event.process.status, event.process.input_ended
        self.sessions.process_ended(exchange)

    def _last_bytes(self, exchange: Exchange, event: ExchangeEnded) -> None:
        """The body that came with the end, or the end of a stream."""
        open_ = self._streams.pop(event.flow, None)
        exchange.failure, exchange.dropped = event.error, exchange.dropped + event.dropped
        exchange.connected = event.connected
        if open_ is not None and exchange.stream is not None:
            if not event.streamed and event.body:
                exchange.stream.timed = False
                data = open_.decoder.feed(event.body[: self.limits.stream]) if open_.decoder is not None else event.body
                self._parse(exchange, open_, data, event.at)
            elif not event.streamed and event.body is None:
                exchange.stream.recorded = False
                exchange.unchecked.append(Unchecked("event stream", "its body was not recorded"))
            if open_.decoder is not None:
                self._parse(exchange, open_, open_.decoder.finish(), event.at)
                exchange.stream.decode_problem = open_.decoder.problem or event.decode_problem
                if open_.decoder.problem is not None:
                    exchange.unchecked.append(Unchecked("event stream", open_.decoder.problem))
            if exchange.stream.unread:
                exchange.unchecked.append(
                    Unchecked("event stream", f"what follows its first {exchange.stream.count} events is not read")
                )
                return
            tail = open_.parser.finish()
            exchange.stream.unfinished, exchange.stream.foreign = tail.unfinished, tail.foreign.decode("utf-8", "replace")
            exchange.body_words = error_words.stream_words(exchange)
        elif exchange.status is not None:
            if event.body is None and exchange.kind == "mcp" and exchange.status not in _BODILESS:
                exchange.unchecked.append(Unchecked("response body", "it was not recorded"))
            body = self._decoded(exchange, event.body, exchange.response_fields, "response body")
            exchange.answer_reading = reading = self._answer(exchange, body, whole=event.ended_by == "complete")
            exchange.body_words = error_words.body_words(exchange, body)
            if reading is not None and reading.messages:
                where = "response.line[{}]" if reading.kind == "lines" else "response.body"
                said = [
                    Message(rpc, exchange, "server", where.format(index), event.at) for index, rpc in enumerate(reading.messages)
                ]
                if exchange.kind != "other" or exchange.endpoint.proven:
                    for message in said:
                        self._receive(message)
                        breathe()

    def _answer(self, exchange: Exchange, body: bytes | None, *, whole: bool) -> jsonrpc.Reading | None:
        """The reading of a response body. JSON messages one after the other, as a server writes them that streams them without
        events, are read as far as they go; of another body that is not all there, nothing is said."""
        if body is not None and exchange.dropped:
            return jsonrpc.Reading("cut", problem="not all of it was kept", size=len(body))
        reading = self._reading(exchange, body, "response body")
        if not body or reading is None or reading.kind not in ("not-json", "not-utf8") or exchange.kind != "mcp":
            return reading
        lines = jsonrpc.read_lines(body, max_bytes=self.limits.body, max_depth=self.limits.depth)
        if lines is not None and (len(lines.messages) > 1 or not whole):
            return lines
        if whole:
            return reading
        exchange.unchecked.append(Unchecked("response body", "it was cut off"))
        return jsonrpc.Reading("cut", problem="it was cut off", size=len(body))

    def _keep_undecided(self, exchange: Exchange) -> None:
        waiting = self._undecided.setdefault(exchange.endpoint.url, [])
        waiting.append(exchange)
        self.held.keep(exchange, _ERA)
        if len(waiting) > self.limits.undecided:
            self.count_dropped("undecided exchanges")
            self.held.free(waiting.pop(0), _ERA)

    # Book-keeping

    def _process(self, exchange: Exchange, command: str | None) -> Process | None:
        """The process that an exchange on stdio belongs to; `command`: it stands for it."""
        if command is None:
            return self._processes.get(exchange.connection)
        process = self._processes[exchange.connection] = Process(exchange.flow, command, exchange.started)
        while len(self._processes) > self.limits.endpoints:
            del self._processes[next(iter(self._processes))]
        return process

    def _stdout(self, exchange: Exchange) -> None:
        """What a server says on its own is of the era that its process is seen to speak by then."""
        session = exchange.session = self.sessions.find(exchange)
        exchange.claim = claim.on_stdio(exchange, session, self._spoken.get(exchange.connection))
        claim.settle(exchange)

    def _kind(self, exchange: Exchange) -> Kind:
        fields, endpoint = exchange.request_fields, exchange.endpoint
        if endpoint.on_stdio:
            endpoint.proven = True
            return "process" if exchange.process is not None and exchange.process.flow == exchange.flow else "mcp"
        if exchange.http_method == "OPTIONS" and fields.has("access-control-request-method"):
            wanted = (fields.first("access-control-request-headers") or "").lower()
            return "preflight" if endpoint.proven or "mcp-" in wanted else "other"
        if endpoint.proven:
            return "mcp"
        if "/.well-known/" in exchange.url or self._authorization.recognises(exchange):
            return "other"  # for now: `Authorization` says whether it belongs to an MCP endpoint. Clients send their version
            # header there as well
        if fields.names_starting("mcp-"):
            return "mcp"
        if exchange.http_method != "OPTIONS" and any(m.rpc.kind != "invalid" for m in exchange.sent):
            return "mcp"
        if self.sessions.find(exchange) is not None:
            return "mcp"
        return "other"

    def _wait(self, exchange: Exchange) -> None:
        """Kind other, for now: its URL may still be proven an MCP endpoint."""
        waiting = self._waiting.setdefault(exchange.url, [])
        waiting.append(exchange)
        self.held.keep(exchange, _UNPROVEN)
        if len(waiting) > self.limits.undecided:
            self.held.free(waiting.pop(0), _UNPROVEN)
        while len(self._waiting) > self.limits.endpoints:
            for forgotten in self._waiting.pop(next(iter(self._waiting))):
                self.held.free(forgotten, _UNPROVEN)

    def _prove(self, endpoint: Endpoint) -> None:
        endpoint.proven = True
        for exchange in self._waiting.pop(endpoint.url, ()):
            if exchange.kind == "other":
                self._promote(exchange)
            self.held.free(exchange, _UNPROVEN)

    def _promote(self, exchange: Exchange) -> None:
        """An exchange taken for something else turns out to be MCP."""
        preflight = exchange.http_method == "OPTIONS" and exchange.request_fields.has("access-control-request-method")
        exchange.kind = "preflight" if preflight else "mcp"
        if exchange.kind == "mcp":
            self._open_mcp(exchange)
            self._tell(self._on_requested, exchange, exchange)
            for message in exchange.sent:
                self._tell(self._on_said, message, message.exchange)
            mirror.check(exchange)
            if exchange.at_server is not None:
                exchange.at_server.kind = "mcp"
                self._open_at_server(exchange, exchange.at_server)
            if evidence.served(exchange):
                self._decided(exchange.endpoint, exchange)
        if exchange.over and exchange.answer_reading is not None and not exchange.received:
            for rpc in exchange.answer_reading.messages:
                self._receive(Message(rpc, exchange, "server", "response.body", exchange.ended or exchange.requested))
        self.rejudge(exchange)

    def _endpoint(self, url: str) -> Endpoint:
        endpoint = self.endpoints.get(url)
        if endpoint is None:
            expected = self._expect(url) if self._expect is not None else None
            endpoint = self.endpoints[url] = Endpoint(url)
            if expected == "modern":
                endpoint.expected = "modern"
            elif expected == "legacy":
                endpoint.expected = "legacy"
            if len(self.endpoints) > self.limits.endpoints:
                gone = next((k for k, e in self.endpoints.items() if not e.proven and k != url), next(iter(self.endpoints)))
                if self.endpoints.pop(gone).proven:
                    self.count_dropped("endpoints")
                for forgotten in self._undecided.pop(gone, ()):
                    self.held.free(forgotten, _ERA)
        return endpoint

    def resize(self, limits: Limits) -> None:
        """Follow other limits from now on. What is remembered over them is forgotten at once."""
        self.limits = limits
        self.held.resize(limits.held, limits.held_bytes)
        self.sessions.shrink()
        self.conversations.shrink()
        self._forget_oldest()
        for tracker in self.trackers:
            tracker.resized()

    def _remember(self, exchange: Exchange) -> None:
        self.exchanges[exchange.flow] = exchange
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self.exchanges) > self.limits.state:
            flow, oldest = next(iter(self.exchanges.items()))
            del self.exchanges[flow]
            self._streams.pop(flow, None)
            self.held.forget(oldest)
            self.count_dropped("exchanges")
            if self._retire is not None:
                self._retire(oldest)

    def _tell[T](self, hooks: Sequence[Callable[[T], Iterable[Exchange] | None]], thing: T, of: Exchange) -> None:
        breathe()
        for hook in paced(hooks, 1) if of.large else hooks:
            told = hook(thing)
            if told:
                for changed in told:
                    self.rejudge(changed)

    def _read(self, exchange: Exchange, body: bytes | None, fields: Fields | None, what: str) -> jsonrpc.Reading | None:
        return self._reading(exchange, self._decoded(exchange, body, fields, what), what)

    def _decoded(self, exchange: Exchange, body: bytes | None, fields: Fields | None, what: str) -> bytes | None:
        """A body without its content coding; None where that cannot be undone."""
        coding = fields.joined("content-encoding") if fields is not None else None
        if not coding or not body:
            return body
        body, problem = decode_body(body, coding, self.limits.body)
        if problem:
            exchange.unchecked.append(Unchecked(what, f"content coding {coding}: {problem}"))
            return None
        return body

    def _reading(self, exchange: Exchange, body: bytes | None, what: str) -> jsonrpc.Reading | None:
        if body is None:
            return None
        if body:
            self.secrets.learn_body(body)
        exchange.large = exchange.large or len(body) > _LARGE
        reading = jsonrpc.read(body, max_bytes=self.limits.body, max_depth=self.limits.depth)
        _leave_unread(exchange, reading, what)
        return reading


_MOST_UNREAD = 20  # notes of one exchange: a stream may be too deep in every event


def _leave_unread(exchange: Exchange, reading: jsonrpc.Reading, what: str) -> None:
    """What of a body or an event is not read is not judged, and is said to be so."""
    if reading.kind in ("too-large", "too-deep"):
        why = reading.problem or reading.kind
    elif reading.unread:
        why = f"{reading.unread} items of the batch, past the first {len(reading.messages)}, are not read"
    else:
        return
    if len(exchange.unchecked) < _MOST_UNREAD:
        exchange.unchecked.append(Unchecked(what, why))


def _is_form(fields: Fields) -> bool:
    content_type = fields.first("content-type")
    return content_type is not None and content_type.lower().startswith(form.MEDIA_TYPE) and not fields.has("content-encoding")


def _auth(fields: Fields) -> str:
    value = fields.first("authorization")
    return _hash(value) if value else ""


@lru_cache(maxsize=64)  # a client says the same with each request
def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("latin-1", "replace")).hexdigest()[:8]


_LONGEST_LINE = 100_000  # bytes of a client's line that is no JSON: several may make one message
_LONGEST_STDERR = 8_000  # characters of a process's stderr that are shown beside it


def _add_errors(process: Process, data: bytes) -> None:
    process.stderr_size += len(data)
    process.stderr = (process.stderr + data.decode("utf-8", "replace"))[-_LONGEST_STDERR:]


def _proves(exchange: Exchange) -> bool:
    """Traffic that only an MCP client sends: its headers, or a JSON-RPC message."""
    return exchange.http_method == "POST" and (
        any(m.rpc.kind != "invalid" for m in exchange.sent) or exchange.request_fields.has("mcp-method")
    )
