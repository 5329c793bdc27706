"""Small ASGI tools: read a body and hand it on, answer with JSON, watch a response. Knows no MCP."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 4 * 1024 * 1024
"""Above this a body is passed on unread; the SDK refuses it with 413."""


async def peek_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """The request body, and a `receive` that gives it again; None when it is over the limit."""
    seen: list[Message] = []
    body, more = b"", True
    while more and len(body) <= BODY_LIMIT:
        message = await receive()
        seen.append(message)
        body += message.get("body", b"")
        more = message.get("more_body", False)

    async def again() -> Message:
        return seen.pop(0) if seen else await receive()

    return (None if more else body), again


def decoded(body: bytes | None) -> Any:
    """The JSON of a body, or None."""
    try:
        return json.loads(body or b"")
    except (ValueError, RecursionError):
        return None


def header(scope: Scope, name: str) -> str | None:
    """The first value of a request header."""
    wanted = name.lower().encode("ascii")
    return next((value.decode("latin-1").strip(" \t") for key, value in scope["headers"] if key == wanted), None)


async def send_json(send: Send, status: int, payload: Any, headers: Mapping[str, str] | None = None) -> None:
    """A whole response with a JSON body."""
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    await send_bytes(send, status, body, {"content-type": "application/json", **(headers or {})})


async def send_bytes(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    """A whole response."""
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def error_body(request_id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


class StatusOverride:
    """Answer with the HTTP status that a handler left in the scope under `key`."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self.app = app
        self.key = key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and self.key in scope:
                message = {**message, "status": scope[self.key]}
            await send(message)

        await self.app(scope, receive, watched)
