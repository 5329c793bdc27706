"""Rogue clients of the handshake era."""

from typing import Any

from test_servers.raw import Reply
from test_servers.rogue_clients.base import rogue_client
from test_servers.scenarios.base import Target
from test_servers.scenarios.rogues import LegacyCaller, told
from test_servers.steps import Scenario


@rogue_client("client-sessions", config="logging-legacy-http")
async def sessions(target: Target, steps: Scenario) -> None:
    """Sessions without their id, after their end, with ids used twice, other versions in the header, and batches."""
    caller = LegacyCaller(target.url)

    async def step(title: str, answer: Any) -> None:
        await steps.step(title, lambda: told(answer, 5))

    async def same_id() -> Reply:
        caller.next_id -= 1
        return await caller.post("tools/list", {})

    async def without_version() -> Reply:
        return await caller.send({"jsonrpc": "2.0", "id": 50, "method": "tools/list"}, before=True)

    async def another_version() -> Reply:
        caller.version = "2025-06-18"
        reply = await caller.post("tools/list", {})
        caller.version = "2025-11-25"
        return reply

    async def stale() -> Reply:
        await caller.post("tools/list", {})
        await caller.post("tools/list", {})
        return await caller.post("tools/list", {})

    await step("initialize", caller.initialize())
    await step("tools/list", caller.post("tools/list", {}))
    await step("the same id again", same_id())
    await step("no version header", without_version())
    await step("another version in the header", another_version())
    call = {"jsonrpc": "2.0", "id": 60, "method": "tools/list"}
    await step("a batch", caller.send([call, {**call, "id": 61}]))
    await step("DELETE", caller.other("DELETE"))
    await step("the ended session", stale())
