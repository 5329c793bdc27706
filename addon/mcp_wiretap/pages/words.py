"""The words, glyphs and numbers that all pages share. A state is always three things: a glyph, a word and a colour."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from mcp_wiretap.report.words import duration, short_flow
from mcp_wiretap.trace.era.negotiation import NEGOTIATION
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.model import Conversation, Endpoint, Exchange
from mcp_wiretap.wire import secret
from mcp_wiretap.wire.revision import error_name

__all__ = ["State", "clock", "duration", "flow_link", "outcome_state", "short_flow", "shown", "size"]

LONGEST = 300  # characters of one text in a row or a cell; opened rows show more


@dataclass(slots=True, frozen=True)
class State:
    """`kind` is the colour (ok, err, warn, wait, info, off), `icon` the glyph's name, `word` what it says."""

    kind: str
    icon: str
    word: str
    box: bool = False


OK = State("ok", "ok", "complete")
SEVERITY = {
    "error": State("err", "x", "error"),
    "warning": State("warn", "warn", "warning"),
    "info": State("info", "info", "note"),
}
VERDICTS = {
    "match": State("ok", "eq", "match"),
    "needless-encoding": State("ok", "eq", "match, needlessly encoded"),
    "mismatch": State("err", "neq", "mismatch"),
    "missing": State("err", "x", "missing"),
    "undecodable": State("err", "x", "undecodable"),
    "should-be-encoded": State("err", "x", "should be encoded"),
    "duplicate": State("warn", "warn", "duplicate"),
    "undeclared": State("warn", "warn", "undeclared"),
    "not-required": State("off", "minus", "not required"),
    "unchecked": State("off", "minus", "not compared"),
}


def shown(text: Any, limit: int = LONGEST) -> str:
    """Text from the wire on one line, visible, cut."""
    return secret.shown(text if isinstance(text, str) else str(text), limit)


def clock(at: float | None, zone: tzinfo | None, *, millis: bool = True) -> str:
    """HH:MM:SS.mmm."""
    if at is None:
        return ""
    try:
        moment = datetime.fromtimestamp(at, zone)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%H:%M:%S}" + (f".{moment.microsecond // 1000:03d}" if millis else "")


def day(at: float | None, zone: tzinfo | None) -> str:
    """2026-07-28 10:35:06 and the zone: the whole time, for a title."""
    try:
        return (
            datetime.fromtimestamp(at, zone).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z").strip() if at is not None else ""
        )
    except (ValueError, OverflowError, OSError):
        return ""


def offset(seconds: float) -> str:
    """+5.5 ms, +1.012 s."""
    seconds = max(seconds, 0.0)
    ms = seconds * 1000
    return f"+{ms:.1f} ms" if abs(ms) < 1000 else f"+{seconds:.3f} s" if abs(seconds) < 100 else f"+{seconds:.0f} s"


def idle(seconds: float) -> str:
    """9.8 s, 1 min 52 s, 2 h 5 min."""
    seconds = min(seconds, 10**12) if seconds > 0 else 0.0
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} days"


def size(count: int | None) -> str:
    """0 B, 6.4 kB, 1.2 MB."""
    if count is None:
        return ""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def flow_link(flow: str, side: str = "request") -> str:
    """Where mitmweb shows a flow."""
    return f"/#/flows/{flow}/{side}"


def server_name(endpoint: Endpoint) -> str:
    """What the server calls itself, else where it is."""
    info = endpoint.server_info
    name = info.get("name") if isinstance(info, dict) else None
    return shown(name, 80) if isinstance(name, str) and name.strip() else host(endpoint.url)


def server_version(endpoint: Endpoint) -> str:
    info = endpoint.server_info
    version = info.get("version") if isinstance(info, dict) else None
    return shown(version, 40) if isinstance(version, str) else ""


def host(url: str) -> str:
    """host:port of an endpoint's URL."""
    return shown(url.partition("://")[2].partition("/")[0] or url, 120)


def outcome_state(exchange: Exchange, conversation: Conversation | None = None) -> State:
    """What became of an operation."""
    if conversation is not None:
        match conversation.status:
            case "awaiting-input":
                return State("wait", "wait", "awaiting input")
            case "abandoned":
                return State("off", "x", "abandoned")
            case "working":
                return State("wait", "wait", "working")
    match exchange.outcome:
        case "complete":
            return OK
        case "input_required":
            return State("wait", "wait", "input required")
        case "task":
            return State("wait", "task", "task")
        case "accepted":
            return State("ok", "ok", "accepted")
        case "stream":
            if exchange.over:
                return State("off", "ok", "ended")
            return State("ok", "str", "open", True)
        case "cancelled":
            return State("off", "x", "closed by client")
        case "broken":
            return State("err", "x", "broken")
        case "none":
            if exchange.over:
                return State("off", "minus", "not recorded")
            return State("wait", "wait", "pending")
    if exchange.error_code is not None:
        name = error_name(exchange.error_code)
        code = str(exchange.error_code)[:12]
        return State("err", "x", f"{code} {name}" if name else code)
    if exchange.status in (401, 403):
        return State("off", "lock", f"{exchange.status} {'challenge' if exchange.status == 401 else 'refused'}")
    return State("err", "x", f"HTTP {exchange.status}" if exchange.status is not None else "error")


def status_state(exchange: Exchange) -> State:
    """The HTTP status: red only for a fault. A probe that a legacy server refuses is none."""
    status = exchange.status
    if status is None:
        if exchange.over:
            return State("off" if exchange.ended_by == "client" else "err", "x", "none")
        return State("wait", "wait", "pending")
    if status < 300:
        return State("ok", "ok", str(status))
    if status < 400:
        return State("off", "out", str(status))
    if status in (401, 403):
        return State("off", "lock", str(status))
    part = exchange.facts.get(NEGOTIATION)
    fell_back = part is not None and part.follow is not None and part.follow.role in ("fallback", "http+sse")
    if fell_back and status < 500 and not any(f.severity == "error" for f in exchange.findings):
        return State("off", "loop", str(status))
    return State("err", "x", str(status))


def severities(findings: list[Finding]) -> dict[str, int]:
    counts = {"error": 0, "warning": 0, "info": 0}
    for finding in findings:
        counts[finding.severity or "info"] += 1
    return counts
