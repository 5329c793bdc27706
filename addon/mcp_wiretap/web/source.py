"""What the pages ask of whoever mounts them."""

from collections.abc import Mapping
from typing import Any, Protocol

from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject


class Source(Protocol):
    def inspectors(self) -> list[Inspector]:
        """The traces: live traffic, then each file that was loaded."""

    def subject(self, flow: Any) -> Subject:
        """A flow read again, with its bodies, and what is known of it. May raise what it likes."""

    def rules(self) -> Mapping[str, Rule]:
        """The installed rules by id."""

    def silence(self, silence: Silence) -> None:
        """Report no such finding any more, in this session."""

    def redraw(self, exchanges: list[Exchange]) -> None:
        """What is shown on the flows of these exchanges has changed."""

    def fault(self, where: str, error: Exception) -> None:
        """Something went wrong in the pages; traffic is not touched by it."""
