"""The difference of two profiles: tools, calls with other outcomes, findings that came and went, latencies beyond noise."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from mcp_wiretap.compare.profile import OperationKey, Profile, Result
from mcp_wiretap.trace.schema.changes import Change, of_tool

ENOUGH = 5  # samples on both sides before a latency is spoken of
NOISE = 3.0  # medians must be this many spreads apart ...
RATIO = 1.25  # ... and differ by this factor


@dataclass(slots=True)
class ToolChange:
    name: str
    path: str
    kind: str  # added, removed, changed
    changes: list[Change] = field(default_factory=list)

    @property
    def breaking(self) -> bool:
        return self.kind == "removed" or any(change.weight == "breaking" for change in self.changes)


@dataclass(slots=True)
class CallChange:
    """One call whose outcomes differ; the results of both sides in order."""

    key: OperationKey
    before: list[Result]
    after: list[Result]


@dataclass(slots=True)
class EraChange:
    """What the endpoints at a path were, and are."""

    path: str
    before: str
    after: str


@dataclass(slots=True)
class FindingChange:
    rule: str
    severity: str
    party: str
    about: str  # method and name
    before: int
    after: int
    flow: str
    message: str


@dataclass(slots=True)
class LatencyShift:
    about: str
    before_ms: float
    after_ms: float
    samples: tuple[int, int]


@dataclass(slots=True)
class Difference:
    tools: list[ToolChange] = field(default_factory=list)
    calls: list[CallChange] = field(default_factory=list)
    only_before: list[OperationKey] = field(default_factory=list)  # calls that only one recording has: no fault of anybody
    only_after: list[OperationKey] = field(default_factory=list)
    eras: list[EraChange] = field(default_factory=list)
    findings: list[FindingChange] = field(default_factory=list)
    latencies: list[LatencyShift] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what could not be compared, and why

    @property
    def breaking(self) -> bool:
        """A client that worked before may not work now."""
        worse = any(c.after > c.before and c.severity == "error" for c in self.findings)
        return worse or any(t.breaking for t in self.tools) or any(_is_worse(call) for call in self.calls)

    @property
    def any(self) -> bool:
        return bool(self.tools or self.calls or self.eras or self.findings)


def compare(before: Profile, after: Profile) -> Difference:
    found = Difference()
    found.tools = list(_tools(before, after, found.notes))
    found.calls = list(_calls(before, after))
    found.only_before = sorted(set(before.operations) - set(after.operations))
    found.only_after = sorted(set(after.operations) - set(before.operations))
    found.eras = [
        EraChange(path, *(", ".join(sorted(side.eras[path])) for side in (before, after)))
        for path in sorted(before.eras.keys() & after.eras.keys())
        if before.eras[path] != after.eras[path]
    ]
    found.findings = list(_findings(before, after))
    found.latencies = list(_latencies(before, after))
    return found


def _tools(before: Profile, after: Profile, notes: list[str]) -> Iterator[ToolChange]:
    for side, profile in (("first", before), ("second", after)):
        if not profile.listed:
            notes.append(f"tools: no tools/list answer in the {side} recording, so they are not compared")
    if not (before.listed and after.listed):
        return
    old, new = _by_place(before), _by_place(after)
    for path, name in sorted(set(old) | set(new)):
        if (path, name) not in new:
            yield ToolChange(name, path, "removed")
        elif (path, name) not in old:
            yield ToolChange(name, path, "added")
        elif old[path, name] != new[path, name]:
            changes = of_tool(old[path, name], new[path, name])
            if changes:
                yield ToolChange(name, path, "changed", changes)


def _by_place(profile: Profile) -> dict[tuple[str, str], dict[str, Any]]:
    """Where a recording has one endpoint, its path does not matter."""
    if len(profile.listed) == 1:
        return {("", name): tool for (_, name), tool in profile.tools.items()}
    return profile.tools


def _calls(before: Profile, after: Profile) -> Iterator[CallChange]:
    for key in sorted(set(before.operations) & set(after.operations)):
        old, new = before.operations[key], after.operations[key]
        if Counter(r.words for r in old).keys() != Counter(r.words for r in new).keys():
            yield CallChange(key, old, new)


def _is_worse(call: CallChange) -> bool:
    bad = {"error", "broken", "tool error"}
    return bool({r.outcome for r in call.after} & bad) and not {r.outcome for r in call.before} & bad


def _findings(before: Profile, after: Profile) -> Iterator[FindingChange]:
    """By rule, party and what it was about: a recording twice as long has twice as many, so only coming and going counts."""
    rank = {"error": 0, "warning": 1, "info": 2}
    keys = {k for k in before.findings.keys() | after.findings.keys() if (k in before.findings) != (k in after.findings)}
    for key in sorted(keys, key=lambda k: (rank.get(k[1], 3), k)):
        rule, severity, party, method, name = key
        flow, message = after.examples.get(key) or before.examples[key]
        yield FindingChange(
            rule, severity, party, f"{method} {name}".strip(), before.findings[key], after.findings[key], flow, message
        )


def _latencies(before: Profile, after: Profile) -> Iterator[LatencyShift]:
    for key in sorted(set(before.durations) & set(after.durations)):
        old, new = before.durations[key], after.durations[key]
        if len(old) < ENOUGH or len(new) < ENOUGH:
            continue
        middle, later = median(old), median(new)
        spread = max(median(abs(x - middle) for x in old), median(abs(x - later) for x in new), 0.5)
        low, high = sorted((middle, later))
        if high - low > NOISE * spread and high > RATIO * max(low, 0.1):
            yield LatencyShift(" ".join(key).strip(), middle, later, (len(old), len(new)))
