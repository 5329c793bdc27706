"""Runs rules on the facts of a trace and writes what they find on the exchanges."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from mcp_wiretap.rule.api import On, Rule, matches
from mcp_wiretap.rule.containment import is_interrupt, told
from mcp_wiretap.rule.packs import find_rules
from mcp_wiretap.rule.scope import Cap, endpoint_matches, scope_of
from mcp_wiretap.trace import sides
from mcp_wiretap.trace.facts import Fact
from mcp_wiretap.trace.finding import RANK, Evidence, Finding, Party, Silence, Unchecked
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.pace import breathe, paced
from mcp_wiretap.wire.secret import concealed

_MOST_FIRST = 20_000  # endpoints and clients for which a once-rule has spoken
_MOST_HEARD = 1_000  # findings that one rule is asked for about one fact; fewer where the exchange has more than it keeps
_LEAST_HEARD = 20


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
    _by_head: frozenset[str] | None = field(init=False)  # the methods whose responses are judged by their heads; None: all

    def __post_init__(self) -> None:
        judging = [found for found in self.rules if "head" in found.on]
        every = any(found.methods is None for found in judging)
        self._by_head = None if every else frozenset().union(*(found.methods or () for found in judging))

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

    def responded(self, exchange: Exchange) -> bool:
        if self._by_head is not None and exchange.method not in self._by_head:
            return False
        added = False
        for side in sides.of(exchange):
            added |= self._run("head", side, side, side.method)
        exchange.judged_by_head = exchange.judged_by_head or added
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
            definitions = exchange.definitions
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
        if exchange.judged_by_head:
            return self.again(exchange)
        added = False
        for side in sides.of(exchange):
            added |= self._run("exchange", side, side, side.method)
        return added

    def again(self, exchange: Exchange) -> bool:
        """Judge all of an exchange anew."""
        exchange.findings.clear()
        exchange.mildest, exchange.judged_by_head = -1, False
        self._uncount(exchange)
        if exchange.kind == "other":
            return False
        added = False
        for side in sides.of(exchange):
            added |= self._whole(side)
        return added

    def _whole(self, exchange: Exchange) -> bool:
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
            added |= self._run("exchange", exchange, exchange, exchange.method)
        elif exchange.status is not None and self._run("head", exchange, exchange, exchange.method):
            added = exchange.judged_by_head = True
        if exchange.finished:
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
        if sender is None:
            sender = "client" if on in _BY_CLIENT else "server"
        breathe()
        added = False
        table = _NOTHING
        try:
            table = self._table(on, exchange, method, sender, _sort(on, fact))
            entries = table.entries(fact, exchange) if table.needing else table.always
        except Exception as error:  # a rule that was not made by `rule()`, or a fact of odd shape
            _fault(exchange, f"rule table (on={on}, method={method})", error)
            entries = table.entries(fact, exchange, careful=True)
        if exchange.judged is not None:
            entries = [entry for entry in entries if entry.rule.party in (exchange.judged, "either")]
        for _, check, found, cap, note in paced(entries, 1) if exchange.large else entries:
            try:
                findings = check(fact)
                heard = 0
                for finding in findings or ():
                    heard += 1  # noqa: SIM113 - a generator is run inside this frame only where it is looped over itself
                    _check_form(finding)
                    if isinstance(finding, Unchecked):
                        _leave(exchange, finding)
                    else:
                        added |= self._add(found, cap, note, finding, exchange, sender)
                    if heard >= _MOST_HEARD - exchange.suppressed and heard >= _LEAST_HEARD:
                        _leave(exchange, Unchecked(f"all that {found.id} finds there", f"it was stopped after {heard} findings"))
                        if (close := getattr(findings, "close", None)) is not None:
                            close()
                        break
            except BaseException as error:  # a rule's fault is ours to report, never the traffic's to suffer
                if is_interrupt(error):
                    raise
                _fault(exchange, f"rule {found.id}", error)
        return added

    def _add(self, found: Rule, cap: Cap, note: str, finding: Finding, exchange: Exchange, sender: Party) -> bool:
        severity = finding.severity or found.severity
        if RANK[severity] > RANK[found.severity]:
            severity = found.severity
        if cap is not None and RANK[severity] > RANK[cap]:
            severity = cap
            finding.message = f"{note}{finding.message}"
        finding.severity = severity
        if finding.party is None:
            finding.party = sender if found.party == "either" else found.party
        if exchange.judged is not None and finding.party != exchange.judged:
            return False  # of this side of the exchange only the other party is judged
        finding.rule, finding.flow, finding.spec = found.id, exchange.flow, found.spec
        if found.once is not None or finding.once is not None:
            who = f" {exchange.client_info}" if found.once == "client" else ""
            key = f"{exchange.endpoint.url}{who} {finding.once or ''}"
            if self._first.setdefault((found.id, key), exchange.flow) != exchange.flow:
                return False
            if len(self._first) > _MOST_FIRST:  # client names and endpoints are the other side's choice
                del self._first[next(iter(self._first))]
        if self.silences and self._is_silenced(finding, exchange):
            return False
        if len(exchange.findings) >= self.most:
            self.suppressed += 1
            exchange.suppressed += 1
            if not _make_room(exchange, RANK[severity]):
                return False
        finding.message = concealed(finding.message)
        for place in finding.evidence:
            place.value = concealed(place.value)
            place.expected = concealed(place.expected) if place.expected is not None else None
        exchange.findings.append(finding)
        return True

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
        for side in {exchange, *sides.of(exchange)}:
            self.suppressed -= side.suppressed
            side.suppressed = 0

    def _table(self, on: On, exchange: Exchange, method: str | None, sender: Party, sort: str) -> "_Table":
        """The rules that apply to such a fact, with the most that each may say. Computed once per situation."""
        if exchange.kind == "other":
            return _NOTHING
        if method is not None and len(method) > 200:
            method = "(long)"  # no rule knows it, and it is kept in a key
        endpoint, claim = exchange.endpoint, exchange.claim
        server = "modern" if endpoint.modern else ("legacy" if endpoint.legacy or exchange.era == "legacy" else "unknown")
        transport = exchange.transport
        key = (on, sort, sender, exchange.kind, claim.kind, server, exchange.era, exchange.revision, transport, method)
        table = self._tables.get(key)
        if table is None:
            chosen = []
            for index, found in enumerate(self.rules):
                try:
                    scope = _scope_for(found, on, exchange, method, server, sender, sort)
                    if scope is not None:
                        chosen.append(_Entry(index, found.check, found, *scope))
                except Exception as error:  # it was not made by `rule()`
                    _fault(exchange, f"rule {found.id}", error)
                    continue
            table = _Table.of(chosen)
            if len(self._tables) > 4_096:  # methods and revisions are the other side's choice
                self._tables.clear()
            self._tables[key] = table
        return table


def _scope_for(
    found: Rule, on: On, exchange: Exchange, method: str | None, server: str, sender: Party, sort: str
) -> tuple[Cap, str] | None:
    """The most that a rule may say about such a fact, and the words before it; None where it is not called."""
    if on not in found.on or (found.methods is not None and method not in found.methods):
        return None
    if found.sorts is not None and not found.sorts.intersection(_MEANT.get(sort, (sort,))):
        return None
    if found.streamable and exchange.over_http_sse:
        return None
    return scope_of(found, exchange, server, sender)


class _Entry(NamedTuple):
    """A rule that applies to a sort of fact: its place in the book, what it calls, the most that it may say, and the words before
    it."""

    place: int
    check: Callable[[Any], Any]
    rule: Rule
    cap: Cap
    note: str


@dataclass(slots=True, frozen=True)
class _Table:
    """The rules for one situation: those that are always called, and the others by what they need (where, key)."""

    always: list[_Entry]
    needing: dict[str, dict[str | Fact[Any], list[_Entry]]]
    _known: dict[tuple[tuple[str, str | Fact[Any]], ...], list[_Entry]] = field(
        default_factory=dict
    )  # needs that are met -> who is called

    @classmethod
    def of(cls, entries: list[_Entry]) -> "_Table":
        needing: dict[str, dict[str | Fact[Any], list[_Entry]]] = {}
        for entry in entries:
            for need in entry.rule.needs or ():
                where, key = _place(need)
                needing.setdefault(where, {}).setdefault(key, []).append(entry)
        return cls([entry for entry in entries if entry.rule.needs is None], needing)

    def entries(self, fact: Any, exchange: Exchange, *, careful: bool = False) -> list[_Entry]:
        """Who is called for this fact, in the order of the book. `careful`: needs that cannot be looked for are not met."""
        if careful:
            met = tuple(
                (where, key) for where, by_key in self.needing.items() for key in by_key if _meets(where, key, fact, exchange)
            )
        else:
            found: list[tuple[str, str | Fact[Any]]] = []
            for where, by_key in self.needing.items():
                keys = _KEYS[where](fact, exchange)
                if keys:
                    found += [(where, key) for key in by_key if key in keys]
            if not found:
                return self.always
            met = tuple(found)
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


def _meets(where: str, key: str | Fact[Any], fact: Any, exchange: Exchange) -> bool:
    try:
        keys: Any = _KEYS[where](fact, exchange)
        return key in keys
    except Exception:  # it has been told
        return False


_MOST_KNOWN = 256


_NOTHING = _Table([], {})


type _Container = Mapping[str, Any] | Collection[str] | Collection[Fact[Any]]


def _place(need: str | Fact[Any]) -> tuple[str, str | Fact[Any]]:
    """Return where a need is looked for, and its key there."""
    if isinstance(need, Fact):
        return "fact", need
    where, _, key = need.partition(":")
    return where, key


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
    "fact": lambda fact, exchange: exchange.facts.names,
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


_BY_CLIENT = frozenset({"request", "notification", "reply", "post", "head", "exchange", "finish"})


def _leave(exchange: Exchange, what: Unchecked) -> None:
    if what not in exchange.unchecked and len(exchange.unchecked) < 50:
        exchange.unchecked.append(what)


def _make_room(exchange: Exchange, rank: int) -> bool:
    """Drop the mildest finding, the newest of them, for one that is worse; False where none is milder."""
    if exchange.mildest >= rank:
        return False
    findings = exchange.findings
    place = min(range(len(findings)), key=lambda number: (RANK[findings[number].severity or "info"], -number))
    exchange.mildest = RANK[findings[place].severity or "info"]
    if exchange.mildest >= rank:
        return False
    del findings[place]
    return True


def _check_form(found: Finding | Unchecked) -> None:
    """TypeError for what cannot be shown: a report of all that was found must not fail by one rule's slip."""
    if isinstance(found, Unchecked):
        if not (isinstance(found.what, str) and isinstance(found.why, str)):
            raise TypeError("it yielded an Unchecked that holds no text")
        return
    if not isinstance(found, Finding):
        raise TypeError(f"it yielded a {type(found).__name__}, not a Finding")
    if not isinstance(found.message, str):
        raise TypeError("the message of its finding is no text")
    if found.severity not in (None, *RANK) or found.party not in (None, "client", "server"):
        raise TypeError(f"its finding has the severity {found.severity!r} and the party {found.party!r}")
    for one in found.evidence:
        if not (isinstance(one, Evidence) and isinstance(one.where, str) and isinstance(one.value, str)):
            raise TypeError("its finding has evidence that was not made by evidence()")
        if one.expected is not None and not isinstance(one.expected, str):
            raise TypeError("its finding has evidence that was not made by evidence()")
    if not all(isinstance(flow, str) for flow in found.related):
        raise TypeError("its finding is related to what is no id of a flow")


def _fault(exchange: Exchange, where: str, error: BaseException) -> None:
    entry = (where[:200], told(error))
    if entry not in exchange.faults and len(exchange.faults) < 20:
        exchange.faults.append(entry)
