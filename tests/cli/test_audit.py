"""`mcp-wiretap audit` on files: what goes to stdout, to stderr, into a file; and the exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_wiretap.cli import main
from tests.cli.recordings import record
from tests.report.contract_model import Contract

WRONG = 'modern tools/list\n  header Mcp-Method: ping\n  -> result {"tools": []}\n'
CLEAN = 'modern tools/list\n  -> result {"tools": []}\n'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status = main(["audit", "--format", "json", *arguments])
    output = capsys.readouterr()
    assert output.err == "" or status == 2
    Contract.model_validate_json(output.out)
    return status, json.loads(output.out)


def test_findings_give_1_and_a_clean_recording_gives_0(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    record(place / "clean.flow", CLEAN)
    status, report = audit_json(capsys, "wrong.flow", "--select", "HDR004")
    assert status == 1
    assert [(finding["rule"], finding["flow"]) for finding in report["findings"]] == [("HDR004", "flow-1")]
    assert audit_json(capsys, "clean.flow", "--select", "HDR004")[0] == 0


def test_fail_on_sets_the_threshold(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    assert audit_json(capsys, "wrong.flow", "--fail-on", "never")[0] == 0


def test_ignore_and_select_take_ids_families_names_and_parties(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    for option, value, found in (
        ("--ignore", "hdr004", False),
        ("--ignore", "HDR", False),
        ("--ignore", "client", False),
        ("--select", "PAR", False),
        ("--select", "PAR,HDR", True),
        ("--select", "client", True),
    ):
        _, report = audit_json(capsys, "wrong.flow", option, value)
        assert ("HDR004" in {finding["rule"] for finding in report["findings"]}) is found, (option, value)


def test_an_unknown_rule_is_refused_with_the_nearest_one(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "a.flow", CLEAN)
    assert main(["audit", "a.flow", "--ignore", "HDR04"]) == 2
    assert "unknown rule 'HDR04'; did you mean HDR0" in capsys.readouterr().err


def test_the_text_report_is_the_default(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    assert main(["audit", "wrong.flow", "--select", "HDR004"]) == 1
    output = capsys.readouterr()
    assert "HDR004" in output.out and "exit 1 (--fail-on error)" in output.out
    assert output.err == ""


@pytest.mark.parametrize("name", ["missing.flow", "."])
def test_an_unreadable_file_is_2_and_says_why(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", name]) == 2
    output = capsys.readouterr()
    assert output.out == "" and name in output.err and "Traceback" not in output.err


def test_a_damaged_file_is_audited_up_to_the_damage_and_gives_2(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "cut.flow", WRONG + CLEAN)
    whole = (place / "cut.flow").read_bytes()
    (place / "cut.flow").write_bytes(whole[:-100])
    status, report = audit_json(capsys, "cut.flow", "--select", "HDR004")
    assert status == 2
    assert report["inputs"][0]["flows"] == 1 and "cut off" in report["inputs"][0]["error"]
    assert [finding["rule"] for finding in report["findings"]] == ["HDR004"]


def test_a_file_that_is_no_recording_gives_2(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "note.txt").write_text("hello")
    status, report = audit_json(capsys, "note.txt")
    assert status == 2 and report["inputs"][0]["error"]


def test_an_empty_file_is_an_empty_trace(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "empty.flow").write_bytes(b"")
    assert audit_json(capsys, "empty.flow")[0] == 0


def test_each_file_is_a_trace_of_its_own_unless_joined(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    """The rotated half alone does not know the server's era; joined it does."""
    record(place / "1.flow", CLEAN, "a-")
    record(place / "2.flow", "modern tools/list\n  after 60\n", "b-")
    _, apart = audit_json(capsys, "1.flow", "2.flow")
    assert [(flow["id"], flow["input"], flow["index"], flow["era"]) for flow in apart["flows"]] == [
        ("a-flow-1", "1.flow", 0, "modern"),
        ("b-flow-1", "2.flow", 0, "unknown"),
    ]
    _, joined = audit_json(capsys, "1.flow", "2.flow", "--join")
    assert sorted((flow["id"], flow["input"], flow["index"], flow["era"]) for flow in joined["flows"]) == [
        ("a-flow-1", "1.flow", 0, "modern"),
        ("b-flow-1", "2.flow", 0, "modern"),
    ]
    assert len(apart["endpoints"]) == 2 and len(joined["endpoints"]) == 1


def test_a_file_name_that_is_not_utf8(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    name = os.fsdecode(b"caf\xe9\x1b.flow")
    record(place / name, WRONG)
    _, report = audit_json(capsys, name)
    assert report["inputs"][0]["path"] == report["flows"][0]["input"] == "caf\\udce9\x1b.flow"
    for format_ in ("text", "jsonl", "sarif", "junit", "html"):
        assert main(["audit", name, "--format", format_, "--output", "report"]) == 1


def test_jobs_in_processes_give_the_same_report(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "1.flow", WRONG)
    record(place / "2.flow", CLEAN + WRONG)
    one = audit_json(capsys, "1.flow", "2.flow", "--jobs", "1")
    assert audit_json(capsys, "1.flow", "2.flow", "--jobs", "2") == one


def test_output_is_written_whole_or_not_at_all(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    (place / "report.json").write_text("old")
    assert main(["audit", "wrong.flow", "--format", "json", "--output", "report.json"]) == 1
    assert capsys.readouterr().out == ""
    Contract.model_validate_json((place / "report.json").read_text("utf-8"))
    assert sorted(path.name for path in place.iterdir()) == ["report.json", "wrong.flow"]


def test_output_does_not_overwrite_a_recording(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "a.flow", CLEAN)
    before = (place / "a.flow").read_bytes()
    assert main(["audit", "a.flow", "--output", "./a.flow"]) == 2
    assert "recordings" in capsys.readouterr().err
    assert (place / "a.flow").read_bytes() == before


@pytest.mark.parametrize("output", ["no/such/place/report.txt", "."])
def test_output_that_cannot_be_written_is_2(output: str, capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "a.flow", CLEAN)
    assert main(["audit", "a.flow", "--output", output]) == 2
    assert capsys.readouterr().err.startswith("mcp-wiretap: ")


@pytest.mark.parametrize("format_", ["text", "json", "jsonl", "sarif", "junit", "html"])
def test_every_format_can_be_written(format_: str, place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    assert main(["audit", "wrong.flow", "--format", format_, "--output", "report"]) == 1
    assert "HDR004" in (place / "report").read_text("utf-8")


def test_an_expected_era_that_is_broken_is_an_error(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "a.flow", CLEAN)
    _, report = audit_json(capsys, "a.flow", "--era", "server.example=legacy")
    assert "ERA025" in {finding["rule"] for finding in report["findings"]}
    assert main(["audit", "a.flow", "--era", "server.example=moderne"]) == 2
    assert "use modern, legacy or auto" in capsys.readouterr().err


def test_the_project_file_is_found_from_below(
    capsys: pytest.CaptureFixture[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(place / "wrong.flow", WRONG)
    (place / "wiretap.toml").write_text(
        '[rules]\nselect = ["HDR"]\n[[silence]]\nrule = "method-header-mismatch"\nendpoint = "server.example"\nreason = "known"\n'
    )
    (place / "below").mkdir()
    (place / ".git").mkdir()
    monkeypatch.chdir(place / "below")
    status, report = audit_json(capsys, "../wrong.flow")
    assert status == 0
    assert report["silenced"] == [{"rule": "HDR004", "endpoint": "server.example", "count": 1, "reason": "known"}]


def test_a_wrong_project_file_is_2(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    record(place / "a.flow", CLEAN)
    (place / "wiretap.toml").write_text("[rules]\nselct = []\n")
    assert main(["audit", "a.flow"]) == 2
    error = capsys.readouterr().err
    assert "wiretap.toml: rules.selct: no such key; did you mean select?" in error


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "mcp_wiretap", *arguments], capture_output=True, timeout=60, **options)


def test_a_reader_that_leaves_early_is_no_crash(place: Path) -> None:
    record(place / "wrong.flow", WRONG * 300)
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_wiretap", "audit", "wrong.flow", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
    assert b"Traceback" not in errors and b"BrokenPipe" not in errors


def test_a_terminal_without_utf8_gets_ascii(place: Path) -> None:
    record(place / "wrong.flow", WRONG)
    result = run("audit", "wrong.flow", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert result.returncode == 1 and result.stderr == b""
    assert result.stdout.isascii() and b"x HDR004" in result.stdout


def test_json_is_utf8_whatever_the_terminal(place: Path) -> None:
    record(place / "a.flow", 'modern tools/call {"name": "żółw", "arguments": {}}\n')
    result = run("audit", "a.flow", "--format", "json", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert json.loads(result.stdout)["flows"][0]["name"] == "żółw"
