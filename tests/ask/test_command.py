"""`mcp-wiretap mcp` with a client of the SDK: on stdio in both eras, and over HTTP behind its token."""

import sys
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from harness.children import Children
from mcp_wiretap.cli import main
from tests.ask.test_answers import HEALTHY, WRONG_NAME
from tests.cli.recordings import record

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
