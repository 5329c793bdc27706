"""End to end over HTTP/2: fields, data, trailers and ends are the same on both sides, with the addon and without it."""

import gzip
import socket
from collections.abc import Iterator

import pytest

from tests.proxy import flows, http2, wire

pytestmark = pytest.mark.e2e

CALL = flows.request().raw_content
assert CALL is not None
RESULT = flows.result()
MCP = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"=?base64?ZWNobw==?="),
    (b"mcp-name", b"echo"),
    (b"x-empty", b""),
)
JSON = ((b":status", b"200"), (b"content-type", b"application/json"))
SSE = ((b":status", b"200"), (b"content-type", b"text/event-stream"), (b"x-a", b"1"), (b"x-a", b"2"))
LISTEN = tuple((n, b"subscriptions/listen" if n == b"mcp-method" else v) for n, v in MCP)
type Case = tuple[tuple[tuple[bytes, bytes], ...], list[bytes], http2.Reply]
CASES: dict[str, Case] = {
    "a body with its length": (MCP, [CALL], http2.Reply([*JSON, (b"content-length", str(len(RESULT)).encode())], [RESULT])),
    "a body in pieces, without a length": (MCP, [CALL[:20], CALL[20:]], http2.Reply(JSON, [RESULT[:9], RESULT[9:]])),
    "a listen that says that it is JSON": (LISTEN, [CALL], http2.Reply(JSON, [RESULT + b"\n", RESULT + b"\n"])),
    "events": (MCP, [CALL], http2.Reply(SSE, [b"data: ", flows.event(RESULT)[6:], b": bye\n\n"])),
    "compressed events": (MCP, [CALL], http2.Reply([*SSE, (b"content-encoding", b"gzip")], [gzip.compress(flows.event(RESULT))])),
    "an empty body": (MCP, [CALL], http2.Reply([(b":status", b"202")])),
    "events that are reset": (MCP, [CALL], http2.Reply(SSE, [b"data: {}\n\ndata: {"], reset=True)),
    "no body": ((), [], http2.Reply([(b":status", b"405"), (b"allow", b"POST")])),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[http2.Server]:
    made = http2.Server(tmp_path_factory.mktemp("server"))
    yield made
    made.close()


@pytest.fixture(scope="module", params=[(mode, addon) for mode in ("reverse", "regular") for addon in (True, False)], ids=str)
def way(request, server, tmp_path_factory):
    """(mode, port, addon) of a proxy on its way."""
    mode, addon = request.param
    folder = tmp_path_factory.mktemp(f"{mode}-{addon}")
    options = ["--set", "ssl_insecure=true"]
    if mode == "reverse":
        options += ["--set", "keep_host_header=true"]
        with wire.proxy(folder, server, options=options, addon=addon) as proxy:
            yield mode, proxy.ports[0], addon
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options += ["--mode", f"regular@{port}", "--listen-host", "127.0.0.1"]
    with wire.proxy(folder, options=options, addon=addon) as proxy:
        proxy.child.wait_for(r"HTTP\(S\) proxy listening", 60)
        yield mode, port, addon


@pytest.mark.parametrize("name", CASES)
def test_the_streams_on_both_sides_are_the_same(way, server, name):
    mode, port, addon = way
    fields, parts, reply = CASES[name]
    host = f"127.0.0.1:{server.port}"
    method = b"POST" if parts else b"GET"
    sent = [(b":method", method), (b":scheme", b"https"), (b":authority", host.encode()), (b":path", b"/mcp?a=%20b"), *fields]
    server.replies.put(reply)
    back = http2.ask(port, sent, parts, through=host if mode == "regular" else "")
    given = server.received[-1]
    assert (sorted(given.fields[:4]), given.fields[4:]) == (sorted(sent[:4]), sent[4:])
    assert (given.data, given.trailers, given.end) == (b"".join(parts), [], "ended")
    if reply.reset and not addon:
        assert back.fields[0] == (b":status", b"502")  # mitmproxy alone keeps it back until it is whole, which it never is
        return
    assert back.fields == list(reply.fields)
    assert back.data == b"".join(reply.parts)
    assert back.end == ("reset" if reply.reset else "ended")
