"""`mcp_replay` in a real mitmproxy whose upstream does not exist."""

import asyncio

import pytest
from mitmproxy import exceptions
from mitmproxy.addons.view import View
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader
from mitmproxy.test import taddons

from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.wiretap import Wiretap
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector
from test_servers.config import CONFIGS, load
from test_servers.scenarios import Target, run
from test_servers.serving import bind, running
from tests.proxy import flows, wire
from tests.replay.playing import RECORDINGS, Caller, recorded


class Gone:
    """A server that is not there."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["modern-mrtr-http", "subscriptions-modern-http", "subscriptions-legacy-http", "legacy-sse"])
async def test_the_recording_answers_in_the_place_of_its_server(name, tmp_path, capsys):
    url = recorded(name).endpoints[0]
    path = url.split("/", 3)[3]
    options = ["--set", f"mcp_replay={RECORDINGS / f'{name}.flow'}"]
    with wire.proxy(tmp_path, Gone(url), options=options) as proxy:
        for _ in range(2):
            target = Target(f"http://127.0.0.1:{proxy.ports[0]}/{path}", sse=name == "legacy-sse")
            assert await run(name, target) == 0, capsys.readouterr().out
        found = await asyncio.to_thread(proxy.flows)
    assert {f"{flow.request.scheme}://{flow.request.host}:{flow.request.port}" for flow in found} == {url.rsplit("/", 1)[0]}
    assert all(flow.server_conn.address == (flow.request.host, flow.request.port) for flow in found)
    assert all("mcp-wiretap-origin" not in flow.request.headers for flow in found)
    assert {flow.metadata["mcp.replay"] for flow in found} == {f"{name}.flow"}
    inspector = Inspector(RuleBook.of())
    for event in Recording(proxy.path).events():
        inspector.feed(event)
    inspector.finish()
    broken = [f for e in inspector.exchanges.values() for f in e.findings if f.party == "server" and f.severity == "error"]
    assert broken == []


@pytest.mark.e2e
@pytest.mark.parametrize("missing", ["error", "forward"])
async def test_what_is_not_recorded_is_forwarded_only_where_that_is_wanted(missing, tmp_path):
    upstream = wire.Server()
    upstream.replies.put(wire.whole(b"real"))
    options = ["--set", f"mcp_replay={RECORDINGS / 'modern-http.flow'}", "--set", f"mcp_replay_missing={missing}"]
    with wire.proxy(tmp_path, upstream, options=options) as proxy:
        async with Caller(f"http://127.0.0.1:{proxy.ports[0]}") as caller:
            known = await caller.modern("tools/list")
            unknown = await caller.modern("prompts/list")
        await asyncio.to_thread(proxy.stop)
    upstream.close()
    assert known.json()["result"]["tools"]
    if missing == "forward":
        assert unknown.text == "real" and len(upstream.received) == 1
    else:
        assert unknown.status_code == 404 and unknown.json()["error"]["code"] == -32601
        assert upstream.received == []


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("mcp_replay", "/nowhere/none.flow", "cannot be read"),
        ("mcp_replay", str(RECORDINGS), "is a directory"),
        ("mcp_replay_timing", "slow", "recorded or fast"),
        ("mcp_replay_missing", "drop", "error or forward"),
    ],
)
async def test_a_bad_option_is_refused(option, value, why):
    with taddons.context(Wiretap()) as context, pytest.raises(exceptions.OptionsError, match=why):
        context.options.update(**{option: value})


async def test_mitmproxy_does_not_connect_upstream_before_it_has_to():
    with taddons.context(Wiretap()) as context:
        context.options.add_option("connection_strategy", str, "eager", "")
        context.options.update(mcp_replay=str(RECORDINGS / "modern-http.flow"))
        assert context.options.connection_strategy == "lazy"


@pytest.fixture
def addon():
    with flows.proxy() as addon:
        addon.view = View()
        addon.context.master.addons.add(addon.view)
        yield addon


def call(addon, *arguments):
    return addon.context.master.commands.call_strings("mcp.replay", list(arguments))


def shown(addon, name):
    """Put the flows of a recording into the flow list."""
    with (RECORDINGS / f"{name}.flow").open("rb") as file:
        found = [flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow)]
    addon.view.add(found)
    return found


@pytest.mark.e2e
async def test_a_conversation_of_the_flow_list_is_asked_once_more(addon, caplog):
    found = shown(addon, "modern-mrtr-http")
    addon.view.focus.flow = found[1]
    with pytest.raises(exceptions.CommandError, match=r"mrtr_confirm; `mcp.replay @conversation yes` does so"):
        call(addon, "@conversation")
    config = load(CONFIGS / "modern-mrtr-http.json")
    async with running([config], [bind(0, exact=True)]) as (server,):
        for flow in found:  # as if it had been recorded there
            flow.request.data.port = int(server.url.split(":")[2].split("/")[0])
        with caplog.at_level("INFO"):
            assert call(addon, "@conversation", "yes").startswith("replaying 2 exchanges to http://127.0.0.1:")
            async with asyncio.timeout(20):
                while "1 operation:" not in caplog.text:
                    await asyncio.sleep(0.05)
    assert "1 operation: 1 same, 0 changed, 0 failed" in caplog.text


async def test_what_cannot_be_replayed_is_said(addon):
    with pytest.raises(exceptions.CommandError, match="no flow has the focus"):
        call(addon, "@conversation")
    shown(addon, "demo")
    with pytest.raises(exceptions.CommandError, match="of several servers"):
        call(addon, "@all", "yes")
    with pytest.raises(exceptions.CommandError, match="means no HTTP flow"):
        call(addon, "~u nothing-like-that", "yes")
