"""Copies of what passes, in the order in which it passed. Who passes a piece only notes it; another thread cuts it into lines.

A piece is noted before it is written: otherwise the answer of a quick server could be told before its request. It is cut and told
after it was written: the thread that passes it does no more than append to a queue.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from mcp_wiretap.stdio.frames import MOST_LINE, Frame

GATHERING = 0.001  # seconds in which further pieces are waited for: one turn of the thread for many of them
UNHEARD = 0.05  # the same, where nobody listens
MOST_NOTED = 64  # pieces of a direction that wait to be cut; then the one who passes them cuts

type Tell = Callable[[Sequence[Frame]], None]


class Copies:
    """Pieces of both directions and frames of other kinds, told as frames in their order."""

    def __init__(self, tell: Sequence[Tell], heard: Callable[[], bool]) -> None:
        self._tell = tell
        self._heard = heard
        self._noted: deque[tuple[str, float, bytes] | Frame] = deque()
        self._count = {"c": 0, "s": 0}  # pieces noted: each is written by the one thread that passes that direction
        self._cut = {"c": 0, "s": 0}  # of those, the ones that were cut
        self._unfinished = {"c": Line(), "s": Line()}
        self._cutting = threading.Lock()
        self._news = threading.Condition()
        self._asleep = False

    def start(self) -> None:
        """Tell what is noted from now on, soon after it passed. Without it: when it is settled."""
        threading.Thread(target=self._work, daemon=True).start()

    def note(self, direction: str, at: float, piece: bytes) -> None:
        """Keep a piece that is about to pass; an empty one: that side has closed its output."""
        self._count[direction] += 1
        self._noted.append((direction, at, piece))

    def passed(self, direction: str) -> None:
        """What was noted has passed: see that it is told."""
        if self._count[direction] - self._cut[direction] > MOST_NOTED:
            self.settle()
        elif self._asleep:
            self._wake()

    def put(self, frame: Frame) -> None:
        """Tell a frame that is no piece of these, in its turn."""
        self._noted.append(frame)
        if self._asleep:
            self._wake()

    def settle(self) -> None:
        """Cut and tell all that is noted."""
        with self._cutting:
            frames: list[Frame] = []
            while self._noted:
                one = self._noted.popleft()
                if isinstance(one, Frame):
                    frames.append(one)
                    continue
                direction, at, piece = one
                frames += self._frames(direction, at, piece)
                self._cut[direction] += 1
            if frames:
                for tell in self._tell:
                    tell(frames)

    def _frames(self, direction: str, at: float, piece: bytes) -> list[Frame]:
        unfinished = self._unfinished[direction]
        if not piece:
            end = Frame("eof", at, more=(("eof", direction),))
            return [unfinished.frame(direction, at, finished=False), end] if unfinished else [end]
        *ends, rest = piece.split(b"\n")
        frames = []
        if ends and unfinished:
            unfinished.add(ends.pop(0))
            frames.append(unfinished.frame(direction, at))
            self._unfinished[direction] = unfinished = Line()
        frames += [Frame(direction, at, end) for end in ends]
        if rest:
            unfinished.add(rest)
        return frames

    def _wake(self) -> None:
        with self._news:
            self._asleep = False
            self._news.notify()

    def _work(self) -> None:
        while True:
            with self._news:
                self._asleep = True  # before the look: who notes something after it sees this
                while not self._noted and self._asleep:
                    self._news.wait()
                self._asleep = False
            time.sleep(GATHERING if self._heard() else UNHEARD)
            self.settle()


class Line:
    """A line as it comes, kept up to a bound."""

    __slots__ = ("cut", "kept")

    def __init__(self) -> None:
        self.kept = bytearray()
        self.cut = 0  # bytes past the bound

    def __bool__(self) -> bool:
        return bool(self.kept)

    def add(self, piece: bytes) -> bytes:
        """Take a piece. Returns what passes now, of a line that is too long to wait for its end."""
        before, room = self.cut, MOST_LINE - len(self.kept)
        self.kept += piece[:room] if room < len(piece) else piece
        self.cut += max(len(piece) - room, 0)
        if not self.cut:
            return b""
        return piece if before else bytes(self.kept) + piece[max(room, 0) :]

    def frame(self, direction: str, at: float, *, finished: bool = True) -> Frame:
        return Frame(direction, at, bytes(self.kept), cut=self.cut, unfinished=not finished)
