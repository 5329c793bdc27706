"""The report of a replay for people: a line for each operation, what differs below it."""

from mcp_wiretap.replay.outcome import FoundOnce, Report
from mcp_wiretap.wire.secret import visible


def text_of(report: Report) -> str:
    """The report for people."""
    lines = []
    if report.server_was and report.server_now and report.server_was != report.server_now:
        lines.append(f"server   was {report.server_was}, now {report.server_now}")
    if report.other_era:
        lines.append(f"era      was {report.era_was}, now {report.era_now}")
    for operation in report.operations:
        lines.append(f"{operation.outcome:<8} {operation.request}")
        details = [*([operation.error] if operation.error else []), *map(str, operation.differences), *operation.notes]
        lines += [f"           {detail}" for detail in details]
    lines += [_finding("new", found) for found in report.new]
    lines += [_finding("gone", found) for found in report.gone]
    if report.stopped is not None:
        lines.append(f"stopped  {report.stopped}")
    if report.left_out:
        lines.append(f"{report.told_left_out}")
    counts = ", ".join(f"{report.count(outcome)} {outcome}" for outcome in ("same", "changed", "failed"))
    number = len(report.operations)
    lines.append(
        f"{number} operation{'s' if number != 1 else ''}: {counts}; findings: {len(report.new)} new, {len(report.gone)} gone"
    )
    return "".join(visible(line) + "\n" for line in lines)


def _finding(word: str, found: FoundOnce) -> str:
    return f"{word:<8} {found.rule} {found.severity} {found.party}: {found.message} ({found.request})"
