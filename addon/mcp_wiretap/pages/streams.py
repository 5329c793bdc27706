"""The page Streams: subscriptions/listen streams and legacy GET streams, open and closed."""

from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import network
from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.ledger import Ledger, worst
from mcp_wiretap.pages.words import State, clock, day, duration, idle, offset, server_name, severities, shown
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.streams.subscriptions import LISTENS, Filter, Listen
from mcp_wiretap.trace.summary.clientele import client_key
from mcp_wiretap.view.subject import Subject

_STATES = {
    "connecting": State("wait", "wait", "connecting"),
    "listening": State("ok", "str", "listening", True),
    "ended": State("off", "ok", "ended"),
    "refused": State("err", "x", "refused"),
    "cut": State("err", "x", "cut"),
    "closed": State("off", "x", "closed by client"),
}
URIS = 60


def listen_of(exchange: Exchange) -> Listen | None:
    streams: list[Listen] = exchange.endpoint.facts.get(LISTENS, [])
    return next((listen for listen in reversed(streams) if listen.flow == exchange.flow), None)


def state(exchange: Exchange, listen: Listen | None) -> State:
    if listen is not None:
        return _STATES[listen.state]
    if not exchange.over:
        return _STATES["listening"] if exchange.responded is not None else _STATES["connecting"]
    if exchange.status is not None and exchange.status >= 400:
        return _STATES["refused"]
    return {"client": _STATES["closed"], "complete": _STATES["ended"]}.get(exchange.ended_by or "", _STATES["cut"])


def row(ledger: Ledger, exchange: Exchange, zone: tzinfo | None) -> dict[str, Any]:
    listen = listen_of(exchange)
    stream = exchange.stream
    last = stream.last_at if stream is not None else None
    end = exchange.ended if exchange.ended is not None else max(ledger.latest, exchange.started)
    span = max(end - exchange.started, 0.001)
    timing = network._timing(exchange)
    notifications = sum(listen.notifications.values()) if listen is not None else stream.count if stream is not None else 0
    return {
        "key": shown(exchange.flow, 80),
        "at": exchange.started,
        "order": (ledger.number, exchange.seq),
        "time": clock(exchange.started, zone),
        "day": day(exchange.started, zone),
        "kind": "listen" if listen is not None or exchange.method == "subscriptions/listen" else "GET",
        "id": _id(exchange),
        "subject": subject_words(listen.asked) if listen is not None else _legacy_words(exchange),
        "server": server_name(exchange.endpoint),
        "era": exchange.shown_era,
        "last": offset(last - exchange.started).removeprefix("+") if last is not None else "never",
        "marks": network.marks(timing, exchange.started, span),
        "label": network._label(exchange),
        "open_for": idle(span) if span >= 10 else duration(span * 1000),
        "open": not exchange.over,
        "started": exchange.started,
        "state": state(exchange, listen),
        "notifications": notifications,
        "again": reconnects(ledger, exchange, listen),
        "counts": severities(exchange.findings),
        "worst": worst(exchange.findings),
    }


def _id(exchange: Exchange) -> str:
    if exchange.jsonrpc_id is not None:
        return parts.brief(exchange.jsonrpc_id, 30)
    if exchange.stream is not None and exchange.stream.http_sse:
        return "HTTP+SSE"
    return "session" if exchange.session is not None else ""


def _legacy_words(exchange: Exchange) -> str:
    if exchange.request_fields.has("last-event-id"):
        return "resumed: goes on after an event id"
    if exchange.stream is not None and exchange.stream.http_sse:
        return "all answers of the session (HTTP+SSE)"
    return "everything (legacy)" if exchange.method is None else shown(exchange.method, 60)


def subject_words(asked: Filter) -> str:
    """tools, prompts, 2 URIs."""
    words = [flag.removesuffix("ListChanged") for flag in sorted(asked.flags, reverse=True)]
    if asked.uris:
        words.append(f"{len(asked.uris)} URI{'s' if len(asked.uris) != 1 else ''}")
    if asked.tasks:
        words.append(f"{len(asked.tasks)} task{'s' if len(asked.tasks) != 1 else ''}")
    return ", ".join(words) or "an empty filter"


def reconnects(ledger: Ledger, exchange: Exchange, listen: Listen | None) -> int:
    """How many earlier streams of the same client with the same filter there were at this endpoint."""
    if listen is None:
        if exchange.session is None:
            return 0
        earlier = [e for flow in list(ledger.streams)[-200:] if (e := ledger.find(flow)) is not None]
        return sum(1 for e in earlier if e.session is exchange.session and e.http_method == "GET" and e.seq < exchange.seq)
    count = 0
    client = client_key(exchange.client_info, exchange.auth)
    for other in exchange.endpoint.facts.get(LISTENS, []):
        if other is listen:
            break
        before = ledger.find(other.flow)
        if before is not None and other.asked == listen.asked and client_key(before.client_info, before.auth) == client:
            count += other.ended is not None and other.ended <= exchange.started
    return count


def detail(ledger: Ledger, exchange: Exchange, subject: Subject | None, zone: tzinfo | None) -> dict[str, Any]:
    listen = listen_of(exchange)
    out: dict[str, Any] = {
        "key": shown(exchange.flow, 80),
        "flow": parts.link(exchange.flow, "response"),
        "state": state(exchange, listen),
        "filter": filter_table(listen) if listen is not None else None,
        "acknowledged": None,
        "counts": sorted(listen.notifications.items()) if listen is not None else [],
        "again": reconnects(ledger, exchange, listen),
        "rail": parts.rail(subject) if subject is not None else None,
        "missing": subject is None,
        "findings": parts.findings(exchange),
        "unchecked": parts.unchecked(exchange),
        "client": client_key(exchange.client_info, exchange.auth),
        "legacy": listen is None,
        "resumes": shown(exchange.request_fields.first("last-event-id") or "", 100),
    }
    if listen is not None and listen.acknowledged_at is not None:
        first = listen.first == "notifications/subscriptions/acknowledged"
        after = duration((listen.acknowledged_at - listen.opened) * 1000)
        out["acknowledged"] = f"acknowledged {'first, ' if first else 'late, '}{after} after the request"
    return out


def filter_table(listen: Listen) -> list[dict[str, Any]]:
    """Asked beside granted."""
    asked, granted = listen.asked, listen.granted
    given = granted if granted is not None else Filter()
    lines = [(flag, "true", flag in asked.flags, flag in given.flags) for flag in sorted(asked.flags | given.flags)]
    for kind, wanted, got in (("resourceSubscriptions", asked.uris, given.uris), ("taskIds", asked.tasks, given.tasks)):
        lines += [(kind, shown(uri, 200), uri in wanted, uri in got) for uri in sorted(wanted | got)[:URIS]]
    return [
        {
            "kind": kind,
            "asked": word if there else "–",
            "granted": "not acknowledged yet" if granted is None else word if got else "–",
            "state": _verdict(there, granted is not None, got),
        }
        for kind, word, there, got in lines
    ]


def _verdict(asked: bool, known: bool, given: bool) -> State:
    if not known:
        return State("wait", "wait", "open")
    if asked and given:
        return State("ok", "ok", "granted")
    return State("warn", "warn", "not granted") if asked else State("err", "x", "not asked for")
