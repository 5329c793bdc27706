"""A small HTTP/1.1 server for the player: one request after the other on a connection, streams sent event by event."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import h11

from mcp_wiretap.replay.cast import Asked
from mcp_wiretap.replay.player import Headers, Player
from mcp_wiretap.wire.headers import Fields

ORIGIN = b"mcp-wiretap-origin"  # header in which the proxy tells by which scheme, host and port its client asked
MAX_BODY = 64 << 20
_READ = 64 << 10


def listening(host: str, port: int) -> socket.socket:
    """A socket that clients may connect to already. OSError where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(100)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


class Server:
    """Serves a player on a socket until it is closed."""

    def __init__(self, player: Player, sock: socket.socket, fault: Callable[[Exception], None]) -> None:
        self.player = player
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._sock = sock
        self._fault = fault
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, sock=self._sock)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await _Connection(self.player, reader, writer).serve()
        except (OSError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # the client has gone, or does not speak HTTP/1.1
        except Exception as error:
            self._fault(error)
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await writer.wait_closed()


class _Gone(Exception):
    """The answer was cut short on purpose."""


class _Connection:
    def __init__(self, player: Player, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._player, self._reader, self._writer = player, reader, writer
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)

    async def serve(self) -> None:
        while (asked := await self._request()) is not None:
            answer = _Answer(self._h11, self._writer)
            if not await self._answer(asked, answer) or self._h11.our_state is not h11.DONE:
                return
            if self._h11.their_state is not h11.DONE:
                return
            self._h11.start_next_cycle()

    async def _answer(self, asked: Asked, answer: "_Answer") -> bool:
        """Whether the connection can go on."""
        playing = asyncio.create_task(self._player.answer(asked, answer))
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({playing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                return False
            playing.result()
            return True
        except _Gone:
            return False
        finally:
            for task in (playing, watching):
                task.cancel()
            await asyncio.gather(playing, watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Until the client closes. What it sends meanwhile is its next request."""
        while data := await self._reader.read(_READ):
            self._h11.receive_data(data)

    async def _request(self) -> Asked | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._h11.next_event()
            match event:
                case h11.NEED_DATA:
                    if self._h11.they_are_waiting_for_100_continue:
                        self._writer.write(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                    data = await self._reader.read(_READ)
                    self._h11.receive_data(data)
                    if not data and head is None and self._h11.their_state is not h11.SEND_BODY:
                        return None
                case h11.Request():
                    head = event
                case h11.Data():
                    body += event.data
                    if len(body) > MAX_BODY:
                        return None
                case h11.EndOfMessage():
                    assert head is not None
                    return self._asked(head, bytes(body))
                case _:
                    return None

    def _asked(self, head: h11.Request, body: bytes) -> Asked:
        raw = [(name, value) for name, value in head.headers.raw_items() if name.lower() != ORIGIN]
        fields = Fields(raw)
        told = Fields(head.headers.raw_items()).first(ORIGIN.decode())
        target = head.target.decode("latin-1")
        host = fields.first("host") or "localhost"
        if target.startswith(("http://", "https://")):  # a client that takes this for its proxy
            scheme, _, rest = target.partition("://")
            host, slash, path = rest.partition("/")
            told, target = told or f"{scheme}://{host}", slash + path
        origin = told or f"http://{host}"
        authority = origin.partition("://")[2]
        if ":" not in authority.rpartition("]")[2]:
            origin += ":443" if origin.startswith("https") else ":80"
        return Asked(head.method.decode("latin-1"), target or "/", fields, body, self, origin)


class _Answer:
    """The outlet of one request."""

    def __init__(self, connection: h11.Connection, writer: asyncio.StreamWriter) -> None:
        self._h11, self._writer = connection, writer

    async def head(self, status: int, headers: Headers, length: int | None) -> None:
        framing = (b"Transfer-Encoding", b"chunked") if length is None else (b"Content-Length", str(length).encode())
        fields = [*headers, framing] if length is None or status not in (204, 304) else headers
        await self._send(h11.Response(status_code=status, headers=fields))

    async def data(self, data: bytes) -> None:
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        await self._send(h11.EndOfMessage())

    def cut(self) -> None:
        raise _Gone

    async def _send(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        data = self._h11.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()
