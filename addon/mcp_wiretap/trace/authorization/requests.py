"""Requests that look like steps of authorization, made into steps and linked to those before them, whoever's they are."""

from collections.abc import Callable, Sequence

from mcp_wiretap.trace.authorization import reading, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata, ServerMetadata
from mcp_wiretap.trace.authorization.steps import Ask, RefreshUse, Secrets, Server, Step, StepKind, TokenCall
from mcp_wiretap.trace.authorization.tables import Tables
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.secret import one_line

POSTED: dict[str, StepKind] = {"token": "token", "registration": "registration", "revocation": "revocation", "pushed": "pushed"}
ASKS = 5  # requests of one client that wait for their code
AT_ONCE = 60.0  # seconds: another grant so soon is the same attempt
WAITS = 600.0  # seconds that a code may take whose way back was not seen
OF_SERVER = 50  # metadata URLs of one authorization server
CLIENT_MEMBERS = (
    "client_id",
    "client_name",
    "application_type",
    "redirect_uris",
    "grant_types",
    "token_endpoint_auth_method",
    "scope",
)


def kind_of(exchange: Exchange, tables: Tables) -> StepKind | None:
    """What a request is, by its shape and by what was seen before; None for what is no step. Asked of all traffic that is not
    known to be MCP."""
    role = tables.roles.get(exchange.url) if len(tables.roles) else None
    if role is not None:
        kind = _by_role(role[0], exchange)
        if kind is not None:
            return kind
    if len(tables.named) and exchange.http_method in ("GET", "HEAD") and exchange.url in tables.named:
        return "resource-metadata"
    kind = reading.shape(exchange)
    if kind is not None or exchange.http_method != "GET" or not len(tables.callbacks):
        return kind
    query = exchange.query
    if query and ("code=" in query or "error=" in query) and exchange.url in tables.callbacks:
        return "callback"
    if (f"{exchange.url}?{query}" if query else exchange.url) in tables.next:
        return "login"
    return "client-metadata" if exchange.url in tables.documents else None


def _by_role(role: str, exchange: Exchange) -> StepKind | None:
    """What a request to an endpoint of an authorization server is."""
    if role == "authorize":
        if exchange.form is not None or (exchange.http_method == "GET" and "client_id=" in exchange.query):
            return "authorize"
        return None
    return POSTED.get(role) if exchange.http_method == "POST" else None


def step_of(kind: StepKind, exchange: Exchange) -> Step:
    agent = exchange.request_fields.first("user-agent") or ""
    return Step(kind, exchange.flow, exchange.started, exchange.url, connection=exchange.connection, agent=agent[:200])


def read(kind: StepKind, exchange: Exchange, tables: Tables) -> Step:
    """The step that a request is, with what its parameters say."""
    step = step_of(kind, exchange)
    role = tables.roles.get(exchange.url)
    if role is not None:
        step.server_of, step.role = role[1], role[2]
    match kind:
        case "resource-metadata":
            step.resource = ResourceMetadata(exchange.url, "other")
        case "server-metadata":
            _server_metadata(step, exchange, tables)
        case "registration":
            step.client = reading.read_registration(exchange)
            step.client.server = step.server_of
            step.shown = reading.Shown().add(reading.object_of(exchange) or {}, CLIENT_MEMBERS).members
        case "authorize" | "pushed":
            _authorize(step, exchange, tables)
        case "login" | "callback":
            _on_the_way(step, exchange, tables)
        case "token":
            _token(step, exchange, tables)
        case _:
            pass
    return step


def _server_metadata(step: Step, exchange: Exchange, tables: Tables) -> None:
    url = exchange.url
    known = tables.forms.get(url)
    server = known[0] if known is not None else tables.server_at.get(urls.origin(url) or "")
    listed = server is not None
    if server is None:
        server = tables.server(urls.issuer_of(url))
    index = known[1] if known is not None else None
    found = step.server = ServerMetadata(url, server.identifier, listed, index)
    step.server_of = server
    if index is not None:
        found.skipped = tuple(form for form in _forms_of(server, exchange)[:index] if form not in server.requested)
    if len(server.requested) < OF_SERVER:
        server.requested.setdefault(url, exchange.started)


def _forms_of(server: Server, exchange: Exchange) -> list[str]:
    """The places of a server's metadata in their order, as they are in this recording."""
    forms = urls.issuer_forms(server.identifier)
    here, there = urls.origin(exchange.url) or "", urls.origin(server.identifier) or ""
    return forms if here == there else [urls.moved(form, there, here) for form in forms]


def _authorize(step: Step, exchange: Exchange, tables: Tables) -> None:
    form = reading.form_of(exchange)
    ask = reading.read_ask(exchange, form)
    ask.server, ask.metadata = step.server_of, step.role
    state = form.get("state")
    before = _repeated(step, exchange, ask, state, tables)
    if before is not None and before.ask is not None:  # a login page repeats the request
        step.kind, step.ask, step.after = "login", before.ask, before
        return
    if ask.client_id is None and ask.response_type is None and not ask.by_reference:
        step.kind = "login"  # a form of a page, posted to the same URL: its redirect will tell whose it is
        return
    step.ask = ask
    step.shown = reading.shown_form(form)
    if ask.client_id is not None:
        ask.registration = tables.registration(ask.client_id, ask.server)
        if ask.client_id.startswith("https://") and (url := urls.place(ask.client_id)) is not None:
            tables.documents.put(url, step)
    if ask.code_challenge is not None:
        tables.asks.add(ask.code_challenge, step)
        if ask.client_id is not None:
            key = (ask.client_id, ask.redirect_uri or "")
            tables.waiting.put(key, [*(tables.waiting.get(key) or ()), step][-ASKS:])
    if state is not None:
        tables.states.add(reading.digest(state), step)
    if (back := urls.place(ask.redirect_uri)) is not None:
        tables.callbacks.add(back, step)


def _repeated(step: Step, exchange: Exchange, ask: Ask, state: str | None, tables: Tables) -> Step | None:
    """The authorization request that this one repeats on the way through login pages. Verifier and state of another request at
    another server may be equal, where a client does not draw them: that is another request."""
    linked = tables.next.get(f"{exchange.url}?{exchange.query}" if exchange.query else exchange.url)
    same_state = tables.states.of(reading.digest(state)) if state is not None else []
    same_challenge = tables.asks.of(ask.code_challenge) if ask.code_challenge else []
    for before in (*reversed(same_challenge), *reversed(same_state)):
        assert before.ask is not None
        one_client = before.ask.client_id == ask.client_id or (before in same_challenge and ask.client_id is None)
        if before is linked or (one_client and _one_server(before, step) and not _done(before)):
            return before
    return None


def _one_server(one: Step, two: Step) -> bool:
    """Whether two requests may be for one authorization server."""
    if one.server_of is not None and two.server_of is not None:
        return one.server_of is two.server_of
    return True


def _done(asked: Step) -> bool:
    """Whether the code of an authorization request was redeemed."""
    return asked.leads_to is not None


def _on_the_way(step: Step, exchange: Exchange, tables: Tables) -> None:
    if step.kind == "login":
        step.after = tables.next.get(f"{exchange.url}?{exchange.query}" if exchange.query else exchange.url)
    else:
        form = reading.form_of(exchange)
        state = form.get("state")
        fits = tables.states.of(reading.digest(state)) if state is not None else tables.callbacks.of(exchange.url)
        code = form.get("code")
        given = tables.codes.of(reading.digest(code)) if code is not None else []
        narrowed = [asked for asked in fits if asked in given] or fits
        step.after = narrowed[-1] if state is None and narrowed else only(narrowed, lambda s: _back_at(s, exchange))
        step.shown = reading.shown_form(form)
    if step.after is not None:
        step.ask = step.after.ask


def _token(step: Step, exchange: Exchange, tables: Tables) -> None:
    form = reading.form_of(exchange)
    call, secrets = reading.read_call(exchange, form)
    step.call, step.secrets, step.shown = call, secrets, reading.shown_form(form)
    call.server, call.metadata = step.server_of, step.role
    if call.client_id is not None:
        call.registration = tables.registration(call.client_id, call.server)
    if secrets.verifier:
        call.verifier = "unknown"
    if secrets.code:
        _redeem(step, exchange, secrets, tables)
    if secrets.refresh:
        step.after = only(
            tables.refresh.of(secrets.refresh),
            lambda given: given.url == exchange.url or (given.server_of is not None and given.server_of is step.server_of),
            lambda given: given.client_id == call.client_id,
        )
        key = (exchange.url, call.client_id or "", secrets.refresh)
        call.refresh_use = tables.refreshes.get(key)
        if call.refresh_use is None:
            call.refresh_use = RefreshUse(exchange.flow)
            tables.refreshes.put(key, call.refresh_use)
    if secrets.assertion:
        call.rejected_before = tables.rejected.get((exchange.url, secrets.assertion)) or ""
        exchanged = only(tables.identities.of(secrets.assertion), lambda given: given.client_id == call.client_id)
        call.exchanged = exchanged.flow if exchanged is not None else ""
    asked = tables.nonces.pop((exchange.url, call.client_id or "")) if len(tables.nonces) else None
    proof = jose.read(exchange.request_fields.first("dpop") or "") if asked is not None else None
    if asked is not None and (proof is None or proof.text("nonce") is None):
        call.nonce_left_out = asked
    refused = tables.grants.get((exchange.url, call.client_id or ""))
    if refused is not None and refused[0] != call.grant and exchange.started - refused[2] < AT_ONCE:
        call.switched_from = refused[:2]


def _redeem(step: Step, exchange: Exchange, secrets: Secrets, tables: Tables) -> None:
    """A code is exchanged: what it was asked for with, and where it should have gone."""
    call, given = step.call, [asked for asked in tables.codes.of(secrets.code) if asked.ask is not None]
    if call is None:
        return
    if not given:
        _redeem_unseen(step, call, exchange, secrets, tables)
        return
    asked = _asked_with(given, step, call, exchange, secrets, tables)
    if asked is None or asked.ask is None:
        call.codes_alike = len(given)
        if not any(other.ask is not None and other.ask.code_challenge for other in given):
            call.verifier = "unknown"  # none was asked for
        return
    ask = asked.ask
    step.after, call.ask, call.redirect = asked, ask, ask.redirect
    if secrets.verifier and ask.code_challenge is not None and ask.challenge_method == "S256":
        call.verifier = "right" if secrets.challenge == ask.code_challenge else "wrong"
    named = urls.place(ask.metadata.endpoints.get("token_endpoint")) if ask.metadata is not None else None
    if named is not None and exchange.url != named and not exchange.reverse:
        call.code_elsewhere = one_line(named, 300)


def _asked_with(
    given: list[Step], step: Step, call: TokenCall, exchange: Exchange, secrets: Secrets, tables: Tables
) -> Step | None:
    """The authorization request that brought a code, of those that got an equal one. First by the challenge, which only the
    client can fit, so that a code sent to a foreign server is known by it; None where several are left."""

    def fits(asked: Step) -> bool:
        return asked.ask is not None and asked.ask.code_challenge == secrets.challenge

    def here(asked: Step) -> bool:
        return _redeemed_at(asked, step, exchange)

    def same_client(asked: Step) -> bool:
        ask = asked.ask
        return ask is not None and ask.client_id == call.client_id and same_text(ask.redirect_uri, call.redirect_uri)

    if secrets.verifier and not any(fits(asked) for asked in given):
        if not any(here(asked) for asked in given):
            unseen = [
                asked for asked in tables.asks.of(secrets.challenge) if asked.ask is not None and asked.ask.redirect is None
            ]
            found = only([asked for asked in unseen if here(asked)])
            if found is not None:  # its way back was not seen, and brought an equal code
                return found
            return given[0] if len(given) == 1 and same_client(given[0]) else None
        return only([asked for asked in given if here(asked)], same_client, lambda asked: not _done(asked))
    if not secrets.verifier and len(given) > 1 and not any(here(asked) for asked in given):
        return None
    return only(given, fits, here, same_client, lambda asked: not _done(asked))


def _redeemed_at(asked: Step, step: Step, exchange: Exchange) -> bool:
    """Whether a code of this authorization request goes to the token endpoint of this token request."""
    if asked.server_of is not None and asked.server_of is step.server_of:
        return True
    named = urls.place(asked.ask.metadata.endpoints.get("token_endpoint")) if asked.ask and asked.ask.metadata else None
    return exchange.url == named if named is not None else urls.origin(asked.url) == urls.origin(exchange.url)


def same_text(one: str | None, two: str | None) -> bool:
    return one is None or two is None or one == two


def _back_at(asked: Step, exchange: Exchange) -> bool:
    return asked.ask is not None and urls.same_place(exchange.url, asked.ask.redirect_uri)


def only(candidates: Sequence[Step], *tests: Callable[[Step], bool]) -> Step | None:
    """The one of several that is meant: each test keeps those that pass it, where any does. None where several are left."""
    for test in tests:
        if len(candidates) < 2:
            break
        candidates = [c for c in candidates if test(c)] or candidates
    return candidates[0] if len(candidates) == 1 else None


def _redeem_unseen(step: Step, call: TokenCall, exchange: Exchange, secrets: Secrets, tables: Tables) -> None:
    """The code came back where nobody saw it: the verifier tells which request it was for. Where it fits none, it is for the only
    one of the same client that still waits."""
    if not secrets.verifier:
        return
    fitting = [s for s in tables.asks.of(secrets.challenge) if s.ask is not None and s.ask.client_id == call.client_id]
    asked = only(fitting, lambda s: _redeemed_at(s, step, exchange), lambda s: not _done(s))
    if asked is not None and asked.ask is not None:
        step.after, call.ask, call.verifier = asked, asked.ask, "right"
        return
    waiting = [
        other
        for other in tables.waiting.get((call.client_id or "", call.redirect_uri or "")) or ()
        if other.ask is not None and other.ask.redirect is None and other.leads_to is None and _one_server(other, step)
    ]
    if len(waiting) == 1 and exchange.started - waiting[0].at < WAITS:
        ask = waiting[0].ask
        if ask is not None and ask.challenge_method == "S256":
            step.after, call.ask, call.verifier = waiting[0], ask, "other"
