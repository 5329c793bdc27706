"""What is kept of the other side's words for as long as an endpoint, a session or a task lives is bounded; what is not read is
unchecked."""

import json
from typing import Any

from mcp_wiretap.trace.finding import Unchecked
from mcp_wiretap.trace.operations.tasks import MOST_REQUESTS, TASKS, Task, Tasks
from mcp_wiretap.trace.streams.subscriptions import LISTENS
from mcp_wiretap.wire.jsonrpc import MAX_ITEMS
from tests.trace.following import follow

HUGE = "x" * 200_000
WITH_TASKS = '  capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}\n'


def js(value: Any) -> str:
    return json.dumps(value)


def test_what_a_server_says_of_itself_is_kept_cut() -> None:
    told = {
        "supportedVersions": ["2026-07-28", HUGE, *["2026-07-28"] * 5_000],
        "capabilities": {"tools": {}, "experimental": {"a": HUGE}},
        "instructions": HUGE,
    }
    inspector, _ = follow(f"modern server/discover\n  -> result {js(told)}\n")
    [endpoint] = inspector.endpoints.values()
    assert endpoint.supported is not None and endpoint.instructions is not None and endpoint.capabilities is not None
    assert len(js([endpoint.supported, endpoint.instructions, endpoint.capabilities])) < 50_000
    assert endpoint.supported[0] == "2026-07-28" and endpoint.capabilities["tools"] == {}


def test_what_was_said_in_a_session_is_kept_cut() -> None:
    told = {"protocolVersion": "2025-11-25", "capabilities": {"a": HUGE, "tools": {}}, "serverInfo": {"name": HUGE}}
    inspector, _ = follow(f"legacy initialize\n  -> result {js(told)}\n")
    [session] = inspector.sessions
    assert session.server_info is not None and session.server_capabilities is not None
    assert len(js([session.server_info, session.server_capabilities])) < 10_000
    assert session.server_capabilities["tools"] == {}


def created(task_id: str, more: dict[str, Any]) -> list[Task]:
    handle = {"resultType": "task", "taskId": task_id, "status": "working", "ttlMs": 60_000, **more}
    call = f'modern tools/call {{"name": "a"}}\n{WITH_TASKS}  -> result {js(handle)}\n'
    poll = {"resultType": "complete", "taskId": task_id, "status": "input_required", "ttlMs": 60_000, **more}
    inspector, _ = follow(f"{call}modern tasks/get {js({'taskId': task_id})}\n{WITH_TASKS}  -> result {js(poll)}\n")
    [endpoint] = inspector.endpoints.values()
    assert inspector.tracker(Tasks) is not None
    tasks: list[Task] = endpoint.facts[TASKS]
    return tasks


def test_a_task_with_a_huge_id_is_followed_under_a_short_one() -> None:
    [task] = created(HUGE, {})
    assert len(task.id) < 1_000
    assert task.polls == 1 and task.status == "input_required"


def test_of_a_task_small_inputs_are_kept_and_huge_ones_are_not() -> None:
    [task] = created("t", {"inputRequests": {"a": {"method": "roots/list"}}})
    assert list(task.requests) == ["a"] and list(task.asked) == ["a"]
    [task] = created("t", {"inputRequests": {"a": {"method": "roots/list", "params": {"x": "y" * MOST_REQUESTS}}}})
    assert task.requests == {} and list(task.asked) == ["a"]


def test_times_of_a_task_may_be_of_any_size() -> None:
    [task] = created("t", {"createdAt": HUGE, "ttlMs": [HUGE], "pollIntervalMs": {HUGE: HUGE}})
    assert len(js([task.steps[-1].created, task.ttl_ms, task.poll_ms])) < 2_000


def test_the_filter_of_a_stream_is_cut_once_nothing_is_judged_by_it() -> None:
    asked = {"notifications": {"resourceSubscriptions": [f"lab://{n}" for n in range(5_000)]}}
    one = f"modern subscriptions/listen {js(asked)}\n  -> sse\n  -> result {{}}\n"
    inspector, _ = follow('modern tools/list\n  -> result {"tools": []}\n' + one * 2)
    [endpoint] = inspector.endpoints.values()
    first, second = endpoint.facts[LISTENS]
    assert (len(first.asked.uris), len(second.asked.uris)) == (100, 5_000)


def test_items_of_a_batch_past_the_limit_are_unchecked() -> None:
    batch = js([{"jsonrpc": "2.0", "method": "notifications/x"}] * (MAX_ITEMS + 5))
    _, [exchange] = follow(f"POST\n  header Content-Type: application/json\n  body {batch}\n  -> 202\n")
    why = f"5 items of the batch, past the first {MAX_ITEMS}, are not read"
    assert exchange.unchecked == [Unchecked("request body", why)]


def test_an_event_that_is_nested_too_deep_is_unchecked() -> None:
    deep = "[" * 500 + "]" * 500
    _, [exchange] = follow(f'modern tools/call {{"name": "a"}}\n  -> sse\n  -> event {deep}\n')
    assert "response.event[0]" in [u.what for u in exchange.unchecked]
