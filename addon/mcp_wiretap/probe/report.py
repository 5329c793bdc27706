"""What probes came to, for people and for programs: text, JSON, JUnit, SARIF."""

import json
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from mcp_wiretap import __version__, explanation
from mcp_wiretap.probe.run import VERDICTS, Report, Result
from mcp_wiretap.report.words import plural
from mcp_wiretap.rule.probes import Probe
from mcp_wiretap.wire.secret import concealed, mask_header, masked, one_line, shown, visible

SCHEMA = 1
_LEVELS = {"fail": "error", "warn": "warning", "note": "note"}
_FIRST = ("fail", "warn", "note", "skipped", "pass")


def as_text(report: Report) -> list[str]:
    """The failures first, what was skipped by its reason, what passed in one line."""
    lines = [f"{report.target}, {report.era}" + (", a server that also speaks older revisions" if report.dual else "")]
    for tried in report.bases:
        name = f" {tried.base.name}" if tried.base.name else ""
        lines.append(f"  base {tried.base.method}{name}: {'works' if not tried.works else tried.works}")
    for verdict in ("fail", "warn", "note"):
        for result in _of(report, verdict):
            word = "FAIL" if verdict == "fail" else verdict
            lines.append(f"{word:5} {result.probe.id}  {result.probe.title}: {_short(result.why)}")
            if verdict != "note":
                lines.append(f"           {result.probe.explanation}")
                lines.append(f"           {result.probe.spec}" + (f" [{result.probe.rule}]" if result.probe.rule else ""))
            lines += [f"           {f.severity} {f.rule}: {_short(f.message)}" for f in result.findings[:3] if verdict == "fail"]
    reasons: dict[str, list[str]] = {}
    for result in _of(report, "skipped"):
        reasons.setdefault(result.why, []).append(result.probe.id)
    lines += [f"skip  {', '.join(ids)}: {_short(why)}" for why, ids in reasons.items()]
    passed = [result.probe.id for result in _of(report, "pass")]
    if passed:
        lines.append(f"pass  {', '.join(passed)}")
    lines.append(
        ", ".join(f"{report.count(verdict)} {verdict}" for verdict in VERDICTS) + f"; {plural(len(report.sent), 'request')} sent"
    )
    if report.not_called:
        lines.append(
            f"Not called: {', '.join(sorted(report.not_called)[:20])} (not annotated as read-only; --tool NAME calls one)"
        )
    if report.credentials:
        lines.append(f"Not sent, as they belong to another server: {', '.join(report.credentials)}; --header sends one")
    if report.stopped:
        lines.append(f"Stopped: {report.stopped}")
    return [visible(concealed(line)) for line in lines]


def _of(report: Report, verdict: str) -> list[Result]:
    return [result for result in report.results if result.verdict == verdict]


def _short(text: str) -> str:
    return shown(text, 300)


def as_json(report: Report) -> dict[str, Any]:
    """One object; additive changes only."""
    made: dict[str, Any] = _concealed(
        {
            "target": report.target,
            "era": report.era,
            "dual": report.dual,
            "bases": [
                {
                    "id": tried.base.flow,
                    "method": tried.base.method,
                    "name": tried.base.name,
                    "flow": tried.base.flow,
                    "works": tried.works or True,
                }
                for tried in report.bases
            ],
            "probes": [_result(result) for result in report.results],
            "summary": {verdict: report.count(verdict) for verdict in VERDICTS},
            "requests": len(report.sent),
            "not_called": report.not_called,
            "left_out": report.credentials,
            "stopped": report.stopped,
        }
    )
    return {"schema": SCHEMA, **made}


def _result(result: Result) -> dict[str, Any]:
    probe, answer = result.probe, result.answer
    return {
        "id": probe.id,
        "title": probe.title,
        "base": result.base.flow if result.base is not None else None,
        "request": _request(result) if result.sent is not None else None,
        "expected": [
            {"status": sorted(right.statuses) or None, "code": right.code, "kind": sorted(right.kinds)} for right in probe.right
        ],
        "answer": {"status": answer.status, "code": answer.code, "kind": answer.kind, "message": answer.message}
        if answer
        else None,
        "verdict": result.verdict,
        "why": result.why,
        "level": probe.level,
        "rule": probe.rule,
        "spec": probe.spec,
        "flow": result.sent.flow if result.sent is not None else None,
        "findings": [{"rule": f.rule, "severity": f.severity, "message": f.message} for f in result.findings],
    }


def _request(result: Result) -> dict[str, Any]:
    assert result.sent is not None
    call = result.sent.call
    body = call.raw.decode("utf-8", "replace") if call.raw is not None else masked(call.body)
    return {
        "method": call.http_method,
        "headers": [[name, mask_header(name, value)] for name, value in call.headers],
        "body": body,
    }


def _concealed(value: Any) -> Any:
    if isinstance(value, str):
        return concealed(value)
    if isinstance(value, dict):
        return {name: _concealed(inner) for name, inner in value.items()}
    return [_concealed(inner) for inner in value] if isinstance(value, list) else value


def as_junit(*reports: Report) -> str:
    """A test suite for each era, a test case for each probe. What only warns does not fail."""
    suites = [_suite(report) for report in reports]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", *suites, "</testsuites>", ""])


def _suite(report: Report) -> str:
    cases = []
    for result in sorted(report.results, key=lambda r: _FIRST.index(r.verdict)):
        name = f"{result.probe.id} {result.probe.title}"
        inner = ""
        if result.verdict == "fail":
            text = f"{_short(result.why)}\n{result.probe.explanation}\n{result.probe.spec}"
            inner = f"<failure message={_attribute(_short(result.why))}>{_text(text)}</failure>"
        elif result.verdict == "skipped":
            inner = f"<skipped message={_attribute(_short(result.why))}/>"
        elif result.verdict in ("warn", "note"):
            inner = f"<system-out>{_text(f'{result.verdict}: {_short(result.why)}')}</system-out>"
        cases.append(f'  <testcase classname="mcp-wiretap probe {report.era}" name={_attribute(name)}>{inner}</testcase>')
    head = (
        f'<testsuite name={_attribute(f"mcp-wiretap probe {report.target}")} tests="{len(report.results)}" '
        f'failures="{report.count("fail")}" errors="0" skipped="{report.count("skipped")}">'
    )
    return "\n".join([head, *cases, "</testsuite>"])


def _attribute(text: str) -> str:
    return quoteattr(one_line(concealed(text), 500))


def _text(text: str) -> str:
    return escape("\n".join(visible(concealed(line)) for line in text.split("\n")))


def as_sarif(report: Report) -> dict[str, Any]:
    """SARIF 2.1.0: a result for each probe that failed, warned or noted something."""
    told = [result for result in report.results if result.verdict in _LEVELS]
    probes = {result.probe.id: result.probe for result in told}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "mcp-wiretap probe", "version": __version__, "rules": list(map(_rule, probes.values()))}
                },
                "results": [
                    {
                        "ruleId": result.probe.id,
                        "level": _LEVELS[result.verdict],
                        "message": {"text": visible(concealed(f"{result.probe.title}: {_short(result.why)}"))},
                        "locations": [
                            {"logicalLocations": [{"fullyQualifiedName": visible(concealed(report.target)), "kind": "module"}]}
                        ],
                    }
                    for result in told
                ],
            }
        ],
    }


def _rule(probe: Probe) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": probe.id,
        "shortDescription": {"text": probe.title},
        "fullDescription": {"text": probe.explanation},
        "properties": {"rule": probe.rule, "spec": probe.spec, "level": probe.level},
    }
    if address := explanation.link(probe.spec):
        made["helpUri"] = address
    return made


def list_of(probes: Sequence[Probe]) -> list[str]:
    """All probes, one line each."""
    return [
        f"{one.id}  {one.level:8}  {one.title}: {' or '.join(map(str, one.right))}" + (f"  [{one.rule}]" if one.rule else "")
        for one in probes
    ]


def list_as_json(probes: Sequence[Probe]) -> str:
    return json.dumps(
        [
            {
                "id": one.id,
                "title": one.title,
                "era": one.era,
                "level": one.level,
                "rule": one.rule,
                "spec": one.spec,
                "needs": sorted(one.needs),
                "right": [str(right) for right in one.right],
                "explanation": one.explanation,
            }
            for one in probes
        ],
        indent=1,
    )
