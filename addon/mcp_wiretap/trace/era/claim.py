"""Which era a request claims, and what an answer shows of its server (catalogue ERA001, ERA002, ERA004, ERA005).

Two separate things: a client may speak modern to a legacy server, and a dual server speaks both.
Spec: 2026-07-28 basic/versioning, basic/transports/streamable-http#backward-compatibility.
"""

from mcp_wiretap.trace.model import Claim, Exchange, Message, ServerEvidence, Session
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import trim_ows

MODERN_ONLY_METHODS = frozenset({"server/discover", "subscriptions/listen"})
TYPED_CODES = frozenset({rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION})


def claim(exchange: Exchange, session: "Session | None", agreed: str | None = None) -> Claim:
    """The claim of a request. `session` is the live legacy session that its Mcp-Session-Id (or its HTTP+SSE stream) names,
    where the server is known to serve it; `agreed` the revision that initialize agreed on with this client without a session."""
    version = _version_header(exchange)
    reading = exchange.reading
    if exchange.http_method in ("GET", "DELETE", "HEAD"):
        revision = session.revision if session is not None else (version if version in rev.LEGACY else None)
        return Claim("legacy-transport", revision, f"HTTP {exchange.http_method}")
    if reading is None:
        return Claim("unknown-body", version, "the request body was not recorded")
    if reading.kind in ("too-large", "too-deep"):
        return Claim("unknown-body", version, f"the request body was not read: {reading.problem}")
    if reading.kind == "batch":
        return Claim("legacy-transport", session.revision if session is not None else version, "a JSON-RPC batch")
    first = exchange.sent[0] if exchange.sent else None
    if first is not None and first.rpc.kind == "request":
        found = _by_envelope(first, version)
        if found is not None:
            return found
    if session is not None:
        return Claim("legacy", session.revision, "a live session")
    found = _by_header(exchange, first, version)
    if agreed and version == agreed and found.basis.startswith("MCP-Protocol-Version"):
        return Claim("legacy", version, "initialize agreed on it")
    return found


def on_stdio(exchange: Exchange, session: "Session | None", spoken: Claim | None) -> Claim:
    """The claim of an exchange on stdio, where there are no headers: the body's own, else what its process is seen to speak.
    `session` is the process's own, where `initialize` has made it a legacy one; `spoken` its newest modern claim."""
    reading, first = exchange.reading, exchange.sent[0] if exchange.sent else None
    if exchange.http_method == "GET":
        if session is not None:
            return Claim("legacy", session.revision, "the output of a process that initialize was answered by")
        return Claim(spoken.kind, spoken.revision, "the output of a process that is asked so") if spoken else _NONE
    if reading is None:
        return Claim("unknown-body", None, "the line was not recorded")
    if reading.kind in ("too-large", "too-deep"):
        return Claim("unknown-body", None, f"the line was not read: {reading.problem}")
    if first is not None and first.rpc.kind == "request" and reading.kind != "batch":
        found = _by_envelope(first, None)
        if found is not None:
            return found
    if session is not None:
        return Claim("legacy", session.revision, "initialize was answered by this process")
    if first is None or first.rpc.kind == "invalid":
        return _NONE
    if first.rpc.kind == "notification" and (found := _by_version(first.meta.get(rev.PROTOCOL_VERSION))) is not None:
        return found
    if spoken is not None:
        if first.rpc.kind == "request":
            return Claim("modern-malformed", spoken.revision, "no envelope, to a process that is asked with one")
        return Claim(spoken.kind, spoken.revision, "a message to a process that is asked so")
    return Claim("legacy", None, "no envelope, and no initialize was recorded")


_NONE = Claim("none", None, "nothing to go by")


def _version_header(exchange: Exchange) -> str | None:
    header = exchange.request_fields.first("mcp-protocol-version")
    return trim_ows(header) or None if header is not None else None


def _by_envelope(request: Message, version: str | None) -> Claim | None:
    """The claim that the body of a request makes; None where it makes none."""
    meta = request.meta
    found = _by_version(meta.get(rev.PROTOCOL_VERSION))
    if found is not None:
        return found
    if rev.PROTOCOL_VERSION in meta:
        return Claim("modern-malformed", version, "an envelope without a usable protocolVersion")
    if request.method == "initialize":
        wanted = request.params.get("protocolVersion")
        return Claim("legacy", wanted if isinstance(wanted, str) else None, "initialize without envelope")
    if rev.CLIENT_CAPABILITIES in meta:
        return Claim("modern-malformed", version, "an envelope without protocolVersion")
    if request.method in MODERN_ONLY_METHODS:
        return Claim("modern-malformed", version, f"{request.method} exists only in the modern era")
    return None


def _by_version(envelope: object) -> Claim | None:
    """The claim of a version in an envelope."""
    if not isinstance(envelope, str):
        return None
    kind = rev.version_kind(envelope)
    if kind == "modern":
        return Claim("modern", envelope, "the envelope names it")
    if kind == "legacy":
        return Claim("legacy-envelope", envelope, "the envelope names a legacy revision")
    return Claim("modern-unknown", envelope, "the envelope names a version this tool does not know")


def _by_header(exchange: Exchange, first: Message | None, version: str | None) -> Claim:
    """The claim of a message without envelope and without live session."""
    if first is not None and first.rpc.kind == "notification":
        found = _by_version(first.meta.get(rev.PROTOCOL_VERSION))
        if found is not None and found.modern:
            return found
    kind = rev.version_kind(version) if version is not None else None
    if kind in ("modern", "future"):
        if first is not None and first.rpc.kind == "request":
            return Claim("modern-malformed", version, "MCP-Protocol-Version names the modern era, no envelope")
        return Claim("modern" if kind == "modern" else "modern-unknown", version, "MCP-Protocol-Version")
    if first is not None and first.rpc.kind in ("result", "error"):
        return Claim("legacy-transport", version, "a posted JSON-RPC response")
    if kind == "legacy":
        return Claim("legacy", version, "MCP-Protocol-Version")
    if exchange.request_fields.has("mcp-session-id"):
        return Claim("legacy", None, "a session whose initialize was not recorded")
    if first is not None and first.rpc.kind != "invalid":
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
        if (
            method == "server/discover"
            and isinstance(supported, list)
            and any(isinstance(v, str) and rev.version_kind(v) == "modern" for v in supported)
        ):
            return "server/discover lists a modern version"
    return None


def is_recognised_modern_error(answer: Message, status: int | None) -> bool:
    """The narrower test for a client's duties (ERA005): what tells it that falling back is wrong."""
    code = answer.error_code
    if (status == 400 or answer.exchange.endpoint.on_stdio) and code in TYPED_CODES:
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
    if not endpoint.modern and not endpoint.legacy and _is_modern_only(exchange, answer):
        what = "a request with an envelope was served, and there is no initialize"
        endpoint.modern = ServerEvidence(exchange.flow, what, inferred=True)
        return True
    if not endpoint.legacy and answer.rpc.kind == "result" and _is_legacy_answer(exchange, request):
        if endpoint.modern is not None and endpoint.modern.inferred:
            endpoint.modern = None
        initialize = request is not None and request.method == "initialize"
        what = "initialize succeeded" if initialize else "served a request of the legacy era"
        endpoint.legacy = ServerEvidence(exchange.flow, what)
        return True
    return False


_MOST_AUTHS = 100


def _is_modern_only(exchange: Exchange, answer: Message) -> bool:
    """Whether, with what was answered before to the same Authorization, the server serves envelopes and has no initialize."""
    endpoint, request, code, status = exchange.endpoint, answer.request, answer.error_code, exchange.status
    if request is None or endpoint.initialize_accepted:
        return False
    if exchange.claim.kind == "modern" and answer.rpc.kind == "result" and request.method not in MODERN_ONLY_METHODS:
        table = endpoint.enveloped
    elif (
        request.method == "initialize"
        and exchange.claim.kind == "legacy"
        and ((status == 404 and code == rev.METHOD_NOT_FOUND) or (status == 400 and code in TYPED_CODES))
    ):
        table = endpoint.without_handshake
    else:
        return False
    if len(table) < _MOST_AUTHS:
        table.add(exchange.auth)
    return exchange.auth in endpoint.enveloped and exchange.auth in endpoint.without_handshake


def _is_legacy_answer(exchange: Exchange, request: Message | None) -> bool:
    claim = exchange.claim
    if request is not None and request.method == "initialize":
        return claim.kind == "legacy"
    if claim.kind == "legacy":
        return claim.revision is not None or (exchange.session is not None and exchange.session.confirmed)
    batch = exchange.reading is not None and exchange.reading.kind == "batch"
    return claim.kind == "legacy-transport" and batch and claim.revision not in rev.MODERN


def served_revision(exchange: Exchange, answer: Message) -> str | None:
    """The revision that the server is seen to serve by this answer; None where it shows none."""
    request, claim = answer.request, exchange.claim
    if answer.rpc.kind != "result":
        return None
    if claim.kind == "legacy" and request is not None and request.method == "initialize":
        version = answer.result.get("protocolVersion")
        return version if isinstance(version, str) else None
    if claim.kind in ("modern", "modern-unknown"):
        return claim.revision if isinstance(answer.result.get("resultType"), str) else None
    return claim.revision if claim.kind == "legacy" else None


def is_undecided(exchange: Exchange) -> bool:
    """Whether evidence that comes later can still change the era of this exchange or what its server is judged by."""
    claim, endpoint = exchange.claim, exchange.endpoint
    if claim.modern or claim.kind == "legacy-envelope":
        return not endpoint.modern
    if claim.kind in ("legacy", "unknown-body"):
        return not endpoint.legacy and exchange.era == "unknown"
    return False


def settle(exchange: Exchange) -> None:
    """The era and revision of the exchange, from its claim and from all that is known of its server by now (the decision
    table of the catalogue)."""
    claim, endpoint, session = exchange.claim, exchange.endpoint, exchange.session
    exchange.revision = claim.revision
    if claim.modern:
        exchange.era = _of_modern(exchange)
    elif claim.kind == "legacy-envelope":
        exchange.era = endpoint.era if endpoint.era in ("modern", "legacy") else "unknown"
    elif claim.kind == "legacy":
        exchange.era = _of_legacy(exchange)
    elif endpoint.on_stdio:
        exchange.era = endpoint.era if endpoint.era in ("modern", "legacy") else "unknown"
    elif session is not None and session.confirmed:
        exchange.era, exchange.revision = "legacy", session.revision
    elif exchange.stream is not None and exchange.http_method == "GET":
        exchange.era = "legacy"
    elif exchange.sent and claim.kind == "legacy-transport" and claim.revision not in rev.MODERN and exchange.status == 202:
        exchange.era = "legacy"  # an answer that the client posted was accepted
    else:
        exchange.era = "unknown"


def _of_modern(exchange: Exchange) -> rev.Era:
    endpoint = exchange.endpoint
    if endpoint.modern:
        return "modern"
    if endpoint.legacy:
        return "legacy"
    answer = exchange.answer
    served = answer is not None and answer.rpc.kind == "result" and exchange.claim.kind != "modern-malformed"
    # A result without resultType: a legacy server took it for one of its own methods (ERA004). A server that refuses
    # initialize as well, or asks as only the modern era does, is rather a modern one with a fault (RES001): undecided.
    refuses = endpoint.initialize_refused and not endpoint.initialize_accepted
    asks = answer is not None and ("inputRequests" in answer.result or "requestState" in answer.result)
    return "legacy" if served and not refuses and not asks else "unknown"


def _of_legacy(exchange: Exchange) -> rev.Era:
    endpoint, request = exchange.endpoint, exchange.request
    if request is not None and request.method == "initialize":
        answer = exchange.answer
        if answer is not None and answer.rpc.kind == "result":
            version = answer.result.get("protocolVersion")
            exchange.revision = version if isinstance(version, str) else None
            return "legacy"
        # 202 to a request is what HTTP+SSE does: the answer comes on the GET stream.
        return "legacy" if endpoint.legacy or exchange.status == 202 else "unknown"
    if exchange.session is not None and exchange.session.confirmed:
        return "legacy"
    succeeded = exchange.status is not None and 200 <= exchange.status < 300
    return "legacy" if succeeded or endpoint.legacy else "unknown"
