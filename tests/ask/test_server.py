"""The inspector as an MCP server: both eras, clean under our own rules, refusals as the specification wants them."""

import json

from mcp.client.client import Client

from mcp_wiretap.ask.server import PROMPTS, TOOLS, server
from tests.ask.asking import MODERN, held, over_http
from tests.ask.test_answers import HEALTHY, WRONG_NAME

TOOL_NAMES = {"overview", "failures", "operations", "exchange", "conversation", "streams", "rule", "compare"}


async def test_every_tool_answers_a_client_of_the_sdk():
    async with Client(server(held(WRONG_NAME, HEALTHY))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == TOOL_NAMES == set(TOOLS)
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools.values())
        arguments = {"rule": {"id": "HDR004"}, "compare": {"before": "1", "after": "2"}}
        flow = {"exchange": {"flow": "flow-1"}, "conversation": {"flow": "flow-1"}}
        for name in TOOL_NAMES - set(flow):
            result = await client.call_tool(name, arguments.get(name, {}))
            assert not result.is_error and result.content[0].text, name  # type: ignore[union-attr]
        for name, given in flow.items():  # the id begins in both recordings: the exact one of two is not clear
            assert (await client.call_tool(name, given)).is_error, name


async def test_arguments_that_do_not_fit_are_told_to_the_model():
    async with Client(server(held(HEALTHY))) as client:
        for name, given in (("failures", {"last": 0}), ("exchange", {}), ("rule", {"id": "X", "more": 1})):
            result = await client.call_tool(name, given)
            assert result.is_error and "do not fit" in result.content[0].text, name  # type: ignore[union-attr]


async def test_recordings_and_rules_are_resources_and_questions_are_prompts():
    async with Client(server(held(WRONG_NAME))) as client:
        uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert uris == {"wiretap://trace/1", "wiretap://rules"}
        for uri in (*uris, "wiretap://rule/HDR004"):
            assert (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
        prompts = (await client.list_prompts()).prompts
        assert {prompt.name for prompt in prompts} == set(PROMPTS) and all(prompt.description for prompt in prompts)
        got = await client.get_prompt("why-did-my-last-call-fail", {"tool": "echo"})
        assert 'tool="echo"' in got.messages[0].content.text  # type: ignore[union-attr]


async def test_modern_traffic_breaks_none_of_our_rules():
    async with over_http(held(WRONG_NAME)) as http:
        assert (await http.modern("server/discover"))["result"]["supportedVersions"]
        assert len((await http.modern("tools/list"))["result"]["tools"]) == len(TOOL_NAMES)
        assert (await http.modern("tools/call", "failures", name="failures", arguments={}))["result"]["content"]
        assert (await http.modern("resources/list"))["result"]["resources"]
        assert (await http.modern("resources/templates/list"))["result"]["resourceTemplates"]
        assert (await http.modern("resources/read", "wiretap://rules", uri="wiretap://rules"))["result"]["contents"]
        assert (await http.modern("prompts/list"))["result"]["prompts"]
        assert (await http.modern("tools/call", "nothing", name="nothing", arguments={}))["error"]["code"] == -32602
        assert (await http.modern("resources/read", "wiretap://no", uri="wiretap://no"))["error"]["code"] == -32602
        assert (await http.modern("tools/nothing"))["error"]["code"] == -32601
        assert [f for f in http.findings() if not f.startswith("info")] == []


async def test_legacy_traffic_breaks_none_of_our_rules():
    async with over_http(held(WRONG_NAME)) as http:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        await http.ask({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        version = {"mcp_protocol_version": "2025-11-25"}
        await http.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, **version)
        status, _, answer = await http.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **version)
        assert status == 200 and len(json.loads(answer)["result"]["tools"]) == len(TOOL_NAMES)
        assert [f for f in http.findings() if not f.startswith("info")] == []


async def test_wrong_requests_get_the_specifications_own_refusals():
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    async with over_http(held(HEALTHY)) as http:
        for wrong, code in (
            ({"mcp_method": "tools/list"}, -32020),  # no version beside a modern envelope
            ({"mcp_protocol_version": "2025-11-25", "mcp_method": "tools/list"}, -32020),
            ({"mcp_protocol_version": MODERN}, -32020),
            ({"mcp_protocol_version": MODERN, "mcp_method": "tools/call"}, -32020),
        ):
            status, _, answer = await http.ask(body, **wrong)
            assert (status, json.loads(answer)["error"]["code"]) == (400, code), wrong
        other = {**meta, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        unknown = {**body, "params": {"_meta": other}}
        status, _, answer = await http.ask(unknown, mcp_protocol_version="2099-01-01", mcp_method="tools/list")
        assert (status, json.loads(answer)["error"]["code"]) == (400, -32022)
        for method in ("GET", "DELETE"):
            status, headers, _ = await http.ask(None, method)
            assert status == 405 and headers["allow"] == "POST"
        assert (await http.ask(body, mcp_protocol_version=MODERN, mcp_method="tools/list", origin="http://evil.example"))[
            0
        ] == 403
        assert (await http.ask(body, mcp_protocol_version=MODERN, mcp_method="tools/list", host="evil.example"))[0] in (403, 421)
