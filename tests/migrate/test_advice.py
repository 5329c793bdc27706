"""What must change, by what was used: a legacy feature is told where it is used, and called not seen where it is not."""

import json

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.migrate import render
from mcp_wiretap.migrate.advice import DEMANDS, Advice, advise
from mcp_wiretap.migrate.usage import Usage
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector

HELLO = """legacy initialize {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}, "roots": {}}, \
"clientInfo": {"name": "c", "version": "1"}}
  -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}, \
"resources": {"subscribe": true}}, "serverInfo": {"name": "s", "version": "2"}}
legacy-notify notifications/initialized
  -> 202
"""
CALL = 'legacy tools/call {"name": "echo", "arguments": {"a": 1}}\n  -> result {"content": []}\n'
ASKED = """legacy tools/call {"name": "ask", "arguments": {}}
  label call
  -> sse
  -> ask 1 elicitation/create {"mode": "form", "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
  -> open
legacy-reply 1 {"action": "accept", "content": {"name": "Zoe"}}
  -> 202
continue call
  -> result {"content": []}
"""
# What is seen, and a script in which it is used.
USED = {
    "initialize": HELLO,
    "notifications/initialized": HELLO,
    "Mcp-Session-Id": HELLO + CALL,
    "GET stream": HELLO
    + "GET\n  header Accept: text/event-stream\n  header Mcp-Session-Id: session-1-of-the-example\n  -> sse\n",
    "DELETE of a session": HELLO + "DELETE\n  header Mcp-Session-Id: session-1-of-the-example\n  -> 200\n",
    "elicitation/create of the server": HELLO + ASKED,
    "roots/list of the server": HELLO + ASKED.replace("elicitation/create", "roots/list"),
    "ping of the client": HELLO + "legacy ping {}\n  -> result {}\n",
    "logging/setLevel": HELLO + 'legacy logging/setLevel {"level": "info"}\n  -> result {}\n',
    "resources/subscribe": HELLO + 'legacy resources/subscribe {"uri": "file:///a"}\n  -> result {}\n',
    "notifications/cancelled": HELLO + CALL + 'legacy-notify notifications/cancelled {"requestId": 99}\n  -> 202\n',
    "a call that asks for a task (params.task)": HELLO
    + 'legacy tools/call {"name": "slow", "arguments": {}, "task": {"ttl": 1000}}\n  -> result {"task": {"taskId": "t"}}\n',
    "tasks/result": HELLO + 'legacy tasks/result {"taskId": "t"}\n  -> result {"content": []}\n',
    "error -32002 (resource not found)": HELLO + 'legacy resources/read {"uri": "file:///no"}\n  -> error -32002\n',
    "Last-Event-ID": HELLO + "GET\n  header Accept: text/event-stream\n  header Last-Event-ID: 7\n  -> sse\n",
}


def advice(script: str) -> list[Advice]:
    usage = Usage(RuleBook.of(()))
    inspector = Inspector(usage)
    for event in read_script(script):
        inspector.feed(event)
    inspector.finish()
    return [advise(server) for server in usage.servers.values()]


@pytest.mark.parametrize("seen", USED)
def test_what_is_used_is_told_with_its_section(seen):
    (told,) = advice(USED[seen])
    change = next(change for change in told.changes if change.demand.seen == seen)
    assert change.count >= 1 and change.flows and render.spec_of(change.demand).startswith(("2026-07-28 ", "io."))
    assert seen not in told.not_seen


@pytest.mark.parametrize("seen", [seen for seen in USED if seen not in ("initialize", "notifications/initialized")])
def test_what_is_not_used_is_called_not_seen(seen):
    (told,) = advice(HELLO)
    assert (seen in told.not_seen) is (seen != "Mcp-Session-Id")  # initialized is sent in the session
    assert {demand.seen for demand in DEMANDS} == {c.demand.seen for c in told.changes} | set(told.not_seen)


def test_modern_traffic_needs_nothing():
    (told,) = advice('modern tools/call {"name": "echo", "arguments": {}}\n  -> result {"content": []}\n')
    assert not told.changes and told.server.modern == 1


def becomes(script: str, seen: str) -> str:
    (told,) = advice(script)
    return "\n".join(next(c for c in (*told.changes, *told.always) if c.demand.seen == seen).becomes)


def test_a_call_gets_envelope_and_mirrored_headers():
    made = becomes(HELLO + CALL, "requests")
    assert "Mcp-Method: tools/call" in made and "Mcp-Name: echo" in made and '"resultType": "complete"' in made
    body = json.loads(made.split("\n")[3])
    assert body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] == {"name": "c", "version": "1"}
    assert body["params"]["arguments"] == {"a": 1}


def test_names_that_are_not_header_safe_become_sentinels():
    assert "Mcp-Name: =?base64?" in becomes(HELLO + CALL.replace("echo", "Zürich"), "requests")


def test_the_handshake_becomes_discover():
    made = becomes(HELLO, "initialize")
    result = json.loads(made.split("answered by ")[1])
    assert result["supportedVersions"] == ["2026-07-28"] and result["capabilities"]["tools"] == {"listChanged": True}
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "s", "version": "2"}


def test_a_question_becomes_input_required_and_a_retry_with_its_answer():
    made = becomes(HELLO + ASKED, "elicitation/create of the server")
    assert '"resultType": "input_required"' in made and '"message": "who?"' in made
    retry = json.loads(made.split("\n")[-1])
    assert retry["params"]["inputResponses"] == {"question-1": {"action": "accept", "content": {"name": "Zoe"}}}


def test_subscriptions_become_one_listen():
    made = becomes(HELLO + 'legacy resources/subscribe {"uri": "file:///a"}\n  -> result {}\n', "resources/subscribe")
    listen = json.loads(made.split("\n")[-1])["params"]["notifications"]
    assert listen == {"toolsListChanged": True, "resourceSubscriptions": ["file:///a"]}


@pytest.mark.parametrize("form", [render.as_text, render.as_markdown])
def test_reports_are_masked_and_show_nothing_that_a_terminal_obeys(form):
    script = HELLO + CALL.replace('"a": 1', '"password": "hunter2hunter2", "b": "\\u001b[31m\\u202e"')
    told = "\n".join(form("run.flow", advice(script)))
    assert "hunter2hunter2" not in told and "\x1b" not in told and "\u202e" not in told and "tools/call" in told


def test_the_json_has_the_same():
    made = render.as_json("run.flow", advice(HELLO + CALL))
    assert made["schema"] == 1 and made["endpoints"][0]["changes"][0]["seen"] == "initialize"
    json.dumps(made)
