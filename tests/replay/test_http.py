"""The connections of a replay: kept as the recorded client kept its own, errors in words."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from mcp_wiretap.replay.http import Lines, Place, Unreachable

type Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each request with the number of its connection, and keeps the heads as they came."""

    def __init__(self) -> None:
        self.connections = 0
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = str(self.connections).encode()
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-Odd: a\r\nX-Odd: b\r\n\r\n%s" % (len(number), number))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.fixture
async def lines() -> AsyncIterator[Lines]:
    made = Lines()
    yield made
    await made.close()


async def _place(serve: Serve) -> tuple[asyncio.Server, Place]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, Place("http", "127.0.0.1", server.sockets[0].getsockname()[1], "/mcp")


async def _ask(lines: Lines, line: str, place: Place, headers: list[tuple[bytes, bytes]] | None = None) -> bytes:
    reply = await lines.ask(line, place, "GET", "/mcp?a=%20", headers or [], b"")
    body = b"".join([piece async for piece in reply.pieces()])
    await reply.close()
    return body


async def test_a_recorded_connection_is_one_connection_again(lines: Lines) -> None:
    serve = Server()
    server, place = await _place(serve)
    async with server:
        assert [await _ask(lines, line, place) for line in ("a", "a", "b", "a")] == [b"1", b"1", b"2", b"1"]
        await lines.close()


async def test_headers_keep_their_order_their_case_and_their_repetitions(lines: Lines) -> None:
    serve = Server()
    server, place = await _place(serve)
    async with server:
        await _ask(lines, "a", place, [(b"x-B", b"1"), (b"X-a", b"2"), (b"x-B", b"3")])
        await lines.close()
    head = serve.heads[0].splitlines()
    assert head[0] == b"GET /mcp?a=%20 HTTP/1.1"
    assert [line for line in head if line.lower().startswith(b"x-")] == [b"x-B: 1", b"X-a: 2", b"x-B: 3"]


async def test_a_server_that_is_not_there_is_named(lines: Lines) -> None:
    server, place = await _place(Server())
    server.close()
    await server.wait_closed()
    with pytest.raises(Unreachable, match=rf"http://127\.0\.0\.1:{place.port} cannot be reached: "):
        await _ask(lines, "a", place)


async def test_a_connection_that_is_closed_before_the_answer_is_said_to_be(lines: Lines) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server, place = await _place(hang_up)
    async with server:
        with pytest.raises(Unreachable, match="the connection was closed before an answer came"):
            await _ask(lines, "a", place)
        await lines.close()


async def test_an_answer_that_breaks_off_is_said_to_be(lines: Lines) -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
        await writer.drain()
        writer.close()

    server, place = await _place(break_off)
    async with server:
        with pytest.raises(Unreachable, match="the answer broke off"):
            await _ask(lines, "a", place)
        await lines.close()
