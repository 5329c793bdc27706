"""Tools that answer at once: echo, sums, weather, temperatures, records."""

import json
import sys
from typing import Any

import mcp_types as types

from test_servers.registry import ToolAnswer, ToolItem, preset, text_result, tool
from test_servers.world import Call, compact

STRING = {"type": "string"}
NUMBER = {"type": "number"}


@preset("tool", "echo")
def echo() -> ToolItem:
    """Says back what it was told."""

    async def run(call: Call) -> ToolAnswer:
        return f"Echo: {call.arguments['message']}"

    return ToolItem(tool("echo", "Returns the message it is given", {"message": STRING}, required=["message"]), run)


def _sum(name: str) -> ToolItem:
    async def run(call: Call) -> ToolAnswer:
        result = {"result": call.arguments["a"] + call.arguments["b"]}
        return types.CallToolResult(content=[types.TextContent(text=compact(result))], structured_content=result)

    schema = {"type": "object", "properties": {"result": NUMBER}, "required": ["result"]}
    definition = tool(name, "Adds two numbers", {"a": NUMBER, "b": NUMBER}, required=["a", "b"], output_schema=schema)
    return ToolItem(definition, run)


@preset("tool", "add")
def add() -> ToolItem:
    """Adds two numbers."""
    return _sum("add")


@preset("tool", "get_sum")
def get_sum() -> ToolItem:
    """Adds two numbers (another name of `add`)."""
    return _sum("get_sum")


@preset("tool", "get_weather")
def get_weather() -> ToolItem:
    """Weather of a city; the city is mirrored into Mcp-Param-City."""

    async def run(call: Call) -> ToolAnswer:
        return f"{call.arguments['city']}: sunny, 24 °C"

    properties = {"city": {**STRING, "description": "Name of a city", "x-mcp-header": "City"}}
    return ToolItem(tool("get_weather", "Weather of a city", properties, required=["city"]), run)


@preset("tool", "provision")
def provision() -> ToolItem:
    """Mirrors a string, an integer and a boolean, one of them nested."""

    async def run(call: Call) -> ToolAnswer:
        return f"Provisioned {compact(call.arguments)}"

    properties = {
        "region": {**STRING, "x-mcp-header": "Region"},
        "replicas": {"type": "integer", "minimum": 1, "x-mcp-header": "Replicas"},
        "options": {"type": "object", "properties": {"dryRun": {"type": "boolean", "x-mcp-header": "Dry-Run"}}},
    }
    return ToolItem(tool("provision", "Provisions machines in a region", properties, required=["region"]), run)


@preset("tool", "invalid_header_tool")
def invalid_header_tool() -> ToolItem:
    """Declares a header name with a space, so that clients must leave the tool out."""

    async def run(call: Call) -> ToolAnswer:
        return f"A conforming client would not have called this tool (value {call.arguments.get('value')!r})"

    properties = {"value": {**STRING, "x-mcp-header": "Bad Header"}}
    return ToolItem(tool("invalid_header_tool", "Has an annotation that is not a header name", properties), run)


def _temperature(name: str, extra: dict[str, Any]) -> ToolItem:
    async def run(call: Call) -> ToolAnswer:
        city, unit = call.arguments["city"], call.arguments.get("units", "C")
        reading = {"temperature": 25 if unit == "C" else 77, "unit": unit, "city": city, **extra}
        return types.CallToolResult(content=[types.TextContent(text=compact(reading))], structured_content=reading)

    declared = {"temperature": NUMBER, "unit": STRING, "city": STRING}
    output = {"type": "object", "properties": declared, "required": list(declared)}
    given = {"city": STRING, "units": {"type": "string", "enum": ["C", "F"]}}
    return ToolItem(tool(name, "Temperature of a city", given, required=["city"], output_schema=output), run)


@preset("tool", "get_temp")
def get_temp() -> ToolItem:
    """Temperature of a city as text and as structured content."""
    return _temperature("get_temp", {})


@preset("tool", "get_temp_extra")
def get_temp_extra() -> ToolItem:
    """Like get_temp, with a member that the output schema does not declare."""
    return _temperature("get_temp_extra", {"extra": "not declared, which the schema allows"})


@preset("tool", "list_items")
def list_items() -> ToolItem:
    """Nested structured content."""

    async def run(call: Call) -> ToolAnswer:
        items = [{"id": n, "tags": [f"tag-{n}"], "size": {"w": n, "h": 2 * n}} for n in range(1, 4)]
        result = {"items": items, "count": len(items)}
        return types.CallToolResult(content=[types.TextContent(text=compact(result))], structured_content=result)

    size = {
        "type": "object",
        "properties": {"w": {"type": "integer"}, "h": {"type": "integer"}},
        "required": ["w", "h"],
    }
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": STRING}, "size": size},
        "required": ["id", "tags", "size"],
    }
    output = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}, "count": {"type": "integer"}},
        "required": ["items", "count"],
    }
    return ToolItem(tool("list_items", "Lists items with nested parts", output_schema=output), run)


@preset("tool", "record_shipment")
def record_shipment() -> ToolItem:
    """Takes nullable members in and gives them back."""

    async def run(call: Call) -> ToolAnswer:
        keys = ("orderId", "carrier", "weightKg")
        result = {**{key: call.arguments.get(key) for key in keys}, "recorded": True}
        return types.CallToolResult(content=[types.TextContent(text=compact(result))], structured_content=result)

    members: dict[str, Any] = {
        "orderId": STRING,
        "carrier": {"type": ["string", "null"]},
        "weightKg": {"type": ["number", "null"]},
    }
    output = {
        "type": "object",
        "properties": {**members, "recorded": {"type": "boolean"}},
        "required": [*members, "recorded"],
    }
    definition = tool("record_shipment", "Records a shipment", members, required=["orderId"], output_schema=output)
    return ToolItem(definition, run)


@preset("tool", "numbered_tools")
def numbered_tools(count: int = 12) -> list[ToolItem]:
    """`count` tools named tool_1, tool_2, ..."""

    def item(number: int) -> ToolItem:
        async def run(call: Call) -> ToolAnswer:
            return f"This is tool {number}"

        return ToolItem(tool(f"tool_{number}", f"Tool number {number}"), run)

    return [item(number) for number in range(1, count + 1)]


@preset("tool", "write_to_stderr")
def write_to_stderr() -> ToolItem:
    """Writes a line to the server's standard error, which belongs to nobody's protocol."""

    async def run(call: Call) -> ToolAnswer:
        print(call.arguments["message"], file=sys.stderr, flush=True)
        return "Written to stderr"

    definition = tool("write_to_stderr", "Writes a line to standard error", {"message": STRING}, required=["message"])
    return ToolItem(definition, run)


@preset("tool", "get_annotated_message")
def get_annotated_message() -> ToolItem:
    """Content with annotations; one block for the user, one for the assistant."""

    async def run(call: Call) -> ToolAnswer:
        kind = call.arguments.get("messageType", "success")
        priority = {"error": 1.0, "success": 0.7, "debug": 0.3}[kind]
        note = types.Annotations(audience=["user", "assistant"], priority=priority)
        aside = types.Annotations(audience=["assistant"], priority=0.1)
        return types.CallToolResult(
            content=[
                types.TextContent(text=f"A {kind} message", annotations=note),
                types.TextContent(text="A word for the model only", annotations=aside),
            ]
        )

    properties = {"messageType": {"type": "string", "enum": ["error", "success", "debug"]}}
    return ToolItem(tool("get_annotated_message", "Content with annotations", properties), run)


@preset("tool", "fail")
def fail() -> ToolItem:
    """Always ends in a tool error."""

    async def run(call: Call) -> ToolAnswer:
        return text_result(f"Failed as asked, arguments {json.dumps(call.arguments)}", is_error=True)

    return ToolItem(tool("fail", "Always reports a tool error"), run)
