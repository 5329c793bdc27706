"""Adding a report format, an export format or a command is one module and one line, as CONTRIBUTING.md says."""

import argparse
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, TextIO

import pytest

from mcp_wiretap import cli
from mcp_wiretap.export import formats as export_formats
from mcp_wiretap.report import formats as report_formats
from mcp_wiretap.report.audit import Audit
from tests.cli.recordings import record

CALL = 'modern tools/call {"name": "a"}\n  -> result {"content": []}\n'


def test_a_report_format_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def write(audit: Audit, out: TextIO, zone: object) -> None:
        out.write("counted\n")

    monkeypatch.setitem(report_formats.FORMATS, "count", report_formats.Format(ending=".count", write=write))
    record(tmp_path / "a.flow", CALL)
    cli.main(["audit", str(tmp_path / "a.flow"), "--format", "count"])
    assert capsys.readouterr().out == "counted\n"


def test_an_export_format_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(recording: export_formats.Redacted, out: BinaryIO) -> None:
        out.write(f"{len(recording.flows)} {next(recording.wanted()).method}".encode())

    monkeypatch.setitem(export_formats.FORMATS, "count", export_formats.Format(says="a number", write=write))
    record(tmp_path / "a.flow", CALL)
    assert cli.main(["export", str(tmp_path / "a.flow"), "--format", "count", "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_bytes() == b"1 tools/call"


def test_a_command_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = ModuleType("mcp_wiretap.command.greet")

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name")

    def run(given: argparse.Namespace) -> int:
        print("hello", given.name)
        return 0

    vars(module).update(DESCRIPTION="Greets.", arguments=arguments, run=run)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "greet", "greet somebody")
    assert cli.main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"


def test_help_loads_nothing_heavy() -> None:
    seen = (
        "import sys\nfrom mcp_wiretap.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({'mitmproxy', 'mcp_types', 'rich', 'pydantic'} & sys.modules.keys()))"
    )
    said = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1].strip() == "LOADED"
