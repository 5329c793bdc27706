"""Where the lines of a report wait until the trace is over, so that a recording of any length fits the memory.

Every line is one JSON object of one section of the audit contract. This module knows the sections and nothing of files: who
audits a file brings a spool that writes to disk.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

type Section = Literal["flow", "conversation", "endpoint", "finding", "unchecked", "fault"]

SECTIONS: tuple[Section, ...] = ("flow", "conversation", "endpoint", "finding", "unchecked", "fault")


class Spool(Protocol):
    def write(self, section: Section, line: str) -> None:
        """Keep one line (no newline in it)."""

    def lines(self, section: Section) -> Iterator[str]:
        """The lines of a section in the order in which they were written. May be asked for again."""


class MemorySpool:
    """Keeps the lines in memory: for tests, and for reports of a few flows."""

    def __init__(self) -> None:
        self._lines: dict[Section, list[str]] = {section: [] for section in SECTIONS}

    def write(self, section: Section, line: str) -> None:
        self._lines[section].append(line)

    def lines(self, section: Section) -> Iterator[str]:
        return iter(self._lines[section])


class Joined:
    """Several spools read as one, one after the other."""

    def __init__(self, spools: Iterable[Spool]) -> None:
        self._spools = list(spools)

    def lines(self, section: Section) -> Iterator[str]:
        for spool in self._spools:
            yield from spool.lines(section)
