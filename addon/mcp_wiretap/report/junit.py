"""`audit --format junit`: JUnit XML for CI systems: one suite an input, one test case a rule that was at work.

A case fails where the rule has findings at or above `--fail-on`; milder ones stand in its output. An input that could not be read
to its end is a case with an error. XML 1.0 cannot hold most control characters: they are written as escapes.
"""

from collections import defaultdict
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

from mcp_wiretap.report.audit import NAME, Audit
from mcp_wiretap.report.collect import Input
from mcp_wiretap.report.failures import Failure
from mcp_wiretap.report.words import sorted_failures
from mcp_wiretap.wire.secret import visible

EACH = 50  # findings written out in one case; the rest is counted


class _Case:
    """The findings of one rule in one input."""

    def __init__(self) -> None:
        self.failures = 0
        self.milder = 0
        self.failed: list[str] = []
        self.said: list[str] = []

    def add(self, finding: dict[str, Any], fails: bool) -> None:
        if fails:
            self.failures += 1
        else:
            self.milder += 1
        lines = self.failed if fails else self.said
        if len(lines) < EACH:
            lines.append(_words(finding))


def write(audit: Audit, out: TextIO) -> None:
    cases: dict[str, dict[str, _Case]] = defaultdict(lambda: defaultdict(_Case))
    for finding in audit.objects("finding"):
        fails = audit.fails(finding["severity"], finding["rule"])
        cases[finding["input"]][finding["rule"]].add(finding, fails)
    rules = list(audit.rules) + sorted({rule for found in cases.values() for rule in found} - audit.rules.keys())
    tests = (len(rules) + 1) * len(audit.inputs)
    failures = sum(1 for found in cases.values() for case in found.values() if case.failures)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f'<testsuites name="{NAME}" tests="{tests}" failures="{failures}" errors="{len(audit.damaged)}">\n')
    for input_ in audit.inputs:
        _suite(audit, input_, rules, cases.get(input_.path, {}), out)
    out.write("</testsuites>\n")


def _suite(audit: Audit, input_: Input, rules: list[str], cases: dict[str, _Case], out: TextIO) -> None:
    failures = sum(1 for case in cases.values() if case.failures)
    errors = 1 if input_.error is not None else 0
    out.write(
        f'  <testsuite name={_attribute(input_.path)} tests="{len(rules) + 1}" failures="{failures}" errors="{errors}" '
        f'skipped="0">\n'
    )
    _reading(input_, out)
    for rule in rules:
        _case(audit, rule, cases.get(rule), out)
    failed = [f"{row.count} failed: {row.line} ({row.explained}; flow {row.first})" for row in _failures(audit, input_)]
    if failed:
        out.write(f"    <system-out>{_text(_listed(failed[:EACH], len(failed)))}</system-out>\n")
    out.write("  </testsuite>\n")


def _failures(audit: Audit, input_: Input) -> list[Failure]:
    """Operations that failed, in the words of the other side; whether that fails a case, findings decide."""
    return [row for row in sorted_failures(audit.tally) if row.input == input_.path]


def _reading(input_: Input, out: TextIO) -> None:
    out.write(f'    <testcase classname="{NAME}" name="the recording can be read to its end" time="0"')
    if input_.error is None:
        out.write("/>\n")
    else:
        out.write(f'>\n      <error type="damaged" message={_attribute(input_.error)}/>\n    </testcase>\n')


def _case(audit: Audit, rule: str, case: _Case | None, out: TextIO) -> None:
    known = audit.rules.get(rule)
    title = f"{rule} {known.title}" if known is not None else rule
    family = known.family if known is not None else rule
    out.write(f'    <testcase classname="{NAME}.{_text(family)}" name={_attribute(title)} time="0"')
    if case is None:
        out.write("/>\n")
        return
    out.write(">\n")
    if case.failures:
        message = case.failed[0].partition("\n")[0]
        out.write(f'      <failure type="{_text(rule)}" message={_attribute(message)}>')
        out.write(_text(_listed(case.failed, case.failures)) + "</failure>\n")
    if case.milder:
        out.write(f"      <system-out>{_text(_listed(case.said, case.milder))}</system-out>\n")
    out.write("    </testcase>\n")


def _listed(lines: list[str], count: int) -> str:
    more = [f"... and {count - len(lines)} more"] if count > len(lines) else []
    return "\n".join(lines + more)


def _words(finding: dict[str, Any]) -> str:
    lines = [f"{finding['severity']}: {finding['message']} (flow {finding['flow']}, {finding['party']})"]
    for evidence in finding["evidence"]:
        expected = f", expected {evidence['expected']}" if evidence["expected"] is not None else ""
        lines.append(f"    {evidence['where']}: {evidence['value']}{expected}")
    return "\n".join(lines)


def _attribute(text: str) -> str:
    return quoteattr(_characters(text))


def _text(text: str) -> str:
    return escape(_characters(text))


def _characters(text: str) -> str:
    """Without what XML cannot hold. Line breaks between findings stay, those of the traffic were escaped before."""
    return "\n".join(visible(line) for line in text.split("\n")).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
