"""Words that the reports for people share."""

from collections.abc import Iterable

from mcp_wiretap.report.failures import Failure
from mcp_wiretap.report.tally import ConversationRow, EndpointRow, Group, Tally
from mcp_wiretap.trace.finding import Evidence
from mcp_wiretap.wire import revision as rev

_MOST_MS = 10**15
HEADINGS = {"error": "Errors", "warning": "Warnings", "info": "Notes"}


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def duration(ms: float) -> str:
    """Three digits that matter: 8.4 ms, 237 ms, 1.61 s. What a clock that was put back makes negative is 0."""
    ms = min(ms, _MOST_MS) if ms > 0 else 0.0  # a server may ask for any number
    if ms >= 100_000:
        return f"{ms / 1000:.0f} s"
    if ms >= 1000:
        return f"{ms / 1000:.2f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def short_flow(flow: str) -> str:
    """The first part of a flow id, enough to find it."""
    return flow if flow.startswith("har-") else flow[:8]


def evidence_words(evidence: Evidence) -> str:
    words = f"{evidence.where.removesuffix(':')}: {evidence.value}"
    return words if evidence.expected is None else f"{words}, expected {evidence.expected}"


def revisions_words(revisions: Iterable[str]) -> str:
    """`2026-07-28 + 4 legacy`."""
    revisions = list(revisions)
    modern = [r for r in revisions if rev.version_kind(r) != "legacy"]
    legacy = sorted(r for r in revisions if rev.version_kind(r) == "legacy")
    if not modern:
        return legacy[-1] + (f" + {len(legacy) - 1} more" if len(legacy) > 1 else "") if legacy else ""
    return " ".join(modern) + (f" + {len(legacy)} legacy" if legacy else "")


def counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word.replace('-', ' ')}" for word, count in sorted(counts.items(), key=lambda item: -item[1]))


def worst_first(row: EndpointRow) -> tuple[bool, int, int, str]:
    return (row.broken is None, -row.counts.get("error", 0), -row.counts.get("warning", 0), row.url)


def sorted_groups(tally: Tally, severity: str) -> list[Group]:
    """The groups of one severity, the most frequent first."""
    groups = [group for (of, _, _), group in tally.groups.items() if of == severity]
    return sorted(groups, key=lambda group: (-group.count, group.rule, group.party))


def sorted_failures(tally: Tally) -> list[Failure]:
    """What nothing explains first, then the most frequent, what the protocol foresees last."""
    return sorted(tally.failures.values(), key=lambda f: (bool(f.foreseen), not f.silent, -f.count, f.at))


def link_words(row: ConversationRow, times: str) -> str:
    """By what the exchanges of a conversation belong together: `exact requestState ×2`."""
    return ", ".join(f"{confidence} {by}" + (f" {times}{count}" if count > 1 else "") for by, confidence, count in row.links)
