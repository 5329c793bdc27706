"""Whether servers keep what the user holds them to: drift from what was accepted (a baseline), and a contract.

Nothing is looked at where neither was given (`Memory.promised`). What is told once about an endpoint is not told again.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Endpoint, Exchange, Message
from mcp_wiretap.trace.promised import KINDS, Offer, one_offer
from mcp_wiretap.trace.schema import changes
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import dumps, pointer
from mcp_wiretap.wire.pace import paced
from mcp_wiretap.wire.revision import SERVER_INFO
from mcp_wiretap.wire.secret import concealed, masked, one_line
from mcp_wiretap.wire.values import canonical

type Sort = Literal["gone", "breaking", "compatible", "text", "wording", "new"]
MOST = 50  # drifts of one answer that are told
WALKS = 1_000  # lists on their way
TOLD = 10_000  # of one trace
DEEPEST = 40
_TEXTS = ("title", "description")


@dataclass(slots=True, frozen=True)
class Drift:
    """One thing that is otherwise than it was accepted."""

    sort: Sort
    what: str  # `tool echo`
    words: str
    steps: tuple[str | int, ...]  # to the place in the result
    was: Any = None
    now: Any = None


@dataclass(slots=True, frozen=True)
class Breach:
    """A line of the contract that was broken."""

    line: Literal["missing", "forbidden", "slow", "failures", "definitions", "result"]
    words: str
    where: str
    value: Any
    expected: Any = None


DRIFT: ExchangeFact[list[Drift]] = ExchangeFact("baseline-drift", "what its answer offers otherwise than the baseline has it")
BREACHES: ExchangeFact[list[Breach]] = ExchangeFact("breaches", "the lines of the user's contract that it breaks")


@dataclass(slots=True)
class _Walk:
    names: set[str] = field(default_factory=set)
    size: int = 0


@dataclass(slots=True)
class _Calls:
    total: int = 0
    failed: int = 0
    last: Exchange | None = None  # the newest failed one, kept whole


class Promises(Tracker):
    name = "promises"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._walks: OrderedDict[tuple[str, str, str], _Walk] = OrderedDict()
        self._told: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._offered: set[str] = set()  # tools that the contract expects, and that were offered
        self._anchor: Exchange | None = None  # the newest tools/list, or else the newest exchange: kept whole
        self._calls: OrderedDict[str, _Calls] = OrderedDict()

    def said(self, message: Message) -> None:
        promised, request = self.memory.promised, message.request
        if not promised or request is None or message.party != "server" or message.rpc.kind != "result":
            return
        known = KINDS.get(request.method or "")
        if known is not None:
            self._listed(message, request, *known)
        elif request.method in ("initialize", "server/discover"):
            offer = one_offer(promised.offers, request.exchange.endpoint.url)
            if offer is not None:
                self._note(message.exchange, _of_server(offer, message.result))

    def ended(self, exchange: Exchange) -> None:
        contract = self.memory.promised.contract
        if not contract or exchange.kind != "mcp":
            return
        if contract.expect_tools and (exchange.method == "tools/list" or self._anchor is None):
            self._keep(exchange)
        if exchange.method is not None:
            self._timed(exchange, exchange.method)
        if exchange.method == "tools/call":
            self._called(exchange)

    def finished(self) -> Iterable[Exchange] | None:
        contract = self.memory.promised.contract
        named: list[Exchange] = []
        missing = [name for name in contract.expect_tools if name not in self._offered]
        if missing and self._anchor is not None:
            listed = self._anchor.method == "tools/list"
            why = "no tools/list answer names it" if listed else "no tools/list was recorded"
            for name in missing:
                words = f"the contract expects the tool {one_line(name, 80)}; {why}"
                self._breach(self._anchor, Breach("missing", words, "response.body:/result/tools", None, name))
            named.append(self._anchor)
        for calls in self._calls.values() if contract.max_failures is not None else ():
            share = calls.failed / calls.total
            if calls.last is not None and contract.max_failures is not None and share > contract.max_failures:
                words = f"{calls.failed} of {calls.total} tool calls failed; the contract allows {contract.max_failures:.0%}"
                self._breach(calls.last, Breach("failures", words, "response", f"{share:.0%}", f"{contract.max_failures:.0%}"))
                named.append(calls.last)
        return named

    # Lists

    def _listed(self, message: Message, request: Message, member: str, key: str, noun: str) -> None:
        items = message.result.get(member)
        if not isinstance(items, list):
            return
        endpoint = request.exchange.endpoint
        walk = self._walk(endpoint, request, member)
        offer = one_offer(self.memory.promised.offers, endpoint.url)
        accepted = offer.lists.get(member) if offer is not None else None
        for index, item in enumerate(paced(items)):
            name = item.get(key) if isinstance(item, dict) else None
            if not isinstance(name, str):
                continue
            walk.names.add(name)
            if member == "tools":
                self._offer_of(message, item, name, index)
            if accepted is not None:
                self._note(message.exchange, _of_item(accepted.get(name), item, noun, name, (member, index)))
        if member == "tools":
            self._definitions(message, walk, items)
        if message.result.get("nextCursor") is None:
            gone = [name for name in accepted or {} if name not in walk.names]
            self._note(
                message.exchange,
                (Drift("gone", f"{noun} {one_line(n, 80)}", "is not offered any more", (member,), n) for n in gone),
            )
            self._walks.pop((endpoint.url, request.exchange.auth, member), None)

    def _walk(self, endpoint: Endpoint, request: Message, member: str) -> _Walk:
        """What the pages of this list have brought so far."""
        key = (endpoint.url, request.exchange.auth, member)
        if request.params.get("cursor") is None or key not in self._walks:
            self._walks[key] = _Walk()
            while len(self._walks) > WALKS:
                self._walks.popitem(last=False)
        return self._walks[key]

    def _offer_of(self, message: Message, item: dict[str, Any], name: str, index: int) -> None:
        contract = self.memory.promised.contract
        if name in contract.expect_tools:
            self._offered.add(name)
        pattern = contract.forbids(name)
        if pattern is not None and self._is_first(message.exchange.endpoint, "forbidden", name):
            words = f"the server offers the tool {one_line(name, 80)}, which the contract forbids ({pattern})"
            place = message.place("result", "tools", index, "name")
            self._breach(message.exchange, Breach("forbidden", words, place, name))

    def _definitions(self, message: Message, walk: _Walk, items: list[Any]) -> None:
        most = self.memory.promised.contract.max_definitions
        if most is None:
            return
        walk.size += sum(len(dumps(item).encode("utf-8", "surrogatepass")) for item in paced(items))
        if walk.size > most and self._is_first(message.exchange.endpoint, "definitions", ""):
            words = f"the definitions of {len(walk.names)} tools take {walk.size} bytes; the contract allows {most}"
            self._breach(message.exchange, Breach("definitions", words, message.place("result", "tools"), walk.size, most))

    # Calls

    def _timed(self, exchange: Exchange, method: str) -> None:
        longest = self.memory.promised.contract.longest(method, exchange.name)
        answer = exchange.answer
        if longest is None or answer is None:
            return
        took = (answer.at - exchange.requested) * 1000
        if took > longest:
            about = one_line(f"{method} {exchange.name or ''}".strip(), 100)
            words = f"{about} was answered after {took:.0f} ms; the contract allows {longest:g} ms"
            self._breach(exchange, Breach("slow", words, "response", f"{took:.0f} ms", f"{longest:g} ms"))

    def _called(self, exchange: Exchange) -> None:
        contract = self.memory.promised.contract
        answer = exchange.answer
        if contract.max_result is not None and answer is not None and answer.rpc.kind == "result":
            size = len(dumps(answer.result.get("content")).encode("utf-8", "surrogatepass"))
            if size > contract.max_result:
                words = f"the result has {size} bytes of content; the contract allows {contract.max_result}"
                self._breach(exchange, Breach("result", words, answer.place("result", "content"), size, contract.max_result))
        if contract.max_failures is None:
            return
        calls = self._calls.setdefault(exchange.endpoint.url, _Calls())
        calls.total += 1
        failed = exchange.outcome in ("error", "broken") or (answer is not None and answer.result.get("isError") is True)
        if failed:
            calls.failed += 1
            if calls.last is not None:
                self.memory.held.free(calls.last, self.name)
            calls.last = exchange
            self.memory.held.keep(exchange, self.name)

    def _keep(self, exchange: Exchange) -> None:
        if self._anchor is not None:
            self.memory.held.free(self._anchor, f"{self.name}-anchor")
        self._anchor = exchange
        self.memory.held.keep(exchange, f"{self.name}-anchor")

    # What is told

    def _note(self, exchange: Exchange, found: Iterable[Drift]) -> None:
        for drift in found:
            if not self._is_first(exchange.endpoint, drift.what, f"{drift.sort} {drift.words}"):
                continue
            told = exchange.facts.setdefault(DRIFT, [])
            if len(told) >= MOST:
                self.memory.count_dropped("differences from the baseline")
                return
            told.append(drift)

    def _breach(self, exchange: Exchange, breach: Breach) -> None:
        exchange.facts.setdefault(BREACHES, []).append(breach)

    def _is_first(self, endpoint: Endpoint, what: str, words: str) -> bool:
        key = (endpoint.url, what, words[:300])
        if key in self._told:
            return False
        self._told[key] = None
        while len(self._told) > TOLD:
            self._told.popitem(last=False)
        return True


def _of_server(offer: Offer, result: dict[str, Any]) -> Iterator[Drift]:
    """What initialize or server/discover says otherwise."""
    instructions = result.get("instructions")
    instructions = concealed(instructions) if isinstance(instructions, str) else None
    if instructions != offer.instructions:
        yield Drift("text", "instructions", "of the server changed", ("instructions",), offer.instructions, instructions)
    capabilities = result.get("capabilities")
    if isinstance(capabilities, dict):
        yield from _of_members(offer.capabilities, masked(capabilities), "capability", ("capabilities",))
    versions = result.get("supportedVersions")
    for version in [v for v in offer.revisions if isinstance(versions, list) and v not in versions]:
        yield Drift(
            "gone", f"protocol version {one_line(version, 40)}", "is not supported any more", ("supportedVersions",), version
        )
    meta = result.get("_meta")
    info = result.get("serverInfo") or (meta.get(SERVER_INFO) if isinstance(meta, dict) else None)
    if not isinstance(info, dict):
        return
    for name in ("name", "version"):
        if info.get(name) != offer.server.get(name) and offer.server.get(name) is not None:
            yield Drift(
                "wording", f"the server's {name}", "changed", ("serverInfo", name), offer.server.get(name), info.get(name)
            )


def _of_members(was: dict[str, Any], now: dict[str, Any], noun: str, steps: tuple[str, ...]) -> Iterator[Drift]:
    for name in sorted(set(was) | set(now)):
        what = f"{noun} {one_line(name, 60)}"
        if name not in now:
            yield Drift("gone", what, "is gone", steps, was[name])
        elif name not in was:
            yield Drift("new", what, "is new", (*steps, name), None, now[name])
        elif canonical(was[name]) != canonical(now[name]):
            yield Drift("compatible", what, "changed", (*steps, name), was[name], now[name])


def _of_item(
    was: dict[str, Any] | None, item: dict[str, Any], noun: str, name: str, steps: tuple[str | int, ...]
) -> Iterator[Drift]:
    """What a list says of one item otherwise."""
    what = f"{noun} {one_line(name, 80)}"
    if was is None:
        yield Drift("new", what, "is new", steps, None, name)
        return
    now: dict[str, Any] = masked(item)
    if canonical(was) == canonical(now):
        return
    for place in _texts(was, now, ()):
        old, new = _at(was, place), _at(now, place)
        sort: Sort = "text" if place[-1] == "description" else "wording"
        yield Drift(sort, what, f"{pointer(*place)} changed", (*steps, *place), old, new)
    for change in changes.of_tool(was, now):
        member = change.where.split("/")[1]
        if member in ("title", "description"):
            continue
        sort = "wording" if member in ("icons", "_meta") else "compatible" if change.weight == "compatible" else "breaking"
        yield Drift(sort, what, f"{change.where} {change.words}", (*steps, member), was.get(member), now.get(member))


def _texts(was: Any, now: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The places of titles and descriptions that are otherwise, those of parameters included: a model reads them all."""
    if len(path) > DEEPEST:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for name in [*was, *(name for name in now if name not in was)]:
            old, new = was.get(name), now.get(name)
            if name in _TEXTS and isinstance(old, str | None) and isinstance(new, str | None):
                if old != new:
                    yield (*path, name)
            else:
                yield from _texts(old, new, (*path, name))
    elif isinstance(was, list) and isinstance(now, list):
        for index, (old, new) in enumerate(zip(was, now, strict=False)):
            yield from _texts(old, new, (*path, index))


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        else:
            value = value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
    return value
