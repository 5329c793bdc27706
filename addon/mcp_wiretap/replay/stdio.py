"""A stdio server asked as an HTTP one is: each request is a line to its process, the answers are made of its output's lines.

The same interface as `replay.http.Lines`, and the same mapping of lines to exchanges as everywhere (`stdio.lines`).
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from mcp_wiretap.replay.http import Place, Reply, Unreachable
from mcp_wiretap.stdio.lines import Lines, Step
from mcp_wiretap.stdio.naming import name_of

LIMIT = 64 << 20  # bytes of a line
_PATIENCE = 2.0  # seconds for a server to end when its input does


def place_of(command: Sequence[str]) -> Place:
    """Where a server of this command is, in the words of a URL."""
    return Place("stdio", name_of(command), 0, "/")


class LineReply(Reply):
    """The answer to a line, as it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.begun = asyncio.Event()
        self.lost = ""
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    def take(self, step: Step) -> None:
        match step.what:
            case "head":
                kind = b"text/event-stream" if step.sse else b"application/json"
                self.status, self.headers = step.status, [(b"Content-Type", kind)] if step.status != 202 else []
                self.begun.set()
            case "event":
                self._pieces.put_nowait(step.data)
            case "end":
                if step.data:
                    self._pieces.put_nowait(step.data)
                self._pieces.put_nowait(None)
            case "lost":
                self.lost = step.why
                self._pieces.put_nowait(None)
                self.begun.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece
        if self.lost:
            raise Unreachable(self.lost)

    async def close(self) -> None:
        pass


@dataclass(eq=False)
class _Process:
    server: asyncio.subprocess.Process
    lines: Lines = field(default_factory=Lines)
    replies: dict[int, LineReply] = field(default_factory=dict)
    reading: asyncio.Task[None] | None = None

    def follow(self, steps: Iterable[Step]) -> list[int]:
        keys = []
        for step in steps:
            if step.what == "open":
                self.replies[step.key] = LineReply()
                keys.append(step.key)
            else:
                self.replies[step.key].take(step)
                if step.what in ("end", "lost"):
                    self.replies.pop(step.key)
        return keys

    async def read(self) -> None:
        assert self.server.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            while line := await self.server.stdout.readline():
                self.follow(self.lines.server(line.rstrip(b"\n"), time.time(), terminated=line.endswith(b"\n")))
        self.follow(self.lines.over(time.time()))


class Processes:
    """The server's processes: one for each process of the recorded client, or one in all where it was recorded on HTTP."""

    def __init__(self, command: Sequence[str], *, several: bool) -> None:
        self._command = list(command)
        self._several = several
        self._processes: dict[str, _Process] = {}

    def connection(self, line: str) -> str:
        """The identity of the process that a recorded connection leads to."""
        return line if self._several else "replay"

    async def ask(
        self, line: str, place: Place, method: str, target: str, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> Reply:
        """Write a line; returns when its answer has begun.

        Raises:
            Unreachable: the server cannot be started, or has ended.
        """
        process = await self._process(self.connection(line))
        assert process.server.stdin is not None
        written = b" ".join(body.splitlines())
        steps = list(process.lines.client(written, time.time()))
        key = next(step.key for step in steps if step.what == "open" and step.data == written)
        reply = process.replies[key] = LineReply()
        process.follow(step for step in steps if step.key != key)
        try:
            process.server.stdin.write(written + b"\n")
            await process.server.stdin.drain()
        except OSError:
            raise Unreachable(f"the server {place.host} has ended") from None
        process.follow(step for step in steps if step.key == key and step.what != "open")
        await reply.begun.wait()
        if not reply.status:
            raise Unreachable(f"{reply.lost}, exit status {process.server.returncode}")
        return reply

    async def _process(self, name: str) -> _Process:
        process = self._processes.get(name)
        if process is None:
            try:
                server = await asyncio.create_subprocess_exec(
                    *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LIMIT
                )
            except OSError as error:
                raise Unreachable(f"{self._command[0]} cannot be started: {error.strerror}") from None
            process = self._processes[name] = _Process(server)
            process.reading = asyncio.create_task(process.read())
        return process

    async def close(self) -> None:
        """End the processes as a client does: close their input, wait, end them."""
        for process in self._processes.values():
            if process.server.stdin is not None:
                process.server.stdin.close()
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                try:
                    async with asyncio.timeout(_PATIENCE):
                        await process.server.wait()
                except TimeoutError:
                    process.server.terminate()
                    await process.server.wait()
            if process.reading is not None:
                process.reading.cancel()
        self._processes.clear()
