"""Which methods an endpoint was seen to serve in the modern era: a later -32601 for one of them means something else (HTS005),
and a refusal of the same request with a stray legacy header, before or after, blames the header (HTS012)."""

from collections import OrderedDict

from mcp_wiretap.trace.facts import EndpointFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker

NAME = "served"
METHODS = 200  # of one endpoint; MCP defines a few dozen
LONGEST = 200  # characters of a method that is kept
REFUSED = 50  # refusals of requests with a legacy header that are kept until the method is served without it
LEGACY_HEADERS = ("mcp-session-id", "last-event-id")
_CAPABILITY = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "completion": "completions",
    "logging": "logging",
}


SERVED: EndpointFact[dict[str, bool]] = EndpointFact("_served", "methods that this endpoint has answered with a result")


class Served(Tracker):
    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._refused: OrderedDict[str, Exchange] = OrderedDict()

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or message.party != "server" or request.method is None:
            return
        if message.rpc.kind != "result":
            self._refuses(request.exchange)
            return
        exchange = request.exchange
        if not exchange.claim.modern or not isinstance(message.result.get("resultType"), str):
            return
        if len(request.method) > LONGEST:
            return
        methods: dict[str, bool] = exchange.endpoint.facts.setdefault(SERVED, {})
        method = request.method
        if methods.get(method) or (method not in methods and len(methods) >= METHODS):
            return
        methods[method] = not carries_legacy_headers(exchange)
        if methods[method] and self._refused:
            self._serves(exchange)

    def _refuses(self, exchange: Exchange) -> None:
        if exchange.status not in (400, 404) or not exchange.claim.modern or not carries_legacy_headers(exchange):
            return
        if exchange.released or without_legacy_headers(exchange, exchange.method or ""):
            return
        self._refused[exchange.flow] = exchange
        self.memory.held.keep(exchange, NAME)
        if len(self._refused) > REFUSED:
            self.memory.held.free(self._refused.popitem(last=False)[1], NAME)

    def _serves(self, exchange: Exchange) -> None:
        """The method is served without the header: what was refused with it is judged anew."""
        for refused in list(self._refused.values()):
            if refused.endpoint is exchange.endpoint and refused.method == exchange.method:
                del self._refused[refused.flow]
                self.memory.rejudge(refused)
                self.memory.held.free(refused, NAME)  # after it was judged: that may release it


def carries_legacy_headers(exchange: Exchange) -> bool:
    """Mcp-Session-Id or Last-Event-ID: a modern server ignores them."""
    return any(exchange.request_fields.has(name) for name in LEGACY_HEADERS)


def is_known(exchange: Exchange, method: str) -> bool:
    """Whether the server is known to implement the method: it served it before, or advertises its capability."""
    if method in exchange.endpoint.facts.get(SERVED, ()):
        return True
    capability = _CAPABILITY.get(method.partition("/")[0])
    capabilities = exchange.endpoint.capabilities
    if capability is None or capabilities is None or capability not in capabilities:
        return False
    return method not in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel")


def without_legacy_headers(exchange: Exchange, method: str) -> bool:
    """Whether the server served the method to a request without Mcp-Session-Id and Last-Event-ID."""
    return bool(exchange.endpoint.facts.get(SERVED, {}).get(method))
