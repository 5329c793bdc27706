"""The authorization server and the resource server: what they refuse, and how."""

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from test_servers.compose import compose
from test_servers.config import CONFIGS, load, parse
from test_servers.http import build
from test_servers.oauth_tokens import Signer, read_token
from test_servers.raw import RawClient, Reply
from test_servers.scenarios import Target
from test_servers.scenarios.oauth import DOCUMENT, REDIRECT, Storage, authorized_client, provider_for
from test_servers.serving import bind, running

ORIGIN = "http://127.0.0.1:8081"
RESOURCE = f"{ORIGIN}/mcp"
VERIFIER = secrets.token_urlsafe(48)
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@asynccontextmanager
async def serving() -> AsyncIterator[httpx2.AsyncClient]:
    server = compose(load(CONFIGS / "oauth-step-up.json"))
    built = build(server, 8081)
    async with (
        server.session_manager.run(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(built.app), base_url=ORIGIN) as http,
    ):
        yield http


async def authorize(http: httpx2.AsyncClient, **changed: str) -> dict[str, str]:
    """What the browser is sent back with."""
    asked = {
        "response_type": "code",
        "client_id": DOCUMENT,
        "redirect_uri": REDIRECT,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "s",
        "scope": "mcp:read",
        "resource": RESOURCE,
    } | changed
    response = await http.get("/authorize", params=asked)
    assert response.status_code == 302, response.text
    assert response.headers["location"].startswith(f"{REDIRECT}?")
    return {key: values[0] for key, values in parse_qs(urlsplit(response.headers["location"]).query).items()}


async def redeem(http: httpx2.AsyncClient, code: str, **changed: str) -> httpx2.Response:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": DOCUMENT,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "resource": RESOURCE,
    } | changed
    return await http.post("/token", data=form)


async def call(http: httpx2.AsyncClient, token: str | None, tool: str = "echo", **arguments: Any) -> Reply:
    raw = RawClient(RESOURCE, transport=http._transport)
    extra = [("authorization", f"Bearer {token}")] if token else []
    return await raw.call("tools/call", {"name": tool, "arguments": arguments}, extra=extra)


async def test_metadata_name_each_other_and_what_is_supported() -> None:
    async with serving() as http:
        protected = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        issuer = (await http.get("/.well-known/oauth-authorization-server")).json()
    assert (protected["resource"], protected["authorization_servers"]) == (RESOURCE, [issuer["issuer"]])
    assert issuer["code_challenge_methods_supported"] == ["S256"]
    assert issuer["authorization_response_iss_parameter_supported"] is True
    assert issuer["client_id_metadata_document_supported"] is True


async def test_a_code_becomes_a_token_for_this_resource_once() -> None:
    async with serving() as http:
        back = await authorize(http)
        assert (back["state"], back["iss"]) == ("s", ORIGIN)
        token = (await redeem(http, back["code"])).json()
        reply = await call(http, token["access_token"], message="hi")
        assert reply.message["result"]["content"][0]["text"] == "Echo: hi"
        assert (await redeem(http, back["code"])).json()["error"] == "invalid_grant"


async def test_a_missing_scope_is_asked_for_with_what_is_needed() -> None:
    async with serving() as http:
        token = (await redeem(http, (await authorize(http))["code"])).json()["access_token"]
        reply = await call(http, token, "update_resource", uri="demo://x", text="x")
    assert reply.status == 403
    assert reply.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="mcp:read mcp:write", '
        f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp"'
    )


async def test_the_verifier_must_fit_the_challenge() -> None:
    async with serving() as http:
        code = (await authorize(http))["code"]
        assert (await redeem(http, code, code_verifier="x" * 43)).json()["error"] == "invalid_grant"


async def test_errors_go_back_with_the_issuer() -> None:
    async with serving() as http:
        back = await authorize(http, resource="https://elsewhere.example/mcp")
        assert (back["error"], back["iss"]) == ("invalid_target", ORIGIN)
        back = await authorize(http, scope="mcp:admin")
        assert (back["error"], back["iss"]) == ("invalid_scope", ORIGIN)


async def test_a_foreign_redirect_is_never_followed() -> None:
    async with serving() as http:
        asked = {"response_type": "code", "client_id": DOCUMENT, "code_challenge": CHALLENGE}
        response = await http.get("/authorize", params={**asked, "redirect_uri": "https://evil.example/"})
    assert response.status_code == 400


async def test_a_refresh_token_is_good_once() -> None:
    async with serving() as http:
        token = (await redeem(http, (await authorize(http))["code"])).json()
        form = {"grant_type": "refresh_token", "client_id": DOCUMENT, "refresh_token": token["refresh_token"]}
        assert "access_token" in (await http.post("/token", data=form)).json()
        assert (await http.post("/token", data=form)).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("issuer", "resource", "seconds"),
    [(ORIGIN, RESOURCE, -10), (ORIGIN, "https://elsewhere.example/mcp", 60), ("https://elsewhere.example", RESOURCE, 60)],
    ids=["expired", "for another resource", "by another issuer"],
)
def test_a_token_is_read_only_by_whom_it_is_for(issuer: str, resource: str, seconds: int) -> None:
    signer = Signer(issuer)
    token = signer.issue("client", "user", ["mcp:read"], resource, seconds)
    assert read_token(token, signer.jwks(), ORIGIN, RESOURCE) is None
    good = Signer(ORIGIN)
    assert read_token(good.issue("client", "user", [], RESOURCE, 60), good.jwks(), ORIGIN, RESOURCE) is not None
    assert read_token(good.issue("client", "user", [], RESOURCE, 60), signer.jwks(), ORIGIN, RESOURCE) is None


@pytest.mark.e2e
async def test_a_resource_server_takes_tokens_of_another_process() -> None:
    sockets = [bind(0, exact=True), bind(0, exact=True)]
    issuer, resource = (f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in sockets)
    info, modern = {"name": "x", "version": "1"}, {"modern": True}
    scopes = {"scopesSupported": ["mcp:read"], "requiredScopes": ["mcp:read"]}
    combined = {"mode": "combined", "furtherResources": [f"{resource}/mcp"], **scopes}
    apart = {"mode": "protected-resource", "issuer": issuer, **scopes}
    tools = [{"preset": "echo"}]
    configs = [
        parse({"serverInfo": info, "tools": tools, "transport": modern, "oauth": oauth}, "c.json") for oauth in (combined, apart)
    ]
    async with running(configs, sockets):
        target = Target(f"{resource}/mcp")
        storage = Storage()
        async with authorized_client(target.url, provider_for(target.url, storage, None), "auto") as client:
            assert (await client.call_tool("echo", {"message": "hi"})).content
        assert len(storage.tokens) == 1
