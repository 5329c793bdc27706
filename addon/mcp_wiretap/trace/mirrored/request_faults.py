"""What is wrong with a request, as far as its server had to see it: first was the request faulty, then does the answer fit.

These are facts, not findings: a user who ignores a family of rules must not change the verdict on the server (HTS004, HTS011,
HTS012, HTS025, HTS026). Each fault names the error codes that are a right answer to it; where a request has several, any of them
is (HTS022). Spec: 2026-07-28 basic/index#_meta, basic/transports/streamable-http#server-validation.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mcp_wiretap.trace.era.negotiation import NEGOTIATION, Part
from mcp_wiretap.trace.mirrored import check as mirror
from mcp_wiretap.trace.model import Exchange, HeaderCheck, Message
from mcp_wiretap.wire import headers as wire
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import one_line

REMOVED = frozenset({"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
# Methods whose params hold nothing but the envelope and a cursor: -32602 has nothing else to complain of.
PLAIN = frozenset({"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_ENVELOPE = (
    (rev.CLIENT_CAPABILITIES, dict, "an object"),
    (rev.CLIENT_INFO, dict, "an object"),
    (rev.LOG_LEVEL, str, "a string"),
)
# A check that says so is no proof of a fault, but the request is not conforming either.
_ODD = frozenset(
    {
        "should-be-encoded",
        "duplicate-equal",
        "merged-equal",
        "spare-bits",
        "null",
        "absent",
        "unsafe-integer",
        "stale",
    }
)


@dataclass(slots=True, frozen=True)
class Fault:
    """One fault. `codes` are right answers; None: any error is. `check`: the header it is about. `doubt`: why it is not sure."""

    what: str
    codes: frozenset[int] | None
    where: str = "request.body"
    check: HeaderCheck | None = None
    doubt: str = ""


_MISMATCH = frozenset({rev.HEADER_MISMATCH})
_PARAMS = frozenset({rev.INVALID_PARAMS})


def header_faults(exchange: Exchange) -> list[Fault]:
    """Mirrored headers for which the server must refuse the request with -32020."""
    if not any(check.problems for check in exchange.header_checks):
        return []
    faults = [_header_fault(check) for check in mirror.fatal(exchange)]
    for check in exchange.header_checks:
        if _has_bad_bytes(exchange, check):
            what = f"{check.header} has bytes that no header value may have"
            faults.append(Fault(what, _MISMATCH, f"request.header:{check.header}", check, check.doubt))
    return faults


def _header_fault(check: HeaderCheck) -> Fault:
    header, problems = check.header, check.problems
    if "missing" in problems:
        what = f"{header} is missing"
    elif "undecodable" in problems:
        what = f"{header} has a sentinel that does not decode"
    elif "lookalike" in problems:
        what = f"{header} carries a value that looks like a sentinel unencoded"
    elif "mismatch" in problems:
        what = f"{header} says {_short(check.decoded)}, the body says {_short(check.body)}"
    elif "duplicate-different" in problems:
        what = f"{header} was sent twice with different values"
    else:
        what = f"{header} has bytes that no header value may have"
    return Fault(what, _MISMATCH, f"request.header:{header}", check, check.doubt)


def _has_bad_bytes(exchange: Exchange, check: HeaderCheck) -> bool:
    """Bytes that no header may have, though the missing sentinel explains them (HDR008, PAR018)."""
    if "should-be-encoded" not in check.problems or not check.problems.isdisjoint(mirror.FATAL):
        return False
    return any(wire.invalid_octets(value) for value in exchange.request_fields.all_bytes(check.header))


def _short(value: str | None) -> str:
    return one_line(value or "nothing", 40)


def envelope_faults(exchange: Exchange) -> list[Fault]:
    """What the envelope lacks or has wrong: answered with 400 and -32602."""
    request = exchange.request
    if request is None or not exchange.claim.modern:
        return []
    meta, faults = request.meta, []
    version = meta.get(rev.PROTOCOL_VERSION)
    if not isinstance(version, str):
        what = "the envelope has no protocolVersion" if version is None else "protocolVersion is not a string"
        where = request.place("params", "_meta", rev.PROTOCOL_VERSION)
        # Without it the header cannot match either: -32020 is right as well.
        faults.append(Fault(what, _PARAMS | _MISMATCH, where))
    for key, wanted, words in _ENVELOPE:
        required = key == rev.CLIENT_CAPABILITIES
        if isinstance(meta.get(key), wanted) or (key not in meta and not required):
            continue
        name = key.rpartition("/")[2]
        what = f"the envelope has no {name}" if required and meta.get(key) is None else f"{name} is not {words}"
        faults.append(Fault(what, _PARAMS, request.place("params", "_meta", key)))
    return faults


def message_faults(exchange: Exchange) -> list[Fault]:
    """Faults of the JSON-RPC message and of its HTTP request, which may be refused in more than one way."""
    reading, request = exchange.reading, exchange.request
    if reading is None or request is None:
        return [Fault("there is no JSON-RPC request that could be read", None)]
    faults = []
    rpc = request.rpc
    if reading.kind != "single":
        faults.append(Fault("a batch", None))
    if reading.duplicates:
        faults.append(Fault(f"the member {one_line(reading.duplicates[0], 40)} occurs twice", None))
    if not isinstance(rpc.id, str | int) or isinstance(rpc.id, bool):
        faults.append(Fault("the id is neither a string nor an integer", None))
    body = rpc.body
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        faults.append(Fault("the jsonrpc member is not 2.0", None))
    if exchange.http_method != "POST":
        faults.append(Fault(f"HTTP {exchange.http_method}", None))
    fields = exchange.request_fields
    if not _is_json(fields.first("content-type")):
        faults.append(Fault("Content-Type is not application/json", None, "request.header:Content-Type"))
    accept = ",".join(fields.all("accept")).lower()
    if "*/*" not in accept and not ("application/json" in accept and "text/event-stream" in accept):
        faults.append(Fault("Accept does not list both media types", None, "request.header:Accept"))
    return faults


def _is_json(content_type: str | None) -> bool:
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


def version_fault(exchange: Exchange) -> Fault | None:
    """The server's own list of versions omits the one that was asked for, or nobody knows it."""
    part: Part | None = exchange.facts.get(NEGOTIATION)
    if part is not None and part.unlisted is not None:
        what = f"the server does not list version {_short(exchange.claim.revision)}"
    elif exchange.claim.kind == "modern-unknown":
        what = f"version {_short(exchange.claim.revision)} is not known"
    else:
        return None
    return Fault(what, frozenset({rev.UNSUPPORTED_VERSION}), "request.body")


def other_faults(exchange: Exchange) -> list[Fault]:
    """All faults of the request but those of its mirrored headers and of its method."""
    faults = envelope_faults(exchange) + message_faults(exchange)
    version = version_fault(exchange)
    if version is not None:
        faults.append(version)
    return faults


def method_fault(exchange: Exchange) -> Fault | None:
    """The method does not exist in the modern era."""
    request = exchange.request
    if request is None or request.method not in REMOVED:
        return None
    return Fault(f"{request.method} does not exist in this revision", frozenset({rev.METHOD_NOT_FOUND}))


def odd_headers(exchange: Exchange) -> list[HeaderCheck]:
    """Headers that a client should not have sent so, though no server has to refuse them."""
    return [check for check in exchange.header_checks if check.problems & _ODD]


def fits(faults: Iterable[Fault], code: int | None) -> bool:
    """Whether an error code answers one of the faults."""
    return any(fault.codes is None or code in fault.codes for fault in faults)


def names_envelope(message: Message) -> str | None:
    """The envelope key that an error is about, by its message or data; None where it names none."""
    error = message.rpc.error
    if not isinstance(error, dict):
        return None
    text = f"{error.get('message', '')} {flat(error.get('data'))}"
    plain = message.request is not None and message.request.method in PLAIN  # nothing else can have that name
    for key in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel"):
        if f"io.modelcontextprotocol/{key}" in text or (key in text and (plain or "_meta" in text)):
            return key
    return None


def flat(value: object, depth: int = 4) -> str:
    """The strings of a small JSON value, for looking for words."""
    if isinstance(value, str):
        return value[:1_000]
    if depth and isinstance(value, dict):
        return " ".join(f"{k} {flat(v, depth - 1)}" for k, v in list(value.items())[:20])
    if depth and isinstance(value, list):
        return " ".join(flat(v, depth - 1) for v in value[:20])
    return ""
