"""What is known of an exchange, written on its flow: comment, mark, metadata (docs/architecture.md "On the flow").

The user's own words win: a comment or mark that is not what we last wrote is left alone, also where it was emptied.
"""

from dataclasses import dataclass
from typing import Any

from mitmproxy.flow import Flow

from mcp_wiretap.report import comment
from mcp_wiretap.trace.model import Exchange

COMMENT, MARK = "mcp.comment", "mcp.mark"
EVENTS, ENDED, DROPPED = "mcp.events", "mcp.ended", "mcp.dropped"
FACTS = (
    "mcp.era",
    "mcp.revision",
    "mcp.method",
    "mcp.name",
    "mcp.outcome",
    "mcp.code",
    "mcp.error",
    "mcp.step",
    "mcp.endpoint",
    "mcp.conversation",
    "mcp.round",
    "mcp.rules",
    "mcp.severity",
    "mcp.notes",
)


@dataclass(slots=True, frozen=True)
class Words:
    """All that is written on a flow, small and without the exchange: it can be kept until the flow comes by."""

    comment: str
    mark: str
    facts: dict[str, str | int]
    course: dict[str, Any]


def words(exchange: Exchange, *, times: bool = False) -> Words | None:
    """What is to be written of an exchange; None where its flow is not ours to touch. `times`: also how the stream went so far
    (that is done when the exchange is over in any case; for an open stream it costs a copy of the list)."""
    if exchange.kind == "other":
        return None
    course = _course(exchange) if times or exchange.over else {}
    return Words(comment.comment(exchange), comment.mark(exchange), comment.metadata(exchange), course)


def annotate(flow: Flow, exchange: Exchange, *, comments: bool = True, marks: bool = True, times: bool = False) -> bool:
    """Bring a flow up to date. Whether anything that is shown changed."""
    said = words(exchange, times=times)
    return said is not None and write(flow, said, comments=comments, marks=marks)


def write(flow: Flow, said: Words, *, comments: bool = True, marks: bool = True) -> bool:
    """Write it on its flow. Whether anything that is shown changed."""
    changed = _facts(flow.metadata, said.facts)
    if comments:
        changed |= _write(flow, "comment", COMMENT, said.comment)
    if marks:
        changed |= _write(flow, "marked", MARK, said.mark)
    flow.metadata.update(said.course)
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


def _course(exchange: Exchange) -> dict[str, Any]:
    """How the exchange went, for whoever reads the recording: when each event came, who ended it, what was not kept."""
    course: dict[str, Any] = {}
    stream = exchange.stream
    if stream is not None and stream.timed:
        course[EVENTS] = list(stream.times)
    if exchange.ended_by not in (None, "complete"):
        course[ENDED] = exchange.ended_by
    if exchange.dropped:
        course[DROPPED] = exchange.dropped
    return course
