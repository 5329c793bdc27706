"""End to end: the bytes that pass through a real mitmproxy are the bytes that came, at once, whatever they are."""

import contextlib
import gzip
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.proxy import flows, wire

pytestmark = pytest.mark.e2e

CALL = flows.request().raw_content
FIELDS = ("Content-Type: application/json", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo")
STREAM = wire.head("200 OK", "Content-Type: text/event-stream", "Cache-Control: no-cache", "Transfer-Encoding: chunked")


@pytest.fixture(scope="module")
def server():
    made = wire.Server()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(server, tmp_path_factory):
    """A proxy that all tests of this module may use who do not end it."""
    with wire.proxy(tmp_path_factory.mktemp("shared"), server, options=["--set", "keep_host_header=true"]) as proxy:
        yield proxy


def exchange(proxy, server, sent, reply):
    """(what the server got, what the client got) for one request on a connection of its own."""
    server.replies.put(reply)
    with proxy.connect() as stream:
        stream.sendall(sent)
        got = wire.read_message(stream)
    return server.received[-1], got[0] if got else None


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
JSONISH = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)).map(
    lambda value: json.dumps(value).encode()
)
HOSTILE = st.sampled_from(
    [
        b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}',
        b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "a", "method": "b"}',
        b'{"jsonrpc": "2.0", "id": ' + b"7" * 5_000 + b', "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": NaN, "method": "tools/list"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\xff\xfe"}}',
        CALL[:-10],
        CALL,
    ]
)
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF), min_size=1, max_size=40).filter(str.isprintable)


@given(
    body=st.binary(max_size=2_000) | JSONISH | HOSTILE,
    answer=st.binary(max_size=2_000) | JSONISH | HOSTILE,
    names=st.lists(VALUES, max_size=3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_and_any_header_pass_unchanged(shared, server, body, answer, names):
    sent = wire.post(body, *FIELDS[:3], *(f"Mcp-Name: {name}" for name in names))
    reply = wire.whole(answer)
    got, back = exchange(shared, server, sent, reply)
    assert got == sent
    assert back == reply[0]
    assert "mcp-wiretap: fault" not in shared.child.output()


@given(st.lists(st.binary(min_size=1, max_size=100) | st.just(b"data: {}\n\n"), min_size=1, max_size=10))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_event_stream_passes_unchanged(shared, server, pieces):
    reply = [STREAM, *(wire.chunk(piece) for piece in pieces), wire.LAST]
    _, back = exchange(shared, server, wire.post(CALL, *FIELDS), reply)
    assert back.startswith(STREAM)
    assert unchunked(back[len(STREAM) :]) == b"".join(pieces)
    assert "mcp-wiretap: fault" not in shared.child.output()


def unchunked(data):
    out, position = [], 0
    while position < len(data):
        start = data.index(b"\r\n", position) + 2
        length = int(data[position:start], 16)
        out.append(data[start : start + length])
        position = start + length + 2
    return b"".join(out)


def test_a_very_large_body_passes_and_is_said_to_be_unchecked(server, tmp_path):
    body = b'{"jsonrpc": "2.0", "id": 1, "result": {"x": "' + b"y" * (100 << 20) + b'"}}'
    with wire.proxy(tmp_path, server) as proxy:
        _, back = exchange(proxy, server, wire.post(CALL, *FIELDS), wire.whole(body))
        assert back.endswith(body)
        (flow,) = proxy.flows()
    assert "unchecked: response body" in flow.metadata["mcp.notes"]


def test_an_event_passes_at_once(shared, server):
    reply = [STREAM]
    for number in range(4):
        reply += [0.25, wire.chunk(flows.event(b'{"n": %d}' % number))]
    server.replies.put([*reply, wire.LAST])
    first = len(server.sent_at)
    with shared.connect() as stream:
        stream.sendall(wire.post(CALL, *FIELDS))
        arrived = []
        data = b""
        while not data.endswith(wire.LAST):
            data += stream.recv(65536)
            arrived.append((time.time(), data.count(b"data: ")))
    sent = server.sent_at[first + 1 :]
    for number, at in enumerate(sent[:4], 1):
        seen = next(when for when, count in arrived if count >= number)
        assert seen - at < 0.2, f"event {number} took {seen - at:.3f} s"


@pytest.mark.parametrize(
    "fields", [("Transfer-Encoding: chunked",), ("Connection: close",)], ids=["in chunks", "until the connection is closed"]
)
def test_a_listen_stream_that_says_it_is_json_passes_at_once(server, tmp_path, fields):
    """As the reference server of the conformance suite does it: one message a line, for ever."""
    lines = [b'{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}\n', b'{"n": 1}\n']
    framed = wire.chunk if "chunked" in fields[0] else bytes
    reply = [wire.head("200 OK", "Content-Type: application/json", *fields), 0.2, framed(lines[0]), 0.5, framed(lines[1]), 10.0]
    listen = flows.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}).raw_content
    with wire.proxy(tmp_path, server) as proxy:
        server.replies.put(reply)
        first = len(server.sent_at)
        with proxy.connect() as stream:
            stream.sendall(wire.post(listen, *FIELDS[:2], "Mcp-Method: subscriptions/listen"))
            stream.settimeout(wire.PATIENCE)
            got, seen = b"", []
            for wanted in (reply[0], *reply[2::2]):
                while wanted not in got:
                    got += stream.recv(65536)
                seen.append(time.time())
        assert got == reply[0] + reply[2] + reply[4]
        for sent, arrived in zip(server.sent_at[first:], seen, strict=True):
            assert arrived - sent < 0.2
        flow = proxy.saved()[0]  # mitmproxy may save one twice whose end is the end of its connection
    assert "SUB018" in flow.metadata["mcp.rules"]
    assert flow.response.raw_content == b"".join(lines)


def test_a_compressed_stream_passes_compressed_and_is_understood(server, tmp_path):
    body = gzip.compress(flows.event(flows.result()))
    reply = [STREAM[:-2] + b"Content-Encoding: gzip\r\n\r\n", wire.chunk(body[:15]), 0.1, wire.chunk(body[15:]), wire.LAST]
    with wire.proxy(tmp_path, server) as proxy:
        got, back = exchange(proxy, server, wire.post(CALL, *FIELDS, "Accept-Encoding: gzip, br"), reply)
        assert b"Accept-Encoding: gzip, br" in got
        assert unchunked(back.partition(b"\r\n\r\n")[2]) == body
        (flow,) = proxy.flows()
    assert flow.comment.startswith("modern tools/call echo -> complete")
    assert flow.response.raw_content == body and len(flow.metadata["mcp.events"]) == 1


def test_a_client_that_leaves_cancels_at_the_server_at_once(server, tmp_path):
    with wire.proxy(tmp_path, server) as proxy:
        server.replies.put([STREAM, wire.chunk(flows.event(b"{}")), 10.0])
        with proxy.connect() as stream:
            stream.sendall(wire.post(CALL, *FIELDS))
            until = time.time() + wire.PATIENCE
            data = b""
            while b"data: {}" not in data and time.time() < until:
                data += stream.recv(65536)
            left = time.time()
        (flow,) = proxy.saved()
        assert server.left_at[-1] - left < 1.0
    assert flow.metadata["mcp.outcome"] == "cancelled" and flow.metadata["mcp.ended"] == "client"
    assert flow.response.raw_content == flows.event(b"{}")


def test_a_server_that_drops_a_stream_is_seen_to_do_so(server, tmp_path):
    with wire.proxy(tmp_path, server) as proxy:
        server.replies.put([STREAM, wire.chunk(flows.event(b"{}")), 0.1, None])
        with proxy.connect() as stream:
            stream.sendall(wire.post(CALL, *FIELDS))
            with contextlib.suppress(OSError):
                while stream.recv(65536):
                    pass
            (flow,) = proxy.saved()
    assert flow.metadata["mcp.outcome"] == "broken" and flow.metadata["mcp.ended"] == "server"
    assert flow.response.raw_content == flows.event(b"{}")


def test_a_stream_that_is_open_when_mitmproxy_ends_is_in_the_file(server, tmp_path):
    with wire.proxy(tmp_path, server) as proxy:
        server.replies.put([STREAM, wire.chunk(flows.event(b"{}")), 10.0])
        with proxy.connect() as stream:
            stream.sendall(wire.post(CALL, *FIELDS))
            data = b""
            while b"data: {}" not in data:
                data += stream.recv(65536)
            (flow,) = proxy.flows()
    assert flow.response.raw_content == flows.event(b"{}")
    assert flow.comment.startswith("unknown tools/call echo -> stream, 1 event")
    assert len(flow.metadata["mcp.events"]) == 1


def test_an_endless_stream_is_kept_within_the_limit(server, tmp_path):
    event = flows.event(b'{"x": "' + b"y" * 50_000 + b'"}')
    with wire.proxy(tmp_path, server, options=["--set", "mcp_max_stream=200000"]) as proxy:
        _, back = exchange(proxy, server, wire.post(CALL, *FIELDS), [STREAM, *[wire.chunk(event)] * 100, wire.LAST])
        assert unchunked(back.partition(b"\r\n\r\n")[2]) == event * 100
        (flow,) = proxy.flows()
    assert len(flow.response.raw_content) == 200_000
    assert flow.metadata["mcp.dropped"] == len(event) * 100 - 200_000


def test_a_recording_can_be_annotated_while_it_is_copied(server, tmp_path):
    bare, copied = tmp_path / "bare", tmp_path / "copied"
    bare.mkdir()
    copied.mkdir()
    with wire.proxy(bare, server, addon=False) as proxy:
        exchange(proxy, server, wire.post(CALL, *FIELDS[:3], "Mcp-Name: other"), wire.whole(flows.result()))
        (before,) = proxy.flows()
    assert before.comment == ""
    with wire.proxy(copied, options=["-n", "-r", str(bare / "flows.flow")]) as proxy:
        assert proxy.child.process.wait(wire.PATIENCE) == 0
        assert "fault" not in proxy.child.output()
        (after,) = proxy.flows()
    assert "[HDR006]" in after.comment and after.marked == ":red_circle:"
    assert after.request.raw_content == before.request.raw_content


def test_a_bad_option_ends_mitmproxy_with_a_clear_word(tmp_path):
    with wire.proxy(tmp_path, options=["-n", "--set", "mcp_era=nonsense"]) as proxy:
        assert proxy.child.process.wait(wire.PATIENCE) == 2
        assert "mcp_era" in proxy.child.output()


def test_one_event_of_fifty_megabytes_passes(server, tmp_path):
    event = flows.event(b'{"jsonrpc": "2.0", "id": 1, "result": {"x": "' + b"y" * (50 << 20) + b'"}}')
    with wire.proxy(tmp_path, server) as proxy:
        _, back = exchange(proxy, server, wire.post(CALL, *FIELDS), [STREAM, wire.chunk(event), wire.LAST])
        assert unchunked(back.partition(b"\r\n\r\n")[2]) == event
        (flow,) = proxy.flows()
    assert len(flow.response.raw_content) == 8 << 20
    assert "past the limit" in flow.metadata["mcp.notes"]


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
def test_a_compressed_bomb_passes_unopened(server, tmp_path, content_type):
    bomb = gzip.compress(b'{"a": "' + b"0" * (100 << 20), 6)
    fields = (f"Content-Type: {content_type}", "Content-Encoding: gzip", f"Content-Length: {len(bomb)}")
    reply = [wire.head("200 OK", *fields) + bomb]
    with wire.proxy(tmp_path, server) as proxy:
        _, back = exchange(proxy, server, wire.post(CALL, *FIELDS), reply)
        assert back == reply[0]
        (flow,) = proxy.flows()
        assert "mcp-wiretap: fault" not in proxy.child.output()
    assert "decodes to more than the limit" in flow.metadata["mcp.notes"]


def test_a_header_of_sixty_kilobytes_passes_and_is_shown_short(shared, server):
    sent = wire.post(CALL, *FIELDS[:3], "Mcp-Name: " + "n" * 60_000)
    got, _ = exchange(shared, server, sent, wire.whole(flows.result()))
    assert got == sent
    assert "mcp-wiretap: fault" not in shared.child.output()
