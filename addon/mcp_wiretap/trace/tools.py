"""Tools as clients saw them in tools/list: definitions with their mirrored parameters, and why a client must exclude one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker


@dataclass(slots=True, frozen=True)
class Mirror:
    """One annotated parameter: x-mcp-header `header` on the property at `path` of the arguments."""

    path: tuple[str, ...]
    header: str
    type: str


@dataclass(slots=True, frozen=True)
class Flaw:
    """Why an annotation is not valid: the rule that says so (PAR001-PAR008), the JSON pointer in the tool, the value."""

    rule: str
    pointer: str
    value: Any
    detail: str


@dataclass(slots=True, eq=False)
class ToolDefinition:
    """One tool as one tools/list answer gave it."""

    name: str
    raw: dict[str, Any]
    message: Message | None  # the answer that listed it; None once let go
    index: int
    flow: str
    listed_at: float
    mirrors: tuple[Mirror, ...] = ()
    flaws: tuple[Flaw, ...] = ()


@dataclass(slots=True)
class ToolView:
    """What a client had seen of a tool when it called it."""

    definition: ToolDefinition | None
    earlier: list[ToolDefinition] = field(default_factory=list)
    why_unknown: str = ""


class Tools(Tracker):
    name = "tools"

    def said(self, message: Message) -> None:
        return None


def view(exchange: Exchange) -> ToolView | None:
    return exchange.tool
