"""What the user expects of an endpoint (mcp_era), and the first exchange that breaks it in each way (ERA025).

Decided by what was served, not by what was tried: a probe alone does not break the expectation of a modern server. Where the era
is open (401, 5xx, no answer) nothing is broken.
"""

from dataclasses import dataclass
from typing import Literal

from mcp_wiretap.trace.era.negotiation import NEGOTIATION, Negotiations, Part, Refusal
from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact
from mcp_wiretap.trace.finding import Party
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.tracker import Tracker

NAME = "expectation"

type Breach = Literal["modern request", "never tried", "fell back", "served as legacy", "legacy session", "HTTP+SSE"]


@dataclass(slots=True, frozen=True)
class Broken:
    """This exchange is the first of its endpoint that breaks the expectation in this way."""

    expected: Literal["modern", "legacy"]
    how: Breach
    party: Party
    refusal: Refusal | None = None  # of the modern attempt before a fallback


BROKEN_EXPECTATION: ExchangeFact[Broken] = ExchangeFact("expectation", "this exchange is not of the era that the user expects")
FIRST_UNEXPECTED: EndpointFact[dict[str, str]] = EndpointFact("_first-unexpected", "flows that first broke the expectation")


class Expectations(Tracker):
    name = NAME

    def requested(self, exchange: Exchange) -> None:
        if exchange.endpoint.expected == "legacy" and exchange.kind == "mcp" and exchange.claim.modern and exchange.sent:
            self._broken(exchange, Broken("legacy", "modern request", "client"))

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or message.party != "server" or message.rpc.kind != "result":
            return
        exchange = request.exchange
        if exchange.endpoint.expected != "modern" or exchange.era != "legacy" or exchange.released:
            return
        if exchange.session is not None and exchange.session.transport == "http+sse":
            return  # told of its stream
        if exchange.claim.modern:
            if request.method != "server/discover":
                self._broken(exchange, Broken("modern", "served as legacy", "server"))
            return
        client = self.memory.tracker(Negotiations).client(exchange)
        if client is not None and client.refused_modern is not None:
            self._broken(exchange, Broken("modern", "fell back", "server", client.refused_modern))
        elif request.method == "initialize":
            self._broken(exchange, Broken("modern", "never tried", "client"))
        elif client is None:
            self._broken(exchange, Broken("modern", "legacy session", "client"))

    def event(self, item: StreamItem) -> None:
        """A stream that begins with an endpoint event is the 2024-11-05 transport, which is of the legacy era."""
        exchange, stream = item.exchange, item.exchange.stream
        if item.event.index or stream is None or not stream.http_sse or exchange.endpoint.expected != "modern":
            return
        part: Part | None = exchange.facts.get(NEGOTIATION)
        refusal = part.client.refused_modern if part is not None and part.client is not None else None
        self._broken(exchange, Broken("modern", "HTTP+SSE", "client" if refusal is None else "server", refusal))

    @staticmethod
    def _broken(exchange: Exchange, broken: Broken) -> None:
        first: dict[str, str] = exchange.endpoint.facts.setdefault(FIRST_UNEXPECTED, {})
        if first.setdefault(broken.how, exchange.flow) == exchange.flow:
            exchange.facts[BROKEN_EXPECTATION] = broken
