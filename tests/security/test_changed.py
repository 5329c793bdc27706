"""What was changed at the proxy stands in the file twice: no secret is left in either version, and a note that is not as we write
it misleads nobody."""

import io
import json

import pytest
from mitmproxy.io import FlowReader, FlowWriter

from mcp_wiretap.export import har
from mcp_wiretap.proxy import sharing
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector
from tests.proxy import flows

SECRET = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e"


def written(path, *made):
    with path.open("wb") as file:
        writer = FlowWriter(file)
        for flow in made:
            writer.add(flow)
    return path


def noted(note, flow=None):
    flow = flow or flows.finished()
    flow.metadata["mcp.changed"] = note
    return flow


def received(**members):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"password": SECRET}}}
    headers = [[b"Authorization", f"Bearer {SECRET}".encode()], [b"Content-Type", b"application/json"]]
    return {"headers": headers, "body": json.dumps(body).encode(), "method": b"POST", "path": b"/mcp", "at": 1000.15, **members}


def test_the_other_version_is_redacted_too(tmp_path):
    given = {"status": 200, "headers": [[b"Set-Cookie", f"session={SECRET}".encode()]], "body": b"{}"}
    path = written(tmp_path / "a.flow", noted({"by": "user", "request": received(), "response": given}))
    out = io.BytesIO()
    sharing.copy(path, out, Redactor())
    assert SECRET.encode() not in out.getvalue()
    out.seek(0)
    (flow,) = FlowReader(out).stream()
    entry = har.entry(flow.get_state(), None)
    assert SECRET not in json.dumps(entry)
    note = flow.metadata["mcp.changed"]
    assert note["by"] == "user"
    assert note["request"]["headers"][1] == [b"Content-Type", b"application/json"]
    assert json.loads(note["request"]["body"])["params"]["name"] == "echo"


HOSTILE = [
    None,
    "user",
    {"by": 7},
    {"by": "user", "request": "body", "response": []},
    {"by": "user", "request": {"headers": "none", "body": b""}},
    {"by": "user", "request": {"headers": [[b"a"]], "body": b""}},
    {"by": "user", "request": {"headers": [["a", "b"]], "body": b""}},
    {"by": "user", "request": {"headers": [], "body": 7, "host": 7, "port": "x", "at": "now"}},
    {"by": "user", "response": {"headers": [], "body": None, "status": "x"}},
    {"by": "user", "answered": 1, "killed": "yes", "response": {"headers": [], "body": b"\xff", "status": -1}},
    {"by": "\u202e\x1b[31m", "request": {"headers": [], "body": b"{"}},
]


@pytest.mark.parametrize("note", HOSTILE, ids=repr)
def test_a_note_that_is_not_as_we_write_it_misleads_nobody(tmp_path, note):
    path = written(tmp_path / "a.flow", noted(note))
    recording = Recording(path)
    inspector = Inspector(RuleBook.of())
    found = [exchange for event in recording.events() for exchange in inspector.feed(event)]
    assert recording.damage is None
    assert found and not any(exchange.faults for exchange in found)
    for exchange in found:
        assert exchange.change is None or exchange.change.by in ("user", "unknown")
    sharing.copy(path, io.BytesIO(), Redactor())
