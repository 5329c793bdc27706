"""A report's lines kept in files, so that the memory does not grow with the recording."""

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from mcp_wiretap.report.spool import Section


class FileSpool:
    """One file a section in a directory of its own. May be read in another process than the one that wrote it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: dict[Section, TextIO] = {}

    def write(self, section: Section, line: str) -> None:
        file = self._open.get(section)
        if file is None:
            file = self._open[section] = self._path(section).open("w", encoding="utf-8", newline="\n", buffering=1 << 16)
        file.write(line + "\n")

    def lines(self, section: Section) -> Iterator[str]:
        if section in self._open:
            self._open[section].flush()
        path = self._path(section)
        if path.exists():
            with path.open(encoding="utf-8", newline="\n") as file:
                for line in file:
                    yield line[:-1]

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _path(self, section: Section) -> Path:
        return self._directory / f"{section}.jsonl"
