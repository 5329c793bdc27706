"""What a server advertised, and to whom: server/discover by Authorization (modern), the initialize result (legacy).

Capabilities may differ by authorization, so only what the same Authorization was told counts. Spec: 2026-07-28 server/discover.
"""

from dataclasses import dataclass
from typing import Any

from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.values import bounded, ttl_s

NAME = "discovered"
MOST = 200  # Authorizations of one endpoint
_COMPARED = ("supportedVersions", "capabilities", "instructions")


@dataclass(slots=True, frozen=True)
class Discovered:
    """One DiscoverResult."""

    flow: str
    at: float
    capabilities: dict[str, Any]
    members: dict[str, Any]  # supportedVersions, capabilities, instructions, serverInfo; bounded
    ttl_s: float


@dataclass(slots=True, frozen=True)
class Drift:
    """A DiscoverResult that says something else than the one before, which was still fresh."""

    before: str  # flow
    changed: tuple[str, ...]  # members
    after_s: float
    ttl_s: float


DISCOVERED: EndpointFact[dict[str, Discovered]] = EndpointFact("discovered", "the newest DiscoverResult, by Authorization")
INITIALIZED: EndpointFact[dict[str, tuple[dict[str, Any], str] | None]] = EndpointFact(
    "initialized", "capabilities of an initialize result without session id, and its flow, by Authorization"
)
DRIFT: ExchangeFact[Drift] = ExchangeFact("drift", "this DiscoverResult differs from a fresh one")


class Discoveries(Tracker):
    """Writes `endpoint.facts[DISCOVERED]` (by Authorization) and `exchange.facts[DRIFT]`."""

    name = NAME

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or message.party != "server" or request.rpc.method not in ("server/discover", "initialize"):
            return
        if message.rpc.kind != "result" or request.answer is not message:
            return
        result, exchange = message.result, request.exchange
        if not isinstance(result.get("capabilities"), dict):
            return
        if request.rpc.method == "initialize":
            self._initialized(message, exchange)
            return
        known: dict[str, Discovered] = exchange.endpoint.facts.setdefault(DISCOVERED, {})
        members = {name: bounded(result.get(name)) for name in _COMPARED}
        members["serverInfo"] = bounded(message.meta.get(rev.SERVER_INFO))
        before = known.pop(exchange.auth, None)
        if before is not None and message.at - before.at < before.ttl_s:
            changed = tuple(name for name, value in members.items() if value != before.members[name])
            if changed:
                exchange.facts[DRIFT] = Drift(before.flow, changed, message.at - before.at, before.ttl_s)
        known[exchange.auth] = Discovered(exchange.flow, message.at, members["capabilities"], members, ttl_s(result))
        if len(known) > MOST:
            del known[next(iter(known))]

    @staticmethod
    def _initialized(message: Message, exchange: Exchange) -> None:
        """`endpoint.facts[INITIALIZED]`: by Authorization, for servers that give no session id. None: clients there were told
        different things, and which of them sends a request is not known."""
        known: dict[str, tuple[dict[str, Any], str] | None] = exchange.endpoint.facts.setdefault(INITIALIZED, {})
        capabilities = bounded(message.result["capabilities"])
        before = known.pop(exchange.auth, (capabilities, ""))
        same = before is not None and before[0] == capabilities
        known[exchange.auth] = (capabilities, exchange.flow) if same else None
        if len(known) > MOST:
            del known[next(iter(known))]


def advertised(exchange: Exchange) -> tuple[dict[str, Any], str] | None:
    """The server's capabilities as this client was told them, and the flow that told. None where that was not seen."""
    if exchange.claim.modern:
        found: Discovered | None = exchange.endpoint.facts.get(DISCOVERED, {}).get(exchange.auth)
        return (found.capabilities, found.flow) if found is not None else None
    session = exchange.session
    if session is None or not session.id:  # the server gives no session id
        told: tuple[dict[str, Any], str] | None = exchange.endpoint.facts.get(INITIALIZED, {}).get(exchange.auth)
        return told
    if session.server_capabilities is None:
        return None
    return session.server_capabilities, session.initialize_flow
