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
- **The scope.** `era`, `versions` and `party` decide for which traffic it holds. That is settled here (`_scope`), by what the
  request declares and what the server has shown: a rule does not ask for the era.
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

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from operator import itemgetter
from types import ModuleType
from typing import Any, Literal, NamedTuple

from mcp_wiretap.trace.finding import RANK, Evidence, Finding, Party, Severity, Silence, Unchecked
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import ENTERED, SECRET_HEADERS, SECRET_MEMBERS, STAND_INS, concealed, hidden, is_secret, mask, shown

__all__ = [
    "Evidence", "Finding", "On", "Rule", "RuleBook", "Severity", "Silence", "Unchecked", "evidence", "find_rules", "load_module",
    "rule", "rules_of",
]  # fmt: skip

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
type _Check = Callable[..., Iterator[Finding | Unchecked] | None]
type Level = Literal["must", "should", "may-note"]

ALL_REVISIONS = frozenset(rev.KNOWN)


@dataclass(slots=True, frozen=True)
class Rule:
    """A rule with its metadata. `severity` is the ceiling: a finding may be milder, never harsher."""

    id: str
    name: str
    title: str
    check: _Check
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


def rule(
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
) -> Callable[[_Check], _Check]:
    """Mark a function as a rule. The function stays callable as it is; its Rule hangs on it as `__rule__`."""

    def mark(check: _Check) -> _Check:
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


def rules_of(module: ModuleType) -> list[Rule]:
    """The rules defined in a module, in order of definition."""
    found = [getattr(thing, "__rule__", None) for thing in vars(module).values()]
    return [r for r in found if isinstance(r, Rule) and r.check.__module__ == module.__name__]


def load_module(module: ModuleType) -> list[Rule]:
    """The rules of a module and, where it is a package, of its submodules."""
    rules = rules_of(module)
    if hasattr(module, "__path__"):
        for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda i: i.name):
            rules += rules_of(importlib.import_module(f"{module.__name__}.{info.name}"))
    return rules


def load_file(path: str) -> list[Rule]:
    """The rules of a plain Python file. ValueError, naming file and reason, where it cannot be run or has no rule in it."""
    name = "mcp_wiretap_rules_of_file_" + re.sub(r"\W", "_", path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file; a rule file ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    rules = rules_of(module)
    if not rules:
        raise ValueError(f"{path} has no rule: mark a function with @rule from mcp_wiretap.rule")
    return rules


def find_rules(files: Iterable[str] = ()) -> list[Rule]:
    """All rules of the installed packs (entry point group `mcp_wiretap.rules`) and of plain Python files, sorted by id.
    ValueError for an id used twice, and for a file that is no rule file."""
    rules: dict[str, Rule] = {}
    packs = [(f"entry point {entry.name}", load_module(entry.load())) for entry in entry_points(group="mcp_wiretap.rules")]
    for origin, found in [*packs, *((path, load_file(path)) for path in files)]:
        for one in found:
            if one.id in rules:
                raise ValueError(f"rule id {one.id} is defined twice (again in {origin})")
            rules[one.id] = one
    return [rules[key] for key in sorted(rules)]


def left_out() -> dict[str, str]:
    """Ids that the installed packs know of and have no rule for, with the reason (`LEFT_OUT` of a pack), sorted."""
    found: dict[str, str] = {}
    for entry in entry_points(group="mcp_wiretap.rules"):
        table = getattr(entry.load(), "LEFT_OUT", None)
        if isinstance(table, dict):
            found |= {str(id): str(why) for id, why in table.items()}
    return dict(sorted(found.items()))


def matches(found: Rule, words: Iterable[str]) -> bool:
    """Whether a rule is meant by one of the words: an id (HDR006), a family (HDR), a name (name-header-mismatch) or a party
    (client, server)."""
    return any(w in (found.id, found.family, found.name, found.party) for w in words)


type _Cap = Severity | None
_MOST_FIRST = 20_000  # endpoints and clients for which a once-rule has spoken


@dataclass(slots=True)
class RuleBook:
    """The rules at work on one trace. It is the inspector's judge: call it with facts, it writes findings on exchanges."""

    rules: list[Rule]
    silences: list[Silence] = field(default_factory=list)
    most: int = 200  # findings of one exchange
    silenced: dict[Silence, int] = field(default_factory=dict)
    suppressed: int = 0  # findings past `most`
    _tables: dict[tuple[Any, ...], "_Table"] = field(default_factory=dict)
    _first: dict[tuple[str, str], str] = field(default_factory=dict)  # once-rules: (rule, key) -> flow

    @classmethod
    def of(
        cls,
        rules: Iterable[Rule] | None = None,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        silences: Iterable[Silence] = (),
    ) -> "RuleBook":
        """The book of all installed rules (or of `rules`), narrowed by ids, families, names or parties."""
        select, ignore = list(select), list(ignore)
        chosen = [
            r for r in (find_rules() if rules is None else rules) if (not select or matches(r, select)) and not matches(r, ignore)
        ]
        return cls(chosen, list(silences))

    # The inspector's hooks. Each returns whether a finding was added.

    def requested(self, exchange: Exchange) -> bool:
        added = self._run("post", exchange, exchange, exchange.method)
        for message in exchange.sent:
            added |= self._sent(message)
        return added

    def said(self, message: Message) -> bool:
        return self._said(message, None)

    def _said(self, message: Message, only: Exchange | None) -> bool:
        """`only`: judge anew what is said about this exchange; an answer to another one is judged there."""
        exchange, kind = message.exchange, message.rpc.kind
        added = False
        if message.request is not None and kind in ("result", "error"):
            owner = message.request.exchange if not message.request.exchange.released else exchange
            if only is None or owner is only:
                added |= self._run("answer", message, owner, message.request.method)
            definitions = exchange.facts.get("tools")
            if definitions:
                for definition in definitions:
                    if definition.message is message:
                        added |= self._run("tool", definition, exchange, "tools/list")
        elif kind != "invalid":
            added |= self._run("push", message, exchange, message.method)
        return self._run("message", message, exchange, message.method, message.party) | added

    def event(self, item: StreamItem) -> bool:
        return self._run("event", item, item.exchange, item.exchange.method)

    def ended(self, exchange: Exchange) -> bool:
        return self._run("exchange", exchange, exchange, exchange.method)

    def again(self, exchange: Exchange) -> bool:
        """Judge all of an exchange anew."""
        exchange.findings.clear()
        self._uncount(exchange)
        if exchange.kind == "other":
            return False
        added = self.requested(exchange)
        if exchange.stream is not None:
            for item in exchange.stream.items:
                for message in item.messages:
                    added |= self._said(message, exchange)
                added |= self.event(item)
        else:
            for message in exchange.received:
                added |= self._said(message, exchange)
        if exchange.late_answer is not None:
            added |= self._run("answer", exchange.late_answer, exchange, exchange.method)
        if exchange.over:
            added |= self.ended(exchange)
        if exchange.facts.get("finished"):
            added |= self._run("finish", exchange, exchange, exchange.method)
        return added

    def _sent(self, message: Message) -> bool:
        exchange, kind = message.exchange, message.rpc.kind
        added = False
        if kind == "request":
            added = self._run("request", message, exchange, message.method)
        elif kind == "notification":
            added = self._run("notification", message, exchange, message.method)
        elif kind in ("result", "error"):
            method = message.request.method if message.request is not None else None
            added = self._run("reply", message, exchange, method)
        return self._run("message", message, exchange, message.method, "client") | added

    def _run(self, on: On, fact: Any, exchange: Exchange, method: str | None, sender: Party | None = None) -> bool:
        before = len(exchange.findings)
        if sender is None:
            sender = "client" if on in _BY_CLIENT else "server"
        table = self._table(on, exchange, method, sender, _sort(on, fact))
        entries = table.entries(fact, exchange) if table.needing else table.always
        for _, found, cap, note in entries:
            try:
                for finding in found.check(fact) or ():
                    if isinstance(finding, Unchecked):
                        _leave(exchange, finding)
                    else:
                        self._add(found, cap, note, finding, exchange, sender)
            except Exception as error:  # a rule's fault is ours to report, never the traffic's to suffer
                _fault(exchange, found, error)
        return len(exchange.findings) > before

    def _add(self, found: Rule, cap: _Cap, note: str, finding: Finding, exchange: Exchange, sender: Party) -> None:
        severity = finding.severity or found.severity
        if RANK[severity] > RANK[found.severity]:
            severity = found.severity
        if cap is not None and RANK[severity] > RANK[cap]:
            severity = cap
            finding.message = f"{note}{finding.message}"
        finding.severity = severity
        if finding.party is None:
            finding.party = sender if found.party == "either" else found.party
        finding.rule, finding.flow, finding.spec = found.id, exchange.flow, found.spec
        if found.once is not None or finding.once is not None:
            who = f" {exchange.client_info}" if found.once == "client" else ""
            key = f"{exchange.endpoint.url}{who} {finding.once or ''}"
            if self._first.setdefault((found.id, key), exchange.flow) != exchange.flow:
                return
            if len(self._first) > _MOST_FIRST:  # client names and endpoints are the other side's choice
                del self._first[next(iter(self._first))]
        if self.silences and self._is_silenced(finding, exchange):
            return
        if len(exchange.findings) >= self.most:
            self.suppressed += 1
            exchange.suppressed += 1
            return
        finding.message = concealed(finding.message)
        for place in finding.evidence:
            place.value = concealed(place.value)
            place.expected = concealed(place.expected) if place.expected is not None else None
        exchange.findings.append(finding)

    def _is_silenced(self, finding: Finding, exchange: Exchange) -> bool:
        for silence in self.silences:
            family = finding.rule.rstrip("0123456789")
            if silence.rule in (finding.rule, family, "*") and endpoint_matches(silence.endpoint, exchange.endpoint.url):
                self.silenced[silence] = self.silenced.get(silence, 0) + 1
                exchange.silenced[silence] = exchange.silenced.get(silence, 0) + 1
                return True
        return False

    def _uncount(self, exchange: Exchange) -> None:
        """What was silenced or suppressed of an exchange that is judged anew is counted anew."""
        for silence, count in exchange.silenced.items():
            self.silenced[silence] -= count
        exchange.silenced.clear()
        self.suppressed -= exchange.suppressed
        exchange.suppressed = 0

    def _table(self, on: On, exchange: Exchange, method: str | None, sender: Party, sort: str) -> "_Table":
        """The rules that apply to such a fact, with the most that each may say. Computed once per situation."""
        if exchange.kind == "other":
            return _NOTHING
        if method is not None and len(method) > 200:
            method = "(long)"  # no rule knows it, and it is kept in a key
        endpoint, claim = exchange.endpoint, exchange.claim
        server = "modern" if endpoint.modern else ("legacy" if endpoint.legacy or exchange.era == "legacy" else "unknown")
        transport = "http+sse" if exchange.over_http_sse else ""
        key = (on, sort, sender, exchange.kind, claim.kind, server, exchange.era, exchange.revision, transport, method)
        table = self._tables.get(key)
        if table is None:
            chosen = []
            for index, found in enumerate(self.rules):
                if on not in found.on or (found.methods is not None and method not in found.methods):
                    continue
                if found.sorts is not None and not found.sorts.intersection(_MEANT.get(sort, (sort,))):
                    continue
                if transport and found.streamable:
                    continue
                scope = _scope(found, exchange, server, sender)
                if scope is not None:
                    chosen.append(_Entry(index, found, *scope))
            table = _Table.of(chosen)
            if len(self._tables) > 4_096:  # methods and revisions are the other side's choice
                self._tables.clear()
            self._tables[key] = table
        return table


class _Entry(NamedTuple):
    """A rule that applies to a sort of fact: its place in the book, the most that it may say, and the words before it."""

    place: int
    rule: Rule
    cap: _Cap
    note: str


@dataclass(slots=True, frozen=True)
class _Table:
    """The rules for one situation: those that are always called, and the others by what they need (where, key)."""

    always: list[_Entry]
    needing: dict[str, dict[str, list[_Entry]]]
    _known: dict[tuple[tuple[str, str], ...], list[_Entry]] = field(default_factory=dict)  # needs that are met -> who is called

    @classmethod
    def of(cls, entries: list[_Entry]) -> "_Table":
        needing: dict[str, dict[str, list[_Entry]]] = {}
        for entry in entries:
            for need in entry.rule.needs or ():
                where, _, key = need.partition(":")
                needing.setdefault(where, {}).setdefault(key, []).append(entry)
        return cls([entry for entry in entries if entry.rule.needs is None], needing)

    def entries(self, fact: Any, exchange: Exchange) -> list[_Entry]:
        """Who is called for this fact, in the order of the book."""
        met = tuple(
            (where, key)
            for where, by_key in self.needing.items()
            if (keys := _KEYS[where](fact, exchange))
            for key in by_key
            if key in keys
        )
        if not met:
            return self.always
        entries = self._known.get(met)
        if entries is None:
            chosen = [*self.always, *(entry for where, key in met for entry in self.needing[where][key])]
            entries = sorted({entry.place: entry for entry in chosen}.values(), key=itemgetter(0))
            if len(self._known) >= _MOST_KNOWN:  # what a message holds is the other side's choice
                self._known.clear()
            self._known[met] = entries
        return entries


_MOST_KNOWN = 256
_NOTHING = _Table([], {})


type _Container = Mapping[str, Any] | Collection[str]


def _of_message(member: str) -> Callable[[Any, Exchange], _Container]:
    def keys(fact: Any, exchange: Exchange) -> _Container:
        holder = getattr(fact.rpc, member)
        return holder if isinstance(holder, dict) else ()

    return keys


def _declared(fact: Any, exchange: Exchange) -> _Container:
    declared = fact.rpc.meta.get(rev.CLIENT_CAPABILITIES)
    return declared if isinstance(declared, dict) else ()


# Where a need is looked for. Needs of messages are met by messages only: rules about other facts have none of them.
_KEYS: dict[str, Callable[[Any, Exchange], _Container]] = {
    "meta": _of_message("meta"),
    "params": _of_message("params"),
    "result": _of_message("result"),
    "cap": _declared,
    "fact": lambda fact, exchange: exchange.facts,
    "header": lambda fact, exchange: exchange.request_fields.index,
    "headers": lambda fact, exchange: ("",) if any(check.problems for check in exchange.header_checks) else (),
    "mrtr": lambda fact, exchange: ("",) if exchange.mrtr is not None else (),
}


_MEANT = {
    "retry": ("retry", "request"),
    "task": ("task", "result"),
    "asking": ("asking", "result"),
    "input_required": ("input_required", "asking", "result"),
}


def _sort(on: On, fact: Any) -> str:
    """The sort of a fact, as `Rule.sorts` names it; "" where the subscription says all."""
    if on in ("answer", "message", "push", "request", "reply"):
        rpc = fact.rpc
        if rpc.kind == "result" and isinstance(rpc.result, dict):
            kind = rpc.result.get("resultType")
            if kind == "input_required" or kind == "task":
                return str(kind)
            return "asking" if "inputRequests" in rpc.result or "requestState" in rpc.result else "result"
        if rpc.kind == "request" and isinstance(rpc.params, dict):
            return "retry" if "inputResponses" in rpc.params or "requestState" in rpc.params else "request"
        return str(rpc.kind)
    if on == "exchange":
        return "stream" if fact.stream is not None else "body"
    return ""


_BY_CLIENT = frozenset({"request", "notification", "reply", "post", "exchange", "finish"})


def _leave(exchange: Exchange, what: Unchecked) -> None:
    if what not in exchange.unchecked and len(exchange.unchecked) < 50:
        exchange.unchecked.append(what)


def _fault(exchange: Exchange, found: Rule, error: Exception) -> None:
    entry = (f"rule {found.id}", f"{type(error).__name__}: {error}")
    if entry not in exchange.faults and len(exchange.faults) < 20:
        exchange.faults.append(entry)


_NO_CAP: tuple[_Cap, str] = (None, "")
_IF_MODERN: tuple[_Cap, str] = ("info", "if modern: ")
_UNKNOWN_VERSION: tuple[_Cap, str] = ("info", "version not known to this tool: ")
_MALFORMED: tuple[_Cap, str] = ("info", "if modern: ")
_UNKNOWN_REVISION: tuple[_Cap, str] = ("info", "revision not known: ")


def _scope(found: Rule, exchange: Exchange, server: str, sender: Party) -> tuple[_Cap, str] | None:
    """Whether the rule applies, and the cap on its severity (catalogue ERA023): client rules follow the request's own claim,
    server rules follow the evidence that the server gave. `sender` decides for rules about either party."""
    if found.kinds is not None and exchange.kind not in found.kinds:
        return None
    if exchange.kind != "mcp":  # oauth and preflight: their rules are marked `always`
        return _NO_CAP if found.always else None
    if found.always:
        return _NO_CAP
    claim = exchange.claim
    if found.party != "either":
        sender = found.party
    if claim.modern:
        return _scope_of_modern(found, sender, exchange, server)
    if claim.kind == "legacy-envelope":
        return _NO_CAP if found.era == "both" else None
    if found.era == "modern":
        return None
    if exchange.era == "legacy" or claim.kind == "legacy":
        if exchange.revision is None or exchange.revision not in ALL_REVISIONS:
            return _NO_CAP if found.versions == ALL_REVISIONS else _UNKNOWN_REVISION
        return _NO_CAP if exchange.revision in found.versions else None
    if found.era == "both":
        return _NO_CAP if found.versions == ALL_REVISIONS or exchange.revision in found.versions else _UNKNOWN_REVISION
    return None


def _scope_of_modern(found: Rule, sender: str, exchange: Exchange, server: str) -> tuple[_Cap, str] | None:
    if found.era == "legacy":
        return None
    if "2026-07-28" not in found.versions:
        return None
    kind = exchange.claim.kind
    if found.era == "both" and sender == "server" and server != "modern":
        # What holds in every revision holds whatever the server is; what does not needs evidence.
        return _NO_CAP if found.versions == ALL_REVISIONS else _IF_MODERN
    if sender == "server":
        if server == "legacy":
            return None
        if server == "unknown":
            return _IF_MODERN
    if kind == "modern-unknown" and not found.structural:
        return _UNKNOWN_VERSION
    if kind == "modern-malformed" and sender == "client" and not found.malformed and found.era == "modern":
        return _MALFORMED
    return _NO_CAP


def endpoint_matches(pattern: str, url: str) -> bool:
    """Whether an endpoint URL is meant by `[SCHEME://]HOST[:PORT][/PATH]`, `*` allowed (mcp_era, silences). "" means all."""
    if pattern in ("", "*"):
        return True
    scheme, _, rest = pattern.rpartition("://")
    host, slash, path = rest.partition("/")
    parts = uri.split(url)
    if scheme and scheme.lower() != parts.scheme:
        return False

    def fits(want: str, have: str) -> bool:
        return re.fullmatch(".*".join(map(re.escape, want.split("*"))), have, re.I | re.S) is not None

    netloc = parts.netloc
    has_port = re.search(r":[0-9*]+$", host) is not None
    have = netloc if has_port else re.sub(r":[0-9]+$", "", netloc)
    return fits(host, have) and (not slash or fits("/" + path, parts.path))
