"""JSON read with places: each string and number of a text with its path and where it stands, without building the value.

Takes what it gets: event streams with JSON in their data, texts with JSON in them, documents that are cut off.
"""

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache

# The last string may lack its closing quote: messages are cut off.
_TOKEN = re.compile(
    rb'"(?P<string>[^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)|(?P<mark>[{}\[\],:])|(?P<number>-?[0-9][0-9.eE+-]*)'
    rb"|(?P<blank>\n\r?\n|\r\r)",
    re.S,
)
_OPEN = re.compile(rb"[{\[]")
_DEEPEST = 500
_STEP = re.compile(
    r"\.\.(?P<deep>\w[\w-]*|\*)|\.(?P<name>\w[\w-]*|\*)"
    r"|\[(?:(?P<index>\d+|\*)|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\]"
)


@dataclass(slots=True, frozen=True)
class Leaf:
    """A string or number. `start` and `end` are those of a string's content, without its quotes."""

    path: tuple[str | int, ...]
    start: int
    end: int
    number: bool


def leaves(data: bytes) -> Iterator[Leaf]:
    """The strings and numbers of all JSON in the bytes."""
    if b"{" not in data and b"[" not in data:
        return
    position = 0
    while (opening := _OPEN.search(data, position)) is not None:
        position = yield from _document(data, opening.start())


def _document(data: bytes, begin: int) -> Generator[Leaf, None, int]:
    """One document; returns where it ends."""
    stack: list[str | int | None] = []  # of each open container: the member's name (None: none yet) or the item's number
    pending: bytes | None = None  # a string that may be a name
    place = (0, 0)
    end = begin
    for token in _TOKEN.finditer(data, begin):
        kind = token.lastgroup
        if kind == "mark":
            mark = token.group()
            if mark in b",]}" and pending is not None:
                yield Leaf(_path(stack), *place, False)
                pending = None
            if mark in b"{[":
                if len(stack) >= _DEEPEST:
                    return token.end()
                stack.append(None if mark == b"{" else 0)
            elif mark in b"}]":
                stack.pop()
                if not stack:
                    return token.end()
            elif mark == b":" and pending is not None:
                if not isinstance(stack[-1], int):
                    stack[-1] = _name(pending)
                    pending = None
            elif mark == b",":
                stack[-1] = stack[-1] + 1 if isinstance(stack[-1], int) else None
        elif kind == "string":
            if pending is not None:
                yield Leaf(_path(stack), *place, False)
            pending, place = token["string"], token.span("string")
        elif kind == "number":
            yield Leaf(_path(stack), token.start(), token.end(), True)
        elif kind == "blank" and data[token.end() : token.end() + 1] not in b' \t"{}[],':
            break
        end = token.end()
    if pending is not None:  # it is cut off here
        yield Leaf(_path(stack), *place, False)
    return end


def _path(stack: list[str | int | None]) -> tuple[str | int, ...]:
    return tuple("" if step is None else step for step in stack)


def _name(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    return re.sub(r"\\u([0-9A-Fa-f]{4})|\\(.)", lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)


@lru_cache(maxsize=64)
def compiled(path: str) -> re.Pattern[str]:
    """A JSONPath (names, indices, *, ..) as a pattern of the paths that `spelled` writes. ValueError for what is beyond that."""
    position, parts = 1, []
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(
                f"{path} is not understood from {path[position:]!r} on; there may be .name, ['name'], [0], [*], ..name"
            )
        position = step.end()
        if step["deep"] is not None:
            parts.append("(?:/[^/]*)*/" + _one(step["deep"]))
        else:
            named = (step["name"], step["index"], step["single"], step["double"])
            parts.append("/" + _one(next(name for name in named if name is not None)))
    return re.compile("".join(parts) + "(?:/.*)?", re.S)


def _one(step: str) -> str:
    return "[^/]*" if step == "*" else re.escape(step.replace("~", "~0").replace("/", "~1"))


def spelled(path: tuple[str | int, ...]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
