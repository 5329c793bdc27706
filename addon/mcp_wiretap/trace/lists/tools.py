"""Tools as clients saw them in tools/list: what each client had seen of a tool when it called it, and what it had to exclude.

Kept per endpoint and Authorization (the set of tools may vary by that and by nothing else, 2026-07-28 server/tools), with the
name that each client gave itself: two programs without Authorization share one history, and a definition that only the other
one fetched proves little. A definition counts from the moment when the answer that holds it had come.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, HeaderCheck, Message, ToolDefinition, ToolView
from mcp_wiretap.trace.schema.annotations import Flaw, Mirror, read_tool
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.pace import paced
from mcp_wiretap.wire.revision import HEADER_MISMATCH
from mcp_wiretap.wire.values import digest, short_key, ttl_s

__all__ = ["Flaw", "Mirror", "ToolDefinition", "ToolView", "Tools"]

SETS = 1_000  # endpoints x Authorizations; the least recently used is forgotten
NAMES = 5_000  # tools of one set
VERSIONS = 8  # definitions of one tool: a server that changes them at each call is shown its last ones
CALLED = 200  # tools of one set that are known to have been called
WALKS = 4  # listings of one set that wait for their next page
BYTES = 16 << 20  # of JSON text that all kept definitions take; parsed it is some times as much
OVERHEAD = 400  # what a definition takes besides its text
CLIENTS = 64  # clients of one set told apart
REFUSED = 1_000  # clients with a refused call that they may repeat

CHANGED = "notifications/tools/list_changed"

type Client = tuple[str, str] | None  # what a client calls itself


@dataclass(slots=True)
class _Sighting:
    """When one client saw one definition."""

    first: float
    last: float
    flow: str
    fresh_until: float


@dataclass(slots=True)
class _Version:
    definition: ToolDefinition
    size: int
    seen: dict[Client, _Sighting] = field(default_factory=dict)

    def at(self, client: Client, moment: float) -> float | None:
        """When that client had last seen it, as of that moment."""
        sighting = self.seen.get(client)
        if sighting is None or sighting.first >= moment:
            return None
        return sighting.last if sighting.last < moment else sighting.first

    def flow_at(self, moment: float) -> str:
        """The list that gave it at that moment; the first one where that is not known any more."""
        return next((s.flow for s in self.seen.values() if s.last == moment), self.definition.flow)


@dataclass(slots=True)
class _Walk:
    """A paginated list on its way: the names so far, and the cursor that the next page must bring."""

    cursor: str
    names: set[str]


@dataclass(slots=True)
class _Set:
    """What was listed at one endpoint under one Authorization."""

    by_name: dict[str, list[_Version]] = field(default_factory=dict)  # versions in order of their first sight
    altered: set[str] = field(default_factory=set)  # names whose definition the proxy changed, left out or added
    twice: set[str] = field(default_factory=set)  # names that one answer gives two different definitions
    walks: list[_Walk] = field(default_factory=list)
    complete: tuple[float, str, frozenset[str]] | None = None  # newest complete list: when, last flow, names
    called: dict[tuple[Client, Hashable, str], None] = field(default_factory=dict)  # (client, tool, flow of the definition)
    answers: int = 0
    overflow: bool = False
    size: int = 0


@dataclass(slots=True, frozen=True)
class _Refused:
    """A call that got -32020 although its standard headers were right."""

    flow: str
    at: float
    digest: bytes


TOOLS_CHANGED: EndpointFact[float] = EndpointFact("tools-changed", "when the server last said that its tools changed")
REPEATS_REFUSED: ExchangeFact[str] = ExchangeFact("repeats-refused", "flow of the refused call that this one repeats unchanged")


class Tools(Tracker):
    name = "tools"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._sets: OrderedDict[tuple[str, str], _Set] = OrderedDict()
        self._size = 0
        self._refused: OrderedDict[tuple[str, str, Client], dict[str, _Refused]] = OrderedDict()

    def requested(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None:
            return
        if request.method == "tools/list":
            if self._refused:
                self._refused.pop(_client(exchange), None)
        elif request.method == "tools/call":
            name = request.params.get("name")
            if isinstance(name, str):
                exchange.tool = self._view(exchange, name)
                if self._refused:
                    self._note_repeat(exchange, request, name)

    def sent(self, exchange: Exchange, side: Exchange) -> None:
        """The server was given another call, maybe of another tool."""
        request = side.request
        if request is not None and request.method == "tools/call" and isinstance(name := request.params.get("name"), str):
            side.tool = exchange.tool if name == exchange.name and side.auth == exchange.auth else self._view(side, name)

    def passed(self, exchange: Exchange, side: Exchange) -> None:
        """The client got another list than the server gave: of a tool that differs in both nothing is held against either."""
        request, answer = exchange.request, side.answer
        if request is None or request.method != "tools/list":
            return
        given = exchange.answer.result.get("tools") if exchange.answer is not None else None
        got = answer.result.get("tools") if answer is not None else None
        listed = self._set(exchange)
        one, other = _by_name(given), _by_name(got)
        differ = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
        listed.altered.update(sorted(differ)[: max(NAMES - len(listed.altered), 0)])

    def said(self, message: Message) -> None:
        request = message.request
        if message.method == CHANGED and message.party == "server":
            message.exchange.endpoint.facts[TOOLS_CHANGED] = message.at
        if request is None or message.party != "server":
            return
        if request.method == "tools/list":
            if message.kind == "result":
                self._listed(message, request)
        elif request.method == "tools/call":
            if message.kind == "error" and message.error_code == HEADER_MISMATCH:
                self._note_refusal(message, request)
            elif self._refused and isinstance(name := request.params.get("name"), str):
                self._refused.get(_client(request.exchange), {}).pop(name, None)

    def definition(self, exchange: Exchange, name: str) -> ToolDefinition | None:
        """The definition of a tool that the client of this exchange had seen."""
        return self._view(exchange, name).definition

    # For the pages

    def history(self, url: str, name: str) -> list[ToolDefinition]:
        """The definitions of a tool that are remembered, in order of their first sight, under whatever Authorization."""
        found = [v.definition for (at, _), listed in self._sets.items() if at == url for v in listed.by_name.get(name, ())]
        return sorted(found, key=lambda definition: definition.listed_at)

    def versions(self, url: str, name: str) -> int:
        """The most definitions that one set of an endpoint holds of a tool."""
        return max((len(listed.by_name.get(name, ())) for (at, _), listed in self._sets.items() if at == url), default=0)

    # A list

    def _listed(self, message: Message, request: Message) -> None:
        tools = message.result.get("tools")
        if not isinstance(tools, list):
            return
        owner = request.exchange
        listed = self._set(owner)
        listed.answers += 1
        size = _size(message) // max(len(tools), 1) + OVERHEAD
        fresh_until = message.at + ttl_s(message.result)
        definitions: list[ToolDefinition] = []
        here: dict[str, ToolDefinition] = {}
        for index, raw in enumerate(paced(tools)):
            if isinstance(raw, dict):
                definitions.append(self._definition(listed, message, raw, index))
        beside = tuple(d.name for d in definitions if d.excluded)[:20]
        for definition in paced(definitions):
            definition.beside = beside
            if not definition.name:
                continue
            first = here.setdefault(definition.name, definition)
            if first is definition:
                listed.twice.discard(definition.name)
                self._keep(listed, definition, owner, size, fresh_until)
            elif first.raw != definition.raw:
                listed.twice.add(definition.name)
        self._walk(listed, message, request, here.keys())
        in_exchange = message.exchange.definitions
        in_exchange.extend(definitions)
        del in_exchange[:-NAMES]  # a legacy GET stream may carry one list after the other
        self._shrink()

    def _definition(self, listed: _Set, message: Message, raw: dict[str, Any], index: int) -> ToolDefinition:
        name = raw.get("name")
        name = name if isinstance(name, str) else ""
        known = listed.by_name.get(name)
        same = next((v.definition for v in reversed(known) if v.definition.raw == raw), None) if known else None
        annotations = same.annotations if same is not None else read_tool(raw)
        return ToolDefinition(
            name, same.raw if same is not None else raw, message, index, message.exchange.flow, message.at, annotations
        )

    def _keep(self, listed: _Set, definition: ToolDefinition, owner: Exchange, size: int, fresh_until: float) -> None:
        """Remember the definition, without the answer it came in."""
        name, client = definition.name, owner.client_info
        versions = listed.by_name.get(name)
        if versions is None:
            if len(listed.by_name) >= NAMES:
                listed.overflow = True
                self.memory.count_dropped("tools")
                return
            versions = listed.by_name[name] = []
        version = next((v for v in reversed(versions) if v.definition.raw is definition.raw), None)
        if version is None:
            if versions and (client, name, versions[-1].definition.flow) in listed.called:
                definition.replaces = versions[-1].definition
                seen_at = max((s.last for s in versions[-1].seen.values()), default=0.0)
                definition.announced = owner.endpoint.facts.get(TOOLS_CHANGED, 0.0) > seen_at
            version = _Version(replace(definition, message=None, replaces=None), size)
            versions.append(version)
            self._grow(listed, size)
            if len(versions) > VERSIONS:
                oldest = min(versions[:-1], key=lambda v: max(s.last for s in v.seen.values()))
                versions.remove(oldest)
                self._grow(listed, -oldest.size)
                self.memory.count_dropped("tool definitions")
        at, flow = definition.listed_at, definition.flow
        sighting = version.seen.get(client)
        if sighting is not None:
            sighting.last, sighting.flow, sighting.fresh_until = at, flow, fresh_until
        elif len(version.seen) < CLIENTS:
            version.seen[client] = _Sighting(at, at, flow, fresh_until)
        shown = owner.endpoint.tools
        shown[name] = version.definition
        if len(shown) > NAMES:
            del shown[next(iter(shown))]

    def _walk(self, listed: _Set, message: Message, request: Message, names: Any) -> None:
        """Chain the pages of one listing by their cursors; a listing whose first page was not seen never completes."""
        cursor, following = request.params.get("cursor"), message.result.get("nextCursor")
        walk = _Walk("", set())
        if cursor is not None:
            found = next((w for w in reversed(listed.walks) if w.cursor == cursor), None)
            if found is None:
                return
            # The same page may be fetched again: the walk it continues stays for that.
            walk.names |= found.names
        walk.names |= names
        if following is None:
            listed.complete = (message.at, message.exchange.flow, frozenset(walk.names))
        elif isinstance(following, str) and len(walk.names) <= NAMES:
            walk.cursor = following
            others = [w for w in listed.walks if w.cursor != following]
            listed.walks = [*others[-WALKS + 1 :], walk]

    # A call

    def _view(self, exchange: Exchange, name: str) -> ToolView:
        listed = self._set(exchange)
        client, moment = exchange.client_info, exchange.started
        versions = listed.by_name.get(name)
        view = ToolView(None)
        if name in listed.altered:
            view.why_unknown = "the proxy changed the tools/list answer that names the tool"
        elif name in listed.twice:
            view.why_unknown = "one tools/list answer names the tool twice, with different definitions"
        elif versions:
            ordered = list(_newest_first(versions, client, moment))
            if not ordered:
                ordered = list(_newest_first_of_anybody(versions, moment))
                view.by_other = True
            if ordered:
                self._fill(view, listed, ordered, name, exchange)
        if view.definition is None and not view.why_unknown:
            view.by_other = False
            view.why_unknown = self._why(view, listed, name, exchange)
        key = (client, id_key(name), view.definition.flow if view.definition is not None else "")
        view.first = key not in listed.called
        listed.called[key] = None
        while len(listed.called) > CALLED:
            del listed.called[next(iter(listed.called))]
        return view

    @staticmethod
    def _fill(view: ToolView, listed: _Set, ordered: list[tuple[float, _Version]], name: str, exchange: Exchange) -> None:
        seen_at, newest = ordered[0]
        view.definition, view.flow = newest.definition, newest.flow_at(seen_at)
        view.earlier = [version.definition for _, version in ordered[1:]]
        view.seen_at = seen_at
        ends = [s.fresh_until for s in newest.seen.values() if s.last == seen_at and s.fresh_until > seen_at]
        view.stale_at = max(ends, default=None)
        view.fresh = frozenset(
            version.definition.flow
            for _, version in ordered[1:]
            if any(s.fresh_until > exchange.started for s in version.seen.values())
        )
        if listed.complete is not None:
            at, flow, names = listed.complete
            if seen_at < at < exchange.started and name not in names:
                view.delisted = flow

    def _why(self, view: ToolView, listed: _Set, name: str, exchange: Exchange) -> str:
        if listed.by_name.get(name):
            return "the tools/list answer that names the tool had not come yet"
        if listed.overflow:
            return f"more than {NAMES} tools were listed"
        if listed.complete is not None and listed.complete[0] < exchange.started:
            view.unlisted = listed.complete[1]
            return "the newest complete tools/list does not name the tool"
        if listed.answers:
            return "the pages of tools/list that were seen do not name the tool"
        if name in exchange.endpoint.tools:
            return "only a tools/list under another Authorization names the tool"
        return "no tools/list answer was seen before the call"

    # A refusal, and its repetition

    def _note_refusal(self, message: Message, request: Message) -> None:
        owner = request.exchange
        if owner.change is not None:
            return  # the proxy brought the refusal about: the client cannot mend it
        name = request.params.get("name")
        if not owner.claim.modern or not isinstance(name, str) or not _standard_headers_right(owner.header_checks):
            return
        calls = self._refused.setdefault(_client(owner), {})
        if len(calls) < 100:
            calls[short_key(name)] = _Refused(owner.flow, message.at, _asked(owner, request))
        self._refused.move_to_end(_client(owner))
        while len(self._refused) > REFUSED:
            self._refused.popitem(last=False)

    def _note_repeat(self, exchange: Exchange, request: Message, name: str) -> None:
        """facts[REPEATS_REFUSED]: the flow of a refused call that this one repeats without change (PAR027)."""
        refused = self._refused.get(_client(exchange), {}).get(short_key(name))
        if refused is not None and refused.at < exchange.started and refused.digest == _asked(exchange, request):
            exchange.facts[REPEATS_REFUSED] = refused.flow

    # Book-keeping

    def _set(self, exchange: Exchange) -> _Set:
        key = (exchange.endpoint.url, exchange.auth)
        listed = self._sets.get(key)
        if listed is None:
            listed = self._sets[key] = _Set()
            while len(self._sets) > SETS:
                self._forget()
        else:
            self._sets.move_to_end(key)
        return listed

    def _grow(self, listed: _Set, size: int) -> None:
        listed.size += size
        self._size += size

    def _shrink(self) -> None:
        while self._size > BYTES and self._sets:
            self._forget()

    def _forget(self) -> None:
        """Let go of the least recently used set."""
        (url, _), gone = self._sets.popitem(last=False)
        self._size -= gone.size
        self.memory.count_dropped("tool lists")
        endpoint = self.memory.endpoints.get(url)
        if endpoint is not None:
            for name, versions in gone.by_name.items():
                if any(endpoint.tools.get(name) is v.definition for v in versions):
                    del endpoint.tools[name]


def _newest_first(versions: list[_Version], client: Client, moment: float) -> Iterator[tuple[float, _Version]]:
    seen = [(at, v) for v in versions if (at := v.at(client, moment)) is not None]
    yield from sorted(seen, key=lambda entry: entry[0], reverse=True)


def _newest_first_of_anybody(versions: list[_Version], moment: float) -> Iterator[tuple[float, _Version]]:
    seen = []
    for version in versions:
        times = [at for client in version.seen if (at := version.at(client, moment)) is not None]
        if times:
            seen.append((max(times), version))
    yield from sorted(seen, key=lambda entry: entry[0], reverse=True)


def _client(exchange: Exchange) -> tuple[str, str, Client]:
    return exchange.endpoint.url, exchange.auth, exchange.client_info


def _size(message: Message) -> int:
    """Bytes of the answer that a message came in."""
    exchange = message.exchange
    if exchange.stream is not None and exchange.stream.items:
        return exchange.stream.items[-1].event.size
    return exchange.answer_reading.size if exchange.answer_reading is not None else 0


def _by_name(tools: Any) -> dict[str, Any]:
    found = tools if isinstance(tools, list) else []
    return {t["name"]: t for t in found if isinstance(t, dict) and isinstance(t.get("name"), str)}


def _standard_headers_right(checks: list[HeaderCheck]) -> bool:
    """Whether the version, method and name headers were verified: then a -32020 is about the parameters."""
    standard = [c for c in checks if not c.header.startswith("Mcp-Param-")]
    return len(standard) == 3 and all(c.verdict in ("match", "needless-encoding") for c in standard)


def _asked(exchange: Exchange, request: Message) -> bytes:
    """What a repetition has in common with the call that it repeats: the arguments and the Mcp-Param headers."""
    fields = exchange.request_fields
    return digest([request.params.get("arguments"), {name: fields.all(name) for name in fields.names_starting("mcp-param-")}])
