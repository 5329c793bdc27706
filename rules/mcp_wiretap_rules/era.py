"""ERA: how client and server find out which era they share (2026-07-28 basic/versioning).

Catalogue entries that say how to judge (ERA001, ERA002, ERA005, ERA010, ERA019, ERA023) shape `mcp_wiretap.trace.era.claim` and the
scoping of rules. ERA011 and ERA016 are told by ERA015, HTS006 and MET001, ERA012 by LEG024, ERA013 by the era of the endpoint;
tasks/list and tasks/result, of which ERA015 speaks as well, by TSK017.
"""

import re
from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.era.expectation import BROKEN_EXPECTATION, Broken
from mcp_wiretap.trace.era.negotiation import NEGOTIATION, Part, Refusal
from mcp_wiretap.trace.mirrored.request_faults import header_faults, other_faults
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line

VERSIONING = "2026-07-28 basic/versioning"
COMPATIBILITY = "2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions"
HTTP_COMPATIBILITY = "2026-07-28 basic/transports/streamable-http#backward-compatibility"
NEGOTIATION_SPEC = "2026-07-28 basic/versioning#protocol-version-negotiation"
_DATE = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b")
_VERSION = ("params", "_meta", rev.PROTOCOL_VERSION)


def _part(exchange: Exchange) -> Part | None:
    part: Part | None = exchange.facts.get(NEGOTIATION)
    return part


def _status(refusal: Refusal) -> Any:
    return refusal.status if refusal.status is not None else "no answer"


@rule(
    "ERA003",
    "probe-recognised",
    "server/discover used as an era probe",
    on="exchange",
    methods=("server/discover",),
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec="2026-07-28 server/discover#when-to-call",
    sep="2575",
    always=True,
)
def probe_recognised(exchange: Exchange) -> Iterator[Finding]:
    """A client that does not know its server's era may open with a modern request, most often server/discover. When the
    server answers that with an error that no modern server would give, the client goes on with initialize. Here stands what
    came of it. At any later time server/discover is an ordinary request.

    Why: a refusal is then no fault: it is how a legacy server says what it is. But a client that does not go on, or waits for
    half a minute first, looks like a hanging server to its user.

    Fix: fall back at once on any 4xx whose body is not a recognised modern error, whatever its code and even when its id is null.

    Wrong::

        modern server/discover
          -> no-answer-id
          -> status 400
          -> error -32700

    Right::

        modern tools/list
          -> result {"tools": []}
        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    """
    part = _part(exchange)
    if part is None or part.role not in ("probe", "retry"):
        return
    refusal, follow, modern = part.refusal, part.follow, exchange.endpoint.modern is not None
    if (refusal is None and exchange.outcome == "complete") or (refusal is not None and refusal.recognised and modern):
        if part.first:
            said = "answered it" if refusal is None else f"refused it as a modern server does ({refusal.words})"
            shown = [evidence("request.body:/method", "server/discover")]
            yield Finding(f"the client's first request is a probe, and the server {said}", shown)
        return
    if refusal is None or refusal.status in (401, 403) or modern:
        return
    shown = [evidence("response.status", _status(refusal), "a result, or an error that only a legacy server gives")]
    if follow is None:
        if exchange.finished and exchange.over:
            yield Finding(f"the probe was refused ({refusal.words}), and the client did not fall back to initialize", shown)
    elif follow.role in ("fallback", "http+sse"):
        late = f" after {follow.after:.0f} s" if follow.after >= 5 else ""
        how = "initialize" if follow.role == "fallback" else "the HTTP+SSE transport"
        yield Finding(
            f"the probe was refused ({refusal.words}), the client fell back to {how}{late}", shown, related=(follow.flow,)
        )


@rule(
    "ERA004",
    "modern-request-served-as-legacy",
    "Request with envelope answered with an era-ambiguous legacy result",
    on="answer",
    level="may-note",
    party="server",
    era="both",
    severity="info",
    spec="2026-07-28 basic/versioning#compatibility-matrix",
    sep="2575",
    always=True,
    sorts=("result",),
)
def modern_request_served_as_legacy(message: Message) -> Iterator[Finding]:
    """A legacy server may take a modern request for one of its own: methods such as tools/list exist in both eras, and it ignores
    the envelope. Its result has no resultType then.

    Why: the client reads the answer by the rules of one era, the server wrote it by those of the other.

    Fix: in the client, probe with server/discover first, which no legacy server answers. A server that means to be modern puts
    resultType on every result.

    Wrong::

        modern tools/list
          -> raw-result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    request = message.request
    if request is None or message.rpc.kind != "result" or not request.exchange.claim.modern:
        return
    exchange = request.exchange
    if exchange.era == "legacy" and "resultType" not in message.result:
        yield Finding(
            f"the result of {exchange.method} has no resultType: a legacy server took the modern request for one of its own",
            [evidence(message.place("result", "resultType"), None, "complete, from a modern server")],
        )


def _premature(exchange: Exchange, role: str) -> Refusal | None:
    part = _part(exchange)
    return part.after if part is not None and part.premature and part.role == role else None


@rule(
    "ERA006",
    "fallback-after-modern-error",
    "Client fell back to initialize although the server identified itself as modern",
    on="request",
    methods=("initialize",),
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=HTTP_COMPATIBILITY,
    sep="2575",
)
def fallback_after_modern_error(message: Message) -> Iterator[Finding]:
    """-32020, -32021 or -32022 with HTTP 400, or -32601 with HTTP 404, come from a modern server only. The client repairs its
    request or picks another of the versions offered; it does not fall back to initialize.

    Why: a modern server has no handshake. The fallback fails, or a dual-era server is used in its old era for good, and the fault
    in the modern request stays.

    Fix: read the body of a 400 before falling back. On -32022 retry with a version of data.supported.

    Wrong::

        modern server/discover
          -header Mcp-Method
          -> error -32020
        legacy initialize
          -> error -32601

    Right::

        modern server/discover
          -> status 400
          -> error -32600
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    refusal = _premature(message.exchange, "fallback")
    if refusal is not None:
        shown = [evidence("request.body:/method", "initialize", "the modern request, corrected")]
        if refusal.supported is not None:
            shown.append(evidence(message.place("params", "protocolVersion"), message.exchange.claim.revision, _one_of(refusal)))
        yield Finding(
            f"{refusal.method} was refused with {refusal.words}, which only a modern server says, and the client fell back",
            shown,
            related=(refusal.flow,),
        )


def _one_of(refusal: Refusal) -> str:
    return "one of " + ", ".join(refusal.supported or ())


@rule(
    "ERA007",
    "retry-version-not-offered",
    "Retry after -32022 uses a version the server did not offer",
    on="request",
    level="should",
    party="client",
    era="modern",
    severity="warning",
    spec=NEGOTIATION_SPEC,
    sep="2575",
    always=True,
)
def retry_version_not_offered(message: Message) -> Iterator[Finding]:
    """After -32022 the client picks a version from data.supported, or tells its user that there is none in common.

    Why: any other version is refused again.

    Fix: choose the newest version that both sides know from data.supported.

    Wrong::

        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}

    Right::

        modern tools/list
          version 2027-01-01
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2027-01-01"}}
        modern tools/list
          -> result {"tools": []}
    """
    part = _part(message.exchange)
    if part is None or part.not_offered is None or message is not message.exchange.request:
        return
    refusal = part.not_offered
    yield Finding(
        f"the server offered {_listed(refusal.supported or ())}, the next request asks for {_cut(part.version)}",
        [evidence(message.place(*_VERSION), part.version, _one_of(refusal))],
        related=(refusal.flow,),
    )


def _listed(versions: tuple[str, ...]) -> str:
    return one_line(", ".join(versions[:5]) or "no version", 100)


def _cut(version: str | None) -> str:
    return one_line(version or "no version", 40)


@rule(
    "ERA008",
    "legacy-version-in-envelope",
    "Per-request envelope names a legacy revision",
    on="exchange",
    level="may-note",
    party="client",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/versioning#terminology",
    sep="2575",
)
def legacy_version_in_envelope(exchange: Exchange) -> Iterator[Finding]:
    """The envelope is how modern revisions are declared. A legacy revision is negotiated by initialize.

    Why: it works only where the server tolerates it. Most often a client took 2025-11-25 from data.supported and put it into the
    envelope instead of opening a session.

    Fix: to speak a legacy revision send initialize without envelope; in the envelope name 2026-07-28.

    Wrong::

        modern tools/list
          version 2025-11-25
          -> raw-result {"tools": []}

    Right::

        modern tools/list
          version 2026-07-28
          -> result {"tools": []}
    """
    request = exchange.request
    if exchange.claim.kind != "legacy-envelope" or request is None:
        return
    version, session = exchange.claim.revision, exchange.session
    mild = exchange.error_code == rev.UNSUPPORTED_VERSION  # rightly refused
    if session is not None and session.live and session.revision == version:
        mild = True
    yield Finding(
        f"the envelope names {version}, which is negotiated by initialize",
        [evidence(request.place(*_VERSION), version, rev.MODERN_FROM)],
        severity="info" if mild else None,
    )


@rule(
    "ERA009",
    "unknown-modern-version",
    "Version string is newer than, or foreign to, this tool",
    on="request",
    level="may-note",
    party="either",
    era="modern",
    severity="info",
    spec=NEGOTIATION_SPEC,
    sep="2575",
    once="client",
    structural=True,
)
def unknown_modern_version(message: Message) -> Iterator[Finding]:
    """A version that is newer than this tool, or no revision of MCP at all, may have rules of its own. Only what holds for every
    version is judged; the rest is said as a note.

    Why: a verdict by the rules of 2026-07-28 could be wrong here.

    Fix: nothing, if the version is meant. Otherwise write the revision as it is published: 2026-07-28, not 2026-7-28.

    Wrong::

        modern tools/list
          version 2026-7-28
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2026-7-28"}}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    if message.exchange.claim.kind == "modern-unknown":
        version = message.exchange.claim.revision
        yield Finding(
            f"version {_cut(version)} is not known here: only the structure of the message is judged",
            [evidence(message.place(*_VERSION), version, ", ".join(rev.KNOWN))],
            party="client",
        )


@rule(
    "ERA014",
    "initialize-rejection-names-versions",
    "Modern-only server should name its versions when refusing initialize",
    on="answer",
    methods=("initialize",),
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=COMPATIBILITY,
    sep="2575",
    once="endpoint",
)
def initialize_rejection_names_versions(message: Message) -> Iterator[Finding]:
    """A server without legacy era that refuses initialize names the versions that it speaks, in the message or in the data of the
    error.

    Why: a legacy client cannot find out on its own what to do; this text is all that its user gets to see.

    Fix: answer with -32022 and data.supported, or put the versions into the message.

    Wrong::

        legacy initialize
          -> status 400
          -> error -32022 {"message": "unsupported", "data": {}}

    Right::

        legacy initialize
          -> status 400
          -> error -32022 {"message": "unsupported", "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"}}
    """
    request = message.request
    if request is None or message.rpc.kind != "error" or request.exchange.claim.kind != "legacy":
        return
    exchange = request.exchange
    if exchange.endpoint.initialize_accepted:
        return
    if exchange.endpoint.modern is None and message.error_code not in (rev.HEADER_MISMATCH, rev.UNSUPPORTED_VERSION):
        return
    if exchange.status not in (200, 400, 404, 405) or not isinstance(request.params.get("protocolVersion"), str):
        return
    error = message.rpc.error if isinstance(message.rpc.error, dict) else {}
    if not _DATE.search(dumps({"message": error.get("message"), "data": error.get("data")})[:20_000]):
        yield Finding(
            f"initialize was refused with {message.error_code} and no word of the versions that the server speaks",
            [evidence(message.place("error", "message"), error.get("message"), "the versions supported, e.g. 2026-07-28")],
        )


_REMOVED = {
    "initialize": "server/discover, or the envelope alone",
    "ping": "nothing: any answer shows that the server lives",
    "logging/setLevel": "io.modelcontextprotocol/logLevel in _meta",
    "resources/subscribe": "subscriptions/listen",
    "resources/unsubscribe": "subscriptions/listen",
    "notifications/initialized": "nothing: there is no handshake",
    "notifications/roots/list_changed": "nothing: roots are asked for in results",
}


@rule(
    "ERA015",
    "removed-method-on-modern",
    "Method removed in 2026-07-28 sent as a modern request",
    on=("request", "notification"),
    methods=tuple(_REMOVED),
    level="may-note",
    party="client",
    era="modern",
    severity="warning",
    spec="2026-07-28 changelog#major-changes",
    sep="2575",
)
def removed_method_on_modern(message: Message) -> Iterator[Finding]:
    """initialize, ping, logging/setLevel, resources/subscribe and unsubscribe, and the notifications initialized and
    roots/list_changed, are not part of 2026-07-28.

    Why: the server answers 404 with -32601, and what the call was for does not happen.

    Fix: use what took its place: the envelope on every request, logLevel in `_meta`, subscriptions/listen.

    Wrong::

        modern ping
          -> error -32601

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy ping
          -> result {}
    """
    exchange, method = message.exchange, message.method or ""
    if message.rpc.kind == "notification" and exchange.session is not None and exchange.session.live:
        return
    yield Finding(
        f"{method} does not exist in {rev.MODERN_FROM}",
        [evidence(message.place("method"), method, _REMOVED[method])],
    )


@rule(
    "ERA017",
    "era-mixed-in-session",
    "Modern envelope inside a live legacy session",
    on="request",
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec=COMPATIBILITY,
    sep="2567",
    needs=("header:mcp-session-id",),
)
def era_mixed_in_session(message: Message) -> Iterator[Finding]:
    """A request with a modern envelope that also names a legacy session is a modern request: the session id means nothing to it.

    Why: the server ignores the session; what the client negotiated in it does not hold for this request.

    Fix: leave Mcp-Session-Id away on modern requests, or the envelope on those that belong to the session.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        modern tools/list
          session session-1-of-the-example
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        modern tools/list
          -> result {"tools": []}
    """
    exchange, session = message.exchange, message.exchange.session
    if session is None or not exchange.claim.modern or not session.initialize_flow:
        return
    if session.ended_at is None or session.ended_at > exchange.started:
        yield Finding(
            "the request carries a modern envelope and the id of a legacy session, which means nothing to it",
            [evidence("request.header:Mcp-Session-Id", exchange.request_fields.first("mcp-session-id"), "(absent)")],
            related=(session.initialize_flow,),
        )


@rule(
    "ERA018",
    "initialize-names-modern-version",
    "Handshake tries to negotiate a modern revision",
    on=("request", "answer"),
    methods=("initialize",),
    level="must",
    party="either",
    era="legacy",
    severity="error",
    spec="2026-07-28 basic/versioning#terminology",
    sep="2575",
    versions=("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"),
    always=True,
)
def initialize_names_modern_version(message: Message) -> Iterator[Finding]:
    """initialize negotiates legacy revisions only. A server that agrees on 2026-07-28 or later there promises a revision that has
    no handshake and no session. A client may ask for it: the server answers with a version that it supports.

    Why: client and server then speak by rules that contradict each other: with session or without, with envelope or without.

    Fix: in the server, answer initialize with the newest legacy revision that it supports, or refuse it and name the versions.

    Wrong::

        legacy initialize
          version 2026-07-28
          -> result {"protocolVersion": "2026-07-28", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    request = message if message.request is None else message.request
    if request.exchange.claim.kind != "legacy":
        return
    if message.request is None:
        version, where = message.params.get("protocolVersion"), message.place("params", "protocolVersion")
    else:
        version, where = message.result.get("protocolVersion"), message.place("result", "protocolVersion")
    if not isinstance(version, str) or rev.version_kind(version) not in ("modern", "future"):
        return
    if message.request is None:
        yield Finding(
            f"initialize asks for {version}, which has no handshake: the server will offer a legacy revision",
            [evidence(where, version, "2025-11-25 or earlier")],
            severity="info",
            party="client",
        )
    else:
        yield Finding(
            f"initialize agreed on {version}, a revision without handshake",
            [evidence(where, version, "2025-11-25 or earlier")],
            party="server",
        )


@rule(
    "ERA020",
    "http-sse-fallback-condition",
    "GET fallback only after 400/404/405 without a modern error body",
    on="post",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/transports/streamable-http#httpsse-transport-2024-11-05",
    sep="2596",
    always=True,
    transport=("http",),
)
def http_sse_fallback_condition(exchange: Exchange) -> Iterator[Finding]:
    """A client looks for the 2024-11-05 transport with a GET only after its POST got 400, 404 or 405 with a body that is not a
    recognised modern error.

    Why: a modern server has no GET stream. The fault in the modern request stays, and the client ends with no transport at all.

    Fix: read the body of the refused POST. Correct the request on -32020 and -32021, change the version on -32022.

    Wrong::

        modern server/discover
          -header Mcp-Method
          -> error -32020
        GET /mcp
          header Accept: text/event-stream
          -> 405

    Right::

        modern server/discover
          -> 405
        GET /mcp
          header Accept: text/event-stream
          -> sse
          -> sse-raw event: endpoint\\ndata: /messages?session_id=1\\n\\n
          -> open
    """
    refusal = _premature(exchange, "http+sse")
    if refusal is not None:
        yield Finding(
            f"{refusal.method} was refused with {refusal.words}, which only a modern server says, and the client sent a GET",
            [evidence("request.method", "GET", "the modern request, corrected")],
            related=(refusal.flow,),
        )


@rule(
    "ERA021",
    "repeated-probing",
    "Era verdict not cached",
    on="request",
    methods=("initialize",),
    level="should",
    party="client",
    era="both",
    severity="info",
    spec=COMPATIBILITY,
    sep="2575",
)
def repeated_probing(message: Message) -> Iterator[Finding]:
    """The era is a property of the server. A client that has found it by probe and fallback keeps that for the origin until it
    fails.

    Why: each further probe costs a round trip and an error in the server's log.

    Fix: remember the era for each origin; probe again only when a request of that era fails.

    Wrong::

        modern server/discover
          -> status 400
          -> error -32600
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        modern server/discover
          -> status 400
          -> error -32600
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        modern server/discover
          -> status 400
          -> error -32600
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    part = _part(message.exchange)
    if part is not None and part.repeat is not None:
        repeat = part.repeat
        yield Finding(
            f"probe and fallback for the {_ordinal(repeat.count)} time, {repeat.since:.1f} s after the one before",
            [evidence("request.body:/method", "initialize", "the era found before, without another probe")],
            related=(repeat.earlier,),
        )


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


@rule(
    "ERA022",
    "served-version-not-advertised",
    "Server answers a version it does not list",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=NEGOTIATION_SPEC,
    sep="2575",
    structural=True,
    sorts=("result",),
)
def served_version_not_advertised(message: Message) -> Iterator[Finding]:
    """A server refuses versions that it does not support with -32022. What it serves belongs into supportedVersions of
    server/discover and into data.supported.

    Why: clients choose by that list; a version that works but is not listed is found by accident and lost by accident.

    Fix: list the version, or refuse it.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern tools/list
          version 2027-01-01
          -> result {"tools": []}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern tools/list
          -> result {"tools": []}
    """
    request = message.request
    if request is None or message.rpc.kind != "result" or not isinstance(message.result.get("resultType"), str):
        return
    exchange = request.exchange
    part = _part(exchange)
    if part is None or part.unlisted is None or exchange.claim.kind not in ("modern", "modern-unknown"):
        return
    listed, version = part.unlisted, exchange.claim.revision
    related = (listed.flow,) if listed.flow != exchange.flow else ()
    yield Finding(
        f"the server lists {_listed(listed.versions)}, and serves {_cut(version)}",
        [evidence(request.place(*_VERSION), version, _listed(listed.versions))],
        related=related,
    )


@rule(
    "ERA024",
    "discover-must-exist",
    "Modern server does not implement server/discover",
    on="exchange",
    methods=("server/discover",),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 server/discover",
    sep="2575",
)
def discover_must_exist(exchange: Exchange) -> Iterator[Finding]:
    """Every modern server implements server/discover.

    Why: it is how clients learn versions and capabilities before anything else; without it they take the server for a legacy one.

    Fix: answer server/discover with supportedVersions and capabilities.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern server/discover
          -> error -32601

    Right::

        modern tools/list
          -> result {"tools": []}
        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    """
    modern, answer = exchange.endpoint.modern, exchange.answer
    if modern is None or modern.flow == exchange.flow or exchange.claim.kind != "modern":
        return
    if answer is not None:
        missing, shown = answer.error_code == rev.METHOD_NOT_FOUND, evidence(_code_of(answer), answer.error_code, "a result")
    else:
        missing, shown = exchange.status in (404, 405), evidence("response.status", exchange.status, "200 and a result")
    if missing and not header_faults(exchange) and not other_faults(exchange):
        said = "-32601" if answer is not None else f"HTTP {exchange.status}"
        yield Finding(f"server/discover got {said} from a server that is modern ({modern.what})", [shown], related=(modern.flow,))


def _code_of(answer: Message) -> str:
    return answer.place("error", "code")


@rule(
    "ERA025",
    "era-expectation-broken",
    "Era is not the one the user expects of this endpoint",
    on=("request", "notification", "answer", "event"),
    level="may-note",
    party="either",
    era="both",
    severity="error",
    spec=COMPATIBILITY,
    always=True,
    needs=(BROKEN_EXPECTATION,),
)
def era_expectation_broken(fact: Message | StreamItem) -> Iterator[Finding]:
    """You said with mcp_era which era you expect of this server, and the traffic is of the other one. The first exchange of each
    kind is reported for each endpoint; a probe alone breaks nothing.

    Why: a silent fallback works well enough to go unnoticed, until a feature of the other era is missing.

    Fix: where the server refused the modern request, look at that refusal: an old server, a gateway that strips headers, a wrong
    path. Where the client never tried, set its era. Or change mcp_era.

    Wrong::

        expect: modern

        modern server/discover
          -> status 400
          -> error -32600
        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

    Right::

        expect: modern

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    """
    if isinstance(fact, StreamItem):
        yield from _expected_no_stream(fact)
        return
    message = fact
    exchange = message.exchange if message.request is None else message.request.exchange
    broken: Broken | None = exchange.facts.get(BROKEN_EXPECTATION)
    if broken is None or (message.request is None) != (broken.expected == "legacy"):
        return
    if message is not (exchange.answer if broken.expected == "modern" else exchange.sent[0]):
        return
    if broken.expected == "modern" and exchange.era != "legacy":
        return
    shown = [evidence("request.body:/method", exchange.method, f"{broken.expected} traffic")]
    related = () if broken.refusal is None else (broken.refusal.flow,)
    yield Finding(_told(exchange, broken), shown, party=broken.party, related=related)


def _expected_no_stream(item: StreamItem) -> Iterator[Finding]:
    broken: Broken | None = item.exchange.facts.get(BROKEN_EXPECTATION)
    if broken is None or broken.how != "HTTP+SSE" or item.event.index:
        return
    refusal = broken.refusal
    tried = "the client never tried a modern request" if refusal is None else f"{refusal.method} was refused ({refusal.words})"
    yield Finding(
        f"expected modern: {tried}, and the server opened a stream of the HTTP+SSE transport",
        [evidence(item.where, item.event.event, "modern traffic")],
        party=broken.party,
        related=() if refusal is None else (refusal.flow,),
    )


def _told(exchange: Exchange, broken: Broken) -> str:
    refusal = broken.refusal
    match broken.how:
        case "modern request":
            return f"expected legacy: the client sent {exchange.method} as a modern request"
        case "fell back" if refusal is not None:
            refused = f"{refusal.method} was refused ({refusal.words})"
            return f"expected modern: {refused}, then the server served {exchange.method}"
        case "served as legacy":
            return f"expected modern: the server answered {exchange.method} as a legacy server, without resultType"
        case "legacy session":
            return f"expected modern: {exchange.method} was served in a legacy session; its opening was not recorded"
        case _:
            return "expected modern: the client opened with initialize and never tried a modern request"


@rule(
    "ERA026",
    "revision-not-declared",
    "Request declares no revision to a server that needs one",
    on="answer",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec=NEGOTIATION_SPEC,
    sep="2575",
    sorts=("error",),
    once="client",
    always=True,
    kinds=("mcp",),
)
def revision_not_declared(message: Message) -> Iterator[Finding]:
    """A request says which revision it is of: by its envelope (2026-07-28), or by initialize and what that agreed on. One that says
    nothing is of 2025-03-26 at the latest, and a server without that revision refuses it with -32022 (or -32020) at HTTP 400.

    Why: the code speaks of a version that the request does not have; what lacks is the envelope, or the handshake.

    Fix: send `_meta` with protocolVersion and clientCapabilities and the MCP-Protocol-Version header on every request, or begin
    with initialize.

    Wrong::

        legacy tools/list
          -> status 400
          -> error -32022 {"message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"], "requested": ""}}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    request, exchange = message.request, message.exchange
    if request is None or request.exchange is not exchange or exchange.status != 400 or request.method == "initialize":
        return
    if message.error_code not in (rev.UNSUPPORTED_VERSION, rev.HEADER_MISMATCH) or exchange.claim.kind != "legacy":
        return
    if rev.PROTOCOL_VERSION in request.meta or exchange.session is not None:
        return
    if exchange.request_fields.has("mcp-protocol-version"):
        return
    data = message.rpc.error.get("data") if isinstance(message.rpc.error, dict) else None
    supported = data.get("supported") if isinstance(data, dict) else None
    named = [one_line(v, 20) for v in supported[:5] if isinstance(v, str)] if isinstance(supported, list) else []
    speaks = f"the server speaks {', '.join(named)}" if named else "the server takes no request without one"
    yield Finding(
        f"the request declares no revision, and {speaks}",
        [
            evidence(request.place("params", "_meta", rev.PROTOCOL_VERSION), None, named[0] if named else "a revision"),
            evidence("request.header:MCP-Protocol-Version", None, named[0] if named else "a revision"),
        ],
    )
