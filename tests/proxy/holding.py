"""How long the loop is held by one of its turns."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def held(work: Callable[[], Awaitable[None]]) -> float:
    """The longest turn of the loop while something was done, in CPU seconds: a busy machine makes it no longer."""
    longest, run = 0.0, asyncio.events.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        try:
            run(handle)
        finally:
            longest = max(longest, time.thread_time() - began)

    asyncio.events.Handle._run = timed  # type: ignore[method-assign]
    try:
        await asyncio.sleep(0)
        await work()
        await asyncio.sleep(0)
    finally:
        asyncio.events.Handle._run = run  # type: ignore[method-assign]
    return longest
