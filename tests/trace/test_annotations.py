"""x-mcp-header annotations of a schema: what is one, what is wrong with it, and that no schema takes long to read."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.trace.schema.annotations import MOST_ANNOTATIONS, MOST_POSITIONS, Mirror, read_tool
from mcp_wiretap.wire.secret import looks_secret


def found(schema: Any) -> list[tuple[str, str]]:
    """(rule, pointer) of each flaw."""
    return [(flaw.rule, flaw.pointer) for flaw in read_tool({"name": "t", "inputSchema": schema}).flaws]


def annotated(kind: Any = "string", header: Any = "P") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header}


def test_annotated_properties_on_a_chain_of_properties_are_mirrors() -> None:
    deep = {"type": "object", "properties": {"b": annotated("integer", "Deep")}}
    tool = read_tool({"inputSchema": {"properties": {"a": deep, "c": annotated("boolean", "C")}}})
    assert tool.mirrors == (Mirror(("c",), "C", "boolean"), Mirror(("a", "b"), "Deep", "integer"))
    assert not tool.flaws and not tool.unchecked


def test_a_definition_with_a_flaw_has_no_mirrors_at_all() -> None:
    tool = read_tool({"inputSchema": {"properties": {"a": annotated(), "b": annotated("number", "B")}}})
    assert tool.mirrors == () and [flaw.rule for flaw in tool.flaws] == ["PAR005"]


@pytest.mark.parametrize(
    ("keyword", "schema"),
    [
        ("items", annotated()),
        ("items", [annotated()]),
        ("prefixItems", [annotated()]),
        ("contains", annotated()),
        ("additionalProperties", annotated()),
        ("patternProperties", {"^a": annotated()}),
        ("propertyNames", annotated()),
        ("dependentSchemas", {"a": annotated()}),
        ("dependencies", {"a": annotated()}),
        ("unevaluatedProperties", annotated()),
        ("unevaluatedItems", annotated()),
        ("contentSchema", annotated()),
        ("oneOf", [annotated()]),
        ("anyOf", [{}, {"properties": {"p": annotated()}}]),
        ("allOf", [annotated()]),
        ("not", annotated()),
        ("if", annotated()),
        ("then", annotated()),
        ("else", annotated()),
        ("$defs", {"X": annotated()}),
        ("definitions", {"X": annotated()}),
    ],
)
def test_every_other_keyword_ends_the_chain(keyword: str, schema: Any) -> None:
    assert [rule for rule, _ in found({keyword: schema})] == ["PAR007"]
    assert [rule for rule, _ in found({"properties": {"a": {"type": "object", keyword: schema}}})] == ["PAR007"]


@pytest.mark.parametrize(
    "schema",
    [
        {"default": annotated()},
        {"examples": [annotated()]},
        {"const": annotated()},
        {"enum": [annotated()]},
        {"title": annotated()},
        {"dependencies": {"a": ["x-mcp-header"]}},
        {"properties": {"x-mcp-header": {"type": "string"}}},
        {"properties": {"a": True}},
        {"required": ["x-mcp-header"]},
    ],
)
def test_data_and_names_are_no_annotations(schema: dict[str, Any]) -> None:
    assert found(schema) == []


def test_a_reference_is_reported_instead_of_the_definition_it_leads_to() -> None:
    schema = {"properties": {"a": {"$ref": "#/definitions/a~1b%20c"}}, "definitions": {"a/b c": annotated()}}
    assert found(schema) == [("PAR008", "/inputSchema/definitions/a~1b c/x-mcp-header")]


def test_references_that_lead_elsewhere_change_nothing() -> None:
    for ref in ("https://example.com/x", "#/$defs/Y", "#", "#anchor", 5):
        schema = {"properties": {"a": {"$ref": ref}}, "$defs": {"X": annotated()}}
        assert [rule for rule, _ in found(schema)] == ["PAR007"]


def test_both_places_of_a_repeated_name_are_told() -> None:
    tool = read_tool({"inputSchema": {"properties": {"a": annotated(), "b": annotated(header="p")}}})
    (flaw,) = tool.flaws
    assert (flaw.rule, flaw.pointer, flaw.detail) == (
        "PAR003",
        "/inputSchema/properties/b/x-mcp-header",
        "/inputSchema/properties/a/x-mcp-header",
    )


def test_a_value_and_a_place_may_both_be_wrong() -> None:
    assert [rule for rule, _ in found({"items": annotated(header="a b")})] == ["PAR002", "PAR007"]


@pytest.mark.parametrize("schema", [None, True, [], "x", 5, {"properties": [], "items": 3, "$ref": {}, "allOf": {}}])
def test_what_is_no_schema_has_no_annotations(schema: Any) -> None:
    assert found(schema) == []
    assert not read_tool({"outputSchema": schema}).remarks


def test_too_many_positions_are_not_looked_through() -> None:
    wide = {"properties": {str(n): {"type": "string"} for n in range(MOST_POSITIONS + 1)}}
    tool = read_tool({"inputSchema": {**wide, "x-mcp-header": ""}})
    assert "more than" in tool.unchecked and not tool.flaws


def test_too_many_annotations_are_not_compared() -> None:
    many = {"properties": {str(n): annotated(header=f"H{n}") for n in range(MOST_ANNOTATIONS + 1)}}
    tool = read_tool({"inputSchema": many})
    assert "annotations" in tool.unchecked and not tool.mirrors


def test_a_deep_and_a_branching_schema_are_read_in_time() -> None:
    deep: dict[str, Any] = annotated()
    for _ in range(5_000):
        deep = {"properties": {"a": deep, "b": {"anyOf": [{}] * 3}}}
    began = time.process_time()
    read_tool({"inputSchema": deep})
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "name",
    ["password", "dbPasswd", "client_secret", "apiKey", "API-KEY", "x.apikey", "credentials", "accessToken", "token", "SSN"],
)
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["private", "token_count", "max_tokens", "tokenizer", "page_token", "nextToken", "key", "api", "secretary", "", "tokens"],
)
def test_names_that_are_none(name: str) -> None:
    assert not looks_secret(name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "$defs", "$ref", "type", "x-mcp-header", "a"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON)
def test_no_schema_makes_it_fail(schema: Any, output: Any) -> None:
    tool = read_tool({"inputSchema": schema, "outputSchema": output})
    assert not (tool.flaws and tool.mirrors)
