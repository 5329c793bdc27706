"""`wrap` and `unwrap`: configurations of real clients, there and back."""

import json
from pathlib import Path

import pytest

from mcp_wiretap.cli import main

CLAUDE = """{
  "globalShortcut": "",
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": [
        "-y", "@modelcontextprotocol/server-filesystem",
        "/data"
      ],
      "env": {"KEY": "value"}
    },
    "bare": { "command": "my-server" },
    "remote": {"type": "http", "url": "https://mcp.example.com/mcp?x=1"}
  }
}
"""
VSCODE = """// servers of this project
{
\t"servers": {
\t\t"weather": {
\t\t\t"type": "stdio", /* local */
\t\t\t"command": "uvx",
\t\t\t"args": ["mcp-server-weather",],
\t\t},
\t},
\t"inputs": []
}
"""
OPENCODE = '{"mcp": {"git": {"type": "local", "command": ["uvx", "mcp-server-git"], "enabled": true}}}'
PROJECTS = '{"mcpServers": {}, "projects": {"/a": {"mcpServers": {"x": {"command": "x", "args": []}}}, "/b": {"history": []}}}'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = tmp_path / "bin" / "mcp-wiretap"
    made.parent.mkdir()
    made.write_text("")
    monkeypatch.setattr("sys.argv", [str(made)])
    return str(made)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode())
    return path


def wrap(path: Path, *more: str) -> int:
    return main(["wrap", "--client", str(path), "--yes", *more])


def unwrap(path: Path, *more: str) -> int:
    return main(["unwrap", "--client", str(path), "--yes", *more])


@pytest.mark.parametrize("text", [CLAUDE, CLAUDE.replace("\n", "\r\n"), VSCODE, OPENCODE, PROJECTS, "\ufeff" + CLAUDE])
def test_what_is_wrapped_and_unwrapped_is_as_it_was_byte_for_byte(tmp_path: Path, program: str, text: str) -> None:
    path = written(tmp_path, text)
    assert wrap(path) == 0
    assert path.read_bytes() != text.encode()
    assert Path(f"{path}.mcp-wiretap.bak").read_bytes() == text.encode()
    assert unwrap(path) == 0
    assert path.read_bytes() == text.encode()


def test_the_wrapper_stands_in_front_of_each_stdio_server_and_nothing_else_changes(tmp_path: Path, program: str) -> None:
    path = written(tmp_path, CLAUDE)
    wrap(path, "--inline")
    found = json.loads(path.read_text())["mcpServers"]
    package = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"]
    assert found["files"] == {
        "command": program,
        "args": ["stdio", "--name", "files", "--inline", "--", *package],
        "env": {"KEY": "value"},
    }
    assert found["bare"] == {"command": program, "args": ["stdio", "--name", "bare", "--inline", "--", "my-server"]}
    assert found["remote"] == {"type": "http", "url": "https://mcp.example.com/mcp?x=1"}


def test_a_command_that_is_a_list_stays_one(tmp_path: Path, program: str) -> None:
    path = written(tmp_path, OPENCODE)
    wrap(path)
    assert json.loads(path.read_text())["mcp"]["git"]["command"] == [
        program,
        "stdio",
        "--name",
        "git",
        "--",
        "uvx",
        "mcp-server-git",
    ]


def test_only_the_servers_that_are_named(tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CLAUDE)
    wrap(path, "bare")
    assert json.loads(path.read_text())["mcpServers"]["files"]["command"] == "npx"
    wrap(path, "files")
    unwrap(path, "bare")
    found = json.loads(path.read_text())["mcpServers"]
    assert (found["bare"], found["files"]["command"]) == ({"command": "my-server"}, program)
    unwrap(path)
    assert path.read_bytes() == CLAUDE.encode()
    assert main(["wrap", "--client", str(path), "--yes", "nothing"]) == 2
    assert "there is no server nothing" in capsys.readouterr().err


def test_what_was_changed_meanwhile_stays(tmp_path: Path, program: str) -> None:
    path = written(tmp_path, CLAUDE)
    wrap(path)
    path.write_text(path.read_text().replace('"KEY": "value"', '"KEY": "other"'))
    unwrap(path)
    assert path.read_bytes() == CLAUDE.replace('"KEY": "value"', '"KEY": "other"').encode()


def test_it_is_undone_without_the_backup_as_well(tmp_path: Path, program: str) -> None:
    path = written(tmp_path, CLAUDE)
    wrap(path)
    Path(f"{path}.mcp-wiretap.bak").unlink()
    unwrap(path)
    assert json.loads(path.read_text()) == json.loads(CLAUDE)


def test_wrapping_twice_changes_nothing(tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CLAUDE)
    wrap(path)
    once = path.read_bytes()
    wrap(path)
    assert path.read_bytes() == once
    assert "is wrapped already" in capsys.readouterr().out
    unwrap(path)
    assert path.read_bytes() == CLAUDE.encode()


def test_http_servers_go_through_a_reverse_proxy_where_that_is_wanted(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, CLAUDE)
    wrap(path, "--http", "--port", "9000")
    assert json.loads(path.read_text())["mcpServers"]["remote"]["url"] == "http://127.0.0.1:9000/mcp?x=1"
    assert "--mode reverse:https://mcp.example.com@9000" in capsys.readouterr().out
    unwrap(path)
    assert path.read_bytes() == CLAUDE.encode()


@pytest.mark.parametrize(
    "text", ["", "{", '{"mcpServers": {"a": {"command": "x"} "b"}}', "{'a': 1}", '{"a": 1, "a": 2}', "[" * 1_000]
)
def test_what_is_not_understood_is_left_alone(
    tmp_path: Path, program: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, text)
    assert wrap(path) == 2
    assert path.read_bytes() == text.encode()
    assert not Path(f"{path}.mcp-wiretap.bak").exists()
    assert "is not understood" in capsys.readouterr().err


def test_it_shows_what_it_would_do_and_asks(tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, CLAUDE)
    assert main(["wrap", "--client", str(path), "--dry-run"]) == 0
    assert "stdio://files" in capsys.readouterr().out
    assert main(["wrap", "--client", str(path)]) == 2  # nobody can be asked
    assert path.read_bytes() == CLAUDE.encode()
