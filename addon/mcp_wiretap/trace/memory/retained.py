"""Exchanges that are over and are kept whole all the same, because what comes later may change their verdict.

A probe is judged anew when its server turns out to be legacy, a request when its answer comes on another stream, a refusal when
the server is seen to serve what it refused. Each holder says why by a word and lets go by the same word; the last one out
releases the bodies. Bounded by number and by bytes: the oldest are released first, and keep the verdict that they have.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_wiretap.trace.model import Exchange


@dataclass(slots=True)
class _Entry:
    exchange: Exchange
    reasons: set[str] = field(default_factory=set)
    size: int = 0


class Held:
    """`overflow` is called with each exchange that is about to be released before its time."""

    def __init__(self, most: int, most_bytes: int, overflow: Callable[[Exchange], None]) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._overflow = overflow
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._bytes = 0

    def resize(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, exchange: Exchange, reason: str) -> None:
        """Keep it, for one more reason. One that was released already stays released."""
        if exchange.released:
            return
        entry = self._entries.get(exchange.flow)
        if entry is None:
            entry = self._entries[exchange.flow] = _Entry(exchange)
        entry.reasons.add(reason)

    def free(self, exchange: Exchange, reason: str) -> None:
        """That reason is gone. Without another one the exchange is released, as soon as it is over."""
        entry = self._entries.get(exchange.flow)
        if entry is not None:
            entry.reasons.discard(reason)
            if exchange.over:
                self.settle(exchange)

    def settle(self, exchange: Exchange) -> None:
        """The exchange is over and judged: release it, or go on keeping it while somebody asked for that."""
        entry = self._entries.get(exchange.flow)
        if entry is None:
            exchange.release()
            return
        if not entry.reasons:
            self.forget(exchange)
            exchange.release()
            return
        self._bytes -= entry.size
        entry.size = _size(exchange)
        self._bytes += entry.size
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            oldest = next((e for e in self._entries.values() if e.exchange.over), None)
            if oldest is None:
                return  # the rest is still open
            self.forget(oldest.exchange)
            self._overflow(oldest.exchange)
            oldest.exchange.release()

    def forget(self, exchange: Exchange) -> None:
        """The exchange leaves the memory of the trace."""
        entry = self._entries.pop(exchange.flow, None)
        if entry is not None:
            self._bytes -= entry.size


def _size(exchange: Exchange) -> int:
    """Bytes of what is kept of it; parsed JSON takes several times as much."""
    size = sum(reading.size for reading in (exchange.reading, exchange.answer_reading) if reading is not None)
    if exchange.stream is not None:
        size += sum(item.event.size for item in exchange.stream.items)
    return size
