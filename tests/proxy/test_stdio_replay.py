"""mitmproxy's own client replay says that it cannot reach a stdio server."""

from mitmproxy.addons.clientplayback import ClientPlayback
from mitmproxy.test import taddons, tflow

from mcp_wiretap.proxy.wiretap import _refuse_replays


async def test_a_flow_of_a_stdio_server_is_refused_and_others_are_not() -> None:
    playback = ClientPlayback()
    with taddons.context(playback):
        _refuse_replays()
        flow = tflow.tflow()
        flow.live = False
        assert playback.check(flow) is None
        flow.request.scheme = "stdio"
        assert "mcp-wiretap replay --command" in (playback.check(flow) or "")
