"""`mcp-wiretap serve` and `mcp-wiretap replay` as a user runs them: URLs, exit statuses, what is said about bad input."""

import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader, FlowWriter

from mcp_wiretap import cli
from mcp_wiretap.command.work import serve
from tests.replay.playing import META, RECORDINGS

WIRETAP = Path(sys.executable).with_name("mcp-wiretap")
MODERN = str(RECORDINGS / "modern-http.flow")


def status(*arguments: str) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.e2e
def test_serve_prints_its_url_and_answers_until_it_is_interrupted():
    command = [str(WIRETAP), "serve", MODERN, "--port", "0", "--timing", "fast"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None and serving.stderr is not None
        url = serving.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", url)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
        with httpx2.Client(trust_env=False) as client:
            listed = client.post(url, json=body).json()
            missing = client.post(url, json={**body, "method": "prompts/list"}).json()
        serving.send_signal(signal.SIGINT)
        assert serving.wait(20) == 0
        assert listed["result"]["tools"] and missing["error"]["code"] == -32601
        assert "not answered: the recording has no prompts/list" in serving.stderr.read()


@pytest.mark.e2e
def test_servers_with_endpoints_of_the_same_path_get_ports_of_their_own():
    command = [str(WIRETAP), "serve", str(RECORDINGS / "demo.flow"), "--port", "0", "--timing", "fast"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        told = [serving.stdout.readline().split(maxsplit=1) for _ in range(2)]
        body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
        with httpx2.Client(trust_env=False) as client:
            answers = [client.post(url, json=body).json() for url, _ in told]
        serving.send_signal(signal.SIGINT)
        assert serving.wait(20) == 0
    assert [said for _, said in told] == [f"(recorded at http://127.0.0.1:{port}/mcp)\n" for port in (3100, 3200)]
    assert "result" in answers[0] and "error" in answers[1]  # the second is a legacy server


def test_the_ports_after_the_first_are_the_next_free_ones(monkeypatch):
    def listening(host, port):
        if port in (8001, 8002):
            raise OSError(98, "Address already in use")
        return port

    monkeypatch.setattr(serve, "listening", listening)
    assert serve._sockets("127.0.0.1", 8000, 3) == [8000, 8003, 8004]
    assert serve._sockets("127.0.0.1", 0, 2) == [0, 0]


@pytest.mark.parametrize("command", [["serve"], ["replay", "--to", "http://127.0.0.1:9/mcp", "--yes"]])
def test_a_file_without_mcp_is_refused(command, tmp_path, capsys):
    empty, text, foreign = tmp_path / "empty.flow", tmp_path / "text.flow", tmp_path / "foreign.flow"
    empty.write_bytes(b"")
    text.write_bytes(b"no recording at all")
    with foreign.open("wb") as file, Path(MODERN).open("rb") as source:
        flow = http.HTTPFlow.from_state(next(iter(FlowReader(source).stream())).get_state())
        flow.request = http.Request.make("GET", "http://site.example/")
        flow.response = http.Response.make(200, b"hello", {"content-type": "text/plain"})
        FlowWriter(file).add(flow)
    for path, why in ((empty, "it is empty"), (text, "not a flow at byte 0"), (foreign, "1 HTTP flow\n")):
        assert status(*command, str(path)) == 2
        assert why in capsys.readouterr().err
    assert status(*command, str(tmp_path)) == 2 and "directory" in capsys.readouterr().err
    assert status(*command, str(tmp_path / "none.flow")) == 2 and "cannot be read" in capsys.readouterr().err


def test_a_damaged_recording_is_played_up_to_the_damage(tmp_path, capsys):
    whole = Path(MODERN).read_bytes()
    (tmp_path / "cut.flow").write_bytes(whole[: len(whole) - 100])
    assert status("replay", str(tmp_path / "cut.flow"), "--to", "http://127.0.0.1:9/mcp", "--yes") == 1
    err = capsys.readouterr()
    assert "cut off at byte" in err.err and "what comes before is replayed" in err.err
    assert "cannot be reached" in err.out


def test_streams_that_were_not_stored_are_said(tmp_path, capsys):
    with Path(MODERN).open("rb") as source, (tmp_path / "bare.flow").open("wb") as target:
        writer = FlowWriter(target)
        for number, flow in enumerate(FlowReader(source).stream()):
            if isinstance(flow, http.HTTPFlow) and flow.response is not None and number > 0:
                flow.response.raw_content = None
            writer.add(flow)
    assert status("replay", str(tmp_path / "bare.flow"), "--to", "http://127.0.0.1:9/mcp", "--yes") == 1
    assert "the answer to tools/list was not stored" in capsys.readouterr().err


def test_calls_are_not_repeated_unasked(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert status("replay", MODERN, "--to", "http://127.0.0.1:9/mcp") == 2
    err = capsys.readouterr().err
    assert "echo (2 calls), get_temp" in err and "--yes" in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["replay", MODERN, "--yes"], "--to"),
        (["replay", MODERN, "--to", "ftp://x/", "--yes"], "http://"),
        (["replay", MODERN, "--to", "http://127.0.0.1:9", "--yes", "--header", "nonsense"], "NAME: VALUE"),
        (["replay", MODERN, "--to", "http://127.0.0.1:9", "--yes", "--timeout", "0"], "seconds above 0"),
        (["replay", str(RECORDINGS / "demo.flow"), "--to", "http://127.0.0.1:9", "--yes"], "several servers"),
        (["replay", MODERN, "--to", "http://127.0.0.1:9", "--yes", "--output", MODERN], "would be overwritten"),
        (["serve", MODERN, "--port", "99999"], "is not a port"),
        (["serve", MODERN, "--endpoint", "http://x/mcp"], "is not in the recording"),
    ],
)
def test_usage_errors(arguments, why, capsys):
    before = Path(MODERN).read_bytes()
    assert status(*arguments) == 2
    assert why in capsys.readouterr().err
    assert Path(MODERN).read_bytes() == before


def test_a_taken_port_is_said(capsys):
    from mcp_wiretap.replay.server import listening

    with listening("127.0.0.1", 0) as sock:
        port = str(sock.getsockname()[1])
        assert status("serve", MODERN, "--port", port) == 2
    assert f"--port {port}" in capsys.readouterr().err
