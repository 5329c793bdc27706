"""`mcp-wiretap mcp` with a client of the SDK: on stdio in both eras, and over HTTP behind its token."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from harness.children import Children
from mcp_wiretap.cli import main
from test_servers.record import TS_CLIENT
from tests.ask.test_answers import HEALTHY, WRONG_NAME
from tests.cli.recordings import record
from tests.probe.test_prober import served
from tests.proxy import wire
from tests.proxy.test_changes import call, refused
from tests.replay.playing import RECORDINGS

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


def test_without_a_file_nothing_is_guessed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["mcp"])
    assert ended.value.code == 2


def test_a_file_that_is_not_there_is_said(tmp_path, capsys):
    assert main(["mcp", str(tmp_path / "no.flow")]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.e2e
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_asks_over_stdio(tmp_path: Path, era: Literal["auto", "legacy"]):
    record(tmp_path / "a.flow", WRONG_NAME)
    record(tmp_path / "b.flow", HEALTHY)
    command = ["-m", "mcp_wiretap", "mcp", str(tmp_path / "a.flow"), str(tmp_path / "b.flow")]
    parameters = StdioServerParameters(command=sys.executable, args=command)
    async with Client(stdio_client(parameters), mode=era) as client:
        told = await client.call_tool("failures", {})
        assert "HDR006" in told.content[0].text  # type: ignore[union-attr]
        told = await client.call_tool("compare", {"before": "b.flow", "after": "a.flow"})
        assert "HDR006" in told.content[0].text  # type: ignore[union-attr]


@pytest.mark.e2e
def test_over_http_the_token_is_needed(tmp_path: Path):
    record(tmp_path / "a.flow", WRONG_NAME)
    with Children() as children:
        command = [sys.executable, "-m", "mcp_wiretap", "mcp", str(tmp_path / "a.flow"), "--http", "0"]
        child = children.start("mcp", command)
        url = child.wait_for(r"http://\S+", 60).group()
        header = child.wait_for(r"Authorization: Bearer \S+", 60).group()
        name, _, token = header.partition(": ")
        assert httpx2.post(url, json=CALL, headers=ACCEPT).status_code == 401
        answer = httpx2.post(url, json=CALL, headers={**ACCEPT, name: token})
        assert answer.status_code == 200 and answer.json()["result"]["tools"]


@pytest.mark.e2e
async def test_the_server_that_the_user_named_is_probed_and_asked_again(tmp_path: Path):
    async with served("pagination-http") as url:
        command = ["-m", "mcp_wiretap", "mcp", str(RECORDINGS / "pagination-http.flow"), "--to", url]
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=command))) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert {"replay", "probe"} <= tools
            operations = await client.call_tool("operations", {"method": "resources/list"})
            flow = operations.content[0].text.split()[0]  # type: ignore[union-attr]
            told = (await client.call_tool("probe", {"flow": flow})).content[0].text  # type: ignore[union-attr]
            assert "H02" in told and "0 fail" in told
            told = (await client.call_tool("replay", {"flow": flow})).content[0].text  # type: ignore[union-attr]
            assert "same" in told


@pytest.mark.e2e
async def test_live_traffic_is_asked_about_inside_mitmweb(tmp_path: Path):
    server = wire.Server()
    server.replies.put(refused())
    with wire.proxy(tmp_path, server, tool="mitmweb", options=["--set", "web_open_browser=false"]) as proxy:
        with proxy.connect() as stream:
            stream.sendall(call(header="Rome"))
            assert wire.read_message(stream) is not None
        origin, _, query = proxy.page.partition("?")
        headers = {"Authorization": f"Bearer {query.removeprefix('token=')}"}
        url = "/".join(origin.split("/")[:3]) + "/mcp/rpc"
        async with httpx2.AsyncClient(headers=headers) as http, Client(streamable_http_client(url, http_client=http)) as client:
            told = (await client.call_tool("failures", {})).content[0].text  # type: ignore[union-attr]
    server.close()
    assert "-32020" in told and "get_weather" in told


ASK = """
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
const [url, mode] = process.argv.slice(1);
const client = new Client({ name: 'asker', version: '1' }, mode === 'legacy' ? {} : { versionNegotiation: { mode: 'auto' } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
console.log((await client.callTool({ name: 'failures', arguments: {} })).content[0].text);
await client.close();
"""


@pytest.mark.e2e
@pytest.mark.skipif(
    shutil.which("node") is None or not (TS_CLIENT / "node_modules").exists(),
    reason="needs Node and an npm install in scripts/ts",
)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_of_the_typescript_sdk_asks(tmp_path: Path, mode: str):
    record(tmp_path / "a.flow", WRONG_NAME)
    with Children() as children:
        command = [sys.executable, "-m", "mcp_wiretap", "mcp", str(tmp_path / "a.flow"), "--http", "0", "--no-token"]
        url = children.start("mcp", command).wait_for(r"http://\S+", 60).group()
        asked = ["node", "--input-type=module", "-e", ASK, url, mode]
        done = subprocess.run(asked, cwd=TS_CLIENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "HDR006" in done.stdout, done.stderr
