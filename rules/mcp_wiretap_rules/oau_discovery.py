"""OAU: how a client finds the authorization server: metadata of the resource and of the server."""

from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, Severity, Unchecked, evidence, rule
from mcp_wiretap.trace.authorization import AuthorizationFlow, Step, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata, ServerMetadata
from mcp_wiretap.trace.authorization.steps import STEP
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules.oauth import (
    ALL,
    AUTH,
    DISCOVERY,
    LATE,
    NEWEST,
    OAUTH,
    RESOURCES,
    SECURITY,
    ask_of,
    goes_on,
    holds,
    path_of,
    place_of,
    redirect_kind,
    short,
    step_of,
    tidy,
)


@rule(
    "OAU003",
    "prm-order",
    "Resource metadata looked for in the wrong order",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec=f"{DISCOVERY}#protected-resource-metadata-discovery-requirements",
    sep="985",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def resource_metadata_order(exchange: Exchange) -> Iterator[Finding]:
    """A client asks for the resource metadata where the challenge says they are; only without that, at the well-known place with the
    path of the endpoint, and then at the root.

    Why: the root may describe another resource of the same host, with another authorization server.

    Fix: parse `resource_metadata` of WWW-Authenticate first; then try the path form, then the root form.

    Wrong::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer scope="read"
        GET /.well-known/oauth-protected-resource
          -> 404

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer scope="read"
        GET /.well-known/oauth-protected-resource/mcp
          -> 404
        GET /.well-known/oauth-protected-resource
          -> 404
    """
    step = step_of(exchange, "resource-metadata")
    if step is None or step.resource is None or step.part_of is None or not step.part_of.sure or not holds(step, LATE):
        return
    found = step.resource
    if not found.challenged:
        return
    if found.named is not None:
        if found.form != "named" and not found.named_before and not _at_home(found):
            asked, named = path_of(found.url), path_of(found.named)
            if urls.origin(found.url) != urls.origin(found.named):
                asked, named = tidy(found.url), tidy(found.named)
            yield Finding(
                f"the client asked for {short(asked)}, the challenge names {short(named)}",
                [Evidence("request.url", one_line(tidy(found.url), 200), one_line(tidy(found.named), 200))],
            )
    elif found.form == "root" and found.path_form is not None and not found.path_before:
        yield Finding(
            f"the client asked at the root before {short(path_of(found.path_form))}",
            [Evidence("request.url", one_line(tidy(found.url), 200), one_line(tidy(found.path_form), 200))],
        )


def _at_home(found: ResourceMetadata) -> bool:
    """Whether the challenge names a place at another origin, and the client asked for the same place at that of the endpoint: then
    it is the challenge that is wrong."""
    one, two = urls.split(found.url), urls.split(found.named)
    return one is not None and two is not None and one.origin != two.origin and one.path == two.path


@rule(
    "OAU004",
    "prm-content",
    "Resource metadata invalid",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{DISCOVERY}#authorization-server-location",
    sep="985",
    versions=RESOURCES,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def resource_metadata_content(exchange: Exchange) -> Iterator[Finding | Unchecked]:
    """Metadata of a protected resource are a JSON object with `resource` and at least one URL in `authorization_servers`;
    `scopes_supported` has no offline_access.

    Why: they are how a client finds out where to get a token, and for what.

    Fix: serve `{"resource": "https://...", "authorization_servers": ["https://..."]}`.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": []}

    Right::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example"]}
    """
    step = step_of(exchange, "resource-metadata")
    if step is None or step.resource is None or exchange.status != 200 or not holds(step, RESOURCES):
        return
    reading, where = exchange.answer_reading, "response.body"
    if reading is None:
        if exchange.http_method != "HEAD":
            yield Unchecked("resource metadata", "the response body was not recorded")
        return
    if not step.resource.read:
        # A page that answers 200 for any path is a failed probe; where the challenge sent the client it is a fault.
        content_type = exchange.response_fields.first("content-type") if exchange.response_fields is not None else None
        meant = step.resource.form == "named" or "json" in (content_type or "").lower()
        severity: Severity | None = None if meant else "info"
        message = "the resource metadata are no JSON object"
        yield Finding(message, [evidence("response.header:Content-Type", content_type, "application/json")], severity=severity)
        return
    if step.resource.form not in ("named", "path") and step.resource.relation in ("other-path", "other-origin"):
        return  # the root describes another resource of this host
    value = reading.value
    if not isinstance(value.get("resource"), str):
        yield Finding("the resource metadata have no resource", [evidence(f"{where}:/resource", value.get("resource"), "a URL")])
    servers = value.get("authorization_servers")
    at = f"{where}:/authorization_servers"
    if not isinstance(servers, list) or not servers:
        message = "the resource metadata list no authorization server"
        yield Finding(message, [evidence(at, servers, "a list with one issuer URL at least")])
    else:
        for index, server in enumerate(servers[:20]):
            url = urls.split(server) if isinstance(server, str) else None
            if url is None or url.fragment is not None or url.query:
                message = f"authorization server {short(str(server))} is no issuer URL"
                yield Finding(message, [evidence(f"{at}/{index}", server, "a URL without query and fragment")])
    if "offline_access" in (step.resource.scopes or ()) and holds(step, NEWEST):
        yield Finding(
            "scopes_supported of the resource lists offline_access",
            [evidence(f"{where}:/scopes_supported", list(step.resource.scopes or ()), "no offline_access")],
            severity="warning",
        )


@rule(
    "OAU005",
    "prm-resource-mismatch",
    "Resource metadata of another resource",
    on="exchange",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{AUTH}#canonical-server-uri",
    sep="985",
    versions=RESOURCES,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def resource_mismatch(exchange: Exchange) -> Iterator[Finding]:
    """`resource` in the metadata is the URL of the MCP endpoint, or a parent of it at the same origin. A client goes no further with
    metadata of another resource.

    Why: a server could otherwise have tokens for somebody else's resource sent to itself.

    Fix: let the server name its own URL; let the client compare before it asks for authorization.

    Wrong::

        modern tools/list
          path https://mcp.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp", scope="a"
        GET https://mcp.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://bank.example/", "authorization_servers": ["https://auth.example"]}

    Right::

        modern tools/list
          path https://mcp.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp", scope="a"
        GET https://mcp.example/.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "https://mcp.example/mcp", "authorization_servers": ["https://auth.example"]}
    """
    step = step_of(exchange, "resource-metadata", "authorize", "token")
    if step is None or step.part_of is None or not holds(step, RESOURCES):
        return
    flow = step.part_of
    if step.kind != "resource-metadata":
        yield from _asked_all_the_same(exchange, step, flow)
        return
    found = step.resource
    if found is None or not found.read or found.resource is None or found.relation in ("equal", ""):
        return
    if found.relation == "parent":
        yield from _other_than_asked_for(found)
        return
    endpoint = flow.endpoint.url
    proof = [evidence("response.body:/resource", found.resource, tidy(endpoint))]
    if found.relation == "slash":
        message = f"resource {short(found.resource)} differs from the endpoint by a slash at the end"
        yield Finding(message, proof, severity="info", party="server")
        return
    message = f"resource is {short(found.resource)}, the endpoint is {short(endpoint)}"
    yield Finding(message, proof, severity="warning" if found.origin_known else "info", party="server")


def _other_than_asked_for(found: ResourceMetadata) -> Iterator[Finding]:
    """At the place that has a path in it the document is that of the URL with this path. At the root it may be a parent's."""
    asked, named = urls.split(found.url), urls.split(found.resource)
    path = asked.path.removeprefix(urls.RESOURCE) if asked is not None else ""
    if asked is None or named is None or path in ("", "/", asked.path) or named.path.rstrip("/") == path.rstrip("/"):
        return
    yield Finding(
        f"resource is {short(found.resource)} in the metadata of {short(path)}: clients refuse a document of another resource",
        [evidence("response.body:/resource", found.resource, f"the URL of the endpoint, with {path}")],
        severity="warning",
        party="server",
    )


def _asked_all_the_same(exchange: Exchange, step: Step, flow: AuthorizationFlow) -> Iterator[Finding]:
    found = flow.metadata
    if found is None or not found.origin_known or found.relation not in ("other-origin", "other-path") or not flow.sure:
        return
    if goes_on(step, flow):
        yield Finding(
            f"the client goes on with metadata of {short(found.resource)}, the endpoint is {short(flow.endpoint.url)}",
            [evidence("request.url", tidy(exchange.url), f"no {'authorization' if step.ask is not None else 'token'} request")],
            party="client",
        )


@rule(
    "OAU006",
    "as-metadata-order",
    "Server metadata looked for in the wrong order",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec=f"{DISCOVERY}#authorization-server-metadata-discovery",
    sep="2351",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def server_metadata_order(exchange: Exchange) -> Iterator[Finding]:
    """A client looks for the metadata of an authorization server at the well-known places that are made from its issuer, in order:
    oauth-authorization-server, then openid-configuration, with the path of the issuer inserted; then openid-configuration appended.

    Why: one host may serve many issuers; another place may hold the metadata of another one.

    Fix: make the URLs from the issuer in `authorization_servers`, and try them in this order.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example/one"]}
        GET https://auth.example/.well-known/oauth-authorization-server
          -> 404

    Right::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example/one"]}
        GET https://auth.example/.well-known/oauth-authorization-server/one
          -> 404
        GET https://auth.example/.well-known/openid-configuration/one
          -> 404
    """
    step = step_of(exchange, "server-metadata")
    if step is None or step.server is None or not step.server.listed or not holds(step, LATE):
        return
    found = step.server
    forms = urls.issuer_forms(found.identifier)
    if found.index is None:
        yield Finding(
            f"{short(path_of(found.url))} is no place of the metadata of {short(found.identifier)}",
            [Evidence("request.url", one_line(tidy(found.url), 200), one_line(tidy(forms[0]), 200) if forms else None)],
        )
    elif found.skipped:
        yield Finding(
            f"{short(path_of(found.url))} was asked for before {short(path_of(found.skipped[0]))}",
            [Evidence("request.url", one_line(tidy(found.url), 200), one_line(tidy(found.skipped[0]), 200))],
        )
    elif found.needless:
        yield Finding(
            f"{short(path_of(found.needless))} had given the metadata already",
            [Evidence("request.url", one_line(tidy(found.url), 200))],
            severity="info",
        )


@rule(
    "OAU007",
    "as-issuer-mismatch",
    "Metadata issuer differs from the one used",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{DISCOVERY}#authorization-server-metadata-discovery",
    sep="2468",
    versions=LATE,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def issuer_mismatch(exchange: Exchange) -> Iterator[Finding]:
    """`issuer` in the metadata of an authorization server is identical to the issuer from which the URL was made, character for
    character. A client does not use a document where it is not.

    Why: this is what keeps one authorization server from speaking for another.

    Fix: serve the issuer as the resource metadata list it, slash for slash; compare before using the endpoints.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example"]}
        GET https://auth.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://other.example", "authorization_endpoint": "https://auth.example/authorize", "token_endpoint": "https://auth.example/token", "code_challenge_methods_supported": ["S256"]}

    Right::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example"]}
        GET https://auth.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://auth.example", "authorization_endpoint": "https://auth.example/authorize", "token_endpoint": "https://auth.example/token", "code_challenge_methods_supported": ["S256"]}
    """
    step = step_of(exchange, "server-metadata", "authorize", "token")
    if step is None or not holds(step, LATE):
        return
    found = step.server if step.kind == "server-metadata" else step.role
    if found is None or not found.read or found.right_issuer:
        return
    issuer, asked = urls.split(found.issuer), urls.split(found.identifier)
    if exchange.reverse and not found.listed and issuer and asked and issuer.path == asked.path:
        return  # the capture has the upstream's origin, the server knows its public one
    slash = (found.issuer or "").rstrip("/") == found.identifier.rstrip("/")
    if step.kind == "server-metadata":
        if slash and not found.listed:
            return  # whether the issuer ends in a slash does not show in the URL
        yield Finding(
            f"issuer is {short(found.issuer)}, the metadata were asked for as those of {short(found.identifier)}",
            [evidence("response.body:/issuer", found.issuer, found.identifier)],
            severity="warning",
            party="server",
        )
    elif found.listed and step.part_of is not None and goes_on(step, step.part_of):
        yield Finding(
            f"the client uses metadata of {short(found.issuer)}, the resource lists {short(found.identifier)}",
            [evidence("request.url", tidy(exchange.url), "no use of that document")],
            severity="warning" if slash or not holds(step, NEWEST) else None,
        )


@rule(
    "OAU027",
    "endpoints-https",
    "OAuth endpoints or redirects not HTTPS",
    on="exchange",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{SECURITY}#communication-security",
    versions=ALL,
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    transport=("http",),
)
def not_https(exchange: Exchange) -> Iterator[Finding]:
    """The endpoints of an authorization server are https, and so are redirect URIs, unless they are on the user's own machine.

    Why: codes, tokens and secrets pass there in the clear.

    Fix: serve https; redirect to localhost or to https.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example"]}
        GET https://auth.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://auth.example", "authorization_endpoint": "http://auth.example/go", "token_endpoint": "https://auth.example/token", "code_challenge_methods_supported": ["S256"]}

    Right::

        modern tools/list
          -> result {"tools": []}
        GET /.well-known/oauth-protected-resource/mcp
          -> 200 application/json {"resource": "http://server.example/mcp", "authorization_servers": ["https://auth.example"]}
        GET https://auth.example/.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "https://auth.example", "authorization_endpoint": "https://auth.example/go", "token_endpoint": "https://auth.example/token", "code_challenge_methods_supported": ["S256"]}
    """
    step = step_of(exchange, "server-metadata", "authorize", "pushed", "token", "registration")
    if step is None or not holds(step, ALL):
        return
    here = urls.split(exchange.url)
    known = step.kind == "server-metadata" or step.role is not None  # the document says it
    own = here is not None and here.origin == urls.origin(exchange.endpoint.url)  # the MCP server's own: SEC009
    if not known and not own and here is not None and here.scheme == "http" and not here.loopback:
        message = f"{short(here.place)} is not https"
        yield Finding(message, [evidence("request.url", tidy(exchange.url), "https")], party="server", once=here.place)
    if step.kind == "server-metadata":
        if step.server is not None and step.server.read:
            yield from _plain_endpoints(step.server)
        return
    found = ask_of(exchange)
    if found is None or found[1].redirect_uri is None:
        return
    uri = found[1].redirect_uri
    if redirect_kind(uri) in ("http", "invalid"):
        message = f"redirect_uri {short(uri)} is neither on localhost nor https"
        yield Finding(
            message,
            [evidence(place_of(exchange, "redirect_uri"), uri, "localhost or https")],
            severity="warning",
            party="client",
            once=uri,
        )


def _plain_endpoints(found: ServerMetadata) -> Iterator[Finding]:
    plain = [(name, url) for name, text in found.endpoints.items() if (url := urls.split(text)) and url.scheme == "http"]
    local = [name for name, url in plain if url.loopback]
    for name, url in plain:
        if not url.loopback:
            message = f"{name} is not https: {short(url.place)}"
            yield Finding(message, [evidence(f"response.body:/{name}", found.endpoints[name], "https")], party="server")
    if local:
        message = f"the authorization server has plain http endpoints on this machine ({short(', '.join(local))})"
        yield Finding(
            message,
            [evidence(f"response.body:/{local[0]}", found.endpoints[local[0]], "https")],
            severity="info",
            party="server",
            once=found.identifier,
        )


@rule(
    "OAU031",
    "legacy-2025-03-26-auth",
    "Default endpoints of 2025-03-26 used",
    on="exchange",
    level="must",
    party="client",
    era="legacy",
    severity="info",
    spec="2025-03-26 basic/authorization#server-metadata-discovery",
    versions=("2025-03-26",),
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
    once="endpoint",
    transport=("http",),
)
def default_endpoints(exchange: Exchange) -> Iterator[Finding]:
    """Where no metadata of an authorization server are found, 2025-03-26 has the client use /authorize, /token and /register at the
    origin of the MCP server. Later revisions have no such defaults.

    Why: it explains requests that no document asks for.

    Fix: serve metadata of the resource and of the authorization server.

    Wrong::

        legacy initialize {"protocolVersion": "2025-03-26"}
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 404
        GET /authorize?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256
          -> 302

    Right::

        legacy initialize {"protocolVersion": "2025-03-26"}
          -> 401
        GET /.well-known/oauth-authorization-server
          -> 200 application/json {"issuer": "http://server.example", "authorization_endpoint": "http://server.example/authorize", "token_endpoint": "http://server.example/token", "code_challenge_methods_supported": ["S256"]}
        GET /authorize?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256
          -> 302
    """
    step = step_of(exchange, "authorize", "token", "registration", "server-metadata")
    if step is None or step.part_of is None:
        return
    if step.kind == "server-metadata":
        kept = path_of(exchange.url).partition("/oauth-authorization-server")[2]
        if kept and step.server is not None and not step.server.listed and step.part_of.revision == "2025-03-26":
            message = f"the client keeps {short(kept)} of the path: in 2025-03-26 the metadata are at the root of the server"
            yield Finding(message, [evidence("request.url", tidy(exchange.url), "/.well-known/oauth-authorization-server")])
        return
    if not step.fallback:
        return
    asked = step.part_of.has("server-metadata")
    seen = "its metadata gave nothing" if asked else "no metadata were asked for"
    yield Finding(
        f"the client uses the default place {short(path_of(exchange.url))} of 2025-03-26; {seen}",
        [evidence("request.url", tidy(exchange.url))],
    )
