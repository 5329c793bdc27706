"""A trace at work inside mitmproxy: an Inspector, the flows that it speaks of, and what it says written on them."""

from collections.abc import Callable, Iterable
from weakref import WeakValueDictionary

from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.annotate import annotate
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.report.comment import is_mrtr
from mcp_wiretap.trace.events import Event, ResponseStarted
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange

ROUNDS = 50  # of one operation that are written anew; real ones have a handful


class Watch:
    """`updated(flows)` is called with flows whose annotation changed outside of their own hook, so that the UIs show it."""

    def __init__(self, settings: Settings, updated: Callable[[list[HTTPFlow]], None], faults: Faults) -> None:
        self.settings = settings
        self.faults = faults
        self.book = settings.book()
        self.inspector = Inspector(
            self.book, settings.limits, expect=lambda url: self.settings.expected(url), promised=settings.promised
        )
        # Weak: how long a flow is kept is mitmproxy's business and the user's.
        self.flows: WeakValueDictionary[str, HTTPFlow] = WeakValueDictionary()
        self._updated = updated
        self._before: Callable[[Judge], Judge] = lambda judge: judge

    def tell_first(self, before: Callable[[Judge], Judge]) -> None:
        """Put somebody in front of the rules: `before(rules)` is asked in their place."""
        self._before = before
        self.inspector.judge = before(self.book)

    def use(self, settings: Settings) -> None:
        """The options changed: judge what comes from now on by them."""
        if settings.judging != self.settings.judging:
            self.book = settings.book()
            self.inspector.judge = self._before(self.book)
        if settings.expectations != self.settings.expectations:
            for endpoint in self.inspector.endpoints.values():
                era = settings.expected(endpoint.url)
                endpoint.expected = "modern" if era == "modern" else "legacy" if era == "legacy" else None
        self.inspector.promised = settings.promised
        if settings.limits != self.settings.limits:
            self.inspector.resize(settings.limits)
        self.settings = settings

    def feed(self, event: Event, flow: HTTPFlow, current: Callable[[], HTTPFlow | None] = lambda: None) -> None:
        """Take the next event of a flow; `current` tells in which flow's hook that is, asked when it was inspected."""
        if event.flow not in self.flows:
            self.flows[event.flow] = flow
        changed = self.follow(event)
        if isinstance(event, ResponseStarted) and len(changed) == 1 and not (changed[0].stream or changed[0].faults):
            return  # what its end brings is written once
        self.show(changed, current())

    def follow(self, event: Event) -> list[Exchange]:
        """Take the next event; the exchanges whose verdict changed."""
        try:
            return self.inspector.feed(event)
        except Exception as error:
            return self._fault(event, error)

    def _fault(self, event: Event, error: Exception) -> list[Exchange]:
        """A fault of ours: what can still be said of the exchange says so."""
        self.faults.note("trace", error, event.flow)
        exchange = self.inspector.exchanges.get(event.flow)
        if exchange is None:
            return []
        if len(exchange.faults) < 20:
            exchange.faults.append(("trace", f"{type(error).__name__}: {error}"))
        return [exchange]

    def exchange_of(self, flow: Flow, trace_id: str) -> Exchange | None:
        """What this trace knows of a flow; None where it is not this trace that follows it."""
        return self.inspector.exchanges.get(trace_id) if self.flows.get(trace_id) is flow else None

    def show(self, changed: Iterable[Exchange], current: HTTPFlow | None = None) -> None:
        """Write verdicts on their flows. mitmproxy itself tells the UIs of the current one."""
        late = []
        for exchange in self._with_rounds(changed):
            flow = self.flows.get(exchange.flow)
            if flow is not None and self._write(flow, exchange) and flow is not current:
                late.append(flow)
        if late:
            self._updated(late)

    def _with_rounds(self, changed: Iterable[Exchange]) -> Iterable[Exchange]:
        """And the other rounds of their operations: how many there are is said on each."""
        found = {exchange.flow: exchange for exchange in changed}
        for exchange in list(found.values()):
            conversation = exchange.conversation
            if conversation is not None and is_mrtr(conversation):
                for flow in conversation.rounds[-ROUNDS:]:
                    if flow not in found and (round_ := self.inspector.exchanges.get(flow)) is not None:
                        found[flow] = round_
        return found.values()

    def is_mcp(self, trace_id: str) -> bool:
        exchange = self.inspector.exchanges.get(trace_id)
        return exchange is not None and exchange.kind == "mcp"

    def arrived(self, trace_id: str) -> None:
        """The answer went to the client as it came."""
        self.inspector.arrived(trace_id)

    def refresh(self, flow: HTTPFlow, trace_id: str) -> None:
        exchange = self.inspector.exchanges.get(trace_id)
        if exchange is not None:
            self._write(flow, exchange, times=True)
        self._updated([flow])

    def finish(self) -> None:
        """Nothing more will come."""
        self.show(self.inspector.finish())
        for exchange in self.inspector.exchanges.values():
            if not exchange.over and (flow := self.flows.get(exchange.flow)) is not None:
                self._write(flow, exchange, times=True)

    def _write(self, flow: HTTPFlow, exchange: Exchange, *, times: bool = False) -> bool:
        settings = self.settings
        return annotate(flow, exchange, comments=settings.comment, marks=settings.mark, times=times)
