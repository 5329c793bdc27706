"""RCT: what a client does after a fault that was put into its traffic (`mcp_fault`). Silent where none was."""

from collections.abc import Iterator

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.operations.reactions import WRONG_REACTION


def _wrong(exchange: Exchange, *kinds: str) -> Iterator[Finding]:
    wrong = exchange.facts.get(WRONG_REACTION)
    if wrong is not None and wrong.kind in kinds:
        yield Finding(
            f"after {wrong.kind} was put in, {wrong.words}", [evidence("request", exchange.method)], related=(wrong.flow,)
        )


@rule(
    "RCT001",
    "version-refused-again",
    "A refused version was asked again, or given up for initialize",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 basic/versioning#protocol-version-negotiation",
    always=True,
    needs=(WRONG_REACTION,),
)
def version_refused_again(exchange: Exchange) -> Iterator[Finding]:
    """A client that is refused with -32022 asks again in a version of data.supported that it speaks, or gives up.

    Why: the same version is refused each time, and initialize belongs to servers that named no modern version.

    Fix: choose from `data.supported`, and put that version into envelope and header.

    Wrong::

        modern tools/list
          fault error:-32022
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2026-07-28"}}
        modern tools/list
          -> tool search

    Right::

        modern tools/list
          fault error:-32022
          -> error -32022 {"data": {"supported": ["2026-07-28"], "requested": "2026-07-28"}}
    """
    yield from _wrong(exchange, "error:-32022")


@rule(
    "RCT002",
    "mismatch-not-looked-up",
    "A header mismatch was not followed by tools/list",
    on="post",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/transports/streamable-http#server-validation",
    always=True,
    needs=(WRONG_REACTION,),
)
def mismatch_not_looked_up(exchange: Exchange) -> Iterator[Finding]:
    """A client that is refused with -32020 lists the tools anew before it calls again: the definition that it knows may be old.

    Why: headers that are made of an old definition are refused each time.

    Fix: call tools/list, then the tool with the headers of its new definition and a new id.

    Wrong::

        modern tools/call {"name": "search", "arguments": {}}
          fault error:-32020
          -> error -32020
        modern tools/call {"name": "search", "arguments": {}}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "search", "arguments": {}}
          fault error:-32020
          -> error -32020
        modern tools/list
          -> tool search
        modern tools/call {"name": "search", "arguments": {}}
          -> result {"content": []}
    """
    yield from _wrong(exchange, "error:-32020")


@rule(
    "RCT003",
    "capability-refused-again",
    "A request was repeated without the capability that it lacked",
    on="post",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/index#_meta",
    always=True,
    needs=(WRONG_REACTION,),
)
def capability_refused_again(exchange: Exchange) -> Iterator[Finding]:
    """A client that is refused with -32021 declares what was missing, or gives the call up.

    Why: the server cannot serve it without, however often it is asked.

    Fix: declare the capability of `data.requiredCapabilities` where the client has it; else tell the user.

    Wrong::

        modern tools/call {"name": "search", "arguments": {}}
          fault error:-32021
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {}}}}
        modern tools/call {"name": "search", "arguments": {}}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "search", "arguments": {}}
          fault error:-32021
          -> error -32021 {"data": {"requiredCapabilities": {"elicitation": {}}}}
    """
    yield from _wrong(exchange, "error:-32021")


@rule(
    "RCT004",
    "question-answered-wrongly",
    "A retry does not bring back what the question gave",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 basic/patterns/mrtr",
    always=True,
    needs=(WRONG_REACTION,),
)
def question_answered_wrongly(exchange: Exchange) -> Iterator[Finding]:
    """A client that was asked for input asks again with a new id, the exact requestState, and answers under the keys of the questions.

    Why: a server can tie the retry to its question by nothing else.

    Fix: copy `requestState` as it is, and make a new id.

    Wrong::

        modern tools/call {"name": "search", "arguments": {}}
          fault ask
          -> needs state-of-the-fault confirm
        modern tools/call {"name": "search", "arguments": {}}
          answers another-state confirm
          -> result {"content": []}

    Right::

        modern tools/call {"name": "search", "arguments": {}}
          fault ask
          -> needs state-of-the-fault confirm
        modern tools/call {"name": "search", "arguments": {}}
          answers state-of-the-fault confirm
          -> result {"content": []}
    """
    yield from _wrong(exchange, "ask")


@rule(
    "RCT005",
    "broken-id-used-again",
    "The id of a request whose answer broke off was used again",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 basic/transports/streamable-http#receiving-messages",
    always=True,
    needs=(WRONG_REACTION,),
)
def broken_id_used_again(exchange: Exchange) -> Iterator[Finding]:
    """A client whose answer was cut off asks again with a new id, or gives up.

    Why: the server may still be at work on the first one, and answers could be confused.

    Fix: make a new id for each try.

    Wrong::

        modern tools/call {"name": "search", "arguments": {}}
          id "one"
          fault cut:1
          -> sse
          -> closed server
        modern tools/call {"name": "search", "arguments": {}}
          id "one"
          -> result {"content": []}

    Right::

        modern tools/call {"name": "search", "arguments": {}}
          id "one"
          fault cut:1
          -> sse
          -> closed server
        modern tools/call {"name": "search", "arguments": {}}
          id "two"
          -> result {"content": []}
    """
    yield from _wrong(exchange, "broken")


@rule(
    "RCT006",
    "dead-session-used-again",
    "A client goes on with a session that is gone",
    on="post",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2025-11-25 basic/transports#session-management",
    always=True,
    needs=(WRONG_REACTION,),
)
def dead_session_used_again(exchange: Exchange) -> Iterator[Finding]:
    """A client that gets 404 for a request with a session id begins a new session: initialize, without a session id.

    Why: every further request of the session fails, until somebody starts the client anew.

    Fix: on 404, drop the session id and initialize.

    Wrong::

        legacy initialize {}
          -> result {}
        legacy tools/list {}
          fault status:404
          -> 404
        legacy tools/list {}
          -> 404

    Right::

        legacy initialize {}
          -> result {}
        legacy tools/list {}
          fault status:404
          -> 404
        legacy initialize {}
          -> result {}
    """
    yield from _wrong(exchange, "status:404")


@rule(
    "RCT007",
    "refused-token-used-again",
    "Refused authorization was sent again",
    on="post",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/authorization/index#token-handling",
    always=True,
    needs=(WRONG_REACTION,),
)
def refused_token_used_again(exchange: Exchange) -> Iterator[Finding]:
    """A client that is refused with 401 or 403 gets another token, or gives up.

    Why: the same token is refused each time.

    Fix: follow the challenge: get a token, or one with the scopes that it names.

    Wrong::

        modern tools/list
          client a
          fault status:401
          -> 401
          -> header WWW-Authenticate: Bearer
        modern tools/list
          client a
          -> tool search

    Right::

        modern tools/list
          client a
          fault status:401
          -> 401
          -> header WWW-Authenticate: Bearer
    """
    yield from _wrong(exchange, "status:401", "status:403")


@rule(
    "RCT008",
    "retry-after-not-kept",
    "A client came back before Retry-After",
    on="post",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec="RFC 9110 section 10.2.3",
    always=True,
    needs=(WRONG_REACTION,),
)
def retry_after_not_kept(exchange: Exchange) -> Iterator[Finding]:
    """A client that is refused with 429 or 503 and Retry-After waits as long as that says.

    Why: a server that is asked too early stays under load, and may shut the client out.

    Fix: wait for the seconds of Retry-After before the next try.

    Wrong::

        modern tools/list
          fault status:429:30
          -> 429
          -> header Retry-After: 30
        modern tools/list
          after 2
          -> tool search

    Right::

        modern tools/list
          fault status:429:30
          -> 429
          -> header Retry-After: 30
        modern tools/list
          after 40
          -> tool search
    """
    yield from _wrong(exchange, "status:429", "status:503")
