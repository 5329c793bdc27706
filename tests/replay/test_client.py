"""A recorded client against live servers: the same, changed, gone, of the other era."""

import json
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcp_wiretap.replay.client import Client, Stopped
from mcp_wiretap.replay.http import Place
from mcp_wiretap.replay.outcome import Report, report_of
from mcp_wiretap.replay.render import text_of
from mcp_wiretap.replay.scope import NotChosen, conversation_of, repeated, takes_of
from mcp_wiretap.replay.script import Script, Take
from mcp_wiretap.rule import RuleBook
from test_servers.config import CONFIGS, load, parse
from test_servers.serving import bind, running
from tests.replay.playing import RECORDINGS, recorded, written

BOOK = RuleBook.of(select=["HDR", "PAR", "MRT"])


def judged(name: str) -> Script:
    from mcp_wiretap.proxy.replay_server import script_of

    return script_of(RECORDINGS / f"{name}.flow", BOOK)[0]


@asynccontextmanager
async def serving(name: str, **changes: Any):
    """A test server, with other members in its config."""
    data = json.loads((CONFIGS / f"{name}.json").read_text())
    config = parse({**data, **changes}, name) if changes else load(CONFIGS / f"{name}.json")
    async with running([config], [bind(0, exact=True)]) as (server,):
        yield server.url


async def replayed(script: Script, url: str, takes: Sequence[Take] | None = None, **options: Any) -> Report:
    chosen = takes if takes is not None else takes_of(script)
    client = Client(script, chosen, Place.of(url), judge=BOOK, **{"fast": True, "patience": 10.0, **options})
    try:
        await client.run()
    except Stopped as stopped:
        return report_of(script, client, stopped)
    return report_of(script, client)


@pytest.mark.e2e
@pytest.mark.parametrize(
    "name",
    [
        "modern-http",
        "mrtr-showcase-http",
        "modern-mrtr-http",
        "subscriptions-modern-http",
        "tasks-modern-http",
        "pagination-http",
        "xmcpheader-modern-http",
        "logging-legacy-http",
        "subscriptions-legacy-http",
        "tasks-legacy-http",
        "legacy-sse",
        "dual-era-http",
        "url-elicitation",
    ],
)
async def test_a_restarted_server_answers_the_same(name):
    async with serving(name) as url:
        report = await replayed(judged(name), url)
    assert report.good, text_of(report)
    assert len(report.operations) > 0 and report.new == [] and report.gone == []


@pytest.mark.e2e
async def test_the_recorded_pace_is_kept():
    async with serving("modern-http") as url:
        report = await replayed(judged("modern-http"), url, fast=False)
    assert report.good, text_of(report)


@pytest.mark.e2e
async def test_one_conversation_of_a_session_is_replayed_with_its_opening():
    script = judged("dual-era-http")
    call = next(
        take
        for take in script.mcp
        if not take.modern and take.request is not None and str(take).startswith("tools/call collect_elicitation")
    )
    takes = conversation_of(script, {call.flow})
    assert [str(take).split()[0] for take in takes if take.is_call] == ["initialize", "tools/call"]
    async with serving("dual-era-http") as url:
        report = await replayed(script, url, takes)
    assert report.good, text_of(report)


@pytest.mark.e2e
async def test_one_tool_changed_is_what_is_told():
    script = recorded("nullable-fields-http")
    async with serving("nullable-fields-http") as url:
        before = await replayed(script, url)
    async with serving("nullable-fields-http", tools=[{"preset": "echo"}]) as url:
        after = await replayed(script, url)
    assert before.good, text_of(before)
    changed = {(operation.method, operation.outcome) for operation in after.operations if operation.outcome != "same"}
    assert changed == {("tools/list", "changed"), ("tools/call", "failed")}
    listed = next(operation for operation in after.operations if operation.method == "tools/list")
    assert {(d.where, d.was is None, d.now is None) for d in listed.differences} == {
        ("/tools/record_shipment", False, True),
        ("/tools/echo", True, False),
    }
    assert not after.good


@pytest.mark.e2e
async def test_a_modern_recording_at_a_legacy_server_stops_with_the_reason():
    async with serving("logging-legacy-http") as url:
        report = await replayed(recorded("modern-http"), url)
    assert report.stopped is not None and "answers in the legacy era only; the recording is modern" in report.stopped
    assert (report.era_was, report.era_now) == ("modern", "legacy") and not report.good


@pytest.mark.e2e
async def test_a_legacy_recording_at_a_modern_server_stops_with_the_reason():
    transport = {"type": "streamable-http", "modern": {"legacy": "reject"}}
    async with serving("modern-http", transport=transport) as url:
        report = await replayed(recorded("subscriptions-legacy-http"), url)
    assert report.stopped is not None and "answers in the modern era only" in report.stopped, text_of(report)


async def test_a_server_that_is_down_stops_the_replay():
    report = await replayed(recorded("modern-http"), "http://127.0.0.1:9/mcp")
    assert report.stopped is not None and "http://127.0.0.1:9 cannot be reached" in report.stopped
    assert [operation.outcome for operation in report.operations] == ["failed"]


def test_calls_that_may_do_something_twice_are_named():
    script = written("""
modern tools/list
  -> tool look {} {"annotations": {"readOnlyHint": true}}
  -> tool put {} {"annotations": {"idempotentHint": true}}
  -> tool pay
modern tools/call {"name": "look", "arguments": {}}
  -> result {"content": []}
modern tools/call {"name": "put", "arguments": {}}
  -> result {"content": []}
modern tools/call {"name": "pay", "arguments": {}}
  -> result {"content": []}
modern tools/call {"name": "pay", "arguments": {}}
  -> result {"content": []}
modern tools/call {"name": "unlisted", "arguments": {}}
  -> result {"content": []}
""")
    assert repeated(script, takes_of(script)) == [("pay", 2), ("unlisted", 1)]


def test_of_several_servers_one_has_to_be_chosen():
    script = recorded("demo")
    with pytest.raises(NotChosen, match=r"http://127\.0\.0\.1:3100/mcp, http://127\.0\.0\.1:3200/mcp"):
        takes_of(script)
    chosen = takes_of(script, script.endpoints[1])
    assert {take.origin for take in chosen} == {"http://127.0.0.1:3200"}
    with pytest.raises(NotChosen, match="--endpoint http://elsewhere/mcp is not in the recording"):
        takes_of(script, "http://elsewhere/mcp")
