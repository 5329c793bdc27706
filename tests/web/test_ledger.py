"""The books of a trace: counts that go along with it."""

import pytest

from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.trace.limits import Limits
from tests.web.looking import ROUNDS, Script

MIXED = f"""
modern server/discover
  -> result {{"supportedVersions": ["2026-07-28"], "capabilities": {{}}}}
modern tools/call {{"name": "echo", "arguments": {{}}}}
  header Mcp-Name: other
  -> error -32020
{ROUNDS}
GET http://elsewhere.example/picture.png
  -> 200 image/png x
modern subscriptions/listen {{"notifications": {{"toolsListChanged": true}}}}
  -> sse
  -> ack {{"toolsListChanged": true}}
  -> open
"""


def counts(ledger: Ledger) -> dict[str, object]:
    return {
        "severities": ledger.severities,
        "groups": {key: group.count for key, group in ledger.groups.items()},
        "flows": ledger.flows,
        "listed": ledger.listed,
        "operations": ledger.operations,
        "waiting": ledger.waiting,
        "open": ledger.open_streams,
        "streams": list(ledger.streams),
        "rows": [exchange.flow for exchange in ledger.rows],
        "endpoints": {url: (t.flows, t.severities, t.open_streams) for url, t in ledger.endpoints.items()},
    }


@pytest.mark.parametrize("pace", [1, 3, 1000])
def test_whoever_looks_often_counts_what_one_look_at_the_end_counts(pace):
    followed = Script(MIXED, catch_up=pace)
    once = Ledger(followed.inspector, watch=False)
    once.catch_up()
    assert counts(followed.ledger) == counts(once)


def test_an_operation_of_several_rounds_is_one_row():
    found = Script(ROUNDS)
    assert found.ledger.listed == 2
    assert found.ledger.operations == 1
    first, second = found.exchanges
    assert found.ledger.head(second) is first
    assert found.ledger.rounds(second) == [first, second]


def test_what_waits_for_input_waits_no_more_once_it_is_answered():
    rounds = ROUNDS.strip().split("modern tools/call")
    assert Script("modern tools/call" + rounds[1]).ledger.waiting == 1
    assert Script(ROUNDS).ledger.waiting == 0


def test_flows_that_are_not_mcp_are_counted_but_not_listed():
    found = Script("GET http://elsewhere.example/x\n  -> 200 text/plain x\n")
    assert (found.ledger.flows, found.ledger.listed, found.ledger.rows) == (1, 0, [])


def test_an_open_stream_is_counted_until_it_ends():
    assert Script(MIXED).ledger.open_streams == 1
    assert Script(MIXED.replace("-> open", "-> closed client")).ledger.open_streams == 0


def test_what_leaves_the_memory_leaves_the_lists_and_stays_in_the_counts():
    call = 'modern tools/call {"name": "echo", "arguments": {}}\n  -header Mcp-Method\n  -> error -32020\n'
    found = Script(call * 12, limits=Limits(state=5))
    assert len(found.ledger.rows) == 5
    assert found.ledger.flows == 12
    assert found.ledger.severities["error"] >= 12


def test_a_verdict_that_is_taken_back_leaves_the_counts():
    found = Script('modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> error -32020\n')
    exchange = found.exchanges[0]
    assert found.ledger.severities["error"] == 1
    exchange.findings.clear()
    found.inspector.touched(exchange)
    found.traces.catch_up()
    assert found.ledger.severities["error"] == 0
    assert not found.ledger.groups


def test_changes_can_be_taken_over_a_few_at_a_time():
    found = Script(MIXED, catch_up=1_000_000)
    ledger = Ledger(found.inspector)
    assert len(ledger.catch_up(2)) == 2
    assert ledger.behind == len(found.exchanges) - 2
    while ledger.catch_up(2):
        pass
    assert ledger.behind == 0


def test_a_ledger_that_looks_once_does_not_take_the_changes_from_the_one_that_follows():
    found = Script(ROUNDS)
    Ledger(found.inspector, watch=False).close()
    found.inspector.touched(found.exchanges[0])
    assert found.traces.catch_up()
