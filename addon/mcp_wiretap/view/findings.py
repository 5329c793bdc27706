"""The findings of one side with their evidence and the place in the specification, and what could not be checked."""

from mcp_wiretap import explanation
from mcp_wiretap.report.words import short_flow
from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.finding import RANK, Finding
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, pairs, scalar

_MOST = 20


def table(subject: Subject, side: str) -> list[Row]:
    """The findings about this side, the worst first."""
    own = sorted(subject.findings(side), key=lambda f: -RANK[f.severity or "info"])
    if not own:
        return [(0, "findings: none", "" if subject.known else "read alone: most rules need what came before")]
    rows: list[Row] = [(0, "findings:", "")]
    for finding in own[:_MOST]:
        rows += _finding(finding, subject.rules.get(finding.rule))
    if len(own) > _MOST:
        rows.append((2, f"# … {len(own) - _MOST} more", ""))
    return rows


def _finding(finding: Finding, rule: Rule | None) -> list[Row]:
    name = f" {rule.name}" if rule is not None else ""
    items: list[tuple[str, str, str]] = [
        ("rule", scalar(f"{finding.rule}{name} ({finding.severity}, {finding.party})"), ""),
        ("says", scalar(finding.message, 2_000), ""),
    ]
    for number, evidence in enumerate(finding.evidence[:6]):
        again = f" {number + 1}" if number else ""
        items.append((f"where{again}", scalar(evidence.where), ""))
        items.append((f"found{again}", scalar(evidence.value), ""))
        if evidence.expected is not None:
            items.append((f"expected{again}", scalar(evidence.expected), ""))
    if rule is not None:
        told = explanation.of(rule)
        items += [(word, scalar(text, 2_000), "") for word, text in (("why", told.why), ("fix", told.fix)) if text]
    if finding.related:
        items.append(("see also", scalar(", ".join(short_flow(f) for f in finding.related[:10])), "flows"))
    items.append(("spec", scalar(finding.spec or (rule.spec if rule is not None else "")), ""))
    rows = pairs(items, 4)
    return [(2, f"- {rows[0][1]}", rows[0][2]), *rows[1:]]


def unchecked(subject: Subject, side: str) -> list[Row]:
    """What was not checked, and why: silence is not a pass. Said where the request stands, if it is not about the response."""
    shown = [u for u in subject.record.unchecked if ("response" in u.what or "stream" in u.what) == (side == "response")]
    if not shown:
        return []
    rows: list[Row] = [(0, "unchecked:", "")]
    return [*rows, *((2, f"- {scalar(f'{u.what}: {u.why}')}", "") for u in shown[:20])]


def faults(subject: Subject) -> list[Row]:
    """Faults of mcp-wiretap itself while it looked at this flow."""
    shown = subject.record.faults
    if not shown:
        return []
    rows: list[Row] = [(0, "faults:", "of mcp-wiretap; the traffic was not touched")]
    return [*rows, *((2, f"- {scalar(f'{where}: {error}')}", "") for where, error in shown[:10])]
