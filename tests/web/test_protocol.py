# ruff: noqa: E501 - a line of a script is a message
"""The page Protocol: operations, rounds, states, filters."""

from datetime import UTC

import pytest

from mcp_wiretap.pages import protocol
from mcp_wiretap.pages.filters import Filter
from tests.web.looking import LISTED, ROUNDS, Script


def row(script: Script, number: int = 0):
    return protocol.row(script.ledger, script.ledger.head(script.exchanges[number]), UTC)


def detail(script: Script, number: int = 0):
    return protocol.detail(script.ledger, script.ledger.head(script.exchanges[number]), script.whole, UTC)


def test_a_row_says_what_was_asked_and_what_came_of_it():
    found = row(
        Script(
            'modern tools/call {"name": "add", "arguments": {"a": 1}}\n  -> result {"content": [{"type": "text", "text": "2"}]}\n'
        )
    )
    assert (found["method"], found["subject"], found["state"].word, found["era"]) == ("tools/call", "add", "complete", "modern")
    assert found["summary"] == "a=1 · “2”"


def test_rounds_are_folded_into_one_row_with_the_time_that_the_client_took():
    found = row(Script(ROUNDS))
    assert found["tag"] == "2 rounds" and found["state"].word == "complete"
    assert [(bar["who"], bar["label"]) for bar in found["bars"]] == [("s", "round 1"), ("c", "client"), ("s", "round 2")]


def test_rounds_show_questions_beside_answers_and_the_echo_of_the_state():
    first, second = detail(Script(ROUNDS))["conversation"]["rounds"]
    assert first["said"][0]["title"] == "asks confirm" and first["said"][0]["state"].word == "input required"
    assert second["sent"][0]["title"] == "answer to confirm" and second["sent"][0]["text"] == "accept"
    assert second["echo"]["state"].word == "echoed: same"
    assert "state-of-the-first-round" not in str(second["echo"])
    assert second["took"] is not None and second["held"] == "client"


@pytest.mark.parametrize(
    ("given", "echoed", "word"),
    [
        ("state-of-the-first-round", "state-of-the-first-rounD", "CHANGED"),
        ("state-of-the-first-round", "-", "MISSING"),
        ("-", "made-up-by-the-client", "INVENTED"),
    ],
)
def test_a_state_that_does_not_come_back_as_it_was_is_said(given, echoed, word):
    script = Script(
        ROUNDS.replace("needs state-of-the-first-round", f"needs {given}").replace(
            "answers state-of-the-first-round", f"answers {echoed}"
        )
    )
    if script.exchanges[1].conversation is None:
        pytest.fail("the rounds were not linked")
    assert word in detail(script)["conversation"]["rounds"][1]["echo"]["state"].word


def test_a_refused_call_shows_header_by_header_what_was_wrong():
    script = Script(
        f"modern tools/list\n  {LISTED}\n"
        'modern tools/call {"name": "query", "arguments": {"region": "us"}}\n  header Mcp-Param-Region: eu\n  -> error -32020\n'
    )
    found = detail(script, 1)["single"]["headers"]
    region = next(h for h in found if h["header"] == "Mcp-Param-Region")
    assert (region["raw"], region["body"], region["state"].word) == ("eu", "us", "mismatch")
    assert "PAR014" in region["rules"]


def test_secrets_are_masked_wherever_they_stand():
    script = Script(
        'modern tools/call {"name": "login", "arguments": {"password": "hunter2-very-secret"}}\n  header Authorization: Bearer tok-en-1234\n'
        '  -> result {"content": [], "structuredContent": {"access_token": "tok-en-5678"}}\n'
    )
    told = str(detail(script)) + str(row(script))
    for secret in ("hunter2", "tok-en-1234", "tok-en-5678"):
        assert secret not in told
    assert "(sha " in told


def test_a_fallback_is_one_row():
    script = Script(
        "modern server/discover\n  -> 400 application/json {}\n"
        'legacy initialize\n  after 0.1\n  -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}\n'
    )
    found = row(script)
    assert (found["method"], found["state"].word) == ("negotiation", "fell back")
    assert [(bar["who"], bar["label"]) for bar in found["bars"]] == [("s", "exchange 1"), ("q", "pause"), ("s", "exchange 2")]


def test_what_mitmproxy_has_no_more_is_said_to_be_gone():
    script = Script('modern tools/call {"name": "x", "arguments": {}}\n  -> result {"content": []}\n')
    found = protocol.detail(script.ledger, script.exchanges[0], lambda _: None, UTC)
    assert found["single"]["missing"] and found["single"]["headers"]


FILTERED = f"""
modern tools/call {{"name": "echo", "arguments": {{}}}}
  header Mcp-Name: other
  -> error -32020
{ROUNDS}
legacy ping
  -> result {{}}
"""


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"q": "tool:echo"}, ["echo"]),
        ({"q": "code:-32020"}, ["echo"]),
        ({"q": "status:4xx"}, ["echo"]),
        ({"q": "rule:HDR"}, ["echo"]),
        ({"q": "party:client rule:HDR006"}, ["echo"]),
        ({"q": "deploy"}, ["deploy"]),
        ({"q": "-deploy -echo"}, [None]),
        ({"q": "era:legacy"}, [None]),
        ({"era": "modern", "outcome": "errors"}, ["echo"]),
        ({"method": "ping"}, [None]),
        ({"severity": "error", "party": "client"}, ["echo"]),
        ({"client": "example-client"}, ["echo", "deploy"]),
        ({"endpoint": "elsewhere"}, []),
        ({"q": "tool:nothing"}, []),
    ],
)
def test_filters_leave_what_fits(query, names):
    script = Script(FILTERED)
    chosen = Filter.of(query)
    heads = {script.ledger.head(e).flow: script.ledger.head(e) for e in script.exchanges}
    assert [e.name for e in heads.values() if chosen.fits(script.ledger.rounds(e))] == names


def test_a_filter_survives_in_the_address():
    chosen = Filter.of({"q": "tool:a b", "era": "modern", "order": "newest", "nonsense": "x"})
    assert chosen.query() == "?q=tool%3Aa+b&era=modern&order=newest"
    assert chosen.query(era=None, order=None) == "?q=tool%3Aa+b"
