"""Both ends of a proxy as plain sockets, and a real mitmproxy between them: what passes is seen byte for byte."""

import contextlib
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mitmproxy import http
from mitmproxy.io import FlowReader

from harness.children import Child, Children
from harness.proxies import start_proxy

ADDON = Path(__file__).resolve().parents[2] / "addon" / "mcp_wiretap" / "proxy" / "addon.py"
BIN = Path(sys.executable).parent
PATIENCE = 20.0
type Reply = Sequence[bytes | float | None]  # bytes to send, seconds to wait, None: drop the connection


def read_message(stream: socket.socket, before: bytes = b"") -> tuple[bytes, bytes] | None:
    """(one HTTP/1.1 message as it came, what came after it). None when the other side has gone."""
    data = bytearray(before)

    def more() -> bool:
        got = stream.recv(1 << 20)
        data.extend(got)
        return bool(got)

    while b"\r\n\r\n" not in data:
        if not more():
            return None
    head = bytes(data[: data.index(b"\r\n\r\n") + 4])
    if re.search(rb"(?im)^transfer-encoding:.*chunked", head):
        while not data.endswith(b"0\r\n\r\n") and more():
            pass
        return bytes(data), b""
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    end = len(head) + (int(length[1]) if length else 0)
    while len(data) < end and more():
        pass
    return bytes(data[:end]), bytes(data[end:])


@dataclass
class Server:
    """An HTTP server that says what it is told to say, one reply a request, and keeps what it was sent."""

    replies: "queue.Queue[Reply]" = field(default_factory=queue.Queue)
    received: list[bytes] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    left_at: list[float] = field(default_factory=list)  # when a client had gone

    def __post_init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def close(self) -> None:
        self.socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                stream, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        rest = b""
        with stream, contextlib.suppress(OSError):
            while (got := read_message(stream, rest)) is not None:
                message, rest = got
                self.received.append(message)
                for step in self.replies.get(timeout=PATIENCE):
                    if step is None:
                        return
                    if isinstance(step, float):
                        if self._gone(stream, step):
                            self.left_at.append(time.time())
                            return
                        continue
                    self.sent_at.append(time.time())
                    stream.sendall(step)
            self.left_at.append(time.time())

    @staticmethod
    def _gone(stream: socket.socket, seconds: float) -> bool:
        """Wait; whether the other side closed meanwhile."""
        stream.settimeout(seconds)
        try:
            return stream.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        finally:
            stream.settimeout(None)


@dataclass
class Proxy:
    """A running mitmproxy. `flows` ends it and reads what it wrote."""

    child: Child
    ports: list[int]
    path: Path
    page: str = ""

    def connect(self, index: int = 0) -> socket.socket:
        stream = socket.create_connection(("127.0.0.1", self.ports[index]), PATIENCE)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return stream

    def stop(self) -> None:
        if self.child.running:
            self.child.process.send_signal(signal.SIGINT)
            self.child.process.wait(PATIENCE)

    def flows(self) -> list[http.HTTPFlow]:
        self.stop()
        with self.path.open("rb") as file:
            return [flow for flow in FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]

    def saved(self, count: int = 1) -> list[http.HTTPFlow]:
        """The flows saved so far, once there are so many (mitmdump writes each when it ends)."""
        until = time.time() + PATIENCE
        while time.time() < until:
            found = []
            with contextlib.suppress(Exception), self.path.open("rb") as file:
                found += FlowReader(file).stream()
            if len(found) >= count:
                return found
            time.sleep(0.05)
        raise AssertionError(f"fewer than {count} flows were saved; the proxy says:\n{self.child.output()[-2_000:]}")


@contextlib.contextmanager
def proxy(
    folder: Path, *servers: Any, tool: str = "mitmdump", options: Sequence[str] = (), addon: bool = True
) -> Iterator[Proxy]:
    """mitmproxy with the addon in front of servers, writing what it sees to a file."""
    path = folder / "flows.flow"
    command = [str(BIN / tool), "--set", f"confdir={folder / 'conf'}", "-w", str(path), *options]
    if addon:
        command += ["-s", str(ADDON)]
    with Children() as children:
        web: dict[str, Any] = {"web_port": 18_081} if tool == "mitmweb" else {}
        started = start_proxy(children, command, [server.url for server in servers], port=18_100, **web)
        yield Proxy(started.child, [upstream.port for upstream in started.upstreams], path, started.page)
        started.child.stop()


def head(status: str, *fields: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST = b"0\r\n\r\n"


def whole(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> list[bytes]:
    return [head(status, f"content-type: {content_type}", f"content-length: {len(body)}") + body]


def post(body: bytes, *fields: str, target: str = "/mcp", host: str = "mcp.example") -> bytes:
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body
