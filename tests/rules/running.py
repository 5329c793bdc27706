"""Runs a script in the notation of examples through a trace with the rules, and says what they found."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from mcp_wiretap.compare import baseline
from mcp_wiretap.compare.baseline import Offered
from mcp_wiretap.example import read_script
from mcp_wiretap.rule import Finding, Rule, RuleBook, endpoint_matches, find_rules
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.promised import Contract, Offer, Promised

DIRECTIVES = ("fires", "silent", "only", "expect", "select", "contract")
_DIRECTIVE = re.compile(rf"({'|'.join(DIRECTIVES)}):(.*)")


@cache
def installed_rules() -> tuple[Rule, ...]:
    return tuple(find_rules())


@dataclass
class Script:
    """A script with the lines `fires:`, `expect:` ... that stand above it."""

    text: str
    directives: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> "Script":
        lines = text.splitlines()
        directives: dict[str, list[str]] = {}
        while lines and (not lines[0].strip() or (found := _DIRECTIVE.fullmatch(lines[0].rstrip()))):
            if lines[0].strip() and found is not None:
                directives.setdefault(found[1], []).append(found[2].strip())
            del lines[0]
        return cls("\n".join(lines) + "\n", directives)

    def words(self, directive: str) -> list[str]:
        """All words of a directive; they are separated by spaces or commas."""
        return [word for line in self.directives.get(directive, ()) for word in re.split(r"[\s,]+", line) if word]


@dataclass
class Ran:
    """What came of a script. `exchanges` are in the order in which they began; findings too."""

    inspector: Inspector
    exchanges: list[Exchange]

    @property
    def findings(self) -> list[Finding]:
        return [finding for exchange in self.exchanges for finding in exchange.findings]

    @property
    def ids(self) -> set[str]:
        return {finding.rule for finding in self.findings}

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Exceptions of rules and trackers: there must be none."""
        return [fault for exchange in self.exchanges for fault in exchange.faults]

    def found(self, wanted: str) -> list[Finding]:
        """The findings that fit `HDR004`, `HDR004:warning`, `HDR004@2` (the second exchange) or `HDR004:warning@2`."""
        parts = re.fullmatch(r"(\w+)(?::(\w+))?(?:@(\d+))?", wanted)
        if parts is None:
            raise ValueError(f"not ID[:SEVERITY][@EXCHANGE]: {wanted!r}")
        rule_id, severity, number = parts.groups()
        flow = self.exchanges[int(number) - 1].flow if number else None
        return [
            f for f in self.findings if f.rule == rule_id and severity in (None, f.severity) and (flow is None or f.flow == flow)
        ]

    def told(self) -> str:
        """All findings, one a line, for the message of a failed test."""
        lines = [
            f"  @{number} {f.rule}:{f.severity} {f.party}: {f.message}"
            for number, exchange in enumerate(self.exchanges, 1)
            for f in exchange.findings
        ]
        lines += [f"  fault in {where}: {error}" for where, error in self.faults]
        return "\n".join(lines) or "  (no findings)"


LATER = "---- later\n"  # in a script: what stands above it was accepted of its servers, what stands below is seen later


def run(
    script: str,
    *,
    select: Iterable[str] = (),
    expect: Iterable[str] = (),
    limits: Limits | None = None,
    promised: Promised | None = None,
) -> Ran:
    """Run a script. `select`: rule ids or families, default all. `expect`: `PATTERN=ERA` as in mcp_era, or `ERA`."""
    wanted = [e.rpartition("=") for e in expect]

    def expected(url: str) -> str | None:
        return next((era for pattern, _, era in wanted if endpoint_matches(pattern, url)), None)

    inspector = Inspector(RuleBook.of(installed_rules(), select=select), limits, expect=expected, promised=promised)
    for event in read_script(script):
        inspector.feed(event)
    inspector.finish()
    return Ran(inspector, list(inspector.exchanges.values()))


def offers(script: str) -> dict[str, Offer]:
    """What the servers of a script offer, through the file that is made of it."""
    offered = Offered(RuleBook.of(()))
    inspector = Inspector(offered)
    for event in read_script(script):
        inspector.feed(event)
    return baseline.read(baseline.write(offered.offers).encode())


def contract_of(lines: Iterable[str]) -> Contract:
    """The contract of `contract:` lines: expect NAME, forbid PATTERN, longest METHOD=MS, failures SHARE, definitions BYTES,
    result BYTES."""
    expect, forbid, longest = list[str](), list[str](), list[tuple[str, float]]()
    limits: dict[str, float] = {}
    for line in lines:
        word, _, value = line.partition(" ")
        method, _, number = value.rpartition("=")
        if word in ("expect", "forbid"):
            (expect if word == "expect" else forbid).append(value)
        elif word == "longest":
            longest.append((method, float(number)))
        else:
            limits[word] = float(value)
    definitions, result = (int(limits[word]) if word in limits else None for word in ("definitions", "result"))
    return Contract(tuple(expect), tuple(forbid), tuple(longest), limits.get("failures"), definitions, result)


def promised_of(script: Script, accepted: str = "") -> Promised:
    """What the servers of a script are held to: its contract, and what they offered before, or in another script."""
    before, later, _ = script.text.partition(LATER)
    accepted = before if later else accepted
    return Promised(offers(accepted) if accepted else {}, contract_of(script.directives.get("contract", ())))


def run_script(script: Script, *, select: Iterable[str] = (), accepted: str = "") -> Ran:
    return run(
        script.text.rpartition(LATER)[2],
        select=select or script.words("select"),
        expect=script.words("expect"),
        promised=promised_of(script, accepted),
    )
