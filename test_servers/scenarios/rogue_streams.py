"""Tours of the rogues whose streams, messages or logs are wrong."""

import json
from typing import Any

from test_servers.client import Heard, text_of
from test_servers.raw import RawClient
from test_servers.scenarios.base import Target, scenario
from test_servers.scenarios.rogue_answers import DISCOVER
from test_servers.scenarios.rogues import LegacyCaller, ask, call, told, tour
from test_servers.steps import Scenario, expect

LISTEN = ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})

tour("rogue-stream-requests", DISCOVER, *(call(name) for name in ("asks", "cancels", "announces")))
tour("rogue-after-response", DISCOVER, call("late_progress", token="t-1"), call("late_log", logLevel="info"), call("twice"))
tour("rogue-stream-shape", DISCOVER, call("event_ids", token="t-1"), call("event_type", token="t-2"), call("no_json"), LISTEN)
tour("rogue-cut-streams", DISCOVER, call("ended", token="t-1"), call("cut", token="t-2"))
tour("rogue-endless-streams", DISCOVER, call("never_answers", token="t-1", seconds=1), call("stays_open", seconds=1))
tour(
    "rogue-progress",
    DISCOVER,
    *(call(name, token=f"t-{name}") for name in ("back", "still", "beyond", "other_token")),
    call("not_asked"),
)
tour(
    "rogue-logs",
    DISCOVER,
    call("unasked"),
    call("below", logLevel="error"),
    call("malformed", logLevel="info"),
    call("secret", logLevel="info"),
    call("bad_level", logLevel="loud"),
)


@scenario("rogue-drip", "rogue-codings")
async def lawful(target: Target, steps: Scenario) -> None:
    """What is unusual and lawful: the SDK's client has to come through."""

    async def tools() -> str:
        async with target.client() as client:
            await client.list_tools()
            return text_of(await client.call_tool("echo", {"message": "Zürich 東京 👋"}))

    async def stream() -> str:
        heard = Heard()
        async with target.client(heard, mode="2026-07-28", log_level="info") as client:
            await client.call_tool("build_report", {"sections": 2}, progress_callback=heard.on_progress)
        expect((len(heard.logs), heard.progress) == (2, [1, 2]), f"{heard}")
        return "2 log messages, 2 progress events"

    await steps.step("tools", tools)
    await steps.step("a stream", stream)


@scenario("rogue-envelopes")
async def envelopes(target: Target, steps: Scenario) -> None:
    client = RawClient(target.url)
    names = ("version", "other_id", "string_id", "no_id", "both", "neither", "string_code", "no_message", "batch")
    await steps.step("server/discover", lambda: told(client.call("server/discover")))
    for name in (*names, "twice_named", "latin1"):
        await steps.step(name, lambda name=name: told(client.call("tools/call", {"name": name, "arguments": {}})))  # type: ignore[misc]

    async def notify() -> str:
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        headers = client.headers({**body, "params": {}})
        return await told(client.send(json.dumps(body).encode(), [*headers.items()]))

    await steps.step("notification", notify)
    await steps.step("notification again", notify)


@scenario("rogue-modern-only")
async def modern_only(target: Target, steps: Scenario) -> None:
    await steps.step("tools/list", lambda: told(RawClient(target.url).call("tools/list")))

    async def handshake() -> str:
        caller = LegacyCaller(target.url)
        params: dict[str, Any] = {
            "protocolVersion": caller.version,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        return await told(caller.post("initialize", params, before=True))

    await steps.step("initialize", handshake)
