"""What is known of an exchange, written on its flow: comment, mark, metadata (DESIGN.md "On the flow").

The user's own words win: a comment or mark that is not what we last wrote is left alone, also where it was emptied.
"""

from typing import Any

from mitmproxy.flow import Flow

from mcp_wiretap.report import comment
from mcp_wiretap.trace.model import Exchange

COMMENT, MARK = "mcp.comment", "mcp.mark"
EVENTS, ENDED, DROPPED = "mcp.events", "mcp.ended", "mcp.dropped"
FACTS = (
    "mcp.era", "mcp.revision", "mcp.method", "mcp.name", "mcp.outcome", "mcp.code", "mcp.conversation", "mcp.round", "mcp.rules",
    "mcp.severity", "mcp.notes",
)  # fmt: skip


def annotate(flow: Flow, exchange: Exchange, *, comments: bool = True, marks: bool = True, times: bool = False) -> bool:
    """Bring a flow up to date. Whether anything that is shown changed. `times`: also how the stream went so far (that is done
    when the exchange is over in any case; for an open stream it costs a copy of the list)."""
    if exchange.kind == "other":
        return False
    metadata = flow.metadata
    changed = _facts(metadata, comment.metadata(exchange))
    if comments:
        changed |= _write(flow, "comment", COMMENT, comment.comment(exchange))
    if marks:
        changed |= _write(flow, "marked", MARK, comment.mark(exchange))
    if times or exchange.over:
        _course(metadata, exchange)
    return changed


def _facts(metadata: dict[str, Any], facts: dict[str, str | int]) -> bool:
    changed = False
    for key in FACTS:
        value = facts.get(key)
        if metadata.get(key) != value:
            changed = True
            if value is None:
                del metadata[key]
            else:
                metadata[key] = value
    return changed


def _write(flow: Flow, field: str, key: str, text: str) -> bool:
    """Set a field that both we and the user write."""
    current, ours = getattr(flow, field), flow.metadata.get(key)
    if current == text and (ours == text or not text):
        return False
    if current != (ours or ""):  # the user's
        return False
    setattr(flow, field, text)
    flow.metadata[key] = text
    return True


def _course(metadata: dict[str, Any], exchange: Exchange) -> None:
    """How the exchange went, for whoever reads the recording: when each event came, who ended it, what was not kept."""
    stream = exchange.stream
    if stream is not None and stream.timed:
        metadata[EVENTS] = list(stream.times)
    if exchange.ended_by not in (None, "complete"):
        metadata[ENDED] = exchange.ended_by
    if exchange.dropped:
        metadata[DROPPED] = exchange.dropped
