"""`./scripts/run --once`, for real: what the project promises of the recording and of its audit."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.flow import Flow
from mitmproxy.io import FlowReader

ROOT = Path(__file__).resolve().parents[2]
CODES = {-32020, -32021, -32022, -32601, -32602}

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that one unattended run left behind, started from another folder, without terminal and input."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    environment = {name: value for name, value in os.environ.items() if name not in ("TERM", "DISPLAY")}
    done = subprocess.run(
        [str(ROOT / "scripts" / "run"), "--once", "--output", "out"],
        cwd=elsewhere,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return elsewhere / "out"


@pytest.fixture(scope="module")
def audit(output: Path) -> dict[str, Any]:
    return json.loads((output / "audit.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def flows(output: Path) -> list[Flow]:
    with (output / "recording.flow").open("rb") as file:
        return list(FlowReader(file).stream())


def test_nothing_but_the_recording_and_its_audit_is_left(output: Path) -> None:
    assert sorted(path.name for path in output.iterdir()) == ["audit.json", "recording.flow"]


def test_it_shows_both_eras_every_code_and_six_conversations(audit: dict[str, Any]) -> None:
    eras = Counter(flow["era"] for flow in audit["flows"] if flow["kind"] == "mcp")
    assert eras.total() >= 20
    assert {"modern", "legacy"} <= eras.keys()
    assert {flow["error_code"] for flow in audit["flows"]} >= CODES
    assert len(audit["conversations"]) >= 6


def test_it_shows_a_probe_that_fell_back(audit: dict[str, Any]) -> None:
    links = [link for conversation in audit["conversations"] for link in conversation["links"]]
    assert any(link["by"] == "negotiation" for link in links)


def test_the_inspector_had_no_fault_and_dropped_nothing(audit: dict[str, Any]) -> None:
    assert audit["faults"] == []
    assert [entry["error"] for entry in audit["inputs"]] == [None]


def test_each_flow_is_in_the_recording_once_and_carries_its_verdict(flows: list[Flow], audit: dict[str, Any]) -> None:
    assert Counter(flow.id for flow in flows) == Counter(flow["id"] for flow in audit["flows"])
    of_mcp = {flow["id"] for flow in audit["flows"] if flow["kind"] == "mcp"}
    for flow in flows:
        if flow.id in of_mcp:
            assert flow.comment.split()[0] in ("modern", "legacy", "unknown"), flow.comment
            assert flow.metadata["mcp.era"] in ("modern", "legacy", "unknown")


def test_the_flows_name_the_same_rules_as_the_audit(flows: list[Flow], audit: dict[str, Any]) -> None:
    on_flows = {(flow.id, rule) for flow in flows for rule in flow.metadata.get("mcp.rules", "").split()}
    found = {(finding["flow"], finding["rule"]) for finding in audit["findings"] if finding["flow"]}
    assert on_flows == found


def test_the_rounds_of_a_conversation_are_told_on_each_of_its_flows(flows: list[Flow], audit: dict[str, Any]) -> None:
    by_id = {flow.id: flow for flow in flows}
    for conversation in audit["conversations"]:
        for number, flow_id in enumerate(conversation["rounds"], 1):
            assert by_id[flow_id].metadata["mcp.conversation"] == conversation["id"]
            assert by_id[flow_id].metadata["mcp.round"] == number


def test_findings_are_marked_by_the_worst_of_them(flows: list[Flow], audit: dict[str, Any]) -> None:
    severities: dict[str, set[str]] = {}
    for finding in audit["findings"]:
        severities.setdefault(finding["flow"], set()).add(finding["severity"])
    for flow in flows:
        seen = severities.get(flow.id, set())
        expected = ":red_circle:" if "error" in seen else ":yellow_circle:" if "warning" in seen else None
        if expected:
            assert flow.marked == expected, flow.comment
