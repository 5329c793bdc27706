"""The one line of an exchange (docs/architecture.md "On the flow")."""

from dataclasses import replace

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.report import comment, failures
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.events import ExchangeEnded
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
        (CALL + "  -> closed server\n", "modern tools/call a -> broken, cut off by the server"),
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


def steps(script):
    inspector = Inspector()
    for event in read_script(script):
        inspector.feed(event)
    return list(inspector.exchanges.values())


FORM = "  header Content-Type: application/x-www-form-urlencoded\n"
WAY = (
    "modern tools/list {}\n  -> 401\n  -> header WWW-Authenticate: Bearer resource_metadata="
    '"http://server.example/.well-known/oauth-protected-resource/mcp"\n'
    "GET http://server.example/.well-known/oauth-protected-resource/mcp\n"
    '  -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://as.example"]}\n'
    "GET https://as.example/.well-known/oauth-authorization-server\n"
    '  -> 200 application/json {"issuer": "https://as.example", "authorization_endpoint": "https://as.example/go", '
    '"token_endpoint": "https://as.example/token", "registration_endpoint": "https://as.example/reg"}\n'
    'POST https://as.example/reg\n  body {"redirect_uris": ["http://127.0.0.1/cb"]}\n'
    '  -> 400 application/json {"error": "invalid_redirect_uri", "error_description": "not allowed"}\n'
    "GET https://as.example/go?client_id=c&response_type=code&resource=http%3A%2F%2Fserver.example%2Fmcp\n"
    "  -> 302\n  -> header Location: http://127.0.0.1/cb?error=access_denied&error_description=no%20thanks\n"
    f"POST https://as.example/token\n{FORM}"
    "  body grant_type=refresh_token&refresh_token=r-1234567890&client_id=c&resource=http%3A%2F%2Fserver.example%2Fmcp\n"
    '  -> 400 application/json {"error": "invalid_grant", "error_description": "r-1234567890 is unknown"}\n'
)


def test_each_step_of_authorization_is_named_and_says_what_it_is_for():
    found = steps(WAY)
    lines = [comment.comment(e) for e in found[1:]]
    assert lines[0] == "oauth resource metadata of http://server.example:80/mcp -> 200"
    assert lines[1] == "oauth server metadata of https://as.example -> 200"
    assert lines[2] == 'oauth register -> 400 invalid_redirect_uri "not allowed"'
    assert lines[3] == 'oauth authorize -> 302 access_denied "no thanks"'
    assert lines[4].startswith('oauth token (refresh_token) -> 400 invalid_grant "(sha ') and "r-1234567890" not in lines[4]
    facts = comment.metadata(found[5])
    assert facts["mcp.step"] == "token" and facts["mcp.endpoint"] == "http://server.example:80/mcp"
    assert facts["mcp.error"].startswith("invalid_grant: (sha ") and "mcp.era" not in facts
    assert [comment.mark(e) for e in found[1:]] == [""] * 5


PREFLIGHT = (
    "OPTIONS /mcp\n  header Origin: https://page.example\n  header Access-Control-Request-Method: POST\n"
    "  header Access-Control-Request-Headers: Mcp-Method, mcp-name\n"
)
ALLOW = "  -> 204\n  -> header Access-Control-Allow-Origin: *\n  -> header Access-Control-Allow-Headers: "


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (f"{ALLOW}mcp-method, mcp-name\n", "-> granted"),
        (f"{ALLOW}*\n", "-> granted"),
        (f"{ALLOW}mcp-method\n", "-> 204, not granted: is not granted mcp-name"),
        ("  -> 403 text/plain origin not allowed\n", ' "origin not allowed"'),
    ],
)
def test_a_preflight_says_what_was_asked_for_and_what_was_granted(answer, end):
    exchange = steps(LIST + PREFLIGHT + answer)[-1]
    line = comment.comment(exchange)
    assert line.startswith("preflight POST for mcp-method, mcp-name -> ") and line.endswith(end)
    assert failures.is_failed(exchange) == (line.rpartition("-> ")[2] != "granted")


GET = "GET /mcp\n  header Accept: text/event-stream\n"


@pytest.mark.parametrize(
    ("script", "end"),
    [
        (
            GET + "  -> sse\n  -> after 2\n  -> notify notifications/x {}\n  -> closed client\n",
            "stream, 1 event in 2.0 s, closed by the client",
        ),
        (GET + "  -> sse\n  -> after 3\n  -> closed server\n", "stream, 0 events in 3.0 s, no byte came, cut off by the server"),
        (GET + "  -> after 4\n  -> 502 text/html <title>502 Bad Gateway</title>\n", '-> HTTP 502 "Bad Gateway" after 4.0 s'),
        (GET + "  -> sse\n  -> notify notifications/x {}\n  -> open\n", "-> stream, 1 event"),
        (CALL + "  -> sse\n  -> after 2\n  -> closed server\n", "-> broken, cut off by the server after 2.0 s"),
        (
            CALL + '  -> after 70\n  -> error -32001 {"message": "Request timed out"}\n',
            '-> -32001 "Request timed out" after 70 s',
        ),
        (CALL + "  -> 307\n  -> header Location: https://other.example/mcp\n", '-> HTTP 307 to "https://other.example/mcp"'),
        (CALL + "  -> 200 application/json\n", "-> broken, HTTP 200 without an answer"),
    ],
)
def test_how_long_it_took_and_who_ended_it(script, end):
    assert comment.comment(steps(LIST + script)[-1]).endswith(end)


def test_a_server_that_was_not_reached_is_named_with_the_reason():
    inspector = Inspector()
    for event in read_script(LIST + CALL + "  -> closed server\n"):
        if isinstance(event, ExchangeEnded) and event.ended_by == "server":
            event = replace(event, error="[Errno 111] Connect call failed ('127.0.0.1', 9)", connected=False)
        inspector.feed(event)
    exchange = list(inspector.exchanges.values())[-1]
    assert comment.comment(exchange).endswith("-> no connection: Connect call failed ('127.0.0.1', 9)")
    assert exchange.outcome == "broken" and exchange.error_message is not None


@pytest.mark.parametrize(
    ("script", "era"),
    [
        ("legacy initialize\n  -> 403 text/plain no\n", "legacy"),
        ("legacy initialize\n  -> error -32601\n", "legacy"),
        ("GET /mcp\n  header MCP-Protocol-Version: 2025-11-25\n  -> 404\n", "legacy"),
        ("DELETE /mcp\n  header MCP-Protocol-Version: 2025-06-18\n  -> 405\n", "legacy"),
        ("GET /mcp\n  header MCP-Protocol-Version: 2099-01-01\n  -> 404\n", "unknown"),
        ("legacy tools/list {}\n  header MCP-Protocol-Version: 2026-07-28\n  -> 400\n", "unknown"),
    ],
)
def test_a_refused_request_is_of_the_era_that_it_claims(script, era):
    exchange = steps(script)[-1]
    assert exchange.shown_era == era and comment.comment(exchange).startswith(f"{era} ")
    assert exchange.era == "unknown" and exchange.endpoint.era == "unknown"


def test_a_get_is_of_the_only_era_that_its_server_speaks():
    assert steps(LIST + "GET /mcp\n  -> 405\n")[-1].shown_era == "modern"
