"""What failed is told in every format in the other side's words, whether a rule explains it or not."""

import io
import json
from xml.etree import ElementTree

import pytest
from rich.console import Console

from mcp_wiretap.report import html, junit, sarif, text
from tests.report.auditing import audit

SESSION = 'legacy tools/list {}\n  -> error -32000 {"message": "No valid session ID provided"}\n'
GOOD = 'modern tools/list {}\n  -> result {"tools": []}\n'
PAGE = 'modern tools/call {"name": "a", "arguments": {}}\n  -> 504 text/html <title>504 Gateway Time-out</title>\n'


def printed(script):
    out = io.StringIO()
    text.write(audit(script), Console(file=out, width=110, color_system=None))
    return out.getvalue()


def test_the_text_lists_each_failure_once_with_its_count_and_first_flow():
    said = printed(GOOD + SESSION * 3 + PAGE)
    assert "Failed: 4 of 5 operations" in said
    assert '3 ×  tools/list -> -32000 "No valid session ID provided" (first: flow flow-2)' in said
    assert 'tools/call a -> HTTP 504 "Gateway Time-out" (flow flow-5)' in said
    assert said.count("no rule says why") == 2


@pytest.mark.parametrize(
    ("script", "tick"),
    [
        (GOOD, True),
        (GOOD + SESSION, False),
        (SESSION, False),
        (GOOD + "GET /mcp\n  -> 405\n", True),
        (GOOD + 'modern tools/call {"name": "a", "arguments": {}}\n  -> closed client\n', True),
        (GOOD + 'modern tools/call {"name": "a", "arguments": {}}\n  -> closed server\n', False),
    ],
)
def test_there_is_a_tick_only_where_nothing_failed(script, tick):
    assert ("✓ no findings" in printed(script)) == tick
    out = io.StringIO()
    html.write(audit(script), out)
    assert ('class="ok">✓ No findings.' in out.getvalue()) == tick


def test_html_sarif_and_junit_quote_the_words():
    found = audit(GOOD + SESSION + PAGE)
    out = io.StringIO()
    html.write(found, out)
    assert "No valid session ID provided" in out.getvalue() and "no rule says why" in out.getvalue()
    out = io.StringIO()
    sarif.write(found, out)
    (run,) = json.loads(out.getvalue())["runs"]
    failures = run["properties"]["failures"]
    assert [f["count"] for f in failures] == [1, 1]
    assert failures[0]["text"] == 'tools/list -> -32000 "No valid session ID provided"'
    out = io.StringIO()
    junit.write(found, out)
    (suite,) = ElementTree.fromstring(out.getvalue())
    assert "No valid session ID provided" in suite.findtext("system-out")
    assert suite.get("failures") == "0"


def test_hostile_words_are_text_in_every_format():
    said = '"<script>alert(1)</script> \\u001b[2J \\ud800 \\u202e"'
    answer = f'{{"jsonrpc": "2.0", "id": 1, "error": {{"code": 1, "message": {said}}}}}'
    script = f"legacy tools/list {{}}\n  -> 200 application/json {answer}\n"
    found = audit(script)
    for write in (html.write, sarif.write, junit.write):
        out = io.StringIO()
        write(found, out)
        out.getvalue().encode()
        assert "\x1b" not in out.getvalue() and "\u202e" not in out.getvalue()
    out = io.StringIO()
    html.write(found, out)
    assert "<script>alert" not in out.getvalue()
    assert "\x1b" not in printed(script)


def test_preflights_without_a_request_are_told_and_their_refusal_is_a_failure():
    ask = (
        "OPTIONS /mcp\n  header Origin: https://page.example\n  header Access-Control-Request-Method: POST\n"
        "  header Access-Control-Request-Headers: mcp-protocol-version\n  -> 403 text/plain no\n"
    )
    said = printed(ask)
    assert "No MCP request followed 1 preflight for one in 1 flow." in said and "No MCP traffic" not in said
    assert "Failed: 1 of 1 operation" in said and "403, not granted" in said
