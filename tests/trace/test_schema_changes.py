"""What breaks a client that knew the old definition of a tool, and what does not."""

import pytest

from mcp_wiretap.trace.schema.changes import of_tool


def _tool(properties: dict[str, object], **more: object) -> dict[str, object]:
    schema = {"type": "object", "properties": properties, **more}
    return {"name": "t", "inputSchema": schema}


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        (_tool({}), _tool({"n": {"type": "string"}}), "compatible"),
        (_tool({}), _tool({"n": {"type": "string"}}, required=["n"]), "breaking"),
        (_tool({"n": {"type": "string"}}, required=["n"]), _tool({"n": {"type": "string"}}), "compatible"),
        (_tool({"n": {"type": "integer"}}), _tool({"n": {"type": "number"}}), "compatible"),
        (_tool({"n": {"type": "number"}}), _tool({"n": {"type": "integer"}}), "breaking"),
        (_tool({"n": {"enum": ["a"]}}), _tool({"n": {"enum": ["a", "b"]}}), "compatible"),
        (_tool({"n": {"enum": ["a", "b"]}}), _tool({"n": {"enum": ["a"]}}), "breaking"),
        (_tool({"n": {"maxLength": 5}}), _tool({"n": {"maxLength": 9}}), "compatible"),
        (_tool({"n": {"maxLength": 9}}), _tool({"n": {"maxLength": 5}}), "breaking"),
        (_tool({"n": {"minimum": 1}}), _tool({"n": {}}), "compatible"),
        (_tool({"n": {"type": "string"}}), _tool({"n": {"type": "string", "x-mcp-header": "N"}}), "breaking"),
        (_tool({"n": {}}), _tool({}), "unclear"),
        (_tool({"n": {}}, additionalProperties=False), _tool({}, additionalProperties=False), "breaking"),
        (_tool({}), _tool({}, additionalProperties=False), "breaking"),
        ({"name": "t", "description": "a"}, {"name": "t", "description": "b"}, "compatible"),
        ({"name": "t", "annotations": {"readOnlyHint": True}}, {"name": "t", "annotations": {}}, "breaking"),
    ],
)
def test_the_worst_change_of_the_input(before: dict[str, object], after: dict[str, object], weight: str) -> None:
    assert of_tool(before, after)[0].weight == weight


def _output(properties: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": "t", "outputSchema": {"type": "object", "properties": properties, **more}}


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        (_output({"n": {"type": "string"}}), _output({}), "breaking"),
        (_output({}), _output({"n": {"type": "string"}}, required=["n"]), "compatible"),
        (_output({"n": {}}, required=["n"]), _output({"n": {}}), "breaking"),
        (_output({"n": {"enum": ["a"]}}), _output({"n": {"enum": ["a", "b"]}}), "breaking"),
        (_output({"n": {"type": "number"}}), _output({"n": {"type": "integer"}}), "compatible"),
        (_output({}), {"name": "t"}, "breaking"),
        ({"name": "t"}, _output({}), "compatible"),
    ],
)
def test_the_worst_change_of_the_output(before: dict[str, object], after: dict[str, object], weight: str) -> None:
    changes = of_tool(before, after)
    assert changes[0].weight == weight


def test_a_schema_deeper_than_is_looked_is_said_to_differ() -> None:
    deep: dict[str, object] = {"type": "string"}
    other: dict[str, object] = {"type": "integer"}
    for _ in range(100):
        deep, other = {"properties": {"a": deep}}, {"properties": {"a": other}}
    (change,) = of_tool({"name": "t", "inputSchema": deep}, {"name": "t", "inputSchema": other})
    assert change.weight == "unclear"
