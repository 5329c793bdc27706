"""The scenario of oauth-step-up: in with a token, refused, up with a further scope; registered, by document, refreshed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from test_servers.client import Heard, honest_client, text_of
from test_servers.raw import RawClient
from test_servers.scenarios.base import Target, scenario
from test_servers.steps import Scenario, expect

REDIRECT = "http://127.0.0.1:3030/callback"
DOCUMENT = "https://app.example.com/client.json"


class Storage:
    """Tokens and the registration of one client, in memory; tells how often tokens came."""

    def __init__(self) -> None:
        self.tokens: list[OAuthToken] = []
        self.info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.info = client_info


class Browser:
    """Goes to the authorization page, as a user's browser would, and takes the code from where it is sent back to."""

    def __init__(self) -> None:
        self.back: dict[str, list[str]] = {}

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient() as client:
            response = await client.get(url)
        expect(response.status_code == 302, f"{response.status_code} {response.text}")
        self.back = parse_qs(urlsplit(response.headers["location"]).query)

    async def came_back(self) -> AuthorizationCodeResult:
        expect("code" in self.back, f"sent back with {self.back}")
        return AuthorizationCodeResult(
            code=self.back["code"][0], state=self.back["state"][0], iss=self.back.get("iss", [None])[0]
        )


def provider_for(url: str, storage: Storage, document: str | None) -> OAuthClientProvider:
    browser = Browser()
    metadata = OAuthClientMetadata(client_name="demo-client", redirect_uris=[AnyUrl(REDIRECT)], token_endpoint_auth_method="none")
    return OAuthClientProvider(url, metadata, storage, browser.open, browser.came_back, document)


@asynccontextmanager
async def authorized_client(url: str, provider: OAuthClientProvider, mode: str) -> AsyncIterator[Client]:
    async with (
        create_mcp_http_client(auth=provider) as http,
        honest_client(streamable_http_client(url, http_client=http), Heard(), mode=mode) as client,
    ):
        yield client


@scenario("oauth-step-up")
async def step_up(target: Target, steps: Scenario) -> None:
    uri = "demo://resource/static/1"

    async def challenged() -> str:
        reply = await RawClient(target.url).call("tools/list")
        challenge = reply.headers.get("www-authenticate", "")
        expect(reply.status == 401 and "resource_metadata=" in challenge and "scope=" in challenge, challenge)
        wrong = await RawClient(target.url).call("tools/list", extra=[("authorization", "Bearer nonsense")])
        expect('error="invalid_token"' in wrong.headers.get("www-authenticate", ""), str(wrong.headers))
        return "401 without a token, 401 invalid_token with a wrong one"

    async def flow(mode: str, document: str | None) -> str:
        storage = Storage()
        provider = provider_for(target.url, storage, document)
        async with authorized_client(target.url, provider, mode) as client:
            await client.call_tool("get_temp", {"city": "Oslo"})
            expect(len(storage.tokens) == 1, f"{len(storage.tokens)} tokens")
            text = text_of(await client.call_tool("update_resource", {"uri": uri, "text": "new"}))
        expect(len(storage.tokens) == 2, f"{len(storage.tokens)} tokens")
        scopes = set((storage.tokens[-1].scope or "").split())
        expect(scopes == {"mcp:read", "mcp:write"}, f"granted {scopes}")
        return f"{client_id(storage)}, then {sorted(scopes)}: {text}"

    def client_id(storage: Storage) -> str:
        expect(storage.info is not None, "no client")
        known = storage.info.client_id if storage.info else ""
        return known if known.startswith("https:") else "a registered client"

    async def refreshed() -> str:
        storage = Storage()
        provider = provider_for(target.url, storage, None)
        async with authorized_client(target.url, provider, "auto") as client:
            await client.call_tool("echo", {"message": "first"})
            provider.context.token_expiry_time = 1
            await client.call_tool("echo", {"message": "second"})
        old, new = storage.tokens
        expect(old.refresh_token != new.refresh_token, "the refresh token was not rotated")
        return "a new access token and a new refresh token"

    await steps.step("challenge", challenged)
    await steps.step("registered, step-up", lambda: flow("auto", None))
    await steps.step("by metadata document, step-up", lambda: flow("auto", DOCUMENT))
    await steps.step("legacy session, step-up", lambda: flow("legacy", None))
    await steps.step("refresh", refreshed)
