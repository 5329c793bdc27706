"""The page Network: one row an HTTP exchange, with its place on the time line of the burst that it belongs to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.ledger import Ledger, worst
from mcp_wiretap.pages.words import (
    clock,
    day,
    duration,
    host,
    idle,
    offset,
    outcome_state,
    server_name,
    severities,
    shown,
    size,
    status_state,
)
from mcp_wiretap.report import change
from mcp_wiretap.report.words import plural
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.summary.clientele import client_key
from mcp_wiretap.view import errors
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import lines
from mcp_wiretap.wire import cors

PAUSE = 0.5  # seconds without a request that begin a new burst
MOST = 100  # rows of one burst: without an end a busy proxy's would be drawn anew with each row
LONG_BURST = 15  # rows after which a shorter pause does, too: with too much on one scale nothing can be told apart
IDLE = 2.0  # seconds that are worth a line of their own
TICKS = 120  # SSE events drawn of one row
_LONG = 3_600  # seconds
_SCALES = (
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    60_000,
    120_000,
    300_000,
    600_000,
    1_800_000,
    3_600_000,
)


def place(exchange: Exchange) -> dict[str, Any]:
    """What decides where an exchange is drawn."""
    return {
        "key": shown(exchange.flow, 80),
        "at": exchange.started,
        "end": exchange.ended or max(exchange.responded or exchange.requested, _last_event(exchange)),
        "server": server_name(exchange.endpoint) if exchange.kind == "mcp" else host(exchange.url),
    }


def row(ledger: Ledger, exchange: Exchange, zone: tzinfo | None) -> dict[str, Any]:
    """The row of an exchange; it has no waterfall until it is laid out beside others."""
    fields = exchange.response_fields
    kind = (fields.first("content-type") or "").partition(";")[0].strip() if fields is not None else ""
    total = (exchange.ended - exchange.started) * 1000 if exchange.ended is not None else None
    return place(exchange) | {
        "order": (ledger.number, exchange.seq),
        "time": clock(exchange.started, zone),
        "day": day(exchange.started, zone),
        "http": shown(exchange.http_method, 20),
        "what": shown(_what(exchange), 160),
        "name": shown(exchange.name, 120) if exchange.name is not None else "",
        "kind": exchange.kind,
        "host": host(exchange.url),
        "changed": change.short(exchange.change) if exchange.change is not None else "",
        "era": exchange.shown_era if exchange.kind == "mcp" else None,
        "status": status_state(exchange),
        "type": "sse" if exchange.stream is not None else shown(kind.rpartition("/")[2], 20),
        "size": _size(exchange),
        "total": duration(total) if total is not None else "open",
        "counts": severities(exchange.findings),
        "worst": worst(exchange.findings),
        "parts": _timing(exchange),
        "marks": None,
        "label": _label(exchange),
        "operation": shown(ledger.head(exchange).flow, 80) if exchange.kind == "mcp" else None,
    }


def _last_event(exchange: Exchange) -> float:
    stream = exchange.stream
    return stream.last_at if stream is not None and stream.last_at is not None else 0.0


def _what(exchange: Exchange) -> str:
    if exchange.kind == "preflight":
        return f"CORS preflight for {exchange.request_fields.first('access-control-request-method') or '?'}"
    if exchange.kind == "oauth":
        return exchange.url.partition("://")[2].partition("/")[2].join(("/", ""))
    if exchange.method is not None:
        return exchange.method
    if exchange.batch_items is not None:
        return f"batch of {len(exchange.batch_items)}"
    words = {
        "GET": "GET stream" if exchange.stream is not None else "GET",
        "DELETE": "end session",
        "POST": "answer to the server",
    }
    return words.get(exchange.http_method, exchange.http_method)


def _size(exchange: Exchange) -> str:
    fields = exchange.response_fields
    length = fields.first("content-length") if fields is not None else None
    return size(int(length)) if length is not None and length.isascii() and length.isdigit() and len(length) < 12 else ""


def _timing(exchange: Exchange) -> dict[str, Any]:
    stream = exchange.stream
    times = stream.times if stream is not None and stream.timed else []
    step = max(len(times) // TICKS, 1)
    return {
        "start": exchange.started,
        "requested": exchange.requested,
        "responded": exchange.responded,
        "ended": exchange.ended,
        "events": times[::step][:TICKS],
        "stream": stream is not None,
        "by": exchange.ended_by,
        "answered": exchange.outcome not in ("broken", "cancelled"),
    }


def _label(exchange: Exchange) -> str:
    """The waterfall in words."""
    words = []
    if exchange.responded is not None:
        words.append(f"first byte after {duration((exchange.responded - exchange.started) * 1000)}")
    if exchange.stream is not None:
        words.append(plural(exchange.stream.count, "event"))
    if exchange.ended is not None:
        words.append(f"ends after {duration((exchange.ended - exchange.started) * 1000)}")
        if exchange.ended_by in ("client", "server"):
            words.append(f"closed by the {exchange.ended_by}")
    else:
        words.append("open")
    return ", ".join(words)


@dataclass(slots=True)
class Burst:
    """Rows that are drawn on one scale, oldest first: `first` is its zero, `scale` its length in seconds."""

    rows: list[dict[str, Any]]
    first: float
    scale: float
    head: dict[str, Any]
    gap: str = ""  # what stands between it and the burst before


def spread(rows: Iterable[dict[str, Any]], zone: tzinfo | None) -> list[Burst]:
    """Rows, oldest first, cut into bursts. Of a row only its `place` is needed."""
    out: list[Burst] = []
    for group in _grouped(rows):
        first = min(r["at"] for r in group)
        ends = [r["end"] for r in group]
        # What is open for hours is cut off, so that the others have a bar that can be seen; alone it has a scale of its own.
        last = max((end for end in ends if end - first < _LONG), default=max(ends))
        span = max(last - first, 0.005)
        scale = next((s / 1000 for s in _SCALES if s / 1000 >= span), span)
        servers = list(dict.fromkeys(r["server"] for r in group))
        where = ", ".join(servers[:2]) + (f" +{len(servers) - 2}" if len(servers) > 2 else "")
        words = f"{plural(len(group), 'exchange')} in {duration(span * 1000)}"
        ticks = [{"x": x, "text": _tick(scale * x / 100)} for x in (0, 25, 50, 75, 100)]
        burst = Burst(group, first, scale, {"head": f"{clock(first, zone, millis=False)} · {where} · {words}", "ticks": ticks})
        if out:
            before = out[-1].rows[-1]
            pause = group[0]["at"] - max(before["at"], min(before["end"], group[0]["at"]))
            burst.gap = f"idle {idle(pause)}" if pause > IDLE else ""
        out.append(burst)
    return out


def bursts(rows: Iterable[dict[str, Any]], zone: tzinfo | None) -> list[dict[str, Any]]:
    """Rows in the order given, cut into bursts, each row laid out on the scale of its burst. A list of
    {"gap": words} | {"head": ..., "ticks": [...]} | {"row": ...}."""
    rows = list(rows)
    forwards = len(rows) < 2 or rows[0]["at"] <= rows[-1]["at"]
    found = spread(rows if forwards else reversed(rows), zone)
    out: list[dict[str, Any]] = []
    for burst in found if forwards else reversed(found):
        gap = [{"gap": burst.gap}] if burst.gap else []
        out += [*gap, burst.head] if forwards else [burst.head]
        for entry in burst.rows if forwards else reversed(burst.rows):
            entry["marks"] = marks(entry["parts"], burst.first, burst.scale)
            out.append({"row": entry})
        if not forwards:
            out += gap
    return out


def _tick(seconds: float) -> str:
    """A mark of the scale: 0, 250 ms, 2.5 s."""
    return "0" if not seconds else f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def _grouped(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: list[list[dict[str, Any]]] = []
    for entry in rows:
        pause = PAUSE if not groups or len(groups[-1]) < LONG_BURST else PAUSE / 10
        if groups and len(groups[-1]) < MOST and abs(entry["at"] - groups[-1][-1]["at"]) <= pause:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def marks(timing: dict[str, Any], first: float, scale: float) -> list[dict[str, Any]]:
    """The pieces of a waterfall, in percent of the scale."""

    def x(at: float) -> float:
        return round(min(max((at - first) / scale * 100, 0), 100), 2)

    def piece(kind: str, begin: float, end: float) -> dict[str, Any]:
        return {"kind": kind, "x": x(begin), "w": round(max(x(end) - x(begin), 0.05), 2)}

    out = [piece("req", timing["start"], timing["requested"])]
    responded, ended = timing["responded"], timing["ended"]
    if responded is None:
        out.append(piece("ttfb", timing["requested"], ended if ended is not None else first + scale))
    else:
        out.append(piece("ttfb", timing["requested"], responded))
        end = ended if ended is not None else first + scale
        out.append(piece("hold" if timing["stream"] else "rx", responded, end))
        out += [{"kind": "ev", "x": x(at)} for at in timing["events"]]
    if ended is not None and timing["by"] in ("client", "server", "unknown"):
        out.append({"kind": "x" if timing["by"] == "client" or timing["answered"] else "x bad", "x": min(x(ended), 94)})
    return out


def detail(exchange: Exchange, subject: Subject | None, zone: tzinfo | None, operation: str | None) -> dict[str, Any]:
    """All that an opened row shows."""
    out: dict[str, Any] = {
        "key": shown(exchange.flow, 80),
        "flow": parts.link(exchange.flow),
        "operation": operation,
        "title": _title(exchange),
        "url": shown(exchange.url, 300) + (shown(f"?{exchange.query}", 300) if exchange.query and exchange.kind == "mcp" else ""),
        "client": client_key(exchange.client_info, exchange.auth),
        "state": outcome_state(exchange),
        "checked": parts.headers_checked(exchange),
        "sent_headers": parts.headers(exchange.request_fields),
        "got_headers": parts.headers(exchange.response_fields),
        "findings": parts.findings(exchange),
        "unchecked": parts.unchecked(exchange),
        "changed": parts.changed(exchange, subject),
        "missing": subject is None,
        "rail": None,
        "request": None,
        "response": None,
        "panel": None,
        "cors": _cors(exchange),
    }
    if subject is not None:
        whole = subject.whole
        out["rail"] = parts.rail(subject)
        out["request"] = parts.document(whole, "request")
        if whole.stream is None and whole.status is not None:
            out["response"] = parts.document(whole, "response")
        if whole.status is not None and whole.status >= 400:
            panel = lines(errors.panel(subject))
            out["panel"] = "\n".join(panel) if panel else None
    return out


def _title(exchange: Exchange) -> str:
    words = [f"{exchange.http_method} → {exchange.status if exchange.status is not None else 'no response'}"]
    if exchange.stream is not None:
        words.append(f"SSE, {plural(exchange.stream.count, 'event')}")
    if exchange.responded is not None:
        words.append(f"first byte {offset(exchange.responded - exchange.started)}")
    return " · ".join(words)


def _cors(exchange: Exchange) -> dict[str, Any] | None:
    """A preflight: which headers a page wants to send, and which of them are allowed."""
    if exchange.kind != "preflight":
        return None
    wanted = cors.names(exchange.request_fields.joined("access-control-request-headers"))
    fields = exchange.response_fields
    allowed = cors.names(fields.joined("access-control-allow-headers") if fields is not None else None)
    return {
        "origin": shown(exchange.request_fields.first("origin") or "", 200),
        "allowed_origin": shown((fields.first("access-control-allow-origin") if fields is not None else None) or "", 200),
        "headers": [{"name": shown(name, 100), "allowed": cors.is_granted(name, allowed)} for name in wanted],
    }
