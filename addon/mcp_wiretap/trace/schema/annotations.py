"""x-mcp-header annotations of an inputSchema: which parameters a client must mirror, and what makes the definition invalid.

Only schema positions are visited (catalogue PAR009): an `x-mcp-header` inside a default, an example or an enum is data, and a
property of that name is a property. No reference is followed. The walk is bounded by steps, so that its outcome depends on the
bytes alone. Spec: 2026-07-28 basic/transports/streamable-http#schema-extension.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcp_wiretap.wire.jsonrpc import pointer
from mcp_wiretap.wire.secret import looks_secret
from mcp_wiretap.wire.values import is_number

WORD = "x-mcp-header"
MOST_POSITIONS = 20_000  # schema positions visited, about 10 ms; real schemas have some dozens
MOST_ANNOTATIONS = 200  # each is compared on each call; real tools have a handful
SAFE_INTEGER = 2**53 - 1

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_SINGLE = (
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
)
_LISTS = ("prefixItems", "oneOf", "anyOf", "allOf", "items")
_APPLICATORS = frozenset((*_MAPS, *_SINGLE, *_LISTS))
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_TOKEN = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]")

type Steps = tuple[str | int, ...]
type _Trail = tuple[_Trail, str | int] | None  # steps to a position, newest outermost: made for every position, read for few


@dataclass(slots=True, frozen=True)
class Mirror:
    """One annotated parameter: x-mcp-header `header` on the property at `path` of the arguments."""

    path: tuple[str, ...]
    header: str
    type: str
    secret: bool = False  # its name says that the value is one (PAR030): never shown

    @property
    def field(self) -> str:
        """The header field's name."""
        return f"Mcp-Param-{self.header}"


@dataclass(slots=True, frozen=True)
class Flaw:
    """What is wrong with an annotation: the rule that says so, the steps from the tool to the place, the value."""

    rule: str
    steps: Steps
    value: Any
    detail: str

    @property
    def pointer(self) -> str:
        return pointer(*self.steps)


@dataclass(slots=True, frozen=True)
class Annotations:
    """What a walk found. `unchecked` says why the walk was given up: then nothing is known about the definition."""

    mirrors: tuple[Mirror, ...] = ()
    flaws: tuple[Flaw, ...] = ()  # PAR001-PAR008: the definition is not valid
    remarks: tuple[Flaw, ...] = ()  # PAR017, PAR029, PAR030: it is valid all the same
    unchecked: str = ""


@dataclass(slots=True)
class _Place:
    """An annotated schema position."""

    node: dict[str, Any]
    steps: Steps
    path: tuple[str, ...] | None  # None: not on a chain of `properties` alone


def read_tool(tool: dict[str, Any]) -> Annotations:
    """The annotations of one tool of a tools/list answer."""
    schema, output = tool.get("inputSchema"), tool.get("outputSchema")
    places, refs, unchecked = _places(schema, "inputSchema")
    outside, _, _ = _places(output, "outputSchema")
    if not places and not outside:
        return Annotations(unchecked=unchecked) if unchecked else _NONE
    remarks = [
        Flaw("PAR029", (*place.steps, WORD), place.node[WORD], "x-mcp-header means nothing in an outputSchema")
        for place in outside
    ]
    if unchecked:
        return Annotations(remarks=tuple(remarks), unchecked=unchecked)
    mirrors: list[Mirror] = []
    flaws: list[Flaw] = []
    seen: dict[str, Steps] = {}
    for place in places:
        flaws += _of_value(place, seen)
        found = _of_position(place, refs)
        if found is not None:
            flaws.append(found)
        elif place.path is not None:
            mirror = _mirror(place)
            mirrors.append(mirror)
            remarks += _remarks(place, mirror)
    return Annotations(tuple(mirrors) if not flaws else (), tuple(flaws), tuple(remarks))


_NONE = Annotations()


def _places(schema: Any, member: str) -> tuple[list[_Place], set[Steps], str]:
    """Annotated positions, the targets of local references, and why the walk was given up ("" if it was not)."""
    if not isinstance(schema, dict):
        return [], set(), ""
    places: list[_Place] = []
    refs: set[Steps] = set()
    queue: list[tuple[dict[str, Any], _Trail, tuple[str, ...] | None]] = [(schema, (None, member), ())]
    for node, trail, path in queue:  # grows while it is read: breadth first, in document order
        if WORD in node:
            places.append(_Place(node, _steps(trail), path or None))
            if len(places) > MOST_ANNOTATIONS:
                return [], set(), f"{member} has more than {MOST_ANNOTATIONS} annotations"
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/"):
            refs.add((member, *_ref_steps(ref)))
        for keyword in node:
            if keyword in _APPLICATORS:
                _add(queue, node[keyword], keyword, trail, path)
        if len(queue) > MOST_POSITIONS:
            return [], set(), f"{member} has more than {MOST_POSITIONS} schema positions"
    return places, refs, ""


def _add(
    queue: list[tuple[dict[str, Any], _Trail, tuple[str, ...] | None]],
    value: Any,
    keyword: str,
    trail: _Trail,
    path: tuple[str, ...] | None,
) -> None:
    """Queue the schemas that a keyword holds."""
    below = (trail, keyword)
    if isinstance(value, dict):
        if keyword not in _MAPS:
            queue.append((value, below, None))
            return
        pure = path if keyword == "properties" else None
        for name, sub in value.items():
            if isinstance(sub, dict):
                queue.append((sub, (below, name), (*pure, name) if pure is not None else None))
    elif isinstance(value, list) and keyword in _LISTS:
        for index, sub in enumerate(value):
            if isinstance(sub, dict):
                queue.append((sub, (below, index), None))


def _steps(trail: _Trail) -> Steps:
    steps: list[str | int] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    return tuple(reversed(steps))


def _ref_steps(ref: str) -> Steps:
    text = unquote(ref) if "%" in ref else ref
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[2:].split("/"))


def _of_value(place: _Place, seen: dict[str, Steps]) -> list[Flaw]:
    """What the annotation's value breaks: PAR001, PAR002, PAR003."""
    value, steps = place.node[WORD], (*place.steps, WORD)
    if not isinstance(value, str):
        return [Flaw("PAR001", steps, value, f"x-mcp-header is {_json_type(value)}, not a string")]
    if not value:
        return [Flaw("PAR001", steps, value, "x-mcp-header is empty")]
    flaws = []
    if not _TOKEN.fullmatch(value):
        bad = _NOT_TOKEN.search(value)
        character = f"U+{ord(bad.group()):04X}" if bad else "a character"
        flaws.append(Flaw("PAR002", steps, value, f"{character} is not allowed in a header name"))
    first = seen.setdefault(_ascii_lower(value), steps)
    if first is not steps:
        flaws.append(Flaw("PAR003", steps, value, pointer(*first)))
    return flaws


def _of_position(place: _Place, refs: set[Steps]) -> Flaw | None:
    """What is wrong with where it stands: PAR008, PAR007, then with the type beside it: PAR004, PAR005, PAR006."""
    value, steps = place.node[WORD], (*place.steps, WORD)
    if place.path is None:
        if refs and any(tuple(map(str, place.steps[:n])) in refs for n in range(2, len(place.steps) + 1)):
            return Flaw("PAR008", steps, value, "only a $ref leads here")
        return Flaw("PAR007", steps, value, _barrier(place.steps))
    if "type" not in place.node:
        return Flaw("PAR006", steps, value, "the property has no type of its own")
    kind = place.node["type"]
    at = (*place.steps, "type")
    if isinstance(kind, list):
        return Flaw("PAR006", at, kind, "the property has a list of types")
    if kind == "number":
        return Flaw("PAR005", at, kind, "type number cannot be mirrored")
    if kind not in ("integer", "string", "boolean"):
        return Flaw("PAR004", at, kind, f"type {kind if isinstance(kind, str) else _json_type(kind)} cannot be mirrored")
    return None


def _barrier(steps: Steps) -> str:
    """The keyword that takes a position off the chain of `properties`."""
    index = 1
    while index < len(steps):
        if steps[index] != "properties":
            return f"below {steps[index]}, not reached by properties alone"
        index += 2
    return "on the root of the schema, which is no parameter"


def _mirror(place: _Place) -> Mirror:
    path = place.path or ()
    header, kind = str(place.node[WORD]), str(place.node["type"])
    secret = kind == "string" and (place.node.get("format") == "password" or looks_secret(path[-1]) or looks_secret(header))
    return Mirror(path, header, kind, secret)


def _remarks(place: _Place, mirror: Mirror) -> list[Flaw]:
    remarks = []
    if mirror.secret:
        remarks.append(Flaw("PAR030", (*place.steps, WORD), place.node[WORD], mirror.path[-1]))
    if mirror.type == "integer":
        for keyword, detail in _unsafe(place.node):
            remarks.append(Flaw("PAR017", (*place.steps, keyword), place.node[keyword], detail))
    return remarks


def _unsafe(node: dict[str, Any]) -> list[tuple[str, str]]:
    """Keywords that force a value outside the safe range of integers."""
    found = []
    if is_number(node.get("minimum")) and node["minimum"] > SAFE_INTEGER:
        found.append(("minimum", "the smallest value allowed"))
    if is_number(node.get("maximum")) and node["maximum"] < -SAFE_INTEGER:
        found.append(("maximum", "the greatest value allowed"))
    if is_unsafe(node.get("const")):
        found.append(("const", "the only value allowed"))
    if is_unsafe(node.get("default")):
        found.append(("default", "the default"))
    values = node.get("enum")
    if isinstance(values, list) and values and all(map(is_unsafe, values[:1_000])):
        found.append(("enum", "every value allowed"))
    return found


def is_unsafe(value: Any) -> bool:
    """Whether a JSON value is a number outside the range in which JavaScript keeps integers apart."""
    return is_number(value) and not -SAFE_INTEGER <= value <= SAFE_INTEGER


def _ascii_lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
    return "a number"
