"""Long work in the loop that passes everybody's bytes: a few milliseconds at a time, with the loop's turn in between."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import greenlet

from mcp_wiretap.wire.pace import resting

SLICE = 0.004  # seconds of work between two turns of the loop


async def gently[T](work: Callable[[], T], slice_s: float = SLICE) -> T:
    """Return what `work` returns, or raise what it raises. It is interrupted where it offers that (`wire.pace.breathe`)."""
    running: Any = greenlet.greenlet(work)
    until = 0.0
    hub: Any = None

    def rest() -> None:
        if time.perf_counter() >= until:
            hub.switch()

    while True:
        hub, until = greenlet.getcurrent(), time.perf_counter() + slice_s
        running.parent = hub
        with resting(rest):
            result = running.switch()
        if running.dead:
            return cast("T", result)
        await asyncio.sleep(0)
