"""mcp_otlp_endpoint inside mitmproxy: spans of live traffic, and nothing in its way."""

import json

import pytest
from mitmproxy import exceptions

from mcp_wiretap.proxy import telemetry
from mcp_wiretap.proxy.telemetry import Telemetry
from tests.export.collector import collector
from tests.proxy import flows


def through(addon, flow):
    addon.request(flow)
    flow.response = flows.response(flows.result())
    addon.responseheaders(flow)
    addon.response(flow)
    return flow


def test_a_call_is_sent_and_judged_as_before():
    with collector() as taken, flows.proxy(mcp_otlp_endpoint=taken.url) as addon:
        flow = through(addon, flows.live(flows.request(headers={"Mcp-Name": "other"})))
        assert "HDR" in flow.metadata["mcp.rules"]
        assert taken.came.wait(20)
        addon.done()
    (span,) = taken.spans
    assert span.name == "tools/call echo"
    assert [event.name for event in span.events].count("mcp_wiretap.finding") == len(flow.metadata["mcp.rules"].split())


def test_it_can_be_turned_off_and_on_again_while_traffic_goes_on():
    with collector() as one, collector() as other, flows.proxy(mcp_otlp_endpoint=one.url) as addon:
        addon.context.configure(addon, mcp_otlp_endpoint="")
        assert addon.telemetry is None
        through(addon, flows.live())
        addon.context.configure(addon, mcp_otlp_endpoint=other.url, mcp_select=["HDR"])
        through(addon, flows.live())
        assert other.came.wait(20)
        addon.done()
    assert one.spans == []
    assert len(other.spans) == 1


def test_what_was_dropped_is_in_the_report_and_on_the_pages(monkeypatch, tmp_path):
    monkeypatch.setattr(telemetry, "QUEUE", 1)
    monkeypatch.setattr(telemetry, "LAST", 0.01)
    monkeypatch.setattr(Telemetry, "_run", lambda self: None)
    with flows.proxy(mcp_otlp_endpoint="http://127.0.0.1:9/v1/traces") as addon:
        passed = [through(addon, flows.live()) for _ in range(3)]
        assert all(flow.metadata["mcp.outcome"] == "complete" for flow in passed)
        assert addon.watch.inspector.dropped["spans"] == 2
        addon.report(passed, str(tmp_path / "report.json"))
        assert addon.faults.count == 0
    assert json.loads((tmp_path / "report.json").read_text())["dropped"]["spans"] == 2


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://"])
def test_what_is_no_endpoint_is_refused(endpoint):
    with flows.proxy() as addon, pytest.raises(exceptions.OptionsError, match="mcp_otlp_endpoint"):
        addon.context.configure(addon, mcp_otlp_endpoint=endpoint)


def test_a_fault_of_ours_is_counted_and_the_verdict_stands(monkeypatch):
    with collector() as taken, flows.proxy(mcp_otlp_endpoint=taken.url) as addon:

        def broken(operation):
            raise RuntimeError("no")

        monkeypatch.setattr(addon.telemetry.operations, "_tell", broken)
        flow = through(addon, flows.live())
        assert flow.metadata["mcp.outcome"] == "complete"
        assert addon.faults.count == 1
