"""Requests whose stream broke before the answer, so that the one that asks again can be compared with them (SSE015)."""

import hashlib
from collections import OrderedDict
from typing import Any

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import dumps, id_key

MOST = 1_000


class Broken(Tracker):
    """Writes `exchange.facts["reissue"]` = (flow of the broken exchange, whether the id is the same)."""

    name = "broken"

    def __init__(self, inspector: Any) -> None:
        super().__init__(inspector)
        self._broken: OrderedDict[tuple[str, str, str, str], tuple[str, Any]] = OrderedDict()

    def said(self, message: Message) -> None:
        if message.party != "client" or message.rpc.kind != "request" or not self._broken:
            return
        exchange = message.exchange
        if not exchange.claim.modern:
            return
        before = self._broken.pop(self._key(message), None)
        if before is not None:
            exchange.facts["reissue"] = (before[0], before[1] == id_key(message.rpc.id))

    def ended(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None or request.answer is not None or not exchange.claim.modern:
            return
        if exchange.outcome in ("broken", "cancelled") and request.method != "subscriptions/listen":
            self._broken[self._key(request)] = (exchange.flow, id_key(request.rpc.id))
            if len(self._broken) > MOST:
                self._broken.popitem(last=False)

    @staticmethod
    def _key(message: Message) -> tuple[str, str, str, str]:
        exchange = message.exchange
        core = {k: v for k, v in message.params.items() if k != "_meta"}
        digest = hashlib.sha256(dumps(core).encode("utf-8", "surrogatepass")).hexdigest()
        return exchange.endpoint.url, exchange.auth, str(message.method), digest
