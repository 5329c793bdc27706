"""What a line of a stdio server takes: direct, behind the wrapper without a proxy, observed by one, asked about (`--inline`)."""

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_ECHO = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'result': {'ok': 1}}), flush=True)\n"
)
_COMMAND = [sys.executable, "-m", "mcp_wiretap"]
_LINES, _ASKED = 1_500, 300  # round trips of one run; asked about, a line takes all the hooks of a flow
_PATIENCE = 60.0  # seconds for the proxy to start


def results(pairs: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Median delay of a line's way there and back in milliseconds, and of the first one, which has the start in it."""
    server = [sys.executable, "-u", "-c", _ECHO]
    with tempfile.TemporaryDirectory() as folder, _proxy(Path(folder) / "s") as path:
        wrapper = [*_COMMAND, "stdio", "--name", "echo", "--socket"]
        ways: dict[str, tuple[list[str], int]] = {
            "direct": (server, _LINES),
            "wrapped": ([*wrapper, str(path.with_name("nobody")), "--", *server], _LINES),
            "observed": ([*wrapper, str(path), "--", *server], _LINES),
            "inline": ([*wrapper, str(path), "--inline", "--", *server], _ASKED),
        }
        delays: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(pairs):
            tell(f"lines of a stdio server, {number + 1} of {pairs}")
            for name, (command, lines) in ways.items():
                delays[name].append(_trips(command, lines))
    return {
        "stdio_line_ms": {name: round(statistics.median(p50 for p50, _ in found), 4) for name, found in delays.items()},
        "stdio_first_line_ms": {name: round(statistics.median(first for _, first in found), 1) for name, found in delays.items()},
    }


def _trips(command: Sequence[str], lines: int) -> tuple[float, float]:
    """The median of all trips but the first, and the first with the start."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def trip(number: int) -> None:
            assert process.stdin is not None and process.stdout is not None
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "x", "arguments": {}}}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdout.readline()

        trip(0)
        first = time.perf_counter() - began
        took = []
        for number in range(1, lines):
            began = time.perf_counter()
            trip(number)
            took.append(time.perf_counter() - began)
        process.stdin.close()
    return statistics.median(took) * 1000, first * 1000


@contextlib.contextmanager
def _proxy(path: Path) -> Iterator[Path]:
    command = [*_COMMAND, "dump", "-q", "-p", "0", "--listen-host", "127.0.0.1", "--set", f"mcp_socket={path}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _PATIENCE
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.1)
        yield path
    finally:
        process.terminate()
        process.wait()
