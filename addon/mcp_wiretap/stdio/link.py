"""The way to the proxy. Never raises, never holds the pumps up, and neither side has to start first.

While there is no proxy, frames wait: the first megabyte for good (a proxy that comes later, or anew, wants the handshake and the
lists), of the rest the newest eight. What is dropped is counted and said.
"""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from mcp_wiretap.stdio import address
from mcp_wiretap.stdio.frames import Frame

HEAD = 1 << 20  # bytes of frames, from the start of the session, that each proxy is told
BACKLOG, UNSENT = 8 << 20, 64 << 20  # bytes of further frames that wait: without a proxy, with one that is slow
TOGETHER = 1 << 16  # bytes of frames that are sent at once
RETRY = 1.0  # seconds between two looks for a proxy
CONNECTING = 0.5  # seconds for a connection on this machine
QUICK = 5.0  # seconds in which the proxy says what becomes of a line, or that somebody holds it
PARTING = 1.0  # seconds at the end for what is not sent yet

type Told = list[tuple[str, bytes]] | None
type Decided = Callable[[Told], None]


class Backlog:
    """Frames that wait to be sent, bounded. Not thread-safe."""

    def __init__(self) -> None:
        self.dropped = 0
        self._head: list[Frame] = []
        self._head_size = 0
        self._tail: deque[Frame] = deque()
        self._tail_size = 0
        self._sent = 0  # of the head, to the present reader
        self._gone = 0  # frames behind the head that are no longer here
        self._missing = 0  # of those, the ones that the present reader has not been told of

    def put(self, frame: Frame, most: int) -> None:
        if not self._tail and not self._gone and self._head_size + frame.size <= HEAD:
            self._head.append(frame)
            self._head_size += frame.size
            return
        self._tail.append(frame)
        self._tail_size += frame.size
        while self._tail_size > most and len(self._tail) > 1:
            self._tail_size -= self._tail.popleft().size
            self._gone += 1
            self._missing += 1
            self.dropped += 1

    def new_reader(self) -> None:
        """Somebody new listens: from the start."""
        self._sent, self._missing = 0, self._gone

    def __bool__(self) -> bool:
        return self._sent < len(self._head) or bool(self._tail)

    def some(self) -> list[Frame]:
        """The next frames for the present reader, as many as are sent at once: at least one."""
        frames, size = [self.next()], 0
        while self and size < TOGETHER:
            frames.append(self.next())
            size += frames[-1].size
        return frames

    def next(self) -> Frame:
        """The next frame for the present reader."""
        if self._sent < len(self._head):
            self._sent += 1
            return self._head[self._sent - 1]
        if self._missing:
            missing, self._missing = self._missing, 0
            return Frame("missing", self._tail[0].at, more=(("missing", missing),))
        frame = self._tail.popleft()
        self._tail_size -= frame.size
        self._gone += 1
        return frame


class Link:
    """Tells a proxy what passes, and asks it where `inline` is wanted."""

    def __init__(self, path: str, hello: Frame, *, inline: bool = False) -> None:
        self.inline = inline
        self.alive = False
        self._path = path
        self._hello = hello
        self._backlog = Backlog()
        self._socket: socket.socket | None = None
        self._news = threading.Condition()
        self._waiting: dict[int, tuple[Decided, threading.Event]] = {}
        self._number = 0
        self._asked_from = 1  # numbers before it were asked of an earlier proxy
        self._deaf = False  # it did not answer in time: nothing is asked until it does again
        self._over = False
        self._connect()
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    @property
    def dropped(self) -> int:
        return self._backlog.dropped

    @property
    def asks(self) -> bool:
        """Whether a line is asked about before it passes."""
        return self.inline and self.alive and not self._deaf

    def tell(self, frames: Sequence[Frame]) -> None:
        """Keep copies for the proxy: sent at once where there is one, else when one comes."""
        with self._news:
            most = UNSENT if self.alive else BACKLOG
            for frame in frames:
                self._backlog.put(frame, most)
            self._news.notify()

    def ask(self, frame: Frame, decided: Decided) -> None:
        """Ask what to do with a line; `decided(None)`: pass it as it is, `decided([(direction, line)...])`: these in its place.
        Returns when that is known, or when somebody holds the line: it steps out of the order, and the others go on."""
        quick = threading.Event()
        with self._news:
            self._number += 1
            number = self._number
            self._waiting[number] = decided, quick
        self.tell([frame._replace(number=number)])
        if not self.alive:
            self._decide(number, None)
        elif not quick.wait(QUICK):
            self._deaf = True
            self._decide(number, None)

    def release(self) -> None:
        """Let all lines that are held pass as they were: the client has closed its end."""
        for number in list(self._waiting):
            self._decide(number, None)

    def close(self, seconds: float = PARTING) -> None:
        """Nothing more comes; what waits is sent, where there is a proxy that takes it."""
        with self._news:
            self._over = True
            self._news.notify()
        if self.alive:
            self._sender.join(seconds)

    def _connect(self) -> bool:
        try:
            made = address.connect(self._path, CONNECTING)
            made.sendall(self._hello.encode())
        except (OSError, ValueError):
            return False
        with self._news:
            self._backlog.new_reader()
            self._socket, self.alive, self._deaf = made, True, False
            self._asked_from = self._number + 1
        threading.Thread(target=self._receive, args=(made,), daemon=True).start()
        return True

    def _send(self) -> None:
        while True:
            if not self.alive and not self._connect():
                if self._over:
                    return
                time.sleep(RETRY)
                continue
            with self._news:
                while self.alive and not self._backlog and not self._over:
                    self._news.wait()
                if not self.alive:
                    continue
                if not self._backlog:
                    break
                frames = self._backlog.some()
                made = self._socket
            assert made is not None
            try:
                made.sendall(b"".join(frame.encode(ask=frame.number >= self._asked_from) for frame in frames))
            except OSError:
                self._gone(made)
        with suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_WR)

    def _receive(self, made: socket.socket) -> None:
        try:
            with made.makefile("rb") as lines:
                for line in lines:
                    self._take(json.loads(line))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass
        self._gone(made)

    def _take(self, frame: dict[str, Any]) -> None:
        self._deaf = False
        number = frame["n"]
        if "pass" in frame:
            told = frame["pass"]
            self._decide(
                number, None if told is None else [(d, str(line).encode("utf-8", "surrogateescape")) for d, line in told]
            )
        elif (waiting := self._waiting.get(number)) is not None:
            waiting[1].set()

    def _decide(self, number: int, told: Told) -> None:
        decided, quick = self._waiting.pop(number, (None, None))
        if decided is not None and quick is not None:
            try:
                decided(told)
            finally:
                quick.set()

    def _gone(self, made: socket.socket) -> None:
        with self._news:
            if self._socket is not made:
                return
            self.alive = False
            self._news.notify()
        self.release()


class Pipe:
    """Tells the recorder, a process of its own that reads frames from its standard input."""

    def __init__(self, sink: IO[bytes], hello: Frame) -> None:
        self._sink = sink
        self._backlog = Backlog()
        self._news = threading.Condition()
        self._over = False
        self._backlog.put(hello, UNSENT)
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def tell(self, frames: Sequence[Frame]) -> None:
        with self._news:
            for frame in frames:
                self._backlog.put(frame, UNSENT)
            self._news.notify()

    def close(self) -> None:
        """Nothing more comes. Returns when all is written."""
        with self._news:
            self._over = True
            self._news.notify()
        self._sender.join()

    def _send(self) -> None:
        try:
            while True:
                with self._news:
                    while not self._backlog and not self._over:
                        self._news.wait()
                    if not self._backlog:
                        break
                    frames = self._backlog.some()
                self._sink.write(b"".join(frame.encode() for frame in frames))
                self._sink.flush()  # it writes the recording to its end also where this process is killed
        except (OSError, ValueError):
            pass  # it has ended; it has said why
        with suppress(OSError):
            self._sink.close()
