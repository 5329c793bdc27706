"""Which era a request claims, and what an answer shows of its server (catalogue ERA001, ERA002, ERA004, ERA005).

Two separate things: a client may speak modern to a legacy server, and a dual server speaks both.
Spec: 2026-07-28 basic/versioning, basic/transports/streamable-http#backward-compatibility.
"""

from typing import TYPE_CHECKING

from mcp_wiretap.trace.model import Claim, Exchange, Message, ServerEvidence
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import trim_ows

if TYPE_CHECKING:
    from mcp_wiretap.trace.sessions import Session

MODERN_ONLY_METHODS = frozenset({"server/discover", "subscriptions/listen"})
TYPED_CODES = frozenset({rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION})


def claim(exchange: Exchange, session: "Session | None") -> Claim:
    """The claim of a request. `session` is the live legacy session that its Mcp-Session-Id (or its HTTP+SSE stream) names."""
    header = exchange.request_fields.first("mcp-protocol-version")
    version = trim_ows(header) if header is not None else None
    reading = exchange.reading
    if reading is None:
        return Claim("unknown-body", version, "the request body was not recorded")
    if exchange.http_method in ("GET", "DELETE", "HEAD"):
        revision = session.revision if session else (version if version and rev.version_kind(version) == "legacy" else None)
        return Claim("legacy-transport", revision, f"HTTP {exchange.http_method}")
    request = next((m for m in exchange.sent if m.rpc.kind == "request"), None)
    if reading.kind == "batch":
        return Claim("legacy-transport", session.revision if session else version, "a JSON-RPC batch")
    if request is not None:
        meta = request.meta
        envelope = meta.get(rev.PROTOCOL_VERSION)
        if isinstance(envelope, str):
            kind = rev.version_kind(envelope)
            if kind == "modern":
                return Claim("modern", envelope, "the envelope names it")
            if kind == "legacy":
                return Claim("legacy-envelope", envelope, "the envelope names a legacy revision")
            return Claim("modern-unknown", envelope, "the envelope names a version this tool does not know")
        if request.method == "initialize" and rev.PROTOCOL_VERSION not in meta:
            wanted = request.params.get("protocolVersion")
            return Claim("legacy", wanted if isinstance(wanted, str) else None, "initialize without envelope")
        if rev.PROTOCOL_VERSION in meta or rev.CLIENT_CAPABILITIES in meta:
            return Claim("modern-malformed", version, "an envelope without a usable protocolVersion")
        if request.method in MODERN_ONLY_METHODS:
            return Claim("modern-malformed", version, f"{request.method} exists only in the modern era")
    if session is not None:
        return Claim("legacy", session.revision, "a live session")
    if version:
        kind = rev.version_kind(version)
        if kind in ("modern", "future"):
            if request is not None:
                return Claim("modern-malformed", version, "MCP-Protocol-Version names the modern era, no envelope")
            return Claim("modern", version, "MCP-Protocol-Version")
        if kind == "legacy":
            return Claim("legacy", version, "MCP-Protocol-Version")
    if exchange.request_fields.has("mcp-session-id"):
        return Claim("legacy", None, "a session whose initialize was not recorded")
    if exchange.sent and request is None and exchange.sent[0].rpc.kind in ("result", "error"):
        return Claim("legacy-transport", version, "a posted JSON-RPC response")
    if exchange.sent and exchange.sent[0].rpc.kind != "invalid":
        return Claim("legacy", "2025-03-26" if version is None else None, "no envelope, no header, no session")
    return Claim("none", version, "no JSON-RPC message")


def is_modern_answer(answer: Message, request: Message | None, status: int | None, claim: Claim) -> str | None:
    """What in this answer shows a modern server, in words; None where it shows nothing (ERA002)."""
    code = answer.error_code
    if code in (rev.HEADER_MISMATCH, rev.UNSUPPORTED_VERSION) and status == 400:
        return f"HTTP 400 with {code} {rev.error_name(code)}"
    if not claim.modern:
        return None
    if code in TYPED_CODES:
        return f"error {code} {rev.error_name(code)}"
    method = request.method if request is not None else None
    if code == rev.METHOD_NOT_FOUND and status == 404 and method != "server/discover":
        return "HTTP 404 with -32601"
    if answer.rpc.kind == "result":
        if isinstance(answer.result.get("resultType"), str):
            return "a result with resultType"
        supported = answer.result.get("supportedVersions")
        if method == "server/discover" and isinstance(supported, list) and any(
            isinstance(v, str) and rev.version_kind(v) == "modern" for v in supported
        ):
            return "server/discover lists a modern version"
    return None


def is_recognised_modern_error(answer: Message, status: int | None) -> bool:
    """The narrower test for a client's duties (ERA005): what tells it that falling back is wrong."""
    code = answer.error_code
    if status == 400 and code in TYPED_CODES:
        return True
    method = answer.request.method if answer.request is not None else None
    return status == 404 and code == rev.METHOD_NOT_FOUND and method != "server/discover"


def learn(exchange: Exchange, answer: Message) -> bool:
    """Note what an answer shows of the server's era. True when the endpoint's evidence changed."""
    endpoint = exchange.endpoint
    request = answer.request
    if not endpoint.modern:
        what = is_modern_answer(answer, request, exchange.status, exchange.claim)
        if what:
            endpoint.modern = ServerEvidence(exchange.flow, what)
            return True
    if not endpoint.legacy and answer.rpc.kind == "result" and _is_legacy_answer(exchange, request):
        endpoint.legacy = ServerEvidence(
            exchange.flow,
            "initialize succeeded" if request is not None and request.method == "initialize" else "served a legacy request",
        )
        return True
    return False


def _is_legacy_answer(exchange: Exchange, request: Message | None) -> bool:
    if exchange.claim.modern or exchange.claim.kind == "legacy-envelope":
        return False
    if request is not None and request.method == "initialize":
        return True
    return exchange.claim.kind == "legacy" and (exchange.session is not None or exchange.claim.revision is not None)


def settle(exchange: Exchange) -> None:
    """The era and revision of the exchange, from its claim and from all that is known of its server by now."""
    claim, endpoint = exchange.claim, exchange.endpoint
    exchange.revision = claim.revision
    if claim.modern:
        if endpoint.modern:
            exchange.era = "modern"
        elif endpoint.legacy:
            exchange.era = "legacy"
        else:
            exchange.era = "unknown"
    elif claim.kind == "legacy-envelope":
        exchange.era = endpoint.era if endpoint.era in ("modern", "legacy") else "unknown"
    elif claim.kind == "legacy":
        request = exchange.request
        if request is not None and request.method == "initialize":
            answer = exchange.answer
            accepted = answer is not None and answer.rpc.kind == "result"
            if accepted and answer is not None:
                version = answer.result.get("protocolVersion")
                exchange.revision = version if isinstance(version, str) else None
            exchange.era = "legacy" if accepted or endpoint.legacy else "unknown"
        else:
            succeeded = exchange.status is not None and 200 <= exchange.status < 300
            exchange.era = "legacy" if exchange.session is not None or succeeded or endpoint.legacy else "unknown"
    elif exchange.session is not None or (exchange.stream is not None and exchange.http_method == "GET"):
        exchange.era = "legacy"
        if exchange.session is not None:
            exchange.revision = exchange.session.revision
    else:
        exchange.era = "unknown"
