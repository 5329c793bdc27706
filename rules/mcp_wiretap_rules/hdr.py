"""HDR: the headers of a request and of its answer (2026-07-28 basic/transports/streamable-http#request-metadata).

The mirrored headers are compared once, by `mcp_wiretap.trace.mirrored.check`; the rules read its checks. Entries of the catalogue that
say how to compare have no rule here: names in any case (HDR011), outer whitespace (HDR012), comma lists (HDR023).
"""

from collections.abc import Iterator
from functools import lru_cache

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.era import claim
from mcp_wiretap.trace.era.clients import MODERN_CLIENT
from mcp_wiretap.trace.finding import Party
from mcp_wiretap.trace.mirrored.check import CORE_NAMES, NAME_SOURCE
from mcp_wiretap.trace.mirrored.verdict import METHOD, NAME, VERSION
from mcp_wiretap.trace.model import Exchange, HeaderCheck, Message, StreamItem
from mcp_wiretap.trace.refusals.cors import HIDDEN, PREFLIGHT, is_read_by_page, lacks
from mcp_wiretap.wire import cors
from mcp_wiretap.wire import headers as wire
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import Reading
from mcp_wiretap.wire.secret import one_line

HTTP = "2026-07-28 basic/transports/streamable-http"
MODERN = ("2026-07-28",)
# Methods of the modern core that name nothing. Those of extensions may have a source of their own: nothing is said of them.
NAMELESS = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "subscriptions/listen",
    }
)


def _check(message: Message, header: str) -> HeaderCheck | None:
    for check in message.exchange.header_checks:
        if check.header == header:
            return check
    return None


def _with(message: Message, header: str, problem: str) -> HeaderCheck | None:
    check = _check(message, header)
    return check if check is not None and problem in check.problems else None


def say(value: str | None) -> str:
    """A value inside a sentence."""
    if value is None:
        return "nothing"
    return one_line(value, 60) if value else "the empty string"


def both_sides(message: Message, check: HeaderCheck) -> list[Evidence]:
    """The header beside the body value that it mirrors."""
    found = [evidence(f"request.header:{check.header}", check.raw, check.expected)]
    if check.where and check.body is not None:
        found.append(evidence(message.place(*check.where), check.body))
    return found


def _merged(check: HeaderCheck) -> str:
    """HDR023: a comma list in a header that has one value is most likely two headers that something merged."""
    if "merged-equal" in check.problems or "merged-different" in check.problems:
        return " (two values merged in one line)"
    return _repeated(check)


def _repeated(check: HeaderCheck) -> str:
    return " (the header is there more than once)" if "duplicate-different" in check.problems else ""


@rule(
    "HDR001",
    "protocol-version-header-missing",
    "Modern request without MCP-Protocol-Version",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#protocol-version-header",
    sep="2575",
    needs=("headers",),
    transport=("http",),
)
def protocol_version_header_missing(message: Message) -> Iterator[Finding]:
    """Every modern request carries the header MCP-Protocol-Version; an empty value is none.

    Why: gateways and servers choose by this header how to read the request. Without it a server may take the request for one of
    2025-03-26, or must refuse it with -32020.

    Fix: send MCP-Protocol-Version with the version that the envelope names, on every POST.

    Wrong::

        modern tools/list
          -header MCP-Protocol-Version
          -> error -32020

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    check = _with(message, VERSION, "missing")
    if check is not None:
        yield Finding(f"MCP-Protocol-Version is missing, the envelope says {say(check.body)}", both_sides(message, check))


@rule(
    "HDR002",
    "protocol-version-header-mismatch",
    "Version header differs from envelope",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    always=True,
    spec=f"{HTTP}#protocol-version-header",
    sep="2575",
    needs=("headers",),
    transport=("http",),
)
def protocol_version_header_mismatch(message: Message) -> Iterator[Finding]:
    """MCP-Protocol-Version has the very value of the envelope's protocolVersion, character for character.

    Why: what stands before the server reads the header, the server reads the envelope. If they differ, the two treat the same
    request by different rules; the server has to refuse it with -32020.

    Fix: fill the header from the same variable as the envelope, also after a version was negotiated or a request is repeated.

    Wrong::

        modern tools/list
          header MCP-Protocol-Version: 2025-11-25
          -> error -32020

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    # In scope is what has an envelope, a legacy revision in it included: the header beside it is modern then.
    if not message.exchange.claim.modern and message.exchange.claim.kind != "legacy-envelope":
        return
    check = _with(message, VERSION, "mismatch")
    if check is not None:
        yield Finding(
            f"MCP-Protocol-Version says {say(check.decoded)}, the envelope says {say(check.body)}{_merged(check)}",
            both_sides(message, check),
        )


@rule(
    "HDR003",
    "method-header-missing",
    "Modern request without Mcp-Method",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#standard-request-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def method_header_missing(message: Message) -> Iterator[Finding]:
    """Every modern request carries the header Mcp-Method.

    Why: gateways route and limit by it without reading the body; a server must refuse a request without it.

    Fix: send Mcp-Method with the `method` of the body.

    Wrong::

        modern tools/list
          -header Mcp-Method
          -> error -32020

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    check = _with(message, METHOD, "missing")
    if check is not None:
        yield Finding(f"Mcp-Method is missing, the body says {say(check.body)}", both_sides(message, check))


@rule(
    "HDR004",
    "method-header-mismatch",
    "Mcp-Method differs from body method",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-validation",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def method_header_mismatch(message: Message) -> Iterator[Finding]:
    """Mcp-Method has the very value of the body's `method`. Case counts, and no Base64 form is defined for this header.

    Why: a gateway that allows or routes by the header lets through what the server then does by the body.

    Fix: fill Mcp-Method from the message that is sent, not from the call that caused it.

    Wrong::

        modern tools/list
          header Mcp-Method: tools/call
          -> error -32020

    Right::

        modern tools/list
          header mcp-method: tools/list
          -> result {"tools": []}
    """
    check = _with(message, METHOD, "mismatch")
    if check is not None:
        yield Finding(
            f"Mcp-Method says {say(check.decoded)}, the body says {say(check.body)}{_merged(check)}",
            both_sides(message, check),
        )


@rule(
    "HDR005",
    "name-header-missing",
    "Mcp-Name missing on a name-bearing request",
    on="request",
    methods=CORE_NAMES,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#standard-request-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def name_header_missing(message: Message) -> Iterator[Finding]:
    """tools/call, prompts/get and resources/read carry the header Mcp-Name with params.name or params.uri.

    Why: gateways route and limit by the tool, prompt or resource; a server must refuse a request without the header.

    Fix: send Mcp-Name on these three methods; a name that is not plain ASCII goes as `=?base64?...?=`.

    Wrong::

        modern tools/call {"name": "echo", "arguments": {}}
          -header Mcp-Name
          -> error -32020

    Right::

        modern tools/call {"name": "echo", "arguments": {}}
          -> result {"content": []}
    """
    check = _with(message, NAME, "missing")
    if check is not None:
        yield Finding(f"Mcp-Name is missing, the body says {say(check.body)}", both_sides(message, check))


@rule(
    "HDR006",
    "name-header-mismatch",
    "Mcp-Name differs from params.name / params.uri",
    on="request",
    methods=CORE_NAMES,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-validation",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def name_header_mismatch(message: Message) -> Iterator[Finding]:
    """Mcp-Name, decoded where it is a sentinel, has the very value of params.name or params.uri: no normalised URI, no
    percent-decoding, no change of case.

    Why: a gateway that allows or routes by the header lets through what the server then does by the body.

    Fix: fill Mcp-Name from the same value as the body, and encode it as `=?base64?...?=` where it is not plain ASCII.

    Wrong::

        modern tools/call {"name": "echo", "arguments": {}}
          header Mcp-Name: delete
          -> error -32020

    Right::

        modern tools/call {"name": "échos", "arguments": {}}
          header Mcp-Name: =?base64?w6ljaG9z?=
          -> result {"content": []}
    """
    check = _with(message, NAME, "mismatch")
    if check is not None:
        yield Finding(
            f"Mcp-Name says {say(check.decoded)}, the body says {say(check.body)}{_repeated(check)}",
            both_sides(message, check),
        )


@rule(
    "HDR007",
    "name-sentinel-malformed",
    "Mcp-Name has a sentinel that does not decode",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def name_sentinel_malformed(message: Message) -> Iterator[Finding]:
    """Between `=?base64?` and `?=` stands padded Base64 of the standard alphabet, of a text in UTF-8.

    Why: a strict receiver cannot read the name and must refuse the request, a lenient one reads something else.

    Fix: use the standard Base64 alphabet with padding (not the URL-safe one) on the UTF-8 bytes of the name.

    Wrong::

        modern tools/call {"name": "échos", "arguments": {}}
          header Mcp-Name: =?base64?w6ljaG9z=?=
          -> error -32020

    Right::

        modern tools/call {"name": "échos", "arguments": {}}
          header Mcp-Name: =?base64?w6ljaG9z?=
          -> result {"content": []}
    """
    check = _check(message, NAME)
    if check is None:
        return
    if "undecodable" in check.problems:
        severity: Severity = "info" if "elsewhere" in check.problems else "error"
        yield Finding(f"Mcp-Name does not decode: {check.detail}", both_sides(message, check), severity)
    elif "spare-bits" in check.problems:
        yield Finding(
            "Mcp-Name is Base64 whose unused bits are not zero: strict decoders refuse it", both_sides(message, check), "info"
        )


@rule(
    "HDR008",
    "name-must-be-encoded",
    "Mcp-Name needed the sentinel but was sent raw",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#standard-request-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def name_must_be_encoded(message: Message) -> Iterator[Finding]:
    """A name or URI that is not plain ASCII, has spaces at its ends, or itself looks like `=?base64?...?=` travels as a sentinel.

    Why: HTTP loses or changes such values on their way, and one that looks like a sentinel would be decoded into another name.

    Fix: send `=?base64?` + Base64 of the UTF-8 bytes + `?=`.

    Wrong::

        modern tools/call {"name": "échos", "arguments": {}}
          header Mcp-Name: échos
          -> error -32020

    Right::

        modern tools/call {"name": "échos", "arguments": {}}
          header Mcp-Name: =?base64?w6ljaG9z?=
          -> result {"content": []}
    """
    check = _with(message, NAME, "should-be-encoded")
    if check is not None:
        yield Finding(f"Mcp-Name was sent raw, it has to be encoded: {reason(check)}", both_sides(message, check))


def reason(check: HeaderCheck) -> str:
    """Why a value had to be encoded: the first character that is not safe, and where."""
    if "lookalike" in check.problems:
        return "the value itself looks like a sentinel"
    unsafe = wire.first_unsafe(check.body or "")
    if unsafe is None:
        return "the value itself looks like a sentinel" if wire.is_sentinel(check.body or "") else "the value is not safe"
    return f"U+{ord(unsafe[1]):04X} at index {unsafe[0]}"


@rule(
    "HDR009",
    "header-value-invalid-characters",
    "Raw octets outside the allowed set in a mirrored header",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def header_value_invalid_characters(message: Message) -> Iterator[Finding]:
    """Mirrored headers hold visible ASCII, spaces and inner tabs, no other byte.

    Why: other bytes are read differently by each hop, or open the door to header injection; servers must refuse them.

    Fix: encode values that are not plain ASCII as `=?base64?...?=`. Method and version never need another byte.

    Wrong::

        modern tools/call {"name": "echo", "arguments": {}}
          header Mcp-Name: echo\\xff
          -> error -32020

    Right::

        modern tools/call {"name": "echo", "arguments": {}}
          -> result {"content": []}
    """
    for check in message.exchange.header_checks:
        if check.problems & {"invalid-octet", "should-be-encoded"}:
            found = next(
                (bad for value in message.exchange.request_fields.all_bytes(check.header) if (bad := wire.invalid_octets(value))),
                None,
            )
            if found is not None:
                at, byte = found
                yield Finding(
                    f"{check.header} has the byte 0x{byte:02x} at {at}", [evidence(f"request.header:{check.header}", check.raw)]
                )


@rule(
    "HDR010",
    "duplicate-standard-header",
    "A mirrored header appears more than once",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-validation",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def duplicate_standard_header(message: Message) -> Iterator[Finding]:
    """MCP-Protocol-Version, Mcp-Method and Mcp-Name are there once.

    Why: one hop takes the first value, another the last: where they differ, what is allowed is not what is done.

    Fix: set the header, do not add to it, in the client and in what stands before the server.

    Wrong::

        modern tools/list
          +header Mcp-Method: tools/call
          -> error -32020

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    for check in message.exchange.header_checks:
        if not check.problems or check.header not in (VERSION, METHOD, NAME):
            continue
        different = "duplicate-different" in check.problems or "merged-different" in check.problems
        if different or "duplicate-equal" in check.problems or "merged-equal" in check.problems:
            values = message.exchange.request_fields.all(check.header)
            shown = ", ".join(say(wire.trim_ows(v)) for v in values[:4])
            lines = "in one line" if len(values) == 1 else f"in {len(values)} lines"
            what = "different values" if different else "the same value"
            yield Finding(
                f"{check.header} has {what} {lines} ({shown}): the client or an intermediary added one",
                [
                    evidence(f"request.header:{check.header}", v, check.expected if different else "one line of it")
                    for v in values[:4]
                ],
                "error" if different else "warning",
            )


@rule(
    "HDR013",
    "name-header-on-other-method",
    "Mcp-Name on a method with no name source",
    on="request",
    methods=NAMELESS,
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#standard-request-headers",
    sep="2243",
    transport=("http",),
)
def name_header_on_other_method(message: Message) -> Iterator[Finding]:
    """Mcp-Name mirrors params.name, params.uri or a task's id; the other methods of the core have nothing to mirror.

    Why: nobody can verify such a value, yet something may route on it.

    Fix: leave Mcp-Name out on this method.

    Wrong::

        modern tools/list
          header Mcp-Name: echo
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    check = _with(message, NAME, "elsewhere")
    if check is not None:
        yield Finding(
            f"Mcp-Name says {say(check.decoded)}, but {message.method} has no name to mirror",
            [evidence("request.header:Mcp-Name", check.raw)],
        )


@rule(
    "HDR014",
    "headers-on-notification",
    "Mirrored headers of a notification contradict it",
    on="notification",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#sending-messages",
    sep="2243",
    transport=("http",),
)
def headers_on_notification(message: Message) -> Iterator[Finding]:
    """Nothing says which headers a notification POST has, so none is missing. What is there should still be true.

    Why: something before the server may route on a header that the server never compares.

    Fix: leave the header out, or fill it from the notification itself.

    Wrong::

        modern-notify notifications/example
          header Mcp-Method: tools/call
          -> 202

    Right::

        modern-notify notifications/example
          -> 202
    """
    for check in message.exchange.header_checks:
        if "mismatch" in check.problems:
            yield Finding(
                f"{check.header} says {say(check.decoded)}, the notification says {say(check.body)}",
                [evidence(f"request.header:{check.header}", check.raw, check.body)],
            )


@rule(
    "HDR015",
    "stale-modern-headers-on-legacy",
    "Mirrored headers on legacy traffic",
    on=("request", "notification"),
    level="may-note",
    party="client",
    era="legacy",
    severity="warning",
    versions=("2025-03-26", "2025-06-18", "2025-11-25"),
    spec=f"{HTTP}#server-validation",
    sep="2243",
    transport=("http",),
)
def stale_modern_headers_on_legacy(message: Message) -> Iterator[Finding]:
    """Legacy revisions know no Mcp-Method, Mcp-Name or Mcp-Param-*, and initialize is no place for a modern version header:
    nobody compares them with the body.

    Why: something before the server may route on such a header, or refuse the request for it, though the server ignores it. After
    a fallback it often shows which layer of a client went on in the modern era.

    Fix: send the mirrored headers with modern requests only, also on the hop that adds headers by itself.

    Wrong::

        legacy initialize
          header MCP-Protocol-Version: 2026-07-28
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    for check in message.exchange.header_checks:
        if check.verdict != "not-required":
            continue
        if "mismatch" in check.problems:
            yield Finding(
                f"{check.header} says {say(check.decoded)}, this {message.method} of the legacy era says {say(check.body)}",
                [evidence(f"request.header:{check.header}", check.raw, check.body)],
            )
        elif check.header != VERSION and not (check.header == METHOD and message.method == "initialize"):
            yield Finding(
                f"{check.header} is sent on a request of the legacy era, where nothing validates it",
                [evidence(f"request.header:{check.header}", check.raw)],
                "info",
            )


@rule(
    "HDR016",
    "accept-incomplete",
    "Accept does not list both media types",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    versions=rev.STREAMABLE,
    streamable=True,
    spec=f"{HTTP}#sending-messages",
    transport=("http",),
)
def accept_incomplete(exchange: Exchange) -> Iterator[Finding]:
    """A POST of a JSON-RPC message lists application/json and text/event-stream in Accept; a legacy GET text/event-stream.

    Why: the server chooses per request whether it answers with JSON or with a stream. Many refuse with 406
    what does not list both.

    Fix: send `Accept: application/json, text/event-stream` on every POST.

    Wrong::

        modern tools/list
          header Accept: application/json
          -> 406

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    wanted = _accepted_types(exchange)
    if not wanted or exchange.over_http_sse:
        return
    lines = exchange.request_fields.all("accept")
    line = ",".join(lines)
    listed, wild = _accept(line) if len(line) < 500 else _accept.__wrapped__(line)
    missing = [t for t in wanted if t not in listed]
    if not missing:
        return
    covered = all(t in wild for t in missing)
    severity: Severity = "warning" if covered else "error"
    if exchange.status == 202 and exchange.request is not None:
        severity = "info"  # only HTTP+SSE answers a request so: the capture began after its endpoint event
    what = " and ".join(missing)
    message = f"Accept does not name {what}" if lines else f"there is no Accept, which has to name {what}"
    if covered:
        message += ", only a wildcard covers it"
    yield Finding(message, [evidence("request.header:Accept", ", ".join(lines) if lines else None, ", ".join(wanted))], severity)


JSON, SSE = "application/json", "text/event-stream"


def _accepted_types(exchange: Exchange) -> tuple[str, ...]:
    """The media types that Accept has to name; none where nothing is demanded."""
    if exchange.http_method == "POST":
        return (JSON, SSE) if is_mcp_message(exchange) else ()
    if exchange.http_method == "GET" and not exchange.claim.modern:
        # The version alone does not make an MCP GET: clients send it with the metadata of OAuth, too.
        fields = exchange.request_fields
        if fields.has("mcp-session-id") or (exchange.endpoint.proven and fields.has("mcp-protocol-version")):
            return (SSE,)
    return ()


# First words of the methods that MCP defines. Other JSON-RPC passes a proxy, too, and has other habits.
_MCP_WORDS = frozenset(
    {
        "initialize",
        "ping",
        "server",
        "tools",
        "prompts",
        "resources",
        "completion",
        "logging",
        "subscriptions",
        "tasks",
        "notifications",
        "sampling",
        "elicitation",
        "roots",
    }
)


def is_mcp_message(exchange: Exchange) -> bool:
    """Whether the body is JSON-RPC of MCP: by its claim, its session, its headers or its method."""
    if not any(message.rpc.kind != "invalid" for message in exchange.sent):
        return False
    if exchange.claim.modern or exchange.session is not None or exchange.request_fields.names_starting("mcp-"):
        return True
    return any((message.method or "").partition("/")[0] in _MCP_WORDS for message in exchange.sent[:20])


@lru_cache(maxsize=64)
def _accept(line: str) -> tuple[set[str], set[str]]:
    """The media types that Accept names, and those that a wildcard covers. A range with q=0 is refused."""
    listed, wild = set(), set()
    for part in line.split(","):
        media, *parameters = (p.strip(" \t").lower() for p in part.split(";"))
        if any(p.startswith("q=") and not _positive(p[2:]) for p in parameters):
            continue
        if media in (JSON, SSE):
            listed.add(media)
        elif media == "*/*":
            wild |= {JSON, SSE}
        elif media in ("application/*", "text/*"):
            wild.add(JSON if media == "application/*" else SSE)
    return listed, wild


def _positive(quality: str) -> bool:
    try:
        return float(quality) > 0
    except ValueError:
        return True


def media_type(value: str | None) -> str:
    """The media type of a Content-Type, without its parameters; "" where there is none."""
    if value == JSON:
        return JSON
    return wire.trim_ows((value or "").partition(";")[0]).lower()


@rule(
    "HDR017",
    "request-content-type",
    "POST body media type",
    on="post",
    level="may-note",
    party="client",
    era="both",
    severity="warning",
    versions=rev.STREAMABLE,
    streamable=True,
    spec=f"{HTTP}#standard-request-headers",
    transport=("http",),
)
def request_content_type(exchange: Exchange) -> Iterator[Finding]:
    """A POST with a JSON-RPC body says `Content-Type: application/json`; parameters such as charset are fine.

    Why: servers and gateways refuse other types with 415, or do not read the body.

    Fix: send `Content-Type: application/json`.

    Wrong::

        modern tools/list
          header Content-Type: text/plain
          -> result {"tools": []}

    Right::

        modern tools/list
          header Content-Type: application/json; charset=utf-8
          -> result {"tools": []}
    """
    if exchange.http_method != "POST" or not is_mcp_message(exchange):
        return
    value = exchange.request_fields.first("content-type")
    if media_type(value) != JSON:
        said = f"Content-Type says {say(value)}" if value is not None else "Content-Type is missing"
        yield Finding(f"{said}, the body is JSON", [evidence("request.header:Content-Type", value, JSON)])


@rule(
    "HDR018",
    "response-content-type",
    "Answer to a request is neither JSON nor SSE",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="error",
    versions=rev.STREAMABLE,
    streamable=True,
    spec=f"{HTTP}#sending-messages",
    transport=("http",),
)
def response_content_type(exchange: Exchange) -> Iterator[Finding]:
    """A request that is not refused is answered with application/json or text/event-stream, and a body of that kind.

    Why: a client chooses by Content-Type how to read the answer; with another one it reads nothing.

    Fix: answer requests with `Content-Type: application/json` and one JSON object, or with an event stream. Messages that are
    written one after the other are not JSON: a client that streams reads `text/event-stream`. A listen is SUB018's.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> 200 text/html <p>hello</p>

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    request, status = exchange.request, exchange.status
    if request is None or exchange.http_method != "POST" or status is None or not 200 <= status < 300:
        return
    if not is_mcp_message(exchange):
        return
    value = exchange.response_fields.first("content-type") if exchange.response_fields is not None else None
    media = media_type(value)
    where = "response.header:Content-Type"
    if media == SSE:
        if exchange.stream is not None and exchange.stream.foreign and not exchange.stream.decode_problem:
            begin = one_line(exchange.stream.foreign, 40)
            yield Finding(
                f"the answer to {request.method} says {SSE}, its body is no event stream: begins with {begin}",
                [evidence(where, value), evidence("response.body:", begin)],
            )
        return
    if status == 202 and not exchange.request_fields.names_starting("mcp-"):
        # HTTP+SSE answers every request so. Its endpoint event may have come before the recording began.
        if request.rpc.id is None:
            text = f"HTTP 202 accepts {say(request.method)}, whose id is null, as if it were a notification"
            yield Finding(text, [evidence("response.status", status, "HTTP 400 with -32600")], "info")
        elif not exchange.over_http_sse:
            yield Finding(
                f"HTTP 202 answers {request.method}, as on HTTP+SSE, but no endpoint event was seen",
                [evidence(where, value, f"{JSON} or {SSE}")],
                "info",
            )
        return
    fields = exchange.response_fields
    if (
        request.method == "subscriptions/listen"
        and exchange.ended_by != "complete"
        and not (fields and fields.has("content-length"))
    ):
        return  # SUB018
    if media != JSON:
        said = f"of type {say(value)}" if value is not None else "without Content-Type"
        yield Finding(f"HTTP {status} {said} answers {request.method}", [evidence(where, value, f"{JSON} or {SSE}")])
        return
    reading = exchange.answer_reading
    if reading is not None and reading.kind == "lines" and len(reading.messages) > 1 and request.method != "subscriptions/listen":
        yield Finding(
            f"the answer to {request.method} says {JSON}, its body holds {len(reading.messages)} JSON values",
            [evidence(where, value), Evidence("response.body:", f"{len(reading.messages)} JSON values", "one JSON object")],
        )
    elif reading is not None and exchange.ended_by == "complete" and reading.kind in ("empty", "not-json"):  # not-utf8: HDR025
        problem = "is empty" if reading.kind == "empty" else f"is not JSON: {reading.problem}"
        yield Finding(
            f"the answer to {request.method} says {JSON}, its body {problem}",
            [evidence(where, value), evidence("response.body:", None)],
        )


@rule(
    "HDR019",
    "session-header-on-modern-request",
    "Mcp-Session-Id sent on a modern request",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    once="client",
    spec=f"{HTTP}#earlier-streamable-http-revisions",
    sep="2567",
    needs=("header:mcp-session-id",),
    transport=("http",),
)
def session_header_on_modern_request(message: Message) -> Iterator[Finding]:
    """The modern era has no sessions: servers ignore Mcp-Session-Id on modern requests.

    Why: a gateway may still stick to it or refuse it, and the client seems to expect state that nobody keeps.

    Fix: leave Mcp-Session-Id out of modern requests.

    Wrong::

        modern tools/list
          header Mcp-Session-Id: abc
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    exchange = message.exchange
    value = exchange.request_fields.first("mcp-session-id")
    # In a session that lives the client mixes the eras, which is ERA017.
    if value is not None and not (exchange.session is not None and exchange.session.live):
        yield Finding(
            "Mcp-Session-Id is sent on a modern request, which has no session",
            [evidence("request.header:Mcp-Session-Id", value)],
        )


@rule(
    "HDR020",
    "session-minted-on-modern",
    "Server mints or echoes a session id for a modern request",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    versions=MODERN,
    once="endpoint",
    spec=f"{HTTP}#earlier-streamable-http-revisions",
    sep="2567",
    transport=("http",),
)
def session_minted_on_modern(message: Message) -> Iterator[Finding]:
    """A server neither mints nor echoes Mcp-Session-Id for modern requests.

    Why: a client that speaks both eras may take the id for a session and send it on, or wait for one to end.

    Fix: set Mcp-Session-Id in answers to a legacy initialize only. A gateway that adds it for stickiness should use a cookie.

    Wrong::

        modern tools/list
          -> header Mcp-Session-Id: abc
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    exchange, request = message.exchange, message.request
    fields = exchange.response_fields
    value = fields.first("mcp-session-id") if fields is not None else None
    if value is None or request is None or request.exchange is not exchange:
        return
    # A legacy server that refuses a probe, or takes it for one of its own, may well hand out a session id.
    if claim.is_modern_answer(message, request, exchange.status, exchange.claim):
        yield Finding(
            f"the server, or a gateway, gives a session id with its modern answer to {request.method}",
            [evidence("response.header:Mcp-Session-Id", value)],
        )


@rule(
    "HDR021",
    "last-event-id-on-modern",
    "Last-Event-ID sent to a modern endpoint",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#earlier-streamable-http-revisions",
    sep="2575",
    needs=("header:last-event-id",),
    transport=("http",),
)
def last_event_id_on_modern(message: Message) -> Iterator[Finding]:
    """Streams of the modern era cannot be resumed: Last-Event-ID on a modern POST is ignored.

    Why: the client seems to expect the rest of a stream, and gets the answer to a new request.

    Fix: send the request anew without Last-Event-ID, and expect that it is carried out anew.

    Wrong::

        modern tools/list
          header Last-Event-ID: 7
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    value = message.exchange.request_fields.first("last-event-id")
    if value is not None:
        yield Finding(
            "Last-Event-ID is sent on a modern request, whose stream cannot be resumed",
            [evidence("request.header:Last-Event-ID", value)],
        )


@rule(
    "HDR022",
    "non-post-on-modern",
    "GET or DELETE by a client that runs the modern era",
    on="post",
    level="may-note",
    party="client",
    era="modern",
    severity="warning",
    versions=MODERN,
    always=True,
    spec=f"{HTTP}#sending-messages",
    sep="2567",
    transport=("http",),
)
def non_post_on_modern(exchange: Exchange) -> Iterator[Finding]:
    """In the modern era every message is a POST; there is no GET stream to open and no session to DELETE.

    Why: a modern server answers 405. A message in the body of another method reaches no server.

    Fix: send messages by POST; ask for notifications with subscriptions/listen.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        PUT /mcp
          body {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
          -> 405

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        GET /mcp
          header Accept: text/html
          -> 405
    """
    method = exchange.http_method
    if method in ("POST", "HEAD", "OPTIONS") or exchange.kind != "mcp":
        return
    modern = exchange.facts.get(MODERN_CLIENT)
    reading = exchange.reading
    if reading is not None and any(m.kind != "invalid" for m in reading.messages):
        if modern or exchange.claim.modern:
            yield Finding(
                f"a JSON-RPC message is sent by {one_line(method, 20)}, messages are POSTed",
                [evidence("request.method", method, "POST")],
            )
    elif modern and method in ("GET", "DELETE") and not _is_browser(exchange):
        yield Finding(
            f"{method} by a client that speaks modern here: a modern server answers 405",
            [evidence("request.method", method, "POST")],
            "info",
        )


def _is_browser(exchange: Exchange) -> bool:
    return "text/html" in (exchange.request_fields.first("accept") or "")


@rule(
    "HDR024",
    "name-needless-base64",
    "Sentinel used for a value that is safe raw",
    on="request",
    methods=NAME_SOURCE,
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def name_needless_base64(message: Message) -> Iterator[Finding]:
    """A name that is plain ASCII may be encoded, but need not be. Servers decode before they compare.

    Why: a routing rule that was written for the raw name does not match the encoded one.

    Fix: send plain names as they are, and keep the sentinel for names that need it.

    Wrong::

        modern tools/call {"name": "echo", "arguments": {}}
          header Mcp-Name: =?base64?ZWNobw==?=
          -> result {"content": []}

    Right::

        modern tools/call {"name": "echo", "arguments": {}}
          -> result {"content": []}
    """
    check = _with(message, NAME, "needless-encoding")
    if check is not None:
        yield Finding(f"Mcp-Name is encoded though {say(check.body)} is safe as it is", both_sides(message, check))


@rule(
    "HDR025",
    "body-not-utf8",
    "JSON-RPC body is not UTF-8",
    on=("exchange", "event"),
    level="must",
    party="either",
    era="both",
    severity="error",
    always=True,
    spec="2026-07-28 basic/transports/index#messages",
    transport=("http",),
)
def body_not_utf8(fact: Exchange | StreamItem) -> Iterator[Finding]:
    """JSON-RPC messages are encoded in UTF-8, in bodies and in event streams.

    Why: a receiver that decodes strictly refuses the message, another one reads other characters than were meant.

    Fix: encode as UTF-8, whatever the Content-Type says of a charset.

    Wrong::

        modern tools/call {"name": "echo", "arguments": {}}
          body {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\\xe9"}}
          -> 400

    Right::

        modern tools/call {"name": "échos", "arguments": {}}
          -> result {"content": []}
    """
    if isinstance(fact, StreamItem):
        if fact.event.not_utf8 and not fact.event.truncated and fact.exchange.kind == "mcp":
            yield Finding(
                f"event {fact.event.index} of the stream is not UTF-8", [evidence(f"{fact.where}:", "not UTF-8")], party="server"
            )
        return
    if fact.kind != "mcp":
        return
    if fact.http_method == "POST":
        yield from _encoding("request", "client", fact.reading, fact.request_fields)
    whole = fact.ended_by == "complete" and not fact.dropped  # a cut may end inside a character
    if whole and fact.answer_reading is not None and fact.response_fields is not None:
        yield from _encoding("response", "server", fact.answer_reading, fact.response_fields)


def _encoding(side: str, party: Party, reading: Reading | None, fields: wire.Fields) -> Iterator[Finding]:
    content_type = fields.first("content-type")
    if reading is None or (content_type is not None and media_type(content_type) != JSON):
        return
    if content_type == JSON and reading.kind != "not-utf8" and not reading.bom:
        return
    if reading.kind == "not-utf8":
        yield Finding(
            f"the {side} body is not UTF-8: {reading.problem}", [evidence(f"{side}.body:", reading.problem)], party=party
        )
        return
    where = f"{side}.header:Content-Type"
    if content_type is not None and len(content_type) > len(JSON):
        charset = content_type.lower().partition("charset=")[2].partition(";")[0].strip(" \t\"'")
        if charset not in ("", "utf-8", "utf8", "us-ascii"):
            yield Finding(
                f"Content-Type says charset {say(charset)}, the {side} body is UTF-8",
                [evidence(where, content_type, "utf-8")],
                "info",
                party,
            )
    if reading.bom:
        yield Finding(f"the {side} body begins with a byte order mark", [evidence(f"{side}.body:", "EF BB BF")], "info", party)


@rule(
    "HDR026",
    "oversized-headers-rejected",
    "413/431 with mirrored headers present",
    on="exchange",
    level="may-note",
    party="either",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#client-behavior",
    sep="2243",
    transport=("http",),
)
def oversized_headers_rejected(exchange: Exchange) -> Iterator[Finding]:
    """When a modern POST is refused with 431 or 413, long Mcp-Name and Mcp-Param-* values are the usual cause.

    Why: names and arguments of any length are mirrored into headers, but servers and gateways allow some kilobytes only.

    Fix: mirror short values only (the server chooses which), or raise the header limit on the way.

    Wrong::

        modern resources/read {"uri": "file:///a/very/long/path"}
          -> 431

    Right::

        modern resources/read {"uri": "file:///a"}
          -> result {"contents": []}
    """
    if exchange.status not in (413, 431):
        return
    sizes = [
        (len(value), name.decode("latin-1"))
        for name, value in exchange.request_fields.raw
        if name[:4].lower() == b"mcp-" and name.lower() != b"mcp-session-id"
    ]
    largest = sorted(sizes, reverse=True)[:3]
    total = sum(size for size, _ in sizes)
    body = exchange.reading.size if exchange.reading is not None else 0
    if not largest or (exchange.status == 413 and total <= body):
        return  # 413 is about the body, unless the headers are the greater part
    listed = ", ".join(f"{one_line(name, 40)} {size} bytes" for size, name in largest)
    yield Finding(
        f"HTTP {exchange.status} to {total} bytes of mirrored headers: {listed}",
        [evidence(f"request.header:{name}", f"{size} bytes") for size, name in largest],
        party="client",
    )


@rule(
    "HDR027",
    "preflight-refused",
    "A browser's preflight is not granted",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{HTTP}#sending-messages",
    always=True,
    kinds=("preflight",),
    transport=("http",),
)
def preflight_refused(exchange: Exchange) -> Iterator[Finding]:
    """A server that pages in browsers may call grants their preflights: a 2xx status, the Origin, the method, and every header
    that MCP needs (MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Param-*, Mcp-Session-Id, Authorization, Content-Type,
    Last-Event-ID).

    Why: the browser does not send the request at all, and the page learns only that it failed.

    Fix: answer OPTIONS without authorization, and list the headers in Access-Control-Allow-Headers. `*` there does not mean
    Authorization. Said once for an endpoint, an Origin and what is lacking.

    Wrong::

        OPTIONS /mcp
          header Origin: http://localhost:6274
          header Access-Control-Request-Method: POST
          header Access-Control-Request-Headers: content-type,mcp-protocol-version
          -> header Access-Control-Allow-Origin: *
          -> header Access-Control-Allow-Headers: content-type
          -> 204

    Right::

        OPTIONS /mcp
          header Origin: http://localhost:6274
          header Access-Control-Request-Method: POST
          header Access-Control-Request-Headers: content-type,mcp-protocol-version
          -> header Access-Control-Allow-Origin: *
          -> header Access-Control-Allow-Headers: content-type, mcp-protocol-version
          -> 204
    """
    repeat = exchange.facts.get(PREFLIGHT)
    found = lacks(exchange)
    if not found or (repeat is not None and repeat.first is not exchange):
        return
    origin = one_line(exchange.request_fields.first("origin") or "", 60)
    said = " and ".join(lack.words for lack in found)
    yield Finding(
        f"a page of {origin} cannot call this endpoint: its preflight {said}" + (repeat.times if repeat is not None else ""),
        [evidence(lack.where, lack.value, lack.wanted) for lack in found],
        related=tuple(repeat.related) if repeat is not None else (),
        once=f"{origin} {said}"[:500],
    )


@rule(
    "HDR028",
    "headers-not-exposed",
    "A page cannot read a header that it needs",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec="2025-11-25 basic/transports#session-management",
    versions=rev.STREAMABLE,
    always=True,
    kinds=("mcp",),
    needs=("header:origin",),
    transport=("http",),
)
def headers_not_exposed(exchange: Exchange) -> Iterator[Finding]:
    """A server that lets pages of other origins call it names the headers that they have to read in
    Access-Control-Expose-Headers: Mcp-Session-Id, and WWW-Authenticate with a 401.

    Why: the browser hides all other headers from the page. It cannot send the session id that it was given, nor find the
    authorization server.

    Fix: answer with `Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate`. A client that sends the id later could
    read it, and nothing is said.

    Wrong::

        legacy initialize
          header Origin: http://localhost:6274
          -> header Access-Control-Allow-Origin: *
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          header Origin: http://localhost:6274
          -> header Access-Control-Allow-Origin: *
          -> header Access-Control-Expose-Headers: Mcp-Session-Id
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    """
    fields, origin = exchange.response_fields, one_line(exchange.request_fields.first("origin") or "", 60)
    if fields is None or not is_read_by_page(exchange):
        return
    exposed, where = fields.joined("access-control-expose-headers"), "response.header:Access-Control-Expose-Headers"
    if exchange.facts.get(HIDDEN):
        text = f"Mcp-Session-Id is not exposed to the page of {origin}: it cannot send it"
        yield Finding(text, [evidence(where, exposed, "Mcp-Session-Id")], once=f"session {origin}"[:200])
    if exchange.status == 401 and fields.has("www-authenticate") and not cors.exposes("www-authenticate", fields):
        text = f"WWW-Authenticate is not exposed to the page of {origin}: it cannot read where to get a token"
        yield Finding(text, [evidence(where, exposed, "WWW-Authenticate")], "info", once=f"challenge {origin}"[:200])
