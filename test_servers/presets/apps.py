"""MCP Apps: a tool with a page, and the page."""

import mcp_types as types

from test_servers.registry import ResourceItem, ToolAnswer, ToolItem, preset, tool
from test_servers.world import Call

URI = "ui://demo/clock.html"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Clock</title>
<body><output id="now">no time yet</output>
<script>
addEventListener("message", e => { document.getElementById("now").textContent = JSON.stringify(e.data); });
</script>
</body></html>
"""


@preset("tool", "mcp_app_demo")
def mcp_app_demo() -> ToolItem:
    """A tool whose result is shown by the page `ui://demo/clock.html`; the text serves clients without pages."""

    async def run(call: Call) -> ToolAnswer:
        return types.CallToolResult(
            content=[types.TextContent(text="It is half past nine.")], structured_content={"hour": 9, "minute": 30}
        )

    return ToolItem(tool("mcp_app_demo", "Shows a clock", _meta={"ui": {"resourceUri": URI}}), run)


@preset("resource", "mcp_app_page")
def mcp_app_page() -> ResourceItem:
    """The page of mcp_app_demo."""
    mime = "text/html;profile=mcp-app"
    definition = types.Resource(uri=URI, name="clock", mime_type=mime)
    contents = [types.TextResourceContents(uri=URI, mime_type=mime, text=PAGE)]
    return ResourceItem(definition, lambda: contents)
