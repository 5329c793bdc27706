"""One verdict for each mirrored header of a request."""

import json

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.mirrored import check as mirror
from mcp_wiretap.trace.model import Exchange, HeaderCheck

PROPERTIES = {
    "p": {"type": "string", "x-mcp-header": "P"},
    "n": {"type": "integer", "x-mcp-header": "N"},
    "k": {"type": "string", "x-mcp-header": "Api-Key"},
}
LIST = f"modern tools/list\n  -> tool a {json.dumps(PROPERTIES)}\n"


def last(script: str) -> Exchange:
    inspector = Inspector()
    for event in read_script(script):
        inspector.feed(event)
    return list(inspector.exchanges.values())[-1]


def checks(script: str) -> dict[str, HeaderCheck]:
    return {check.header: check for check in last(script).header_checks}


def verdicts(script: str) -> dict[str, str]:
    return {name: check.verdict for name, check in checks(script).items()}


def call(arguments: str, *headers: str) -> str:
    lines = [f'modern tools/call {{"name": "a", "arguments": {arguments}}}', *(f"header {h}" for h in headers)]
    return LIST + "\n  ".join(lines) + "\n"


def test_a_right_request_matches_in_every_header() -> None:
    assert verdicts(call('{"p": "x", "n": 1}', "Mcp-Param-P: x", "Mcp-Param-N: 1")) == {
        "MCP-Protocol-Version": "match",
        "Mcp-Method": "match",
        "Mcp-Name": "match",
        "Mcp-Param-P": "match",
        "Mcp-Param-N": "match",
    }


def test_a_method_that_names_nothing_has_no_row_for_the_name() -> None:
    assert list(verdicts("modern tools/list\n")) == ["MCP-Protocol-Version", "Mcp-Method"]


def test_each_verdict_of_the_vocabulary() -> None:
    assert verdicts("modern tools/list\n  header Mcp-Method: x\n")["Mcp-Method"] == "mismatch"
    assert verdicts("modern tools/list\n  -header Mcp-Method\n")["Mcp-Method"] == "missing"
    assert verdicts("modern tools/list\n  header Mcp-Name: x\n")["Mcp-Name"] == "not-required"
    assert verdicts("modern tools/list\n  +header Mcp-Method: tools/list\n")["Mcp-Method"] == "duplicate"
    named = 'modern tools/call {"name": "é"}\n  header Mcp-Name: '
    assert verdicts(named + "=?base64?!?=\n")["Mcp-Name"] == "undecodable"
    assert verdicts(named + "é\n")["Mcp-Name"] == "should-be-encoded"
    assert verdicts('modern tools/call {"name": "e"}\n  header Mcp-Name: =?base64?ZQ==?=\n')["Mcp-Name"] == "needless-encoding"
    assert verdicts(call("{}", "Mcp-Param-Z: x"))["Mcp-Param-Z"] == "undeclared"
    unlisted = 'modern tools/call {"name": "a"}\n  header Mcp-Param-Z: x\n'
    assert verdicts(unlisted)["Mcp-Param-Z"] == "unchecked"


def test_a_check_says_what_was_sent_what_it_means_and_what_the_body_says() -> None:
    check = checks('modern tools/call {"name": "echo"}\n  header mcp-name: =?base64?cm0=?=\n')["Mcp-Name"]
    assert (check.raw, check.decoded, check.body, check.expected) == ("=?base64?cm0=?=", "rm", "echo", "echo")
    assert check.where == ("params", "name") and check.problems == {"mismatch"}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_tasks_are_named_by_their_id(method: str) -> None:
    check = checks(f'modern {method} {{"taskId": "t 1"}}\n  -header Mcp-Name\n')["Mcp-Name"]
    assert (check.verdict, check.body, check.where) == ("missing", "t 1", ("params", "taskId"))
    assert verdicts(f'modern {method} {{"taskId": "t 1"}}\n')["Mcp-Name"] == "match"


def test_an_argument_that_is_not_sent_needs_no_row() -> None:
    assert "Mcp-Param-P" not in verdicts(call("{}")) and "Mcp-Param-P" not in verdicts(call('{"p": null}'))


def test_an_argument_of_another_type_is_not_compared() -> None:
    for arguments in ('{"n": "abc"}', '{"n": true}', '{"n": 1.5}', '{"n": [1]}'):
        check = checks(call(arguments, "Mcp-Param-N: abc"))["Mcp-Param-N"]
        assert check.verdict == "unchecked" and "not an integer" in check.detail and not check.problems


def test_integers_are_compared_exactly_however_long() -> None:
    long = "1" + "0" * 5_000
    body = '  body {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {"n": %s}}}\n'
    assert verdicts(call("{}", f"Mcp-Param-N: {long}") + body % long)["Mcp-Param-N"] == "match"
    assert verdicts(call("{}", f"Mcp-Param-N: {long[:-1]}1") + body % long)["Mcp-Param-N"] == "mismatch"
    assert verdicts(call("{}", "Mcp-Param-N: 1") + body % "1e999999")["Mcp-Param-N"] == "mismatch"
    assert verdicts(call('{"n": 1e3}', "Mcp-Param-N: 1000"))["Mcp-Param-N"] == "match"


def test_the_value_of_a_secret_parameter_is_not_shown() -> None:
    check = checks(call('{"k": "hunter2"}', "Mcp-Param-Api-Key: hunter3"))["Mcp-Param-Api-Key"]
    assert check.verdict == "mismatch"
    assert not any("hunter" in (text or "") for text in (check.raw, check.decoded, check.body, check.expected, check.detail))


def test_a_header_that_is_named_like_a_secret_is_not_shown_either() -> None:
    check = checks('modern tools/call {"name": "b"}\n  header Mcp-Param-Password: hunter2\n')["Mcp-Param-Password"]
    assert check.verdict == "unchecked" and "hunter" not in f"{check.raw}{check.decoded}"


def test_long_values_are_compared_whole_and_kept_short() -> None:
    long = "x" * 50_000
    check = checks(call(f'{{"p": "{long}"}}', f"Mcp-Param-P: {long}y"))["Mcp-Param-P"]
    assert check.verdict == "mismatch" and len(check.raw or "") < 1_100 and len(check.body or "") < 1_100


def test_headers_of_a_notification_are_compared_but_not_required() -> None:
    note = "modern-notify notifications/example\n  header Mcp-Method: "
    assert verdicts(note + "notifications/example\n")["Mcp-Method"] == "match"
    assert verdicts(note + "tools/call\n")["Mcp-Method"] == "not-required"
    assert not mirror.fatal(last(note + "tools/call\n"))


def test_legacy_requests_are_shown_and_not_judged() -> None:
    session = 'legacy initialize\n  -> result {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}\n'
    assert verdicts(session + "legacy tools/list\n") == {"MCP-Protocol-Version": "match"}
    assert verdicts(session + "legacy tools/list\n  version 2025-11-25\n") == {"MCP-Protocol-Version": "mismatch"}
    assert verdicts(session + "legacy tools/list\n  header Mcp-Method: tools/list\n")["Mcp-Method"] == "not-required"
    get = "GET /mcp\n  header Mcp-Session-Id: session-1-of-the-example\n  header MCP-Protocol-Version: "
    assert verdicts(session + get + "2025-06-18\n") == {"MCP-Protocol-Version": "match"}
    assert verdicts(session + get + "2025-11-25\n") == {"MCP-Protocol-Version": "mismatch"}
    assert verdicts(get + "2025-06-18\n") == {"MCP-Protocol-Version": "unchecked"}, "its initialize was not recorded"
    assert not mirror.fatal(last(session + "legacy tools/list\n  header Mcp-Method: tools/call\n"))


@pytest.mark.parametrize(
    "request_lines",
    [
        "modern tools/list\n  body-lost\n",
        "modern tools/list\n  body not json\n",
        'modern tools/list\n  body [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]\n',
        "GET /mcp\n  header MCP-Protocol-Version: 2026-07-28\n",
    ],
)
def test_without_one_message_the_headers_are_only_shown(request_lines: str) -> None:
    found = last(request_lines)
    assert found.header_checks and {check.verdict for check in found.header_checks} == {"unchecked"}
    assert all(check.detail for check in found.header_checks)


def test_calls_that_cannot_be_verified_say_why() -> None:
    found = last('modern tools/call {"name": "a", "arguments": {"p": "x"}}\n')
    assert [(u.what, u.why) for u in found.unchecked] == [("Mcp-Param headers", "no tools/list answer was seen before the call")]


@pytest.mark.parametrize(
    ("headers", "faulty"),
    [
        (["Mcp-Param-P: x"], []),
        (["Mcp-Param-P: y"], ["Mcp-Param-P"]),
        ([], ["Mcp-Param-P"]),
        (["Mcp-Param-P: x", "Mcp-Param-N: 5"], []),  # an extra header is the client's fault, no reason to refuse
        (["Mcp-Param-P: x", "Mcp-Param-Z: =?base64?!?="], []),  # nobody declared it
        (["Mcp-Param-P: =?base64?eA==?="], []),
        (["Mcp-Param-P: =?base64?!?=", "Mcp-Method: x"], ["Mcp-Method", "Mcp-Param-P"]),
    ],
)
def test_what_a_server_has_to_refuse(headers: list[str], faulty: list[str]) -> None:
    assert [check.header for check in mirror.fatal(last(call('{"p": "x"}', *headers)))] == faulty
