"""OAU: tokens, on their way to the client and in use: grants, proofs, where a token may go."""

import re
from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.authorization import AuthorizationFlow, Token, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata
from mcp_wiretap.trace.authorization.steps import (
    AUTHORIZATION_FLOWS,
    LET_IN,
    NONCE_DUE,
    PROOF_USED_BEFORE,
    QUERY_TOKENS,
    STEP,
    TOKEN,
    TOKEN_LEFT_OUT,
    TOKENS_OF_SESSION,
)
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.refusals.words import words_of as words_of_refusal
from mcp_wiretap.wire import form as forms
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.secret import mask, one_line
from mcp_wiretap_rules.oauth import (
    ALL,
    AUTH,
    LATE,
    MCP,
    NEWEST,
    OAUTH,
    RESOURCES,
    SECURITY,
    call_of,
    described,
    same_issuer,
    short,
    step_of,
    tidy,
)

SKEW = 300.0  # seconds that clocks may differ
NO_NONCE = "has no nonce, which the server has asked for"
ID_JAG = "oauth-id-jag+jwt"  # type of an identity assertion


@rule(
    "OAU023",
    "token-in-query",
    "Access token in URI",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{AUTH}#token-requirements",
    versions=ALL,
    always=True,
    kinds=MCP,
    transport=("http",),
)
def token_in_query(exchange: Exchange) -> Iterator[Finding]:
    """An access token travels in the Authorization header, never in the query of the URL. It is known by its name, or by being seen
    as a token anywhere else.

    Why: URLs end up in logs, histories and Referer headers.

    Fix: send `Authorization: Bearer ...`.

    Wrong::

        modern tools/list
          path /mcp?access_token=secret-token
          -> result {"tools": []}

    Right::

        modern tools/list
          path /mcp?tenant=one
          -> result {"tools": []}
    """
    if not exchange.query:
        return
    known: set[str] = exchange.facts.get(QUERY_TOKENS) or set()
    query = forms.read(exchange.query)
    for name in query:
        value = query.get(name)
        if value is None:
            continue
        where = f"request.query:{one_line(name, 60)}"
        if name == "access_token" or name in known:
            yield Finding(
                f"the access token stands in the query, as {short(name)}",
                [Evidence(where, mask(value), "Authorization: Bearer")],
            )
        elif jose.looks_like(value):
            yield Finding(
                f"a token stands in the query, as {short(name)}", [Evidence(where, mask(value), "no token")], severity="warning"
            )


@rule(
    "OAU024",
    "authorization-not-on-every-request",
    "Token missing on later requests",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec=f"{AUTH}#token-requirements",
    versions=ALL,
    always=True,
    kinds=MCP,
    transport=("http",),
)
def token_missing(exchange: Exchange) -> Iterator[Finding]:
    """The token goes with each HTTP request, also within a session, and between two others on one connection. Each request of
    `client alice` below carries one, unless its header is taken away.

    Why: a session id is no authorization; the server has to refuse.

    Fix: add Authorization to GET, DELETE and notifications as well.

    Wrong::

        legacy initialize
          client alice
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          client alice
          -> result {"tools": []}
        legacy tools/list
          client alice
          -header Authorization
          -> 401

    Right::

        legacy initialize
          client alice
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list
          client alice
          -> result {"tools": []}
        legacy tools/list
          client alice
          -> 401
    """
    if exchange.status != 401 or exchange.auth:
        return
    around: tuple[Token, str] | None = exchange.facts.get(TOKEN_LEFT_OUT)
    if around is not None:
        yield Finding(
            "the request has no Authorization, those before and after it on the same connection have",
            [Evidence("request.header:Authorization", "(absent)", f"Bearer {around[0].mask}")],
            related=(around[1],),
        )
    before: dict[str, tuple[Token, str]] = {}
    if exchange.session is not None:
        before = exchange.session.facts.get(TOKENS_OF_SESSION) or {}
    elif around is None:
        yield from _issued_and_not_used(exchange)
    if before:
        token, flow = next(reversed(before.values()))
        yield Finding(
            "the request has no Authorization, others in this session had",
            [Evidence("request.header:Authorization", "(absent)", f"Bearer {token.mask}")],
            related=(flow,),
        )


def _issued_and_not_used(exchange: Exchange) -> Iterator[Finding]:
    """The way to a token for this endpoint ended with one, and the same program comes back without it."""
    agent = (exchange.request_fields.first("user-agent") or "")[:200]
    flows: list[AuthorizationFlow] = exchange.endpoint.facts.get(AUTHORIZATION_FLOWS) or []
    for flow in reversed(flows):
        if flow.uses or not flow.tokens or flow.agent != agent:
            continue
        given = [s for s in flow.steps if s.kind == "token" and s.token is not None and (s.ended or s.at) < exchange.started]
        if not given or any(s.token is not None and s.token.used for s in given):
            continue
        token = given[-1].token
        yield Finding(
            "a token was issued for this endpoint, and the request after it carries no Authorization",
            [Evidence("request.header:Authorization", "(absent)", f"Bearer {token.mask if token is not None else '...'}")],
            related=(given[-1].flow,),
            once=f"unused {flow.number}",
        )
        return


@rule(
    "OAU025",
    "invalid-token-status",
    "Expired or foreign token let in",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{AUTH}#token-handling",
    versions=ALL,
    always=True,
    kinds=MCP,
    needs=(TOKEN,),
    transport=("http",),
)
def invalid_token(exchange: Exchange) -> Iterator[Finding]:
    """A token that has run out, or that was issued for another resource, is answered with HTTP 401.

    Why: a server that lets in any token of the same issuer can be called with tokens stolen elsewhere.

    Fix: check `exp` and `aud` of each token.

    Wrong::

        modern tools/list
          header Authorization: Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIiwiZXhwIjoxNzAwMDAwMDAwfQ.c2lnbmF0dXJl
          -> result {"tools": []}

    Right::

        modern tools/list
          header Authorization: Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIiwiZXhwIjoxOTAwMDAwMDAwfQ.c2lnbmF0dXJl
          -> result {"tools": []}
    """
    token: Token | None = exchange.facts.get(TOKEN)
    if token is None or token.jwt is None or exchange.status is None or not 200 <= exchange.status < 300:
        return
    where = "request.header:Authorization"
    expires = token.jwt.number("exp")
    if expires is not None and expires < exchange.requested - SKEW:
        late = int(exchange.requested - expires)
        yield Finding(f"a token that ran out {late} s ago is let in", [Evidence(where, token.mask, "HTTP 401")], once=token.mask)
    audience = token.jwt.audience if LET_IN in exchange.facts else ()
    if audience and not any(_is_for(a, exchange) for a in audience):
        origins = [urls.origin(a) for a in audience if urls.split(a) is not None]
        here = urls.split(exchange.endpoint.url)
        public = here is not None and here.scheme == "https" and not here.loopback  # else it may be behind a gateway
        foreign = public and urls.origin(exchange.endpoint.url) not in origins and exchange.revision in RESOURCES
        named = len(origins) == len(audience) and (foreign or any(described(exchange.endpoint)))
        yield Finding(
            f"a token for {short(' '.join(audience))} is let in by {short(exchange.endpoint.url)}",
            [Evidence(where, token.mask, "HTTP 401")],
            severity=None if named and not exchange.reverse else "info",
        )


def _is_for(audience: str, exchange: Exchange) -> bool:
    """Whether an audience names an endpoint: its URL, a parent, what its metadata call it."""
    if urls.relation(audience, exchange.endpoint.url, origins=not exchange.reverse) in ("equal", "slash", "parent"):
        return True
    flows: list[AuthorizationFlow] = exchange.endpoint.facts.get(AUTHORIZATION_FLOWS) or []
    wanted = urls.canonical(audience) or audience
    return any(f.metadata is not None and wanted == (urls.canonical(f.metadata.resource) or f.metadata.resource) for f in flows)


@rule(
    "OAU028",
    "token-passthrough",
    "One token let in by two resources",
    on="exchange",
    level="must",
    party="either",
    era="both",
    severity="warning",
    spec=f"{SECURITY}#access-token-privilege-restriction",
    versions=ALL,
    always=True,
    kinds=MCP,
    needs=(TOKEN,),
    transport=("http",),
)
def token_passthrough(exchange: Exchange) -> Iterator[Finding]:
    """A token is for one resource: a client does not send it to another one, and a server does not pass it on.

    Why: the second server could act as the user at the first one.

    Fix: ask for a token of its own for each resource.

    Wrong::

        modern tools/list
          path https://one.example/mcp
          header Authorization: Bearer 0123456789abcdef0123456789abcdef
          -> result {"tools": []}
        GET https://one.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://one.example/mcp", "authorization_servers": ["https://auth.one.example"]}
        modern tools/list
          path https://two.example/mcp
          -> 401
        GET https://two.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://two.example/mcp", "authorization_servers": ["https://auth.two.example"]}
        modern tools/list
          path https://two.example/mcp
          header Authorization: Bearer 0123456789abcdef0123456789abcdef
          -> result {"tools": []}

    Right::

        modern tools/list
          path https://one.example/mcp
          header Authorization: Bearer 0123456789abcdef0123456789abcdef
          -> result {"tools": []}
        GET https://one.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://one.example/mcp", "authorization_servers": ["https://auth.one.example"]}
        modern tools/list
          path https://two.example/mcp
          -> 401
        GET https://two.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://two.example/mcp", "authorization_servers": ["https://auth.two.example"]}
        modern tools/list
          path https://two.example/mcp
          header Authorization: Bearer fedcba9876543210fedcba9876543210
          -> result {"tools": []}
    """
    token: Token | None = exchange.facts.get(TOKEN)
    if token is None or token.shared or len(token.accepted) < 2 or exchange.status is None or not 200 <= exchange.status < 300:
        return
    here = described(exchange.endpoint)
    for endpoint, (other, flow) in token.accepted.items():
        there = described(other)
        if other is exchange.endpoint or not here or not there:
            continue
        if any(_akin(a, b) for a in here for b in there):
            continue
        doubt = len(token.issued) > 1 or token.length < 32
        yield Finding(
            f"the same token is let in by {short(endpoint)} and by {short(exchange.endpoint.url)}, which are different resources",
            [Evidence("request.header:Authorization", token.mask, "a token of its own for each resource")],
            severity="info" if doubt else None,
            party="client",
            related=(flow,),
            once=token.mask,
        )


def _akin(one: ResourceMetadata, two: ResourceMetadata) -> bool:
    """Whether two resources may be one: at one origin, or served by the same authorization server."""
    a, b = urls.split(one.resource), urls.split(two.resource)
    return a is None or b is None or a.origin == b.origin or not set(one.servers).isdisjoint(two.servers)


@rule(
    "OAU029",
    "refresh-rotation",
    "Refresh token not rotated",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{SECURITY}#token-theft",
    versions=RESOURCES,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def refresh_rotation(exchange: Exchange) -> Iterator[Finding]:
    """A public client, one without a secret, gets a new refresh token each time it uses one.

    Why: a stolen refresh token shows by being used twice.

    Fix: issue a new refresh token with each refresh, and let the old one die.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1", "token_endpoint_auth_method": "none"}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=abc&client_id=1&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer", "refresh_token": "abc"}

    Right::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1", "token_endpoint_auth_method": "none"}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=abc&client_id=1&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer", "refresh_token": "def"}
    """
    found = call_of(exchange, RESOURCES, "refresh_token")
    if found is None or found[0].token is None or found[1].auth_method != "none" or found[1].refresh == "new":
        return
    step, call = found
    assert step.token is not None
    if call.dpop or step.token.bound:
        return
    registration = call.registration
    document = (call.client_id or "").startswith("https://")
    public = document or (registration is not None and registration.given is not None and not registration.given.has_secret)
    what = "the same refresh token again" if call.refresh == "same" else "no new refresh token"
    yield Finding(
        f"the refresh of {'a public client' if public else 'a client without secret'} gives {what}",
        [Evidence("response.body:/refresh_token", "(absent)" if call.refresh == "none" else "(the same)", "a new one")],
        severity=None if public else "info",
    )


@rule(
    "OAU032",
    "dpop",
    "Token bound to a key used without a right proof",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec="ext-auth DPoP (SEP-1932), RFC 9449 section 7.1",
    sep="1932",
    versions=NEWEST,
    always=True,
    kinds=(*MCP, *OAUTH),
    needs=(TOKEN, STEP),
    transport=("http",),
)
def dpop(exchange: Exchange) -> Iterator[Finding]:
    """A token that is bound to a key goes with the scheme DPoP and a fresh proof: its `htm` and `htu` are this request's, `ath` is the
    hash of the token, `iat` is now, `jti` is new, and the key is asymmetric. A nonce that a server has asked for is in the next proof.

    Why: the proof is what a thief of the token lacks.

    Fix: sign a proof for each request.

    Wrong::

        modern tools/list
          header Authorization: DPoP 0123456789abcdef0123456789abcdef
          -> result {"tools": []}

    Right::

        modern tools/list
          header Authorization: DPoP 0123456789abcdef0123456789abcdef
          header DPoP: eyJhbGciOiJFUzI1NiIsInR5cCI6ImRwb3Arand0In0.eyJodG0iOiJQT1NUIiwiaHR1IjoiaHR0cDovL3NlcnZlci5leGFtcGxlL21jcCIsImlhdCI6MTgwMDAwMDAwMSwianRpIjoiYTEiLCJhdGgiOiJQckc5UTVsSDYzWXBtT1Ztek1MZ21jZVJFWXN2UUZlY3hQZmFLMUJodF9rIn0.c2lnbmF0dXJl
          -> result {"tools": []}
    """
    called = call_of(exchange, NEWEST)
    if called is not None and called[1].nonce_left_out:
        text = "the token request has no nonce in its DPoP proof, which the server has asked for"
        yield Finding(text, [Evidence("request.header:DPoP", "(no nonce)", "the nonce")], related=(called[1].nonce_left_out,))
    token: Token | None = exchange.facts.get(TOKEN)
    if token is None or not token.bound:
        return
    scheme = (exchange.request_fields.first("authorization") or "").partition(" ")[0].lower()
    proof = exchange.request_fields.first("dpop")
    if scheme != "dpop":
        where = "request.header:Authorization"
        yield Finding(
            "a token that is bound to a key is sent as Bearer", [Evidence(where, f"Bearer {token.mask}", "DPoP")], once=token.mask
        )
        return
    if proof is None:
        yield Finding(
            "a DPoP token is sent without proof", [Evidence("request.header:DPoP", "(absent)", "a proof")], once=token.mask
        )
        return
    problem = _proof_problem(exchange, token, proof)
    if problem:
        asked: str | None = exchange.facts.get(NONCE_DUE)
        yield Finding(
            f"the DPoP proof {problem}",
            [Evidence("request.header:DPoP", mask(proof), "a proof of this request")],
            related=(asked,) if asked is not None and problem == NO_NONCE else (),
        )


def _proof_problem(exchange: Exchange, token: Token, text: str) -> str:
    proof = jose.read(text)
    if proof is None:
        return "is no JWT"
    algorithm = str(proof.header.get("alg", ""))
    if algorithm == "none" or algorithm.startswith("HS"):
        return f"is signed with {short(algorithm)}, which is not asymmetric"
    if proof.header.get("typ") != "dpop+jwt":
        return "is not of type dpop+jwt"
    if proof.text("htm") != exchange.http_method:
        return f"is for {short(proof.text('htm'))}, the request is a {exchange.http_method}"
    if urls.relation(proof.text("htu"), exchange.url, origins=not exchange.reverse) not in ("equal", "slash"):
        return f"is for {short(proof.text('htu'))}"
    if NONCE_DUE in exchange.facts and proof.text("nonce") is None:
        return NO_NONCE
    at = proof.number("iat")
    if at is None or abs(at - exchange.requested) > SKEW:
        return "is not of this moment"
    if proof.text("ath") != token.ath:
        return "is not for this token"
    return "was used before" if exchange.facts.get(PROOF_USED_BEFORE) else ""


@rule(
    "OAU033",
    "jwt-bearer",
    "Assertion at the token endpoint incomplete",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec="ext-auth workload identity, client credentials (SEP-1933, SEP-1046)",
    sep="1933",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def assertion(exchange: Exchange) -> Iterator[Finding]:
    """An assertion names the authorization server as its audience and runs out; one that was refused is not sent again, and no other
    grant is tried in its place.

    Why: a server has to refuse it.

    Fix: sign a fresh assertion with `exp` and `aud`, and give `client_assertion_type` with a client assertion.

    Wrong::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&resource=http://server.example/mcp&assertion=eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl
          -> 400

    Right::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&resource=http://server.example/mcp&assertion=eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIiwiYXVkIjoiaHR0cHM6Ly9hdXRoLmV4YW1wbGUiLCJleHAiOjE5MDAwMDAwMDB9.c2lnbmF0dXJl
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    found = call_of(exchange, NEWEST)
    if found is None:
        return
    call = found[1]
    bearer = call.grant.endswith(":jwt-bearer")
    where = "request.form:assertion" if bearer else "request.form:client_assertion"
    if bearer and not call.has_assertion:
        yield Finding("a jwt-bearer request has no assertion", [Evidence(where, "(absent)", "a JWT")])
    registered = call.registration.given or call.registration.sent if call.registration is not None else None
    by_key = registered is not None and registered.auth_method == "private_key_jwt"
    if call.grant == "client_credentials" and not call.has_assertion and by_key:
        message = "a client that is registered with private_key_jwt has no client_assertion"
        yield Finding(message, [Evidence(where, "(absent)", "a JWT")])
    if call.switched_from is not None and call.grant in ("client_credentials", "password"):
        grant, flow = call.switched_from
        message = f"the client goes over from {short(grant.rpartition(':')[2])} to {call.grant} after its assertion was refused"
        yield Finding(message, [evidence("request.form:grant_type", call.grant, "a report to the user")], related=(flow,))
    if not call.has_assertion:
        return
    if not call.assertion_typed:
        at = "request.form:client_assertion_type"
        yield Finding(
            "client_assertion comes without its type",
            [evidence(at, None, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")],
        )
    if call.rejected_before:
        message = "an assertion that was refused is sent again"
        yield Finding(message, [Evidence(where, "(the same)", "a fresh assertion")], related=(call.rejected_before,))
    if call.assertion is None and call.saml:
        return
    if call.assertion is None:
        yield Finding("the assertion is no JWT", [Evidence(where, "(other)", "a JWT")])
    else:
        audience, document = call.assertion.audience, call.metadata
        own = [tidy(exchange.url), *((document.issuer or "", document.endpoints.get("token_endpoint", "")) if document else ())]
        if document is not None and audience and not any(same_issuer(a, o) for a in audience for o in own if o):
            message = f"the assertion is for {short(' '.join(audience))}, it is sent to {short(document.issuer)}"
            if call.assertion.header.get("typ") != ID_JAG:  # OAU034
                yield Finding(message, [Evidence(where, short(" ".join(audience)), short(document.issuer))])
        lacking = [name for name in ("exp", "aud") if name not in call.assertion.claims]
        if lacking:
            yield Finding(f"the assertion has no {' and no '.join(lacking)}", [Evidence(where, "(absent)", ", ".join(lacking))])


@rule(
    "OAU034",
    "ema-token-exchange",
    "Identity assertion of an enterprise for another server",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec="ext-auth enterprise-managed-authorization (SEP-990)",
    sep="990",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def identity_assertion(exchange: Exchange) -> Iterator[Finding]:
    """An identity assertion (ID-JAG) is used at the authorization server that is its audience, by the client that it names.

    Why: it stands for the user; another server has no business with it.

    Fix: have the identity provider issue it for this issuer and this client id.

    Wrong::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&client_id=c&resource=http://server.example/mcp&assertion=eyJhbGciOiJFUzI1NiIsInR5cCI6Im9hdXRoLWlkLWphZytqd3QifQ.eyJhdWQiOiJodHRwczovL290aGVyLmV4YW1wbGUiLCJjbGllbnRfaWQiOiJjIiwiZXhwIjoxOTAwMDAwMDAwfQ.c2lnbmF0dXJl
          -> 400

    Right::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&client_id=c&resource=http://server.example/mcp&assertion=eyJhbGciOiJFUzI1NiIsInR5cCI6Im9hdXRoLWlkLWphZytqd3QifQ.eyJhdWQiOiJodHRwOi8vc2VydmVyLmV4YW1wbGUiLCJjbGllbnRfaWQiOiJjIiwiZXhwIjoxOTAwMDAwMDAwfQ.c2lnbmF0dXJl
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    found = call_of(exchange, LATE)
    if found is None or not found[1].grant.endswith(":jwt-bearer"):
        return
    call = found[1]
    given, where = call.assertion, "request.form:assertion"
    if given is None:
        return
    kind = given.header.get("typ")
    if kind != ID_JAG and call.exchanged:
        message = f"the identity assertion of a token exchange has the type {short(str(kind))}"
        yield Finding(message, [Evidence(where, short(str(kind)), ID_JAG)], related=(call.exchanged,))
    elif kind != ID_JAG:
        return
    issuer = call.metadata.issuer if call.metadata is not None else None
    if issuer is not None and given.audience and not any(same_issuer(a, issuer) for a in given.audience):
        message = f"the identity assertion is for {short(' '.join(given.audience))}, it is sent to {short(issuer)}"
        yield Finding(message, [Evidence(where, short(" ".join(given.audience)), issuer)])
    named = given.text("client_id")
    if call.client_id is not None and named != call.client_id:
        message = f"the identity assertion names client {short(named)}, it is used by {short(call.client_id)}"
        yield Finding(message, [Evidence(where, short(named), short(call.client_id))])


@rule(
    "OAU038",
    "refresh-token-sent-again",
    "Rotated or refused refresh token sent again",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec="RFC 6749 section 6",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def refresh_token_sent_again(exchange: Exchange) -> Iterator[Finding]:
    """A refresh token that was exchanged for a new one is discarded, by all that share it; one that was refused is not sent again.

    Why: the server takes the second use for theft and revokes the login, or answers the same refusal for ever.

    Fix: refresh one at a time, store the new refresh token before anything else, and begin a new authorization on invalid_grant.

    Wrong::

        modern tools/list
          path https://server.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://server.example/.well-known/oauth-protected-resource/mcp", scope="a"
        GET https://server.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://server.example/mcp", "authorization_servers": ["https://server.example"]}
        GET https://server.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://server.example", "authorization_endpoint": "https://server.example/go", "token_endpoint": "https://server.example/token", "registration_endpoint": "https://server.example/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
        POST https://server.example/register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1", "token_endpoint_auth_method": "none"}
        POST https://server.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=rt-1&client_id=1&resource=https://server.example/mcp
          -> 200 application/json {"access_token": "at-2", "token_type": "Bearer", "refresh_token": "rt-2"}
        POST https://server.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=rt-1&client_id=1&resource=https://server.example/mcp
          -> 400 application/json {"error": "invalid_grant"}

    Right::

        modern tools/list
          path https://server.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://server.example/.well-known/oauth-protected-resource/mcp", scope="a"
        GET https://server.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://server.example/mcp", "authorization_servers": ["https://server.example"]}
        GET https://server.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://server.example", "authorization_endpoint": "https://server.example/go", "token_endpoint": "https://server.example/token", "registration_endpoint": "https://server.example/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
        POST https://server.example/register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1", "token_endpoint_auth_method": "none"}
        POST https://server.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=rt-1&client_id=1&resource=https://server.example/mcp
          -> 200 application/json {"access_token": "at-2", "token_type": "Bearer", "refresh_token": "rt-2"}
        POST https://server.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=rt-2&client_id=1&resource=https://server.example/mcp
          -> 200 application/json {"access_token": "at-3", "token_type": "Bearer", "refresh_token": "rt-3"}
    """
    step = step_of(exchange, "token")
    use = step.call.refresh_use if step is not None and step.call is not None else None
    if step is None or use is None or step.call is None or step.flow not in use.refusals:
        return
    place = [evidence("response.body:/error", step.call.error or f"HTTP {exchange.status}")]
    shown = step.shown.get("refresh_token", "")
    if use.result == "rotated":
        late = exchange.started - use.ended
        when = (
            f"sent again {late * 1000:.0f} ms after it had been rotated"
            if late >= 0
            else "sent twice at once, and rotated by one"
        )
        yield Finding(f"the refresh token {shown} was {when}", place, related=(use.flow,))
    elif (count := use.refusals.index(step.flow) + 1) >= MOST_REFUSED:
        text = f"the refused refresh token {shown} is sent again ({count} times)"
        yield Finding(text, place, related=tuple(use.refusals[: count - 1][-5:]))


@rule(
    "OAU039",
    "dead-refresh-token-error",
    "Dead refresh token not refused with invalid_grant",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec="RFC 6749 section 5.2",
    versions=ALL,
    once="endpoint",
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def dead_refresh_token_error(exchange: Exchange) -> Iterator[Finding]:
    """A refresh token that is invalid, expired or revoked is refused with the error invalid_grant.

    Why: by that code a client knows that only a new authorization helps; with another one it sends the dead token for ever.

    Fix: answer HTTP 400 with `{"error": "invalid_grant"}`.

    Wrong::

        modern tools/list
          path https://server.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://server.example/.well-known/oauth-protected-resource/mcp", scope="a"
        GET https://server.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://server.example/mcp", "authorization_servers": ["https://server.example"]}
        GET https://server.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://server.example", "authorization_endpoint": "https://server.example/go", "token_endpoint": "https://server.example/token", "registration_endpoint": "https://server.example/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
        POST https://server.example/register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1", "token_endpoint_auth_method": "none"}
        POST https://server.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=rt-1&client_id=1&resource=https://server.example/mcp
          -> 400 application/json {"error": "invalid_request", "error_description": "refresh token expired"}

    Right::

        modern tools/list
          path https://server.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://server.example/.well-known/oauth-protected-resource/mcp", scope="a"
        GET https://server.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://server.example/mcp", "authorization_servers": ["https://server.example"]}
        GET https://server.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://server.example", "authorization_endpoint": "https://server.example/go", "token_endpoint": "https://server.example/token", "registration_endpoint": "https://server.example/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
        POST https://server.example/register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1", "token_endpoint_auth_method": "none"}
        POST https://server.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=rt-1&client_id=1&resource=https://server.example/mcp
          -> 400 application/json {"error": "invalid_grant", "error_description": "refresh token expired"}
    """
    step = step_of(exchange, "token")
    use = step.call.refresh_use if step is not None and step.call is not None else None
    if step is None or step.call is None or use is None or step.flow not in use.refusals or step.call.error == "invalid_grant":
        return
    words, error = words_of_refusal(exchange), step.call.error
    dead = words is not None and _DEAD.search(words.text) is not None
    if not dead and (error in _OF_THE_CLIENT or use.refusals.index(step.flow) + 1 < MOST_REFUSED):
        return
    said = f"the error {one_line(error, 60)}" if error else f"HTTP {exchange.status} and no OAuth error"
    yield Finding(
        f"the refresh token is refused with {said}, not with invalid_grant",
        [evidence("response.body:/error", error, "invalid_grant")] + ([Evidence(words.where, words.quote)] if words else []),
    )


MOST_REFUSED = 3
_OF_THE_CLIENT = frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target"})
_DEAD = re.compile(
    r"refresh[ _-]?token.{0,60}\b(?:invalid|expired|revoked|unknown|used|reuse\w*|not (?:found|valid|known)|no longer|does not exist)"
    r"|\b(?:invalid|expired|revoked|unknown|no such|bad)\b.{0,40}refresh[ _-]?token|\btoken (?:has |was |is )?(?:been )?(?:expired|revoked)",
    re.I | re.S,
)
