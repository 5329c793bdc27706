"""Inspection that nothing waits for: work in the order in which it was put in, a few milliseconds of it at a time.

A message of some megabytes takes a second to inspect. The loop that inspects it is the loop that passes everybody's bytes; so
each piece of work runs as a greenlet, which rests where the work offers it (`wire.pace`) once its time is up, and goes on in a
later turn of the loop. The order of the events of a trace stays: nothing is begun before what came earlier is done.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

import greenlet
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.rule.containment import is_interrupt
from mcp_wiretap.wire.pace import resting

SLICE = 0.005  # seconds of work between two turns of the loop
PATIENCE = 2.0  # seconds that a flow waits at its end for its own inspection, so that a file holds its verdict
SHORT_PATIENCE = 0.1  # and for that of others, which came before it

type Work = Callable[[], None]


@dataclass(slots=True, frozen=True)
class _Waiting:
    what: str
    flow: HTTPFlow
    work: Work


class Inspection:
    """Work on one trace. Not thread-safe: one loop, one Inspection."""

    def __init__(self, faults: Faults, slice_s: float = SLICE) -> None:
        self._faults = faults
        self._slice = slice_s
        self._waiting: deque[_Waiting] = deque()
        self._running: Any = None  # the first one that waits, begun and resting
        self.inside: HTTPFlow | None = None  # the flow in whose hook work is being done
        self._until: float | None = None
        self._hub: Any = None
        self._turn: asyncio.Handle | None = None
        self._done: list[tuple[int, asyncio.Future[None]]] = []  # how many pieces of work must be done until then
        self._count = 0

    def now(self, what: str, flow: HTTPFlow, work: Work) -> Awaitable[None] | None:
        """Do it in this hook of the flow, after all that waits. Where that takes longer than a slice the rest is done later;
        the hook may then wait for what is returned, which ends when it is done, or when it took too long."""
        self._waiting.append(_Waiting(what, flow, work))
        self._advance(flow)
        return self._wait(flow) if self._waiting else None

    def later(self, what: str, flow: HTTPFlow, work: Work) -> None:
        """Do it in the next turn of the loop: what the hook returns is on its way by then."""
        self._waiting.append(_Waiting(what, flow, work))
        self._arrange()

    def drain(self) -> None:
        """Do all that waits, at once."""
        self._advance(None, hurry=True)

    def _arrange(self) -> None:
        """See to it that there is a next turn. Without a loop (tests, the end of mitmproxy) there is nobody to hold."""
        if self._turn is None:
            try:
                self._turn = asyncio.get_running_loop().call_soon(self._take_turn)
            except RuntimeError:
                self.drain()

    def _take_turn(self) -> None:
        self._turn = None
        self._advance(None)

    def _advance(self, inside: HTTPFlow | None, *, hurry: bool = False) -> None:
        if self._hub is not None:
            return  # somebody whom the work itself called: it is done after it
        self._hub, self.inside = greenlet.getcurrent(), inside
        self._until = None if hurry else time.perf_counter() + self._slice
        try:
            while self._waiting and (self._until is None or time.perf_counter() < self._until):
                self._go_on()
        finally:
            self._hub = self.inside = None
        if self._waiting:
            self._arrange()

    def _go_on(self) -> None:
        """Begin the first work that waits, or take it up again, until it is done or rests."""
        running = self._running
        if running is None:
            running = self._running = greenlet.greenlet(self._do)
        running.parent = self._hub
        try:
            with resting(self._rest):
                running.switch()
        finally:
            if running.dead:
                self._running = None
                self._waiting.popleft()
                self._count += 1
                self._tell_done()

    def _do(self) -> None:
        waiting = self._waiting[0]
        try:
            waiting.work()
        except BaseException as error:
            if is_interrupt(error):
                raise
            self._faults.note(waiting.what, error, waiting.flow.id)

    def _tell_done(self) -> None:
        while self._done and self._done[0][0] <= self._count:
            _, future = self._done.pop(0)
            if not future.done():
                future.set_result(None)

    def _rest(self) -> None:
        if self._until is not None and self._hub is not None and time.perf_counter() >= self._until:
            self.inside = None  # when it goes on, the hook is over
            self._hub.switch()

    def _wait(self, flow: HTTPFlow) -> Awaitable[None] | None:
        try:
            future = asyncio.get_running_loop().create_future()
        except RuntimeError:
            return None
        self._done.append((self._count + len(self._waiting), future))
        own = all(waiting.flow is flow for waiting in self._waiting)
        return _Unfinished(future, PATIENCE if own else SHORT_PATIENCE)


@dataclass(slots=True, frozen=True)
class _Unfinished:
    """May be waited for, or let alone."""

    future: asyncio.Future[None]
    seconds: float

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await asyncio.wait((self.future,), timeout=self.seconds)
