"""The pages themselves, without a server: what each shows for an address, its rows, an opened row, and what has changed.

Nothing here holds the event loop for long: rows are made a few at a time, and `breathe` gives way between them.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import islice
from math import inf
from typing import Any, Concatenate

from markupsafe import Markup

from mcp_wiretap import __version__
from mcp_wiretap.pages import apps, auth, copies, findings, logs, network, overview, protocol, streams, tasks, tools
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import idle, server_name, shown
from mcp_wiretap.rule import RuleBook, endpoint_matches
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.streams.logs import Logs
from mcp_wiretap.trace.summary.clientele import CLIENTELE
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.web.render import fragment
from mcp_wiretap.web.source import Source
from mcp_wiretap.wire.secret import knowing

WINDOW = 200  # rows of a page; older ones on demand
SLICE = 0.004  # seconds of work between two looks at the network
CHANGES = 200  # changes taken over at a time
NOTICES = 400  # announcements looked at for one window
PAGES = (
    ("overview", "Overview", "ov"),
    ("protocol", "Protocol", "proto"),
    ("network", "Network", "net"),
    ("findings", "Findings", "find"),
    ("tools", "Tools", "tool"),
    ("streams", "Streams", "str"),
    ("tasks", "Tasks", "task"),
    ("logs", "Logs", "log"),
    ("auth", "Authorization", "auth"),
    ("apps", "Apps & extensions", "app"),
)
NAMES = tuple(name for name, _, _ in PAGES)
LISTS = ("protocol", "network", "streams", "logs")  # pages whose rows come and change one by one


class Breath:
    """Gives way to the network when a slice of time is used up."""

    def __init__(self) -> None:
        self._until = time.monotonic() + SLICE

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._until

    async def take(self) -> None:
        await asyncio.sleep(0)
        self._until = time.monotonic() + SLICE

    async def if_due(self) -> None:
        if self.due:
            await self.take()


@dataclass(slots=True)
class Window:
    """The rows of one look at a page: HTML, oldest or newest first as asked for."""

    rows: list[Markup] = field(default_factory=list)
    older: str = ""  # cursor of the rows before these
    hidden: int = 0  # rows that the filter hides, of those looked at
    shown: int = 0


def _knowing[**P, T](method: Callable[Concatenate["Site", P], T]) -> Callable[Concatenate["Site", P], T]:
    """What a method shows is masked by what the traces know to be secret."""

    @wraps(method)
    def inside(site: "Site", /, *args: P.args, **named: P.kwargs) -> T:
        with site.knowing():
            return method(site, *args, **named)

    return inside


class Site:
    def __init__(self, source: Source, flow_of: Callable[[str], Any]) -> None:
        """`flow_of(id)` gives mitmproxy's flow, None where it has it no more."""
        self.source = source
        self._flow_of = flow_of
        self.traces = Traces(whole=self.subject, rules=source.rules())
        self.theme: Callable[[], str] = lambda: "system"
        self.listening: Callable[[], list[tuple[str, str]]] = list  # (address, mode) of the proxy's servers
        self.silences: list[Silence] = []
        self._renewed, self._settled = False, dict[str, Exchange]()  # what a page took over between two ticks

    def subject(self, flow_id: str) -> Subject | None:
        """A flow read again; None where that cannot be."""
        found = self.traces.find(flow_id)
        flow = self._flow_of(flow_id)
        if flow is None and found is not None:
            flow = self._flow_of(found[1].flow)
        if flow is None:
            return None
        try:
            return self.source.subject(flow)
        except Exception as error:
            self.source.fault("pages: reading a flow again", error)
            return None

    def knowing(self) -> AbstractContextManager[None]:
        """Inside, texts are masked by what the traces know to be secret."""
        return knowing(*(inspector.secrets for inspector in self.source.inspectors()))

    def tick(self) -> tuple[bool, dict[str, Exchange]]:
        """Take over what has happened: whether the set of traces changed, and the exchanges that did."""
        renewed = self.traces.follow(self.source.inspectors()) or self._renewed
        changed = self._settled | self.traces.catch_up(CHANGES)
        self._renewed, self._settled = False, {}
        return renewed, changed

    async def settle(self) -> None:
        """Take over everything, giving way in between: a page shows what is known when it is asked for. The open pages are
        told of it with the next tick."""
        breath = Breath()
        self._renewed |= self.traces.follow(self.source.inspectors())
        while changed := self.traces.catch_up(50):
            self._settled |= changed
            await breath.if_due()

    # Whole pages

    async def page(self, name: str, query: Mapping[str, str]) -> str:
        await self.settle()
        with self.knowing():
            return await self._page(name, query)

    async def _page(self, name: str, query: Mapping[str, str]) -> str:
        chosen = Filter.of(query)
        context: dict[str, Any] = {
            "page": name,
            "pages": PAGES,
            "title": next(title for key, title, _ in PAGES if key == name),
            "version": __version__,
            "theme": self.theme(),
            "summary": self.summary(),
            "filter": chosen,
            "listening": self.listening(),
            "choices": self.choices(),
            "rule_count": len(self.traces.rules),
            "query": dict(query),
        }
        context |= await self.body(name, query, chosen)
        return fragment(f"{name}.html", **context)

    async def body(self, name: str, query: Mapping[str, str], chosen: Filter) -> dict[str, Any]:
        """What stands in the page's own part."""
        window = await self.rows(name, query)
        context: dict[str, Any] = {"rows": window.rows, "older": window.older, "hidden": window.hidden}
        if name == "findings":
            context["tally"] = findings.counts(self.traces, chosen)
            context["silenced"] = await self.silenced(chosen)
        elif name == "tools":
            context |= tools.head(self.traces, query)
        elif name == "logs":
            context["levels"] = logs.LEVELS
            context["level"] = query.get("level", "")
        elif name == "streams":
            context["wanted_state"] = query.get("state", "")
        return context

    @_knowing
    def summary(self) -> dict[str, Any]:
        return overview.summary(self.traces) | {"live": self.live}

    @property
    def live(self) -> bool:
        """Whether traffic may come, or has: not where there is nothing but files."""
        return len(self.traces.ledgers) < 2 or bool(self.traces.ledgers[0].flows)

    @_knowing
    def choices(self) -> dict[str, list[tuple[str, str]]]:
        """What the selects of all pages offer: (value, words)."""
        scopes = [(url, f"{name} · {url}") for url, name in self._scopes()]
        methods, clients = self._methods(), self._clients()
        return {"endpoint": scopes, "method": [(m, m) for m in methods], "client": [(c, c) for c in clients]}

    def _scopes(self) -> list[tuple[str, str]]:
        """The endpoints to choose from."""
        found: dict[str, str] = {}
        for ledger in self.traces.ledgers:
            for url, tally in ledger.endpoints.items():
                if len(found) < 100:
                    found.setdefault(shown(url, 200), server_name(tally.endpoint))
        return sorted(found.items(), key=lambda item: item[1])

    def _methods(self) -> list[str]:
        found: dict[str, None] = {}
        for ledger in self.traces.ledgers:
            for exchange in ledger.rows[-2_000:]:
                if exchange.method is not None:
                    found.setdefault(shown(exchange.method, 80))
                if len(found) > 60:
                    break
        return sorted(found)

    def _clients(self) -> list[str]:
        found: dict[str, None] = {}
        for ledger in self.traces.ledgers:
            for tally in ledger.endpoints.values():
                for who in tally.endpoint.facts.get(CLIENTELE, {}).values():
                    if len(found) < 60:
                        found.setdefault(who.key)
        return sorted(found)

    # Rows

    async def rows(self, name: str, query: Mapping[str, str]) -> Window:
        with self.knowing():
            return await self._rows(name, query)

    async def _rows(self, name: str, query: Mapping[str, str]) -> Window:
        chosen = Filter.of(query)
        match name:
            case "protocol" | "network" | "streams":
                return await self._listed(name, query, chosen)
            case "logs":
                return await self._rendered("logs", *logs.rows(self.traces, query, chosen, self.traces.zone, WINDOW))
            case "overview":
                made = [row for row in overview.endpoints(self.traces) if chosen.scope in row["url"].lower()]
            case "findings":
                made = findings.rows(self.traces, chosen, self.traces.zone)
            case "tools":
                made = tools.rows(self.traces, query, chosen, self.traces.zone)
            case "tasks":
                made = tasks.rows(self.traces, chosen, self.traces.zone)
            case "auth":
                made = auth.rows(self.traces, chosen, self.traces.zone)
            case _:
                made = apps.rows(self.traces, chosen, self.traces.zone)
        return await self._rendered(name, made)

    async def _rendered(self, name: str, made: list[dict[str, Any]], older: str = "", hidden: int = 0) -> Window:
        breath = Breath()
        window = Window(older=older, hidden=hidden, shown=len(made))
        for row in made:
            window.rows += self._contained(name, partial(self.row_html, name, row))
            await breath.if_due()
        return window

    async def _listed(self, name: str, query: Mapping[str, str], chosen: Filter) -> Window:
        """A window of exchanges, the newest ones or those before a cursor."""
        found: list[tuple[Ledger, Exchange]] = []
        window = Window()
        only = set(query["only"].split(",")[:100]) if query.get("only") else None
        async for ledger, exchange in self.downwards(_cursor(query.get("before", ""))):
            if only is not None and exchange.flow not in only:
                continue
            if not self.belongs(name, ledger, exchange, query):
                continue
            if only is None and not chosen.empty and not chosen.fits(self._of_row(name, ledger, exchange)):
                window.hidden += 1
                continue
            if len(found) >= WINDOW:
                last_ledger, last = found[-1]
                window.older = f"{last_ledger.number}.{last.seq}"
                break
            found.append((ledger, exchange))
        rows: list[dict[str, Any]] = []
        breath = Breath()
        for ledger, exchange in found:
            rows += self._contained(name, partial(self.row, name, ledger, exchange))
            await breath.if_due()
        if name == "protocol" and only is None and not chosen.chosen.keys() - {"endpoint"}:
            rows = self._with_announcements(rows, chosen, oldest=not window.older, newest=not query.get("before"))
        if not chosen.newest_first:
            rows.reverse()
        window.shown = len(rows)
        pieces = network.bursts(rows, self.traces.zone) if name == "network" else with_gaps(rows)
        for piece in pieces:
            window.rows += self._contained(name, partial(self.row_html, name, piece))
            await breath.if_due()
        return window

    def _contained[T](self, name: str, make: Callable[[], T]) -> list[T]:
        """What is made, if it can be: one row that cannot is a fault of ours, and does not cost the page."""
        try:
            return [make()]
        except Exception as error:
            self.source.fault(f"pages: a row of {name}", error)
            return []

    async def downwards(self, before: tuple[int, int] | None) -> AsyncIterator[tuple[Ledger, Exchange]]:
        """All rows, newest first; what comes and goes while we breathe does not matter to the place we are at."""
        breath = Breath()
        while True:
            ended = True
            for ledger, exchange in self.traces.downwards(before):
                yield ledger, exchange
                if breath.due:
                    before, ended = (ledger.number, exchange.seq), False
                    break
            if ended:
                return
            await breath.take()

    def belongs(self, name: str, ledger: Ledger, exchange: Exchange, query: Mapping[str, str]) -> bool:
        """Whether an exchange has a row of its own on a page."""
        if name == "network":
            return True
        if name == "streams":
            wanted = query.get("state", "")
            return exchange.flow in ledger.streams and (not wanted or (wanted == "open") is not exchange.over)
        return exchange.kind == "mcp" and ledger.head(exchange) is exchange

    def _of_row(self, name: str, ledger: Ledger, exchange: Exchange) -> list[Exchange]:
        return ledger.rounds(exchange) if name == "protocol" else [exchange]

    @_knowing
    def row(self, name: str, ledger: Ledger, exchange: Exchange) -> dict[str, Any]:
        match name:
            case "protocol":
                return protocol.row(ledger, exchange, self.traces.zone)
            case "network":
                return network.row(ledger, exchange, self.traces.zone)
            case _:
                return streams.row(ledger, exchange, self.traces.zone)

    @_knowing
    def row_html(self, name: str, row: dict[str, Any]) -> Markup:
        return Markup(fragment(f"row/{name}.html", row=row))

    def _with_announcements(self, rows: list[dict[str, Any]], chosen: Filter, oldest: bool, newest: bool) -> list[dict[str, Any]]:
        """Rows, newest first, with what servers announced in between; and before the oldest, after the newest row of all."""
        if not rows:
            return rows
        first, last = -inf if oldest else rows[-1]["at"], inf if newest else rows[0]["at"]
        entries = [
            protocol.announcement(entry, self.traces.zone)
            for ledger in self.traces.ledgers
            for entry in list(ledger.inspector.tracker(Logs).announcements)[-NOTICES:]
            if first <= entry.at <= last and self._announced(entry, chosen)
        ]
        return sorted([*rows, *entries], key=lambda r: r["at"], reverse=True)

    @_knowing
    def new_announcements(self, known: dict[int, int], chosen: Filter) -> list[dict[str, Any]]:
        """Rows of what servers announced since the last time; `known` is brought up to date."""
        found: list[Any] = []
        for ledger in self.traces.ledgers:
            logs = ledger.inspector.tracker(Logs)
            new = logs.announced - known.get(ledger.number, 0)
            known[ledger.number] = logs.announced
            if new and not chosen.chosen.keys() - {"endpoint"}:
                found += islice(reversed(logs.announcements), min(new, NOTICES))
        found.sort(key=lambda entry: entry.at)
        return [protocol.announcement(entry, self.traces.zone) for entry in found if self._announced(entry, chosen)]

    @staticmethod
    def _announced(entry: Any, chosen: Filter) -> bool:
        scope = chosen.scope
        return scope in entry.endpoint.url.lower() and chosen.fits_words(entry.method, entry.about, entry.endpoint.url)

    # An opened row

    @_knowing
    def detail(self, name: str, key: str, query: Mapping[str, str] | None = None) -> str | None:
        """HTML of an opened row; None where there is no such row (any more)."""
        zone = self.traces.zone
        match name:
            case "overview":
                for ledger in self.traces.ledgers:
                    for tally in ledger.endpoints.values():
                        if overview.row(ledger, tally)["key"] == key:
                            return fragment("open/overview.html", d=overview.detail(ledger, tally, zone))
                return None
            case "findings":
                found = findings.detail(self.traces, key, zone, Filter.of(query or {}))
                return fragment("open/findings.html", d=found) if found is not None else None
            case "tools":
                found = tools.detail(self.traces, key, zone)
                return fragment("open/tools.html", d=found) if found is not None else None
            case "tasks":
                found = tasks.detail(self.traces, key, zone)
                return fragment("open/tasks.html", d=found) if found is not None else None
            case "protocol" | "network" | "streams":
                return self._exchange_detail(name, key)
        return None

    def _exchange_detail(self, name: str, key: str) -> str | None:
        place = self.traces.find(key)
        if place is None:
            return None
        ledger, exchange = place
        zone = self.traces.zone
        if name == "protocol":
            head = ledger.head(exchange)
            return fragment("open/protocol.html", d=protocol.detail(ledger, head, self.subject, zone))
        subject = self.subject(exchange.flow)
        if name == "streams":
            return fragment("open/streams.html", d=streams.detail(ledger, exchange, subject, zone))
        operation = ledger.head(exchange).flow if exchange.kind == "mcp" else None
        return fragment("open/network.html", d=network.detail(exchange, subject, zone, operation))

    @_knowing
    def copy(self, what: str, key: str) -> str | None:
        """A row to take along: json, curl or case."""
        place = self.traces.find(key)
        if place is None:
            return None
        ledger, exchange = place
        if what == "curl":
            subject = self.subject(exchange.flow)
            return copies.as_curl(subject) if subject is not None else None
        found = [s for e in ledger.rounds(ledger.head(exchange))[:60] if (s := self.subject(e.flow)) is not None]
        if not found:
            return None
        return copies.as_json(found) if what == "json" else copies.as_case(found)

    # Silences

    async def silence(self, silence: Silence) -> int:
        """Report no such finding any more, and take back those that were; how many that were."""
        self.source.silence(silence)
        self.silences.append(silence)
        return await self._take_back(silence)

    async def silenced(self, chosen: Filter) -> list[dict[str, Any]]:
        """What is silenced, by us and by the project, with how many findings of the endpoint in view that were."""
        found: dict[Silence, int] = {}
        breath = Breath()
        for ledger in self.traces.ledgers:
            book = ledger.inspector.judge
            if not isinstance(book, RuleBook) or not any(book.silenced.values()):
                continue
            counted = [book.silenced] if not chosen.scope else []
            for exchange in list(ledger.rows) if chosen.scope else ():
                await breath.if_due()
                if exchange.silenced and chosen.scope in exchange.endpoint.url.lower():
                    counted.append(exchange.silenced)
            for counts in counted:
                for silence, count in counts.items():
                    found[silence] = found.get(silence, 0) + count
        most_first = sorted(found.items(), key=lambda item: -item[1])
        return [
            {"rule": s.rule, "endpoint": s.endpoint or "*", "reason": shown(s.told, 500), "count": count}
            for s, count in most_first
            if count
        ]

    async def silence_again(self) -> None:
        """A file was loaded, or the rules were chosen anew: what was silenced stays silenced."""
        for silence in self.silences:
            self.source.silence(silence)
            await self._take_back(silence)

    async def _take_back(self, silence: Silence) -> int:
        breath, count = Breath(), 0
        for ledger in self.traces.ledgers:
            changed: list[Exchange] = []
            book = ledger.inspector.judge
            for exchange in list(ledger.rows):
                await breath.if_due()
                if not exchange.findings or not endpoint_matches(silence.endpoint, exchange.endpoint.url):
                    continue
                kept = [f for f in exchange.findings if silence.rule not in (f.rule, f.rule.rstrip("0123456789"), "*")]
                if len(kept) != len(exchange.findings):
                    gone = len(exchange.findings) - len(kept)
                    exchange.findings[:] = kept
                    exchange.silenced[silence] = exchange.silenced.get(silence, 0) + gone
                    if isinstance(book, RuleBook):  # which takes it off again when it judges the exchange anew
                        book.silenced[silence] = book.silenced.get(silence, 0) + gone
                    count += gone
                    changed.append(exchange)
            for exchange in changed:
                if ledger.inspector.watched is not None:
                    ledger.inspector.watched[exchange.flow] = exchange
            self.source.redraw(changed)
        return count


def with_gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with a line where nothing happened for a while."""
    out: list[dict[str, Any]] = []
    for row in rows:
        if out:
            pause = abs(row["at"] - out[-1]["at"])
            if pause > 5:
                out.append({"gap": f"idle {idle(pause)}", "at": row["at"]})
        out.append(row)
    return out


def _cursor(text: str) -> tuple[int, int] | None:
    number, dot, seq = text.partition(".")
    if not dot or not text.isascii() or not number.isdigit() or not seq.isdigit() or len(text) > 40:
        return None
    return int(number), int(seq)
