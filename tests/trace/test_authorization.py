"""Which exchanges belong to an MCP endpoint's authorization, and how they make a flow."""

import hashlib
import json

import pytest

from mcp_wiretap.trace.authorization import AuthorizationFlow, Step, urls
from mcp_wiretap.trace.authorization.steps import AUTHORIZATION_FLOWS, STEP, TOKENS, Token
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange
from tests.trace.following import follow

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
FORM = "  header Content-Type: application/x-www-form-urlencoded\n"

REFUSED = """\
modern tools/list
  path https://mcp.example/mcp
  -> 401
  -> header WWW-Authenticate: Bearer scope="read", \
resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
"""
RESOURCE = """\
GET https://mcp.example/.well-known/oauth-protected-resource/mcp
  header MCP-Protocol-Version: 2026-07-28
  -> 200 application/json {"resource": "https://mcp.example/mcp", "authorization_servers": ["https://auth.example"]}
"""
SERVER = """\
GET https://auth.example/.well-known/oauth-authorization-server
  header MCP-Protocol-Version: 2026-07-28
  -> 200 application/json {"issuer": "https://auth.example", "authorization_endpoint": "https://auth.example/go", \
"token_endpoint": "https://auth.example/token", "registration_endpoint": "https://auth.example/register", \
"code_challenge_methods_supported": ["S256"]}
"""
REGISTER = """\
POST https://auth.example/register
  header Content-Type: application/json
  header MCP-Protocol-Version: 2026-07-28
  body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
  -> 201 application/json {"client_id": "id-1", "client_secret": "very-secret"}
"""
AUTHORIZE = f"""\
GET https://auth.example/go?response_type=code&client_id=id-1&state=s1&scope=read&redirect_uri=http://127.0.0.1:9/cb\
&code_challenge={CHALLENGE}&code_challenge_method=S256&resource=https://mcp.example/mcp
  -> 302
  -> header Location: http://127.0.0.1:9/cb?code=code-1&state=s1&iss=https%3A%2F%2Fauth.example
"""
REDEEM = f"""\
POST https://auth.example/token
{FORM}  body grant_type=authorization_code&code=code-1&client_id=id-1&redirect_uri=http://127.0.0.1:9/cb&code_verifier={VERIFIER}\
&resource=https://mcp.example/mcp
  -> 200 application/json {{"access_token": "token-1", "token_type": "Bearer", "scope": "read", "refresh_token": "refresh-1"}}
"""
USE = """\
modern tools/list
  path https://mcp.example/mcp
  client token-1
  -> result {"tools": []}
"""
WHOLE = REFUSED + RESOURCE + SERVER + REGISTER + AUTHORIZE + REDEEM + USE
STEP_UP = f"""\
modern tools/call {{"name": "write"}}
  path https://mcp.example/mcp
  client token-1
  -> 403
  -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
GET https://auth.example/go?response_type=code&client_id=id-1&state=s2&scope=read+write&redirect_uri=http://127.0.0.1:9/cb\
&code_challenge=another&code_challenge_method=S256&resource=https://mcp.example/mcp
  -> 302
  -> header Location: http://127.0.0.1:9/cb?code=code-2&state=s2&iss=https%3A%2F%2Fauth.example
POST https://auth.example/token
{FORM}  body grant_type=authorization_code&code=code-2&client_id=id-1&redirect_uri=http://127.0.0.1:9/cb&code_verifier={VERIFIER}\
&resource=https://mcp.example/mcp
  -> 200 application/json {{"access_token": "token-2", "token_type": "Bearer"}}
"""
REFRESH = f"""\
POST https://auth.example/token
{FORM}  body grant_type=refresh_token&refresh_token=refresh-1&client_id=id-1&resource=https://mcp.example/mcp
  -> 200 application/json {{"access_token": "token-3", "token_type": "Bearer", "refresh_token": "refresh-2"}}
"""
ENDPOINT = "https://mcp.example:443/mcp"


def flows_of(inspector: Inspector, url: str = ENDPOINT) -> list[AuthorizationFlow]:
    found: list[AuthorizationFlow] = inspector.endpoints[url].facts.get(AUTHORIZATION_FLOWS, [])
    return found


def kinds(exchanges: list[Exchange]) -> list[str]:
    return [exchange.kind for exchange in exchanges]


def test_the_way_to_a_token_is_one_flow_step_by_step() -> None:
    inspector, exchanges = follow(WHOLE)
    assert kinds(exchanges) == ["mcp", *["oauth"] * 5, "mcp"]
    assert {e.endpoint.url for e in exchanges} == {ENDPOINT}
    (flow,) = flows_of(inspector)
    assert [(s.kind, s.flow, s.status) for s in flow.steps] == [
        ("challenge", "flow-1", 401),
        ("resource-metadata", "flow-2", 200),
        ("server-metadata", "flow-3", 200),
        ("registration", "flow-4", 201),
        ("authorize", "flow-5", 302),
        ("token", "flow-6", 200),
        ("use", "flow-7", 200),
    ]
    assert (flow.issuer, flow.client_id, flow.how, flow.status) == ("https://auth.example", "id-1", "dynamic", "in use")
    assert (flow.revision, flow.asked, flow.granted, flow.sure) == ("2026-07-28", ("read",), ("read",), True)


def test_no_secret_is_kept_in_the_clear() -> None:
    inspector, _ = follow(WHOLE + STEP_UP + REFRESH)
    shown = json.dumps([step.shown for flow in flows_of(inspector) for step in flow.steps])
    for secret in ("code-1", "token-1", "refresh-1", VERIFIER, "very-secret", "s1"):
        assert f'"{secret}"' not in shown
    assert f"(sha {hashlib.sha256(b'token-1').hexdigest()[:8]}, 7 chars)" in shown


def test_what_comes_before_the_endpoint_is_known_waits_for_it() -> None:
    inspector, exchanges = follow(RESOURCE + SERVER + REGISTER + AUTHORIZE + REDEEM)
    assert kinds(exchanges) == ["other"] * 5
    inspector, exchanges = follow(RESOURCE + SERVER + REGISTER + AUTHORIZE + REDEEM + USE)
    assert kinds(exchanges) == [*["oauth"] * 5, "mcp"]
    (flow,) = flows_of(inspector)
    assert [s.kind for s in flow.steps] == ["resource-metadata", "server-metadata", "registration", "authorize", "token", "use"]
    assert flow.status == "in use"


def test_a_token_that_is_used_ties_the_request_that_brought_it() -> None:
    bare = REDEEM.replace("&resource=https://mcp.example/mcp", "")
    _, exchanges = follow(AUTHORIZE.replace("&resource=https://mcp.example/mcp", "") + bare + USE)
    assert kinds(exchanges) == ["oauth", "oauth", "mcp"]


def test_a_challenge_on_a_url_that_is_only_later_known_to_be_mcp_begins_the_flow() -> None:
    stream = """\
GET https://mcp.example/mcp
  client token-1
  -> sse
  -> sse-raw event: endpoint\\ndata: /messages?sessionId=abc\\n\\n
  -> open
"""
    challenge = REFUSED.replace("modern tools/list\n  path https://mcp.example/mcp", "GET https://mcp.example/mcp")
    inspector, exchanges = follow(challenge + RESOURCE + SERVER + stream)
    assert kinds(exchanges) == ["mcp", "oauth", "oauth", "mcp"]
    (flow,) = flows_of(inspector)
    assert [s.kind for s in flow.steps] == ["challenge", "resource-metadata", "server-metadata"]


def test_a_step_up_goes_on_in_the_flow_of_its_token_with_the_union_of_scopes() -> None:
    inspector, exchanges = follow(WHOLE + STEP_UP)
    (flow,) = flows_of(inspector)
    assert [s.kind for s in flow.steps][-4:] == ["use", "challenge", "authorize", "token"]
    up = exchanges[8].facts[STEP].ask.step_up if not exchanges[8].released else flow.steps[-2].ask.step_up
    assert (up.before, up.challenged, up.missing, up.sure) == (("read",), ("write",), (), True)
    assert flow.steps[-2].shown["scopes so far"] == "read"
    assert flow.steps[-2].shown["scopes challenged"] == "write"


def test_a_step_up_that_forgets_scopes_is_seen() -> None:
    inspector, _ = follow(WHOLE + STEP_UP.replace("scope=read+write", "scope=write"))
    ask = flows_of(inspector)[0].steps[-2].ask
    assert ask is not None and ask.step_up is not None and ask.step_up.missing == ("read",)


def test_a_refresh_belongs_to_the_flow_that_got_the_refresh_token() -> None:
    inspector, _ = follow(WHOLE + REFRESH)
    (flow,) = flows_of(inspector)
    call = flow.steps[-1].call
    assert call is not None and (call.grant, call.refresh) == ("refresh_token", "new")
    assert flow.refreshes == 1 and flow.tokens == 2


def test_another_client_begins_another_flow() -> None:
    second = (REFUSED + RESOURCE + SERVER + REGISTER).replace("id-1", "id-2")
    inspector, _ = follow(WHOLE + second)
    first, other = flows_of(inspector)
    assert (first.client_id, other.client_id) == ("id-1", "id-2")
    assert [s.kind for s in other.steps] == ["challenge", "resource-metadata", "server-metadata", "registration"]


def test_pages_on_the_way_belong_to_it_and_the_code_is_followed_through_them() -> None:
    authorize = AUTHORIZE.replace(
        "Location: http://127.0.0.1:9/cb?code=code-1&state=s1&iss=https%3A%2F%2Fauth.example", "Location: /login?next=1"
    )
    pages = """\
GET https://auth.example/login?next=1
  -> 200 text/html <form>
POST https://auth.example/login
  header Content-Type: application/x-www-form-urlencoded
  body user=ada&password=secret
  -> 303
  -> header Location: http://127.0.0.1:9/cb?code=code-1&state=s1&iss=https%3A%2F%2Fauth.example
GET http://127.0.0.1:9/cb?code=code-1&state=s1&iss=https%3A%2F%2Fauth.example
  -> 200 text/html Done
"""
    inspector, exchanges = follow(REFUSED + RESOURCE + SERVER + REGISTER + authorize + pages + REDEEM)
    assert kinds(exchanges) == ["mcp", *["oauth"] * 8]
    (flow,) = flows_of(inspector)
    assert [s.kind for s in flow.steps][4:] == ["authorize", "login", "login", "callback", "token"]
    call = flow.steps[-1].call
    assert (
        call is not None
        and call.verifier == "right"
        and call.redirect is not None
        and call.redirect.iss == "https://auth.example"
    )


def test_traffic_of_others_is_left_alone() -> None:
    others = f"""\
GET https://login.example/authorize?response_type=code&client_id=shop&redirect_uri=https://shop.example/cb
  -> 302
  -> header Location: https://shop.example/cb?code=x&state=y
POST https://login.example/token
{FORM}  body grant_type=authorization_code&code=x&client_id=shop
  -> 200 application/json {{"access_token": "shop-token", "token_type": "Bearer"}}
POST https://auth.example/token
{FORM}  body grant_type=client_credentials&client_id=cron&client_secret=s
  -> 200 application/json {{"access_token": "cron-token", "token_type": "Bearer"}}
GET https://other.example/.well-known/openid-configuration
  -> 200 application/json {{"issuer": "https://other.example"}}
"""
    inspector, exchanges = follow(WHOLE + others)
    assert kinds(exchanges)[7:] == ["other"] * 4
    assert len(flows_of(inspector)) == 1


def test_a_program_that_never_called_the_endpoint_is_not_its_client() -> None:
    agent = "  header User-Agent: client/1\n"
    known = WHOLE.replace("  -> ", f"{agent}  -> ", 1)
    stranger = SERVER.replace("  header MCP", "  header User-Agent: mail/1\n  header MCP")
    _, exchanges = follow(known.replace("client token-1\n", f"client token-1\n{agent}") + stranger)
    assert exchanges[-1].kind == "other"


def test_of_two_endpoints_at_one_origin_the_path_decides() -> None:
    second = REFUSED.replace("example/mcp", "example/two").replace("resource/mcp", "resource/two")
    metadata = RESOURCE.replace("resource/mcp", "resource/two")
    inspector, exchanges = follow(REFUSED + second + metadata)
    assert exchanges[-1].endpoint.url == "https://mcp.example:443/two"
    assert not flows_of(inspector)


def test_behind_a_reverse_proxy_the_public_names_lead_here() -> None:
    script = (REFUSED + RESOURCE + SERVER).replace("https://auth.example", "https://mcp.example")
    here = "".join(
        line.replace("https://mcp.example", "http://127.0.0.1:4000") + "\n  reverse\n"
        if line.startswith(("GET", "POST"))
        else line.replace("path https://mcp.example", "reverse\n  path http://127.0.0.1:4000") + "\n"
        for line in script.splitlines()
    )
    token = REDEEM.replace("https://auth.example/token", "http://127.0.0.1:4000/token\n  reverse")
    inspector, exchanges = follow(here + token)
    assert kinds(exchanges) == ["mcp", "oauth", "oauth", "oauth"]
    (flow,) = flows_of(inspector, "http://127.0.0.1:4000/mcp")
    assert flow.metadata is not None and flow.metadata.relation == "equal" and flow.metadata.origin_known
    assert flow.issuer == "https://mcp.example"


def test_tokens_are_known_by_whom_they_were_issued_for() -> None:
    inspector, exchanges = follow(WHOLE)
    tokens: dict[str, Token] = inspector.endpoints[ENDPOINT].facts[TOKENS]
    token = tokens[exchanges[-1].auth]
    assert token.part_of is flows_of(inspector)[0]
    assert (token.asked, token.granted, list(token.accepted)) == (("read",), ("read",), [ENDPOINT])


def test_what_waits_is_bounded() -> None:
    inspector = Inspector(limits=Limits(held=50))
    from mcp_wiretap.example import read_script

    stray = "".join(
        f"GET https://a{n}.example/.well-known/oauth-authorization-server\n  -> 404\nPOST https://a{n}.example/token\n{FORM}"
        f'  body grant_type=refresh_token&refresh_token=r{n}\n  -> 200 application/json {{"access_token": "t{n}"}}\n'
        for n in range(400)
    )
    for event in read_script(stray):
        inspector.feed(event)
    assert all(e.kind == "other" for e in inspector.exchanges.values())
    assert sum(not e.released for e in inspector.exchanges.values()) <= 51


@pytest.mark.parametrize(
    ("issuer", "forms"),
    [
        ("https://a.example", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        ("https://a.example/", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        (
            "https://a.example/one",
            [
                "/.well-known/oauth-authorization-server/one",
                "/.well-known/openid-configuration/one",
                "/one/.well-known/openid-configuration",
            ],
        ),
        ("no url", []),
    ],
)
def test_the_places_of_server_metadata_in_their_order(issuer: str, forms: list[str]) -> None:
    found = urls.issuer_forms(issuer)
    assert found == [f"https://a.example:443{form}" for form in forms]
    assert all(urls.issuer_of(url).rstrip("/") == issuer.rstrip("/") for url in found)


@pytest.mark.parametrize(
    ("resource", "relation"),
    [
        ("https://mcp.example/mcp", "equal"),
        ("HTTPS://MCP.example:443/mcp", "equal"),
        ("https://mcp.example/mcp/", "slash"),
        ("https://mcp.example", "parent"),
        ("https://mcp.example/", "parent"),
        ("https://mcp.example/mc", "other-path"),
        ("https://mcp.example:8443/mcp", "other-origin"),
        ("http://mcp.example/mcp", "other-origin"),
        ("https://mcp.example/mcp#a", "invalid"),
        ("mcp.example/mcp", "invalid"),
        ("https://[::1", "invalid"),
    ],
)
def test_how_a_resource_stands_to_an_endpoint(resource: str, relation: str) -> None:
    assert urls.relation(resource, ENDPOINT) == relation


def test_a_step_is_a_fact_of_its_exchange_until_that_is_let_go() -> None:
    _, exchanges = follow(REFUSED + RESOURCE)
    step = exchanges[1].facts.get(STEP)
    assert isinstance(step, Step) and step.kind == "resource-metadata" and step.resource is not None
    assert step.resource.form == "named" and step.resource.challenged
