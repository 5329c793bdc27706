"""MRT: multi round-trip requests (2026-07-28 basic/patterns/mrtr).

How rounds are found to belong together is `trace.mrtr` (MRT001); these rules read its facts. MRT022 and MRT023 say how not to
judge: a retry mirrors headers like any request, and a round without inputRequests may be retried at once.
"""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.model import Exchange, Item, Message, Round
from mcp_wiretap.trace.operations.rounds import SHORT
from mcp_wiretap.trace.refusals.tracker import STATE_REFUSED
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps, read_text
from mcp_wiretap.wire.secret import mask, one_line
from mcp_wiretap_rules.extensions import names_a_foreign_one
from mcp_wiretap_rules.inputs import ELICIT, KINDS, MRTR, ROOTS, SAMPLE, Reply, asks, declared, mode, replies, supports

MRTR_PAGE = "2026-07-28 basic/patterns/mrtr"
CLIENT = f"{MRTR_PAGE}#client-requirements-basic-workflow"
SERVER = f"{MRTR_PAGE}#server-requirements-basic-workflow"
AT_ONCE_S = 10.0  # a call repeated within it was not held up by a person
ROUNDS = 5  # more are worth a look
_REFUSED = frozenset({rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION, rev.METHOD_NOT_FOUND})


def _names(keys: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(key, 30) for key in keys[:5])
    return shown + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")


def _linked(message: Message) -> tuple[Round, Item] | None:
    """The round of a request or of the request that an answer answers, where it continues another one."""
    exchange = message.request.exchange if message.request is not None else message.exchange
    round_ = exchange.mrtr
    return (round_, round_.continues) if round_ is not None and round_.continues is not None else None


def _call(method: str, name: str | None) -> str:
    return f"{method} {one_line(name, 40)}" if name else method


@rule(
    "MRT002",
    "new-call-is-not-a-retry",
    "Same call without state or responses is a fresh start",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    needs=("mrtr",),
)
def new_call_is_not_a_retry(message: Message) -> Iterator[Finding]:
    """A retry carries the requestState that the server gave; the same call without it is a new attempt.

    Why: a client that repeats the call and forgets the state goes in circles: the server starts over each time.

    Fix: echo `requestState` in the retry, also where nothing was asked.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> result {"content": []}
    """
    round_ = message.exchange.mrtr
    item = round_.restarts if round_ is not None else None
    if item is None or item.keys or item.state is None or message.exchange.started - item.at > AT_ONCE_S:
        return
    yield Finding(
        "the same call again, without the requestState that the server gave: a new attempt, not a retry",
        [evidence(message.place("params", "requestState"), None, mask(item.state))],
        related=(item.flow,),
    )


@rule(
    "MRT003",
    "retry-id-not-fresh",
    "Retry reuses the JSON-RPC id",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def retry_id_not_fresh(message: Message) -> Iterator[Finding]:
    """A retry is an independent request: its JSON-RPC id differs from that of the request it continues.

    Why: servers, gateways and logs take equal ids for the same request sent twice.

    Fix: give every request a new id, retries too.

    Wrong::

        modern tools/call {"name": "deploy"}
          id 1
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          id 1
          answers sealed-state-1
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          id 1
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          id 2
          answers sealed-state-1
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or not linked[0].same_id or not linked[0].sure or linked[0].link == "d":
        return
    round_, item = linked
    which = "the request that it continues" if round_.same_id == item.flow else "the first request of the operation"
    yield Finding(
        f"the retry has the id of {which}: {one_line(str(message.rpc.id), 60)}",
        [evidence(message.place("id"), message.rpc.id, "another id")],
        related=(round_.same_id,),
    )


@rule(
    "MRT004",
    "state-not-echoed",
    "requestState missing or altered on retry",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def state_not_echoed(message: Message) -> Iterator[Finding]:
    """A retry echoes the exact requestState of the answer it continues, also where it is the empty string.

    Why: the server keeps nothing; without its state it cannot go on, and an altered one must be refused.

    Fix: pass the string through untouched: no trimming, no re-encoding, no parsing.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers - confirm
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 confirm
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or linked[0].link != "c":
        return
    round_, item = linked
    if round_.state == "foreign" and (_elsewhere(round_, message) or round_.shared):
        return  # MRT010
    severity: Severity = "error"
    if not round_.sure:
        if round_.asked:
            return  # several rounds could be meant
        severity = "warning"
    if round_.state == "missing":
        said = f"the retry lacks the requestState {round_.expected} that the server gave"
    elif round_.state == "older":
        said, severity = f"the requestState is that of an earlier round, not {round_.expected}", "info"
    elif round_.state == "foreign":
        said = f"the requestState is that of another call, not {round_.expected}"
    else:
        said = (
            f"the requestState is not the one that the server gave: they differ from character {(round_.differs_at or 0) + 1} on"
        )
    yield Finding(
        said,
        [evidence(message.place("params", "requestState"), round_.given, round_.expected)],
        severity,
        related=(item.flow,),
    )


def _elsewhere(round_: Round, message: Message) -> bool:
    """The state was given to another method, tool, prompt or resource."""
    owner = round_.owner
    return owner is not None and (owner.method, owner.name) != (message.rpc.method, message.exchange.name)


@rule(
    "MRT005",
    "state-invented",
    "Retry sends a state the server did not give",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def state_invented(message: Message) -> Iterator[Finding]:
    """Where the answer had no requestState, the retry has none.

    Why: a state carried over from an earlier round makes the server go back to that round.

    Fix: take the state of the newest answer, and drop it where that has none.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 name
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 name
          -> needs - confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 confirm
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 name
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 name
          -> needs - confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers - confirm
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or linked[0].state != "invented" or not linked[0].sure:
        return
    round_, item = linked
    seen = round_.owner is not None
    what = "of an earlier answer" if seen else "that no answer of the server was seen to give"
    yield Finding(
        f"the retry carries a requestState {what}; the answer it continues gave none",
        [evidence(message.place("params", "requestState"), round_.given, "(absent)")],
        "error" if seen else "warning",
        related=(item.flow,),
    )


@rule(
    "MRT006",
    "inputs-not-all-answered",
    "Retry leaves requested inputs unanswered",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def inputs_not_all_answered(message: Message) -> Iterator[Finding]:
    """A retry answers every input that was requested; declining and cancelling are answers.

    Why: the server asked because it needs them; it can only ask again.

    Fix: construct all inputs before retrying. Where the user refuses, send `{"action": "decline"}` or `"cancel"` for that key.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 name confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 name
          -> needs sealed-state-2 confirm

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 name confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 name confirm
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or not linked[0].missing or linked[0].link == "d" or not linked[0].sure_of_keys:
        return
    round_, item = linked
    if round_.siblings and any(s.outcome == "input_required" for s in round_.siblings):
        return  # an old round sent again: MRT012
    yield Finding(
        f"the retry does not answer {_names(round_.missing)}",
        [evidence(message.place("params", "inputResponses"), list(round_.answered) or None, list(round_.asked))],
        related=(item.flow,),
    )


@rule(
    "MRT007",
    "response-key-unknown",
    "inputResponses has a key never requested",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=f"{MRTR_PAGE}#inputresponses",
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def response_key_unknown(message: Message) -> Iterator[Finding]:
    """The keys of inputResponses correspond to those of the inputRequests that they answer.

    Why: the server ignores what it did not ask for; an answer under a wrong key is lost.

    Fix: send the answers of this round only, under the keys as they came.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 confirm extra
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 confirm
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or linked[0].link == "d" or not linked[0].sure_of_keys:
        return
    round_, item = linked
    if round_.unknown:
        yield Finding(
            f"inputResponses answers {_names(round_.unknown)}, which was not asked for",
            [evidence(message.place("params", "inputResponses", round_.unknown[0]), list(round_.answered), list(round_.asked))],
            related=(item.flow,),
        )
    elif round_.repeated:
        yield Finding(
            f"inputResponses repeats {_names(round_.repeated)} of an earlier round",
            [evidence(message.place("params", "inputResponses", round_.repeated[0]), list(round_.answered), list(round_.asked))],
            related=(item.flow,),
        )


@rule(
    "MRT008",
    "params-changed-on-retry",
    "Retry changes the original parameters",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def params_changed_on_retry(message: Message) -> Iterator[Finding]:
    """A retry is the original request with inputResponses and requestState added: its other parameters stay as they were.

    Why: the state belongs to the call it was given for; with other arguments the user confirmed something else.

    Fix: keep the parameters of the first request and send them again. `_meta` may differ.

    Wrong::

        modern tools/call {"name": "deploy", "arguments": {"to": "staging"}}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy", "arguments": {"to": "production"}}
          answers sealed-state-1
          -> error -32602

    Right::

        modern tools/call {"name": "deploy", "arguments": {"to": "staging"}}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy", "arguments": {"to": "staging"}}
          answers sealed-state-1
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or linked[0].link != "d" or linked[0].shared:
        return
    round_, item = linked
    yield Finding(
        "the requestState was given for this call with other parameters",
        [
            evidence(message.place("params", "requestState"), round_.given),
            evidence(message.place("params"), {k: v for k, v in message.params.items() if k in ("arguments", "uri", "name")}),
        ],
        _less_if_short(item),
        related=(item.flow,),
    )


def _less_if_short(item: Item) -> Severity:
    """A short state is likely a constant, given to everybody."""
    return "warning" if len(item.state or "") < SHORT else "error"


@rule(
    "MRT009",
    "responses-on-first-request",
    "inputResponses without any pending item",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def responses_on_first_request(message: Message) -> Iterator[Finding]:
    """inputResponses and requestState belong to the retry of a request that was answered with input_required.

    Why: nothing in this capture asked for them. Either the capture began later, or the client made them up.

    Fix: send them only to continue an input_required answer.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers - confirm
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers - confirm
          -> result {"content": []}
    """
    round_ = message.exchange.mrtr
    if round_ is None or round_.state != "unknown" or round_.continues is not None:
        return
    what = "inputResponses" if round_.answered else "requestState"
    value = list(round_.answered) if round_.answered else round_.given
    yield Finding(
        f"the request carries {what}, but no input_required answer that it could continue was seen",
        [evidence(message.place("params", what), value)],
    )


@rule(
    "MRT010",
    "state-on-other-request",
    "requestState or responses used on another request",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=CLIENT,
    sep="2322",
    sorts=("retry",),
)
def state_on_other_request(message: Message) -> Iterator[Finding]:
    """requestState affects only the retry of the request it was given for; no other request carries it.

    Why: the other request fails, or runs with the state, and the permissions, of something else.

    Fix: keep the state with the pending operation, never with the connection or the session.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "destroy"}
          answers sealed-state-1
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "destroy"}
          -> result {"content": []}
    """
    round_ = message.exchange.mrtr
    if round_ is None or round_.state != "foreign" or round_.shared or not _elsewhere(round_, message):
        return
    owner = round_.owner
    assert owner is not None
    severity = _less_if_short(owner)
    yield Finding(
        f"the requestState was given for {_call(owner.method, owner.name)}",
        [evidence(message.place("params", "requestState"), round_.given, "(absent)")],
        "warning" if round_.other_auth else severity,
        related=(owner.flow,),
    )


@rule(
    "MRT011",
    "state-replayed",
    "Consumed state sent again",
    on="answer",
    level="may-note",
    party="client",
    era="modern",
    severity="warning",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    needs=("mrtr",),
)
def state_replayed(message: Message) -> Iterator[Finding]:
    """A requestState whose operation has ended is not used again; where single use matters, the server refuses it.

    Why: a replayed state that completes a second time may pay, send or redeem twice.

    Fix: the client starts a new call. The server remembers what was redeemed, and puts an expiry into the state.

    Wrong::

        modern tools/call {"name": "pay"}
          -> needs sealed-state-1
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> result {"content": []}
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> result {"content": []}

    Right::

        modern tools/call {"name": "pay"}
          -> needs sealed-state-1
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> sse
          -> closed server
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or not linked[0].consumed or linked[0].shared:
        return
    round_, item = linked
    again = message.rpc.kind == "result" and message.result.get("resultType") == "complete"
    request = message.request
    assert request is not None
    likely = again and not message.result.get("isError") and len(item.state or "") >= SHORT
    yield Finding(
        f"the requestState was used up before ({round_.consumed_how})"
        + (", and completes the call a second time" if again else ""),
        [evidence(request.place("params", "requestState"), round_.given)],
        "warning" if likely else "info",
        related=(item.flow, round_.consumed),
    )


@rule(
    "MRT012",
    "parallel-fork",
    "Two retries continue the same item",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def parallel_fork(message: Message) -> Iterator[Finding]:
    """One input_required answer is continued by one retry.

    Why: two retries run the rest of the operation twice. After a broken stream that is right; otherwise it is a double click.
    What a server makes of a state that was used up before is MRT011.

    Fix: retry again only where the retry before got no answer.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> open
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> result {"content": []}
    """
    linked = _linked(message)
    if linked is None or not linked[0].siblings:
        return
    round_, item = linked
    other = round_.siblings[-1]
    state = "is still running" if other.outcome in ("none", "stream") else f"ended with {other.outcome}"
    yield Finding(
        f"another retry continues the same answer, and {state}: the operation branches",
        [evidence(message.place("params", "requestState"), round_.given)],
        related=(item.flow, *(s.flow for s in round_.siblings[:5])),
    )


@rule(
    "MRT013",
    "input-required-empty",
    "input_required without inputRequests and requestState",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    sorts=("input_required",),
)
def input_required_empty(message: Message) -> Iterator[Finding]:
    """An input_required answer has inputRequests, or requestState, or both.

    Why: with neither, the client has nothing to answer and nothing to come back with.

    Fix: ask for something, or give a state to poll with, or answer `complete`.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> result {"resultType": "input_required"}

    Right::

        modern tools/call {"name": "deploy"}
          -> result {"resultType": "input_required", "requestState": "sealed-state-1"}
    """
    result = message.result
    if result.get("resultType") != "input_required" or "requestState" in result:
        return
    if "inputRequests" not in result:
        yield Finding(
            "input_required has neither inputRequests nor requestState",
            [evidence(message.place("result"), sorted(result), "inputRequests or requestState")],
        )
    elif result["inputRequests"] == {}:
        yield Finding(
            "input_required asks for nothing: inputRequests is empty and there is no requestState",
            [evidence(message.place("result", "inputRequests"), {})],
            "warning",
        )


@rule(
    "MRT014",
    "state-not-string",
    "requestState is not a string",
    on=("request", "answer"),
    level="must",
    party="either",
    era="modern",
    severity="error",
    spec=f"{MRTR_PAGE}#inputrequiredresult",
    sep="2322",
    methods=MRTR,
    sorts=("retry", "asking"),
)
def state_not_string(message: Message) -> Iterator[Finding]:
    """requestState is an opaque string, on both ways.

    Why: clients pass it through as a string; an object or a number does not come back as it was.

    Fix: serialize the state to a string, and leave the member out where there is none.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> result {"resultType": "input_required", "requestState": {"step": 1}}

    Right::

        modern tools/call {"name": "deploy"}
          -> result {"resultType": "input_required", "requestState": "sealed-state-1"}
    """
    holder = "params" if message.rpc.kind == "request" else "result"
    content = message.params if holder == "params" else message.result
    if "requestState" not in content or isinstance(content["requestState"], str):
        return
    if holder == "result" and content.get("resultType") != "input_required":
        return
    value = content["requestState"]
    yield Finding(
        f"requestState is {kind_of(value)}, not a string",
        [evidence(message.place(holder, "requestState"), "null" if value is None else value, "a string")],
    )


@rule(
    "MRT015",
    "input-request-kind",
    "inputRequests value is not an allowed request",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    sorts=("asking",),
)
def input_request_kind(message: Message) -> Iterator[Finding]:
    """Each value of inputRequests is a request: elicitation/create, sampling/createMessage or roots/list, with its params.

    Why: a client can fulfil no other request, and gives up on the whole operation.

    Fix: `{"method": "elicitation/create", "params": {...}}`. It is a request object, not a JSON-RPC message.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"ok": {"method": "ping"}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 ok
    """
    result = message.result
    requests = result.get("inputRequests")
    if not isinstance(requests, dict) or result.get("resultType") != "input_required":
        return
    for key, request in list(requests.items())[:50]:
        found = request_problem(message, request)
        if found is not None:
            words, steps, value, severity = found
            name = one_line(key, 40)
            yield Finding(
                f"the input request {name} {words}",
                [evidence(message.place("result", "inputRequests", key, *steps), value)],
                severity,
            )


def request_problem(message: Message, request: Any) -> tuple[str, tuple[str, ...], Any, Severity] | None:
    if not isinstance(request, dict):
        return f"is {kind_of(request)}, not an object", (), "null" if request is None else request, "error"
    method = request.get("method")
    if not isinstance(method, str):
        return "has no method", (), sorted(request)[:10], "error"
    if method not in KINDS:
        severity: Severity = "info" if _foreign_extension(message) else "error"
        return f"is {one_line(method, 60)}, which no client can be asked for", ("method",), method, severity
    if method != ROOTS and not isinstance(request.get("params"), dict):
        return f"({method}) has no params object", ("params",), request.get("params"), "error"
    envelope = [name for name in ("jsonrpc", "id") if name in request]
    if envelope:
        return f"carries {' and '.join(envelope)}: it is no JSON-RPC message", (envelope[0],), request[envelope[0]], "warning"
    return None


def _foreign_extension(message: Message) -> bool:
    """An extension that this tool does not know was declared: it may define further kinds."""
    request = message.request
    return request is not None and names_a_foreign_one(declared(request.exchange))


@rule(
    "MRT016",
    "input-request-not-declared",
    "Asked for input the client did not declare",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    sorts=("asking",),
)
def input_request_not_declared(message: Message) -> Iterator[Finding]:
    """A server asks only for input that this request's own clientCapabilities declare. `elicitation: {}` declares forms.

    Why: the client cannot answer; the operation is stuck where an error would have said what is missing.

    Fix: answer -32021 with `data.requiredCapabilities`, or do without.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1 confirm

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {"form": {}}}
          -> needs sealed-state-1 confirm
    """
    asked = asks(message)
    if not asked or asked[0].origin != "mrtr":
        return
    capabilities = asked[0].capabilities
    if capabilities is None:
        return  # the envelope itself is at fault: MET002
    told = set()
    for ask in asked:
        lacking = supports(capabilities, ask.method, ask.params) if ask.method in KINDS else None
        if lacking is None or lacking in told:
            continue
        told.add(lacking)
        how = f" in {one_line(str(mode(ask.params)), 20)} mode" if ask.method == ELICIT else ""
        yield Finding(
            f"the server asks for {ask.method}{how}, the client declared no {lacking}",
            [
                evidence(message.place("result", "inputRequests", ask.key, "method"), ask.method),
                evidence(f"request.body:/params/_meta/{rev.CLIENT_CAPABILITIES.replace('/', '~1')}", capabilities, lacking),
            ],
        )


@rule(
    "MRT017",
    "embedded-response-shape",
    "inputResponses value has the wrong shape",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=f"{MRTR_PAGE}#inputresponses",
    sep="2322",
    methods=MRTR,
    sorts=("retry",),
)
def embedded_response_shape(message: Message) -> Iterator[Finding]:
    """Each value of inputResponses is the bare result of what was asked: action for an elicitation, role, content and model for
    sampling, roots for roots/list.

    Why: servers parse the result directly; a JSON-RPC wrapper or another kind of result does not parse.

    Fix: `{"action": "accept", "content": {...}}`, not `{"result": {...}}`.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - ok
        modern tools/call {"name": "deploy", "inputResponses": {"ok": {"result": {"action": "accept"}}}}
          capabilities {"elicitation": {}}
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - ok
        modern tools/call {"name": "deploy", "inputResponses": {"ok": {"action": "decline"}}}
          capabilities {"elicitation": {}}
          -> result {"content": []}
    """
    round_ = message.exchange.mrtr
    linked = round_ is not None and round_.continues is not None
    for reply in replies(message):
        words = _reply_problem(reply) or (None if linked else _unknown_shape(reply.value))
        if words is not None:
            known = reply.method is not None
            yield Finding(
                f"{one_line(reply.name, 60)} {words}",
                [evidence(reply.place(), "null" if reply.value is None else reply.value)],
                None if known else "info",
            )


_MEMBERS = {ELICIT: ("action",), SAMPLE: ("role", "content", "model"), ROOTS: ("roots",)}


def _reply_problem(reply: Reply) -> str | None:
    value = reply.value
    if not isinstance(value, dict):
        return f"is {kind_of(value)}, not an object"
    needed = _MEMBERS.get(reply.method or "", ())
    lacking = [name for name in needed if name not in value]
    if (lacking or reply.method is None) and ("jsonrpc" in value or (value.keys() <= {"result", "error", "id"} and value)):
        return "is wrapped like a JSON-RPC message"
    if lacking:
        return f"lacks {' and '.join(lacking)}: it is no result of {reply.method}"
    return None


def _unknown_shape(value: Any) -> str | None:
    """What is wrong with an answer of which only its shape says what was asked."""
    kinds = [(method, needed) for method, needed in _MEMBERS.items() if any(name in value for name in needed)]
    if not kinds:
        return "is no result of an elicitation, of sampling or of roots/list"
    method, needed = kinds[0]
    lacking = [name for name in needed if name not in value]
    return f"lacks {' and '.join(lacking)}, if it is a result of {method}" if lacking else None


@rule(
    "MRT018",
    "missing-input-rerequest",
    "Server should re-ask for missing input",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{MRTR_PAGE}#error-handling",
    sep="2322",
    methods=MRTR,
    sorts=("error",),
)
def missing_input_rerequest(message: Message) -> Iterator[Finding]:
    """Where a retry leaves out something that was asked for, the server asks for it again rather than fail.

    Why: the user has answered the rest already; an error throws that away.

    Fix: answer input_required with the inputs that are still missing.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 name confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 name
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 name confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 name confirm
          -> result {"content": []}
    """
    if message.rpc.kind != "error":
        return
    linked = _linked(message)
    if linked is None or not linked[0].missing or not linked[0].sure_of_keys or linked[0].state not in ("same", "none"):
        return
    round_, item = linked
    status = message.exchange.status
    if message.error_code in _REFUSED or round_.consumed or status in (401, 403) or (status or 0) >= 500:
        return
    yield Finding(
        f"the retry lacked {_names(round_.missing)}; the server failed with {message.error_code} instead of asking again",
        [evidence(message.place("error", "code"), message.error_code, "input_required")],
        related=(item.flow,),
    )


@rule(
    "MRT019",
    "altered-state-accepted",
    "Server completes a retry with an altered state",
    on="answer",
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    needs=("mrtr",),
)
def altered_state_accepted(message: Message) -> Iterator[Finding]:
    """A server refuses a requestState that it did not give for this very request.

    Why: the state comes from the client, and whoever sits in between; unverified, it is an input like any other.

    Fix: seal the state (HMAC or AEAD) together with the method and a digest of the parameters, and verify both.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-9 confirm
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 confirm
          -> result {"content": []}
    """
    if message.result.get("resultType") != "complete" or message.result.get("isError"):
        return
    linked = _linked(message)
    if linked is None:
        return
    round_, item = linked
    changed = round_.link == "c" and round_.sure and round_.state in ("changed", "foreign", "missing")
    if (not changed and round_.link != "d") or round_.shared:
        return
    request = message.request
    assert request is not None
    what = "with an altered requestState" if changed else "with a requestState that was given for other parameters"
    if round_.state == "missing":
        what = "without the requestState that it had given"
    yield Finding(
        f"the server completed a retry {what}: does it verify the state?",
        [evidence(request.place("params", "requestState"), round_.given, round_.expected)],
        "info" if round_.state == "missing" or len(item.state or "") < SHORT else None,  # it may do without the state
        related=(item.flow,),
    )


@rule(
    "MRT020",
    "round-limit",
    "Long or endless round chains",
    on="answer",
    level="may-note",
    party="either",
    era="modern",
    severity="info",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    needs=("mrtr",),
)
def round_limit(message: Message) -> Iterator[Finding]:
    """An operation comes to an end after few rounds.

    Why: a server that asks the same again and again, or a client that always answers the same, never gets there; clients stop
    after some number of rounds.

    Fix: the server says in the message of the request what was wrong with the answer before, and gives up at some point.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> needs sealed-state-1

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> needs sealed-state-2
        modern tools/call {"name": "deploy"}
          answers sealed-state-2
          -> result {"content": []}
    """
    request = message.request
    round_ = request.exchange.mrtr if request is not None else None
    if request is None or round_ is None:
        return
    item = round_.issues
    if item is not None and item.repeats == 3:
        where = message.place("result", "inputRequests" if item.keys else "requestState")
        value: Any = list(item.keys) if item.keys else mask(item.state or "")
        yield Finding("the server asks the same for the third time", [evidence(where, value)])
    elif round_.number == ROUNDS + 1:
        sent = "requestState" if round_.given is not None else "inputResponses"
        value = round_.given if round_.given is not None else list(round_.answered)
        yield Finding(f"the operation takes more than {ROUNDS} rounds", [evidence(request.place("params", sent), value)])


@rule(
    "MRT021",
    "round-abandoned",
    "Pending item never continued",
    on="finish",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec=SERVER,
    sep="2322",
)
def round_abandoned(exchange: Exchange) -> Iterator[Finding]:
    """An input_required answer is continued by a retry, sooner or later.

    Why: the operation still waits at the end of this trace: for a person, or because the client cannot answer.

    Fix: nothing, where a person is still thinking. Otherwise see why the client did not retry.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> result {"content": []}
    """
    round_, answer = exchange.mrtr, exchange.answer
    if round_ is None or round_.waited is None or answer is None:
        return
    if round_.issues is not None and any(e.outcome == "error" for e in round_.issues.continuations):
        return  # its retry was answered, by an error that speaks for itself
    tried = " got no answer to its retry" if round_.issues and round_.issues.continuations else " was not continued"
    yield Finding(
        f"input_required{tried} in this trace, which ends {_duration(round_.waited)}",
        [evidence(answer.place("result", "resultType"), "input_required")],
    )


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "right after it"
    if seconds < 120:
        return f"{seconds:.0f} s later"
    return f"{seconds / 60:.0f} min later" if seconds < 7_200 else f"{seconds / 3_600:.0f} h later"


@rule(
    "MRT024",
    "error-then-result",
    "Input asked for after a task was handed out",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec="2663 Composition with Multi Round-Trip Requests",
    sep="2663",
    methods=MRTR,
    needs=("mrtr",),
)
def input_after_task(message: Message) -> Iterator[Finding]:
    """Once an operation has become a task, its further input is asked for by the task.

    Why: the client follows the task; an input_required answer to the call asks for the same thing a second time.

    Fix: after the task handle put inputRequests into the task, and take answers by tasks/update.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          answers sealed-state-1
          -> result {"resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "2026-08-01T10:00:00Z", "lastUpdatedAt": "2026-08-01T10:00:00Z", "ttlMs": 60000}
        modern tools/call {"name": "deploy"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          answers sealed-state-1
          -> needs sealed-state-2

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          answers sealed-state-1
          -> result {"resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "2026-08-01T10:00:00Z", "lastUpdatedAt": "2026-08-01T10:00:00Z", "ttlMs": 60000}
    """
    if message.result.get("resultType") != "input_required":
        return
    linked = _linked(message)
    if linked is None or not linked[0].after_task or linked[0].shared:
        return
    yield Finding(
        "the server asks for input although it had handed out a task for this operation",
        [evidence(message.place("result", "resultType"), "input_required", "inputRequests in the task")],
        related=(linked[0].after_task,),
    )


@rule(
    "MRT025",
    "input-required-shape",
    "inputRequests is not an object map",
    on=("request", "answer"),
    level="must",
    party="either",
    era="modern",
    severity="error",
    spec="2026-07-28 schema#inputrequiredresult",
    sep="2322",
    sorts=("retry", "asking"),
)
def input_required_shape(message: Message) -> Iterator[Finding]:
    """inputRequests and inputResponses are objects, one member for each input, and inputRequests comes with resultType
    input_required.

    Why: without the type, the client takes the answer for the final result; an array has no keys to answer under.

    Fix: `"resultType": "input_required", "inputRequests": {"confirm": {...}}`.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> result {"resultType": "input_required", "inputRequests": [], "requestState": "sealed-state-1"}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
    """
    if message.rpc.kind == "request":
        params = message.params
        if message.rpc.method in MRTR and "inputResponses" in params and not isinstance(params["inputResponses"], dict):
            value = params["inputResponses"]
            yield Finding(
                f"inputResponses is {kind_of(value)}, not an object",
                [evidence(message.place("params", "inputResponses"), "null" if value is None else value, "an object")],
            )
        return
    result, request = message.result, message.request
    if "inputRequests" not in result and "requestState" not in result:
        return
    method = request.rpc.method if request is not None else None
    kind, requests = result.get("resultType"), result.get("inputRequests")
    if kind == "input_required":
        if "inputRequests" in result and not isinstance(requests, dict):
            yield Finding(
                f"inputRequests is {kind_of(requests)}, not an object",
                [evidence(message.place("result", "inputRequests"), "null" if requests is None else requests, "an object")],
            )
        return
    if kind not in (None, "complete") or not (method or "").partition("/")[0] or str(method).startswith("tasks/"):
        return
    name = "inputRequests" if "inputRequests" in result else "requestState"
    shown = kind or "no resultType"
    yield Finding(
        f"the result has {name} but {'resultType ' if kind else ''}{shown}: the client takes it for the final result",
        [evidence(message.place("result", "resultType"), kind, "input_required")],
        "warning" if method in MRTR else "info",
    )


@rule(
    "MRT026",
    "state-refused-by-its-server",
    "Server refuses the requestState that it gave",
    on="exchange",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=SERVER,
    sep="2322",
    needs=(STATE_REFUSED,),
    transport=("http",),
)
def state_refused_by_its_server(exchange: Exchange) -> Iterator[Finding]:
    """A requestState that comes back unchanged, to the same call of the same client and soon, is taken.

    Why: the operation cannot be continued, and starting over ends at the same place: another instance or another key has to read
    the state.

    Fix: share the key, or the store, among all instances. Said once for an endpoint.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> status 400
          -> error -32602 {"message": "Invalid or expired requestState"}

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
        modern tools/call {"name": "deploy"}
          answers sealed-state-1
          -> result {"content": []}
    """
    told, round_ = exchange.facts.get(STATE_REFUSED), exchange.mrtr
    if told is None or round_ is None or exchange.request is None:
        return
    old = told.age > STATE_MAY_EXPIRE
    age = f"{told.age * 1000:.0f} ms" if told.age < 1 else f"{told.age:.0f} s"
    why = "it may have expired" if old else "another instance or key?"
    yield Finding(
        f"the server refuses the requestState that it gave (echoed unchanged, {age} later): {why}{told.repeat.times}",
        [
            evidence(exchange.request.place("params", "requestState"), round_.given),
            Evidence(told.said.where, told.said.quote),
        ],
        severity="info" if old else None,
        related=(told.given, *told.repeat.related),
    )


STATE_MAY_EXPIRE = 120.0  # seconds


@rule(
    "MRT027",
    "input-required-taken-for-result",
    "Client takes input_required for the result",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec=CLIENT,
    sep="2322",
    methods=MRTR,
    needs=("mrtr",),
)
def input_required_taken_for_result(message: Message) -> Iterator[Finding]:
    """A client that gets input_required collects the input and continues the call. One that starts the same call afresh, and never
    continues one, takes the answer for the result.

    Why: the model sees an empty answer and calls again; the server asks the same again, for ever.

    Fix: look at resultType before anything else, and repeat the call with inputResponses and requestState.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-2 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-3 confirm

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs sealed-state-1 confirm
        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          answers sealed-state-1 confirm
          -> result {"content": []}
    """
    round_ = message.exchange.mrtr
    item = round_.restarts if round_ is not None else None
    if round_ is None or item is None or not item.keys or not round_.never_retried or item.starts + 1 != STARTS:
        return
    yield Finding(
        f"the client takes input_required for the result: the same call is started afresh ({STARTS} times), none was continued",
        [evidence(message.place("params", "inputResponses"), None, f"answers to {one_line(', '.join(item.keys[:5]), 60)}")],
        related=(item.flow,),
    )


STARTS = 3


@rule(
    "MRT028",
    "input-required-as-text",
    "input_required written as text",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=SERVER,
    sep="2322",
    methods=("tools/call",),
    sorts=("result",),
)
def input_required_as_text(message: Message) -> Iterator[Finding]:
    """A server that needs input says so in the result itself, by resultType, inputRequests and requestState; not in a text block of
    a complete result.

    Why: the client shows the text to the model as the outcome of the tool, and nobody is asked.

    Fix: return the object as the result; look for a framework that turns whatever a tool returns into text.

    Wrong::

        modern tools/call {"name": "deploy"}
          -> result {"content": [{"type": "text", "text": "{\\"resultType\\": \\"input_required\\", \\"inputRequests\\": {}}"}]}

    Right::

        modern tools/call {"name": "deploy"}
          -> needs sealed-state-1
    """
    content = message.result.get("content")
    for index, block in enumerate(content[:10] if isinstance(content, list) else ()):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str) or len(text) > LONGEST_TEXT or not text.lstrip().startswith("{"):
            continue
        if "input_required" not in text and "inputRequests" not in text and "requestState" not in text:
            continue
        value = read_text(text).value
        if not isinstance(value, dict):
            continue
        asks = value.get("resultType") == "input_required" or isinstance(value.get("inputRequests"), dict)
        if asks or (isinstance(value.get("requestState"), str) and "resultType" in value):
            place = message.place("result", "content", index, "text")
            said = "a text block of a complete result is an input_required result: clients show it to the model"
            yield Finding(said, [evidence(place, dumps(value, most=100), "the result itself")])
            return


LONGEST_TEXT = 64 << 10


@rule(
    "MRT029",
    "used-state-accepted",
    "Used requestState completes a second time",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=SERVER,
    sep="2322",
    methods=MRTR,
    sorts=("result",),
    needs=("mrtr",),
)
def used_state_accepted(message: Message) -> Iterator[Finding]:
    """A server refuses a requestState whose operation it has completed, where doing it twice does harm: what is read, and a tool
    that says of itself that it is read-only or idempotent, may be had again.

    Why: who repeats the request, by mistake or on purpose, pays, sends or redeems twice.

    Fix: remember what was redeemed for as long as the state is valid.

    Wrong::

        modern tools/call {"name": "pay"}
          -> needs sealed-state-1
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> result {"content": []}
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> result {"content": []}

    Right::

        modern tools/call {"name": "pay"}
          -> needs sealed-state-1
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> result {"content": []}
        modern tools/call {"name": "pay"}
          answers sealed-state-1
          -> error -32602
    """
    linked, request = _linked(message), message.request
    if linked is None or request is None or not linked[0].consumed or linked[0].shared or linked[0].consumed_how != "complete":
        return
    round_, item = linked
    if message.result.get("resultType") != "complete" or message.result.get("isError") or len(item.state or "") < SHORT:
        return
    if request.method != "tools/call" or _may_run_twice(request):
        return
    yield Finding(
        "the server completes the call a second time with a requestState that was used up",
        [evidence(request.place("params", "requestState"), round_.given, "an error")],
        related=(item.flow, round_.consumed),
    )


def _may_run_twice(request: Message) -> bool:
    """Whether the tool says that a second call does nothing more than the first."""
    view = request.exchange.tool
    hints = view.definition.raw.get("annotations") if view is not None and view.definition is not None else None
    return isinstance(hints, dict) and (hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True)
