"""Recorded credentials go only home; whatever else replays them leaves them out and says so."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.example import read_script
from mcp_wiretap.replay.credentials import is_credential, is_home, without_secrets
from mcp_wiretap.replay.http import Place
from mcp_wiretap.replay.script import build
from mcp_wiretap.wire.secret import KnownSecrets
from tests.cli.recordings import record

HEADERS = {
    "Authorization": "Bearer LEAKauth0123456789abc",
    "Cookie": "sid=LEAKcookie0123456",
    "X-Api-Key": "LEAKxapikey0123456",
    "Api-Key": "LEAKapikey012345678",
    "X-Auth-Token": "LEAKxauth0123456789",
    "DPoP": "eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiJMRUFLZHBvcCJ9.LEAKdpop1234567",
    "X-Goog-Api-Key": "LEAKgoog01234567890",
    "PRIVATE-TOKEN": "LEAKglpat-012345678",
    "Cf-Access-Client-Secret": "LEAKcf0123456789",
    "X-Amz-Security-Token": "LEAKamz0123456789",
    "Ocp-Apim-Subscription-Key": "LEAKocp0123456789",
    "X-Functions-Key": "LEAKfun0123456789",
    "X-Session": "LEAKsession012345",
    "X-Echo": "of LEAKauth0123456789abc",
    "Mcp-Param-Token": "LEAKparam01234567",
    "Mcp-Param-Door": "LEAKdoor0123456789",
}
DOOR = {"door": {"type": "string", "format": "password", "x-mcp-header": "Door"}}
SCRIPT = f"""
modern tools/list
  +header Authorization: {HEADERS["Authorization"]}
  -> tool open {json.dumps(DOOR)}
modern tools/call {{"name": "open", "arguments": {{"door": "LEAKdoor0123456789", "city": "Rome"}}}}
  path /mcp?api_key=LEAKquery0123456789&token=LEAKqtok0123456789&lang=it
{"".join(f"  +header {name}: {value}" + chr(10) for name, value in HEADERS.items())}  -> result {{"content": []}}
"""
QUIET = ("X-Trace: 7", "Accept-Language: it")


class _Sink(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.server.heads.append(f"{self.path}\n{self.headers.as_string()}")  # type: ignore[attr-defined]
        content = {"resultType": "complete", "content": [], "tools": [], "ttlMs": 0, "cacheScope": "private"}
        answer = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": content}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        return None


@contextmanager
def sink() -> Iterator[tuple[int, list[str]]]:
    """A server that keeps the heads of what it is asked."""
    server = HTTPServer(("127.0.0.1", 0), _Sink)
    server.heads = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], server.heads  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


def _replay(tmp_path: Path, script: str, port: int, *more: str) -> dict[str, object]:
    source, out = tmp_path / "run.flow", tmp_path / "report.json"
    record(source, script)
    to = f"http://127.0.0.1:{port}"
    main(["replay", str(source), "--to", to, "--yes", "--timing", "fast", "--format", "json", "--output", str(out), *more])
    report = json.loads(out.read_text())
    assert isinstance(report, dict)
    return report


@pytest.mark.parametrize("home", [True, False])
def test_credentials_are_sent_home_and_nowhere_else(home: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = SCRIPT.replace("  +header X-Echo", "".join(f"  +header {line}\n" for line in QUIET) + "  +header X-Echo")
    with sink() as (port, heads):
        if home:
            script = script.replace("path /mcp", f"path http://127.0.0.1:{port}/mcp").replace(
                "modern tools/list\n", f"modern tools/list\n  path http://127.0.0.1:{port}/mcp\n"
            )
        report = _replay(tmp_path, script, port)
    said = capsys.readouterr().err
    sent = heads[1]
    assert "lang=it" in sent and all(line.lower() in sent.lower() for line in QUIET)
    if home:
        assert all(value in sent for value in HEADERS.values()) and "LEAKquery" in sent
        assert report["left_out"] == [] and "not sent" not in said
    else:
        assert "LEAK" not in sent
        left_out = report["left_out"]
        assert isinstance(left_out, list)
        assert sorted(left_out) == sorted(["parameter api_key", "parameter token", *(f"header {name}" for name in HEADERS)])
        assert all(name in said for name in HEADERS) and "LEAK" not in said and "http://server.example:80" in said


def test_what_is_given_by_hand_is_sent(tmp_path: Path) -> None:
    with sink() as (port, heads):
        report = _replay(tmp_path, SCRIPT, port, "--header", "X-Api-Key: mine")
    assert "mine" in heads[1] and "header X-Api-Key" not in str(report["left_out"])


@pytest.mark.parametrize(
    ("recorded", "live", "home"),
    [
        ("https://a.example/mcp", "https://a.example/mcp", True),
        ("https://a.example/mcp", "https://A.example.:443/other", True),
        ("http://a.example/mcp", "https://a.example/mcp", True),
        ("http://a.example:8080/mcp", "https://a.example:8080/mcp", True),
        ("https://a.example/mcp", "http://a.example:443/mcp", False),
        ("https://a.example/mcp", "http://a.example/mcp", False),
        ("http://a.example:8080/mcp", "https://a.example/mcp", False),
        ("https://a.example/mcp", "https://b.example/mcp", False),
        ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/mcp", False),
    ],
)
def test_home_is_scheme_host_and_port(recorded: str, live: str, home: bool) -> None:
    take = build(read_script(f'modern tools/list\n  path {recorded}\n  -> result {{"tools": []}}\n')).mcp[0]
    assert is_home(take, Place.of(live)) is home


def test_what_is_no_credential_travels() -> None:
    take = build(read_script('modern tools/list\n  -> result {"tools": []}\n')).mcp[0]
    for name, value in {
        "Content-Type": "application/json",
        "Mcp-Name": "get_token",
        "X-Max-Tokens": "1000",
        "X-Session-Count": "3",
        "Idempotency-Key": "7f3a9b21-aaaa-4bbb-8ccc-1234567890ab",
        "Mcp-Param-City": "Rome",
        "User-Agent": "client/1.0",
        "X-Author": "n1nja-0123456789ab",
    }.items():
        assert not is_credential(take, name, value, KnownSecrets()), name
    assert without_secrets("city=Rome&nextPageToken=CAUQ1234567890&state=CA", KnownSecrets()) == (
        "city=Rome&nextPageToken=CAUQ1234567890&state=CA",
        [],
    )
