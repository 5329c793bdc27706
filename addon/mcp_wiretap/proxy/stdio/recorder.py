"""`python -m mcp_wiretap.proxy.stdio.recorder FILE`: frames of a wrapper, on standard input, written as a .flow file.

The wrapper starts it for `--record`. It is a process of its own: what it loads must not delay the server's start, and it writes
what it has got also where the wrapper is killed.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.flow_io import writer
from mcp_wiretap.proxy.stdio import flows
from mcp_wiretap.proxy.stored import ended_by
from mcp_wiretap.stdio.lines import Step
from mcp_wiretap.stdio.session import PROCESS, Session
from mcp_wiretap.trace.limits import Limits


class Recorder:
    """Writes each flow when it is over, as mitmproxy does."""

    def __init__(self, write: Callable[[Flow], None], limits: Limits | None = None) -> None:
        self._write = write
        self._limits = limits or Limits()
        self._session: Session | None = None
        self._connections: flows.Connections | None = None
        self._open: dict[int, HTTPFlow] = {}
        self._bodies: dict[int, bytearray] = {}
        self._times: dict[int, list[float]] = {}
        self._dropped: dict[int, int] = {}

    def take(self, frame: dict[str, Any]) -> None:
        if self._session is None:
            self._session = Session(frame)
            self._connections = flows.Connections(self._session.name, self._session)
            self._follow(self._session.begin())
        else:
            self._follow(self._session.take(frame))

    def close(self) -> None:
        """No further frames come."""
        if self._session is not None:
            self._follow(self._session.end())

    def _follow(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        assert self._session is not None and self._connections is not None
        if step.what == "open":
            self._open[step.key] = flows.opened(self._connections, self._session, step, live=False)
            return
        flow = self._open.get(step.key)
        if flow is None:
            return
        if step.what == "head":
            flows.answered(flow, step, live=False)
        elif step.what == "event":
            self._keep(step)
        else:
            flows.ended(flow, self._session, step)
            self._finish(flow, step)

    def _keep(self, step: Step) -> None:
        """As the capture of live traffic does: up to the limits, with the time of each event."""
        body, times = self._bodies.setdefault(step.key, bytearray()), self._times.setdefault(step.key, [])
        room = self._limits.stream - len(body)
        lost = max(len(step.data) - room, 0) + (step.status if step.key == PROCESS else 0)
        if lost:
            self._dropped[step.key] = self._dropped.get(step.key, 0) + lost
        if room > 0:
            body += step.data[:room]
            if step.key != PROCESS and lost == 0 and len(times) < self._limits.stream_events:
                times.append(step.at)

    def _finish(self, flow: HTTPFlow, step: Step) -> None:
        body = self._bodies.pop(step.key, None)
        times = self._times.pop(step.key, None)
        if flow.response is not None:
            flow.response.raw_content = bytes(body) if body is not None else step.data
        if times:
            flow.metadata["mcp.events"] = times
        if dropped := self._dropped.pop(step.key, 0):
            flow.metadata["mcp.dropped"] = dropped
        if flow.error is not None:
            flow.metadata["mcp.ended"] = ended_by(flow.error.msg, flow.response is not None)
        self._write(flow)
        del self._open[step.key]


def frames_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Frames of their lines; one that is cut off, where the wrapper was killed, is left out."""
    for line in lines:
        try:
            frame = json.loads(line)
        except ValueError:
            continue
        if isinstance(frame, dict):
            yield frame


def main(path: str) -> int:
    """Write the file; 2 where it cannot be written."""
    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the client and the server: the file is written to its end
        signal.signal(number, signal.SIG_IGN)
    try:
        with Path(path).open("wb") as file:
            recorder = Recorder(writer(file))
            for frame in frames_of(sys.stdin.buffer):
                recorder.take(frame)
                file.flush()
            recorder.close()
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"mcp-wiretap: {path} is not recorded: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1])
    sys.stderr.flush()
    os._exit(status)
