"""A wrapper started for a test, and a proxy that is nothing but a socket."""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WRAPPER = [sys.executable, "-m", "mcp_wiretap", "stdio"]
ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line); sys.stdout.buffer.flush()\n"
LONG = 60.0  # seconds: machines may be slow


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-u", "-c", code, *arguments]


@contextmanager
def wrapped(
    command: Sequence[str], *options: str, path: Path | str = "nowhere", **more: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """A running wrapper; ended with the block."""
    process = subprocess.Popen(
        [*WRAPPER, "--socket", str(path), *options, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        **more,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def passed(command: Sequence[str], data: bytes, *options: str, path: Path | str = "nowhere") -> tuple[bytes, bytes, int]:
    """All that comes out of a wrapper that gets this, and its exit status."""
    with wrapped(command, *options, path=path) as process:
        out, err = process.communicate(data, timeout=LONG)
        return out, err, process.returncode


class Proxy:
    """Hears wrappers. `frames` is what they said; `answer(frame)` may decide what becomes of a line."""

    def __init__(self, path: Path, *, reads: bool = True) -> None:
        self.frames: queue.Queue[dict[str, Any]] = queue.Queue()
        self.connections: list[socket.socket] = []
        self._reads = reads
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def answer(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        return []

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self._listening.accept()
            except OSError:
                return
            self.connections.append(made)
            if self._reads:
                threading.Thread(target=self._hear, args=(made,), daemon=True).start()

    def _hear(self, made: socket.socket) -> None:
        try:
            for line in made.makefile("rb"):
                frame = json.loads(line)
                self.frames.put(frame)
                for said in self.answer(frame):
                    made.sendall(json.dumps(said).encode() + b"\n")
        except OSError:
            pass

    def until(self, key: str, seconds: float = LONG) -> list[dict[str, Any]]:
        """The frames up to the first that has this key."""
        found: list[dict[str, Any]] = []
        end = time.monotonic() + seconds
        while not found or key not in found[-1]:
            found.append(self.frames.get(timeout=max(end - time.monotonic(), 0.1)))
        return found

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # which ends a waiting accept; close alone would let it take one more
        self._listening.close()
        for made in self.connections:
            with suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
            made.close()


def lines(frames: list[dict[str, Any]], direction: str) -> list[str]:
    return [frame["line"] for frame in frames if frame.get("d") == direction]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def gone(pid: int, seconds: float = LONG) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False
