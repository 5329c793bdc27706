"""The server over Streamable HTTP, as an ASGI application: stateless, answers in JSON, POST only.

The SDK chooses the era by the header alone. A request whose body is of the modern era while its header is missing or legacy is
refused here, as 2026-07-28 basic/transports/streamable-http demands (-32020 HeaderMismatch).
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from mcp_wiretap.wire.revision import HEADER_MISMATCH, PROTOCOL_VERSION, version_kind

MOST_BODY = 1 << 20  # bytes of a request; questions are short

type Scope = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
type App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Endpoint:
    """One MCP endpoint. Call it inside of `running()`. `hosts`: the names that a client may know it by; `:*` for any port."""

    def __init__(self, server: Server[Any], hosts: list[str]) -> None:
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=hosts,
            allowed_origins=[f"http://{host}" for host in hosts],
        )
        self._manager = StreamableHTTPSessionManager(
            app=server, json_response=True, stateless=True, security_settings=security, max_request_body_size=MOST_BODY
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await _answer(send, 405, b"", [(b"allow", b"POST")])
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > MOST_BODY:
                await _answer(send, 413, b"", [])
                return
            if not message.get("more_body", False):
                break
        if (refusal := _mismatch(scope, bytes(body))) is not None:
            await _answer(send, 400, json.dumps(refusal).encode(), [(b"content-type", b"application/json")])
            return
        await self._manager.handle_request(scope, _replayed(bytes(body), receive), send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, given once more; then whatever comes after it."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _mismatch(scope: Scope, body: bytes) -> dict[str, Any] | None:
    """The refusal of a modern envelope under a header that is not modern."""
    named = next((value.decode("latin-1").strip() for name, value in scope["headers"] if name == b"mcp-protocol-version"), None)
    if named is not None and version_kind(named) != "legacy":
        return None
    try:
        message = json.loads(body)
        envelope = message["params"]["_meta"][PROTOCOL_VERSION]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(envelope, str) or version_kind(envelope) == "legacy":
        return None
    said = "is missing" if named is None else f"says {named[:40]}"
    id_ = message.get("id")
    return {
        "jsonrpc": "2.0",
        "id": id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None,
        "error": {
            "code": HEADER_MISMATCH,
            "message": f"Header mismatch: MCP-Protocol-Version {said}, the body says {envelope[:40]}",
        },
    }


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
