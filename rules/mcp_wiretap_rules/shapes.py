"""The shape of results, by revision: `mcp_types.methods` says what a result must look like, this module says what is wrong in words.

The models are those of the schema (2025-11-25 for all revisions before 2026-07-28). What families of their own judge is left to
them: caching hints, resultType, cursors, content blocks, annotations, icons, schemas of tools, `_meta`.
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from mcp_wiretap.rule import Severity
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules import members

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

type Steps = tuple[str | int, ...]

MOST_ITEMS = 500  # of one list in a result that are looked at: about 2 microseconds each
MOST_PROBLEMS = 20
# Members that rules of other families judge, wherever they stand.
_ELSEWHERE = frozenset(
    {
        "_meta",
        "annotations",
        "icons",
        "inputSchema",
        "outputSchema",
        "execution",
        "resultType",
        "ttlMs",
        "cacheScope",
        "nextCursor",
        "structuredContent",
    }
)
# Methods whose results are judged here. (Others are judged whole by other families: RES005 and RES006, RES013.)
_MODELLED = frozenset(
    {
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "tools/list",
    }
)
_OF_ANY_SHAPE = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})  # any object will do
_MODELLED_LEGACY = _MODELLED | _OF_ANY_SHAPE
# Members that other families judge whole: PMT003, RSC003.
_OTHER_PARTS = frozenset({("tools/call", "content"), ("prompts/get", "messages"), ("resources/read", "contents")})
# What each method lists.
_LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "resources/read": "contents",
    "prompts/get": "messages",
    "tools/call": "content",
}


class Problem(NamedTuple):
    """One thing that is wrong: where below the result, in words, the value there."""

    steps: Steps
    words: str
    value: Any
    severity: Severity = "error"


def problems(method: str, revision: str | None, result: dict[str, Any]) -> Iterator[Problem]:
    """What is wrong with the shape of a complete result; nothing for methods and revisions that have no model."""
    listed = _LISTED.get(method)
    if method == "tools/call":  # the commonest by far; of its members other families leave but one
        if not isinstance(result.get("isError", False), bool | None):
            yield Problem(("isError",), f"isError is {kind_of(result['isError'])}, not true or false", result["isError"])
        yield from _nulls(result, listed)
        return
    if revision not in rev.KNOWN or method not in (_MODELLED if revision in rev.MODERN else _MODELLED_LEGACY):
        return
    # The table of members is quick, and as strict; the models take half a second to load, and say what is wrong.
    if method not in _OF_ANY_SHAPE and not members.fits_result(method, max(revision, _OLDEST), result):
        found = 0
        for details in _flaws(_adapter(method, revision), _bounded(result, listed)):
            problem = _problem(method, result, details)
            if problem is not None:
                yield problem
                found += 1
                if found == MOST_PROBLEMS:
                    return
    yield from _nulls(result, listed)


def _flaws(adapter: "TypeAdapter[Any]", result: dict[str, Any]) -> "list[ErrorDetails]":
    from pydantic import ValidationError

    try:
        adapter.validate_python(result, strict=True, by_name=False)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=True, include_input=True)
    return []


_OLDEST = "2025-11-25"  # revisions before it are judged by its models


def _models() -> Any:
    from mcp_types import methods

    return methods


@cache
def _adapter(method: str, revision: str) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(_complete(method, revision))


def _complete(method: str, revision: str) -> Any:
    """The model of the complete result; one that asks for input is not judged here."""
    model = _models().SERVER_RESULTS[method, revision]
    return get_args(model)[0] if isinstance(model, UnionType) else model


@cache
def members_of(method: str) -> frozenset[str]:
    """The members that tell a result of that method, in any revision; empty where there is no model, or where any object does."""
    names: set[str] = set()
    for known, revision in _models().SERVER_RESULTS:
        if known == method:
            fields = getattr(_complete(known, revision), "model_fields", {})
            names |= {field.alias or name for name, field in fields.items()}
    return frozenset(names - _ELSEWHERE)


def _bounded(result: dict[str, Any], listed: str | None) -> dict[str, Any]:
    """The result with its list cut, where that is long."""
    items = result.get(listed) if listed is not None else None
    if listed is not None and isinstance(items, list) and len(items) > MOST_ITEMS:
        return result | {listed: items[:MOST_ITEMS]}
    return result


_OPTIONAL = frozenset(
    {
        "_meta",
        "annotations",
        "arguments",
        "description",
        "hasMore",
        "icons",
        "instructions",
        "isError",
        "mimeType",
        "outputSchema",
        "required",
        "size",
        "title",
        "total",
    }
)


def _nulls(result: dict[str, Any], listed: str | None) -> Iterator[Problem]:
    """Optional members that are null: the schema wants them left out, and clients that validate reject the whole result."""
    if None in result.values():
        yield from _null_members((), result)
    items = result.get(listed) if listed is not None else None
    if listed is None or not isinstance(items, list):
        return
    for index, item in enumerate(items[:MOST_ITEMS]):
        if isinstance(item, dict) and None in item.values():
            yield from _null_members((listed, index), item)


def _null_members(steps: Steps, holder: dict[str, Any]) -> Iterator[Problem]:
    for name, value in holder.items():
        if value is None and name in _OPTIONAL:
            yield Problem((*steps, name), f"{path(*steps, name)} is null; it is left out where there is none", "null", "warning")


def path(*steps: str | int) -> str:
    """A place as people write it: tools[3].name."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{one_line(step, 40)}" for step in steps)
    return text.removeprefix(".")


def left_out(method: str, result: dict[str, Any]) -> str | None:
    """What of a result was not looked at; None where all was."""
    listed = _LISTED.get(method)
    items = result.get(listed) if listed is not None else None
    if isinstance(items, list) and len(items) > MOST_ITEMS:
        return f"only the first {MOST_ITEMS} of {len(items)} {listed} were looked at"
    return None


def _problem(method: str, result: dict[str, Any], details: "ErrorDetails") -> Problem | None:
    steps, value = _place(result, details["loc"])
    if not steps or any(step in _ELSEWHERE for step in steps):
        return None
    if (method, steps[0]) in _OTHER_PARTS and (len(steps) > 1 or method == "tools/call"):
        return None
    words = _words(details["type"], value, details)
    return Problem(steps, f"{path(*steps)} {words}", value) if words else None


def _place(result: Any, loc: tuple[int | str, ...]) -> tuple[Steps, Any]:
    """The error's place in the result, and what stands there. The models' own words for alternatives are not places."""
    steps: list[str | int] = []
    value = result
    for index, step in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                break
            value = value[step]
        elif isinstance(value, dict) and (step in value or last):
            value = value.get(step)
        else:
            continue
        steps.append(step)
    return tuple(steps), value


_WANTED = {
    "string_type": "a string",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "int_from_float": "an integer",
}


def _words(kind: str, value: Any, details: "ErrorDetails") -> str | None:
    """What is wrong, in words. None where the model is stricter than JSON: 5.0 is an integer, however long."""
    if kind == "missing":
        return "is missing"
    wanted = _WANTED.get(kind)
    if wanted is not None:
        if kind in ("int_type", "int_from_float") and (isinstance(value, Decimal) or _is_whole(value)):
            return None
        if kind == "float_type" and isinstance(value, Decimal):
            return None
        return f"is {kind_of(value)}, not {wanted}"
    if kind == "literal_error":
        return f"is {one_line(dumps(value, most=60), 40)}, not {details['ctx']['expected']}"
    if kind == "too_long":
        return None  # CMP001
    shown = one_line(dumps(value, most=60), 40)
    return f"is {shown}, which the schema does not allow"


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()
