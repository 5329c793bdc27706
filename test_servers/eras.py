"""Which era a request is served in, decided before the SDK sees it. Knows headers and envelopes, no tool.

The SDK routes by the version header alone. Three things follow that a right server has to do itself: refuse a modern
envelope under a missing or legacy header with -32020, be modern only, be legacy only.
"""

from collections.abc import Mapping
from typing import Any, Literal

import mcp_types as types
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

from test_servers.asgi import decoded, error_body, header, peek_body, send_bytes, send_json

Eras = Literal["modern-only", "modern+stateless", "dual", "legacy-only"]
NOT_ALLOWED = error_body(None, -32000, "This endpoint takes POST only")


class EraGate:
    """Let through what the server behind serves; answer the rest."""

    def __init__(self, app: ASGIApp, path: str, eras: Eras) -> None:
        self.app = app
        self.path = path
        self.eras = eras

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self.path:
            await self.app(scope, receive, send)
        elif scope["method"] != "POST":
            await self._other_method(scope, receive, send)
        else:
            await self._post(scope, receive, send)

    async def _other_method(self, scope: Scope, receive: Receive, send: Send) -> None:
        modern = header(scope, MCP_PROTOCOL_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS
        if self.eras in ("modern-only", "modern+stateless") or (self.eras == "dual" and modern):
            await send_json(send, 405, NOT_ALLOWED, {"allow": "POST"})
        else:
            await self.app(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = header(scope, MCP_PROTOCOL_VERSION_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            if self.eras == "legacy-only":
                body, _ = await peek_body(receive)
                await _refuse(send, decoded(body), types.INVALID_REQUEST, _unknown_to_legacy(version))
            else:
                await self.app(scope, receive, send)
            return
        # No header, or a legacy one.
        if self.eras == "legacy-only":
            await self.app(scope, receive, send)
            return
        body, receive = await peek_body(receive)
        message = decoded(body)
        claimed = envelope_version(message)
        if claimed is not None and claimed not in HANDSHAKE_PROTOCOL_VERSIONS:
            said = "is missing" if version is None else f"says {version}"
            text = f"The MCP-Protocol-Version header {said}, the envelope says {claimed}"
            await _refuse(send, message, types.HEADER_MISMATCH, text)
        elif self.eras == "modern-only":
            await self._refuse_legacy(send, message, version)
        else:
            await self.app(scope, receive, send)

    async def _refuse_legacy(self, send: Send, message: Any, version: str | None) -> None:
        supported = list(MODERN_PROTOCOL_VERSIONS)
        if isinstance(message, Mapping) and "method" in message and "id" not in message:
            # Header rules are undefined for notifications, and there is nothing in one to act on.
            await send_bytes(send, 202, b"", {})
            return
        asked = version
        if isinstance(message, Mapping) and message.get("method") == "initialize":
            params = message.get("params")
            asked = params.get("protocolVersion") if isinstance(params, Mapping) else None
        if isinstance(asked, str):
            text = f"This server speaks {', '.join(supported)}, without a handshake"
            data = {"supported": supported, "requested": asked}
            await _refuse(send, message, types.UNSUPPORTED_PROTOCOL_VERSION, text, data)
        else:
            text = f"The MCP-Protocol-Version header is missing; this server speaks {', '.join(supported)}"
            await _refuse(send, message, types.HEADER_MISMATCH, text)


def envelope_version(message: Any) -> str | None:
    """The protocol version that a request's `_meta` claims."""
    try:
        version = message["params"]["_meta"][types.PROTOCOL_VERSION_META_KEY]
    except (KeyError, TypeError, IndexError):
        return None
    return version if isinstance(version, str) else None


def _unknown_to_legacy(version: str) -> str:
    return f"Protocol version {version} is not supported; this server speaks {', '.join(HANDSHAKE_PROTOCOL_VERSIONS)}"


async def _refuse(send: Send, message: Any, code: int, text: str, data: Any = None) -> None:
    request_id = message.get("id") if isinstance(message, Mapping) else None
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        request_id = None
    await send_json(send, 400, error_body(request_id, code, text, data))
