"""Live flows: what passes, what is kept, what the trace is told."""

import gzip
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import http
from mitmproxy.addons.intercept import Intercept
from mitmproxy.addons.modifybody import ModifyBody
from mitmproxy.addons.modifyheaders import ModifyHeaders
from mitmproxy.connection import ConnectionState

from mcp_wiretap.proxy.capture import who_ended
from mcp_wiretap.trace.limits import Limits
from tests.proxy import flows

CLOSED, OPEN = ConnectionState.CLOSED, ConnectionState.OPEN


@pytest.fixture
def addon():
    with flows.proxy(mcp_select=["HDR"]) as addon:
        yield addon


def stream(addon, flow, *, content_type=flows.SSE, headers=None):
    """Bring a flow to the head of an event stream."""
    addon.request(flow)
    flow.response = flows.response(None, content_type)
    flow.response.timestamp_end = None
    for name, value in (headers or {}).items():
        flow.response.headers[name] = value
    addon.responseheaders(flow)
    return flow.response.stream


def end(addon, flow):
    flow.response.timestamp_end = 1001.0
    addon.response(flow)


def test_a_json_call_is_commented_with_what_became_of_it(addon):
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(flows.result())
    addon.responseheaders(flow)
    addon.response(flow)
    assert flow.comment == "modern tools/call echo -> complete"
    assert flow.metadata["mcp.era"] == "modern"
    assert not addon.faults.count


def test_event_streams_are_streamed(addon):
    assert callable(stream(addon, flows.live()))
    assert callable(stream(addon, flows.live(), content_type="Text/Event-Stream; charset=utf-8"))


LISTEN = flows.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
LINE = b'{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": {}}}\n'
JSON = "application/json"


def test_a_response_without_a_length_is_passed_on_as_it_comes(addon):
    assert callable(stream(addon, flows.live(), content_type=JSON))
    assert callable(stream(addon, flows.live(), content_type="text/plain"))


def test_a_response_with_a_length_is_not(addon):
    assert not stream(addon, flows.live(), content_type=JSON, headers={"content-length": "5"})


def test_the_answer_to_a_listen_is_whatever_it_says_of_itself(addon):
    assert callable(stream(addon, flows.live(LISTEN.copy()), content_type=JSON, headers={"content-length": "5"}))


def test_what_is_not_mcp_is_left_to_mitmproxy(addon):
    flow = flows.live(http.Request.make("GET", "http://mcp.example:8000/page"))
    assert not stream(addon, flow, content_type="text/html")


def test_a_stream_that_another_addon_decided_on_stays_as_it_is(addon):
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(None, JSON)
    flow.response.stream = True
    addon.responseheaders(flow)
    assert flow.response.stream is True


class Changes:
    """An addon of somebody else's that changes bodies."""

    def response(self, flow):
        flow.response.text = "changed"


def test_where_another_addon_may_change_the_body_it_is_kept_back_for_it(addon):
    addon.context.master.addons.add(Changes())
    assert not stream(addon, flows.live(), content_type=JSON)
    assert callable(stream(addon, flows.live()))
    assert callable(stream(addon, flows.live(LISTEN.copy()), content_type=JSON))


@pytest.mark.parametrize(
    ("options", "kept_back"),
    [
        ({"intercept": "~s"}, True),
        ({"intercept": "~t json"}, True),
        ({"intercept": "~bs secret"}, True),
        ({"intercept": "~q"}, False),
        ({"intercept": "~t html"}, False),
        ({"intercept": "~s", "intercept_active": False}, False),
        ({"modify_body": ["/~s/a/b"]}, True),
        ({"modify_headers": ["/~s/a/b"]}, False),
    ],
)
def test_where_an_option_may_hold_or_change_the_body_it_is_kept_back_for_it(addon, options, kept_back):
    addon.context.master.addons.add(Intercept(), ModifyBody(), ModifyHeaders())
    for name, value in options.items():
        addon.context.options.update(**{name: value})
    assert callable(stream(addon, flows.live(), content_type=JSON)) is not kept_back


def test_a_body_that_passed_at_once_is_judged_at_its_end_as_a_body(addon):
    flow = flows.live()
    tap = stream(addon, flow, content_type=JSON)
    body = flows.result()
    for chunk in (body[:10], body[10:]):
        assert tap(chunk) == chunk
    assert "tools/call echo -> none" in flow.comment
    assert tap(b"") == b""
    end(addon, flow)
    assert flow.response.raw_content == body
    assert flow.comment == "modern tools/call echo -> complete"
    assert "mcp.events" not in flow.metadata


def test_a_body_that_passed_at_once_and_is_past_the_limit_is_unchecked_and_blames_nobody():
    with flows.proxy(mcp_max_stream=50, mcp_max_body=50) as addon:
        flow = flows.live()
        tap = stream(addon, flow, content_type=JSON)
        body = flows.result({"content": [{"type": "text", "text": "x" * 100}]})
        assert tap(body) == body
        end(addon, flow)
        assert flow.response.raw_content == body[:50]
        assert flow.metadata["mcp.dropped"] == len(body) - 50
        assert "bytes past the limit were not kept" in flow.metadata["mcp.notes"]
        assert "HDR018" not in flow.metadata.get("mcp.rules", "")


def test_a_listen_in_json_lines_is_the_servers_fault_though_the_client_left(addon):
    addon.context.configure(addon, mcp_select=["SUB", "HDR"])
    flow = flows.live(LISTEN.copy())
    tap = stream(addon, flow, content_type=JSON)
    tap(LINE)
    tap(LINE[:20])
    flow.client_conn.state = flow.server_conn.state = CLOSED
    addon.error(flows.broken(flow))
    assert "subscriptions/listen -> broken" in flow.comment
    assert "the listen stream is application/json, not text/event-stream [SUB018]" in flow.comment
    assert [m.where for m in addon.watch.inspector.exchanges[flow.id].received] == ["response.line[0]"]


def test_chunks_pass_as_they_came_and_the_end_is_the_end(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    chunks = [b"data: ", b"x", b"\n", b"\n", b": c\n\n"]
    assert [tap(chunk) for chunk in chunks] == chunks
    assert tap(b"") == b""
    end(addon, flow)
    assert flow.response.raw_content == b"".join(chunks)


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=20), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_any_bytes_pass_and_the_copy_is_their_beginning(chunks, limit):
    with flows.proxy(mcp_max_stream=limit) as addon:
        flow = flows.live()
        tap = stream(addon, flow)
        assert [tap(chunk) for chunk in chunks] == chunks
        end(addon, flow)
        assert flow.response.raw_content == b"".join(chunks)[:limit]
        assert not addon.faults.count


def test_no_header_is_changed_by_keeping_the_body(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    before = flow.response.headers.fields, flow.request.headers.fields
    tap(flows.event(flows.result()))
    end(addon, flow)
    assert (flow.response.headers.fields, flow.request.headers.fields) == before


def test_a_fault_of_ours_does_not_touch_the_chunk(addon, monkeypatch, caplog):
    flow = flows.live()
    tap = stream(addon, flow)

    def broken(event):
        raise RuntimeError("boom")

    monkeypatch.setattr(addon.watch.inspector, "feed", broken)
    with caplog.at_level(logging.WARNING):
        assert tap(b"data: 1\n\n") == b"data: 1\n\n"
        assert tap(b"data: 2\n\n") == b"data: 2\n\n"
    end(addon, flow)
    assert flow.response.raw_content == b"data: 1\n\ndata: 2\n\n"
    assert addon.faults.count == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_fault_of_ours_is_said_on_the_flow(addon, monkeypatch):
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(flows.result())
    monkeypatch.setattr(addon.watch.inspector, "feed", lambda event: 1 / 0)
    addon.responseheaders(flow)
    assert "fault in trace: ZeroDivisionError" in flow.metadata["mcp.notes"]
    assert [fault.flow for fault in addon.faults.listed] == [flow.id]


def test_the_time_of_each_event_is_kept(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    for at, chunk in ((1000.5, b"data: {}\n\nda"), (1000.7, b"ta: {}\n"), (1000.8, b"\ndata: {}\n\ndata: {}\n\n")):
        addon._capture.clock = lambda at=at: at
        tap(chunk)
    end(addon, flow)
    assert flow.metadata["mcp.events"] == [1000.5, 1000.8, 1000.8, 1000.8]


def test_an_open_stream_shows_how_many_events_came(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    tap(flows.event(b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}'))
    assert flow.comment.startswith("unknown tools/call echo -> stream, 1 event")
    tap(flows.event(flows.result()))
    assert flow.comment == "modern tools/call echo -> complete"


def test_a_compressed_stream_passes_compressed_and_is_read(addon):
    body = gzip.compress(flows.event(flows.result()))
    flow = flows.live()
    tap = stream(addon, flow, headers={"content-encoding": "gzip"})
    assert tap(body[:20]) == body[:20]
    assert tap(body[20:]) == body[20:]
    end(addon, flow)
    assert flow.response.raw_content == body
    assert flow.comment == "modern tools/call echo -> complete"
    assert len(flow.metadata["mcp.events"]) == 1


def test_a_stream_that_the_client_leaves_keeps_its_body(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    tap(flows.event(b"{}"))
    flow.client_conn.state = flow.server_conn.state = CLOSED
    addon.error(flows.broken(flow))
    assert flow.response.raw_content == flows.event(b"{}")
    assert flow.metadata["mcp.outcome"] == "cancelled"
    assert flow.metadata["mcp.ended"] == "client"


def test_a_stream_that_the_server_drops_is_broken(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    tap(b"data: half")
    flow.server_conn.state = CLOSED
    addon.error(flows.broken(flow, "peer closed connection"))
    assert flow.response.raw_content == b"data: half"
    assert flow.metadata["mcp.outcome"] == "broken"
    assert flow.metadata["mcp.ended"] == "server"


def test_an_open_stream_keeps_its_body_when_mitmproxy_goes_down(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    tap(flows.event(b"{}"))
    addon.done()
    assert flow.response.raw_content == flows.event(b"{}")
    assert len(flow.metadata["mcp.events"]) == 1
    addon.error(flows.broken(flow))  # it comes after done, when the file has been written
    assert "mcp.ended" not in flow.metadata


def test_a_body_that_mitmproxy_stores_whole_stays_whole(addon):
    addon.context.configure(addon, mcp_max_stream=10)
    flow = flows.live()
    tap = stream(addon, flow)
    whole = flows.event(b"{}") * 10
    tap(whole)
    flow.response.raw_content = whole  # store_streamed_bodies does so right before the hook
    end(addon, flow)
    assert flow.response.raw_content == whole


def test_what_is_past_the_limit_is_counted(addon):
    addon.context.configure(addon, mcp_max_stream=10)
    flow = flows.live()
    tap = stream(addon, flow)
    tap(b"x" * 25)
    end(addon, flow)
    assert flow.metadata["mcp.dropped"] == 15
    assert "15 bytes past the limit were not kept" in flow.metadata["mcp.notes"]


def test_a_stream_of_endless_tiny_events_leaves_a_bounded_list_of_times(addon):
    flow = flows.live()
    tap = stream(addon, flow)
    for _ in range(30):
        tap(b"data:\n\n" * 1_000)
    end(addon, flow)
    most = Limits().stream_events
    assert len(flow.metadata["mcp.events"]) == most
    assert f"unchecked: event stream: what follows its first {most} events is not read" in flow.metadata["mcp.notes"]
    assert flow.response.raw_content == b"data:\n\n" * 30_000
    assert addon.watch.inspector.dropped == {"unread streams": 1}


def test_another_addons_stream_callable_decides_what_passes(addon):
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(None, flows.SSE)
    flow.response.stream = lambda data: data.upper()
    addon.responseheaders(flow)
    assert flow.response.stream(b"data: x\n\n") == b"DATA: X\n\n"


def test_a_response_made_by_an_addon_is_read_though_nothing_streams(addon):
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(flows.event(flows.result()), flows.SSE)
    addon.responseheaders(flow)
    assert not flow.response.stream
    addon.response(flow)
    assert flow.comment == "modern tools/call echo -> complete"
    assert flow.response.raw_content == flows.event(flows.result())


def test_a_request_that_the_client_broke_off_has_no_body(addon):
    flow = flows.live()
    flow.request.timestamp_end = None
    flow.client_conn.state = CLOSED
    addon.error(flows.broken(flow))
    exchange = addon.watch.inspector.exchanges[flow.id]
    assert exchange.reading is None
    assert exchange.ended_by == "client"


def test_a_replay_in_place_is_an_exchange_of_its_own(addon):
    flow = flows.live()
    for _ in range(2):
        addon.request(flow)
        flow.response = flows.response(flows.result())
        addon.responseheaders(flow)
        addon.response(flow)
        flow.is_replay = "request"
    flow.live = True
    addon.request(flow)
    flow.response = flows.response(flows.error(-32601), status=404)
    addon.responseheaders(flow)
    addon.response(flow)
    assert flow.comment.startswith("modern tools/call echo -> -32601 MethodNotFound")
    assert len(addon.watch.inspector.exchanges) == 3
    assert addon.find(flow)[1].error_code == -32601


@pytest.mark.parametrize(
    ("client", "server", "text", "last", "expected"),
    [
        (CLOSED, CLOSED, "Client disconnected.", 1000.0, "client"),
        (OPEN, CLOSED, "HTTP/1 protocol error: peer closed connection without sending complete message body", 1000.0, "server"),
        (OPEN, OPEN, "stream reset by client (CANCEL)", 1000.0, "client"),
        (OPEN, OPEN, "stream reset by client (INTERNAL_ERROR)", 1000.0, "unknown"),
        (CLOSED, OPEN, "peer closed connection", 1000.0, "client"),
        (OPEN, CLOSED, "peer closed connection", 1000.0, "server"),
        (CLOSED, CLOSED, "Client disconnected.", 400.0, "unknown"),  # tcp_timeout: 600 s without traffic
        (CLOSED, CLOSED, "Client disconnected.", 100.0, "client"),
        (OPEN, OPEN, "Connection killed.", 1000.0, "unknown"),
    ],
)
def test_who_ended_a_flow_is_read_from_the_connections(client, server, text, last, expected):
    flow = flows.broken(flows.live(), text, 1000.5)
    flow.client_conn.state, flow.server_conn.state = client, server
    assert who_ended(flow, last, 600) == expected


def test_hooks_that_come_twice_count_once(addon):
    flow = flows.live()
    for _ in range(2):
        addon.request(flow)
    flow.response = flows.response(flows.result())
    for _ in range(2):
        addon.responseheaders(flow)
        addon.response(flow)
    assert len(addon.watch.inspector.exchanges) == 1


def test_memory_of_open_flows_is_given_back(addon):
    for _ in range(5):
        flow = flows.live()
        stream(addon, flow)(b"data: {}\n\n")
        end(addon, flow)
    assert not addon._capture._open
