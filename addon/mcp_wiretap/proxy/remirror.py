"""After an edit by a person the mirrored headers follow the body again: those that agreed with it before the edit, and that the
person left alone. A header that lied before stays a lie. Spec: 2026-07-28 basic/transports/streamable-http#request-metadata.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.changes import RawFields
from mcp_wiretap.trace.mirrored.check import NAME_SOURCE
from mcp_wiretap.trace.mirrored.params import text_of
from mcp_wiretap.trace.model import Exchange, ToolDefinition
from mcp_wiretap.wire import headers as wire
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev

_AGREED = frozenset({"match", "needless-encoding"})


def remirror(
    flow: HTTPFlow, before: RawFields, exchange: Exchange, definition: Callable[[str], ToolDefinition | None]
) -> list[str]:
    """Mirror anew what the edit of a held request changed; what was done, one line each. `before`: its header fields when it was
    held; `definition`: gives that of a tool."""
    if not exchange.claim.modern or exchange.request is None or exchange.reading is None or exchange.reading.kind != "single":
        return []
    content = flow.request.get_content(strict=False)
    reading = jsonrpc.read(content or b"", max_bytes=64 << 20, max_depth=200)
    if reading.kind != "single" or not reading.messages or reading.messages[0].kind != "request":
        return []  # what was made of it is meant
    message = reading.messages[0]
    agreed = {
        check.header.lower() for check in exchange.header_checks if check.verdict in _AGREED and not check.problems - _AGREED
    }
    checked = {check.header.lower() for check in exchange.header_checks}
    done = []
    name = message.params.get("name") if isinstance(message.params, dict) else None
    for header, value in _wanted(message, definition(name) if isinstance(name, str) else None):
        lower = header.lower()
        was, now = _values(before, lower), _values(flow.request.headers.fields, lower)
        if was != now or (lower not in agreed and (was or lower in checked)):
            continue  # the person's own edit, or a lie that stays one
        new = [] if value is None else [value.encode("latin-1", "replace")]
        if new != now:
            flow.request.headers.set_all(header, [each.decode("latin-1") for each in new])
            done.append(f"{header}: {_shown(now)} -> {_shown(new)}")
    return done


def _wanted(message: jsonrpc.Message, definition: ToolDefinition | None) -> Iterator[tuple[str, str | None]]:
    """What each mirrored header must say of the body as it is now; None: it must not be there."""
    method = message.method or ""
    params: dict[str, Any] = message.params if isinstance(message.params, dict) else {}
    yield "Mcp-Method", method
    version = message.meta.get(rev.PROTOCOL_VERSION)
    if isinstance(version, str):
        yield "MCP-Protocol-Version", version
    source = NAME_SOURCE.get(method)
    if source is not None and isinstance(name := params.get(source), str):
        yield "Mcp-Name", wire.encode(name)
    if method == "tools/call" and definition is not None and not definition.flaws:
        for mirror in definition.mirrors:
            text = text_of(mirror, params.get("arguments"))
            yield mirror.field, None if text is None else wire.encode(text)


def _values(fields: Iterable[tuple[bytes, bytes]], lower: str) -> list[bytes]:
    return [value for name, value in fields if name.lower() == lower.encode("latin-1")]


def _shown(values: list[bytes]) -> str:
    return ", ".join(value.decode("latin-1") for value in values) or "(none)"
