# ruff: noqa: E501 - a line of a script is a message
"""The other pages' models: overview, network, findings, tools, streams, tasks, logs, authorization, apps, text."""

import json
from datetime import UTC

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.pages import apps, auth, copies, findings, logs, network, overview, streams, tasks, text, tools
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.trace.summary.clientele import leaves
from tests.web.looking import LISTED, ROUNDS, Script

ALL = Filter.of({})


def test_a_broken_expectation_comes_first():
    script = Script(
        "modern tools/list\n  path http://b.example/mcp\n  header Mcp-Method: tools/call\n  -> error -32020\n"
        'legacy initialize\n  path http://a.example/mcp\n  -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}\n',
        expect=lambda url: "modern" if "a.example" in url else None,
    )
    rows = overview.endpoints(script.traces)
    assert [r["url"] for r in rows] == ["http://a.example:80/mcp", "http://b.example:80/mcp"]
    assert rows[0]["broken"] and rows[0]["expected"] == "modern"
    found = overview.detail(script.ledger, script.ledger.endpoints["http://a.example:80/mcp"], UTC)
    assert found["broken"]["id"] == "flow-2" and found["steps"][0]["state"].word == "legacy"


def test_an_endpoint_says_who_talks_to_it_and_what_both_sides_can():
    script = Script(
        'modern server/discover\n  capabilities {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}\n'
        '  -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}, "instructions": "Be kind"}\n'
    )
    found = overview.detail(script.ledger, next(iter(script.ledger.endpoints.values())), UTC)
    assert found["capabilities"] == ["tools.listChanged"] and found["instructions"] == "Be kind"
    client = found["clients"][0]
    assert (client["name"], client["capabilities"], client["extensions"]) == (
        "example-client",
        ["elicitation.form"],
        ["io.modelcontextprotocol/tasks"],
    )


def test_bursts_have_a_scale_of_their_own_and_idle_time_is_one_line():
    script = Script("modern ping\n  -> result {}\n" * 2 + "modern ping\n  after 30\n  -> result {}\n")
    rows = [network.row(script.ledger, e, UTC) for e in script.exchanges]
    pieces = network.bursts(rows, UTC)
    assert [next(iter(p)) for p in pieces if "gap" in p or "head" in p].count("gap") == 1
    marks = next(p["row"]["marks"] for p in pieces if "row" in p)
    assert [m["kind"] for m in marks][:2] == ["req", "ttfb"] and all(0 <= m["x"] <= 100 for m in marks)


def test_an_event_stream_is_drawn_event_by_event():
    script = Script(
        'modern tools/call {"name": "slow", "arguments": {}}\n  -> sse\n  -> notify notifications/progress {"progressToken": 1, "progress": 1, "total": 2}\n'
        '  -> after 0.2\n  -> result {"content": [{"type": "text", "text": "ok"}]}\n'
    )
    rail = network.detail(script.exchanges[0], script.whole("flow-1"), UTC, None)["rail"]
    assert [line["title"] for line in rail] == ["request sent", "response head", "progress", "result", "server ended the stream"]
    assert rail[2]["code"] == "1/2" and rail[3]["gap"] == "Δ 210 ms"


def test_a_preflight_names_the_headers_that_are_not_allowed():
    script = Script(
        "modern ping\n  -> result {}\nOPTIONS /mcp\n  header Origin: http://page.example\n  header Access-Control-Request-Method: POST\n"
        "  header Access-Control-Request-Headers: content-type, mcp-method\n  -> header Access-Control-Allow-Headers: content-type\n  -> 204\n"
    )
    found = network.detail(script.exchanges[1], None, UTC, None)["cors"]
    assert [(h["name"], h["allowed"]) for h in found["headers"]] == [("content-type", True), ("mcp-method", False)]


WRONG = 'modern tools/call {"name": "echo", "arguments": {}}\n  header Mcp-Name: other\n  -> error -32020\n'


def test_findings_are_grouped_by_rule_and_party_with_their_evidence():
    script = Script(WRONG * 3)
    (row,) = [r for r in findings.rows(script.traces, ALL, UTC) if r["rule"] == "HDR006"]
    assert (row["count"], row["party"], row["severity"]) == (3, "client", "error")
    found = findings.detail(script.traces, row["key"], UTC)
    assert found is not None and [case["same"] for case in found["cases"]] == [2] and found["more"] == 0
    assert found["told"].demand and found["link"].startswith("https://modelcontextprotocol.io/")
    assert findings.rows(script.traces, Filter.of({"q": "party:server"}), UTC) == []
    assert [r["rule"] for r in findings.rows(script.traces, Filter.of({"q": "rule:HDR006"}), UTC)] == ["HDR006"]


def test_the_lines_that_keep_a_silence_are_toml():
    import tomllib

    lines = findings.project_lines(Silence("HDR006", "http://old.example/mcp", 'the "gateway"\\ strips it'))
    assert tomllib.loads(lines) == {
        "silence": [{"rule": "HDR006", "endpoint": "http://old.example/mcp", "reason": 'the "gateway"\\ strips it'}]
    }


def test_tools_show_mirrors_exclusions_calls_and_changes():
    script = Script(
        f"modern tools/list\n  {LISTED}\n"
        '  -> tool bad {"value": {"type": "string", "x-mcp-header": "Bad Header"}}\n'
        'modern tools/call {"name": "query", "arguments": {"region": "eu"}}\n  header Mcp-Param-Region: eu\n  -> result {"content": []}\n'
        'modern tools/call {"name": "query", "arguments": {}}\n  -> result {"content": [], "isError": true}\n'
        'modern tools/list\n  -> tool query {"region": {"type": "integer", "x-mcp-header": "Region"}}\n'
    )
    (card,) = tools.rows(script.traces, {}, ALL, UTC)
    query = next(i for i in card["items"] if i["name"] == "query")
    assert query["mirrors"] == [{"path": "region", "field": "Mcp-Param-Region", "type": "integer"}]
    assert (query["calls"], query["tool_errors"], query["versions"]) == (2, 1, 2)
    bad = next(i for i in card["items"] if i["name"] == "bad")
    assert bad["excluded"][0]["rule"] == "PAR002"
    assert card["changes"][0]["removed"] == ["bad"]
    assert [i["name"] for i in tools.rows(script.traces, {"only": "excluded"}, ALL, UTC)[0]["items"]] == ["bad"]
    found = tools.detail(script.traces, query["key"], UTC)
    assert found is not None and any(sign == "+" and "integer" in line for sign, line in found["diffs"][0]["lines"])


def test_resources_and_prompts_are_listed_too():
    script = Script(
        'modern resources/list\n  -> result {"resources": [{"uri": "a://1", "name": "one", "mimeType": "text/plain"}]}\n'
        'modern resources/read {"uri": "a://1"}\n  -> result {"contents": [{"uri": "a://1", "text": "x"}]}\n'
        'modern prompts/list\n  -> result {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": true}]}]}\n'
    )
    (card,) = tools.rows(script.traces, {"kind": "resources"}, ALL, UTC)
    assert (card["items"][0]["name"], card["items"][0]["calls"]) == ("a://1", 1)
    (card,) = tools.rows(script.traces, {"kind": "prompts"}, ALL, UTC)
    assert card["items"][0]["arguments"] == "who"


LISTEN = (
    'modern subscriptions/listen {"notifications": {"toolsListChanged": true, "promptsListChanged": true}}\n  -> sse\n'
    '  -> ack {"toolsListChanged": true}\n  -> publish notifications/tools/list_changed\n'
)


def test_a_stream_says_what_was_asked_for_what_was_granted_and_how_it_went():
    script = Script(LISTEN + "  -> open\n" + LISTEN + "  -> closed client\n" + LISTEN + "  -> closed server\n")
    rows = [streams.row(script.ledger, e, UTC) for e in script.exchanges]
    assert [r["state"].word for r in rows] == ["listening", "closed by client", "cut"]
    assert rows[0]["subject"] == "tools, prompts" and rows[0]["open"]
    found = streams.detail(script.ledger, script.exchanges[1], script.whole("flow-2"), UTC)
    verdicts = {f["kind"]: f["state"].word for f in found["filter"]}
    assert verdicts == {"toolsListChanged": "granted", "promptsListChanged": "not granted"}
    assert found["counts"] == [("notifications/tools/list_changed", 1)]


def test_a_stream_that_is_opened_again_says_so():
    script = Script(LISTEN + "  -> closed server\n" + LISTEN + "  -> open\n")
    assert streams.row(script.ledger, script.exchanges[1], UTC)["again"] == 1


TASK = """
modern tools/call {"name": "long", "arguments": {}}
  capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
  -> result {"resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "2026-07-28T10:00:00Z", "lastUpdatedAt": "2026-07-28T10:00:00Z", "ttlMs": 60000, "pollIntervalMs": 500}
modern tasks/get {"taskId": "t-1"}
  after 0.6
  -> result {"resultType": "complete", "taskId": "t-1", "status": "completed", "createdAt": "2026-07-28T10:00:00Z", "lastUpdatedAt": "2026-07-28T10:00:01Z", "ttlMs": 60000, "result": {"content": []}}
"""


def test_a_task_is_shown_from_handle_to_result():
    script = Script(TASK)
    (row,) = tasks.rows(script.traces, ALL, UTC)
    assert (row["tool"], row["story"], row["polls"], row["state"].word) == ("long", "working → completed", 1, "completed")
    found = tasks.detail(script.traces, row["key"], UTC)
    assert found is not None and [t["method"] for t in found["timeline"]] == ["tools/call", "tasks/get"]
    assert found["timeline"][1]["result"] and found["ttl"] == "1 min 0 s"
    assert [t["gap"] != "" for t in found["timeline"]] == [False, True]  # the first poll counts from the handle


def test_logs_say_which_level_was_asked_for():
    level = "io.modelcontextprotocol/logLevel"
    script = Script(
        f'modern tools/call {{"name": "a", "arguments": {{}}}}\n  meta {level} "warning"\n  -> sse\n'
        '  -> notify notifications/message {"level": "error", "logger": "db", "data": {"text": "lost"}}\n'
        '  -> notify notifications/message {"level": "info", "data": "chatter"}\n  -> result {"content": []}\n'
        'modern tools/call {"name": "b", "arguments": {}}\n  -> sse\n'
        '  -> notify notifications/message {"level": "info", "data": "unasked"}\n  -> result {"content": []}\n'
    )
    rows, older, hidden = logs.rows(script.traces, {}, ALL, UTC, 100)
    assert [(r["level"].word, r["verdict"].word) for r in rows] == [
        ("error", "asked: warning"),
        ("info", "below warning"),
        ("info", "nobody asked"),
    ]
    assert (older, hidden) == ("", 0)
    rows, _, hidden = logs.rows(script.traces, {"level": "error"}, Filter.of({"q": "lost"}), UTC, 100)
    assert len(rows) == 1 and hidden == 2
    newest, older, _ = logs.rows(script.traces, {}, ALL, UTC, 2)
    assert len(newest) == 2 and older


def test_a_challenge_that_nobody_followed_is_shown():
    script = Script(
        'modern ping\n  -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource"\n  -> 401\n'
        "modern ping\n  header Authorization: Bearer abc\n  -> result {}\n"
    )
    (card,) = auth.rows(script.traces, ALL, UTC)
    assert card["steps"][0]["step"] == "Challenge" and card["state"].word == "not followed so far"
    assert "oauth-protected-resource" in dict(card["steps"][0]["facts"])["resource_metadata"]


def test_apps_are_described_never_rendered():
    script = Script(
        "modern tools/list\n"
        '  -> tool chart {} {"_meta": {"ui": {"resourceUri": "ui://chart"}}}\n'
        'modern resources/read {"uri": "ui://chart"}\n'
        '  -> result {"contents": [{"uri": "ui://chart", "mimeType": "text/html;profile=mcp-app", "text": "<b>x</b>", '
        '"_meta": {"ui": {"csp": {"connectDomains": ["https://api.example"]}, "permissions": {"camera": {}}}}}]}\n'
    )
    (card,) = apps.rows(script.traces, ALL, UTC)
    (app,) = card["apps"]
    assert (app["uri"], app["tools"], app["permissions"]) == ("ui://chart", ["chart"], ["camera"])
    assert app["csp"] == [{"name": "connectDomains", "values": ["https://api.example"]}]
    assert "<b>" not in str(card)


def test_the_same_as_text():
    script = Script(ROUNDS + LISTEN + "  -> open\n")
    traces = text.read([script.inspector])
    assert "modern" in text.overview_lines(traces)[0] and text.overview_lines(traces)[-1].startswith("1 endpoint")
    assert "2 rounds" in text.conversation_lines(traces, UTC)[0]
    assert "listening" in text.stream_lines(traces, UTC)[0]
    assert script.inspector.watched is not None  # whoever follows goes on following


def test_a_row_can_be_taken_along_as_json_curl_and_test_case():
    script = Script(WRONG + ROUNDS)
    one = script.whole("flow-1")
    assert one is not None
    told = json.loads(copies.as_json([one]))
    assert told[0]["findings"][0]["rule"] == "HDR006" and told[0]["request"]["method"] == "tools/call"
    curl = copies.as_curl(one)
    assert curl.startswith("curl -sS -N --globoff http://server.example:80/mcp") and "Mcp-Name: other" in curl
    case = copies.as_case([one])
    head, _, rest = case.partition("\n")
    fires, _, body = rest.partition("\n")
    assert head.startswith("=== ") and fires == "fires: HDR006"
    again = Script(body)
    assert "HDR006" in [f.rule for f in again.exchanges[0].findings]


def test_a_copied_stream_is_a_stream_again():
    script = Script(LISTEN + "  -> closed client\n")
    one = script.whole("flow-1")
    assert one is not None
    events = read_script(copies.as_case([one]).split("\n", 2)[2])
    assert [type(e).__name__ for e in events].count("StreamData") >= 2


# What the numbers are of


def test_the_rules_beside_the_errors_are_those_of_errors():
    script = Script(WRONG + "modern ping\n  -> result {}\n")
    severities = {group.severity for group in script.traces.groups()}
    assert len(severities) > 1
    assert overview.summary(script.traces)["rules"] == len({g.rule for g in script.traces.groups() if g.severity == "error"})


def test_a_tool_that_no_list_has_is_not_among_those_listed():
    script = Script(
        'modern tools/list\n  -> tool query {}\nmodern tools/call {"name": "other", "arguments": {}}\n  -> result {"content": []}\n'
    )
    (card,) = tools.rows(script.traces, {}, ALL, UTC)
    assert (card["count"], card["unlisted"], len(card["items"])) == (1, 1, 2)


@pytest.mark.parametrize(("member", "before"), [("endpoint", ""), ("q", "endpoint:")])
def test_with_an_endpoint_in_view_findings_are_those_of_it(member, before):
    script = Script(WRONG * 2 + WRONG.replace("\n", "\n  path http://second.example/Mcp\n", 1))
    here = Filter.of({member: before + script.exchanges[2].endpoint.url})
    (row,) = [r for r in findings.rows(script.traces, here, UTC) if r["rule"] == "HDR006"]
    assert row["count"] == 1 and "+" not in row["server"]
    assert findings.counts(script.traces, here)["error"] < findings.counts(script.traces, ALL)["error"]
    found = findings.detail(script.traces, row["key"], UTC, here)
    assert found is not None and (found["count"], found["in_view"]) == (1, script.exchanges[2].endpoint.url)
    whole = findings.detail(script.traces, row["key"], UTC)
    assert whole is not None and whole["count"] == 3 and whole["in_view"] is None


def test_a_capability_with_nothing_on_inside_is_there():
    assert leaves({"tools": {"listChanged": False}, "prompts": {}, "resources": {"subscribe": True}, "logging": None}) == [
        "tools",
        "prompts",
        "resources.subscribe",
    ]


def test_a_probe_is_accepted_only_where_there_was_one():
    called = Script('modern tools/call {"name": "echo", "arguments": {}}\n  -> result {"content": []}\n')
    (row,) = overview.endpoints(called.traces)
    assert row["story"] == "speaks modern, unasked"


def test_the_length_of_a_story_is_not_reported_as_dropped():
    script = Script("legacy initialize\n  -> result {}\n" * 60)
    assert overview.summary(script.traces)["dropped"] == []
    ledger = script.ledger
    (tally,) = ledger.endpoints.values()
    assert overview.detail(ledger, tally, UTC)["more_steps"] == 20


def test_a_refused_probe_that_is_followed_by_a_fallback_is_no_fault():
    probe = "modern server/discover\n  -> error -32601\n"
    fell_back, gave_up = Script(probe + "legacy initialize\n  -> result {}\n"), Script(probe)
    states = [network.row(s.ledger, s.exchanges[0], UTC)["status"].kind for s in (fell_back, gave_up)]
    assert states == ["off", "err"]


def test_apps_say_what_is_wrong_with_them_and_nothing_of_lists_that_were_not_seen():
    link = '"_meta": {"ui": {"resourceUri": "http://x/"}}'
    script = Script(f"modern tools/list\n  -> tool query {{}} {{{link}}}\n")
    (card,) = apps.rows(script.traces, ALL, UTC)
    assert [a["about"] for a in card["apps"]] == [""]
    assert "APP001" in [f["rule"] for f in card["findings"]]
