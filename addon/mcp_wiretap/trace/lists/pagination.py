"""Lists over many requests: pages chained by cursor, listings compared, freshness hints against what clients do.

A page continues the newest page of the same endpoint, method and Authorization that issued its cursor; cursors are opaque, and
two listings may use the same ones. Spec: 2026-07-28 server/utilities/pagination, server/utilities/caching.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.values import digest, ttl_s

NAME = "list"
_TASKS = "tasks/list"  # 2025-11-25: it has pages, and nothing to be cached or compared
# What each listing lists, and what tells its entries apart.
LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    _TASKS: ("tasks", "taskId"),
}
CACHEABLE = (frozenset(LISTS) - {_TASKS}) | {"resources/read", "server/discover"}
_WATCHED = CACHEABLE | {_TASKS}
_CHANGED = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/resources/updated": ("resources/read",),
}
MOST_PAGES = 2_000  # pages remembered in all
MOST_CURSORS = 5_000  # of one endpoint and method; past that, an unknown cursor proves nothing
LONGEST_CURSOR = 1_000  # characters of one that may still be given
MOST_NAMES = 5_000  # of one listing that are compared
MOST_HELD = 50  # exchanges kept whole until something else is seen
WINDOW_S = 60.0  # what changes by authorization is compared within
POLLS = 2  # refetches in a row of what is still fresh: fewer have no interval

type Who = tuple[str, tuple[str, str] | None]  # Authorization, clientInfo


@dataclass(slots=True, eq=False)
class Page:
    """One page of a listing."""

    flow: str
    at: float
    who: Who
    cursor: str | None
    next: str | None
    scope: Any  # cacheScope
    first_flow: str  # of the listing's first page
    names: tuple[Any, ...] | None  # of all pages up to this one; None: too many
    visited: frozenset[str]  # cursors used so far


@dataclass(slots=True)
class Listing:
    """A listing that was read to its end."""

    flow: str
    at: float
    connection: str
    names: tuple[Any, ...]
    ttl_s: float


@dataclass(slots=True, frozen=True)
class Varies:
    """A listing that differs from the one before, though nothing said that it would."""

    before: str  # flow
    added: tuple[Any, ...]
    removed: tuple[Any, ...]
    flips: bool  # it was like this before that


@dataclass(slots=True)
class ListView:
    """What is to be said of one cacheable request (`exchange.facts[LIST]`)."""

    cursor: Any = None  # as it was sent; None: the first page
    issuer: Page | None = None  # the page that gave the cursor
    unknown_cursor: bool = False  # no page gave it, though the first page was seen
    shared: bool = False  # several clients were given this cursor at about the same time
    page: Page | None = None
    scope_was: Any = None  # cacheScope of the page before, where this one's differs
    loop: Literal["", "same", "again"] = ""  # nextCursor is the cursor just used, or one used before in this listing
    reordered: str = ""  # flow of a listing with the same names in another order
    varies: Varies | None = None
    other_auth: str = ""  # flow of another Authorization that got something else for the same public request
    polls: tuple[int, float, float] | None = None  # refetches while fresh, seconds between them, ttl in seconds
    unfollowed: bool = False  # nextCursor "" was not followed


@dataclass(slots=True)
class _Fresh:
    """The newest answer to one request of one client."""

    at: float
    ttl_s: float
    requests: list[float] = field(default_factory=list)  # starts of its own request and those since, while it was fresh


@dataclass(slots=True)
class _Stale:
    """A client was told that its list of tools changed, and has not listed them since."""

    flow: str  # of the listen stream
    names: frozenset[Any]
    calls: list[Exchange] = field(default_factory=list)


LIST: ExchangeFact[ListView] = ExchangeFact("list", "this page of a list beside the pages before")
STALE_CALL: ExchangeFact[tuple[str, str]] = ExchangeFact(
    "stale-call", "the call used a list that had run out: flows of that list and of the next one"
)


class Lists(Tracker):
    """Writes `exchange.facts[LIST]` (ListView), and `exchange.facts[STALE_CALL]` = (listen flow, list flow) on calls."""

    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._pages: Recent[tuple[str, str, str], list[Page]] = Recent(lambda: min(MOST_PAGES, self.limits.state))
        self._cursors: Recent[tuple[str, str], dict[str, None]] = Recent(1_000)
        self._began: Recent[tuple[str, str, Who], bool] = Recent(1_000)  # first pages seen
        self._listings: Recent[tuple[Any, ...], list[Listing]] = Recent(1_000)
        self._changed: Recent[tuple[str, str], float] = Recent(1_000)
        self._fresh: Recent[tuple[str, str, Who, str], _Fresh] = Recent(lambda: min(2_000, self.limits.state))
        self._public: Recent[tuple[str, str, str, bytes], tuple[str, bytes, float, str]] = Recent(1_000)
        self._stale: Recent[tuple[str, Who], _Stale] = Recent(500)
        self._tools: Recent[tuple[str, Who], frozenset[Any]] = Recent(500)
        self._unfollowed: OrderedDict[str, Exchange] = OrderedDict()  # flows whose nextCursor "" nothing followed
        self._follows: Recent[Who, bool] = Recent(1_000)  # clients that follow cursors
        self._unknown: Recent[tuple[str, str, str], ListView] = Recent(1_000)  # cursors that no page gave so far
        self._held = 0

    def said(self, message: Message) -> None:
        method = message.rpc.method
        if message.party == "client":
            if message.rpc.kind == "request":
                if method in _WATCHED:
                    self._asked(message, method)
                elif method == "tools/call" and len(self._stale):
                    self._called(message)
            return
        request = message.request
        if request is not None:
            if request.rpc.method in _WATCHED and message.rpc.kind == "result" and request.answer is message:
                self._answered(message, request, request.rpc.method)
        elif method in _CHANGED:
            self._invalidated(message, method)

    def passed(self, exchange: Exchange, side: Exchange) -> None:
        """The client keeps to the ttlMs, the cursor and the names that it got."""
        request, answer = exchange.request, side.answer
        if request is None or answer is None or request.rpc.method not in _WATCHED or answer.rpc.kind != "result":
            return
        url, who, method, result = exchange.endpoint.url, _who(exchange), request.rpc.method, answer.result
        key = (url, method, who, _about(request.params))
        self._fresh.pop(key)
        if fresh := ttl_s(result):
            self._fresh.put(key, _Fresh(answer.at, fresh, [exchange.started]))
        if method not in LISTS:
            return
        following = result.get("nextCursor")
        if following is not None:
            self._issued(url, method, following if isinstance(following, str) else _odd(following))
        if (waiting := self._unfollowed.pop(exchange.flow, None)) is not None:
            self._free(waiting)
        if method == "tools/list":
            self._tools.pop((url, who))  # which of its tools are gone is not told from a list that was changed

    def finished(self) -> Iterable[Exchange]:
        """Listings whose nextCursor "" was not followed, by clients that do follow others (CAC008)."""
        found = []
        for exchange in self._unfollowed.values():
            view = exchange.facts.get(LIST)
            if view is not None and self._follows.get(_who(exchange)):
                view.unfollowed = True
                found.append(exchange)
        return found

    # A request

    def _asked(self, message: Message, method: str) -> None:
        exchange, params = message.exchange, message.params
        view = exchange.facts[LIST] = ListView()
        url, who, cursor = exchange.endpoint.url, _who(exchange), params.get("cursor")
        if method in LISTS and cursor is not None:
            view.cursor = cursor
            if isinstance(cursor, str):
                self._continues(view, exchange, method, cursor)
            else:
                self._note_unknown(view, exchange, method, _odd(cursor))
        elif method in LISTS:
            self._began.put((url, method, who), True)
        if "requestState" in params or "inputResponses" in params:
            return
        known = self._fresh.get((url, method, who, _about(params)))
        if known is None:
            return
        if exchange.started >= known.at + known.ttl_s or (self._changed.get((url, method)) or 0.0) > known.at:
            known.requests.clear()
            return
        known.requests.append(exchange.started)
        if len(known.requests) > POLLS:
            times = known.requests[-POLLS - 1 :]
            gaps = [b - a for a, b in pairwise(times)]
            mean = sum(gaps) / len(gaps)
            if mean > 0 and all(abs(gap - mean) <= 0.2 * mean for gap in gaps):
                view.polls = (len(known.requests) - 1, mean, known.ttl_s)
            del known.requests[: -10 * POLLS]

    def _continues(self, view: ListView, exchange: Exchange, method: str, cursor: str) -> None:
        url, who = exchange.endpoint.url, _who(exchange)
        if cursor:
            self._follows.put(who, True)
        issuers = [page for page in self._pages.get((url, method, cursor)) or () if page.who[0] == who[0]]
        if issuers:
            mine = [page for page in issuers if page.who == who]
            view.issuer = (mine or issuers)[-1]
            others = {page.who for page in issuers if abs(page.at - view.issuer.at) < WINDOW_S}
            view.shared = len(others | {who}) > 1
            waiting = self._unfollowed.pop(view.issuer.flow, None)
            if waiting is not None:
                self._free(waiting)
            return
        self._note_unknown(view, exchange, method, cursor)

    def _note_unknown(self, view: ListView, exchange: Exchange, method: str, cursor: str) -> None:
        """Whether no page gave the cursor, though this client's first page was seen. The times of recordings are not exact: it
        may be given until the answer comes."""
        url = exchange.endpoint.url
        known = self._cursors.get((url, method)) or {}
        if cursor not in known and len(known) < MOST_CURSORS and bool(self._began.get((url, method, _who(exchange)))):
            view.unknown_cursor = True
            if len(cursor) <= LONGEST_CURSOR:
                self._unknown.put((url, method, cursor), view)

    def _called(self, message: Message) -> None:
        exchange = message.exchange
        stale = self._stale.get((exchange.endpoint.url, _who(exchange)))
        if stale is not None and exchange.name in stale.names and len(stale.calls) < 10 and self._hold(exchange):
            stale.calls.append(exchange)

    # An answer

    def _answered(self, message: Message, request: Message, method: str) -> None:
        exchange, result = request.exchange, message.result
        view: ListView | None = exchange.facts.get(LIST)
        if view is None or (exchange.claim.modern and result.get("resultType", "complete") != "complete"):
            return
        url, who = exchange.endpoint.url, _who(exchange)
        retry = "requestState" in request.params or "inputResponses" in request.params
        if (fresh := ttl_s(result)) and not retry:
            key = (url, method, who, _about(request.params))
            before = self._fresh.get(key)
            requests = before.requests if before is not None and message.at < before.at + before.ttl_s else []
            self._fresh.put(key, _Fresh(message.at, fresh, requests or [exchange.started]))
        if method in LISTS:
            self._listed(view, message, exchange, method)
        if result.get("cacheScope") == "public" and not retry and method in CACHEABLE:
            self._compare_public(view, message, request, method)

    def _listed(self, view: ListView, message: Message, exchange: Exchange, method: str) -> None:
        result, who, url = message.result, _who(exchange), exchange.endpoint.url
        member, label = LISTS[method]
        items = result.get(member)
        names: tuple[Any, ...] | None = tuple(_label(item, label) for item in items) if isinstance(items, list) else ()
        following, issuer = result.get("nextCursor"), view.issuer
        if not isinstance(following, str):
            if following is not None:  # CAC009; the client that sends it back does not make it up
                self._issued(url, method, _odd(following))
            following = None
        cursor = view.cursor if isinstance(view.cursor, str) else None
        page = view.page = Page(
            exchange.flow, message.at, who, cursor, following, result.get("cacheScope"), exchange.flow, names, frozenset()
        )
        whole = view.cursor is None
        if issuer is not None and cursor is not None:
            page.first_flow = issuer.first_flow
            page.visited = issuer.visited | {cursor} if len(issuer.visited) < 1_000 else issuer.visited
            page.names = None if issuer.names is None or names is None else issuer.names + names
            whole = not view.shared
            if issuer.scope != page.scope and page.scope is not None and issuer.scope is not None:
                view.scope_was = issuer.scope
        if page.names is not None and len(page.names) > MOST_NAMES:
            page.names = None
        if following is None:
            if whole and page.names is not None and method != _TASKS:
                self._complete(view, page, exchange, method, ttl_s(result))
            return
        if following == view.cursor:
            view.loop = "same"
        elif following in page.visited:
            view.loop = "again"
        self._issue(page, exchange, url, method, following)

    def _issue(self, page: Page, exchange: Exchange, url: str, method: str, cursor: str) -> None:
        pages = self._pages.get((url, method, cursor)) or []
        pages.append(page)
        self._pages.put((url, method, cursor), pages[-8:])
        self._issued(url, method, cursor)
        if cursor == "" and self._hold(exchange):
            self._unfollowed[exchange.flow] = exchange

    def _issued(self, url: str, method: str, cursor: str) -> None:
        if len(self._unknown) and (view := self._unknown.pop((url, method, cursor))) is not None:
            view.unknown_cursor = False
        known = self._cursors.get((url, method))
        if known is None:
            known = {}
            self._cursors.put((url, method), known)
        if len(known) < MOST_CURSORS:
            known[cursor] = None

    def _complete(self, view: ListView, page: Page, exchange: Exchange, method: str, fresh: float) -> None:
        """All pages were read: compare with the listing before."""
        names = page.names or ()
        url, who = exchange.endpoint.url, _who(exchange)
        key = (url, method, exchange.auth, exchange.claim.revision, digest(exchange.capabilities))
        history = self._listings.get(key) or []
        if history:
            last = history[-1]
            if last.names != names and len(last.names) == len(names) and sorted(map(str, last.names)) == sorted(map(str, names)):
                view.reordered = last.flow
            elif last.names != names:
                view.varies = self._vary(history, names, page, exchange, method)
        history.append(Listing(exchange.flow, page.at, exchange.connection, names, fresh))
        self._listings.put(key, history[-3:])
        if method != "tools/list":
            return
        self._tools.put((url, who), frozenset(n for n in names if isinstance(n, str)))
        self._relisted(url, who, frozenset(names), exchange)

    def _vary(self, history: list[Listing], names: tuple[Any, ...], page: Page, exchange: Exchange, method: str) -> Varies | None:
        last = history[-1]
        if last.connection == exchange.connection or page.at >= last.at + last.ttl_s:
            return None
        if (self._changed.get((exchange.endpoint.url, method)) or 0.0) > history[0].at:
            return None
        flips = len(history) > 1 and set(map(str, history[-2].names)) == set(map(str, names))
        before, now = frozenset(last.names), frozenset(names)
        added = tuple(n for n in names if n not in before)
        removed = tuple(n for n in last.names if n not in now)
        return Varies(last.flow, added, removed, flips) if added or removed else None

    def _relisted(self, url: str, who: Who, names: frozenset[Any], exchange: Exchange) -> None:
        """The tools were listed anew: calls of tools that are gone were made from a stale list (CAC013)."""
        stale = self._stale.pop((url, who))
        for call in stale.calls if stale is not None else ():
            if call.name not in names and stale is not None and not call.released:
                call.facts[STALE_CALL] = (stale.flow, exchange.flow)
                self.memory.rejudge(call)
            self._free(call)  # after it was judged: that may release it

    def _compare_public(self, view: ListView, message: Message, request: Message, method: str) -> None:
        """Whether another Authorization got something else for the same request a moment ago (CAC006)."""
        exchange = request.exchange
        if method in LISTS:
            content: Any = view.page.names if view.page is not None else None
            cursor = view.cursor
            about = cursor or "" if cursor is None or isinstance(cursor, str) else _odd(cursor)
        else:
            content = message.result.get("contents" if method == "resources/read" else "capabilities")
            about = _about(request.params)
        key = (exchange.endpoint.url, method, about, digest(exchange.capabilities))
        told = digest(content)
        before = self._public.get(key)
        if before is not None:
            auth, other, at, flow = before
            quiet = (self._changed.get((exchange.endpoint.url, method)) or 0.0) < at
            if auth != exchange.auth and other != told and message.at - at < WINDOW_S and quiet:
                view.other_auth = flow
        self._public.put(key, (exchange.auth, told, message.at, exchange.flow))

    # A notification

    def _invalidated(self, message: Message, notification: str) -> None:
        exchange = message.exchange
        url, who = exchange.endpoint.url, _who(exchange)
        for method in _CHANGED[notification]:
            self._changed.put((url, method), message.at)
        if notification == "notifications/tools/list_changed" and exchange.method == "subscriptions/listen":
            names = self._tools.get((url, who))
            if names:
                self._stale.put((url, who), _Stale(exchange.flow, names))

    def _hold(self, exchange: Exchange) -> bool:
        if self._held >= MOST_HELD or exchange.released:
            return False
        self._held += 1
        self.memory.held.keep(exchange, NAME)
        return True

    def _free(self, exchange: Exchange) -> None:
        self._held -= 1
        self.memory.held.free(exchange, NAME)


def _who(exchange: Exchange) -> Who:
    return exchange.auth, exchange.client_info


def _label(item: Any, label: str) -> Any:
    name = item.get(label) if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _odd(cursor: Any) -> str:
    """What stands for a cursor that is no string, among those that are."""
    return f"\0{dumps(cursor, most=200)}"


def _about(params: dict[str, Any]) -> str:
    """What of the params belongs to the cache key."""
    for name in ("cursor", "uri"):
        value = params.get(name)
        if isinstance(value, str):
            return f"{name} {value[:2_000]}"
    return ""
