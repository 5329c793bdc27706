"""Child processes that are started together, watched by their logs, and never left behind.

Each child is the leader of a process group of its own, so Ctrl-C reaches only us and we stop them in order. Its output
goes straight into a file, which is also how we learn that it is ready: no pipe that fills, no thread that reads.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
POLL = 0.05
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class ChildError(Exception):
    """A child did not do what was asked of it. The text says which and what, and ends with its own last words."""


class Stopped(BaseException):
    """A signal asked us to end. Like KeyboardInterrupt, no ordinary handler may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def signals_raise_stopped() -> Iterator[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP raise Stopped.

    A shell starts what it runs in the background with SIGINT ignored; we listen all the same. `nohup` is respected.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Child:
    """One process with its log."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, cwd: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        self._position = 0
        with log.open("wb") as output:
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise ChildError(f"{name} cannot be started: {error}") from error

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, pattern: str, timeout: float) -> re.Match[str]:
        """The first match after the last one. Raises ChildError when the child ends before it or time runs out."""
        deadline = time.monotonic() + timeout
        while True:
            running = self.running
            text = self.output()
            if match := re.compile(pattern, re.MULTILINE).search(text, self._position):
                self._position = match.end()
                return match
            if not running:
                raise self.error(f"ended with status {self.process.returncode} before it was ready")
            if time.monotonic() > deadline:
                raise self.error(f"was not ready after {timeout:.0f} s")
            time.sleep(POLL)

    def wait(self, timeout: float, needs: Sequence["Child"] = ()) -> int:
        """The exit status; negative for a signal. Raises ChildError when time runs out or one that it needs is gone."""
        deadline = time.monotonic() + timeout
        while self.running:
            for other in needs:
                other.must_run()
            if time.monotonic() > deadline:
                raise self.error(f"was not done after {timeout:.0f} s")
            time.sleep(POLL)
        return self.process.returncode

    def must_run(self) -> None:
        """Raises ChildError if it has ended."""
        if not self.running:
            raise self.error(f"ended with status {self.process.returncode}")

    def stop(self, timeout: float = 20) -> bool:
        """End the whole group, politely first; True if that was enough. A second call does nothing."""
        if not self.running:
            return True
        # The group is signalled only while its leader is not yet reaped: after that its number may be somebody else's.
        os.killpg(self.pid, signal.SIGTERM)
        try:
            self.process.wait(timeout)
            return True
        except BaseException as error:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return False

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def error(self, what: str) -> ChildError:
        lines = [line for line in self.output().splitlines() if line.strip()][-15:]
        words = "".join(f"\n    {line}" for line in lines) or " nothing"
        return ChildError(f"{self.name} {what}. Its last words:{words}")


class Children:
    """All children of one run and the folder of their logs; `with` stops them, the last one first."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mcp-wiretap-"))
        self._all: list[Child] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            while self._all:
                self._all[-1].stop()
                self._all.pop()
        except BaseException:
            for child in self._all:
                child.stop(timeout=0)
            raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name: str, command: Sequence[str], *, cwd: Path = ROOT, proxied: bool = False, **variables: str) -> Child:
        """Start `command`; its log is called `name`. The environment's own HTTP proxy is hidden unless `proxied`."""
        hidden = {"PYTHONPATH", *(() if proxied else PROXY_VARIABLES)}
        environment = {key: value for key, value in os.environ.items() if key not in hidden}
        environment |= {"PYTHONUNBUFFERED": "1", **variables}
        child = Child(name, command, self.folder / f"{name}.log", cwd=cwd, environment=environment)
        self._all = [*(one for one in self._all if one.running), child]
        return child

    def keep_logs(self, destination: Path) -> None:
        destination.mkdir(parents=True, exist_ok=True)
        for log in self.folder.glob("*.log"):
            shutil.copy(log, destination)


def free_ports(*wanted: int) -> list[int]:
    """For each wanted port the first from there on that nothing listens on at 127.0.0.1, all of them different."""
    found: list[int] = []
    for first in wanted:
        found.append(next((port for port in range(first, first + 200) if port not in found and _is_free(port)), 0))
        if not found[-1]:
            raise ChildError(f"no free port in {first}-{first + 199}")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
        return True
