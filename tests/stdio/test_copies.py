"""Copies of what passes: told in the order in which it passed, whole, bounded."""

import json
import threading
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.stdio import frames
from mcp_wiretap.stdio.copies import MOST_NOTED, Copies
from mcp_wiretap.stdio.frames import Frame, line_of


class Heard:
    """Who is told: the frames, in their order."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.copies = Copies([self.tell], lambda: True)

    def tell(self, frames: Sequence[Frame]) -> None:
        self.frames += frames

    def lines(self, direction: str) -> list[tuple[bytes, bool]]:
        return [(frame.data, frame.unfinished) for frame in self.frames if frame.kind == direction]


def test_a_request_is_told_before_its_answer_however_quick_the_server_is() -> None:
    heard = Heard()
    for number in range(100):
        heard.copies.note("c", number, b"ask\n")
        answering = threading.Thread(target=heard.copies.note, args=("s", number + 0.5, b"answer\n"))
        answering.start()  # as soon as the request is written, and before its pump goes on
        answering.join()
        heard.copies.passed("s")
        heard.copies.passed("c")
    heard.copies.settle()
    times = [frame.at for frame in heard.frames]
    assert len(times) == 200
    assert all(before < after for before, after in pairwise(times))


@given(st.lists(st.binary(max_size=5).map(lambda piece: piece.replace(b"a", b"\n")).filter(bool)))
def test_lines_are_those_of_the_whole_however_it_comes_in_pieces(pieces: list[bytes]) -> None:
    heard = Heard()
    for piece in pieces:
        heard.copies.note("s", 1.0, piece)
        heard.copies.passed("s")
    heard.copies.note("s", 2.0, b"")
    heard.copies.settle()
    *ended, rest = b"".join(pieces).split(b"\n")
    assert heard.lines("s") == [(line, False) for line in ended] + [(rest, True)] * bool(rest)
    assert heard.frames[-1].more == (("eof", "s"),)


def test_who_passes_more_than_can_be_told_cuts_it_himself() -> None:
    heard = Heard()
    for _ in range(MOST_NOTED + 1):
        assert heard.frames == []
        heard.copies.note("c", 1.0, b"x\n")
        heard.copies.passed("c")
    assert len(heard.frames) == MOST_NOTED + 1


def test_what_is_noted_is_told_without_being_asked_for() -> None:
    heard, told = Heard(), threading.Event()
    heard.copies = Copies([lambda _: told.set()], lambda: True)
    heard.copies.start()
    heard.copies.note("c", 1.0, b"x\n")
    heard.copies.passed("c")
    assert told.wait(60)


@given(st.binary(max_size=200), st.integers(1, 7))
def test_a_line_is_the_same_on_the_other_side_in_slices_too(line: bytes, size: int) -> None:
    before, frames._SLICE = frames._SLICE, size
    try:
        assert line_of(json.loads(Frame("c", 1.0, line).encode())) == line
    finally:
        frames._SLICE = before
