"""What a tracker is: it watches the trace go by, keeps what later exchanges are judged by, and writes facts on exchanges.

A tracker never decides what is right or wrong; rules read its facts. It sees everything before the rules do.
"""

from collections.abc import Iterable

from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message, StreamItem


class Tracker:
    """Override the hooks that you need. Each may return exchanges seen earlier whose verdict has changed by what was just
    seen: they are judged and annotated anew (where they have not been released)."""

    name = ""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    @property
    def limits(self) -> Limits:
        """As they are now: they may be changed while the trace is followed."""
        return self.memory.limits

    def resized(self) -> None:
        """The limits were changed: forget what is over them. Override where what is forgotten has to be let go elsewhere."""
        for table in vars(self).values():
            if isinstance(table, Recent):
                table.shrink()

    def requested(self, exchange: Exchange) -> Iterable[Exchange] | None:
        """An HTTP request is complete; claim, session and `sent` are set. Told again, with kind `mcp`, about an exchange of kind
        `other` that turns out to be MCP."""

    def said(self, message: Message) -> Iterable[Exchange] | None:
        """A JSON-RPC message of either side was seen; requests and answers are paired."""

    def sent(self, exchange: Exchange, side: Exchange) -> None:
        """The request was changed at the proxy: `side` is the exchange with what the server was given (`trace.sides`)."""

    def passed(self, exchange: Exchange, side: Exchange) -> None:
        """The answer was changed at the proxy: `side` is the exchange with what the client got."""

    def event(self, item: StreamItem) -> Iterable[Exchange] | None:
        """An SSE event was dispatched (with or without a message in it)."""

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        """The exchange is over; outcome, era and revision are settled."""

    def finished(self) -> Iterable[Exchange] | None:
        """The trace is over: return the exchanges about which that says something."""
