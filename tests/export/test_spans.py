"""Operations as OpenTelemetry spans: by the conventions, to a file, to a collector, and live."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mcp_wiretap.cli import main
from mcp_wiretap.example import read_script
from mcp_wiretap.proxy import telemetry
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.telemetry import Telemetry
from mcp_wiretap.trace.inspector import Inspector, NoRules
from tests.cli.recordings import record
from tests.export.collector import collector, spans_of

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SCRIPT = f"""
modern tools/call {{"name": "deploy", "arguments": {{}}}}
  meta traceparent "{PARENT}"
  -> needs sealed-state-1 a
modern tools/call {{"name": "deploy", "arguments": {{}}}}
  answers sealed-state-1 a
  -> result {{"content": []}}
modern tools/call {{"name": "bad", "arguments": {{}}}}
  -> result {{"content": [], "isError": true}}
modern resources/read {{"uri": "file:///a"}}
  -> error -32602
"""


def _values(span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in span.attributes:
        kind = item.value.WhichOneof("value")
        found[item.key] = (
            getattr(item.value, kind) if kind != "array_value" else [v.string_value for v in item.value.array_value.values]
        )
    return found


def _exported(tmp_path: Path, script: str, *more: str) -> list[Span]:
    source, target = tmp_path / "a.flow", tmp_path / "a.pb"
    record(source, script)
    assert main(["export", str(source), "--format", "otlp", "--output", str(target), *more]) == 0
    return spans_of([ExportTraceServiceRequest.FromString(target.read_bytes())])


def test_an_operation_is_a_span_with_its_rounds_as_children(tmp_path: Path) -> None:
    spans = _exported(tmp_path, SCRIPT)
    deploy = next(span for span in spans if span.name == "tools/call deploy")
    values = _values(deploy)
    assert values["mcp.method.name"] == "tools/call"
    assert values["gen_ai.tool.name"] == "deploy" and values["gen_ai.operation.name"] == "execute_tool"
    assert values["mcp.protocol.version"] == "2026-07-28" and values["mcp_wiretap.outcome"] == "complete"
    assert deploy.kind == Span.SPAN_KIND_CLIENT and "error.type" not in values
    children = [span for span in spans if span.parent_span_id == deploy.span_id]
    assert [_values(child)["mcp_wiretap.round"] for child in children] == [1, 2]
    assert all(child.trace_id == deploy.trace_id for child in children)
    assert [event.name for event in children[0].events].count("mcp.message") == 2


def test_the_parent_is_the_span_that_the_client_names(tmp_path: Path) -> None:
    deploy = next(span for span in _exported(tmp_path, SCRIPT) if span.name == "tools/call deploy")
    assert (deploy.trace_id.hex(), deploy.parent_span_id.hex()) == (PARENT[3:35], PARENT[36:52])


def test_errors_are_told_by_their_code_and_tool_errors_as_such(tmp_path: Path) -> None:
    by_name = {span.name: span for span in _exported(tmp_path, SCRIPT)}
    failed, tool = by_name["resources/read"], by_name["tools/call bad"]
    assert _values(failed)["error.type"] == _values(failed)["rpc.response.status_code"] == "-32602"
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert _values(failed)["mcp.resource.uri"] == "file:///a"
    assert _values(tool)["error.type"] == "tool_error"


def test_the_same_recording_gives_the_same_ids(tmp_path: Path) -> None:
    one, other = ([(s.trace_id, s.span_id) for s in _exported(tmp_path, SCRIPT)] for _ in range(2))
    assert one == other


def test_otlp_json_is_read_back_by_the_protobuf_package(tmp_path: Path) -> None:
    record(tmp_path / "a.flow", SCRIPT)
    assert main(["export", str(tmp_path / "a.flow"), "--format", "otlp", "--output", str(tmp_path / "a.json")]) == 0
    for line in (tmp_path / "a.json").read_text().splitlines():
        data = json.loads(line)
        span = data["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        assert len(bytes.fromhex(span["traceId"])) == 16 and len(bytes.fromhex(span["spanId"])) == 8
        ParseDict(data, ExportTraceServiceRequest())


def test_a_collector_gets_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "a.flow", SCRIPT)
    with collector() as taken:
        assert main(["export", str(tmp_path / "a.flow"), "--format", "otlp", "--endpoint", taken.url]) == 0
    assert {"tools/call deploy", "tools/call bad", "resources/read"} <= {span.name for span in taken.spans}
    assert "5 spans sent" in capsys.readouterr().err


def test_a_collector_that_refuses_is_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "a.flow", SCRIPT)
    with collector(status=400) as taken:
        assert main(["export", str(tmp_path / "a.flow"), "--format", "otlp", "--endpoint", taken.url]) == 2
    assert "did not take the spans" in capsys.readouterr().err


def _live(endpoint: str, script: str, faults: Faults, dropped: list[int]) -> Telemetry:
    sending = Telemetry(endpoint, faults, dropped.append)
    inspector = Inspector(sending.operations.before(NoRules()))
    for event in read_script(script):
        inspector.feed(event)
    return sending


def test_live_operations_are_sent_when_they_end() -> None:
    faults, dropped = Faults(), list[int]()
    with collector() as taken:
        sending = _live(taken.url, SCRIPT, faults, dropped)
        assert taken.came.wait(20)
        sending.close()
    names = [span.name for span in taken.spans]
    assert names.count("tools/call deploy") == 1 and names.count("POST tools/call") == 2
    assert (sending.sent, sending.dropped, dropped, faults.count) == (3, 0, [], 0)


def test_an_operation_that_is_not_over_is_told_at_the_end() -> None:
    with collector() as taken:
        sending = _live(taken.url, "\n".join(SCRIPT.splitlines()[:4]), Faults(), [])
        sending.close()
    assert [_values(span)["mcp_wiretap.outcome"] for span in taken.spans] == ["input_required"]


def test_a_dead_endpoint_harms_nothing_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "TIMEOUT", 0.3)
    faults, dropped = Faults(), list[int]()
    sending = _live("http://127.0.0.1:9/v1/traces", SCRIPT, faults, dropped)
    sending.close()
    until = time.monotonic() + 20
    while sending.dropped < 3 and time.monotonic() < until:
        time.sleep(0.02)
    assert (sending.sent, sending.dropped, faults.count) == (0, 3, 0)


def test_a_full_queue_drops_and_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "QUEUE", 1)
    monkeypatch.setattr(Telemetry, "_run", lambda self: None)
    dropped: list[int] = []
    sending = _live("http://127.0.0.1:9/v1/traces", SCRIPT, Faults(), dropped)
    assert sending.dropped == sum(dropped) == 2
