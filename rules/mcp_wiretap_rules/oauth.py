"""What the rules on authorization (OAU) have in common: which step an exchange is, for which revisions a demand holds, words.

The exchanges of authorization have no era of their own: the revision is the one that the client declares to the MCP endpoint
that the token is for. Secrets are never shown: codes, tokens, verifiers and states appear as hashes.
"""

from urllib.parse import urlsplit

from mcp_wiretap.trace.authorization import Ask, AuthorizationFlow, Challenge, Step, TokenCall, urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata
from mcp_wiretap.trace.authorization.steps import AUTHORIZATION_FLOWS, STEP
from mcp_wiretap.trace.model import Endpoint, Exchange
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import one_line

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


def step_of(exchange: Exchange, *kinds: str) -> Step | None:
    """The step that an exchange is, where it is one of those kinds."""
    step: Step | None = exchange.facts.get(STEP)
    return step if step is not None and step.kind in kinds else None


def holds(step: Step, revisions: tuple[str, ...]) -> bool:
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


def ask_of(exchange: Exchange, revisions: tuple[str, ...] = ALL) -> tuple[Step, Ask] | None:
    """An authorization request that asks for a code, with its parameters in sight; not its repetitions by login pages."""
    step = step_of(exchange, "authorize", "pushed")
    if step is None or step.ask is None or not holds(step, revisions):
        return None
    ask = step.ask
    if ask.by_reference or "code" not in (ask.response_type or "code").split():
        return None
    return step, ask


def call_of(exchange: Exchange, revisions: tuple[str, ...] = ALL, *grants: str) -> tuple[Step, TokenCall] | None:
    step = step_of(exchange, "token")
    if step is None or step.call is None or not holds(step, revisions):
        return None
    return (step, step.call) if not grants or step.call.grant in grants else None


def place_of(exchange: Exchange, name: str) -> str:
    """Evidence `where` of a parameter."""
    return f"request.{'form' if exchange.form is not None else 'query'}:{name}"


def words_of(scopes: tuple[str, ...]) -> str:
    return one_line(" ".join(scopes), 120) or "no scope"


def short(text: str | None) -> str:
    return one_line(tidy(text) if text else "nothing", 120)


def tidy(url: str) -> str:
    """A URL without the port that goes without saying."""
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    default = {"https": ":443", "http": ":80"}.get(scheme)
    return f"{scheme}{colon}{host.removesuffix(default)}{slash}{path}" if default is not None else url


def path_of(url: str) -> str:
    rest = url.partition("://")[2]
    return rest[rest.find("/") :] if "/" in rest else url


def sent_challenge(exchange: Exchange) -> str | None:
    fields = exchange.response_fields
    return fields.first("www-authenticate") if fields is not None else None


def holds_for(exchange: Exchange, challenge: Challenge, revisions: tuple[str, ...]) -> bool:
    """For a challenge: the revision is that of its own request."""
    revision = challenge.revision or exchange.revision
    return revision in revisions or (revision is not None and rev.version_kind(revision) == "future")


def same_issuer(one: str, two: str) -> bool:
    return one == two or (urls.canonical(one) or one) == (urls.canonical(two) or two)


def same_redirect(one: str | None, two: str) -> bool:
    """Character for character; on the user's own machine the port is chosen at run time (RFC 8252 section 7.3)."""
    if one == two:
        return True
    a, b = urls.split(one), urls.split(two)
    if a is None or b is None or not (a.loopback and b.loopback):
        return False
    return (a.scheme, a.host, a.path, a.query) == (b.scheme, b.host, b.path, b.query)


def redirect_kind(uri: str) -> str:
    """loopback, https, http (to elsewhere), private (a scheme of the application's own), or invalid."""
    url = urls.split(uri)
    if url is not None:
        return "loopback" if url.loopback else url.scheme
    try:
        scheme = urlsplit(uri).scheme.lower()
    except ValueError:
        return "invalid"
    return "private" if scheme and scheme not in ("http", "https", "javascript", "data", "file") else "invalid"


def goes_on(step: Step, flow: AuthorizationFlow) -> bool:
    """Whether a step is the first of its flow that makes use of the metadata: the authorization request, or, where there was none,
    the token request."""
    if step.kind == "token":
        return flow.asks == 0 and next((s for s in flow.steps if s.kind == "token"), step) is step
    return flow.asks == 1 and step.ask is not None and step.ask.first


def described(endpoint: Endpoint) -> list[ResourceMetadata]:
    """The resource metadata of an endpoint that were seen."""
    flows: list[AuthorizationFlow] = endpoint.facts.get(AUTHORIZATION_FLOWS) or []
    return [f.metadata for f in flows if f.metadata is not None]
