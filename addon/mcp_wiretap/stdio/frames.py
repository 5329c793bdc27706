"""What the wrapper tells the proxy and the recorder: one JSON object a line. Lines are text, invalid UTF-8 as surrogate escapes.

    {"hello": 1, "name", "pid", "command", "inline", "t"}   the first; `command` is a list
    {"d": "c"|"s", "t", "line" [, "n", "cut", "open"]}   a line of the client, of the server, without its newline.
                                                         `n`: the wrapper waits for a verdict; `cut`: bytes past the
                                                         limit that are not in it; `open`: it had no newline, the
                                                         output ended inside it
    {"d": "e", "t", "line" [, "lost"]}                   a piece of stderr; `lost`: bytes before it that were not kept
    {"missing": COUNT, "t"}                              so many frames before this one were not kept
    {"eof": "c"|"s", "t"}                                that side has closed its output
    {"exit": STATUS, "t", "dropped"}                     the server has ended; negative: killed by that signal

and what the proxy says of a line that it is asked about:

    {"n", "pass": [[direction, line]...] | null}         these in its place; null: as it was; []: nothing
    {"n", "held": true}                                  somebody holds it: the others may go on
"""

import json
from typing import Any, NamedTuple

VERSION = 1
_SLICE = 1 << 16  # characters
MOST_LINE = 16 << 20  # bytes of one line that are told; all of it passes


class Frame(NamedTuple):
    """One frame, as it waits to be sent."""

    kind: str  # c, s, e: a line; eof, exit
    at: float
    data: bytes = b""
    number: int = 0  # of a line that is asked about
    cut: int = 0
    unfinished: bool = False
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def size(self) -> int:
        return len(self.data) + 100

    def encode(self, *, ask: bool = False) -> bytes:
        value: dict[str, Any] = {"t": self.at}
        line = ""
        if self.kind in ("c", "s", "e"):
            value = {"d": self.kind, "t": self.at}
            line = _json_string(self.data.decode("utf-8", "surrogateescape"))
            if ask and self.number:
                value["n"] = self.number
            if self.cut:
                value["lost" if self.kind == "e" else "cut"] = self.cut
            if self.unfinished:
                value["open"] = True
        value.update(self.more)
        text = json.dumps(value)
        return (f'{text[:-1]}, "line": {line}}}\n' if line else f"{text}\n").encode()


def _json_string(text: str) -> str:
    """In slices: other threads pass lines meanwhile, and cannot within one call."""
    if len(text) <= _SLICE:
        return json.dumps(text)
    return '"' + "".join(json.dumps(text[at : at + _SLICE])[1:-1] for at in range(0, len(text), _SLICE)) + '"'


def line_of(frame: dict[str, Any]) -> bytes:
    """The bytes of a frame's line. Surrogates that came out of real JSON text, and not out of bytes, stay what they are."""
    text = frame.get("line")
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else b""
