"""Clients that read the first page of a list and go on without the rest (CAC014)."""

from dataclasses import dataclass, field

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.lists.pagination import LISTS
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker

CLIENTS = 1_000
LISTINGS = 2  # that were not read on: one may have been enough for what the client wanted
_USES = frozenset({"tools/call", "prompts/get", "resources/read"})


@dataclass(slots=True)
class NotReadOn:
    """Listings of one method whose nextCursor was not followed."""

    method: str
    size: int  # entries of the newest page
    flows: list[str] = field(default_factory=list)


NOT_READ_ON: ExchangeFact[NotReadOn] = ExchangeFact("not-read-on", "the client goes on though it did not read lists to their end")


class UnreadPages(Tracker):
    """Writes `exchange.facts[NOT_READ_ON]` on the first call after the second listing that was left at a page."""

    name = "not-read-on"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._left: Recent[tuple[str, str, object], dict[str, NotReadOn]] = Recent(CLIENTS)
        self._follows: Recent[tuple[str, object], bool] = Recent(CLIENTS)

    def said(self, message: Message) -> None:
        exchange = message.exchange
        if message.party == "client" and message.rpc.kind == "request":
            self._asked(exchange, message)
        elif message.rpc.kind == "result" and message.request is not None and message.request.method in LISTS:
            self._listed(message.request, message)

    def _asked(self, exchange: Exchange, message: Message) -> None:
        if message.method in LISTS and message.params.get("cursor") is not None:
            self._follows.put(_who(exchange), True)
        elif len(self._left) and message.method in _USES and not self._follows.get(_who(exchange)):
            for left in (self._left.get((exchange.endpoint.url, *_who(exchange))) or {}).values():
                if len(left.flows) >= LISTINGS:
                    exchange.facts[NOT_READ_ON] = left

    def _listed(self, request: Message, answer: Message) -> None:
        method, result = request.method or "", answer.result
        exchange = request.exchange
        key = (exchange.endpoint.url, *_who(exchange))
        cursor, items = result.get("nextCursor"), result.get(LISTS[method][0])
        table = self._left.get(key)
        if not isinstance(cursor, str) or not cursor or not isinstance(items, list) or not items:
            if table is not None:
                table.pop(method, None)
            return
        if table is None:
            table = {}
            self._left.put(key, table)
        left = table.setdefault(method, NotReadOn(method, len(items)))
        left.size = len(items)
        if len(left.flows) < 20:
            left.flows.append(exchange.flow)


def _who(exchange: Exchange) -> tuple[str, object]:
    return exchange.auth, exchange.client_info or exchange.request_fields.first("user-agent")
