"""End to end: head and body are the same bytes on both sides, whatever they are, in each mode, with the addon and without it."""

import contextlib
import gzip
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.proxy import flows, wire

pytestmark = pytest.mark.e2e

CALL = flows.request().raw_content
assert CALL is not None
MCP = ("Content-Type: application/json", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo")
RESULT = flows.result()
CHUNKED = "Transfer-Encoding: chunked"
LINES = RESULT + b"\n" + RESULT + b"\n"


@dataclass(frozen=True)
class Case:
    """What is sent (fields and body) and what comes back, as it is written."""

    reply: list[bytes]
    fields: tuple[str, ...] = MCP
    body: bytes = CALL
    method: str = "POST"
    chunked: bool = False  # the request


def pieces(head: bytes, *parts: bytes) -> list[bytes]:
    return [head, *map(wire.chunk, parts), wire.LAST]


SSE = wire.head("200 OK", "Content-Type: text/event-stream", CHUNKED)
JSON = wire.head("200 OK", "Content-Type: application/json", CHUNKED)
CASES = {
    "a body with its length": Case(wire.whole(RESULT)),
    "a body in chunks": Case(pieces(JSON, RESULT[:7], RESULT[7:])),
    "a body of JSON lines": Case(pieces(JSON, LINES[:50], LINES[50:])),
    "a body until the connection is closed": Case(
        [wire.head("200 OK", "Content-Type: application/json", "Connection: close") + RESULT, None]
    ),
    "an empty body in chunks": Case(pieces(JSON)),
    "a compressed body in chunks": Case(
        pieces(wire.head("200 OK", "Content-Type: application/json", "Content-Encoding: gzip", CHUNKED), gzip.compress(RESULT))
    ),
    "a body that is no JSON": Case(wire.whole(b"\xff\x00<p>", "text/html", "502 Bad Gateway")),
    "events": Case(pieces(SSE, b"data: ", flows.event(RESULT)[6:])),
    "events with CRLF, comments and a priming event": Case(
        pieces(SSE, b": hello\r\n\r\nid: 1\r\ndata:\r\n\r\n", b"data: {}\r\n\r\n")
    ),
    "compressed events": Case(
        pieces(
            wire.head("200 OK", "Content-Type: text/event-stream", "Content-Encoding: gzip", CHUNKED),
            gzip.compress(flows.event(RESULT)),
        )
    ),
    "events that are cut off": Case(pieces(SSE, b"data: {}\n\ndata: {")),
    "202 without a body": Case([wire.head("202 Accepted", "Content-Length: 0")]),
    "204": Case([wire.head("204 No Content")]),
    "401 with a challenge": Case(
        [
            wire.head(
                "401 Unauthorized", 'WWW-Authenticate: Bearer resource_metadata="http://x/y", scope="a b"', "Content-Length: 0"
            )
        ]
    ),
    "odd names of fields": Case(
        wire.whole(RESULT), (*MCP[:2], "mCp-mEtHoD: tools/call", "MCP-NAME: echo", "x-EMPTY: ", "x-a: 1", "X-A: 2")
    ),
    "sentinels and repeated fields": Case(
        wire.whole(RESULT), (*MCP[:3], "Mcp-Name: =?base64?ZWNobw==?=", "Mcp-Name: echo", "Mcp-Param-A: b c")
    ),
    "a header fault": Case(wire.whole(RESULT), (*MCP[:2], "Mcp-Method: tools/list", "Mcp-Name: other")),
    "Accept-Encoding": Case(wire.whole(RESULT), (*MCP, "Accept-Encoding: gzip;q=0.5, br, zstd")),
    "a request in chunks": Case(wire.whole(RESULT), MCP, chunked=True),
    "a request that is no JSON": Case(wire.whole(RESULT), MCP, b"{'\xff"),
    "a request without a body": Case([wire.head("400 Bad Request", "Content-Length: 0")], MCP, b""),
    "a batch": Case(wire.whole(b"[" + RESULT + b"]"), MCP[:1], b"[" + CALL + b"]"),
    "GET": Case(pieces(SSE, b"data: {}\n\n"), ("Accept: text/event-stream", "Last-Event-ID: 7"), b"", "GET"),
    "DELETE": Case([wire.head("200 OK", "Content-Length: 0")], ("Mcp-Session-Id: abc",), b"", "DELETE"),
    "OPTIONS": Case(
        [wire.head("204 No Content", "Access-Control-Allow-Origin: *")],
        ("Origin: http://a", "Access-Control-Request-Method: POST"),
        b"",
        "OPTIONS",
    ),
    "a form": Case(
        wire.whole(b'{"access_token": "t"}'), ("Content-Type: application/x-www-form-urlencoded",), b"grant_type=x&code=1"
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[wire.Server]:
    made = wire.Server()
    yield made
    made.close()


@pytest.fixture(scope="module", params=[(mode, addon) for mode in ("reverse", "regular") for addon in (True, False)], ids=str)
def way(request, server, tmp_path_factory):
    """(mode, port) of a proxy on its way."""
    mode, addon = request.param
    folder = tmp_path_factory.mktemp(f"{mode}-{addon}")
    if mode == "reverse":
        with wire.proxy(folder, server, options=["--set", "keep_host_header=true"], addon=addon) as proxy:
            yield mode, proxy.ports[0]
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with wire.proxy(folder, options=["--mode", f"regular@{port}", "--listen-host", "127.0.0.1"], addon=addon) as proxy:
        proxy.child.wait_for(r"HTTP\(S\) proxy listening", 60)
        yield mode, port


def sent_by(case: Case, target: str, host: str) -> bytes:
    if not case.chunked:
        length = (f"Content-Length: {len(case.body)}",) if case.body or case.method == "POST" else ()
        lines = [f"{case.method} {target} HTTP/1.1", f"Host: {host}", *case.fields, *length, "", ""]
        return "\r\n".join(lines).encode("latin-1") + case.body
    lines = [f"{case.method} {target} HTTP/1.1", f"Host: {host}", *case.fields, CHUNKED, "", ""]
    return "\r\n".join(lines).encode("latin-1") + wire.chunk(case.body) + wire.LAST


def parted(message: bytes) -> tuple[bytes, bytes]:
    """Head and body, the body without its chunks: how the bytes are cut into them is each hop's own."""
    head, _, body = message.partition(b"\r\n\r\n")
    if CHUNKED.lower().encode() not in head.lower():
        return head, body
    out = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        out, body = out + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return head, out


def read_all(stream: socket.socket, wanted: tuple[bytes, bytes]) -> bytes:
    """What came, once it is all that was wanted, or the other side closed, or nothing more comes."""
    got = b""
    stream.settimeout(20)
    with contextlib.suppress(TimeoutError):
        while data := stream.recv(65_536):
            got += data
            with contextlib.suppress(ValueError):
                if parted(got) == wanted and (b"chunked" not in wanted[0] or got.endswith(wire.LAST)):
                    break
    return got


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_on_both_sides_are_the_same(way, server, name):
    mode, port = way
    case = CASES[name]
    host = "mcp.example" if mode == "reverse" else f"127.0.0.1:{server.port}"
    target = "/mcp" if mode == "reverse" else f"http://{host}/mcp"
    server.replies.put(case.reply)
    wanted = parted(b"".join(part for part in case.reply if part))
    with socket.create_connection(("127.0.0.1", port), 20) as stream:
        stream.sendall(sent_by(case, target, host))
        back = read_all(stream, wanted)
    assert parted(server.received[-1]) == parted(sent_by(case, "/mcp", host))
    assert parted(back) == wanted
