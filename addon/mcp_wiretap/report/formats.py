"""The formats of a report: the names that `--format` takes, the endings that `mcp.report` knows."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from mcp_wiretap.report.audit import Audit

PLAIN_WIDTH = 100  # columns of a text report that goes to no terminal


@dataclass(slots=True, frozen=True, kw_only=True)
class Format:
    """One format. `write` has the module imported when it is called."""

    ending: str  # of a file's name
    write: Callable[["Audit", TextIO, tzinfo], None]
    for_programs: bool = True  # on a terminal too, what could steer it is escaped


def _by(module: str) -> Callable[["Audit", TextIO, tzinfo], None]:
    def write(audit: "Audit", out: TextIO, zone: tzinfo) -> None:
        written: Any = import_module(module)
        written.write(audit, out)

    return write


def _html(audit: "Audit", out: TextIO, zone: tzinfo) -> None:
    from mcp_wiretap.report import html

    html.write(audit, out, zone=zone)


def _text(audit: "Audit", out: TextIO, zone: tzinfo) -> None:
    from rich.console import Console

    from mcp_wiretap.report import text

    width = None if out.isatty() else PLAIN_WIDTH
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False, soft_wrap=True)
    ascii_only = (out.encoding or "ascii").lower().replace("-", "") != "utf8"
    text.write(audit, console, ascii_only=ascii_only, zone=zone)


FORMATS = {
    "text": Format(ending=".txt", write=_text, for_programs=False),
    "json": Format(ending=".json", write=_by("mcp_wiretap.report.contract")),
    "jsonl": Format(ending=".jsonl", write=_by("mcp_wiretap.report.jsonl")),
    "sarif": Format(ending=".sarif", write=_by("mcp_wiretap.report.sarif")),
    "junit": Format(ending=".xml", write=_by("mcp_wiretap.report.junit")),
    "html": Format(ending=".html", write=_html),
}
ENDINGS = {found.ending: found for found in FORMATS.values()}
if len(ENDINGS) != len(FORMATS):
    raise ValueError("two report formats have one ending")


def write(audit: "Audit", found: Format, out: TextIO, *, zone: tzinfo = UTC) -> None:
    """Write a report; times for people are those of `zone`."""
    found.write(audit, out, zone)
