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
letters before the number are the family. A mistyped word in a declaration is refused when the rule is loaded, and a fault in a
rule is contained: it is counted on the exchange, the other rules go on.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mcp_wiretap.trace.facts import ExchangeFact, Fact
from mcp_wiretap.trace.finding import Evidence, Finding, Severity, Unchecked
from mcp_wiretap.trace.model import Kind
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import ENTERED, SECRET_HEADERS, SECRET_MEMBERS, STAND_INS, hidden_head, is_secret, mask, shown

type On = Literal[
    "request",  # Message: a JSON-RPC request of the client
    "notification",  # Message: a notification of the client
    "reply",  # Message: a result or error that the client posted (legacy: it answers a request of the server)
    "answer",  # Message: a result or error of the server that answers a request (`message.request`)
    "push",  # Message: any other message of the server: its notifications and requests
    "message",  # Message: each message of either side
    "event",  # StreamItem: each SSE event
    "post",  # Exchange: the HTTP request is complete, whatever is in it
    "head",  # Exchange: the head of its response has come; what is found there stands until the exchange is over
    "exchange",  # Exchange: it is over
    "tool",  # ToolDefinition: each tool of a tools/list answer
    "finish",  # Exchange: the trace is over, and a tracker named this exchange in `finished`
]


# Which messages a rule looks at, finer than `on`; it spares the others the call. Of a request: `retry` where it carries
# inputResponses or requestState. Of a result: `input_required` and `task` by its resultType, `asking` where it has
# inputRequests or requestState beside another. Of an exchange: `stream` or `body`. The coarser sort means the finer ones, too.
type Sort = Literal[
    "request", "retry", "notification", "result", "asking", "input_required", "task", "error", "invalid", "stream", "body"
]


type Era = Literal["modern", "legacy", "both"]


# What a rule is as a function: findings, and what it could not judge.
type Check = Callable[..., Iterable[Finding | Unchecked] | None]


type Level = Literal["must", "should", "may-note"]


type Transport = Literal["http", "stdio"]  # http is each of its forms


ALL_REVISIONS = frozenset(rev.KNOWN)
ALL_TRANSPORTS: frozenset[Transport] = frozenset({"http", "stdio"})


@dataclass(slots=True, frozen=True, kw_only=True)
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
    # `cap:KEY` of the request's clientCapabilities, an `ExchangeFact`, `header:NAME` (lower case) of the request,
    # `headers`: a mirrored header has a problem, `mrtr`: it belongs to a multi round-trip. None: the rule is always called.
    needs: frozenset[str | Fact[Any]] | None = None
    transport: frozenset[str] = ALL_TRANSPORTS  # for which it speaks; what is of headers, statuses or streams is for http only
    hint_on: frozenset[str] = frozenset()  # transports on which it says no more than a hint

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
    needs: Iterable[str | Fact[Any]] | None = None,
    transport: Iterable[Transport] = ALL_TRANSPORTS,
    hint_on: Iterable[Transport] = (),
) -> Callable[[C], C]:
    """Mark a function as a rule. The function stays callable as it is; its Rule hangs on it as `__rule__`. ValueError, naming the
    rule, the argument and the words that it knows, for a declaration by which the rule would never be called, or would fail."""

    def mark(check: C) -> C:
        declared = Rule(
            id=id,
            name=name,
            title=title,
            check=check,
            on=on if isinstance(on, tuple) else (on,),
            level=level,
            party=party,
            era=era,
            severity=severity,
            spec=spec,
            sep=sep,
            versions=frozenset(_several("versions", versions, id)),
            methods=frozenset(_several("methods", methods, id)) if methods is not None else None,
            sorts=frozenset(_several("sorts", sorts, id)) if sorts is not None else None,
            once=once,
            structural=structural,
            malformed=malformed,
            streamable=streamable,
            always=always,
            kinds=frozenset(_several("kinds", kinds, id)) if kinds is not None else None,
            needs=frozenset(_several("needs", needs, id)) if needs is not None else None,
            transport=frozenset(_several("transport", transport, id)),
            hint_on=frozenset(_several("hint_on", hint_on, id)),
        )
        check_declaration(declared)
        check.__rule__ = declared  # type: ignore[attr-defined]
        return check

    return mark


def _several[T](argument: str, words: Iterable[T], id: str) -> Iterable[T]:
    """A text in place of a tuple of texts would be taken for its letters."""
    if isinstance(words, str):
        raise ValueError(f'rule {id}: {argument} is the text "{words}", it must be a tuple: ("{words}",)')
    return words


def check_declaration(declared: Rule) -> None:
    """ValueError for a rule whose declaration has a word that nothing knows, or words that never meet."""
    at = f"rule {declared.id}"
    if not re.fullmatch("[A-Z]{3,}[0-9]+", declared.id):
        raise ValueError(f"{at}: id must be three or more capitals (the family) and digits, as in ACME001")
    if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", declared.name):
        raise ValueError(f"{at}: name {declared.name!r} must be words in lower case with hyphens between them")
    if not declared.transport:
        raise ValueError(f"{at}: transport is empty; it must be one of {_listed(_TRANSPORTS)}")
    if not declared.on:
        raise ValueError(f"{at}: on is empty; it must be one of {_listed(_ON)}")
    for argument, words, known in (
        ("on", declared.on, _ON),
        ("level", (declared.level,), _LEVELS),
        ("party", (declared.party,), _PARTIES),
        ("era", (declared.era,), _ERAS),
        ("severity", (declared.severity,), _SEVERITIES),
        ("once", () if declared.once is None else (declared.once,), _ONCE),
        ("sorts", declared.sorts or (), _SORTS),
        ("kinds", declared.kinds or (), _KINDS),
        ("versions", declared.versions, sorted(ALL_REVISIONS)),
        ("transport", declared.transport, _TRANSPORTS),
        ("hint_on", declared.hint_on, _TRANSPORTS),
    ):
        for word in words:
            if word not in known:
                raise ValueError(f"{at}: {argument} has {word!r}, it must be one of {_listed(known)}")
    for method in declared.methods or ():
        if not isinstance(method, str) or not method or any(c.isspace() for c in method):
            raise ValueError(f"{at}: methods has {method!r}, it must be the name of a method, as in tools/call")
    for need in declared.needs or ():
        _check_need(at, need, declared.on)
    others = [on for on in declared.on if on not in _OF_MESSAGES and on != "exchange"]
    if declared.sorts is not None and others:
        raise ValueError(f"{at}: sorts never meets on={others[0]!r}; it is for {_listed([*_OF_MESSAGES, 'exchange'])}")
    if declared.kinds is not None and declared.kinds != {"mcp"} and not declared.always:
        raise ValueError(f"{at}: kinds other than mcp need always=True: other rules are scoped by the era of an MCP request")


def _check_need(at: str, need: str | Fact[Any], on: tuple[On, ...]) -> None:
    if isinstance(need, Fact):
        if not isinstance(need, ExchangeFact):
            raise ValueError(f"{at}: needs has {need!r}, it must be a fact of an exchange")
        if need.name.startswith("_"):
            raise ValueError(f"{at}: needs has {need!r}, which is private to its tracker")
        return
    where, colon, key = need.partition(":") if isinstance(need, str) else (need, "", "")
    if where not in _NEEDS:
        raise ValueError(f"{at}: needs has {need!r}, it must begin with one of {_listed(_NEEDS)}")
    if where in _WITHOUT_KEY:
        if colon:
            raise ValueError(f"{at}: needs has {need!r}, {where} stands without a key")
        return
    if not key:
        raise ValueError(f"{at}: needs has {need!r}, it must name a key, as in {where}:KEY")
    if where == "header" and key != key.lower():
        raise ValueError(f"{at}: needs has {need!r}, the names of headers stand in lower case: {need.lower()!r}")
    others = [one for one in on if one not in _OF_MESSAGES]
    if where in _IN_MESSAGES and others:
        raise ValueError(f"{at}: needs has {need!r}, which no fact of on={others[0]!r} has; it is for {_listed(_OF_MESSAGES)}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


_ON: tuple[str, ...] = get_args(On.__value__)
_OF_MESSAGES = ("request", "notification", "reply", "answer", "push", "message")  # facts that are a Message
_SORTS: tuple[str, ...] = get_args(Sort.__value__)
_LEVELS: tuple[str, ...] = get_args(Level.__value__)
_ERAS: tuple[str, ...] = get_args(Era.__value__)
_SEVERITIES: tuple[str, ...] = get_args(Severity.__value__)
_KINDS: tuple[str, ...] = get_args(Kind.__value__)
_TRANSPORTS: tuple[str, ...] = get_args(Transport.__value__)
_PARTIES = ("client", "server", "either")
_ONCE = ("endpoint", "client")
_IN_MESSAGES = ("meta", "params", "result", "cap")  # needs that only a message can meet
_WITHOUT_KEY = ("headers", "mrtr")
_NEEDS = (*_IN_MESSAGES, "fact", "header", *_WITHOUT_KEY)


def evidence(where: str, value: Any, expected: Any = None) -> Evidence:
    """One place on the wire as evidence: made one line, cut at 200 characters, secrets masked by header name or member name.
    None as `value` means that the thing is absent."""
    return Evidence(where, _shown(where, value), None if expected is None else _shown(where, expected))


_LONGEST = 200  # characters of one value


def _shown(where: str, value: Any) -> str:
    if value is None:
        return "(absent)"
    if not isinstance(value, str):  # secrets are strings
        return shown(dumps(hidden_head("", value), most=_LONGEST + 1, shown=hidden_head), _LONGEST)
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
