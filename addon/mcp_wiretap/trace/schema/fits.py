"""Whether a value fits a JSON Schema that came over the wire: tool arguments, structured content, answers to an elicitation.

Schemas and values are the other side's choice, so nothing is fetched, nothing runs without a bound (steps, depth, size; never
time), and what cannot be decided within is `unchecked` with the reason. One instance serves one event loop.

    >>> check({"type": "object", "properties": {"age": {"type": "integer"}}}, {"age": "four"}).words
    '/age is a string, not an integer'

Spec: 2026-07-28 basic/index#json-schema-usage.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import isinf
from typing import Any

import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from mcp_wiretap.trace.schema import plain
from mcp_wiretap.trace.schema.keywords import Budget, evaluators
from mcp_wiretap.trace.schema.reading import (
    DIALECT,
    DRAFT4,
    DRAFT6,
    DRAFT7,
    DRAFT2019,
    DRAFT2020,
    MOST_DEPTH,
    MOST_NODES,
    Problem,
    Reading,
    Steps,
    TooBig,
    kind_of,
    read,
    words_of,
)
from mcp_wiretap.trace.schema.regex import Undecided
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.pace import breathe
from mcp_wiretap.wire.secret import one_line

__all__ = [
    "DIALECT",
    "MOST_DEPTH",
    "MOST_NODES",
    "Problem",
    "Reading",
    "SchemaVerdict",
    "check",
    "kind_of",
    "reading_of",
    "words_of",
]

MOST_VALUES = 20_000  # values inside the one that is checked; looking at each costs 0.2 microseconds
MOST_TEXT = 1 << 20  # characters of it
MOST_VALUE_DEPTH = 60
MOST_PROBLEMS = 20
MOST_DIGITS = 400  # of an integer: arithmetic on longer ones is not linear
KEPT = 8_192  # schemas remembered: more than the tools of one long list, which are all looked at twice
NODES = 200_000  # and their parts in all, some 100 bytes each
KEPT_OBJECTS = 512  # schemas that are known without looking into them


@dataclass(slots=True, frozen=True)
class SchemaVerdict:
    """`problems` hold whatever `unchecked` says; both empty: the value fits."""

    problems: tuple[Problem, ...] = ()
    unchecked: str | None = None

    @property
    def fits(self) -> bool:
        return not self.problems and self.unchecked is None

    @property
    def words(self) -> str:
        """The first problem in words: `/age is a string, not an integer`."""
        return words_of(self.problems[0]) if self.problems else ""


_YES = SchemaVerdict()


def check(schema: Any, value: Any, default: str = DIALECT) -> SchemaVerdict:
    """Check a value. `default` is the dialect of a schema that names none."""
    return _CHECKER.check(schema, value, default)


def reading_of(schema: Any, default: str = DIALECT) -> Reading:
    """What the schema itself is like: its flaws (rule TOO004), references that lead outside (TOO005), size (TOO006)."""
    return _CHECKER.entry(schema, default).reading


@dataclass(slots=True)
class _Entry:
    reading: Reading
    validator: Any = None  # None: it cannot be evaluated, or was not made yet
    made: bool = False
    yes: plain.Yes | None = None  # believed where it says yes; None where the schema is not plain, or was not called for yet
    yes_made: bool = False


class _Checker:
    def __init__(self) -> None:
        self._budget = Budget()
        self._evaluators = evaluators(self._budget)
        # The schema is held, so that its identity stays its own.
        self._by_identity: OrderedDict[int, tuple[Any, str, _Entry]] = OrderedDict()
        self._by_content: OrderedDict[tuple[bytes, str], _Entry] = OrderedDict()
        self._nodes = 0

    def check(self, schema: Any, value: Any, default: str) -> SchemaVerdict:
        entry = self.entry(schema, default)
        if not entry.yes_made:
            entry.yes, entry.yes_made = self._plain_yes(entry.reading), True
        if entry.yes is not None and entry.yes(value):
            return _YES
        self._make(entry)
        if entry.validator is None:
            return SchemaVerdict(unchecked=entry.reading.unchecked or "the schema cannot be evaluated")
        sizes: dict[int, int] = {}
        measure = _Measure(sizes)
        problems: list[Problem] = []
        try:
            measure.size(value, 0)
            large = measure.values > 64 or measure.characters > 1_000
            self._budget.start(sizes if large else {}, entry.reading.nodes, not entry.reading.unevaluated_patterns)
            for error in entry.validator.iter_errors(value):
                problems += (p for p in _problems(error) if p not in problems)
                if len(problems) >= MOST_PROBLEMS:
                    break
        except (TooBig, Undecided) as why:
            return SchemaVerdict(tuple(problems), str(why))
        except referencing.exceptions.Unresolvable as error:
            return SchemaVerdict(tuple(problems), f"its reference {error.ref} leads nowhere")
        except RecursionError:
            return SchemaVerdict(tuple(problems), "the schema refers to itself without end")
        except Exception as error:  # the library's own limits: numbers past float, references to nowhere
            return SchemaVerdict(tuple(problems), f"{type(error).__name__}: {str(error)[:120]}")
        return SchemaVerdict(tuple(problems[:MOST_PROBLEMS]), self._budget.gap)

    def entry(self, schema: Any, default: str) -> _Entry:
        """Read once per schema: the same object, else the same content."""
        seen = self._by_identity.get(id(schema))
        if seen is not None and seen[0] is schema and seen[1] == default:
            self._by_identity.move_to_end(id(schema))
            return seen[2]
        text = _text(schema)
        key = (hashlib.sha256(text).digest(), default) if text else None
        entry = self._by_content.get(key) if key is not None else None
        if entry is None:
            breathe()
            entry = _Entry(read(schema, default))
            if not text or _NAMES.search(text):
                self._make(entry)  # it may leave a note on the reading, which who reads the schema must see
            if key is not None:
                self._by_content[key] = entry
                self._nodes += entry.reading.nodes
        elif key is not None:
            self._by_content.move_to_end(key)
        self._by_identity[id(schema)] = (schema, default, entry)
        self._shrink()
        return entry

    def _make(self, entry: _Entry) -> None:
        """Make its validator, the dear part: of a long list, few tools are ever called."""
        if not entry.made:
            entry.validator, entry.made = self._validator(entry.reading), True

    @staticmethod
    def _plain_yes(reading: Reading) -> plain.Yes | None:
        return plain.yes(reading.copy, reading.nodes, reading.depth) if reading.copy is not None else None

    def _shrink(self) -> None:
        while len(self._by_content) > KEPT or (self._nodes > NODES and len(self._by_content) > 1):
            _, gone = self._by_content.popitem(last=False)
            self._nodes -= gone.reading.nodes
        while len(self._by_identity) > max(KEPT_OBJECTS, len(self._by_content)):
            self._by_identity.popitem(last=False)

    def _validator(self, reading: Reading) -> Any:
        if reading.copy is None:
            return None
        specification = _SPECIFICATIONS[reading.dialect]
        root = specification.create_resource(reading.copy)
        try:
            registry: Any = referencing.Registry().with_resource("", root)
            if (name := root.id()) is not None:
                registry = registry.with_resource(name, root)
            return self._evaluators[reading.dialect](reading.copy, registry=registry.crawl())
        except Exception as error:  # two resources of one name, an anchor that is no string ...
            reading.unchecked = f"its references cannot be resolved: {type(error).__name__}"
            return None


_NAMES = re.compile(rb'"(?:\$[a-zA-Z]+|id)": ')  # names and references, and members that look like them


def _text(schema: Any) -> bytes:
    """Equal for equal content and order; empty where the schema is too odd to be written down."""
    try:
        return json.dumps(schema, ensure_ascii=True, default=str).encode()
    except (ValueError, TypeError, RecursionError):
        return b""


class _Measure:
    """The size of a value, and whether it is within the bounds."""

    def __init__(self, sizes: dict[int, int]) -> None:
        self._sizes = sizes
        self.values = self.characters = 0

    def size(self, value: Any, depth: int) -> int:
        self.values += 1
        if isinstance(value, str):
            size = len(value)
            self.characters += size
        elif isinstance(value, dict):
            size = 2 + sum(len(k) + self.size(v, depth + 1) for k, v in value.items())
            self._sizes[id(value)] = size
        elif isinstance(value, list):
            size = 2 + sum(self.size(v, depth + 1) for v in value)
            self._sizes[id(value)] = size
        else:
            if _is_huge(value):
                raise TooBig(f"it has a number of more than {MOST_DIGITS} digits")
            size = 8
        if depth > MOST_VALUE_DEPTH:
            raise TooBig(f"the value nests deeper than {MOST_VALUE_DEPTH}")
        if self.values > MOST_VALUES or size > MOST_TEXT:
            raise TooBig(f"the value has more than {MOST_VALUES} parts or {MOST_TEXT} characters")
        return size


def _is_huge(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() > MOST_DIGITS * 4
    return (isinstance(value, float) and isinf(value)) or (isinstance(value, Decimal) and value != 0)


_SPECIFICATIONS: dict[str, Any] = {
    DRAFT4: referencing.jsonschema.DRAFT4,
    DRAFT6: referencing.jsonschema.DRAFT6,
    DRAFT7: referencing.jsonschema.DRAFT7,
    DRAFT2019: referencing.jsonschema.DRAFT201909,
    DRAFT2020: referencing.jsonschema.DRAFT202012,
}


# From the library's errors to words


def _problems(error: ValidationError) -> Iterator[Problem]:
    """The innermost things that are wrong: of alternatives, those of the one that was meant, where that is plain."""
    if error.validator in ("anyOf", "oneOf") and error.context:
        meant = _meant(error)
        if meant is not None:
            for inner in meant:
                yield from _problems(inner)
            return
    yield Problem(_path(error), _words(error))


def _path(error: ValidationError) -> Steps:
    return tuple(error.absolute_path)


def _meant(error: ValidationError) -> list[ValidationError] | None:
    """The errors of the only alternative whose type (or tag) fits the value; None where several could be meant."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    near = [errors for errors in branches.values() if not any(_is_off(error, e) for e in errors)]
    if len(near) == 1:
        return near[0]
    if len(branches) == 1:
        return next(iter(branches.values()))
    best = best_match([error])
    return None if best is error or not near else [best]


def _is_off(error: ValidationError, inner: ValidationError) -> bool:
    """The value is not of the alternative's type, or a member that tells alternatives apart (const, enum of one) says
    another."""
    depth = len(inner.relative_path)
    if inner.validator == "type":
        return depth == 0
    wanted: Any = inner.validator_value
    return depth <= 1 and (inner.validator == "const" or (inner.validator == "enum" and len(wanted) == 1))


def _words(error: ValidationError) -> str:
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    value: Any = error.instance
    match keyword:
        case "type":
            return f"is {kind_of(value)}, not {_types(wanted)}"
        case "required":
            return f"{error.message}"
        case "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "additionalItems" | "items":
            return "is not allowed by the schema" if keyword == "additionalProperties" else "holds more than the schema allows"
        case "enum":
            return f"is {_shown(value)}, not one of {_list(wanted)}"
        case "const":
            return f"is {_shown(value)}, not {_shown(wanted)}"
        case "anyOf" | "oneOf":
            if not error.context:
                return f"is {_shown(value)}, which fits more than one of the alternatives"
            kinds = [e.validator_value for e in error.context if e.validator == "type" and not e.relative_path]
            if len(kinds) == len({e.relative_schema_path[0] for e in error.context}):
                return f"is {kind_of(value)}, not {_types([t for k in kinds for t in (k if isinstance(k, list) else [k])])}"
            return f"is {_shown(value)}, which fits none of the alternatives"
        case "pattern":
            return f"is {_shown(value)}, which does not match {_cut(wanted)}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf":
            return f"is {_shown(value)}, {_LIMITS[keyword]} {_shown(wanted)}"
        case "minLength" | "maxLength":
            return f"has {len(value)} characters, {_LIMITS[keyword]} {_shown(wanted)}"
        case "minItems" | "maxItems" | "minProperties" | "maxProperties":
            return f"has {len(value)} {'items' if keyword.endswith('Items') else 'members'}, {_LIMITS[keyword]} {_shown(wanted)}"
        case "uniqueItems":
            return f"repeats an item: {error.message}"
        case "not":
            return "is not allowed by the schema"
        case "contains" | "minContains" | "maxContains":
            return f"has too {'many' if keyword == 'maxContains' else 'few'} items of the kind that the schema asks for"
        case "dependentRequired" | "dependencies":
            return f"lacks a member that another one calls for: {_cut(error.message)}"
    return f"breaks {keyword}"


_LIMITS = {
    "minimum": "less than",
    "maximum": "more than",
    "exclusiveMinimum": "not more than",
    "exclusiveMaximum": "not less than",
    "multipleOf": "not a multiple of",
    "minLength": "fewer than",
    "maxLength": "more than",
    "minItems": "fewer than",
    "maxItems": "more than",
    "minProperties": "fewer than",
    "maxProperties": "more than",
}


def _types(wanted: Any) -> str:
    names = list(dict.fromkeys(wanted if isinstance(wanted, list) else [wanted]))
    spelled = [n if n == "null" else f"{'an' if n[0] in 'aio' else 'a'} {n}" for n in map(str, names)]
    return spelled[0] if len(spelled) == 1 else f"{', '.join(spelled[:-1])} or {spelled[-1]}"


def _list(values: Any) -> str:
    shown = [_shown(v) for v in values[:6]]
    return ", ".join(shown) + (f" and {len(values) - 6} more" if len(values) > 6 else "")


def _shown(value: Any) -> str:
    """A value in a message: short, and large ones by their kind only."""
    if isinstance(value, str):
        return f'"{_cut(value)}"'
    return kind_of(value) if isinstance(value, dict | list) else _cut(dumps(value, most=60))


def _cut(text: str) -> str:
    return one_line(text, 40)


_CHECKER = _Checker()
