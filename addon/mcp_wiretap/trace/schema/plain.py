"""A quick yes for plain schemas: a function that tells of most values that fit that they do.

Only a yes is believed: it means that the evaluator of `fits` finds no problem and leaves nothing unchecked. Whatever is not
plain - references, patterns, `not`, numbers of odd kinds - is no yes, and goes the long way. Keywords that say the same in every
dialect are known here, and small values only: then a yes is also within the budget of steps (`keywords`).
"""

from collections.abc import Callable
from math import isfinite
from typing import Any

from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator

type Yes = Callable[[Any], bool]

MOST_NODES = 500  # values in a schema
MOST_DEPTH = 25  # of subschemas in one another
MOST_VALUES = 60  # in the value that is checked, and so its depth
MOST_CHARACTERS = 1_000  # of it
_MOST_PAIRS = 2_300  # values times nodes of a schema with alternatives: each pair costs two steps at most, of 5,000
_LONGEST_NUMBER = 1_600  # bits

_SIMPLE: dict[str, Yes] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) is int or type(value) is float,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}
_PLAIN = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "format"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
    }
)
_KEYWORDS: frozenset[str] = frozenset().union(
    *(
        library.VALIDATORS
        for library in (Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator)
    )
)
_NOTHING: dict[str, Any] = {"not": {}}  # how `false` is spelled in a schema that was read
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


class _NotPlain(Exception):
    pass


def yes(schema: Any, nodes: int, depth: int) -> Yes | None:
    """What says yes to values that fit a schema (as `reading` copied it); None for a schema that is not plain."""
    if nodes > MOST_NODES or depth > MOST_DEPTH:
        return None
    made = _Maker()
    try:
        fits = made.fits(schema)
    except _NotPlain:
        return None
    most = min(MOST_VALUES, _MOST_PAIRS // max(nodes, 1)) if made.alternatives else MOST_VALUES
    return lambda value: _is_small(value, most) and fits(value)


def _is_small(value: Any, most: int) -> bool:
    """Whether a value has few parts, all of the usual kinds."""
    waiting, count, characters = [value], 0, 0
    while waiting:
        current = waiting.pop()
        count += 1
        kind = type(current)
        if kind is str:
            characters += len(current)
        elif kind is dict:
            for name in current:
                characters += len(name)
            waiting.extend(current.values())
        elif kind is list:
            waiting.extend(current)
        elif kind is int:
            if current.bit_length() > _LONGEST_NUMBER:
                return False
        elif kind is float:
            if not isfinite(current):
                return False
        elif kind is not bool and current is not None:
            return False
        if count + len(waiting) > most or characters > MOST_CHARACTERS:
            return False
    return True


class _Maker:
    def __init__(self) -> None:
        self.alternatives = False

    def fits(self, schema: Any) -> Yes:
        if schema is True:
            return _anything
        if not isinstance(schema, dict):
            raise _NotPlain
        for keyword in schema:
            if keyword not in _PLAIN and (keyword in _KEYWORDS or keyword[:1] == "$" or keyword == "id"):
                raise _NotPlain
        tests = [*self._values(schema), *self._type(schema), *self._bounds(schema)]
        if "properties" in schema or "required" in schema or "additionalProperties" in schema:
            tests.append(self._object(schema))
        if "items" in schema:
            item = self.fits(schema["items"])
            tests.append(lambda value: type(value) is not list or all(map(item, value)))
        if "anyOf" in schema:
            self.alternatives = True
            tests.append(_any_of([self.fits(one) for one in schema["anyOf"]]))
        return _all_of(tests)

    def _type(self, schema: dict[str, Any]) -> list[Yes]:
        wanted = schema.get("type", ())
        kinds = [wanted] if isinstance(wanted, str) else list(wanted)
        if not kinds:
            return []
        if len(kinds) > 1:
            return [_any_of([self._type({"type": kind})[0] for kind in kinds])]
        if kinds[0] == "object":
            return [] if "properties" in schema or "required" in schema else [lambda value: type(value) is dict]
        if kinds[0] == "array":
            return [lambda value: type(value) is list]
        if kinds[0] not in _SIMPLE:
            raise _NotPlain
        return [_SIMPLE[kinds[0]]]

    def _values(self, schema: dict[str, Any]) -> list[Yes]:
        """enum and const: a yes for texts only. 1 and true are not the same there."""
        tests: list[Yes] = []
        if "enum" in schema:
            allowed = {one for one in schema["enum"] if type(one) is str}
            tests.append(lambda value: type(value) is str and value in allowed)
        if "const" in schema:
            wanted = schema["const"]
            tests.append(lambda value: type(value) is str and value == wanted)
        return tests

    def _bounds(self, schema: dict[str, Any]) -> list[Yes]:
        """A yes for what is of the kind that the keyword speaks of."""
        tests: list[Yes] = []
        for keyword in _BOUNDS:
            if keyword not in schema:
                continue
            bound = schema[keyword]
            if type(bound) is not int and type(bound) is not float:
                raise _NotPlain
            tests.append(_bound(keyword, bound))
        return tests

    def _object(self, schema: dict[str, Any]) -> Yes:
        members = {name: self.fits(inner) for name, inner in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        others = schema.get("additionalProperties", True)
        other = None if others is False or others == _NOTHING else self.fits(others)
        only = schema.get("type") == "object"

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return not only and (value is None or type(value) in (str, int, float, bool, list))
            if not required <= value.keys():
                return False
            for name, inner in value.items():
                test = members.get(name, other)
                if test is None or not test(inner):
                    return False
            return True

        return fits


def _anything(value: Any) -> bool:
    return True


def _bound(keyword: str, bound: float) -> Yes:
    match keyword:
        case "minimum":
            return lambda value: (type(value) is int or type(value) is float) and value >= bound
        case "maximum":
            return lambda value: (type(value) is int or type(value) is float) and value <= bound
        case "minLength":
            return lambda value: type(value) is str and len(value) >= bound
        case "maxLength":
            return lambda value: type(value) is str and len(value) <= bound
        case "minItems":
            return lambda value: type(value) is list and len(value) >= bound
        case _:
            return lambda value: type(value) is list and len(value) <= bound


def _any_of(tests: list[Yes]) -> Yes:
    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - the quicker way
            if test(value):
                return True
        return False

    return fits


def _all_of(tests: list[Yes]) -> Yes:
    if not tests:
        return _anything
    if len(tests) == 1:
        return tests[0]

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - the quicker way
            if not test(value):
                return False
        return True

    return fits
