"""What is answered quickly, because most messages are as they should be, is answered as the long way would."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import methods, version

from mcp_wiretap.trace.schema import fits, plain, reading
from mcp_wiretap.wire import revision as rev
from mcp_wiretap_rules import members, shapes

_BLOCKS = [
    {"type": "text", "text": "x", "annotations": {"priority": 0.5, "audience": ["user"]}},
    {"type": "resource", "resource": {"uri": "a://b", "text": "t", "mimeType": "text/plain"}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "resource_link", "uri": "a://b", "name": "n", "size": 3},
]
_HINTS = {"ttlMs": 1, "cacheScope": "public"}
RESULTS: dict[str, dict[str, Any]] = {
    "completion/complete": {"completion": {"values": ["a", "b"], "total": 3, "hasMore": True}},
    "prompts/get": {"description": "d", "messages": [{"role": "user", "content": block} for block in _BLOCKS], "_meta": {}},
    "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "a", "required": True}], "icons": []}], **_HINTS},
    "resources/list": {"resources": [{"uri": "file:///a", "name": "n", "size": 5, "annotations": {"priority": 1}}], **_HINTS},
    "resources/read": {"contents": [{"uri": "a://b", "text": "x"}, {"uri": "a", "blob": "aGk="}], **_HINTS},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a{b}", "name": "n", "title": "t"}], **_HINTS},
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "description": "d"}], "nextCursor": "c", **_HINTS},
}
ODD: list[Any] = [None, 1, 1.5, True, "x", "", [], {}, ["a"], [None], {"a": 1}, [{}], "user", 10**30]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from _paths(inner, (*path, step))


def _mutants(value: Any) -> Iterator[Any]:
    """The value with each of its parts dropped, and replaced by what is odd there."""
    for *before, last in _paths(value):
        for odd in (*ODD, ...):
            mutant = copy.deepcopy(value)
            holder = mutant
            for step in before:
                holder = holder[step]
            if odd is ...:
                del holder[last]
            else:
                holder[last] = odd
            yield mutant


@pytest.mark.parametrize("method", RESULTS)
def test_a_result_that_fits_the_table_has_no_flaw_by_the_models(method: str) -> None:
    fitting = 0
    for revision in ("2025-11-25", "2026-07-28"):
        adapter = shapes._adapter(method, revision)
        for result in (RESULTS[method], *_mutants(RESULTS[method])):
            if members.fits_result(method, revision, result):
                fitting += 1
                found = [shapes._problem(method, result, flaw) for flaw in shapes._flaws(adapter, result)]
                assert not any(found), result
    assert members.fits_result(method, "2026-07-28", RESULTS[method])
    assert fitting > 2


def test_the_methods_that_are_judged_are_those_that_have_models() -> None:
    judged_elsewhere = {"initialize", "server/discover", "subscriptions/listen", "tools/call"}
    for revision in rev.KNOWN:
        modelled = {method for method, known in methods.SERVER_RESULTS if known == revision} - judged_elsewhere
        assert modelled == (shapes._MODELLED if revision in rev.MODERN else shapes._MODELLED_LEGACY)


def test_the_revisions_are_those_of_the_models() -> None:
    assert rev.KNOWN == version.KNOWN_PROTOCOL_VERSIONS
    assert set(version.MODERN_PROTOCOL_VERSIONS) == rev.MODERN
    assert set(version.HANDSHAKE_PROTOCOL_VERSIONS) == rev.LEGACY


SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            "place": {"type": "string", "minLength": 1, "maxLength": 3},
            "many": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 1, "maxItems": 3},
            "unit": {"enum": ["c", "f", 1, True]},
            "kind": {"const": "x"},
            "maybe": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "either": {"type": ["string", "boolean"]},
            "deep": {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}},
        },
        "required": ["place"],
        "additionalProperties": False,
    },
    {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}, "x-mcp-header": "A"},
    {"type": "object", "additionalProperties": {"anyOf": [{"type": "array", "items": {}}, {"type": "integer"}]}},
]
VALUES: list[Any] = [
    {"place": "abc", "many": [1, 2], "unit": "c", "kind": "x", "maybe": None, "either": True, "deep": {"a": {"b": "c"}}},
    {"a": 1, "b": "x", "c": "y"},
    {"a": [1, {}], "b": 2},
]


@pytest.mark.parametrize("dialect", [reading.DIALECT, reading.DRAFT4, reading.DRAFT7])
def test_a_quick_yes_of_a_plain_schema_is_what_the_evaluator_says(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = 0
    monkeypatch.setattr(plain, "yes", lambda *_: None)
    for schema, value in zip(SCHEMAS, VALUES, strict=True):
        read = reading.read(schema, dialect)
        yes = _yes(read)
        assert yes is not None
        assert yes(value)
        for mutant in (value, *_mutants(value), *ODD):
            if yes(mutant):
                said += 1
                assert fits.check(copy.deepcopy(schema), mutant, dialect).fits, mutant
    assert said > 20


def test_a_quick_yes_is_within_the_budget_of_the_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dearest values that get a yes are checked within the steps that there are."""
    chance = random.Random(7)
    alternatives = {"anyOf": [{"type": "object", "required": ["no"]} for _ in range(11)] + [{"type": ["integer", "object"]}]}
    many = {f"m{n}": {"type": "integer", "minimum": 0, "maximum": 9, "title": "t" * 9} for n in range(59)}
    for schema, value in (
        ({"additionalProperties": alternatives}, {str(n): n for n in range(20)}),
        ({"type": "object", "properties": many, "required": [*many]}, dict.fromkeys(many, 5)),
        ({"items": {"items": {"items": {}}}}, [[[chance.random()] * 4] * 3] * 3),
    ):
        read = reading.read(schema)
        yes = _yes(read)
        assert yes is not None
        assert yes(value)
        with monkeypatch.context() as patched:
            patched.setattr(plain, "yes", lambda *_: None)
            assert fits.check(schema, value).fits


@pytest.mark.parametrize(
    "value",
    [10**700, float("inf"), {"a": "x" * 2_000}, [[1] * 70], "\ud800" * 1_001],
    ids=["a long number", "infinity", "a long text", "many values", "many characters"],
)
def test_what_is_large_or_odd_goes_the_long_way(value: Any) -> None:
    yes = plain.yes({}, 1, 1)
    assert yes is not None
    assert not yes(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"pattern": "a"},
        {"not": {}},
        {"items": [{}]},
        {"properties": {"a": {"oneOf": [{}]}}},
        {"uniqueItems": True},
    ],
)
def test_a_schema_that_is_not_plain_goes_the_long_way(schema: dict[str, Any]) -> None:
    assert plain.yes(schema, 5, 2) is None


def _yes(read: reading.Reading, make: Any = plain.yes) -> plain.Yes | None:
    made: plain.Yes | None = make(read.copy, read.nodes, read.depth)
    return made
