"""Work in turns: the order stays, the loop is not held, and what is found does not depend on where the work rested."""

import asyncio
import gzip
import time

import pytest
from mitmproxy.test import taddons

from mcp_wiretap.proxy import inspection as module
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.inspection import Inspection
from mcp_wiretap.proxy.wiretap import Wiretap
from mcp_wiretap.wire.pace import breathe
from tests.proxy import flows
from tests.proxy.holding import turns
from tests.proxy.test_capture import end, stream


def burn(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        breathe()


class Done(list):
    def work(self, name, seconds=0.0):
        def do():
            burn(seconds)
            self.append(name)

        return do


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
def flow():
    return flows.live()


async def test_short_work_is_done_at_once(faults, flow):
    done, inspection = Done(), Inspection(faults)
    assert inspection.now("hook", flow, done.work("one")) is None
    assert done == ["one"]


async def test_long_work_rests_and_may_be_waited_for(faults, flow):
    done, inspection = Done(), Inspection(faults, slice_s=0.002)
    turns = 0

    async def others():
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    unfinished = inspection.now("hook", flow, done.work("long", 0.2))
    assert unfinished is not None and done == []
    await unfinished
    assert done == ["long"]
    await other
    assert turns >= 3


async def test_what_was_put_in_first_is_done_first(faults, flow):
    done, inspection = Done(), Inspection(faults, slice_s=0.001)
    unfinished = inspection.now("hook", flow, done.work("long", 0.2))
    assert unfinished is not None
    inspection.later("chunk", flow, done.work("chunk"))
    last = inspection.now("hook", flow, done.work("end"))
    assert done == []
    await last
    assert done == ["long", "chunk", "end"]
    await unfinished


async def test_what_is_put_off_is_done_in_the_next_turn(faults, flow):
    done, inspection = Done(), Inspection(faults)
    inspection.later("chunk", flow, done.work("chunk"))
    assert done == []
    await asyncio.sleep(0)
    assert done == ["chunk"]


async def test_what_comes_now_is_done_after_what_was_put_off(faults, flow):
    done, inspection = Done(), Inspection(faults)
    inspection.later("chunk", flow, done.work("chunk"))
    assert inspection.now("hook", flow, done.work("end")) is None
    assert done == ["chunk", "end"]


def test_without_a_loop_all_is_done_at_once(faults, flow):
    done, inspection = Done(), Inspection(faults, slice_s=0.001)
    inspection.later("chunk", flow, done.work("chunk", 0.01))
    assert inspection.now("hook", flow, done.work("end", 0.01)) is None
    assert done == ["chunk", "end"]


async def test_at_the_end_all_is_done(faults, flow):
    done, inspection = Done(), Inspection(faults, slice_s=0.001)
    inspection.now("hook", flow, done.work("long", 0.02))
    inspection.later("chunk", flow, done.work("chunk"))
    inspection.drain()
    assert done == ["long", "chunk"]


async def test_a_fault_of_one_work_does_not_lose_the_next(faults, flow):
    done, inspection = Done(), Inspection(faults)

    def fails():
        burn(0.02)
        raise ValueError("broken")

    inspection.now("hook", flow, fails)
    unfinished = inspection.now("hook", flow, done.work("next"))
    if unfinished is not None:
        await unfinished
    assert done == ["next"]
    assert [(fault.where, fault.error, fault.flow) for fault in faults.listed] == [("hook", "ValueError: broken", flow.id)]


async def test_a_hook_does_not_wait_for_ever_and_less_for_others(faults, flow, monkeypatch):
    monkeypatch.setattr(module, "SHORT_PATIENCE", 0.01)
    done, inspection = Done(), Inspection(faults, slice_s=0.001)
    inspection.now("hook", flow, done.work("long", 0.5))
    began = time.perf_counter()
    await inspection.now("hook", flows.live(), done.work("other"))
    assert time.perf_counter() - began < 0.4
    assert done == []
    inspection.drain()


async def test_the_hook_that_is_over_is_not_taken_for_the_one_at_work(faults, flow):
    inspection = Inspection(faults, slice_s=0.001)
    seen = []

    def work():
        seen.append(inspection.inside)
        burn(0.01)
        seen.append(inspection.inside)

    await inspection.now("hook", flow, work)
    assert seen == [flow, None]


@pytest.fixture
async def addon():
    addon = Wiretap()
    with taddons.context(addon) as context:
        context.configure(addon)
        addon.context = context
        yield addon


async def test_a_few_bytes_that_hold_a_million_events_stop_nobody(addon):
    flow = flows.live()
    body = gzip.compress(b"data: x\n\n" * 930_000)
    assert len(body) < 20_000

    async def work():
        tap = stream(addon, flow, headers={"content-encoding": "gzip"})
        assert tap(body) == body
        flow.response.timestamp_end = 1001.0
        await addon.response(flow)

    assert await turns(work) >= 2
    addon._capture.inspection.drain()
    assert len(flow.metadata["mcp.events"]) == 20_000
    assert "what follows its first 20000 events is not read" in flow.metadata["mcp.notes"]


async def test_bytes_are_on_their_way_before_they_are_looked_at(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    assert tap(flows.event(flows.result())) == flows.event(flows.result())
    exchange = addon.watch.inspector.exchanges[flow.id]
    assert exchange.stream.count == 0
    await asyncio.sleep(0)
    assert exchange.stream.count == 1
    end(addon, flow)
    assert flow.comment.startswith("modern tools/call echo -> complete")


async def judged(body, slice_s):
    """What is said of the answer to a tools/list, and whether its inspection rested."""
    with taddons.context(addon := Wiretap()) as context:
        context.configure(addon)
        addon._capture.inspection = Inspection(addon.faults, slice_s)
        flow = flows.live(flows.request("tools/list", {}))
        flow.id = "the-flow"
        addon.request(flow)
        flow.response = flows.response(body)
        addon.responseheaders(flow)
        unfinished = addon.response(flow)
        if unfinished is not None:
            await unfinished
        addon._capture.inspection.drain()
        said = {key: flow.metadata[key] for key in ("mcp.rules", "mcp.severity", "mcp.outcome", "mcp.notes")}
        return unfinished is not None, (flow.comment, said)


async def test_the_verdict_of_a_long_message_is_the_same_with_rests_and_without():
    tools = [{"name": f"tool_{n}", "description": "d" * 20, "inputSchema": {"type": "objec"}} for n in range(2_000)]
    body = flows.result({"tools": tools, "ttlMs": 1, "cacheScope": "public"})
    (rested, with_rests), (rested_too, without) = await judged(body, 0.001), await judged(body, 1_000.0)
    assert rested and not rested_too
    assert with_rests == without
