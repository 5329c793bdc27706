"""What a trace amounts to, in a form that can be compared with another: tools, operations, findings.

A `Profile` watches the exchanges of an Inspector end (it is a judge that passes everything on to the rules), so nothing of the
bodies has to be kept.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.compare.watching import Watching
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import masked, one_line
from mcp_wiretap.wire.values import digest

MOST_OPERATIONS = 100_000
SAMPLES = 2_000
_OWN = frozenset({"_meta", "inputResponses", "requestState", "cursor"})  # of params: what a repetition may have differently


@dataclass(slots=True, frozen=True, order=True)
class OperationKey:
    """One call as a person means it: method, name and arguments as JSON values."""

    path: str  # of the endpoint
    method: str
    name: str
    arguments: str  # as JSON, masked and cut for showing
    digest: bytes  # of all of them

    @property
    def title(self) -> str:
        shown = f" {self.arguments}" if self.arguments not in ("{}", "") else ""
        return f"{self.method} {self.name}".strip() + shown


@dataclass(slots=True, frozen=True)
class Result:
    """What a call came to."""

    outcome: str  # DESIGN's outcome, `tool error` for a result with isError
    code: int | None
    flow: str

    @property
    def words(self) -> str:
        return f"{self.outcome} {self.code}" if self.code is not None else self.outcome


@dataclass(slots=True)
class Profile(Watching):
    """Fill it by giving it to an Inspector as its judge."""

    tools: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)  # (path, name) -> newest definition
    listed: set[str] = field(default_factory=set)  # paths whose tools were listed
    operations: dict[OperationKey, list[Result]] = field(default_factory=dict)
    findings: Counter[tuple[str, str, str, str, str]] = field(default_factory=Counter)  # rule, severity, party, method, name
    examples: dict[tuple[str, str, str, str, str], tuple[str, str]] = field(default_factory=dict)  # -> flow, message
    durations: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # (method, name) -> milliseconds
    eras: dict[str, set[str]] = field(default_factory=dict)  # path -> what its endpoints turned out to be
    dropped: int = 0
    _over: dict[str, Exchange] = field(default_factory=dict)

    def said(self, message: Message) -> bool:
        added = Watching.said(self, message)
        request = message.request
        if request is not None and request.method == "tools/list" and message.rpc.kind == "result":
            self._listed(message)
        return added

    def close(self) -> None:
        """The trace is over: count its findings, by their last verdict."""
        for exchange in self._over.values():
            if exchange.kind == "mcp" and exchange.endpoint.era != "unknown":
                self.eras.setdefault(path_of(exchange), set()).add(exchange.endpoint.era)
            method, name = exchange.method or exchange.http_method, exchange.name or ""
            for finding in exchange.findings:
                key = (finding.rule, finding.severity or "info", finding.party or "client", method, name)
                self.findings[key] += 1
                self.examples.setdefault(key, (exchange.flow, finding.message))
        self._over.clear()

    def _listed(self, message: Message) -> None:
        path = path_of(message.exchange)
        self.listed.add(path)
        tools = message.result.get("tools")
        for tool in tools[:5_000] if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self.tools[path, tool["name"]] = masked(tool)

    def take(self, exchange: Exchange) -> None:
        if exchange.kind == "other":
            return
        first = exchange.flow not in self._over
        self._over[exchange.flow] = exchange
        request = exchange.request
        if request is None or exchange.kind != "mcp" or request.method is None:
            return
        key = key_of(exchange, request)
        if key not in self.operations and len(self.operations) >= MOST_OPERATIONS:
            self.dropped += 1
            return
        results = self.operations.setdefault(key, [])
        result = Result(_outcome(exchange), exchange.error_code, exchange.flow)
        if not first:
            for index, earlier in enumerate(results):
                if earlier.flow == exchange.flow:
                    results[index] = result
                    return
        if len(results) < SAMPLES:
            results.append(result)
        answer = request.answer
        if first and answer is not None and exchange.outcome in ("complete", "input_required", "task"):
            times = self.durations.setdefault((request.method, exchange.name or ""), [])
            if len(times) < SAMPLES:
                times.append((answer.at - exchange.requested) * 1000)


def path_of(exchange: Exchange) -> str:
    """Where an endpoint is on its host: two builds of one server seldom share the port."""
    return uri.split(exchange.endpoint.url).path or "/"


def key_of(exchange: Exchange, request: Message) -> OperationKey:
    params = {k: v for k, v in request.params.items() if k not in _OWN and k not in ("name", "uri")}
    asked = params.get("arguments", {}) if set(params) <= {"arguments"} else params
    return OperationKey(
        path_of(exchange),
        request.method or "",
        exchange.name or "",
        one_line(dumps(masked(asked, entered=True)), 80),
        digest(asked),
    )


def _outcome(exchange: Exchange) -> str:
    answer = exchange.answer
    if exchange.outcome == "complete" and answer is not None and answer.result.get("isError") is True:
        return "tool error"
    return exchange.outcome
