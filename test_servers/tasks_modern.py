"""The extension io.modelcontextprotocol/tasks: tasks/get, tasks/update, tasks/cancel, and the start of a task.

A task's life is counted in polls, not in seconds, so that a recording of it is the same every time.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from pydantic import Field

from test_servers.presets.mrtr import form
from test_servers.world import (
    Call,
    Context,
    World,
    compact,
    declared_extensions,
    era_of,
    fresh_id,
    missing_capability,
    refuse,
    undeclared,
)

if TYPE_CHECKING:
    from test_servers.compose import ComposedServer

EXTENSION = "io.modelcontextprotocol/tasks"
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
TTL_MS = 60_000
POLLS_BEFORE_COMPLETION = 2

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
TERMINAL = ("completed", "failed", "cancelled")


class TaskParams(types.RequestParams):
    """Params of tasks/get and tasks/cancel."""

    task_id: str


class UpdateParams(TaskParams):
    """Params of tasks/update."""

    input_responses: dict[str, Any] = Field(default_factory=dict)


@dataclass
class Task:
    """One running task."""

    behaviour: str
    arguments: dict[str, Any]
    id: str = field(default_factory=fresh_id)
    status: Status = "working"
    message: str = "The task has begun."
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))
    polls: int = 0
    asked: int = 1
    pending: dict[str, types.ElicitRequest] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    def move(self, status: Status, message: str) -> None:
        self.status, self.message, self.updated = status, message, datetime.now(UTC)

    def wire(self) -> dict[str, Any]:
        """The flat members that every task object has."""
        told: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "statusMessage": self.message,
            "createdAt": _iso(self.created),
            "lastUpdatedAt": _iso(self.updated),
            "ttlMs": TTL_MS,
        }
        if self.behaviour == "modern_task":
            told["pollIntervalMs"] = 500
        return told

    def detailed(self) -> dict[str, Any]:
        """The task with what its status brings along."""
        told = self.wire()
        if self.status == "input_required":
            told["inputRequests"] = {
                key: request.model_dump(by_alias=True, mode="json", exclude_none=True) for key, request in self.pending.items()
            }
        if self.status == "completed":
            told["result"] = {"content": [{"type": "text", "text": self._outcome()}], "isError": False}
        return told

    def _outcome(self) -> str:
        if self.behaviour == "modern_input_task":
            return f"Task {self.id} was finished with input {compact(self.answers)}"
        return f"Task {self.id} was finished with arguments {compact(self.arguments)}"

    def ask(self) -> None:
        """Put the next question; a key is never used twice within a task."""
        key = "confirm" if self.asked == 1 else f"confirm-{self.asked}"
        self.asked += 1
        self.pending = {key: _approval()}
        self.move("input_required", "The task waits for an approval.")


def _approval() -> types.ElicitRequest:
    return form("May this task go on?", "approved", "boolean", "Approved")


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def declared(ctx: Context) -> bool:
    """Whether this very request declared the extension, in the modern era."""
    return era_of(ctx) == "modern" and EXTENSION in declared_extensions(ctx)


def start(call: Call, behaviour: str) -> dict[str, Any]:
    """A task handle in place of the tool's result."""
    task = Task(behaviour, call.arguments)
    if behaviour != "modern_task" and (missing := undeclared(call.ctx.session.client_capabilities, _approval())):
        raise missing_capability(call.ctx, missing)
    call.world.modern_tasks[task.id] = task
    return {"resultType": "task", **task.wire()}


def install(server: "ComposedServer", world: World) -> None:
    """Serve the three methods, to modern clients that declared the extension."""

    async def get(ctx: Context, params: TaskParams) -> dict[str, Any]:
        task = _find(ctx, world, params.task_id)
        _poll(task)
        return {"resultType": "complete", **task.detailed()}

    async def update(ctx: Context, params: UpdateParams) -> dict[str, Any]:
        task = _find(ctx, world, params.task_id)
        answered = {key: value for key, value in params.input_responses.items() if key in task.pending}
        task.answers |= answered
        for key in answered:
            del task.pending[key]
        if answered and not task.pending and task.status == "input_required":
            task.move("working", "The answer has come in.")
        return {"resultType": "complete"}

    async def cancel(ctx: Context, params: TaskParams) -> dict[str, Any]:
        task = _find(ctx, world, params.task_id)
        if task.status not in TERMINAL:
            task.move("cancelled", "The task was cancelled on request.")
        return {"resultType": "complete"}

    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/update", UpdateParams, update)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)
    server.middleware.append(_gate())


def _gate() -> Any:
    async def gate(ctx: Context, call_next: CallNext) -> HandlerResult:
        """What the SDK cannot know of an extension: its era, its declaration, and that Mcp-Name carries the taskId."""
        if ctx.method not in METHODS or era_of(ctx) == "legacy":
            return await call_next(ctx)
        task_id = (ctx.params or {}).get("taskId")
        if ctx.request is not None and isinstance(task_id, str):
            raw = ctx.request.headers.get(MCP_NAME_HEADER)
            if decode_header_value(raw) != task_id:
                found = "is missing" if raw is None else f"says {raw}"
                message = f"The Mcp-Name header {found}, the body's taskId is {task_id}"
                raise refuse(ctx, types.HEADER_MISMATCH, message)
        if not declared(ctx):
            raise missing_capability(ctx, {"extensions": {EXTENSION: {}}})
        return await call_next(ctx)

    return gate


def _find(ctx: Context, world: World, task_id: str) -> Task:
    if era_of(ctx) == "legacy":
        raise refuse(ctx, types.METHOD_NOT_FOUND, "The tasks extension is not part of this revision")
    task: Task | None = world.modern_tasks.get(task_id)
    if task is None:
        raise refuse(ctx, types.INVALID_PARAMS, f"There is no task {task_id}", status=200)
    return task


def _poll(task: Task) -> None:
    if task.status != "working":
        return
    task.polls += 1
    match task.behaviour:
        case "modern_task" if task.polls > POLLS_BEFORE_COMPLETION:
            task.move("completed", "The task is done.")
        case "modern_input_task" if task.answers:
            task.move("completed", "The task is done.")
        case "modern_input_task" | "modern_loop_task":
            task.ask()
