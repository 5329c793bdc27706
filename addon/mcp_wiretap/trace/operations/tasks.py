"""Tasks of both kinds: the extension io.modelcontextprotocol/tasks (modern) and the core tasks of 2025-11-25 (legacy).

A task begins with the answer to a tools/call, is polled by tasks/get, asked by tasks/update, ended by tasks/cancel or by itself.
The exchanges that name its taskId are one conversation. What rules judge stands in `exchange.facts[TASK]` (TaskView); what the
pages show in `endpoint.facts[TASKS]`. Times compared are of exchanges that do not overlap: concurrent polls prove no order.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Literal

from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact, SessionFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Message, Status, ToolDefinition
from mcp_wiretap.trace.streams.subscriptions import LISTENS
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import dumps, id_key
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import bounded, digest, is_number, short_key

METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel", "tasks/result"})
STATES = frozenset({"notifications/tasks", "notifications/tasks/status"})
TERMINAL = frozenset({"completed", "failed", "cancelled"})
MOST_POLLS = 200  # exchanges of one task that are put into its conversation; later ones still move its state
MOST_STEPS = 200
MOST_BACK = 500  # exchanges looked back for the call that a cancellation names
MOST_UNPOLLED = 50  # handles that are kept whole until somebody polls
MOST_TOKENS = 500  # progress tokens of the tasks of one session
CROSSING_S = 0.5  # progress may be on its way on one stream while another tells of the end
_HUGE = 10**15  # milliseconds: 30,000 years
LONG_SILENCE = 10  # times the interval that the server asked for
MOST_KEYS = 100  # input requests of one message
MOST_ASKED = 500  # and of one task
MOST_REQUESTS, MOST_REQUESTS_IN_ALL = 256 << 10, 16 << 20  # characters of inputRequests that are kept: of one task, of all
_SHOWN_AS: dict[str, Status] = {
    "working": "working",
    "input_required": "awaiting-input",
    "completed": "complete",
    "failed": "error",
    "cancelled": "cancelled",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATUSES = tuple(_SHOWN_AS)  # of a task, by the specification


@dataclass(slots=True)
class Seen:
    """A state of a task as one message showed it."""

    status: str
    flow: str
    at: float
    created: Any = None
    updated: Any = None
    digest: bytes = b""  # of result or error
    ended: float | None = None  # when the exchange that showed it was over


@dataclass(slots=True, eq=False)
class Task:
    id: str  # cut by `short_key`
    kind: Literal["extension", "core"]
    owner: Literal["client", "server"]  # who runs it
    created_flow: str  # of an adopted task: the flow in which it was seen first
    created_at: float
    auth: str
    origin: Exchange
    adopted: bool = False  # its creation is not in the trace
    altered: bool = False  # what the client was told of it was changed at the proxy: the two know different things
    ttl_ms: Any = None
    poll_ms: Any = None
    tool: str | None = None
    definition: ToolDefinition | None = None  # of the tool, as the client had seen it when it called
    declared: dict[str, Any] = field(default_factory=dict)  # client capabilities of the call that created it
    steps: list[Seen] = field(default_factory=list)
    terminal: Seen | None = None
    asked: OrderedDict[str, bytes] = field(default_factory=OrderedDict)  # short key of an input request -> its digest
    requests: dict[str, Any] = field(default_factory=dict)  # the newest inputRequests; empty where they took too much room
    size: int = 0  # of `requests`
    answered: dict[str, float] = field(default_factory=dict)  # key -> when its answer was acknowledged
    dropped_after: set[str] = field(default_factory=set)  # answered keys that a later poll no longer listed
    cancel_acknowledged: bool = False
    last_poll: float | None = None
    last_news: float = 0.0  # when the client last asked for it, or was told of it
    polls: int = 0
    fast: int = 0  # polls sooner than the server asked for
    result_given: tuple[str, float] | None = None  # legacy: flow and time of a tasks/result answered with a result

    @property
    def status(self) -> str:
        return self.steps[-1].status if self.steps else "working"


@dataclass(slots=True)
class TaskView:
    """What is to be said of one exchange of a task."""

    task: Task | None  # None: a taskId that was not seen before
    what: Literal["create", "get", "update", "cancel", "result", "told"]
    task_id: str
    before: Seen | None = None  # the newest state that was known when the request was sent
    terminal_before: Seen | None = None
    first_poll: bool = False
    gap_ms: float | None = None  # since the poll before
    poll_ms: float | None = None  # asked for by the server, where the poll came sooner
    silence_ms: float | None = None  # since the task was last heard of, where that is very much longer than asked for
    unknown_keys: list[str] = field(default_factory=list)
    repeated_keys: list[str] = field(default_factory=list)  # answered before
    now: Seen | None = None
    reused_keys: list[str] = field(default_factory=list)  # the same key for another request
    changed: Literal["", "status", "payload"] = ""  # a terminal task showed something else
    created_changed: bool = False
    went_back: bool = False
    expired: bool = False  # createdAt + ttlMs was over when the request was sent
    early: bool = False  # the server no longer knows it before that
    result_flow: str = ""  # legacy: the tasks/result that had given the result before this request was sent


TASK: ExchangeFact[TaskView] = ExchangeFact("task", "the task that this exchange made or names")
CANCELS_TASK: ExchangeFact[Task] = ExchangeFact("cancels-task", "the task that its notifications/cancelled names")
PROGRESS_OF_TASK: ExchangeFact[dict[str, Task]] = ExchangeFact("progress-of-task", "progress of a task, by its place")
PROGRESS_OF_ENDED_TASK: ExchangeFact[dict[str, Seen]] = ExchangeFact(
    "progress-of-ended-task", "progress of a task that had ended, by its place"
)
LISTED_TASKS: ExchangeFact[dict[int, tuple[Seen, str]]] = ExchangeFact(
    "listed-tasks", "index in an answer to tasks/list: the end seen before, and the status now"
)
TASKS: EndpointFact[list[Task]] = EndpointFact("tasks", "the tasks of this endpoint, the newest last")
TOKEN_TASKS: SessionFact[OrderedDict[Any, Task]] = SessionFact("_token-tasks", "tasks by progress token")


class Tasks(Tracker):
    name = "tasks"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._tasks: OrderedDict[tuple[str, str], Task] = OrderedDict()
        self._asking: dict[int, Task] = {}  # those whose inputRequests are kept, the oldest first
        self._unpolled: OrderedDict[str, Exchange] = OrderedDict()
        self._now = 0.0  # start of the newest request
        self._size = 0  # of these inputRequests, in characters

    def find(self, exchange: Exchange, task_id: Any) -> Task | None:
        return self._tasks.get((exchange.endpoint.url, short_key(task_id))) if isinstance(task_id, str) else None

    def said(self, message: Message) -> None:
        kind, method = message.rpc.kind, message.method
        if kind == "request":
            if message.party == "client":
                if method in METHODS:
                    self._asked(message, str(method))
                _reuses_token(message)
        elif kind == "result":
            request = message.request
            if request is None or message.party != "server":
                return
            if request.method in METHODS:
                self._answered(message, request)
            elif request.method == "tools/call":
                self._created(message, request)
            elif request.method == "tasks/list":
                self._listed(message, request)
        elif kind == "error" and message.request is not None:
            view: TaskView | None = message.request.exchange.facts.get(TASK)
            if view is not None and view.task is not None and message.error_code == -32602:
                self._forgotten(view, view.task, message)
        elif kind == "notification" and method in STATES and message.party == "server":
            task = self.find(message.exchange, message.params.get("taskId"))
            if task is not None:
                self._told(task, message)
        elif kind == "notification" and method == "notifications/progress" and message.party == "server":
            self._progress(message)
        elif kind == "notification" and method == "notifications/cancelled" and message.party == "client":
            self._cancelled(message)

    def _cancelled(self, message: Message) -> None:
        """`facts[CANCELS_TASK]`: the task whose id, or whose call's id, a notifications/cancelled names. Clients use the same
        ids over and over: of a call it is the newest request with that id on the same connection."""
        exchange, named = message.exchange, message.params.get("requestId")
        task = self.find(exchange, named)
        if task is not None:
            exchange.facts[CANCELS_TASK] = task
            return
        for other in islice(reversed(self.memory.exchanges.values()), MOST_BACK):
            if other is exchange or other.jsonrpc_id is None or id_key(other.jsonrpc_id) != id_key(named):
                continue
            if (other.endpoint, other.auth, other.connection) == (exchange.endpoint, exchange.auth, exchange.connection):
                shown: list[Task] = exchange.endpoint.facts.get(TASKS) or []
                done = other.ended is not None and other.ended <= exchange.started
                task = next((t for t in reversed(shown) if t.origin is other), None) if done else None
                if task is not None:
                    exchange.facts[CANCELS_TASK] = task
                return

    def _progress(self, message: Message) -> None:
        related = message.meta.get("io.modelcontextprotocol/related-task")
        task = self.find(message.exchange, related.get("taskId")) if isinstance(related, dict) else None
        if not isinstance(related, dict) and (session := message.exchange.session) is not None:
            task = session.facts.get(TOKEN_TASKS, OrderedDict()).get(id_key(message.params.get("progressToken")))
            if task is not None:
                message.exchange.facts.setdefault(PROGRESS_OF_TASK, {})[message.where] = task
        end = task.terminal if task is not None else None
        stream = message.exchange.stream
        at = message.at if stream is None or stream.timed else message.exchange.started  # at the least
        if end is not None and end.ended is not None and end.ended + CROSSING_S <= at:
            message.exchange.facts.setdefault(PROGRESS_OF_ENDED_TASK, {})[message.where] = end

    # Requests

    def _asked(self, message: Message, method: str) -> None:
        exchange, task_id = message.exchange, message.params.get("taskId")
        if not isinstance(task_id, str):
            return
        task = self.find(exchange, task_id)
        what: Any = method.partition("/")[2]
        view = exchange.facts[TASK] = TaskView(task, what, task_id)
        if task is None:
            return
        self._known_before(view, task, exchange, exchange.started)
        if task.result_given is not None and task.result_given[1] <= exchange.started:
            view.result_flow = task.result_given[0]
        if method == "tasks/get":
            self._polled(view, task, exchange)
        elif method == "tasks/update":
            self._updates(view, task, message)
        conversation = task.origin.conversation
        if conversation is None or len(conversation.rounds) < MOST_POLLS:
            held = 0.0
            if method == "tasks/update" and view.before is not None:
                held = max((exchange.started - view.before.at) * 1000, 0.0)
            if self.memory.conversations.link(task.origin, exchange, "taskId", "exact", client_ms=held) is not None:
                self.memory.touched(task.origin)
        else:
            self.memory.count_dropped("polls of a task")

    @staticmethod
    def _known_before(view: TaskView, task: Task, exchange: Exchange, at: float) -> None:
        done = [s for s in task.steps if s.ended is not None and s.ended <= exchange.started]
        view.before = done[-1] if done else None
        if task.terminal is not None and task.terminal.ended is not None and task.terminal.ended <= exchange.started:
            view.terminal_before = task.terminal
        view.expired = _expired(task, at)

    def _told(self, task: Task, message: Message) -> None:
        """A status notification; `message.found` is its TaskView."""
        view = message.found = TaskView(task, "told", task.id)
        self._known_before(view, task, message.exchange, message.at)
        self._step(task, message.params, message, view)
        task.last_news = message.at

    def _listed(self, message: Message, request: Message) -> None:
        """`facts[LISTED_TASKS]`: index in an answer to tasks/list -> the task's end as seen before, and its status now."""
        items = message.result.get("tasks")
        for index, item in enumerate(items[:MOST_STEPS] if isinstance(items, list) else ()):
            task = self.find(request.exchange, item.get("taskId")) if isinstance(item, dict) else None
            end = task.terminal if task is not None else None
            if task is None or end is None or end.ended is None or end.ended > request.exchange.started:
                continue
            status = item.get("status")
            excused = status == "failed" and _expired(task, request.exchange.started)
            if isinstance(status, str) and status != end.status and not excused:
                request.exchange.facts.setdefault(LISTED_TASKS, {})[index] = (end, one_line(status, 40))

    def _polled(self, view: TaskView, task: Task, exchange: Exchange) -> None:
        if self._unpolled.pop(task.origin.flow, None) is not None:
            self.memory.held.free(task.origin, self.name)
        view.first_poll = task.polls == 0
        task.polls += 1
        view.silence_ms = silence_ms(task, exchange.started) if view.terminal_before is None else None
        task.last_news = exchange.started
        if task.last_poll is not None:
            view.gap_ms = (exchange.started - task.last_poll) * 1000
            pace = (
                view.terminal_before is None and is_number(task.poll_ms) and task.poll_ms > 0
            )  # an end is fetched, not polled for
            if pace and view.gap_ms < 0.8 * task.poll_ms:
                view.poll_ms = float(task.poll_ms)
                task.fast += 1
        task.last_poll = exchange.started

    @staticmethod
    def _updates(view: TaskView, task: Task, message: Message) -> None:
        responses = message.params.get("inputResponses")
        if isinstance(responses, dict):
            for key in list(responses)[:MOST_KEYS]:
                if short_key(key) not in task.asked:
                    view.unknown_keys.append(key)
                elif short_key(key) in task.answered:
                    view.repeated_keys.append(key)

    # Answers

    def _created(self, message: Message, request: Message) -> None:
        exchange, result = request.exchange, message.result
        body: Any = result
        kind: Literal["extension", "core"] = "extension"
        if result.get("resultType") != "task":
            body, kind = result.get("task"), "core"
            if not isinstance(body, dict) or not isinstance(request.params.get("task"), dict):
                return
        task_id = body.get("taskId")
        if not isinstance(task_id, str):
            return
        name = request.params.get("name")
        task = Task(
            short_key(task_id),
            kind,
            "server",
            exchange.flow,
            message.at,
            exchange.auth,
            exchange,
            tool=exchange.name if isinstance(name, str) else None,
            declared=bounded(exchange.capabilities),
            last_news=message.at,
            definition=exchange.tool.definition if exchange.tool is not None else None,
        )
        self._know(task)
        if kind == "core" and exchange.session is not None and "progressToken" in request.meta:
            tokens: OrderedDict[Any, Task] = exchange.session.facts.setdefault(TOKEN_TASKS, OrderedDict())
            tokens[id_key(request.meta["progressToken"])] = task
            if len(tokens) > MOST_TOKENS:
                tokens.popitem(last=False)
        shown: list[Task] = exchange.endpoint.facts.setdefault(TASKS, [])
        shown.append(task)
        if len(shown) > 500:
            del shown[0]
        view = exchange.facts[TASK] = TaskView(task, "create", task_id)
        self._step(task, body, message, view)
        if kind == "extension" and is_number(task.poll_ms) and len(self._unpolled) < MOST_UNPOLLED:
            self._unpolled[exchange.flow] = exchange
            self.memory.held.keep(exchange, self.name)

    def _know(self, task: Task) -> None:
        key = (task.origin.endpoint.url, task.id)
        if (before := self._tasks.get(key)) is not None:
            self._forget_requests(before)
        self._tasks[key] = task
        self._tasks.move_to_end(key)
        self.resized()

    def resized(self) -> None:
        while len(self._tasks) > self.limits.state:
            self._forget_requests(self._tasks.popitem(last=False)[1])
            self.memory.count_dropped("tasks")

    def _adopt(self, view: TaskView, message: Message, request: Message) -> Task | None:
        """A task whose creation is not in the trace: it is known from the first answer about it."""
        exchange, given = request.exchange, message.result.get("taskId", view.task_id)
        if view.what == "update" or given != view.task_id:
            return None
        kind: Literal["extension", "core"] = "extension" if exchange.claim.modern else "core"
        task = Task(
            short_key(view.task_id),
            kind,
            "server",
            exchange.flow,
            _made_at(message),
            exchange.auth,
            exchange,
            adopted=True,
            declared=bounded(exchange.capabilities),
            last_news=exchange.started,
        )
        self._know(task)
        view.task = task
        if view.what == "get":
            task.polls, task.last_poll = 1, exchange.started
        return task

    def _answered(self, message: Message, request: Message) -> None:
        exchange = request.exchange
        view: TaskView | None = exchange.facts.get(TASK)
        if view is None:
            return
        task = view.task or self.find(exchange, view.task_id) or self._adopt(view, message, request)
        if task is None:
            return
        if request.method == "tasks/get":
            body = message.result
            self._step(task, body, message, view)
        elif request.method == "tasks/update":
            responses = request.params.get("inputResponses")
            if isinstance(responses, dict):
                for key in map(short_key, list(responses)[:MOST_KEYS]):
                    if key in task.asked:
                        task.answered.setdefault(key, message.at)
        elif request.method == "tasks/result":
            task.result_given = task.result_given or (exchange.flow, message.at)
        elif request.method == "tasks/cancel":
            task.cancel_acknowledged = True
            if isinstance(message.result.get("status"), str):
                self._step(task, message.result, message, view)

    def _step(self, task: Task, body: dict[str, Any], message: Message, view: TaskView | None) -> None:
        """A message shows the task in some state."""
        status = body.get("status")
        if not isinstance(status, str):
            return
        exchange = message.exchange
        seen = Seen(
            one_line(status, 40), exchange.flow, message.at, _kept(body.get("createdAt")), _kept(body.get("lastUpdatedAt"))
        )
        payload = body.get("result") if "result" in body else body.get("error")
        if payload is not None:
            seen.digest = digest(payload)
        task.ttl_ms = _kept(body.get("ttlMs", body.get("ttl", task.ttl_ms)))
        task.poll_ms = _kept(body.get("pollIntervalMs", body.get("pollInterval", task.poll_ms)))
        if view is not None:
            view.now = seen
            self._compare(view, task, seen, exchange)
            self._keys(view, task, body, exchange)
            self._keep(task, body)
        if len(task.steps) < MOST_STEPS or status in TERMINAL:
            task.steps.append(seen)
        if status in TERMINAL and task.terminal is None:
            task.terminal = seen
        conversation = task.origin.conversation
        if conversation is not None and task.terminal in (None, seen):
            conversation.forced = _SHOWN_AS.get(status, "working")

    @staticmethod
    def _compare(view: TaskView, task: Task, seen: Seen, exchange: Exchange) -> None:
        last = view.terminal_before
        if last is not None and not (view.expired and seen.status == "failed"):  # an expired task may fail
            if last.status != seen.status:
                view.changed = "status"
            elif last.digest and seen.digest and last.digest != seen.digest:
                view.changed = "payload"
        before = view.before
        if before is not None:
            view.created_changed = isinstance(before.created, str) and before.created != seen.created
            earlier, later = _time(before.updated), _time(seen.updated)
            view.went_back = earlier is not None and later is not None and later < earlier

    def _keep(self, task: Task, body: dict[str, Any]) -> None:
        """The newest inputRequests, while there is room: what an answer is to is then not known, and not judged."""
        self._forget_requests(task)
        requests = body.get("inputRequests")
        if not isinstance(requests, dict) or not requests:
            return
        size = len(dumps(requests, most=MOST_REQUESTS + 1))
        if size > MOST_REQUESTS:
            return
        task.requests, task.size = requests, size
        self._asking[id(task)] = task
        self._size += size
        while self._size > MOST_REQUESTS_IN_ALL:
            self._forget_requests(next(iter(self._asking.values())))

    def _forget_requests(self, task: Task) -> None:
        self._asking.pop(id(task), None)
        self._size -= task.size
        task.requests, task.size = {}, 0

    @staticmethod
    def _keys(view: TaskView, task: Task, body: dict[str, Any], exchange: Exchange) -> None:
        requests = body.get("inputRequests")
        listed = requests if isinstance(requests, dict) else {}
        shown = set(map(short_key, listed))
        for name, value in list(listed.items())[:MOST_KEYS]:
            key, asked = short_key(name), digest(value)
            known = task.asked.get(key)
            if known is not None and (known != asked or key in task.dropped_after):
                view.reused_keys.append(name)
            task.asked[key] = asked
        for key, at in task.answered.items():
            if key not in shown and exchange.started >= at:
                task.dropped_after.add(key)
        while len(task.asked) > MOST_ASKED:
            forgotten, _ = task.asked.popitem(last=False)
            task.answered.pop(forgotten, None)
            task.dropped_after.discard(forgotten)

    def passed(self, exchange: Exchange, side: Exchange) -> None:
        """The client goes by the id, the interval and the questions that it got, or by none: that says nothing of the server."""
        request, answer = exchange.request, side.answer
        if request is None or (request.method != "tools/call" and request.method not in METHODS):
            return
        view: TaskView | None = exchange.facts.get(TASK)
        task = view.task if view is not None else None
        body = _handle(answer) if request.method == "tools/call" else answer.result if answer is not None else None
        if request.method == "tools/call":
            given = body.get("taskId") if body is not None else None
            if body is None and task is not None and self._unpolled.pop(task.origin.flow, None) is not None:
                self.memory.held.free(task.origin, self.name)  # the client knows of no task
            if isinstance(given, str) and (task is None or task.id != short_key(given)):
                task = self._passed_as(short_key(given), task, exchange)
        if task is None:
            return
        task.altered = True
        if body is not None:
            task.poll_ms = _kept(body.get("pollIntervalMs", body.get("pollInterval")))
            for name, value in list(_object(body.get("inputRequests")).items())[:MOST_KEYS]:
                task.asked.setdefault(short_key(name), digest(value))
                task.answered.pop(short_key(name), None)

    def _passed_as(self, task_id: str, task: Task | None, exchange: Exchange) -> Task:
        """The task is known to the client by another id, or the proxy made it up."""
        if task is None:
            kind: Literal["extension", "core"] = "extension" if exchange.claim.modern else "core"
            task = Task(task_id, kind, "server", exchange.flow, exchange.started, exchange.auth, exchange, adopted=True)
            self._know(task)
        else:
            self._tasks[exchange.endpoint.url, task_id] = task
            self.resized()
        return task

    def _forgotten(self, view: TaskView, task: Task, message: Message) -> None:
        exchange = message.request.exchange if message.request is not None else message.exchange
        if task.altered:
            return
        if exchange.auth == task.auth and not view.expired and not task.cancel_acknowledged:
            view.early = True

    def finished(self) -> Iterable[Exchange]:
        """Tasks that nobody asked for after their handle came (TSK020)."""
        for exchange in self._unpolled.values():
            view: TaskView | None = exchange.facts.get(TASK)
            if view is not None and view.task is not None:
                view.silence_ms = silence_ms(view.task, self._now)
        return list(self._unpolled.values())

    def requested(self, exchange: Exchange) -> None:
        self._now = max(self._now, exchange.started)

    def ended(self, exchange: Exchange) -> None:
        view: TaskView | None = exchange.facts.get(TASK)
        if view is None or view.task is None:
            return
        for seen in (view.now, *view.task.steps[-3:]):
            if seen is not None and seen.flow == exchange.flow:
                seen.ended = exchange.ended
        self.memory.conversations.refresh(exchange)


def silence_ms(task: Task, now: float) -> float | None:
    """How long nothing was heard of a task, where that is very much longer than the interval its server asked for."""
    if not is_number(task.poll_ms) or task.poll_ms <= 0 or task.terminal is not None:
        return None
    if any(task.id in listen.asked.tasks for listen in task.origin.endpoint.facts.get(LISTENS, ())):
        return None  # the server tells it
    silence = (now - task.last_news) * 1000
    return silence if silence > LONG_SILENCE * task.poll_ms else None


def _handle(answer: Message | None) -> dict[str, Any] | None:
    """The task that an answer to tools/call begins; None where it begins none."""
    if answer is None or answer.rpc.kind != "result":
        return None
    body = answer.result if answer.result.get("resultType") == "task" else answer.result.get("task")
    return body if isinstance(body, dict) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _made_at(message: Message) -> float:
    """When a task was created, by the proxy's clock: what it says of itself, against the server's Date where there is one."""
    made = _time(message.result.get("createdAt"))
    if made is None:
        return message.at
    fields = message.exchange.response_fields
    try:
        now = parsedate_to_datetime((fields.first("date") if fields is not None else None) or "").timestamp()
    except (ValueError, OverflowError):
        now = message.at
    return message.at - max(now - (made - _EPOCH).total_seconds(), 0.0)


def _reuses_token(message: Message) -> None:
    """A progress token belongs to the newest request that carries it."""
    session = message.exchange.session
    tokens = session.facts.get(TOKEN_TASKS) if session is not None else None
    if tokens and "progressToken" in message.meta:
        tokens.pop(id_key(message.meta["progressToken"]), None)


def _expired(task: Task, now: float) -> bool:
    """By the time since the handle came: the two clocks may differ."""
    if task.ttl_ms is None:
        return False
    return is_number(task.ttl_ms) and now > task.created_at + float(task.ttl_ms) / 1000


def _kept(value: Any) -> Any:
    """A time or a number as it is kept with the task. A number that is too large to reckon with is cut, what is neither may be of
    any size."""
    if is_number(value):
        return (value if isinstance(value, int) else float(value)) if abs(value) < _HUGE else _HUGE if value > 0 else -_HUGE
    return bounded(value, 100)


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
