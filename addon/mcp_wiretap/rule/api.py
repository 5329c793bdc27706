"""The rule API: what a rule is, how rules are found and selected, and how they are run on the facts of a trace.

A rule is one function in a rule pack, marked with `@rule`, given the fact it subscribes to, yielding findings:

    @rule("HDR004", "method-header-mismatch", "Mcp-Method differs from body method",
          on="request", level="must", party="client", era="modern", severity="error",
          spec="2026-07-28 basic/transports/streamable-http#server-validation", sep="2243")
    def method_header_mismatch(message: Message) -> Iterator[Finding]:
        '''What the rule demands and why it matters. ...'''
        if ...:
            yield Finding("Mcp-Method says tools/call, the body says tools/list", [evidence(...)])

Writing one:

- **The fact.** `on` names it (`On` lists all): a `Message` (`params`, `result`, `error_code`, of an answer `request`), a
  `StreamItem`, a `ToolDefinition`, or an `Exchange`. Values come from anybody: look with `isinstance` before use. `methods`,
  `sorts` and `needs` say for which facts there is anything to find; the rule is then not called for others, which is what keeps a
  plain call cheap.
- **The scope.** `era`, `versions` and `party` decide for which traffic it holds. That is settled in `mcp_wiretap.rule.scope`, by
  what the request declares and what the server has shown: a rule does not ask for the era.
- **No memory.** A rule keeps nothing between calls and reads no clock, socket or file. What needs history is written on the
  exchange by a tracker (`mcp_wiretap.trace.tracker`): `exchange.tool`, `exchange.mrtr`, `exchange.facts[...]`.
- **The finding.** One sentence without a full stop that has the values in it, and `evidence` for each place on the wire:
  `message.place("params", "name")`, `request.header:Mcp-Name`, `response.status`. Secrets are masked and values cut here. The
  finding's `severity` may be milder than the rule's, never harsher. What cannot be judged is `Unchecked(what, why)`, not silence.
- **The docstring** is what `explain` prints: what is demanded, `Why:`, `Fix:`, and `Wrong::` and `Right::` with the smallest
  exchanges that make the rule speak and keep it silent, in the notation of `mcp_wiretap.example`. `read_script` of that module
  makes events of them, so a test is: feed them to `Inspector(RuleBook.of(rules))` and look at `exchange.findings`.

Packs are found by the entry point group `mcp_wiretap.rules`: each entry point names a module or a package; a package's modules
are imported, too, and the rules in them collected. A plain file does as well (`load_file`). Ids are unique among all packs; the
letters before the number are the family. A fault in a rule is contained: it is counted on the exchange, the other rules go on.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mcp_wiretap.trace.finding import Evidence, Finding, Severity, Unchecked
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import ENTERED, SECRET_HEADERS, SECRET_MEMBERS, STAND_INS, hidden, is_secret, mask, shown

type On = Literal[
    "request",  # Message: a JSON-RPC request of the client
    "notification",  # Message: a notification of the client
    "reply",  # Message: a result or error that the client posted (legacy: it answers a request of the server)
    "answer",  # Message: a result or error of the server that answers a request (`message.request`)
    "push",  # Message: any other message of the server: its notifications and requests
    "message",  # Message: each message of either side
    "event",  # StreamItem: each SSE event
    "post",  # Exchange: the HTTP request is complete, whatever is in it
    "exchange",  # Exchange: it is over
    "tool",  # ToolDefinition: each tool of a tools/list answer
    "finish",  # Exchange: the trace is over, and a tracker named this exchange in `finished`
]


# Which messages a rule looks at, finer than `on`; it spares the others the call. Of a request: `retry` where it carries
# inputResponses or requestState. Of a result: `input_required` and `task` by its resultType, `asking` where it has
# inputRequests or requestState beside another. Of an exchange: `stream` or `body`. The coarser sort means the finer ones, too.
type Sort = Literal[
    "request", "retry", "notification", "result", "asking", "input_required", "task", "error", "invalid", "stream", "body"
]  # fmt: skip


type Era = Literal["modern", "legacy", "both"]


# What a rule is as a function: findings, and what it could not judge.
type Check = Callable[..., Iterator[Finding | Unchecked] | None]


type Level = Literal["must", "should", "may-note"]


ALL_REVISIONS = frozenset(rev.KNOWN)


@dataclass(slots=True, frozen=True)
class Rule:
    """A rule with its metadata. `severity` is the ceiling: a finding may be milder, never harsher."""

    id: str
    name: str
    title: str
    check: Check
    on: tuple[On, ...]
    level: Level
    party: Literal["client", "server", "either"]
    era: Era
    severity: Severity
    spec: str
    sep: str | None = None
    versions: frozenset[str] = ALL_REVISIONS
    methods: frozenset[str] | None = None  # request methods it looks at; None: all
    sorts: frozenset[str] | None = None  # sorts of fact it looks at; None: all. `result` and `request` mean the finer sorts, too
    once: Literal["endpoint", "client"] | None = None  # report the first case per endpoint (or client and endpoint) only
    structural: bool = False  # holds for requests of a version we do not know, too
    malformed: bool = False  # holds at full severity for requests without a usable envelope, too
    streamable: bool = False  # not on the 2024-11-05 HTTP+SSE transport, whatever version was negotiated there
    always: bool = False  # decides by itself to which era it applies: no scoping by claim or evidence
    kinds: frozenset[str] | None = None  # kinds of exchange that an `always` rule looks at; None: all but `other`
    # What must be there for the rule to have anything to say, one of them: `meta:KEY`, `params:KEY`, `result:KEY` of the message,
    # `cap:KEY` of the request's clientCapabilities, `fact:KEY` of the exchange, `header:NAME` (lower case) of the request,
    # `headers`: a mirrored header has a problem, `mrtr`: it belongs to a multi round-trip. None: the rule is always called.
    needs: frozenset[str] | None = None

    @property
    def family(self) -> str:
        return self.id.rstrip("0123456789")

    @property
    def explanation(self) -> str:
        """The docstring: what, why, how to fix, a right and a wrong example."""
        return (self.check.__doc__ or "").strip()


def rule[C: Check](
    id: str,
    name: str,
    title: str,
    *,
    on: On | tuple[On, ...],
    level: Level,
    party: Literal["client", "server", "either"],
    era: Era,
    severity: Severity,
    spec: str,
    sep: str | None = None,
    versions: Iterable[str] = ALL_REVISIONS,
    methods: Iterable[str] | None = None,
    sorts: Iterable[Sort] | None = None,
    once: Literal["endpoint", "client"] | None = None,
    structural: bool = False,
    malformed: bool = False,
    streamable: bool = False,
    always: bool = False,
    kinds: Iterable[str] | None = None,
    needs: Iterable[str] | None = None,
) -> Callable[[C], C]:
    """Mark a function as a rule. The function stays callable as it is; its Rule hangs on it as `__rule__`."""

    def mark(check: C) -> C:
        check.__rule__ = Rule(  # type: ignore[attr-defined]
            id, name, title, check, on if isinstance(on, tuple) else (on,), level, party, era, severity, spec, sep,
            frozenset(versions), frozenset(methods) if methods is not None else None,
            frozenset(sorts) if sorts is not None else None, once, structural, malformed, streamable, always,
            frozenset(kinds) if kinds is not None else None, frozenset(needs) if needs is not None else None,
        )  # fmt: skip
        return check

    return mark


def evidence(where: str, value: Any, expected: Any = None) -> Evidence:
    """One place on the wire as evidence: made one line, cut at 200 characters, secrets masked by header name or member name.
    None as `value` means that the thing is absent."""
    return Evidence(where, _shown(where, value), None if expected is None else _shown(where, expected))


_LONGEST = 200  # characters of one value


def _shown(where: str, value: Any) -> str:
    if value is None:
        return "(absent)"
    if not isinstance(value, str):  # secrets are strings
        return shown(dumps(value, most=_LONGEST + 1, shown=hidden), _LONGEST)
    tail = where.rpartition(":")[2]
    *within, name = tail.split("/")
    entered = not ENTERED.isdisjoint(within)
    secret = name in SECRET_MEMBERS and not entered and not tail.endswith("/error/code")
    if secret or is_secret(name, value, entered) or tail.lower() in SECRET_HEADERS:
        return value if value in STAND_INS else mask(value)
    return shown(value, _LONGEST)


def matches(found: Rule, words: Iterable[str]) -> bool:
    """Whether a rule is meant by one of the words: an id (HDR006), a family (HDR), a name (name-header-mismatch) or a party
    (client, server)."""
    return any(w in (found.id, found.family, found.name, found.party) for w in words)
