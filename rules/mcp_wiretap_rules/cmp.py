"""CMP: argument completion (2026-07-28 server/utilities/completion)."""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.era.discover import advertised
from mcp_wiretap.trace.model import Message
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line

COMPLETION = "2026-07-28 server/utilities/completion"
COMPLETE = ("completion/complete",)
CONTEXT_SINCE = "2025-06-18"
MOST_VALUES = 100  # by the specification


@rule(
    "CMP001",
    "completion-too-many",
    "More than 100 values",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{COMPLETION}#completion-results",
    methods=COMPLETE,
)
def completion_too_many(message: Message) -> Iterator[Finding]:
    """A completion gives at most 100 values, all strings; more are announced by `total` and `hasMore`.

    Why: typed clients refuse a longer list.

    Fix: cut the list, set `hasMore: true`.

    Wrong::

        modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": [1]}}

    Right::

        modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": ["1"], "total": 900, "hasMore": true}}
    """
    completion = message.result.get("completion")
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list):
        return  # RES004
    place = message.place("result", "completion", "values")
    if len(values) > MOST_VALUES:
        yield Finding(f"{len(values)} values, 100 are allowed", [evidence(place, f"{len(values)} values", "at most 100")])
    for odd in [v for v in values[:1_000] if not isinstance(v, str)][:1]:
        yield Finding(f"a value is {one_line(dumps(odd), 40)}, not a string", [evidence(place, dumps(odd), "strings")])


@rule(
    "CMP002",
    "completion-total",
    "total/hasMore inconsistent",
    on="answer",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=f"{COMPLETION}#completion-results",
    methods=COMPLETE,
)
def completion_total(message: Message) -> Iterator[Finding]:
    """`total` counts all matches, those in `values` too; `hasMore` says whether there are others.

    Why: a client that pages or shows "12 of 900" goes by them.

    Fix: count the matches before cutting the list.

    Wrong::

        modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": ["a", "b"], "total": 1}}

    Right::

        modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": ["a", "b"], "total": 2, "hasMore": false}}
    """
    completion = message.result.get("completion")
    if not isinstance(completion, dict) or not isinstance(completion.get("values"), list):
        return
    total, given = completion.get("total"), len(completion["values"])
    if not isinstance(total, int) or isinstance(total, bool):
        return
    place = message.place("result", "completion", "total")
    if total < given:
        yield Finding(f"total is {total}, but there are {given} values", [evidence(place, str(total), f"at least {given}")])
    elif total > given and completion.get("hasMore") is False:
        yield Finding(
            f"hasMore is false, but total is {total} and there are {given} values", [evidence(place, str(total), str(given))]
        )


@rule(
    "CMP003",
    "completion-ref",
    "Reference malformed",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{COMPLETION}#reference-types",
    methods=COMPLETE,
)
def completion_ref(message: Message) -> Iterator[Finding]:
    """`ref` is a ref/prompt with a name or a ref/resource with a uri; the argument has a name and a value, both strings.

    Why: the server cannot tell what is to be completed.

    Fix: `{"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "x"}}`.

    Wrong::

        modern completion/complete {"ref": {"type": "ref/tool", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> error -32602

    Right::

        modern completion/complete {"ref": {"type": "ref/resource", "uri": "x://{a}"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": []}}
    """
    params = message.params
    ref, argument, context = params.get("ref"), params.get("argument"), params.get("context")
    if isinstance(ref, dict):
        kind = ref.get("type")
        wanted = {"ref/prompt": "name", "ref/resource": "uri"}.get(kind) if isinstance(kind, str) else None
        if wanted is None:
            text = f"ref.type is {one_line(dumps(kind), 40)}"
            yield Finding(text, [evidence(message.place("params", "ref", "type"), kind, "ref/prompt or ref/resource")])
        elif not isinstance(ref.get(wanted), str):
            yield Finding(
                f"{kind} has no {wanted}", [evidence(message.place("params", "ref", wanted), ref.get(wanted), "a string")]
            )
    if isinstance(argument, dict):
        for member in ("name", "value"):
            if not isinstance(argument.get(member), str):
                place = message.place("params", "argument", member)
                yield Finding(f"argument.{member} is no string", [evidence(place, argument.get(member), "a string")])
    if "context" in params:
        yield from _context(message, context)


def _context(message: Message, context: Any) -> Iterator[Finding]:
    place, revision = message.place("params", "context"), message.exchange.revision
    if revision in rev.KNOWN and revision < CONTEXT_SINCE:
        yield Finding(f"context came with {CONTEXT_SINCE}; {revision} was negotiated", [evidence(place, context)], "info")
        return
    if not isinstance(context, dict):
        yield Finding(f"context is {one_line(dumps(context), 40)}", [evidence(place, context, "an object")])
        return
    given = context.get("arguments", {})
    if not isinstance(given, dict):
        yield Finding("context.arguments is no object", [evidence(f"{place}/arguments", given, "an object of strings")])
    elif any(not isinstance(v, str) for v in list(given.values())[:100]):
        text = "context.arguments holds something else than strings"
        yield Finding(text, [evidence(f"{place}/arguments", given, "strings")])


@rule(
    "CMP004",
    "completion-capability",
    "completions capability missing",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{COMPLETION}#capabilities",
    versions=("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"),
    methods=COMPLETE,
    once="endpoint",
)
def completion_capability(message: Message) -> Iterator[Finding]:
    """A server that completes advertises `completions`.

    Why: clients offer completion only where it is advertised.

    Fix: add `"completions": {}` to the capabilities.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": []}}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"completions": {}}}
        modern completion/complete {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
          -> result {"completion": {"values": []}}
    """
    told = advertised(message.exchange)
    if message.rpc.kind == "result" and told is not None and "completions" not in told[0]:
        yield Finding(
            "the server completes, but does not advertise completions",
            [evidence(message.place("result", "completion"), "a result", "capabilities.completions")],
            related=(told[1],) if told[1] else (),
        )
