"""JSON as people write it into configurations, read with the place of each value: comments, commas before a closing bracket.

What changes such a file changes the spans of single values; all else stays as it is, byte for byte.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[-+.\w]+")
DEEPEST = 100


class NotRead(ValueError):
    """The text is no JSON, not even with comments. The message says where."""


@dataclass(slots=True)
class Node:
    """A value and where it stands: `text[start:end]`."""

    start: int
    end: int
    value: Any = None  # of a scalar
    members: dict[str, "Node"] | None = None  # of an object
    items: list["Node"] | None = field(default=None)  # of an array

    def get(self, *keys: str) -> "Node | None":
        """A member, and one of that."""
        node: Node | None = self
        for key in keys:
            node = node.members.get(key) if node is not None and node.members is not None else None
        return node

    def plain(self) -> Any:
        """The value without its place."""
        if self.members is not None:
            return {key: node.plain() for key, node in self.members.items()}
        if self.items is not None:
            return [node.plain() for node in self.items]
        return self.value

    def objects(self) -> Iterator[tuple[str, "Node"]]:
        """The members that are objects."""
        for key, node in (self.members or {}).items():
            if node.members is not None:
                yield key, node


def parse(text: str) -> Node:
    """Read a whole text."""
    node, position = _value(text, _skip(text, 0), 0)
    if _skip(text, position) != len(text):
        raise _wrong(text, _skip(text, position), "the end of the file")
    return node


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > DEEPEST:
        raise _wrong(text, at, f"at most {DEEPEST} levels")
    head = text[at : at + 1]
    if head == "{":
        return _object(text, at, depth)
    if head == "[":
        return _array(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise _wrong(text, at, "a value")
    try:
        return Node(at, found.end(), json.loads(found.group())), found.end()
    except ValueError:
        raise _wrong(text, at, "a value") from None


def _object(text: str, at: int, depth: int) -> tuple[Node, int]:
    members: dict[str, Node] = {}
    position = _skip(text, at + 1)
    while text[position : position + 1] != "}":
        key = _STRING.match(text, position)
        if key is None:
            raise _wrong(text, position, "the name of a member")
        position = _skip(text, key.end())
        if text[position : position + 1] != ":":
            raise _wrong(text, position, "a colon")
        name = json.loads(key.group())
        if name in members:
            raise _wrong(text, key.start(), f"one member {name!r}, not two")
        members[name], position = _value(text, _skip(text, position + 1), depth + 1)
        position = _comma(text, position, "}")
    return Node(at, position + 1, members=members), position + 1


def _array(text: str, at: int, depth: int) -> tuple[Node, int]:
    items: list[Node] = []
    position = _skip(text, at + 1)
    while text[position : position + 1] != "]":
        item, position = _value(text, position, depth + 1)
        items.append(item)
        position = _comma(text, position, "]")
    return Node(at, position + 1, items=items), position + 1


def _comma(text: str, position: int, closing: str) -> int:
    position = _skip(text, position)
    if text[position : position + 1] == ",":
        return _skip(text, position + 1)
    if text[position : position + 1] != closing:
        raise _wrong(text, position, f"a comma or {closing}")
    return position


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _wrong(text: str, at: int, wanted: str) -> NotRead:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return NotRead(f"line {line}, column {column}: {wanted} is expected")
