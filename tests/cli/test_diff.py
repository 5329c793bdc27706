"""`mcp-wiretap diff` on recordings."""

import json
from pathlib import Path

import pytest

from mcp_wiretap.cli import main

RECORDINGS = Path(__file__).parent.parent / "recordings"
ONE, OTHER = str(RECORDINGS / "modern-http.flow"), str(RECORDINGS / "modern-mrtr-http.flow")


def test_a_recording_beside_itself_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", ONE, ONE, "--fail-on", "any"]) == 0
    assert "The same tools, outcomes and findings." in capsys.readouterr().out


def test_a_tool_that_is_gone_is_told_and_fails_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", ONE, OTHER, "--fail-on", "breaking", "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert {"name": "get_temp", "change": "removed", "breaking": True, "changes": []} in data["tools"]


def test_the_sides_of_a_hop_that_changed_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--hop", ONE, ONE, "--fail-on", "any"]) == 0
    assert "passed unchanged" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", ONE, "nowhere.flow"]) == 2
    assert "nowhere.flow" in capsys.readouterr().err


def test_a_damaged_recording_is_compared_up_to_the_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.flow"
    cut.write_bytes(Path(ONE).read_bytes()[:-50])
    assert main(["diff", ONE, str(cut)]) == 2
    assert "Damaged: " in capsys.readouterr().out
