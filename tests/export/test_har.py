"""The HTTP Archive: right by the schema and by a browser, and true to the wire."""

import base64
import gzip
import json
import shutil
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft6Validator
from mitmproxy.http import HTTPFlow
from playwright.sync_api import sync_playwright
from referencing import Registry, Resource

from harness.browser import FLAGS, find_chromium
from mcp_wiretap.cli import main
from mcp_wiretap.command.tracing import Settings, follow
from mcp_wiretap.proxy.flow_io import flows_of
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.trace.model import Exchange
from tests.cli.recordings import record, write

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "tests" / "recordings"
SCHEMA = ROOT / "scripts" / "ts" / "node_modules" / "har-schema" / "lib"
CHECKED = ("demo", "legacy-sse", "oauth-step-up", "mrtr-showcase-http", "subscriptions-modern-http", "tasks-legacy-http")


def _har(source: Path, tmp_path: Path, *more: str) -> dict[str, Any]:
    target = tmp_path / "out.har"
    assert main(["export", str(source), "--format", "har", "--output", str(target), *more]) == 0
    found: dict[str, Any] = json.loads(target.read_bytes())
    return found


@pytest.fixture(scope="module")
def schema() -> Draft6Validator:
    read = {path.name: json.loads(path.read_text()) for path in SCHEMA.glob("*.json")}
    resources = [(f"{name}#", Resource.from_contents(found)) for name, found in read.items()]
    registry: Registry[Any] = Registry().with_resources([*resources, *((n.removesuffix("#"), r) for n, r in resources)])
    return Draft6Validator(read["har.json"], registry=registry, format_checker=Draft6Validator.FORMAT_CHECKER)


@pytest.mark.skipif(shutil.which("node") is None or not SCHEMA.exists(), reason="needs Node and an npm install in scripts/ts")
@pytest.mark.parametrize("name", CHECKED)
def test_it_is_valid_by_the_schema(name: str, tmp_path: Path, schema: Draft6Validator) -> None:
    assert [error.message for error in schema.iter_errors(_har(RECORDINGS / f"{name}.flow", tmp_path))] == []


def test_the_time_of_an_entry_is_the_sum_of_its_timings(tmp_path: Path) -> None:
    for entry in _har(RECORDINGS / "demo.flow", tmp_path)["log"]["entries"]:
        assert entry["time"] == pytest.approx(sum(v for v in entry["timings"].values() if v >= 0), abs=0.01)
        assert entry["cache"] == {}


def test_bodies_are_those_of_the_recording(tmp_path: Path) -> None:
    source = RECORDINGS / "subscriptions-modern-http.flow"
    flows = [flow for flow in flows_of(source) if isinstance(flow, HTTPFlow)]
    entries = _har(source, tmp_path, "--no-redact")["log"]["entries"]
    streams = 0
    for flow, entry in zip(flows, entries, strict=True):
        assert entry["request"].get("postData", {}).get("text", "") == (flow.request.raw_content or b"").decode()
        assert flow.response is not None
        content = entry["response"]["content"]
        assert content.get("text", "") == (flow.response.get_content() or b"").decode()
        streams += content["mimeType"].startswith("text/event-stream") and "data: {" in content["text"]
    assert streams > 0


def test_each_entry_says_what_was_found(tmp_path: Path) -> None:
    entries = _har(RECORDINGS / "mrtr-showcase-http.flow", tmp_path)["log"]["entries"]
    ours = [entry["_mcp"] for entry in entries if "_mcp" in entry]
    assert {one["outcome"] for one in ours} >= {"input_required", "complete"}
    rounds = [one for one in ours if one["conversation"]]
    assert rounds and rounds[0]["round"] == 1 and rounds[0]["era"] == "modern"
    findings = [finding for one in ours for finding in one["findings"]]
    assert findings and {"rule", "severity", "party", "message", "evidence", "spec"} <= set(findings[0])


def _found(path: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    follow(
        [Recording(path)],
        Settings(),
        lambda exchange: found.update(f"{f.rule} {f.severity} {f.party}" for f in exchange.findings),
    )
    return found


# The streams of the later ones were closed by the client, or broken off by the server.
@pytest.mark.parametrize(
    "name",
    ["modern-http", "xmcpheader-modern-http", "pagination-http", "subscriptions-modern-http", "demo", "rogue-cut-streams"],
)
def test_read_back_it_audits_as_the_recording_does(name: str, tmp_path: Path) -> None:
    source = RECORDINGS / f"{name}.flow"
    _har(source, tmp_path)
    assert _found(tmp_path / "out.har") == _found(source)


def test_where_a_har_does_not_say_who_ended_a_stream_it_is_held_against_nobody(tmp_path: Path) -> None:
    made = _har(RECORDINGS / "subscriptions-modern-http.flow", tmp_path)
    for entry in made["log"]["entries"]:
        entry.pop("_mcp", None)
    (tmp_path / "bare.har").write_text(json.dumps(made))
    ends: Counter[str] = Counter()

    def retire(exchange: Exchange) -> None:
        ends[f"{'stream' if exchange.stream is not None else 'body'} {exchange.ended_by}"] += 1

    follow([Recording(tmp_path / "bare.har")], Settings(), retire)
    assert set(ends) == {"stream unknown", "body complete"}
    assert not [found for found in _found(tmp_path / "bare.har") if found.startswith("SUB011 warning")]


def _one(path: Path, change: Any) -> Path:
    record(path, 'modern tools/list {}\n  -> result {"tools": []}')
    flow = next(iter(flows_of(path)))
    assert isinstance(flow, HTTPFlow)
    change(flow)
    with path.open("wb") as file:
        write(file, flow)
    return path


def test_a_compressed_body_is_shown_as_it_reads_with_its_size_on_the_wire(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}' * 20)

    def change(flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.headers["content-encoding"] = "gzip"
        flow.response.raw_content = packed

    response = _har(_one(tmp_path / "a.flow", change), tmp_path)["log"]["entries"][0]["response"]
    assert response["bodySize"] == len(packed)
    assert response["content"]["text"].startswith('{"jsonrpc"')
    assert response["content"]["size"] == response["bodySize"] + response["content"]["compression"]


def test_bytes_that_are_no_text_are_base64(tmp_path: Path) -> None:
    def change(flow: HTTPFlow) -> None:
        assert flow.response is not None
        flow.response.raw_content = b"\xff\xfe\x00"

    content = _har(_one(tmp_path / "a.flow", change), tmp_path)["log"]["entries"][0]["response"]["content"]
    assert (content["encoding"], base64.b64decode(content["text"])) == ("base64", b"\xff\xfe\x00")


def test_what_was_not_stored_and_what_never_came_is_said(tmp_path: Path) -> None:
    def lost(flow: HTTPFlow) -> None:
        flow.request.raw_content = None

    def silent(flow: HTTPFlow) -> None:
        flow.response = None

    one = _har(_one(tmp_path / "a.flow", lost), tmp_path)["log"]["entries"][0]
    assert one["request"]["comment"] == "the body was not stored" and one["request"]["bodySize"] == -1
    other = _har(_one(tmp_path / "b.flow", silent), tmp_path)["log"]["entries"][0]
    assert other["response"]["status"] == 0 and other["response"]["_error"] == "no response was recorded"


@pytest.mark.browser
def test_chromium_plays_the_archive(tmp_path: Path) -> None:
    """A browser that is given the archive answers from it, with nothing behind it but a page to ask from."""
    target = tmp_path / "out.har"
    source = RECORDINGS / "modern-http.flow"
    assert main(["export", str(source), "--format", "har", "--output", str(target)]) == 0
    entries = json.loads(target.read_bytes())["log"]["entries"]
    asked = next(entry for entry in entries if "tools/list" in entry["request"].get("postData", {}).get("text", ""))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(find_chromium()), args=[*FLAGS, "--disable-web-security"])
            page = browser.new_page()
            page.route_from_har(str(target), url="**/mcp", not_found="abort")
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/")
            got = page.evaluate(
                "([url, body]) => fetch(url, {method: 'POST', body}).then(r => r.text())",
                [asked["request"]["url"], asked["request"]["postData"]["text"]],
            )
            browser.close()
    finally:
        server.shutdown()
        server.server_close()
    assert json.loads(got) == json.loads(asked["response"]["content"]["text"])
