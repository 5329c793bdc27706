"""How often each tool, prompt and resource was used, how that went, and how long it took: numbers for people, bounded.

They stand in `endpoint.facts[CALLS]`, by method and name.
"""

from collections import deque
from dataclasses import dataclass, field

from mcp_wiretap.trace.facts import EndpointFact
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.tracker import Tracker

METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
MOST = 2_000  # names of one endpoint
SAMPLES = 200  # newest durations of one name: enough for a 95th percentile


@dataclass(slots=True)
class Calls:
    count: int = 0
    errors: int = 0  # JSON-RPC errors, refusals and broken exchanges
    tool_errors: int = 0  # results with isError
    input_required: int = 0  # answers that asked for input first
    last_flow: str = ""
    last_at: float = 0.0
    durations: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))  # milliseconds

    def percentile(self, share: float) -> float | None:
        """The nearest-rank percentile of the newest durations."""
        if not self.durations:
            return None
        ordered = sorted(self.durations)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


CALLS: EndpointFact[dict[tuple[str, str], Calls]] = EndpointFact("calls", "what became of the calls, by method and name")


class CallCounts(Tracker):
    name = "calls"

    def ended(self, exchange: Exchange) -> None:
        if exchange.method not in METHODS or exchange.name is None or exchange.kind != "mcp":
            return
        table: dict[tuple[str, str], Calls] = exchange.endpoint.facts.setdefault(CALLS, {})
        key = (exchange.method, exchange.name)
        calls = table.get(key)
        if calls is None:
            if len(table) >= MOST:
                self.memory.count_dropped("names of calls")
                return
            calls = table[key] = Calls()
        calls.last_flow, calls.last_at = exchange.flow, exchange.started
        if exchange.outcome == "input_required":
            calls.input_required += 1
        else:
            calls.count += 1
        if exchange.outcome in ("error", "broken"):
            calls.errors += 1
        answer = exchange.answer
        if answer is not None and answer.result.get("isError") is True:
            calls.tool_errors += 1
        if exchange.ended is not None and exchange.outcome not in ("cancelled", "none"):
            calls.durations.append((exchange.ended - exchange.started) * 1000)
