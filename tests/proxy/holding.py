"""How often the loop turns while something is done."""

import asyncio
from collections.abc import Awaitable, Callable


async def turns(work: Callable[[], Awaitable[None]]) -> int:
    """Return how many turns the loop made meanwhile: whoever waits for it gets as many chances."""
    count = 0
    over = False

    async def wait() -> None:
        nonlocal count
        while not over:
            count += 1
            await asyncio.sleep(0)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    count = 0
    await work()
    over = True
    await waiting
    return count
