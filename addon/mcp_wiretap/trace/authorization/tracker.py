"""Ties the exchanges of authorization to MCP endpoints and to each other.

A step is recognised by its shape, and is nobody's until something ties it to an MCP endpoint: a challenge, metadata that name it,
a `resource` parameter, a well-known path of the same origin, a code, or a token that is later used there. Until then the exchange
is of kind `other` and waits, bounded.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mcp_wiretap.trace.authorization import reading, urls
from mcp_wiretap.trace.authorization.documents import (
    ROLES,
    ResourceMetadata,
    ServerMetadata,
    read_client,
    read_resource,
    read_server,
)
from mcp_wiretap.trace.authorization.sites import Site
from mcp_wiretap.trace.authorization.steps import (
    Ask,
    AuthorizationFlow,
    Challenge,
    Redirect,
    Registration,
    Server,
    Step,
    StepKind,
    StepUp,
    Target,
    Token,
)
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.recent import Recent
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import challenge as challenges
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.form import Form
from mcp_wiretap.wire.secret import one_line

if TYPE_CHECKING:
    from mcp_wiretap.trace.inspector import Inspector

LOOSE = 500  # steps that wait for what ties them to an MCP endpoint
TABLE = 2_000  # entries of each table that links steps, about 200 bytes each
TOKENS = 5_000
SERVERS = 500
OF_SERVER = 50  # endpoints, documents and metadata URLs of one authorization server
CLIENTS = 500  # registrations of one server
ISSUERS = 10  # of one resource that are looked at
TOKEN_ROLES = ("token", "registration", "revocation", "pushed")
DEFAULTS: dict[str, StepKind] = {"/authorize": "authorize", "/token": "token", "/register": "registration"}  # of 2025-03-26
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Authorization(Tracker):
    """Writes `exchange.facts["authorization"]` (a Step), `exchange.facts["token"]` (a Token) and, for each MCP endpoint,
    `endpoint.facts["authorization"]` (its flows) and `endpoint.facts["tokens"]` (tokens by the hash in `exchange.auth`)."""

    name = "authorization"

    def __init__(self, inspector: "Inspector") -> None:
        super().__init__(inspector)
        self._sites: OrderedDict[str, Site] = OrderedDict()
        self._at: Recent[str, list[Site]] = Recent(self.limits.endpoints)  # by origin
        self._named: Recent[str, Site] = Recent(TABLE)  # URLs of resource metadata that challenges name
        self._resources: Recent[str, Site] = Recent(TABLE)  # resource identifiers, canonical
        self._servers: Recent[str, Server] = Recent(SERVERS)
        self._forms: Recent[str, tuple[Server, int]] = Recent(TABLE)  # URLs of server metadata
        self._server_at: Recent[str, Server] = Recent(TABLE)  # by origin of a listed issuer
        self._roles: Recent[str, tuple[str, Server, ServerMetadata]] = Recent(TABLE)  # endpoints that server metadata name
        self._asks: Recent[str, Step] = Recent(TABLE)  # by code_challenge
        self._states: Recent[bytes, Step] = Recent(TABLE)
        self._codes: Recent[bytes, Step] = Recent(TABLE)
        self._next: Recent[str, Step] = Recent(TABLE)  # where redirects on the way lead to
        self._callbacks: Recent[str, Step] = Recent(TABLE)  # redirect URIs
        self._documents: Recent[str, Step] = Recent(TABLE)  # client ids that are URLs
        self._refresh: Recent[bytes, tuple[Step, Token]] = Recent(TABLE)
        self._rejected: Recent[bytes, str] = Recent(TABLE)  # assertions that were refused
        self._clients: Recent[str, AuthorizationFlow] = Recent(TABLE)  # newest flow of a client id
        self._registered: Recent[str, Registration] = Recent(TABLE)
        self._tokens: Recent[str, Token] = Recent(TOKENS)
        self._proofs: Recent[bytes, str] = Recent(TABLE)
        self._secrets: dict[str, reading.Secrets] = {}  # of token requests that are open
        self._open: dict[str, Step] = {}
        self._loose: OrderedDict[str, tuple[Step, Exchange]] = OrderedDict()
        self._watched: dict[str, Exchange] = {}  # challenges that may be judged anew when the probes fail
        self._numbers = 0

    def recognises(self, exchange: Exchange) -> bool:
        """Whether a request has the shape of a step, whatever headers it carries."""
        return self._kind(exchange) is not None

    # What happens

    def requested(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind == "mcp":
            self._mcp(exchange)
        elif exchange.kind == "other" and exchange.flow not in self._open:
            kind = self._kind(exchange)
            if kind is not None:
                self._begin(kind, exchange)
        return None

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind == "mcp":
            return self._mcp_ended(exchange)
        step = self._open.pop(exchange.flow, None)
        if step is None:
            if exchange.kind == "other" and exchange.status in _REDIRECTS and len(self._states):
                self._redirected_by_a_stranger(exchange)
            return None
        step.status = exchange.status
        self._answered(step, exchange)
        if step.part_of is None:
            self._tie(step, exchange)
        else:
            self._learn(step)
        return self._probes(step)

    # MCP exchanges

    def _mcp(self, exchange: Exchange) -> None:
        site = self._sites.get(exchange.endpoint.url)
        if site is None:
            site = self._new_site(exchange)
        if exchange.claim.revision is not None:
            site.revision = exchange.claim.revision
        if self._open.pop(exchange.flow, None) is not None or self._loose.pop(exchange.flow, None) is not None:
            self.inspector.held.free(exchange, self.name)
        if exchange.auth:
            token = self._tokens.get(exchange.auth) or self._new_token(exchange)
            exchange.facts["token"] = token
            table: dict[str, Token] = exchange.endpoint.facts.setdefault("tokens", {})
            if exchange.auth not in table:
                table[exchange.auth] = token
                if len(table) > 200:
                    del table[next(iter(table))]
            if exchange.request_fields.has("dpop"):
                self._proof(exchange)
        if exchange.over:  # it was taken for something else until now
            self._mcp_ended(exchange)

    def _new_site(self, exchange: Exchange) -> Site:
        url = exchange.endpoint.url
        origin = urls.origin(url) or url
        public = _public_origin(exchange, origin)
        site = self._sites[url] = Site(exchange.endpoint, origin, urls.resource_forms(url), exchange.reverse, public)
        exchange.endpoint.facts[self.name] = site.flows
        exchange.endpoint.facts["challenges"] = site.pending  # that nothing has followed so far
        here = self._at.get(origin)
        if here is None:
            here = []
            self._at.put(origin, here)
        here.append(site)
        self._resource(site, url)
        self._resource(site, site.url)
        if len(self._sites) > self.limits.endpoints:
            _, gone = self._sites.popitem(last=False)
            others = self._at.get(gone.origin)
            if others is not None and gone in others:
                others.remove(gone)
        self._retie(exchange)
        return site

    def _resource(self, site: Site, identifier: str | None) -> None:
        key = urls.canonical(identifier)
        if key is not None and key not in self._resources:
            self._resources.put(key, site)

    def _new_token(self, exchange: Exchange) -> Token:
        """An Authorization value that no answer of a token endpoint had brought."""
        header = exchange.request_fields.first("authorization") or ""
        scheme, _, value = header.partition(" ")
        value = value.strip() or scheme
        token = reading.read_token(value)
        token.bound = token.jwt is not None and token.jwt.thumbprint is not None
        self._tokens.put(exchange.auth, token)
        return token

    def _proof(self, exchange: Exchange) -> None:
        """`facts["proof-used-before"]`: the flow that had the same DPoP proof."""
        text = exchange.request_fields.first("dpop") or ""
        proof = jose.read(text)
        key = reading.digest((proof.text("jti") if proof is not None else None) or text)
        before = self._proofs.get(key)
        if before is not None:
            exchange.facts["proof-used-before"] = before
        self._proofs.put(key, exchange.flow)

    def _mcp_ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        status = exchange.status
        token: Token | None = exchange.facts.get("token")
        if status in (401, 403):
            return self._challenged(exchange, token)
        if token is not None and status is not None and 200 <= status < 300:
            url = exchange.endpoint.url
            if url not in token.accepted and len(token.accepted) < 20:
                token.accepted[url] = (exchange.endpoint, exchange.flow)
            if not token.used:
                token.used = True
                self._first_use(exchange, token)
            if exchange.session is not None and exchange.session.id:
                self._in_session(exchange, token)
        return None

    def _first_use(self, exchange: Exchange, token: Token) -> None:
        flow = token.part_of
        if flow is None and self._loose:
            self._retie(exchange)
            flow = token.part_of
        if flow is None or flow.endpoint is not exchange.endpoint:
            return
        step = self._step("use", exchange)
        step.status = exchange.status
        step.shown = {"authorization": token.mask}
        flow.add(step)
        flow.uses += 1
        flow.revision = flow.revision or exchange.claim.revision

    @staticmethod
    def _in_session(exchange: Exchange, token: Token) -> None:
        """`session.facts["tokens"]`: what was let in under this session id, by hash."""
        assert exchange.session is not None
        table: dict[str, tuple[Token, str]] = exchange.session.facts.setdefault("tokens", {})
        if exchange.auth not in table and len(table) < 50:
            exchange.facts["session-tokens"] = list(table.values())
            table[exchange.auth] = (token, exchange.flow)

    def _challenged(self, exchange: Exchange, token: Token | None) -> Iterable[Exchange] | None:
        fields = exchange.response_fields
        given = challenges.read(fields.all("www-authenticate")) if fields is not None else []
        asks = [c for c in given if c.scheme.lower() in ("bearer", "dpop")]
        best = next((c for c in asks if "resource_metadata" in c.params), asks[0] if asks else None)
        step = self._step("challenge", exchange)
        step.status = exchange.status
        step.challenge = Challenge(
            exchange.status or 0, best, tuple(c.scheme for c in given), exchange.method, exchange.name, exchange.claim.revision,
            exchange.claim.modern, token,
        )  # fmt: skip
        step.shown = {one_line(k, 60): one_line(v, 300) for k, v in list(best.params.items())[:20]} if best is not None else {}
        exchange.facts[self.name] = step
        site = self._sites[exchange.endpoint.url]
        site.challenged = True
        if best is not None and (named := urls.split(best.get("resource_metadata"))) is not None:
            self._named.put(named.place, site)
            if site.reverse:
                self._named.put(site.origin + named.path, site)
        flow = token.part_of if token is not None else None
        if flow is not None and flow.endpoint is exchange.endpoint:
            self._refused(flow, step)
        elif exchange.status == 401 or (best is not None and best.get("error") == "insufficient_scope"):
            if best is None or best.get("resource_metadata") is None:
                self._watch(exchange)
            gone = site.keep(step)
            if gone is not None:
                self._unwatch(gone.flow)
        return None

    def _refused(self, flow: AuthorizationFlow, step: Step) -> None:
        """A token that was issued in a flow fell short, or is not valid any more."""
        challenge = step.challenge
        assert challenge is not None
        flow.add(step)
        flow.challenge, flow.reopened = step, True
        if challenge.error != "insufficient_scope" and challenge.status != 401:
            return
        flow.refusal = step
        if challenge.status == 403:
            operation = (challenge.method, challenge.name)
            count, asks = flow.refused.get(operation, (0, -1))
            if flow.asks != asks and len(flow.refused) < 100:
                count += 1
                flow.refused[operation] = (count, flow.asks)
            challenge.cycle = max(count, 1)

    def _watch(self, exchange: Exchange) -> None:
        if len(self._watched) < 100 and not exchange.released:
            self._watched[exchange.flow] = exchange
            self.inspector.held.keep(exchange, self.name)

    def _unwatch(self, flow: str) -> None:
        exchange = self._watched.pop(flow, None)
        if exchange is not None:
            self.inspector.held.free(exchange, self.name)

    def _probes(self, step: Step) -> Iterable[Exchange] | None:
        """The places of the resource metadata were asked for: whether any gave them is what a bare 401 is judged by."""
        flow = step.part_of
        if flow is None or flow.challenge is None or flow.challenge.flow not in self._watched:
            return None
        challenge, site = flow.challenge.challenge, self._sites.get(flow.endpoint.url)
        if challenge is None or site is None:
            return None
        if flow.metadata is not None or step.kind in ("authorize", "token"):
            self._unwatch(flow.challenge.flow)
            return None
        asked = [s for s in flow.steps if s.kind == "resource-metadata" and s.status is not None]
        if asked and all(any(s.url == form for s in asked) for form in site.forms) and not challenge.probes_failed:
            challenge.probes_failed = True
            return [self._watched[flow.challenge.flow]]
        return None

    # Requests that look like a step

    def _kind(self, exchange: Exchange) -> StepKind | None:
        role = self._roles.get(exchange.url) if len(self._roles) else None
        if role is not None and (kind := _by_role(role[0], exchange)) is not None:
            return kind
        kind = reading.shape(exchange)
        if kind is not None or exchange.http_method != "GET" or not len(self._asks):
            return kind
        if exchange.query:
            if ("code=" in exchange.query or "error=" in exchange.query) and exchange.url in self._callbacks:
                return "callback"
            if f"{exchange.url}?{exchange.query}" in self._next:
                return "login"
        elif exchange.url in self._next:
            return "login"
        return "client-metadata" if exchange.url in self._documents else None

    def _step(self, kind: StepKind, exchange: Exchange) -> Step:
        agent = exchange.request_fields.first("user-agent") or ""
        return Step(kind, exchange.flow, exchange.started, exchange.url, connection=exchange.connection, agent=agent[:200])

    def _begin(self, kind: StepKind, exchange: Exchange) -> None:
        step = self._step(kind, exchange)
        role = self._roles.get(exchange.url)
        if role is not None:
            step.server_of, step.role = role[1], role[2]
        if kind == "resource-metadata":
            step.resource = ResourceMetadata(exchange.url, "other")
        elif kind == "server-metadata":
            self._server_metadata(step, exchange)
        elif kind == "registration":
            self._registration(step, exchange)
        elif kind in ("authorize", "pushed"):
            self._authorize(step, exchange)
        elif kind in ("login", "callback"):
            self._on_the_way(step, exchange)
        elif kind == "token":
            self._token(step, exchange)
        self._open[exchange.flow] = step
        self._tie(step, exchange)

    def _server_metadata(self, step: Step, exchange: Exchange) -> None:
        url = exchange.url
        known = self._forms.get(url)
        origin = urls.origin(url) or ""
        server = known[0] if known is not None else self._server_at.get(origin)
        listed = server is not None
        if server is None:
            server = self._server(urls.issuer_of(url))
        found = step.server = ServerMetadata(url, server.identifier, listed, known[1] if known is not None else None)
        step.server_of = server
        forms = self._forms_of(server, exchange)
        earlier = forms[: found.index] if found.index is not None else []
        found.skipped = tuple(form for form in earlier if form not in server.requested)
        if len(server.requested) < OF_SERVER:
            server.requested.setdefault(url, exchange.started)

    def _forms_of(self, server: Server, exchange: Exchange) -> list[str]:
        """The places of a server's metadata in their order, as they are in this recording."""
        forms = urls.issuer_forms(server.identifier)
        here = urls.origin(exchange.url) or ""
        there = urls.origin(server.identifier) or ""
        return forms if here == there else [urls.moved(form, there, here) for form in forms]

    def _server(self, identifier: str) -> Server:
        server = self._servers.get(identifier)
        if server is None:
            server = Server(identifier)
            self._servers.put(identifier, server)
        return server

    def _registration(self, step: Step, exchange: Exchange) -> None:
        step.client = reading.read_registration(exchange)
        step.client.server = step.server_of
        value = reading.object_of(exchange) or {}
        step.shown = reading.Shown().add(value, _CLIENT_MEMBERS).members

    def _authorize(self, step: Step, exchange: Exchange) -> None:
        form = reading.form_of(exchange)
        ask = reading.read_ask(exchange, form)
        ask.server, ask.metadata = step.server_of, step.role
        before = self._asks.get(ask.code_challenge) if ask.code_challenge else None
        if before is None and (state := form.get("state")) is not None:
            same = self._states.get(reading.digest(state))
            before = same if same is not None and same.ask is not None and same.ask.client_id == ask.client_id else None
        if before is not None and before.ask is not None:
            step.kind, step.ask = "login", before.ask
            step.after = before
            step.shown = {"redirect_uri": one_line(ask.redirect_uri or "", 200)} if ask.redirect_uri else {}
            return
        step.ask = ask
        step.shown = reading.shown_form(form)
        if ask.client_id is not None:
            ask.registration = self._registration_of(ask.client_id, ask.server)
            if ask.client_id.startswith("https://") and (url := urls.place(ask.client_id)) is not None:
                self._documents.put(url, step)
        if ask.code_challenge is not None:
            self._asks.put(ask.code_challenge, step)
        if (state := form.get("state")) is not None:
            self._states.put(reading.digest(state), step)
        if (back := urls.place(ask.redirect_uri)) is not None:
            self._callbacks.put(back, step)

    def _registration_of(self, client_id: str, server: Server | None) -> Registration | None:
        here = server.clients.get(client_id) if server is not None else None
        return here or self._registered.get(client_id)

    def _on_the_way(self, step: Step, exchange: Exchange) -> None:
        if step.kind == "login":
            step.after = self._next.get(f"{exchange.url}?{exchange.query}" if exchange.query else exchange.url)
        else:
            form = reading.form_of(exchange)
            state = form.get("state")
            step.after = self._states.get(reading.digest(state)) if state is not None else self._callbacks.get(exchange.url)
            step.shown = reading.shown_form(form)
        if step.after is not None:
            step.ask = step.after.ask

    def _token(self, step: Step, exchange: Exchange) -> None:
        form = reading.form_of(exchange)
        call, secrets = reading.read_call(exchange, form)
        step.call, step.shown = call, reading.shown_form(form)
        call.server, call.metadata = step.server_of, step.role
        if call.client_id is not None:
            call.registration = self._registration_of(call.client_id, call.server)
        if secrets.code:
            self._redeem(step, exchange, secrets)
        if secrets.refresh and (found := self._refresh.get(secrets.refresh)) is not None:
            step.after = found[0]
        if secrets.assertion:
            call.rejected_before = self._rejected.get(secrets.assertion) or ""
        self._secrets[exchange.flow] = secrets

    def _redeem(self, step: Step, exchange: Exchange, secrets: reading.Secrets) -> None:
        """A code is exchanged: with what it was asked for, and whether by the one who asked."""
        call = step.call
        assert call is not None
        asked = self._codes.get(secrets.code)
        if secrets.verifier:
            call.verifier = "unknown"
        if asked is None or asked.ask is None:
            return
        step.after, call.ask, call.redirect = asked, asked.ask, asked.ask.redirect
        if secrets.verifier and asked.ask.code_challenge is not None and asked.ask.challenge_method == "S256":
            call.verifier = "right" if secrets.challenge == asked.ask.code_challenge else "wrong"
        document = asked.ask.metadata
        named = urls.split(document.endpoints.get("token_endpoint")) if document is not None else None
        if named is None or exchange.url == named.place:
            return
        known = self._roles.get(exchange.url)
        if exchange.reverse and (known is None or known[1] is asked.ask.server or urls.split(exchange.url) is None):
            return
        if not exchange.reverse:
            call.code_elsewhere = named.place

    # What ties a step to an MCP endpoint

    def _tie(self, step: Step, exchange: Exchange, *, current: bool = True) -> bool:
        """Make the step part of a flow, if by now something ties it to an MCP endpoint. `current`: its exchange is the one that
        is being looked at, and is judged after this."""
        linked = step.after.part_of if step.after is not None else None
        site = self._sites.get(linked.endpoint.url) if linked is not None else self._site_of(step)
        if site is None:
            if exchange.flow not in self._loose:
                self._wait(step, exchange)
            return False
        if linked is None:
            linked = self._by_client(step, site)
        flow = site.flow_for(step, linked, self._numbers + 1)
        self._numbers = max(self._numbers, flow.number)
        exchange.kind, exchange.endpoint = "oauth", site.endpoint
        exchange.facts[self.name] = step
        self._join(step, flow, site)
        flow.add(step)
        waited = self._loose.pop(exchange.flow, None) is not None  # before `_learn`, which ties others
        if step.status is not None:
            self._learn(step)
        if waited:
            if not current:
                self.inspector.rejudge(exchange)
            self.inspector.held.free(exchange, self.name)
        return True

    def _wait(self, step: Step, exchange: Exchange) -> None:
        self._loose[exchange.flow] = (step, exchange)
        self.inspector.held.keep(exchange, self.name)
        while len(self._loose) > LOOSE:
            _, (_, gone) = self._loose.popitem(last=False)
            self.inspector.held.free(gone, self.name)

    def _retie(self, current: Exchange) -> None:
        """Something new is known: look at what waits."""
        more = True
        while more and self._loose:
            more = False
            for step, exchange in list(self._loose.values()):
                if exchange is not current and self._tie(step, exchange, current=False):
                    more = True

    def _site_of(self, step: Step) -> Site | None:
        match step.kind:
            case "resource-metadata":
                return self._site_of_resource(step)
            case "server-metadata":
                return self._site_of_server(step.server_of) or self._only_site_at(step.url)
            case "login" | "callback" | "revocation" | "client-metadata":
                return None if step.kind != "revocation" else self._site_of_server(step.server_of)
        named = False
        for resource in _resources(step):
            named = True
            if (key := urls.canonical(resource)) is not None and (site := self._resources.get(key)) is not None:
                return site
        found = self._site_of_server(step.server_of) or self._site_by_token(step) or self._site_of_default(step)
        if named and found is not None and not any(f.under_way and not f.asks and f.has("server-metadata") for f in found.flows):
            return None  # an authorization server has other resources than the one that was seen
        return found

    def _site_of_resource(self, step: Step) -> Site | None:
        named = self._named.get(step.url)
        if named is not None:
            return named
        here = self._at.get(urls.origin(step.url) or "")
        document = step.resource
        if document is not None and document.resource is not None:
            key = urls.canonical(document.resource)
            site = self._resources.get(key) if key is not None else None
            if site is not None:
                return site
        if not here:
            return None
        exact = [s for s in here if s.forms and s.forms[0] == step.url.rstrip("/")]
        root = [s for s in here if step.url in s.forms]
        found = exact or root or here
        return next((s for s in reversed(found) if s.challenged), found[0])

    def _site_of_server(self, server: Server | None) -> Site | None:
        if server is None or not server.sites:
            return None
        sites = [site for url in server.sites if (site := self._sites.get(url)) is not None]
        if len(sites) < 2:
            return sites[0] if sites else None
        return max(sites, key=lambda s: max((f.last for f in s.flows if f.under_way), default=0.0))

    def _only_site_at(self, url: str) -> Site | None:
        """2025-03-26: metadata of the authorization server at the origin of the MCP server itself."""
        here = self._at.get(urls.origin(url) or "")
        if not here:
            return None
        return next((s for s in reversed(here) if s.challenged), here[0])

    def _site_of_default(self, step: Step) -> Site | None:
        url = urls.split(step.url)
        if url is None or DEFAULTS.get(url.path) != step.kind:
            return None
        site = self._only_site_at(step.url)
        if site is None or not (site.challenged or site.flows):
            return None
        step.fallback = True
        return site

    def _site_by_token(self, step: Step) -> Site | None:
        """A token that this step brought is used at an MCP endpoint; or the code, or the client, of such a step is this one's."""
        if step.token is not None and step.token.accepted:
            return self._sites.get(next(iter(step.token.accepted)))
        if step.leads_to is not None and step.leads_to.part_of is not None:
            return self._sites.get(step.leads_to.part_of.endpoint.url)
        return None

    def _by_client(self, step: Step, site: Site) -> AuthorizationFlow | None:
        """The flow that the client id of a step names, unless a newer one has just begun that has no client id yet."""
        client_id = _client_id(step)
        flow = self._clients.get(client_id) if client_id is not None else None
        if flow is None or flow.endpoint is not site.endpoint:
            return None
        if step.kind in ("authorize", "pushed") and not flow.under_way:
            begun = [f for f in site.flows if f.client_id is None and f.under_way and f.last > flow.last and not f.asks]
            if begun or any(c.at > flow.last for c in site.pending):
                return None
        return flow

    # What a step adds to its flow

    def _join(self, step: Step, flow: AuthorizationFlow, site: Site) -> None:
        """At the request: what rules are to know of the steps before it."""
        if flow.revision is None:
            flow.revision = site.revision
        if step.kind == "resource-metadata" and step.resource is not None:
            self._join_resource(step, step.resource, flow, site)
        elif step.kind == "server-metadata" and step.server is not None:
            done = [s for s in flow.steps if s.kind == "server-metadata" and s.server_of is step.server_of]
            forms = {s.server.index: s.url for s in done if s.server is not None and s.server.read and s.server.right_issuer}
            index = step.server.index
            step.server.needless = next((u for i, u in forms.items() if index is not None and i is not None and i < index), "")
        elif step.kind in ("authorize", "pushed") and step.ask is not None:
            self._join_ask(step, step.ask, flow)
        step.target = _target(step, flow, site)
        client_id = _client_id(step)
        if client_id is not None and step.kind != "registration":
            self._adopt(flow, client_id, step)

    @staticmethod
    def _join_resource(step: Step, found: ResourceMetadata, flow: AuthorizationFlow, site: Site) -> None:
        found.origin_known = site.known
        asked = [s.url for s in flow.steps if s.kind == "resource-metadata"]
        challenge = flow.challenge.challenge if flow.challenge is not None else None
        found.challenged = challenge is not None
        named = urls.split(challenge.metadata_url) if challenge is not None else None
        if named is not None:
            here = site.origin + named.path if site.reverse else named.place
            found.named, found.named_before = here, here in asked
            if site.reverse and step.url == here and named.origin != site.origin:
                site.public = named.origin
                found.origin_known = True
        if step.url == found.named:
            found.form = "named"
        elif site.forms and step.url == site.forms[0] and len(site.forms) > 1:
            found.form = "path"
        elif site.forms and step.url == site.forms[-1]:
            found.form = "root"
        if len(site.forms) > 1:
            found.path_form = site.forms[0]
            found.path_before = found.path_form in asked

    @staticmethod
    def _join_ask(step: Step, ask: Ask, flow: AuthorizationFlow) -> None:
        refusal = flow.refusal
        if refusal is not None and refusal.challenge is not None and refusal.challenge.scopes is not None:
            challenge = refusal.challenge
            token = challenge.token
            before = _kept(token.asked, token.granted) if token is not None else None
            union = dict.fromkeys((*(before or ()), *(challenge.scopes or ())))
            have = frozenset(ask.scopes or ())
            ask.step_up = StepUp(
                refusal.flow, before or (), challenge.scopes or (), tuple(s for s in union if s not in have),
                challenge.status == 403 and before is not None,
            )  # fmt: skip
            step.shown["scopes so far"] = one_line(" ".join(before or ()), 300)
            step.shown["scopes challenged"] = one_line(" ".join(challenge.scopes or ()), 300)
            if ask.step_up.missing:
                step.shown["scopes dropped"] = one_line(" ".join(ask.step_up.missing), 300)
        elif flow.challenge is not None and not flow.asks and not flow.tokens:
            ask.initial = flow.challenge.challenge
        flow.refusal = None
        flow.asks += 1
        flow.asked = ask.scopes
        if ask.server is not None:
            flow.server = ask.server

    def _adopt(self, flow: AuthorizationFlow, client_id: str, step: Step) -> None:
        if flow.client_id is None:
            flow.client_id = client_id
            if flow.how is None:
                document = client_id.startswith(("https://", "http://"))
                registered = self._registration_of(client_id, step.server_of) is not None
                flow.how = "metadata-document" if document else "dynamic" if registered else "pre-registered"
        self._clients.put(client_id, flow)

    # Answers

    def _answered(self, step: Step, exchange: Exchange) -> None:
        """What the answer to a step says, whether or not the step is tied to an endpoint yet."""
        value = reading.answer_of(exchange)
        good = value if step.ok else None
        match step.kind:
            case "resource-metadata" if good is not None and step.resource is not None:
                read_resource(step.resource, good)
                step.shown = reading.Shown().add(good, _RESOURCE_MEMBERS).members
            case "server-metadata" if good is not None and step.server is not None:
                self._read_server(step, step.server, good, exchange)
            case "registration" if step.client is not None:
                self._registered_as(step, step.client, value)
            case "client-metadata" if good is not None:
                self._client_document(step, good, exchange)
            case "token" if step.call is not None:
                self._given(step, exchange, value)
            case "pushed" if good is not None:
                pass
        if exchange.status in _REDIRECTS:
            self._redirected(step, exchange)

    def _read_server(self, step: Step, found: ServerMetadata, value: dict[str, object], exchange: Exchange) -> None:
        read_server(found, value)
        step.shown = reading.Shown().add(value, _SERVER_MEMBERS).members
        server = step.server_of
        assert server is not None
        server.documents.append(found)
        del server.documents[:-OF_SERVER]
        issuer_origin = urls.origin(found.issuer) or ""
        here = urls.origin(exchange.url) or ""
        for member, role in ROLES.items():
            place = urls.place(found.endpoints.get(member))
            if place is None:
                continue
            self._roles.put(place, (role, server, found))
            if exchange.reverse and issuer_origin and place.startswith(issuer_origin + "/"):
                self._roles.put(urls.moved(place, issuer_origin, here), (role, server, found))

    def _registered_as(self, step: Step, client: Registration, value: dict[str, object] | None) -> None:
        if not step.ok or value is None:
            if value is not None:
                step.shown |= reading.Shown().add(value, ("error", "error_description")).members
            return
        client.given = read_client(value)
        step.shown |= reading.Shown().add(value, ("client_id", "client_secret", "token_endpoint_auth_method")).members
        client_id = client.given.client_id
        if client_id is None:
            return
        self._registered.put(client_id, client)
        if client.server is not None:
            if len(client.server.clients) >= CLIENTS:
                del client.server.clients[next(iter(client.server.clients))]
            client.server.clients[client_id] = client

    def _client_document(self, step: Step, value: dict[str, object], exchange: Exchange) -> None:
        """A client metadata document was fetched. It is hosted by the client, whoever asks for it."""
        asked = self._documents.get(exchange.url)
        step.client = Registration(exchange.flow, exchange.started, read_client(value), None, None, True)
        step.shown = reading.Shown().add(value, _CLIENT_MEMBERS).members
        if asked is not None:
            step.after, step.ask = asked, asked.ask
            if asked.ask is not None and asked.ask.client_id is not None:
                self._registered.put(asked.ask.client_id, step.client)

    def _given(self, step: Step, exchange: Exchange, value: dict[str, object] | None) -> None:
        call, secrets = step.call, self._secrets.pop(exchange.flow, None)
        assert call is not None
        if value is None:
            return
        call.answered = True
        step.shown |= reading.Shown().add(value, _TOKEN_MEMBERS).members
        error = value.get("error")
        if isinstance(error, str):
            call.error = error[:200]
            if secrets is not None and secrets.assertion:
                self._rejected.put(secrets.assertion, exchange.flow)
            return
        access = value.get("access_token")
        if not step.ok or not isinstance(access, str) or not access:
            return
        kind = value.get("token_type")
        call.token_type = kind[:50] if isinstance(kind, str) else None
        scope = value.get("scope")
        call.granted = tuple(scope.split()[:200]) if isinstance(scope, str) else None
        step.token = self._issue(step, exchange, access)
        refresh = value.get("refresh_token")
        if isinstance(refresh, str) and refresh:
            key = reading.digest(refresh)
            call.refresh = "same" if secrets is not None and key == secrets.refresh else "new"
            self._refresh.put(key, (step, step.token))

    def _issue(self, step: Step, exchange: Exchange, access: str) -> Token:
        call = step.call
        assert call is not None
        scheme = "DPoP" if (call.token_type or "").lower() == "dpop" else "Bearer"
        key = reading.auth_of(f"{scheme} {access}")
        token = self._tokens.get(key)
        if token is None or token.digest != reading.digest(access):
            token = reading.read_token(access)
            self._tokens.put(key, token)
        token.bound = scheme == "DPoP" or (token.jwt is not None and token.jwt.thumbprint is not None)
        if token.bound:
            self._tokens.put(reading.auth_of(f"Bearer {access}"), token)
        if len(token.issued) < 10:
            token.issued.append((exchange.flow, step.part_of))
        token.server = call.server
        earlier = step.after.token if step.after is not None and call.grant == "refresh_token" else None
        asked = call.scopes
        if asked is None and call.ask is not None:
            asked = call.ask.scopes
        if asked is None and earlier is not None:
            asked = earlier.asked
        token.asked, token.granted = asked, call.granted
        if step.after is not None:
            step.after.leads_to = step
        return token

    # Redirects

    def _redirected(self, step: Step, exchange: Exchange) -> None:
        """Back to the client with a code, or on to another page."""
        asked = step.after if step.kind in ("login", "callback") else step
        if asked is None or asked.ask is None or step.kind == "callback":
            return
        found = reading.read_redirect(exchange)
        if found is None:
            self._goes_on(asked, exchange)
            return
        redirect, form = found
        self._came_back(step, asked, redirect, form)

    def _came_back(self, step: Step, asked: Step, redirect: Redirect, form: Form) -> None:
        ask = asked.ask
        assert ask is not None
        state = form.get("state")
        if state is not None or ask.has_state:
            redirect.same_state = state is not None and self._states.get(reading.digest(state)) is asked
        redirect.registered = ask.redirect_uri is None or urls.place(redirect.to) == urls.place(ask.redirect_uri)
        ask.redirect = step.redirect = redirect
        shown = {"redirects to": one_line(redirect.to, 200)}
        step.shown |= shown | {k: v for k, v in reading.shown_form(form).items() if k in ("code", "iss", "error", "state")}
        if (code := form.get("code")) is not None:
            self._codes.put(reading.digest(code), asked)

    def _goes_on(self, asked: Step, exchange: Exchange) -> None:
        fields = exchange.response_fields
        location = fields.first("location") if fields is not None else None
        target = urls.joined(exchange.url, location) if location else None
        if target is not None:
            self._next.put(f"{target.place}?{target.query}" if target.query else target.place, asked)

    def _redirected_by_a_stranger(self, exchange: Exchange) -> None:
        """A page that nothing had shown to be on the way, a login form for one, sends the browser back with the state of a known
        request."""
        found = reading.read_redirect(exchange)
        if found is None:
            return
        redirect, form = found
        state = form.get("state")
        asked = self._states.get(reading.digest(state)) if state is not None else None
        if asked is None or asked.ask is None:
            return
        step = self._step("login", exchange)
        step.status, step.after, step.ask = exchange.status, asked, asked.ask
        self._came_back(step, asked, redirect, form)
        self._tie(step, exchange)

    # What an answer adds to the flow and to what is known

    def _learn(self, step: Step) -> None:
        """A step of a flow has been answered."""
        flow = step.part_of
        assert flow is not None
        site = self._sites.get(flow.endpoint.url)
        if site is None:
            return
        if step.kind == "resource-metadata" and step.resource is not None and step.resource.read:
            self._learn_resource(step.resource, flow, site)
        elif step.kind == "server-metadata" and step.server is not None and step.server.read:
            self._learn_server(step.server, flow, site, step.server_of)
        elif step.kind == "registration" and step.client is not None and step.client.given is not None:
            client_id = step.client.given.client_id
            if client_id is not None:
                flow.client_id, flow.how = client_id, "dynamic"
                self._clients.put(client_id, flow)
        elif step.kind == "token" and step.token is not None:
            self._learn_token(step, step.token, flow)
        self._settle_links(step)

    def _learn_resource(self, found: ResourceMetadata, flow: AuthorizationFlow, site: Site) -> None:
        flow.metadata = found
        found.relation = urls.relation(found.resource, site.url, origins=site.known)
        self._resource(site, found.resource)
        for identifier in found.servers[:ISSUERS]:
            url = urls.split(identifier)
            if url is None:
                continue
            server = self._server(identifier)
            if len(server.sites) < OF_SERVER:
                server.sites[site.endpoint.url] = site.endpoint
            self._server_at.put(url.origin, server)
            for index, form in enumerate(urls.issuer_forms(identifier)):
                self._forms.put(form, (server, index))
                if site.reverse and url.origin == (site.public or urls.origin(found.resource)):
                    self._forms.put(urls.moved(form, url.origin, site.origin), (server, index))
                    self._server_at.put(site.origin, server)

    @staticmethod
    def _learn_server(found: ServerMetadata, flow: AuthorizationFlow, site: Site, server: Server | None) -> None:
        if flow.metadata is not None:
            found.alternatives = flow.metadata.servers
        if server is not None:
            flow.server = server
            if len(server.sites) < OF_SERVER:
                server.sites.setdefault(site.endpoint.url, site.endpoint)

    @staticmethod
    def _learn_token(step: Step, token: Token, flow: AuthorizationFlow) -> None:
        call = step.call
        assert call is not None
        flow.tokens += 1
        flow.reopened = False
        flow.refreshes += call.grant == "refresh_token"
        flow.granted = call.granted or token.asked
        if call.server is not None:
            flow.server = call.server
        token.issued = [(f, flow if f == step.flow else owner) for f, owner in token.issued]
        if token.server is None:
            token.server = flow.server

    def _settle_links(self, step: Step) -> None:
        """Steps before this one that nothing had tied yet are its flow's."""
        if self._loose:
            for waiting, exchange in list(self._loose.values()):
                if waiting is not step and (waiting.leads_to is step or waiting.server_of is step.server_of):
                    self._tie(waiting, exchange, current=False)


_RESOURCE_MEMBERS = ("resource", "authorization_servers", "scopes_supported", "bearer_methods_supported")
_SERVER_MEMBERS = (
    "issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint", "scopes_supported",
    "code_challenge_methods_supported", "token_endpoint_auth_methods_supported", "client_id_metadata_document_supported",
    "authorization_response_iss_parameter_supported",
)  # fmt: skip
_CLIENT_MEMBERS = (
    "client_id", "client_name", "application_type", "redirect_uris", "grant_types", "token_endpoint_auth_method", "scope",
)  # fmt: skip
_TOKEN_MEMBERS = (
    "access_token", "refresh_token", "id_token", "token_type", "expires_in", "scope", "error", "error_description",
)  # fmt: skip


def _by_role(role: str, exchange: Exchange) -> StepKind | None:
    """What a request to an endpoint of an authorization server is."""
    if role == "authorize":
        return "authorize" if exchange.query or exchange.form is not None else None
    if role in TOKEN_ROLES and exchange.http_method == "POST":
        return role  # type: ignore[return-value]
    return None


def _resources(step: Step) -> Iterator[str]:
    if step.ask is not None:
        yield from step.ask.resources
    if step.call is not None:
        yield from step.call.resources


def _target(step: Step, flow: AuthorizationFlow, site: Site) -> Target:
    """What the `resource` parameters of a request name."""
    worst: Target = "none"
    for resource in _resources(step):
        found = urls.relation(resource, site.url, origins=site.known)
        listed = flow.metadata.resource if flow.metadata is not None else None
        if found == "invalid":
            return "invalid"
        if found in ("other-path", "other-origin") and (listed is None or urls.canonical(resource) != urls.canonical(listed)):
            return "other" if site.known else "unknown"
        worst = "right"
    return worst


def _client_id(step: Step) -> str | None:
    if step.kind in ("authorize", "pushed") and step.ask is not None:
        return step.ask.client_id
    return step.call.client_id if step.call is not None else None


def _kept(asked: tuple[str, ...] | None, granted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The scopes asked for that were not refused."""
    if asked is None or granted is None:
        return asked if granted is None else granted
    return tuple(scope for scope in asked if scope in granted)


def _public_origin(exchange: Exchange, origin: str) -> str | None:
    """The origin that the client called, where a reverse proxy recorded another one."""
    if not exchange.reverse:
        return origin
    fields = exchange.request_fields
    host = fields.first("x-forwarded-host") or exchange.authority
    scheme = fields.first("x-forwarded-proto") or exchange.url.partition("://")[0]
    found = urls.origin(f"{scheme}://{host}") if host else None
    return found if found is not None and found != origin else None
