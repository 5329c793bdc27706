"""Flows read from a file into a running proxy."""

import asyncio

import pytest
from mitmproxy import eventsequence

from mcp_wiretap.proxy import loaded
from tests.proxy import flows


@pytest.fixture
def addon(monkeypatch):
    monkeypatch.setattr(loaded, "QUIET", 0.02)
    with flows.proxy(mcp_select=["HDR"]) as addon:
        yield addon


async def load(addon, *some):
    for flow in some:
        for event in eventsequence.iterate(flow):
            await addon.context.master.addons.handle_lifecycle(event)


def stored(start, **kwargs):
    flow = flows.finished(**kwargs)
    flow.request.timestamp_start, flow.request.timestamp_end = start, start + 0.01
    flow.response.timestamp_start, flow.response.timestamp_end = start + 0.02, start + 0.03
    return flow


async def settle():
    await asyncio.sleep(0.15)


async def test_a_loaded_flow_has_a_verdict_at_once(addon):
    flow = stored(10.0, made=flows.request(headers={"Mcp-Name": "other"}))
    await load(addon, flow)
    assert "[HDR006]" in flow.comment and flow.marked == ":red_circle:"


async def test_flows_are_inspected_anew_in_the_order_of_their_times(addon):
    # The file has the refused probe last; in time it came first, so that its server is known only in the second look.
    later = stored(20.0)
    probe = stored(10.0, answer=flows.response(b"no", "text/plain", status=400))
    await load(addon, later, probe)
    assert len(addon.loaded.watches) == 0
    await settle()
    (watch,) = addon.loaded.watches
    assert [e.flow for e in watch.inspector.exchanges.values()] == [probe.id, later.id]
    assert probe.metadata["mcp.era"] == "modern"


async def test_a_flow_with_response_and_error_counts_once(addon):
    flow = flows.broken(stored(10.0))
    await load(addon, flow)
    await settle()
    assert len(addon.loaded.watches[0].inspector.exchanges) == 1


async def test_loaded_flows_do_not_mix_with_live_traffic(addon):
    await load(addon, stored(10.0))
    await settle()
    assert not addon.watch.inspector.exchanges


async def test_each_file_is_a_trace_of_its_own(addon):
    for start in (10.0, 20.0):
        await load(addon, stored(start))
        await settle()
    assert [len(watch.inspector.exchanges) for watch in addon.loaded.watches] == [1, 1]
    assert len(addon.inspectors()) == 3


async def test_what_waits_is_inspected_when_mitmproxy_goes_down(addon):
    flow = stored(10.0)
    await load(addon, flow)
    addon.done()
    assert len(addon.loaded.watches) == 1


async def test_loading_does_not_hold_up_the_network(addon, monkeypatch):
    monkeypatch.setattr(loaded, "SLICE", 0.0)
    await load(addon, *(stored(float(n)) for n in range(30)))
    ticks = 0
    while not addon.loaded.watches:
        await asyncio.sleep(0)
        ticks += 1
    assert ticks > 30


async def test_the_recorded_endpoint_counts_in_reverse_mode(addon):
    addon.context.options.update(mode=["reverse:http://127.0.0.1:9"])
    flow = stored(10.0)
    flow.server_conn.address = ("mcp.example", 8000)
    flow.request.data.host, flow.request.data.port = "127.0.0.1", 9  # as mitmproxy rewrites it
    await load(addon, flow)
    await settle()
    assert list(addon.loaded.watches[0].inspector.endpoints) == ["http://mcp.example:8000/mcp"]


async def test_in_reverse_mode_a_flow_that_was_not_rewritten_stays_as_it_is(addon):
    addon.context.options.update(mode=["reverse:http://127.0.0.1:9"])
    flow = stored(10.0)
    flow.server_conn.address = ("elsewhere", 1)
    assert loaded.recorded_address(flow) is None


async def test_more_flows_than_are_remembered_keep_their_first_verdict(addon):
    addon.context.configure(addon, mcp_max_state=3)
    some = [stored(float(n)) for n in range(5)]
    await load(addon, *some)
    await settle()
    assert len(addon.loaded.watches[0].inspector.exchanges) == 3
    assert all(flow.comment for flow in some)


async def test_a_flow_that_cannot_be_read_is_a_fault_and_no_more(addon):
    flow = stored(10.0)
    flow.request.data.timestamp_start = "never"
    await load(addon, flow, other := stored(11.0))
    await settle()
    assert addon.faults.count and other.comment
