"""Collects the report of one trace: exchanges as they leave the Inspector, then what is known when the trace is over."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_wiretap.report import record
from mcp_wiretap.report.spool import Spool
from mcp_wiretap.report.tally import Tally
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Conversation, Endpoint, Exchange
from mcp_wiretap.trace.summary import outcome

CONVERSATIONS = 20_000  # waiting for a later round; as many as the trace itself remembers
ENDPOINTS = 5_000


@dataclass(slots=True)
class Input:
    """One file that was read, and how far."""

    path: str
    flows: int = 0
    error: str | None = None


@dataclass(slots=True)
class SilencedCount:
    rule: str
    endpoint: str
    count: int
    reason: str
    told: str  # the reason for people: where it stands, too, if not where one would look

    def as_json(self) -> dict[str, str | int]:
        return {"rule": self.rule, "endpoint": self.endpoint, "count": self.count, "reason": self.reason}


@dataclass(slots=True)
class Trace:
    """The report of one trace without its lines, which are in the spool."""

    inputs: list[Input]
    tally: Tally
    silenced: list[SilencedCount] = field(default_factory=list)


class Collector:
    """Give `retire` to the Inspector as its callback; call `close` after `Inspector.finish`.

    `place(flow)` says in which input a flow is and at which position; (path, None) where the position is not known.
    """

    def __init__(self, spool: Spool, place: Callable[[str], tuple[str, int | None]]) -> None:
        self.tally = Tally()
        self._spool = spool
        self._place = place
        self._conversations: OrderedDict[str, tuple[Conversation, str]] = OrderedDict()
        self._written: set[str] = set()
        self._endpoints: dict[str, tuple[Endpoint, str]] = {}

    def retire(self, exchange: Exchange) -> None:
        """Nothing about this exchange will change any more: write it down."""
        if exchange.kind == "other":
            outcome.settle(exchange)  # nobody asked for it while the trace went on
        input_, index = self._place(exchange.flow)
        write = self._spool.write
        write("flow", record.flow_line(exchange, input_, index))
        for finding in exchange.findings:
            write("finding", record.finding_line(finding, input_))
        for unchecked in exchange.unchecked:
            write("unchecked", record.unchecked_line(exchange.flow, unchecked))
        for where, error in exchange.faults:
            write("fault", record.fault_line(exchange.flow, where, error))
        self.tally.exchange(exchange, input_)
        if exchange.kind == "mcp" and (exchange.endpoint.url in self._endpoints or len(self._endpoints) < ENDPOINTS):
            self._endpoints[exchange.endpoint.url] = (exchange.endpoint, input_)
        if exchange.conversation is not None:
            self._converse(exchange.conversation, input_)

    def fault(self, flow: str | None, where: str, error: Exception) -> None:
        """A fault of ours outside the rules."""
        self._spool.write("fault", record.fault_line(flow, where, f"{type(error).__name__}: {error}"))
        self.tally.faults += 1

    def close(self, inspector: Inspector, book: RuleBook, inputs: list[Input]) -> Trace:
        """The trace is over and every exchange has been retired."""
        while self._conversations:
            self._write_oldest()
        for endpoint, input_ in self._endpoints.values():
            self._spool.write("endpoint", record.endpoint_line(endpoint, input_))
        self.tally.close(endpoint for endpoint, _ in self._endpoints.values())
        for what, count in inspector.dropped.items():
            self.tally.drop(what, count)
        self.tally.drop("sessions", inspector.sessions.dropped)
        self.tally.drop("conversations", inspector.conversations.dropped)
        self.tally.drop("findings", book.suppressed)
        silenced = [
            SilencedCount(silence.rule, silence.endpoint or "*", count, silence.reason, silence.told)
            for silence, count in book.silenced.items()
            if count
        ]
        return Trace(inputs, self.tally, silenced)

    def _converse(self, conversation: Conversation, input_: str) -> None:
        if conversation.id in self._written or conversation.id in self._conversations:
            return
        self._conversations[conversation.id] = (conversation, input_)
        if len(self._conversations) > CONVERSATIONS:
            self._write_oldest()

    def _write_oldest(self) -> None:
        key, (conversation, input_) = self._conversations.popitem(last=False)
        self._written.add(key)
        self._spool.write("conversation", record.conversation_line(conversation, input_))
        self.tally.conversation(conversation, input_)
