"""Ties the exchanges of authorization to MCP endpoints.

A step is recognised by its shape, and is nobody's until something ties it to an MCP endpoint: a challenge, metadata that name it,
a `resource` parameter, a well-known path of the same origin, a code, or a token that is later used there. Until then the exchange
is of kind `other` and waits, bounded. An authorization server has other clients, too: a request to one is an MCP client's only
where that client is known, or a program of its name is on its way to a token there.
"""

from collections import OrderedDict
from collections.abc import Iterable

from mcp_wiretap.trace.authorization import answers, joining, reading, requests, urls
from mcp_wiretap.trace.authorization.sites import Site
from mcp_wiretap.trace.authorization.steps import (
    AUTHORIZATION_FLOWS,
    CHALLENGES,
    LET_IN,
    NEVER_ASKED,
    NONCE_DUE,
    PROOF_USED_BEFORE,
    QUERY_TOKENS,
    SESSION_TOKENS,
    STEP,
    TOKEN,
    TOKEN_LEFT_OUT,
    TOKENS,
    TOKENS_OF_SESSION,
    TOOL_ERROR,
    AuthorizationFlow,
    Challenge,
    Step,
    StepKind,
    Token,
)
from mcp_wiretap.trace.authorization.tables import Tables
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import challenge as challenges
from mcp_wiretap.wire import form as forms
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.secret import one_line

LOOSE = 500  # steps that wait for what ties them to an MCP endpoint
OPEN = 2_000  # steps without an answer
REGISTERED = "registered"  # why a registration is held
WATCHED = 100  # challenges that may be judged anew
MOST_TOKENS = 200  # of one endpoint, by hash
OF_TOKEN = 20  # endpoints that one token is let in by
OF_SESSION = 50  # tokens of one session
IN_QUERY = 20  # members of a query that are looked at
SHORTEST = 16  # characters of what may be a token
BARE = 50  # requests without token that wait for the next one on their connection
PASSES = 4  # over what waits, when something new is known
DEFAULTS: dict[str, StepKind] = {"/authorize": "authorize", "/token": "token", "/register": "registration"}  # of 2025-03-26

_TELLING = frozenset({"resource-metadata", "server-metadata", "registration", "token"})  # steps that tell where others belong


class Authorization(Tracker):
    """Facts of an exchange: "authorization" (a Step), "token" (a Token), "let-in" (the first time that this token was, here).
    Facts of an MCP endpoint: "authorization" (its flows), "tokens" (by the hash in `exchange.auth`)."""

    name = "authorization"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._tables = Tables()
        self._open: Recent[str, Step] = Recent(OPEN)
        self._loose: OrderedDict[str, tuple[Step, Exchange]] = OrderedDict()
        self._watched: dict[str, Exchange] = {}
        self._queried: OrderedDict[bytes, Exchange] = OrderedDict()  # by the digest of a value in the query
        self._bare = 0  # requests without token that are kept
        self._bearers: Recent[tuple[str, str], tuple[str, list[Exchange]]] = Recent(OPEN)  # connection and endpoint -> the newest
        # token there, and what was refused since for having none
        self._registered: Recent[str, tuple[Exchange, Step]] = Recent(WATCHED)  # registrations, by flow
        self._numbers = 0

    def recognises(self, exchange: Exchange) -> bool:
        """Whether a request has the shape of a step, whatever headers it carries."""
        return requests.kind_of(exchange, self._tables) is not None

    def requested(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind == "mcp":
            self._mcp(exchange)
        elif exchange.kind == "other" and exchange.flow not in self._open:
            kind = requests.kind_of(exchange, self._tables)
            if kind is not None:
                step = requests.read(kind, exchange, self._tables)
                self._open.put(exchange.flow, step)
                self._tie(step, exchange)
        return None

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind == "mcp":
            self._mcp_ended(exchange)
            return None
        step = self._open.pop(exchange.flow)
        if step is None:
            if exchange.kind == "other" and exchange.status in answers.REDIRECTS and len(self._tables.states):
                step = requests.step_of("login", exchange)
                if answers.by_a_stranger(exchange, step, self._tables):
                    self._tie(step, exchange)
            return None
        step.status, step.ended = exchange.status, exchange.ended
        answers.read(step, exchange, self._tables)
        if step.part_of is None:
            self._tie(step, exchange)
        else:
            self._learn(step)
        if step.token is not None and len(self._queried):
            self._shown_before(step.token)
        if self._loose and step.part_of is not None and step.kind in _TELLING:
            self._retie(exchange)
        if step.kind == "registration" and step.client is not None and step.client.given is not None:
            self.memory.held.keep(exchange, REGISTERED)
            for forgotten in self._registered.put(exchange.flow, (exchange, step)):
                self.memory.held.free(forgotten[0], REGISTERED)
        return self._probes(step)

    def finished(self) -> Iterable[Exchange]:
        """Registrations that no authorization request followed (OAU041)."""
        told = []
        for exchange, step in self._registered.values():
            flow = step.part_of
            if flow is not None and not exchange.released and flow.asks == 0 and flow.tokens == 0:
                exchange.facts[NEVER_ASKED] = True
                told.append(exchange)
        return told

    # MCP exchanges

    def _mcp(self, exchange: Exchange) -> None:
        site = self._tables.sites.get(exchange.endpoint.url)
        new = site is None
        if site is None:
            site = self._new_site(exchange)
        if exchange.claim.revision is not None:
            site.revision = exchange.claim.revision
        if self._open.pop(exchange.flow) is not None and self._loose.pop(exchange.flow, None) is not None:
            self.memory.held.free(exchange, self.name)
        if exchange.auth:
            token = self._tables.tokens.get(exchange.auth) or self._new_token(exchange)
            exchange.facts[TOKEN] = token
            self._nonce_due(exchange, token)
            self._with_token(exchange, token)
            table: dict[str, Token] = exchange.endpoint.facts.setdefault(TOKENS, {})
            if exchange.auth not in table:
                table[exchange.auth] = token
                if len(table) > MOST_TOKENS:
                    del table[next(iter(table))]
            if exchange.request_fields.has("dpop"):
                self._proof(exchange)
        if exchange.query:
            self._in_query(exchange)
        if exchange.over:  # it was taken for something else until now
            self._mcp_ended(exchange)
        if new:
            self._retie(exchange)

    def _in_query(self, exchange: Exchange) -> None:
        """`facts[QUERY_TOKENS]`: members of the query whose value is an access token of this trace, whenever that was seen."""
        query = forms.read(exchange.query)
        for name in list(query)[:IN_QUERY]:
            value = query.get(name)
            if value is None or len(value) < SHORTEST or name == "access_token":
                continue
            key = reading.digest(value)
            known = self._tables.tokens.get(reading.auth_of(f"Bearer {value}"))
            if known is not None and known.digest == key:
                exchange.facts.setdefault(QUERY_TOKENS, set()).add(name)
            elif key not in self._queried and len(self._queried) < WATCHED:
                self._queried[key] = exchange
                self.memory.held.keep(exchange, "query")

    def _shown_before(self, token: Token) -> None:
        """A token is seen: whether it stood in a query before."""
        exchange = self._queried.pop(token.digest, None)
        if exchange is None:
            return
        query = forms.read(exchange.query)
        names = [n for n in list(query)[:IN_QUERY] if reading.digest(query.get(n) or "") == token.digest]
        exchange.facts.setdefault(QUERY_TOKENS, set()).update(names)
        if not exchange.released:
            self.memory.rejudge(exchange)
        self.memory.held.free(exchange, "query")

    def _with_token(self, exchange: Exchange, token: Token) -> None:
        """`facts[TOKEN_LEFT_OUT]` of a request that was refused between two with the same token on its connection: that token,
        and the flow that had it."""
        self._shown_before(token)
        key = (exchange.connection, exchange.endpoint.url)
        before = self._bearers.get(key) if exchange.connection else None
        for bare in before[1] if before is not None else ():
            if before is not None and before[0] == exchange.auth and not bare.released and _one_sender(bare, exchange):
                bare.facts[TOKEN_LEFT_OUT] = (token, exchange.flow)
                self.memory.rejudge(bare)
            self._free_bare(bare)
        if exchange.connection:
            for _, forgotten in self._bearers.put(key, (exchange.auth, [])):
                for bare in forgotten:
                    self._free_bare(bare)

    def _without_token(self, exchange: Exchange) -> None:
        before = self._bearers.get((exchange.connection, exchange.endpoint.url))
        if before is not None and self._bare < BARE and exchange.session is None:
            before[1].append(exchange)
            self._bare += 1
            self.memory.held.keep(exchange, "bare")

    def _free_bare(self, exchange: Exchange) -> None:
        self._bare -= 1
        self.memory.held.free(exchange, "bare")

    def _new_site(self, exchange: Exchange) -> Site:
        url, tables = exchange.endpoint.url, self._tables
        origin = urls.origin(url) or url
        site = Site(exchange.endpoint, origin, urls.resource_forms(url), exchange.reverse, _public_origin(exchange, origin))
        site.agents.add((exchange.request_fields.first("user-agent") or "")[:200])
        tables.sites[url] = site
        exchange.endpoint.facts[AUTHORIZATION_FLOWS] = site.flows
        exchange.endpoint.facts[CHALLENGES] = site.pending  # that nothing has followed so far, for the pages
        here = tables.at.get(origin)
        if here is None:
            here = []
            tables.at.put(origin, here)
        here.append(site)
        tables.resource(site, url)
        tables.resource(site, site.url)
        if len(tables.sites) > self.limits.endpoints:
            _, gone = tables.sites.popitem(last=False)
            others = tables.at.get(gone.origin)
            if others is not None and gone in others:
                others.remove(gone)
        return site

    def _new_token(self, exchange: Exchange) -> Token:
        """An Authorization value that no answer of a token endpoint had brought."""
        header = exchange.request_fields.first("authorization") or ""
        scheme, _, value = header.partition(" ")
        token = reading.read_token(value.strip() or scheme)
        token.bound = scheme.lower() == "dpop" or (token.jwt is not None and token.jwt.thumbprint is not None)
        self._tables.tokens.put(exchange.auth, token)
        site = self._tables.sites.get(exchange.endpoint.url)
        if site is not None and len(site.agents) < MOST_TOKENS:
            site.agents.add((exchange.request_fields.first("user-agent") or "")[:200])
        return token

    @staticmethod
    def _nonce_due(exchange: Exchange, token: Token) -> None:
        """`facts[NONCE_DUE]`: the flow in which this server had asked for a nonce in the proof, before the request was sent."""
        asked = token.nonces.get(urls.origin(exchange.url) or "") if token.nonces else None
        if asked is not None and asked[1] <= exchange.started:
            exchange.facts[NONCE_DUE] = asked[0]

    def _proof(self, exchange: Exchange) -> None:
        """`facts[PROOF_USED_BEFORE]`: the flow that had the same DPoP proof."""
        text = exchange.request_fields.first("dpop") or ""
        proof = jose.read(text)
        key = (exchange.url, reading.digest((proof.text("jti") if proof is not None else None) or text))
        before = self._tables.proofs.get(key)
        if before is not None:
            exchange.facts[PROOF_USED_BEFORE] = before
        self._tables.proofs.put(key, exchange.flow)

    def _mcp_ended(self, exchange: Exchange) -> None:
        status = exchange.status
        token: Token | None = exchange.facts.get(TOKEN)
        if status in (401, 403):
            if status == 401 and token is None:
                self._without_token(exchange)
            self._challenged(exchange, token)
        elif token is not None and status is not None and 200 <= status < 300:
            if (
                exchange.method == "tools/call"
                and (answer := exchange.answer) is not None
                and answer.result.get("isError") is True
            ):
                exchange.facts[TOOL_ERROR] = True
            url = exchange.endpoint.url
            new = url not in token.accepted and len(token.accepted) < OF_TOKEN
            if new:
                token.accepted[url] = (exchange.endpoint, exchange.flow)
                exchange.facts[LET_IN] = True
            if not token.used or (new and token.shared):
                token.used = True
                self._first_use(exchange, token)
            if exchange.session is not None and exchange.session.id:
                self._in_session(exchange, token)

    def _first_use(self, exchange: Exchange, token: Token) -> None:
        flow = token.flow_for(exchange.endpoint)
        if flow is None and self._loose:
            self._retie(exchange)
            flow = token.flow_for(exchange.endpoint)
        if flow is None or flow.endpoint is not exchange.endpoint:
            return
        step = requests.step_of("use", exchange)
        step.status = exchange.status
        step.shown = {"authorization": token.mask}
        flow.add(step)
        flow.uses += 1
        flow.revision = flow.revision or exchange.claim.revision

    @staticmethod
    def _in_session(exchange: Exchange, token: Token) -> None:
        """Keep a token that was let in under a session id, and note the others that were before it."""
        assert exchange.session is not None
        table: dict[str, tuple[Token, str]] = exchange.session.facts.setdefault(TOKENS_OF_SESSION, {})
        if exchange.auth not in table and len(table) < OF_SESSION:
            if table:
                exchange.facts[SESSION_TOKENS] = list(table.values())
            table[exchange.auth] = (token, exchange.flow)

    # Challenges

    def _challenged(self, exchange: Exchange, token: Token | None) -> None:
        fields = exchange.response_fields
        given = challenges.read(fields.all("www-authenticate")) if fields is not None else []
        asks = [c for c in given if c.scheme.lower() in ("bearer", "dpop")]
        best = next((c for c in asks if "resource_metadata" in c.params), asks[0] if asks else None)
        step = requests.step_of("challenge", exchange)
        step.status = exchange.status
        step.challenge = Challenge(
            exchange.status or 0,
            best,
            tuple(c.scheme for c in given),
            exchange.method,
            exchange.name,
            exchange.claim.revision,
            exchange.claim.modern,
            token,
        )
        step.shown = {one_line(k, 60): one_line(v, 300) for k, v in list(best.params.items())[:20]} if best is not None else {}
        exchange.facts[STEP] = step
        if token is not None and fields is not None and fields.has("dpop-nonce"):
            origin = urls.origin(exchange.url) or ""
            if any(c.get("error") == "use_dpop_nonce" for c in asks) and (origin in token.nonces or len(token.nonces) < OF_TOKEN):
                token.nonces[origin] = (exchange.flow, exchange.ended or exchange.requested)
        site = self._tables.sites.get(exchange.endpoint.url) or self._new_site(exchange)  # the oldest go when there are many
        site.challenged = True
        if len(site.agents) < MOST_TOKENS:
            site.agents.add(step.agent)
        named = urls.split(best.get("resource_metadata")) if best is not None else None
        if named is not None:
            self._tables.named.put(named.place, site)
            if site.reverse:
                self._tables.named.put(site.origin + named.path, site)
        flow = token.flow_for(exchange.endpoint) if token is not None else None
        if flow is not None and flow.endpoint is exchange.endpoint:
            _refused(flow, step)
        elif exchange.status == 401 or step.challenge.error == "insufficient_scope":
            if named is None and len(self._watched) < WATCHED and not exchange.released:
                self._watched[exchange.flow] = exchange
                self.memory.held.keep(exchange, self.name)
            gone = site.keep(step)
            if gone is not None:
                self._unwatch(gone.flow)

    def _unwatch(self, flow: str) -> None:
        exchange = self._watched.pop(flow, None)
        if exchange is not None:
            self.memory.held.free(exchange, self.name)

    def _probes(self, step: Step) -> Iterable[Exchange] | None:
        """The places of the resource metadata were asked for: whether any gave them is what a bare 401 is judged by."""
        flow = step.part_of
        if flow is None or flow.challenge is None or flow.challenge.flow not in self._watched:
            return None
        challenge, site = flow.challenge.challenge, self._tables.sites.get(flow.endpoint.url)
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

    # What ties a step to an MCP endpoint

    def _tie(self, step: Step, exchange: Exchange, *, current: bool = True) -> bool:
        """Make the step part of a flow, if by now something ties it to an MCP endpoint. `current`: its exchange is the one that
        is being looked at, and is judged after this."""
        linked = step.after.part_of if step.after is not None else None
        site = self._tables.sites.get(linked.endpoint.url) if linked is not None else self._site_of(step)
        if site is None:
            if exchange.flow not in self._loose:
                self._wait(step, exchange)
            return False
        waited = self._loose.pop(exchange.flow, None) is not None
        flow = site.flow_for(step, linked or self._by_client(step, site), self._numbers + 1)
        self._numbers = max(self._numbers, flow.number)
        exchange.kind, exchange.endpoint = "oauth", site.endpoint
        exchange.facts[STEP] = step
        joining.join(step, flow, site)
        self._name_client(step, flow)
        flow.add(step)
        exchange.step, exchange.step_words = step.kind, step.words
        if step.status is not None:
            self._learn(step)
        if waited:
            if not current:
                self.memory.rejudge(exchange)
            self.memory.held.free(exchange, self.name)
        return True

    def _wait(self, step: Step, exchange: Exchange) -> None:
        self._loose[exchange.flow] = (step, exchange)
        self.memory.held.keep(exchange, self.name)
        while len(self._loose) > LOOSE:
            _, (_, gone) = self._loose.popitem(last=False)
            self.memory.held.free(gone, self.name)

    def _retie(self, current: Exchange) -> None:
        """Something new is known: look at what waits. One step may tie another that came before it, so look again."""
        for _ in range(PASSES):
            waiting = [entry for entry in self._loose.values() if entry[1] is not current]
            tied = [self._tie(step, exchange, current=False) for step, exchange in waiting]
            if not any(tied):
                return

    def _learn(self, step: Step) -> None:
        """A step of a flow was answered."""
        assert step.part_of is not None
        site = self._tables.sites.get(step.part_of.endpoint.url)
        if site is not None:
            answers.learn(step, site, self._tables)

    def _name_client(self, step: Step, flow: AuthorizationFlow) -> None:
        client_id = step.client_id
        if client_id is None or step.kind == "registration":
            return
        if flow.client_id is None:
            flow.client_id = client_id
            if flow.how is None:
                document = client_id.startswith(("https://", "http://"))
                registered = self._tables.registration(client_id, step.server_of) is not None
                flow.how = "metadata-document" if document else "dynamic" if registered else "pre-registered"
        self._tables.clients.add(client_id, flow)

    def _by_client(self, step: Step, site: Site) -> AuthorizationFlow | None:
        """The flow that the client id of a step names, unless a newer one has begun that has no client id yet."""
        known = self._tables.clients.of(step.client_id) if step.client_id is not None else []
        flow = next((f for f in reversed(known) if f.endpoint is site.endpoint and _of_server(f, step)), None)
        if flow is None:
            return None
        if step.kind in ("authorize", "pushed") and not flow.under_way:
            begun = any(f.client_id is None and f.under_way and f.last > flow.last and not f.asks for f in site.flows)
            if begun or any(c.at > flow.last for c in site.pending):
                return None
        return flow

    def _site_of(self, step: Step) -> Site | None:
        match step.kind:
            case "resource-metadata":
                return self._site_of_resource(step)
            case "server-metadata":
                return self._site_of_metadata(step)
            case "login" | "callback" | "client-metadata":
                return None
        for resource in step.resources:
            key = urls.canonical(resource)
            site = self._tables.resources.get(key) if key is not None else None
            if site is not None:
                return site
        return self._site_of_server(step) or self._site_by_token(step) or self._site_of_default(step)

    def _site_of_resource(self, step: Step) -> Site | None:
        named = self._tables.named.get(step.url)
        if named is not None:
            return named
        key = urls.canonical(step.resource.resource) if step.resource is not None else None
        site = self._tables.resources.get(key) if key is not None else None
        if site is not None:
            return site
        here = self._tables.sites_at(step.url)
        if not here:
            return None
        exact = [s for s in here if s.forms and s.forms[0] == step.url.rstrip("/")]
        found = exact or [s for s in here if step.url in s.forms] or here
        return next((s for s in reversed(found) if s.challenged), found[0])

    def _site_of_metadata(self, step: Step) -> Site | None:
        """Of a listed server, or (2025-03-26) of the MCP server's own origin; asked for by a program that is known there."""
        listed = [s for s in self._tables.sites_of(step.server_of) if s.knows(step)]
        if listed:
            return max(listed, key=lambda s: s.busy)
        here = [s for s in self._tables.sites_at(step.url) if s.knows(step)]
        return next((s for s in reversed(here) if s.challenged), here[0] if here else None)

    def _site_of_server(self, step: Step) -> Site | None:
        """Of a request to an authorization server: where its client is known, or a flow is at that server just now."""
        known = self._tables.clients.of(step.client_id) if step.client_id is not None else []
        at = {flow.endpoint.url for flow in known if _of_server(flow, step)}
        found: Site | None = None
        for site in self._tables.sites_of(step.server_of):
            if site.endpoint.url in at and not step.resources:
                return site
            if site.awaits(step) and (found is None or site.busy > found.busy):
                found = site
        return found

    def _site_by_token(self, step: Step) -> Site | None:
        """A token that this step brought is used at an MCP endpoint, or the step led to one that was."""
        if step.token is not None and step.token.accepted:
            return self._tables.sites.get(next(iter(step.token.accepted)))
        if step.leads_to is not None and step.leads_to.part_of is not None:
            return self._tables.sites.get(step.leads_to.part_of.endpoint.url)
        return None

    def _site_of_default(self, step: Step) -> Site | None:
        """The default places of 2025-03-26, at the origin of an MCP server that has asked for a token."""
        url = urls.split(step.url)
        if url is None or DEFAULTS.get(url.path) != step.kind:
            return None
        here = [s for s in self._tables.sites_at(step.url) if (s.challenged or s.flows) and (s.knows(step) or step.by_browser)]
        if not here:
            return None
        step.fallback = True
        return here[-1]


def _of_server(flow: AuthorizationFlow, step: Step) -> bool:
    """Whether a flow may be at the authorization server that a step goes to."""
    return flow.server is None or step.server_of is None or flow.server is step.server_of


def _refused(flow: AuthorizationFlow, step: Step) -> None:
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
        count, asks = flow.refused.get(operation, (0, 0))
        if flow.asks != asks and len(flow.refused) < OF_SESSION:
            count += 1
            flow.refused[operation] = (count, flow.asks)
        challenge.cycle = max(count, 1)


def _public_origin(exchange: Exchange, origin: str) -> str | None:
    """The origin that the client called, where a reverse proxy recorded another one."""
    if not exchange.reverse:
        return origin
    fields = exchange.request_fields
    host = fields.first("x-forwarded-host") or exchange.authority
    scheme = fields.first("x-forwarded-proto") or exchange.url.partition("://")[0]
    found = urls.origin(f"{scheme}://{host}") if host else None
    return found if found is not None and found != origin else None


def _one_sender(bare: Exchange, exchange: Exchange) -> bool:
    """Whether a request without token and one with it may be one client's. A gateway, or a program with several clients, uses a
    connection for all of them; one of these that begins has no token yet."""
    if bare.method in (None, "initialize", "server/discover"):
        return False
    if any(e.request_fields.has(name) for e in (bare, exchange) for name in ("via", "forwarded", "x-forwarded-for")):
        return False
    agents = [e.request_fields.first("user-agent") for e in (bare, exchange)]
    return agents[0] == agents[1] and bare.client_info == exchange.client_info
