"""The whole of an audit: several traces together, with their lines still in the spools. Every format is written from it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from mcp_wiretap import __version__
from mcp_wiretap.report.collect import Input, SilencedCount, Trace
from mcp_wiretap.report.record import optional, text
from mcp_wiretap.report.spool import Joined, Section, Spool
from mcp_wiretap.report.tally import Tally
from mcp_wiretap.rule import Rule, RuleFile
from mcp_wiretap.trace.finding import RANK

SCHEMA = 1
NAME = "mcp-wiretap"
DRIFT = "DRF"  # the family of rules that go by a baseline


@dataclass(slots=True)
class Audit:
    inputs: list[Input]
    tally: Tally
    silenced: list[SilencedCount]
    spool: Joined
    rules: dict[str, Rule]  # the rules that were at work, by id
    fail_on: str = "error"
    rule_files: list[RuleFile] = field(default_factory=list)  # the plain files that some of them are of

    @classmethod
    def of(
        cls, traces: list[tuple[Trace, Spool]], rules: list[Rule], fail_on: str = "error", rule_files: Iterable[RuleFile] = ()
    ) -> "Audit":
        """Put the traces together, in the order given."""
        tally = Tally()
        silenced: dict[tuple[str, str, str], SilencedCount] = {}
        for trace, _ in traces:
            tally.add(trace.tally)
            for entry in trace.silenced:
                key = (entry.rule, entry.endpoint, entry.told)
                if key in silenced:
                    silenced[key].count += entry.count
                else:
                    silenced[key] = entry
        return cls(
            [input_ for trace, _ in traces for input_ in trace.inputs],
            tally,
            list(silenced.values()),
            Joined(spool for _, spool in traces),
            {rule.id: rule for rule in rules},
            fail_on,
            list(rule_files),
        )

    def lines(self, section: Section) -> Iterator[str]:
        """The JSON objects of a section of the contract, one a line."""
        return self.spool.lines(section)

    def objects(self, section: Section) -> Iterator[dict[str, Any]]:
        return map(json.loads, self.lines(section))

    def flows(self, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
        """The objects of some flows, by (input, id)."""
        if not wanted:
            return {}
        return {key: flow for flow in self.objects("flow") if (key := (flow["input"], flow["id"])) in wanted}

    @property
    def damaged(self) -> list[Input]:
        return [input_ for input_ in self.inputs if input_.error is not None]

    def fails(self, severity: str, rule: str) -> bool:
        """Whether a finding of that rule gives exit status 1."""
        if self.fail_on == "drift":
            return severity == "error" or (severity == "warning" and rule.startswith(DRIFT))
        return self.fail_on != "never" and RANK[severity] >= RANK[self.fail_on]

    @property
    def exit_status(self) -> int:
        """0: nothing at or above `fail_on` (a severity, or `drift`); 1: findings; 2: an input could not be read to its end."""
        if self.damaged:
            return 2
        return int(any(self.fails(severity, rule) for severity, rule, _ in self.tally.groups))

    @property
    def tool(self) -> dict[str, Any]:
        """What wrote the report, and whose code ran for it beside that of installed packs."""
        tool: dict[str, Any] = {"name": NAME, "version": __version__}
        if self.rule_files:
            tool["rules"] = [
                {"file": text(file.path), "sha256": sha256(file.source).hexdigest(), "project": optional(file.project)}
                for file in self.rule_files
            ]
        return tool

    @property
    def summary(self) -> dict[str, int]:
        return {**self.tally.severities, "flows": self.tally.flows, "mcp_flows": self.tally.mcp_flows}
