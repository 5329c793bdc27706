"""The facts of authorization: steps, the flow that they are part of, tokens. Data only: `tracker` fills it, others read it.

No secret is in here: codes, tokens and verifiers are digests, what is shown of them is masked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mcp_wiretap.trace.authorization.documents import ClientMetadata, ResourceMetadata, ServerMetadata
from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact, SessionFact
from mcp_wiretap.trace.model import Endpoint
from mcp_wiretap.wire.challenge import Challenge as Given
from mcp_wiretap.wire.jose import Jwt
from mcp_wiretap.wire.secret import one_line

MOST_STEPS = 200  # of one flow; later ones are judged, but not listed

type StepKind = Literal[
    "challenge",  # 401 or 403 of the MCP endpoint
    "resource-metadata",
    "server-metadata",
    "client-metadata",
    "registration",
    "pushed",  # a pushed authorization request
    "authorize",
    "login",  # pages between the authorization request and the redirect back
    "callback",  # the redirect back, where the client received it through the proxy
    "token",
    "revocation",
    "use",  # the first request that was let in with a token
]
_WORDS: dict[StepKind, str] = {
    "resource-metadata": "resource metadata",
    "client-metadata": "client metadata",
    "registration": "register",
    "pushed": "pushed request",
    "revocation": "revoke",
}
type Target = Literal[
    "none",  # there is no `resource`
    "right",  # the endpoint, a parent of it, or what its metadata call it
    "other",
    "unknown",  # a reverse proxy recorded it, and what clients call the endpoint is not known
    "invalid",  # no absolute URL, or one with a fragment
]
type How = Literal["metadata-document", "dynamic", "pre-registered"]


@dataclass(slots=True)
class Secrets:
    """What links a token request to what came before it: digests only."""

    code: bytes = b""
    refresh: bytes = b""
    assertion: bytes = b""
    challenge: str = ""  # S256 of the verifier
    verifier: bool = False


@dataclass(slots=True, eq=False)
class Step:
    """One exchange of an authorization flow."""

    kind: StepKind
    flow: str
    at: float
    url: str  # without query
    part_of: AuthorizationFlow | None = None
    status: int | None = None
    ended: float | None = None
    shown: dict[str, str] = field(default_factory=dict)  # what is telling in it, secrets masked
    challenge: Challenge | None = None
    resource: ResourceMetadata | None = None
    server: ServerMetadata | None = None
    client: Registration | None = None
    ask: Ask | None = None  # of authorize and pushed; of login and callback: the request that they go on with
    redirect: Redirect | None = None
    call: TokenCall | None = None
    connection: str = ""
    agent: str = ""
    token: Token | None = None  # that the answer brought
    server_of: Server | None = None  # the authorization server that it went to
    role: ServerMetadata | None = None  # the document that names its URL
    after: Step | None = None  # the step that it goes on from, by a code, a state, a refresh token
    leads_to: Step | None = None  # the token request that goes on from it
    target: Target = "none"  # what `resource` names
    secrets: Secrets | None = None  # of a token request that is not answered yet: digests
    fallback: bool = False  # known by its path alone: the default endpoints of 2025-03-26

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def words(self) -> str:
        """The step in words: what it asks, and of whom."""
        if self.kind == "token" and self.call is not None:
            return f"token ({one_line(self.call.grant.rpartition(':')[2], 60) or 'no grant_type'})"
        if self.kind == "resource-metadata" and self.part_of is not None:
            return f"resource metadata of {self.part_of.endpoint.url}"
        if self.kind == "server-metadata":
            return f"server metadata of {self.server_of.identifier if self.server_of is not None else self.url}"
        return _WORDS.get(self.kind, self.kind)

    @property
    def by_browser(self) -> bool:
        """The user's browser sends it, not the client."""
        return self.kind in ("authorize", "login", "callback")

    @property
    def resources(self) -> tuple[str, ...]:
        if self.ask is not None:
            return self.ask.resources
        return self.call.resources if self.call is not None else ()

    @property
    def client_id(self) -> str | None:
        if self.kind in ("authorize", "pushed") and self.ask is not None:
            return self.ask.client_id
        return self.call.client_id if self.call is not None else None


@dataclass(slots=True, eq=False)
class Challenge:
    """A 401 or 403 of an MCP endpoint."""

    status: int
    given: Given | None  # the challenge that asks for a token (Bearer, DPoP); None where there is none
    schemes: tuple[str, ...]
    method: str | None
    name: str | None
    revision: str | None  # that its request declares
    modern: bool
    token: Token | None
    probes_failed: bool = False  # the well-known places of the resource metadata were asked, and none gave any
    cycle: int = 1  # refusals of this operation for its scope, each after another authorization

    @property
    def metadata_url(self) -> str | None:
        return self.given.get("resource_metadata") if self.given is not None else None

    @property
    def scopes(self) -> tuple[str, ...] | None:
        return self.given.scopes if self.given is not None else None

    @property
    def error(self) -> str | None:
        return self.given.get("error") if self.given is not None else None


@dataclass(slots=True, eq=False)
class Registration:
    """A dynamic registration, or a client metadata document: what was sent, and what the server made of it."""

    flow: str
    at: float
    sent: ClientMetadata
    given: ClientMetadata | None = None
    server: Server | None = None
    document: bool = False
    known_client: bool = False  # the same client registered at this server before


@dataclass(slots=True, eq=False)
class StepUp:
    """The scopes that an authorization request should have after a refusal for lack of scope."""

    flow: str  # of the challenge
    before: tuple[str, ...]  # asked for (and not refused) for the token that fell short
    challenged: tuple[str, ...]
    missing: tuple[str, ...]  # of the union of both, in the new request
    sure: bool  # a 403 to a token whose scopes were seen


@dataclass(slots=True, eq=False)
class Ask:
    """An authorization request."""

    flow: str
    at: float
    url: str
    response_type: str | None
    client_id: str | None
    redirect_uri: str | None
    scopes: tuple[str, ...] | None
    resources: tuple[str, ...]
    code_challenge: str | None
    challenge_method: str | None
    has_state: bool
    by_reference: bool  # its parameters are elsewhere: a pushed request, a request object
    server: Server | None = None
    metadata: ServerMetadata | None = None  # that names this endpoint
    registration: Registration | None = None
    first: bool = True  # not a repetition on the way through login pages
    redirect: Redirect | None = None
    step_up: StepUp | None = None
    initial: Challenge | None = None  # of the first request after a 401 of the same client: that challenge


@dataclass(slots=True, eq=False)
class Redirect:
    """The authorization response, as it was seen on its way."""

    flow: str
    at: float
    to: str  # without query
    has_code: bool
    iss: str | None
    same_state: bool | None  # None: neither side has one
    error: str | None
    registered: bool = True


@dataclass(slots=True, eq=False)
class RefreshUse:
    """What became of one refresh token that one client sent to a token endpoint."""

    flow: str  # of the request that was served, or of the first one
    result: Literal["pending", "rotated", "kept", "refused", "lost"] = "pending"
    ended: float = 0.0  # when it was served
    refusals: list[str] = field(default_factory=list)  # flows in which it was refused, oldest first, bounded


@dataclass(slots=True, eq=False)
class TokenCall:
    """A request to a token endpoint, and its answer."""

    grant: str
    client_id: str | None
    auth_method: str  # none, client_secret_basic, client_secret_post, private_key_jwt, ...
    scopes: tuple[str, ...] | None
    resources: tuple[str, ...]
    redirect_uri: str | None
    server: Server | None = None
    metadata: ServerMetadata | None = None  # that names this endpoint
    ask: Ask | None = None  # that brought the code
    redirect: Redirect | None = None
    registration: Registration | None = None
    verifier: str = ""  # "", right, wrong, unknown, or other: not that of the only request that waits, whose code was not seen
    verifier_form: str = ""  # what is wrong with its form
    assertion: Jwt | None = None
    has_assertion: bool = False
    assertion_typed: bool = True  # a client assertion comes with its type
    saml: bool = False  # the assertion is one of SAML
    rejected_before: str = ""  # flow in which the same assertion was refused
    exchanged: str = ""  # flow of the token exchange that gave the assertion as an ID-JAG
    nonce_left_out: str = ""  # flow in which the server had asked for a nonce in the DPoP proof
    switched_from: tuple[str, str] | None = None  # grant and flow of an assertion refused just before
    codes_alike: int = 0  # authorization requests that were given this code, where it is not known which of them is meant
    code_elsewhere: str = ""  # the token endpoint of the server that issued the code, where this is another one
    answered: bool = False
    granted: tuple[str, ...] | None = None
    token_type: str | None = None
    error: str | None = None
    refresh: Literal["none", "same", "new"] = "none"  # the refresh token in the answer
    refresh_use: RefreshUse | None = None  # of the refresh token that it sends
    dpop: bool = False


@dataclass(slots=True, eq=False)
class Issue:
    """An answer of a token endpoint that brought a token."""

    flow: str
    url: str  # of the token endpoint
    part_of: AuthorizationFlow | None
    server: Server | None
    asked: tuple[str, ...] | None  # scopes asked for
    granted: tuple[str, ...] | None


@dataclass(slots=True, eq=False)
class Token:
    """An access token: seen in use, or on its way to the client."""

    digest: bytes
    mask: str
    length: int
    ath: str  # BASE64URL of its SHA-256, as a DPoP proof has it
    issued: list[Issue] = field(default_factory=list)  # newest last
    bound: bool = False  # to a key (DPoP)
    jwt: Jwt | None = None
    used: bool = False
    nonces: dict[str, tuple[str, float]] = field(default_factory=dict)  # origin -> flow that asked for a nonce, and when it ended
    accepted: dict[str, tuple[Endpoint, str]] = field(default_factory=dict)  # URL -> endpoint, first flow that was let in

    @property
    def shared(self) -> bool:
        """Whether several token endpoints gave this very value: then it says nothing about who gave it."""
        return len({issue.url for issue in self.issued}) > 1

    def issue_of(self, step: Step) -> Issue:
        """That of a token answer; the newest where it is forgotten."""
        return next((i for i in reversed(self.issued) if i.flow == step.flow), self.issued[-1])

    def issue_for(self, endpoint: Endpoint) -> Issue | None:
        """The newest that was for an MCP endpoint; without one the newest of all, where one server gave them all."""
        here = next((i for i in reversed(self.issued) if i.part_of is not None and i.part_of.endpoint is endpoint), None)
        return here or (self.issued[-1] if self.issued and not self.shared else None)

    def flow_for(self, endpoint: Endpoint) -> AuthorizationFlow | None:
        issue = self.issue_for(endpoint)
        return issue.part_of if issue is not None else None

    @property
    def part_of(self) -> AuthorizationFlow | None:
        return self.issued[-1].part_of if self.issued else None

    @property
    def server(self) -> Server | None:
        return self.issued[-1].server if self.issued else None

    @property
    def asked(self) -> tuple[str, ...] | None:
        return self.issued[-1].asked if self.issued else None

    @property
    def granted(self) -> tuple[str, ...] | None:
        return self.issued[-1].granted if self.issued else None

    @property
    def subject(self) -> tuple[str, str] | None:
        """Whose token it is; None where it does not say."""
        subject = self.jwt.text("sub") if self.jwt is not None else None
        return (self.jwt.text("iss") or "", subject) if self.jwt is not None and subject else None


@dataclass(slots=True, eq=False)
class Server:
    """An authorization server, by its issuer identifier."""

    identifier: str
    sites: dict[str, Endpoint] = field(default_factory=dict)  # MCP endpoints that list it
    documents: list[ServerMetadata] = field(default_factory=list)  # newest last
    requested: dict[str, float] = field(default_factory=dict)  # metadata URLs asked for, by anybody
    clients: dict[str, Registration] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        """As its metadata say; the identifier where none were seen."""
        return next((d.issuer for d in reversed(self.documents) if d.issuer), self.identifier)


@dataclass(slots=True, eq=False)
class AuthorizationFlow:
    """One client's way to tokens for one MCP endpoint, from the first step seen to their use."""

    endpoint: Endpoint
    started: float
    number: int  # in the trace, from 1
    connection: str = ""
    agent: str = ""  # User-Agent of the client itself, not of the browser
    server: Server | None = None
    client_id: str | None = None
    how: How | None = None  # how the client id came to be
    steps: list[Step] = field(default_factory=list)
    more: int = 0  # steps past the bound
    last: float = 0.0
    challenge: Step | None = None  # the newest
    refusal: Step | None = None  # the newest 403 for lack of scope, which no request has followed yet
    metadata: ResourceMetadata | None = None  # newest document of the resource
    asks: int = 0
    asked: tuple[str, ...] | None = None
    granted: tuple[str, ...] | None = None
    tokens: int = 0
    refreshes: int = 0
    uses: int = 0
    reopened: bool = False  # its token was refused: another one is to come
    revision: str | None = None  # that the client declares to the endpoint
    sure: bool = True  # False: other flows were under way, and a step may have been another one's
    refused: dict[tuple[str | None, str | None], tuple[int, int]] = field(default_factory=dict)  # operation -> refusals, asks

    @property
    def issuer(self) -> str | None:
        return self.server.issuer if self.server is not None else None

    @property
    def under_way(self) -> bool:
        """A token is still to come."""
        return self.tokens == 0 or self.reopened

    @property
    def status(self) -> Literal["discovering", "registered", "authorizing", "token", "in use", "refused"]:
        if self.reopened:
            return "refused"
        if self.uses:
            return "in use"
        if self.tokens:
            return "token"
        if self.asks:
            return "authorizing"
        return "registered" if self.client_id is not None else "discovering"

    def has(self, kind: StepKind) -> bool:
        return any(step.kind == kind for step in self.steps)

    def add(self, step: Step) -> None:
        step.part_of = self
        self.last = max(self.last, step.at)
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)
        else:
            self.more += 1


STEP: ExchangeFact[Step] = ExchangeFact("authorization", "the step on the way to a token that this exchange is")
TOKEN: ExchangeFact[Token] = ExchangeFact("token", "the access token that this request carries, where its issue was seen")
QUERY_TOKENS: ExchangeFact[set[str]] = ExchangeFact("query-tokens", "members of the query whose value is an access token")
NEVER_ASKED: ExchangeFact[bool] = ExchangeFact("never-asked", "a registration that no authorization request followed")
TOKEN_LEFT_OUT: ExchangeFact[tuple[Token, str]] = ExchangeFact(
    "token-left-out", "the token that is missing, and the flow that has it"
)
NONCE_DUE: ExchangeFact[str] = ExchangeFact("nonce-due", "flow in which the server had asked for a nonce in the proof")
PROOF_USED_BEFORE: ExchangeFact[str] = ExchangeFact("proof-used-before", "flow that had the same DPoP proof")
TOOL_ERROR: ExchangeFact[bool] = ExchangeFact("tool-error", "a tool refused for want of authorization")
LET_IN: ExchangeFact[bool] = ExchangeFact("let-in", "the server served the token")
SESSION_TOKENS: ExchangeFact[list[tuple[Token, str]]] = ExchangeFact("session-tokens", "other tokens of the session, with flows")
TOKENS: EndpointFact[dict[str, Token]] = EndpointFact("tokens", "tokens that were used here, by digest")
AUTHORIZATION_FLOWS: EndpointFact[list[AuthorizationFlow]] = EndpointFact("authorization", "the ways to a token for it")
CHALLENGES: EndpointFact[list[Step]] = EndpointFact("challenges", "challenges that nothing has followed so far")
RESOURCE_METADATA: EndpointFact[ResourceMetadata] = EndpointFact("resource-metadata", "the newest protected resource metadata")
TOKENS_OF_SESSION: SessionFact[dict[str, tuple[Token, str]]] = SessionFact("_tokens", "tokens let in, with flows")
