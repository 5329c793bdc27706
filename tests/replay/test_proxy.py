"""`mcp_replay` in a real mitmproxy whose upstream does not exist."""

import asyncio

import pytest
from mitmproxy import exceptions
from mitmproxy.test import taddons

from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.wiretap import Wiretap
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector
from test_servers.scenarios import Target, run
from tests.proxy import wire
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
