"""The one line of an exchange (DESIGN.md "On the flow")."""

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.report import comment
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.inspector import Inspector

LIST = """modern tools/list {}
  -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
"""
CALL = LIST + 'modern tools/call {"name": "a", "arguments": {}}\n'
QUESTION = '{"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}'
ASK = f'  -> result {{"resultType": "input_required", "requestState": "s", "inputRequests": {{"q": {QUESTION}}}}}\n'
RETRY = 'modern tools/call {"name": "a", "arguments": {}, "requestState": "s", "inputResponses": {"q": {"action": "decline"}}}\n'


def told(script, number=-1):
    inspector = Inspector(RuleBook.of(find_rules(), select=["HDR"]))
    for event in read_script(script):
        inspector.feed(event)
    exchange = list(inspector.exchanges.values())[number]
    return comment.comment(exchange), comment.mark(exchange), comment.metadata(exchange)


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (LIST, "modern tools/list -> complete"),
        (CALL + '  -> result {"isError": true}\n', "modern tools/call a -> complete"),
        (CALL + "  -> error -32020\n", "modern tools/call a -> -32020 HeaderMismatch"),
        (CALL + "  -> error -32005\n", "modern tools/call a -> -32005"),
        (CALL + "  -> 401\n", "modern tools/call a -> HTTP 401"),
        (CALL, "modern tools/call a -> none"),
        (CALL + "  -> closed client\n", "modern tools/call a -> cancelled"),
        (CALL + "  -> closed server\n", "modern tools/call a -> broken"),
        (LIST + "modern-notify notifications/cancelled {}\n  -> 202\n", "modern notifications/cancelled -> accepted"),
        (
            CALL + "  header Mcp-Name: b\n  header Mcp-Method: c\n  -> error -32020\n",
            "modern tools/call a -> -32020 HeaderMismatch: Mcp-Method says c, the body says tools/call [HDR004] (+1)",
        ),
        (CALL + ASK, "modern tools/call a -> input_required (MRTR 1)"),
        (CALL + ASK + RETRY + "  -> result {}\n", "modern tools/call a -> complete (MRTR 2/2)"),
        (CALL + '  -> result {"resultType": "task", "task": {"taskId": "t"}}\n', "modern tools/call a -> task"),
        (CALL + "  -> sse\n  -> notify notifications/x {}\n  -> open\n", "modern tools/call a -> stream, 1 event"),
        ("GET /other\n  -> 200 text/html <p>\n", ""),
    ],
)
def test_the_line_of_an_exchange(script, line):
    assert told(script)[0] == line


def test_a_round_without_findings_has_a_loop_one_with_an_error_is_red():
    assert told(CALL + ASK)[1] == ":repeat:"
    assert told(LIST)[1] == ""
    assert told(CALL + "  header Mcp-Name: b\n" + ASK)[1] == ":red_circle:"


def test_the_first_of_the_worst_findings_is_spelled_out():
    inspector = Inspector()
    for event in read_script(LIST):
        inspector.feed(event)
    (exchange,) = inspector.exchanges.values()
    for severity, message in (("info", "i"), ("error", "first"), ("error", "second"), ("warning", "w")):
        exchange.findings.append(Finding(message, severity=severity, rule="X001"))
    assert comment.comment(exchange).endswith(": first [X001] (+3)")
    assert comment.metadata(exchange)["mcp.rules"] == "X001"


def test_the_facts_are_flat_and_absent_where_unknown():
    facts = told(LIST)[2]
    assert facts == {"mcp.era": "modern", "mcp.outcome": "complete", "mcp.revision": "2026-07-28", "mcp.method": "tools/list"}
    facts = told(CALL + "  -> error -32602\n")[2]
    assert facts["mcp.code"] == -32602 and facts["mcp.name"] == "a"


def test_authorization_is_spoken_of_only_where_something_is_wrong():
    inspector = Inspector()
    for event in read_script(LIST):
        inspector.feed(event)
    (exchange,) = inspector.exchanges.values()
    exchange.kind = "oauth"
    assert comment.comment(exchange) == "" and comment.metadata(exchange) == {}
    exchange.findings.append(Finding("no PKCE", severity="error", rule="OAU001"))
    assert comment.comment(exchange).startswith("oauth ") and "[OAU001]" in comment.comment(exchange)
    assert "mcp.era" not in comment.metadata(exchange)
