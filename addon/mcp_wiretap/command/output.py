"""Where a report goes: the terminal, a pipe, or a file that is replaced only when the report is complete."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from mcp_wiretap.command import Refused

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 100  # columns of what does not go to a terminal


@contextmanager
def destination(output: str | None, *, inputs: list[str]) -> Iterator[TextIO]:
    """stdout, or a file written aside and renamed: a reader never sees half a report, a failed run leaves the old one."""
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
    """A file to write that takes the place of `target` only when all went well."""
    if target.is_dir():
        raise Refused(f"{target} is a directory; name a file in it")
    aside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            yield file
        aside.replace(target)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)


def machine_readable(stream: TextIO) -> None:
    """Formats other than text are UTF-8 with plain newlines, whatever the terminal's locale says."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", newline="\n", errors="strict")


def console() -> "Console":
    """rich on stdout: colour only on a terminal, no markup, and plain lines for a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, markup=False, emoji=False, highlight=False)
