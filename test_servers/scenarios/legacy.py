"""Scenarios of the legacy configs."""

import asyncio
from typing import Any

import mcp_types as types

from test_servers.client import Heard, text_of
from test_servers.scenarios.base import Target, code_of, scenario
from test_servers.steps import Scenario, expect

LEGACY = "2025-11-25"


async def heard_of(heard: Heard, method: str) -> None:
    """Wait until a notification has come."""
    async with asyncio.timeout(5):
        while method not in heard.notifications:
            await asyncio.sleep(0.02)


@scenario("logging-legacy-http")
async def logging(target: Target, steps: Scenario) -> None:
    async def levels() -> str:
        heard = Heard()
        async with target.client(heard, mode="legacy") as client:
            expect(client.protocol_version == LEGACY, f"negotiated {client.protocol_version}")
            await client.call_tool("send_notification", {"message": "one"})
            await client.set_logging_level("error")
            await client.call_tool("send_notification", {"message": "two", "level": "info"})
            await client.call_tool("send_notification", {"message": "three", "level": "alert"})
            await asyncio.sleep(0.1)
        expect([log.data["message"] for log in heard.logs] == ["one", "three"], f"heard {heard.logs}")
        return "heard before the level was set, then only what is severe enough"

    async def fallback() -> str:
        async with target.client(mode="auto") as client:
            expect(client.protocol_version == LEGACY, f"negotiated {client.protocol_version}")
            return f"the probe was refused, {client.protocol_version}"

    await steps.step("levels", levels)
    await steps.step("probe and fallback", fallback)


@scenario("subscriptions-legacy-http")
async def subscriptions(target: Target, steps: Scenario) -> None:
    async def updates() -> str:
        heard, uri = Heard(), "demo://resource/static/1"
        async with target.client(heard, mode="legacy") as client:
            await client.list_resources()
            await client.subscribe_resource(uri)
            # The GET stream that notifications come on is opened in the background.
            await asyncio.sleep(0.2)
            await client.call_tool("update_resource", {"uri": uri, "text": "new"})
            await heard_of(heard, "notifications/resources/updated")
            await client.unsubscribe_resource(uri)
            before = heard.notifications.count("notifications/resources/updated")
            await client.call_tool("update_resource", {"uri": uri, "text": "newer"})
            await client.call_tool("add_tool", {"name": "extra"})
            await client.call_tool("remove_tool", {"name": "extra"})
            await heard_of(heard, "notifications/tools/list_changed")
            after = heard.notifications.count("notifications/resources/updated")
            expect(before == after == 1, f"heard {heard.notifications}")
        return ", ".join(sorted(set(heard.notifications)))

    await steps.step("subscribe, update, unsubscribe", updates)


class _Handle(types.Result):
    content: list[dict[str, Any]]
    task: types.Task


class _Params(types.RequestParams):
    name: str
    arguments: dict[str, Any]
    task: dict[str, Any]


class _AugmentedCall(types.Request[Any, str]):
    """tools/call with a task; the SDK's own request would drop the handle from the answer."""


@scenario("tasks-legacy-http")
async def tasks(target: Target, steps: Scenario) -> None:
    async def start(client: Any, tool: str) -> str:
        meta: Any = {"progressToken": f"{tool}-token"} if tool == "progress_task" else None
        params = _Params(name=tool, arguments={"note": "drive"}, task={"ttl": 60000}, _meta=meta)
        handle = await client.session.send_request(_AugmentedCall(method="tools/call", params=params), _Handle)
        return str(handle.task.task_id)

    async def ask(client: Any, method: str, task_id: str, answer: Any) -> Any:
        params = types.GetTaskRequestParams(task_id=task_id)
        return await client.session.send_request(types.Request[Any, str](method=method, params=params), answer)

    async def run(tool: str) -> str:
        heard = Heard()
        async with target.client(heard, mode="legacy") as client:
            await client.list_tools()
            # The GET stream that a task's progress comes on is opened in the background.
            await asyncio.sleep(0.2)
            task_id = await start(client, tool)
            first = await ask(client, "tasks/get", task_id, types.GetTaskResult)
            result = await ask(client, "tasks/result", task_id, types.CallToolResult)
            last = await ask(client, "tasks/get", task_id, types.GetTaskResult)
            expect(last.status == "completed", f"ended {last.status}")
            expect(await code_of(ask(client, "tasks/cancel", task_id, types.CancelTaskResult)) == -32602, "cancelled")
        expect(bool(heard.questions) == (tool == "elicitation_task"), f"asked {heard.questions}")
        return f"{first.status} -> {last.status}, {text_of(result)[:60]}"

    async def cancel() -> str:
        async with target.client(mode="legacy") as client:
            task_id = await start(client, "simple_task")
            cancelled = await ask(client, "tasks/cancel", task_id, types.CancelTaskResult)
            listed = await client.session.send_request(
                types.Request[Any, str](method="tasks/list", params=types.PaginatedRequestParams()),
                types.ListTasksResult,
            )
            expect(cancelled.status == "cancelled" and len(listed.tasks) == 1, f"{cancelled}, {listed}")
        return "cancelled, and listed so"

    async def plain() -> str:
        async with target.client(mode="legacy") as client:
            return text_of(await client.call_tool("simple_task", {"note": "no task"}))

    await steps.step("simple_task", lambda: run("simple_task"))
    await steps.step("progress_task", lambda: run("progress_task"))
    await steps.step("elicitation_task", lambda: run("elicitation_task"))
    await steps.step("cancel and list", cancel)
    await steps.step("without a task", plain)


@scenario("legacy-sse")
async def http_sse(target: Target, steps: Scenario) -> None:
    async def session() -> str:
        heard = Heard()
        async with target.client(heard) as client:
            await client.list_tools()
            await client.call_tool("send_progress", {"units": 2, "delayMs": 20}, progress_callback=heard.on_progress)
            await client.call_tool("send_notification", {"message": "noted"})
            await client.subscribe_resource("demo://resource/static/1")
            await client.call_tool("update_resource", {"uri": "demo://resource/static/1", "text": "new"})
            await heard_of(heard, "notifications/resources/updated")
            answer = await client.call_tool("collect_elicitation", {"message": "Who are you?"})
        expect(heard.progress == [1, 2] and heard.logs and heard.questions, f"{heard}")
        return text_of(answer)

    await steps.step("a session on one stream", session)
