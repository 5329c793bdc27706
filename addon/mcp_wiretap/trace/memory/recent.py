"""A table that remembers the entries used last and forgets the others: what trackers keep stays bounded."""

from collections import OrderedDict
from collections.abc import Callable, Iterator


class Recent[K, V]:
    """At most `most` entries; reading one counts as use. A limit that may change while the table is used is given as a function:
    the table then shrinks to it with the next entry, or at once where it is told to."""

    __slots__ = ("_entries", "_most")

    def __init__(self, most: int | Callable[[], int]) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> list[V]:
        """Returns what was forgotten for it."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        return self.shrink()

    def shrink(self) -> list[V]:
        """Forget what is over the limit, and return it."""
        most = self._most if isinstance(self._most, int) else self._most()
        forgotten = []
        while len(self._entries) > most:
            forgotten.append(self._entries.popitem(last=False)[1])
        return forgotten

    def pop_oldest(self) -> V:
        """The entry that was used longest ago, taken out. KeyError where there is none."""
        return self._entries.popitem(last=False)[1]

    def pop(self, key: K) -> V | None:
        return self._entries.pop(key, None)

    def values(self) -> Iterator[V]:
        yield from self._entries.values()
