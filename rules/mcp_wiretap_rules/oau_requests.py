"""OAU: authorization requests and their responses: PKCE, resource, state, iss, scopes."""

from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.authorization import AuthorizationFlow, Step, TokenCall, urls
from mcp_wiretap.trace.authorization.steps import STEP
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap_rules.oauth import (
    ALL,
    AUTH,
    LATE,
    NEWEST,
    OAUTH,
    RESOURCES,
    SECURITY,
    ask_of,
    call_of,
    holds,
    place_of,
    short,
    step_of,
    tidy,
    words_of,
)


@rule(
    "OAU008",
    "pkce-unsupported",
    "PKCE support not announced, client proceeds",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{SECURITY}#authorization-code-protection",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def pkce_unsupported(exchange: Exchange) -> Iterator[Finding]:
    """A client does not ask for authorization where the metadata of the server have no `code_challenge_methods_supported`.

    Why: without PKCE a stolen code is a token; the metadata are the only way to know.

    Fix: stop, and tell the user. Servers: announce S256.

    Wrong::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token"}
        GET /go?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET /go?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    found = ask_of(exchange, LATE)
    if found is None:
        return
    _, ask = found
    document = ask.metadata
    if document is None or document.challenge_methods is not None or ask.server is None:
        return
    if any(d.challenge_methods is not None for d in ask.server.documents):
        return
    yield Finding(
        "the client asks for authorization though the server's metadata do not announce PKCE",
        [evidence("request.url", tidy(exchange.url), "code_challenge_methods_supported in the metadata first")],
        once=document.identifier,
    )


@rule(
    "OAU009",
    "pkce-missing-or-plain",
    "Authorization request without S256",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{SECURITY}#authorization-code-protection",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def pkce_missing(exchange: Exchange) -> Iterator[Finding]:
    """An authorization request has a `code_challenge`, with `code_challenge_method=S256`. Without a method it is `plain`.

    Why: whoever sees the code on its way back could redeem it.

    Fix: hash a fresh verifier with SHA-256 for each request.

    Wrong::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    found = ask_of(exchange)
    if found is None:
        return
    _, ask = found
    if ask.code_challenge is None:
        message = "the authorization request has no code_challenge"
        yield Finding(message, [evidence(place_of(exchange, "code_challenge"), None, "BASE64URL(SHA-256(verifier))")])
    elif ask.challenge_method != "S256":
        method = ask.challenge_method or "plain, since it is absent"
        yield Finding(
            f"code_challenge_method is {short(method)}",
            [evidence(place_of(exchange, "code_challenge_method"), ask.challenge_method, "S256")],
        )


@rule(
    "OAU010",
    "pkce-verifier",
    "Code verifier missing or not matching",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{SECURITY}#authorization-code-protection",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def pkce_verifier(exchange: Exchange) -> Iterator[Finding]:
    """The request that redeems a code has the `code_verifier` whose hash the authorization request carried: 43 to 128 letters, digits
    and `-._~`.

    Why: it proves that the one who redeems is the one who asked.

    Fix: keep the verifier with the state, and send the same one.

    Wrong::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}

    Right::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    found = call_of(exchange, ALL, "authorization_code")
    if found is None:
        return
    _, call = found
    where = "request.form:code_verifier"
    if call.verifier == "":
        if call.ask is None or call.ask.code_challenge is not None:  # else OAU009 has said it
            yield Finding(
                "the code is redeemed without code_verifier", [Evidence(where, "(absent)", "the verifier of the request")]
            )
    elif call.verifier in ("wrong", "other"):
        assert call.ask is not None
        yield Finding(
            "code_verifier is not that of the authorization request",
            [Evidence(where, "(hash differs)", f"a verifier whose hash is {short(call.ask.code_challenge)}")],
            severity="info" if call.verifier == "other" else None,  # it may be that of an attempt in another browser
            related=(call.ask.flow,),
        )
    elif call.verifier_form:
        message = f"code_verifier {call.verifier_form}"
        yield Finding(message, [Evidence(where, call.verifier_form, "43 to 128 of A-Z a-z 0-9 - . _ ~")])


@rule(
    "OAU011",
    "resource-indicator",
    "resource parameter missing or wrong",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{AUTH}#resource-parameter-implementation",
    versions=RESOURCES,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def resource_indicator(exchange: Exchange) -> Iterator[Finding]:
    """Authorization and token requests carry `resource`: the URL of the MCP server that the token is for, the same in both, whatever
    the authorization server supports.

    Why: a token that is not bound to one server can be used at all of them.

    Fix: send the canonical URL of the endpoint, or `resource` of its metadata.

    Wrong::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET /go?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256
          -> 302

    Right::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET /go?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    asked = ask_of(exchange, RESOURCES)
    called = call_of(exchange, RESOURCES, "authorization_code", "refresh_token", "client_credentials")
    if asked is None and called is None:
        return
    step, resources = (asked[0], asked[1].resources) if asked is not None else (called[0], called[1].resources)  # type: ignore[index]
    flow = step.part_of
    assert flow is not None
    where = place_of(exchange, "resource")
    what = "the authorization request" if asked is not None else f"the {_grant(called)} request"
    if step.target == "none":
        message = f"{what} has no resource"
        yield Finding(message, [evidence(where, None, tidy(flow.endpoint.url))], severity=None if _must_name(flow) else "info")
        return
    if step.target == "invalid":
        bad = next((r for r in resources if (u := urls.split(r)) is None or u.fragment is not None), "")
        yield Finding(
            f"resource {short(bad)} is no absolute URL without fragment", [evidence(where, bad, tidy(flow.endpoint.url))]
        )
    elif step.target == "other":
        message = f"resource is {short(resources[0])}, the endpoint is {short(flow.endpoint.url)}"
        yield Finding(
            message, [evidence(where, resources[0], tidy(flow.endpoint.url))], severity=None if flow.sure else "warning"
        )
    if called is not None and (ask := called[1].ask) is not None and ask.resources:
        allowed = {urls.canonical(r) for r in ask.resources}
        other = next((r for r in resources if urls.canonical(r) not in allowed), None)
        if other is not None:
            message = f"the code is redeemed for {short(other)}, it was asked for {short(ask.resources[0])}"
            yield Finding(message, [evidence(where, other, ask.resources[0])], related=(ask.flow,))


def _grant(called: tuple[Step, TokenCall] | None) -> str:
    return called[1].grant if called is not None else ""


def _must_name(flow: AuthorizationFlow) -> bool:
    """Whether the client knows that the server is one of a revision with resource indicators: it has read resource metadata, or has
    declared the modern era. A first `initialize` declares a revision that is still open to negotiation."""
    challenge = flow.challenge.challenge if flow.challenge is not None else None
    return flow.metadata is not None or (challenge is not None and challenge.modern)


@rule(
    "OAU012",
    "state-missing",
    "No state parameter",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{SECURITY}#open-redirection",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def state_missing(exchange: Exchange) -> Iterator[Finding]:
    """An authorization request has a fresh `state`, and a response with another one is thrown away.

    Why: somebody else's code could be slipped into the user's session.

    Fix: send an unguessable state, and redeem no code that comes back without it.

    Wrong::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=c&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    asked = ask_of(exchange)
    if asked is not None:
        if not asked[1].has_state:
            message = "the authorization request has no state"
            yield Finding(message, [evidence(place_of(exchange, "state"), None, "an unguessable value")])
        return
    called = call_of(exchange, ALL, "authorization_code")
    if called is not None and (redirect := called[1].redirect) is not None and redirect.same_state is False:
        yield Finding(
            "the client redeems a code that came back with another state than it had sent",
            [Evidence("request.form:code", "(redeemed)", "the response is thrown away")],
            related=(redirect.flow,),
        )


@rule(
    "OAU013",
    "iss-validation",
    "Code redeemed though iss is wrong or missing",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{AUTH}#authorization-response-validation",
    sep="2468",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def iss_validation(exchange: Exchange) -> Iterator[Finding]:
    """Before it redeems a code the client compares `iss` of the response with the issuer it had recorded, character for character.
    A response without iss is refused where the server's metadata announce it.

    Why: a code of one authorization server would otherwise be sent to another one (mix-up).

    Fix: compare, and stop where they differ.

    Wrong::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true}
        GET /go?response_type=code&client_id=c&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s&iss=https%3A%2F%2Fevil.example
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&redirect_uri=http://127.0.0.1:9/cb&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}

    Right::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true}
        GET /go?response_type=code&client_id=c&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s&iss=http%3A%2F%2Fserver.example
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&redirect_uri=http://127.0.0.1:9/cb&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    found = call_of(exchange, NEWEST, "authorization_code")
    if found is None:
        return
    _, call = found
    redirect, document = call.redirect, call.ask.metadata if call.ask is not None else None
    if redirect is None or document is None or document.issuer is None:
        return
    if redirect.iss is None:
        if not document.iss_supported:
            return
        message = "the client redeems a code that came without iss, which the server announces"
    elif redirect.iss != document.issuer:
        message = (
            f"the client redeems a code that came from {short(redirect.iss)}, the recorded issuer is {short(document.issuer)}"
        )
    else:
        return
    yield Finding(
        message,
        [Evidence("request.form:code", "(redeemed)", "refused: iss of the response is not the recorded issuer")],
        related=(redirect.flow,),
    )


@rule(
    "OAU014",
    "iss-not-advertised",
    "iss in the response and in the metadata do not agree",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="info",
    spec=f"{AUTH}#authorization-response-validation",
    sep="2468",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def iss_not_advertised(exchange: Exchange) -> Iterator[Finding]:
    """An authorization server puts `iss` into its responses, and announces that with
    `authorization_response_iss_parameter_supported`.

    Why: a client can refuse a response without iss only where it knows that there should be one.

    Fix: do both.

    Wrong::

        modern tools/list
          path https://server.example/mcp
          -> 401
        GET https://server.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://server.example", "authorization_endpoint": "https://server.example/go", "token_endpoint": "https://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET https://server.example/go?response_type=code&client_id=c&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=https://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s&iss=https%3A%2F%2Fserver.example

    Right::

        modern tools/list
          path https://server.example/mcp
          -> 401
        GET https://server.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://server.example", "authorization_endpoint": "https://server.example/go", "token_endpoint": "https://server.example/token", "code_challenge_methods_supported": ["S256"], "authorization_response_iss_parameter_supported": true}
        GET https://server.example/go?response_type=code&client_id=c&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=https://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s&iss=https%3A%2F%2Fserver.example
    """
    step = step_of(exchange, "authorize", "login")
    if step is None or step.redirect is None or step.ask is None or step.ask.metadata is None or not holds(step, NEWEST):
        return
    given, announced = step.redirect.iss is not None, step.ask.metadata.iss_supported
    if given and announced:
        return
    if given:
        message = "the response has iss, the metadata do not announce it"
    elif announced:
        message = "the metadata announce iss, the response has none"
    else:
        message = "the authorization response has no iss"
    yield Finding(message, [evidence("response.header:Location", _where_to(exchange), "iss, and announced")], once=message)


def _where_to(exchange: Exchange) -> str:
    """A Location without its query, which holds the code."""
    fields = exchange.response_fields
    return ((fields.first("location") if fields is not None else None) or "").partition("?")[0]


@rule(
    "OAU019",
    "scope-selection",
    "Initial scopes not those of the challenge",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{AUTH}#scope-selection-strategy",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def scope_selection(exchange: Exchange) -> Iterator[Finding]:
    """The first authorization request asks for the scopes that the challenge names; without those for all in `scopes_supported` of the
    resource metadata; without those for none in particular.

    Why: less fails at once, more is more power than the work needs.

    Fix: take `scope` of WWW-Authenticate as it stands; add offline_access only where the authorization server lists it.

    Wrong::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer scope="files:read"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&scope=profile&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer scope="files:read"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&scope=files:read&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    found = ask_of(exchange, LATE)
    if found is None or found[1].initial is None or found[0].part_of is None or not found[0].part_of.sure:
        return
    step, ask = found
    challenge, metadata = ask.initial, step.part_of.metadata if step.part_of is not None else None
    assert challenge is not None
    if challenge.status != 401:
        return
    named = challenge.scopes or None
    wanted = named or (metadata.scopes if metadata is not None else None) or ()
    have = ask.scopes or ()
    missing = tuple(s for s in wanted if s not in have)
    source = "the challenge names" if named else "the resource metadata list"
    where = place_of(exchange, "scope")
    if missing:
        message = f"the client asks for {words_of(have)}, {source} {words_of(wanted)}"
        yield Finding(message, [evidence(where, words_of(have), words_of(wanted))])
        return
    known = ask.metadata.scopes if ask.metadata is not None else None
    listed = known or ()
    more = tuple(s for s in have if s not in wanted and not (s == "offline_access" and s in listed))
    unlisted = more == ("offline_access",) and bool(wanted) and known is not None  # others may be the user's wish
    if more and (wanted or metadata is not None):
        message = f"the client asks for {words_of(more)} besides what {source}"
        yield Finding(message, [evidence(where, words_of(have), words_of(wanted))], severity=None if unlisted else "info")


@rule(
    "OAU020",
    "step-up-union",
    "Step-up drops earlier scopes",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{AUTH}#step-up-authorization-flow",
    sep="2350",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def step_up_union(exchange: Exchange) -> Iterator[Finding]:
    """After a refusal for lack of scope the client asks for the union: the scopes that it had asked for, and those of the challenge.

    Why: the new token replaces the old one; what it lacks is refused next, and the user is asked again and again.

    Fix: keep the scopes asked for with each token, and add those of the challenge.

    Wrong::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer scope="read"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&scope=read&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&redirect_uri=http://127.0.0.1:9/cb&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "alice", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client alice
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=t&scope=write&redirect_uri=http://127.0.0.1:9/cb&code_challenge=jjyefDjX1U8XjX0qWX7yIlkUlO4t9UHSQ6JCZMxFStA&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer scope="read"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&scope=read&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&redirect_uri=http://127.0.0.1:9/cb&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "alice", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client alice
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=t&scope=read+write&redirect_uri=http://127.0.0.1:9/cb&code_challenge=jjyefDjX1U8XjX0qWX7yIlkUlO4t9UHSQ6JCZMxFStA&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    found = ask_of(exchange, NEWEST)
    if found is None or found[1].step_up is None or not found[1].step_up.missing:
        return
    ask, up = found[1], found[1].step_up
    union = tuple(dict.fromkeys((*up.before, *up.challenged)))
    yield Finding(
        f"the step-up asks for {words_of(ask.scopes or ())} and drops {words_of(up.missing)}",
        [evidence(place_of(exchange, "scope"), words_of(ask.scopes or ()), words_of(union))],
        severity=None if up.sure else "info",
        related=(up.flow,),
    )


@rule(
    "OAU035",
    "code-sent-before-validation",
    "Authorization code sent to a foreign token endpoint",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec=f"{SECURITY}#mix-up-attacks",
    sep="2468",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def code_elsewhere(exchange: Exchange) -> Iterator[Finding]:
    """A code is redeemed at the token endpoint of the server that issued it.

    Why: that is what a mix-up attack wants: the code of an honest server, sent to another one.

    Fix: keep the token endpoint with the state, and check iss.

    Wrong::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET /go?response_type=code&client_id=c&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s
        POST https://evil.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&redirect_uri=http://127.0.0.1:9/cb&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}

    Right::

        modern tools/list
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/go", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET /go?response_type=code&client_id=c&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=abc&state=s
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&redirect_uri=http://127.0.0.1:9/cb&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    found = call_of(exchange, LATE, "authorization_code")
    if found is None or not found[1].code_elsewhere:
        return
    call = found[1]
    yield Finding(
        f"the code is sent to {short(exchange.url)}, the server that issued it has {short(call.code_elsewhere)}",
        [evidence("request.url", tidy(exchange.url), call.code_elsewhere)],
        related=(call.ask.flow,) if call.ask is not None else (),
    )
