"""The page Tasks: tasks of both kinds from handle to end, with input asked and given, polls against the interval, the result."""

from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import State, clock, day, duration, idle, offset, server_name, severities, shown
from mcp_wiretap.trace.operations.tasks import TASKS, Task
from mcp_wiretap.view.calls import question_text

ROWS = 300
POLLS = 80
_STATES = {
    "working": State("wait", "wait", "working"),
    "input_required": State("wait", "wait", "input required"),
    "completed": State("ok", "task", "completed"),
    "failed": State("err", "x", "failed"),
    "cancelled": State("off", "x", "cancelled"),
}


def state(status: str) -> State:
    return _STATES.get(status, State("warn", "warn", shown(status, 40)))


def rows(traces: Traces, chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """The newest tasks first."""
    found = [(ledger, task) for ledger, task in _all(traces) if _fits(task, chosen)]
    found.sort(key=lambda item: -item[1].created_at)
    return [row(ledger, task, zone) for ledger, task in found[:ROWS]]


def _all(traces: Traces) -> list[tuple[Ledger, Task]]:
    return [
        (ledger, task)
        for ledger in traces.ledgers
        for tally in ledger.endpoints.values()
        for task in tally.endpoint.facts.get(TASKS, [])
    ]


def _fits(task: Task, chosen: Filter) -> bool:
    if chosen.scope not in task.origin.endpoint.url.lower():
        return False
    return chosen.fits_words(task.id, task.tool or "", task.status, task.kind, task.origin.endpoint.url)


def row(ledger: Ledger, task: Task, zone: tzinfo | None) -> dict[str, Any]:
    endpoint = task.origin.endpoint
    steps = [step.status for step in task.steps]
    words = [status for place, status in enumerate(steps) if place == 0 or steps[place - 1] != status]
    end = task.terminal.at if task.terminal is not None else None
    findings = [f for e in ledger.rounds(task.origin) for f in e.findings]
    return {
        "key": f"t-{shown(task.created_flow, 80)}",
        "at": task.created_at,
        "time": clock(task.created_at, zone),
        "day": day(task.created_at, zone),
        "kind": "tasks extension" if task.kind == "extension" else "core (2025-11-25)",
        "tool": shown(task.tool or "", 80),
        "id": shown(task.id, 60),
        "story": " → ".join(shown(word, 30).replace("_", " ") for word in words[-6:]),
        "server": server_name(endpoint),
        "era": task.origin.era,
        "polls": task.polls,
        "fast": task.fast,
        "total": duration((end - task.created_at) * 1000) if end is not None else "–",
        "state": state(task.status),
        "counts": severities(findings),
        "worst": "error" if any(f.severity == "error" for f in findings) else None,
    }


def detail(traces: Traces, key: str, zone: tzinfo | None) -> dict[str, Any] | None:
    place = next(((ledger, task) for ledger, task in _all(traces) if f"t-{shown(task.created_flow, 80)}" == key), None)
    if place is None:
        return None
    ledger, task = place
    exchanges = ledger.rounds(task.origin)
    timeline = []
    before, polled = task.created_at, False  # the first poll is measured from the handle, and never early
    for exchange in exchanges[:POLLS]:
        subject = traces.whole(exchange.flow)
        answer = subject.answer if subject is not None else None
        body = answer.result if answer is not None else {}
        inner = body.get("task") if isinstance(body.get("task"), dict) else body
        status = inner.get("status") if isinstance(inner, dict) else None
        gap, early = None, False
        if exchange.method == "tasks/get":
            gap = (exchange.started - before) * 1000
            early = polled and isinstance(task.poll_ms, int | float) and gap < 0.8 * float(task.poll_ms)
            before, polled = exchange.started, True
        timeline.append(
            {
                "off": offset(exchange.started - task.created_at) if exchange is not task.origin else offset(0),
                "method": shown(exchange.method or exchange.http_method, 60),
                "flow": parts.link(exchange.flow),
                "state": state(status) if isinstance(status, str) else None,
                "gap": duration(gap) if gap is not None else "",
                "early": early,
                "said": shown(inner.get("statusMessage") or "", 200) if isinstance(inner, dict) else "",
                "asks": _asks(body),
                "gives": _gives(subject.request.params if subject is not None and subject.request is not None else {}),
                "result": parts.brief(body["result"], 400)
                if "result" in body
                else parts.brief(body["error"], 400)
                if "error" in body
                else "",
                "findings": parts.findings(exchange),
            }
        )
    return {
        "id": shown(task.id, 200),
        "key": key,
        "operation": shown(task.created_flow, 80),
        "flow": parts.link(task.created_flow),
        "kind": "extension io.modelcontextprotocol/tasks" if task.kind == "extension" else "core tasks of 2025-11-25",
        "state": state(task.status),
        "ttl": _ms(task.ttl_ms),
        "poll": _ms(task.poll_ms),
        "polls": task.polls,
        "fast": task.fast,
        "cancel": task.cancel_acknowledged,
        "asked": [{"key": shown(k, 80), "answered": k in task.answered} for k in list(task.asked)[:30]],
        "timeline": timeline,
        "more": max(len(exchanges) - POLLS, 0),
        "transitions": [
            {"off": offset(step.at - task.created_at), "state": state(step.status), "flow": parts.link(step.flow)}
            for place, step in enumerate(task.steps[:200])
            if place == 0 or task.steps[place - 1].status != step.status
        ],
    }


def _span(ms: float) -> str:
    return duration(ms) if ms < 10_000 else idle(ms / 1000).replace(".0 s", " s")


def _ms(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
        return _span(float(value)) if value > 0 else str(value)
    return "not given" if value is None else parts.brief(value, 40)


def _asks(body: dict[str, Any]) -> list[dict[str, str]]:
    asked = body.get("inputRequests")
    if not isinstance(asked, dict):
        return []
    return [{"key": shown(k, 60), "text": shown(question_text(q), 200)} for k, q in list(asked.items())[:10]]


def _gives(params: dict[str, Any]) -> list[dict[str, str]]:
    given = params.get("inputResponses")
    if not isinstance(given, dict):
        return []
    return [{"key": shown(k, 60), "text": parts.brief(v, 200)} for k, v in list(given.items())[:10]]
