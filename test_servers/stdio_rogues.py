"""What a server on stdio may do wrong with its pipes: an honest server, whose output somebody spoils on its way.

`python -m test_servers CONFIG --stdio --misbehave NAME`. Knows no MCP but where a line begins and ends, so both eras are served.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

type Spoil = Callable[[bytes, int], Iterator[bytes]]  # a line of the server and its number, from 1: what is written in its place

STAYS = 8.0  # seconds that a server goes on after the end of its input


def _greeting(line: bytes, number: int) -> Iterator[bytes]:
    """Print a greeting, and a log line before each answer."""
    if number == 1:
        yield b"Server starting up...\n"
    yield b"[info] answering\n"
    yield line


def _pretty(line: bytes, number: int) -> Iterator[bytes]:
    """Write each message over several lines."""
    yield json.dumps(json.loads(line), indent=2).encode() + b"\n"


def _not_utf8(line: bytes, number: int) -> Iterator[bytes]:
    """Write the second message with a byte that no UTF-8 has."""
    yield line.replace(b'"jsonrpc"', b'"x": "\xff", "jsonrpc"', 1) if number == 2 else line


def _twice(line: bytes, number: int) -> Iterator[bytes]:
    """Answer each request two times."""
    yield line
    if b'"result"' in line:
        yield line


def _cut(line: bytes, number: int) -> Iterator[bytes]:
    """End inside the first message."""
    yield line[: len(line) // 2]
    raise EOFError


def _deaf(line: bytes, number: int) -> Iterator[bytes]:
    """Go on for some seconds after the end of the input."""
    yield line


ROGUES: dict[str, Spoil] = {
    "greeting": _greeting,
    "pretty": _pretty,
    "not-utf8": _not_utf8,
    "twice": _twice,
    "cut": _cut,
    "deaf": _deaf,
}


def serve(config: str, name: str, command: Sequence[str] = ()) -> int:
    """Serve the config on stdio until the input ends, spoilt in this way. Returns the exit status."""
    spoil = ROGUES[name]
    honest = [*command] or [sys.executable, "-m", "test_servers", config, "--stdio"]
    server = subprocess.Popen(honest, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    asked = _Asked()
    threading.Thread(target=_pass_on, args=(server.stdin, asked), daemon=True).start()
    out = sys.stdout.buffer
    try:
        for number, line in enumerate(server.stdout, 1):
            for written in spoil(line, number):
                out.write(written)
                out.flush()
            asked.answered(line)
    except EOFError:
        out.flush()
        server.kill()
        return 1
    if name == "deaf":
        time.sleep(STAYS)
    return server.wait()


class _Asked:
    """What the honest server has still to answer: it forgets the rest when its input ends, as servers of the SDK do."""

    def __init__(self) -> None:
        self._open = 0
        self._news = threading.Condition()

    def asked(self, line: bytes) -> None:
        with self._news:
            self._open += b'"id"' in line and b'"method"' in line

    def answered(self, line: bytes) -> None:
        with self._news:
            self._open -= b'"id"' in line and b'"method"' not in line
            self._news.notify()

    def wait(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._open <= 0, STAYS)


def _pass_on(to: IO[bytes], asked: _Asked) -> None:
    for line in sys.stdin.buffer:
        asked.asked(line)
        to.write(line)
        to.flush()
    asked.wait()
    to.close()
