"""All traces that the pages show: live traffic first, then each file that was loaded, each with books of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo

from mcp_wiretap.pages.ledger import Group, Ledger
from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject


@dataclass
class Traces:
    """`whole` reads a flow again, with the bodies that the trace has let go; None where mitmproxy has the flow no more."""

    ledgers: list[Ledger] = field(default_factory=list)
    whole: Callable[[str], Subject | None] = lambda _: None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    zone: tzinfo | None = None  # of the times shown; None: where the proxy runs

    def follow(self, inspectors: Iterable[Inspector]) -> bool:
        """Keep books of exactly these; whether that changed anything."""
        inspectors = list(inspectors)
        if [ledger.inspector for ledger in self.ledgers] == inspectors:
            return False
        known = {id(ledger.inspector): ledger for ledger in self.ledgers}
        number = max((ledger.number for ledger in self.ledgers), default=-1) + 1
        self.ledgers = []
        for inspector in inspectors:
            ledger = known.pop(id(inspector), None)
            if ledger is None:
                ledger = Ledger(inspector, number)
                number += 1
            self.ledgers.append(ledger)
        for gone in known.values():
            gone.close()
        return True

    def catch_up(self, most: int = 1_000_000) -> dict[str, Exchange]:
        """Take over at most so many changes; the exchanges that changed."""
        changed: dict[str, Exchange] = {}
        for ledger in self.ledgers:
            changed |= ledger.catch_up(most - len(changed))
            if len(changed) >= most:
                break
        return changed

    def find(self, flow: str) -> tuple[Ledger, Exchange] | None:
        for ledger in self.ledgers:
            exchange = ledger.find(flow)
            if exchange is not None:
                return ledger, exchange
        return None

    def downwards(self, before: tuple[int, int] | None = None) -> Iterator[tuple[Ledger, Exchange]]:
        """All rows, newest first: the newest trace first (`before`: its number, and a position in it)."""
        for ledger in sorted(self.ledgers, key=lambda ledger: (ledger.latest, ledger.number), reverse=True):
            if before is not None and ledger.number != before[0]:
                continue
            position = before[1] if before is not None else None
            before = None
            for exchange in ledger.downwards(position):
                yield ledger, exchange

    def groups(self) -> list[Group]:
        """Findings by rule, party and severity, over all traces."""
        joined: dict[tuple[str, str, str], Group] = {}
        for ledger in self.ledgers:
            for key, group in ledger.groups.items():
                there = joined.get(key)
                if there is None:
                    joined[key] = Group(
                        group.rule,
                        group.party,
                        group.severity,
                        group.count,
                        group.first,
                        group.last,
                        dict(group.flows),
                        dict(group.endpoints),
                    )
                else:
                    there.count += group.count
                    there.first, there.last = min(there.first, group.first), max(there.last, group.last)
                    there.flows |= group.flows
                    for url, count in group.endpoints.items():
                        there.endpoints[url] = there.endpoints.get(url, 0) + count
        return list(joined.values())

    def severity_counts(self) -> dict[str, int]:
        return {s: sum(ledger.severities[s] for ledger in self.ledgers) for s in ("error", "warning", "info")}
