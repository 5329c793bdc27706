"""The traces that are asked about, and how an exchange is found in them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from mcp_wiretap.compare.profile import Profile
from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Conversation, Exchange
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.wire.pace import breathe


class Unknown(ValueError):
    """What was asked for is not there. The message says what is."""


@dataclass(slots=True)
class Trace:
    """One trace: live traffic, or a recording. `profile` is what it is compared by, where that was gathered."""

    name: str
    inspector: Inspector
    profile: Profile | None = None
    damage: str | None = None


class Traces(Protocol):
    """What whoever runs the server gives to it."""

    def traces(self) -> list[Trace]:
        """All traces, the live one first."""

    def subject(self, trace: Trace, exchange: Exchange) -> Subject | None:
        """An exchange with its bodies read again; None where they are gone."""

    def rules(self) -> Mapping[str, Rule]:
        """The rules by id."""


@dataclass(slots=True)
class Held:
    """Traces that are held in memory: recordings."""

    all: list[Trace]
    known: Mapping[str, Rule]
    read_again: Callable[[Trace, Exchange], Subject | None]

    def traces(self) -> list[Trace]:
        return self.all

    def subject(self, trace: Trace, exchange: Exchange) -> Subject | None:
        return self.read_again(trace, exchange)

    def rules(self) -> Mapping[str, Rule]:
        return self.known


def newest(traces: list[Trace]) -> Iterator[tuple[Trace, Exchange]]:
    """All exchanges of MCP, of authorization and of preflights; of each trace the newest first."""
    for trace in traces:
        for number, exchange in enumerate(reversed(list(trace.inspector.exchanges.values()))):
            if number % 16 == 0:
                breathe()
            if exchange.kind != "other":
                yield trace, exchange


def find(traces: list[Trace], flow: str) -> tuple[Trace, Exchange]:
    """The exchange whose flow id begins so. Unknown where none does, or several do."""
    found = [
        (trace, exchange)
        for trace in traces
        for id_, exchange in trace.inspector.exchanges.items()
        if flow and id_.startswith(flow)
    ]
    exact = [one for one in found if one[1].flow == flow]
    if len(found) == 1 or len(exact) == 1:
        return (exact or found)[0]
    if found:
        raise Unknown(f"{len(found)} flows begin so; give more of the id")
    raise Unknown("there is no such flow; `failures` and `operations` name flows")


def conversation_of(trace: Trace, exchange: Exchange) -> tuple[Conversation | None, list[Exchange]]:
    """The exchanges of the operation that an exchange belongs to, in order."""
    conversation = exchange.conversation
    if conversation is None:
        return None, [exchange]
    rounds = [trace.inspector.exchanges.get(flow) for flow in conversation.rounds]
    return conversation, [one for one in rounds if one is not None] or [exchange]
