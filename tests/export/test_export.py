"""`mcp-wiretap export`: JSON lines, Markdown, single conversations; and what goes wrong."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mitmproxy.http import HTTPFlow

from mcp_wiretap import export
from mcp_wiretap.cli import main
from mcp_wiretap.proxy import sharing
from mcp_wiretap.proxy.flow_io import flows_of
from tests.cli.recordings import record

RECORDINGS = Path(__file__).parents[1] / "recordings"
MRTR = RECORDINGS / "modern-mrtr-http.flow"
TWO_ROUNDS = """
modern tools/call {"name": "deploy", "arguments": {}}
  -> needs sealed-state-1 a
modern tools/call {"name": "deploy", "arguments": {}}
  answers sealed-state-1 a
  -> result {"content": [{"type": "text", "text": "``` <script>alert(1)</script> \\u202e | `"}]}
modern tools/list {}
  -> result {"tools": []}
"""


def _export(source: Path, form: str, *more: str) -> int:
    return main(["export", str(source), "--format", form, *more])


def test_json_lines_have_one_message_each_in_order_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert _export(MRTR, "jsonl") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    calls = [line for line in lines if line["method"] == "tools/call"]
    assert calls and all(line["from"] == "client" and line["message"]["jsonrpc"] == "2.0" for line in calls)
    assert {line["round"] for line in calls if line["conversation"]} >= {1, 2}


def test_a_conversation_is_named_by_its_id_or_by_any_of_its_flows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows = record(tmp_path / "a.flow", TWO_ROUNDS)
    pages = []
    for flow in flows[:2]:
        assert _export(tmp_path / "a.flow", "md", "--conversation", flow) == 0
        pages.append(re.sub(r"sealed|redacted|[a-z]{6}-[a-z]{5}-\d", "", capsys.readouterr().out))
    assert pages[0] == pages[1]
    assert pages[0].count("<details>") == 2


def test_a_conversation_is_named_by_the_first_digits_of_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(RECORDINGS / "mrtr-showcase-http.flow")
    assert main(["export", source, "--format", "md"]) == 2
    offered = re.findall(r"([0-9a-f]{8}) (\S+ \S+)[,\n]", capsys.readouterr().err)
    assert len(offered) > 1
    for digits, operation in offered:
        for wanted in (digits, digits[:6].upper()):
            assert main(["export", source, "--format", "md", "--conversation", wanted]) == 0
            assert f"`{operation}`" in capsys.readouterr().out.splitlines()[0]


def test_digits_that_begin_several_ids_are_refused_and_those_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "a.flow", 'modern tools/list\n  -> result {"tools": []}\nmodern ping\n  -> result {}\n')
    assert _export(tmp_path / "a.flow", "md", "--conversation", "flow") == 2
    assert "--conversation flow may be any of flow-1 tools/list, flow-2 ping" in capsys.readouterr().err
    assert _export(tmp_path / "a.flow", "md", "--conversation", "flo") == 2
    assert "named by 4 of its digits at least" in capsys.readouterr().err


def test_markdown_holds_hostile_text_in_code_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    assert _export(tmp_path / "a.flow", "md") == 0  # the only conversation need not be named
    page = capsys.readouterr().out
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", page)
    assert "alert" in page and "alert" not in outside
    assert "\u202e" not in page
    assert page.startswith("### `tools/call deploy` at `http://server.example:80/mcp` (modern, `2026-07-28`)")


def test_a_flow_export_may_be_one_conversation(tmp_path: Path) -> None:
    flows = record(tmp_path / "a.flow", TWO_ROUNDS)
    assert _export(tmp_path / "a.flow", "flow", "--conversation", flows[0], "--output", str(tmp_path / "b.flow")) == 0
    assert [flow.id for flow in flows_of(tmp_path / "b.flow") if isinstance(flow, HTTPFlow)] == flows[:2]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--format", "md"], "--conversation"),
        (["--format", "har", "--conversation", "nothing"], "neither a conversation nor a flow"),
        (["--format", "har", "--endpoint", "http://127.0.0.1:4318"], "--endpoint is for --format otlp"),
        (["--format", "otlp", "--endpoint", "http://127.0.0.1:4318", "--output", "x"], "one of them"),
        (["--format", "har", "--redact", "a", "--no-redact"], "contradict"),
    ],
)
def test_what_makes_no_sense_is_2_and_says_why(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(RECORDINGS / "mrtr-showcase-http.flow"), *more]) == 2
    assert said in capsys.readouterr().err


def test_the_output_may_not_be_the_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    before = (tmp_path / "a.flow").read_bytes()
    assert _export(tmp_path / "a.flow", "flow", "--output", str(tmp_path / "a.flow")) == 2
    assert "is the recording itself" in capsys.readouterr().err
    assert (tmp_path / "a.flow").read_bytes() == before


def test_a_damaged_recording_is_exported_up_to_the_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    cut = tmp_path / "cut.flow"
    cut.write_bytes((tmp_path / "a.flow").read_bytes()[:-80])
    assert _export(cut, "har", "--output", str(tmp_path / "out.har")) == 2
    assert "exported up to there" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "out.har").read_bytes())["log"]["entries"]) == 2


def test_what_is_no_recording_at_all_is_said_to_be_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.flow").write_bytes(b"hello")
    assert _export(tmp_path / "a.flow", "har", "--output", str(tmp_path / "out.har")) == 2
    assert "a.flow" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["flow", "har", "jsonl", "otlp"])
def test_a_full_disk_leaves_the_old_file(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    (tmp_path / "out").write_bytes(b"old")
    real = os.fdopen

    def full(descriptor: int, *args: object, **named: object) -> object:
        def write(data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        return _Full(real(descriptor, *args, **named), write)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "fdopen", full)
    assert _export(tmp_path / "a.flow", form, "--output", str(tmp_path / "out")) == 2
    assert "out cannot be written: No space left on device" in capsys.readouterr().err
    assert (tmp_path / "out").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.flow", "out"]


class _Full:
    """A file on a disk that is full."""

    def __init__(self, file: object, write: object) -> None:
        self._file, self.write = file, write

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def __enter__(self) -> "_Full":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # type: ignore[attr-defined]


def test_a_full_scratch_directory_is_said_to_be_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sharing, "_redacted", full)
    assert _export(tmp_path / "a.flow", "har", "--output", str(tmp_path / "out.har")) == 2
    assert "TMPDIR" in capsys.readouterr().err
    assert not (tmp_path / "out.har").exists()


def test_without_the_sdk_otlp_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    monkeypatch.delitem(sys.modules, "mcp_wiretap.export.spans", raising=False)
    monkeypatch.delattr(export, "spans", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert _export(tmp_path / "a.flow", "otlp") == 2
    assert "pip install '.[otlp]'" in capsys.readouterr().err


def test_a_long_conversation_fits_into_an_issue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = TWO_ROUNDS + "\nmodern tools/call {}\n  -> sse\n".format('{"name": "much", "arguments": {}}')
    long += '  -> notify notifications/message {"level": "info", "data": "%s"}\n' % ("x" * 5_000) * 30
    flows = record(tmp_path / "a.flow", long + '  -> result {"content": []}\n')
    assert _export(tmp_path / "a.flow", "md", "--conversation", flows[-1]) == 0
    page = capsys.readouterr().out
    assert "too long for an issue" in page and len(page) < 65_536


def test_who_stops_reading_is_no_trouble(tmp_path: Path) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    command = f"'{sys.executable}' -m mcp_wiretap export '{tmp_path / 'a.flow'}' --format jsonl | true"
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert run.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_stdout_is_said(tmp_path: Path) -> None:
    record(tmp_path / "a.flow", TWO_ROUNDS)
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "mcp_wiretap", "export", str(tmp_path / "a.flow"), "--format", "jsonl"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert run.returncode == 2
    assert "stdout cannot be written: No space left on device" in run.stderr
