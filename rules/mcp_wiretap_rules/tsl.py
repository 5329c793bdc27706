"""TSL: the core tasks of 2025-11-25 (basic/utilities/tasks, SEP-1686)."""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.era.discover import advertised
from mcp_wiretap.trace.model import Message
from mcp_wiretap.trace.operations.tasks import (
    LISTED_TASKS,
    PROGRESS_OF_ENDED_TASK,
    PROGRESS_OF_TASK,
    STATUSES,
    TASK,
    TERMINAL,
    Seen,
    Task,
    TaskView,
)
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_number, is_time
from mcp_wiretap_rules.rpc import KNOWN_REQUESTS

SPEC = "2025-11-25 basic/utilities/tasks"
VERSIONS = ("2025-11-25",)
RELATED = "io.modelcontextprotocol/related-task"
TASK_METHODS = ("tasks/get", "tasks/list", "tasks/cancel", "tasks/result")
# What may be asked for as a task, and where its receiver declares that.
AUGMENTED = {
    "tools/call": ("tools", "call"),
    "sampling/createMessage": ("sampling", "createMessage"),
    "elicitation/create": ("elicitation", "create"),
}


def _declared(capabilities: Any, *path: str) -> bool:
    for step in path:
        if not isinstance(capabilities, dict) or step not in capabilities:
            return False
        capabilities = capabilities[step]
    return True


def _receiver_declares(request: Message) -> bool | None:
    """Whether the receiver of a request declared that it may be a task; None where its capabilities are not known."""
    if request.party == "client":
        told = advertised(request.exchange)
        capabilities = told[0] if told is not None else None
    else:
        session = request.exchange.session
        capabilities = session.client_capabilities if session is not None else None
    if capabilities is None:
        return None
    path = AUGMENTED.get(request.method or "")
    return path is not None and _declared(capabilities, "tasks", "requests", *path)


def _view(message: Message) -> TaskView | None:
    if message.rpc.kind == "notification":
        return message.found if isinstance(message.found, TaskView) else None
    exchange = message.request.exchange if message.request is not None else message.exchange
    return exchange.facts.get(TASK)


@rule(
    "TSL001",
    "legacy-task-not-negotiated",
    "Task augmentation without capability",
    on=("request", "push", "answer", "reply"),
    level="must",
    party="either",
    era="legacy",
    severity="error",
    spec=f"{SPEC}#capability-negotiation",
    sep="1686",
    versions=VERSIONS,
    needs=("params:task", "result:task"),
)
def legacy_task_not_negotiated(message: Message) -> Iterator[Finding]:
    """`params.task` is sent only to a receiver whose capabilities name the method under `tasks.requests`; another answers normally.

    Why: the client would poll a task that does not exist.

    Fix: look at the capabilities of the initialize result.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {"ttl": 1000}}
          -> result {"content": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {"ttl": 1000}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": 1000}}
    """
    request = message.request or message
    if request.rpc.kind != "request" or "task" not in request.params or _receiver_declares(request) is not False:
        return
    method = request.method or ""
    if method not in KNOWN_REQUESTS:
        return  # what another's method means by it is not known
    receiver = "server" if request.party == "client" else "client"
    needed = ".".join(("tasks", "requests", *AUGMENTED.get(method, (one_line(method.replace("/", "."), 60),))))
    if message is request:
        text = f"params.task, but the {receiver} did not declare {needed}"
        place = message.place("params", "task")
        yield Finding(text, [evidence(place, message.params["task"], "no task")], None if method == "tools/call" else "warning")
    elif isinstance(message.result.get("task"), dict):
        text = f"the {receiver} made a task without having declared {needed}"
        yield Finding(text, [evidence(message.place("result", "task"), "a task", "the result itself")])


@rule(
    "TSL002",
    "legacy-task-support-flag",
    "execution.taskSupport ignored",
    on="request",
    level="must",
    party="client",
    era="legacy",
    severity="error",
    spec=f"{SPEC}#tool-level-negotiation",
    sep="1686",
    versions=VERSIONS,
    methods=("tools/call",),
)
def legacy_task_support_flag(message: Message) -> Iterator[Finding]:
    """A tool says by `execution.taskSupport` whether it is called as a task: required, optional, or forbidden (the default).

    Why: the server answers -32601.

    Fix: send `params.task` to tools that require it, and not to tools that forbid it.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": [{"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}]}
        legacy tools/call {"name": "slow"}
          -> error -32601

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          -> result {"tools": [{"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]}
        legacy tools/call {"name": "slow"}
          -> result {"content": []}
    """
    view = message.exchange.tool
    definition = view.definition if view is not None else None
    if definition is None or not _receiver_declares(message):
        return
    execution = definition.raw.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    asked = "task" in message.params
    if support == "required" and not asked:
        text = f"{one_line(definition.name, 60)} requires a task, and was called without"
        yield Finding(text, [evidence(message.place("params", "task"), None, "a task")], related=(definition.flow,))
    elif support in (None, "forbidden") and asked:
        text = f"{one_line(definition.name, 60)} forbids tasks, and was called with one"
        yield Finding(text, [evidence(message.place("params", "task"), "a task", "no task")], related=(definition.flow,))


@rule(
    "TSL003",
    "legacy-create-shape",
    "CreateTaskResult malformed",
    on=("answer", "reply"),
    level="must",
    party="either",
    era="legacy",
    severity="error",
    spec=f"{SPEC}#creating-tasks",
    sep="1686",
    versions=VERSIONS,
    methods=tuple(AUGMENTED),
    sorts=("result",),
)
def legacy_create_shape(message: Message) -> Iterator[Finding]:
    """A task handle is `result.task` with taskId, status working, createdAt, lastUpdatedAt and ttl (a number or null), and maybe a
    pollInterval.

    Why: the client polls by these.

    Fix: send the five members inside `task`; ttlMs and pollIntervalMs belong to the 2026 extension.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "completed"}}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
    """
    request = message.request
    if request is None or "task" not in request.params or not _receiver_declares(request):
        return
    task = message.result.get("task")
    if not isinstance(task, dict):
        if message.result.get("resultType") == "task":
            return  # TSK025
        flat = sorted({"taskId", "status", "ttlMs"} & set(message.result))
        if "taskId" in flat and len(flat) > 1:
            text = "the members of the task stand in the result itself"
            yield Finding(text, [evidence(message.place("result"), flat, "a task under result.task")])
        elif request.method != "tools/call" or _takes_tasks(request):
            text = "a task was asked for, an ordinary result came"
            yield Finding(text, [evidence(message.place("result", "task"), None, "a task handle")], "warning")
        return
    for name, fits, words in (
        ("taskId", isinstance(task.get("taskId"), str), "a string"),
        ("status", task.get("status") == "working", "working"),
        ("createdAt", is_time(task.get("createdAt")), "an ISO 8601 time"),
        ("lastUpdatedAt", is_time(task.get("lastUpdatedAt")), "an ISO 8601 time"),
        ("ttl", "ttl" in task and (task["ttl"] is None or is_number(task["ttl"])), "a number or null"),
        ("pollInterval", task.get("pollInterval") is None or is_number(task["pollInterval"]), "a number"),
    ):
        if not fits:
            what = "absent" if name not in task else one_line(dumps(task[name]), 40)
            yield Finding(
                f"{name} of the task is {what}", [evidence(message.place("result", "task", name), task.get(name), words)]
            )


def _takes_tasks(request: Message) -> bool:
    view = request.exchange.tool
    execution = view.definition.raw.get("execution") if view is not None and view.definition is not None else None
    return isinstance(execution, dict) and execution.get("taskSupport") in ("optional", "required")


@rule(
    "TSL004",
    "legacy-status-transition",
    "Illegal task transition",
    on=("answer", "push"),
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec=f"{SPEC}#task-status-lifecycle",
    sep="1686",
    versions=VERSIONS,
    methods=("tools/call", "tasks/get", "tasks/list", "tasks/cancel", "notifications/tasks/status"),
    needs=(TASK, LISTED_TASKS, "params:taskId"),
)
def legacy_status_transition(message: Message) -> Iterator[Finding]:
    """A task begins as working; one that is completed, failed or cancelled stays so.

    Why: a client that saw the end has acted on it.

    Fix: freeze the task at its end.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "cancelled", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}
    """
    if message.request is not None and message.request.method == "tasks/list":
        for index, (end, status) in message.request.exchange.facts.get(LISTED_TASKS, {}).items():
            text = f"the task was {end.status} and now is listed as {status}"
            place = message.place("result", "tasks", index, "status")
            yield Finding(text, [evidence(place, status, end.status)], related=(end.flow,))
        return
    view = _view(message)
    if view is None or view.now is None or view.task is None:
        return
    last, status = view.terminal_before, view.now.status
    if view.what == "create":
        if status != "working" and view.task.kind == "core":
            place = message.place("result", "task", "status")
            yield Finding(f"the task begins as {status}", [evidence(place, status, "working")])
    elif view.changed == "status" and last is not None and view.what != "cancel":  # that is TSL006
        place = message.place("params" if message.rpc.kind == "notification" else "result", "status")
        yield Finding(
            f"the task was {last.status} and now is {status}", [evidence(place, status, last.status)], related=(last.flow,)
        )


@rule(
    "TSL005",
    "legacy-related-task",
    "related-task metadata",
    on=("request", "answer", "push", "reply"),
    level="must",
    party="either",
    era="legacy",
    severity="error",
    spec=f"{SPEC}#related-task-metadata",
    sep="1686",
    versions=VERSIONS,
    needs=(f"meta:{RELATED}", TASK, PROGRESS_OF_TASK, "result:content", "result:role", "result:action"),
)
def legacy_related_task(message: Message) -> Iterator[Finding]:
    """What belongs to a task and does not name it carries `_meta["io.modelcontextprotocol/related-task"]` with the taskId: the result
    of tasks/result, what the server asks and tells on the stream of that, and the progress of the task. What names the task itself
    (tasks/get, tasks/list, tasks/cancel, notifications/tasks/status) does without.

    Why: nothing else says to which task it belongs.

    Fix: add the key to `_meta`.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tasks/result {"taskId": "0123456789abcdef0"}
          -> result {"content": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tasks/result {"taskId": "0123456789abcdef0"}
          -> result {"content": [], "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "0123456789abcdef0"}}}
    """
    kind, method = message.rpc.kind, message.method
    own = message.request.method if message.request is not None else method  # of an answer: what it answers
    if kind == "result" and own not in TASK_METHODS:
        return
    related = message.meta.get(RELATED)
    given = related.get("taskId") if isinstance(related, dict) else None
    place = message.place("result" if kind == "result" else "params", "_meta", RELATED, "taskId")
    if own in ("tasks/get", "tasks/list", "tasks/cancel", "notifications/tasks/status"):
        if RELATED in message.meta:
            text = f"{one_line(own or '', 60)} names its task by itself, and has related-task metadata"
            yield Finding(text, [evidence(place, given, "no such key")], "info")
        return
    if kind == "result":
        wanted = message.request.params.get("taskId") if message.request is not None and own == "tasks/result" else None
        what = "the result of tasks/result"
    else:
        wanted, what = _of_task(message), one_line(method or "", 60)
    if isinstance(wanted, str) and given != wanted:
        text = f"{what} does not name its task" if given is None else f"{what} names another task"
        yield Finding(text, [evidence(place, given, wanted)], "warning" if given is None else None)


def _of_task(message: Message) -> str | None:
    """The task to which a request or notification of the server belongs: that of the tasks/result on whose stream it came, or that
    whose progress it tells."""
    if message.party != "server":
        return None
    asked, method = message.exchange.request, message.method
    if asked is not None and asked.method == "tasks/result":
        if message.rpc.kind == "request" or method in ("notifications/progress", "notifications/message"):
            task_id = asked.params.get("taskId")
            return task_id if isinstance(task_id, str) else None
        return None
    task: Task | None = message.exchange.facts.get(PROGRESS_OF_TASK, {}).get(message.where)
    return task.id if task is not None and method == "notifications/progress" else None


@rule(
    "TSL006",
    "legacy-cancel-terminal",
    "Cancel of a finished task",
    on="answer",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec=f"{SPEC}#task-cancellation",
    sep="1686",
    versions=VERSIONS,
    methods=("tasks/cancel",),
)
def legacy_cancel_terminal(message: Message) -> Iterator[Finding]:
    """Cancelling a task that is over is answered by -32602; cancelling a running one shows it cancelled.

    Why: the client cannot tell whether it was in time.

    Fix: answer -32602 for terminal tasks; only the 2026 extension acknowledges instead.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/cancel {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/cancel {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "cancelled", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}
    """
    view = _view(message)
    if message.rpc.kind == "error":
        if view is not None and view.terminal_before is not None:
            yield from _refused_otherwise(message, view.terminal_before)
        return
    if view is not None and view.terminal_before is not None:
        text = f"the task was {view.terminal_before.status} already, and cancelling it succeeded"
        yield Finding(text, [evidence(message.place("result"), "a result", "-32602")], related=(view.terminal_before.flow,))
    elif message.rpc.kind == "result" and message.result.get("status") != "cancelled":
        status = message.result.get("status")
        text = f"the task was cancelled, and the answer shows it {one_line(dumps(status), 40)}"
        yield Finding(text, [evidence(message.place("result", "status"), status, "cancelled")])


def _refused_otherwise(message: Message, end: Seen) -> Iterator[Finding]:
    code, status = message.error_code, message.exchange.status or 0
    if code is None or code == rev.INVALID_PARAMS or status >= 400:
        return
    told = advertised(message.request.exchange) if message.request is not None else None
    if code == rev.METHOD_NOT_FOUND and not (told is not None and _declared(told[0], "tasks", "cancel")):
        return
    text = f"the task was {end.status} already, and cancelling it was answered with {code}"
    yield Finding(text, [evidence(message.place("error", "code"), str(code), "-32602")], related=(end.flow,))


@rule(
    "TSL007",
    "legacy-result-blocking",
    "tasks/result before terminal",
    on="answer",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec=f"{SPEC}#result-retrieval",
    sep="1686",
    versions=VERSIONS,
    methods=("tasks/get",),
)
def legacy_result_blocking(message: Message) -> Iterator[Finding]:
    """tasks/result waits until the task is over.

    Why: the client takes an intermediate result for the final one.

    Fix: hold the answer back until the task is completed, failed or cancelled.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/result {"taskId": "0123456789abcdef0"}
          -> result {"content": [], "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "0123456789abcdef0"}}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/result {"taskId": "0123456789abcdef0"}
          -> result {"content": [], "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "0123456789abcdef0"}}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}
    """
    view = _view(message)
    status = message.result.get("status")
    if view is None or view.task is None or view.result_flow == "" or not isinstance(status, str) or status in TERMINAL:
        return
    if status in STATUSES:
        text = f"the task is {status}, although tasks/result had given its result"
        yield Finding(
            text, [evidence(message.place("result", "status"), status, "a terminal status")], related=(view.result_flow,)
        )


@rule(
    "TSL008",
    "legacy-poll-interval",
    "Polling faster than pollInterval",
    on="request",
    level="should",
    party="client",
    era="legacy",
    severity="info",
    spec=f"{SPEC}#getting-tasks",
    sep="1686",
    versions=VERSIONS,
    methods=("tasks/get",),
)
def legacy_poll_interval(message: Message) -> Iterator[Finding]:
    """A client polls no faster than the server asks by pollInterval.

    Why: the server pays for each poll.

    Fix: wait for pollInterval of the newest answer.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 9000}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 9000}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 9000}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 9000}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 500}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 500}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null, "pollInterval": 500}
    """
    view = _view(message)
    if view is not None and view.poll_ms is not None and view.gap_ms is not None and view.task is not None and view.task.fast > 1:
        yield Finding(
            f"polled after {view.gap_ms:.0f} ms, the server asks for {view.poll_ms:.0f} ms",
            [Evidence("request.time", f"{view.gap_ms:.0f} ms", f"at least {view.poll_ms:.0f} ms")],
        )


@rule(
    "TSL009",
    "legacy-progress-after-terminal",
    "Progress after terminal task",
    on="push",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec="2025-11-25 basic/utilities/progress#behavior-requirements",
    sep="1686",
    versions=VERSIONS,
    methods=("notifications/progress",),
)
def legacy_progress_after_terminal(message: Message) -> Iterator[Finding]:
    """The progress token of a task ends with the task.

    Why: the client has dropped it.

    Fix: send no progress once the task is over.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}, "_meta": {"progressToken": "t"}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tasks/get {"taskId": "0123456789abcdef0"}
          -> result {"taskId": "0123456789abcdef0", "status": "completed", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}
        legacy tools/call {"name": "other"}
          -> sse
          -> notify notifications/progress {"progressToken": "t", "progress": 1, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "0123456789abcdef0"}}}
          -> result {"content": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow", "task": {}, "_meta": {"progressToken": "t"}}
          -> result {"task": {"taskId": "0123456789abcdef0", "status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttl": null}}
        legacy tools/call {"name": "other"}
          -> sse
          -> notify notifications/progress {"progressToken": "t", "progress": 1, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "0123456789abcdef0"}}}
          -> result {"content": []}
    """
    ended = message.exchange.facts.get(PROGRESS_OF_ENDED_TASK, {}).get(message.where)
    if ended is not None:
        text = f"progress of a task that was {ended.status}"
        place = message.place("params", "progressToken")
        yield Finding(text, [evidence(place, message.params.get("progressToken"), "no progress")], related=(ended.flow,))
