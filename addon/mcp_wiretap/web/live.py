"""Live updates: what has changed, told to each open page at most four times a second, in slices that do not hold the loop.

A page says by its address what it shows; it is sent the rows that changed and fit its filter, or, where its rows are few and all
hang together, that it should look again.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.web import waterfall
from mcp_wiretap.web.site import LISTS, Breath, Site

PERIOD = 0.25  # seconds between two paints at least
LOOK_AGAIN = 1.0  # seconds between two looks of a page whose rows hang together
MOST = 60  # rows sent at a time; with more than BACKLOG waiting a page loads anew
BACKLOG = 600


@dataclass(eq=False)
class Subscription:
    """One open page."""

    send: Callable[[str], None]
    page: str
    query: Mapping[str, str]
    chosen: Filter
    pending: dict[str, Exchange] = field(default_factory=dict)
    stale: bool = False
    looked: float = 0.0
    summary: str = ""
    choices: str = ""
    drawn: waterfall.Drawn = field(default_factory=waterfall.Drawn)
    announced: dict[int, int] = field(default_factory=dict)  # announcements told or shown, by ledger


class Live:
    """Runs while mitmweb runs. `subscriptions` are the open pages."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.subscriptions: set[Subscription] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._choices = ""
        self._more = False  # whether there may be more to choose from
        self._chose = -LOOK_AGAIN

    def start(self) -> None:
        self.site.traces.follow(self.site.source.inspectors())
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def subscribe(self, send: Callable[[str], None], page: str, query: Mapping[str, str]) -> Subscription:
        subscription = Subscription(send, page, query, Filter.of(query))
        self.site.new_announcements(subscription.announced, subscription.chosen)  # those are on the page
        self.subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self.subscriptions.discard(subscription)

    def _due(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._turn())

    async def _turn(self) -> None:
        try:
            await self.turn()
        except Exception as error:
            self.site.source.fault("pages: live update", error)
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._due)

    async def turn(self) -> None:
        """Take over what has happened and tell the pages."""
        renewed, changed = self.site.tick()
        if renewed:
            await self.site.silence_again()
        if changed or renewed:
            self._more = True
            for subscription in self.subscriptions:
                subscription.pending.update(changed)
                subscription.stale = True
                if renewed:
                    subscription.pending.clear()
                    subscription.send(json.dumps({"type": "reload"}))
        if not self.subscriptions:
            return
        summary = self.site.summary() if any(s.stale for s in self.subscriptions) else None
        breath = Breath()
        made: dict[tuple[str, str], str] = {}
        now = asyncio.get_running_loop().time()
        if self._more and now - self._chose >= LOOK_AGAIN:
            self._more, self._chose, self._choices = False, now, json.dumps({"type": "choices", "choices": self.site.choices()})
        for subscription in list(self.subscriptions):
            if subscription.stale and summary is not None:
                self._tell_summary(subscription, summary)
            if subscription.choices != self._choices:
                subscription.choices = self._choices
                subscription.send(self._choices)
            if subscription.page in LISTS:
                await self._tell_rows(subscription, made, breath)
                subscription.stale = False
            elif subscription.stale and now - subscription.looked >= LOOK_AGAIN:
                subscription.looked, subscription.stale = now, False
                subscription.pending.clear()
                subscription.send(json.dumps({"type": "look"}))
            await breath.if_due()

    @staticmethod
    def _tell_summary(subscription: Subscription, summary: dict[str, Any]) -> None:
        text = json.dumps({"type": "summary", "summary": summary})
        if text != subscription.summary:
            subscription.summary = text
            subscription.send(text)

    async def _tell_rows(self, subscription: Subscription, made: dict[tuple[str, str], str], breath: Breath) -> None:
        if len(subscription.pending) > BACKLOG:
            subscription.pending.clear()
            subscription.send(json.dumps({"type": "reload"}))
            return
        if subscription.page == "logs":
            if subscription.pending:
                subscription.pending.clear()
                subscription.send(json.dumps({"type": "look"}))
            return
        site, page = self.site, subscription.page
        changed, gone = self._fitting(subscription)
        notices = site.new_announcements(subscription.announced, subscription.chosen) if page == "protocol" else []
        if not changed and not gone and not notices:
            return
        if page == "network":
            rows, heads = await waterfall.redraw(site, subscription.chosen, subscription.drawn, changed, breath)
            newest_first = subscription.chosen.newest_first
            told = await waterfall.message(rows, heads, lambda piece: str(site.row_html(page, piece)), newest_first, breath)
            subscription.send(json.dumps({"type": "rows", "gone": gone} | told))
            return
        rows = []
        for flow, (ledger, exchange) in changed.items():
            html = made.get((page, flow))
            if html is None:
                html = made[page, flow] = str(site.row_html(page, site.row(page, ledger, exchange)))
            rows.append({"key": flow, "at": exchange.started, "html": html})
            await breath.if_due()
        for row in notices:
            rows.append({"key": row["key"], "at": row["at"], "html": str(site.row_html(page, row))})
            await breath.if_due()
        subscription.send(json.dumps({"type": "rows", "rows": rows, "gone": gone}))

    def _fitting(self, subscription: Subscription) -> tuple[dict[str, tuple[Ledger, Exchange]], list[str]]:
        """Of what waits for a page: the rows that it shows, and the flows that it shows no (more)."""
        site, page = self.site, subscription.page
        changed: dict[str, tuple[Ledger, Exchange]] = {}
        gone: list[str] = []
        while subscription.pending and len(changed) < MOST:
            flow, exchange = next(iter(subscription.pending.items()))
            del subscription.pending[flow]
            place = site.traces.find(flow)
            if place is None:
                continue
            ledger = place[0]
            head = ledger.head(exchange) if page == "protocol" else exchange
            if head is not exchange:
                gone.append(flow)
            if head.flow in changed or not site.belongs(page, ledger, head, subscription.query):
                continue
            of_row = ledger.rounds(head) if page == "protocol" else [head]
            if not subscription.chosen.empty and not subscription.chosen.fits(of_row):
                gone.append(head.flow)
                continue
            changed[head.flow] = ledger, head
        return changed, gone
