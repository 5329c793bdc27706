"""Counts one fault that comes again and again: the first exchange bears it, the later ones are counted and related.

The first one is kept whole (`Held`), so that it can be judged anew with each further one.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.model import Exchange

MOST_RELATED = 20  # flows that are named beside the first one
MOST_KEYS = 2_000


@dataclass(slots=True)
class Repeat:
    """A fault with the exchanges that had it: the first, and the flows of the next ones (bounded; `count` goes on)."""

    first: Exchange
    related: list[str] = field(default_factory=list)
    count: int = 1

    @property
    def times(self) -> str:
        """` (3 times)`, and nothing where it was seen once."""
        return f" ({self.count} times)" if self.count > 1 else ""


class Repeats[K: Hashable]:
    """What was seen, by a key. `reason` is the word by which the first exchanges are held."""

    def __init__(self, held: Held, reason: str) -> None:
        self._held, self._reason = held, reason
        self._known: OrderedDict[K, Repeat] = OrderedDict()

    def add(self, key: K, exchange: Exchange) -> Repeat:
        """Count one more. The first exchange of the key is kept from now on."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Repeat(exchange)
            self._held.keep(exchange, self._reason)
            while len(self._known) > MOST_KEYS:
                self.let_go(self._known.popitem(last=False)[1])
        elif known.first is not exchange and exchange.flow not in known.related[-1:]:
            known.count += 1
            if len(known.related) < MOST_RELATED:
                known.related.append(exchange.flow)
        return known

    def forget(self, key: K) -> Repeat | None:
        """It is known now to be none. Returns what was known, to be judged anew before it is let go (`let_go`)."""
        return self._known.pop(key, None)

    def move(self, known: Repeat, bearer: Exchange) -> None:
        """Another exchange bears it from now on; the one before is related, and is to be let go of (`let_go_of`)."""
        known.related = [known.first.flow, *(flow for flow in known.related if flow != bearer.flow)][:MOST_RELATED]
        known.first = bearer
        self._held.keep(bearer, self._reason)

    def let_go(self, known: Repeat) -> None:
        """The exchange that bore it is kept for it no longer."""
        self.let_go_of(known.first)

    def let_go_of(self, exchange: Exchange) -> None:
        self._held.free(exchange, self._reason)
