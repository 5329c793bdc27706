"""Damaged and odd recordings: every command gives what can be read, and one line for people about the rest."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.io import tnetstring

from mcp_wiretap.cli import main
from tests.cli.recordings import record

SCRIPT = """
modern tools/call {"name": "first"}
  -> result {"content": []}
modern tools/call {"name": "second"}
  -> result {"content": []}
"""


def states(path: Path) -> list[dict[Any, Any]]:
    record(path, SCRIPT)
    found, file = [], io.BytesIO(path.read_bytes())
    while file.tell() < path.stat().st_size:
        found.append(tnetstring.load(file))
    return found


def put(*steps: str, value: Any) -> Callable[[dict[Any, Any]], None]:
    def change(state: dict[Any, Any]) -> None:
        for step in steps[:-1]:
            state = state[step]
        state[steps[-1]] = value

    return change


def without(name: str) -> Callable[[dict[Any, Any]], None]:
    return lambda state: state.pop(name)


NAN, INF = float("nan"), float("inf")
ODD: dict[str, Callable[[dict[Any, Any]], Any]] = {
    **{f"no {name}": without(name) for name in ("server_conn", "client_conn", "metadata", "error", "response", "version", "id")},
    "metadata is a list": put("metadata", value=[1]),
    "status is text": put("response", "status_code", value="200"),
    "status is a list": put("response", "status_code", value=[200]),
    "content is a number": put("request", "content", value=7),
    "content of the response is text": put("response", "content", value="x"),
    "connection id is an object": put("client_conn", "id", value={"a": 1}),
    "connection id is a list": put("client_conn", "id", value=[1]),
    "id is a number": put("id", value=7),
    "port is text": put("request", "port", value="x"),
    "method is a number": put("request", "method", value=1),
    "path is none": put("request", "path", value=None),
    "headers are text": put("request", "headers", value=b"x"),
    "a header of one part": put("response", "headers", value=[[b"a"]]),
    "a header of numbers": put("response", "headers", value=[[1, 2]]),
    "request is none": put("request", value=None),
    "response is a list": put("response", value=[]),
    "error is text": put("error", value="x"),
    "error without its text": put("error", value={"timestamp": 1.0}),
    "comment is a number": put("comment", value=7),
    "an unknown member": put("unheard", value=7),
    "an unknown type": put("type", value="smoke"),
    "a version of the future": put("version", value=10_000),
    "a version that is text": put("version", value="x"),
    "events at no time": put("metadata", value={"mcp.events": [NAN, INF, "x"]}),
    "odd marks of redaction": put("metadata", value={"mcp.redacted": [1], "mcp.ended": 7, "mcp.dropped": "x"}),
    "escapes in its id": put("id", value="\x1b]0;owned\x07"),
    "text that is no time": put("request", "timestamp_start", value="x"),
}
TIMES = {"NaN": NAN, "infinite": INF, "huge": 1e300, "before all": -INF, "negative": -5.0}
COMMANDS: dict[str, list[str]] = {
    "audit": ["audit", "odd.flow", "--format", "json"],
    "audit as text": ["audit", "odd.flow"],
    "annotate": ["annotate", "odd.flow", "out.flow"],
    **{
        f"export as {form}": ["export", "odd.flow", "--format", form, "--output", "out"]
        for form in ("flow", "har", "jsonl", "otlp")
    },
    "replay": ["replay", "odd.flow", "--to", "http://127.0.0.1:9", "--yes", "--timing", "fast", "--timeout", "0.2"],
    "diff": ["diff", "odd.flow", "odd.flow"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def each_command(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[int, str]]:
    answers = {}
    for name, arguments in COMMANDS.items():
        status = main(arguments)
        read = capsys.readouterr()
        assert status in (0, 1, 2), name
        assert "Traceback" not in read.err and "fault of mcp-wiretap itself" not in read.err, (name, read.err)
        assert "\x1b" not in read.err + read.out, name
        answers[name] = status, read.err
        if name == "audit":
            assert json.loads(read.out)["faults"] == []
    return answers


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_a_flow_that_is_odd(change: Callable[[dict[Any, Any]], Any], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd, good = states(place / "good.flow")
    change(odd)
    with (place / "odd.flow").open("wb") as file:
        tnetstring.dump(good, file)
        tnetstring.dump(odd, file)
    answers = each_command(capsys)
    for status, said in answers.values():
        assert status != 2 or said.count("\n") <= 2, said
    assert main(["export", "odd.flow", "--format", "jsonl"]) in (0, 2)
    assert "second" in capsys.readouterr().out  # what can be read is given


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("where", [("request", "timestamp_start"), ("request", "timestamp_end"), ("response", "timestamp_end")])
def test_a_time_that_is_none(where: tuple[str, str], time: float, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd, good = states(place / "good.flow")
    put(*where, value=time)(odd)
    with (place / "odd.flow").open("wb") as file:
        tnetstring.dump(odd, file)
        tnetstring.dump(good, file)
    answers = each_command(capsys)
    assert "has a time that is none" in answers["audit"][1] and answers["audit"][0] == 2
    assert main(["export", "odd.flow", "--format", "har"]) in (0, 2)
    har = json.loads(capsys.readouterr().out)
    assert len(har["log"]["entries"]) == 2 and all(entry["time"] >= 0 for entry in har["log"]["entries"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"999999999999:x",
        b"-5:x}",
        b"5:",
        b"0:}",
        b"0:~",
        b"1:x,",
        b"12345678901234567890:x}",
        b"4:1:a}}",
        b"\x00" * 50,
        b"{",
        b"{}",
        b'{"log": 1}',
        b'{"log": {"entries": 5}}',
        b'{"log": {"entries": [1, {}]}}',
        b"{" + b'"a":[' * 50_000,
        b'{"log": ' + b"9" * 5_000 + b"}",
        b"\xef\xbb\xbf{",
        b"\xff\xfe{\x00",
    ],
    ids=lambda content: content[:16].decode("latin-1"),
)
def test_a_file_that_is_none(content: bytes, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "odd.flow").write_bytes(content)
    each_command(capsys)


def test_a_file_that_is_cut_anywhere(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place / "whole.flow", SCRIPT)
    whole = (place / "whole.flow").read_bytes()
    for length in range(1, len(whole), 397):
        (place / "odd.flow").write_bytes(whole[:length])
        assert main(COMMANDS["annotate"]) == 2 and main(COMMANDS["export as har"]) == 2
        assert "Traceback" not in capsys.readouterr().err
