"""Live flows made into the events of a trace. The bytes that pass are the bytes that came; streams pass at once, copied.

What mitmproxy leaves open is decided here: which responses are streams (`passing`), how a stream is kept (bounded, whatever way
it ends), and who ended it. Bytes go first; what they mean is looked at when they are on their way (`inspection`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mitmproxy.connection import ConnectionState
from mitmproxy.flow import Error
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import ReverseMode

from mcp_wiretap.proxy import passing
from mcp_wiretap.proxy.changes import Answer, Changes, Request
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.inspection import Inspection
from mcp_wiretap.proxy.stored import authority, command_of, ended_by, exit_of, failure, is_event_stream, text
from mcp_wiretap.trace.events import EndedBy, Event, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.wire.headers import Fields

REFRESH = 0.5  # seconds between two pictures of an open stream: mitmweb hashes the whole body for each


class Trace(Protocol):
    """What the capture asks of the trace it feeds."""

    def feed(self, event: Event, flow: HTTPFlow, current: Callable[[], HTTPFlow | None]) -> None:
        """Take the next event of a flow; `current` tells, then and later, in which flow's hook that is."""

    def is_mcp(self, trace_id: str) -> bool:
        """Whether an exchange is known to be MCP."""

    def refresh(self, flow: HTTPFlow, trace_id: str) -> None:
        """An open stream has grown: show it."""

    def arrived(self, trace_id: str) -> None:
        """The answer went to the client as it came."""


def request_seen(flow: HTTPFlow, trace_id: str, received: Request) -> RequestSeen:
    """The request of a live flow, as the client sent it. One that the client broke off has no end and no body."""
    data = flow.request.data
    ended = data.timestamp_end
    head, body = received
    if ended is None:
        body = None
    if ended is None:
        ended = flow.error.timestamp if flow.error is not None else data.timestamp_start
    fields = Fields(head.fields)
    return RequestSeen(
        trace_id,
        ended,
        data.timestamp_start,
        text(head.method),
        text(head.scheme),
        head.host,
        head.port,
        text(head.path),
        fields,
        body,
        flow.client_conn.id,
        authority(data.http_version, head.authority, fields),
        isinstance(flow.client_conn.proxy_mode, ReverseMode),
        command=command_of(flow.metadata),
    )


def response_started(flow: HTTPFlow, trace_id: str) -> ResponseStarted:
    assert flow.response is not None
    data = flow.response.data
    return ResponseStarted(trace_id, data.timestamp_start, data.status_code, Fields(data.headers.fields))


def who_ended(flow: HTTPFlow, last: float, tcp_timeout: int) -> EndedBy:
    """Who ended a flow that has an error, by the states of its connections: its text is not to be trusted on HTTP/2. `last`: when
    something of the flow was last seen; `tcp_timeout`: after how many seconds mitmproxy itself closes a quiet connection."""
    error = flow.error
    assert error is not None
    if error.msg == Error.KILLED_MESSAGE:
        return "unknown"
    if flow.request.data.scheme == b"stdio":
        return ended_by(error.msg, flow.response is not None)
    if flow.client_conn.state is ConnectionState.CLOSED:
        idle = error.timestamp - last
        return "unknown" if 0 < tcp_timeout <= idle < tcp_timeout + 2 else "client"
    if not flow.server_conn.state & ConnectionState.CAN_READ:
        return "server"
    # Both are open: an HTTP/2 stream was reset. mitmproxy says "by client" of either side; CANCEL is what clients send.
    return "client" if "(CANCEL)" in error.msg else "unknown"


class Tap:
    """The stream callable of one response: hands on what it is given, copies up to a limit, and has the copy looked at later.

    mitmproxy drops a chunk whose callable raises, and takes b"" for the end of the body: so it returns its argument, always.
    `events`: the body is an event stream, and is read as it comes; another one is read at its end.
    """

    def __init__(self, capture: "Capture", flow: HTTPFlow, trace_id: str, before: Any, *, events: bool) -> None:
        self._capture = capture
        self._flow = flow
        self._trace_id = trace_id
        self._before = before if callable(before) else None  # another addon's callable: it still decides what passes
        self._most = capture.limits.stream if events else max(capture.limits.stream, capture.limits.body)
        self._stored: bytes | None = None
        self._refreshed = 0.0 if events else capture.clock()  # most bodies are over before anybody could look at a part of them
        self._timer: asyncio.TimerHandle | None = None
        self._open = True
        self.events = events
        self.kept = bytearray()
        self.passed: bytearray | None = None  # what another addon made of it, where one stands in the way
        self.dropped = 0
        self.last = 0.0

    def __call__(self, data: bytes) -> bytes | Iterable[bytes]:
        try:
            if data:
                self._came(data)
        except Exception as error:
            self._capture.faults.note("event stream", error, self._flow.id)
        if self._before is not None:
            return self.watch(self._before(data))
        return data

    def watch(self, passing: bytes | Iterable[bytes]) -> bytes | Iterable[bytes]:
        """Copy what another addon hands on."""
        pieces = passing if isinstance(passing, bytes) else list(passing)
        if self.passed is None:
            self.passed = bytearray()
        whole = pieces if isinstance(pieces, bytes) else b"".join(pieces)
        self.passed += whole[: max(self._capture.limits.stream - len(self.passed), 0)]
        return pieces

    def _came(self, data: bytes) -> None:
        self.last = now = self._capture.now()
        room = self._most - len(self.kept)
        if len(data) > room:
            self.dropped += len(data) - room
            data = data[:room]
            if not data:
                return
        self.kept += data
        self._capture.inspection.later("event stream", self._flow, partial(self._inspect, now, data))

    def _inspect(self, came: float, data: bytes) -> None:
        if self.events:
            self._capture.tell(StreamData(self._trace_id, came, data), self._flow)
        if self._open:
            self._picture(self._capture.clock())

    def _picture(self, now: float) -> None:
        """Let the user see an open stream grow, but not more often than is cheap; the last picture is never missed."""
        if now - self._refreshed >= REFRESH:
            self._show()
        elif self._timer is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            self._timer = loop.call_later(REFRESH - (now - self._refreshed), self._show)

    def _show(self) -> None:
        self._timer = None
        self._refreshed = self._capture.clock()
        try:
            self.store()
            self._capture.trace.refresh(self._flow, self._trace_id)
        except Exception as error:
            self._capture.faults.note("event stream", error, self._flow.id)

    def store(self) -> None:
        """Put what was kept into the flow, raw. Where the user has mitmproxy store streamed bodies whole, that one stays."""
        response = self._flow.response
        if response is not None and (response.raw_content is None or response.raw_content is self._stored):
            # Not `content`: its setter encodes anew and adds a Content-Length that never was on the wire.
            self._stored = response.raw_content = bytes(self.kept)

    def close(self) -> None:
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.store()


class Capture:
    """Follows live flows from hook to hook. What the hooks of a flow return may be waited for, or not: its inspection is then not
    done yet, and is shown when it is."""

    def __init__(self, trace: Trace, limits: Limits, faults: Faults, clock: Callable[[], float] = time.time) -> None:
        self.trace = trace
        self.limits = limits
        self.faults = faults
        self.clock = clock
        self._moment: float | None = None
        self.inspection = Inspection(faults)
        self._open: dict[str, Tap | None] = {}  # flow id -> what copies its stream, until the flow is over
        self._replays: WeakKeyDictionary[HTTPFlow, tuple[str, int]] = WeakKeyDictionary()
        self.changes = Changes(self._tell_change, self.now)
        self._unfinished: Awaitable[None] | None = None  # the inspection of the change that was told last
        self.leaving: Callable[[HTTPFlow, Request | None], None] | None = None  # asked before a request is compared
        self.answer_leaving: Callable[[HTTPFlow], None] | None = None
        self.watches_ends = False  # whether an object at the end of the chain tells what leaves (`proxy.chain`)

    def now(self) -> float:
        """The time of what is told now: the clock's, unless whoever tells it knows better."""
        return self._moment if self._moment is not None else self.clock()

    @contextmanager
    def at(self, moment: float) -> Iterator[None]:
        """What is told within happened at that moment (a wrapper of a stdio server tells it later)."""
        before, self._moment = self._moment, moment
        try:
            yield
        finally:
            self._moment = before

    def errors(self, flow: HTTPFlow, at: float, text: bytes) -> None:
        """A stdio server wrote to its stderr."""
        self.inspection.later("stderr", flow, partial(self.tell, StreamData(self.trace_id(flow), at, text), flow))

    def follows(self, flow: HTTPFlow) -> bool:
        """Whether the flow is live, or was when its request came (a killed flow is no longer live)."""
        return flow.live or flow.id in self._open

    def request(self, flow: HTTPFlow) -> Awaitable[None] | None:
        if flow.is_replay == "request":
            # mitmproxy replays in place, under the same flow id: for the trace it is a new exchange.
            count = self._replays.get(flow, ("", 0))[1] + 1
            self._replays[flow] = (f"{flow.id}-replay-{count}", count)
        self._open[flow.id] = None
        return self._now("request", request_seen(flow, self.trace_id(flow), self.changes.received(flow)), flow)

    def request_came(self, flow: HTTPFlow) -> None:
        if flow.live:
            self.changes.came(flow)

    def response_came(self, flow: HTTPFlow) -> None:
        self.changes.answer_came(flow)

    def request_leaves(self, flow: HTTPFlow, before: Request | None) -> None:
        if flow.id not in self._open:
            return
        try:
            if self.leaving is not None:
                self.leaving(flow, before)
        finally:
            self.changes.sent(flow, self.trace_id(flow), self.limits.body, leaves=True, held=before)

    def response_head_leaves(self, flow: HTTPFlow) -> None:
        """Another addon may have put its callable in front of ours, or in its place."""
        self.changes.head_left(flow)
        tap, response = self._open.get(flow.id), flow.response
        if tap is not None and response is not None and response.stream is not tap and callable(response.stream):
            outer = response.stream
            response.stream = lambda data: tap.watch(outer(data))

    def response_settles(self, flow: HTTPFlow) -> Awaitable[None] | None:
        self._unfinished = None
        self.changes.passed(flow, self.trace_id(flow), self.limits.body, last=False)
        return self._unfinished

    def response_leaves(self, flow: HTTPFlow, before: Answer | None) -> None:
        trace_id = self.trace_id(flow)
        if self.answer_leaving is not None and before is not None:
            self.answer_leaving(flow)
        if not self.changes.passed(flow, trace_id, self.limits.body, held=before):
            self.inspection.now("response", flow, partial(self.trace.arrived, trace_id))

    def responseheaders(self, flow: HTTPFlow, *, whole: bool = False) -> None:
        """`whole`: the answer is kept back until it is whole, whatever it is."""
        response = flow.response
        assert response is not None
        trace_id = self.trace_id(flow)
        self.changes.sent(flow, trace_id, self.limits.body)
        self.changes.answered(flow, trace_id)
        started = response_started(flow, trace_id)
        self._now("responseheaders", started, flow)
        if response.data.content is not None:
            return  # an addon made it (replay, map local): a callable would never be called
        if whole:
            response.stream = False
            return
        events = is_event_stream(started.fields.first("content-type") or "")
        if events or passing.is_stream(flow, mcp=self.trace.is_mcp(trace_id)):
            tap = Tap(self, flow, trace_id, response.stream, events=events)
            self._open[flow.id] = tap
            response.stream = tap

    def response(self, flow: HTTPFlow) -> Awaitable[None] | None:
        assert flow.response is not None
        data = flow.response.data
        return self._end(flow, data.timestamp_end or self.clock(), "complete", None)

    def error(self, flow: HTTPFlow, tcp_timeout: int) -> Awaitable[None] | None:
        assert flow.error is not None
        if flow.id not in self._open:
            self.request(flow)
        tap = self._open.get(flow.id)
        last = tap.last if tap is not None else 0.0
        if not last:
            head = flow.response.data.timestamp_start if flow.response is not None else None
            last = head or flow.request.data.timestamp_end or flow.request.data.timestamp_start
        self.changes.sent(flow, self.trace_id(flow), self.limits.body)
        ended_by = who_ended(flow, last, tcp_timeout)
        return self._end(flow, flow.error.timestamp, ended_by, failure(flow.error.msg, ended_by))

    def _end(self, flow: HTTPFlow, at: float, ended_by: EndedBy, error: str | None) -> Awaitable[None] | None:
        trace_id = self.trace_id(flow)
        tap = self._open.pop(flow.id, None)
        response = flow.response
        connected = True
        if tap is not None:
            tap.close()
            # After the body is in the flow: a fault in the trace must not cost it.
            kept: bytes | None = bytes(tap.kept)
            body, streamed, dropped = None if tap.events else kept, tap.events, tap.dropped
            self.changes.given(flow, kept)
        else:
            body, streamed, dropped = response.data.content if response is not None else None, False, 0
            body = self.changes.given(flow, body)
            if response is not None and body and is_event_stream(response.headers.get("content-type", "")):
                data = StreamData(trace_id, at, body[: self.limits.stream], timed=False)
                self._now("response", data, flow)
                body, streamed = None, True
            server = flow.server_conn
            reached = server.timestamp_tcp_setup is not None and (not server.tls or server.timestamp_tls_setup is not None)
            connected = response is not None or flow.request.data.scheme == b"stdio" or ended_by == "client" or reached
        passed = bytes(tap.passed) if tap is not None and tap.passed is not None else None
        waits = self.watches_ends and error is None  # for the end of the chain
        later = waits or self.changes.differs(flow, passed)
        ended = ExchangeEnded(
            trace_id,
            at,
            body,
            streamed,
            ended_by,
            error,
            dropped,
            connected=connected,
            on_its_way=later,
            process=exit_of(flow.metadata) if tap is None else None,
        )
        unfinished, self._unfinished = self._now("response", ended, flow), None
        if passed is not None or not waits:
            self.changes.passed(flow, trace_id, self.limits.body, streamed=passed, last=not waits)
        return self._unfinished or unfinished

    def _tell_change(self, event: Event, flow: HTTPFlow) -> None:
        self._unfinished = self._now("change", event, flow)

    def _now(self, hook: str, event: Event, flow: HTTPFlow) -> Awaitable[None] | None:
        return self.inspection.now(hook, flow, partial(self.tell, event, flow))

    def tell(self, event: Event, flow: HTTPFlow) -> None:
        """Let the trace have an event, when its turn has come."""
        self.trace.feed(event, flow, self._current)

    def _current(self) -> HTTPFlow | None:
        return self.inspection.inside

    def close(self) -> None:
        """mitmproxy is going down: what was kept of open streams goes into their flows before they are saved."""
        self.inspection.drain()
        for tap in self._open.values():
            if tap is not None:
                try:
                    tap.close()
                except Exception as error:
                    self.faults.note("shutdown", error)
        self._open.clear()

    def trace_id(self, flow: HTTPFlow) -> str:
        if flow.is_replay == "request" and flow in self._replays:
            return self._replays[flow][0]
        return flow.id
