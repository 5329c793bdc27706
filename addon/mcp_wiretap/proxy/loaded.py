"""Flows read from a file into a running proxy (`-r`, an upload, a HAR): a trace of their own, in the order of their times.

They come in the order in which they were saved, one hook after the other. Each is inspected at once, so that what `-w` writes
holds a verdict (a provisional one); when none has come for a while, all are inspected anew in order, a few at a time so that
live traffic does not wait, and annotated again.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from mitmproxy import ctx
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.mode_specs import ReverseMode

from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.proxy.watch import Watch
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.model import Exchange

QUIET = 0.5  # seconds without a further flow: the file has been read
BATCHES = 20  # files whose traces are remembered
SLICE = 0.005  # seconds of work between two looks at the network


class Loaded:
    def __init__(self, settings: Settings, updated: Callable[[list[HTTPFlow]], None], faults: Faults) -> None:
        self._settings = settings
        self._updated = updated
        self._faults = faults
        self._flows: dict[str, HTTPFlow] = {}
        self._provisional: Watch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.watches: deque[Watch] = deque(maxlen=BATCHES)  # one for each file, newest last

    def use(self, settings: Settings) -> None:
        self._settings = settings

    def took(self, flow: HTTPFlow) -> None:
        """A loaded flow, at its `response` or `error` hook (there may be both)."""
        if self._flows.get(flow.id) is not flow:
            while len(self._flows) >= self._settings.limits.state:
                del self._flows[next(iter(self._flows))]  # it keeps its provisional verdict
            self._flows[flow.id] = flow
            if self._provisional is None:
                self._provisional = self._watch()
            for event in self._events(flow):
                self._provisional.feed(event, flow, lambda: flow)
        self._wait()

    def find(self, flow: Flow) -> tuple[Watch, Exchange] | None:
        """What is known of a loaded flow by now."""
        for watch in (self._provisional, *reversed(self.watches)):
            exchange = watch.exchange_of(flow, flow.id) if watch is not None else None
            if watch is not None and exchange is not None:
                return watch, exchange
        return None

    def finish(self) -> None:
        """mitmproxy is going down: what waits is inspected now."""
        self._cancel()
        if self._flows:
            for _ in self._steps(self._watch()):
                pass

    def _wait(self) -> None:
        self._cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(QUIET, self._start)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _start(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._inspect())

    async def _inspect(self) -> None:
        try:
            async for _ in _gently(self._steps(self._watch())):
                pass
        except Exception as error:
            self._faults.note("loaded flows", error)
        self._task = None

    def _watch(self) -> Watch:
        return Watch(self._settings, self._updated, self._faults)

    def _steps(self, watch: Watch) -> Iterator[None]:
        """Inspect all collected flows in the order of their times, then show what was found."""
        flows = list(self._flows.values())
        timed: list[tuple[float, int, Event]] = []
        for number, flow in enumerate(flows):
            watch.flows[flow.id] = flow
            latest = 0.0
            for event in self._events(flow):
                latest = max(latest, event.at)
                timed.append((latest, number, event))
            yield
        timed.sort(key=lambda entry: entry[:2])
        for _, _, event in timed:
            watch.follow(event)
            yield
        watch.inspector.finish()
        self.watches.append(watch)
        self._provisional = None
        self._flows = {}
        for exchange in list(watch.inspector.exchanges.values()):
            watch.show([exchange])
            yield

    def _events(self, flow: HTTPFlow) -> list[Event]:
        try:
            return events_of(flow.get_state(), self._settings.limits.stream, address=recorded_address(flow))
        except Exception as error:
            self._faults.note("loaded flow", error, flow.id)
            return []


def recorded_address(flow: HTTPFlow) -> tuple[str, str, int] | None:
    """Where a loaded flow went when it was recorded, in a proxy that rewrites what it loads (a single reverse mode)."""
    modes: Any = ctx.options.mode
    address = flow.server_conn.address
    if len(modes) != 1 or not modes[0].startswith("reverse:") or address is None:
        return None
    mode = ReverseMode.parse(modes[0])
    if (flow.request.data.host, flow.request.data.port) != (mode.address[0], mode.address[1]):
        return None  # not rewritten
    return ("https" if flow.server_conn.tls else "http"), address[0], address[1]


async def _gently(steps: Iterable[None]) -> AsyncIterator[None]:
    """Take steps, and let the event loop breathe between slices of them."""
    until = time.monotonic() + SLICE
    for step in steps:
        if time.monotonic() >= until:
            await asyncio.sleep(0)
            until = time.monotonic() + SLICE
        yield step
