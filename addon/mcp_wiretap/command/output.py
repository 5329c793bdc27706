"""Where a report goes: the terminal, a pipe, or a file (`outfile`)."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from mcp_wiretap import outfile
from mcp_wiretap.command import Refused
from mcp_wiretap.wire.secret import visible

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 100  # columns of what does not go to a terminal


@contextmanager
def destination(output: str | None, *, inputs: list[str]) -> Iterator[TextIO]:
    """stdout, or a file (`replacing`)."""
    if output is None or output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    target = Path(output)
    for path in inputs:
        if target.exists() and target.samefile(path):
            raise Refused(f"--output {output} is one of the recordings; it would be overwritten")
    with replacing(target) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=False) as text:
        yield text


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write: what is a regular file is replaced only when all went well (`outfile`). Refused where it cannot be."""
    if target.is_dir():
        raise Refused(f"{target} is a directory; name a file in it")
    try:
        with outfile.writing(target) as file:
            yield file
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror or error}") from None


def say(text: str) -> None:
    """Tell a person on stderr, with nothing in it that a terminal obeys. Lines after the first are indented."""
    first, *others = [visible(line) for line in text.split("\n")]
    with suppress(OSError):  # nobody listens
        print("\n".join([f"mcp-wiretap: {first}", *(f"  {line}" for line in others)]), file=sys.stderr, flush=True)


def machine_readable(stream: TextIO) -> None:
    """Formats other than text are UTF-8 with plain newlines, whatever the terminal's locale says."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", newline="\n", errors="strict")


def console() -> "Console":
    """rich on stdout: colour only on a terminal, no markup, and plain lines for a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, markup=False, emoji=False, highlight=False)
