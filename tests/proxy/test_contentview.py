"""The content view inside mitmproxy: when it is chosen, and that it finds what the trace knows."""

import pytest
from mitmproxy import contentviews, eventsequence
from mitmproxy.contentviews import Metadata

from mcp_wiretap.proxy import loaded
from mcp_wiretap.view import order
from tests.proxy import flows


@pytest.fixture
def addon(monkeypatch):
    monkeypatch.setattr(loaded, "QUIET", 0.02)
    with flows.proxy(mcp_select=["HDR"]) as addon:
        addon.context.options.add_option("protobuf_definitions", str, "", "")
        yield addon


def shown(flow, side):
    return contentviews.prettify_message(getattr(flow, side), flow)


def through(addon, flow, answer):
    addon.request(flow)
    flow.response = answer
    addon.responseheaders(flow)
    addon.response(flow)
    return flow


def test_it_is_chosen_by_itself_for_both_sides_of_an_mcp_flow(addon):
    flow = through(addon, flows.live(), flows.response(flows.result()))
    for side in ("request", "response"):
        result = shown(flow, side)
        assert (result.view_name, result.syntax_highlight) == ("MCP", "yaml")
        assert result.text.startswith("# tools/call echo   id 1   modern 2026-07-28")


def test_it_shows_findings_after_the_trace_has_let_the_bodies_go(addon):
    flow = through(addon, flows.live(flows.request(headers={"Mcp-Name": "other"})), flows.response(flows.result()))
    assert addon.find(flow)[1].released
    text = shown(flow, "request").text
    assert "≠ MISMATCH, body says: echo  [HDR006]" in text
    assert "rule:     HDR006 name-header-mismatch (error, client)" in text
    assert '"arguments": {}' in text


def test_it_is_not_chosen_for_other_traffic(addon):
    request = flows.request()
    request.headers.clear()
    request.headers["content-type"] = "application/json"
    request.raw_content = b'{"a": 1}'
    flow = through(addon, flows.live(request), flows.response(b'{"b": 2}'))
    assert shown(flow, "request").view_name == "JSON" and shown(flow, "response").view_name == "JSON"


def test_a_page_that_is_not_json_stays_with_mitmproxys_views(addon):
    flow = through(addon, flows.live(), flows.response(b"<html><p>no</p></html>", "text/html", status=502))
    assert shown(flow, "response").view_name == "XML/HTML"
    assert "status: 502" in contentviews.prettify_message(flow.response, flow, "mcp").text


def test_a_flow_that_nobody_has_followed_is_read_alone(addon):
    flow = flows.finished(flows.request(headers={"Mcp-Name": "other"}))
    text = shown(flow, "request").text
    assert "# – read alone" in text and "[HDR006]" in text


async def test_an_uploaded_flow_has_the_verdict_of_its_own_trace(addon):
    flow = flows.finished(flows.request(headers={"Mcp-Name": "other"}))
    for event in eventsequence.iterate(flow):
        await addon.context.master.addons.handle_lifecycle(event)
    assert "read alone" not in shown(flow, "request").text
    assert "[HDR006]" in shown(flow, "request").text


def test_an_open_stream_shows_its_events_so_far(addon):
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(None, flows.SSE)
    flow.response.timestamp_end = None
    addon.responseheaders(flow)
    addon._capture.clock = lambda: 1000.5
    flow.response.stream(flows.event(b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}'))
    text = shown(flow, "response").text
    assert "[0] progress 1" in text and "+500.0 ms" in text


def test_rounds_are_shown_with_the_answers_of_the_next_flow(addon):
    asked = {"q": {"method": "elicitation/create", "params": {"message": "sure?", "requestedSchema": {"type": "object"}}}}
    first = through(
        addon,
        flows.live(),
        flows.response(flows.result({"resultType": "input_required", "requestState": "s", "inputRequests": asked})),
    )
    retry = {"name": "echo", "arguments": {}, "requestState": "s", "inputResponses": {"q": {"action": "accept", "content": {}}}}
    request = flows.request(params=retry, id=2)
    request.timestamp_start, request.timestamp_end = 1001.0, 1001.1
    second = through(addon, flows.live(request), flows.response(flows.result(id=2)))
    assert "action:  accept" in shown(first, "response").text
    assert "asked: sure?" in shown(second, "request").text
    assert "echoed: same" in shown(second, "request").text


def test_an_empty_body_has_a_page_too(addon):
    request = flows.request()
    request.method, request.raw_content = "GET", b""
    request.headers["accept"] = flows.SSE
    flow = flows.live(request)
    addon.request(flow)
    assert shown(flow, "request").view_name == "MCP"


def test_a_fault_of_the_view_falls_back_to_the_raw_body(addon, monkeypatch):

    flow = through(addon, flows.live(), flows.response(flows.result()))
    monkeypatch.setattr(order, "request", lambda subject: 1 / 0)
    assert '"jsonrpc"' in shown(flow, "request").text
    assert addon.faults.count == 1


def test_choosing_looks_at_no_more_than_the_head_of_a_body(addon):
    view = contentviews.registry["mcp"]
    flow = flows.finished()
    big = b'{"a": 1}' * 1_000_000 + b'"jsonrpc"'
    assert view.render_priority(big, Metadata(flow=flow, http_message=flow.request, content_type="application/json")) < 0
    assert view.render_priority(b"x", Metadata()) < 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "x"}',
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "method": "\\ud800", "id": "\\u202e", "id": NaN}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5, "arguments": "x", "inputResponses": 1}}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "tools/call", "params": {"_meta": 5}}',
    ],
)
def test_any_body_has_a_page(addon, body):
    request = flows.request()
    request.raw_content = body
    flow = through(addon, flows.live(request), flows.response(body))
    for side in ("request", "response"):
        assert contentviews.prettify_message(getattr(flow, side), flow, "mcp").syntax_highlight == "yaml"
    assert not addon.faults.count
