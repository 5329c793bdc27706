"""Shapes of results, content blocks and forms: what is wrong is said at the innermost place, in words."""

from typing import Any

import pytest

from mcp_wiretap_rules import blocks, forms, shapes

MODERN = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def said(method: str, result: dict[str, Any], revision: str = "2026-07-28") -> list[str]:
    return [problem.words for problem in shapes.problems(method, revision, result)]


@pytest.mark.parametrize(
    ("method", "result", "words"),
    [
        ("tools/list", {}, ["tools is missing"]),
        ("tools/list", {"tools": {}}, ["tools is an object, not an array"]),
        ("tools/list", {"tools": [{"name": "a", "inputSchema": {}}, 3]}, ["tools[1] is an integer, not an object"]),
        ("tools/list", {"tools": [{"name": 4}]}, ["tools[0].name is an integer, not a string"]),
        ("resources/list", {"resources": [{"uri": "a:b"}]}, ["resources[0].name is missing"]),
        (
            "resources/list",
            {"resources": [{"uri": "a:b", "name": "n", "size": 5.5}]},
            ["resources[0].size is a number, not an integer"],
        ),
        ("resources/templates/list", {"resourceTemplates": [{"name": "n"}]}, ["resourceTemplates[0].uriTemplate is missing"]),
        ("resources/read", {"contents": "none"}, ["contents is a string, not an array"]),
        ("prompts/get", {"messages": None}, ["messages is null, not an array"]),
        ("completion/complete", {"completion": {"values": ["a", 1]}}, ["completion.values[1] is an integer, not a string"]),
        ("tools/call", {"content": [], "isError": "no"}, ["isError is a string, not true or false"]),
        (
            "prompts/list",
            {"prompts": [{"name": "p", "description": None}]},
            ["prompts[0].description is null; it is left out where there is none"],
        ),
        ("server/discover", {}, []),
        ("vendor/method", {"a": 1}, []),
    ],
)
def test_a_problem_of_a_result_is_told_in_words(method: str, result: dict[str, Any], words: list[str]) -> None:
    assert said(method, MODERN | result) == words


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_right_result_has_no_problem_in_any_revision(revision: str) -> None:
    assert said("tools/list", MODERN | {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}, revision) == []
    assert said("tools/call", MODERN | {"content": [{"type": "text", "text": ""}]}, revision) == []
    assert said("resources/read", MODERN | {"contents": [{"uri": "a:b", "text": ""}]}, revision) == []


def test_a_revision_that_nobody_knows_has_no_shape() -> None:
    assert said("tools/list", {}, "2099-01-01") == []


def test_a_long_list_is_looked_at_in_part_and_said_to_be() -> None:
    result = MODERN | {"tools": [{"name": f"t{i}", "inputSchema": {}} for i in range(600)] + [3]}
    assert said("tools/list", result) == []
    assert shapes.left_out("tools/list", result) == "only the first 500 of 601 tools were looked at"


@pytest.mark.parametrize(
    ("data", "severity"),
    [
        ("", None),
        ("aGk=", None),
        ("aGkhaA==", None),
        ("aGk", "warning"),
        ("aGkh\r\naGkh", "warning"),
        ("a-_b", "error"),
        ("data:image/png;base64,aGk=", "error"),
        ("aG=k", "error"),
        ("ä", "error"),
        ("a===", "error"),
    ],
)
def test_base64_is_told_from_what_only_looks_like_it(data: str, severity: str | None) -> None:
    found = blocks.base64_problem(data)
    assert (found[1] if found else None) == severity


def test_only_the_beginning_of_very_long_data_is_looked_at() -> None:
    assert blocks.base64_problem("A" * (blocks.MOST_BASE64 + 4) + "----") is None


@pytest.mark.parametrize(
    ("field", "severities"),
    [
        ({"type": "string", "pattern": "^a$"}, []),
        ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, []),
        ({"type": "string", "enum": [1]}, ["error"]),
        ({"type": "string", "oneOf": [{"const": "a"}]}, ["error"]),
        ({"enum": ["a"]}, ["error"]),
        ({"type": ["string", "null"]}, ["error"]),
        ({"$ref": "#/$defs/a"}, ["error"]),
        ({"type": "array", "items": {"type": "string"}}, ["error"]),
        ({"type": "boolean", "default": "yes"}, ["error"]),
        ({"type": "string", "default": None}, []),
        ({"type": "string", "format": "uuid"}, ["warning"]),
    ],
)
def test_a_field_of_a_form_is_flat_and_plain(field: dict[str, Any], severities: list[str]) -> None:
    schema = {"type": "object", "properties": {"f": field}}
    assert [flaw.severity for flaw in forms.flaws(schema, "2026-07-28")] == severities


@pytest.mark.parametrize(
    ("name", "text", "asks"),
    [
        ("password", "", True),
        ("apiKey", "", True),
        ("credit_card", "", True),
        ("cvv", "", True),
        ("value", "Your access token", True),
        ("email", "", False),
        ("maxTokens", "", False),
        ("value", "We will never ask for your password", False),
        ("value", "Name of the new key", False),
    ],
)
def test_a_form_that_asks_for_a_secret_is_told_by_names_and_texts(name: str, text: str, asks: bool) -> None:
    params = {"message": text, "requestedSchema": {"type": "object", "properties": {name: {"type": "string"}}}}
    assert (forms.secret(params) is not None) is asks
