"""The probes of the built-in pack: each changes what it says and nothing else, and stands beside a rule or a section."""

import copy
import re

import pytest

from mcp_wiretap.probe import report as reports
from mcp_wiretap.rule import find_probes, find_rules
from mcp_wiretap.rule.probes import Answer, Call, Probe, as_before, no_message, probe, refused, status

RULES = {rule.id: rule for rule in find_rules()}
PROBES = find_probes(RULES.values())
BY_ID = {one.id: one for one in PROBES}
RANK = {"must": 2, "should": 1, "may-note": 0}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
each = pytest.mark.parametrize("one", PROBES, ids=[one.id for one in PROBES])


def call(era: str = "modern") -> Call:
    params = {"name": "zoë", "arguments": {"city": "Oslo"}, "inputResponses": {}, "requestState": "abcdef"}
    if era == "legacy":
        headers = [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Session-Id", "s"), ("Accept", "application/json")]
        return Call("POST", headers, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?em/Dqw==?="),
        ("Mcp-Param-City", "Oslo"),
        ("Authorization", "Bearer t"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
    ]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, "_meta": copy.deepcopy(META)}}
    return Call("POST", headers, body, mirrored={"Mcp-Param-City": "Oslo"})


def changed(one: Probe) -> tuple[Call, Call]:
    before, after = call(one.era), call(one.era)
    one.change(after)
    return before, after


@each
def test_a_probe_changes_something_unless_it_is_the_call_unchanged(one: Probe) -> None:
    before, after = changed(one)
    assert (before == after) is (one.id in ("H00", "L00")), one.id
    assert isinstance(after.content, bytes)


@each
def test_a_probe_of_headers_leaves_the_body_alone_and_one_of_bodies_the_headers(one: Probe) -> None:
    before, after = changed(one)
    if one.id[0] in "HPSA" or one.id in ("V01", "E03", "E04", "E05", "L01", "L02", "L03", "L04", "L08"):
        assert after.content == before.content and after.http_method == "POST"
    if one.id[0] in "BRC" or one.id in ("V03", "V04", "V05", "V06", "L06", "L07"):
        assert after.headers == before.headers


@each
def test_a_probe_has_a_rule_or_a_section_and_is_never_harsher_than_the_rule(one: Probe) -> None:
    assert one.level is not None and re.match(r"\d{4}-\d\d-\d\d \S", one.spec)
    if one.rule is not None:
        assert RANK[one.level] <= RANK[RULES[one.rule].level] and RULES[one.rule].party in ("server", "client", "either")
    assert one.explanation.endswith(".") and one.title


def test_ids_are_unique_and_listed() -> None:
    assert len(BY_ID) == len(PROBES) >= 60
    assert all(one.id in "\n".join(reports.list_of(PROBES)) for one in PROBES)


@pytest.mark.parametrize(
    ("id_", "answer", "right"),
    [
        ("H02", Answer("error", 400, -32020), True),
        ("H02", Answer("error", 400, -32600), False),
        ("H02", Answer("error", 200, -32020), False),
        ("H02", Answer("result", 200), False),
        ("H08", Answer("result", 200), True),
        ("H08", Answer("tool-error", 200), True),
        ("H08", Answer("error", 400, -32020), False),
        ("V02", Answer("error", 400, -32022, data={"supported": []}), True),
        ("V02", Answer("error", 400, -32022), False),
        ("M01", Answer("error", 404, -32601), True),
        ("M01", Answer("error", 200, -32601), False),
        ("B01", Answer("none", 400), True),
        ("B01", Answer("none", 500), False),
        ("E01", Answer("none", 405), True),
        ("S03", Answer("none", 401, challenge='Bearer resource_metadata="x"'), True),
        ("S03", Answer("none", 401), False),
        ("L02", Answer("error", 404, -32600), True),
        ("L02", Answer("none", 400), False),
    ],
)
def test_what_is_right(id_: str, answer: Answer, right: bool) -> None:
    assert any(one.fits(answer) for one in BY_ID[id_].right) is right


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"id": "x"}, "its id must be"),
        ({"right": []}, "right is empty"),
        ({"needs": ["nothing"]}, "needs has 'nothing'"),
        ({"rule": None}, "its own level and spec"),
    ],
)
def test_a_mistyped_declaration_is_refused_where_it_is_made(made, said) -> None:
    declared = {"id": "ACME01", "title": "t", "era": "modern", "right": [as_before()], "rule": "HTS011"} | made
    with pytest.raises(ValueError, match=re.escape(said)):
        probe(declared.pop("id"), declared.pop("title"), **declared)(lambda call: None)


def test_expectations_read_as_words() -> None:
    assert str(refused(-32020, 400)) == "400 -32020" and str(no_message(400)) == "400 no JSON-RPC"
    assert str(status(401, 403)) == "401/403" and str(as_before()) == "a result"
