"""The books of one trace: its exchanges in order, and counts that go along with it. Work is in proportion to what has changed.

The inspector notes what it touches in `Inspector.watched`; `catch_up` takes that over, as much at a time as the caller allows.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcp_wiretap.trace.finding import RANK, Finding
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Endpoint, Exchange

FLOWS_OF_A_GROUP = 500  # flows that a group of findings remembers; the count goes on
ROUNDS = 300  # of one operation that its row is made of: the first ones and the last ones
STARTS = 240  # newest request times of one endpoint, for its rate


@dataclass(slots=True)
class Group:
    """Findings of one rule about one party, with one severity."""

    rule: str
    party: str
    severity: str
    count: int = 0
    first: float = 0.0
    last: float = 0.0
    flows: dict[str, None] = field(default_factory=dict)
    endpoints: dict[str, int] = field(default_factory=dict)  # URL -> findings

    @property
    def key(self) -> str:
        return f"{self.rule}-{self.party}-{self.severity}"


@dataclass(slots=True)
class EndpointTally:
    """Counts of one endpoint."""

    endpoint: Endpoint
    flows: int = 0
    severities: dict[str, int] = field(default_factory=lambda: {"error": 0, "warning": 0, "info": 0})
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=STARTS))
    expectation_broken: str = ""  # flow of an ERA025
    open_streams: int = 0


@dataclass(slots=True)
class _Entry:
    """What an exchange had brought to the counts when it was looked at last."""

    exchange: Exchange
    url: str
    counted: bool = False
    findings: tuple[tuple[str, str, str], ...] = ()
    waiting: bool = False
    open_stream: bool = False
    heads: bool = False  # it has a row of its own in Protocol


class Ledger:
    """The books of one Inspector. `number` tells traces apart where there are several. Only one ledger can go along with an
    inspector; another one, that looks once, has `watch` False."""

    def __init__(self, inspector: Inspector, number: int = 0, *, watch: bool = True) -> None:
        self.inspector = inspector
        self.number = number
        self.rows: list[Exchange] = []  # what is listed (everything but `other`), by position in the trace
        self.streams: dict[str, None] = {}  # flows of event streams that stand for themselves
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.endpoints: dict[str, EndpointTally] = {}
        self.severities = {"error": 0, "warning": 0, "info": 0}
        self.waiting = 0
        self.open_streams = 0
        self.flows = 0  # all flows seen, those that are not MCP too
        self.listed = 0  # MCP, authorization and preflight
        self.operations = 0
        self.latest = 0.0  # newest time seen
        self._entries: dict[str, _Entry] = {}
        self._others: set[str] = set()
        self._pending: dict[str, Exchange] = dict(inspector.exchanges)
        self._watch = watch
        if watch:
            inspector.watched = {}

    def close(self) -> None:
        """Nobody looks any more."""
        if self._watch:
            self.inspector.watched = None

    def catch_up(self, most: int = 1_000_000) -> dict[str, Exchange]:
        """Take over at most so many changes; returns the exchanges that they were about."""
        watched = self.inspector.watched
        if watched and self._watch:
            self._pending.update(watched)
            watched.clear()
        taken: dict[str, Exchange] = {}
        while self._pending and len(taken) < most:
            flow = next(iter(self._pending))
            taken[flow] = exchange = self._pending.pop(flow)
            self._note(exchange)
        if taken:
            self._forget()
        return taken

    @property
    def behind(self) -> int:
        """How many changes wait to be taken over."""
        return len(self._pending) + len(self.inspector.watched or ())

    def _note(self, exchange: Exchange) -> None:
        flow = exchange.flow
        self.latest = max(self.latest, exchange.ended or exchange.responded or exchange.requested)
        if exchange.kind == "other":
            if flow not in self._others and flow not in self._entries:
                self.flows += 1
                if len(self._others) < 100_000:
                    self._others.add(flow)
            return
        entry = self._entries.get(flow)
        if entry is None:
            if flow not in self.inspector.exchanges:
                return  # it left the memory before anybody looked
            if flow in self._others:
                self._others.discard(flow)
            else:
                self.flows += 1
            entry = self._entries[flow] = _Entry(exchange, exchange.endpoint.url)
            if not self.rows or self.rows[-1].seq < exchange.seq:
                self.rows.append(exchange)
            else:
                insort(self.rows, exchange, key=_seq)
            self.listed += 1
        if exchange.kind in ("mcp", "preflight") or exchange.findings:
            self._count(entry, exchange)
        if exchange.kind == "mcp" and is_stream(exchange):
            self.streams[flow] = None
        conversation = exchange.conversation
        heads = exchange.kind == "mcp" and (conversation is None or conversation.id == flow)
        self.operations += heads - entry.heads
        entry.heads = heads
        self._states(entry, exchange)
        self._findings(entry, exchange)

    def _count(self, entry: _Entry, exchange: Exchange) -> None:
        tally = self.endpoints.get(entry.url)
        if tally is None:
            tally = self.endpoints[entry.url] = EndpointTally(exchange.endpoint)
        if not entry.counted:
            entry.counted = True
            tally.flows += 1
            tally.starts.append(exchange.started)

    def _states(self, entry: _Entry, exchange: Exchange) -> None:
        waiting = exchange.outcome == "input_required" and _is_last(exchange)
        self.waiting += waiting - entry.waiting
        entry.waiting = waiting
        open_stream = not exchange.over and exchange.kind == "mcp" and is_stream(exchange)
        change = open_stream - entry.open_stream
        if change:
            self.open_streams += change
            if (tally := self.endpoints.get(entry.url)) is not None:
                tally.open_streams += change
        entry.open_stream = open_stream
        conversation = exchange.conversation
        if conversation is not None and exchange.round is not None and exchange.round > 1:
            before = self._entries.get(conversation.rounds[exchange.round - 2])
            if before is not None and before.waiting:
                before.waiting = False
                self.waiting -= 1

    def _findings(self, entry: _Entry, exchange: Exchange) -> None:
        found = tuple((f.rule, f.party or "client", f.severity or "info") for f in exchange.findings)
        if found == entry.findings:
            return
        tally = self.endpoints.get(entry.url)
        for key in entry.findings:
            self._add(key, exchange, entry.url, -1, tally)
        for key in found:
            self._add(key, exchange, entry.url, 1, tally)
        entry.findings = found

    def _add(self, key: tuple[str, str, str], exchange: Exchange, url: str, change: int, tally: EndpointTally | None) -> None:
        rule, party, severity = key
        self.severities[severity] += change
        if tally is not None:
            tally.severities[severity] += change
            if rule == "ERA025":
                tally.expectation_broken = exchange.flow if change > 0 else ""
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(rule, party, severity, first=exchange.started)
        group.count += change
        group.endpoints[url] = group.endpoints.get(url, 0) + change
        if change > 0:
            group.first, group.last = min(group.first, exchange.started), max(group.last, exchange.started)
            if len(group.flows) < FLOWS_OF_A_GROUP:
                group.flows[exchange.flow] = None
        else:
            group.flows.pop(exchange.flow, None)
            if group.count <= 0:
                del self.groups[key]

    def _forget(self) -> None:
        """What has left the inspector's memory leaves the lists; the counts stay."""
        known, gone = self.inspector.exchanges, 0
        for exchange in self.rows:
            if exchange.flow in known:
                break
            gone += 1
            del self._entries[exchange.flow]
            self.streams.pop(exchange.flow, None)
        if gone:
            del self.rows[:gone]

    # Reading

    def find(self, flow: str) -> Exchange | None:
        entry = self._entries.get(flow)
        return entry.exchange if entry is not None else None

    def downwards(self, before: int | None = None) -> Iterator[Exchange]:
        """The rows, newest first, from the one before that position on."""
        index = len(self.rows) if before is None else bisect_left(self.rows, before, key=_seq)
        rows = self.rows
        while index > 0:
            index -= 1
            if index < len(rows):
                yield rows[index]

    def head(self, exchange: Exchange) -> Exchange:
        """The exchange whose row shows the operation that this one belongs to: the first of it that is remembered."""
        conversation = exchange.conversation
        if conversation is None or conversation.id == exchange.flow:
            return exchange
        for flow in conversation.rounds:
            first = self.find(flow)
            if first is not None:
                return first
        return exchange

    def rounds(self, exchange: Exchange) -> list[Exchange]:
        """The exchanges of an operation that are remembered, in order."""
        conversation = exchange.conversation
        if conversation is None:
            return [exchange]
        flows = conversation.rounds
        if len(flows) > ROUNDS:  # a client that tries again and again
            flows = [*flows[: ROUNDS // 2], *flows[-ROUNDS // 2 :]]
        found = [e for flow in flows if (e := self.find(flow)) is not None]
        return found or [exchange]


def is_stream(exchange: Exchange) -> bool:
    """Whether it is an event stream for its own sake: a listen, or a legacy GET stream."""
    return exchange.method == "subscriptions/listen" or (exchange.http_method == "GET" and exchange.stream is not None)


def worst(findings: list[Finding]) -> str | None:
    return max((f.severity or "info" for f in findings), key=lambda s: RANK[s], default=None)


def _is_last(exchange: Exchange) -> bool:
    conversation = exchange.conversation
    return conversation is None or exchange.round == len(conversation.rounds)


def _seq(exchange: Exchange) -> int:
    return exchange.seq
