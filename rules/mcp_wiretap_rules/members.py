"""The members of messages as the published schema of each revision has them: `problems` says what is wrong with one, in words.

The tables in `schemas` are made from the schemas by scripts/harness/schema_tables.py. Unknown members are lawful everywhere. What
rules of other families judge in full is left to them: schemas of tools, structured content, caching hints, resultType, cursors.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from mcp_wiretap.rule import Severity
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_integer

type Steps = tuple[str | int, ...]
type Node = dict[str, Any]
type Fits = Callable[[Any], bool]

MOST_ITEMS = 500  # of one list that are looked at
MOST_PROBLEMS = 20  # of one message
DEEPEST = 30  # steps: the schema of a revision may hold itself
# Members that other families judge wherever they stand: TOO, RES001, CAC001, RES009.
LEFT = frozenset({"inputSchema", "outputSchema", "structuredContent", "resultType", "ttlMs", "cacheScope", "nextCursor"})
# Members whose absence other families tell: the envelope of a request (MET001, MET002).
NEVER_MISSED = frozenset({"_meta", rev.PROTOCOL_VERSION, rev.CLIENT_CAPABILITIES, rev.CLIENT_INFO}) | LEFT


class Problem(NamedTuple):
    """One thing that is wrong: where below the value, in words, the value there; `absent` where there is none."""

    steps: Steps
    words: str
    value: Any
    severity: Severity = "error"
    absent: bool = False


def of_params(method: str, revision: str | None, params: Any) -> list[Problem]:
    """What is wrong with the params of a request or notification. Nothing for methods that the revision does not have."""
    known = _judges(revision, "params").get(method) if revision in rev.KNOWN else None
    return known.problems(params) if known is not None else []


def of_result(method: str, revision: str | None, result: Any, kind: str = "") -> list[Problem]:
    """What is wrong with a result; `kind` is `task` or `input_required` where it is not that of the method itself."""
    known = _judges(revision, "results").get(kind or method) if revision in rev.KNOWN else None
    return known.problems(result) if known is not None else []


def fits_result(method: str, revision: str, result: Any) -> bool:
    """Whether a complete result is known to fit."""
    known = _judges(revision, "results").get(method)
    try:
        return known is not None and known.fits(result)
    except RecursionError:
        return False


def places(revision: str) -> Iterator[tuple[str, str]]:
    """Each definition and member that is judged by a revision's table, for tests."""
    for name, node in _table(revision)["definitions"].items():
        for member in _members(node, _table(revision)["definitions"]):
            yield name, member


@cache
def _table(revision: str | None) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("schemas", f"{revision}.json").read_text("utf-8"))
    return table


class _Judge:
    """What judges the params of a method, or its result. `_fits` tells whether a value fits, as quickly as it can be told: most
    values do."""

    __slots__ = ("_definitions", "_fits", "_node")

    def __init__(self, node: Node, definitions: dict[str, Node]) -> None:
        self._node, self._definitions = node, definitions
        self._fits: Fits | None = None

    def fits(self, value: Any) -> bool:
        fits = self._fits
        if fits is None:
            fits = self._fits = _Compiler(self._definitions).fits(self._node)
        return fits(value)

    def problems(self, value: Any) -> list[Problem]:
        try:
            if (self._fits or self.fits)(value):
                return []
        except RecursionError:
            return []
        found: list[Problem] = []
        _Explainer(self._definitions, found).explain(self._node, value, (), required=True)
        return found[:MOST_PROBLEMS]


@cache
def _judges(revision: str | None, which: Literal["params", "results"]) -> dict[str, _Judge]:
    table = _table(revision)
    nodes = {name: entry["node"] for name, entry in table["params"].items()} if which == "params" else table["results"]
    return {name: _Judge(node, table["definitions"]) for name, node in nodes.items()}


def _members(node: Node, definitions: dict[str, Node]) -> dict[str, Node]:
    """The members of an object that a node describes, those of its parts included."""
    node = _resolved(node, definitions)
    found: dict[str, Node] = {}
    for part in node.get("allOf", ()):
        found |= _members(part, definitions)
    own: dict[str, Node] = node.get("properties", {})
    return found | own


def _required(node: Node, definitions: dict[str, Node]) -> frozenset[str]:
    node = _resolved(node, definitions)
    found = frozenset(node.get("required", ()))
    for part in node.get("allOf", ()):
        found |= _required(part, definitions)
    return found - NEVER_MISSED


def _resolved(node: Node, definitions: dict[str, Node]) -> Node:
    while "$ref" in node:
        node = definitions[node["$ref"]]
    return node


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


_TYPES: dict[str, Fits] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: is_integer(value) or (isinstance(value, float | Decimal) and value == int(value)),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}
_INSTANT = frozenset({"string", "number", "boolean", "object", "array", "null"})
_SAID = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def _types(node: Node) -> tuple[str, ...]:
    wanted = node.get("type")
    if isinstance(wanted, list):
        return tuple(wanted)
    if wanted is None:
        return ("object",) if "properties" in node or "allOf" in node else ()
    return (wanted,)


def _is_type(value: Any, wanted: tuple[str, ...]) -> bool:
    try:
        if not wanted:
            return True
        for one in wanted:  # noqa: SIM110 - the quicker way
            if _TYPES[one](value):
                return True
        return False
    except (OverflowError, ValueError):  # an infinite or odd number is no integer
        return False


def _any_of(alternatives: list[Fits]) -> Fits:
    def fits(value: Any) -> bool:
        for one in alternatives:  # noqa: SIM110 - the quicker way
            if one(value):
                return True
        return False

    return fits


class _Compiler:
    """Makes of each node a function that tells whether a value fits."""

    def __init__(self, definitions: dict[str, Node]) -> None:
        self._definitions = definitions
        self._named: dict[str, Fits] = {}

    def fits(self, node: Node) -> Fits:
        if "$ref" not in node:
            return self._made(node)
        name = node["$ref"]
        known = self._named.get(name)
        if known is None:
            self._named[name] = lambda value: self._named[name](value)  # while it is being made: it may hold itself
            known = self._named[name] = self._made(self._definitions[name])
        return known

    def _made(self, node: Node) -> Fits:
        if "anyOf" in node:
            return _any_of([self.fits(one) for one in node["anyOf"]])
        if "const" in node or "enum" in node:
            allowed = [node["const"]] if "const" in node else node["enum"]
            return lambda value: _is_one_of(value, allowed)
        wanted = _types(node)
        if wanted == ("object",):
            return self._object(node)
        if wanted == ("array",):
            return self._array(node)
        if len(wanted) == 1 and wanted[0] in _INSTANT:
            return _TYPES[wanted[0]]  # it raises nothing
        return lambda value: _is_type(value, wanted)

    def _object(self, node: Node) -> Fits:
        described = _members(node, self._definitions)
        members: dict[str, Fits | None] = {name: self.fits(one) for name, one in described.items()}
        members.update(dict.fromkeys(LEFT))
        required = _required(node, self._definitions)
        others = self.fits(node["additionalProperties"]) if "additionalProperties" in node else None

        def fits(value: Any) -> bool:
            if not isinstance(value, dict) or not required <= value.keys():
                return False
            for name, inner in value.items():
                check = members.get(name, others)
                if check is not None and not check(inner):
                    return False
            return True

        return fits

    def _array(self, node: Node) -> Fits:
        item = self.fits(node["items"]) if "items" in node else None

        def fits(value: Any) -> bool:
            return isinstance(value, list) and (item is None or all(map(item, value[:MOST_ITEMS])))

        return fits


class _Explainer:
    """Says of a value that does not fit what is wrong with it."""

    def __init__(self, definitions: dict[str, Node], found: list[Problem]) -> None:
        self._definitions = definitions
        self._found = found

    def explain(self, node: Node, value: Any, steps: Steps, *, required: bool) -> None:
        if len(self._found) >= MOST_PROBLEMS or len(steps) > DEEPEST:
            return
        node = _resolved(node, self._definitions)
        if "anyOf" in node:
            self._alternatives(node["anyOf"], value, steps, required)
        elif "const" in node or "enum" in node:
            allowed = [node["const"]] if "const" in node else node["enum"]
            if not _is_one_of(value, allowed):
                self._add(steps, f"is {_quoted(value)}, not {_one_of(allowed)}", value, required)
        else:
            wanted = _types(node)
            if not _is_type(value, wanted):
                self._add(steps, f"is {kind_of(value)}, not {' or '.join(_SAID[one] for one in wanted)}", value, required)
            elif isinstance(value, dict):
                self._object(node, value, steps)
            elif isinstance(value, list) and "items" in node:
                for index, item in enumerate(value[:MOST_ITEMS]):
                    self.explain(node["items"], item, (*steps, index), required=True)

    def _object(self, node: Node, value: dict[str, Any], steps: Steps) -> None:
        members, needed = _members(node, self._definitions), _required(node, self._definitions)
        for name in sorted(needed - value.keys()):
            place = (*steps, name)
            self._found.append(Problem(place, f"{path(*place)} is missing", None, absent=True))
        others = node.get("additionalProperties")
        for name, inner in value.items():
            described = members.get(name, others)
            if described is not None and name not in LEFT:
                self.explain(described, inner, (*steps, name), required=name in needed)

    def _alternatives(self, alternatives: list[Node], value: Any, steps: Steps, required: bool) -> None:
        """By the kind of value, then by what is constant in it, then by the members that it must have. Where several could be meant,
        nothing is said: to fit none of them says nothing of what was meant."""
        flat = [_resolved(one, self._definitions) for one in alternatives]
        flat = [inner for one in flat for inner in (_flattened(one, self._definitions) if "anyOf" in one else [one])]
        if any(self._fits(one, value) for one in flat):
            return
        wanted = tuple(dict.fromkeys(kind for one in flat for kind in _types(one)))
        meant = [one for one in flat if _is_type(value, _types(one))]
        if not meant:
            self._add(steps, f"is {kind_of(value)}, not {' or '.join(_SAID[one] for one in wanted)}", value, required)
            return
        if isinstance(value, dict) and len(meant) > 1:
            meant = self._by_constants(meant, value, steps) or []
            complete = [one for one in meant if _required(one, self._definitions) <= value.keys()]
            meant = complete if len(meant) > 1 else meant
        if len(meant) == 1:
            self.explain(meant[0], value, steps, required=required)

    def _fits(self, node: Node, value: Any) -> bool:
        return _Compiler(self._definitions).fits(node)(value)

    def _by_constants(self, nodes: list[Node], value: dict[str, Any], steps: Steps) -> list[Node] | None:
        """Those whose constant members are as in the value; None, and said, where its member has a value that none of them has."""
        allowed = [self._choices(node) for node in nodes]
        for name in [name for name in allowed[0] if all(name in one for one in allowed)]:
            all_of_them = [choice for one in allowed for choice in one[name]]
            if name in value and not _is_one_of(value[name], all_of_them):
                place = (*steps, name)
                self._add(place, f"is {_quoted(value[name])}, not {_one_of(all_of_them)}", value[name], required=True)
                return None
        return [
            node
            for node, one in zip(nodes, allowed, strict=True)
            if all(name not in value or _is_one_of(value[name], choices) for name, choices in one.items())
        ]

    def _choices(self, node: Node) -> dict[str, list[Any]]:
        """The members of an object that have one of a few values."""
        found: dict[str, list[Any]] = {}
        for name, member in _members(node, self._definitions).items():
            resolved = _resolved(member, self._definitions)
            if "const" in resolved:
                found[name] = [resolved["const"]]
            elif "enum" in resolved:
                found[name] = resolved["enum"]
        return found

    def _add(self, steps: Steps, words: str, value: Any, required: bool) -> None:
        name = path(*steps) if steps else "it"
        if value is None and not required:
            self._found.append(Problem(steps, f"{name} is null; it is left out where there is none", None, "warning"))
        else:
            self._found.append(Problem(steps, f"{name} {words}", value))


def _flattened(node: Node, definitions: dict[str, Node]) -> list[Node]:
    inner = [_resolved(one, definitions) for one in node["anyOf"]]
    return [each for one in inner for each in (_flattened(one, definitions) if "anyOf" in one else [one])]


def _is_one_of(value: Any, allowed: list[Any]) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value in allowed


def _quoted(value: Any) -> str:
    return one_line(dumps(value, most=60), 40)


def _one_of(allowed: list[Any]) -> str:
    words = [one_line(dumps(one), 40) for one in dict.fromkeys(allowed)]
    return words[0] if len(words) == 1 else f"one of {', '.join(words[:12])}"


def path(*steps: str | int) -> str:
    """A place as people write it: tools[3].name."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{one_line(step, 40)}" for step in steps)
    return text.removeprefix(".")
