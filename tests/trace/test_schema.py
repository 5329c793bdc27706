"""Checking values against schemas from the wire: right, in words, and bounded whatever comes."""

import time
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_wiretap.trace.schema.fits import check, reading_of
from mcp_wiretap.trace.schema.reading import read, words_of
from mcp_wiretap.wire.jsonrpc import read_text

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
        "nick": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "level": {"enum": ["low", "high"]},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "home": {"type": "object", "required": ["city"]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def words(schema: Any, value: Any) -> list[str]:
    return [words_of(problem) for problem in check(schema, value).problems]


def test_a_value_that_fits_has_no_problems_and_nothing_unchecked() -> None:
    assert check(PERSON, {"name": "Ann", "age": 4, "nick": None, "level": "low", "tags": ["a"]}).fits


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"name": 1}, "/name is an integer, not a string"),
        ({}, "/name is missing"),
        ({"name": "A", "home": {}}, "/home/city is missing"),
        ([], "the root is an array, not an object"),
        ({"name": ""}, "/name has 0 characters, fewer than 1"),
        ({"name": "A", "age": -1}, "/age is -1, less than 0"),
        ({"name": "A", "nick": 4}, "/nick is an integer, not a string or null"),
        ({"name": "A", "level": "mid"}, '/level is "mid", not one of "low", "high"'),
        ({"name": "A", "tags": ["x", 1]}, "/tags/1 is an integer, not a string"),
        ({"name": "A", "tags": ["x", "x"]}, "/tags repeats an item: items 0 and 1 are the same"),
        ({"name": "A", "more": 1}, "/more is not allowed by the schema"),
    ],
)
def test_a_problem_is_told_at_its_innermost_place_in_words(value: Any, said: str) -> None:
    assert words(PERSON, value) == [said]


def test_of_tagged_alternatives_the_one_that_was_meant_is_judged() -> None:
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"]},
        ]
    }
    assert words(schema, {"kind": "b", "y": 4}) == ["/y is an integer, not a string"]


@pytest.mark.parametrize(
    ("schema", "text", "fits"),
    [
        ({"type": "integer"}, "42.0", True),
        ({"type": "integer"}, "42.5", False),
        ({"type": "integer"}, "-0", True),
        ({"type": "integer"}, "true", False),
        ({"const": 1}, "1.0", True),
        ({"enum": [1]}, "true", False),
        ({"uniqueItems": True}, "[1, true]", True),
        ({"uniqueItems": True}, "[1, 1.0]", False),
        ({"format": "email"}, '"no address"', True),
        ({"pattern": "^\\u00e4+$"}, '"ää"', True),
        ({"pattern": "b"}, '"abc"', True),
        ({"pattern": "a$"}, '"a\\n"', False),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, '"x"', False),
        ({"$ref": "#n", "$defs": {"n": {"$anchor": "n", "type": "number"}}}, '"x"', False),
        ({"$ref": "other", "$id": "https://x.test/a", "$defs": {"n": {"$id": "other", "type": "number"}}}, '"x"', False),
        ({"$dynamicAnchor": "t", "type": "object", "properties": {"c": {"$dynamicRef": "#t"}}}, '{"c": {"c": 3}}', False),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, '{"a": 1, "b": 2}', False),
        ({"additionalProperties": False, "patternProperties": {"^x-": {}}}, '{"x-a": 1}', True),
        ({"additionalProperties": False, "patternProperties": {"^x-": {}}}, '{"y": 1}', False),
    ],
)
def test_json_values_are_judged_as_json_schema_does(schema: Any, text: str, fits: bool) -> None:
    verdict = check(schema, read_text(text).value)
    assert verdict.unchecked is None
    assert verdict.fits is fits


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, 3, False),
        (
            {"$schema": "http://json-schema.org/draft-07/schema", "items": [{"type": "string"}], "additionalItems": False},
            ["a", 1],
            False,
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "$recursiveAnchor": True,
                "properties": {"a": {"$recursiveRef": "#"}},
                "type": "object",
            },
            {"a": 1},
            False,
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#"}}, "type": "object"},
            {"a": {"a": 3}},
            False,
        ),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema#", "prefixItems": [{"type": "string"}]}, [1], False),
    ],
)
def test_the_declared_dialect_decides(schema: Any, value: Any, fits: bool) -> None:
    verdict = check(schema, value)
    assert (verdict.unchecked, verdict.fits) == (None, fits)


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"$schema": "https://example.com/mine"}, 1, "the dialect https://example.com/mine is not known"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, {}, "a dialect of its own"),
        ({"$ref": "https://example.com/schema"}, 1, "https://example.com/schema, which is not fetched"),
        ({"$ref": "#/$defs/none"}, 1, "leads nowhere"),
        ({"pattern": "(?=x)"}, "y", "cannot do the pattern"),
        ({"pattern": "(a)\\1"}, "aa", "cannot do the pattern"),
        ({"pattern": "^\\s$"}, "\u00a0", "\\s differs"),
        ({"type": "strin"}, 1, 'the schema is not valid: /type is "strin", which is no JSON type'),
        ({"multipleOf": 7}, 10**2000, "more than 400 digits"),
        ({"multipleOf": 7}, Decimal("1e5000"), "more than 400 digits"),
        ({"$id": "https://json-schema.org/draft/2020-12/schema"}, 1, "takes the name of a meta-schema"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": 3}, "not fetched"),
        ({"pattern": "x"}, "\ud800", "surrogate"),
    ],
)
def test_what_cannot_be_judged_is_unchecked_with_the_reason(schema: Any, value: Any, why: str) -> None:
    verdict = check(schema, value)
    assert not verdict.problems
    assert verdict.unchecked is not None
    assert why in verdict.unchecked


def test_what_can_be_judged_beside_an_undecidable_pattern_is_judged() -> None:
    verdict = check({"properties": {"a": {"pattern": "(?=x)"}, "b": {"type": "string"}}}, {"a": "y", "b": 1})
    assert [words_of(p) for p in verdict.problems] == ["/b is an integer, not a string"]
    assert verdict.unchecked is not None


def test_an_undecidable_pattern_inside_not_makes_no_problem() -> None:
    verdict = check({"not": {"pattern": "(?=x)"}}, "y")
    assert not verdict.problems
    assert verdict.unchecked is not None


def test_a_remote_reference_is_found_where_it_stands_and_local_ids_are_not_remote() -> None:
    schema = {
        "$id": "https://x.test/root",
        "properties": {"a": {"$ref": "https://x.test/item"}, "b": {"$ref": "//evil.test/b"}},
        "$defs": {"i": {"$id": "item", "type": "string"}},
    }
    remote = reading_of(schema).remote
    assert [(p.path, p.words) for p in remote] == [(("properties", "b", "$ref"), "https://evil.test/b")]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"a": {"type": "strin"}}}, '/properties/a/type is "strin", which is no JSON type'),
        ({"properties": []}, "/properties is an array, not an object of schemas"),
        ({"required": "name"}, "/required is not an array of strings"),
        ({"properties": {"a": {"required": True}}}, "/properties/a/required is not an array of strings"),
        ({"items": [{}]}, "/items is an array, not a schema"),
        ({"minimum": "3"}, "/minimum is not a number"),
        ({"anyOf": []}, "/anyOf is empty"),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum is not a number"),
        ([], "the root is an array, not a schema"),
    ],
)
def test_flaws_of_a_schema_are_told_in_words(schema: Any, said: str) -> None:
    assert [words_of(p) for p in reading_of(schema).flaws] == [said]


def nested(name: str, depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {name: value}
    return value


BOMBS: dict[str, tuple[Any, Any]] = {
    "a loop": ({"$ref": "#"}, 1),
    "a loop of two": ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
    "four to the twentieth": (
        {
            "$defs": {f"d{k}": {"allOf": [{"$ref": f"#/$defs/d{k + 1}"}] * 4} for k in range(20)} | {"d20": {}},
            "$ref": "#/$defs/d0",
        },
        1,
    ),
    "messages that spell the value": ({"anyOf": [{"type": "string"}] * 1500}, ["x" * 1000] * 900),
    "false alternatives": ({"anyOf": [False] * 2000}, ["x" * 1000] * 900),
    "empty alternatives": ({"allOf": [{}] * 4000}, [1] * 15000),
    "a huge enum": ({"enum": [[i] * 30 for i in range(150)]}, [["x"] * 30] * 100),
    "a catastrophic pattern": ({"pattern": "(a+)+$"}, "a" * 100_000 + "b"),
    "a huge program": ({"items": {"pattern": "(a?){500}a{500}"}}, ["a" * 1000] * 100),
    "a thousand programs": ({"properties": {f"p{i}": {"pattern": f"(a?){{{900 - i}}}"} for i in range(400)}}, {}),
    "patterns for names": ({"patternProperties": {f"k{n}$": {} for n in range(500)}}, {f"x{n}": 1 for n in range(3000)}),
    "patterns beside unevaluated": ({"patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False}, {"a" * 40 + "b": 1}),
    "unevaluated in a loop": ({"unevaluatedProperties": False, "$ref": "#"}, {"a": 1}),
    "anchors": (
        {"$defs": {f"a{n}": {"$anchor": f"A{n}"} for n in range(1000)}, "anyOf": [{"$ref": "#A999", "type": "null"}] * 500},
        1,
    ),
    "unique objects": ({"uniqueItems": True}, [{"a": n} for n in range(8000)]),
    "contains in alternatives": ({"anyOf": [{"contains": True, "minContains": 99999}] * 1000}, [1] * 15000),
    "many members": ({"properties": {f"a{n}": {} for n in range(4000)}}, {f"a{n}": 1 for n in range(4000)}),
    "a deep schema": (nested("not", 300), 1),
    "a deep value": ({"properties": {"a": {"$ref": "#"}}}, nested("a", 190)),
    "a nested dialect": (
        {"anyOf": [{"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "(a+)+$"}]},
        "a" * 40 + "b",
    ),
    "a dialect behind an unknown word": (
        {"x": {"y": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "(a+)+$"}}, "$ref": "#/x/y"},
        "a" * 40 + "b",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_schema_holds_the_loop(name: str) -> None:
    schema, value = BOMBS[name]
    best = 1.0
    for _ in range(3):
        started = time.process_time()
        read(schema)
        check(schema, value)
        best = min(best, time.process_time() - started)
    assert best < 0.15  # 50 ms on a machine of today; each takes half of that at most, and an unbounded one minutes


def test_the_answer_does_not_depend_on_the_depth_of_the_stack() -> None:
    def deeper(levels: int) -> Any:
        return deeper(levels - 1) if levels else check({"properties": {"a": {"$ref": "#"}}}, value)

    value: Any = 1
    for _ in range(25):
        value = {"a": value}
    assert deeper(0) == deeper(400)


# What we call wrong in a schema is what the meta-schema calls wrong, and verdicts are those of the library.

_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab", "object", "string", "null"])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)
_KEYWORDS = [
    "type",
    "enum",
    "const",
    "minimum",
    "maxLength",
    "minItems",
    "uniqueItems",
    "required",
    "properties",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "additionalProperties",
    "prefixItems",
    "contains",
    "minContains",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "multipleOf",
    "exclusiveMinimum",
    "maxProperties",
    "unevaluatedProperties",
]


def _value_of(keyword: str, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from("abc")
    match keyword:
        case "type":
            return st.sampled_from(["object", "array", "string", "integer", "null", ["string", "null"]])
        case "enum":
            return st.lists(_SCALARS, min_size=1, max_size=3)
        case "const":
            return _VALUES
        case "required":
            return st.lists(names, unique=True, max_size=2)
        case "properties" | "dependentSchemas":
            return st.dictionaries(names, inner, max_size=3)
        case "anyOf" | "oneOf" | "allOf" | "prefixItems":
            return st.lists(inner, min_size=1, max_size=3)
        case "dependentRequired":
            return st.dictionaries(names, st.lists(names, unique=True, max_size=2), max_size=2)
        case "uniqueItems":
            return st.booleans()
        case "multipleOf":
            return st.integers(1, 3)
        case "minimum" | "exclusiveMinimum":
            return st.integers(-2, 2)
        case "maxLength" | "minItems" | "maxProperties" | "minContains":
            return st.integers(0, 2)
    return inner


_SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.just({}),
    lambda inner: st.lists(st.sampled_from(_KEYWORDS), unique=True, max_size=4).flatmap(
        lambda chosen: st.fixed_dictionaries({k: _value_of(k, inner) for k in chosen})
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(_SCHEMAS, _VALUES)
def test_verdicts_are_those_of_the_library(schema: Any, value: Any) -> None:
    assert read(schema).flaws == []
    verdict = check(schema, value)
    assert verdict.unchecked is None
    assert verdict.fits is jsonschema.Draft202012Validator(schema).is_valid(value)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*_KEYWORDS, "$defs", "format", "x-any"]), _VALUES, max_size=3))
def test_flaws_are_what_the_metaschema_calls_wrong(schema: Any) -> None:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        right = True
    except jsonschema.SchemaError:
        right = False
    assert (not read(schema).flaws) is right
