"""A recorded server on stdio: each line of the client is a request to the player, its answers are lines."""

import asyncio
import contextlib
import sys
from collections.abc import Callable

from mcp_wiretap.replay.cast import Asked
from mcp_wiretap.replay.player import Headers, Player
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.sse import SseParser

LIMIT = 64 << 20  # bytes of a line


class StdioServer:
    """Serves a player until the input ends. `write` is given whole lines."""

    def __init__(self, player: Player, endpoint: str, write: Callable[[bytes], None]) -> None:
        self._player = player
        self._origin, _, path = endpoint.partition("://")
        host, slash, path = path.partition("/")
        self._origin, self._path = f"{self._origin}://{host}", slash + path or "/"
        self._write = write
        self._session: bytes | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Answer what comes, several at a time."""
        while line := await reader.readline():
            if line.strip():
                self._start("POST", line.strip(b"\r\n"))
                await asyncio.sleep(0)
        waiting = {task for task in self._tasks if not task.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=1.0)
        for task in self._tasks:
            task.cancel()

    def opened(self, session: bytes) -> None:
        """The recorded server gave a session: what it says on its own comes on the session's stream."""
        self._session = session
        self._start("GET", b"")

    def _start(self, method: str, body: bytes) -> None:
        raw = [(b"Accept", b"application/json, text/event-stream"), (b"Content-Type", b"application/json")]
        if self._session is not None:
            raw.append((b"Mcp-Session-Id", self._session))
        asked = Asked(method, self._path, Fields(raw), body, self, self._origin)
        task = asyncio.get_running_loop().create_task(self._answer(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, asked: Asked) -> None:
        with contextlib.suppress(_Gone):
            await self._player.answer(asked, _Outlet(self, self._write, stream=asked.http_method == "GET"))


class _Gone(Exception):
    """The recorded answer breaks off here."""


class _Outlet:
    """The way of one answer to stdout."""

    def __init__(self, server: StdioServer, write: Callable[[bytes], None], *, stream: bool) -> None:
        self._server, self._write, self._only_events = server, write, stream
        self._events: SseParser | None = None
        self._body = bytearray()

    async def head(self, status: int, headers: Headers, length: int | None) -> None:
        fields = Fields(list(headers))
        if (fields.first("content-type") or "").lower().startswith("text/event-stream"):
            self._events = SseParser(LIMIT)
        session = fields.first("mcp-session-id")
        if session is not None and not self._only_events:
            self._server.opened(session.encode("latin-1"))

    async def data(self, data: bytes) -> None:
        if self._events is None:
            self._body += data
            return
        for event in self._events.feed(data):
            if event.data and event.event != "endpoint":
                self._line(event.data.encode())

    async def end(self) -> None:
        if self._body and not self._only_events:
            self._line(bytes(self._body))

    def cut(self) -> None:
        raise _Gone

    def _line(self, message: bytes) -> None:
        self._write(b" ".join(message.splitlines()) + b"\n")


async def serve(player: Player, endpoint: str) -> None:
    """Serve on this process's standard input and output."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    await StdioServer(player, endpoint, write).run(reader)
