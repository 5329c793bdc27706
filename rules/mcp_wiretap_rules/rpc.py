"""RPC: the JSON-RPC envelope and its error codes (2026-07-28 basic/index#messages and the transport's message rules)."""

import re
from collections.abc import Iterable, Iterator

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.finding import Party
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.operations.ids import (
    ANSWERED_TWICE,
    CANCELS,
    POSTED_AFTER_MODERN,
    REUSE,
    AnsweredTwice,
    CancelTarget,
    Reuse,
)
from mcp_wiretap.trace.refusals.words import speaks_of
from mcp_wiretap.trace.streams.lines import AnsweredBefore
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import ExactFloat, dumps, id_key, pointer
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_integer
from mcp_wiretap_rules import members, shapes
from mcp_wiretap_rules.hdr import JSON, is_mcp_message, media_type

INDEX = "2026-07-28 basic/index"
HTTP = "2026-07-28 basic/transports/streamable-http"
# The request was refused before its body was read: nobody knew its id.
REFUSED_UNREAD = frozenset({401, 403, 405, 406, 408, 411, 413, 415, 421, 429})
# Rules of the Streamable HTTP transport decide by the transport, not by what is known of the server's era: they are `always`.
_BEFORE_STREAMABLE = "2024-11-05"
KNOWN_REQUESTS = frozenset(
    {
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
        "tasks/get",
        "tasks/update",
        "tasks/cancel",
        "tasks/list",
        "tasks/result",
        "sampling/createMessage",
        "elicitation/create",
        "roots/list",
    }
)


@rule(
    "RPC001",
    "jsonrpc-version-member",
    'jsonrpc must be "2.0"',
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{INDEX}#messages",
)
def jsonrpc_version_member(message: Message) -> Iterator[Finding]:
    """Every JSON-RPC message has the member `jsonrpc` with the string "2.0".

    Why: receivers tell JSON-RPC from other JSON by it, and strict ones refuse the message.

    Fix: send `"jsonrpc": "2.0"`, a string, in every request, notification and response.

    Wrong::

        modern tools/list
          body {"jsonrpc": "1.0", "id": 1, "method": "tools/list"}
          -> 400

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    body = message.rpc.body
    if not isinstance(body, dict) or (message.rpc.kind == "invalid" and "jsonrpc" not in body):
        return  # an item of a batch that is no JSON-RPC at all
    if body.get("jsonrpc") != "2.0":
        found = body.get("jsonrpc") if "jsonrpc" in body else None
        yield Finding(
            f'jsonrpc is {"absent" if "jsonrpc" not in body else one_line(dumps(found), 40)}, not "2.0"',
            [evidence(message.place("jsonrpc"), found, "2.0")],
        )


@rule(
    "RPC002",
    "request-id-null",
    "Request id is null",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{INDEX}#requests",
)
def request_id_null(message: Message) -> Iterator[Finding]:
    """A request id is a string or an integer; null is not allowed. A message without the member is a notification.

    Why: an answer with id null cannot be told from an answer to an unreadable request.

    Fix: number the requests, or leave the member out where no answer is wanted.

    Wrong::

        modern tools/list
          id null
          -> error -32600

    Right::

        modern tools/list
          id 0
          -> result {"tools": []}
    """
    if message.rpc.id is None:
        yield Finding("the request id is null", [evidence(message.place("id"), "null", "a string or an integer")])


@rule(
    "RPC003",
    "request-id-type",
    "Request id is not a string or integer",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{INDEX}#requests",
)
def request_id_type(message: Message) -> Iterator[Finding]:
    """A request id is a string or an integer. `1.0` is an integer in JSON; `""`, `0` and negative numbers are valid.

    Why: readers round fractions, and booleans or objects do not survive a typed decoder: the answer cannot be matched.

    Fix: use a counter or a random string.

    Wrong::

        modern tools/list
          id 1.5
          -> error -32600

    Right::

        modern tools/list
          id "a-1"
          -> result {"tools": []}
    """
    value = message.rpc.id
    if value is None or isinstance(value, str) or is_integer(value):
        return
    from decimal import Decimal

    if not isinstance(value, Decimal):
        yield Finding(
            f"the request id is {one_line(dumps(value), 40)}, neither a string nor an integer",
            [evidence(message.place("id"), value, "a string or an integer")],
        )


@rule(
    "RPC004",
    "id-reused-in-flight",
    "Same id used while an earlier request is unanswered",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec=f"{INDEX}#requests",
    sep="2567",
    needs=(REUSE,),
)
def id_reused_in_flight(message: Message) -> Iterator[Finding]:
    """A client must not use the id of a request that is still unanswered. Over different connections it may be two clients of the
    same name, and is noted only, unless that name has shown one rising sequence of ids and sends the newest of them again.

    Why: whoever keeps requests by id (a gateway, an SDK) mixes up the two answers.

    Fix: count ids up for the whole life of the client, subscriptions/listen included.

    Wrong::

        modern tools/call {"name": "a"}
          id 1
          -> open
        modern tools/call {"name": "b"}
          id 1
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          id 1
          -> result {"content": []}
        modern tools/call {"name": "b"}
          id 1
          -> result {"content": []}
    """
    for reuse in _reuses(message, "id", *_IN_FLIGHT):
        mild = reuse.how == "same-name"
        yield Finding(
            f"id {one_line(dumps(reuse.value), 40)} is still in use {_IN_FLIGHT[reuse.how]}",
            [evidence(message.place("id"), reuse.value, "an id that is not in flight")],
            "info" if mild else None,
            related=(reuse.flow,),
            once="same-name" if mild else None,
        )


_IN_FLIGHT = {
    "in-flight": "on this connection (or a gateway shares it)",
    "one-sender": "by this client, whose ids have been one sequence so far",
    "same-name": "on another connection: reused, or two clients of that name",
}


def _reuses(message: Message, what: str, *how: str) -> list[Reuse]:
    found = message.exchange.facts.get(REUSE)
    return [r for r in found if r.what == what and r.how in how] if found else []


@rule(
    "RPC005",
    "id-reused-in-session",
    "Same id used twice in one legacy session",
    on="request",
    level="must",
    party="client",
    era="legacy",
    severity="error",
    spec="2025-11-25 basic/index#requests",
    needs=(REUSE,),
)
def id_reused_in_session(message: Message) -> Iterator[Finding]:
    """Within one session a client uses each request id once, even after it was answered.

    Why: servers keep answers by id for redelivery; a second request with the id gets the first one's answer.

    Fix: count ids up for the life of the session. Sending the same body again after a failed transport is no fault. Where the
    server gives no session id, clients cannot be told apart, and it is noted only.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          id 7
          -> result {"content": []}
        legacy tools/call {"name": "b"}
          id 7
          -> result {"content": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "a"}
          id 7
          -> result {"content": []}
        legacy tools/call {"name": "b"}
          id 8
          -> result {"content": []}
    """
    for reuse in _reuses(message, "id", "in-session", "transport-retry"):
        retry = reuse.how == "transport-retry"
        yield Finding(
            f"id {one_line(dumps(reuse.value), 40)} was used before in this session"
            + (" (the same request again after a failed transport)" if retry else ""),
            [evidence(message.place("id"), reuse.value, "an id not used in this session")],
            "info" if retry else None,
            related=(reuse.flow,),
        )
    for reuse in _reuses(message, "id", "no-session"):
        yield Finding(
            f"id {one_line(dumps(reuse.value), 40)} was used before on this connection, which has no session (or another client's)",
            [evidence(message.place("id"), reuse.value, "an id not used before")],
            "info",
            related=(reuse.flow,),
            once="no-session",
        )


@rule(
    "RPC006",
    "batch-not-allowed",
    "JSON array as message",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{HTTP}#sending-messages",
    always=True,
)
def batch_not_allowed(message: Message) -> Iterator[Finding]:
    """A body (or the data of an event) is one JSON-RPC message. Batches existed in 2025-03-26 only.

    Why: receivers of every other revision refuse an array, whatever is in it.

    Fix: send the messages one by one.

    Wrong::

        POST
          header Content-Type: application/json
          header Accept: application/json, text/event-stream
          header MCP-Protocol-Version: 2025-11-25
          body [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]
          -> 400

    Right::

        POST
          header Content-Type: application/json
          header Accept: application/json, text/event-stream
          header MCP-Protocol-Version: 2025-03-26
          body [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]
          -> 200 application/json [{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}]
    """
    exchange = message.exchange
    if message.rpc.index != 0 or exchange.kind != "mcp":
        return  # reported with the first message of the batch
    revision = exchange.session.revision if exchange.session is not None else None
    revision = revision or exchange.request_fields.first("mcp-protocol-version") or _of_envelopes(exchange)
    if revision == "2025-03-26":
        return
    severity: Severity | None = "info" if revision is None else "warning" if revision == "2024-11-05" else None
    why = f"revision {one_line(revision, 40)} has no batches" if revision else "no revision but 2025-03-26 has batches"
    yield Finding(
        f"the JSON-RPC messages are sent as an array: {why}",
        [Evidence(f"{message.where}:", "an array", "one JSON-RPC object")],
        severity,
    )


def _of_envelopes(exchange: Exchange) -> str | None:
    """The revision that a message of the request names in its envelope."""
    named = (message.meta.get(rev.PROTOCOL_VERSION) for message in exchange.sent[:20])
    return next((version for version in named if isinstance(version, str)), None)


@rule(
    "RPC007",
    "client-posts-response",
    "Client sends a JSON-RPC response",
    on="reply",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=f"{HTTP}#sending-messages",
    sep="2322",
    always=True,
    kinds=("mcp",),
    transport=("http",),
)
def client_posts_response(message: Message) -> Iterator[Finding]:
    """In the modern era a client never sends results or errors: it answers a server by calling again (MRTR).

    Why: servers answer 400, and whatever waits for the answer waits for ever.

    Fix: retry the request with `inputResponses` and the `requestState` that came with `input_required`.

    Wrong::

        POST
          header Content-Type: application/json
          header Accept: application/json, text/event-stream
          header MCP-Protocol-Version: 2026-07-28
          body {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}
          -> 400

    Right::

        legacy-reply 1 {"action": "accept"}
          version 2025-11-25
          -> 202
    """
    exchange = message.exchange
    modern = exchange.claim.modern
    # Without the version header: judged where the connection carried modern requests, and nobody ever opened a session there.
    if not modern and (
        exchange.request_fields.has("mcp-protocol-version")
        or exchange.endpoint.initialize_accepted
        or not exchange.facts.get(POSTED_AFTER_MODERN)
    ):
        return
    yield Finding(
        f"the client posted a JSON-RPC {message.kind}; the modern era has no requests of the server to answer",
        [evidence(message.place(), message.kind, "a request or a notification")],
        None if modern else "warning",
    )


@rule(
    "RPC008",
    "response-id-mismatch",
    "Response id differs from the request id",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{INDEX}#responses",
    versions=rev.STREAMABLE,
    streamable=True,
    always=True,
    kinds=("mcp",),
)
def response_id_mismatch(message: Message) -> Iterator[Finding]:
    """An answer carries the id of its request, the same value and the same JSON type.

    Why: the client cannot match the answer; SDKs drop it and the call hangs until its timeout.

    Fix: echo the id as it came: `"1"` is not `1`.

    Wrong::

        modern tools/list
          id 1
          -> answer-id "1"
          -> result {"tools": []}

    Right::

        modern tools/list
          id 1
          -> result {"tools": []}
    """
    request = message.request
    if message.id_matches or request is None or request.exchange.revision == _BEFORE_STREAMABLE:
        return
    if "id" in request.rpc.duplicates:
        return  # RPC024: the server may have answered the other of the two
    if message.rpc.id is None:
        if message.kind == "result":  # those of errors are HTS017 and RPC010
            expected = dumps(request.rpc.id)
            yield Finding("the result has no id to tell its request by", [evidence(message.place("id"), None, expected)])
        return
    status = message.exchange.status or 0
    severity: Severity | None = None
    probe = request.exchange.claim.modern  # its client falls back only when it has its answer
    if message.kind == "error" and status >= 400:
        severity = "warning" if message.exchange.endpoint.modern or probe else "info"
    sent, got = one_line(dumps(request.rpc.id), 40), one_line(dumps(message.rpc.id), 40)
    waits = ": a client waits for its own, and does not fall back" if probe and severity == "warning" else ""
    yield Finding(
        f"the answer has id {got}, the request has {sent}{waits}",
        [evidence(message.place("id"), dumps(message.rpc.id), dumps(request.rpc.id))],  # quotes tell "0" from 0
        severity,
    )


@rule(
    "RPC009",
    "result-and-error",
    "Response has both or neither of result/error",
    on=("message", "exchange"),
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{INDEX}#responses",
    sorts=("result", "error", "invalid", "body"),
)
def result_and_error(said: Message | Exchange) -> Iterator[Finding]:
    """A response has exactly one of `result` and `error`, and an error is an object.

    Why: receivers differ in which one they believe.

    Fix: leave the other member out; do not send it as null.

    Wrong::

        modern tools/list
          id 1
          -> 200 application/json {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}

    Right::

        modern tools/list
          id 1
          -> error -32603
    """
    if isinstance(said, Exchange):
        yield from _error_in_a_word(said)
        return
    message, rpc = said, said.rpc
    if not isinstance(rpc.body, dict) or ("method" in rpc.body and (rpc.kind != "invalid" or message.party == "client")):
        return  # RPC021 tells of a client whose method is no string
    if rpc.kind in ("result", "error") and "result" in rpc.body and "error" in rpc.body:
        yield Finding("both result and error are there", [evidence(message.place("error"), rpc.error, "one of the two")])
    elif rpc.kind == "invalid" and rpc.body.get("jsonrpc") == "2.0" and not _answers_nothing(message):
        if "error" not in rpc.body:
            yield Finding("neither result nor error is there", [evidence(message.place(), rpc.body, "result or error")])
        else:
            yield _no_error_object(message.place("error"), rpc.error)


def _answers_nothing(message: Message) -> bool:
    """A client outside a session has no request of a server to answer: what it posts is no response, but no JSON-RPC (RPC021)."""
    return message.party == "client" and message.exchange.session is None


def _no_error_object(where: str, error: object, party: Party | None = None) -> Finding:
    shown = one_line(dumps(error, most=60), 40)
    return Finding(f"error is {shown}, not an object", [evidence(where, dumps(error), "an object")], party=party)


def _error_in_a_word(exchange: Exchange) -> Iterator[Finding]:
    """`{"jsonrpc": "2.0", "error": "text"}`. Without `jsonrpc` it is no JSON-RPC but, for example, OAuth's."""
    reading = exchange.answer_reading
    if reading is None or reading.kind != "not-rpc" or exchange.status in REFUSED_UNREAD or not isinstance(reading.value, dict):
        return
    if reading.value.get("jsonrpc") == "2.0" and "error" in reading.value:
        yield _no_error_object("response.body:/error", reading.value["error"], "server")


@rule(
    "RPC010",
    "error-id-null",
    "Error response with id null",
    on="message",
    level="may-note",
    party="server",
    era="both",
    severity="info",
    spec=f"{INDEX}#error-responses",
    sorts=("error",),
)
def error_id_null(message: Message) -> Iterator[Finding]:
    """An error to a request whose id could not be read has, by JSON-RPC, id null; the MCP schema leaves the member out.

    Why: both are met; typed clients that follow the MCP schema refuse null.

    Fix: leave `id` out where the request's id is not known.

    Wrong::

        modern tools/list
          -> 401 application/json {"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "who are you?"}}

    Right::

        modern tools/list
          -> 401 application/json {"jsonrpc": "2.0", "error": {"code": -32600, "message": "who are you?"}}
    """
    rpc, exchange = message.rpc, message.exchange
    if message.party != "server" or rpc.kind != "error" or not rpc.has_id or rpc.id is not None:
        return
    request = exchange.request
    single = request is not None and request.rpc.index is None  # the error is about the batch as a whole
    readable = request is not None and single and (isinstance(request.rpc.id, str) or is_integer(request.rpc.id))
    if not readable or exchange.status in REFUSED_UNREAD:
        yield Finding("the error has id null; the MCP schema leaves the member out", [evidence(message.place("id"), "null")])


@rule(
    "RPC011",
    "error-code-not-integer",
    "error.code is not an integer",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{INDEX}#error-responses",
    sorts=("error",),
)
def error_code_not_integer(message: Message) -> Iterator[Finding]:
    """`error.code` is an integer.

    Why: clients switch on the code; a string or a missing one is an unreadable answer to a typed client.

    Fix: use a defined code, or any integer outside -32768..-32000 for your own errors.

    Wrong::

        modern tools/list
          -> error "E1"

    Right::

        modern tools/list
          -> error -32603
    """
    error = message.rpc.error
    if message.rpc.kind != "error" or not isinstance(error, dict):
        return
    code = error.get("code")
    if not is_integer(code):
        yield Finding(
            f"error.code is {'absent' if 'code' not in error else one_line(dumps(code), 40)}, not an integer",
            [evidence(message.place("error", "code"), code, "an integer")],
        )
    elif isinstance(code, ExactFloat):
        yield Finding(
            f"error.code is written {code.text}", [evidence(message.place("error", "code"), code.text, str(int(code)))], "info"
        )


@rule(
    "RPC012",
    "error-message-missing",
    "error.message missing or not a string",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{INDEX}#error-responses",
    sorts=("error",),
)
def error_message_missing(message: Message) -> Iterator[Finding]:
    """`error.message` is a string.

    Why: it is all that most people ever see of the error.

    Fix: one sentence that says what was wrong.

    Wrong::

        modern tools/list
          -> error -32603 {"message": "$none"}

    Right::

        modern tools/list
          -> error -32603 {"message": "the index is not built"}
    """
    error = message.rpc.error
    if message.rpc.kind != "error" or not isinstance(error, dict):
        return
    text = error.get("message")
    if not isinstance(text, str):
        yield Finding(
            f"error.message is {'absent' if 'message' not in error else one_line(dumps(text), 40)}",
            [evidence(message.place("error", "message"), text, "a string")],
        )
    elif not text:
        yield Finding("error.message is empty", [evidence(message.place("error", "message"), '""', "a sentence")], "info")


@rule(
    "RPC013",
    "undefined-reserved-code",
    "Undefined code in -32020..-32099",
    on="message",
    level="must",
    party="either",
    era="modern",
    severity="error",
    spec=f"{INDEX}#error-codes",
    sorts=("error",),
)
def undefined_reserved_code(message: Message) -> Iterator[Finding]:
    """Codes from -32020 to -32099 belong to the MCP specification, which defines -32020, -32021 and -32022.

    Why: a later revision may give the code a meaning that the server did not mean.

    Fix: use a code outside -32768..-32000.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> error -32050

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> error 5001
    """
    code = message.error_code
    if code is not None and -32099 <= code <= -32023 and code != rev.URL_ELICITATION_REQUIRED:
        yield Finding(
            f"error code {code} is reserved for the specification, which does not define it",
            [evidence(message.place("error", "code"), str(code), "a defined code, or one outside -32768..-32000")],
        )


@rule(
    "RPC014",
    "legacy-range-code",
    "Code in -32000..-32019",
    on="message",
    level="may-note",
    party="either",
    era="modern",
    severity="warning",
    spec=f"{INDEX}#error-codes",
    sorts=("error",),
)
def legacy_range_code(message: Message) -> Iterator[Finding]:
    """Codes from -32000 to -32019 are left over from earlier servers: each server means something of its own by them.

    Why: no client can act on such a code; it reads the text or gives up.

    Fix: use a code that MCP defines where one fits, or a code outside -32768..-32000. Three codes of the draft have others now:
    -32001 is -32020 (HeaderMismatch), -32003 is -32021, -32004 is -32022.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> error -32001

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> error -32603
    """
    code = message.error_code
    if code is None or not -32019 <= code <= -32000 or code == rev.RESOURCE_NOT_FOUND:
        return
    place = message.place("error", "code")
    now = _renumbered(message)
    if now is not None:
        text = f"{code} was {rev.error_name(now)} in the draft; it is {now} now"
        told = message.exchange.endpoint.modern is not None and code != _DRAFT_MISMATCH  # of that HTS025 speaks
        yield Finding(text, [evidence(place, str(code), str(now))], None if told else "info")
        return
    yield Finding(f"error code {code} has no meaning across servers", [evidence(place, str(code))], "info")


_DRAFT_MISMATCH = -32001
_MISMATCH_WORDS = re.compile(r"header ?mismatch|header.{0,80}does not match", re.I | re.S)
_CAPABILITY_WORDS = re.compile(r"(?:missing|required|requires).{0,40}capabilit|capabilit.{0,40}(?:missing|required)", re.I | re.S)


def _renumbered(message: Message) -> int | None:
    """The code of now that a code of the draft stands for, by what the error says beside it: servers mean other things by the
    same number."""
    error = message.rpc.error if isinstance(message.rpc.error, dict) else {}
    data, text = error.get("data"), error.get("message")
    data, text = data if isinstance(data, dict) else {}, text[:1_000] if isinstance(text, str) else ""
    match message.error_code:
        case -32001 if _MISMATCH_WORDS.search(text):
            return rev.HEADER_MISMATCH
        case -32003 if isinstance(data.get("requiredCapabilities"), dict) or _CAPABILITY_WORDS.search(text):
            return rev.MISSING_CAPABILITY
        case -32004 if isinstance(data.get("supported"), list) or speaks_of(text, "version"):
            return rev.UNSUPPORTED_VERSION
    return None


@rule(
    "RPC015",
    "retired-resource-not-found",
    "-32002 emitted on modern",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 server/resources#error-handling",
    sep="2164",
    sorts=("error",),
)
def retired_resource_not_found(message: Message) -> Iterator[Finding]:
    """-32002 (resource not found) ended with 2025-11-25. A modern server answers -32602 with `data.uri`.

    Why: modern clients take -32002 for an unknown error and do not drop the resource.

    Fix: answer `{"code": -32602, "message": ..., "data": {"uri": ...}}`.

    Wrong::

        modern resources/read {"uri": "file:///gone"}
          -> result {"contents": []}
        modern resources/read {"uri": "file:///gone"}
          -> error -32002

    Right::

        modern resources/read {"uri": "file:///gone"}
          -> result {"contents": []}
        modern resources/read {"uri": "file:///gone"}
          -> error -32602 {"data": {"uri": "file:///gone"}}
    """
    if message.error_code == rev.RESOURCE_NOT_FOUND:
        yield Finding(
            "error code -32002 was retired; a modern server answers -32602 with data.uri",
            [evidence(message.place("error", "code"), "-32002", "-32602")],
        )


@rule(
    "RPC016",
    "retired-url-elicitation-code",
    "-32042 on the wrong revision",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{INDEX}#error-codes",
    sorts=("error",),
)
def retired_url_elicitation_code(message: Message) -> Iterator[Finding]:
    """-32042 (URL elicitation required) belongs to 2025-11-25 only, and names the URLs in `data.elicitations`.

    Why: a modern server asks by `input_required` with a url-mode elicitation; clients do not know the code any more.

    Fix: modern: answer `resultType: "input_required"`. 2025-11-25: give each elicitation its `elicitationId`.

    Wrong::

        modern tools/call {"name": "pay"}
          -> result {"content": []}
        modern tools/call {"name": "pay"}
          -> error -32042

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "pay"}
          -> error -32042 {"data": {"elicitations": [{"mode": "url", "elicitationId": "e1", "url": "https://x", "message": "m"}]}}
    """
    if message.error_code != rev.URL_ELICITATION_REQUIRED:
        return
    exchange, where = message.exchange, message.place("error", "code")
    if exchange.claim.modern:
        severity: Severity | None = None if exchange.endpoint.modern else "info"
        text = "error code -32042 was retired; a modern server answers input_required"
        yield Finding(text, [evidence(where, "-32042", 'resultType "input_required"')], severity)
        return
    if exchange.revision != "2025-11-25":
        yield Finding("error code -32042 is not defined in this revision", [evidence(where, "-32042")], "info")
        return
    data = message.rpc.error.get("data")
    asked = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(asked, list) or not asked:
        text = "-32042 must name the URLs in data.elicitations"
        yield Finding(text, [evidence(message.place("error", "data", "elicitations"), asked, "a non-empty list")])
        return
    for index, item in enumerate(asked[:20]):
        mode, id_ = (item.get("mode"), item.get("elicitationId")) if isinstance(item, dict) else (None, None)
        place = ("error", "data", "elicitations", index)
        if mode != "url":
            text = "an elicitation of -32042 is not of url mode"
            yield Finding(text, [evidence(message.place(*place, "mode"), mode, "url")])
        if not isinstance(id_, str):
            text = "an elicitation of -32042 has no elicitationId"
            yield Finding(text, [evidence(message.place(*place, "elicitationId"), id_, "a string")])


@rule(
    "RPC017",
    "new-code-in-jsonrpc-range",
    "Custom code inside -32768..-32000",
    on="message",
    level="should",
    party="either",
    era="modern",
    severity="warning",
    spec=f"{INDEX}#error-codes",
    sorts=("error",),
)
def new_code_in_jsonrpc_range(message: Message) -> Iterator[Finding]:
    """JSON-RPC keeps -32768..-32000 for itself; new codes belong outside.

    Why: the code may collide with a later definition of JSON-RPC or MCP.

    Fix: use any other integer.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> error -32500

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tools/list
          -> error -500
    """
    code = message.error_code
    if code is None or not -32768 <= code <= -32100 or code in (rev.PARSE_ERROR, *range(-32603, -32599)):
        return
    yield Finding(
        f"error code {code} is in the range that JSON-RPC reserves",
        [evidence(message.place("error", "code"), str(code), "a code outside -32768..-32000")],
    )


@rule(
    "RPC018",
    "notification-with-id",
    "notifications/* sent with an id",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=f"{INDEX}#notifications",
    sorts=("request", "notification"),
)
def notification_with_id(message: Message) -> Iterator[Finding]:
    """A notification has no id; a request has one.

    Why: with an id the message is a request, and its sender is owed an answer; without one a call gets none.

    Fix: leave the id out of `notifications/*`, and put one on every call.

    Wrong::

        legacy-notify notifications/initialized
          id 4
          -> 202

    Right::

        legacy-notify notifications/initialized
          -> 202
    """
    method = message.method
    if method is None:
        return
    if message.rpc.kind == "request" and method.startswith("notifications/"):
        yield Finding(f"{one_line(method, 60)} is sent with an id", [evidence(message.place("id"), message.rpc.id, "no id")])
    elif message.rpc.kind == "notification" and method in KNOWN_REQUESTS:
        yield Finding(
            f"{method} is sent without an id: the other side sees a notification and never answers",
            [evidence(message.place("id"), None, "an id")],
            "warning" if message.party == "client" else "info",
        )


@rule(
    "RPC019",
    "notification-not-202",
    "Accepted notification without 202",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{HTTP}#sending-messages",
    versions=rev.STREAMABLE,
    streamable=True,
    always=True,
    kinds=("mcp",),
    transport=("http",),
)
def notification_not_202(exchange: Exchange) -> Iterator[Finding]:
    """A server that accepts a notification (legacy: or a posted response) answers HTTP 202.

    Why: clients that look for 202 take 200 or 204 for a failure, or wait for a body.

    Fix: answer 202 with an empty body.

    Wrong::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 200

    Right::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 202
    """
    status = exchange.status
    if status is None or not 200 <= status < 300 or status == 202 or not _expects_no_answer(exchange):
        return
    yield Finding(f"the notification was answered with HTTP {status}, not 202", [evidence("response.status", str(status), "202")])


def _expects_no_answer(exchange: Exchange) -> bool:
    if exchange.revision == _BEFORE_STREAMABLE or not exchange.sent:
        return False
    return all(m.rpc.kind in ("notification", "result", "error") for m in exchange.sent) and not _lacks_id(exchange)


def _lacks_id(exchange: Exchange) -> bool:
    """Whether the client left the id out of a request (RPC018): a server may take that for a request or for a notification."""
    return any(m.rpc.kind == "notification" and m.method in KNOWN_REQUESTS for m in exchange.sent)


@rule(
    "RPC020",
    "notification-202-with-body",
    "202 carries a body",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{HTTP}#sending-messages",
    versions=rev.STREAMABLE,
    streamable=True,
    always=True,
    kinds=("mcp",),
    transport=("http",),
)
def notification_202_with_body(exchange: Exchange) -> Iterator[Finding]:
    """The 202 that accepts a notification has no body.

    Why: some clients try to read the body as JSON-RPC.

    Fix: send 202 with Content-Length 0.

    Wrong::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 202 text/plain Accepted

    Right::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 202
    """
    reading = exchange.answer_reading
    if exchange.status != 202 or reading is None or reading.size == 0 or not _expects_no_answer(exchange):
        return
    yield Finding(
        f"the 202 has a body of {reading.size} bytes", [evidence("response.body", f"{reading.size} bytes", "an empty body")]
    )


@rule(
    "RPC021",
    "body-not-jsonrpc",
    "POST to the MCP endpoint is not valid JSON-RPC",
    on=("post", "exchange"),
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{HTTP}#sending-messages",
    always=True,
    transport=("http",),
)
def body_not_jsonrpc(exchange: Exchange) -> Iterator[Finding]:
    """The body of a POST to an MCP endpoint is one JSON-RPC message in UTF-8.

    Why: there is nothing in it that a server could answer; the right reaction is 400 with -32700 or -32600.

    Fix: look at what the client wrote: a form, a cut body, an empty one.

    Wrong::

        modern tools/list
          body {"jsonrpc": "2.0", "id": 1, "method"
          -> 400

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    reading = exchange.reading
    if exchange.kind != "mcp" or exchange.http_method != "POST" or reading is None:
        return
    if reading.messages and all(m.kind != "invalid" for m in reading.messages):
        return
    if exchange.over and is_told(exchange, "RPC021"):
        return
    nameless = next(
        (m for m in reading.messages if m.kind == "invalid" and isinstance(m.body, dict) and "method" in m.body), None
    )
    empty = reading.kind == "batch" and not reading.messages
    bare = len(exchange.sent) == 1 and exchange.sent[0].kind == "invalid" and _answers_nothing(exchange.sent[0])
    if reading.kind not in ("not-json", "empty", "not-rpc") and not empty and nameless is None and not bare:
        return
    content_type = (exchange.request_fields.first("content-type") or "").lower()
    if "x-www-form-urlencoded" in content_type:
        return  # authorization endpoints live on the same host
    if nameless is not None:
        steps: tuple[str | int, ...] = ("method",) if nameless.index is None else (nameless.index, "method")
        where = f"request.body:{pointer(*steps)}"
        yield Finding("the body is not JSON-RPC (method is not a string)", [evidence(where, nameless.body["method"], "a string")])
        return
    problem = reading.problem or (exchange.sent[0].rpc.problem if bare else None)
    probe = reading.kind == "empty" and not exchange.auth and not exchange.request_fields.has("mcp-method")
    if probe and not exchange.over:
        return  # whether it was a probe for authorization shows when the answer is there
    yield Finding(
        f"the body is {'empty' if reading.kind == 'empty' else 'not JSON-RPC'}"
        + (f" ({one_line(problem, 80)})" if problem and reading.kind != "empty" else ""),
        [evidence("request.body:", problem or reading.kind, "one JSON-RPC message")],
        "info" if probe and exchange.status in (None, 401) else None,
    )


def is_told(exchange: Exchange, id: str) -> bool:
    """Whether the rule has spoken of this exchange already: one that looks at it at its beginning and at its end."""
    return any(f.rule == id for f in exchange.findings) or any(s.rule in (id, id[:3], "*") for s in exchange.silenced)


@rule(
    "RPC022",
    "params-not-object",
    "params is not an object",
    on=("request", "notification"),
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{INDEX}#requests",
)
def params_not_object(message: Message) -> Iterator[Finding]:
    """`params`, where it is there, is a JSON object, and holds the members that the method needs.

    Why: JSON-RPC allows arrays, MCP does not: servers read params by name.

    Fix: send an object; leave `params` out (legacy) or send the envelope alone (modern) where there is nothing to say.

    Wrong::

        modern tools/call {"arguments": {}}
          -> error -32602

    Right::

        modern tools/call {"name": "echo", "arguments": {}}
          -> result {"content": []}
    """
    body = message.rpc.body
    if "params" in body and not isinstance(body["params"], dict):
        yield Finding(
            f"params is {one_line(dumps(body['params']), 40)}, not an object",
            [evidence(message.place("params"), body["params"], "an object")],
        )
        return
    params = message.params
    if message.exchange.claim.modern and message.method in _GONE:
        return  # ERA015: a method that does not exist has no params to lack
    for name, kind in _REQUIRED.get(message.method or "", ()):
        if not isinstance(params.get(name), kind):
            what = "absent" if name not in params else one_line(dumps(params[name]), 40)
            wanted = "a string" if kind is str else "an object"
            yield Finding(
                f"params.{name} is {what}, {message.method} needs {wanted}",
                [evidence(message.place("params", name), params.get(name), wanted)],
            )


_REQUIRED: dict[str, tuple[tuple[str, type], ...]] = {
    "tools/call": (("name", str),),
    "prompts/get": (("name", str),),
    "resources/read": (("uri", str),),
    "resources/subscribe": (("uri", str),),
    "resources/unsubscribe": (("uri", str),),
    "completion/complete": (("ref", dict), ("argument", dict)),
    "tasks/get": (("taskId", str),),
    "tasks/update": (("taskId", str),),
    "tasks/cancel": (("taskId", str),),
    "tasks/result": (("taskId", str),),
    "logging/setLevel": (("level", str),),
}  # subscriptions/listen is SUB012's, initialize RES006's
_GONE = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/result"})  # not in 2026-07-28


@rule(
    "RPC023",
    "notification-answered",
    "Notification received a JSON-RPC response",
    on="message",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{INDEX}#notifications",
    sorts=("result", "error"),
)
def notification_answered(message: Message) -> Iterator[Finding]:
    """A notification is never answered by a JSON-RPC message.

    Why: the client has no request to match it with.

    Fix: answer 202 with an empty body; a refusal may be a 4xx with an error that has no id.

    Wrong::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 200 application/json {"jsonrpc": "2.0", "id": null, "result": {}}

    Right::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 400 application/json {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}
    """
    exchange = message.exchange
    if message.party != "server" or message.rpc.kind not in ("result", "error") or message.request is not None:
        return
    status = exchange.status or 0
    if not exchange.sent or any(m.rpc.kind != "notification" for m in exchange.sent) or not 200 <= status < 300:
        return
    if _lacks_id(exchange):
        return
    yield Finding(
        f"a notification was answered by a JSON-RPC {message.kind}", [evidence(message.place(), message.kind, "nothing")]
    )


@rule(
    "RPC024",
    "duplicate-json-keys",
    "Duplicate member names",
    on="message",
    level="may-note",
    party="either",
    era="both",
    severity="warning",
    spec=f"{INDEX}#messages",
    always=True,
)
def duplicate_json_keys(message: Message) -> Iterator[Finding]:
    """A JSON object names each member once.

    Why: readers disagree on which of two members counts, so a gateway can check one and the server run the other.

    Fix: write each member once.

    Wrong::

        modern tools/call {"name": "echo"}
          body {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "name": "rm"}}
          -> 400

    Right::

        modern tools/call {"name": "echo", "arguments": {"text": "{\\"a\\": 1, \\"a\\": 2}"}}
          -> result {"content": []}
    """
    names = message.rpc.duplicates
    if names and message.rpc.index in (None, 0):
        shown = ", ".join(one_line(name, 40) for name in names[:5])
        yield Finding(f"the JSON names a member twice: {shown}", [evidence(f"{message.where}:", shown, "each member once")])


@rule(
    "RPC025",
    "server-request-on-modern",
    "Server sends a JSON-RPC request",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{HTTP}#receiving-messages",
    sep="2322",
    sorts=("request",),
)
def server_request_on_modern(message: Message) -> Iterator[Finding]:
    """In the modern era the server sends no requests. It asks by answering `input_required` (MRTR).

    Why: modern clients do not answer: whatever waits for the answer hangs.

    Fix: answer the call with `resultType: "input_required"` and the request under `inputRequests`.

    Wrong::

        modern tools/call {"name": "ask"}
          -> sse
          -> ask 1 elicitation/create {"message": "?"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "ask"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    """
    if message.rpc.kind == "request":
        yield Finding(
            f"the server sent a request, {one_line(message.method or '', 60)}, to a modern client",
            [evidence(message.place("method"), message.method, 'resultType "input_required"')],
        )


@rule(
    "RPC026",
    "client-cancelled-notification",
    "notifications/cancelled POSTed on modern HTTP",
    on="notification",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec="2026-07-28 basic/patterns/cancellation#transport-specific-cancellation",
    sep="2575",
    methods=("notifications/cancelled",),
    transport=("http",),
)
def client_cancelled_notification(message: Message) -> Iterator[Finding]:
    """On modern HTTP a client cancels by closing the response stream; a posted notifications/cancelled is neither needed nor
    expected.

    Why: servers may ignore it, and a client that relies on it leaves the work running.

    Fix: close the stream of the request.

    Wrong::

        modern-notify notifications/cancelled {"requestId": 1}
          -> 202

    Right::

        modern tools/call {"name": "slow"}
          -> sse
          -> closed client
    """
    yield Finding(
        "notifications/cancelled was posted; on modern HTTP closing the stream is the cancellation",
        [evidence(message.place("params", "requestId"), message.params.get("requestId"))],
    )


@rule(
    "RPC027",
    "server-cancelled-notification",
    "Server sends notifications/cancelled",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 basic/patterns/cancellation#behavior-requirements",
    sep="2575",
    methods=("notifications/cancelled",),
)
def server_cancelled_notification(message: Message) -> Iterator[Finding]:
    """A modern server sends no notifications/cancelled; on HTTP it ends a listen stream by its result and closes.

    Why: there is no request of the server's that could be cancelled.

    Fix: answer the request with an error, or end the listen stream with its result.

    Wrong::

        modern tools/call {"name": "slow"}
          -> sse
          -> notify notifications/cancelled {"requestId": 99}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "slow"}
          -> sse
          -> error -32603
    """
    request = message.exchange.request
    target = message.params.get("requestId")
    own = (
        request is not None
        and request.method == "subscriptions/listen"
        and target is not None
        and id_key(request.rpc.id) == id_key(target)
    )
    if own and message.exchange.transport == "stdio":
        return  # so a subscription is torn down there (STD006)
    yield Finding(
        "the server sent notifications/cancelled" + (" for its listen stream; a result and a close are expected" if own else ""),
        [evidence(message.place("params", "requestId"), target)],
        "info" if own else None,
    )


@rule(
    "RPC029",
    "multiple-final-responses",
    "More than one response for a request",
    on=("answer", "push"),
    sorts=("result", "error"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{HTTP}#receiving-messages",
    versions=rev.STREAMABLE,
    streamable=True,
    always=True,
    kinds=("mcp",),
)
def multiple_final_responses(message: Message) -> Iterator[Finding]:
    """A request gets one response.

    Why: the first one ended the call; the second is lost, or read as somebody else's.

    Fix: send progress as notifications and one response at the end.

    Wrong::

        modern tools/call {"name": "twice"}
          -> sse
          -> result {"content": []}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "once"}
          -> sse
          -> result {"content": []}
    """
    yield from _on_two_streams(message)
    request = message.request
    if isinstance(message.found, AnsweredBefore):
        yield Finding(
            f"id {one_line(dumps(message.rpc.id), 40)} was answered before",
            [evidence(message.place(), message.kind, "one response")],
            related=(message.found.flow,),
        )
    if request is None or request.answer is None or request.answer is message or not message.id_matches:
        return
    if request.exchange.revision == _BEFORE_STREAMABLE:
        return
    if request.answer.exchange is message.exchange and request.exchange is message.exchange:
        yield Finding(
            f"id {one_line(dumps(message.rpc.id), 40)} was answered a second time",
            [evidence(message.place(), message.kind, "one response")],
        )


def _on_two_streams(message: Message) -> Iterator[Finding]:
    """A legacy session: a resumed stream repeats an answer under the same event id; under another one it is a second answer."""
    found: list[AnsweredTwice] = message.exchange.facts.get(ANSWERED_TWICE, [])
    for twice in found:
        if twice.where == message.where:
            yield Finding(
                f"id {one_line(dumps(twice.value), 40)} was answered on another stream before, under another event id",
                [evidence(message.place(), message.kind, "one response")],
                related=(twice.flow,),
            )


@rule(
    "RPC030",
    "legacy-cancel-target",
    "Cancellation names an unknown or forbidden request",
    on=("notification", "push"),
    level="must",
    party="either",
    era="legacy",
    severity="warning",
    spec="2025-11-25 basic/utilities/cancellation#behavior-requirements",
    methods=("notifications/cancelled",),
)
def legacy_cancel_target(message: Message) -> Iterator[Finding]:
    """A cancellation names a request that was sent in the same direction and is still running; never initialize, and a task only
    by tasks/cancel.

    Why: the receiver ignores it, and the sender believes that the work has stopped.

    Fix: send the id of the running request, with its JSON type.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/cancelled {"requestId": 99}
          -> 202

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "slow"}
          id 5
          -> open
        legacy-notify notifications/cancelled {"requestId": 5}
          -> 202
    """
    words = {
        "unknown": "was never sent in this session",
        "answered": "was answered already",
        "initialize": "is initialize, which must not be cancelled",
        "task": "runs as a task, which is cancelled by tasks/cancel",
    }
    targets: list[CancelTarget] = message.exchange.facts.get(CANCELS, [])
    for target in targets:
        if target.state in words:
            yield Finding(
                f"request {one_line(dumps(target.value), 40)} {words[target.state]}",
                [evidence(message.place("params", "requestId"), target.value, "a running request")],
                related=(target.flow,) if target.flow else (),
            )


@rule(
    "RPC032",
    "answer-not-jsonrpc",
    "Answer is JSON, but not JSON-RPC",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{HTTP}#sending-messages",
    always=True,
    kinds=("mcp",),
    sorts=("body",),
    transport=("http",),
)
def answer_not_jsonrpc(exchange: Exchange) -> Iterator[Finding]:
    """A request that is not refused is answered with a JSON-RPC response: `jsonrpc`, the id of the request, and `result` or
    `error`.

    Why: the client finds no answer to its request in such a body, and waits for one or gives up.

    Fix: wrap what the method gives in `{"jsonrpc": "2.0", "id": ..., "result": ...}`, and look for a gateway or an API behind it
    that answers in its own form.

    Wrong::

        modern tools/list
          -> 200 application/json {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    request, reading, status = exchange.request, exchange.answer_reading, exchange.status
    if request is None or exchange.http_method != "POST" or status is None or not 200 <= status < 300:
        return
    if reading is None or exchange.ended_by != "complete" or exchange.answer is not None or not is_mcp_message(exchange):
        return
    if reading.kind != "not-rpc" and not (reading.kind == "batch" and not reading.messages):
        return
    if status == 202 and (exchange.over_http_sse or not exchange.request_fields.names_starting("mcp-")):
        return  # HTTP+SSE accepts every message so, with any body
    if exchange.response_fields is None or media_type(exchange.response_fields.first("content-type")) != JSON:
        return  # HDR018 speaks of the Content-Type
    value = reading.value
    if isinstance(value, dict) and value.get("jsonrpc") == "2.0" and "error" in value:
        return  # RPC009
    known = shapes.members_of(request.method or "")
    bare = isinstance(value, dict) and not known.isdisjoint(value)
    yield Finding(
        f"the answer to {one_line(request.method or '', 60)} is JSON, but no JSON-RPC message: {_what_it_is(value)}"
        + ("; it looks like a bare result: wrap it in {jsonrpc, id, result}" if bare else ""),
        [evidence("response.body:", dumps(value, most=200), "an object with jsonrpc, id and result or error")],
    )


@rule(
    "RPC033",
    "message-members",
    "Message does not match the schema of its revision",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec="2026-07-28 schema",
    sorts=("request", "notification", "result"),
)
def message_members(message: Message) -> Iterable[Finding]:
    """The params of requests and notifications, and results, have the members that the schema of their revision demands, each of the
    right type. Members that the schema does not have are allowed. What another rule has said of a member is not said again.

    Why: peers parse messages by the schema; one member of another type makes many of them reject the whole message.

    Fix: the message names the place. Members without a value are left out, not null.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list {"cursor": 7}
          -> result {"tools": []}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/list {"cursor": "7"}
          -> result {"tools": []}
    """
    top, problems = _judged(message)
    return _misfits(message, top, problems) if problems else ()


def _misfits(message: Message, top: str, problems: list[members.Problem]) -> Iterator[Finding]:
    told = _told(message)
    placed = [(problem, message.place(top, *problem.steps)) for problem in problems if problem.steps]
    left = [(problem, place) for problem, place in placed if not _was_told(place, told)]
    if not left:
        return
    worst: Severity = "error" if any(problem.severity == "error" for problem, _ in left) else "warning"
    more = len(left) - _SHOWN
    words = "; ".join(f"{top}.{problem.words}" for problem, _ in left[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    yield Finding(
        words,
        [
            evidence(place, None if problem.absent else "null" if problem.value is None else problem.value)
            for problem, place in left
        ],
        worst,
    )


_SHOWN = 3  # problems in words; the places of others are in the evidence


def _judged(message: Message) -> tuple[str, list[members.Problem]]:
    """The member that is judged, and what is wrong with it."""
    rpc, exchange = message.rpc, message.exchange
    if rpc.kind in ("request", "notification"):
        wanted = message.params.get("protocolVersion") if rpc.method == "initialize" else None
        revision = wanted if isinstance(wanted, str) else exchange.revision
        has_params = isinstance(rpc.body, dict) and isinstance(rpc.body.get("params"), dict)
        return "params", members.of_params(rpc.method or "", revision, message.params) if has_params else []
    request = message.request
    if request is None or not isinstance(rpc.result, dict):
        return "result", []
    revision, kind = request.exchange.revision, ""
    if request.method == "initialize":
        agreed = rpc.result.get("protocolVersion")
        revision = agreed if isinstance(agreed, str) else revision
    given = rpc.result.get("resultType", "complete")
    if given == "input_required":
        kind = "input_required"
    elif given != "complete":
        return "result", []
    elif isinstance(request.params.get("task"), dict) and not request.exchange.claim.modern:
        kind = "task"
    return "result", members.of_result(request.method or "", revision, rpc.result, kind)


def _told(message: Message) -> set[str]:
    """The places that other rules have named for this message."""
    exchanges = {message.exchange.flow: message.exchange}
    if message.request is not None:
        exchanges[message.request.exchange.flow] = message.request.exchange
    return {
        place.where
        for exchange in exchanges.values()
        for found in exchange.findings
        if found.severity != "info" and found.rule != "RPC033"
        for place in found.evidence
    }


def _was_told(place: str, told: set[str]) -> bool:
    """Whether a place, one within it, or what holds it, was named."""
    holder = place.rpartition("/")[0]
    within = place + "/"
    return place in told or (holder in told and holder.count("/") > 1) or any(where.startswith(within) for where in told)


def _what_it_is(value: object) -> str:
    if isinstance(value, dict):
        names = ", ".join(one_line(name, 40) for name in list(value)[:6])
        return f"members {names}" + (" ..." if len(value) > 6 else "") if value else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value)}" if value else "an empty array"
    return one_line(dumps(value, most=60), 60)
