"""The page Findings: what is wrong, by rule and party, each with evidence and with the explanation of the rule."""

import tomllib
from datetime import tzinfo
from typing import Any

from mcp_wiretap import explanation
from mcp_wiretap.report.pages import rows as parts
from mcp_wiretap.report.pages.filters import Filter
from mcp_wiretap.report.pages.ledger import Group
from mcp_wiretap.report.pages.traces import Traces
from mcp_wiretap.report.pages.words import SEVERITY, clock, day, host, server_name, shown
from mcp_wiretap.trace.finding import RANK, Silence
from mcp_wiretap.wire.jsonrpc import dumps

CASES = 60  # findings of a group that an opened row shows
ENDPOINTS = 20


def counts(traces: Traces) -> dict[str, int]:
    """Findings by severity and by party."""
    found = {"all": 0, "error": 0, "warning": 0, "info": 0, "client": 0, "server": 0}
    for group in traces.groups():
        found["all"] += group.count
        found[group.severity] += group.count
        found[group.party] += group.count
    return found


def rows(traces: Traces, chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """One row a rule, party and severity: the worst and most frequent first."""
    groups = [group for group in traces.groups() if _fits(traces, group, chosen)]
    groups.sort(key=lambda g: (-RANK[g.severity], -g.count, g.rule, g.party))
    return [row(traces, group, zone) for group in groups]


def _fits(traces: Traces, group: Group, chosen: Filter) -> bool:
    for key, value in chosen.chosen.items():
        if key == "severity" and group.severity != value:
            return False
        if key == "party" and group.party != value:
            return False
        if key == "endpoint" and not any(value in url for url, count in group.endpoints.items() if count > 0):
            return False
    for wanted, key, value in chosen.words:
        rule = traces.rules.get(group.rule)
        texts = f"{group.rule} {rule.name if rule else ''} {rule.title if rule else ''} {' '.join(group.endpoints)}".lower()
        if key == "party":
            there = group.party == value
        elif key == "severity":
            there = group.severity == value
        elif key == "rule":
            there = group.rule.lower().startswith(value)
        else:
            there = value in texts
        if there is not wanted:
            return False
    return True


def row(traces: Traces, group: Group, zone: tzinfo | None) -> dict[str, Any]:
    rule = traces.rules.get(group.rule)
    urls = [url for url, count in group.endpoints.items() if count > 0]
    endpoint = next((t.endpoint for ledger in traces.ledgers for u, t in ledger.endpoints.items() if urls and u == urls[0]), None)
    first, last = clock(group.first, zone, millis=False), clock(group.last, zone, millis=False)
    return {
        "key": group.key,
        "rule": group.rule,
        "title": rule.title if rule is not None else group.rule,
        "party": group.party,
        "severity": group.severity,
        "state": SEVERITY[group.severity],
        "count": group.count,
        "server": (server_name(endpoint) if endpoint is not None else host(urls[0]) if urls else "")
        + (f" +{len(urls) - 1}" if len(urls) > 1 else ""),
        "era": endpoint.era if endpoint is not None else "unknown",
        "span": first if first == last else f"{first} – {last}",
    }


def detail(traces: Traces, key: str, zone: tzinfo | None) -> dict[str, Any] | None:
    """The cases of a group with their evidence, and what the rule says."""
    group = next((g for g in traces.groups() if g.key == key), None)
    if group is None:
        return None
    rule = traces.rules.get(group.rule)
    told = explanation.of(rule) if rule is not None else explanation.Explanation("")
    cases: list[dict[str, Any]] = []
    for flow in group.flows:
        found = traces.find(flow)
        if found is None:
            continue
        ledger, exchange = found
        for finding in exchange.findings:
            if (finding.rule, finding.party, finding.severity) == (group.rule, group.party, group.severity) and len(
                cases
            ) < CASES:
                cases.append(
                    {
                        "time": clock(exchange.started, zone),
                        "day": day(exchange.started, zone),
                        "flow": parts.link(flow, "response" if finding.party == "server" else "request"),
                        "operation": shown(ledger.head(exchange).flow, 80),
                        "mcp": exchange.kind == "mcp",
                        "method": shown(exchange.method or exchange.http_method, 60),
                        "name": shown(exchange.name, 80) if exchange.name is not None else "",
                        "message": shown(finding.message, 600),
                        "evidence": parts.evidence(finding.evidence),
                        "related": [parts.link(other) for other in finding.related[:10]],
                    }
                )
    urls = [shown(url, 200) for url, count in group.endpoints.items() if count > 0][:ENDPOINTS]
    return {
        "key": group.key,
        "rule": group.rule,
        "family": group.rule.rstrip("0123456789"),
        "name": rule.name if rule is not None else "",
        "title": rule.title if rule is not None else group.rule,
        "party": group.party,
        "severity": group.severity,
        "count": group.count,
        "cases": cases,
        "more": max(group.count - len(cases), 0),
        "told": told,
        "spec": rule.spec if rule is not None else "",
        "link": explanation.link(rule.spec) if rule is not None else None,
        "sep": rule.sep if rule is not None else None,
        "urls": urls,
        "first_flow": cases[0]["flow"]["id"] if cases else None,
    }


def project_lines(silence: Silence) -> str:
    """The lines of wiretap.toml that keep a silence."""
    lines = ["[[silence]]", f"rule = {_toml(silence.rule)}"]
    if silence.endpoint not in ("", "*"):
        lines.append(f"endpoint = {_toml(silence.endpoint)}")
    return "\n".join([*lines, f"reason = {_toml(silence.reason)}"]) + "\n"


def _toml(text: str) -> str:
    """A basic string of TOML; JSON's escapes are among its own."""
    written = dumps(text).replace("\x7f", "\\u007f")
    tomllib.loads(f"x = {written}")
    return written
