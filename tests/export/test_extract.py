"""`mcp-wiretap extract`: the smallest recording that shows a finding, and a test that expects it."""

import asyncio
import runpy
from pathlib import Path

import pytest
from mitmproxy.http import HTTPFlow

from mcp_wiretap.cli import main
from mcp_wiretap.export.extract import Search
from mcp_wiretap.proxy.flow_io import flows_of
from mcp_wiretap.proxy.replay_server import script_of
from tests.cli.recordings import record
from tests.replay.playing import RECORDINGS, playing, recorded

MIRRORED = """
modern server/discover {}
  -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
modern tools/list {}
  -> tool region {"region": {"type": "string", "x-mcp-header": "Region"}}
modern tools/call {"name": "echo", "arguments": {}}
  -> result {"content": []}
modern tools/call {"name": "region", "arguments": {"region": "us"}}
  header Mcp-Param-Region: eu
  header Cookie: sid=a-cookie-of-the-example-1
  -> result {"content": []}
modern tools/call {"name": "echo", "arguments": {}}
  -> result {"content": []}
"""


def _ids(path: Path) -> list[str]:
    return [flow.id for flow in flows_of(path) if isinstance(flow, HTTPFlow)]


def test_a_header_that_says_something_else_needs_the_list_that_declares_it(tmp_path: Path) -> None:
    flows = record(tmp_path / "a.flow", MIRRORED)
    out = tmp_path / "case"
    assert main(["extract", str(tmp_path / "a.flow"), "--conversation", flows[3], "--output", str(out), "--name", "region"]) == 0
    assert set(_ids(out / "region.flow")) == {flows[1], flows[3]}
    assert b"a-cookie-of-the-example-1" not in (out / "region.flow").read_bytes()
    runpy.run_path(str(out / "test_region.py"))["test_region"](tmp_path)
    assert "PAR014" in (out / "test_region.py").read_text()


def test_the_test_fails_when_the_finding_is_gone(tmp_path: Path) -> None:
    flows = record(tmp_path / "a.flow", MIRRORED)
    out = tmp_path / "case"
    assert main(["extract", str(tmp_path / "a.flow"), "--conversation", flows[3], "--output", str(out), "--name", "region"]) == 0
    record(out / "region.flow", MIRRORED.replace("Region: eu", "Region: us"))
    with pytest.raises(AssertionError):
        runpy.run_path(str(out / "test_region.py"))["test_region"](tmp_path)


def test_where_nothing_was_found_there_is_no_test_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows = record(tmp_path / "a.flow", MIRRORED)
    assert main(["extract", str(tmp_path / "a.flow"), "--conversation", flows[1], "--output", str(tmp_path / "case")]) == 2
    assert "nothing was found" in capsys.readouterr().err


def test_the_recording_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows = record(tmp_path / "a.flow", MIRRORED)
    before = (tmp_path / "a.flow").read_bytes()
    assert main(["extract", str(tmp_path / "a.flow"), "--conversation", flows[3], "--output", str(tmp_path), "--name", "a"]) == 2
    assert "is the recording itself" in capsys.readouterr().err
    assert (tmp_path / "a.flow").read_bytes() == before


def test_the_search_finds_the_few_of_many() -> None:
    needed = {"17", "63"}
    search = Search(lambda flows: needed <= set(flows))
    assert set(search.smallest([], [str(n) for n in range(100)])) == needed
    assert not search.exhausted


def test_the_search_ends_where_its_budget_does() -> None:
    search = Search(lambda flows: {"17", "63"} <= set(flows), budget=5)
    found = search.smallest([], [str(n) for n in range(100)])
    assert {"17", "63"} <= set(found) and search.exhausted


async def test_a_test_against_a_server_replays_the_conversation_with_what_opens_it(tmp_path: Path, monkeypatch) -> None:
    script = recorded("dual-era-http")
    call = next(take for take in script.mcp if take.request is not None and take.request.method == "tools/call")
    source = str(RECORDINGS / "dual-era-http.flow")
    assert main(["extract", source, "--conversation", call.flow, "--output", str(tmp_path), "--name", "again", "--server"]) == 0
    kept = _ids(tmp_path / "again.flow")
    assert call.flow in kept and len(kept) < len(script.mcp)
    async with playing(script, fast=True) as origin:
        monkeypatch.setenv("MCP_SERVER", f"{origin}/{script.endpoints[0].split('/', 3)[3]}")
        test = runpy.run_path(str(tmp_path / "test_again.py"))["test_again"]
        await asyncio.to_thread(test, tmp_path)


async def test_a_test_against_a_server_fails_where_the_server_answers_otherwise(tmp_path: Path, monkeypatch) -> None:
    record(tmp_path / "was.flow", MIRRORED)
    record(tmp_path / "is.flow", MIRRORED.replace('{"content": []}', '{"content": [{"type": "text", "text": "else"}]}'))
    flows = _ids(tmp_path / "was.flow")
    main(
        [
            "extract",
            str(tmp_path / "was.flow"),
            "--conversation",
            flows[2],
            "--output",
            str(tmp_path),
            "--name",
            "again",
            "--server",
        ]
    )
    script, _ = script_of(tmp_path / "is.flow")
    async with playing(script, fast=True) as origin:
        monkeypatch.setenv("MCP_SERVER", f"{origin}/mcp")
        test = runpy.run_path(str(tmp_path / "test_again.py"))["test_again"]
        with pytest.raises(AssertionError):
            await asyncio.to_thread(test, tmp_path)
