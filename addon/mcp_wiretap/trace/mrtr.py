"""Multi round-trip requests: which retry continues which input_required answer, with the evidence (MRT001, MRT002)."""

from dataclasses import dataclass

from mcp_wiretap.trace.tracker import Tracker


@dataclass(slots=True)
class Round:
    """The place of an exchange in a multi round-trip operation."""


class Rounds(Tracker):
    name = "mrtr"
