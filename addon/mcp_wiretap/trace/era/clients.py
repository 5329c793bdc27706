"""Which era each client of an endpoint is known to speak there: what a GET or DELETE, which says nothing of itself, is judged by.

A client is told by its Authorization alone here, since a GET carries no clientInfo. Spec: 2026-07-28 basic/versioning.
"""

from typing import Any

from mcp_wiretap.trace.era import claim
from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker

MOST = 500  # Authorizations of one endpoint; later ones are not told apart


MODERN_CLIENT: ExchangeFact[bool] = ExchangeFact(
    "modern-client", "whether its client had modern results here, and never a legacy session"
)
ERAS_OF_CLIENTS: EndpointFact[dict[str, set[Any]]] = EndpointFact("_eras-of-clients", "clients by the era of their results")


class Clients(Tracker):
    """Writes `exchange.facts[MODERN_CLIENT]` on what is no POST: its client got modern results here, and never a legacy
    session."""

    name = "clients"

    def requested(self, exchange: Exchange) -> None:
        if exchange.http_method == "POST" or exchange.kind != "mcp":
            return
        known = exchange.endpoint.facts.get(ERAS_OF_CLIENTS)
        if known is not None and exchange.auth in known["modern"] and exchange.auth not in known["legacy"]:
            session = exchange.session
            exchange.facts[MODERN_CLIENT] = session is None or not (session.live and session.initialize_flow)

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or message.party != "server" or message.kind != "result":
            return
        owner = request.exchange
        if owner.claim.modern:
            if claim.is_modern_answer(message, request, owner.status, owner.claim):
                self._note(owner, "modern")
        elif request.method == "initialize":
            self._note(owner, "legacy")

    def _note(self, exchange: Exchange, what: str) -> None:
        known = exchange.endpoint.facts.get(ERAS_OF_CLIENTS)
        if known is None:
            known = exchange.endpoint.facts[ERAS_OF_CLIENTS] = {"modern": set(), "legacy": set()}
        if len(known[what]) < MOST:
            known[what].add(exchange.auth)
