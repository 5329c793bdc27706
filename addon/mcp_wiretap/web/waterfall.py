"""The live page Network: a row that comes or changes is drawn beside the others of its burst, on their scale, under their head.

What of a burst has to be drawn anew is sent: with a new row the scale may change, and then all its bars do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.pages import network
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.web.site import WINDOW, Breath, Site

LOOKED = 2_000  # rows looked at for the bursts of those that changed
PLACES = 4 * WINDOW  # rows whose place on the page is remembered


@dataclass(slots=True)
class Drawn:
    """What one open page shows: the scale that each row is drawn on, and with which row its burst begins."""

    places: dict[str, tuple[float, float, str]] = field(default_factory=dict)  # flow -> zero, length, flow of the first row

    def begins(self, flow: str) -> bool:
        return flow in self.places and self.places[flow][2] == flow

    def note(self, burst: network.Burst) -> None:
        for row in burst.rows:
            self.places[row["flow"]] = (burst.first, burst.scale, burst.rows[0]["flow"])
        while len(self.places) > PLACES:
            del self.places[next(iter(self.places))]


async def redraw(
    site: Site, chosen: Filter, drawn: Drawn, changed: dict[str, tuple[Ledger, Exchange]], breath: Breath
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of exchanges that changed: the rows that are to be drawn (anew), each with its marks, and the heads of their bursts."""
    if not changed:
        return [], []
    places, whole, left = await _around(site, chosen, drawn, set(changed), breath)
    rows: list[dict[str, Any]] = []
    heads: list[dict[str, Any]] = []
    for number, burst in enumerate(network.spread(places, site.traces.zone)):
        if number == 0 and whole == "after another":
            continue  # it only tells how long nothing happened
        scale = burst.first, burst.scale
        stale = [r for r in burst.rows if r["flow"] in changed or drawn.places.get(r["flow"], ())[:2] != scale]
        if any(r["flow"] in changed or r["flow"] in drawn.places for r in stale):
            for place in stale:
                ledger, exchange = place["of"]
                row = network.row(ledger, exchange, site.traces.zone)
                rows.append(row | {"marks": network.marks(row["parts"], *scale)})
                await breath.if_due()
            gap = burst.gap if number or whole == "all" else None
            heads.append({"first": burst.rows[0]["key"], "last": burst.rows[-1]["key"], "head": burst.head, "gap": gap})
        drawn.note(burst)
    rows += [network.row(*changed[flow], site.traces.zone) for flow in left]  # so far back that they keep the bar they have
    return rows, heads


async def _around(
    site: Site, chosen: Filter, drawn: Drawn, wanted: set[str], breath: Breath
) -> tuple[list[dict[str, Any]], str, set[str]]:
    """The places of the exchanges that are wanted and of all in their bursts and since, oldest first; what the first of them is
    ("all": there is nothing before it; "after another": it is the last of the burst before; "begins": a burst begins with it, or
    it is as far as we look); what of the wanted was not reached."""
    found: list[dict[str, Any]] = []
    whole, looked = "all", 0
    async for ledger, exchange in site.downwards(None):
        looked += 1
        await breath.if_due()
        if looked > LOOKED or len(found) >= WINDOW:
            whole = "begins"
            break
        if not chosen.empty and not chosen.fits([exchange]):
            continue
        found.append(network.place(exchange) | {"flow": exchange.flow, "of": (ledger, exchange)})
        if not wanted and abs(found[-2]["at"] - exchange.started) > network.PAUSE:
            whole = "after another"
            break
        wanted.discard(exchange.flow)
        if not wanted and drawn.begins(exchange.flow):
            whole = "begins"
            break
    return found[::-1], whole, wanted


type Html = Callable[[dict[str, Any]], str]


async def message(
    rows: list[dict[str, Any]], heads: list[dict[str, Any]], html: Html, newest_first: bool, breath: Breath
) -> dict[str, Any]:
    """Both as the page takes them: `first` and `last` as they stand there; a `gap` of None stays what it is."""
    bursts = []
    for head in heads:
        first, last = (head["last"], head["first"]) if newest_first else (head["first"], head["last"])
        gap = head["gap"]
        line = html({"gap": gap}) if gap else gap
        bursts.append({"first": first, "last": last, "head": html(head["head"]), "gap": line})
    made = []
    for row in rows:
        made.append({"key": row["key"], "at": row["at"], "html": html({"row": row})})
        await breath.if_due()
    return {"rows": made, "bursts": bursts}
