"""The smallest thing that answers like an MCP server, so that the server is never what is measured.

`python -m harness.bench.responder` prints its port. It answers a tools/list, a tools/call with the same id, and a call
of `report` with an event stream: one event every few milliseconds, each saying when it was sent (`time.monotonic_ns`,
which the processes of a machine share).
"""

import asyncio
import json
import re
import time

from harness.bench import wire

EVENTS = 200
GAP = 0.005
_ID = re.compile(rb'"id":(\d+)')
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Answering(asyncio.Protocol):
    """One connection, kept alive: request in, canned answer out."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.buffer = b""
        self.streams: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self.buffer, 0, end)
            stop = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < stop:
                return
            content, self.buffer = self.buffer[end + 4 : stop], self.buffer[stop:]
            self.answer(content)

    def answer(self, content: bytes) -> None:
        number = int(found[1]) if (found := _ID.search(content)) else 0
        if b'"name":"report"' in content:
            task = asyncio.get_running_loop().create_task(self.stream(number))
            self.streams.add(task)
            task.add_done_callback(self.streams.discard)
        elif b'"method":"tools/list"' in content:
            self.send_json(wire.tools_result(number))
        else:
            self.send_json(wire.call_result(number, "found"))

    def send_json(self, content: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content)
        self.transport.write(head + content)

    async def stream(self, number: int) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for step in range(EVENTS):
            self.chunk(wire.event(wire.progress(number, step, f"sent {time.monotonic_ns()}")))
            await asyncio.sleep(GAP)
        self.chunk(wire.event(wire.call_result(number, "done")))
        self.transport.write(b"0\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
