"""Tours of the rogues that go wrong over several requests: subscriptions, tasks, sessions of the handshake era."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from test_servers.raw import RawClient, Reply
from test_servers.scenarios.base import Target, scenario
from test_servers.scenarios.rogue_answers import DISCOVER
from test_servers.scenarios.rogues import FORM, TASKS, Ask, LegacyCaller, ask, call, told, tour
from test_servers.steps import Scenario

IDS = [f"0b5e3c1a-7d42-4f0e-9a63-5c1d2e8f{number:04x}" for number in range(0x51A0, 0x51B0)]
"""Those of the tasks in configs/rogues."""


def listen(**wanted: Any) -> Ask:
    return ask("subscriptions/listen", {"notifications": wanted})


def of_task(method: str, task: int, **more: Any) -> Ask:
    return ask(f"tasks/{method}", {"taskId": IDS[task], **more}, capabilities=TASKS | FORM)


def started(name: str) -> Ask:
    return call(name, capabilities=TASKS | FORM)


tour(
    "rogue-subscriptions",
    DISCOVER,
    *[listen(toolsListChanged=True)] * 7,
    listen(resourceSubscriptions=["demo://resource/static/1"]),
    *[listen(toolsListChanged=True)] * 4,
)
tour(
    "rogue-tasks",
    DISCOVER,
    call("undeclared"),
    ask("prompts/get", {"name": "simple_prompt"}, capabilities=TASKS),
    started("nested"),
    started("guessable"),
    started("changes_after_end"),
    *[of_task("get", 3)] * 5,
    of_task("cancel", 3),
    started("vanishes"),
    *[of_task("get", 4)] * 2,
)
ANSWER = {"q": {"action": "accept", "content": {"name": "Ada"}}}
tour(
    "rogue-task-questions",
    DISCOVER,
    started("asks"),
    of_task("get", 8),
    of_task("update", 8, inputResponses=ANSWER),
    *[of_task("get", 8)] * 2,
)

Step = Callable[[], Coroutine[Any, Any, Reply]]


async def _in_turn(steps: Scenario, *asked: tuple[str, Step]) -> None:
    for title, send in asked:
        await steps.step(title, lambda send=send: told(send(), 2))  # type: ignore[misc]


@scenario("rogue-legacy-sessions")
async def sessions(target: Target, steps: Scenario) -> None:
    one, two, three = (LegacyCaller(target.url) for _ in range(3))
    await _in_turn(
        steps,
        ("initialize", one.initialize),
        ("tools/list", lambda: one.post("tools/list", {})),
        ("tools/list, another id comes", lambda: one.post("tools/list", {})),
        ("DELETE", lambda: one.other("DELETE")),
        ("tools/list in the ended session", lambda: one.post("tools/list", {})),
        ("a second session", two.initialize),
        ("a third session", three.initialize),
    )


@scenario("rogue-legacy-streams")
async def streams(target: Target, steps: Scenario) -> None:
    caller, other = LegacyCaller(target.url), LegacyCaller(target.url)

    def tool(name: str) -> Step:
        params = {"name": name, "arguments": {}, "_meta": {"progressToken": f"token of {name}"}}
        return lambda: caller.post("tools/call", params)

    async def beside() -> Reply:
        """A call while the stream of the GET is open."""
        async with asyncio.TaskGroup() as group:
            group.create_task(told(caller.other("GET"), 1))
            await asyncio.sleep(0.1)
            called = group.create_task(tool("twice")())
        return called.result()

    await _in_turn(
        steps,
        ("initialize", caller.initialize),
        ("a call beside a GET", beside),
        *((name, tool(name)) for name in ("ended", "back", "late")),
        ("a second session", other.initialize),
        ("GET", lambda: other.other("GET")),
    )


@scenario("rogue-legacy-results")
async def results(target: Target, steps: Scenario) -> None:
    caller = LegacyCaller(target.url)

    def tool(name: str) -> tuple[str, Step]:
        return name, lambda: caller.post("tools/call", {"name": name, "arguments": {}})

    await _in_turn(
        steps,
        ("initialize", lambda: caller.initialize({"elicitation": {"form": {}}})),
        ("ping", lambda: caller.post("ping", {})),
        ("tools/list", lambda: caller.post("tools/list", {})),
        *(tool(name) for name in ("array", "interim", "asks_undeclared", "completes", "url")),
    )


@scenario("rogue-legacy-version")
async def versions(target: Target, steps: Scenario) -> None:
    caller = LegacyCaller(target.url)

    def strange() -> Coroutine[Any, Any, Reply]:
        caller.version = "latest"
        return caller.post("tools/list", {})

    strange_call, last = ("tools/list under a strange version", strange), LegacyCaller(target.url)
    await _in_turn(steps, *[("initialize", caller.initialize)] * 2, strange_call, ("initialize", last.initialize))


@scenario("rogue-legacy-tasks")
async def legacy_tasks(target: Target, steps: Scenario) -> None:
    caller, task = LegacyCaller(target.url), {"taskId": IDS[10]}
    augmented = {"name": "simple_task", "arguments": {}, "task": {"ttl": 600000}}
    await _in_turn(
        steps,
        ("initialize", caller.initialize),
        ("tools/list", lambda: caller.post("tools/list", {})),
        ("a task", lambda: caller.post("tools/call", augmented)),
        *[("tasks/get", lambda: caller.post("tasks/get", task))] * 2,
        ("tasks/result", lambda: caller.post("tasks/result", task)),
        ("tasks/get", lambda: caller.post("tasks/get", task)),
        ("tasks/cancel", lambda: caller.post("tasks/cancel", task)),
        ("another task", lambda: caller.post("tools/call", augmented)),
    )


@scenario("rogue-legacy-sse")
async def http_sse(target: Target, steps: Scenario) -> None:
    async def stream() -> str:
        lines = [("accept", "text/event-stream")]
        return await told(RawClient(target.url).send(b"", lines, http_method="GET"), 1)

    await steps.step("GET", stream)
