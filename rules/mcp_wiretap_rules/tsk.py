"""TSK: the tasks extension of the modern era (io.modelcontextprotocol/tasks, SEP-2663)."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.operations.tasks import CANCELS_TASK, STATUSES, TASK, TASKS, Task, TaskView
from mcp_wiretap.trace.streams.subscriptions import LISTEN, Listen
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_integer, is_time
from mcp_wiretap_rules.eli import elicit_params, elicit_schema_flat, sampling_request_valid
from mcp_wiretap_rules.extensions import extensions_of
from mcp_wiretap_rules.inputs import KINDS, asks, supports
from mcp_wiretap_rules.mrt import request_problem

SPEC = "io.modelcontextprotocol/tasks (ext-tasks draft)"
EXTENSION = "io.modelcontextprotocol/tasks"
POLLED = ("tasks/get", "tasks/update", "tasks/cancel")
_UNKNOWN = re.compile(r"task\b.{0,120}\b(?:not found|unknown|expired|does not exist)|unknown task|no such task", re.I | re.S)
_OF_A_TASK = frozenset(
    {
        "task",
        "taskId",
        "status",
        "statusMessage",
        "createdAt",
        "lastUpdatedAt",
        "ttlMs",
        "pollIntervalMs",
        "ttl",
        "pollInterval",
        "result",
        "error",
        "inputRequests",
    }
)
_EXPIRED = re.compile(
    r"\btask\b.{0,60}\bexpired\b|^\W*expired\b|\bttl\b.{0,40}\b(?:elapsed|exceeded|expired|over)\b", re.I | re.S
)
SHORTEST_ID = 16  # characters; fewer can be guessed
FEWEST_BITS = 64


def _view(fact: Exchange | Message) -> TaskView | None:
    if isinstance(fact, Message) and fact.rpc.kind == "notification":
        return fact.found if isinstance(fact.found, TaskView) else None
    exchange = fact if isinstance(fact, Exchange) else (fact.request.exchange if fact.request is not None else fact.exchange)
    return exchange.facts.get(TASK)


def _request_declares(message: Message) -> bool:
    request = message.request or message
    return EXTENSION in extensions_of(request.meta.get(rev.CLIENT_CAPABILITIES))


@rule(
    "TSK001",
    "task-result-undeclared",
    "Task handle for a client that did not declare tasks",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #capability-negotiation",
    sep="2663",
    sorts=("task",),
)
def task_result_undeclared(message: Message) -> Iterator[Finding]:
    """A server answers with a task only where this very request declares the tasks extension.

    Why: another client takes the answer for invalid, and the work is lost.

    Fix: look at `clientCapabilities.extensions` of the request; without the extension answer with the result itself.

    Wrong::

        modern tools/call {"name": "slow"}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
    """
    if message.result.get("resultType") == "task" and not _request_declares(message):
        yield Finding(
            "the server answered with a task, the request does not declare the tasks extension",
            [evidence(message.place("result", "resultType"), "task", "complete, or input_required")],
        )


@rule(
    "TSK002",
    "task-result-unsupported-method",
    "Task handle on another method",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #supported-methods",
    sep="2663",
    sorts=("task",),
)
def task_result_unsupported_method(message: Message) -> Iterator[Finding]:
    """Only tools/call can be answered with a task; tasks/get itself answers `complete`, whatever the task's status.

    Why: clients read the state of the task in a complete result.

    Fix: answer `resultType: "complete"` with `status` beside it, as the extension's text says (two of its examples differ).

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
    """
    method = message.request.method if message.request is not None else None
    if message.result.get("resultType") == "task" and method != "tools/call":
        yield Finding(
            f"{one_line(method or 'a request', 60)} was answered with resultType task",
            [evidence(message.place("result", "resultType"), "task", "complete")],
        )


def _task_bodies(message: Message) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Task objects in a message: a handle, the answer to tasks/get, a status notification."""
    if message.rpc.kind == "result":
        method = message.request.method if message.request is not None else None
        if message.result.get("resultType") == "task" or method == "tasks/get":
            yield ("result",), message.result
    elif message.method == "notifications/tasks":
        yield ("params",), message.params


@rule(
    "TSK003",
    "task-shape",
    "Task object malformed",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #tasks",
    sep="2663",
    sorts=("task", "result", "notification"),
)
def task_shape(message: Message) -> Iterator[Finding]:
    """A task has, flat in the result: taskId, status, createdAt, lastUpdatedAt, ttlMs (a number or null), and where it gives one,
    pollIntervalMs.

    Why: the client polls by these; the nested shape of 2025-11-25 (`task`, `ttl`, `pollInterval`) is not read any more.

    Fix: send the five members at the top of the result.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "task": {"taskId": "0123456789abcdef0", "status": "working", "ttl": 1000}}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": 1000}
    """
    for steps, body in _task_bodies(message):
        nested = isinstance(body.get("task"), dict) or "ttl" in body or "pollInterval" in body
        if nested:
            yield Finding(
                "the task has the shape of 2025-11-25 (task, ttl, pollInterval)",
                [evidence(message.place(*steps), sorted(body)[:10], "taskId, status, createdAt, lastUpdatedAt, ttlMs")],
            )
            return
        for name, fits, words in _SHAPE:
            if not fits(body.get(name, _ABSENT)):
                what = "absent" if name not in body else one_line(dumps(body[name]), 40)
                yield Finding(f"{name} of the task is {what}", [evidence(message.place(*steps, name), body.get(name), words)])
        if "requestState" in body:
            text = "a task carries requestState, which belongs to input_required"
            yield Finding(
                text, [evidence(message.place(*steps, "requestState"), body["requestState"], "no such member")], "warning"
            )


_ABSENT = object()


_SHAPE: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("taskId", lambda v: isinstance(v, str), "a string"),
    ("status", lambda v: v in STATUSES if isinstance(v, str) else False, ", ".join(STATUSES)),
    ("createdAt", is_time, "an ISO 8601 time"),
    ("lastUpdatedAt", is_time, "an ISO 8601 time"),
    ("ttlMs", lambda v: v is None or is_integer(v), "an integer or null"),
    ("pollIntervalMs", lambda v: v is _ABSENT or (is_integer(v) and v >= 0), "an integer >= 0"),
)


@rule(
    "TSK004",
    "task-get-status-payload",
    "tasks/get lacks status payload",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-polling",
    sep="2663",
    needs=("result:status", "params:status"),
)
def task_get_status_payload(message: Message) -> Iterator[Finding]:
    """The status says what else is there: input_required has inputRequests, completed a result, failed an error.

    Why: the client has nothing to ask the user, or nothing to return.

    Fix: put the payload of the status into every answer to tasks/get.

    Wrong::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "result": {"content": []}}
    """
    for steps, body in _task_bodies(message):
        if message.result.get("resultType") == "task":
            continue  # a handle need not carry its payload; on tasks/get the resultType is TSK002's
        status = body.get("status")
        needs = {"input_required": "inputRequests", "completed": "result", "failed": "error"}
        wanted = needs.get(status) if isinstance(status, str) else None
        if wanted is not None and not isinstance(body.get(wanted), dict):
            place = message.place(*steps, wanted)
            yield Finding(f"the task is {status}, but has no {wanted}", [evidence(place, body.get(wanted), "an object")])
        elif status == "failed" and not _holds_a_tool_result(body["error"]) and _lacks_code_or_message(body["error"]):
            place = message.place(*steps, "error")
            yield Finding("the error of the task lacks code or message", [evidence(place, body["error"], "a JSON-RPC error")])
        if status in ("working", "cancelled"):
            extra = [m for m in needs.values() if m in body]
            if extra:
                place = message.place(*steps, extra[0])
                yield Finding(f"the task is {status}, yet has {extra[0]}", [evidence(place, "present", "no such member")], "info")


def _holds_a_tool_result(error: dict[str, Any]) -> bool:
    return "content" in error or "isError" in error


def _lacks_code_or_message(error: dict[str, Any]) -> bool:
    return not is_integer(error.get("code")) or not isinstance(error.get("message"), str)


@rule(
    "TSK005",
    "task-terminal-changed",
    "Terminal task changed",
    on=("answer", "push"),
    level="should",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-status",
    sep="2663",
    methods=(*POLLED, "notifications/tasks"),
)
def task_terminal_changed(message: Message) -> Iterator[Finding]:
    """Once completed, failed or cancelled, a task stays so, with the same result.

    Why: a client that saw the end has acted on it.

    Fix: freeze the task at its end; answer -32602 when it is gone.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:01Z", "ttlMs": null, "result": {"content": []}}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:02Z", "ttlMs": null}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:01Z", "ttlMs": null, "result": {"content": [], "a": 1}}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:01Z", "ttlMs": null, "result": {"a": 1, "content": []}}
    """
    view = _view(message)
    if view is None or not view.changed or view.terminal_before is None or view.now is None:
        return
    last, member = view.terminal_before, "params" if message.rpc.kind == "notification" else "result"
    if view.changed == "status":
        yield Finding(
            f"the task was {last.status} and now is {view.now.status}",
            [evidence(message.place(member, "status"), view.now.status, last.status)],
            related=(last.flow,),
        )
    else:
        text = f"the {last.status} task has another {'error' if last.status == 'failed' else 'result'} than before"
        yield Finding(text, [Evidence(message.place(member), "another payload", "the same")], "warning", related=(last.flow,))


@rule(
    "TSK006",
    "task-backward-status",
    "Status history impossible",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-status",
    sep="2663",
    methods=("tasks/get",),
)
def task_backward_status(message: Message) -> Iterator[Finding]:
    """The answer is about the task that was asked for; createdAt stays, lastUpdatedAt never goes back.

    Why: the client shows another task's state, or throws a newer state away.

    Fix: look tasks up by their id; take times from one clock.

    Wrong::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "another", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
    """
    request, given = message.request, message.result.get("taskId")
    asked = request.params.get("taskId") if request is not None else None
    if isinstance(given, str) and isinstance(asked, str) and given != asked:
        yield Finding(
            f"asked for the task {one_line(asked, 60)}, answered about {one_line(given, 60)}",
            [evidence(message.place("result", "taskId"), given, asked)],
        )
        return
    view = _view(message)
    if view is None or view.before is None or view.now is None:
        return
    if view.created_changed:
        yield Finding(
            "createdAt of the task has changed",
            [evidence(message.place("result", "createdAt"), view.now.created, view.before.created)],
            "warning",
            related=(view.before.flow,),
        )
    if view.went_back:
        yield Finding(
            "lastUpdatedAt of the task went back",
            [evidence(message.place("result", "lastUpdatedAt"), view.now.updated, f"{view.before.updated} or later")],
            "warning",
            related=(view.before.flow,),
        )


@rule(
    "TSK007",
    "task-failed-misuse",
    "failed used for tool errors",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-execution-errors",
    sep="2663",
    needs=("result:status", "params:status"),
)
def task_failed_misuse(message: Message) -> Iterator[Finding]:
    """`failed` means a protocol error, with a JSON-RPC error beside it. A tool that reports an error has completed, with isError.

    Why: the model never sees the tool's own words.

    Fix: `"status": "completed", "result": {"content": [...], "isError": true}`.

    Wrong::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "failed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "error": {"content": [], "isError": true}}

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "failed", "statusMessage": "gone", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "error": {"code": -32603, "message": "gone"}}
    """
    for steps, body in _task_bodies(message):
        if body.get("status") != "failed":
            continue
        error = body.get("error")
        if not isinstance(error, dict):
            yield Finding(
                "the task failed, but has no error", [evidence(message.place(*steps, "error"), error, "a JSON-RPC error")]
            )
        elif _holds_a_tool_result(error):
            yield Finding(
                "the error of the failed task is a tool result",
                [evidence(message.place(*steps, "error"), error, "code and message")],
            )
        elif _lacks_code_or_message(error):
            yield Finding(
                "the error of the failed task lacks code or message",
                [evidence(message.place(*steps, "error"), error, "an integer code and a string message")],
            )


@rule(
    "TSK008",
    "task-failed-message",
    "failed without statusMessage",
    on=("answer", "push"),
    level="should",
    party="server",
    era="modern",
    severity="info",
    spec=f"{SPEC} #task-execution-errors",
    sep="2663",
    needs=("result:status", "params:status"),
)
def task_failed_message(message: Message) -> Iterator[Finding]:
    """A failed task should say why in `statusMessage`.

    Why: it is what a list of tasks shows.

    Fix: one sentence.

    Wrong::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "failed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "error": {"code": -32603, "message": "gone"}}

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "failed", "statusMessage": "gone", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "error": {"code": -32603, "message": "gone"}}
    """
    for steps, body in _task_bodies(message):
        if body.get("status") == "failed" and not body.get("statusMessage"):
            yield Finding("the failed task has no statusMessage", [evidence(message.place(*steps, "statusMessage"), None, "why")])


@rule(
    "TSK009",
    "task-key-reused",
    "inputRequests key reused",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-update-requests",
    sep="2663",
    methods=("tasks/get", "notifications/tasks"),
)
def task_key_reused(message: Message) -> Iterator[Finding]:
    """Within one task a key of inputRequests means one request, for ever.

    Why: a client that answered the key does not look again.

    Fix: give each new request a new key. Listing an unanswered request on every poll is right.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"roots": {}, "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"roots": {}, "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"a": {"method": "roots/list"}}}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"roots": {}, "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"a": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"a": {"method": "roots/list"}}}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"a": {"method": "roots/list"}}}
    """
    view = _view(message)
    member = "params" if message.rpc.kind == "notification" else "result"
    for key in view.reused_keys[:20] if view is not None else ():
        yield Finding(
            f"the key {one_line(key, 40)} names another request than before",
            [evidence(message.place(member, "inputRequests", key), key, "a new key")],
        )


@rule(
    "TSK010",
    "task-update-keys",
    "tasks/update answers a key not outstanding",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec=f"{SPEC} #task-update-requests",
    sep="2663",
    methods=("tasks/update",),
)
def task_update_keys(message: Message) -> Iterator[Finding]:
    """tasks/update answers keys that the task asked for. Answering a part of them is fine.

    Why: the server ignores the answer, and the task waits on.

    Fix: take the keys from inputRequests of the newest tasks/get.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/update {"taskId": "0123456789abcdef0", "inputResponses": {"b": {"roots": []}}}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {}

    Right::

        modern tasks/update {"taskId": "never-seen", "inputResponses": {"b": {"roots": []}}}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {}
    """
    view = _view(message)
    if view is None or view.task is None:
        return
    for key in view.unknown_keys[:20]:
        yield Finding(
            f"the task never asked for {one_line(key, 40)}",
            [evidence(message.place("params", "inputResponses", key), key, ", ".join(list(view.task.asked)[:10]) or "no key")],
        )
    for key in view.repeated_keys[:20]:
        yield Finding(
            f"{one_line(key, 40)} was answered before", [evidence(message.place("params", "inputResponses", key), key)], "info"
        )


@rule(
    "TSK011",
    "task-name-header",
    "Mcp-Name must be the taskId",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=f"{SPEC} #streamable-http-routing-headers",
    sep="2663",
    methods=POLLED,
    transport=("http",),
)
def task_name_header(message: Message) -> Iterator[Finding]:
    """tasks/get, tasks/update and tasks/cancel mirror `params.taskId` into Mcp-Name.

    Why: a gateway sends the request to the server that holds the task by that header; strict servers answer 400 with -32020.

    Fix: send `Mcp-Name: <taskId>`.

    Wrong::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          -header Mcp-Name
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32020

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32602
    """
    task_id = message.params.get("taskId")
    if not isinstance(task_id, str):
        return
    check = next((c for c in message.exchange.header_checks if c.header.lower() == "mcp-name"), None)
    if check is None or check.verdict in ("match", "needless-encoding", "duplicate", "unchecked"):
        return
    words = "is missing" if check.raw is None else f"says {one_line(check.decoded or check.raw, 60)}"
    yield Finding(
        f"Mcp-Name {words}, the taskId is {one_line(task_id, 60)}",
        [evidence("request.header:Mcp-Name", check.raw, task_id)],
    )


@rule(
    "TSK012",
    "task-ack-empty",
    "Update/cancel acknowledgement not empty",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-cancellation",
    sep="2663",
    methods=("tasks/update", "tasks/cancel"),
    sorts=("result",),
)
def task_ack_empty(message: Message) -> Iterator[Finding]:
    """tasks/update and tasks/cancel are acknowledged by an empty result; the state is for tasks/get.

    Why: the state at that moment is not settled, and clients that read it go wrong.

    Fix: answer `{"resultType": "complete"}`.

    Wrong::

        modern tasks/cancel {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "cancelled"}

    Right::

        modern tasks/cancel {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {}
    """
    extra = sorted(set(message.result) - {"resultType", "_meta"})[:10]
    if extra:
        yield Finding(
            f"the acknowledgement carries {one_line(', '.join(extra), 80)}",
            [evidence(message.place("result"), extra, "resultType and _meta only")],
            None if _OF_A_TASK.intersection(message.result) else "info",  # a result may have members of its own
        )


@rule(
    "TSK013",
    "task-cancel-by-notification",
    "notifications/cancelled for a task",
    on="notification",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec=f"{SPEC} #task-cancellation",
    sep="2663",
    methods=("notifications/cancelled",),
    needs=(CANCELS_TASK,),
)
def task_cancel_by_notification(message: Message) -> Iterator[Finding]:
    """A task is cancelled by tasks/cancel, not by notifications/cancelled: its call was answered when the handle came.

    Why: the task goes on, and the client believes that it has ended.

    Fix: send tasks/cancel with the taskId.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern-notify notifications/cancelled {"requestId": "0123456789abcdef0"}
          -> 202

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/cancel {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {}
    """
    task: Task | None = message.exchange.facts.get(CANCELS_TASK)
    if task is None or task.kind != "extension":
        return
    named = message.params.get("requestId")
    what = "a task" if named == task.id else "a call that was answered by a task"
    yield Finding(
        f"notifications/cancelled names {what}, which it does not cancel",
        [evidence(message.place("params", "requestId"), named, "tasks/cancel")],
        related=(task.created_flow,),
    )


@rule(
    "TSK014",
    "task-methods-undeclared",
    "tasks/* without declaration",
    on=("request", "push", "exchange"),
    level="must",
    party="either",
    era="modern",
    severity="error",
    spec=f"{SPEC} #protocol-errors",
    sep="2663",
    methods=(*POLLED, "subscriptions/listen", "notifications/subscriptions/acknowledged"),
)
def task_methods_undeclared(fact: Message | Exchange) -> Iterator[Finding]:
    """Each tasks/* request, and a subscriptions/listen with taskIds, declares the tasks extension itself; a server refuses one that
    does not (400 with -32021).

    Why: capabilities hold for one request: what an earlier one declared does not count.

    Fix: `clientCapabilities: {"extensions": {"io.modelcontextprotocol/tasks": {}}}` on every request.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
    """
    request = (fact.request or fact.exchange.request) if isinstance(fact, Message) else fact.request
    if request is None or _request_declares(request):
        return
    if request.exchange.claim.kind != "modern" or request.meta.get(rev.CLIENT_CAPABILITIES) is None:
        return  # MET002
    if request.method == "subscriptions/listen":
        if isinstance(fact, Message):
            yield from _listens_undeclared(fact, request)
    elif isinstance(fact, Exchange):
        yield from _asks_undeclared(request)


def _asks_undeclared(request: Message) -> Iterator[Finding]:
    """The client's own fault first: the server's is that it did not refuse it."""
    view, answer = _view(request), request.answer
    fault = _served_undeclared(request, answer) if answer is not None else None
    task = view.task if view is not None else None
    own = request.method == "tasks/update" or (task is not None and task.kind == "extension" and not task.adopted)
    severity: Severity | None = "warning" if own else "info"
    yield Finding(
        f"{request.method} without declaring the tasks extension",
        [evidence(request.place("params", "_meta", rev.CLIENT_CAPABILITIES, "extensions", EXTENSION), None, "{}")],
        severity if fault is None else None,
        "client",
    )
    if fault is not None:
        yield fault


def _served_undeclared(request: Message, answer: Message) -> Finding | None:
    if answer.rpc.kind == "result":
        text = f"{request.method} was served although the request does not declare the tasks extension"
        return Finding(text, [evidence(answer.place("result"), "a result", "400 with -32021")], None, "server")
    code, status = answer.error_code, answer.exchange.status or 0
    if code is None or code in _FIT_FOR_UNDECLARED or status in (401, 403, 429) or status >= 500:
        return None
    text = f"{request.method} without the tasks extension was answered with {code}, not -32021"
    return Finding(text, [evidence(answer.place("error", "code"), str(code), "-32021, or -32601")], None, "server")


_FIT_FOR_UNDECLARED = frozenset(
    {rev.MISSING_CAPABILITY, rev.METHOD_NOT_FOUND, rev.INVALID_PARAMS, rev.HEADER_MISMATCH, rev.UNSUPPORTED_VERSION}
)


def _listens_undeclared(message: Message, request: Message) -> Iterator[Finding]:
    """A server may leave the taskIds out of its acknowledgement instead of refusing; granting them it must not."""
    wanted = request.params.get("notifications")
    if not isinstance(wanted, dict) or not wanted.get("taskIds"):
        return
    if message is request:
        place = message.place("params", "_meta", rev.CLIENT_CAPABILITIES, "extensions", EXTENSION)
        text = "subscriptions/listen with taskIds without declaring the tasks extension"
        yield Finding(text, [evidence(place, None, "{}")], "warning", "client")
    elif message.method == "notifications/subscriptions/acknowledged":
        granted = message.params.get("notifications")
        if isinstance(granted, dict) and granted.get("taskIds"):
            text = "taskIds were granted although the request does not declare the tasks extension"
            place = message.place("params", "notifications", "taskIds")
            yield Finding(text, [evidence(place, granted["taskIds"], "400 with -32021")], None, "server")


@rule(
    "TSK015",
    "task-unknown-id",
    "Unknown task id error",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #protocol-errors",
    sep="2663",
    methods=POLLED,
    sorts=("error",),
)
def task_unknown_id(message: Message) -> Iterator[Finding]:
    """A task id that the server does not know is answered by -32602.

    Why: clients stop polling by that code.

    Fix: answer -32602.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32603 {"message": "Task not found"}

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32602 {"message": "Task not found"}
    """
    code, error = message.error_code, message.rpc.error
    status = message.exchange.status or 0
    if code is None or code in (rev.INVALID_PARAMS, rev.METHOD_NOT_FOUND) or -32022 <= code <= -32020:
        return
    if status in (401, 403) or status >= 500:
        return
    text = error.get("message") if isinstance(error, dict) else None
    if isinstance(text, str) and _UNKNOWN.search(text[:1_000]):
        get = message.request is not None and message.request.method == "tasks/get"
        yield Finding(
            f"an unknown task was answered with {code}, not -32602",
            [evidence(message.place("error", "code"), str(code), "-32602")],
            None if get else "warning",
        )


@rule(
    "TSK016",
    "task-not-durable",
    "Handle not resolvable right after creation",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-creation",
    sep="2663",
    methods=("tasks/get",),
    sorts=("error",),
)
def task_not_durable(message: Message) -> Iterator[Finding]:
    """A task can be asked for as soon as its handle was given.

    Why: the client drops a task that the server denies.

    Fix: store the task before answering; behind a balancer, where every instance finds it.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32602

    Right::

        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32602
    """
    view = _view(message)
    if view is not None and view.task is not None and view.first_poll and view.early and view.task.kind == "extension":
        yield Finding(
            "the server does not know the task that it has just created",
            [evidence(message.place("error", "code"), "-32602", "the task")],
            related=(view.task.created_flow,),
        )


@rule(
    "TSK017",
    "task-removed-methods",
    "tasks/list or tasks/result on modern",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec="2663 Backward Compatibility",
    sep="2663",
    methods=("tasks/list", "tasks/result"),
)
def task_removed_methods(message: Message) -> Iterator[Finding]:
    """tasks/list and tasks/result belong to 2025-11-25. The extension has tasks/get, which carries the result.

    Why: the server answers 404 with -32601.

    Fix: keep the ids yourself; poll tasks/get.

    Wrong::

        modern tasks/list
          -> error -32601

    Right::

        legacy tasks/list
          version 2025-11-25
          -> result {"tasks": []}
    """
    text = f"{message.method} does not exist in the tasks extension"
    yield Finding(text, [evidence(message.place("method"), message.method, "tasks/get")])


@rule(
    "TSK018",
    "task-param-ignored",
    "task parameter on modern tools/call",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec="2663 Backward Compatibility",
    sep="2663",
    methods=("tools/call",),
    needs=("params:task",),
)
def task_param_ignored(message: Message) -> Iterator[Finding]:
    """`params.task` asked for a task in 2025-11-25; in the modern era the server decides, and ignores it.

    Why: whoever sends it expects a task and may get a result.

    Fix: declare the tasks extension instead.

    Wrong::

        modern tools/call {"name": "slow", "task": {"ttl": 1000}}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "slow"}
          -> result {"content": []}
    """
    if "task" in message.params:
        yield Finding(
            "params.task is ignored in the modern era", [evidence(message.place("params", "task"), message.params["task"])]
        )


@rule(
    "TSK019",
    "legacy-tasks-advertised",
    "Legacy tasks capability advertised in discover",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2663 Backward Compatibility",
    sep="2663",
    methods=("server/discover",),
    sorts=("result",),
)
def legacy_tasks_advertised(message: Message) -> Iterator[Finding]:
    """server/discover does not advertise `capabilities.tasks` of 2025-11-25.

    Why: clients would use methods that are not there.

    Fix: advertise `extensions: {"io.modelcontextprotocol/tasks": {}}`.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tasks": {"list": {}}}}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    """
    capabilities = message.result.get("capabilities")
    if isinstance(capabilities, dict) and "tasks" in capabilities:
        yield Finding(
            "server/discover advertises capabilities.tasks of 2025-11-25",
            [evidence(message.place("result", "capabilities", "tasks"), capabilities["tasks"], f"extensions[{EXTENSION}]")],
        )


@rule(
    "TSK020",
    "task-poll-interval",
    "Polling faster than pollIntervalMs",
    on=("request", "finish"),
    level="should",
    party="client",
    era="modern",
    severity="warning",
    spec=f"{SPEC} #task-polling",
    sep="2663",
    methods=("tasks/get", "tools/call"),
    needs=(TASK,),
)
def task_poll_interval(fact: Message | Exchange) -> Iterator[Finding]:
    """A client polls no faster than the server asks by pollIntervalMs. Measured from request to request, with 20 % to spare.
    A client that does not ask for very much longer is but a note.

    Why: the server pays for each poll; it may start to refuse.

    Fix: wait for pollIntervalMs of the newest answer.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "pollIntervalMs": 5000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "pollIntervalMs": 5000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          after 1
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "pollIntervalMs": 5000}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "pollIntervalMs": 5000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "pollIntervalMs": 5000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          after 5
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "pollIntervalMs": 5000}
    """
    view = _view(fact)
    if view is None or view.task is None:
        return
    if view.silence_ms is not None and view.task.kind == "extension":
        asked = one_line(dumps(view.task.poll_ms), 30)
        yield Finding(
            f"the task was not asked for during {view.silence_ms:.0f} ms, the server asks for a poll every {asked} ms",
            [Evidence("request.time", f"{view.silence_ms:.0f} ms", f"about {asked} ms")],
            "info",
        )
    elif isinstance(fact, Message) and view.poll_ms is not None and view.gap_ms is not None:
        yield Finding(
            f"polled after {view.gap_ms:.0f} ms, the server asks for {view.poll_ms:.0f} ms",
            [Evidence("request.time", f"{view.gap_ms:.0f} ms", f"at least {view.poll_ms:.0f} ms")],
        )


@rule(
    "TSK021",
    "task-ttl",
    "Early expiry",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{SPEC} #task-polling",
    sep="2663",
    methods=POLLED,
    needs=(TASK,),
)
def task_ttl(message: Message) -> Iterator[Finding]:
    """A task is kept for ttlMs after its creation; with null, for ever.

    Why: the client comes back in time and finds the result gone.

    Fix: keep it as long as promised, or promise less.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": 600000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": 600000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32602

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": 60000}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          after 90
          -> error -32602
    """
    view = _view(message)
    if view is None or view.task is None or view.task.kind != "extension":
        return
    ttl = view.task.ttl_ms
    promised = "for ever" if ttl is None else f"for {one_line(dumps(ttl), 30)} ms"
    if message.rpc.kind == "result":
        text = _expiry_told(message.result)
        if text is not None and not view.expired:
            yield Finding(
                f"the task has failed as expired; its ttlMs promised to keep it {promised}",
                [evidence(message.place("result", "status"), text, "the task")],
                related=(view.task.created_flow,),
            )
        return
    error = message.rpc.error
    text = error.get("message") if isinstance(error, dict) else None
    gone = isinstance(text, str) and (_UNKNOWN.search(text[:1_000]) or _EXPIRED.search(text[:1_000]))
    if view.what != "get" and not gone:
        return  # -32602 has other reasons there
    if view.early and not view.first_poll:  # on the first poll it is TSK016
        yield Finding(
            f"the task is gone; its ttlMs promised to keep it {promised}",
            [evidence(message.place("error", "code"), "-32602", "the task")],
            related=(view.task.created_flow,),
        )


def _expiry_told(body: dict[str, Any]) -> str | None:
    """What a failed task says of its expiry."""
    if body.get("status") != "failed":
        return None
    error = body.get("error")
    texts = (body.get("statusMessage"), error.get("message") if isinstance(error, dict) else None)
    return next((t for t in texts if isinstance(t, str) and _EXPIRED.search(t[:1_000])), None)


@rule(
    "TSK022",
    "task-notification",
    "notifications/tasks shape and scope",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-status-notifications",
    sep="2663",
    methods=("notifications/tasks", "notifications/progress", "notifications/message"),
    needs=(LISTEN, "params:taskId", "params:status"),
)
def task_notification(message: Message) -> Iterator[Finding]:
    """notifications/tasks comes only on a listen stream that asked for that taskId and was granted it, with the whole task and the
    stream's subscriptionId. Such a stream carries no progress and no logs.

    Why: nobody else looks for it.

    Fix: send it on the streams whose `taskIds` name the task.

    Wrong::

        modern subscriptions/listen {"notifications": {"taskIds": ["a"]}}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          id 1
          -> sse
          -> ack {"taskIds": ["a"]}
          -> publish notifications/tasks {"taskId": "b", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
          -> closed client

    Right::

        modern subscriptions/listen {"notifications": {"taskIds": ["a"]}}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          id 1
          -> sse
          -> ack {"taskIds": ["a"]}
          -> publish notifications/tasks {"taskId": "a", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
          -> closed client
    """
    listen: Listen | None = message.exchange.facts.get(LISTEN)
    if message.method != "notifications/tasks":
        if listen is not None and listen.asked.tasks:
            text = f"{message.method} on a stream of task notifications"
            yield Finding(text, [evidence(message.place("method"), message.method, "notifications/tasks")])
        return
    task_id = message.params.get("taskId")
    named, place = one_line(dumps(task_id), 60), message.place("params", "taskId")
    if listen is None:
        yield Finding("notifications/tasks outside a listen stream", [evidence(place, task_id, "a listen stream")])
        return
    if isinstance(task_id, str) and task_id not in listen.asked.tasks:
        text = f"a notification about the task {named}, which this stream did not ask for"
        yield Finding(text, [evidence(place, task_id, "a taskId of the filter")])
    elif isinstance(task_id, str) and listen.granted is not None and task_id not in listen.granted.tasks:
        text = f"a notification about the task {named}, which the acknowledgement left out"
        yield Finding(text, [evidence(place, task_id, "a taskId of the acknowledgement")])
    lacking = [name for name, fits, _ in _SHAPE if fits is not is_time and not fits(message.params.get(name, _ABSENT))]
    lacking += [name for name in ("createdAt", "lastUpdatedAt") if name not in message.params]
    if lacking:
        text = f"the notification is no whole task: {', '.join(lacking)}"
        yield Finding(text, [evidence(message.place("params"), sorted(message.params)[:10], "the task as tasks/get shows it")])
    if rev.SUBSCRIPTION_ID not in message.meta:
        text = "notifications/tasks has no subscriptionId"
        yield Finding(text, [evidence(message.place("params", "_meta", rev.SUBSCRIPTION_ID), None, "the stream's")])


@rule(
    "TSK023",
    "task-id-weak",
    "Guessable task id",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{SPEC} #security-considerations",
    sep="2663",
    methods=("tools/call",),
    once="endpoint",
    needs=("result:taskId",),
)
def task_id_weak(message: Message) -> Iterator[Finding]:
    """A task id cannot be guessed: long and random.

    Why: whoever knows the id can read the result and cancel the task.

    Fix: a UUID of version 4, or 128 random bits in another spelling.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "task-7", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0e6f2f0a-8d0f-4f2e-9d53-1f6f3c0d7f11", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
    """
    task_id = message.result.get("taskId")
    if message.result.get("resultType") != "task" or not isinstance(task_id, str) or not task_id:
        return
    why, related = "", ""
    if len(task_id) < SHORTEST_ID or _bits(task_id) < FEWEST_BITS:
        why = f"has {len(task_id)} characters"
    elif (before := _counted_from(message, task_id)) is not None:
        why, related = f"comes right after {one_line(before.id, 40)}", before.created_flow
    if why:
        yield Finding(
            f"the task id {one_line(task_id, 40)} {why}: it can be guessed",
            [evidence(message.place("result", "taskId"), task_id, f"{SHORTEST_ID} random characters or more")],
            related=(related,) if related else (),
        )


def _bits(task_id: str) -> float:
    """How much chance there is in an id at most: by its length and the kinds of its characters."""
    kinds = [(str.isdigit, 10), (str.islower, 26), (str.isupper, 26)]
    if all(c in "0123456789abcdefABCDEF-" for c in task_id):
        return 4.0 * sum(c != "-" for c in task_id) if not task_id.isdigit() else math.log2(10) * len(task_id)
    size = sum(count for kind, count in kinds if any(map(kind, task_id)))
    return math.log2(max(size, 2)) * len(task_id)


_COUNTED = re.compile(r"(.{0,200}?)([0-9]{1,18})([^0-9]*)", re.S)


def _counted_from(message: Message, task_id: str) -> Task | None:
    """The task before, where the ids of the two are but counted."""
    origin = message.request.exchange if message.request is not None else message.exchange
    tasks: list[Task] = origin.endpoint.facts.get(TASKS) or []
    index = next((i for i in range(len(tasks) - 1, -1, -1) if tasks[i].origin is origin), 0)
    here = _COUNTED.fullmatch(task_id[:300])
    before = tasks[index - 1] if index > 0 else None
    there = _COUNTED.fullmatch(before.id) if before is not None else None
    if here is None or there is None or (here[1], here[3]) != (there[1], there[3]):
        return None
    return before if 0 < int(here[2]) - int(there[2]) <= 100 else None


@rule(
    "TSK024",
    "task-mrtr-order",
    "Task asks for input at once",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="info",
    spec=f"{SPEC} #task-creation",
    sep="2663",
    methods=("tasks/get", "tools/call"),
    needs=(TASK,),
)
def task_mrtr_order(message: Message) -> Iterator[Finding]:
    """What a server needs to know before it begins, it asks for in the call itself (input_required), before it gives the handle.
    A task may ask later on, also at once; this is but a note.

    Why: a client without tasks can answer the first, and the second takes two more requests.

    Fix: ask first, then start the task.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"ok": {"method": "elicitation/create", "params": {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}}}}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
    """
    view = _view(message)
    if view is None or message.result.get("status") != "input_required":
        return
    if view.what == "create" and message.result.get("resultType") == "task":
        text = "the handle of the task is waiting for input already, which the call could have asked for"
        yield Finding(text, [evidence(message.place("result", "status"), "input_required", "working")])
    elif view.what == "get" and view.first_poll and view.task is not None and view.task.kind == "extension":
        yield Finding(
            "the first poll of the task finds it waiting for input, which the call could have asked for",
            [evidence(message.place("result", "status"), "input_required")],
            related=(view.task.created_flow,),
        )


@rule(
    "TSK025",
    "extension-tasks-in-legacy",
    "Tasks extension used in a legacy session",
    on=("answer", "request"),
    level="must",
    party="either",
    era="legacy",
    severity="error",
    spec="2663 Backward Compatibility",
    sep="2663",
    versions=("2025-11-25",),
)
def extension_tasks_in_legacy(message: Message) -> Iterator[Finding]:
    """The tasks extension belongs to the modern era; a session of 2025-11-25 has the core tasks.

    Why: a legacy client reads the handle as the tool's result.

    Fix: answer core tasks where `params.task` asks for one, otherwise the result itself.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow"}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "ttlMs": null}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow"}
          -> result {"content": []}
    """
    if message.rpc.kind == "request":
        if message.method == "tasks/update":
            text = "tasks/update belongs to the tasks extension of the modern era"
            yield Finding(text, [evidence(message.place("method"), message.method, "no such method")], "warning")
        return
    result, request = message.result, message.request
    if request is None or request.method != "tools/call":
        return
    if result.get("resultType") == "task" or ("taskId" in result and "ttlMs" in result):
        yield Finding(
            "a task of the modern extension answers a call of a legacy session",
            [evidence(message.place("result"), sorted(result)[:10], "a result, or a core task under result.task")],
        )


@rule(
    "TSK026",
    "task-input-requests-valid",
    "inputRequests inside a task malformed or not declared",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{SPEC} #task-update-requests",
    sep="2663",
    methods=("tasks/get", "notifications/tasks"),
)
def task_input_requests(message: Message) -> Iterator[Finding]:
    """What a task asks for is what a call may ask for: elicitation/create, sampling/createMessage or roots/list with its params, of a
    kind and mode that the client declared in the call or in this poll.

    Why: a client can fulfil no other request, and the task waits for ever.

    Fix: `{"method": "elicitation/create", "params": {...}}`, after a look at clientCapabilities.

    Wrong::

        modern tools/call {"name": "slow"}
          capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"ok": {"method": "ping"}}}

    Right::

        modern tools/call {"name": "slow"}
          capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"resultType": "task", "taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null}
        modern tasks/get {"taskId": "0123456789abcdef0"}
          capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> result {"taskId": "0123456789abcdef0", "status": "input_required", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": null, "inputRequests": {"ok": {"method": "elicitation/create", "params": {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    """
    body, member = (message.params, "params") if message.rpc.kind == "notification" else (message.result, "result")
    requests = body.get("inputRequests")
    if not isinstance(requests, dict) or not requests:
        return
    for key, request in list(requests.items())[:50]:
        found = request_problem(message, request)
        if found is not None:
            words, steps, value, severity = found
            place = message.place(member, "inputRequests", key, *steps)
            yield Finding(f"the input request {one_line(key, 40)} {words}", [evidence(place, value)], severity)
    for params_fit in (elicit_params, elicit_schema_flat, sampling_request_valid):
        yield from (found for found in params_fit(message) or () if isinstance(found, Finding))
    yield from _not_declared(message)


def _not_declared(message: Message) -> Iterator[Finding]:
    """The extension leaves open which request declares it: the call that created the task, or the one that polls it."""
    view = _view(message)
    task = view.task if view is not None else None
    told = set()
    for ask in asks(message):
        polled = ask.capabilities
        if ask.origin != "task" or polled is None or task is None or ask.method not in KINDS:
            continue
        lacking = supports(polled, ask.method, ask.params)
        known = not task.adopted  # else the call may have declared it
        if lacking is None or lacking in told or (known and supports(task.declared, ask.method, ask.params) is None):
            continue
        told.add(lacking)
        yield Finding(
            f"the task asks for {ask.method}, the client declared no {lacking}",
            [evidence(message.place(*ask.steps[:-1], "method"), ask.method, f"{lacking} in clientCapabilities")],
            severity="warning" if known else "info",
            related=(task.created_flow,),
        )
