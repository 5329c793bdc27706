"""Which preflights of browsers are refused, and which session ids a page cannot read.

A session id is hidden where an initialize gives it and the page that called may not read it; that is taken back when the id is
sent all the same.
"""

from collections.abc import Iterable

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.legacy.session_use import HIDDEN_SESSION
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.repeats import Repeat, Repeats
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import cors

NAME = "cors"
PREFLIGHT: ExchangeFact[Repeat] = ExchangeFact("preflight-refused", "this preflight lacks what a browser wants")
HIDDEN: ExchangeFact[bool] = ExchangeFact("session-hidden", "the page that got the session id may not read it")


class Cors(Tracker):
    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._refused: Repeats[tuple[str, str, str]] = Repeats(memory.held, NAME)

    def requested(self, exchange: Exchange) -> None:
        """A page that sends the session id could read it."""
        session = exchange.session
        if session is None or not exchange.request_fields.has("mcp-session-id"):
            return
        initialize = session.facts.get(HIDDEN_SESSION)
        if initialize is None:
            return
        session.facts[HIDDEN_SESSION] = None
        if not initialize.released:
            initialize.facts[HIDDEN] = False
            self.memory.rejudge(initialize)
            self.memory.held.free(initialize, NAME)

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind == "preflight":
            return self._preflight(exchange)
        if exchange.method == "initialize" and exchange.session is not None and exchange.kind == "mcp":
            self._initialized(exchange)
        return None

    def _preflight(self, exchange: Exchange) -> Iterable[Exchange] | None:
        found = lacks(exchange)
        if not found:
            return None
        key = (exchange.url, exchange.request_fields.first("origin") or "", ", ".join(lack.words for lack in found))
        repeat = self._refused.add(key, exchange)
        exchange.facts[PREFLIGHT] = repeat
        return [repeat.first] if repeat.first is not exchange else None

    def _initialized(self, exchange: Exchange) -> None:
        session, answer = exchange.session, exchange.response_fields
        if session is None or answer is None or session.initialize_flow != exchange.flow or not answer.has("mcp-session-id"):
            return
        if is_read_by_page(exchange) and not cors.exposes("mcp-session-id", answer):
            exchange.facts[HIDDEN], session.facts[HIDDEN_SESSION] = True, exchange
            self.memory.held.keep(exchange, NAME)


def lacks(exchange: Exchange) -> list[cors.Lack]:
    """What a preflight of another origin was not granted; nothing where the answer is not known."""
    fields, status = exchange.response_fields, exchange.status
    origin = exchange.request_fields.first("origin") or ""
    if fields is None or status is None or not cors.is_cross_origin(origin, exchange.url, exchange.authority):
        return []
    return cors.lacks(exchange.request_fields, fields, status)


def is_read_by_page(exchange: Exchange) -> bool:
    """Whether the answer goes to a page of another origin, and the browser lets the page have it."""
    origin, answer = exchange.request_fields.first("origin") or "", exchange.response_fields
    if answer is None or not cors.is_cross_origin(origin, exchange.url, exchange.authority):
        return False
    return cors.allows_origin(origin, answer) is None
