"""Requests whose stream broke before the answer, so that the one that asks again can be compared with them (SSE015)."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.values import digest

MOST = 1_000


type _Key = tuple[str, str, str | None, bytes]  # endpoint, Authorization, method, what was asked


@dataclass(slots=True, frozen=True, kw_only=True)
class Reissue:
    """A request that repeats one whose stream broke."""

    broken: str  # flow whose stream broke
    same_id: bool
    by_client: bool  # the client itself had closed that stream


REISSUE: ExchangeFact[Reissue] = ExchangeFact("reissue", "the request repeats one whose stream broke")


class Broken(Tracker):
    """Writes `exchange.facts[REISSUE]` = (flow of the broken exchange, whether the id is the same, whether the client had
    closed the stream itself)."""

    name = "broken"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._broken: OrderedDict[_Key, tuple[str, Any, bool]] = OrderedDict()

    def said(self, message: Message) -> None:
        if message.party != "client" or message.rpc.kind != "request" or not self._broken:
            return
        exchange = message.exchange
        if not exchange.claim.modern:
            return
        before = self._broken.pop(self._key(message), None)
        if before is not None:
            exchange.facts[REISSUE] = Reissue(broken=before[0], same_id=before[1] == id_key(message.rpc.id), by_client=before[2])

    def ended(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None or request.answer is not None or not exchange.claim.modern:
            return
        if exchange.outcome in ("broken", "cancelled") and request.method != "subscriptions/listen":
            self._broken[self._key(request)] = (exchange.flow, id_key(request.rpc.id), exchange.ended_by == "client")
            if len(self._broken) > MOST:
                self._broken.popitem(last=False)

    @staticmethod
    def _key(message: Message) -> _Key:
        exchange = message.exchange
        asked = {k: v for k, v in message.params.items() if k != "_meta"}
        return exchange.endpoint.url, exchange.auth, exchange.method, digest(asked)
