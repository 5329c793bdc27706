"""What changed between two versions of a tool, and whether a client that worked with the old one may break.

Input: breaking is what refuses arguments that were accepted before. Output: breaking is what a reader of the old schema may not
understand. Judged keyword by keyword, in bounded depth; what is not understood is said to have changed, not to be safe.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mcp_wiretap.wire.jsonrpc import dumps, pointer
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_number

type Weight = Literal["breaking", "compatible", "unclear"]
type Side = Literal["input", "output"]

DEEPEST = 40
MOST = 200
_TEXT = frozenset({"title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly"})
_NARROWER_UP = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_NARROWER_DOWN = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})


@dataclass(slots=True, frozen=True)
class Change:
    """One thing that is different: where in the tool, in words, and what it means for a client of before."""

    where: str
    words: str
    weight: Weight


def of_tool(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """All changes of a tool's definition, the breaking ones first."""
    changes: list[Change] = []
    for member in sorted(set(before) | set(after)):
        old, new = before.get(member), after.get(member)
        if old == new or member == "name":
            continue
        if member == "inputSchema" and isinstance(old, dict) and isinstance(new, dict):
            changes += _schemas(old, new, (member,), "input", 0)
        elif member == "outputSchema" and isinstance(old, dict) and isinstance(new, dict):
            changes += _schemas(old, new, (member,), "output", 0)
        else:
            changes.append(_member(member, old, new))
    rank = {"breaking": 0, "unclear": 1, "compatible": 2}
    return sorted(changes[:MOST], key=lambda change: rank[change.weight])


def _member(member: str, old: Any, new: Any) -> Change:
    if member == "outputSchema":
        gone = new is None
        weight: Weight = "breaking" if gone else "compatible"
        return Change(f"/{member}", "is gone" if gone else "was added", weight)
    if member in ("title", "description", "icons", "_meta"):
        return Change(pointer(member), _was(old, new), "compatible")
    if member == "annotations":
        safer = isinstance(old, dict) and isinstance(new, dict) and old.get("readOnlyHint") is True
        lost = safer and isinstance(new, dict) and new.get("readOnlyHint") is not True
        return Change("/annotations", _was(old, new), "breaking" if lost else "compatible")
    return Change(pointer(member), _was(old, new), "unclear")


def _schemas(old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...], side: Side, depth: int) -> Iterator[Change]:
    if depth > DEEPEST:
        yield Change(pointer(*path), "differs, deeper than was looked", "unclear")
        return
    for keyword in sorted(set(old) | set(new)):
        before, after = old.get(keyword), new.get(keyword)
        if before == after or keyword in _TEXT:
            continue
        place = (*path, keyword)
        match keyword:
            case "properties" if isinstance(before, dict | None) and isinstance(after, dict | None):
                yield from _properties(old, new, path, side, depth)
            case "required":
                yield from _required(before, after, place, side)
            case "items" | "additionalProperties" if isinstance(before, dict) and isinstance(after, dict):
                yield from _schemas(before, after, place, side, depth + 1)
            case "type":
                yield _types(before, after, place, side)
            case "enum":
                yield from _enum(before, after, place, side)
            case "x-mcp-header":
                yield Change(pointer(*place), f"the mirrored header {_was(before, after)}", "breaking")
            case "additionalProperties":
                closed = after is False
                yield Change(pointer(*place), _was(before, after), _if(closed, side) if closed else "compatible")
            case _ if keyword in _NARROWER_UP | _NARROWER_DOWN:
                yield Change(pointer(*place), _was(before, after), _if(_narrower(keyword, before, after), side))
            case _:
                yield Change(pointer(*place), _was(before, after), "unclear")


def _if(narrower: bool, side: Side) -> Weight:
    """Input that became narrower refuses what was accepted; output that became wider gives what was not expected."""
    return "breaking" if narrower == (side == "input") else "compatible"


def _properties(old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...], side: Side, depth: int) -> Iterator[Change]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    required = new.get("required") if isinstance(new.get("required"), list) else []
    for name in sorted(set(before) | set(after)):
        place = (*path, "properties", name)
        if name not in after:
            gone_hurts = side == "output" or new.get("additionalProperties") is False
            yield Change(pointer(*place), "is gone", "breaking" if gone_hurts else "unclear")
        elif name not in before:
            needed = side == "input" and name in (required or [])
            yield Change(
                pointer(*place), "was added" + (", and is required" if needed else ""), "breaking" if needed else "compatible"
            )
        elif before[name] != after[name]:
            if isinstance(before[name], dict) and isinstance(after[name], dict):
                yield from _schemas(before[name], after[name], place, side, depth + 1)
            else:
                yield Change(pointer(*place), _was(before[name], after[name]), "unclear")


def _required(before: Any, after: Any, place: tuple[str, ...], side: Side) -> Iterator[Change]:
    old = {name for name in before if isinstance(name, str)} if isinstance(before, list) else set()
    new = {name for name in after if isinstance(name, str)} if isinstance(after, list) else set()
    for name in sorted(new - old):
        yield Change(pointer(*place), f"{one_line(name, 60)} is required now", "breaking" if side == "input" else "compatible")
    for name in sorted(old - new):
        yield Change(
            pointer(*place), f"{one_line(name, 60)} is no longer required", "compatible" if side == "input" else "breaking"
        )


def _types(before: Any, after: Any, place: tuple[str, ...], side: Side) -> Change:
    old, new = _type_set(before), _type_set(after)
    if old is None or new is None:
        return Change(pointer(*place), _was(before, after), _if(new is not None, side))
    weight: Weight = "breaking"
    if new >= old:
        weight = _if(False, side)
    elif new < old:
        weight = _if(True, side)
    return Change(pointer(*place), _was(before, after), weight)


def _type_set(value: Any) -> set[str] | None:
    """None: any type."""
    names = {value} if isinstance(value, str) else {v for v in value if isinstance(v, str)} if isinstance(value, list) else None
    return names | {"integer"} if names and "number" in names else names


def _enum(before: Any, after: Any, place: tuple[str, ...], side: Side) -> Iterator[Change]:
    if not isinstance(before, list) or not isinstance(after, list):
        yield Change(pointer(*place), _was(before, after), _if(isinstance(after, list), side))
        return
    gone = [v for v in before if v not in after]
    added = [v for v in after if v not in before]
    words = "; ".join(
        part for part in (f"no longer {_brief(gone)}" if gone else "", f"now also {_brief(added)}" if added else "") if part
    )
    hurts = bool(gone) if side == "input" else bool(added)
    if words:  # another order says the same
        yield Change(pointer(*place), words, "breaking" if hurts else "compatible")


def _narrower(keyword: str, before: Any, after: Any) -> bool:
    if not is_number(after):
        return False
    if not is_number(before):
        return True
    return bool(after > before) if keyword in _NARROWER_UP else bool(after < before)


def _was(old: Any, new: Any) -> str:
    if old is None:
        return f"was added: {_brief(new)}"
    if new is None:
        return f"is gone (was {_brief(old)})"
    return f"was {_brief(old)}, is {_brief(new)}"


def _brief(value: Any) -> str:
    return one_line(dumps(value), 70)
