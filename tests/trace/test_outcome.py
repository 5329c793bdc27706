"""One word for what became of an exchange."""

from dataclasses import replace

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.events import ExchangeEnded, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from tests.trace.following import INITIALIZED, follow

MODERN = [
    ("a result", "modern tools/list\n  -> result {}", "complete", None),
    ("a tool that failed", 'modern tools/call {"name": "x"}\n  -> result {"content": [], "isError": true}', "complete", None),
    ("a result of no known type", 'modern tools/list\n  -> result {"resultType": "odd"}', "complete", None),
    ("a question", 'modern tools/call {"name": "x"}\n  -> result {"resultType": "input_required"}', "input_required", None),
    ("a task", 'modern tools/call {"name": "x"}\n  -> result {"resultType": "task"}', "task", None),
    ("an error", "modern tools/list\n  -> error -32020", "error", -32020),
    ("an error inside a stream", "modern tools/list\n  -> sse\n  -> error -32603", "error", -32603),
    ("a wall", "modern tools/list\n  -> 401", "error", None),
    ("a redirect", "modern tools/list\n  -> 307", "error", None),
    ("a page", "modern tools/list\n  -> 404 text/html <p>no</p>", "error", None),
    ("a success without JSON-RPC", "modern tools/list\n  -> 200 text/html <p>hello</p>", "broken", None),
    ("a stream that is open", "modern tools/list\n  -> sse\n  -> notify notifications/progress {}\n  -> open", "stream", None),
    ("a stream with its answer", "modern tools/list\n  -> sse\n  -> result {}", "complete", None),
    ("a stream that ended without one", "modern tools/list\n  -> sse\n  -> notify notifications/progress {}", "broken", None),
    ("a stream that the client closed", "modern tools/list\n  -> sse\n  -> closed client", "cancelled", None),
    ("a stream that the server cut", "modern tools/list\n  -> sse\n  -> closed server", "broken", None),
    ("an answer before the client closed", "modern tools/list\n  -> sse\n  -> result {}\n  -> closed client", "complete", None),
    ("no answer yet", "modern tools/list", "none", None),
    ("nobody there", "modern tools/list\n  -> closed server", "broken", None),
    ("given up by the client", "modern tools/list\n  -> closed client", "cancelled", None),
    ("a notification", "modern-notify notifications/cancelled\n  -> 202", "accepted", None),
    ("a notification refused", "modern-notify notifications/cancelled\n  -> 400", "error", None),
]
LEGACY = [
    ("a session", f"legacy initialize\n  -> result {INITIALIZED}", "complete", None),
    ("a posted answer", "legacy-reply 1 {}\n  -> 202", "accepted", None),
    ("an answer that comes elsewhere", "legacy tools/list\n  -> 202", "accepted", None),
    ("a session ended", "DELETE /mcp\n  header Mcp-Session-Id: s\n  -> 200", "complete", None),
    ("a session not ended", "DELETE /mcp\n  header Mcp-Session-Id: s\n  -> 405", "error", None),
    ("a listening stream", "GET /mcp\n  header Mcp-Session-Id: s\n  -> sse\n  -> open", "stream", None),
    (
        "a listening stream that the client closed",
        "GET /mcp\n  header Mcp-Session-Id: s\n  -> sse\n  -> closed client",
        "stream",
        None,
    ),
    (
        "a task of 2025-11-25",
        'legacy tools/call {"name": "x", "task": {}}\n  -> result {"task": {"taskId": "t"}}',
        "task",
        None,
    ),
    (
        "an error without id",
        "legacy-notify notifications/initialized\n  -> no-answer-id\n  -> status 400\n  -> error -32600",
        "error",
        -32600,
    ),
]


@pytest.mark.parametrize(("script", "outcome", "code"), [c[1:] for c in MODERN + LEGACY], ids=[c[0] for c in MODERN + LEGACY])
def test_the_outcome_of_an_exchange(script: str, outcome: str, code: int | None) -> None:
    _, [exchange] = follow(script)
    assert (exchange.outcome, exchange.error_code) == (outcome, code)


def test_an_exchange_keeps_its_outcome_when_its_bodies_are_let_go() -> None:
    inspector, [exchange] = follow("modern tools/list\n  -> result {}\n")
    assert exchange.released
    inspector.rejudge(exchange)
    assert exchange.outcome == "complete"


def test_a_request_whose_session_ends_before_its_answer_came_is_broken() -> None:
    script = "GET /sse\n  label stream\n  -> sse\n  -> sse-raw event: endpoint\\ndata: /messages?s=1\\n\\n\n  -> open\n"
    script += "legacy initialize\n  path /messages?s=1\n  -> 202\n"
    _, [_, waiting] = follow(script)
    assert waiting.outcome == "accepted"
    _, [_, waiting] = follow(script + "continue stream\n  -> closed server\n")
    assert waiting.outcome == "broken"


@pytest.mark.parametrize("answer", ["-> sse\n  -> result {}\n  -> closed client", "-> result {}"])
def test_nothing_is_said_of_an_answer_that_was_not_recorded(answer: str) -> None:
    inspector = Inspector()
    for event in read_script(f"modern tools/list\n  {answer}\n"):
        if isinstance(event, ExchangeEnded):
            event = ExchangeEnded(event.flow, event.at, None, False, event.ended_by)
        if not isinstance(event, StreamData):
            inspector.feed(event)
    [exchange] = inspector.exchanges.values()
    assert exchange.outcome == "none"


@pytest.mark.parametrize("end", ["complete", "client"])
def test_a_stream_past_the_limit_may_have_held_its_answer(end: str) -> None:
    inspector = Inspector(limits=Limits(stream=100))
    for event in read_script("modern tools/list\n  -> sse\n  -> notify notifications/progress {}\n  -> result {}\n"):
        if isinstance(event, ExchangeEnded):
            event = replace(event, ended_by="client" if end == "client" else "complete")
        inspector.feed(event)
    [exchange] = inspector.exchanges.values()
    assert exchange.dropped
    assert exchange.outcome == "none"
