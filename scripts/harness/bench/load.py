"""The client of the benchmark: connections that call again when they are answered, and one that reads a stream.

Raises LoadError as soon as an answer is not the expected one: the speed of a wrong answer means nothing.
"""

import asyncio
import re
import time
from collections.abc import Callable

from harness.bench import wire

PATIENCE = 120.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SENT = re.compile(rb'"sent (\d+)"[^\n]*\r\n\r\n')


class LoadError(Exception):
    """The proxy or the responder did not answer as it should."""


class Calling(asyncio.Protocol):
    """One connection that makes calls as long as `more` gives it a number; `done` is set when it gives none, or fails."""

    transport: asyncio.Transport
    done: asyncio.Future[None]

    def __init__(self, host: str, more: Callable[[], int | None], latencies: list[float]) -> None:
        self.fields = wire.modern_headers(host, "tools/call", "lookup", region="eu-north")
        self.more = more
        self.latencies = latencies
        self.buffer = b""
        self.number = 0
        self.sent = 0.0
        self.done = asyncio.get_running_loop().create_future()
        self.done.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def begin(self) -> asyncio.Future[None]:
        if self.transport.is_closing():
            raise LoadError("the connection was closed between two runs")
        self.done = asyncio.get_running_loop().create_future()
        self.call()
        return self.done

    def call(self) -> None:
        number = self.more()
        if number is None:
            self.done.set_result(None)
            return
        self.number = number
        arguments = {"text": "value", "region": "eu-north"}
        data = wire.post(self.fields, wire.request(number, "tools/call", name="lookup", arguments=arguments))
        self.sent = time.perf_counter()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        length = _LENGTH.search(self.buffer, 0, end) if end >= 0 else None
        if length is None or len(self.buffer) < end + 4 + int(length[1]):
            return
        self.latencies.append(time.perf_counter() - self.sent)
        answer, self.buffer = self.buffer, b""
        if answer.startswith(b"HTTP/1.1 200") and b'"id":%d,' % self.number in answer:
            self.call()
        else:
            self.done.set_exception(LoadError(f"call {self.number} was answered {answer[:300]!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(LoadError(f"the connection ended within call {self.number}: {exc}"))


class Client:
    """Connections that stay open through all runs, as those of a real client do. Used in turn with others, never beside."""

    def __init__(self, runner: asyncio.Runner, port: int, connections: int) -> None:
        self.runner = runner
        self.latencies: list[float] = []
        self.left = 0
        self.number = 0
        self.open = runner.run(self._connect(port, connections))

    async def _connect(self, port: int, connections: int) -> list[Calling]:
        def make() -> Calling:
            return Calling(f"127.0.0.1:{port}", self._more, self.latencies)

        loop = asyncio.get_running_loop()
        return [(await loop.create_connection(make, "127.0.0.1", port))[1] for _ in range(connections)]

    def _more(self) -> int | None:
        if not self.left:
            return None
        self.left -= 1
        self.number += 1
        return self.number

    async def _run(self) -> None:
        async with asyncio.timeout(PATIENCE + self.left / 20):
            await asyncio.gather(*(connection.begin() for connection in self.open))

    def run(self, count: int) -> float:
        """Make `count` tools/call and return the seconds they took; the latency of each is added to `latencies`."""
        self.left = count
        started = time.perf_counter()
        try:
            self.runner.run(self._run())
        except (OSError, TimeoutError) as error:
            raise LoadError(f"the calls were not answered: {error!r}") from error
        return time.perf_counter() - started


async def _exchange(port: int, data: bytes, end: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """Send `data`, read until `end`. Also gives (sent, received) in ns of each event that says when it was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    received, events, position = b"", [], 0
    async with asyncio.timeout(PATIENCE):
        while end not in received[max(0, position - len(end)) :]:
            chunk = await reader.read(65536)
            now = time.monotonic_ns()
            if not chunk:
                raise LoadError(f"the stream ended early: {received[-300:]!r}")
            received += chunk
            for match in _SENT.finditer(received, position):
                events.append((int(match[1]), now))
                position = match.end()
    writer.close()
    return received, events


def list_tools(port: int) -> None:
    """What every client does first, and what makes the mirrored parameters checkable."""
    data = wire.post(wire.modern_headers(f"127.0.0.1:{port}", "tools/list"), wire.request(0, "tools/list"))
    try:
        received, _ = asyncio.run(_exchange(port, data, b"bench-server"))
    except (OSError, TimeoutError) as error:
        raise LoadError(f"no tools/list through port {port}: {error!r}") from error
    if not received.startswith(b"HTTP/1.1 200"):
        raise LoadError(f"tools/list was answered {received[:300]!r}")


def event_delays(port: int) -> list[float]:
    """The way of each event of one stream from the responder to us, in milliseconds."""
    content = wire.request(7, "tools/call", name="report", arguments={"text": "value"}, meta={"progressToken": 7})
    data = wire.post(wire.modern_headers(f"127.0.0.1:{port}", "tools/call", "report"), content)
    try:
        _, events = asyncio.run(_exchange(port, data, b'"result":"done"'))
    except (OSError, TimeoutError) as error:
        raise LoadError(f"no event stream through port {port}: {error!r}") from error
    return [(received - sent) / 1e6 for sent, received in events]
