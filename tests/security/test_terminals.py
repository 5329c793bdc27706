"""What a terminal shows of a recording: no character that it obeys, in text and in JSON."""

import json
import subprocess
from pathlib import Path

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.web.site import Site
from mcp_wiretap.wire.secret import escaped_json
from tests.cli.recordings import record
from tests.web.looking import Script

EVIL = "\x1b]0;owned\x07\x00\x7f\x9b31m\u202egnp\u2066\u200b\ufeff\u2028\x85\U000e0041"
HOSTILE = set("\x1b\x07\x00\x7f\x9b\x85\u202e\u2066\u200b\ufeff\u2028\U000e0041")
SCRIPT = f"""
modern tools/call {json.dumps({"name": EVIL, "arguments": {EVIL: EVIL}})}
  path http://server.example/mcp/\x1b]0;owned\x07\x9b31m\u202e
  header Mcp-Name: other
  -> raw-result {json.dumps({"resultType": EVIL, EVIL: 1, "content": [{"type": EVIL, "text": EVIL}]})}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "evil.flow", SCRIPT)
    (tmp_path / "\x1b[31mevil\x9b.flow").write_bytes((tmp_path / "evil.flow").read_bytes()[:-5])
    return tmp_path


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "sarif", "junit", "html"])
def test_audit(form: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", "evil.flow", "--format", form])
    out = capsys.readouterr().out
    assert not HOSTILE & set(out)
    if form in ("json", "sarif"):
        json.loads(out)


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "evil.flow", "--format", "jsonl"],
        ["export", "evil.flow", "--format", "md"],
        ["diff", "evil.flow", "evil.flow"],
        ["diff", "evil.flow", "evil.flow", "--format", "json"],
        ["replay", "evil.flow", "--to", "http://127.0.0.1:9", "--yes", "--timing", "fast"],
        ["replay", "evil.flow", "--to", "http://127.0.0.1:9", "--yes", "--timing", "fast", "--format", "json"],
        ["replay", "evil.flow", "--to", "http://127.0.0.1:9", "--endpoint", "wrong"],
        ["serve", "evil.flow", "--endpoint", "wrong"],
        ["audit", "\x1b[31mevil\x9b.flow"],
        ["annotate", "\x1b[31mevil\x9b.flow", "out.flow"],
        ["audit", "\x1b]0;nowhere\x9b"],
        ["audit", "evil.flow", "--output", "\x1b]0;no\x9b/where"],
        ["audit", "evil.flow", "--rules", "\x1b]0;no\x9b.py"],
        ["audit", "evil.flow", "--select", "\x1b]0;no\x9b"],
        ["explain", "\x1b]0;no\x9b"],
    ],
    ids=lambda arguments: ascii(" ".join(arguments)),
)
def test_every_command(arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    read = capsys.readouterr()
    assert read.out + read.err and not HOSTILE & set(read.out + read.err)


def test_json_says_the_same_with_escapes() -> None:
    for value in (EVIL, {EVIL: [EVIL]}, "plain", "é 漢 😀"):
        for indent in (None, 2):
            written = json.dumps(value, ensure_ascii=False, indent=indent)
            assert json.loads(escaped_json(written)) == value
            assert not HOSTILE & set(escaped_json(written))
    assert escaped_json('"é 漢 😀"') == '"é 漢 😀"'


@pytest.mark.parametrize("body", ['body {"jsonrpc": "2.0", "id": 1, "method": "ping"}', "body no json at all", "body "])
async def test_copy_as_curl_asks_once_and_as_it_was(body: str) -> None:
    source = Script(f"modern ping\n  path http://server.example/mcp/[1-100000]/{{a,b}}\n  {body}\n  -> result {{}}\n")
    site = Site(source, lambda flow: flow)
    await site.settle()
    copied = site.copy("curl", source.exchanges[0].flow)
    assert copied is not None
    words = subprocess.run(
        ["bash", "-c", f"curl() {{ printf '%s\\n' \"$@\"; }}; {copied}"], capture_output=True, text=True
    ).stdout
    assert "--globoff" in words.splitlines()
    assert ("--data-raw" in words.splitlines()) is body.endswith("}") and ("POST" in words.splitlines()) is not body.endswith("}")
