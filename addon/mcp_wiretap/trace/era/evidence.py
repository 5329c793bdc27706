"""What the answers of a server tell of it: its description, capabilities and versions, and the evidence of its era."""

from mcp_wiretap.trace.era import claim
from mcp_wiretap.trace.memory.sessions import Sessions
from mcp_wiretap.trace.model import Endpoint, Exchange, Message, ServerEvidence
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.values import bounded

_MOST_INSTRUCTIONS = 10_000  # characters, to be shown
_MOST_SUPPORTED = 200  # versions of one list: there are five
_MOST_REVISIONS = 50  # of one endpoint: a server may claim any
_LONGEST_VERSION = 1_000  # characters


def initialized(exchange: Exchange, answer: Message, sessions: Sessions) -> bool:
    """A legacy `initialize` was answered. Whether the era of the server is better known by that."""
    endpoint = exchange.endpoint
    if answer.rpc.kind == "error":
        news = not endpoint.initialize_refused
        endpoint.initialize_refused = True
        return news
    endpoint.initialize_accepted = True
    session = sessions.initialized(exchange, answer)
    if session is not None:
        exchange.session = session
    _describe(endpoint, answer.result.get("serverInfo"))
    if isinstance(capabilities := answer.result.get("capabilities"), dict) and endpoint.capabilities is None:
        endpoint.capabilities = bounded(capabilities)
    _instruct(endpoint, answer.result.get("instructions"))
    return False


def answered(exchange: Exchange, answer: Message) -> bool:
    """A request of this exchange was answered. Whether the era of the server is better known by that."""
    endpoint, request = exchange.endpoint, answer.request
    news = claim.learn(exchange, answer)
    if (served := claim.served_revision(exchange, answer)) is not None and len(endpoint.revisions) < _MOST_REVISIONS:
        endpoint.revisions.setdefault(served[:_LONGEST_VERSION])
    _describe(endpoint, answer.meta.get(rev.SERVER_INFO))
    supported = None
    if request is not None and request.method == "server/discover" and answer.rpc.kind == "result":
        supported = answer.result.get("supportedVersions")
        if isinstance(capabilities := answer.result.get("capabilities"), dict):
            endpoint.capabilities = bounded(capabilities)
        _instruct(endpoint, answer.result.get("instructions"))
    elif answer.error_code == rev.UNSUPPORTED_VERSION:
        data = answer.rpc.error.get("data") if isinstance(answer.rpc.error, dict) else None
        supported = data.get("supported") if isinstance(data, dict) else None
    if isinstance(supported, list):
        endpoint.supported = [v[:_LONGEST_VERSION] for v in supported[:_MOST_SUPPORTED] if isinstance(v, str)]
        endpoint.supported_flow = exchange.flow
    return news


def served(exchange: Exchange) -> bool:
    """The head of a response: the session is known to the server, a GET opened a stream of a legacy server. Whether the era of
    the server is better known by that."""
    session, endpoint = exchange.session, exchange.endpoint
    if exchange.endpoint.on_stdio or exchange.status is None or not 200 <= exchange.status < 300:
        return False
    if session is not None and exchange.claim.kind in ("legacy", "legacy-transport", "unknown-body"):
        session.confirmed = True
    if exchange.http_method == "GET" and exchange.stream is not None:
        what = "GET opened an event stream"
    elif exchange.claim.kind == "legacy" and exchange.status == 202 and exchange.request is not None:
        what = "a request was accepted with 202, as HTTP+SSE does"
    else:
        return False
    claim.settle(exchange)
    if endpoint.legacy:
        return False
    endpoint.legacy = ServerEvidence(exchange.flow, what)
    return True


def passed(exchange: Exchange, side: Exchange) -> None:
    """The client got another answer than the server gave (`side`): what it was told counts for what it does next."""
    request, answer = exchange.request, side.answer
    if request is None or answer is None:
        return
    if request.method == "initialize" and exchange.session is not None:
        version = answer.result.get("protocolVersion")
        exchange.session.revision = version[:_LONGEST_VERSION] if isinstance(version, str) else None
    error = answer.rpc.error
    data = error.get("data") if isinstance(error, dict) else None
    told = data.get("supported") if isinstance(data, dict) else answer.result.get("supportedVersions")
    endpoint = exchange.endpoint
    if isinstance(told, list) and endpoint.supported is not None:
        more = [v[:_LONGEST_VERSION] for v in told[:_MOST_SUPPORTED] if isinstance(v, str)]
        endpoint.supported = [*dict.fromkeys([*endpoint.supported, *more])][:_MOST_SUPPORTED]


def _describe(endpoint: Endpoint, info: object) -> None:
    """A modern server may send its description with every result: it is looked at only where it differs."""
    if isinstance(info, dict) and info != endpoint.server_info:
        endpoint.server_info = bounded(info)


def _instruct(endpoint: Endpoint, text: object) -> None:
    if isinstance(text, str):
        endpoint.instructions = text if len(text) <= _MOST_INSTRUCTIONS else text[:_MOST_INSTRUCTIONS] + "…"
