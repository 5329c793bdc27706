"""mitmproxy with the addon, started in a directory of anybody's or with options that are wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.recordings import record

pytestmark = pytest.mark.e2e

CALL = 'modern tools/call {"name": "deploy"}\n  -> result {"content": []}\n'
HOUSE = (Path(__file__).parent.parent / "example_pack" / "house_rules.py").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "house.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{HOUSE}")
    (root / "wiretap.toml").write_text('[rules]\nfiles = ["house.py"]\n')
    record(root / "in.flow", CALL)
    return root


def start(place: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """mitmdump, which reads the recording and ends."""
    command = [sys.executable, "-m", "mcp_wiretap", "dump", "-n", "-r", "in.flow", *arguments]
    environment = {"HOME": str(place.parent), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120)


def test_rule_files_of_the_directory_do_not_run_and_that_is_said(place: Path) -> None:
    started = start(place)
    assert started.returncode == 0 and not (place.parent / "ran").exists()
    said = started.stdout + started.stderr
    (line,) = [line for line in said.splitlines() if "house.py" in line]
    assert f"mcp-wiretap trust {place}" in line and "mcp_trust_project" in line and "ACME001" not in said


def test_with_the_option_they_run_and_that_is_said(place: Path) -> None:
    started = start(place, "--set", "mcp_trust_project=true")
    assert started.returncode == 0 and (place.parent / "ran").exists()
    assert f"rules of {place / 'wiretap.toml'} ran: {place / 'house.py'}" in started.stdout + started.stderr
    assert "ACME001" in started.stdout


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("[rules]\nignroe = []\n", (), "rules.ignroe: no such key; did you mean ignore?"),
        ("a = " + "[" * 3_000, (), "wiretap.toml: not valid TOML: "),
        ("", ("mcp_era=foo",), "mcp_era: 'foo' is not HOST=ERA"),
        ("", ("mcp_rules=nofile.py",), "mcp_rules: nofile.py cannot be run: FileNotFoundError: No such file or directory"),
        ("", ("mcp_select=NOPE1",), "mcp_select: unknown rule 'NOPE1'"),
        ("", ("mcp_max_body=0",), "mcp_max_body: 0 is not a number above 0"),
        ("", ("mcp_max_body=abc",), "--set mcp_max_body=abc: mcp_max_body is a whole number, not 'abc'"),
        ("", ("mcp_max_state",), "mcp_max_state is a whole number, not ''"),
        ("", ("mcp_mark=maybe",), "mcp_mark is true or false, not 'maybe'"),
        ("", ("mcp_max_bdy=1",), "there is no option mcp_max_bdy; did you mean mcp_max_body"),
        ("", ("mcp_rules=exits.py",), "exits.py cannot be run: SystemExit: 3"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_mitmproxy_ends(text: str, given: tuple[str, ...], said: str, place: Path) -> None:
    (place / "wiretap.toml").write_text(text)
    (place / "exits.py").write_text("raise SystemExit(3)")
    started = start(place, *(word for option in given for word in ("--set", option)))
    assert started.returncode == 2
    (line,) = started.stderr.splitlines()
    assert line.startswith("mcp-wiretap: ") and said in line
    assert "Traceback" not in started.stdout and "listening" not in started.stdout
