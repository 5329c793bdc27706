"""Reading a JSON Schema that came over the wire: its dialect, what is wrong with it, what it refers to, how big it is.

The walk knows which keyword holds a schema, a list or a map of them, and what else each keyword's value must be, per dialect
(the meta-schemas say the same, at a hundred times the cost). It makes a copy that is safe to evaluate: without `$schema` (which
would change the evaluator in the middle of a schema), without boolean `false` (spelled as `not`), with references that lead out
of the document marked as such. Nothing is ever fetched. Spec: 2026-07-28 basic/index#json-schema-usage, JSON Schema 2020-12.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin

from mcp_wiretap.trace.schema.regex import size, unsupported
from mcp_wiretap.wire.jsonrpc import dumps, pointer
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_number

DIALECT = "https://json-schema.org/draft/2020-12/schema"  # where a schema names none
MOST_NODES = 5_000  # values in one schema: reading costs about 2 microseconds each
MOST_DEPTH = 64
MOST_TEXT = 64 << 10  # characters of one string in a schema that is compared with or matched against
MOST_FLAWS = 20
REMOTE = "$remote"  # our keyword in the copy: a reference that leads out of the document

type Steps = tuple[str | int, ...]


class Problem(NamedTuple):
    """One thing that is wrong: where below the value (or the schema), and what, in words."""

    path: Steps
    words: str


class TooBig(Exception):
    """Past a bound; says which."""


@dataclass(slots=True)
class Reading:
    """A schema as it was read. `copy` is None where it cannot be evaluated (`unchecked` says why)."""

    dialect: str
    copy: Any = None
    unchecked: str | None = None
    flaws: list[Problem] = field(default_factory=list)
    remote: list[Problem] = field(default_factory=list)  # references that lead out of the document (words: the URI)
    patterns: list[Problem] = field(default_factory=list)  # regular expressions that the linear engine cannot do
    nodes: int = 0  # all JSON values in it
    subschemas: int = 0
    depth: int = 0  # of nested subschemas
    unevaluated_patterns: bool = False  # patternProperties beside unevaluated*: the library matches those with `re`


def read(schema: Any, default: str = DIALECT) -> Reading:
    """Read a schema. `default` is the dialect where it names none."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    uri = named if isinstance(named, str) else default
    dialect = canonical_dialect(uri)
    reading = Reading(dialect or uri)
    if dialect is None:
        reading.unchecked = f"the dialect {_short(uri)} is not known"
        return reading
    walk = _Walk(reading, KEYWORDS[dialect], dialect)
    try:
        copy = walk.schema(schema, (), "", 0)
        walk.resolve_references()
    except TooBig as bound:
        reading.unchecked = str(bound)
        return reading
    except (ValueError, RecursionError) as error:  # urljoin on a hostile $id
        reading.unchecked = f"the schema could not be read: {_short(str(error))}"
        return reading
    reading.unevaluated_patterns = "patternProperties" in walk.used and not walk.used.isdisjoint(_UNEVALUATED)
    if reading.flaws:
        flaw = reading.flaws[0]
        reading.unchecked = f"the schema is not valid: {words_of(flaw)}"
    else:
        reading.copy = copy
    return reading


def canonical_dialect(uri: str) -> str | None:
    """The dialect a `$schema` URI means; None where it is not one that can be evaluated. http and https, with and without the
    empty fragment, are taken for the same."""
    key = uri.removesuffix("#")
    key = key.replace("http://", "https://", 1) if key.startswith("http://") else key
    return _DIALECTS.get(key)


def words_of(problem: Problem) -> str:
    """A problem with its place: `/properties/age/type is "strin", which is no JSON type`, `/options/unit is missing`."""
    if problem.words.endswith(" is missing"):  # told at the object that lacks it
        return f"{pointer(*problem.path)}/{problem.words}"
    return f"{pointer(*problem.path) or 'the root'} {problem.words}"


_DIALECTS = {
    f"https://json-schema.org/draft{name}/schema": f"{scheme}://json-schema.org/draft{name}/schema"
    for scheme, name in (
        ("http", "-04"),
        ("http", "-06"),
        ("http", "-07"),
        ("https", "/2019-09"),
        ("https", "/2020-12"),
    )
}
DRAFT4, DRAFT6, DRAFT7, DRAFT2019, DRAFT2020 = _DIALECTS.values()
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_OLD = frozenset({DRAFT4, DRAFT6, DRAFT7})  # the siblings of $ref are ignored
_JSON_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


# What the value of a keyword must be: None is right, text says what is wrong.


def _string(value: Any) -> str | None:
    return None if isinstance(value, str) else "is not a string"


def _bool(value: Any) -> str | None:
    return None if isinstance(value, bool) else "is not true or false"


def _number(value: Any) -> str | None:
    return None if is_number(value) else "is not a number"


def _positive(value: Any) -> str | None:
    return None if is_number(value) and value > 0 else "is not a number above 0"


def _count(value: Any) -> str | None:
    return None if is_number(value) and 0 <= value < 1e300 and value == int(value) else "is not an integer of 0 or more"


def _array(value: Any) -> str | None:
    return None if isinstance(value, list) else "is not an array"


def _filled_array(value: Any) -> str | None:
    return _array(value) or (None if value else "is empty")


def _strings(value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        return "is not an array of strings"
    return None if len(set(value)) == len(value) else "names something twice"


def _filled_strings(value: Any) -> str | None:
    return _strings(value) or (None if value else "is empty")


def _string_lists(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "is not an object"
    return next((f"has {_short(k)}, which {p}" for k, v in value.items() if (p := _strings(v))), None)


def _type(value: Any) -> str | None:
    for name in value if isinstance(value, list) else (value,):
        if not isinstance(name, str) or name not in _JSON_TYPES:
            return f"is {_short(dumps(value, most=60))}, which is no JSON type"
    if isinstance(value, list) and (not value or len(set(value)) != len(value)):
        return "is empty" if not value else "names a type twice"
    return None


def _anything(value: Any) -> str | None:
    return None


type Check = Callable[[Any], str | None]

_LEAVES: dict[str, Check] = {
    "$comment": _string,
    "$id": _string,
    "$ref": _string,
    "contentEncoding": _string,
    "contentMediaType": _string,
    "const": _anything,
    "default": _anything,
    "description": _string,
    "enum": _array,
    "examples": _array,
    "exclusiveMaximum": _number,
    "exclusiveMinimum": _number,
    "format": _string,
    "maxItems": _count,
    "maxLength": _count,
    "maxProperties": _count,
    "maximum": _number,
    "minItems": _count,
    "minLength": _count,
    "minProperties": _count,
    "minimum": _number,
    "multipleOf": _positive,
    "pattern": _string,
    "readOnly": _bool,
    "required": _strings,
    "title": _string,
    "type": _type,
    "uniqueItems": _bool,
    "writeOnly": _bool,
}
_LEAVES_2019: dict[str, Check] = {
    "$anchor": _string,
    "$recursiveRef": _string,
    "$recursiveAnchor": _bool,
    "dependentRequired": _string_lists,
    "deprecated": _bool,
    "maxContains": _count,
    "minContains": _count,
}
_SCHEMA, _LIST, _MAP, _EITHER, _DEPENDENCIES = "schema", "list", "map", "either", "dependencies"
_SHAPES: dict[str, str] = {
    "additionalProperties": _SCHEMA,
    "allOf": _LIST,
    "anyOf": _LIST,
    "definitions": _MAP,
    "not": _SCHEMA,
    "oneOf": _LIST,
    "patternProperties": _MAP,
    "properties": _MAP,
    "dependencies": _DEPENDENCIES,
}
_SHAPES_6 = _SHAPES | {"additionalItems": _SCHEMA, "contains": _SCHEMA, "items": _EITHER, "propertyNames": _SCHEMA}
_SHAPES_7 = _SHAPES_6 | {"else": _SCHEMA, "if": _SCHEMA, "then": _SCHEMA}
_SHAPES_2019 = _SHAPES_7 | {
    "$defs": _MAP,
    "contentSchema": _SCHEMA,
    "dependentSchemas": _MAP,
    "unevaluatedItems": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
}
_SHAPES_2020 = {k: v for k, v in _SHAPES_2019.items() if k != "additionalItems"} | {"items": _SCHEMA, "prefixItems": _LIST}

KEYWORDS: Mapping[str, Mapping[str, Check | str]] = {
    DRAFT4: {k: v for k, v in _LEAVES.items() if k not in ("$id", "const", "examples", "readOnly", "writeOnly")}
    | {"id": _string, "exclusiveMaximum": _bool, "exclusiveMinimum": _bool, "enum": _filled_array, "required": _filled_strings}
    | _SHAPES
    | {"additionalItems": _SCHEMA, "items": _EITHER},
    DRAFT6: {**_LEAVES, **_SHAPES_6},
    DRAFT7: {**_LEAVES, **_SHAPES_7},
    DRAFT2019: {**_LEAVES, **_LEAVES_2019, **_SHAPES_2019},
    DRAFT2020: {**_LEAVES, **_LEAVES_2019, "$dynamicRef": _string, "$dynamicAnchor": _string, **_SHAPES_2020},
}


class _Walk:
    """One reading of one schema."""

    def __init__(self, reading: Reading, keywords: Mapping[str, Check | str], dialect: str) -> None:
        self._reading, self._keywords, self._dialect = reading, keywords, dialect
        self._id = "id" if dialect == DRAFT4 else "$id"
        self.used: set[str] = set()  # keywords
        self._ids: set[str] = set()
        self._references: list[tuple[dict[str, Any], str, str, Steps]] = []  # (copy, keyword, absolute URI, path)

    def schema(self, schema: Any, path: Steps, base: str, depth: int) -> Any:
        """The safe copy of one (sub)schema."""
        self._count(1)
        if depth > MOST_DEPTH:
            raise TooBig(f"the schema nests deeper than {MOST_DEPTH}")
        reading = self._reading
        reading.subschemas += 1
        reading.depth = max(reading.depth, depth)
        if isinstance(schema, bool) and self._dialect != DRAFT4:
            return True if schema else {"not": {}}
        if not isinstance(schema, dict):
            self._flaw(path, f"is {kind_of(schema)}, not a schema")
            return True
        named = schema.get("$schema")
        if path and isinstance(named, str) and canonical_dialect(named) != self._dialect:
            raise TooBig(f"the subschema at {pointer(*path)} has a dialect of its own")
        base = self._base(schema, path, base)
        copy: dict[str, Any] = {}
        self.used.update(schema)
        for keyword, value in schema.items():
            if keyword == "$schema":
                continue
            kind = self._keywords.get(keyword)
            if kind is None:
                copy[keyword] = self._unknown(value, depth + 1)
            elif isinstance(kind, str):
                copy[keyword] = self._nested(kind, value, (*path, keyword), base, depth + 1)
            else:
                copy[keyword] = self._leaf(keyword, kind, value, (*path, keyword))
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := copy.get(keyword), str) and not reference.startswith("#"):
                self._references.append((copy, keyword, urljoin(base, reference), (*path, keyword)))
        return copy

    def resolve_references(self) -> None:
        """A reference is local when the document it names is in this one: by its $id, wherever that stands."""
        for copy, keyword, uri, path in self._references:
            if urldefrag(uri)[0] in self._ids:
                continue
            self._reading.remote.append(Problem(path, uri))
            if keyword == "$ref" and self._dialect in _OLD:
                copy.clear()
            else:
                del copy[keyword]
            copy[REMOTE] = uri

    def _base(self, schema: dict[str, Any], path: Steps, base: str) -> str:
        own = schema.get(self._id)
        if isinstance(own, str) and not own.startswith("#") and not ("$ref" in schema and self._dialect in _OLD):
            base = urldefrag(urljoin(base, own))[0]
            if "json-schema.org" in base:  # the registry knows those by heart
                raise TooBig(f"the schema at {pointer(*path) or 'the root'} takes the name of a meta-schema")
            self._ids.add(base)
        elif not path:
            self._ids.add("")
        return base

    def _nested(self, kind: str, value: Any, path: Steps, base: str, depth: int) -> Any:
        if kind == _SCHEMA or (kind == _EITHER and not isinstance(value, list)):
            if isinstance(value, bool) and self._dialect == DRAFT4:
                return value  # additionalProperties, additionalItems
            return self.schema(value, path, base, depth)
        if kind in (_LIST, _EITHER):
            if not isinstance(value, list) or (not value and kind == _LIST):
                self._flaw(path, "is not an array of schemas" if not isinstance(value, list) else "is empty")
                return [{}]
            self._count(1)
            return [self.schema(each, (*path, i), base, depth) for i, each in enumerate(value)]
        if not isinstance(value, dict):
            self._flaw(path, f"is {kind_of(value)}, not an object of schemas")
            return {}
        self._count(1)
        if path[-1] == "patternProperties":
            for pattern in value:
                self._pattern(pattern, path)
        if kind == _DEPENDENCIES:
            return {k: self._dependency(v, (*path, k), base, depth) for k, v in value.items()}
        return {k: self.schema(v, (*path, k), base, depth) for k, v in value.items()}

    def _dependency(self, value: Any, path: Steps, base: str, depth: int) -> Any:
        if not isinstance(value, list):
            return self.schema(value, path, base, depth)
        self._count(1 + len(value))
        if problem := _strings(value):
            self._flaw(path, problem)
        return value

    def _leaf(self, keyword: str, check: Check, value: Any, path: Steps) -> Any:
        self._count(1)
        if problem := check(value):
            self._flaw(path, problem)
        elif keyword == "pattern":
            self._pattern(value, path)
        elif isinstance(value, (list, dict)):
            self._measure(value, 0)
        return value

    def _pattern(self, pattern: str, path: Steps) -> None:
        self._count(8 + size(pattern) // 5)  # compiling takes its time
        if problem := unsupported(pattern):
            self._reading.patterns.append(Problem(path, problem))

    def _unknown(self, value: Any, depth: int) -> Any:
        """The value of a keyword we do not know. A reference may lead into it, so it is made safe as well."""
        self._count(1)
        if depth > MOST_DEPTH:
            raise TooBig(f"the schema nests deeper than {MOST_DEPTH}")
        if isinstance(value, dict):
            return {k: self._unknown(v, depth + 1) for k, v in value.items() if k != "$schema"}
        if isinstance(value, list):
            return [self._unknown(v, depth + 1) for v in value]
        return value

    def _measure(self, value: Any, depth: int) -> None:
        """Bound an enum, const, default or example."""
        self._count(1)
        if depth > MOST_DEPTH:
            raise TooBig(f"the schema nests deeper than {MOST_DEPTH}")
        if isinstance(value, dict):
            for each in value.values():
                self._measure(each, depth + 1)
        elif isinstance(value, list):
            for each in value:
                self._measure(each, depth + 1)
        elif isinstance(value, str) and len(value) > MOST_TEXT:
            raise TooBig(f"the schema has a text of {len(value)} characters")

    def _count(self, number: int) -> None:
        self._reading.nodes += number
        if self._reading.nodes > MOST_NODES:
            raise TooBig(f"the schema has more than {MOST_NODES} values")

    def _flaw(self, path: Steps, words: str) -> None:
        if len(self._reading.flaws) < MOST_FLAWS:
            self._reading.flaws.append(Problem(path, words))


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, dict):
        return "an object"
    return "an integer" if isinstance(value, int | Decimal) else "a number"


def _short(text: str) -> str:
    return one_line(text, 60)
