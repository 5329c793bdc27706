"""The MCP messages that the benchmark sends, answers and records: what real SDKs put on the wire, of the usual size."""

import json
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
CLIENT_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench-client", "title": "Bench client", "version": "1.0"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
}
SERVER_META = {"io.modelcontextprotocol/serverInfo": {"name": "bench-server", "title": "Bench", "version": "1.0"}}
TEXT = {"type": "string", "title": "Text"}
REGION = {"type": "string", "title": "Region", "x-mcp-header": "Region"}
OUTPUT = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
Headers = list[tuple[str, str]]


def tool(name: str, **properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": sorted(properties), "title": f"{name}Arguments"}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema, "outputSchema": OUTPUT}


TOOLS = [
    tool("lookup", text=TEXT, region=REGION),
    tool("report", text=TEXT),
    tool("deploy", text=TEXT),
    *(tool(f"spare_{number}", text=TEXT) for number in range(9)),
]


def body(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()


def request(number: int, method: str, **params: Any) -> bytes:
    """A modern request: every one carries the envelope in `_meta`."""
    meta = CLIENT_META | params.pop("meta", {})
    return body({"id": number, "method": method, "params": {**params, "_meta": meta}})


def result(number: int, **fields: Any) -> bytes:
    return body({"id": number, "result": {"resultType": "complete", **fields, "_meta": SERVER_META}})


def call_result(number: int, text: str) -> bytes:
    content = [{"type": "text", "text": text}]
    return result(number, content=content, isError=False, structuredContent={"result": text})


def tools_result(number: int) -> bytes:
    return result(number, tools=TOOLS, ttlMs=60_000, cacheScope="private")


def event(data: bytes) -> bytes:
    return b"event: message\r\ndata: " + data + b"\r\n\r\n"


def progress(token: int, step: int, message: str = "") -> bytes:
    params = {"progressToken": token, "progress": step, "total": 100, "message": message or f"step {step}"}
    return body({"method": "notifications/progress", "params": params})


def headers(host: str, *mirrored: tuple[str, str]) -> Headers:
    """The request headers of the Python SDK, in its order, without the length."""
    return [
        ("Host", host),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Connection", "keep-alive"),
        ("User-Agent", "python-httpx2/2.16.2"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        *mirrored,
    ]


def modern_headers(host: str, method: str, name: str = "", **parameters: str) -> Headers:
    mirrored = [("mcp-protocol-version", MODERN), ("mcp-method", method)]
    if name:
        mirrored.append(("mcp-name", name))
    mirrored += [(f"Mcp-Param-{key.capitalize()}", value) for key, value in parameters.items()]
    return headers(host, *mirrored)


def post(fields: Headers, content: bytes) -> bytes:
    """The bytes of a POST to /mcp over HTTP/1.1."""
    lines = [f"{name}: {value}" for name, value in (*fields, ("Content-Length", str(len(content))))]
    return ("POST /mcp HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode() + content
