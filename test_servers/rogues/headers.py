"""Faults in judging the mirrored headers of a modern request: accepting what differs, refusing what agrees."""

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value
from starlette.types import ASGIApp, Receive, Scope, Send

from test_servers.asgi import error_body, header, send_json
from test_servers.eras import envelope_version
from test_servers.misbehaviours import Fault, fault
from test_servers.rogues.exchange import Asked, asked_of, changed_headers

if TYPE_CHECKING:
    from test_servers.compose import ComposedServer


@fault("careless")
class Careless(Fault):
    """Reads the body alone: whatever the mirrored headers say, the request is served as its body has it."""

    def __init__(self) -> None:
        self.server: Any = None

    def on_server(self, server: "ComposedServer") -> None:
        self.server = server

    def on_app(self, app: ASGIApp) -> ASGIApp:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            asked, receive = await asked_of(scope, receive)
            version = envelope_version(asked.message)
            if version is not None:
                right: dict[str, str | None] = {"mcp-protocol-version": version, "mcp-method": asked.method}
                source = NAME_BEARING_METHODS.get(asked.method)
                right |= {"mcp-name": encode_header_value(str(asked.params.get(source))) if source else None}
                right |= self._mirrored(asked)
                kept = [line for line in scope["headers"] if not line[0].startswith(b"mcp-param-")]
                scope = {**scope, "headers": changed_headers(kept, right)}
            await app(scope, receive, send)

        return serve

    def _mirrored(self, asked: Asked) -> dict[str, str | None]:
        item = self.server.world.tools.get(asked.name)
        if item is None:
            return {}
        arguments = asked.params.get("arguments") or {}
        declared = item.definition.input_schema.get("properties", {})
        return {
            f"mcp-param-{part['x-mcp-header']}": encode_header_value(str(arguments[key]))
            for key, part in declared.items()
            if "x-mcp-header" in part and key in arguments
        }


@fault("undecoded")
class Undecoded(Fault):
    """Compares mirrored headers as they stand, so that every sentinel is a mismatch."""

    def on_app(self, app: ASGIApp) -> ASGIApp:
        async def compare(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            asked, receive = await asked_of(scope, receive)
            for line in scope["headers"]:
                name = line[0].decode("latin-1")
                value = header(scope, name) or ""
                if name.startswith(("mcp-name", "mcp-param-")) and value.startswith("=?base64?"):
                    text = f"The {name} header says {value}, the body says something else"
                    await send_json(send, 400, error_body(asked.message.get("id"), types.HEADER_MISMATCH, text))
                    return
            await app(scope, receive, send)

        return compare
