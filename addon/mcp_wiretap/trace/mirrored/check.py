"""The mirrored headers of a request beside what its body says: one `HeaderCheck` each, with a verdict (`headers` of the report).

The rules of the families HDR and PAR only read these checks, and so do those that judge whether a server was right to refuse.
Spec: 2026-07-28 basic/transports/streamable-http#request-metadata, #server-validation.
"""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.trace.mirrored.params import params
from mcp_wiretap.trace.mirrored.verdict import METHOD, NAME, VERSION, made, matching, octets, plain, present, syntax
from mcp_wiretap.trace.model import Exchange, HeaderCheck, Message
from mcp_wiretap.wire import headers as wire
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields

CORE_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
TASK_NAMES = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
NAME_SOURCE = CORE_NAMES | TASK_NAMES
_METHOD_STEPS = ("method",)
_VERSION_STEPS = ("params", "_meta", rev.PROTOCOL_VERSION)
# What a server must refuse with -32020 (catalogue HTS011). An extra header is no such fault: it "MUST NOT expect" it only.
FATAL = frozenset({"missing", "mismatch", "undecodable", "lookalike", "invalid-octet", "duplicate-different"})
# An undeclared header is to be ignored, and what could not be compared proves nothing.
_UNVERIFIED = frozenset({"unchecked", "not-required", "undeclared"})


def check(exchange: Exchange) -> None:
    """Fill `exchange.header_checks`, and `facts[STALE]` where an older definition explains the Mcp-Param headers."""
    exchange.header_checks = list(_checks(exchange))


def fatal(exchange: Exchange) -> list[HeaderCheck]:
    """The checks for which a server of the modern era must refuse the request with -32020."""
    return [c for c in exchange.header_checks if c.problems & FATAL and c.verdict not in _UNVERIFIED]


def _checks(exchange: Exchange) -> Iterator[HeaderCheck]:
    fields, kind = exchange.request_fields, exchange.claim.kind
    reading = exchange.reading
    request = exchange.request
    if reading is None or reading.kind == "batch" or not exchange.sent or exchange.sent[0].rpc.kind == "invalid":
        yield from _unread(exchange)
    elif kind in ("modern", "modern-unknown", "modern-malformed", "legacy-envelope"):
        if request is not None:
            yield from _of_request(exchange, request, fields)
        else:
            yield from _of_notification(exchange, exchange.sent[0], fields)
    else:
        yield from _of_legacy(exchange, exchange.sent[0], fields)


def _unread(exchange: Exchange) -> Iterator[HeaderCheck]:
    """No message to compare with: the headers are only shown."""
    reading = exchange.reading
    if reading is None:
        why = "the request body was not recorded"
    elif reading.kind == "batch":
        why = "a batch has no single method to mirror"
    else:
        why = "there is no JSON-RPC message to compare with"
    for name, values in present(exchange.request_fields):
        negotiated = _negotiated(exchange, values) if name == VERSION and not exchange.claim.modern else None
        yield negotiated or plain(name, values, None, "unchecked", why)


# A request with the claims of the modern era


def _of_request(exchange: Exchange, request: Message, fields: Fields) -> Iterator[HeaderCheck]:
    modern = exchange.claim.kind != "legacy-envelope"
    version = _version(request, fields, modern)
    if version is not None:
        yield version
    if not modern:
        yield from _of_legacy(exchange, request, fields, version_too=False)
        return
    method = request.method or ""
    values = fields.all("mcp-method")
    yield matching(METHOD, values, method, _METHOD_STEPS) or made(
        METHOD, values, method, _METHOD_STEPS, wire.compare_exact(values, method), fields
    )
    name = _name(request, fields)
    if name is not None:
        yield name
    yield from params(exchange, request, fields)


def _version(request: Message, fields: Fields, modern: bool) -> HeaderCheck | None:
    envelope = request.meta.get(rev.PROTOCOL_VERSION)
    values = fields.all("mcp-protocol-version")
    if not isinstance(envelope, str):
        why = "the envelope names no version"
        return octets(plain(VERSION, values, None, "unchecked", why), VERSION, fields) if values else None
    if not modern:
        if not values:
            return None
        if rev.version_kind(wire.trim_ows(values[0])) == "legacy":
            return plain(VERSION, values, envelope, "unchecked", "no handshake of this legacy revision was seen")
    if all(not wire.trim_ows(v) for v in values):
        values = []
    return (matching(VERSION, values, envelope, _VERSION_STEPS) if envelope else None) or made(
        VERSION, values, envelope, _VERSION_STEPS, wire.compare_exact(values, envelope), fields
    )


def _name(request: Message, fields: Fields) -> HeaderCheck | None:
    values = fields.all("mcp-name")
    source = NAME_SOURCE.get(request.method or "")
    if source is None:
        if not values:
            return None
        found = plain(NAME, values, None, "not-required", f"{request.method} names nothing", ("elsewhere",))
        return syntax(found, NAME, fields)
    value = request.params.get(source)
    if not isinstance(value, str):
        why = f"params.{source} is not a string"
        return syntax(plain(NAME, values, None, "unchecked", why), NAME, fields) if values else None
    steps = ("params", source)
    return matching(NAME, values, value, steps) or made(NAME, values, value, steps, wire.compare_text(values, value), fields)


# Notifications, and the legacy era


def _of_notification(exchange: Exchange, message: Message, fields: Fields) -> Iterator[HeaderCheck]:
    """Nothing is required of a notification's headers (A4); what is there is compared."""
    detail = "no header is defined for notifications"
    for name, values in present(fields):
        body = message.method if name == METHOD else message.meta.get(rev.PROTOCOL_VERSION) if name == VERSION else None
        if not isinstance(body, str):
            yield plain(name, values, None, "not-required", detail)
            continue
        same = all(wire.trim_ows(v) == body for v in values)
        yield plain(name, values, body, "match" if same else "not-required", detail, () if same else ("mismatch",))


def _of_legacy(exchange: Exchange, message: Message, fields: Fields, *, version_too: bool = True) -> Iterator[HeaderCheck]:
    """Legacy traffic: nothing validates these headers, but something between may route on them (HDR015)."""
    detail = "nothing validates it in the legacy era"
    for name, values in present(fields):
        if name == VERSION:
            if version_too:
                yield _legacy_version(exchange, message, values)
            continue
        body: Any = None
        if name == METHOD:
            body = message.method
        elif name == NAME:
            body = message.params.get(NAME_SOURCE.get(message.method or "", ""))
        if not isinstance(body, str):
            yield plain(name, values, None, "not-required", detail)
            continue
        read = values if name == METHOD else [wire.decode(v).text for v in values]
        same = all(v == body or (v is not None and wire.trim_ows(v) == body) for v in read)
        yield plain(name, values, body, "not-required", detail, () if same else ("mismatch",))


def _legacy_version(exchange: Exchange, message: Message, values: list[str]) -> HeaderCheck:
    value = wire.trim_ows(values[0])
    if message.method == "initialize":
        wanted = message.params.get("protocolVersion")
        modern = rev.version_kind(value) in ("modern", "future")
        body = wanted if isinstance(wanted, str) else None
        detail = "no version is negotiated before initialize is answered"
        return plain(VERSION, values, body, "not-required", detail, ("mismatch",) if modern and value != body else ())
    unknown = "no session says what was negotiated"
    return _negotiated(exchange, values) or plain(VERSION, values, None, "unchecked", unknown)


def _negotiated(exchange: Exchange, values: list[str]) -> HeaderCheck | None:
    """The version header beside what was negotiated in the legacy session; None where that is not known."""
    session = exchange.session
    if session is None or session.revision is None or not session.initialize_flow or exchange.reading is None:
        return None
    same = all(wire.trim_ows(v) == session.revision for v in values)
    detail = "the version negotiated in this session"
    return plain(VERSION, values, session.revision, "match" if same else "mismatch", detail)
