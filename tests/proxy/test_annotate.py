"""What stands on a flow, and that the user's own words stay."""

import io

import pytest
from mitmproxy.io import FlowReader, FlowWriter

from mcp_wiretap.proxy.annotate import annotate
from tests.proxy import flows


@pytest.fixture
def addon():
    with flows.proxy(mcp_select=["HDR"]) as addon:
        yield addon


def through(addon, flow=None, answer=None):
    flow = flow or flows.live()
    addon.request(flow)
    flow.response = answer or flows.response(flows.result())
    addon.responseheaders(flow)
    addon.response(flow)
    return flow


def wrong():
    return flows.live(flows.request(headers={"Mcp-Name": "other"}))


def test_a_finding_marks_the_flow_and_is_spelled_out(addon):
    flow = through(addon, wrong())
    assert flow.marked == ":red_circle:"
    assert flow.comment == "modern tools/call echo -> complete: Mcp-Name says other, the body says echo [HDR006]"
    assert flow.metadata["mcp.rules"] == "HDR006"
    assert flow.metadata["mcp.severity"] == "error"


def test_the_users_comment_and_mark_are_left_alone(addon):
    flow = wrong()
    flow.comment, flow.marked = "mine", ":grapes:"
    through(addon, flow)
    assert (flow.comment, flow.marked) == ("mine", ":grapes:")
    assert flow.metadata["mcp.rules"] == "HDR006"


def test_a_comment_that_the_user_changed_or_emptied_is_not_written_again(addon):
    for theirs in ("mine", ""):
        flow = flows.live()
        addon.request(flow)
        assert flow.comment
        flow.comment = theirs
        flow.response = flows.response(flows.result())
        addon.responseheaders(flow)
        addon.response(flow)
        assert flow.comment == theirs


def test_our_own_comment_is_brought_up_to_date(addon):
    flow = flows.live()
    addon.request(flow)
    assert flow.comment.endswith("-> none")
    flow.response = flows.response(flows.result())
    addon.responseheaders(flow)
    addon.response(flow)
    assert flow.comment.endswith("-> complete")
    assert flow.metadata["mcp.comment"] == flow.comment


def test_facts_that_no_longer_hold_go_away(addon):
    flow = through(addon, wrong())
    exchange = addon.find(flow)[1]
    exchange.findings.clear()
    assert annotate(flow, exchange)
    assert "mcp.rules" not in flow.metadata and flow.marked == "" and "HDR006" not in flow.comment
    assert not annotate(flow, exchange)


def test_comments_and_marks_can_be_turned_off():
    with flows.proxy(mcp_comment=False, mcp_mark=False, mcp_select=["HDR"]) as addon:
        flow = through(addon, wrong())
    assert (flow.comment, flow.marked) == ("", "")
    assert flow.metadata["mcp.rules"] == "HDR006"


def test_other_traffic_is_never_touched(addon):
    request = flows.request()
    request.headers.clear()
    request.raw_content = b"hello"
    flow = through(addon, flows.live(request), flows.response(b"<p>hi</p>", "text/html"))
    assert (flow.comment, flow.marked, flow.metadata) == ("", "", {})


def test_an_event_stream_of_other_traffic_is_kept_but_not_annotated(addon):
    request = flows.request()
    request.headers.clear()
    request.raw_content = b"hello"
    flow = flows.live(request)
    addon.request(flow)
    flow.response = flows.response(None, flows.SSE)
    addon.responseheaders(flow)
    flow.response.stream(b"data: token\n\n")
    addon.response(flow)
    assert flow.response.raw_content == b"data: token\n\n"
    assert (flow.comment, flow.metadata) == ("", {})


@pytest.mark.parametrize("name", ["\ud800", "a\nb\x1b[31m", "\u202eevil", "x" * 100_000, "世界"])
def test_hostile_names_are_safe_to_store_and_to_show(addon, name):
    flow = through(addon, flows.live(flows.request(params={"name": name, "arguments": {}}, headers={"Mcp-Name": "x"})))
    for text in (flow.comment, flow.metadata["mcp.name"], flow.metadata["mcp.comment"]):
        text.encode()
        assert text.isprintable() and len(text) < 1_000
    out = io.BytesIO()
    FlowWriter(out).add(flow)
    out.seek(0)
    assert next(iter(FlowReader(out).stream())).comment == flow.comment


def test_metadata_survives_the_file_and_is_found_by_filters(addon):
    from mitmproxy import flowfilter

    flow = through(addon, answer=flows.response(flows.error(-32601), status=404))
    assert flowfilter.match(flowfilter.parse('~meta "^mcp.era: modern$"'), flow)
    assert flowfilter.match(flowfilter.parse('~meta "^mcp.code: -32601$"'), flow)


def test_an_error_code_of_any_size_can_be_stored(addon):
    body = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": ' + b"9" * 400 + b', "message": "x"}}'
    flow = through(addon, answer=flows.response(body, status=500))
    FlowWriter(io.BytesIO()).add(flow)


def test_evidence_that_comes_later_reaches_the_earlier_flow(addon):
    updated = []
    addon.watch._updated = updated.extend
    probe = through(addon, answer=flows.response(b"no", "text/plain", status=400))
    assert probe.metadata["mcp.era"] == "unknown"
    through(addon, flows.live(flows.request(id=2)), flows.response(flows.result(id=2)))
    assert probe.metadata["mcp.era"] == "modern"
    assert updated == [probe]


def test_how_many_rounds_there_were_is_said_on_each_when_the_operation_is_over(addon):
    asks = flows.response(flows.result({"resultType": "input_required", "requestState": "s", "inputRequests": {}}))
    first = through(addon, answer=asks)
    assert first.comment.endswith("(MRTR 1)")
    request = flows.request(params={"name": "echo", "arguments": {}, "requestState": "s"}, id=2)
    request.timestamp_start, request.timestamp_end = 1001.0, 1001.1
    second = through(addon, flows.live(request), flows.response(flows.result(id=2)))
    assert second.comment.endswith("(MRTR 2/2)") and first.comment.endswith("(MRTR 1/2)")
