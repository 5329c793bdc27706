"""The two sides of a gateway: the same operation before and after it, and what the gateway changed on the way.

Operations are paired by trace context or progress token where both sides have it, otherwise by method, name and arguments, in
order, when the inner exchange lies within the outer one. What is left is paired under another name where exactly one operation of
the other side fits, or where the lists of both sides tell the new name. What cannot be paired is listed.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.compare.profile import OperationKey, key_of
from mcp_wiretap.compare.watching import Watching
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.jsonrpc import dumps, pointer
from mcp_wiretap.wire.secret import mask, mask_header, masked, one_line
from mcp_wiretap.wire.values import digest

DEEPEST, MOST = 30, 100
MOST_TOOLS = 1_000
LATE_S = 0.5  # seconds that a gateway may take of its own
BURST_S = 0.1
CLOCKS_S = 2.0  # the clocks of two machines may differ by so much
# Headers that every hop writes anew.
_HOP_HEADERS = frozenset(
    {
        "host",
        "connection",
        "content-length",
        "date",
        "transfer-encoding",
        "keep-alive",
        "user-agent",
        "accept-encoding",
        "via",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-forwarded-host",
        "forwarded",
        "server",
        "traceparent",
        "tracestate",
    }
)


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
    outcome: str
    id: str  # of the request, as JSON
    first_byte: float | None  # seconds after the request began, as all times of a side
    events: list[float]
    mismatched: frozenset[str] = frozenset()  # mirrored headers that contradict the body
    findings: list[Finding] = field(default_factory=list)


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
            exchange.flow,
            key_of(exchange, request),
            exchange.started,
            exchange.ended or exchange.requested,
            request.rpc.body,
            answer.rpc.body if answer is not None else None,
            _headers(exchange.request_fields),
            _headers(exchange.response_fields or ()),
            exchange.status,
            trace[3:35] if isinstance(trace, str) else "",
            exchange.outcome,
            dumps(request.rpc.id),
            _since(exchange, exchange.responded),
            _event_times(exchange),
            frozenset(check.header.lower() for check in exchange.header_checks if check.verdict == "mismatch")
            - {"mcp-protocol-version"},  # findings tell of it: it may be the session that it contradicts
            exchange.findings,
        )


def _since(exchange: Exchange, at: float | None) -> float | None:
    return None if at is None else at - exchange.started


def _event_times(exchange: Exchange) -> list[float]:
    """When each event came; empty where the recording does not tell."""
    stream = exchange.stream
    return [at - exchange.started for at in stream.times] if stream is not None and stream.timed else []


@dataclass(slots=True)
class Pair:
    outer: Side
    inner: Side
    by: str  # trace context; arguments and time; the name that the lists tell
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
    rest = sorted((side for side in inner.sides.values() if side.flow not in taken), key=lambda s: s.started)
    for found in _renamed(alone, rest, _new_names(pairs)):
        found.changes = list(_changes(found.outer, found.inner))[:MOST]
        pairs.append(found)
        alone.remove(found.outer)
        rest.remove(found.inner)
    pairs.sort(key=lambda one: one.outer.started)
    return Crossing(pairs, alone, rest)


def _new_names(pairs: list[Pair]) -> dict[str, str]:
    """What tools are called at the client -> at the server, where the lists of both sides tell it: the same definition under
    another name, once in each list."""
    found: dict[str, str] = {}
    for one in pairs:
        if one.outer.key.method == "tools/list":
            outer, inner = _by_definition(one.outer), _by_definition(one.inner)
            found |= {outer[key]: inner[key] for key in outer if key in inner and outer[key] and inner[key]}
    return found


def _by_definition(side: Side) -> dict[bytes, str]:
    """The names of the listed tools by the rest of their definition; "" where two share it."""
    result = side.answer.get("result") if side.answer is not None else None
    tools = result.get("tools") if isinstance(result, dict) else None
    found: dict[bytes, str] = {}
    for tool in tools[:MOST_TOOLS] if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            key = digest({name: member for name, member in tool.items() if name not in ("name", "title", "annotations")})
            found[key] = "" if key in found else tool["name"]
    return found


def _renamed(alone: list[Side], rest: list[Side], names: dict[str, str]) -> list[Pair]:
    """Operations that go by another name inside: each side is used once, and only where no other one fits."""
    found: list[Pair] = []
    free = list(rest)
    for sure in (True, False):
        left = [side for side in alone if all(one.outer is not side for one in found)]
        fits = {side.flow: [other for other in free if _may_be(side, other, names, sure)] for side in left}
        for side in left:
            candidates = fits[side.flow]
            same = [other for other in candidates if other.id == side.id]
            chosen = same if len(same) == 1 else candidates
            if len(chosen) == 1 and sum(1 for others in fits.values() if chosen[0] in others) == 1:
                free.remove(chosen[0])
                found.append(Pair(side, chosen[0], "the name that the lists tell" if sure else "arguments, time and outcome"))
    return found


def _may_be(outer: Side, inner: Side, names: dict[str, str], sure: bool) -> bool:
    if not outer.key.name or outer.key.method != inner.key.method or outer.key.digest != inner.key.digest:
        return False
    known = names.get(outer.key.name)
    if (known != inner.key.name) if sure else (known is not None or outer.outcome != inner.outcome):
        return False
    return outer.started - CLOCKS_S <= inner.started <= outer.ended + CLOCKS_S


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
    yield from _unchanged(outer, inner)
    if outer.status != inner.status:
        yield f"response status: the server sent {inner.status}, the client got {outer.status}"
    yield from _of_headers("response", inner.response_headers, outer.response_headers)
    if (outer.answer is None) != (inner.answer is None):
        yield "response body: " + ("the client got none" if outer.answer is None else "the gateway made one")
    elif outer.answer is not None and inner.answer is not None:
        yield from _of_json("response", masked(inner.answer), masked(outer.answer))
    yield from _of_times(outer, inner)
    yield from _of_findings(outer, inner)


def _unchanged(outer: Side, inner: Side) -> Iterator[str]:
    """Headers that should have been changed with the body, and were not."""
    for name in sorted(inner.mismatched - outer.mismatched):
        if outer.request_headers.get(name) == inner.request_headers.get(name):
            yield f"request header {name}: unchanged, {_values(name, inner.request_headers.get(name))}, contradicts the body now"


def _of_times(outer: Side, inner: Side) -> Iterator[str]:
    """What came later than the gateway had it. Each side's times count from its own request: clocks may differ."""
    late = [o - i for o, i in zip(outer.events, inner.events, strict=False)] if len(outer.events) == len(inner.events) else []
    if late and max(late) > LATE_S:
        burst = len(late) > 1 and outer.events[-1] - outer.events[0] < BURST_S < LATE_S < inner.events[-1] - inner.events[0]
        yield f"events: delayed by up to {max(late):.1f} s" + (", passed on in one burst" if burst else "")
    for what, after, before in (
        ("first byte", outer.first_byte, inner.first_byte),
        ("end", outer.ended - outer.started, inner.ended - inner.started),
    ):
        if after is not None and before is not None and after - before > LATE_S:
            yield f"{what}: at the client after {after:.1f} s, the server's after {before:.1f} s"


def _of_findings(outer: Side, inner: Side) -> Iterator[str]:
    """Warnings and errors that one side alone has."""
    for words, here, there in (("inside only", inner, outer), ("outside only", outer, inner)):
        others = {(f.rule, f.party) for f in there.findings}
        for finding in here.findings:
            if finding.severity not in (None, "info") and (finding.rule, finding.party) not in others:
                yield f"{words}: {finding.rule} {one_line(finding.message, 200)}"


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
