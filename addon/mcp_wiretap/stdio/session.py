"""The frames of one wrapper made into steps of exchanges, without I/O. The proxy and the recorder use the same.

Beside the exchanges of `lines` there is one for the process itself, key 0: what it is started by, its stderr, and how it ended.
"""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.stdio.frames import line_of
from mcp_wiretap.stdio.lines import Lines, Step
from mcp_wiretap.stdio.naming import clean

PROCESS = 0  # the key of the process
STDERR = "/stderr"  # its path
_APART = 1e-6  # seconds between two frames at least
WRAPPER_GONE = "the wrapper of the server has gone"


class Session:
    """One process. ValueError, TypeError or KeyError for frames that no wrapper writes."""

    def __init__(self, hello: dict[str, Any]) -> None:
        if hello.get("hello") != 1:
            raise ValueError("the first frame is no hello")
        self.name = clean(str(hello["name"]))
        self.pid = int(hello["pid"])
        self.command = [str(word) for word in hello["command"]]
        self.inline = bool(hello.get("inline"))
        self.started = self.last = float(hello["t"])
        self.input_ended: float | None = None  # when the client closed its end
        self.status: int | None = None
        self.dropped = 0  # frames that were not kept
        self.over = False
        self.lines = Lines()

    def begin(self) -> Iterator[Step]:
        yield Step("open", PROCESS, self.started, http_method="GET")
        yield Step("head", PROCESS, self.started)

    def take(self, frame: dict[str, Any]) -> Iterator[Step]:
        """The steps of one frame."""
        if self.over:
            return
        # Lines that came in one piece have one time; whoever puts exchanges in the order of their times must get this one back.
        self.last = at = max(float(frame["t"]), self.last + _APART)
        kind = frame.get("d")
        if kind == "c":
            yield from self.lines.client(line_of(frame), at)
        elif kind == "s":
            yield from self.lines.server(line_of(frame), at, terminated=not frame.get("open"))
        elif kind == "e":
            yield Step("event", PROCESS, at, line_of(frame), status=int(frame.get("lost", 0)))
        elif "missing" in frame:
            self.dropped += int(frame["missing"])
            yield from self.lines.gap(at)
        elif frame.get("eof") == "c":
            self.input_ended = at
        elif "exit" in frame:
            self.status = int(frame["exit"])
            yield from self.end(at)

    def end(self, at: float | None = None) -> Iterator[Step]:
        """The process has ended, or its wrapper has gone without a word."""
        if self.over:
            return
        self.over = True
        at = self.last if at is None else at
        yield from self.lines.over(at)
        yield Step("end" if self.status is not None else "lost", PROCESS, at, why="" if self.status is not None else WRAPPER_GONE)
