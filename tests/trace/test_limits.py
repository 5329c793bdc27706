"""Limits that are changed while a trace is followed reach every table."""

from dataclasses import replace
from typing import Any

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.memory.recent import Recent

MANY = 40
WHEN = '"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"'
FEW = 3


def script(number: int) -> str:
    """Something for each sort of table: sessions, conversations, input_required, tasks, lists, clients."""
    url = f"https://host-{number}.example/mcp"
    return f"""\
legacy initialize
  path {url}
  -> result {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s", "version": "1"}}}}
  -> header Mcp-Session-Id: s-{number}
legacy tools/list
  path {url}
  -header Mcp-Session-Id
  -> result {{"tools": [], "nextCursor": "c"}}
modern server/discover
  path {url}/m
  client c{number}
  -> 400
modern tools/call {{"name": "t"}}
  path {url}/m
  client c{number}
  -> result {{"resultType": "input_required", "requestState": "s{number}", "inputRequests": {{}}}}
modern tools/call {{"name": "t", "requestState": "s{number}", "inputResponses": {{}}}}
  path {url}/m
  client c{number}
  -> result {{"resultType": "task", "taskId": "t{number}", "status": "working", {WHEN}, "ttlMs": null}}
"""


def tables(inspector: Inspector) -> dict[str, int]:
    """The size of each table whose limit is `state`."""
    found: dict[str, int] = {
        "exchanges": len(inspector.exchanges),
        "conversations": len(list(inspector.conversations)),
        "sessions": len(inspector.sessions._by_id),
        "announced": len(inspector.sessions._announced),
        "stateless": len(inspector.sessions._stateless),
    }
    for tracker in inspector.trackers:
        for name, table in vars(tracker).items():
            live = isinstance(table, Recent) and callable(table._most) and table._most() <= inspector.limits.state
            if live or (tracker.name, name) in (("mrtr", "_items"), ("tasks", "_tasks")):
                found[f"{tracker.name}{name}"] = len(table)
    return found


def feed(inspector: Inspector, text: str, prefix: str) -> None:
    for event in read_script(text):
        event = replace(event, flow=f"{prefix}-{event.flow}")
        inspector.feed(event)


def test_a_lowered_limit_reaches_every_table_at_once_and_stays() -> None:
    inspector = Inspector(limits=Limits(state=10_000))
    for number in range(MANY):
        feed(inspector, script(number), f"run-{number}")
    full = tables(inspector)
    assert sum(size > FEW for size in full.values()) >= 10, full
    inspector.resize(Limits(state=FEW))
    assert {name: size for name, size in tables(inspector).items() if size > FEW} == {}
    feed(inspector, script(MANY), "after")
    assert {name: size for name, size in tables(inspector).items() if size > FEW} == {}


def test_a_tracker_sees_the_limits_of_now() -> None:
    inspector = Inspector(limits=Limits(state=50))
    inspector.resize(Limits(state=7))
    assert {tracker.limits.state for tracker in inspector.trackers} == {7}


def test_a_table_shrinks_to_its_limit_however_far_it_is_over() -> None:
    most = 5
    table: Recent[int, int] = Recent(lambda: most)
    for number in range(9):
        table.put(number, number)
    assert list(table.values()) == [4, 5, 6, 7, 8]
    most = 2
    assert table.put(9, 9) == [4, 5, 6, 7]
    assert list(table.values()) == [8, 9]


def test_no_tracker_keeps_a_copy_of_a_limit() -> None:
    """A number in a tracker that is one of the limits is a copy: a change would not reach it."""
    limits = Limits(state=12_345_677, endpoints=7_654_321)
    inspector = Inspector(limits=limits)
    holders: list[Any] = [*inspector.trackers, inspector.sessions, inspector.conversations]
    copies = [
        (type(holder).__name__, name)
        for holder in holders
        for name, value in vars(holder).items()
        if value in (limits.state, limits.endpoints)
        or (isinstance(value, Recent) and value._most in (limits.state, limits.endpoints))
    ]
    assert copies == []
