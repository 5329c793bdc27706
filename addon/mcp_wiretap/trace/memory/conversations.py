"""Operations of two or more exchanges. A wrong link is worse than no link, so each link carries its evidence and confidence.

Trackers call `link`; this module only keeps the books.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from mcp_wiretap.trace.model import Confidence, Conversation, Exchange, Link, LinkBy, Status

_STATUS: dict[str, Status] = {
    "complete": "complete",
    "accepted": "working",
    "none": "working",
    "stream": "working",
    "task": "working",
    "input_required": "awaiting-input",
    "error": "error",
    "cancelled": "cancelled",
    "broken": "broken",
}


class Conversations:
    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._by_id: OrderedDict[str, Conversation] = OrderedDict()
        self.dropped = 0

    def __iter__(self) -> Iterator[Conversation]:
        return iter(list(self._by_id.values()))

    def get(self, conversation_id: str) -> Conversation | None:
        return self._by_id.get(conversation_id)

    def link(
        self, earlier: Exchange, later: Exchange, by: LinkBy, confidence: Confidence, *, client_ms: float = 0.0
    ) -> Conversation | None:
        """Put `later` into the conversation of `earlier`. None when `later` already belongs to another conversation."""
        conversation = earlier.conversation
        if later.conversation is not None and later.conversation is not conversation:
            return None
        if conversation is None:
            conversation = Conversation(earlier.flow, earlier.endpoint, earlier.method, earlier.name, started=earlier.started)
            self._by_id[conversation.id] = conversation
            self.shrink()
            self._add(conversation, earlier)
        if later.conversation is None:
            self._add(conversation, later)
        conversation.links.append(Link(earlier.flow, later.flow, by, confidence))
        conversation.client_ms += client_ms
        return conversation

    def shrink(self) -> None:
        """Forget what is over the limit: the oldest."""
        while len(self._by_id) > self._most():
            self._by_id.popitem(last=False)
            self.dropped += 1

    @staticmethod
    def _add(conversation: Conversation, exchange: Exchange) -> None:
        conversation.rounds.append(exchange.flow)
        conversation.shape.append((exchange.flow, exchange.started, exchange.ended, exchange.outcome))
        exchange.conversation = conversation
        exchange.round = len(conversation.rounds)

    @staticmethod
    def refresh(exchange: Exchange) -> None:
        """The exchange's outcome or end changed: bring its conversation up to date."""
        conversation = exchange.conversation
        if conversation is None or exchange.round is None:
            return
        conversation.shape[exchange.round - 1] = (exchange.flow, exchange.started, exchange.ended, exchange.outcome)
        deciding = _deciding(conversation)
        conversation.status = conversation.forced or _STATUS[deciding[3]]
        conversation.over = conversation.status in ("complete", "error", "cancelled", "broken", "abandoned")
        ends = [end for _, _, end, _ in conversation.shape if end is not None]
        conversation.ended = max(ends) if ends and (conversation.over or len(ends) == len(conversation.shape)) else None


def _deciding(conversation: Conversation) -> tuple[str, float, float | None, str]:
    """The exchange whose outcome is the operation's: the last one that carries a request of its own. A posted answer to the
    server's question (outcome `accepted`) decides nothing while the call that asked it has its own outcome."""
    for entry in reversed(conversation.shape):
        if entry[3] not in ("accepted", "none"):
            return entry
    return conversation.shape[-1]
