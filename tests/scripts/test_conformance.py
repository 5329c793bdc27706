"""scripts/conformance: what it compares, and, where the suite and a server are at hand, the suite itself."""

import json
import os
from pathlib import Path

import pytest

from harness import conformance


def write(folder: Path, scenario: str, *checks: tuple[str, str]) -> None:
    inside = folder / f"{scenario}-2026-12-01T03-53-01-133Z"
    inside.mkdir(parents=True)
    (inside / "checks.json").write_text(json.dumps([{"id": check, "status": status} for check, status in checks]))


@pytest.mark.parametrize(
    ("through", "status", "says"),
    [
        ([("a", "SUCCESS"), ("b", "FAILURE")], 0, "The same checks pass"),
        ([("b", "FAILURE"), ("a", "SUCCESS")], 0, "The same checks pass"),
        ([("a", "FAILURE"), ("b", "FAILURE")], 1, "a SUCCESS directly, a FAILURE through the inspector"),
        ([("a", "SUCCESS")], 1, "b FAILURE directly, nothing through the inspector"),
    ],
)
def test_the_checks_of_both_runs_are_compared(through, status, says, tmp_path, capsys):
    write(tmp_path / "direct", "server-tools-list", ("a", "SUCCESS"), ("b", "FAILURE"))
    write(tmp_path / "through", "server-tools-list", *through)
    runs = [conformance.read_checks(tmp_path / name) for name in ("direct", "through")]
    assert conformance.told(*runs) == status
    said = capsys.readouterr().out
    assert says in said
    assert "direct: 1 scenarios, 2 checks, 1 passed" in said


def test_a_run_without_checks_is_no_success(tmp_path, capsys):
    assert conformance.told(conformance.read_checks(tmp_path), {}) == 2
    assert "does the server run?" in capsys.readouterr().err


def test_a_folder_without_the_suite_is_told(tmp_path, capsys):
    assert conformance.main(["http://localhost:1/mcp", "--suite", str(tmp_path)]) == 2
    assert "Node 22 is needed" in capsys.readouterr().err


@pytest.mark.e2e
@pytest.mark.skipif(
    not os.environ.get("MCP_CONFORMANCE_URL"),
    reason="MCP_CONFORMANCE_URL (a server that runs) and MCP_CONFORMANCE_SUITE (where the npm package is) are not set",
)
def test_the_same_checks_pass_through_the_inspector():
    suite = os.environ.get("MCP_CONFORMANCE_SUITE")
    assert conformance.main([os.environ["MCP_CONFORMANCE_URL"], *(("--suite", suite) if suite else ())]) == 0
