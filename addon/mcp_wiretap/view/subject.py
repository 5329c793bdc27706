"""What a page is about: the flow's own bytes read again, and what the trace knows of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.model import Conversation, Exchange, Link, Message
from mcp_wiretap.wire.revision import error_name


class _Kept(Held):
    """Releases nothing."""

    def settle(self, exchange: Exchange) -> None:
        return None


def read_alone(events: Iterable[Event], limits: Limits | None = None, judge: Judge | None = None) -> Exchange | None:
    """One flow read by itself, with all its messages. It knows nothing of what came before. None without a request."""
    inspector = Inspector(judge, limits)
    inspector.held = _Kept(1, 1, lambda _: None)
    for event in events:
        inspector.feed(event)
    return next(iter(inspector.exchanges.values()), None)


def following(inspector: Inspector, record: Exchange, most: int = 3) -> list[Exchange]:
    """What the same client asked next at the same endpoint, after the answer."""
    later: list[Exchange] = []
    for other in reversed(inspector.exchanges.values()):
        if other is record:
            break
        same = other.endpoint is record.endpoint and (other.client_info, other.auth) == (record.client_info, record.auth)
        if same and other.kind == "mcp" and record.ended is not None and other.started >= record.ended:
            later.append(other)
    return later[::-1][:most]


@dataclass
class Subject:
    """`record` is what the trace knows (its parsed bodies may be gone), `whole` the same flow read again; without a record, the
    flow was judged alone. `sibling` gives another flow of the trace, read again; None where mitmproxy has it no more.
    `following` gives what the same client did next at the same endpoint."""

    record: Exchange
    whole: Exchange
    known: bool = True
    sibling: Callable[[str], Exchange | None] = lambda _: None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    following: Callable[[], Sequence[Exchange]] = tuple

    @property
    def request(self) -> Message | None:
        """The JSON-RPC request; else the first message that the client sent."""
        return self.whole.request or next(iter(self.whole.sent), None)

    @property
    def answer(self) -> Message | None:
        """The result or error that the response carries: of the request, else the first one there is."""
        own = self.whole.answer
        if own is not None:
            return own
        return next((m for m in self.whole.received if m.kind in ("result", "error")), None)

    @property
    def error_name(self) -> str | None:
        return error_name(self.record.error_code)

    @property
    def before(self) -> Link | None:
        """The link to the round that this one continues."""
        return self._link(lambda link: link.later == self.record.flow)

    @property
    def after(self) -> Link | None:
        """The link to the round that continues this one."""
        return self._link(lambda link: link.earlier == self.record.flow)

    def _link(self, fits: Callable[[Link], bool]) -> Link | None:
        conversation: Conversation | None = self.record.conversation
        if conversation is None:
            return None
        return next((link for link in conversation.links if link.by in ("requestState", "inputResponses") and fits(link)), None)

    def findings(self, side: str) -> list[Finding]:
        """The findings about one side: by their evidence, else by who is at fault."""
        return [f for f in self.record.findings if side_of(f) == side]


def side_of(finding: Finding) -> str:
    """Whether a finding is about the request or the response."""
    for evidence in finding.evidence:
        for side in ("request", "response"):
            if evidence.where.startswith(side):
                return side
    return "response" if finding.party == "server" else "request"
