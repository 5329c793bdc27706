"""`mcp.probe` in a running mitmproxy: what it sends, what it refuses, and the flows that it leaves."""

import asyncio

import pytest
from mitmproxy import exceptions
from mitmproxy.addons.view import View
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from tests.probe.test_prober import served
from tests.proxy import flows
from tests.replay.playing import RECORDINGS


@pytest.fixture
def addon():
    with flows.proxy() as addon:
        addon.view = View()
        addon.context.master.addons.add(addon.view)
        yield addon


def shown(addon, name: str, url: str) -> None:
    """Put the flows of a recording into the flow list, as if they had gone to another server."""
    port = int(url.split(":")[2].partition("/")[0])
    with (RECORDINGS / f"{name}.flow").open("rb") as file:
        found = [flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow)]
    for flow in found:
        flow.request.host, flow.request.port = "127.0.0.1", port
    addon.view.add(found)


def call(addon, *arguments: str) -> str:
    return addon.context.master.commands.call_strings("mcp.probe", list(arguments))


async def test_the_flows_of_a_probe_land_in_the_list_with_their_verdicts(addon, monkeypatch):
    loaded: list[HTTPFlow] = []

    async def load(flow: HTTPFlow) -> None:
        loaded.append(flow)

    monkeypatch.setattr(addon.context.master, "load_flow", load, raising=False)
    async with served("pagination-http") as url:
        shown(addon, "pagination-http", url)
        assert "modern era" in call(addon, "@all")
        await asyncio.gather(*vars(addon)["_probes"])
    verdicts = {flow.metadata["mcp.probe"] for flow in loaded}
    assert "H02 pass" in verdicts and "base" in verdicts and not [one for one in verdicts if one.endswith("fail")]


async def test_what_cannot_be_probed_is_said(addon):
    with pytest.raises(exceptions.CommandError, match="means no HTTP flow"):
        call(addon, "@all")
