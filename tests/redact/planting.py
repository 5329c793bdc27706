"""Secrets planted in traffic, in every encoding that a body, a header or a URL may have; and the search for them afterwards.

The search knows what was planted and how such copies are written; it shares no code with the redaction.
"""

import base64
import contextlib
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import brotli
from mitmproxy.flow import Error
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from mcp_wiretap.wire.coding import decode_body

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def copies(secret: str, chance: random.Random) -> list[str]:
    """The secret as texts may carry it, none of them at a known place."""
    raw = secret.encode()
    before, after = chance.randbytes(chance.randrange(7)), chance.randbytes(chance.randrange(7))
    inside = before + raw + after
    return [
        secret,
        f"some words, {secret}; more",
        json.dumps({"inner": secret}),
        json.dumps({"inner": json.dumps({"inner": secret})}, ensure_ascii=False),
        "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in secret),
        quote(secret),
        quote(secret, safe=""),
        "".join(f"%{byte:02x}" for byte in raw),
        "https://host.example/cb?x=" + quote(secret, safe="") + "&y=1",
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        base64.b64encode(inside).decode(),
        base64.urlsafe_b64encode(inside).decode(),
        "prefix/" + base64.b64encode(inside).decode(),
        base64.b64encode(base64.b64encode(inside)).decode(),
        base64.b64encode(json.dumps({"inner": secret}).encode()).decode(),
        quote(base64.b64encode(inside).decode(), safe=""),
        secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"),
    ]


def record(path: Path, secrets: dict[str, str], seed: int) -> None:
    """Four flows: the secrets in their places in the first, copies of them everywhere in the others."""
    chance = random.Random(seed)
    with path.open("wb") as file:
        add = FlowWriter(file).add
        for flow in (
            _places(secrets),
            _copies(secrets, chance),
            _stream(secrets, chance),
            _token(secrets),
            _foreign(secrets, chance),
        ):
            add(flow)


def _flow(
    headers: dict[str, str], body: Any, answer: bytes, answer_headers: dict[str, str], at: float, *, path: str = "/mcp"
) -> HTTPFlow:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    flow = tflow.tflow()
    fields = [(k.encode(), v.encode("utf-8")) for k, v in {"Content-Length": str(len(content)), **headers}.items()]
    flow.request = Request(
        "server.example", 443, b"POST", b"https", b"", path.encode(), b"HTTP/1.1", Headers(fields), content, None, at, at + 0.01
    )
    back = [(k.encode(), v.encode("utf-8")) for k, v in {**answer_headers, "Content-Length": str(len(answer))}.items()]
    flow.response = Response(b"HTTP/1.1", 200, b"OK", Headers(back), answer, None, at + 0.02, at + 0.03)
    return flow


def _places(secrets: dict[str, str]) -> HTTPFlow:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "_meta": META,
            "name": "login",
            "arguments": {"password": secrets["password"], "city": "Rome"},
            "requestState": secrets["state"],
        },
    }
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], "city": "Rome"}}
    return _flow(
        {
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "login",
            "Authorization": f"Bearer {secrets['token']}",
            "Mcp-Session-Id": secrets["session"],
            "Cookie": f"theme=dark; sid={secrets['cookie']}",
            "X-Api-Key": secrets["key"],
        },
        body,
        gzip.compress(json.dumps(answer).encode()),
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        1000.0,
    )


def _copies(secrets: dict[str, str], chance: random.Random) -> HTTPFlow:
    texts = [copy for secret in secrets.values() for copy in copies(secret, chance)]
    chance.shuffle(texts)
    body = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"_meta": META, "name": "echo", "arguments": {"texts": texts}},
    }
    content = [{"type": "text", "text": text} for text in texts]
    answer = json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"content": content}}, ensure_ascii=chance.random() < 0.5).encode()
    coding, packed = chance.choice([("gzip", gzip.compress(answer)), ("br", brotli.compress(answer)), ("identity", answer)])
    some = secrets["state"].encode()
    flow = _flow(
        {
            "Content-Type": "application/json",
            "Mcp-Name": "=?base64?" + base64.b64encode(b"a " + some).decode() + "?=",
            "Referer": "https://a.example/?x=" + quote(secrets["password"]),
        },
        body,
        packed,
        {"Content-Type": "application/json", "Content-Encoding": coding},
        1001.0,
        path="/mcp?q=" + quote(secrets["token"]) + "&code=" + quote(secrets["code"], safe=""),
    )
    flow.comment = f"look at {secrets['token']}"
    flow.metadata["note"] = {"why": [f"the state {secrets['state']}"]}
    return flow


def _stream(secrets: dict[str, str], chance: random.Random) -> HTTPFlow:
    events = b""
    for secret in secrets.values():
        for copy in copies(secret, chance)[:10]:
            message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": copy}}
            events += b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"
    flow = _flow(
        {"Content-Type": "application/json"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"_meta": META, "name": "x"}},
        events,
        {"Content-Type": "text/event-stream"},
        1002.0,
    )
    flow.error = Error(f"connection lost after {secrets['session']}", 1003.0)
    return flow


def _token(secrets: dict[str, str]) -> HTTPFlow:
    form = f"grant_type=authorization_code&code={quote(secrets['code'], safe='')}&client_secret={quote(secrets['key'], safe='')}"
    answer = json.dumps({"access_token": secrets["token"], "token_type": "Bearer"}).encode()
    return _flow(
        {"Content-Type": "application/x-www-form-urlencoded"},
        form.encode(),
        answer,
        {"Content-Type": "application/json"},
        1003.0,
        path="/token",
    )


def _foreign(secrets: dict[str, str], chance: random.Random) -> HTTPFlow:
    """No MCP at all."""
    text = "\n".join(copies(secrets["session"], chance)).encode()
    return _flow(
        {"Content-Type": "text/plain"}, text, text, {"Content-Type": "text/html"}, 1004.0, path="/" + quote(secrets["state"])
    )


def traces(secret: str) -> Iterator[bytes]:
    """What of a secret may not be left, however it was written."""
    raw = secret.encode()
    yield raw
    yield json.dumps(secret)[1:-1].encode()
    yield json.dumps(json.dumps(secret))[3:-3].encode()
    yield quote(secret, safe="").encode()
    yield quote(secret).encode()
    yield "".join(f"%{byte:02x}" for byte in raw).encode()
    for skip in range(3):  # the part of Base64 that is the same whatever stands around it
        coded = base64.b64encode(b"\0" * skip + raw)
        core = coded[-(-8 * skip // 6) : (skip + len(raw)) * 8 // 6]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))
        for inner in range(3):
            coded_twice = base64.b64encode(b"\0" * inner + core)
            yield coded_twice[-(-8 * inner // 6) : (inner + len(core)) * 8 // 6]


def strings(value: Any) -> Iterator[str]:
    """All strings of a JSON value, also of JSON in strings."""
    if isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            with contextlib.suppress(ValueError):
                yield from strings(json.loads(value))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def left(data: bytes, secrets: dict[str, str]) -> list[str]:
    """The secrets of which something is left in the bytes."""
    found = []
    lower = data.lower()
    for name, secret in secrets.items():
        if any((trace in data) or (b"%" in trace and trace.lower() in lower) for trace in traces(secret)):
            found.append(name)
    return found


def bodies(flow: HTTPFlow) -> Iterator[bytes]:
    """The bodies of a flow without their content coding."""
    for message in (flow.request, flow.response):
        if message is not None and message.raw_content:
            yield decode_body(message.raw_content, message.headers.get("content-encoding"), 1 << 26)[0]
