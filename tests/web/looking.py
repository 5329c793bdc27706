"""The pages' model over a script in the notation of examples: no mitmproxy, no server."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from functools import cache
from typing import Any

from mcp_wiretap.example import read_script
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.rule import Rule, RuleBook, find_rules
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.finding import Silence
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject, read_alone
from mcp_wiretap.web.site import Site

HOSTILE = "<script>window.hacked=1</script>"
OVERRIDE = "‮gnp.exe"


@cache
def rules() -> Mapping[str, Rule]:
    return {rule.id: rule for rule in find_rules()}


class Script:
    """A source of pages (`web.Source`) that has followed a script."""

    def __init__(
        self,
        script: str | Sequence[Event],
        *,
        limits: Limits | None = None,
        expect: Callable[[str], str | None] | None = None,
        catch_up: int = 1,
    ) -> None:
        self.book = RuleBook.of(rules().values())
        self.inspector = Inspector(self.book, limits, expect=expect)
        self.events = list(read_script(script) if isinstance(script, str) else script)
        self.of_flow: dict[str, list[Any]] = defaultdict(list)
        self.redrawn: list[Exchange] = []
        self.faults: list[tuple[str, Exception]] = []
        self.traces = Traces([Ledger(self.inspector)], whole=self.whole, rules=rules(), zone=UTC)
        for number, event in enumerate(self.events):
            self.of_flow[event.flow].append(event)
            self.inspector.feed(event)
            if number % catch_up == 0:
                self.traces.catch_up()
        self.traces.catch_up()

    @property
    def ledger(self) -> Ledger:
        return self.traces.ledgers[0]

    @property
    def exchanges(self) -> list[Exchange]:
        return list(self.inspector.exchanges.values())

    def whole(self, flow: str) -> Subject | None:
        record = self.inspector.exchanges.get(flow)
        alone = read_alone(self.of_flow[flow])
        return Subject(record, alone, rules=rules()) if record is not None and alone is not None else None

    # As a Source

    def inspectors(self) -> list[Inspector]:
        return [self.inspector]

    def subject(self, flow: Any) -> Subject:
        found = self.whole(flow)
        if found is None:
            raise KeyError(flow)
        return found

    def rules(self) -> Mapping[str, Rule]:
        return rules()

    def silence(self, silence: Silence) -> None:
        self.book.silences.append(silence)

    def redraw(self, exchanges: list[Exchange]) -> None:
        self.redrawn += exchanges

    def fault(self, where: str, error: Exception) -> None:
        raise error

    def site(self) -> Site:
        site = Site(self, lambda flow: flow)
        site.traces = self.traces
        return site


LISTED = '-> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}'
ROUNDS = """
modern tools/call {"name": "deploy", "arguments": {"to": "eu"}}
  capabilities {"elicitation": {"form": {}}}
  -> needs state-of-the-first-round confirm
modern tools/call {"name": "deploy", "arguments": {"to": "eu"}}
  capabilities {"elicitation": {"form": {}}}
  after 2
  answers state-of-the-first-round confirm
  -> result {"content": [{"type": "text", "text": "done"}]}
"""
