"""Content blocks: text, image, audio, resource links, embedded resources; in sampling, tool use and tool results.

What a block must have is the same in tool results, prompt messages and sampling, and has grown from revision to revision.
Spec: 2026-07-28 schema#contentblock.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcp_wiretap.rule import Severity
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire.secret import one_line

type Steps = tuple[str | int, ...]

_SINCE = {
    "text": "2024-11-05",
    "image": "2024-11-05",
    "resource": "2024-11-05",
    "audio": "2025-03-26",
    "resource_link": "2025-06-18",
    "tool_use": "2025-11-25",
    "tool_result": "2025-11-25",
}
_SAMPLING_ONLY = frozenset({"tool_use", "tool_result"})
_NOT_IN_SAMPLING = frozenset({"resource", "resource_link"})
_STRINGS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "tool_use": ("id", "name"),
    "tool_result": ("toolUseId",),
}
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
MOST_BASE64 = 1 << 20  # characters that are looked at: 1 ns each


class Flaw(NamedTuple):
    """One thing that is wrong with a block: where below it, in words, the value."""

    steps: Steps
    words: str
    value: Any
    severity: Severity = "error"


def flaws(block: Any, revision: str | None, *, sampling: bool = False) -> Iterator[Flaw]:
    """What is wrong with one content block in messages of that revision (None: not known, the newest is meant)."""
    if not isinstance(block, dict):
        yield Flaw((), f"is {kind_of(block)}, not an object", block)
        return
    kind = block.get("type")
    if not isinstance(kind, str):
        yield Flaw(("type",), "has no type" if kind is None else f"has a type that is {kind_of(kind)}", kind)
        return
    since = _SINCE.get(kind)
    if since is None:
        yield Flaw(("type",), f"has the type {one_line(kind, 40)}, which MCP does not define", kind, "warning")
        return
    if (kind in _SAMPLING_ONLY and not sampling) or (kind in _NOT_IN_SAMPLING and sampling):
        where = "does not belong into sampling" if sampling else "belongs into sampling only"
        yield Flaw(("type",), f"has the type {kind}, which {where}", kind)
        return
    if revision is not None and revision < since:
        yield Flaw(("type",), f"has the type {kind}, which came with {since}; {revision} was negotiated", kind)
    yield from _members(block, kind, revision)


def _members(block: dict[str, Any], kind: str, revision: str | None) -> Iterator[Flaw]:
    for name in _STRINGS.get(kind, ()):
        value = block.get(name)
        if not isinstance(value, str):
            lacks = f"({kind}) has no {name}" if value is None else f"({kind}) has a {name} that is {kind_of(value)}"
            yield Flaw((name,), lacks, value)
    if kind in ("image", "audio"):
        yield from _base64(block.get("data"), ("data",), kind)
    elif kind == "resource":
        yield from _resource(block.get("resource"))
    elif kind == "tool_use" and not isinstance(block.get("input"), dict):
        yield Flaw(("input",), "(tool_use) has no input object", block.get("input"))
    elif kind == "tool_result":
        content = block.get("content")
        if not isinstance(content, list):
            yield Flaw(("content",), "(tool_result) has no content array", content)
            return
        for index, inner in enumerate(content[:50]):
            for flaw in flaws(inner, revision):
                yield Flaw(("content", index, *flaw.steps), f"(tool_result) holds a block that {flaw.words}", *flaw[2:])


def _resource(resource: Any) -> Iterator[Flaw]:
    if not isinstance(resource, dict):
        yield Flaw(("resource",), "(resource) has no resource object", resource)
        return
    if not isinstance(resource.get("uri"), str):
        yield Flaw(("resource", "uri"), "(resource) has no uri", resource.get("uri"))
    has = [name for name in ("text", "blob") if isinstance(resource.get(name), str)]
    if len(has) == 2:
        yield Flaw(("resource",), "(resource) has both text and blob", sorted(resource)[:10], "warning")
    elif not has:
        yield Flaw(("resource",), "(resource) has neither text nor blob", sorted(resource)[:10])
    yield from _base64(resource.get("blob"), ("resource", "blob"), "resource")


def _base64(data: Any, steps: Steps, kind: str) -> Iterator[Flaw]:
    found = base64_problem(data) if isinstance(data, str) else None
    if found is not None:
        words, severity = found
        yield Flaw(steps, f"({kind}) {words}", one_line(data[:80], 60), severity)


def base64_problem(data: str) -> tuple[str, Severity] | None:
    """What keeps a string from being standard Base64 (RFC 4648 section 4); None where nothing does."""
    looked_at = data[:MOST_BASE64]
    if not looked_at.isascii():
        return "has data that is not Base64", "error"
    rest = looked_at.encode().translate(None, _ALPHABET)
    spaces = rest.translate(None, b" \t\r\n")
    signs = spaces.rstrip(b"=")
    if signs or len(spaces) > 2:
        url_safe = not signs.translate(None, b"-_") and len(spaces) - len(signs) <= 2
        return ("has data in the URL-safe alphabet of Base64" if url_safe else "has data that is not Base64"), "error"
    if len(rest) != len(spaces):
        return "has Base64 data with white space in it", "warning"
    if len(data) % 4:
        return "has Base64 data without padding", "warning"
    if spaces and len(data) <= MOST_BASE64 and not data.endswith(spaces.decode()):
        return "has data that is not Base64", "error"
    return None
