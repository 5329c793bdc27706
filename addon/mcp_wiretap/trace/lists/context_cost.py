"""What a model is given of a server, in bytes: its tool definitions, and the results of each tool. Bytes, never tokens.

A definition counts as it was listed last. A result counts as the message that brought it.
"""

from dataclasses import dataclass

from mcp_wiretap.trace.facts import EndpointFact
from mcp_wiretap.trace.model import Endpoint, Exchange, ToolDefinition
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.pace import paced

TOOLS = 5_000  # of one endpoint


@dataclass(slots=True)
class Results:
    """What the results of one tool came to."""

    calls: int = 0
    size: int = 0  # bytes of all
    largest: int = 0


RESULTS: EndpointFact[dict[str, Results]] = EndpointFact("results", "the bytes of the results of each tool")


@dataclass(slots=True, frozen=True)
class ToolCost:
    """One tool: the bytes of its definition (0 where it was not listed) and its results."""

    name: str
    definition: int
    results: Results


def cost_of(endpoint: Endpoint) -> list[ToolCost]:
    """The tools of an endpoint with what they cost, the dearest first."""
    results: dict[str, Results] = endpoint.facts.get(RESULTS, {})
    sizes = {
        name: len(dumps(tool.raw).encode("utf-8", "surrogatepass"))
        for name, tool in paced(endpoint.tools.items())
        if isinstance(tool, ToolDefinition)
    }
    found = [ToolCost(name, sizes.get(name, 0), results.get(name, Results())) for name in dict.fromkeys([*sizes, *results])]
    return sorted(found, key=lambda tool: (-tool.definition - tool.results.size, tool.name))


class ContextCost(Tracker):
    name = "context-cost"

    def ended(self, exchange: Exchange) -> None:
        if exchange.method != "tools/call" or exchange.name is None or exchange.outcome != "complete":
            return
        size = _size(exchange)
        if size is None:
            return
        table = exchange.endpoint.facts.setdefault(RESULTS, {})
        found = table.get(exchange.name)
        if found is None:
            if len(table) >= TOOLS:
                return
            found = table[exchange.name] = Results()
        found.calls += 1
        found.size += size
        found.largest = max(found.largest, size)


def _size(exchange: Exchange) -> int | None:
    """Bytes of the message that brought the result."""
    if exchange.answer_reading is not None:
        return exchange.answer_reading.size
    stream = exchange.stream
    return stream.items[-1].event.size if stream is not None and stream.items else None
