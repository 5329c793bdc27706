"""Overview, conversations and streams as lines of text: for mitmproxy's console and for mitmdump."""

from collections.abc import Iterable
from datetime import tzinfo

from mcp_wiretap.pages import overview, protocol, streams
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import State, shown
from mcp_wiretap.report.words import plural
from mcp_wiretap.trace.inspector import Inspector

MOST = 200  # lines
GLYPHS = {"err": "✕", "warn": "▲", "wait": "…", "ok": "✓", "off": "–", "info": "i"}


def overview_lines(traces: Traces) -> list[str]:
    """An endpoint a line: era, server, revisions, negotiation, counts; then the counts of all."""
    lines = []
    for row in overview.endpoints(traces)[:MOST]:
        words = [row["era"], f"{row['name']} {row['version']}".strip(), row["url"], row["revisions"] or "no revision served"]
        if row["expected"]:
            words.append(f"{'✕ ' if row['broken'] else '✓ '}expected {row['expected']}")
        words += [row["story"], plural(row["flows"], "flow")]
        if row["open"]:
            words.append(f"{row['open']} open")
        if row["clients"]:
            words.append(f"clients {row['clients']}")
        words.append(_counts(row["counts"]))
        lines.append(" | ".join(word for word in words if word))
    found = overview.summary(traces)
    total = f"{plural(found['endpoints'], 'endpoint')}, {found['listed']} of {plural(found['flows'], 'flow')} MCP"
    return [
        *lines,
        f"{total}; {_counts(found) or 'no findings'}; {found['waiting']} awaiting input, {found['open']} streams open",
    ]


def conversation_lines(traces: Traces, zone: tzinfo | None) -> list[str]:
    """An operation of two or more exchanges a line, oldest first."""
    lines: list[str] = []
    for ledger, exchange in traces.downwards():
        if exchange.kind != "mcp" or exchange.conversation is None or ledger.head(exchange) is not exchange:
            continue
        row = protocol.row(ledger, exchange, zone)
        held = [bar for bar in row["bars"] if bar["who"] == "c"]
        client = f" (client {sum(bar['ms'] for bar in held):.0f} ms)" if held else ""
        words = [
            row["time"],
            f"{row['method']} {row['subject']}".strip(),
            row["server"],
            row["tag"],
            f"{row['total']}{client}",
            _state(row["state"]),
            row["summary"],
            _counts(row["counts"]),
            exchange.flow[:8],
        ]
        lines.append(" | ".join(shown(word, 200) for word in words if word))
        if len(lines) >= MOST:
            break
    return lines[::-1] or ["no conversation of two or more exchanges so far"]


def stream_lines(traces: Traces, zone: tzinfo | None) -> list[str]:
    """An event stream a line, oldest first."""
    lines = []
    for ledger in traces.ledgers:
        for flow in list(ledger.streams)[-MOST:]:
            exchange = ledger.find(flow)
            if exchange is None:
                continue
            row = streams.row(ledger, exchange, zone)
            again = f"again, {row['again'] + 1}." if row["again"] else ""
            words = [
                row["time"],
                f"{row['kind']} {row['id']}".strip(),
                row["subject"],
                row["server"],
                plural(row["notifications"], "event"),
                f"last {row['last']}",
                f"open for {row['open_for']}",
                _state(row["state"]),
                again,
                exchange.flow[:8],
            ]
            lines.append(" | ".join(word for word in words if word))
    return lines or ["no stream so far"]


def _state(state: State) -> str:
    return f"{GLYPHS.get(state.kind, '')} {state.word}".strip()


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(plural(counts[word], word) for word in ("error", "warning") if counts.get(word))


def read(inspectors: Iterable[Inspector]) -> Traces:
    """The traces as they are at this moment."""
    traces = Traces([Ledger(inspector, number, watch=False) for number, inspector in enumerate(inspectors)])
    traces.catch_up()
    return traces
