"""`mcp-wiretap init`: what it writes is read by every command, judges nothing differently, and is not written over."""

import tomllib

from mcp_wiretap import project
from mcp_wiretap.cli import main
from mcp_wiretap.project import load
from tests.cli.recordings import record

WRONG = """modern tools/list
  -> tool search
  -> tool read
modern tools/call {"name": "search", "arguments": {}}
  header Mcp-Name: other
  -> result {"content": []}
"""


def test_a_file_without_a_recording_is_valid_and_says_nothing(tmp_path, monkeypatch):
    assert main(["init", "--output", str(tmp_path)]) == 0
    found = load(tmp_path)
    assert found.path == tmp_path / project.FILE and not found.select and not found.expect and not found.contract


def test_a_recording_fills_it_and_the_same_audit_says_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "run.flow", WRONG)
    main(["audit", "run.flow"])
    before = capsys.readouterr().out
    assert main(["init", "run.flow", "--ci", "github"]) == 0
    capsys.readouterr()
    main(["audit", "run.flow"])
    assert capsys.readouterr().out == before
    text = (tmp_path / "wiretap.toml").read_text()
    assert '"read", "search"' in text and 'rule = "HDR006"' in text
    assert tomllib.loads(text)["expect"] == {"server.example:80/mcp": "modern"}
    assert "mcp-wiretap audit run.flow" in (tmp_path / ".github" / "workflows" / "mcp-wiretap.yml").read_text()


def test_what_is_there_is_left_as_it_is(tmp_path, capsys):
    (tmp_path / "wiretap.toml").write_text("# mine\n")
    assert main(["init", "--output", str(tmp_path), "--ci", "github"]) == 2
    assert (tmp_path / "wiretap.toml").read_text() == "# mine\n" and not (tmp_path / ".github").exists()


def test_the_comments_when_they_are_taken_in_are_valid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "run.flow", WRONG)
    main(["init", "run.flow"])
    path = tmp_path / "wiretap.toml"
    lines = [line.removeprefix("# ") for line in path.read_text().splitlines()]
    kept = [line for line in lines if line.startswith("[") or (" = " in line and ":" not in line.split(" = ")[0])]
    tomllib.loads("\n".join(line.partition("    #")[0] for line in kept if not line.startswith("files")))
