"""Requests repeated without a pause that get the same answer: streams that end at once, calls that are refused (SSE017)."""

from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.values import digest

RUNS = 500
PAUSE_S = 0.25  # what waits longer before it asks again paces itself
AT_ONCE_S = 1.0  # a stream that lived longer was one
STREAMS, REFUSALS = 5, 10  # in a row: fewer may be retries
_PACED = frozenset({"ping", "tasks/get", "tasks/list"})  # repeated by design; a task's polls have rules of their own
NAMED = 20  # related flows


@dataclass(slots=True)
class Loop:
    """A run of the same request with the same answer."""

    what: str
    stream: bool
    count: int = 0
    started: float = 0.0
    ended: float = 0.0
    flows: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return max(self.ended - self.started, 0.0)

    @property
    def backs_off(self) -> bool:
        """Whether each pause is longer than the one before, as that of a client that waits for a server to come back."""
        first, last = self.pauses[:3], self.pauses[-3:]
        return len(self.pauses) > 2 and sorted(first) == first and last[-1] > 2 * max(first[0], 0.005) and last[-1] > 0.05


LOOP: ExchangeFact[Loop] = ExchangeFact("loop", "the request was repeated without a pause, and answered alike")

type _Key = tuple[str, str, Any]


class Loops(Tracker):
    """Writes `exchange.facts[LOOP]` on the exchange with which a run is long enough; its numbers go on."""

    name = "loops"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._runs: Recent[_Key, tuple[Any, Loop, list[Exchange]]] = Recent(RUNS)

    def ended(self, exchange: Exchange) -> None:
        if exchange.kind != "mcp":
            return
        key: _Key = (exchange.endpoint.url, exchange.auth, exchange.client_info or exchange.request_fields.first("user-agent"))
        same = _what(exchange)
        run = self._runs.get(key)
        if run is not None and (same is None or run[0] != same or not self._goes_on(run[1], exchange)):
            self._over(run)
            self._runs.pop(key)
            run = None
        if same is None:
            return
        if run is None:
            stream = exchange.outcome != "error"
            loop = Loop(exchange.method or f"HTTP {exchange.http_method}", stream, started=exchange.started)
            run = (same, loop, [])
            for gone in self._runs.put(key, run):
                self._over(gone)
        self._count(run, exchange)

    @staticmethod
    def _goes_on(loop: Loop, exchange: Exchange) -> bool:
        return exchange.started - loop.ended <= PAUSE_S

    def _count(self, run: tuple[Any, Loop, list[Exchange]], exchange: Exchange) -> None:
        _, loop, holder = run
        if loop.count and len(loop.pauses) < 1_000:
            loop.pauses.append(max(exchange.started - loop.ended, 0.0))
        loop.count += 1
        loop.ended = max(loop.ended, exchange.ended or exchange.started)
        if len(loop.flows) < NAMED:
            loop.flows.append(exchange.flow)
        if loop.count == (STREAMS if loop.stream else REFUSALS):
            exchange.facts[LOOP] = loop
            holder.append(exchange)
            self.memory.held.keep(exchange, self.name)
        elif holder and loop.count & (loop.count - 1) == 0:
            self.memory.rejudge(holder[0])

    def _over(self, run: tuple[Any, Loop, list[Exchange]]) -> None:
        for exchange in run[2]:
            self.memory.rejudge(exchange)
            self.memory.held.free(exchange, self.name)
        run[2].clear()

    def finished(self) -> list[Exchange]:
        return [exchange for _, _, holder in self._runs.values() for exchange in holder]


def _what(exchange: Exchange) -> Any:
    """What is equal in a run: the request with its answer; None for what makes no run."""
    if exchange.http_method == "GET" and exchange.outcome in ("stream", "complete") and exchange.stream is not None:
        brief = exchange.ended_by != "client" and (exchange.ended or exchange.started) - exchange.started < AT_ONCE_S
        return ("GET", exchange.stream.count) if brief and exchange.stream.count < 2 else None
    if exchange.http_method in ("GET", "DELETE") and exchange.outcome == "error":
        return (exchange.http_method, exchange.status)
    request = exchange.request
    if request is None or request.method in _PACED:
        return None
    if request.method == "subscriptions/listen":
        brief = (exchange.ended or exchange.started) - exchange.started < AT_ONCE_S
        if not brief or exchange.outcome not in ("complete", "stream"):
            return None
        return (request.method, _asked(request), exchange.outcome)
    if exchange.outcome == "error":
        return (request.method, exchange.name, _asked(request), exchange.error_code, exchange.status)
    return None


def _asked(request: Message) -> bytes:
    return digest({name: value for name, value in request.params.items() if name != "_meta"})
