"""Honest clients on the Python SDK, and the answers that they give to a server's questions.

Shared by the demonstration and by `drive`; nothing here is wrong on purpose (see `raw` for that).
"""

import asyncio
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import mcp_types as types
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from pydantic import Field

# Sampling, roots and logging are deprecated since 2026-07-28, and on show here.
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
# The SDK tells on the log what it does with every odd tool or stream; the scenario says what matters.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
logging.getLogger("client").setLevel(logging.CRITICAL)

MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"


def filled_in(schema: dict[str, Any]) -> dict[str, Any]:
    """A plausible answer to a form: every property, by its type."""
    by_type: dict[str, Any] = {"boolean": True, "string": "Ada", "integer": 7, "number": 7.5, "array": []}
    return {
        name: part.get("default", (part.get("enum") or [by_type.get(part.get("type", "string"), "Ada")])[0])
        for name, part in schema.get("properties", {}).items()
    }


@dataclass
class Heard:
    """What a server told a client besides answers."""

    logs: list[types.LoggingMessageNotificationParams] = field(default_factory=list)
    notifications: list[str] = field(default_factory=list)
    progress: list[float] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)


def honest_client(
    server: Any,
    heard: Heard,
    *,
    mode: str = "auto",
    answers: bool = True,
    action: Literal["accept", "decline", "cancel"] = "accept",
    log_level: types.LoggingLevel | None = None,
    extensions: Sequence[ClientExtension] = (),
    max_rounds: int = 10,
    roots: bool = True,
) -> Client:
    """A client for a URL, a transport or a stdio command. What it hears goes into `heard`.

    `answers` decides whether it declares, and answers, elicitation, sampling and (with `roots`) roots.
    """

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        heard.logs.append(params)

    async def on_message(message: Any) -> None:
        if not isinstance(message, Exception):
            heard.notifications.append(message.method)

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        heard.questions.append(params.message)
        if action != "accept" or params.mode == "url":
            return types.ElicitResult(action=action)
        return types.ElicitResult(action="accept", content=filled_in(params.requested_schema))

    async def sample(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        heard.questions.append("sampling")
        content = types.TextContent(text="Hello from the model")
        return types.CreateMessageResult(role="assistant", content=content, model="demo-model", stop_reason="endTurn")

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        heard.questions.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/demo", name="home")])  # type: ignore[arg-type]

    return Client(
        server,
        mode=mode,
        client_info=types.Implementation(name="demo-client", version="1.0.0"),
        read_timeout_seconds=20,
        elicitation_callback=elicit if answers else None,
        sampling_callback=sample if answers else None,
        list_roots_callback=list_roots if answers and roots else None,
        logging_callback=on_log,
        message_handler=on_message,
        log_level=log_level,
        extensions=list(extensions) or None,
        input_required_max_rounds=max_rounds,
        cache=None,
    )


def text_of(result: types.CallToolResult) -> str:
    """The text blocks of a result, joined."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def error_code(error: BaseException) -> int | None:
    """The JSON-RPC code of an SDK error, found inside exception groups as well."""
    if isinstance(error, MCPError):
        return error.code
    if isinstance(error, BaseExceptionGroup):
        return next((code for inner in error.exceptions if (code := error_code(inner)) is not None), None)
    return None


class TaskHandle(types.Result):
    """The answer to a tools/call that became a task."""

    result_type: Literal["task"]
    task_id: str
    status: str
    poll_interval_ms: int = 200


class TaskAnswer(types.Result):
    """The answer to tasks/get, flat."""

    task_id: str
    status: str
    status_message: str | None = None
    input_requests: dict[str, Any] = Field(default_factory=dict)
    result: dict[str, Any] | None = None


class TaskIdParams(types.RequestParams):
    """Params that name a task; `input_responses` for tasks/update only."""

    task_id: str
    input_responses: dict[str, Any] | None = None


class TaskRequest(types.Request[TaskIdParams, str]):
    """tasks/get, tasks/update or tasks/cancel; the SDK mirrors the task id into Mcp-Name."""

    name_param = "taskId"


class TasksExtension(ClientExtension):
    """The client's side of the tasks extension: follows a task to its end, answering what it asks."""

    identifier = TASKS

    def __init__(self, *, cancel_after: int | None = None, decline_after: int = 3) -> None:
        self.cancel_after = cancel_after
        self.give_up_after = decline_after
        self.statuses: list[str] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskHandle, resolve=self._follow)]

    async def _follow(self, handle: TaskHandle, context: ClaimContext) -> types.CallToolResult:
        session, params = context.session, TaskIdParams(task_id=handle.task_id)
        self.statuses = [handle.status]
        answered = 0
        while True:
            await asyncio.sleep(min(handle.poll_interval_ms, 500) / 1000)
            task = await session.send_request(TaskRequest(method="tasks/get", params=params), TaskAnswer)
            self.statuses.append(task.status)
            if task.result is not None:
                return types.CallToolResult.model_validate(task.result, by_name=False)
            if task.status in ("failed", "cancelled"):
                return types.CallToolResult(content=[types.TextContent(text=f"task {task.status}")], is_error=True)
            over = self.cancel_after is not None and len(self.statuses) > self.cancel_after
            if over or answered >= self.give_up_after:
                await session.send_request(TaskRequest(method="tasks/cancel", params=params), types.EmptyResult)
            elif task.input_requests:
                answers = {key: _form_answer(request) for key, request in task.input_requests.items()}
                update = TaskIdParams(task_id=handle.task_id, input_responses=answers)
                await session.send_request(TaskRequest(method="tasks/update", params=update), types.EmptyResult)
                answered += 1


def _form_answer(request: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": filled_in(request["params"].get("requestedSchema", {}))}
