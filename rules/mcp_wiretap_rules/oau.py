"""OAU: authorization on the wire. What is demanded of servers that ask for a token, and of clients on their way to one.

The exchanges of authorization have no era of their own: the revision is the one that the client declares to the MCP endpoint
that the token is for. Secrets are never shown: codes, tokens, verifiers and states appear as hashes.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcp_wiretap.rule import Evidence, Finding, Severity, Unchecked, evidence, rule
from mcp_wiretap.trace.authorization import Ask, AuthorizationFlow, Challenge, Registration, Step, Token, TokenCall, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata, ServerMetadata
from mcp_wiretap.trace.model import Endpoint, Exchange
from mcp_wiretap.wire import form as forms
from mcp_wiretap.wire import jose
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import mask, one_line

AUTH = "2026-07-28 basic/authorization/index"
DISCOVERY = "2026-07-28 basic/authorization/authorization-server-discovery"
REGISTRATION = "2026-07-28 basic/authorization/client-registration"
SECURITY = "2026-07-28 basic/authorization/security-considerations"

ALL = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")  # revisions with authorization
RESOURCES = ALL[1:]  # with protected resource metadata
LATE = ALL[2:]
NEWEST = ALL[3:]
OAUTH = ("oauth",)
MCP = ("mcp",)
SKEW = 300.0  # seconds that clocks may differ
MOST_REFUSALS = 3
ID_JAG = "oauth-id-jag+jwt"  # type of an identity assertion


def _step(exchange: Exchange, *kinds: str) -> Step | None:
    """The step that an exchange is, where it is one of those kinds."""
    step: Step | None = exchange.facts.get("authorization")
    return step if step is not None and step.kind in kinds else None


def _in(step: Step, revisions: tuple[str, ...]) -> bool:
    """Whether a demand of these revisions holds for a step. Metadata of the resource exist from 2025-06-18 on: a client that reads
    them speaks at least that."""
    flow = step.part_of
    revision = flow.revision if flow is not None else None
    if revision is None and step.challenge is not None:
        revision = step.challenge.revision
    if revision in revisions:
        return True
    if revision is None:
        return revisions == ALL or (revisions == RESOURCES and flow is not None and flow.metadata is not None)
    return rev.version_kind(revision) == "future"


def _ask(exchange: Exchange, revisions: tuple[str, ...] = ALL) -> tuple[Step, Ask] | None:
    """An authorization request that asks for a code, with its parameters in sight; not its repetitions by login pages."""
    step = _step(exchange, "authorize", "pushed")
    if step is None or step.ask is None or not _in(step, revisions):
        return None
    ask = step.ask
    if ask.by_reference or "code" not in (ask.response_type or "code").split():
        return None
    return step, ask


def _call(exchange: Exchange, revisions: tuple[str, ...] = ALL, *grants: str) -> tuple[Step, TokenCall] | None:
    step = _step(exchange, "token")
    if step is None or step.call is None or not _in(step, revisions):
        return None
    return (step, step.call) if not grants or step.call.grant in grants else None


def _place(exchange: Exchange, name: str) -> str:
    """Evidence `where` of a parameter."""
    return f"request.{'form' if exchange.form is not None else 'query'}:{name}"


def _words(scopes: tuple[str, ...]) -> str:
    return one_line(" ".join(scopes), 120) or "no scope"


def _short(text: str | None) -> str:
    return one_line(_tidy(text) if text else "nothing", 120)


def _tidy(url: str) -> str:
    """A URL without the port that goes without saying."""
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    default = {"https": ":443", "http": ":80"}.get(scheme)
    return f"{scheme}{colon}{host.removesuffix(default)}{slash}{path}" if default is not None else url


@rule(
    "OAU001",
    "401-without-challenge",
    "401 lacks usable WWW-Authenticate",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{DISCOVERY}#protected-resource-metadata-discovery-requirements",
    sep="985",
    versions=RESOURCES,
    always=True,
    kinds=MCP,
    needs=("fact:authorization",),
)
def challenge_missing(exchange: Exchange) -> Iterator[Finding]:
    """A server that answers 401 says in WWW-Authenticate where its resource metadata are, or serves them at the well-known place
    that is made from its URL. In 2025-06-18 only the header will do.

    Why: without either a client cannot find the authorization server, and the user sees nothing but a refusal.

    Fix: send `WWW-Authenticate: Bearer resource_metadata="https://.../.well-known/oauth-protected-resource/..."`.

    Wrong::

        modern tools/list
          -> 401

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="read"
    """
    step = _step(exchange, "challenge")
    if step is None or step.challenge is None or exchange.status != 401:
        return
    challenge = step.challenge
    if urls.split(challenge.metadata_url) is not None or not _in_revision(exchange, challenge, RESOURCES):
        return
    if challenge.given is None:
        what = (
            "no WWW-Authenticate" if not challenge.schemes else f"only {_short(', '.join(challenge.schemes))} in WWW-Authenticate"
        )
    elif challenge.metadata_url is None:
        what = "no resource_metadata in WWW-Authenticate"
    else:
        what = f"resource_metadata is no URL: {_short(challenge.metadata_url)}"
    failed = challenge.probes_failed
    if failed:
        what += ", and the well-known places of the metadata give none either"
    strict = failed or challenge.revision == "2025-06-18"
    yield Finding(
        f"HTTP 401 with {what}",
        [evidence("response.header:WWW-Authenticate", _sent(exchange), "Bearer with resource_metadata")],
        severity=None if strict else "info",
        once="strict" if strict else "mild",
    )


def _sent(exchange: Exchange) -> str | None:
    fields = exchange.response_fields
    return fields.first("www-authenticate") if fields is not None else None


def _in_revision(exchange: Exchange, challenge: Challenge, revisions: tuple[str, ...]) -> bool:
    """For a challenge: the revision is that of its own request."""
    revision = challenge.revision or exchange.revision
    return revision in revisions or (revision is not None and rev.version_kind(revision) == "future")


@rule(
    "OAU002",
    "challenge-scope",
    "Challenge without scope",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{AUTH}#scope-selection-strategy",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=MCP,
    needs=("fact:authorization",),
)
def challenge_scope(exchange: Exchange) -> Iterator[Finding]:
    """A challenge names the scopes that the request needs. `offline_access` is not among them: a refresh token is no
    need of the resource.

    Why: a client that is told nothing asks for all scopes there are; one that is told offline_access asks for too long a life.

    Fix: add `scope="..."` with what this operation needs, without offline_access.

    Wrong::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="read offline_access"

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="read"
    """
    step = _step(exchange, "challenge")
    if step is None or step.challenge is None or step.challenge.given is None:
        return
    challenge = step.challenge
    if not _in_revision(exchange, challenge, LATE):
        return
    where, scopes = "response.header:WWW-Authenticate", challenge.scopes
    if scopes is None:
        if exchange.status == 401 or challenge.error != "insufficient_scope":  # else OAU022
            message = "the challenge does not say which scopes the request needs"
            yield Finding(message, [evidence(where, _sent(exchange), 'scope="..."')], severity="info", once="none")
    elif "offline_access" in scopes and _in_revision(exchange, challenge, NEWEST):
        yield Finding(
            "the challenge asks for offline_access", [evidence(where, _sent(exchange), "no offline_access")], once="offline"
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
    needs=("fact:authorization",),
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
    step = _step(exchange, "resource-metadata")
    if step is None or step.resource is None or step.part_of is None or not step.part_of.sure or not _in(step, LATE):
        return
    found = step.resource
    if not found.challenged:
        return
    if found.named is not None:
        if found.form != "named" and not found.named_before:
            yield Finding(
                f"the client asked for {_short(_path(found.url))}, the challenge names {_short(_path(found.named))}",
                [Evidence("request.url", one_line(_tidy(found.url), 200), one_line(_tidy(found.named), 200))],
            )
    elif found.form == "root" and found.path_form is not None and not found.path_before:
        yield Finding(
            f"the client asked at the root before {_short(_path(found.path_form))}",
            [Evidence("request.url", one_line(_tidy(found.url), 200), one_line(_tidy(found.path_form), 200))],
        )


def _path(url: str) -> str:
    rest = url.partition("://")[2]
    return rest[rest.find("/") :] if "/" in rest else url


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
    needs=("fact:authorization",),
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
    step = _step(exchange, "resource-metadata")
    if step is None or step.resource is None or exchange.status != 200 or not _in(step, RESOURCES):
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
                message = f"authorization server {_short(str(server))} is no issuer URL"
                yield Finding(message, [evidence(f"{at}/{index}", server, "a URL without query and fragment")])
    if "offline_access" in (step.resource.scopes or ()) and _in(step, NEWEST):
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
    needs=("fact:authorization",),
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
    step = _step(exchange, "resource-metadata", "authorize", "token")
    if step is None or step.part_of is None or not _in(step, RESOURCES):
        return
    flow = step.part_of
    if step.kind != "resource-metadata":
        yield from _asked_all_the_same(exchange, step, flow)
        return
    found = step.resource
    if found is None or not found.read or found.resource is None or found.relation in ("equal", "parent", ""):
        return
    endpoint = flow.endpoint.url
    proof = [evidence("response.body:/resource", found.resource, _tidy(endpoint))]
    if found.relation == "slash":
        message = f"resource {_short(found.resource)} differs from the endpoint by a slash at the end"
        yield Finding(message, proof, severity="info", party="server")
        return
    message = f"resource is {_short(found.resource)}, the endpoint is {_short(endpoint)}"
    yield Finding(message, proof, severity="warning" if found.origin_known else "info", party="server")


def _asked_all_the_same(exchange: Exchange, step: Step, flow: AuthorizationFlow) -> Iterator[Finding]:
    found = flow.metadata
    if found is None or not found.origin_known or found.relation not in ("other-origin", "other-path") or not flow.sure:
        return
    if _goes_on(step, flow):
        yield Finding(
            f"the client goes on with metadata of {_short(found.resource)}, the endpoint is {_short(flow.endpoint.url)}",
            [evidence("request.url", _tidy(exchange.url), f"no {'authorization' if step.ask is not None else 'token'} request")],
            party="client",
        )


def _goes_on(step: Step, flow: AuthorizationFlow) -> bool:
    """Whether a step is the first of its flow that makes use of the metadata: the authorization request, or, where there was none,
    the token request."""
    if step.kind == "token":
        return flow.asks == 0 and next((s for s in flow.steps if s.kind == "token"), step) is step
    return flow.asks == 1 and step.ask is not None and step.ask.first


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
    needs=("fact:authorization",),
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
    step = _step(exchange, "server-metadata")
    if step is None or step.server is None or not step.server.listed or not _in(step, LATE):
        return
    found = step.server
    forms = urls.issuer_forms(found.identifier)
    if found.index is None:
        yield Finding(
            f"{_short(_path(found.url))} is no place of the metadata of {_short(found.identifier)}",
            [Evidence("request.url", one_line(_tidy(found.url), 200), one_line(_tidy(forms[0]), 200) if forms else None)],
        )
    elif found.skipped:
        yield Finding(
            f"{_short(_path(found.url))} was asked for before {_short(_path(found.skipped[0]))}",
            [Evidence("request.url", one_line(_tidy(found.url), 200), one_line(_tidy(found.skipped[0]), 200))],
        )
    elif found.needless:
        yield Finding(
            f"{_short(_path(found.needless))} had given the metadata already",
            [Evidence("request.url", one_line(_tidy(found.url), 200))],
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
    needs=("fact:authorization",),
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
    step = _step(exchange, "server-metadata", "authorize", "token")
    if step is None or not _in(step, LATE):
        return
    found = step.server if step.kind == "server-metadata" else step.role
    if found is None or not found.read or found.right_issuer:
        return
    slash = (found.issuer or "").rstrip("/") == found.identifier.rstrip("/")
    if step.kind == "server-metadata":
        if slash and not found.listed:
            return  # whether the issuer ends in a slash does not show in the URL
        yield Finding(
            f"issuer is {_short(found.issuer)}, the metadata were asked for as those of {_short(found.identifier)}",
            [evidence("response.body:/issuer", found.issuer, found.identifier)],
            severity="warning",
            party="server",
        )
    elif found.listed and step.part_of is not None and _goes_on(step, step.part_of):
        yield Finding(
            f"the client uses metadata of {_short(found.issuer)}, the resource lists {_short(found.identifier)}",
            [evidence("request.url", _tidy(exchange.url), "no use of that document")],
            severity="warning" if slash or not _in(step, NEWEST) else None,
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
    needs=("fact:authorization",),
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
    found = _ask(exchange, LATE)
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
        [evidence("request.url", _tidy(exchange.url), "code_challenge_methods_supported in the metadata first")],
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
    needs=("fact:authorization",),
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
    found = _ask(exchange)
    if found is None:
        return
    _, ask = found
    if ask.code_challenge is None:
        message = "the authorization request has no code_challenge"
        yield Finding(message, [evidence(_place(exchange, "code_challenge"), None, "BASE64URL(SHA-256(verifier))")])
    elif ask.challenge_method != "S256":
        method = ask.challenge_method or "plain, since it is absent"
        yield Finding(
            f"code_challenge_method is {_short(method)}",
            [evidence(_place(exchange, "code_challenge_method"), ask.challenge_method, "S256")],
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
    needs=("fact:authorization",),
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
    found = _call(exchange, ALL, "authorization_code")
    if found is None:
        return
    _, call = found
    where = "request.form:code_verifier"
    if call.verifier == "":
        if call.ask is None or call.ask.code_challenge is not None:  # else OAU009 has said it
            yield Finding(
                "the code is redeemed without code_verifier", [Evidence(where, "(absent)", "the verifier of the request")]
            )
    elif call.verifier == "wrong":
        assert call.ask is not None
        yield Finding(
            "code_verifier is not that of the authorization request",
            [Evidence(where, "(hash differs)", f"a verifier whose hash is {_short(call.ask.code_challenge)}")],
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
    needs=("fact:authorization",),
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
    asked = _ask(exchange, RESOURCES)
    called = _call(exchange, RESOURCES, "authorization_code", "refresh_token", "client_credentials")
    if asked is None and called is None:
        return
    step, resources = (asked[0], asked[1].resources) if asked is not None else (called[0], called[1].resources)  # type: ignore[index]
    flow = step.part_of
    assert flow is not None
    where = _place(exchange, "resource")
    what = "the authorization request" if asked is not None else f"the {_grant(called)} request"
    if step.target == "none":
        message = f"{what} has no resource"
        yield Finding(
            message, [evidence(where, None, _tidy(flow.endpoint.url))], severity=None if _must_name(flow) else "warning"
        )
        return
    if step.target == "invalid":
        bad = next((r for r in resources if (u := urls.split(r)) is None or u.fragment is not None), "")
        yield Finding(
            f"resource {_short(bad)} is no absolute URL without fragment", [evidence(where, bad, _tidy(flow.endpoint.url))]
        )
    elif step.target == "other":
        message = f"resource is {_short(resources[0])}, the endpoint is {_short(flow.endpoint.url)}"
        yield Finding(
            message, [evidence(where, resources[0], _tidy(flow.endpoint.url))], severity=None if flow.sure else "warning"
        )
    if called is not None and (ask := called[1].ask) is not None and ask.resources:
        allowed = {urls.canonical(r) for r in ask.resources}
        other = next((r for r in resources if urls.canonical(r) not in allowed), None)
        if other is not None:
            message = f"the code is redeemed for {_short(other)}, it was asked for {_short(ask.resources[0])}"
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
    needs=("fact:authorization",),
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
    asked = _ask(exchange)
    if asked is not None:
        if not asked[1].has_state:
            message = "the authorization request has no state"
            yield Finding(message, [evidence(_place(exchange, "state"), None, "an unguessable value")])
        return
    called = _call(exchange, ALL, "authorization_code")
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
    needs=("fact:authorization",),
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
    found = _call(exchange, NEWEST, "authorization_code")
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
            f"the client redeems a code that came from {_short(redirect.iss)}, the recorded issuer is {_short(document.issuer)}"
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
    needs=("fact:authorization",),
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
    step = _step(exchange, "authorize", "login")
    if step is None or step.redirect is None or step.ask is None or step.ask.metadata is None or not _in(step, NEWEST):
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
    needs=("fact:authorization",),
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
    step = _step(exchange, "registration")
    if step is None or step.client is None or step.part_of is None:
        return
    flow, sent, where = step.part_of, step.client.sent, "request.body:/application_type"
    older = flow.revision is not None and not _in(step, NEWEST)
    if older and sent.application_type is not None:
        return
    if sent.application_type is None:
        challenge = flow.challenge.challenge if flow.challenge is not None else None
        sure = challenge is not None and challenge.modern and flow.sure
        message = "the registration has no application_type"
        yield Finding(message, [evidence(where, None, "native or web")], severity=None if sure else "info")
        return
    kinds = {_redirect_kind(uri) for uri in sent.redirect_uris or ()}
    if sent.application_type == "web" and kinds and kinds <= {"loopback", "private"}:
        message = "application_type is web, all redirects are on the user's machine"
        yield Finding(message, [evidence(where, "web", "native")], severity="warning")
    elif sent.application_type == "native" and "https" in kinds:
        message = "application_type is native, a redirect goes to a remote https address"
        yield Finding(message, [evidence(where, "native", "web")], severity="warning")


def _redirect_kind(uri: str) -> str:
    """loopback, https, http (to elsewhere), private (a scheme of the application's own), or invalid."""
    url = urls.split(uri)
    if url is not None:
        return "loopback" if url.loopback else url.scheme
    try:
        scheme = urlsplit(uri).scheme.lower()
    except ValueError:
        return "invalid"
    return "private" if scheme and scheme not in ("http", "https", "javascript", "data", "file") else "invalid"


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
    needs=("fact:authorization",),
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
    step = _step(exchange, "registration")
    if step is None or step.client is None or not _in(step, NEWEST):
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
    needs=("fact:authorization",),
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
    fetched = _step(exchange, "client-metadata")
    if fetched is not None:
        if fetched.client is not None and _in(fetched, LATE):
            yield from _document(fetched, fetched.client)
        return
    found = _ask(exchange, LATE)
    if found is None:
        return
    _, ask = found
    if ask.client_id is None or not ask.client_id.startswith(("https://", "http://")):
        return
    url, where = urls.split(ask.client_id), _place(exchange, "client_id")
    if url is None or url.scheme != "https" or url.path == "/" or url.fragment is not None:
        message = f"client_id {_short(ask.client_id)} is no https URL with a path and without fragment"
        yield Finding(message, [evidence(where, ask.client_id, "https://.../...")], once=ask.client_id)
    elif ask.server is not None and ask.metadata is not None and not any(d.cimd_supported for d in ask.server.documents):
        message = "client_id is a URL, the server does not announce client metadata documents"
        proof = [evidence(where, ask.client_id, "client_id_metadata_document_supported in the server's metadata")]
        yield Finding(message, proof, severity="warning", once=ask.client_id)


def _document(step: Step, client: Registration) -> Iterator[Finding]:
    sent, asked = client.sent, step.ask
    wanted = asked.client_id if asked is not None else None
    if sent.client_id != wanted:
        message = f"the document names client_id {_short(sent.client_id)}, its URL is {_short(wanted)}"
        yield Finding(message, [evidence("response.body:/client_id", sent.client_id, wanted)])
    if sent.client_name is None:
        yield Finding("the client metadata document has no client_name", [evidence("response.body:/client_name", None, "a name")])
    at = "response.body:/redirect_uris"
    if not sent.redirect_uris:
        yield Finding("the client metadata document has no redirect_uris", [evidence(at, None, "a list")])
    elif asked is not None and asked.redirect_uri and not any(_same_redirect(asked.redirect_uri, u) for u in sent.redirect_uris):
        message = f"the client metadata document does not list the redirect_uri {_short(asked.redirect_uri)} that is used"
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
    needs=("fact:authorization",),
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
    asked, called = _ask(exchange, NEWEST), _call(exchange, NEWEST, "refresh_token")
    registration = None
    if called is not None:
        registration, where, what = called[1].registration, "request.form:grant_type", "refresh_token"
    elif asked is not None and "offline_access" in (asked[1].scopes or ()):
        registration, where, what = asked[1].registration, _place(exchange, "scope"), "offline_access"
        document = asked[1].metadata
        if document is not None and document.scopes is not None and "offline_access" not in document.scopes:
            message = "the client asks for offline_access, which the server's scopes_supported does not list"
            yield Finding(message, [evidence(where, _words(asked[1].scopes or ()), _words(document.scopes))], once="scope")
    if registration is None:
        return
    grants = registration.sent.grant_types or ("authorization_code",)
    given = registration.given.grant_types if registration.given is not None else None
    if "refresh_token" not in grants and "refresh_token" not in (given or ()):
        yield Finding(
            f"the client uses {what}, it registered grant types {_words(grants)}",
            [evidence(where, what, "refresh_token among the registered grant_types")],
            related=(registration.flow,),
        )


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
    needs=("fact:authorization",),
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
    found = _ask(exchange, LATE)
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
    where = _place(exchange, "scope")
    if missing:
        message = f"the client asks for {_words(have)}, {source} {_words(wanted)}"
        yield Finding(message, [evidence(where, _words(have), _words(wanted))])
        return
    listed = (ask.metadata.scopes or ()) if ask.metadata is not None else ()
    more = tuple(s for s in have if s not in wanted and not (s == "offline_access" and s in listed))
    unlisted = more == ("offline_access",) and bool(wanted)  # others may be the user's wish
    if more and (wanted or metadata is not None):
        message = f"the client asks for {_words(more)} besides what {source}"
        yield Finding(message, [evidence(where, _words(have), _words(wanted))], severity=None if unlisted else "info")


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
    needs=("fact:authorization",),
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
    found = _ask(exchange, NEWEST)
    if found is None or found[1].step_up is None or not found[1].step_up.missing:
        return
    ask, up = found[1], found[1].step_up
    union = tuple(dict.fromkeys((*up.before, *up.challenged)))
    yield Finding(
        f"the step-up asks for {_words(ask.scopes or ())} and drops {_words(up.missing)}",
        [evidence(_place(exchange, "scope"), _words(ask.scopes or ()), _words(union))],
        severity=None if up.sure else "info",
        related=(up.flow,),
    )


@rule(
    "OAU021",
    "step-up-loop",
    "Endless step-up",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{AUTH}#step-up-authorization-flow",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=MCP,
    needs=("fact:authorization",),
)
def step_up_loop(exchange: Exchange) -> Iterator[Finding]:
    """A client gives up after a few step-ups for the same operation.

    Why: the user is sent to the login page again and again, for nothing.

    Fix: count the attempts for each resource and operation, and report a lasting refusal.

    Wrong::

        modern tools/call {"name": "write"}
          client one
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s1&scope=write&code_challenge=C1&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302 text/html
          -> header Location: http://127.0.0.1:9/cb?code=k1&state=s1
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k1&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "two", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client two
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s2&scope=write&code_challenge=C2&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=k2&state=s2
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k2&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "three", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client three
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s3&scope=write&code_challenge=C3&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=k3&state=s3
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k3&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "four", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client four
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s4&scope=write&code_challenge=C4&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=k4&state=s4
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k4&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "five", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client five
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"

    Right::

        modern tools/call {"name": "write"}
          client one
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s1&scope=write&code_challenge=C1&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    step = _step(exchange, "challenge")
    if step is None or step.challenge is None or step.challenge.cycle <= MOST_REFUSALS or not _in(step, LATE):
        return
    yield Finding(
        f"refused for its scope the {_ordinal(step.challenge.cycle)} time, each time after another authorization",
        [evidence("response.header:WWW-Authenticate", _sent(exchange), "the client gives up")],
    )


def _ordinal(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")


@rule(
    "OAU022",
    "insufficient-scope-shape",
    "Refusal for lack of scope incomplete",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{AUTH}#runtime-insufficient-scope-errors",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=MCP,
    needs=("fact:authorization", "fact:tool-error"),
)
def insufficient_scope(exchange: Exchange) -> Iterator[Finding]:
    """A 403 for lack of scope has `WWW-Authenticate: Bearer` with `error="insufficient_scope"`, the scopes that are needed, and
    resource_metadata.

    Why: without the scopes a client does not know what to ask for, and the user gets a dead end.

    Fix: send all scopes that the operation needs in one challenge.

    Wrong::

        modern tools/call {"name": "write"}
          client alice
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope"

    Right::

        modern tools/call {"name": "write"}
          client alice
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write", resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp"
    """
    if "tool-error" in exchange.facts:
        yield from _told_in_text(exchange)
        return
    step = _step(exchange, "challenge")
    if step is None or step.challenge is None or exchange.status != 403 or step.challenge.given is None:
        return
    challenge = step.challenge
    if not _in_revision(exchange, challenge, LATE):
        return
    where, sent = "response.header:WWW-Authenticate", _sent(exchange)
    if challenge.error is None:
        yield Finding(
            "the 403 has a challenge without error", [evidence(where, sent, 'error="insufficient_scope"')], severity="info"
        )
    elif challenge.error == "insufficient_scope":
        if not challenge.scopes:
            message = "the refusal for lack of scope does not say which scope is needed"
            yield Finding(message, [evidence(where, sent, 'scope="..."')])
        elif challenge.metadata_url is None:
            message = "the refusal for lack of scope has no resource_metadata"
            yield Finding(message, [evidence(where, sent, 'resource_metadata="..."')], severity="info")


_LACKS_SCOPE = re.compile(
    r"insufficient[_ -]scopes?|\b(?:missing|lacks?|requires?|needs?)\b.{0,60}\bscopes?\b|\bscopes?\b.{0,60}\b(?:missing|required)\b",
    re.I | re.S,
)


def _told_in_text(exchange: Exchange) -> Iterator[Finding]:
    """A tool that says in words that a scope is missing: no client can ask for that one."""
    message = exchange.answer
    content = message.result.get("content") if message is not None else None
    if message is None or exchange.revision not in LATE:
        return
    for index, block in enumerate(content[:5] if isinstance(content, list) else ()):
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and (found := _LACKS_SCOPE.search(text[:1_000])) is not None:
            yield Finding(
                "a tool says in its result that a scope is missing",
                [evidence(message.place("result", "content", index, "text"), found[0], "HTTP 403 with insufficient_scope")],
                severity="info",
            )
            return


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
)
def token_in_query(exchange: Exchange) -> Iterator[Finding]:
    """An access token travels in the Authorization header, never in the query of the URL.

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
    known: set[str] = exchange.facts.get("query-tokens") or set()
    query = forms.read(exchange.query)
    for name in query:
        value = query.get(name)
        if value is None:
            continue
        where = f"request.query:{one_line(name, 60)}"
        if name == "access_token" or name in known:
            yield Finding(
                f"the access token stands in the query, as {_short(name)}",
                [Evidence(where, mask(value), "Authorization: Bearer")],
            )
        elif jose.looks_like(value):
            yield Finding(
                f"a token stands in the query, as {_short(name)}", [Evidence(where, mask(value), "no token")], severity="warning"
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
)
def token_missing(exchange: Exchange) -> Iterator[Finding]:
    """The token goes with each HTTP request, also within a session.

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
    around: tuple[Token, str] | None = exchange.facts.get("token-left-out")
    if around is not None:
        yield Finding(
            "the request has no Authorization, those before and after it on the same connection have",
            [Evidence("request.header:Authorization", "(absent)", f"Bearer {around[0].mask}")],
            related=(around[1],),
        )
    if exchange.session is None:
        return
    before: dict[str, tuple[Token, str]] = exchange.session.facts.get("tokens") or {}
    if before:
        token, flow = next(reversed(before.values()))
        yield Finding(
            "the request has no Authorization, others in this session had",
            [Evidence("request.header:Authorization", "(absent)", f"Bearer {token.mask}")],
            related=(flow,),
        )


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
    needs=("fact:token",),
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
    token: Token | None = exchange.facts.get("token")
    if token is None or token.jwt is None or exchange.status is None or not 200 <= exchange.status < 300:
        return
    where = "request.header:Authorization"
    expires = token.jwt.number("exp")
    if expires is not None and expires < exchange.requested - SKEW:
        late = int(exchange.requested - expires)
        yield Finding(f"a token that ran out {late} s ago is let in", [Evidence(where, token.mask, "HTTP 401")], once=token.mask)
    audience = token.jwt.audience if "let-in" in exchange.facts else ()
    if audience and not any(_is_for(a, exchange) for a in audience):
        origins = [urls.origin(a) for a in audience if urls.split(a) is not None]
        foreign = urls.origin(exchange.endpoint.url) not in origins and exchange.revision in RESOURCES
        named = len(origins) == len(audience) and (foreign or any(_described(exchange.endpoint)))
        yield Finding(
            f"a token for {_short(' '.join(audience))} is let in by {_short(exchange.endpoint.url)}",
            [Evidence(where, token.mask, "HTTP 401")],
            severity=None if named and not exchange.reverse else "info",
        )


def _is_for(audience: str, exchange: Exchange) -> bool:
    """Whether an audience names an endpoint: its URL, a parent, what its metadata call it."""
    if urls.relation(audience, exchange.endpoint.url, origins=not exchange.reverse) in ("equal", "slash", "parent"):
        return True
    flows: list[AuthorizationFlow] = exchange.endpoint.facts.get("authorization") or []
    wanted = urls.canonical(audience) or audience
    return any(f.metadata is not None and wanted == (urls.canonical(f.metadata.resource) or f.metadata.resource) for f in flows)


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
    needs=("fact:authorization", "fact:token"),
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
    asked, called = _ask(exchange, NEWEST), _call(exchange, NEWEST)
    if asked is not None:
        registration, server, client_id = asked[1].registration, asked[1].server, asked[1].client_id
    elif called is not None:
        registration, server, client_id = called[1].registration, called[1].server, called[1].client_id
    else:
        return
    if registration is None or registration.document or server is None or registration.server is None or client_id is None:
        return
    if client_id.startswith("https://") or _same_issuer(registration.server.issuer, server.issuer):
        return
    yield Finding(
        f"client_id {_short(client_id)} was given by {_short(registration.server.issuer)}, it is used with {_short(server.issuer)}",
        [evidence(_place(exchange, "client_id"), client_id, "a registration with this server")],
        related=(registration.flow,),
        once=f"{client_id} {server.issuer}",
    )


def _token_elsewhere(exchange: Exchange) -> Iterator[Finding]:
    token: Token | None = exchange.facts.get("token")
    if token is None or token.server is None or token.part_of is None:
        return
    if token.part_of.endpoint is exchange.endpoint:  # the server behind the resource may have changed
        newest: ResourceMetadata | None = exchange.endpoint.facts.get("resource-metadata")
        listed = set(newest.servers) if newest is not None else set()
    else:
        flows: list[AuthorizationFlow] = exchange.endpoint.facts.get("authorization") or []
        listed = {server for f in flows if f.metadata is not None for server in f.metadata.servers}
    if not listed or any(_same_issuer(server, token.server.issuer) for server in listed):
        return
    if exchange.claim.revision not in NEWEST:
        return
    yield Finding(
        f"a token of {_short(token.server.issuer)} is sent to {_short(exchange.endpoint.url)}, which lists {_short(min(listed))}",
        [Evidence("request.header:Authorization", token.mask, "a token of its own authorization server")],
        related=(token.issued[-1][0],),
        once=token.mask,
    )


def _same_issuer(one: str, two: str) -> bool:
    return one == two or (urls.canonical(one) or one) == (urls.canonical(two) or two)


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
    needs=("fact:authorization",),
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
    step = _step(exchange, "server-metadata", "authorize", "pushed", "token", "registration")
    if step is None or not _in(step, ALL):
        return
    here = urls.split(exchange.url)
    known = step.kind == "server-metadata" or step.role is not None  # the document says it
    own = here is not None and here.origin == urls.origin(exchange.endpoint.url)  # the MCP server's own: SEC009
    if not known and not own and here is not None and here.scheme == "http" and not here.loopback:
        message = f"{_short(here.place)} is not https"
        yield Finding(message, [evidence("request.url", _tidy(exchange.url), "https")], party="server", once=here.place)
    if step.kind == "server-metadata":
        if step.server is not None and step.server.read:
            yield from _plain_endpoints(step.server)
        return
    found = _ask(exchange)
    if found is None or found[1].redirect_uri is None:
        return
    uri = found[1].redirect_uri
    if _redirect_kind(uri) in ("http", "invalid"):
        message = f"redirect_uri {_short(uri)} is neither on localhost nor https"
        yield Finding(
            message, [evidence(_place(exchange, "redirect_uri"), uri, "localhost or https")], severity="warning", party="client",
            once=uri,
        )  # fmt: skip


def _plain_endpoints(found: ServerMetadata) -> Iterator[Finding]:
    plain = [(name, url) for name, text in found.endpoints.items() if (url := urls.split(text)) and url.scheme == "http"]
    local = [name for name, url in plain if url.loopback]
    for name, url in plain:
        if not url.loopback:
            message = f"{name} is not https: {_short(url.place)}"
            yield Finding(message, [evidence(f"response.body:/{name}", found.endpoints[name], "https")], party="server")
    if local:
        message = f"the authorization server has plain http endpoints on this machine ({_short(', '.join(local))})"
        yield Finding(
            message, [evidence(f"response.body:/{local[0]}", found.endpoints[local[0]], "https")], severity="info", party="server",
            once=found.identifier,
        )  # fmt: skip


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
    needs=("fact:token",),
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
    token: Token | None = exchange.facts.get("token")
    if token is None or len(token.accepted) < 2 or exchange.status is None or not 200 <= exchange.status < 300:
        return
    here = _described(exchange.endpoint)
    for endpoint, (other, flow) in token.accepted.items():
        there = _described(other)
        if other is exchange.endpoint or not here or not there:
            continue
        if any(_akin(a, b) for a in here for b in there):
            continue
        doubt = len(token.issued) > 1 or token.length < 32
        yield Finding(
            f"the same token is let in by {_short(endpoint)} and by {_short(exchange.endpoint.url)}, which are different resources",
            [Evidence("request.header:Authorization", token.mask, "a token of its own for each resource")],
            severity="info" if doubt else None,
            party="client",
            related=(flow,),
            once=token.mask,
        )


def _described(endpoint: Endpoint) -> list[ResourceMetadata]:
    """The resource metadata of an endpoint that were seen."""
    flows: list[AuthorizationFlow] = endpoint.facts.get("authorization") or []
    return [f.metadata for f in flows if f.metadata is not None]


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
    needs=("fact:authorization",),
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
    found = _call(exchange, RESOURCES, "refresh_token")
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
    needs=("fact:authorization",),
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
    found = _call(exchange)
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
        message = f"the client uses {used}, it is registered with {_short(wanted)}"
        yield Finding(message, [evidence(where, used, wanted)], related=(registration.flow,), once=f"{call.client_id} registered")
    elif wanted is None and registration is not None and supported is None and used != "client_secret_basic":
        message = f"the client uses {used}; neither its registration nor the server says more than the default"
        proof = [evidence(where, used, "client_secret_basic, the default")]
        yield Finding(message, proof, severity="info", related=(registration.flow,), once=f"{call.client_id} default")
    elif supported is not None and used not in supported:
        message = f"the client uses {used}, the server supports {_words(supported)}"
        yield Finding(message, [evidence(where, used, _words(supported))], once=f"{call.client_id} supported")


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
    needs=("fact:authorization",),
    once="endpoint",
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
    step = _step(exchange, "authorize", "token", "registration", "server-metadata")
    if step is None or step.part_of is None:
        return
    if step.kind == "server-metadata":
        kept = _path(exchange.url).partition("/oauth-authorization-server")[2]
        if kept and step.server is not None and not step.server.listed and step.part_of.revision == "2025-03-26":
            message = f"the client keeps {_short(kept)} of the path: in 2025-03-26 the metadata are at the root of the server"
            yield Finding(message, [evidence("request.url", _tidy(exchange.url), "/.well-known/oauth-authorization-server")])
        return
    if not step.fallback:
        return
    asked = step.part_of.has("server-metadata")
    seen = "its metadata gave nothing" if asked else "no metadata were asked for"
    yield Finding(
        f"the client uses the default place {_short(_path(exchange.url))} of 2025-03-26; {seen}",
        [evidence("request.url", _tidy(exchange.url))],
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
    kinds=MCP,
    needs=("fact:token",),
)
def dpop(exchange: Exchange) -> Iterator[Finding]:
    """A token that is bound to a key goes with the scheme DPoP and a fresh proof: its `htm` and `htu` are this request's, `ath` is the
    hash of the token, `iat` is now, `jti` is new, and the key is asymmetric.

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
    token: Token | None = exchange.facts.get("token")
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
        yield Finding(f"the DPoP proof {problem}", [Evidence("request.header:DPoP", mask(proof), "a proof of this request")])


def _proof_problem(exchange: Exchange, token: Token, text: str) -> str:
    proof = jose.read(text)
    if proof is None:
        return "is no JWT"
    algorithm = str(proof.header.get("alg", ""))
    if algorithm == "none" or algorithm.startswith("HS"):
        return f"is signed with {_short(algorithm)}, which is not asymmetric"
    if proof.header.get("typ") != "dpop+jwt":
        return "is not of type dpop+jwt"
    if proof.text("htm") != exchange.http_method:
        return f"is for {_short(proof.text('htm'))}, the request is a {exchange.http_method}"
    if urls.relation(proof.text("htu"), exchange.url, origins=not exchange.reverse) not in ("equal", "slash"):
        return f"is for {_short(proof.text('htu'))}"
    if token.nonce and not exchange.facts.get("asks-nonce") and proof.text("nonce") is None:
        return "has no nonce, which the server has asked for"
    at = proof.number("iat")
    if at is None or abs(at - exchange.requested) > SKEW:
        return "is not of this moment"
    if proof.text("ath") != token.ath:
        return "is not for this token"
    return "was used before" if exchange.facts.get("proof-used-before") else ""


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
    needs=("fact:authorization",),
)
def assertion(exchange: Exchange) -> Iterator[Finding]:
    """An assertion names the authorization server as its audience and runs out; one that was refused is not sent again.

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
    found = _call(exchange, NEWEST)
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
        message = f"the client goes over from {_short(grant.rpartition(':')[2])} to {call.grant} after its assertion was refused"
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
    if call.assertion is None:
        yield Finding("the assertion is no JWT", [Evidence(where, "(other)", "a JWT")])
    else:
        audience, document = call.assertion.audience, call.metadata
        own = [_tidy(exchange.url), *((document.issuer or "", document.endpoints.get("token_endpoint", "")) if document else ())]
        if document is not None and audience and not any(_same_issuer(a, o) for a in audience for o in own if o):
            message = f"the assertion is for {_short(' '.join(audience))}, it is sent to {_short(document.issuer)}"
            if call.assertion.header.get("typ") != ID_JAG:  # OAU034
                yield Finding(message, [Evidence(where, _short(" ".join(audience)), _short(document.issuer))])
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
    needs=("fact:authorization",),
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
    found = _call(exchange, LATE)
    if found is None or not found[1].grant.endswith(":jwt-bearer"):
        return
    call = found[1]
    given, where = call.assertion, "request.form:assertion"
    if given is None:
        return
    kind = given.header.get("typ")
    if kind != ID_JAG and call.exchanged:
        message = f"the identity assertion of a token exchange has the type {_short(str(kind))}"
        yield Finding(message, [Evidence(where, _short(str(kind)), ID_JAG)], related=(call.exchanged,))
    elif kind != ID_JAG:
        return
    issuer = call.metadata.issuer if call.metadata is not None else None
    if issuer is not None and given.audience and not any(_same_issuer(a, issuer) for a in given.audience):
        message = f"the identity assertion is for {_short(' '.join(given.audience))}, it is sent to {_short(issuer)}"
        yield Finding(message, [Evidence(where, _short(" ".join(given.audience)), issuer)])
    named = given.text("client_id")
    if call.client_id is not None and named != call.client_id:
        message = f"the identity assertion names client {_short(named)}, it is used by {_short(call.client_id)}"
        yield Finding(message, [Evidence(where, _short(named), _short(call.client_id))])


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
    needs=("fact:authorization",),
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
    found = _call(exchange, LATE, "authorization_code")
    if found is None or not found[1].code_elsewhere:
        return
    call = found[1]
    yield Finding(
        f"the code is sent to {_short(exchange.url)}, the server that issued it has {_short(call.code_elsewhere)}",
        [evidence("request.url", _tidy(exchange.url), call.code_elsewhere)],
        related=(call.ask.flow,) if call.ask is not None else (),
    )


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
    needs=("fact:authorization",),
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
    step = _step(exchange, "authorize", "login", "token")
    if step is None or not _in(step, ALL):
        return
    if step.redirect is not None and not step.redirect.registered and step.ask is not None:
        yield Finding(
            f"the server redirects to {_short(step.redirect.to)}, the request names {_short(step.ask.redirect_uri)}",
            [evidence("response.header:Location", step.redirect.to, step.ask.redirect_uri)],
            severity="warning",
            party="server",
            related=(step.ask.flow,),
        )
    if step.call is not None:
        ask, uri = step.call.ask, step.call.redirect_uri
        if ask is not None and uri is not None and ask.redirect_uri is not None and uri != ask.redirect_uri:
            message = f"the code is redeemed with redirect_uri {_short(uri)}, it was asked for with {_short(ask.redirect_uri)}"
            yield Finding(message, [evidence("request.form:redirect_uri", uri, ask.redirect_uri)], related=(ask.flow,))
        return
    found = _ask(exchange)
    if found is None or found[1].redirect_uri is None or found[1].registration is None:
        return
    ask, registration = found[1], found[1].registration
    given = registration.given.redirect_uris if registration.given is not None else None
    allowed = (*(registration.sent.redirect_uris or ()), *(given or ()))
    if not allowed or (registration.server is not None and ask.server is not None and registration.server is not ask.server):
        return
    if not any(_same_redirect(ask.redirect_uri, uri) for uri in allowed):
        yield Finding(
            f"redirect_uri {_short(ask.redirect_uri)} is not registered, {_short(allowed[0])} is",
            [evidence(_place(exchange, "redirect_uri"), ask.redirect_uri, list(allowed)[:10])],
            related=(registration.flow,),
        )
        if step.redirect is not None and step.redirect.has_code:
            yield Finding(
                f"the server redirects with a code to {_short(step.redirect.to)}, which is not registered",
                [evidence("response.header:Location", step.redirect.to, list(allowed)[:10])],
                severity="warning",
                party="server",
                related=(registration.flow,),
            )


def _same_redirect(one: str | None, two: str) -> bool:
    """Character for character; on the user's own machine the port is chosen at run time (RFC 8252 section 7.3)."""
    if one == two:
        return True
    a, b = urls.split(one), urls.split(two)
    if a is None or b is None or not (a.loopback and b.loopback):
        return False
    return (a.scheme, a.host, a.path, a.query) == (b.scheme, b.host, b.path, b.query)
