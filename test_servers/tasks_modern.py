"""The extension io.modelcontextprotocol/tasks: tasks/get, tasks/update, tasks/cancel, and the start of a task.

A task moves only when it is asked after: a plan that counts polls gives the same recording every time.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from pydantic import Field

from test_servers.registry import TaskPlan
from test_servers.world import (
    TASKS_EXTENSION,
    Call,
    Context,
    World,
    declared_extensions,
    era_of,
    fresh_id,
    missing_capability,
    refuse,
)

if TYPE_CHECKING:
    from test_servers.compose import ComposedServer

METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
TTL_MS = 60_000

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

    plan: TaskPlan
    id: str = field(default_factory=fresh_id)
    status: Status = "working"
    message: str = "The task has begun."
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)
    polls: int = 0
    rounds: int = 0
    pending: dict[str, types.ElicitRequest] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    outcome: types.CallToolResult | types.ErrorData | None = None

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
        if self.plan.poll_interval_ms is not None:
            told["pollIntervalMs"] = self.plan.poll_interval_ms
        return told

    def detailed(self) -> dict[str, Any]:
        """The task with what its status brings along."""
        told = self.wire()
        if self.status == "input_required":
            told["inputRequests"] = {key: _plain(request) for key, request in self.pending.items()}
        elif self.status == "completed" and self.outcome is not None:
            told["result"] = {key: value for key, value in _plain(self.outcome).items() if key != "resultType"}
        elif self.status == "failed" and self.outcome is not None:
            told["error"] = _plain(self.outcome)
        return told

    def poll(self) -> None:
        """What has happened since the last poll."""
        if self.status != "working":
            return
        rounds = self.plan.rounds
        if self.rounds < len(rounds) or self.plan.loops:
            asked = rounds[min(self.rounds, len(rounds) - 1)]
            again = self.rounds - len(rounds) + 1
            # A key is never used twice within a task.
            self.pending = {f"{key}-{again + 1}" if again > 0 else key: request for key, request in asked.items()}
            self.rounds += 1
            self.move("input_required", "The task waits for input.")
            return
        self.polls += 1
        if self.polls <= self.plan.polls or time.monotonic() - self.started < self.plan.seconds:
            return
        self.outcome = self.plan.end(self.answers)
        failed = isinstance(self.outcome, types.ErrorData)
        self.move("failed" if failed else "completed", "The task has failed." if failed else "The task is done.")

    def answer(self, responses: dict[str, Any]) -> None:
        """Take the answers to pending questions; others are ignored."""
        answered = {key: value for key, value in responses.items() if key in self.pending}
        self.answers |= answered
        for key in answered:
            del self.pending[key]
        if answered and not self.pending and self.status == "input_required":
            self.move("working", "The input has come.")


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def start(call: Call, plan: TaskPlan) -> dict[str, Any]:
    """A task handle in place of the tool's result; -32021 if the task will ask what this client cannot answer."""
    for request in [request for asked in plan.rounds for request in asked.values()]:
        if missing := call.lacks(request):
            raise missing_capability(call.ctx, missing)
    task = Task(plan)
    call.world.modern_tasks[task.id] = task
    return {"resultType": "task", **task.wire()}


def install(server: "ComposedServer", world: World) -> None:
    """Serve the three methods, to modern clients that declared the extension."""

    async def get(ctx: Context, params: TaskParams) -> dict[str, Any]:
        task = _find(ctx, world, params.task_id)
        task.poll()
        return {"resultType": "complete", **task.detailed()}

    async def update(ctx: Context, params: UpdateParams) -> dict[str, Any]:
        _find(ctx, world, params.task_id).answer(params.input_responses)
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
        if TASKS_EXTENSION not in declared_extensions(ctx):
            raise missing_capability(ctx, {"extensions": {TASKS_EXTENSION: {}}})
        return await call_next(ctx)

    return gate


def _find(ctx: Context, world: World, task_id: str) -> Task:
    task: Task | None = world.modern_tasks.get(task_id) if era_of(ctx) == "modern" else None
    if task is not None:
        return task
    if era_of(ctx) == "legacy":
        raise refuse(ctx, types.METHOD_NOT_FOUND, "The tasks extension is not part of this revision")
    raise refuse(ctx, types.INVALID_PARAMS, f"There is no task {task_id}", status=200)
