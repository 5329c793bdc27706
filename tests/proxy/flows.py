"""MCP flows as mitmproxy has them, small, for tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mitmproxy import http
from mitmproxy.connection import ConnectionState
from mitmproxy.flow import Error
from mitmproxy.test import taddons, tflow

from mcp_wiretap.proxy.wiretap import Wiretap

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SSE = "text/event-stream"


def request(
    method: str = "tools/call", params: dict[str, Any] | None = None, *, id: Any = 1, headers: dict[str, str] | None = None
) -> http.Request:
    """A modern request with right envelope and headers."""
    params = {"name": "echo", "arguments": {}} if params is None else params
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}
    fields = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
        **(headers or {}),
    }
    made = http.Request.make("POST", "http://mcp.example:8000/mcp", json.dumps(body).encode(), fields)
    made.timestamp_start, made.timestamp_end = 1000.0, 1000.1
    return made


def result(members: dict[str, Any] | None = None, *, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", **(members or {"content": []})}}).encode()


def error(code: int, *, id: Any = 1, message: str = "no", data: Any = None) -> bytes:
    said = {"code": code, "message": message} | ({"data": data} if data is not None else {})
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": said}).encode()


def response(body: bytes | None, content_type: str = "application/json", *, status: int = 200) -> http.Response:
    made = http.Response.make(status, body or b"", {"content-type": content_type})
    if body is None:
        made.raw_content = None
        made.headers.pop("content-length", None)
    made.timestamp_start, made.timestamp_end = 1000.2, 1000.3
    return made


def live(made: http.Request | None = None) -> http.HTTPFlow:
    """A flow on its way, with open connections and no response yet."""
    flow = tflow.tflow(req=made or request())
    flow.live = True
    flow.client_conn.state = flow.server_conn.state = ConnectionState.OPEN
    return flow


def finished(made: http.Request | None = None, answer: http.Response | None = None) -> http.HTTPFlow:
    """A flow as it is read from a file."""
    flow = tflow.tflow(req=made or request(), resp=answer or response(result()))
    flow.live = False
    return flow


def event(message: bytes) -> bytes:
    return b"data: " + message + b"\n\n"


def broken(flow: http.HTTPFlow, text: str = "Client disconnected.", at: float = 1000.4) -> http.HTTPFlow:
    flow.error = Error(text, at)
    return flow


@contextmanager
def proxy(**options: Any) -> Iterator[Wiretap]:
    """The addon inside a mitmproxy that does nothing else."""
    addon = Wiretap()
    with taddons.context(addon) as context:
        context.configure(addon, **options)
        addon.context = context  # type: ignore[attr-defined]
        yield addon
