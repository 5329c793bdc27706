"""OAU: who the client is: registration, client metadata documents, what is bound to one authorization server."""

from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.authorization import AuthorizationFlow, Registration, Step, Token, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata
from mcp_wiretap.trace.authorization.steps import AUTHORIZATION_FLOWS, NEVER_ASKED, RESOURCE_METADATA, STEP, TOKEN
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.refusals.words import words_of as words_of_refusal
from mcp_wiretap_rules.oauth import (
    ALL,
    AUTH,
    LATE,
    NEWEST,
    OAUTH,
    REGISTRATION,
    SECURITY,
    ask_of,
    call_of,
    holds,
    place_of,
    redirect_kind,
    same_issuer,
    same_redirect,
    short,
    step_of,
    tidy,
    words_of,
)


@rule(
    "OAU015",
    "dcr-application-type",
    "application_type missing or wrong in registration",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{REGISTRATION}#application-type-and-redirect-uri-constraints",
    sep="837",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def application_type(exchange: Exchange) -> Iterator[Finding]:
    """A client that registers says its `application_type`: `native` for what runs on the user's machine and is called back on
    localhost or by a scheme of its own, `web` for what is served from elsewhere.

    Why: without it OpenID servers take it for `web`, and refuse localhost.

    Fix: send `"application_type": "native"` with loopback redirects, `"web"` with https ones.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"]}
          -> 201 application/json {"client_id": "1"}

    Right::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "1"}
    """
    step = step_of(exchange, "registration")
    if step is None or step.client is None or step.part_of is None or exchange.status in (404, 405):
        return  # where there is no registration endpoint its content does not matter
    flow, sent, where = step.part_of, step.client.sent, "request.body:/application_type"
    older = flow.revision is not None and not holds(step, NEWEST)
    if older and sent.application_type is not None:
        return
    if sent.application_type is None:
        challenge = flow.challenge.challenge if flow.challenge is not None else None
        sure = challenge is not None and challenge.modern and flow.sure
        message = "the registration has no application_type"
        yield Finding(message, [evidence(where, None, "native or web")], severity=None if sure else "info")
        return
    kinds = {redirect_kind(uri) for uri in sent.redirect_uris or ()}
    if sent.application_type == "web" and kinds and kinds <= {"loopback", "private"}:
        message = "application_type is web, all redirects are on the user's machine"
        yield Finding(message, [evidence(where, "web", "native")], severity="warning")
    elif sent.application_type == "native" and "https" in kinds:
        message = "application_type is native, a redirect goes to a remote https address"
        yield Finding(message, [evidence(where, "native", "web")], severity="warning")


@rule(
    "OAU016",
    "dcr-deprecated",
    "Dynamic registration used",
    on="exchange",
    level="should",
    party="client",
    era="modern",
    severity="info",
    spec=f"{REGISTRATION}#dynamic-client-registration",
    sep="991",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def registration_deprecated(exchange: Exchange) -> Iterator[Finding]:
    """Dynamic registration is deprecated: a client is known by the https URL of its own metadata document, where the server supports
    that.

    Why: servers pile up registrations of the same program, and none of them says who is behind it.

    Fix: host a client metadata document and use its URL as client_id.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "1"}

    Right::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=https://app.example/client.json&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    step = step_of(exchange, "registration")
    if step is None or step.client is None or not holds(step, NEWEST):
        return
    server = step.server_of
    supported = server is not None and any(d.cimd_supported for d in server.documents)
    more = ", though the server takes client metadata documents" if supported else ""
    yield Finding(
        f"the client registers dynamically, which is deprecated{more}",
        [evidence("request.body:/client_name", step.client.sent.client_name, "a client metadata document")],
        once=f"{server.identifier if server is not None else exchange.url} {step.client.sent.client_name}",
    )


@rule(
    "OAU017",
    "cimd-valid",
    "Client metadata document invalid",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{REGISTRATION}#client-id-metadata-documents",
    sep="991",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def client_document(exchange: Exchange) -> Iterator[Finding]:
    """A client id that is a URL is an https URL with a path and without fragment; the document there has the same `client_id`,
    `client_name` and `redirect_uris`. It is used with servers that announce it.

    Why: the server fetches that document to know whom it deals with.

    Fix: serve the document at exactly the URL that it names.

    Wrong::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=http://app.example/client.json&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=https://app.example/client.json&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    fetched = step_of(exchange, "client-metadata")
    if fetched is not None:
        if fetched.client is not None and holds(fetched, LATE):
            yield from _document(fetched, fetched.client)
        return
    found = ask_of(exchange, LATE)
    if found is None:
        return
    _, ask = found
    if ask.client_id is None or not ask.client_id.startswith(("https://", "http://")):
        return
    url, where = urls.split(ask.client_id), place_of(exchange, "client_id")
    if url is None or url.scheme != "https" or url.path == "/" or url.fragment is not None:
        message = f"client_id {short(ask.client_id)} is no https URL with a path and without fragment"
        yield Finding(message, [evidence(where, ask.client_id, "https://.../...")], once=ask.client_id)
    elif ask.server is not None and ask.metadata is not None and not any(d.cimd_supported for d in ask.server.documents):
        message = "client_id is a URL, the server does not announce client metadata documents"
        proof = [evidence(where, ask.client_id, "client_id_metadata_document_supported in the server's metadata")]
        yield Finding(message, proof, severity="warning", once=ask.client_id)


def _document(step: Step, client: Registration) -> Iterator[Finding]:
    sent, asked = client.sent, step.ask
    wanted = asked.client_id if asked is not None else None
    if sent.client_id != wanted:
        message = f"the document names client_id {short(sent.client_id)}, its URL is {short(wanted)}"
        yield Finding(message, [evidence("response.body:/client_id", sent.client_id, wanted)])
    if sent.client_name is None:
        yield Finding("the client metadata document has no client_name", [evidence("response.body:/client_name", None, "a name")])
    at = "response.body:/redirect_uris"
    if not sent.redirect_uris:
        yield Finding("the client metadata document has no redirect_uris", [evidence(at, None, "a list")])
    elif asked is not None and asked.redirect_uri and not any(same_redirect(asked.redirect_uri, u) for u in sent.redirect_uris):
        message = f"the client metadata document does not list the redirect_uri {short(asked.redirect_uri)} that is used"
        yield Finding(message, [evidence(at, list(sent.redirect_uris)[:10], asked.redirect_uri)], related=(asked.flow,))


@rule(
    "OAU018",
    "refresh-grant-type",
    "Refresh tokens wanted, but not registered for",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{AUTH}#refresh-tokens",
    sep="2207",
    versions=NEWEST,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def refresh_grant(exchange: Exchange) -> Iterator[Finding]:
    """A client that wants refresh tokens has `refresh_token` among the `grant_types` that it registers, and asks for offline_access
    only where the server lists it.

    Why: servers give refresh tokens to those only who said that they use them.

    Fix: register `"grant_types": ["authorization_code", "refresh_token"]`.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "1"}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=abc&client_id=1&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer", "refresh_token": "def"}

    Right::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native", "grant_types": ["authorization_code", "refresh_token"]}
          -> 201 application/json {"client_id": "1"}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=refresh_token&refresh_token=abc&client_id=1&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer", "refresh_token": "def"}
    """
    asked, called = ask_of(exchange, NEWEST), call_of(exchange, NEWEST, "refresh_token")
    registration = None
    if called is not None:
        registration, where, what = called[1].registration, "request.form:grant_type", "refresh_token"
    elif asked is not None and "offline_access" in (asked[1].scopes or ()):
        registration, where, what = asked[1].registration, place_of(exchange, "scope"), "offline_access"
        document = asked[1].metadata
        if document is not None and document.scopes is not None and "offline_access" not in document.scopes:
            message = "the client asks for offline_access, which the server's scopes_supported does not list"
            yield Finding(message, [evidence(where, words_of(asked[1].scopes or ()), words_of(document.scopes))], once="scope")
    if registration is None:
        return
    grants = registration.sent.grant_types or ("authorization_code",)
    given = registration.given.grant_types if registration.given is not None else None
    if "refresh_token" not in grants and "refresh_token" not in (given or ()):
        yield Finding(
            f"the client uses {what}, it registered grant types {words_of(grants)}",
            [evidence(where, what, "refresh_token among the registered grant_types")],
            related=(registration.flow,),
        )


@rule(
    "OAU026",
    "credentials-cross-issuer",
    "Credentials reused with another authorization server",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{REGISTRATION}#authorization-server-binding",
    sep="2352",
    versions=NEWEST,
    always=True,
    kinds=("oauth", "mcp"),
    needs=(STEP, TOKEN),
    transport=("http",),
)
def credentials_elsewhere(exchange: Exchange) -> Iterator[Finding]:
    """What one authorization server gave, a client id or a token, is never used with another one. When the server behind a resource
    changes, the client registers anew.

    Why: client ids are only unique where they were made, and a token shown to strangers is a token lost.

    Fix: key stored credentials by the issuer.

    Wrong::

        modern tools/list
          -> 401
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://one.example", "https://two.example"]}
        GET https://one.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://one.example", "authorization_endpoint": "https://one.example/go", "token_endpoint": "https://one.example/token", "registration_endpoint": "https://one.example/register", "code_challenge_methods_supported": ["S256"]}
        GET https://two.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://two.example", "authorization_endpoint": "https://two.example/go", "token_endpoint": "https://two.example/token", "code_challenge_methods_supported": ["S256"]}
        POST https://one.example/register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "id-of-one"}
        GET https://two.example/go?response_type=code&client_id=id-of-one&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://one.example", "https://two.example"]}
        GET https://one.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://one.example", "authorization_endpoint": "https://one.example/go", "token_endpoint": "https://one.example/token", "registration_endpoint": "https://one.example/register", "code_challenge_methods_supported": ["S256"]}
        POST https://one.example/register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "id-of-one"}
        GET https://one.example/go?response_type=code&client_id=id-of-one&state=s&redirect_uri=http://127.0.0.1:9/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    if exchange.kind == "mcp":
        yield from _token_elsewhere(exchange)
        return
    asked, called = ask_of(exchange, NEWEST), call_of(exchange, NEWEST)
    if asked is not None:
        registration, server, client_id = asked[1].registration, asked[1].server, asked[1].client_id
    elif called is not None:
        registration, server, client_id = called[1].registration, called[1].server, called[1].client_id
    else:
        return
    if registration is None or registration.document or server is None or registration.server is None or client_id is None:
        return
    if client_id.startswith("https://") or same_issuer(registration.server.issuer, server.issuer):
        return
    yield Finding(
        f"client_id {short(client_id)} was given by {short(registration.server.issuer)}, it is used with {short(server.issuer)}",
        [evidence(place_of(exchange, "client_id"), client_id, "a registration with this server")],
        related=(registration.flow,),
        once=f"{client_id} {server.issuer}",
    )


def _token_elsewhere(exchange: Exchange) -> Iterator[Finding]:
    token: Token | None = exchange.facts.get(TOKEN)
    if token is None or token.server is None or token.part_of is None or token.shared:
        return
    if token.part_of.endpoint is exchange.endpoint:  # the server behind the resource may have changed
        newest: ResourceMetadata | None = exchange.endpoint.facts.get(RESOURCE_METADATA)
        listed = set(newest.servers) if newest is not None else set()
    else:
        flows: list[AuthorizationFlow] = exchange.endpoint.facts.get(AUTHORIZATION_FLOWS) or []
        listed = {server for f in flows if f.metadata is not None for server in f.metadata.servers}
    if not listed or any(same_issuer(server, token.server.issuer) for server in listed):
        return
    if exchange.claim.revision not in NEWEST:
        return
    yield Finding(
        f"a token of {short(token.server.issuer)} is sent to {short(exchange.endpoint.url)}, which lists {short(min(listed))}",
        [Evidence("request.header:Authorization", token.mask, "a token of its own authorization server")],
        related=(token.issued[-1].flow,),
        once=token.mask,
    )


@rule(
    "OAU030",
    "token-endpoint-auth-method",
    "Client authentication is not the registered one",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{REGISTRATION}#pre-registration",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def auth_method(exchange: Exchange) -> Iterator[Finding]:
    """A client shows who it is at the token endpoint by the method that it is registered with, and that the server supports.

    Why: a server that expects the secret elsewhere refuses the request.

    Fix: use `token_endpoint_auth_method` of the registration response.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "1", "client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=1&client_secret=s&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 401

    Right::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "1", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}
        POST /token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=1&client_secret=s&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    found = call_of(exchange)
    if found is None:
        return
    call = found[1]
    registration = call.registration
    if registration is not None and registration.document:
        wanted = registration.sent.auth_method
    else:
        wanted = registration.given.auth_method if registration is not None and registration.given is not None else None
    used, where = call.auth_method, "request.form:client_id"
    supported = call.metadata.auth_methods if call.metadata is not None else None
    if wanted is not None and registration is not None and used != wanted:
        message = f"the client uses {used}, it is registered with {short(wanted)}"
        yield Finding(message, [evidence(where, used, wanted)], related=(registration.flow,), once=f"{call.client_id} registered")
    elif wanted is None and registration is not None and supported is None and used != "client_secret_basic":
        message = f"the client uses {used}; neither its registration nor the server says more than the default"
        proof = [evidence(where, used, "client_secret_basic, the default")]
        yield Finding(message, proof, severity="info", related=(registration.flow,), once=f"{call.client_id} default")
    elif supported is not None and used not in supported:
        message = f"the client uses {used}, the server supports {words_of(supported)}"
        severity: Severity | None = "info" if wanted is not None else None  # the server agreed to it at the registration
        yield Finding(message, [evidence(where, used, words_of(supported))], severity, once=f"{call.client_id} supported")


@rule(
    "OAU036",
    "redirect-uri-not-registered",
    "redirect_uri was not registered",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{SECURITY}#open-redirection",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def redirect_not_registered(exchange: Exchange) -> Iterator[Finding]:
    """`redirect_uri` is one of those that the client registered, character for character; on localhost the port may differ. The token
    request repeats the one of the authorization request. The server redirects to no other.

    Why: an open redirect hands codes to strangers.

    Fix: register each redirect URI, and use exactly that.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["https://app.example/cb"], "application_type": "web"}
          -> 201 application/json {"client_id": "1", "redirect_uris": ["https://app.example/cb"]}
        GET /authorize?response_type=code&client_id=1&state=s&redirect_uri=https://app.example/other&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 400

    Right::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["https://app.example/cb"], "application_type": "web"}
          -> 201 application/json {"client_id": "1", "redirect_uris": ["https://app.example/cb"]}
        GET /authorize?response_type=code&client_id=1&state=s&redirect_uri=https://app.example/cb&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    step = step_of(exchange, "authorize", "login", "token")
    if step is None or not holds(step, ALL):
        return
    if step.redirect is not None and not step.redirect.registered and step.ask is not None:
        yield Finding(
            f"the server redirects to {short(step.redirect.to)}, the request names {short(step.ask.redirect_uri)}",
            [evidence("response.header:Location", step.redirect.to, step.ask.redirect_uri)],
            severity="warning",
            party="server",
            related=(step.ask.flow,),
        )
    if step.call is not None:
        ask, uri = step.call.ask, step.call.redirect_uri
        if ask is not None and uri is not None and ask.redirect_uri is not None and uri != ask.redirect_uri:
            message = f"the code is redeemed with redirect_uri {short(uri)}, it was asked for with {short(ask.redirect_uri)}"
            yield Finding(message, [evidence("request.form:redirect_uri", uri, ask.redirect_uri)], related=(ask.flow,))
        return
    found = ask_of(exchange)
    if found is None or found[1].redirect_uri is None or found[1].registration is None:
        return
    ask, registration = found[1], found[1].registration
    given = registration.given.redirect_uris if registration.given is not None else None
    allowed = (*(registration.sent.redirect_uris or ()), *(given or ()))
    if not allowed or (registration.server is not None and ask.server is not None and registration.server is not ask.server):
        return
    if not any(same_redirect(ask.redirect_uri, uri) for uri in allowed):
        yield Finding(
            f"redirect_uri {short(ask.redirect_uri)} is not registered, {short(allowed[0])} is",
            [evidence(place_of(exchange, "redirect_uri"), ask.redirect_uri, list(allowed)[:10])],
            related=(registration.flow,),
        )
        if step.redirect is not None and step.redirect.has_code:
            yield Finding(
                f"the server redirects with a code to {short(step.redirect.to)}, which is not registered",
                [evidence("response.header:Location", step.redirect.to, list(allowed)[:10])],
                severity="warning",
                party="server",
                related=(registration.flow,),
            )


@rule(
    "OAU037",
    "registration-refused",
    "Registration refused",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec="RFC 7591 section 3.2.2",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def registration_refused(exchange: Exchange) -> Iterator[Finding]:
    """A server that names a registration endpoint registers MCP clients, or says what of their metadata it does not take.

    Why: the way to a token ends here, and the user sees a login that never begins.

    Fix: allow loopback redirect URIs and the grants of MCP clients, or offer another way: a client metadata document, or a client
    that is registered beforehand.

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
          -> 400 application/json {"error": "invalid_redirect_uri", "error_description": "only https is allowed"}

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
    """
    step, status = step_of(exchange, "registration"), exchange.status
    if step is None or step.client is None or status is None or not 400 <= status < 500 or status in (404, 405, 408, 429):
        return
    error, words = step.shown.get("error"), words_of_refusal(exchange)
    said = words.quote.strip('"') if words is not None else error or f"HTTP {status}"
    place = [evidence("response.status", status, "201 with a client_id")]
    if step.client.sent.redirect_uris:
        place.append(evidence("request.body:/redirect_uris", list(step.client.sent.redirect_uris[:5])))
    yield Finding(f"registration refused, {said}", place, severity=None if error else "info")


@rule(
    "OAU041",
    "registered-and-never-asked",
    "Registration without an authorization request",
    on="finish",
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec=f"{REGISTRATION}#dynamic-client-registration",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(NEVER_ASKED,),
    transport=("http",),
)
def registered_and_never_asked(exchange: Exchange) -> Iterator[Finding]:
    """After its registration a client sends the user's browser to the authorization endpoint.

    Why: the way to a token ends here: the browser did not open, its traffic does not pass the proxy, or the client gave up.

    Fix: look whether a browser opened, and let its traffic pass the proxy as well.

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
        GET https://server.example/go?response_type=code&client_id=1&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcb&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=https://server.example/mcp
          -> 302
    """
    if exchange.facts.get(NEVER_ASKED):
        text = "registered, but no authorization request came in this trace"
        yield Finding(text, [evidence("request.url", tidy(exchange.url), "an authorization request after it")])
