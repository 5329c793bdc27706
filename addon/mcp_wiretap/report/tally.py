"""What a report for people needs of a trace, kept small: counts, groups with their first examples, rows worth showing.

The size of a tally depends on how many rules fired and how many endpoints there were, never on the length of the trace. A tally
can be pickled: traces may be audited in processes of their own.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mcp_wiretap.report import failures
from mcp_wiretap.report.failures import Failure
from mcp_wiretap.trace.finding import RANK, Evidence, Finding, Unchecked
from mcp_wiretap.trace.model import Conversation, Endpoint, Exchange
from mcp_wiretap.wire.secret import concealed

EXAMPLES = 3  # of one group of findings
CONVERSATIONS = 100  # that went well, and as many that did not
ENDPOINTS = 5_000
MESSAGES = 1_000  # different ones of one group that are counted
FAILURES = 1_000  # different ones
REASONS = 1_000  # pairs of (what, why) that were not checked


@dataclass(slots=True)
class Example:
    """One finding with what is needed to find it again."""

    flow: str
    input: str
    at: float
    operation: str
    server: str
    message: str
    evidence: list[Evidence]


@dataclass(slots=True)
class Group:
    """All findings of one rule by one party at one severity."""

    rule: str
    party: str
    severity: str
    spec: str
    first: float
    count: int = 0
    examples: list[Example] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)  # how often each was said


@dataclass(slots=True)
class EndpointRow:
    url: str
    input: str
    era: str = "unknown"
    expected: str | None = None
    broken: str | None = None  # the message of ERA025: the expectation that was not kept
    server: str = ""
    revisions: list[str] = field(default_factory=list)
    flows: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # by severity


@dataclass(slots=True)
class ConversationRow:
    id: str
    input: str
    status: str
    operation: str
    rounds: int
    started: float
    total_ms: float | None
    client_ms: float
    links: list[tuple[str, str, int]]  # (by, confidence, how many)


@dataclass(slots=True)
class Reason:
    """Something that was not checked, and why."""

    what: str
    why: str
    count: int
    flow: str


@dataclass(slots=True)
class Tally:
    """The numbers and rows of one trace, or of several (`add`)."""

    flows: int = 0
    mcp_flows: int = 0
    preflights: int = 0
    operations: int = 0  # flows that belong to MCP, preflights and steps of authorization among them
    flows_with_findings: int = 0
    faults: int = 0
    first: float | None = None
    last: float | None = None
    severities: dict[str, int] = field(default_factory=lambda: {"error": 0, "warning": 0, "info": 0})
    groups: dict[tuple[str, str, str], Group] = field(default_factory=dict)
    endpoints: dict[tuple[str, str], EndpointRow] = field(default_factory=dict)
    conversations: list[ConversationRow] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)  # conversations by status
    failures: dict[tuple[str, ...], Failure] = field(default_factory=dict)
    reasons: dict[tuple[str, str], Reason] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, what: str, number: int = 1) -> None:
        if number:
            self.dropped[what] = self.dropped.get(what, 0) + number

    def exchange(self, exchange: Exchange, input_: str) -> None:
        self.flows += 1
        started, ended = exchange.started, exchange.ended or exchange.started
        self.first = started if self.first is None or started < self.first else self.first
        self.last = ended if self.last is None or ended > self.last else self.last
        if exchange.kind == "mcp":
            self.mcp_flows += 1
        self.preflights += exchange.kind == "preflight"
        if exchange.kind not in ("other", "process"):
            self.operations += 1
            self._failed(failures.of(exchange, input_))
        if exchange.findings:
            self.flows_with_findings += 1
        if exchange.kind == "mcp" or exchange.endpoint.proven:
            row = self._endpoint(exchange.endpoint, input_)
            if row is not None:
                row.flows += 1
                for finding in exchange.findings:
                    severity = finding.severity or "info"
                    row.counts[severity] = row.counts.get(severity, 0) + 1
                    if finding.rule == "ERA025":
                        row.broken = row.broken or finding.message
        for finding in exchange.findings:
            self._finding(finding, exchange, input_)
        for unchecked in exchange.unchecked:
            self._reason(unchecked, exchange.flow)
        self.faults += len(exchange.faults)

    def _endpoint(self, endpoint: Endpoint, input_: str) -> EndpointRow | None:
        key = (input_, endpoint.url)
        row = self.endpoints.get(key)
        if row is None:
            if len(self.endpoints) >= ENDPOINTS:
                self.drop("endpoints of the report")
                return None
            row = self.endpoints[key] = EndpointRow(endpoint.url, input_)
        return row

    def _finding(self, finding: Finding, exchange: Exchange, input_: str) -> None:
        severity, party = finding.severity or "info", finding.party or "client"
        self.severities[severity] += 1
        key = (severity, finding.rule, party)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(finding.rule, party, severity, finding.spec, exchange.started)
        group.count += 1
        if finding.message in group.messages or len(group.messages) < MESSAGES:
            group.messages[finding.message] += 1
        if len(group.examples) < EXAMPLES:
            group.examples.append(
                Example(
                    exchange.flow,
                    input_,
                    exchange.started,
                    operation_of(exchange),
                    exchange.endpoint.url,
                    finding.message,
                    finding.evidence[:EXAMPLES],
                )
            )

    def _failed(self, failure: Failure | None) -> None:
        if failure is None:
            return
        key = failures.key(failure)
        if (there := self.failures.get(key)) is not None:
            there.add(failure)
        elif len(self.failures) < FAILURES:
            self.failures[key] = failure
        else:
            self.drop("failures of the report", failure.count)

    @property
    def failed(self) -> int:
        """Operations that failed, without those that the protocol foresees."""
        return sum(failure.count for failure in self.failures.values() if not failure.foreseen)

    def _reason(self, unchecked: Unchecked, flow: str) -> None:
        key = (unchecked.what, unchecked.why)
        reason = self.reasons.get(key)
        if reason is not None:
            reason.count += 1
        elif len(self.reasons) < REASONS:
            self.reasons[key] = Reason(unchecked.what, unchecked.why, 1, flow)
        else:
            self.drop("reasons of the report")

    def conversation(self, conversation: Conversation, input_: str) -> None:
        status = conversation.status
        self.statuses[status] = self.statuses.get(status, 0) + 1
        links: dict[tuple[str, str], int] = {}
        for link in conversation.links:
            links[link.by, link.confidence] = links.get((link.by, link.confidence), 0) + 1
        ended = conversation.ended
        self.conversations.append(
            ConversationRow(
                conversation.id,
                input_,
                status,
                _words(conversation.method, conversation.name),
                len(conversation.rounds),
                conversation.started,
                (ended - conversation.started) * 1000 if ended is not None else None,
                conversation.client_ms,
                [(by, confidence, count) for (by, confidence), count in links.items()],
            )
        )
        if len(self.conversations) > 4 * CONVERSATIONS:
            self._trim()

    def close(self, endpoints: Iterable[Endpoint]) -> None:
        """The trace is over: what is known of its endpoints now is final."""
        final = {endpoint.url: endpoint for endpoint in endpoints}
        for row in self.endpoints.values():
            endpoint = final.get(row.url)
            if endpoint is not None:
                row.era, row.expected, row.revisions = endpoint.era, endpoint.expected, list(endpoint.revisions)
                row.server = server_label(endpoint)
        for group in self.groups.values():
            for example in group.examples:
                endpoint = final.get(example.server)
                name = server_label(endpoint) if endpoint is not None else ""
                example.server = name.partition(" ")[0] or host_of(example.server)
        self._trim()

    def _trim(self) -> None:
        """Keep the conversations that a reader wants to see: those that did not end well before those that did."""
        rows = sorted(self.conversations, key=lambda row: row.started)
        well = [row for row in rows if row.status == "complete"][:CONVERSATIONS]
        other = [row for row in rows if row.status != "complete"][:CONVERSATIONS]
        self.conversations = sorted(well + other, key=lambda row: row.started)

    def add(self, later: "Tally") -> None:
        """Take in the tally of another trace."""
        self.flows += later.flows
        self.mcp_flows += later.mcp_flows
        self.operations += later.operations
        self.preflights += later.preflights
        self.flows_with_findings += later.flows_with_findings
        for failure in later.failures.values():
            self._failed(failure)
        self.faults += later.faults
        self.first = _least(min, self.first, later.first)
        self.last = _least(max, self.last, later.last)
        for severity, count in later.severities.items():
            self.severities[severity] += count
        for key, group in later.groups.items():
            mine = self.groups.setdefault(key, Group(group.rule, group.party, group.severity, group.spec, group.first))
            mine.first = min(mine.first, group.first)
            mine.count += group.count
            mine.examples = (mine.examples + group.examples)[:EXAMPLES]
            mine.messages += group.messages
        self.endpoints.update(later.endpoints)
        self.conversations += later.conversations
        self._trim()
        _sum(self.statuses, later.statuses)
        _sum(self.dropped, later.dropped)
        for pair, reason in later.reasons.items():
            if pair in self.reasons:
                self.reasons[pair].count += reason.count
            else:
                self.reasons[pair] = reason

    def worst(self) -> int:
        """The rank of the worst severity found; 0 without findings."""
        return max((RANK[severity] for severity, count in self.severities.items() if count), default=0)


def operation_of(exchange: Exchange) -> str:
    """What the exchange was about, in a few words."""
    if exchange.method:
        return _words(exchange.method, exchange.name)
    path = exchange.url.partition("://")[2].partition("/")[2]
    return f"{exchange.http_method} /{path}"


def _words(method: str | None, name: str | None) -> str:
    return concealed(f"{method or '?'} {name}" if name else method or "?")


def server_label(endpoint: Endpoint) -> str:
    """NAME VERSION as the server gives them; "" where it has not said."""
    info = endpoint.server_info or {}
    words = [info.get("name"), info.get("version")]
    return " ".join(word for word in words if isinstance(word, str) and word)


def host_of(url: str) -> str:
    """HOST:PORT/PATH of an endpoint, without the port that its scheme implies."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return host.removesuffix({"http": ":80", "https": ":443"}.get(scheme, "")) + slash + path


def _least(choose: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def _sum(into: dict[str, int], other: dict[str, int]) -> None:
    for key, count in other.items():
        into[key] = into.get(key, 0) + count
