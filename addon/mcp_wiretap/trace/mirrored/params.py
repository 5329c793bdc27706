"""The Mcp-Param-* headers of a tools/call beside its arguments, as the definition wants them that the client had seen.

Spec: 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters. Catalogue PAR010-PAR026.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.finding import Unchecked
from mcp_wiretap.trace.mirrored.verdict import made, matching, octets, plain, syntax
from mcp_wiretap.trace.model import Exchange, HeaderCheck, Message, ToolDefinition, ToolView
from mcp_wiretap.trace.schema.annotations import Mirror, is_unsafe
from mcp_wiretap.wire import headers as wire
from mcp_wiretap.wire.headers import Comparison, Fields
from mcp_wiretap.wire.jsonrpc import ExactFloat, dumps
from mcp_wiretap.wire.secret import know, mask

# What an older definition may explain.
_WRONG = frozenset(
    {
        "missing",
        "mismatch",
        "undecodable",
        "lookalike",
        "invalid-octet",
        "duplicate-different",
        "null",
        "absent",
        "undeclared",
        "should-be-encoded",
    }
)


@dataclass(slots=True, frozen=True)
class Stale:
    """The headers of a call fit an older definition of the tool better than the newest one (PAR024)."""

    older: ToolDefinition
    newest_flow: str
    fresh: bool  # the older list's ttlMs had not run out


STALE: ExchangeFact[Stale] = ExchangeFact("stale", "an older definition explains the Mcp-Param headers")


def params(exchange: Exchange, request: Message, fields: Fields) -> Iterator[HeaderCheck]:
    sent = fields.names_starting("mcp-param-")
    if request.method != "tools/call":
        for lower in sent:
            shown = fields.as_sent(lower)
            found = plain(shown, fields.all(lower), None, "not-required", "no tools/call", ("elsewhere",))
            yield syntax(found, lower, fields)
        return
    view = exchange.tool
    why = _unverifiable(view)
    if why or view is None or view.definition is None:
        if view is not None:
            exchange.unchecked.append(Unchecked("Mcp-Param headers", why))
        for lower in sent:
            found = plain(fields.as_sent(lower), fields.all(lower), None, "unchecked", why)
            found.doubt = why
            yield syntax(found, lower, fields)
        return
    if not sent and not view.definition.mirrors:
        return
    checks = list(_against(view.definition, request, fields, _doubt(view)))
    if view.earlier and any(c.problems & _WRONG for c in checks):
        checks = _explain(exchange, view, request, fields, checks)
    yield from checks


def headers_of(definition: ToolDefinition, arguments: Any) -> list[tuple[str, str]]:
    """The Mcp-Param headers that a call with these arguments is to have."""
    found = []
    for mirror in definition.mirrors:
        value = _at(arguments, mirror.path)
        if value is not _ABSENT and value is not None and not isinstance(value, dict | list):
            found.append((mirror.field, wire.encode(_text(value))))
    return found


def _unverifiable(view: ToolView | None) -> str:
    """Why Mcp-Param headers cannot be compared; "" where they can."""
    if view is None:
        return "params.name is not a string"
    definition = view.definition
    if definition is None:
        return view.why_unknown
    if definition.unchecked:
        return definition.unchecked
    if definition.flaws:
        return f"the definition of the tool is not valid ({definition.flaws[0].rule})"
    return ""


def _doubt(view: ToolView) -> str:
    if view.by_other:
        return "only another client had listed the tool"
    if view.delisted:
        return "a later tools/list does not name the tool any more"
    return ""


def _against(definition: ToolDefinition, request: Message, fields: Fields, doubt: str = "") -> Iterator[HeaderCheck]:
    """The Mcp-Param headers as this definition wants them."""
    arguments = request.params.get("arguments")
    declared = set()
    for mirror in definition.mirrors:
        lower = mirror.field.lower()
        declared.add(lower)
        found = _param(mirror, arguments, fields.all(lower), fields, doubt)
        if found is not None:
            yield found
    for lower in fields.names_starting("mcp-param-"):
        if lower not in declared:
            detail = "the tool declares no such header"
            shown = fields.as_sent(lower)
            found = plain(shown, fields.all(lower), None, "undeclared", detail, ("undeclared",))
            found.doubt = doubt
            yield syntax(found, lower, fields)


def text_of(mirror: Mirror, arguments: Any) -> str | None:
    """What the header of a parameter must say, before it is encoded; None where there must be no header."""
    value = _at(arguments, mirror.path)
    if value is _ABSENT or value is None:
        return None
    if mirror.type == "boolean":
        return ("true" if value else "false") if isinstance(value, bool) else None
    if mirror.type == "string":
        return value if isinstance(value, str) else None
    number = _integer(value)
    return f"{number:f}" if isinstance(number, Decimal) else None if number is None else str(number)


_ABSENT = object()


def _param(mirror: Mirror, arguments: Any, values: list[str], fields: Fields, doubt: str) -> HeaderCheck | None:
    value = _at(arguments, mirror.path)
    steps = ("params", "arguments", *mirror.path)
    name = mirror.field
    if value is _ABSENT or value is None:
        if not values:
            return None
        word = "absent" if value is _ABSENT else "null"
        detail = "the argument is null" if value is None else "there is no such argument"
        found = plain(name, values, None if value is _ABSENT else "null", "not-required", detail, (word,))
        found.where, found.doubt = steps, doubt
        return _hidden(octets(found, name, fields), mirror)
    if mirror.type == "string" and isinstance(value, str) and not mirror.secret:
        plain_match = matching(name, values, value, steps)
        if plain_match is not None:
            plain_match.doubt = doubt
            return plain_match
    compared = _compare(mirror.type, value, values)
    if compared is None:
        detail = f"the argument is not {'an' if mirror.type == 'integer' else 'a'} {mirror.type}"
        found = plain(name, values, _text(value), "unchecked", detail)
        found.where, found.doubt = steps, doubt
        return _hidden(syntax(found, name, fields), mirror) if values else None
    found = made(name, values, _text(value), steps, compared, fields, doubt)
    if mirror.type == "integer":
        if not compared.plain and "mismatch" not in found.problems and compared.decoded is not None:
            found.problems |= {"not-plain"}
        if is_unsafe(value):
            found.problems |= {"unsafe-integer"}
    return _hidden(found, mirror)


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    """The value at the exact path (PAR026): keys are whole steps, nothing but an object has members; null ends the way."""
    value = arguments
    for step in path:
        if value is None and value is not arguments:
            return None
        if not isinstance(value, dict) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def _compare(kind: str, value: Any, values: list[str]) -> Comparison | None:
    """None where the argument has not the declared type: its header proves nothing then (TOO008)."""
    if kind == "string":
        return wire.compare_text(values, value) if isinstance(value, str) else None
    if kind == "boolean":
        return wire.compare_boolean(values, value) if isinstance(value, bool) else None
    number = _integer(value)
    return wire.compare_integer(values, number) if number is not None else None


def _integer(value: Any) -> int | Decimal | None:
    """An integer as JSON Schema means it: 42 and 42.0, not true."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return value
    if not isinstance(value, ExactFloat) or len(value.text) > 4_300:
        return None
    try:
        number = Decimal(value.text)
        if number != number.to_integral_value():
            return None
        return int(number) if number.adjusted() < 3_000 else number
    except InvalidOperation:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _hidden(check: HeaderCheck, mirror: Mirror) -> HeaderCheck:
    """The values of a parameter that is a secret are never shown, here and elsewhere."""
    if mirror.secret:
        check.secret = True
        for value in (check.raw, check.decoded, check.body):
            know(value)
        check.raw, check.decoded, check.body, check.expected = (
            mask(v) if v is not None else None for v in (check.raw, check.decoded, check.body, check.expected)
        )
    return check


def _explain(
    exchange: Exchange, view: ToolView, request: Message, fields: Fields, checks: list[HeaderCheck]
) -> list[HeaderCheck]:
    """Whether an older definition explains what the newest one does not: then the client's schema is stale (PAR024)."""
    for older in view.earlier:
        if not older.flaws and not older.unchecked and not any(c.problems & _WRONG for c in _against(older, request, fields)):
            exchange.facts[STALE] = Stale(older, view.flow, older.flow in view.fresh)
            detail = "right for an older definition of the tool"
            return [replace(c, problems=frozenset({"stale"}), detail=detail) if c.problems & _WRONG else c for c in checks]
    known = {m.field.lower(): older for older in reversed(view.earlier) for m in older.mirrors}
    for index, found in enumerate(checks):
        if "undeclared" in found.problems and (old := known.get(found.header.lower())) is not None:
            exchange.facts[STALE] = Stale(old, view.flow, old.flow in view.fresh)
            detail = "only an older definition of the tool declares it"
            checks[index] = replace(found, problems=frozenset({"stale"}), detail=detail)
    return checks
