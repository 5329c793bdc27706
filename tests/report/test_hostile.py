"""Whatever a server says, each report can be read by those who read it."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from mcp_wiretap.report import contract, html, jsonl, junit, sarif, text
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.spool import MemorySpool
from mcp_wiretap.trace.events import Event, ExchangeEnded, RequestSeen, ResponseStarted
from mcp_wiretap.wire.headers import Fields
from tests.report.auditing import RULES, trace
from tests.report.contract_model import Contract

# Controls, bidirectional controls, surrogates, markup of every reader, and anything else.
hostile = st.text(
    st.one_of(st.characters(), st.characters(categories=["Cc", "Cf", "Cs", "Zl"]), st.sampled_from("<>&\"'[]{}]\\/\x1b\u202e")),
    max_size=60,
)


def call(name: str, said: str) -> list[Event]:
    """A tools/call with hostile words on both sides."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": said},
    }
    request = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "_meta": meta}}
    server = {"io.modelcontextprotocol/serverInfo": {"name": said, "version": name}}
    result = {"resultType": "complete", "content": said, "isError": True, "_meta": server}
    answer = {"jsonrpc": "2.0", "id": name, "result": result}
    json_type = (b"content-type", b"application/json")
    fields = Fields([json_type, (b"mcp-method", said.encode("utf-8", "surrogatepass"))])
    return [
        RequestSeen("f", 2.0, 1.0, "POST", "http", "h.example", 80, "/mcp", fields, json.dumps(request).encode(), "c"),
        ResponseStarted("f", 3.0, 200, Fields([json_type])),
        ExchangeEnded("f", 4.0, json.dumps(answer).encode(), False, "complete"),
    ]


def audit(name: str, said: str) -> Audit:
    spool = MemorySpool()
    made = trace(call(name, said), spool, path=f"{said.encode('utf-8', 'replace').decode()}.flow")
    return Audit.of([(made, spool)], RULES)


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


def page_of(made: Audit) -> str:
    out = io.StringIO()
    html.write(made, out)
    return out.getvalue()


PLAIN = Tags(page_of(audit("a", "b"))).seen


@settings(max_examples=150, deadline=None)
@given(hostile, hostile)
def test_every_format_survives_hostile_words(name: str, said: str) -> None:
    made = audit(name, said)
    assert made.tally.severities["error"] + made.tally.severities["warning"] >= 1
    for write in (contract.write, jsonl.write, sarif.write, junit.write):
        out = io.StringIO()
        write(made, out)
        written = out.getvalue()
        written.encode()
        match write:
            case contract.write:
                Contract.model_validate_json(written)
            case jsonl.write:
                assert all(json.loads(line) for line in written.splitlines())
            case sarif.write:
                json.loads(written)
            case junit.write:
                ElementTree.fromstring(written)


@settings(max_examples=150, deadline=None)
@given(hostile, hostile)
def test_nothing_hostile_reaches_a_terminal_or_a_browser(name: str, said: str) -> None:
    made = audit(name, said)
    for ascii_only in (False, True):
        out = io.StringIO()
        console = Console(file=out, width=100, markup=False, emoji=False, highlight=False, soft_wrap=True)
        text.write(made, console, ascii_only=ascii_only)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", out.getvalue())
        assert not ascii_only or out.getvalue().isascii()
    page = page_of(made)
    page.encode()
    assert Tags(page).seen <= PLAIN | {"dl", "dt", "dd", "br"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
