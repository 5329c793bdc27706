"""`audit --format sarif`: SARIF 2.1.0 for code scanning services: one run, every rule that was at work, at most `MOST` results.

A recording is a binary file, so a result points at the file as a whole; where in the traffic it is, its logical locations say.
Spec: SARIF 2.1.0 (OASIS), the property names are those of its schema.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import Any, TextIO
from urllib.parse import quote

from mcp_wiretap import __version__, explanation
from mcp_wiretap.report.audit import NAME, Audit
from mcp_wiretap.report.words import sorted_failures
from mcp_wiretap.rule import Rule
from mcp_wiretap.wire.secret import escaped_json

MOST = 5_000  # what GitHub shows of one run; it refuses a run with more than 25,000
RELATED = 50
FAILURES = 200
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
FINGERPRINT = "mcpWiretapFinding/v1"


def write(audit: Audit, out: TextIO) -> None:
    rules = list(audit.rules.values())
    position = {rule.id: number for number, rule in enumerate(rules)}
    head = {
        "tool": {
            "driver": {
                "name": NAME,
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [_invocation(audit)],
        "automationDetails": {"id": f"{NAME}/"},
        "columnKind": "unicodeCodePoints",
        "properties": {
            "summary": audit.summary,
            "resultsLeftOut": max(sum(audit.tally.severities.values()) - MOST, 0),
            "failures": _failures(audit),
        },
    }
    out.write('{"$schema": "https://json.schemastore.org/sarif-2.1.0.json",\n"version": "2.1.0",\n"runs": [\n')
    out.write(escaped_json(json.dumps(head, ensure_ascii=False))[:-1] + ',\n"results": [')
    between = "\n"
    for result in _results(audit, position):
        out.write(between + escaped_json(json.dumps(result, ensure_ascii=False)))
        between = ",\n"
    out.write("]}\n]}\n" if between == "\n" else "\n]}\n]}\n")


def _failures(audit: Audit) -> list[dict[str, Any]]:
    """Operations that failed, in the words of the other side, whether a result explains them or not."""
    return [
        {
            "text": row.line,
            "count": row.count,
            "explained": row.explained,
            "endpoint": row.endpoint,
            "input": row.input,
            "flow": row.first,
        }
        for row in sorted_failures(audit.tally)[:FAILURES]
    ]


def _results(audit: Audit, position: dict[str, int]) -> Iterator[dict[str, Any]]:
    """The worst first where not all fit."""
    left = MOST
    for severity in ("error", "warning", "info"):
        if not audit.tally.severities[severity]:
            continue
        findings = (finding for finding in audit.objects("finding") if finding["severity"] == severity)
        chosen = list(islice(findings, left))
        left -= len(chosen)
        flows = audit.flows({(finding["input"], finding["flow"]) for finding in chosen})
        for finding in chosen:
            yield _result(finding, flows.get((finding["input"], finding["flow"]), {}), position)


def _result(finding: dict[str, Any], flow: dict[str, Any], position: dict[str, int]) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(finding["input"])}}}
    names = [f"flow {finding['flow']}", *(evidence["where"] for evidence in finding["evidence"])]
    location["logicalLocations"] = [
        {"fullyQualifiedName": name, "kind": "member" if number else "module"} for number, name in enumerate(names)
    ]
    result: dict[str, Any] = {
        "ruleId": finding["rule"],
        "level": LEVELS[finding["severity"]],
        "message": {"text": _message(finding)},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint(finding, flow)},
        "properties": {
            "party": finding["party"],
            "flow": finding["flow"],
            "related": finding["related"][:RELATED],
            "evidence": finding["evidence"],
            "spec": finding["spec"],
            "errorMessage": flow.get("error_message"),
        },
    }
    if finding["rule"] in position:
        result["ruleIndex"] = position[finding["rule"]]
    return result


def _message(finding: dict[str, Any]) -> str:
    text: str = finding["message"]
    return f"{text[:1].upper()}{text[1:]} (sent by the {finding['party']})."


def fingerprint(finding: dict[str, Any], flow: dict[str, Any]) -> str:
    """What makes a finding the same one in the next recording: rule, party, path of the server, operation, place, message. Flow
    ids, times, ports, counters and random tokens change from one recording to the next and are taken out."""
    path = (flow.get("endpoint") or "").partition("://")[2].partition("/")[2]
    method = flow.get("method") or flow.get("http_method") or ""
    name = "" if method.startswith("tasks/") else flow.get("name") or ""
    places = [_stable(evidence["where"]) for evidence in finding["evidence"]]
    parts = [finding["rule"], finding["party"], path, method, name, _stable(finding["message"]), *places]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


_CHANGING = re.compile(r"[0-9A-Fa-f-]*[0-9][0-9A-Fa-f-]*")  # numbers, hexadecimal tokens, UUIDs


def _stable(text: str) -> str:
    return _CHANGING.sub("0", text)


def _rule(rule: Rule) -> dict[str, Any]:
    told = explanation.of(rule)
    described: dict[str, Any] = {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": told.demand},
        "help": {"text": _help_text(rule, told), "markdown": _help_markdown(rule, told)},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {
            "tags": ["mcp", rule.family, f"party:{rule.party}", f"era:{rule.era}", rule.level],
            "precision": "high" if rule.level == "must" else "medium",
            "problem.severity": {"info": "recommendation"}.get(rule.severity, rule.severity),
            "spec": rule.spec,
        },
    }
    if address := explanation.link(rule.spec):
        described["helpUri"] = address
    return described


def _help_text(rule: Rule, told: explanation.Explanation) -> str:
    parts = [told.demand, told.why and f"Why: {told.why}", told.fix and f"Fix: {told.fix}", f"Specification: {rule.spec}"]
    return "\n\n".join(part for part in parts if part)


def _help_markdown(rule: Rule, told: explanation.Explanation) -> str:
    address = explanation.link(rule.spec)
    parts = [told.demand, told.why and f"**Why:** {told.why}", told.fix and f"**Fix:** {told.fix}"]
    for heading, script in (("Wrong", told.wrong), ("Right", told.right)):
        if script:
            parts.append(f"{heading}:\n\n```\n{script}\n```")
    parts.append(f"Specification: [{rule.spec}]({address})" if address else f"Specification: {rule.spec}")
    return "\n\n".join(part for part in parts if part)


def _invocation(audit: Audit) -> dict[str, Any]:
    """Whether the tool could do its work: damaged inputs and faults of our own are said here, findings are not."""
    notices = [
        {"level": "error", "message": {"text": f"{input_.path}: {input_.error}; audited up to there"}} for input_ in audit.damaged
    ]
    notices += [
        {"level": "error", "message": {"text": f"fault in {fault['where']}: {fault['error']} (flow {fault['flow']})"}}
        for fault in islice(audit.objects("fault"), 20)
    ]
    notices += [
        {"level": "note", "message": {"text": f"{reason.count} not checked: {reason.what}: {reason.why}"}}
        for reason in islice(audit.tally.reasons.values(), 50)
    ]
    return {"executionSuccessful": not audit.damaged, "exitCode": audit.exit_status, "toolExecutionNotifications": notices}


def _uri(path: str) -> str:
    """A relative URI where the path is relative; what stands in a path is not URI syntax."""
    pure = PurePath(path)
    uri = quote(pure.as_posix(), safe="/-._~")
    return f"file://{uri}" if pure.is_absolute() else uri
