"""References of tool schemas that lead out of their document, and who fetched them all the same (TOO005).

A tools/list answer with such references is kept whole until one of them is asked for, within bounds. Spec: 2026-07-28
basic/index#ref-resolution.
"""

from collections import OrderedDict

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.schema import fits
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.pace import paced

NAME = "fetched"
MOST = 200  # URLs that are waited for
MOST_OF_ONE = 5  # references of one schema
_PORTS = {"http": 80, "https": 443}


FETCHED: ExchangeFact[dict[str, str]] = ExchangeFact("fetched", "URLs in the listed schemas, and who fetched them")


class Fetched(Tracker):
    """Writes `facts[FETCHED]` on the exchange that listed the tools: URL -> flow of the GET."""

    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._named: OrderedDict[str, Exchange] = OrderedDict()

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or request.method != "tools/list" or message.party != "server" or message.rpc.kind != "result":
            return
        definitions = message.exchange.definitions
        for definition in paced(definitions):
            if definition.message is not message:
                continue
            for member in ("inputSchema", "outputSchema"):
                given = definition.raw.get(member)
                if isinstance(given, dict):
                    for remote in fits.reading_of(given).remote[:MOST_OF_ONE]:
                        self._wait(address(remote.words), message.exchange)

    def _wait(self, url: str, exchange: Exchange) -> None:
        before = self._named.pop(url, None)
        self._named[url] = exchange
        self.memory.held.keep(exchange, NAME)
        if before is not None and before is not exchange:
            self._let_go(before)
        while len(self._named) > MOST:
            self._let_go(self._named.popitem(last=False)[1])

    def _let_go(self, exchange: Exchange) -> None:
        if exchange not in self._named.values():
            self.memory.held.free(exchange, NAME)

    def requested(self, exchange: Exchange) -> list[Exchange] | None:
        if not self._named or exchange.http_method != "GET":
            return None
        listed = self._named.get(exchange.url + (f"?{exchange.query}" if exchange.query else ""))
        if listed is None or listed.released:
            return None
        fetched: dict[str, str] = listed.facts.setdefault(FETCHED, {})
        fetched.setdefault(exchange.url + (f"?{exchange.query}" if exchange.query else ""), exchange.flow)
        return [listed]


def address(reference: str) -> str:
    """The URL that a reference is fetched from, as the URLs of exchanges are written: with a port, without a fragment."""
    parts = uri.split(reference)
    authority = parts.netloc.lower()
    if ":" not in authority.rpartition("]")[2]:
        authority += f":{_PORTS.get(parts.scheme, 0)}"
    return f"{parts.scheme}://{authority}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
