"""The two sides of a gateway: the same operation before and after it, and what the gateway changed on the way.

Operations are paired by trace context or progress token where both sides have it, otherwise by method, name and arguments, in
order, when the inner exchange lies within the outer one. What cannot be paired is listed.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.compare.profile import OperationKey, key_of
from mcp_wiretap.compare.watching import Watching
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.jsonrpc import dumps, pointer
from mcp_wiretap.wire.secret import mask, mask_header, masked, one_line

DEEPEST, MOST = 30, 100
CLOCKS_S = 2.0  # the clocks of two machines may differ by so much
# Headers that every hop writes anew.
_HOP_HEADERS = frozenset(
    {
        "host", "connection", "content-length", "date", "transfer-encoding", "keep-alive", "user-agent", "accept-encoding", "via",
        "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "server", "traceparent", "tracestate",
    }
)  # fmt: skip


@dataclass(slots=True)
class Side:
    """One operation on one side: what is needed to compare it after its exchange was let go."""

    flow: str
    key: OperationKey
    started: float
    ended: float
    request: dict[str, Any]
    answer: dict[str, Any] | None
    request_headers: dict[str, list[str]]
    response_headers: dict[str, list[str]]
    status: int | None
    trace: str


@dataclass(slots=True)
class Hops(Watching):
    """A judge that keeps the operations of one side."""

    sides: dict[str, Side] = field(default_factory=dict)

    def take(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None or exchange.kind != "mcp":
            return
        answer = request.answer
        trace = request.meta.get("traceparent")
        self.sides[exchange.flow] = Side(
            exchange.flow, key_of(exchange, request), exchange.started, exchange.ended or exchange.requested, request.rpc.body,
            answer.rpc.body if answer is not None else None, _headers(exchange.request_fields),
            _headers(exchange.response_fields or ()), exchange.status, trace[3:35] if isinstance(trace, str) else "",
        )  # fmt: skip


@dataclass(slots=True)
class Pair:
    outer: Side
    inner: Side
    by: str  # trace context, or arguments and time
    changes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Crossing:
    pairs: list[Pair]
    only_outer: list[Side]  # answered by the gateway itself, or lost
    only_inner: list[Side]  # the gateway's own requests


def pair(outer: Hops, inner: Hops) -> Crossing:
    """Pair the operations of the client's side (outer) with those of the server's side (inner)."""
    waiting: dict[tuple[str, str, bytes], deque[Side]] = defaultdict(deque)
    by_trace: dict[str, deque[Side]] = defaultdict(deque)
    for side in sorted(inner.sides.values(), key=lambda s: s.started):
        waiting[_call(side)].append(side)
        if side.trace:
            by_trace[side.trace].append(side)
    taken: set[str] = set()
    pairs, alone = [], []
    for side in sorted(outer.sides.values(), key=lambda s: s.started):
        other, by = _partner(side, by_trace, waiting, taken)
        if other is None:
            alone.append(side)
            continue
        taken.add(other.flow)
        pairs.append(Pair(side, other, by, list(_changes(side, other))[:MOST]))
    rest = [side for side in inner.sides.values() if side.flow not in taken]
    return Crossing(pairs, alone, sorted(rest, key=lambda s: s.started))


def _call(side: Side) -> tuple[str, str, bytes]:
    return side.key.method, side.key.name, side.key.digest


def _partner(
    side: Side, by_trace: dict[str, deque[Side]], waiting: dict[tuple[str, str, bytes], deque[Side]], taken: set[str]
) -> tuple[Side | None, str]:
    for candidate in by_trace.get(side.trace, ()) if side.trace else ():
        if candidate.flow not in taken and candidate.key.method == side.key.method:
            return candidate, "trace context"
    for candidate in waiting.get(_call(side), ()):
        within = side.started - CLOCKS_S <= candidate.started <= side.ended + CLOCKS_S
        if candidate.flow not in taken and within:
            return candidate, "arguments and time"
    return None, ""


def _changes(outer: Side, inner: Side) -> Iterator[str]:
    yield from _of_headers("request", outer.request_headers, inner.request_headers)
    yield from _of_json("request", masked(outer.request), masked(inner.request))
    if outer.status != inner.status:
        yield f"response status: the server sent {inner.status}, the client got {outer.status}"
    yield from _of_headers("response", inner.response_headers, outer.response_headers)
    if (outer.answer is None) != (inner.answer is None):
        yield "response body: " + ("the client got none" if outer.answer is None else "the gateway made one")
    elif outer.answer is not None and inner.answer is not None:
        yield from _of_json("response", masked(inner.answer), masked(outer.answer))


def _of_headers(what: str, sent: dict[str, list[str]], got: dict[str, list[str]]) -> Iterator[str]:
    for name in sorted(set(sent) | set(got)):
        if name in _HOP_HEADERS or sent.get(name) == got.get(name):
            continue
        before, after = sent.get(name), got.get(name)
        if before is None:
            yield f"{what} header {name}: added, {_values(name, after)}"
        elif after is None:
            yield f"{what} header {name}: taken out (was {_values(name, before)})"
        else:
            yield f"{what} header {name}: {_values(name, before)} became {_values(name, after)}"


def _values(name: str, values: list[str] | None) -> str:
    return one_line(" | ".join(mask_header(name, v) for v in values or ()), 100)


def _of_json(what: str, sent: Any, got: Any, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    if sent == got or path == ("id",) or (path and path[-1] == "progressToken"):
        return  # a gateway numbers anew
    place = f"{what} body {pointer(*path) or '(all)'}"
    if isinstance(sent, dict) and isinstance(got, dict) and len(path) < DEEPEST:
        for key in sorted(set(sent) | set(got)):
            if key not in got:
                yield f"{what} body {pointer(*path, key)}: taken out (was {_brief(key, sent[key])})"
            elif key not in sent:
                yield f"{what} body {pointer(*path, key)}: added, {_brief(key, got[key])}"
            else:
                yield from _of_json(what, sent[key], got[key], (*path, key))
    elif isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got) and len(path) < DEEPEST:
        for index, (a, b) in enumerate(zip(sent, got, strict=True)):
            yield from _of_json(what, a, b, (*path, index))
    else:
        yield f"{place}: {_brief(path[-1] if path else '', sent)} became {_brief(path[-1] if path else '', got)}"


def _brief(key: str | int, value: Any) -> str:
    if key == "requestState" and isinstance(value, str):
        return mask(value)
    return one_line(dumps(value), 80)


def _headers(fields: Any) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for name, value in fields:
        made.setdefault(name.lower(), []).append(value)
    return made
