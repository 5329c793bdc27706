"""A stored flow gives the same events as the live one did."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_wiretap.proxy.stored import announcement, events_of, split
from mcp_wiretap.trace.events import ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.wire.sse import SseParser
from tests.proxy import flows

PIECES = st.sampled_from(b"\n|\r|\r\n|data: x|data|data:|dat|database: y|: c|id: 1|event: e|\xef\xbb\xbf|z".split(b"|"))


def of(flow, limit=1 << 20):
    return events_of(flow.get_state(), limit)


@given(st.lists(PIECES, max_size=40).map(b"".join))
@settings(max_examples=400, deadline=None)
def test_each_event_of_a_kept_stream_comes_at_its_own_time(body):
    events = SseParser().feed(body)
    times = [float(n) for n in range(len(events))]
    parser, got = SseParser(), []
    pieces = list(split(body, times, 99.0))
    for at, piece in pieces:
        got += [(at, event.data, event.id) for event in parser.feed(piece)]
    assert b"".join(piece for _, piece in pieces) == body
    assert got == [(at, event.data, event.id) for at, event in zip(times, events, strict=True)]


def test_events_that_came_at_once_stay_together():
    body = b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
    assert list(split(body, [1.0, 1.0, 2.0], 9.0)) == [(1.0, b"data: 1\n\ndata: 2\n\n"), (2.0, b"data: 3\n\n")]


def test_events_without_a_time_and_the_tail_come_at_the_end():
    assert list(split(b"data: 1\n\ndata: 2\n\nda", [1.0], 9.0)) == [(1.0, b"data: 1\n\n"), (9.0, b"data: 2\n\n"), (9.0, b"da")]


def test_a_long_run_of_comments_is_split_in_linear_time():
    body = b": keep alive\n\n" * 100_000 + b"data: 1\n\n"
    assert [at for at, _ in split(body, [5.0], 9.0)] == [5.0]


def test_a_whole_flow_is_three_events():
    seen, started, ended = of(flows.finished())
    assert isinstance(seen, RequestSeen) and (seen.started, seen.at) == (1000.0, 1000.1)
    assert (seen.scheme, seen.host, seen.port, seen.target) == ("http", "mcp.example", 8000, "/mcp")
    assert isinstance(started, ResponseStarted) and started.status == 200
    assert isinstance(ended, ExchangeEnded) and ended.ended_by == "complete" and ended.body == flows.result()


def test_a_stream_without_times_comes_in_one_untimed_piece():
    flow = flows.finished(answer=flows.response(b"data: 1\n\ndata: 2\n\n", flows.SSE))
    _, _, data, ended = of(flow)
    assert isinstance(data, StreamData) and not data.timed and data.at == 1000.3
    assert ended.streamed and ended.body is None


@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
def test_the_address_that_a_stream_announces_comes_at_its_start_even_without_times(line):
    address = b"event: endpoint" + line + b"data: /post?session_id=1" + line * 2
    flow = flows.finished(answer=flows.response(address + b"data: 1\n\n", flows.SSE))
    _, head, first, rest, _ = of(flow)
    assert (first.at, first.data, first.timed) == (head.at, address, False)
    assert (rest.at, rest.data, rest.timed) == (1000.3, b"data: 1\n\n", False)


def test_a_stream_that_was_not_kept_is_not_guessed():
    _, _, ended = of(flows.finished(answer=flows.response(None, flows.SSE)))
    assert not ended.streamed and ended.body is None


def test_a_flow_that_was_saved_while_it_was_open_has_not_ended():
    flow = flows.finished(answer=flows.response(b"data: 1\n\n", flows.SSE))
    flow.response.timestamp_end = None
    flow.metadata["mcp.events"] = [1000.25]
    assert [type(event) for event in of(flow)] == [RequestSeen, ResponseStarted, StreamData]
    flow.response = None
    assert [type(event) for event in of(flow)] == [RequestSeen]


def test_a_compressed_stream_is_split_after_decoding():
    flow = flows.finished(answer=flows.response(gzip.compress(b"data: 1\n\ndata: 2\n\n"), flows.SSE))
    flow.response.headers["content-encoding"] = "gzip"
    flow.metadata["mcp.events"] = [1000.22, 1000.24]
    data = [event for event in of(flow) if isinstance(event, StreamData)]
    assert [(d.at, d.data, d.decoded) for d in data] == [(1000.22, b"data: 1\n\n", True), (1000.24, b"data: 2\n\n", True)]


def test_a_compressed_stream_that_was_cut_short_says_so():
    flow = flows.finished(answer=flows.response(gzip.compress(b"data: 1\n\n" * 50)[:30], flows.SSE))
    flow.response.headers["content-encoding"] = "gzip"
    assert of(flow)[-1].decode_problem == "cut short"


@pytest.mark.parametrize(
    ("text", "answered", "noted", "expected"),
    [
        ("Client disconnected.", True, None, "client"),
        ("Client disconnected.", True, "unknown", "unknown"),
        ("stream reset by client (CANCEL)", True, None, "client"),
        ("stream reset by client (INTERNAL_ERROR)", True, None, "unknown"),
        ("HTTP/1 protocol error: peer closed connection without sending complete message body (x)", True, None, "server"),
        ("peer closed connection", True, None, "unknown"),
        ("peer closed connection", True, "server", "server"),
        ("peer closed connection", True, "nonsense", "unknown"),
        ("[Errno 111] Connect call failed ('127.0.0.1', 1)", False, None, "server"),
        ("Connection killed.", False, None, "unknown"),
    ],
)
def test_who_ended_a_stored_flow(text, answered, noted, expected):
    flow = flows.broken(flows.finished(), text)
    if not answered:
        flow.response = None
    if noted:
        flow.metadata["mcp.ended"] = noted
    assert of(flow)[-1].ended_by == expected


def test_the_request_of_a_har_does_not_end_after_the_response_began():
    flow = flows.finished()
    flow.request.timestamp_end = 1002.0
    assert of(flow)[0].at == 1000.2


def test_an_address_that_was_rewritten_is_put_right():
    seen = events_of(flows.finished().get_state(), 100, address=("https", "real.example", 443))[0]
    assert (seen.scheme, seen.host, seen.port) == ("https", "real.example", 443)


@given(st.lists(st.binary(min_size=1, max_size=60) | st.just(b"data: {}\n\n"), max_size=12), st.sampled_from(["end", "error"]))
@settings(max_examples=80, deadline=None)
def test_the_trace_of_a_live_stream_and_of_its_recording_are_the_same(chunks, ending):
    with flows.proxy() as addon:
        flow = flows.live()
        addon.request(flow)
        flow.response = flows.response(None, flows.SSE)
        flow.response.timestamp_end = None
        addon.responseheaders(flow)
        clock = 1000.25
        for chunk in chunks:
            clock += 0.01
            addon._capture.clock = lambda at=clock: at
            flow.response.stream(chunk)
        if ending == "end":
            flow.response.timestamp_end = 1002.0
            addon.response(flow)
        else:
            addon.error(flows.broken(flow, at=1002.0))
        live = addon.watch.inspector.exchanges[flow.id]
        state = flow.get_state()
    with flows.proxy() as again:
        for event in events_of(state, 1 << 20):
            again.watch.inspector.feed(event)
        stored = again.watch.inspector.exchanges[flow.id]
    for name in ("era", "outcome", "error_code", "ended", "ended_by", "failure", "dropped", "revision", "method", "unchecked"):
        assert getattr(stored, name) == getattr(live, name), name
    assert [f.rule for f in stored.findings] == [f.rule for f in live.findings]
    for name in ("times", "count", "comments", "unfinished", "first_at", "last_at", "timed", "decode_problem"):
        assert getattr(stored.stream, name) == getattr(live.stream, name), name


EVENT = b"event: endpoint\ndata: /messages?session=1\n\n"
AFTER = b'event: message\ndata: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n'


@pytest.mark.parametrize(
    "announced",
    [
        EVENT,
        b"\xef\xbb\xbf" + EVENT,
        b": ping\n\n" + EVENT,
        b": ping\n" + EVENT,
        b": one\n\n: two\n\n" + EVENT,
        b"retry: 500\n\n" + EVENT,
        b"retry: 500\n" + EVENT,
        b"id: 7\n" + EVENT,
        b"\n" + EVENT,
        b"\n\n\n" + EVENT,
        b"unknown: field\n" + EVENT,
        b"data: /messages?session=1\nevent: endpoint\n\n",
        b"event:endpoint\ndata:/messages?session=1\n\n",
        b"event: nothing\n\n" + EVENT,
        b": ping " * 5_000 + b"\n\n" + EVENT,
    ],
    ids=lambda announced: repr(announced[:40]),
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_the_address_that_an_http_sse_stream_announces_is_found_behind_whatever_comes_first(announced, end):
    announced, after = announced.replace(b"\n", end), AFTER.replace(b"\n", end)
    assert announcement(announced + after) == len(announced)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        AFTER,
        AFTER + EVENT,
        b": ping\n\n" + AFTER + EVENT,
        b"data: event: endpoint\n\n",
        b"event: endpoints\ndata: /m\n\n",
        b"event: endpoint\ndata: /cut",
        b"event: endpoint\n\n",
        b":" + b"x" * (64 << 10) + b"\n\n" + EVENT,
    ],
    ids=lambda body: repr(body[:40]),
)
def test_another_event_first_announces_nothing(body):
    assert announcement(body) == 0
