"""Operations told one by one while traffic goes on: each when it has come to its end, or is forgotten."""

from collections import OrderedDict
from collections.abc import Callable

from mcp_wiretap.export.account import Account, Details, account, details
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.wire.secret import concealed, knowing

MOST_OPEN = 1_000  # exchanges whose operation goes on: about 2 kB each. The oldest are told as they are
MOST_TOLD = 5_000  # flows remembered, so that a later verdict does not tell them again
_ON_ITS_WAY = frozenset({"input_required", "task"})


class Operations:
    """Give it to an Inspector as its judge. `tell` gets the exchanges of one operation, in order; a fault of ours goes to `fault`
    and never to the trace."""

    def __init__(self, tell: Callable[[list[Account]], None], fault: Callable[[str, Exception], None]) -> None:
        self.judge: Judge | None = None
        self._tell = tell
        self._fault = fault
        self._open: OrderedDict[str, tuple[Exchange, Details]] = OrderedDict()
        self._told: OrderedDict[str, None] = OrderedDict()

    def before(self, judge: Judge) -> Judge:
        """Stand in front of these rules from now on."""
        self.judge = judge
        return self

    def requested(self, exchange: Exchange) -> bool:
        return self.judge is not None and self.judge.requested(exchange)

    def responded(self, exchange: Exchange) -> bool:
        return self.judge is not None and self.judge.responded(exchange)

    def said(self, message: Message) -> bool:
        return self.judge is not None and self.judge.said(message)

    def event(self, item: StreamItem) -> bool:
        return self.judge is not None and self.judge.event(item)

    def ended(self, exchange: Exchange) -> bool:
        added = self.judge is not None and self.judge.ended(exchange)
        self._guarded(exchange)
        return added

    def again(self, exchange: Exchange) -> bool:
        added = self.judge is not None and self.judge.again(exchange)
        if exchange.over:
            self._guarded(exchange)
        return added

    def finish(self) -> None:
        """Nothing more will come."""
        while self._open:
            self._close(next(iter(self._open)))

    def _guarded(self, exchange: Exchange) -> None:
        try:
            self._over(exchange)
        except Exception as error:
            self._fault(exchange.flow, error)

    def _over(self, exchange: Exchange) -> None:
        if exchange.kind != "mcp" or exchange.method is None or exchange.flow in self._told:
            return
        known = self._open.get(exchange.flow)
        self._open[exchange.flow] = (
            exchange,
            known[1] if exchange.released and known is not None else details(exchange, texts=False),
        )
        conversation = exchange.conversation
        if exchange.outcome in _ON_ITS_WAY or (conversation is not None and not conversation.over):
            if len(self._open) > MOST_OPEN:
                self._close(next(iter(self._open)))
            return
        self._close(exchange.flow)

    def _close(self, flow: str) -> None:
        conversation = self._open[flow][0].conversation
        flows = [each for each in conversation.rounds if each in self._open] if conversation is not None else [flow]
        told = [_masked(*self._open.pop(each)) for each in flows or [flow] if each in self._open]
        for each in told:
            self._told[each.flow] = None
        while len(self._told) > MOST_TOLD:
            self._told.popitem(last=False)
        self._tell(told)


def _masked(exchange: Exchange, known: Details) -> Account:
    """What is told of live traffic has no secrets in it: not in names, URIs, errors and baggage either."""
    with knowing(exchange.secrets):
        made = account(exchange, known)
        made.name, made.uri, made.failure = (concealed(t) if t is not None else None for t in (made.name, made.uri, made.failure))
        made.context = {name: concealed(value) for name, value in made.context.items()}
        return made
