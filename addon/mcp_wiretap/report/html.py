"""`audit --format html`: one file that needs nothing else: no script, no network, readable on a phone, dark and light.

Everything from the wire has its control and bidirectional characters written as escapes, then Jinja2 escapes the markup. What is
listed is bounded; the counts are of everything.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Any, TextIO

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from mcp_wiretap import __version__, explanation
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.failures import Failure
from mcp_wiretap.report.page import STYLE, TEMPLATE
from mcp_wiretap.report.tally import ConversationRow, EndpointRow, Group
from mcp_wiretap.report.words import (
    HEADINGS,
    counted,
    duration,
    link_words,
    plural,
    revisions_words,
    sorted_failures,
    sorted_groups,
    worst_first,
)
from mcp_wiretap.trace.summary.error_words import quoted
from mcp_wiretap.wire import secret

CASES = 20  # findings written out of one group
ROWS = 500  # of one table
FLOWS = 2_000
LONGEST = 600  # characters of one value
GLYPHS = {"error": "✕", "warning": "▲", "info": "i"}


def write(audit: Audit, out: TextIO, *, zone: tzinfo = UTC) -> None:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters["prose"] = prose
    template = environment.from_string(TEMPLATE)
    for piece in template.generate(_Page(audit, zone).context()):
        out.write(piece)


class _Page:
    def __init__(self, audit: Audit, zone: tzinfo) -> None:
        self.audit = audit
        self.tally = audit.tally
        self.zone = zone

    def context(self) -> dict[str, Any]:
        audit, tally = self.audit, self.tally
        findings = [self._section(severity) for severity in ("error", "warning", "info") if tally.severities[severity]]
        endpoints = sorted(tally.endpoints.values(), key=worst_first)
        reasons = sorted(tally.reasons.values(), key=lambda reason: -reason.count)
        failures = sorted_failures(tally)
        tiles = list(self._tiles())
        context: dict[str, Any] = {
            "style": Markup(STYLE),
            "version": __version__,
            "exit_status": audit.exit_status,
            "fail_on": audit.fail_on,
            "verdict": ", ".join(f"{tile['count']} {tile['word']}" for tile in tiles[:2]),
            "when": self._when(),
            "tiles": tiles,
            "scope": f"{plural(len(audit.inputs), 'recording')}, {plural(tally.flows, 'flow')}, of them "
            f"{tally.mcp_flows} of MCP; findings in {tally.flows_with_findings}.",
            "several": len(audit.inputs) > 1,
            "damaged": [{"path": shown(i.path), "error": shown(i.error or ""), "flows": i.flows} for i in audit.damaged],
            "endpoints": [_endpoint(row) for row in endpoints[:ROWS]],
            "more_endpoints": max(len(endpoints) - ROWS, 0),
            "findings": findings,
            "failures": [_failure(row) for row in failures[:ROWS]],
            "failure_words": f"{tally.failed} of {plural(tally.operations, 'operation')}",
            "failures_count": tally.failed,
            "more_failures": max(len(failures) - ROWS, 0),
            "conversations": [_conversation(row) for row in tally.conversations[:ROWS]],
            "conversation_counts": counted(tally.statuses),
            "more_conversations": sum(tally.statuses.values()) - len(tally.conversations[:ROWS]),
            "reasons": [
                {"count": r.count, "what": shown(r.what), "why": shown(r.why), "flow": shown(r.flow)} for r in reasons[:ROWS]
            ],
            "more_reasons": max(len(reasons) - ROWS, 0),
            "silenced": [
                {"rule": shown(s.rule), "endpoint": shown(s.endpoint), "count": s.count, "reason": shown(s.told)}
                for s in audit.silenced
            ],
            "faults": [
                {k: shown(v) if isinstance(v, str) else v for k, v in fault.items()}
                for fault in islice(audit.objects("fault"), ROWS)
            ],
            "fault_count": tally.faults,
            "dropped": sorted(tally.dropped.items()),
            "flows": [self._flow(flow) for flow in islice(self._mcp_flows(), FLOWS)],
            "flow_words": plural(tally.mcp_flows, "flow")
            + (f", the first {FLOWS} of them listed" if tally.mcp_flows > FLOWS else ""),
        }
        context["sections"] = _sections(context)
        return context

    def _tiles(self) -> Iterator[dict[str, Any]]:
        for severity, word in (("error", "error"), ("warning", "warning"), ("info", "note")):
            count = self.tally.severities[severity]
            if count:
                yield {"kind": severity, "glyph": GLYPHS[severity], "count": count, "word": plural(count, word).split(" ")[1]}
        if not any(self.tally.severities.values()):
            well = self.tally.mcp_flows and not self.tally.failed
            yield {"kind": "ok" if well else "", "glyph": "", "count": "no", "word": "findings"}
        if self.tally.failed:
            yield {"kind": "warning", "glyph": "", "count": self.tally.failed, "word": "failed"}
        yield {"kind": "", "glyph": "", "count": self.tally.mcp_flows, "word": "MCP flows"}
        yield {"kind": "", "glyph": "", "count": len(self.tally.endpoints), "word": "endpoints"}

    def _section(self, severity: str) -> dict[str, Any]:
        cases = self._cases(severity)
        return {
            "id": HEADINGS[severity].lower(),
            "severity": severity,
            "heading": HEADINGS[severity],
            "glyph": GLYPHS[severity],
            "count": self.tally.severities[severity],
            "groups": [
                self._group(group, cases.get((group.rule, group.party), [])) for group in sorted_groups(self.tally, severity)
            ],
        }

    def _cases(self, severity: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """The first findings of each group, with what their flows were about."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        said: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)  # what says the same is written out once
        for finding in self.audit.objects("finding"):
            if finding["severity"] != severity:
                continue
            key = (finding["rule"], finding["party"])
            words = f"{finding['message']} {finding['evidence']}"
            if (there := said[key].get(words)) is not None:
                there["same"] += 1
            elif len(found[key]) < CASES:
                said[key][words] = there = {**finding, "same": 0}
                found[key].append(there)
        wanted = {(finding["input"], finding["flow"]) for findings in found.values() for finding in findings}
        flows = self.audit.flows(wanted)
        return {
            key: [self._case(finding, flows.get((finding["input"], finding["flow"]), {})) for finding in findings]
            for key, findings in found.items()
        }

    def _case(self, finding: dict[str, Any], flow: dict[str, Any]) -> dict[str, Any]:
        return {
            "message": shown(finding["message"]),
            "flow": shown(finding["flow"]),
            "input": shown(finding["input"]),
            "operation": _operation(flow),
            "at": self._clock(flow.get("started")),
            "evidence": [
                {
                    "where": shown(evidence["where"]).removesuffix(":"),
                    "value": shown(evidence["value"]),
                    "expected": shown(evidence["expected"]) if evidence["expected"] is not None else None,
                }
                for evidence in finding["evidence"]
            ],
            "related": [shown(related) for related in finding["related"][:20]],
            "same": finding["same"],
        }

    def _group(self, group: Group, cases: list[dict[str, Any]]) -> dict[str, Any]:
        rule = self.audit.rules.get(group.rule)
        return {
            "anchor": f"{group.severity}-{group.rule}-{group.party}",
            "rule": group.rule,
            "title": rule.title if rule is not None else group.rule,
            "told": explanation.of(rule) if rule is not None else explanation.Explanation(""),
            "party": group.party,
            "count": group.count,
            "spec": group.spec,
            "link": explanation.link(group.spec),
            "cases": cases,
            "more": group.count - sum(1 + case["same"] for case in cases),
        }

    def _mcp_flows(self) -> Iterator[dict[str, Any]]:
        return (flow for flow in self.audit.objects("flow") if flow["kind"] == "mcp")

    def _flow(self, flow: dict[str, Any]) -> dict[str, Any]:
        code = flow["error_code"]
        return {
            "at": self._clock(flow["started"]),
            "era": flow["era"],
            "operation": _operation(flow),
            "status": flow["status"] if flow["status"] is not None else "–",
            "outcome": flow["outcome"].replace("_", " ") + (f" {shown(str(code))}" if code is not None else ""),
            "said": quoted(flow["error_message"]) if flow["error_message"] else "",
            "flow": shown(flow["id"]),
        }

    def _when(self) -> str:
        first, last = self._moment(self.tally.first), self._moment(self.tally.last)
        if first is None or last is None:
            return ""
        return f"{first:%Y-%m-%d %H:%M:%S} – {last:%Y-%m-%d %H:%M:%S} {last:%Z}"

    def _clock(self, at: float | None) -> str:
        moment = self._moment(at)
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}" if moment is not None else ""

    def _moment(self, at: float | None) -> datetime | None:
        try:
            return datetime.fromtimestamp(at, self.zone) if at is not None else None
        except (ValueError, OverflowError, OSError):
            return None


def _endpoint(row: EndpointRow) -> dict[str, Any]:
    return {
        "era": row.era,
        "server": shown(row.server),
        "url": shown(row.url),
        "revisions": shown(revisions_words(row.revisions)),
        "flows": row.flows,
        "errors": row.counts.get("error", 0),
        "warnings": row.counts.get("warning", 0),
        "expected": row.expected,
        "broken": shown(row.broken) if row.broken is not None else None,
    }


def _failure(row: Failure) -> dict[str, Any]:
    return {
        "count": row.count,
        "line": shown(row.line),
        "why": shown(row.explained),
        "url": shown(row.endpoint),
        "flow": shown(row.first),
    }


def _conversation(row: ConversationRow) -> dict[str, Any]:
    return {
        "status": row.status.replace("-", " "),
        "kind": {"error": "error", "broken": "error", "complete": "ok"}.get(row.status, "warning"),
        "operation": shown(row.operation),
        "rounds": row.rounds,
        "total": duration(row.total_ms) if row.total_ms is not None else "–",
        "client": duration(row.client_ms) if row.client_ms else "–",
        "links": link_words(row, "×"),
        "flow": shown(row.id),
    }


def _operation(flow: dict[str, Any]) -> str:
    method, name = flow.get("method"), flow.get("name")
    if method:
        return shown(f"{method} {name}" if name else method)
    return shown(f"{flow.get('http_method', '')} {flow.get('endpoint') or ''}".strip())


def _sections(context: dict[str, Any]) -> list[tuple[str, str]]:
    """What the navigation lists: the sections that are there."""
    named = [("endpoints", "Endpoints", "endpoints")]
    named += [(section["id"], section["heading"], "findings") for section in context["findings"]]
    named += [
        ("failed", "Failed", "failures"),
        ("conversations", "Conversations", "conversations"),
        ("unchecked", "Not checked", "reasons"),
        ("silenced", "Silenced", "silenced"),
        ("faults", "Faults", "faults"),
        ("dropped", "Dropped", "dropped"),
        ("flows", "Flows", "flows"),
    ]
    return [(id_, name) for id_, name, key in named if context[key]]


def prose(text: str) -> Markup:
    """Prose of a rule: escaped, what stands between backticks as code."""
    parts = text.replace("``", "`").split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 and number < len(parts) - 1 else escape(part)
        for number, part in enumerate(parts)
    )


def shown(text: str) -> str:
    return secret.shown(text, LONGEST)
