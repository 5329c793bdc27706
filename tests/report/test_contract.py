"""`audit --format json` is what docs/architecture.md promises, whatever the traffic was."""

import io
import json
from typing import Any

import pytest

from mcp_wiretap.report import contract, jsonl
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.spool import MemorySpool
from mcp_wiretap.rule import Silence
from mcp_wiretap.trace.events import RequestSeen
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.wire.headers import Fields
from tests.report.auditing import BOTH_ERAS, RULES, audit, trace
from tests.report.contract_model import Contract


def written(made: Audit) -> dict[str, Any]:
    out = io.StringIO()
    contract.write(made, out)
    out.getvalue().encode()  # no lone surrogate
    report: dict[str, Any] = json.loads(out.getvalue())
    Contract.model_validate_json(out.getvalue())
    return report


def test_every_field_is_there_for_traffic_of_both_eras() -> None:
    report = written(audit(BOTH_ERAS))
    assert [flow["era"] for flow in report["flows"]] == ["modern"] * 5 + ["legacy", None]
    assert [flow["kind"] for flow in report["flows"]][-2:] == ["mcp", "other"]
    assert report["flows"][1]["error_code"] == -32020
    assert {"header": "Mcp-Method", "raw": "ping", "decoded": "ping", "body": "tools/list", "verdict": "mismatch"} in report[
        "flows"
    ][1]["headers"]
    assert [endpoint["url"] for endpoint in report["endpoints"]] == ["http://server.example:80/mcp", "http://old.example:80/mcp"]
    assert report["endpoints"][0]["tools"] == ["deploy"]
    assert report["endpoints"][1]["server"] == {"name": "old-server", "version": "0.9"}
    assert report["summary"] == {"error": 2, "warning": 1, "info": 1, "flows": 7, "mcp_flows": 6}


def test_findings_carry_their_evidence_and_secrets_are_masked() -> None:
    report = written(audit(BOTH_ERAS))
    first = report["findings"][0]
    assert first == {
        "rule": "TST001",
        "severity": "error",
        "party": "client",
        "message": "Mcp-Method says ping, the body says tools/list",
        "input": "one.flow",
        "flow": "flow-2",
        "related": [],
        "evidence": [{"where": "request.header:Mcp-Method", "value": "ping", "expected": "tools/list"}],
        "spec": "2026-07-28 basic/transports/streamable-http#server-validation",
    }
    assert "secret-value" not in json.dumps(report)


def test_an_empty_trace_is_a_whole_report() -> None:
    report = written(audit(""))
    assert report["flows"] == [] and report["findings"] == []
    assert report["summary"] == {"error": 0, "warning": 0, "info": 0, "flows": 0, "mcp_flows": 0}


@pytest.mark.parametrize(
    ("id_text", "kept"),
    [
        ('"7"', "7"),
        ("7", 7),
        ("1.50", 1.5),
        ("true", True),
        ("null", None),
        ("9007199254740993", 9007199254740993),
        ('{"a": [1]}', {"a": [1]}),
        ('"\\ud800"', "\\ud800"),
    ],
)
def test_a_jsonrpc_id_keeps_its_type(id_text: str, kept: Any) -> None:
    body = f'{{"jsonrpc": "2.0", "id": {id_text}, "method": "ping"}}'
    report = written(audit(f"POST http://server.example/mcp\n  body {body}\n"))
    assert report["flows"][0]["jsonrpc_id"] == kept
    assert type(report["flows"][0]["jsonrpc_id"]) is type(kept)


def test_an_id_of_five_thousand_digits_does_not_break_readers() -> None:
    script = f'POST http://server.example/mcp\n  body {{"jsonrpc": "2.0", "id": {"7" * 5000}, "method": "ping"}}\n'
    identifier = written(audit(script))["flows"][0]["jsonrpc_id"]
    assert identifier.startswith("777") and identifier.endswith("7…")


def test_a_batch_lists_its_messages_also_after_its_bodies_are_gone() -> None:
    script = """
POST http://old.example/mcp
  header Content-Type: application/json
  header MCP-Protocol-Version: 2025-03-26
  body [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"}, {"jsonrpc": "2.0", "id": "b", "method": "nope"}]
  -> 200 application/json [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": "b", "error": {"code": -32601, "message": "no"}}]
"""  # noqa: E501
    flow = written(audit(script))["flows"][0]
    assert [(m["kind"], m["method"], m["jsonrpc_id"], m["outcome"], m["error_code"]) for m in flow["messages"]] == [
        ("request", "ping", 1, "complete", None),
        ("notification", "notifications/x", None, "none", None),
        ("request", "nope", "b", "error", -32601),
    ]


def test_hostile_text_is_encodable_and_bounded() -> None:
    name = "\\ud800" + "x" * 100_000
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "{name}"}}}}'
    script = (
        f'modern tools/call {{"name": "a", "arguments": {{}}}}\n  body {body}\n  header Mcp-Name: {"y" * 66_000}\n'
        '  -> result {"content": [{"type": "text", "text": "\\u202e\\u001b[31m"}], "isError": true}\n'
    )
    report = written(audit(script))
    assert len(json.dumps(report)) < 30_000
    assert report["flows"][0]["name"].startswith("\\ud800xxx")


def test_times_that_are_none_become_null() -> None:
    event = RequestSeen(
        "f", float("inf"), float("nan"), "POST", "http", "h", 80, "/mcp", Fields([(b"mcp-method", b"ping")]), b"", "c"
    )
    spool = MemorySpool()
    made = trace([event], spool)
    report = written(Audit.of([(made, spool)], RULES))
    assert report["flows"][0]["started"] is None


def test_conversations_name_their_rounds_and_links() -> None:
    report = written(audit(BOTH_ERAS))
    rounds = {flow["id"]: (flow["conversation"], flow["round"]) for flow in report["flows"]}
    for conversation in report["conversations"]:
        assert conversation["id"] == conversation["rounds"][0]
        assert [rounds[flow] for flow in conversation["rounds"]] == [
            (conversation["id"], number + 1) for number in range(len(conversation["rounds"]))
        ]


def test_faults_of_ours_are_listed_and_the_rest_goes_on() -> None:
    report = written(audit("modern break/rule {}\nmodern tools/list\n  header Mcp-Method: ping\n"))
    assert report["faults"] == [{"flow": "flow-1", "where": "rule TST009", "error": "RuntimeError: on purpose"}]
    assert [finding["flow"] for finding in report["findings"] if finding["rule"] == "TST001"] == ["flow-2"]


def test_silenced_findings_are_counted_with_their_reason() -> None:
    silence = Silence("TST001", "server.example", "known; ticket 4711")
    report = written(audit(BOTH_ERAS, BOTH_ERAS, silences=[silence]))
    assert report["silenced"] == [{"rule": "TST001", "endpoint": "server.example", "count": 4, "reason": "known; ticket 4711"}]
    assert report["summary"]["error"] == 0


def test_what_leaves_the_memory_early_is_reported_all_the_same() -> None:
    script = 'modern tools/list\n  header Mcp-Method: ping\n  -> result {"tools": []}\n' * 50
    report = written(audit(script, limits=Limits(state=5)))
    assert [flow["id"] for flow in report["flows"]] == [f"flow-{number}" for number in range(1, 51)]
    assert report["summary"]["error"] == 50 and len(report["findings"]) == 50
    assert report["dropped"]["exchanges"] == 45


def test_several_inputs_stay_apart() -> None:
    report = written(audit(BOTH_ERAS, "GET http://x.example/\n  -> 200 text/plain hello\n"))
    assert [entry["path"] for entry in report["inputs"]] == ["one.flow", "two.flow"]
    assert [flow["input"] for flow in report["flows"]] == ["one.flow"] * 7 + ["two.flow"]
    assert report["flows"][7]["index"] == 0 and report["flows"][7]["outcome"] == "complete"


def test_a_damaged_input_says_so() -> None:
    report = written(audit(BOTH_ERAS, error="cut off at byte 17"))
    assert report["inputs"] == [{"path": "one.flow", "flows": 7, "error": "cut off at byte 17"}]


@pytest.mark.parametrize(
    ("fail_on", "error", "status"),
    [
        ("error", None, 1),
        ("warning", None, 1),
        ("info", None, 1),
        ("never", None, 0),
        ("never", "cut off", 2),
        ("error", "cut off", 2),
    ],
)
def test_the_exit_status_follows_the_worst_finding_and_damage(fail_on: str, error: str | None, status: int) -> None:
    assert audit(BOTH_ERAS, fail_on=fail_on, error=error).exit_status == status


def test_findings_milder_than_asked_for_do_not_fail() -> None:
    mild = 'modern tools/call {"name": "a", "arguments": {}}\n  -> result {"content": [], "isError": true}\n'
    assert audit(mild).exit_status == 0
    assert audit(mild, fail_on="warning").exit_status == 1


def test_json_lines_hold_the_same_objects_with_their_type() -> None:
    made = audit(BOTH_ERAS)
    out = io.StringIO()
    jsonl.write(made, out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[0]["type"] == "audit" and lines[-1]["type"] == "summary"
    report = written(made)
    for kind, section in (("flow", "flows"), ("finding", "findings"), ("endpoint", "endpoints"), ("input", "inputs")):
        assert [{k: v for k, v in line.items() if k != "type"} for line in lines if line["type"] == kind] == report[section]
