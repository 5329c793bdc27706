"""Live updates: what has changed, told to each open page at most four times a second, in slices that do not hold the loop.

A page says by its address what it shows; it is sent the rows that changed and fit its filter, or, where its rows are few and all
hang together, that it should look again.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.report.pages import overview
from mcp_wiretap.report.pages.filters import Filter
from mcp_wiretap.trace.model import Exchange
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


class Live:
    """Runs while mitmweb runs. `subscriptions` are the open pages."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.subscriptions: set[Subscription] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

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
            for subscription in self.subscriptions:
                subscription.pending.update(changed)
                subscription.stale = True
                if renewed:
                    subscription.pending.clear()
                    subscription.send(json.dumps({"type": "reload"}))
        if not self.subscriptions:
            return
        summary = overview.summary(self.site.traces) if any(s.stale for s in self.subscriptions) else None
        breath = Breath()
        made: dict[tuple[str, str], str] = {}
        now = asyncio.get_running_loop().time()
        for subscription in list(self.subscriptions):
            if subscription.stale and summary is not None:
                self._tell_summary(subscription, summary)
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
        rows: dict[str, dict[str, Any]] = {}
        gone: list[str] = []
        while subscription.pending and len(rows) < MOST:
            flow, exchange = next(iter(subscription.pending.items()))
            del subscription.pending[flow]
            place = site.traces.find(flow)
            if place is None:
                continue
            ledger = place[0]
            head = ledger.head(exchange) if page == "protocol" else exchange
            if head is not exchange:
                gone.append(flow)
            if head.flow in rows or not site.belongs(page, ledger, head, subscription.query):
                continue
            of_row = ledger.rounds(head) if page == "protocol" else [head]
            if not subscription.chosen.empty and not subscription.chosen.fits(of_row):
                gone.append(head.flow)
                continue
            html = made.get((page, head.flow))
            if html is None:
                row = site.row(page, ledger, head)
                if page == "network":
                    row = alone(row)
                html = made[page, head.flow] = str(site.row_html(page, row))
            rows[head.flow] = {"key": head.flow, "at": head.started, "over": head.over, "html": html}
            await breath.if_due()
        if rows or gone:
            subscription.send(json.dumps({"type": "rows", "rows": list(rows.values()), "gone": gone}))


def alone(row: dict[str, Any]) -> dict[str, Any]:
    """A row of Network that comes by itself: on a scale of its own until the page is loaded again."""
    from mcp_wiretap.report.pages import network

    laid_out = network.bursts([row], None)
    return next(piece for piece in laid_out if "row" in piece)
