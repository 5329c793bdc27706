"""Server-sent events: bytes in any portions give the same events."""

import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_wiretap.wire.sse import SseEvent, SseParser


def parsed(*chunks: bytes, max_event: int = 8 << 20) -> tuple[list[SseEvent], SseParser]:
    parser = SseParser(max_event)
    return [event for chunk in chunks for event in parser.feed(chunk)], parser


def data(*chunks: bytes) -> list[str]:
    return [event.data for event in parsed(*chunks)[0]]


def test_an_event_is_dispatched_at_its_blank_line() -> None:
    parser = SseParser()
    assert parser.feed(b"event: message\ndata: a\n") == []
    [event] = parser.feed(b"\n")
    assert (event.index, event.data, event.event, event.typed, event.lines) == (0, "a", "message", True, 1)
    assert event.size == len(b"event: message\ndata: a\n\n")


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_three_ways(end: bytes) -> None:
    stream = end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""])
    assert data(stream) == ["a\nb", "c"]
    assert data(*(bytes([byte]) for byte in stream)) == ["a\nb", "c"]


def test_line_ends_may_be_mixed() -> None:
    assert data(b"data: a\r\n\ndata: b\r\rdata: c\n\r\ndata: d\n\r") == ["a", "b", "c", "d"]


def test_a_line_feed_belongs_to_the_carriage_return_before_it_only_once() -> None:
    assert data(b"data: a\r", b"\n", b"\n") == ["a"]
    assert data(b"data: a\r", b"", b"\n", b"\n") == ["a"]
    assert data(b"data: a\r\r", b"\ndata: b\n\n") == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"data: a", "a"),
        (b"data:a", "a"),
        (b"data:  a", " a"),
        (b"data:\ta", "\ta"),
        (b"data: a: b", "a: b"),
        (b"data: ", ""),
        (b"data:", ""),
        (b"data", ""),
    ],
)
def test_one_space_after_the_colon_is_dropped(line: bytes, value: str) -> None:
    assert data(line + b"\n\n") == [value]


@pytest.mark.parametrize("line", [b": data: a", b":", b"Data: a", b" data: a", b"data : a", b"dat", b"\xef\xbb\xbfdata: a"])
def test_anything_else_is_no_data(line: bytes) -> None:
    assert data(b"\n" + line + b"\n\n") == []


def test_one_byte_order_mark_is_dropped_at_the_start() -> None:
    assert data(b"\xef\xbb\xbfdata: a\n\n") == ["a"]
    assert data(b"\xef", b"\xbb", b"\xbfda", b"ta: a\n\n") == ["a"]
    assert data(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n") == []


def test_comments_are_counted_and_make_no_event() -> None:
    events, parser = parsed(b": keep-alive\n\n:\ndata: a\n: inside\n\n")
    assert ([e.data for e in events], parser.comments, events[0].index) == (["a"], 3, 0)


def test_an_event_without_data_is_none_and_leaves_no_trace() -> None:
    [event] = parsed(b"event: ping\nid: 7\nretry: 5\n\ndata: a\n\n")[0]
    assert (event.event, event.id, event.retry, event.typed, event.index) == ("message", None, None, False, 0)


def test_a_priming_event_has_an_id_and_empty_data() -> None:
    [event] = parsed(b"id: 0\ndata:\n\n")[0]
    assert (event.id, event.data) == ("0", "")


def test_the_last_id_and_retry_outlive_their_events() -> None:
    events, parser = parsed(b"id: 1\nretry: 3000\ndata: a\n\ndata: b\n\n")
    assert [(e.id, e.retry) for e in events] == [("1", 3000), (None, None)]
    assert (parser.last_id, parser.retry) == ("1", 3000)


def test_ids_with_nul_and_retries_that_are_no_number_are_ignored() -> None:
    [event] = parsed(b"id: a\0b\nretry: 5s\nretry: -1\nretry:\nretry: " + b"9" * 5_000 + b"\ndata: a\n\n")[0]
    assert (event.id, event.retry) == (None, None)


def test_many_data_lines_are_joined_and_counted() -> None:
    [event] = parsed(b"data: {\ndata: }\ndata\n\n")[0]
    assert (event.data, event.lines) == ("{\n}\n", 3)


def test_bytes_that_are_not_utf8_are_replaced_and_noticed() -> None:
    events = parsed(b"data: a\xffb\n\ndata: c\n\n")[0]
    assert [(e.data, e.not_utf8) for e in events] == [("a\ufffdb", True), ("c", False)]


def test_a_character_may_come_in_pieces() -> None:
    stream = "data: \u20ac\U0001f600\n\n".encode()
    events = parsed(*(bytes([byte]) for byte in stream))[0]
    assert [(e.data, e.not_utf8) for e in events] == [("\u20ac\U0001f600", False)]


@pytest.mark.parametrize(
    ("rest", "unfinished"),
    [
        (b"", False),
        (b"data: b\n", True),
        (b"data: b", True),
        (b"da", True),
        (b"id: 5\n", True),
        (b": bye", False),
        (b": bye\n", False),
        (b"foo: x\n", False),
    ],
)
def test_an_event_without_its_blank_line_is_discarded_and_told(rest: bytes, unfinished: bool) -> None:
    events, parser = parsed(b"data: a\n\n" + rest)
    assert [e.data for e in events] == ["a"]
    assert parser.finish().unfinished is unfinished


@pytest.mark.parametrize(
    ("body", "foreign"),
    [
        (b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "2.0"}'),
        (b"[1,\n2]\n\n", b"[1,"),
        (b"\xef\xbb\xbf<p>" + b"a" * 2_999, b"<p>" + b"a" * 1_997),
        (b"hello\n", b""),
        (b": {\n\n", b""),
        (b"{\ndata: 1\n\n", b""),
        (b"data: {", b""),
    ],
)
def test_what_is_no_event_stream_is_told_by_how_it_begins(body: bytes, foreign: bytes) -> None:
    assert parsed(body)[1].finish().foreign == foreign


def test_a_lone_byte_order_mark_is_nothing_unfinished() -> None:
    assert not parsed(b"\xef\xbb\xbf")[1].finish().unfinished


# Splits

PIECES = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data",
        b"data:",
        b"data: ",
        b"id: ",
        b"event: ",
        b"retry: 5",
        b": c",
        b"x",
        b" ",
        b"\xc3\xa9",
        b"\xff",
        b"\xe2\x82\xac",
        b"\xef\xbb\xbf",
        b"\x00",
        b"",
    ]
)


def everything(chunks: list[bytes], max_event: int) -> Any:
    events, parser = parsed(*chunks, max_event=max_event)
    return events, parser.finish(), parser.comments, parser.last_id, parser.retry, parser.bytes


@given(st.lists(PIECES, max_size=30).map(b"".join), st.data(), st.sampled_from([8 << 20, 3]))
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", None, 100)
def test_a_stream_split_anywhere_gives_the_same_events(stream: bytes, draw: st.DataObject | None, max_event: int) -> None:
    whole = everything([stream], max_event)
    assert everything([bytes([byte]) for byte in stream], max_event) == whole
    if draw is not None:
        cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
        chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        assert everything(chunks, max_event) == whole


@given(st.lists(PIECES, max_size=30).map(b"".join))
def test_events_are_those_of_the_standard(stream: bytes) -> None:
    """Against the standard's own words, applied to the whole text at once."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    expected, buffer = [], None
    for line in lines:
        name, _, value = line.partition(":")
        if not line:
            if buffer is not None:
                expected.append("\n".join(buffer))
            buffer = None
        elif name == "data":
            buffer = [*(buffer or []), value.removeprefix(" ")]
    assert data(stream) == expected


# Bounds


def test_an_event_past_the_limit_is_cut_and_says_so() -> None:
    events = parsed(b"data: 0123456789\n\ndata: 12345678\n\n", max_event=8)[0]
    assert [(e.data, e.truncated) for e in events] == [("01234567", True), ("12345678", False)]


def test_a_cut_through_a_character_is_no_fault_of_the_stream() -> None:
    [event] = parsed("data: aaa\u20ac\n\n".encode(), max_event=5)[0]
    assert (event.data, event.truncated, event.not_utf8) == ("aaa", True, False)


def test_a_long_comment_cuts_no_event() -> None:
    [event] = parsed(b": " + b"c" * 1_000 + b"\ndata: a\n\n", max_event=10)[0]
    assert (event.data, event.truncated) == ("a", False)


def test_long_types_and_ids_are_cut() -> None:
    [event] = parsed(b"event: " + b"\xc3\xa9" * 50_000 + b"\nid: a" + b"\xc3\xa9" * 50_000 + b"\ndata: a\n\n")[0]
    assert len(event.event) <= 1_000 and len(event.id or "") <= 10_000
    assert not event.not_utf8


MEGA = 1 << 20


@pytest.mark.parametrize(
    "unit",
    [
        b"x" * 4096,
        b"data: " + b"y" * 4090,
        b"data\n" * 819,
        b"\n" * 4096,
        b"\r" * 4096,
        b"\r\n" * 2048,
        b":\n" * 2048,
        b"id: " + b"i" * 4092,
        b"data\n\n" * 683,
    ],
    ids=lambda unit: repr(unit[:8]),
)
def test_hostile_megabytes_cost_bounded_memory_and_time(unit: bytes) -> None:
    parser = SseParser(MEGA)
    started = time.process_time()
    for _ in range(16):
        parser.feed(unit * 16)
    assert time.process_time() - started < 4
    parser = SseParser(MEGA // 4)
    tracemalloc.start()
    for _ in range(16):
        parser.feed(unit * 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MEGA


def test_a_single_event_of_fifty_megabytes_is_one_event() -> None:
    parser = SseParser(8 * MEGA)
    parser.feed(b"data: ")
    for _ in range(50):
        parser.feed(b"z" * MEGA)
    [event] = parser.feed(b"\n\n")
    assert (len(event.data), event.truncated, event.size) == (8 * MEGA, True, 50 * MEGA + 8)


def test_one_byte_chunks_cost_no_more_than_the_line_they_make() -> None:
    parser = SseParser()
    tracemalloc.start()
    parser.feed(b"data: ")
    for _ in range(30_000):
        parser.feed(b"xy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000
