"""Where two answers differ, as JSON values: places and values. What may differ from run to run is not a difference."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcp_wiretap.replay.likeness import canonical
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import hidden, one_line

MOST = 50  # differences of one answer that are listed
_SHOWN = 120  # characters of a value
_DEEPEST = 100
_PASSING = frozenset(  # members whose values are another each time
    {
        "requestState",
        "nextCursor",
        "taskId",
        "createdAt",
        "lastUpdatedAt",
        "updatedAt",
        "timestamp",
        "progressToken",
        "sessionId",
        "elicitationId",
        "traceparent",
        "tracestate",
        "baggage",
        rev.SUBSCRIPTION_ID,
    }
)
_ABOUT_SERVER = frozenset({"serverInfo", rev.SERVER_INFO})
_NAMES = ("name", "uri", "uriTemplate")  # members that items of lists are known by
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


@dataclass(slots=True, frozen=True)
class Difference:
    """`where` is a JSON pointer, with the name of an item in place of its number where items have names."""

    where: str
    was: str | None  # None: it was not there
    now: str | None

    def __str__(self) -> str:
        if self.was is None:
            return f"{self.where}: new, {self.now}"
        if self.now is None:
            return f"{self.where}: gone, was {self.was}"
        return f"{self.where}: was {self.was}, now {self.now}"


def differences(was: Any, now: Any) -> list[Difference]:
    """What differs, at most MOST of it."""
    found = []
    for difference in _compare(was, now, (), 0):
        found.append(difference)
        if len(found) == MOST:
            break
    return found


def shown(value: Any, name: str = "") -> str:
    """A value on a line, secrets masked."""
    return one_line(jsonrpc.dumps(hidden(name, value), most=_SHOWN + 1, shown=hidden), _SHOWN)


def _compare(was: Any, now: Any, path: tuple[str | int, ...], depth: int) -> Iterator[Difference]:
    if depth > _DEEPEST:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        yield from _members(was, now, path, depth)
    elif isinstance(was, list) and isinstance(now, list):
        yield from _items(was, now, path, depth)
    elif not _equal(was, now):
        name = str(path[-1]) if path else ""
        yield Difference(jsonrpc.pointer(*path), shown(was, name), shown(now, name))


def _members(was: dict[str, Any], now: dict[str, Any], path: tuple[str | int, ...], depth: int) -> Iterator[Difference]:
    for name in [*was, *(name for name in now if name not in was)]:
        place = (*path, name)
        if name not in now:
            yield Difference(jsonrpc.pointer(*place), shown(was[name], name), None)
        elif name not in was:
            yield Difference(jsonrpc.pointer(*place), None, shown(now[name], name))
        elif name in _PASSING and type(was[name]) is type(now[name]):
            continue
        elif path and path[-1] in _ABOUT_SERVER and name == "version":
            continue  # a new build is what one compares
        else:
            yield from _compare(was[name], now[name], place, depth + 1)


def _items(was: list[Any], now: list[Any], path: tuple[str | int, ...], depth: int) -> Iterator[Difference]:
    """Items that have names are compared by name, so that one more or one less says just that; others by place."""
    before, after = _by_name(was), _by_name(now)
    if before is None or after is None:
        for index in range(max(len(was), len(now))):
            place = (*path, index)
            if index >= len(now):
                yield Difference(jsonrpc.pointer(*place), shown(was[index]), None)
            elif index >= len(was):
                yield Difference(jsonrpc.pointer(*place), None, shown(now[index]))
            else:
                yield from _compare(was[index], now[index], place, depth + 1)
        return
    yield from _members(before, after, path, depth)
    order = [name for name in before if name in after]
    if order != [name for name in after if name in before]:
        yield Difference(jsonrpc.pointer(*path), "in the order " + ", ".join(order[:10]), "in another order")


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    for member in _NAMES:
        if all(isinstance(item, dict) and isinstance(item.get(member), str) for item in items):
            named = {item[member]: item for item in items}
            return named if len(named) == len(items) else None
    return None


def _equal(was: Any, now: Any) -> bool:
    if isinstance(was, str) and isinstance(now, str):
        return was == now or _steady(was) == _steady(now)
    return canonical(was) == canonical(now)


def _steady(text: str) -> str:
    """A text without the ids and moments in it."""
    return _MOMENT.sub("(time)", _UUID.sub("(id)", text))
