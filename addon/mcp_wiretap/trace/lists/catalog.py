"""What an endpoint lists and how long that holds: cache hints of each kind of list, resources, templates, prompts; and what
`ui://` resources ask of a host. The newest of each, bounded, in `endpoint.facts[LISTED]` and `endpoint.facts[UI]`.

Tools themselves are `trace.tools`' business. Spec: 2026-07-28 server/utilities/caching; the extension io.modelcontextprotocol/ui.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import EndpointFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.pace import paced
from mcp_wiretap.wire.secret import one_line

_EXPRESSION = re.compile(r"\{[^{}]*\}")
ITEMS = 500  # of one kind of list
MOST_UI = 200  # ui:// resources of one endpoint
EMPTY = 20  # reads that gave nothing and are kept whole
CHANGES = 50  # changes between lists that are remembered
_LISTS = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
_CHANGED = {
    "notifications/prompts/list_changed": ("prompts",),
    "notifications/resources/list_changed": ("resources", "resourceTemplates"),
    "notifications/tools/list_changed": ("tools",),
}
_SHOWN = ("name", "title", "description", "mimeType", "size", "uri", "uriTemplate")


@dataclass(slots=True)
class Change:
    """The difference between two lists of one client, one after the other."""

    at: float
    flow: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(slots=True)
class Listing:
    """What stands in the newest lists of a kind."""

    kind: str
    count: int = 0  # lists seen
    at: float = 0.0
    flow: str = ""
    ttl_ms: Any = None
    scope: Any = None
    pages: bool = False  # the newest one was not the last page
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    names: dict[str, frozenset[str]] = field(default_factory=dict)  # Authorization -> names of its newest complete list
    walk: set[str] = field(default_factory=set)  # names of the pages so far
    auth: str = ""  # whose the newest list was
    changed: bool = False  # the server said since that it is no longer so


@dataclass(slots=True)
class UiResource:
    """A `ui://` resource as it was read: what it wants of the host. Never rendered."""

    uri: str
    flow: str
    at: float
    mime: str
    size: int
    asks: dict[str, Any]  # _meta.ui: csp, permissions, domain, prefersBorder


LISTED: EndpointFact[dict[str, Listing]] = EndpointFact("listed", "the newest listing of tools, resources, templates and prompts")
UI: EndpointFact[dict[str, UiResource]] = EndpointFact("ui", "what ui:// resources ask of a host")
UI_LINKS: EndpointFact[dict[str, set[str]]] = EndpointFact("ui-links", "tools that name a ui:// resource, by URI")


class Listed(Tracker):
    name = "listed"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._empty: list[Exchange] = []  # reads that gave nothing

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or message.party != "server" or message.rpc.kind != "result":
            for kind in _CHANGED.get(message.method or "", ()):
                if (told := message.exchange.endpoint.facts.get(LISTED, {}).get(kind)) is not None:
                    told.changed = True
            return
        known = _LISTS.get(request.method or "")
        if known is not None:
            self._list(message, request, *known)
        elif request.method == "resources/read":
            self._read(message)

    def _list(self, message: Message, request: Message, kind: str, key: str) -> None:
        items = message.result.get(kind)
        if not isinstance(items, list):
            return
        table: dict[str, Listing] = request.exchange.endpoint.facts.setdefault(LISTED, {})
        listing = table.setdefault(kind, Listing(kind))
        listing.count += 1
        listing.at, listing.flow, listing.auth = message.at, message.exchange.flow, request.exchange.auth
        result = message.result
        listing.ttl_ms, listing.scope = result.get("ttlMs"), result.get("cacheScope")
        listing.pages = isinstance(result.get("nextCursor"), str)
        if request.params.get("cursor") is None:
            listing.walk = set()
            listing.changed = False
            if kind != "tools":
                listing.items = {}
        if kind == "tools":
            self._links(request, items)
        for item in paced(items[: ITEMS * 10]):
            name = item.get(key) if isinstance(item, dict) else None
            if not isinstance(name, str):
                continue
            name = one_line(name, 500)
            if len(listing.walk) < ITEMS * 10:
                listing.walk.add(name)
            if kind != "tools" and len(listing.items) < ITEMS:
                listing.items[name] = _short(item)
        if not listing.pages:
            self._compare(listing, request.exchange.auth)
            if kind in ("resources", "resourceTemplates"):
                self._reread(request.exchange)

    @staticmethod
    def _links(request: Message, items: list[Any]) -> None:
        """`endpoint.facts[UI_LINKS]`: the user interfaces that the newest tools of each Authorization name."""
        table: dict[str, set[str]] = request.exchange.endpoint.facts.setdefault(UI_LINKS, {})
        auth = request.exchange.auth
        if auth not in table and len(table) >= 50:
            return
        links = table.setdefault(auth, set())
        if request.params.get("cursor") is None:
            links.clear()
        for item in paced(items[: ITEMS * 10]):
            meta = item.get("_meta") if isinstance(item, dict) else None
            ui = meta.get("ui") if isinstance(meta, dict) else None
            uri = ui.get("resourceUri") if isinstance(ui, dict) else None
            if isinstance(uri, str) and len(links) < ITEMS:
                links.add(one_line(uri, 500))

    def _compare(self, listing: Listing, auth: str) -> None:
        names = frozenset(listing.walk)
        before = listing.names.get(auth)
        if before is not None and before != names:
            change = Change(listing.at, listing.flow, tuple(sorted(names - before)[:50]), tuple(sorted(before - names)[:50]))
            listing.changes.append(change)
            del listing.changes[:-CHANGES]
        if before is not None or len(listing.names) < 50:
            listing.names[auth] = names

    def _reread(self, exchange: Exchange) -> None:
        """Reads that gave nothing are judged anew by what the server lists (RSC001)."""
        listed: dict[str, Listing] = exchange.endpoint.facts.get(LISTED, {})
        both = all(k in listed and exchange.auth in listed[k].names for k in ("resources", "resourceTemplates"))
        for read in [r for r in self._empty if (r.endpoint, r.auth) == (exchange.endpoint, exchange.auth)]:
            self.memory.rejudge(read)
            if both:
                self._empty.remove(read)
                self.memory.held.free(read, self.name)

    def _read(self, message: Message) -> None:
        contents = message.result.get("contents")
        if contents == [] and message.request is not None and len(self._empty) < EMPTY:
            self._empty.append(message.request.exchange)
            self.memory.held.keep(message.request.exchange, self.name)
        for content in contents[:20] if isinstance(contents, list) else ():
            uri = content.get("uri") if isinstance(content, dict) else None
            if not isinstance(uri, str) or not uri.startswith("ui://"):
                continue
            table: dict[str, UiResource] = message.exchange.endpoint.facts.setdefault(UI, {})
            if uri not in table and len(table) >= MOST_UI:
                return
            meta = content.get("_meta")
            asks = meta.get("ui") if isinstance(meta, dict) else None
            text = content.get("text") or content.get("blob") or ""
            table[uri] = UiResource(
                one_line(uri, 300),
                message.exchange.flow,
                message.at,
                one_line(str(content.get("mimeType", "")), 100),
                len(text) if isinstance(text, str) else 0,
                _bounded(asks) if isinstance(asks, dict) else {},
            )


def lists_uri(exchange: Exchange, uri: str) -> bool:
    """Whether a resource stands in the newest lists that this Authorization was given, or fits one of their templates."""
    listed: dict[str, Listing] = exchange.endpoint.facts.get(LISTED, {})
    resources, templates = (_names(listed.get(kind), exchange.auth) for kind in ("resources", "resourceTemplates"))
    return one_line(uri, 500) in resources or any(fits_template(uri, template) for template in templates)


def is_unlisted(exchange: Exchange, uri: str) -> bool:
    """Whether this Authorization was given the whole list of resources, which leaves this one out, and no template that fits."""
    listing: Listing | None = exchange.endpoint.facts.get(LISTED, {}).get("resources")
    return listing is not None and exchange.auth in listing.names and not lists_uri(exchange, uri)


def _names(listing: Listing | None, auth: str) -> set[str] | frozenset[str]:
    if listing is None:
        return frozenset()
    return listing.names.get(auth, frozenset()) | (listing.walk if listing.auth == auth else set())


def fits_template(uri: str, template: str) -> bool:
    """Whether a URI may have come of a URI template: its literal parts stand in the URI in that order."""
    first, *middle = _EXPRESSION.split(template)
    if not middle:
        return uri == first
    last = middle.pop()
    if len(uri) < len(first) + len(last) or not uri.startswith(first) or not uri.endswith(last):
        return False
    at, end = len(first), len(uri) - len(last)
    for part in middle:
        found = uri.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _short(item: dict[str, Any]) -> dict[str, Any]:
    """The members that are shown, cut."""
    found: dict[str, Any] = {}
    for name in _SHOWN:
        value = item.get(name)
        if isinstance(value, str):
            found[name] = one_line(value, 500)
        elif isinstance(value, int | float):
            found[name] = value
    arguments = item.get("arguments")
    if isinstance(arguments, list):
        found["arguments"] = [
            (one_line(str(a.get("name")), 100), a.get("required") is True) for a in arguments[:50] if isinstance(a, dict)
        ]
    annotations = item.get("_meta")
    ui = annotations.get("ui") if isinstance(annotations, dict) else None
    if isinstance(ui, dict):
        found["ui"] = _bounded(ui)
    return found


def _bounded(value: Any, depth: int = 0) -> Any:
    """A copy of a small JSON value; what is large is cut."""
    if isinstance(value, dict):
        return {one_line(str(k), 100): _bounded(v, depth + 1) for k, v in list(value.items())[:30]} if depth < 4 else "…"
    if isinstance(value, list):
        return [_bounded(v, depth + 1) for v in value[:30]] if depth < 4 else "…"
    return one_line(value, 300) if isinstance(value, str) else value
