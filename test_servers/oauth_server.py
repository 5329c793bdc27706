"""The authorization server of a `combined` config: metadata, registration, authorization, tokens, keys.

Consent is given without asking, so that a test client can come through alone: /authorize answers at once with the code.
PKCE, exact redirect URIs, `iss` in the redirect (RFC 9207), tokens bound to the resource asked for, refresh tokens that
rotate. Clients register (RFC 7591) or name the https URL of their metadata document.
"""

import secrets
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import httpx2
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from test_servers.oauth_tokens import Signer, read_token

if TYPE_CHECKING:
    from test_servers.config import OAuth

CODE_SECONDS = 60
REFRESH_SECONDS = 24 * 3600
SUBJECT = "demo-user"
DOCUMENT_BYTES = 64 * 1024
METHODS = ["none", "client_secret_post", "client_secret_basic"]


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Clients, codes and refresh tokens, in memory."""

    def __init__(self, settings: "OAuth", issuer: str, resource: str) -> None:
        self.settings = settings
        self.issuer = issuer
        self.resource = resource
        self.signer = Signer(issuer)
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refresh_tokens: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        client = self.clients.get(client_id)
        if client is None and self.settings.client_id_metadata_documents and client_id.startswith("https://"):
            client = await self._client_by_document(client_id)
        if client is None:
            return None
        # What a client registered for does not bind it: a step-up asks for more later.
        return client.model_copy(update={"scope": " ".join(self.settings.scopes_supported)})

    async def _client_by_document(self, url: str) -> OAuthClientInformationFull | None:
        document = self.settings.client_metadata_documents.get(url)
        if document is None:
            document = await _fetched(url)
        if not isinstance(document, dict) or document.get("client_id") != url or not document.get("client_name"):
            return None
        try:
            client = OAuthClientInformationFull.model_validate({"token_endpoint_auth_method": "none", **document})
        except ValidationError:
            return None
        return client if client.token_endpoint_auth_method == "none" and client.redirect_uris else None

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        resource = params.resource or self.resource
        if resource not in (self.resource, *self.settings.further_resources):
            raise AuthorizeError("invalid_target", f"No tokens are issued for {resource}")
        scopes = params.scopes if params.scopes is not None else self.settings.scopes_supported
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=scopes,
            expires_at=time.time() + CODE_SECONDS,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=resource,
            subject=SUBJECT,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state, iss=self.issuer)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        scopes, resource = authorization_code.scopes, authorization_code.resource
        return self._tokens(client.client_id, scopes, scopes, resource or self.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh_tokens.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh_tokens[refresh_token.token]
        return self._tokens(client.client_id, scopes, refresh_token.scopes, refresh_token.resource or self.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return read_token(token, self.signer.jwks(), self.issuer, self.resource)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.refresh_tokens.pop(token.token, None)

    def _tokens(self, client_id: str, scopes: list[str], refreshable: list[str], resource: str) -> OAuthToken:
        seconds = self.settings.token_ttl_seconds
        refresh = RefreshToken(
            token=secrets.token_urlsafe(32),
            client_id=client_id,
            scopes=refreshable,
            expires_at=int(time.time()) + REFRESH_SECONDS,
            resource=resource,
            subject=SUBJECT,
        )
        self.refresh_tokens[refresh.token] = refresh
        return OAuthToken(
            access_token=self.signer.issue(client_id, SUBJECT, scopes, resource, seconds),
            expires_in=seconds,
            scope=" ".join(scopes),
            refresh_token=refresh.token,
        )


async def _fetched(url: str) -> Any:
    """A client's metadata document from the network, or None. Redirects are not followed."""
    try:
        async with httpx2.AsyncClient(timeout=5, follow_redirects=False) as client:
            response = await client.get(url, headers={"accept": "application/json"})
    except httpx2.HTTPError:
        return None
    if response.status_code != 200 or len(response.content) > DOCUMENT_BYTES:
        return None
    try:
        return response.json()
    except ValueError:
        return None


def routes(provider: Provider) -> list[Route]:
    """The endpoints of the authorization server."""
    registration = ClientRegistrationOptions(
        enabled=True,
        valid_scopes=provider.settings.scopes_supported,
        default_scopes=provider.settings.scopes_supported,
    )
    authorize, register = AuthorizationHandler(provider), RegistrationHandler(provider, registration)
    token = TokenHandler(provider, ClientAuthenticator(provider))

    async def metadata(request: Request) -> Response:
        return JSONResponse(_metadata(provider))

    async def keys(request: Request) -> Response:
        return JSONResponse(provider.signer.jwks())

    async def authorization(request: Request) -> Response:
        return _with_issuer(await authorize.handle(request), provider.issuer)

    listed = [
        Route("/.well-known/oauth-authorization-server", metadata),
        Route("/jwks", keys),
        Route("/authorize", authorization, methods=["GET", "POST"]),
        Route("/token", token.handle, methods=["POST"]),
    ]
    if provider.settings.dynamic_registration:
        listed.append(Route("/register", register.handle, methods=["POST"]))
    return listed


def _with_issuer(response: Response, issuer: str) -> Response:
    """RFC 9207 wants `iss` in error redirects too, which the SDK's handler leaves out."""
    location = response.headers.get("location")
    if location is not None and "iss=" not in urlsplit(location).query:
        joint = "&" if urlsplit(location).query else "?"
        response.headers["location"] = f"{location}{joint}{urlencode({'iss': issuer})}"
    return response


def _metadata(provider: Provider) -> dict[str, Any]:
    issuer, settings = provider.issuer, provider.settings
    told: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/jwks",
        "scopes_supported": settings.scopes_supported,
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": METHODS,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.client_id_metadata_documents,
    }
    if settings.dynamic_registration:
        told["registration_endpoint"] = f"{issuer}/register"
    return told
