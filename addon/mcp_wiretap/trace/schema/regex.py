"""Regular expressions of JSON Schemas, in a linear-time engine (RE2): a pattern from the wire may be a trap for another.

What RE2 does otherwise than ECMA-262 (which JSON Schema means) is not decided: look-around and back-references are refused by
it, and `\\s` differs outside of ASCII. Spec: JSON Schema 2020-12 Core 6.4.
"""

import re
from functools import lru_cache
from typing import Any

import re2

MOST_PATTERN = 2_000  # characters of a pattern
_MEMORY = 1 << 17  # of one program; what needs more is no pattern of an MCP schema, and takes milliseconds to compile

_UNICODE_ESCAPE = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\u(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4}))")


class Undecided(Exception):
    """The engine cannot tell; says why."""


def _options() -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    return options


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """The compiled pattern, or text: why it cannot be."""
    if len(pattern) > MOST_PATTERN:
        return f"a pattern of {len(pattern)} characters"
    try:
        return re2.compile(_UNICODE_ESCAPE.sub(lambda m: f"{m[1]}\\x{{{m[2] or m[3]}}}", pattern), _options())
    except (re2.error, UnicodeEncodeError):
        shown = pattern if len(pattern) <= 60 else pattern[:59] + "…"
        return f"the linear-time engine cannot do the pattern {shown}"


def unsupported(pattern: str) -> str | None:
    """Why a pattern cannot be decided at all; None where it can."""
    found = _compiled(pattern)
    return found if isinstance(found, str) else None


def size(pattern: str) -> int:
    """Instructions of the compiled program: matching takes up to 4 ns for each, times the length of the text."""
    found = _compiled(pattern)
    return 1_000 if isinstance(found, str) else int(found.programsize)


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text. Undecided where that cannot be told."""
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        raise Undecided(compiled)
    if ("\\s" in pattern or "\\S" in pattern) and not (text.isascii() and "\v" not in text):
        raise Undecided("\\s differs between engines outside of ASCII")
    try:
        return compiled.search(text) is not None
    except UnicodeEncodeError:
        raise Undecided("the text holds half a surrogate pair") from None
