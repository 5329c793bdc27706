"""Answers to the steps of authorization: documents, tokens, redirects.

What they say is kept whoever's step it is (`read`); what it means to a flow is told once the step is part of one (`learn`).
"""

from typing import Any

from mcp_wiretap.trace.authorization import reading, requests, urls
from mcp_wiretap.trace.authorization.documents import (
    ROLES,
    ResourceMetadata,
    ServerMetadata,
    read_client,
    read_resource,
    read_server,
)
from mcp_wiretap.trace.authorization.requests import CLIENT_MEMBERS
from mcp_wiretap.trace.authorization.sites import Site
from mcp_wiretap.trace.authorization.steps import (
    RESOURCE_METADATA,
    AuthorizationFlow,
    Issue,
    Redirect,
    RefreshUse,
    Registration,
    Server,
    Step,
    Token,
    TokenCall,
)
from mcp_wiretap.trace.authorization.tables import Tables
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.form import Form
from mcp_wiretap.wire.secret import one_line

# Errors of a token endpoint after which the same assertion may be sent again.
_NOT_OF_THE_ASSERTION = frozenset(
    {"use_dpop_nonce", "temporarily_unavailable", "server_error", "slow_down", "authorization_pending"}
)

REDIRECTS = frozenset({301, 302, 303, 307, 308})
OF_SERVER = 50  # endpoints and documents of one authorization server
CLIENTS = 500  # registrations of one server
ISSUERS = 10  # of one resource that are looked at
REFUSALS = 1_000  # of one refresh token that are counted
ISSUES = 100  # answers that brought one token: a test server may give each client the same
_RESOURCE = ("resource", "authorization_servers", "scopes_supported", "bearer_methods_supported")
_SERVER = (
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "scopes_supported",
    "code_challenge_methods_supported",
    "token_endpoint_auth_methods_supported",
    "client_id_metadata_document_supported",
    "authorization_response_iss_parameter_supported",
)
_TOKEN = ("access_token", "refresh_token", "id_token", "token_type", "expires_in", "scope", "error", "error_description")


def read(step: Step, exchange: Exchange, tables: Tables) -> None:
    """What the answer to a step says."""
    value = reading.answer_of(exchange)
    good = value if step.ok else None
    if step.kind == "resource-metadata" and good is not None and step.resource is not None:
        read_resource(step.resource, good)
        step.shown = reading.Shown().add(good, _RESOURCE).members
    elif step.kind == "server-metadata" and good is not None and step.server is not None:
        _server(step, step.server, good, exchange, tables)
    elif step.kind == "registration" and value is not None and step.client is not None:
        _registered(step, step.client, value, tables)
    elif step.kind == "client-metadata" and good is not None:
        _client_document(step, good, exchange, tables)
    elif step.kind == "token" and value is not None:
        _given(step, exchange, value, tables)
    if step.call is not None and step.call.refresh_use is not None:
        _refreshed(step, step.call, step.call.refresh_use)
    step.secrets = None
    if exchange.status in REDIRECTS:
        _redirected(step, exchange, tables)


def _server(step: Step, found: ServerMetadata, value: dict[str, Any], exchange: Exchange, tables: Tables) -> None:
    read_server(found, value)
    step.shown = reading.Shown().add(value, _SERVER).members
    server = step.server_of
    assert server is not None
    server.documents.append(found)
    del server.documents[:-OF_SERVER]
    there, here = urls.origin(found.issuer) or "", urls.origin(exchange.url) or ""
    for member, role in ROLES.items():
        place = urls.place(found.endpoints.get(member))
        if place is None:
            continue
        tables.roles.put(place, (role, server, found))
        if exchange.reverse and there and there != here:  # the public origin is here, under another name
            tables.roles.put(urls.moved(place, there, here), (role, server, found))


def _registered(step: Step, client: Registration, value: dict[str, Any], tables: Tables) -> None:
    if not step.ok:
        step.shown |= reading.Shown().add(value, ("error", "error_description")).members
        return
    client.given = read_client(value)
    step.shown |= reading.Shown().add(value, ("client_id", "client_secret", "token_endpoint_auth_method")).members
    client_id = client.given.client_id
    if client_id is None:
        return
    tables.registered.add(client_id, client)
    server = client.server
    if server is not None:
        if len(server.clients) >= CLIENTS:
            del server.clients[next(iter(server.clients))]
        server.clients[client_id] = client


def _client_document(step: Step, value: dict[str, Any], exchange: Exchange, tables: Tables) -> None:
    """A client metadata document was fetched. It is the client's, whoever asks for it."""
    step.client = Registration(exchange.flow, exchange.started, read_client(value), document=True)
    step.shown = reading.Shown().add(value, CLIENT_MEMBERS).members
    asked = tables.documents.get(exchange.url)
    if asked is not None and asked.ask is not None:
        step.after, step.ask = asked, asked.ask
        asked.ask.registration = step.client
        if asked.ask.client_id is not None:
            tables.registered.add(asked.ask.client_id, step.client)


def _given(step: Step, exchange: Exchange, value: dict[str, Any], tables: Tables) -> None:
    call, secrets = step.call, step.secrets
    if call is None:
        return
    call.answered = True
    step.shown |= reading.Shown().add(value, _TOKEN).members
    error = value.get("error")
    if isinstance(error, str):
        call.error = error[:200]
        if error == "use_dpop_nonce":
            tables.nonces.put((exchange.url, call.client_id or ""), exchange.flow)
        if secrets is not None and secrets.assertion and error not in _NOT_OF_THE_ASSERTION:
            tables.rejected.put((exchange.url, secrets.assertion), exchange.flow)
            if call.grant.endswith(":jwt-bearer"):  # elsewhere it only says who the client is
                tables.grants.put((exchange.url, call.client_id or ""), (call.grant, exchange.flow, exchange.started))
        return
    access = value.get("access_token")
    if not step.ok or not isinstance(access, str) or not access:
        return
    if str(value.get("issued_token_type", "")).endswith(":id-jag"):
        tables.identities.add(reading.digest(access), step)
    kind, scope = value.get("token_type"), value.get("scope")
    call.token_type = kind[:50] if isinstance(kind, str) else None
    call.granted = tuple(scope.split()[:200]) if isinstance(scope, str) else None
    step.token = _issue(step, access, tables)
    refresh = value.get("refresh_token")
    if isinstance(refresh, str) and refresh:
        key = reading.digest(refresh)
        call.refresh = "same" if secrets is not None and key == secrets.refresh else "new"
        tables.refresh.add(key, step)


def _refreshed(step: Step, call: TokenCall, use: RefreshUse) -> None:
    """What became of the refresh token that this request sent. A failure that passes, or no answer at all, says nothing of it."""
    if step.ok and call.error is None:
        if use.result != "rotated":
            use.flow, use.ended, use.result = step.flow, step.ended or step.at, "rotated" if call.refresh == "new" else "kept"
    elif step.status is None:
        if use.result == "pending" and use.flow == step.flow:
            use.result = "lost"
    elif 400 <= step.status < 500 and step.status not in (408, 429) and call.error not in _NOT_OF_THE_ASSERTION:
        if use.result == "pending" and use.flow == step.flow:
            use.result = "refused"
        if len(use.refusals) < REFUSALS:
            use.refusals.append(step.flow)


def _issue(step: Step, access: str, tables: Tables) -> Token:
    call = step.call
    assert call is not None
    scheme = "DPoP" if (call.token_type or "").lower() == "dpop" else "Bearer"
    key = reading.auth_of(f"{scheme} {access}")
    token = tables.tokens.get(key)
    if token is None or token.digest != reading.digest(access):
        token = reading.read_token(access)
        tables.tokens.put(key, token)
    token.bound = scheme == "DPoP" or (token.jwt is not None and token.jwt.thumbprint is not None)
    if token.bound:
        tables.tokens.put(reading.auth_of(f"Bearer {access}"), token)
    earlier = step.after.token if step.after is not None and call.grant == "refresh_token" else None
    asked = call.scopes
    if asked is None and call.ask is not None:
        asked = call.ask.scopes
    if asked is None and earlier is not None:
        asked = earlier.issue_of(step.after).asked if step.after is not None else earlier.asked
    token.issued.append(Issue(step.flow, step.url, step.part_of, call.server, asked, call.granted))
    del token.issued[:-ISSUES]
    if step.after is not None:
        step.after.leads_to = step
    return token


# Redirects


def _redirected(step: Step, exchange: Exchange, tables: Tables) -> None:
    """Back to the client with the authorization response, or on to another page."""
    if step.kind not in ("authorize", "login"):
        return
    asked = step.after if step.kind == "login" else step
    found = reading.read_redirect(exchange)
    if found is not None:
        redirect, form = found
        state = form.get("state")
        mine = _with_state(tables.states.of(reading.digest(state)), asked, redirect, exchange) if state is not None else None
        if asked is None and mine is not None and redirect.has_code:
            asked = step.after = mine
            step.ask = mine.ask
        if asked is not None and asked.ask is not None and _is_response(redirect, asked, mine):
            _came_back(step, asked, redirect, form, mine, tables)
            return
    if asked is not None:
        fields = exchange.response_fields
        location = fields.first("location") if fields is not None else None
        target = urls.joined(exchange.url, location) if location else None
        if target is not None:
            tables.next.put(f"{target.place}?{target.query}" if target.query else target.place, asked)


def _with_state(fits: list[Step], asked: Step | None, redirect: Redirect, exchange: Exchange) -> Step | None:
    """The authorization request that sent a state: the one that is being answered, where it did; else the only one that fits."""
    if asked is not None and asked in fits:
        return asked

    def back(other: Step) -> bool:
        return other.ask is not None and urls.same_place(redirect.to, other.ask.redirect_uri)

    def near(other: Step) -> bool:
        return urls.origin(other.url) == urls.origin(exchange.url)

    def waits(other: Step) -> bool:
        return other.ask is not None and other.ask.redirect is None

    return requests.only(fits, back, near, waits)


def _is_response(redirect: Redirect, asked: Step, mine: Step | None) -> bool:
    """Whether a redirect carries the response to the client, not on to another server or to a page that shows an error."""
    ask = asked.ask
    assert ask is not None
    if mine is asked:
        return redirect.has_code or urls.same_place(redirect.to, ask.redirect_uri)
    if ask.redirect_uri is not None:
        return urls.same_place(redirect.to, ask.redirect_uri)
    return redirect.has_code and not ask.has_state


def _came_back(step: Step, asked: Step, redirect: Redirect, form: Form, mine: Step | None, tables: Tables) -> None:
    ask = asked.ask
    assert ask is not None
    if form.has("state") or ask.has_state:
        redirect.same_state = mine is asked
    redirect.registered = ask.redirect_uri is None or urls.same_place(redirect.to, ask.redirect_uri)
    ask.redirect = step.redirect = redirect
    step.shown["redirects to"] = one_line(redirect.to, 200)
    step.shown |= {k: v for k, v in reading.shown_form(form).items() if k in ("code", "iss", "error")}
    if (code := form.get("code")) is not None:
        tables.codes.add(reading.digest(code), asked)


def by_a_stranger(exchange: Exchange, step: Step, tables: Tables) -> bool:
    """A page that nothing had shown to be on the way, a login form for one, sends the browser back with the state of a known
    request."""
    step.status = exchange.status
    _redirected(step, exchange, tables)
    return step.redirect is not None


# What an answer means to the flow


def learn(step: Step, site: Site, tables: Tables) -> None:
    """A step of a flow has been answered."""
    flow = step.part_of
    assert flow is not None
    if step.kind == "resource-metadata" and step.resource is not None and step.resource.read:
        _learn_resource(step.resource, flow, site, tables)
    elif step.kind == "server-metadata" and step.server is not None and step.server.read:
        _learn_server(step.server, flow, site, step.server_of)
    elif step.kind == "registration" and step.client is not None and step.client.given is not None:
        client_id = step.client.given.client_id
        if client_id is not None:
            flow.client_id, flow.how = client_id, "dynamic"
            tables.clients.add(client_id, flow)
    elif step.kind == "token" and step.token is not None:
        _learn_token(step, step.token, flow)


def _learn_resource(found: ResourceMetadata, flow: AuthorizationFlow, site: Site, tables: Tables) -> None:
    flow.metadata = found
    site.endpoint.facts[RESOURCE_METADATA] = found  # the newest
    found.relation = urls.relation(found.resource, site.url, origins=site.known)
    tables.resource(site, found.resource)
    for identifier in found.servers[:ISSUERS]:
        url = urls.split(identifier)
        if url is None:
            continue
        server = tables.server(identifier)
        if len(server.sites) < OF_SERVER:
            server.sites[site.endpoint.url] = site.endpoint
        tables.server_at.put(url.origin, server)
        here = site.reverse and url.origin == (site.public or urls.origin(found.resource))
        for index, form in enumerate(urls.issuer_forms(identifier)):
            tables.forms.put(form, (server, index))
            if here:
                tables.forms.put(urls.moved(form, url.origin, site.origin), (server, index))
        if here:
            tables.server_at.put(site.origin, server)


def _learn_server(found: ServerMetadata, flow: AuthorizationFlow, site: Site, server: Server | None) -> None:
    if flow.metadata is not None:
        found.alternatives = flow.metadata.servers
    if server is not None:
        flow.server = server
        if len(server.sites) < OF_SERVER:
            server.sites.setdefault(site.endpoint.url, site.endpoint)


def _learn_token(step: Step, token: Token, flow: AuthorizationFlow) -> None:
    call = step.call
    assert call is not None
    flow.tokens += 1
    flow.reopened = False
    flow.granted = call.granted or token.issue_of(step).asked
    if call.server is not None:
        flow.server = call.server
    for issue in token.issued:
        if issue.flow == step.flow:
            issue.part_of = flow
            issue.server = issue.server or flow.server
    if call.grant == "refresh_token":
        flow.refreshes += 1
        step.after = None  # else each refresh would hold on to all before it
