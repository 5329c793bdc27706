"""Real clients and servers through the wrapper: seen live, recorded, judged as over HTTP; played again on either side."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.stdio.running import LONG

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and sockets")]

ROOT = Path(__file__).parents[2]
CLI = [sys.executable, "-m", "mcp_wiretap"]
SERVER = [sys.executable, "-m", "test_servers", str(ROOT / "test_servers/configs/stdio-everything.json")]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"message": "x"}),
    ("send_progress", {}),
    ("send_notification", {"message": "m"}),
    ("write_to_stderr", {"message": "oops"}),
    ("add", {"a": 1, "b": 2}),
]


async def talk(command: list[str], mode: str) -> list[str]:
    """A session of the official SDK: what the tools answered."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ), cwd=ROOT)
    async with Client(parameters, mode=mode) as client:
        assert (await client.list_tools()).tools
        return [(await client.call_tool(name, arguments)).content[0].text for name, arguments in CALLS]


def audited(path: Path) -> dict[str, Any]:
    done = subprocess.run([*CLI, "audit", str(path), "--format", "json"], capture_output=True, timeout=LONG, cwd=ROOT)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["faults"] == []
    return report


def said(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted((f["rule"], f["severity"], f["message"]) for f in report["findings"])


def shape(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = ("kind", "transport", "era", "revision", "http_method", "method", "name", "outcome", "status")
    return [tuple(flow[name] for name in names) for flow in sorted(report["flows"], key=lambda f: f["started"])]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[tuple[Path, Path, "subprocess.Popen[bytes]"]]:
    """A mitmdump that hears wrappers: its socket, its recording, its process."""
    path, flows = tmp_path / "s", tmp_path / "live.flow"
    command = [*CLI, "dump", "-q", "-p", "0", "--listen-host", "127.0.0.1", "-w", str(flows), "--set", f"mcp_socket={path}"]
    process = subprocess.Popen(command, cwd=tmp_path)
    end = time.monotonic() + LONG
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.1)
    yield path, flows, process
    process.kill()
    process.wait()


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy", "auto"])
async def test_a_session_is_seen_live_and_recorded_alike(
    tmp_path: Path, proxy: tuple[Path, Path, "subprocess.Popen[bytes]"], mode: str
) -> None:
    path, flows, process = proxy
    record = tmp_path / "record.flow"
    wrapper = [*CLI, "stdio", "--socket", str(path), "--record", str(record), "--name", "everything", "--", *SERVER]
    answers = await talk(wrapper, mode)
    assert answers[0] == "Echo: x"
    await asyncio.sleep(1)
    process.terminate()
    await asyncio.to_thread(process.wait, LONG)
    live, recorded = audited(flows), audited(record)
    assert shape(live) == shape(recorded)
    assert said(live) == said(recorded)
    assert live["summary"]["error"] == live["summary"]["warning"] == 0
    assert [e["transport"] for e in live["endpoints"]] == ["stdio"]
    assert live["endpoints"][0]["url"] == "stdio://everything"
    [own] = [flow["process"] for flow in live["flows"] if flow["kind"] == "process"]
    assert own["exit"] == 0
    assert own["stderr_bytes"] > 0


async def test_nothing_changes_for_the_client_when_the_proxy_is_killed(
    proxy: tuple[Path, Path, "subprocess.Popen[bytes]"],
) -> None:
    path, _, process = proxy
    command = [*CLI, "stdio", "--inline", "--socket", str(path), "--", *SERVER]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ), cwd=ROOT)
    async with Client(parameters, mode="2026-07-28") as client:
        first = await client.call_tool("echo", {"message": "before"})
        process.kill()
        then = await client.call_tool("echo", {"message": "after"})
    assert [first.content[0].text, then.content[0].text] == ["Echo: before", "Echo: after"]


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_recording_plays_either_side(tmp_path: Path, mode: str) -> None:
    record = tmp_path / "record.flow"
    answers = await talk([*CLI, "stdio", "--socket", "nowhere", "--record", str(record), "--", *SERVER], mode)
    again = await talk([*CLI, "serve", str(record), "--stdio", "--timing", "fast"], mode)
    assert again == answers
    command = " ".join(SERVER)
    replay = [*CLI, "replay", str(record), "--command", command, "--yes", "--timing", "fast", "--format", "json"]
    done = await asyncio.to_thread(subprocess.run, replay, capture_output=True, timeout=LONG, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("greeting", "STD001"),
        ("pretty", "STD001"),
        ("not-utf8", "STD001"),
        ("twice", "RPC029"),
        ("cut", "STD008"),
        ("deaf", "STD007"),
    ],
)
def test_a_server_that_spoils_its_pipes_is_found_out(tmp_path: Path, name: str, rule: str) -> None:
    record = tmp_path / "record.flow"
    rogue = [*SERVER, "--stdio", "--misbehave", name]
    command = [*CLI, "stdio", "--socket", "nowhere", "--record", str(record), "--", *rogue]
    meta = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "c", "version": "1"}, "clientCapabilities": {}}
    params = {"_meta": {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}}
    asked = b""
    for number, method in enumerate(("server/discover", "tools/list"), 1):
        asked += json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
    subprocess.run(command, input=asked, capture_output=True, timeout=LONG, cwd=ROOT)
    found = {finding["rule"] for finding in audited(record)["findings"] if finding["severity"] != "info"}
    assert rule in found
    assert found <= {rule, "STD001"}
