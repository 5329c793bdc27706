"""Requests written by hand, so that they can be wrong: modern envelopes and headers with any part replaced.

Without overrides a request is right, mirrored headers included.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
Headers = list[tuple[str, str]]


@dataclass
class Reply:
    """A response, with the JSON-RPC message that it carried."""

    status: int
    headers: Any
    body: bytes
    message: dict[str, Any] = field(default_factory=dict)

    @property
    def code(self) -> int | None:
        error = self.message.get("error")
        return error.get("code") if isinstance(error, dict) else None

    @property
    def data(self) -> Any:
        return self.message.get("error", {}).get("data")


@dataclass
class RawClient:
    """One caller of one endpoint."""

    url: str
    version: str = MODERN
    capabilities: dict[str, Any] = field(default_factory=dict)
    next_id: int = 1
    transport: httpx2.AsyncBaseTransport | None = None
    """None: the network; tests give an application."""

    def envelope(self, **replaced: Any) -> dict[str, Any]:
        """The `_meta` of a request; a value of None leaves the key out."""
        meta = {
            f"{PREFIX}protocolVersion": self.version,
            f"{PREFIX}clientInfo": {"name": "raw-client", "version": "1.0.0"},
            f"{PREFIX}clientCapabilities": self.capabilities,
        } | {f"{PREFIX}{key}": value for key, value in replaced.items()}
        return {key: value for key, value in meta.items() if value is not None}

    def body(self, method: str, params: dict[str, Any] | None = None, **envelope: Any) -> dict[str, Any]:
        """A request with the next id; what `params` has in its own `_meta` is kept."""
        request_id, self.next_id = self.next_id, self.next_id + 1
        given = params or {}
        full = {**given, "_meta": {**self.envelope(**envelope), **given.get("_meta", {})}}
        return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": full}

    def headers(self, body: dict[str, Any], param_headers: dict[str, Any] | None = None) -> dict[str, str]:
        """The headers that go with `body`; `param_headers` maps the token of Mcp-Param-* to the argument's value."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": self.version,
            "mcp-method": body["method"],
        }
        source = NAME_BEARING_METHODS.get(body["method"]) or ("taskId" if body["method"].startswith("tasks/") else None)
        name = body["params"].get(source) if source else None
        if isinstance(name, str):
            headers["mcp-name"] = encode_header_value(name)
        for token, value in (param_headers or {}).items():
            text = value if isinstance(value, str) else json.dumps(value)
            headers[f"mcp-param-{token}"] = encode_header_value(text)
        return headers

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        mirrored: dict[str, Any] | None = None,
        replace: dict[str, str | None] | None = None,
        extra: Headers | None = None,
        **envelope: Any,
    ) -> Reply:
        """Send a request whose headers are right but for `replace` (None removes one) and `extra` (added lines)."""
        body = self.body(method, params, **envelope)
        headers = self.headers(body, mirrored)
        for name, value in (replace or {}).items():
            headers.pop(name.lower(), None)
            if value is not None:
                headers[name.lower()] = value
        return await self.send(json.dumps(body, ensure_ascii=False).encode(), [*headers.items(), *(extra or [])])

    async def send(self, body: bytes, headers: Headers, *, http_method: str = "POST") -> Reply:
        """Send any bytes with any header lines."""
        lines = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in headers]
        async with httpx2.AsyncClient(timeout=20, transport=self.transport) as client:
            response = await client.request(http_method, self.url, content=body, headers=lines)
            return Reply(response.status_code, response.headers, response.content, last_message(response))


def last_message(response: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC response in a JSON body or, of an SSE body, in its last event; empty if there is none."""
    text = response.text
    if "text/event-stream" in response.headers.get("content-type", ""):
        data = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
        text = data[-1] if data else ""
    try:
        message = json.loads(text)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
