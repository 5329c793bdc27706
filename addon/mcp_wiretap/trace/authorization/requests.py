"""Requests that look like steps of authorization, made into steps and linked to those before them, whoever's they are."""

from mcp_wiretap.trace.authorization import reading, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata, ServerMetadata
from mcp_wiretap.trace.authorization.steps import Secrets, Server, Step, StepKind, TokenCall
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
    "client_id", "client_name", "application_type", "redirect_uris", "grant_types", "token_endpoint_auth_method", "scope",
)  # fmt: skip


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
    before = tables.asks.get(ask.code_challenge) if ask.code_challenge else None
    if before is None and state is not None:
        same = tables.states.get(reading.digest(state))
        before = same if same is not None and same.ask is not None and same.ask.client_id == ask.client_id else None
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
        tables.asks.put(ask.code_challenge, step)
        if ask.client_id is not None:
            key = (ask.client_id, ask.redirect_uri or "")
            tables.waiting.put(key, [*(tables.waiting.get(key) or ()), step][-ASKS:])
    if state is not None:
        tables.states.put(reading.digest(state), step)
    if (back := urls.place(ask.redirect_uri)) is not None:
        tables.callbacks.put(back, step)


def _on_the_way(step: Step, exchange: Exchange, tables: Tables) -> None:
    if step.kind == "login":
        step.after = tables.next.get(f"{exchange.url}?{exchange.query}" if exchange.query else exchange.url)
    else:
        form = reading.form_of(exchange)
        state = form.get("state")
        step.after = tables.states.get(reading.digest(state)) if state is not None else tables.callbacks.get(exchange.url)
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
        step.after = tables.refresh.get(secrets.refresh)
    if secrets.assertion:
        call.rejected_before = tables.rejected.get(secrets.assertion) or ""
        call.exchanged = tables.identities.get(secrets.assertion) or ""
    asked = tables.nonces.pop((exchange.url, call.client_id or "")) if len(tables.nonces) else None
    proof = jose.read(exchange.request_fields.first("dpop") or "") if asked is not None else None
    if asked is not None and (proof is None or proof.text("nonce") is None):
        call.nonce_left_out = asked
    refused = tables.grants.get((exchange.url, call.client_id or ""))
    if refused is not None and refused[0] != call.grant and exchange.started - refused[2] < AT_ONCE:
        call.switched_from = refused[:2]


def _redeem(step: Step, exchange: Exchange, secrets: Secrets, tables: Tables) -> None:
    """A code is exchanged: what it was asked for with, and where it should have gone."""
    call, asked = step.call, tables.codes.get(secrets.code)
    if call is not None and asked is None:
        _redeem_unseen(step, call, exchange, secrets, tables)
        return
    if call is None or asked is None or asked.ask is None:
        return
    ask = asked.ask
    step.after, call.ask, call.redirect = asked, ask, ask.redirect
    if secrets.verifier and ask.code_challenge is not None and ask.challenge_method == "S256":
        call.verifier = "right" if secrets.challenge == ask.code_challenge else "wrong"
    named = urls.place(ask.metadata.endpoints.get("token_endpoint")) if ask.metadata is not None else None
    if named is not None and exchange.url != named and not exchange.reverse:
        call.code_elsewhere = one_line(named, 300)


def _redeem_unseen(step: Step, call: TokenCall, exchange: Exchange, secrets: Secrets, tables: Tables) -> None:
    """The code came back where nobody saw it: the verifier tells which request it was for. Where it fits none, it is for the only
    one of the same client that still waits."""
    if not secrets.verifier:
        return
    asked = tables.asks.get(secrets.challenge)
    if asked is not None and asked.ask is not None and asked.ask.client_id == call.client_id:
        step.after, call.ask, call.verifier = asked, asked.ask, "right"
        return
    waiting = [
        other
        for other in tables.waiting.get((call.client_id or "", call.redirect_uri or "")) or ()
        if other.ask is not None and other.ask.redirect is None and other.leads_to is None
    ]
    if len(waiting) == 1 and exchange.started - waiting[0].at < WAITS:
        ask = waiting[0].ask
        if ask is not None and ask.challenge_method == "S256":
            step.after, call.ask, call.verifier = waiting[0], ask, "other"
