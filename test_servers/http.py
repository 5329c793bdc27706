"""A composed server made into an ASGI application. Knows every layer around the SDK and their order."""

from dataclasses import dataclass

from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from test_servers.asgi import StatusOverride
from test_servers.compose import ComposedServer
from test_servers.eras import EraGate, Eras
from test_servers.events import MemoryEvents
from test_servers.injector import Injector
from test_servers.world import STATUS_KEY

RETRY_MS = 200
"""After how long a legacy client should come back to a stream that was closed."""
LOOPBACK = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
)


@dataclass(frozen=True, slots=True)
class HttpServer:
    """The application and the path of its MCP endpoint."""

    app: ASGIApp
    path: str


def build(server: ComposedServer, port: int) -> HttpServer:
    """The application for `server`; `port` is where it will be reached, which OAuth metadata has to name."""
    transport = server.config.transport
    path = transport.path or ("/sse" if transport.type == "sse" else "/mcp")
    app = _sse_app(server, path) if transport.type == "sse" else _streamable_app(server, path, port)
    for fault in server.faults:
        app = fault.on_app(app)
    return HttpServer(app, path)


def _streamable_app(server: ComposedServer, path: str, port: int) -> ASGIApp:
    transport, modern = server.config.transport, server.config.transport.modern_options
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=path,
        json_response=transport.json_response,
        event_store=MemoryEvents() if transport.resumable else None,
        retry_interval=RETRY_MS if transport.resumable else None,
        stateless_http=modern is not None and modern.legacy != "stateful",
        transport_security=LOOPBACK,
    )
    app = StatusOverride(app, STATUS_KEY)
    app = EraGate(app, path, _eras(server))
    if modern is not None and modern.inject_spec_errors:
        app = Injector(app, path)
    if server.config.oauth is not None:
        # Imported here: only this needs the JWT and cryptography libraries, which take their time to load.
        from test_servers.oauth_resource import protect

        app = protect(app, server, f"http://127.0.0.1:{port}", path)
    return app


def _eras(server: ComposedServer) -> Eras:
    modern = server.config.transport.modern_options
    if modern is None:
        return "legacy-only"
    by_legacy: dict[str, Eras] = {"reject": "modern-only", "stateless": "modern+stateless", "stateful": "dual"}
    return by_legacy[modern.legacy]


def _sse_app(server: ComposedServer, path: str) -> ASGIApp:
    transport = SseServerTransport("/messages/", security_settings=LOOPBACK)

    class Stream:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async with transport.connect_sse(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())

    async def post_only(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(status_code=405, headers={"allow": "GET"})(scope, receive, send)

    return Starlette(
        routes=[
            Route(path, endpoint=Stream(), methods=["GET"]),
            Route(path, endpoint=post_only, methods=["POST", "DELETE"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
    )
