"""HTS: HTTP status and JSON-RPC error of an answer, and whether accepting or refusing was right.

A server is judged in two steps: first whether the request was faulty (`mcp_wiretap.trace.mirrored.request_faults`), then whether the answer fits.
Where a request has several faults any error that fits one of them is right (HTS022, which gives no finding of its own).
"""

import re
from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.era import served
from mcp_wiretap.trace.era.negotiation import NEGOTIATION, Part
from mcp_wiretap.trace.finding import Severity
from mcp_wiretap.trace.mirrored import request_faults
from mcp_wiretap.trace.mirrored.request_faults import Fault
from mcp_wiretap.trace.model import Exchange, HeaderCheck, Message
from mcp_wiretap.trace.operations.ids import CAME_BACK
from mcp_wiretap.trace.refusals.tracker import (
    ALWAYS_FAILED,
    ELSEWHERE,
    GATEWAY,
    LEAST_FAILED,
    LEAST_METHODS,
    OLD_WAY,
    TYPED,
)
from mcp_wiretap.trace.refusals.words import Topic, speaks_of, words_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.headers import trim_ows
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line, shown
from mcp_wiretap_rules import sites

HTTP = "2026-07-28 basic/transports/streamable-http"
VALIDATION = f"{HTTP}#server-validation"
VERSION_HEADER = f"{HTTP}#protocol-version-header"
SENDING = f"{HTTP}#sending-messages"
META = "2026-07-28 basic/index#_meta"


def _asked(message: Message) -> Exchange | None:
    return message.request.exchange if message.request is not None else None


def _in_stream(message: Message) -> bool:
    return message.where.startswith("response.event")


def _code(message: Message) -> Evidence:
    return evidence(message.place("error", "code"), message.error_code)


def _data(message: Message) -> dict[str, Any]:
    data = message.rpc.error.get("data") if isinstance(message.rpc.error, dict) else None
    return data if isinstance(data, dict) else {}


def _text(message: Message) -> str:
    text = message.rpc.error.get("message") if isinstance(message.rpc.error, dict) else None
    return text[:1_000] if isinstance(text, str) else ""


def _wrong_status(message: Message, code: int, wanted: int) -> Iterator[Finding]:
    """A code that has its own HTTP status, sent with another one."""
    exchange = _asked(message)
    if message.error_code != code or exchange is None or exchange.status == wanted or message is not exchange.answer:
        return
    severity: Severity | None = "warning" if _in_stream(message) else None
    said = f"{code} {rev.error_name(code)}"
    if _in_stream(message):
        text = f"{said} came inside an event stream, where the status is {exchange.status} already"
    else:
        text = f"{said} came with HTTP {exchange.status}"
    yield Finding(
        text,
        [evidence("response.status", exchange.status, wanted), _code(message)],
        severity=severity if exchange.endpoint.modern is not None else "info",
    )


def _has_envelope(exchange: Exchange) -> bool:
    """The request has the shape of the modern era, though its version may be a legacy one (ERA008)."""
    return exchange.claim.modern or exchange.claim.kind == "legacy-envelope"


@rule(
    "HTS001",
    "header-mismatch-status",
    "-32020 not sent with HTTP 400",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VALIDATION,
    sep="2243",
    structural=True,
    sorts=("error",),
    transport=("http",),
)
def header_mismatch_status(message: Message) -> Iterator[Finding]:
    """HeaderMismatch (-32020) is sent with HTTP status 400.

    Why: gateways and clients that do not parse the body see a success otherwise.

    Fix: check the headers before the response begins, and answer 400.

    Wrong::

        modern tools/list
          header Mcp-Method: tools/call
          -> status 200
          -> error -32020

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    yield from _wrong_status(message, rev.HEADER_MISMATCH, 400)


@rule(
    "HTS002",
    "missing-capability-status",
    "-32021 not sent with HTTP 400",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=META,
    sep="2575",
    structural=True,
    sorts=("error",),
    transport=("http",),
)
def missing_capability_status(message: Message) -> Iterator[Finding]:
    """MissingRequiredClientCapability (-32021) is sent with HTTP status 400.

    Why: gateways and clients that do not parse the body see a success otherwise.

    Fix: find out what the call needs before the response begins, and answer 400.

    Wrong::

        modern tools/call {"name": "ask"}
          -> status 200
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {}}}}

    Right::

        modern tools/call {"name": "ask"}
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {}}}}
    """
    yield from _wrong_status(message, rev.MISSING_CAPABILITY, 400)


@rule(
    "HTS003",
    "unsupported-version-status",
    "-32022 not sent with HTTP 400",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VERSION_HEADER,
    sep="2575",
    always=True,
    kinds=("mcp",),
    sorts=("error",),
    transport=("http",),
)
def unsupported_version_status(message: Message) -> Iterator[Finding]:
    """UnsupportedProtocolVersion (-32022) is sent with HTTP status 400.

    Why: a client that looks for the server's era reads the body of a 400; with another status it may take the server for legacy.

    Fix: check the version first of all, and answer 400.

    Wrong::

        modern tools/list
          version 2027-01-01
          -> status 200
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}

    Right::

        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
    """
    exchange = _asked(message)
    if exchange is not None and _has_envelope(exchange):
        yield from _wrong_status(message, rev.UNSUPPORTED_VERSION, 400)


@rule(
    "HTS004",
    "missing-meta-status",
    "Missing envelope not answered 400 + -32602",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=META,
    sep="2575",
    transport=("http",),
)
def missing_meta_status(exchange: Exchange) -> Iterator[Finding]:
    """A request without protocolVersion or clientCapabilities in its envelope is refused with HTTP 400 and -32602.

    Why: a server that serves it guesses what the client speaks and can do, and may not remember it from an earlier request.

    Fix: check the envelope of every request, before the method.

    Wrong::

        modern tools/list
          -meta io.modelcontextprotocol/clientCapabilities
          -> result {"tools": []}

    Right::

        modern tools/list
          -meta io.modelcontextprotocol/clientCapabilities
          -> status 400
          -> error -32602
    """
    request, status = exchange.request, exchange.status
    if request is None or not exchange.claim.modern or status is None or status in ELSEWHERE or status >= 500:
        return
    meta, answer = request.meta, exchange.answer
    if isinstance(meta.get(rev.PROTOCOL_VERSION), str) and meta.get(rev.CLIENT_CAPABILITIES) is not None:
        return
    if not isinstance(request.rpc.body, dict) or not isinstance(request.rpc.body.get("params", {}), dict):
        return  # RPC022: without params there is no envelope to speak of
    lacking = [f for f in request_faults.envelope_faults(exchange) if f.what.startswith("the envelope has no")]
    if not lacking:
        return
    shown = [evidence(lacking[0].where, None, "an answer of HTTP 400 with -32602")]
    if answer is not None and answer.rpc.kind == "result":
        if isinstance(answer.result.get("resultType"), str):
            yield Finding(f"{lacking[0].what}, and the server served the request", shown)
        return
    code = answer.error_code if answer is not None else None
    if not isinstance(meta.get(rev.PROTOCOL_VERSION), str):
        if status == 400 and code in (rev.INVALID_PARAMS, rev.HEADER_MISMATCH):
            return
        dual = exchange.endpoint.initialize_accepted  # it may have taken the request for a legacy one
        said = _said(status, code)
        yield Finding(f"{lacking[0].what}, and the server answered {said}", shown, severity="info" if dual else "warning")
        return
    if request_faults.header_faults(exchange) or _fits(exchange, status, code, lacking):
        return
    if code is None:
        if status >= 400:  # a gateway need not send JSON-RPC
            yield Finding(f"{lacking[0].what}, and the server answered {_said(status, code)}", shown, severity="warning")
        return
    yield Finding(f"{lacking[0].what}, and the server answered {_said(status, code)}", shown)


def _said(status: int | None, code: int | None) -> str:
    return f"HTTP {status} " + (f"with {code}" if code is not None else "without a JSON-RPC error")


def _fits(exchange: Exchange, status: int | None, code: int | None, besides: list[Fault]) -> bool:
    """Whether an error is a right answer to a faulty request: to one of these faults, or to another one that it has as well."""
    if code == rev.INVALID_PARAMS and status == 400:
        return True
    known = {fault.what for fault in besides}
    others = [f for f in request_faults.other_faults(exchange) if f.what not in known]
    if request_faults.fits(others, code):
        return True
    if code == rev.METHOD_NOT_FOUND and status == 404:
        return not served.is_known(exchange, exchange.method or "")
    return False


@rule(
    "HTS005",
    "method-not-found-status",
    "-32601 not sent with HTTP 404",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VERSION_HEADER,
    sep="2575",
    structural=True,
    sorts=("error",),
    transport=("http",),
)
def method_not_found_status(message: Message) -> Iterator[Finding]:
    """A method that the server does not implement is answered with HTTP 404 and -32601.

    Why: the pair of both is how a client tells a modern server from a legacy one that does not know the endpoint.

    Fix: answer 404. For an unknown tool, prompt or resource use -32602: the method does exist.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern example/unknown
          -> status 200
          -> error -32601

    Right::

        modern tools/list
          -> result {"tools": []}
        modern example/unknown
          -> error -32601
    """
    exchange = _asked(message)
    if message.error_code != rev.METHOD_NOT_FOUND or exchange is None or exchange.method == "server/discover":
        return
    if not served.is_known(exchange, exchange.method or ""):  # else the code is misused for a name or an argument
        yield from _wrong_status(message, rev.METHOD_NOT_FOUND, 404)


_MAY_BE_AN_EXTENSION = ("tasks/list", "tasks/result")


@rule(
    "HTS006",
    "removed-method-served",
    "Removed method not answered 404 + -32601",
    on="answer",
    methods=(*request_faults.REMOVED, *_MAY_BE_AN_EXTENSION),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VERSION_HEADER,
    sep="2575",
    transport=("http",),
)
def removed_method_served(message: Message) -> Iterator[Finding]:
    """initialize, ping, logging/setLevel, resources/subscribe and resources/unsubscribe do not exist in the modern era: a request
    for one of them with an envelope gets HTTP 404 and -32601.

    Why: a client that is served believes in a session, a subscription or a level that nothing keeps.

    Fix: route by era first: requests with an envelope never reach the legacy handlers.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern ping
          -> result {}

    Right::

        modern tools/list
          -> result {"tools": []}
        modern ping
          -> error -32601
    """
    exchange = _asked(message)
    if exchange is None or exchange.claim.kind != "modern" or exchange.status in ELSEWHERE:
        return
    method, code = exchange.method or "", message.error_code
    if message.rpc.kind == "error" and (code == rev.METHOD_NOT_FOUND or method in _MAY_BE_AN_EXTENSION):
        return
    if (
        exchange.status is None
        or exchange.status >= 500
        or request_faults.header_faults(exchange)
        or request_faults.other_faults(exchange)
    ):
        return
    shown = [evidence("response.status", exchange.status, 404)]
    if message.rpc.kind == "result":
        mild: Severity | None = "warning" if method in _MAY_BE_AN_EXTENSION else None
        yield Finding(f"{method} does not exist in {exchange.claim.revision}, and the server served it", shown, severity=mild)
    else:
        said = f"{method} does not exist in {exchange.claim.revision}, and the server said {code} instead of -32601"
        yield Finding(said, [_code(message), *shown], severity="warning")


@rule(
    "HTS007",
    "404-without-body",
    "404 to a modern request without JSON-RPC body",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=VERSION_HEADER,
    sep="2575",
    transport=("http",),
)
def not_found_without_body(exchange: Exchange) -> Iterator[Finding]:
    """A modern server that answers 404 says why with a JSON-RPC error, -32601.

    Why: without it the client takes the server for a legacy one that does not host this endpoint, and falls back.

    Fix: answer unknown methods in the MCP handler; look for a gateway that writes its own 404.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern example/unknown
          -> 404 text/html <p>not found</p>

    Right::

        modern tools/list
          -> result {"tools": []}
        modern example/unknown
          -> error -32601
    """
    if exchange.status != 404 or exchange.request is None or not exchange.claim.modern or exchange.endpoint.modern is None:
        return
    old_way = exchange.facts.get(OLD_WAY)
    if old_way is not None and old_way.topic is not None:
        return  # HTS027 says more
    if exchange.answer is None and exchange.answer_reading is not None and exchange.method != "server/discover":
        yield Finding(
            f"{exchange.method} got HTTP 404 without a JSON-RPC error",
            [evidence("response.status", 404, "404 with -32601, or a result")],
        )


@rule(
    "HTS008",
    "get-delete-not-405",
    "GET/DELETE on a modern-only endpoint",
    on="exchange",
    level="should",
    party="server",
    era="modern",
    severity="info",
    spec=f"{HTTP}#earlier-streamable-http-revisions",
    sep="2567",
    always=True,
    transport=("http",),
)
def get_delete_not_405(exchange: Exchange) -> Iterator[Finding]:
    """A server that speaks only the modern era answers GET and DELETE on its endpoint with 405.

    Why: clients of the older revisions use both methods; 405 tells them at once that this server has neither stream nor session.

    Fix: answer 405 with `Allow: POST`.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        legacy initialize
          -> status 400
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2025-11-25"}}
        GET /mcp
          header Accept: text/event-stream
          -> 200 text/plain hello

    Right::

        modern tools/list
          -> result {"tools": []}
        legacy initialize
          -> status 400
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2025-11-25"}}
        GET /mcp
          header Accept: text/event-stream
          -> 405
    """
    endpoint, status = exchange.endpoint, exchange.status
    if exchange.http_method not in ("GET", "DELETE") or status is None or status in _BEFORE_THE_SERVER:
        return
    if endpoint.modern is None or not endpoint.initialize_refused or endpoint.initialize_accepted:
        return
    fields = exchange.request_fields
    if fields.has("mcp-session-id") or "text/html" in (fields.first("accept") or ""):
        return
    yield Finding(
        f"HTTP {exchange.http_method} got {status} from a server that speaks only the modern era",
        [evidence("response.status", status, 405)],
    )


# Who may call, how often, and whether the server can be reached at all; or the right answer.
_BEFORE_THE_SERVER = frozenset({401, 403, 405, 429, 502, 503, 504})


@rule(
    "HTS009",
    "origin-not-refused",
    "Invalid Origin accepted",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{HTTP}#security--endpoint",
    versions=rev.STREAMABLE,
    always=True,
    needs=("header:origin",),
    transport=("http",),
)
def origin_not_refused(message: Message) -> Iterator[Finding]:
    """A server checks the Origin header and refuses one that it does not expect with HTTP 403.

    Why: a web page that the user happens to visit can reach a server on the user's own machine (DNS rebinding).

    Fix: accept only the origins of your own pages and clients without Origin.

    Wrong::

        modern tools/list
          path http://127.0.0.1:8000/mcp
          header Origin: https://evil.example
          -> result {"tools": []}

    Right::

        modern tools/list
          path http://127.0.0.1:8000/mcp
          header Origin: http://localhost:8000
          -> result {"tools": []}
    """
    exchange = _asked(message)
    if exchange is None or message.exchange is not exchange:
        return
    origin = exchange.request_fields.first("origin")
    if origin is None or exchange.status is None or not 200 <= exchange.status < 300 or exchange.kind != "mcp":
        return
    host = sites.host(exchange.url)
    if origin != "null":
        if len(origin) > 2_000:
            return
        asked = uri.host(origin)
        if asked is None or sites.is_private(asked) or sites.is_of(asked, _own_names(exchange, host)):
            return
    fields = exchange.response_fields
    allowed = fields.first("access-control-allow-origin") if fields is not None else None
    opened = allowed in ("*", origin)
    local = sites.is_private(host)
    if opened and not local:
        return
    yield Finding(
        f"Origin {one_line(origin, 60)} was accepted" + (" by a server on a local address" if local else ""),
        [evidence("request.header:Origin", origin, "HTTP 403, unless the server means to accept it")],
        severity=None if local and not opened else "info",
        once=origin[:200],
    )


def _own_names(exchange: Exchange, host: str) -> frozenset[str]:
    """The names whose pages may call a server. What a request calls it is one of them for a public server only: where a name was
    bound to a private address by somebody else, Host and Origin agree."""
    if sites.is_private(host):
        return frozenset({host})
    return frozenset({host, uri.host("//" + (exchange.authority or "")) or host})


@rule(
    "HTS010",
    "origin-refused-status",
    "Origin refusal not 403",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{HTTP}#security--endpoint",
    versions=("2025-11-25", "2026-07-28"),
    needs=("header:origin",),
    transport=("http",),
)
def origin_refused_status(exchange: Exchange) -> Iterator[Finding]:
    """A request with an Origin that the server does not accept gets HTTP 403.

    Why: with another status the browser's page, or the person who reads the log, looks for the fault elsewhere.

    Fix: answer 403; a JSON-RPC error in its body has no id.

    Wrong::

        modern tools/list
          header Origin: https://evil.example
          -> status 400
          -> error -32600 {"message": "Origin not allowed"}

    Right::

        modern tools/list
          header Origin: https://evil.example
          -> 403
    """
    status, answer = exchange.status, exchange.answer
    if status is None or status >= 500 or (answer is not None and answer.rpc.kind != "error"):
        return  # a gateway says of 5xx what became of the "origin server"
    if answer is not None:
        if "origin" in dumps(exchange.request.params if exchange.request is not None else None, most=10_000).lower():
            return  # it may be that of a flight
        text, where = _text(answer), answer.place("error", "message")
    else:
        text, where = _said_in_body(exchange), "response.body"
    if _ORIGIN.search(text) is None or _REFUSING.search(text) is None:
        return
    shown = evidence(where, one_line(text, 100))
    if status != 403 and (answer is not None or status >= 400):
        yield Finding(f"the Origin was refused with HTTP {status}", [evidence("response.status", status, 403), shown])
    elif status == 403 and answer is not None and answer.rpc.id is not None:
        found = [evidence(answer.place("id"), answer.rpc.id, "no id"), shown]
        yield Finding("the error that refuses the Origin has an id; it may be written before the body is read", found, "info")


_ORIGIN = re.compile(r"\borigins?\b", re.I)
_REFUSING = re.compile(
    r"not allowed|invalid|reject|forbidden|denied|not permitted|disallowed|refused|untrusted|not trusted|mismatch", re.I
)


def _said_in_body(exchange: Exchange) -> str:
    """The words of a body that is no answer of MCP's: plain text, other JSON, an error that names no request."""
    reading = exchange.answer_reading
    if reading is None:
        return ""
    if reading.kind == "not-json":
        return reading.head
    if reading.kind == "not-rpc":
        return request_faults.flat(reading.value)
    return next((_text(message) for message in exchange.received if message.rpc.kind == "error"), "")


@rule(
    "HTS011",
    "header-fault-accepted",
    "Server processed a request it had to reject",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VALIDATION,
    sep="2243",
    sorts=("result",),
    transport=("http",),
    structural=True,
)
def header_fault_accepted(message: Message) -> Iterator[Finding]:
    """A server that reads the body refuses a request whose mirrored headers are missing, undecodable or not what the body says.

    Why: a gateway may have routed, limited or permitted the call by the header while the server does what the body says.

    Fix: compare every mirrored header with the body before the method runs; answer 400 and -32020.

    Wrong::

        modern tools/call {"name": "deploy"}
          header Mcp-Name: echo
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          header Mcp-Name: echo
          -> error -32020
    """
    exchange = _asked(message)
    if exchange is None or message.rpc.kind != "result" or exchange.claim.kind not in ("modern", "modern-unknown"):
        return
    kind = message.result.get("resultType")
    typed = isinstance(kind, str)
    if not typed and (exchange.endpoint.modern is None or request_faults.envelope_faults(exchange)):
        return
    found = [f for f in request_faults.header_faults(exchange) if not _is_missing_task_name(exchange, f)]
    if exchange.claim.kind == "modern-unknown":  # that the header says something else is a fault whatever the envelope names
        found = [f for f in found if _is_of_version(f) and f.check is not None and f.check.raw is not None]
    if not typed:  # without the version header a dual-era server may take it for a request of 2025-03-26
        found = [f for f in found if not (_is_of_version(f) and f.check is not None and f.check.raw is None)]
    if not found:
        return
    worst = min(found, key=lambda f: bool(f.doubt))
    where = message.place("result", "resultType") if typed else message.place("result")
    yield Finding(
        f"{worst.what}, and the server processed the request",
        [_header(worst), evidence(where, kind if typed else "a result", "HTTP 400 with -32020")],
        severity="warning" if worst.doubt else None,
    )


def _is_of_version(fault: Fault) -> bool:
    return fault.check is not None and fault.check.header == "MCP-Protocol-Version"


def _is_missing_task_name(exchange: Exchange, fault: Fault) -> bool:
    """tasks/* wants Mcp-Name by the extension alone: the core does not list its absence among the faults."""
    check = fault.check
    return check is not None and check.header == "Mcp-Name" and check.raw is None and (exchange.method or "")[:6] == "tasks/"


def _header(fault: Fault) -> Evidence:
    check = fault.check
    if check is None:
        return evidence(fault.where, fault.what)
    return evidence(f"request.header:{check.header}", check.raw, check.expected)


@rule(
    "HTS012",
    "good-request-rejected",
    "Server rejected a conforming request",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VALIDATION,
    sep="2243",
    sorts=("error",),
    transport=("http",),
)
def good_request_rejected(message: Message) -> Iterator[Finding]:
    """A request whose mirrored headers and envelope are right is not refused for them. Header names in any case, whitespace
    around values, a sentinel where none was needed, a missing clientInfo and an undeclared Mcp-Param header are all right.

    Why: conforming clients cannot use such a server.

    Fix: compare names without regard to case, trim values, decode sentinels before comparing, compare integers as numbers, and
    ignore Mcp-Session-Id, Last-Event-ID and headers that you do not know.

    Wrong::

        modern resources/read {"uri": "file:///caf\\u00e9"}
          -> error -32020 {"message": "Mcp-Name does not match"}

    Right::

        modern resources/read {"uri": "file:///caf\\u00e9"}
          -> result {"contents": []}
    """
    exchange, code = _asked(message), message.error_code
    if exchange is None or code is None or exchange.claim.kind != "modern" or exchange.status in ELSEWHERE:
        return
    if request_faults.header_faults(exchange) or request_faults.other_faults(exchange):
        return
    if code == rev.HEADER_MISMATCH:
        yield from _refused_for_headers(message, exchange)
    elif code == rev.INVALID_PARAMS and exchange.status == 400:
        key = request_faults.names_envelope(message)
        if key is not None:
            shown = [evidence(message.place("error", "message"), _text(message))]
            yield Finding(f"the request was refused for {key} in its envelope, which is right", shown)
    elif code in range(-32099, -31999) and code not in TYPED and exchange.status in (400, 404):
        yield from _refused_for_stray_header(message, exchange)


def _refused_for_headers(message: Message, exchange: Exchange) -> Iterator[Finding]:
    if request_faults.odd_headers(exchange):
        return
    severity: Severity | None = None
    doubt = _unverified(message, exchange)
    if doubt:
        severity = "info"
    elif any("not-plain" in check.problems for check in exchange.header_checks):
        severity = "warning"  # 42.0 for 42: servers SHOULD compare as numbers
    named = _text(message).lower()
    disputed = sorted(exchange.header_checks, key=lambda c: (c.header.lower() not in named, c.decoded in (None, c.raw)))
    compared = [_compared(check) for check in disputed]
    yield Finding(
        "the request was refused with -32020, but its mirrored headers agree with the body" + (f" ({doubt})" if doubt else ""),
        [evidence(message.place("error", "message"), _text(message)), *compared],
        severity=severity,
    )


def _compared(check: HeaderCheck) -> Evidence:
    raw, expected = check.raw, check.expected if check.expected is not None else check.body
    if raw is not None and check.decoded is not None and check.decoded != raw:
        raw, expected = f"{raw} (decoded: {check.decoded})", check.body  # the decoded value is what proves it
    return evidence(f"request.header:{check.header}", raw, expected)


_PARAM = re.compile(r"mcp-param-([!#$%&'*+.^_`|~0-9a-z-]+)", re.I)


def _unverified(message: Message, exchange: Exchange) -> str:
    """Why it is not sure that all mirrored headers are right."""
    for check in exchange.header_checks:
        if check.doubt:
            return check.doubt
        if check.verdict == "unchecked":
            return check.detail or f"{check.header} could not be compared"
    if exchange.method != "tools/call":
        return ""
    view = exchange.tool
    if view is None or view.definition is None:
        return view.why_unknown if view is not None else "the definition of the tool was not seen"
    if view.definition.flaws:
        return "the definition of the tool is not valid"
    declared = {mirror.field.lower() for mirror in view.definition.mirrors}
    for name in _PARAM.findall(_text(message)):
        if f"mcp-param-{name.lower()}" not in declared:
            return f"the server speaks of Mcp-Param-{one_line(name, 30)}, which the definition seen does not declare"
    return ""


def _refused_for_stray_header(message: Message, exchange: Exchange) -> Iterator[Finding]:
    stray = [name for name in ("Mcp-Session-Id", "Last-Event-ID") if exchange.request_fields.has(name)]
    if not stray or not served.without_legacy_headers(exchange, exchange.method or ""):
        return
    session = exchange.session
    if session is not None and session.confirmed:
        return  # a dual-era server may route a session of its own to its legacy side
    yield Finding(
        f"the request was refused with {message.error_code}; without {stray[0]}, which a modern server ignores, it was served",
        [evidence(f"request.header:{stray[0]}", exchange.request_fields.first(stray[0]), "ignored"), _code(message)],
        severity="warning",
    )


@rule(
    "HTS013",
    "capability-error-unjustified",
    "-32021 for capabilities that were declared",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=META,
    sep="2575",
    sorts=("error",),
)
def capability_error_unjustified(message: Message) -> Iterator[Finding]:
    """-32021 names capabilities that the request's envelope does not declare. `elicitation: {}` means form mode.

    Why: the client cannot repair a request that already says what is asked for.

    Fix: compare with the capabilities of this very request, and read an empty elicitation object as form mode.

    Wrong::

        modern tools/call {"name": "ask"}
          capabilities {"elicitation": {}}
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {"form": {}}}}}

    Right::

        modern tools/call {"name": "ask"}
          capabilities {"elicitation": {}}
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {"url": {}}}}}
    """
    exchange = _asked(message)
    if message.error_code != rev.MISSING_CAPABILITY or exchange is None or message.request is None:
        return
    required = _data(message).get("requiredCapabilities")
    declared = message.request.meta.get(rev.CLIENT_CAPABILITIES)
    if not isinstance(required, dict) or not required or not isinstance(declared, dict):
        return
    if _contained(_normal(required), _normal(declared)):
        names = one_line(", ".join(required), 80)
        yield Finding(
            f"the server misses {names}, which the request declares",
            [
                evidence(message.place("error", "data", "requiredCapabilities"), required),
                evidence(message.request.place("params", "_meta", rev.CLIENT_CAPABILITIES), declared),
            ],
        )


def _normal(capabilities: dict[str, Any]) -> dict[str, Any]:
    """elicitation: {} says form mode."""
    return capabilities | {"elicitation": {"form": {}}} if capabilities.get("elicitation") == {} else capabilities


def _contained(required: dict[str, Any], declared: dict[str, Any], depth: int = 0) -> bool:
    for key, value in required.items():
        if key not in declared:
            return False
        have = declared[key]
        if key == "extensions" and depth == 0 and isinstance(value, dict) and isinstance(have, dict):
            if not value.keys() <= have.keys():  # settings inside are the extension's own matter
                return False
        elif (
            isinstance(value, dict)
            and value
            and (depth > 10 or not isinstance(have, dict) or not _contained(value, have, depth + 1))
        ):
            return False
    return True


@rule(
    "HTS014",
    "version-error-contradictory",
    "-32022 lists the requested version",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 basic/versioning#protocol-version-negotiation",
    sep="2575",
    structural=True,
    sorts=("error",),
)
def version_error_contradictory(message: Message) -> Iterator[Finding]:
    """-32022 refuses a version that the server does not support; its list of supported versions cannot hold that version.

    Why: the client retries with a version of the list, and is refused again.

    Fix: refuse only what is not in the list. If the header was wrong say -32020.

    Wrong::

        modern tools/list
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2026-07-28"}}

    Right::

        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
    """
    exchange = _asked(message)
    if message.error_code != rev.UNSUPPORTED_VERSION or exchange is None or message.request is None:
        return
    version = message.request.meta.get(rev.PROTOCOL_VERSION)
    data = _data(message)
    supported, header = data.get("supported"), exchange.request_fields.first("mcp-protocol-version")
    if not isinstance(version, str) or not isinstance(supported, list) or version not in supported:
        return
    if (header is None or trim_ows(header) == version) and data.get("requested", version) == version:
        yield Finding(
            f"version {one_line(version, 40)} was refused, and it is in the list of supported versions",
            [evidence(message.place("error", "data", "supported"), supported, "without the version that was refused")],
        )


@rule(
    "HTS015",
    "capability-error-data",
    "-32021 data malformed",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 schema#missingrequiredclientcapabilityerror",
    sep="2575",
    sorts=("error",),
)
def capability_error_data(message: Message) -> Iterator[Finding]:
    """-32021 says in data.requiredCapabilities what is missing: an object of objects, as in clientCapabilities, not empty.

    Why: without it the client cannot tell what to declare.

    Fix: send for example `{"requiredCapabilities": {"sampling": {}}}`.

    Wrong::

        modern tools/call {"name": "ask"}
          -> error -32021 {"data": {"requiredCapabilities": ["sampling"]}}

    Right::

        modern tools/call {"name": "ask"}
          -> error -32021 {"data": {"requiredCapabilities": {"sampling": {}}}}
    """
    if message.error_code != rev.MISSING_CAPABILITY:
        return
    required = _data(message).get("requiredCapabilities")
    if isinstance(required, dict) and required and all(isinstance(v, dict) for v in required.values()):
        return
    problem = "is missing" if required is None else "is empty" if required == {} else "is not an object of objects"
    yield Finding(
        f"data.requiredCapabilities of -32021 {problem}",
        [evidence(message.place("error", "data", "requiredCapabilities"), required, 'an object such as {"sampling": {}}')],
    )


@rule(
    "HTS016",
    "version-error-data",
    "-32022 data malformed",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 schema#unsupportedprotocolversionerror",
    sep="2575",
    always=True,
    kinds=("mcp",),
    sorts=("error",),
)
def version_error_data(message: Message) -> Iterator[Finding]:
    """-32022 says in its data which versions are supported, and which one was requested.

    Why: the client chooses the version for its retry from that list.

    Fix: send `{"supported": ["2026-07-28"], "requested": "..."}`, with the version of the envelope.

    Wrong::

        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"]}}

    Right::

        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
    """
    exchange = _asked(message)
    if message.error_code != rev.UNSUPPORTED_VERSION or exchange is None or message.request is None:
        return
    if not _has_envelope(exchange):
        return
    data = _data(message)
    supported, requested = data.get("supported"), data.get("requested")
    where = message.place("error", "data", "supported")
    if not isinstance(supported, list) or not all(isinstance(v, str) for v in supported):
        problem = "is missing" if supported is None else "is not an array of strings"
        yield Finding(f"data.supported of -32022 {problem}", [evidence(where, supported, 'an array such as ["2026-07-28"]')])
    elif not supported:
        yield Finding(
            "data.supported of -32022 is empty", [evidence(where, supported, "the versions supported")], severity="warning"
        )
    where = message.place("error", "data", "requested")
    version = message.request.meta.get(rev.PROTOCOL_VERSION)
    header = trim_ows(exchange.request_fields.first("mcp-protocol-version") or "")
    if not isinstance(requested, str):
        problem = "is missing" if requested is None else "is not a string"
        yield Finding(f"data.requested of -32022 {problem}", [evidence(where, requested, version)])
    elif requested not in (version, header):
        yield Finding(
            f"data.requested of -32022 is {one_line(requested, 40)}, which was not requested",
            [evidence(where, requested, version)],
            severity="warning",
        )


_UNREADABLE = frozenset({*ELSEWHERE, 405})


@rule(
    "HTS017",
    "error-id-missing",
    "Error lacks the id of a readable request",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="2026-07-28 basic/index#error-responses",
    sep="2575",
    sorts=("error",),
)
def error_id_missing(message: Message) -> Iterator[Finding]:
    """An error carries the id of the request that it answers, except where that id could not be read.

    Why: a client that waits for the answer to this id goes on waiting.

    Fix: parse the body before refusing it, and copy the id into the error.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/call {"name": "x"}
          -> no-answer-id
          -> error -32602

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tools/call {"name": "x"}
          -> error -32602
    """
    exchange, request = _asked(message), message.request
    if exchange is None or request is None or message.rpc.kind != "error" or message.rpc.id is not None:
        return
    status, id_ = exchange.status, request.rpc.id
    if status is None or status in _UNREADABLE or status in GATEWAY or not isinstance(id_, str | int) or isinstance(id_, bool):
        return
    if isinstance(id_, int) and abs(id_) >= 2**53:
        return  # beyond what readers keep apart
    if exchange.reading is None or exchange.reading.kind != "single" or not (200 <= status < 405 or status >= 500):
        return
    if not isinstance(request.rpc.body, dict) or request.rpc.body.get("jsonrpc") != "2.0":
        return  # no JSON-RPC 2.0: it may not have been read at all
    if not isinstance(request.rpc.body.get("params", {}), dict) and message.error_code == rev.INVALID_REQUEST:
        return  # RPC022: an invalid request, which JSON-RPC answers with the id null
    modern = exchange.endpoint.modern is not None and exchange.claim.modern
    severity: Severity | None = None
    if status >= 500:
        severity = "warning" if modern else "info"
    elif status in (400, 404) and not (modern and (message.error_code in _AFTER_READING or _is_explained(exchange))):
        severity = "info"  # such refusals are written before the body is parsed; what they refuse is the finding, if any
    yield Finding(
        f"the error has no id, the request had {one_line(str(id_), 40)}",
        [evidence(message.place("id"), message.rpc.id if message.rpc.has_id else None, id_)],
        severity=severity,
        once="failure" if status >= 500 else "refusal" if severity == "info" else None,
    )


_AFTER_READING = TYPED | {rev.INVALID_PARAMS, rev.METHOD_NOT_FOUND}  # of these a server knows only after it has read the body


def _is_explained(exchange: Exchange) -> bool:
    """Whether the request has a fault that its refusal is for."""
    return bool(
        request_faults.header_faults(exchange) or request_faults.other_faults(exchange) or request_faults.method_fault(exchange)
    )


_CAPABILITY_WORDS = re.compile(r"\b(elicitation|sampling|roots)\b", re.I)
_LACKING_WORDS = re.compile(
    r"not (?:\w+ ){0,3}(?:support|declar|advertis|availab|capab)|unsupported|missing|\b(?:lack(?:s|ing)?|requires?d?|need(?:s|ed)?)\b",
    re.I,
)


@rule(
    "HTS018",
    "capability-needed-not-signalled",
    "Server used an undeclared capability",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=META,
    sep="2575",
)
def capability_needed_not_signalled(message: Message) -> Iterator[Finding]:
    """A server that needs a capability which the request does not declare answers -32021 and lists what is missing.

    Why: any other error, or a tool result with isError, leaves the client without a way to repair its request.

    Fix: answer 400 with -32021 and data.requiredCapabilities.

    Wrong::

        modern tools/call {"name": "ask"}
          -> error -32603 {"message": "client does not support elicitation"}

    Right::

        modern tools/call {"name": "ask"}
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {}}}}
    """
    exchange, request = _asked(message), message.request
    if exchange is None or request is None or exchange.claim.kind != "modern":
        return
    if message.rpc.kind == "error":
        if message.error_code not in (rev.INTERNAL_ERROR, -32000):
            return
        text, where = _text(message), message.place("error", "message")
    elif message.result.get("isError") is True:
        text, where = _first_text(message), message.place("result", "content")
    else:
        return
    named = _CAPABILITY_WORDS.search(text)
    if named is None or _LACKING_WORDS.search(text) is None or _WHOSE.search(text) is None:
        return
    capability = named[1].lower()
    if capability not in exchange.capabilities:
        yield Finding(
            f"the server needs {capability}, which the request does not declare, and says so without -32021",
            [evidence(where, text, f"-32021 with requiredCapabilities {capability}")],
        )


_WHOSE = re.compile(r"client|capabilit", re.I)  # else it may be any sampling, and any root


def _first_text(message: Message) -> str:
    content = message.result.get("content")
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, dict) else None
    return text[:500] if isinstance(text, str) else ""


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EXPERIMENTAL = re.compile(r"draft|exp|beta|alpha|preview|dev|next|[./:]", re.I)


@rule(
    "HTS019",
    "unsupported-version-served",
    "Unknown version processed",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=VERSION_HEADER,
    sep="2575",
    structural=True,
    sorts=("result",),
)
def unsupported_version_served(message: Message) -> Iterator[Finding]:
    """A server refuses a version that it does not implement with 400 and -32022; it does not serve it by the rules of another.

    Why: client and server then read the same bytes by different rules.

    Fix: compare the version with the list of those supported, before anything else.

    Wrong::

        modern tools/list
          version latest
          -> result {"tools": []}

    Right::

        modern tools/list
          version latest
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "latest"}}
    """
    exchange = _asked(message)
    if exchange is None or exchange.claim.kind != "modern-unknown" or message.rpc.kind != "result":
        return
    version = exchange.claim.revision or ""
    part: Part | None = exchange.facts.get(NEGOTIATION)
    if not isinstance(message.result.get("resultType"), str) or (part is not None and part.unlisted is not None):
        return  # what the server's own list omits is ERA022
    if version in (exchange.endpoint.supported or ()) or message.request is None:
        return
    nonsense = version < rev.KNOWN[0] if _DATE.fullmatch(version) else _EXPERIMENTAL.search(version) is None
    yield Finding(
        f"version {one_line(version, 40)} was served; it is no revision known here",
        [evidence(message.request.place("params", "_meta", rev.PROTOCOL_VERSION), version, "HTTP 400 with -32022")],
        severity=None if nonsense else "info",
    )


@rule(
    "HTS020",
    "legacy-version-header-400",
    "Bad legacy version header not 400",
    on="exchange",
    level="must",
    party="server",
    era="legacy",
    severity="warning",
    spec="2025-11-25 basic/transports#protocol-version-header",
    versions=("2025-06-18", "2025-11-25"),
    streamable=True,
    transport=("http",),
)
def legacy_version_header_400(exchange: Exchange) -> Iterator[Finding]:
    """A legacy server that gets an MCP-Protocol-Version that it cannot know answers 400.

    Why: the client goes on in the belief that the version was understood.

    Fix: compare the header with the versions that you support, and answer 400.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy ping
          header MCP-Protocol-Version: latest
          -> result {}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy ping
          -> result {}
    """
    header, session, status = exchange.request_fields.first("mcp-protocol-version"), exchange.session, exchange.status
    if header is None or status is None or not 200 <= status < 300 or exchange.method == "initialize":
        return
    version = trim_ows(header)
    if version in rev.KNOWN or exchange.claim.kind not in ("legacy", "legacy-transport"):
        return
    if session is not None:
        negotiated = session.revision
    else:  # the server gives no session ids: what it was seen to serve
        served_here = [r for r in exchange.endpoint.revisions if r in rev.LEGACY]
        negotiated = served_here[-1] if served_here and version not in exchange.endpoint.revisions else None
    if negotiated is None or version == negotiated:
        return
    where = "in a session of" if session is not None else "by a server of"
    yield Finding(
        f"MCP-Protocol-Version {one_line(version, 40)} was accepted {where} {negotiated}",
        [evidence("request.header:MCP-Protocol-Version", header, negotiated), evidence("response.status", status, 400)],
        severity=None if session is not None else "info",
    )


@rule(
    "HTS021",
    "redirect-on-post",
    "POST to MCP endpoint redirected",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=SENDING,
    versions=rev.STREAMABLE,
    always=True,
    transport=("http",),
)
def redirect_on_post(exchange: Exchange) -> Iterator[Finding]:
    """The endpoint answers a POST itself. 301, 302 and 303 make many clients repeat it as a GET, 307 and 308 keep the method.

    Why: the message is lost, or a second round trip is spent on every call; clients may drop headers on the way.

    Fix: give clients the final URL, often only a slash at its end.

    Wrong::

        modern tools/list
          -> 301

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    status = exchange.status
    if exchange.http_method != "POST" or status not in (301, 302, 303, 307, 308) or exchange.kind != "mcp":
        return
    fields = exchange.response_fields
    location = fields.first("location") if fields is not None else None
    target = uri.resolve(exchange.url, location or "")
    to = shown(location, 80) if location else "no Location"
    severity: Severity | None = "info" if status in (307, 308) else None
    why = ""
    if _SIGN_IN.search(target.path):
        severity, why = None, ": a page to sign in, where an MCP client gets 401 with a challenge"
    elif _leaves(exchange, target.scheme, target.netloc):
        down = target.scheme == "http" and exchange.url.startswith("https:")
        sure = down or not exchange.reverse  # else the public origin may not be known
        if exchange.auth and sure:
            severity, why = None, ", another origin: clients drop Authorization there"
        elif down:
            severity, why = None, ", out of HTTPS"
        else:
            why = ", another origin"
    yield Finding(
        f"the POST was redirected with HTTP {status} to {to}{why}",
        [evidence("response.status", status), evidence("response.header:Location", location, "the final URL, used at once")],
        severity=severity,
    )


_SIGN_IN = re.compile(
    r"(?:^|[/_-])(?:sign-?_?in|log-?_?in|sso|authenticate|auth/(?:start|redirect)|oauth2/(?:start|sign_in))(?:[/._?-]|$)", re.I
)


def _leaves(exchange: Exchange, scheme: str, netloc: str) -> bool:
    """Whether a redirect leads away from the endpoint's origin: as the client named it, and as the proxy did."""
    if not netloc:
        return False
    own = uri.split(exchange.url)
    hosts = {_tidy(own.scheme, own.netloc), _tidy(own.scheme, exchange.authority or "")}
    return _tidy(scheme, netloc) not in hosts or (own.scheme == "https" and scheme == "http")


def _tidy(scheme: str, netloc: str) -> str:
    return netloc.lower().removesuffix(":443" if scheme == "https" else ":80")


@rule(
    "HTS023",
    "rate-limit",
    "429/503 handling",
    on="exchange",
    level="may-note",
    party="either",
    era="both",
    severity="info",
    spec=SENDING,
    versions=rev.STREAMABLE,
    always=True,
    kinds=("mcp",),
    transport=("http",),
)
def rate_limit(exchange: Exchange) -> Iterator[Finding]:
    """HTTP 429 and 503 ask the client to wait, as long as Retry-After says. This is no matter of MCP, and no verdict.

    Why: a tool call that fails for that reason looks like a broken tool.

    Fix: wait as long as Retry-After says before the next request.

    Wrong::

        modern tools/list
          -> header Retry-After: 30
          -> 429

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    fields, status = exchange.response_fields, exchange.status
    came_back = exchange.facts.get(CAME_BACK)
    if came_back is not None:
        flow, asked, waited = came_back.flow, came_back.retry_after, came_back.after_s
        said = f"the client came back after {waited:.1f} s, asked to wait {asked} s"
        yield Finding(said, [evidence("request", f"{waited:.1f} s", f"{asked} s")], party="client", related=(flow,))
    if status not in (429, 503) or fields is None:
        return
    wait = fields.first("retry-after")
    asks = f", which asks to wait {one_line(wait, 40)}" if wait is not None else ""
    unit = " s" if wait is not None and wait.strip().isdigit() else ""
    yield Finding(
        f"the request got HTTP {status}{asks}{unit}",
        [evidence("response.status", status), evidence("response.header:Retry-After", wait)],
        party="server",
    )


@rule(
    "HTS024",
    "http-error-with-result",
    "Non-2xx with a result",
    on="answer",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=SENDING,
    versions=rev.STREAMABLE,
    always=True,
    sorts=("result",),
    transport=("http",),
)
def http_error_with_result(message: Message) -> Iterator[Finding]:
    """A result comes with a 2xx status; an HTTP error status says that the request failed.

    Why: one half of the clients believes the status, the other half the body.

    Fix: answer 200; a tool that failed says so with isError.

    Wrong::

        modern tools/list
          -> status 500
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    exchange = _asked(message)
    if exchange is None or message.rpc.kind != "result" or message.exchange is not exchange:
        return
    if exchange.status is not None and exchange.status >= 400:
        yield Finding(
            f"a result came with HTTP {exchange.status}",
            [evidence("response.status", exchange.status, 200)],
        )


@rule(
    "HTS025",
    "header-fault-wrong-error",
    "Header fault refused with the wrong code or without a JSON-RPC error",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VALIDATION,
    sep="2243",
    always=True,
    transport=("http",),
)
def header_fault_wrong_error(exchange: Exchange) -> Iterator[Finding]:
    """A request that is refused for its mirrored headers gets HTTP 400 and the JSON-RPC error -32020 (HeaderMismatch).

    Why: by that code the client knows that its headers are at fault, and lists the tools again where an Mcp-Param is concerned.

    Fix: check the headers before anything that would say -32600 or -32602, and answer with -32020.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          header Mcp-Method: tools/call
          -> status 400
          -> error -32600

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          header Mcp-Method: tools/call
          -> error -32020
    """
    status, answer = exchange.status, exchange.answer
    if status is None or not 400 <= status < 500 or status in ELSEWHERE:
        return
    code = answer.error_code if answer is not None else None
    if exchange.claim.kind == "legacy-envelope":
        yield from _versions_apart(exchange, code)
    if exchange.claim.kind != "modern":
        return
    if (answer is not None and answer.rpc.kind == "result") or code == rev.HEADER_MISMATCH:
        return
    if exchange.endpoint.modern is None or (code is None and (status == 404 or exchange.answer_reading is None)):
        return
    found = request_faults.header_faults(exchange)
    if not found or any(f.doubt for f in found) or request_faults.other_faults(exchange) or request_faults.method_fault(exchange):
        return
    if code == rev.MISSING_CAPABILITY or (code == rev.METHOD_NOT_FOUND and not served.is_known(exchange, exchange.method or "")):
        return  # may be right as well (HTS022)
    drafts = answer is not None and code == -32001 and _DRAFT.search(_text(answer)) is not None
    yield Finding(
        f"{found[0].what}, and the server answered {_said(status, code)}" + (", the code of a draft" if drafts else ""),
        [_header(found[0])]
        + ([evidence("response.status", status, "400")] if status != 400 else [])
        + ([evidence(answer.place("error", "code"), code, "-32020")] if answer is not None else []),
        severity=_wrong_error_severity(exchange, code, found),
    )


_DRAFT = re.compile(r"header ?mismatch", re.I)  # -32001 had that name before the codes were renumbered


def _versions_apart(exchange: Exchange, code: int | None) -> Iterator[Finding]:
    """The header names a modern revision, the envelope a legacy one: -32022 is no wrong answer, but -32020 names the fault."""
    header = trim_ows(exchange.request_fields.first("mcp-protocol-version") or "")
    if code != rev.UNSUPPORTED_VERSION or exchange.endpoint.modern is None or rev.version_kind(header) != "modern":
        return
    yield Finding(
        f"MCP-Protocol-Version says {header}, the envelope says {exchange.claim.revision}: -32020 would name the fault, not -32022",
        [evidence("request.header:MCP-Protocol-Version", header, exchange.claim.revision), evidence("response.status", 400)],
        severity="info",
    )


def _wrong_error_severity(exchange: Exchange, code: int | None, found: list[Fault]) -> Severity | None:
    if code is None:
        return "warning"  # a gateway need not send JSON-RPC
    if any(f.check is not None and f.check.header == "MCP-Protocol-Version" and f.check.raw is None for f in found):
        return "warning"  # a dual-era server may take it for a request of 2025-03-26
    if code == rev.INVALID_PARAMS and exchange.method not in request_faults.PLAIN:
        return "warning"  # the parameters may be wrong, too
    return None


@rule(
    "HTS026",
    "unsupported-version-wrong-error",
    "Unsupported version refused with something other than -32022",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=VERSION_HEADER,
    sep="2575",
    always=True,
    kinds=("mcp",),
    sorts=("error",),
    transport=("http",),
)
def unsupported_version_wrong_error(message: Message) -> Iterator[Finding]:
    """A version that the server does not support is refused with -32022, which lists those that it does.

    Why: it is the only error from which a client learns which version to use instead.

    Fix: check the version first, and answer 400 with -32022 and data.supported.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern tools/list
          version 2027-01-01
          -> status 400
          -> error -32600 {"message": "Unsupported protocol version"}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
    """
    exchange, code = _asked(message), message.error_code
    if exchange is None or code is None or code == rev.UNSUPPORTED_VERSION or exchange.status in ELSEWHERE:
        return
    if exchange.claim.kind == "legacy-envelope":
        yield from _legacy_version_refused(message, exchange)
        return
    part: Part | None = exchange.facts.get(NEGOTIATION)
    if part is None or part.unlisted is None or exchange.claim.kind not in ("modern", "modern-unknown"):
        return
    if exchange.endpoint.modern is None or request_faults.header_faults(exchange) or message.request is None:
        return
    besides = [*request_faults.envelope_faults(exchange), *request_faults.message_faults(exchange)]
    if besides or (code == rev.METHOD_NOT_FOUND and not served.is_known(exchange, exchange.method or "")):
        return
    text = _text(message)
    version = exchange.claim.revision
    yield Finding(
        f"version {one_line(version or '', 40)} is not supported, and the server said {code} instead of -32022",
        [
            evidence(message.request.place("params", "_meta", rev.PROTOCOL_VERSION), version, ", ".join(part.unlisted.versions)),
            _code(message),
        ],
        severity=None if speaks_of(text, "version") else "warning",
        related=(part.unlisted.flow,),
    )


def _legacy_version_refused(message: Message, exchange: Exchange) -> Iterator[Finding]:
    """A legacy version in the envelope, which the server's list omits: a dual-era server may send it to its legacy side."""
    endpoint, version = exchange.endpoint, exchange.claim.revision
    header = trim_ows(exchange.request_fields.first("mcp-protocol-version") or "")
    if endpoint.modern is None or not endpoint.supported or version in endpoint.supported or header != version:
        return
    if message.request is None or request_faults.message_faults(exchange):
        return
    yield Finding(
        f"version {version} is not in the server's list, and the server said {message.error_code} instead of -32022",
        [
            evidence(message.request.place("params", "_meta", rev.PROTOCOL_VERSION), version, ", ".join(endpoint.supported[:10])),
            _code(message),
        ],
        severity="info",
        related=(endpoint.supported_flow,) if endpoint.supported_flow else (),
    )


@rule(
    "HTS027",
    "refused-in-an-old-way",
    "Conforming modern request refused for a session, a handshake or its version",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{HTTP}#sending-messages",
    sep="2567",
    always=True,
    kinds=("mcp",),
    needs=(OLD_WAY,),
    transport=("http",),
)
def refused_in_an_old_way(exchange: Exchange) -> Iterator[Finding]:
    """A server of the modern era serves each conforming request by itself: it asks for no session and no initialize, and does not
    refuse a version that it lists.

    Why: what answers is not what the server says that it is, often an older backend behind a gateway. No client can use it.

    Fix: look at what stands behind the endpoint; list only the versions that all of it speaks. Said once for each kind of words.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        modern tools/list
          -> 400 text/plain Bad Request: missing Mcp-Session-Id header

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        modern tools/list
          -> result {"tools": []}
    """
    told = exchange.facts.get(OLD_WAY)
    if told is None or told.repeat.first is not exchange or (exchange.endpoint.legacy and not exchange.endpoint.modern):
        return
    endpoint, version, times = exchange.endpoint, exchange.claim.revision or "", told.repeat.times
    listed = version in (endpoint.supported or ())
    if told.topic == "version" and not listed and version not in endpoint.revisions:
        return  # a version that nothing says the server speaks (HTS026)
    shown = [evidence("response.status", exchange.status, "a result")]
    if told.said is not None:
        shown.append(Evidence(told.said.where, told.said.quote))
    if endpoint.supported:
        shown.append(evidence("request.header:MCP-Protocol-Version", version, ", ".join(endpoint.supported[:10])))
    related = (*([endpoint.supported_flow] if listed and endpoint.supported_flow else ()), *told.repeat.related)
    if endpoint.modern is None:
        text = f"a request of {one_line(version, 40)} is refused for {_wanting(told.topic)}: the server may be an older one"
        yield Finding(text + times, shown, "info", related=related)
        return
    says = f"the server {'lists' if listed else 'serves'} {one_line(version, 40)} and"
    if told.topic is None:
        text = f"{says} refuses a conforming request with HTTP {exchange.status} and no JSON-RPC error"
    else:
        text = f"{says} refuses a conforming request for {_wanting(told.topic)}: is there an older server behind it?"
    yield Finding(text + times, shown, "warning" if told.topic is None else None, related=related)


def _wanting(topic: Topic | None) -> str:
    words: dict[Topic | None, str] = {
        "session": "want of a session, which that revision does not have",
        "initialization": "want of an initialize, which that revision does not have",
        "version": "its version",
    }
    return words.get(topic, "no reason that is told")


@rule(
    "HTS028",
    "always-failed",
    "Every request answered with an internal error",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/index#error-responses",
    always=True,
    kinds=("mcp",),
    needs=(ALWAYS_FAILED,),
    transport=("http",),
)
def always_failed(exchange: Exchange) -> Iterator[Finding]:
    """A server that answers every request with HTTP 500 or -32603, whatever is asked, does not work at all.

    Why: each failure looks like a fault of one tool or one request; it is one fault of the server, and the client's doing changes
    nothing.

    Fix: look for the error in the server's own log; it fails before the request is dispatched. Said once for an endpoint, from
    three requests of two methods on, and taken back as soon as one is served.

    Wrong::

        modern server/discover
          -> status 500
          -> error -32603 {"message": "Internal error: schema must be an object"}
        modern tools/list
          -> status 500
          -> error -32603 {"message": "Internal error: schema must be an object"}
        modern tools/call {"name": "echo"}
          -> status 500
          -> error -32603 {"message": "Internal error: schema must be an object"}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        modern tools/list
          -> result {"tools": []}
        modern tools/call {"name": "echo"}
          -> status 500
          -> error -32603 {"message": "Internal error: echo is broken"}
    """
    told = exchange.facts.get(ALWAYS_FAILED)
    if told is None or told.taken_back or told.repeat.count < LEAST_FAILED or len(told.methods) < LEAST_METHODS:
        return
    words, answer, count = words_of(exchange), exchange.answer, told.repeat.count
    code = f" {answer.error_code}" if answer is not None and answer.error_code is not None else ""
    quote = f" {words.quote}" if words is not None else ""
    shown = [evidence("response.status", exchange.status, "a result to at least one request")]
    if words is not None:
        shown.append(Evidence(words.where, words.quote))
    yield Finding(
        f"every request was answered {exchange.status}{code}{quote} ({count} of {count}, {len(told.methods)} methods)",
        shown,
        related=tuple(told.repeat.related),
    )


@rule(
    "HTS029",
    "host-or-origin-refused",
    "Request refused for its Host or Origin",
    on="exchange",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=f"{HTTP}#security--endpoint",
    always=True,
    kinds=("mcp",),
    transport=("http",),
)
def host_or_origin_refused(exchange: Exchange) -> Iterator[Finding]:
    """A server that checks Host or Origin against DNS rebinding accepts the names by which its own clients call it.

    Why: the refusal says little, and looks like a fault of the client. A foreign name that a server on a local address refuses
    is what the check is for, and is a note.

    Fix: add the name (with its port, if the server compares ports) to those allowed. Behind a reverse proxy try
    `keep_host_header`, on or off.

    Wrong::

        legacy initialize
          path http://mcp.example.com/mcp
          authority mcp.example.com
          -> 421 text/plain Invalid Host header

    Right::

        legacy initialize
          path http://mcp.example.com/mcp
          authority mcp.example.com
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    status, fields = exchange.status, exchange.request_fields
    if status not in (400, 403, 421) or (
        exchange.response_fields is not None and exchange.response_fields.has("www-authenticate")
    ):
        return
    words = words_of(exchange)
    topic = speaks_of(words.text, "origin", "host") if words is not None else None
    if topic is None and status != 421:
        return
    if topic == "origin" and (not fields.has("origin") or status == 400):
        return  # HTS010 says that the status is another one
    if topic == "host" and status == 400 and words is not None and _REFUSING.search(words.text) is None:
        return
    own = uri.split(exchange.url)
    name = fields.first("origin") if topic == "origin" else exchange.authority or own.netloc
    asked = uri.host(name or "") or uri.host("//" + (name or "")) or ""
    its_own = asked == sites.host(exchange.url) or (topic == "origin" and asked == uri.host("//" + (exchange.authority or "")))
    differs = _tidy(own.scheme, name or "") != _tidy(own.scheme, own.netloc)
    elsewhere = topic != "origin" and (differs or exchange.reverse)
    option = "; behind a reverse proxy try keep_host_header, on or off" if elsewhere else ""
    header = "Origin" if topic == "origin" else "Host"
    yield Finding(
        f"refuses {header} {one_line(name or '', 60)} (DNS rebinding protection?){option}",
        [evidence(f"request.header:{header}", name), evidence("response.status", status)]
        + ([Evidence(words.where, words.quote)] if words is not None else []),
        severity=None if its_own else "info",
        once=f"{header} {name}"[:200],
    )
