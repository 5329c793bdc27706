"""The page Logs: what servers log, with the request that it belongs to, the level asked for and the level sent."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import State, clock, day, server_name, shown
from mcp_wiretap.trace.streams.logs import LogEntry, Logs

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_STATES = {
    "debug": State("off", "minus", "debug"),
    "info": State("info", "info", "info"),
    "notice": State("info", "info", "notice"),
    "warning": State("warn", "warn", "warning"),
}


def rows(
    traces: Traces, query: Mapping[str, str], chosen: Filter, zone: tzinfo | None, most: int
) -> tuple[list[dict[str, Any]], str, int]:
    """(rows, cursor of older ones, how many the filter hides)."""
    wanted = query.get("level", "")
    least = LEVELS.index(wanted) if wanted in LEVELS else 0
    cursor = query.get("before", "")
    before = float(cursor) if cursor.isascii() and cursor.replace(".", "", 1).isdigit() else None
    found: list[tuple[Ledger, LogEntry]] = []
    hidden = 0
    for ledger in traces.ledgers:
        for entry in reversed(ledger.inspector.tracker(Logs).entries):
            if before is not None and entry.at >= before:
                continue
            rank = LEVELS.index(entry.level) if entry.level in LEVELS else 0
            if rank < least or not _fits(entry, chosen):
                hidden += 1
                continue
            found.append((ledger, entry))
    found.sort(key=lambda item: item[1].at)
    newest = found[-most:]
    older = str(newest[0][1].at) if len(found) > most else ""
    made = [row(ledger, entry, zone) for ledger, entry in newest]
    return (made[::-1] if chosen.newest_first else made), older, hidden


def _fits(entry: LogEntry, chosen: Filter) -> bool:
    if chosen.scope not in entry.endpoint.url.lower():
        return False
    return chosen.fits_words(entry.level, entry.logger, entry.data, entry.method or "", entry.name or "", entry.endpoint.url)


def row(ledger: Ledger, entry: LogEntry, zone: tzinfo | None) -> dict[str, Any]:
    exchange = ledger.find(entry.flow)
    rank = LEVELS.index(entry.level) if entry.level in LEVELS else -1
    below = entry.asked in LEVELS and rank >= 0 and rank < LEVELS.index(entry.asked)
    if entry.asked is None:
        era = exchange.era if exchange is not None else entry.endpoint.era
        verdict = State("err", "x", "nobody asked") if era == "modern" else State("off", "minus", "the server's default")
    elif below:
        verdict = State("warn", "warn", f"below {entry.asked}")
    else:
        verdict = State("ok", "ok", f"asked: {entry.asked}")
    return {
        "key": f"l-{ledger.number}-{entry.number}",
        "at": entry.at,
        "time": clock(entry.at, zone),
        "day": day(entry.at, zone),
        "level": _STATES.get(entry.level, State("err", "x", shown(entry.level, 20))),
        "logger": shown(entry.logger, 60),
        "data": parts.texts(entry.data, 2_100),
        "asked_by": entry.asked_by,
        "verdict": verdict,
        "method": shown(entry.method, 60) if entry.method else "stream",
        "name": shown(entry.name, 80) if entry.name else "",
        "operation": shown(ledger.head(exchange).flow, 80) if exchange is not None else "",
        "flow": parts.link(entry.flow, "response"),
        "server": server_name(entry.endpoint),
        "era": entry.endpoint.era,
    }
