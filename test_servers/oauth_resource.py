"""The resource server's side of OAuth: its metadata document, its challenges, and the scopes that a tool asks for."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from test_servers.asgi import decoded, header, peek_body, send_json
from test_servers.compose import ComposedServer, items_of
from test_servers.config import OAuth
from test_servers.oauth_server import Provider, routes
from test_servers.oauth_tokens import read_token

WELL_KNOWN = "/.well-known/oauth-protected-resource"
Verify = Callable[[str], Awaitable[AccessToken | None]]


def protect(app: ASGIApp, server: ComposedServer, origin: str, path: str) -> ASGIApp:
    """`app` behind OAuth; with mode `combined` the authorization server stands beside it, at the same origin."""
    settings = server.config.oauth
    if settings is None or not settings.enabled:
        return app
    resource = f"{origin}{path}"
    beside: list[Route] = []
    if settings.mode == "combined":
        provider = Provider(settings, origin, resource)
        verify: Verify = provider.load_access_token
        issuer = origin
        beside = routes(provider)
    else:
        issuer = settings.issuer or ""
        verify = _by_issuer(issuer, resource)

    async def metadata(request: Request) -> Response:
        return JSONResponse(
            {
                "resource": resource,
                "authorization_servers": [issuer],
                "scopes_supported": settings.scopes_supported,
                "bearer_methods_supported": ["header"],
            }
        )

    beside.append(Route(f"{WELL_KNOWN}{path}", metadata))
    guarded = Gate(app, path, settings, _tool_scopes(server), verify, f"{origin}{WELL_KNOWN}{path}")
    return Beside(guarded, path, Starlette(routes=beside))


class Beside:
    """The endpoint at its path, everything else (and nothing of the lifespan) at the other application."""

    def __init__(self, app: ASGIApp, path: str, other: ASGIApp) -> None:
        self.app, self.path, self.other = app, path, other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = scope["type"] != "http" or scope["path"] == self.path
        await (self.app if own else self.other)(scope, receive, send)


class Gate:
    """Lets a request through with a token that is good enough for it, and otherwise says what is missing."""

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        settings: OAuth,
        tool_scopes: dict[str, list[str]],
        verify: Verify,
        metadata_url: str,
    ) -> None:
        self.app = AuthContextMiddleware(app)
        self.bare = app
        self.path = path
        self.settings = settings
        self.tool_scopes = tool_scopes
        self.verify = verify
        self.metadata_url = metadata_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.bare(scope, receive, send)
            return
        needed = list(self.settings.required_scopes) if self.settings.require_auth else []
        if scope["method"] == "POST":
            body, receive = await peek_body(receive)
            needed += [s for s in self.tool_scopes.get(_called_tool(decoded(body)), []) if s not in needed]
        given = header(scope, "authorization")
        if given is None and not needed and not self.settings.require_auth:
            await self.app(scope, receive, send)
            return
        token = await self.verify(given[7:].strip()) if given is not None and given[:7].lower() == "bearer " else None
        if token is None:
            await self._challenge(send, 401, needed, None if given is None else "invalid_token")
        elif not set(needed) <= set(token.scopes):
            await self._challenge(send, 403, needed, "insufficient_scope")
        else:
            scope["user"], scope["auth"] = AuthenticatedUser(token), AuthCredentials(token.scopes)
            await self.app(scope, receive, send)

    async def _challenge(self, send: Send, status: int, scopes: list[str], error: str | None) -> None:
        parts = {"error": error, "scope": " ".join(scopes) or None, "resource_metadata": self.metadata_url}
        challenge = ", ".join(f'{name}="{value}"' for name, value in parts.items() if value is not None)
        said = {
            None: "A token is needed here",
            "invalid_token": "The token is not valid here",
            "insufficient_scope": f"The token has not every scope of: {' '.join(scopes)}",
        }[error]
        body = {"error": error or "unauthorized", "error_description": said}
        await send_json(send, status, body, {"www-authenticate": f"Bearer {challenge}"})


def _called_tool(message: Any) -> str:
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return ""
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else ""


def _tool_scopes(server: ComposedServer) -> dict[str, list[str]]:
    return {item.key: reference.required_scopes for reference in server.config.tools for item in items_of("tool", reference)}


def _by_issuer(issuer: str, resource: str) -> Verify:
    """Check tokens of another process's authorization server, with the keys that its metadata point to."""
    keys: dict[str, Any] = {}

    async def verify(token: str) -> AccessToken | None:
        read = read_token(token, keys, issuer, resource)
        if read is None:
            keys.update(await _keys_of(issuer))
            read = read_token(token, keys, issuer, resource)
        return read

    return verify


async def _keys_of(issuer: str) -> dict[str, Any]:
    try:
        async with httpx2.AsyncClient(timeout=5, trust_env=False) as client:
            metadata = (await client.get(f"{issuer.rstrip('/')}/.well-known/oauth-authorization-server")).json()
            found = (await client.get(metadata["jwks_uri"])).json()
    except (httpx2.HTTPError, ValueError, KeyError):
        return {}
    return found if isinstance(found, dict) else {}
