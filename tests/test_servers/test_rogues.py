"""Rogue servers and clients: each has its script and its expectations, and a few are met live, through the proxy."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from test_servers.config import CONFIGS, expected_findings, load
from test_servers.drive import main as drive
from test_servers.record import WIRETAP, main
from test_servers.rogue_clients import ROGUE_CLIENTS
from test_servers.scenarios import SCENARIOS
from tests.test_servers.serving import preset, serve

ROGUES = sorted((CONFIGS / "rogues").glob("*.json"))
LAWFUL = {"rogue-drip", "rogue-codings", "rogue-endless-streams"}
"""Unusual, and no finding of warning or error severity."""


def answers(method: str, *replies: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"fault": "answers", "params": {"method": method, "replies": list(replies), **more}}


@pytest.mark.parametrize("path", ROGUES, ids=lambda path: path.stem)
def test_every_rogue_has_a_scenario_a_description_and_expectations(path: Path) -> None:
    assert path.stem in SCENARIOS
    assert load(path).description
    expected = expected_findings(path)
    assert bool(expected) == (path.stem not in LAWFUL)
    assert all(expected.values()), "each id needs its reason"


@pytest.mark.parametrize("client", ROGUE_CLIENTS.values(), ids=lambda client: client.name)
def test_every_rogue_client_has_a_server_a_description_and_expectations(client: Any) -> None:
    assert (CONFIGS / f"{client.config}.json").exists()
    assert client.about
    assert all(expected_findings(client.path).values())


def test_an_unknown_rogue_client_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert drive(["--rogue", "no-such"]) == 2
    assert "client-headers" in capsys.readouterr().err


async def test_a_patch_changes_the_honest_answer() -> None:
    fault = answers("tools/list", {"patch": {"result": {"ttlMs": None, "cacheScope": "shared"}}, "status": 201})
    async with serve(tools=[preset("echo")], faults=[fault]) as raw:
        reply = await raw.call("tools/list")
    result = reply.message["result"]
    assert (reply.status, result["cacheScope"], "ttlMs" in result) == (201, "shared", False)
    assert result["tools"][0]["name"] == "echo"


async def test_replies_are_given_in_turn_and_the_last_one_from_then_on() -> None:
    said = [{"message": {"jsonrpc": "2.0", "id": "$id", "result": {"turn": turn}}} for turn in (1, 2)]
    async with serve(tools=[preset("echo")], faults=[answers("tools/call", *said, name="echo")]) as raw:
        replies = [await raw.call("tools/call", {"name": "echo", "arguments": {}}) for _ in range(3)]
        other = await raw.call("tools/list")
    assert [(reply.message["id"], reply.message["result"]["turn"]) for reply in replies] == [(1, 1), (2, 2), (3, 2)]
    assert "tools" in other.message["result"]


async def test_a_script_streams_what_it_says_around_the_honest_answer() -> None:
    late = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "$token", "progress": 1}}
    fault = answers("tools/call", {"events": [": hello\n\n", "$answer", late]})
    async with serve(tools=[preset("echo")], faults=[fault]) as raw:
        params = {"name": "echo", "arguments": {"message": "hi"}, "_meta": {"progressToken": "t"}}
        reply = await raw.call("tools/call", params)
    assert reply.message["params"] == {"progressToken": "t", "progress": 1}
    assert reply.body.startswith(b": hello\n\nevent: message\ndata: ") and b"Echo: hi" in reply.body


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
async def test_codings_encode_what_the_client_decodes(coding: str) -> None:
    async with serve(tools=[preset("echo")], faults=[{"fault": "codings", "params": {"codings": [coding]}}]) as raw:
        reply = await raw.call("tools/call", {"name": "echo", "arguments": {"message": "Zürich"}})
    assert reply.headers["content-encoding"] == coding
    assert "Zürich" in reply.message["result"]["content"][0]["text"]


async def test_a_careless_server_serves_what_an_honest_one_refuses() -> None:
    call = {"name": "echo", "arguments": {"message": "hi"}}
    async with serve(tools=[preset("echo")]) as raw:
        assert (await raw.call("tools/call", call, replace={"mcp-name": "other"})).code == -32020
    async with serve(tools=[preset("echo")], faults=[{"fault": "careless"}]) as raw:
        assert "result" in (await raw.call("tools/call", call, replace={"mcp-name": "other"})).message


@pytest.mark.e2e
@pytest.mark.parametrize(
    "name", ["rogue-result-type", "rogue-cut-streams", "rogue-codings", "rogue-legacy-streams", "client-states"]
)
def test_what_is_met_live_is_what_is_expected(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--output", str(tmp_path)]) == 0, capsys.readouterr().err
    command = [str(WIRETAP), "audit", "--format", "json", "--fail-on", "never", str(tmp_path / f"{name}.flow")]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    party = "client" if name in ROGUE_CLIENTS else "server"
    found = {f["rule"] for f in report["findings"] if f["party"] == party and f["severity"] != "info"}
    beside = ROGUE_CLIENTS[name].path if name in ROGUE_CLIENTS else CONFIGS / "rogues" / f"{name}.json"
    assert found == set(expected_findings(beside))
    assert report["faults"] == []
