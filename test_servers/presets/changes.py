"""Tools that change what the server offers, so that subscribers have something to hear of."""

import mcp_types as types

from test_servers.presets.prompts import fixed
from test_servers.registry import ResourceItem, ToolAnswer, ToolItem, preset, text_result, tool
from test_servers.world import Call

NAME = {"name": {"type": "string", "minLength": 1}}
URI = {"uri": {"type": "string", "minLength": 1}}


@preset("tool", "update_resource")
def update_resource() -> ToolItem:
    """Gives a resource a new text (and makes it, if need be)."""

    async def run(call: Call) -> ToolAnswer:
        uri, text = call.arguments["uri"], call.arguments["text"]
        known = call.world.resources.get(uri)
        name = known.definition.name if known else uri.rpartition("/")[2] or uri
        definition = known.definition if known else types.Resource(uri=uri, name=name, mime_type="text/plain")
        contents = [types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
        call.world.resources[uri] = ResourceItem(definition, lambda: contents)
        await call.world.resources_changed()
        await call.world.resource_updated(uri)
        return f"{uri} has a new text"

    definition = tool(
        "update_resource",
        "Changes the text of a resource",
        {**URI, "text": {"type": "string"}},
        required=["uri", "text"],
    )
    return ToolItem(definition, run)


@preset("tool", "add_resource")
def add_resource() -> ToolItem:
    """Adds a resource to the list."""

    async def run(call: Call) -> ToolAnswer:
        uri = call.arguments["uri"]
        contents = [types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"Contents of {uri}")]
        definition = types.Resource(uri=uri, name=uri.rpartition("/")[2] or uri, mime_type="text/plain")
        call.world.resources[uri] = ResourceItem(definition, lambda: contents)
        await call.world.resources_changed()
        return f"Added {uri}"

    return ToolItem(tool("add_resource", "Adds a resource", URI, required=["uri"]), run)


@preset("tool", "remove_resource")
def remove_resource() -> ToolItem:
    """Takes a resource from the list."""

    async def run(call: Call) -> ToolAnswer:
        if call.world.resources.pop(call.arguments["uri"], None) is None:
            return text_result("There is no such resource", is_error=True)
        await call.world.resources_changed()
        return f"Removed {call.arguments['uri']}"

    return ToolItem(tool("remove_resource", "Removes a resource", URI, required=["uri"]), run)


@preset("tool", "add_tool")
def add_tool() -> ToolItem:
    """Adds a tool to the list."""

    async def run(call: Call) -> ToolAnswer:
        name = call.arguments["name"]
        if name in call.world.tools:
            return text_result(f"{name} is there already", is_error=True)

        async def added(inner: Call) -> ToolAnswer:
            return f"{name} was added while the server ran"

        call.world.tools[name] = ToolItem(tool(name, "Added while the server ran"), added)
        await call.world.tools_changed()
        return f"Added {name}"

    return ToolItem(tool("add_tool", "Adds a tool", NAME, required=["name"]), run)


@preset("tool", "remove_tool")
def remove_tool() -> ToolItem:
    """Takes a tool from the list."""

    async def run(call: Call) -> ToolAnswer:
        if call.world.tools.pop(call.arguments["name"], None) is None:
            return text_result("There is no such tool", is_error=True)
        await call.world.tools_changed()
        return f"Removed {call.arguments['name']}"

    return ToolItem(tool("remove_tool", "Removes a tool", NAME, required=["name"]), run)


@preset("tool", "add_prompt")
def add_prompt() -> ToolItem:
    """Adds a prompt to the list."""

    async def run(call: Call) -> ToolAnswer:
        name = call.arguments["name"]
        call.world.prompts[name] = fixed(types.Prompt(name=name), f"The prompt {name}")
        await call.world.prompts_changed()
        return f"Added {name}"

    return ToolItem(tool("add_prompt", "Adds a prompt", NAME, required=["name"]), run)


@preset("tool", "remove_prompt")
def remove_prompt() -> ToolItem:
    """Takes a prompt from the list."""

    async def run(call: Call) -> ToolAnswer:
        if call.world.prompts.pop(call.arguments["name"], None) is None:
            return text_result("There is no such prompt", is_error=True)
        await call.world.prompts_changed()
        return f"Removed {call.arguments['name']}"

    return ToolItem(tool("remove_prompt", "Removes a prompt", NAME, required=["name"]), run)
