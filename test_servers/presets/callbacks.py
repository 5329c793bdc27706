"""Tools that ask the client while they run. Legacy era: a request on the call's stream; modern era: an MRTR round.

In the modern era no request may go to the client, so the same question is put as `input_required`.
"""

from typing import Any

import mcp_types as types

from test_servers.registry import ToolAnswer, ToolItem, preset, text_result, tool
from test_servers.world import Call, compact

DEFAULT_FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}


async def _asked(call: Call, request: types.InputRequest, what: str) -> ToolAnswer:
    if call.era == "modern":
        answer = call.responses.get("answer")
        return call.ask({"answer": request}) if answer is None else f"{what}: {compact(answer)}"
    if call.lacks(request):
        return text_result(f"This client declared no support for {request.method}", is_error=True)
    return f"{what}: {compact(await call.ask_now(request))}"


@preset("tool", "collect_elicitation")
def collect_elicitation() -> ToolItem:
    """Asks the user with a form that the caller may choose."""

    async def run(call: Call) -> ToolAnswer:
        message = call.arguments.get("message", "What is your name?")
        schema: dict[str, Any] = call.arguments.get("schema", DEFAULT_FORM)
        params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        return await _asked(call, types.ElicitRequest(params=params), "The user answered")

    properties = {"message": {"type": "string"}, "schema": {"type": "object"}}
    return ToolItem(tool("collect_elicitation", "Asks the user for something", properties), run)


@preset("tool", "collect_sample")
def collect_sample() -> ToolItem:
    """Asks the client's model."""

    async def run(call: Call) -> ToolAnswer:
        message = types.SamplingMessage(role="user", content=types.TextContent(text=call.arguments["text"]))
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        return await _asked(call, types.CreateMessageRequest(params=params), "The model answered")

    definition = tool("collect_sample", "Asks the client's model", {"text": {"type": "string"}}, required=["text"])
    return ToolItem(definition, run)


@preset("tool", "list_roots")
def list_roots() -> ToolItem:
    """Asks for the client's roots."""

    async def run(call: Call) -> ToolAnswer:
        return await _asked(call, types.ListRootsRequest(), "The client's roots")

    return ToolItem(tool("list_roots", "Lists the client's roots"), run)
