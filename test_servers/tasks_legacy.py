"""Tasks of 2025-11-25: a tools/call with `params.task`, tasks/get, tasks/list, tasks/cancel, tasks/result.

The SDK defines the types of this revision's tasks and dispatches none of them, so the methods are ordinary extra
handlers and the answer to tools/call is made in a middleware, where the SDK takes a result as it is.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.message import ServerMessageMetadata

from test_servers.presets.mrtr import form
from test_servers.world import Call, Context, LegacySession, World, compact, era_of, fresh_id, refuse, undeclared

if TYPE_CHECKING:
    from test_servers.compose import ComposedServer
    from test_servers.config import LegacyTasks

RELATED = "io.modelcontextprotocol/related-task"
WORK_SECONDS = 0.3
Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
TERMINAL = ("completed", "failed", "cancelled")


class TaskParams(types.RequestParams):
    """Params that name a task."""

    task_id: str


@dataclass(eq=False)
class Task:
    """One task and the event that its end sets."""

    session: LegacySession
    behaviour: str
    arguments: dict[str, Any]
    ttl: int | None
    id: str = field(default_factory=fresh_id)
    status: Status = "working"
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    result: dict[str, Any] | None = None

    def move(self, status: Status) -> None:
        if self.status not in TERMINAL:
            self.status, self.updated = status, datetime.now(UTC)
            self.changed.set()

    def wire(self) -> dict[str, Any]:
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _iso(self.created),
            "lastUpdatedAt": _iso(self.updated),
            "ttl": self.ttl,
            "pollInterval": 200,
        }


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def capability(settings: "LegacyTasks") -> types.ServerTasksCapability:
    """What the handshake says of tasks."""
    return types.ServerTasksCapability(
        list=types.TasksListCapability() if settings.list else None,
        cancel=types.TasksCancelCapability() if settings.cancel else None,
        requests=types.ServerTasksRequestsCapability(tools=types.TasksToolsCapability(call=types.TasksCallCapability())),
    )


def install(server: "ComposedServer", world: World, settings: "LegacyTasks") -> None:
    """Serve tasks to legacy sessions."""

    async def get(ctx: Context, params: TaskParams) -> dict[str, Any]:
        return _find(ctx, world, params.task_id).wire()

    async def listed(ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        mine = world.session(ctx)
        return {"tasks": [task.wire() for task in world.legacy_tasks.values() if task.session is mine]}

    async def cancel(ctx: Context, params: TaskParams) -> dict[str, Any]:
        task = _find(ctx, world, params.task_id)
        if task.status in TERMINAL:
            raise refuse(ctx, types.INVALID_PARAMS, f"Task {task.id} has ended already ({task.status})")
        task.move("cancelled")
        return task.wire()

    async def result(ctx: Context, params: TaskParams) -> dict[str, Any]:
        task = _find(ctx, world, params.task_id)
        return await _result(ctx, task)

    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/result", TaskParams, result)
    if settings.list:
        server.add_request_handler("tasks/list", types.PaginatedRequestParams, listed)
    if settings.cancel:
        server.add_request_handler("tasks/cancel", TaskParams, cancel)
    server.middleware.append(_start_tasks(world))


def _find(ctx: Context, world: World, task_id: str) -> Task:
    if era_of(ctx) == "modern":
        raise refuse(ctx, types.METHOD_NOT_FOUND, "Tasks of 2025-11-25 are not part of this revision")
    task: Task | None = world.legacy_tasks.get(task_id)
    if task is None or task.session is not world.session(ctx):
        raise refuse(ctx, types.INVALID_PARAMS, f"There is no task {task_id}")
    return task


def _start_tasks(world: World) -> Any:
    async def middleware(ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        wanted = params.get("task")
        item = world.tools.get(params.get("name", ""))
        if ctx.method != "tools/call" or era_of(ctx) == "modern" or not isinstance(wanted, dict):
            return await call_next(ctx)
        if item is None or item.legacy_task is None or "legacy" not in item.eras:
            return await call_next(ctx)
        ttl = wanted.get("ttl") if isinstance(wanted.get("ttl"), int) else None
        task = Task(world.session(ctx), item.legacy_task, params.get("arguments") or {}, ttl)
        world.legacy_tasks[task.id] = task
        call = Call(world, ctx, item.key, task.arguments, {}, None)
        job = asyncio.create_task(_work(call, task, params.get("_meta", {}).get("progressToken")))
        world.background.add(job)
        job.add_done_callback(world.background.discard)
        return {"content": [{"type": "text", "text": f"Task {task.id} has begun"}], "task": task.wire()}

    return middleware


async def _work(call: Call, task: Task, token: str | int | None) -> None:
    """The task's own time: some work, then done; or a question that tasks/result will put."""
    if task.behaviour == "elicitation_task":
        await asyncio.sleep(WORK_SECONDS / 3)
        task.move("input_required")
        return
    for step in range(1, 4):
        await asyncio.sleep(WORK_SECONDS / 3)
        if task.status in TERMINAL:
            return
        if task.behaviour == "progress_task" and token is not None:
            # The call was answered with the handle, so progress goes out on the session's own stream.
            params = {"progressToken": token, "progress": step, "total": 3, "_meta": {RELATED: {"taskId": task.id}}}
            await task.session.connection.notify("notifications/progress", params)
    _complete(task, f"Task {task.id} was finished with arguments {compact(task.arguments)}")


def _complete(task: Task, text: str) -> None:
    task.result = {"content": [{"type": "text", "text": text}], "isError": False}
    task.move("completed")


async def _result(ctx: Context, task: Task) -> dict[str, Any]:
    """Wait for the end of the task; a task that waits for the user asks on this very stream."""
    while task.status not in TERMINAL:
        if task.status == "input_required":
            await _ask(ctx, task)
            continue
        task.changed.clear()
        await task.changed.wait()
    if task.result is None:
        raise refuse(ctx, types.INVALID_PARAMS, f"Task {task.id} was {task.status} and has no result")
    return {**task.result, "_meta": {RELATED: {"taskId": task.id}}}


async def _ask(ctx: Context, task: Task) -> None:
    request = form("May this task go on?", "approved", "boolean", "Approved")
    if undeclared(ctx.session.client_capabilities, request):
        _complete(task, f"Task {task.id} was finished without approval: this client asks no user")
        return
    request.params = request.params.model_copy(update={"meta": {RELATED: {"taskId": task.id}}})
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = await ctx.session.send_request(request, types.ElicitResult, metadata=metadata)
    task.move("working")
    _complete(task, f"Task {task.id} was finished, the user said {answer.action}")
