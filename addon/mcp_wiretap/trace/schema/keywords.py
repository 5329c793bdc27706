"""Evaluators of JSON Schema that count what they do: jsonschema's, with every keyword weighed against a budget of steps.

Steps, never wall time, so that live traffic and its recording get the same answer. A step is about 3 microseconds. Keywords whose
cost grows with the size of the value or of the schema spend by that size; those that the library does with `re`, or in
quadratic time, are ours.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
    ValidationError,
)
from jsonschema.validators import extend

from mcp_wiretap.trace.schema.reading import DRAFT4, DRAFT6, DRAFT7, DRAFT2019, DRAFT2020, REMOTE, kind_of
from mcp_wiretap.trace.schema.regex import Undecided, matches, size

MOST_STEPS = 5_000
MOST_DEPTH = 60  # keywords inside one another: four frames of Python's stack each
MOST_UNEVALUATED = 200  # members or items where unevaluatedProperties or -Items is used: the library is quadratic there
_CHARACTERS = 256  # of a value, that cost a step when a message may have to spell it out
_REGEX = 1_500  # instructions times characters of a match, that cost a step
_MEMBERS = 16  # of an array or object in a schema, that cost a step

_extend: Callable[..., Any] = extend  # which its stubs leave untyped

type Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class Budget:
    """What one evaluation may still spend, and what it could not decide."""

    def __init__(self) -> None:
        self.start({}, 0, True)

    def start(self, sizes: dict[int, int], nodes: int, unevaluated: bool) -> None:
        """`sizes`: characters of the larger arrays and objects of the value by identity; `nodes`: values in the schema;
        `unevaluated`: whether unevaluated* may be evaluated."""
        self.left, self.depth, self.guarded = MOST_STEPS, 0, 0
        self.sizes, self.nodes, self.unevaluated = sizes, nodes, unevaluated
        self.gap: str | None = None

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            self.stop()

    def stop(self) -> NoReturn:
        if self.left < 0:
            raise Undecided(f"checking it takes more than {MOST_STEPS} steps")
        raise Undecided(f"its keywords nest deeper than {MOST_DEPTH}")

    def undecided(self, why: str) -> None:
        """A keyword that cannot be decided passes, and is told. Where passing could make something else fail, all is open."""
        self.gap = self.gap or why
        if self.guarded:
            raise Undecided(why)


# Inside these, a keyword that passes may make the whole fail.
_GUARDED = frozenset({"not", "oneOf", "if", "contains", "unevaluatedProperties", "unevaluatedItems"})
_BY_SCHEMA = frozenset({"$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"})
_BY_ITEMS = frozenset(
    {"items", "additionalItems", "contains", "properties", "propertyNames", "additionalProperties", "patternProperties"}
)
_APPLIES = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})  # each member makes an evaluator
_SPELLED = frozenset({"enum", "const"})


def _counted(budget: Budget, name: str, keyword: Keyword) -> Keyword:
    """The keyword, weighed. Evaluated at once, so that the depth is true."""
    guarded, by_items, spelled = name in _GUARDED, name in _BY_ITEMS, name in _SPELLED
    applies = name in _APPLIES
    by_schema, basic = name in _BY_SCHEMA, 8 if name == "$ref" else 1

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
        cost = basic
        kind = type(value)
        if kind is dict or kind is list:
            cost += len(value) // (2 if applies else _MEMBERS)
            if spelled:
                cost += len(repr(value)) // _CHARACTERS
        kind = type(instance)
        if kind is dict or kind is list:
            if budget.sizes:
                cost += budget.sizes.get(id(instance), 0) // _CHARACTERS
            if by_items:
                cost += len(instance) // 2
        elif kind is str:
            cost += len(instance) // _CHARACTERS
        if by_schema:
            cost += budget.nodes // _MEMBERS
        budget.left -= cost
        if budget.left < 0 or budget.depth >= MOST_DEPTH:
            budget.stop()
        budget.depth += 1
        budget.guarded += guarded
        try:
            return list(keyword(validator, value, instance, schema) or ())
        finally:
            budget.depth -= 1
            budget.guarded -= guarded

    return check


def _error(words: str) -> ValidationError:
    return ValidationError(words)


def _matches(budget: Budget, pattern: str, text: str) -> bool | None:
    budget.spend(size(pattern) * len(text) // _REGEX)
    try:
        return matches(pattern, text)
    except Undecided as why:
        budget.undecided(str(why))
        return None


def _pattern(budget: Budget, validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _matches(budget, pattern, instance) is False:
        yield _error("pattern")


def _pattern_properties(budget: Budget, validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        budget.spend(len(instance) // 2)
        for key, value in instance.items():
            if _matches(budget, pattern, key):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional_properties(budget: Budget, validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [key for key in instance if key not in known]
    if patterns:
        budget.spend(len(extras) * len(patterns))
        extras = [key for key in extras if all(_matches(budget, p, key) is False for p in patterns)]
    if isinstance(allowed, dict) and allowed != {"not": {}}:
        for key in extras:
            yield from validator.descend(instance[key], allowed, path=key)
    elif allowed is not True:
        for key in extras:
            error = _error("unexpected")
            error.path.appendleft(key)
            yield error


def _required(budget: Budget, validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield _error(f"{name} is missing")


def _unique_items(budget: Budget, validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not unique or not isinstance(instance, list):
        return
    budget.spend(len(instance) // 2 + budget.sizes.get(id(instance), 0) // 64)
    seen: dict[Any, int] = {}
    for index, item in enumerate(instance):
        first = seen.setdefault(_key(item), index)
        if first != index:
            yield _error(f"items {first} and {index} are the same")
            return


def _key(value: Any) -> Any:
    """Equal for equal JSON values: 1 and 1.0 are, 1 and true are not, the order of members does not count."""
    if isinstance(value, dict):
        return "object", frozenset((k, _key(v)) for k, v in value.items())
    if isinstance(value, list):
        return "array", tuple(_key(v) for v in value)
    return kind_of(value) if isinstance(value, bool) else "", value


def _remote(budget: Budget, validator: Any, uri: Any, instance: Any, schema: Any) -> None:
    budget.undecided(f"it refers to {uri}, which is not fetched")


def _unevaluated(budget: Budget, name: str, keyword: Keyword) -> Keyword:
    """The library's, within what it does well: it is quadratic, and matches patterns with `re`."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        if value is True or not isinstance(instance, (dict if name == "unevaluatedProperties" else list)):
            return None
        if len(instance) > MOST_UNEVALUATED:
            raise Undecided(f"{name} over more than {MOST_UNEVALUATED} members")
        if not budget.unevaluated:
            raise Undecided(f"{name} beside patternProperties")
        return keyword(validator, value, instance, schema)

    return check


_OURS: dict[str, Callable[..., Iterator[ValidationError] | None]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "required": _required,
    "uniqueItems": _unique_items,
    REMOTE: _remote,
}
_LIBRARY: dict[str, Any] = {
    DRAFT4: Draft4Validator,
    DRAFT6: Draft6Validator,
    DRAFT7: Draft7Validator,
    DRAFT2019: Draft201909Validator,
    DRAFT2020: Draft202012Validator,
}


def evaluators(budget: Budget) -> dict[str, Any]:
    """The validator class of each dialect; all spend from this budget."""
    return {
        dialect: _extend(library, _keywords(budget, library), type_checker=_types(library))
        for dialect, library in _LIBRARY.items()
    }


def _types(library: Any) -> Any:
    """-0 is read as a Decimal; it is an integer all the same."""
    plain = library.TYPE_CHECKER

    def is_integer(checker: Any, value: Any) -> bool:
        return isinstance(value, Decimal) or plain.is_type(value, "integer")

    return plain.redefine("integer", is_integer)


def _keywords(budget: Budget, library: Any) -> dict[str, Any]:
    ours: dict[str, Keyword] = {name: partial(keyword, budget) for name, keyword in _OURS.items()}
    keywords: dict[str, Keyword] = {**library.VALIDATORS, **ours}
    keywords["format"] = lambda validator, value, instance, schema: None  # an annotation in every dialect MCP uses
    for name in ("unevaluatedProperties", "unevaluatedItems"):
        if name in keywords:
            keywords[name] = _unevaluated(budget, name, keywords[name])
    return {name: _counted(budget, name, keyword) for name, keyword in keywords.items() if name != "format"} | {
        "format": keywords["format"]
    }
