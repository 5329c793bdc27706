"""The commands that print what the pages show, for the masters that have no pages."""

from tests.proxy import flows


async def test_endpoints_conversations_and_streams_are_listed():
    with flows.proxy() as addon:
        flow = flows.live()
        addon.request(flow)
        flow.response = flows.response(flows.result())
        addon.responseheaders(flow)
        addon.response(flow)
        execute = addon.context.master.commands.call
        assert "http://mcp.example:8000/mcp" in execute("mcp.overview")[0]
        assert execute("mcp.conversations") == ["no conversation of two or more exchanges so far"]
        assert execute("mcp.streams") == ["no stream so far"]
