"""The page Findings: what is wrong, by rule and party, each with evidence and with the explanation of the rule."""

import tomllib
from datetime import tzinfo
from typing import Any

from mcp_wiretap import explanation
from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Group, Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import SEVERITY, clock, day, host, server_name, shown
from mcp_wiretap.trace.finding import RANK, Finding, Silence
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.jsonrpc import dumps

CASES = 60  # findings of a group that an opened row shows
ENDPOINTS = 20
EVERYTHING = Filter()


def counts(traces: Traces, chosen: Filter) -> dict[str, int]:
    """Findings by severity and by party, of the endpoint in view."""
    found = {"all": 0, "error": 0, "warning": 0, "info": 0, "client": 0, "server": 0}
    for group in traces.groups():
        count = sum(_endpoints(group, chosen).values())
        found["all"] += count
        found[group.severity] += count
        found[group.party] += count
    return found


def _endpoints(group: Group, chosen: Filter) -> dict[str, int]:
    """The endpoints of a group that are in view, with the findings of each."""
    scope = chosen.scope
    return {url: count for url, count in group.endpoints.items() if count > 0 and scope in url.lower()}


def rows(traces: Traces, chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """One row a rule, party and severity: the worst and most frequent first."""
    groups = [group for group in traces.groups() if _fits(traces, group, chosen)]
    found = [row(traces, group, chosen, zone) for group in groups]
    return sorted(found, key=lambda r: (-RANK[r["severity"]], -r["count"], r["rule"], r["party"]))


def _fits(traces: Traces, group: Group, chosen: Filter) -> bool:
    if not _endpoints(group, chosen):
        return False
    for key, value in chosen.chosen.items():
        if key == "severity" and group.severity != value:
            return False
        if key == "party" and group.party != value:
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


def row(traces: Traces, group: Group, chosen: Filter, zone: tzinfo | None) -> dict[str, Any]:
    rule = traces.rules.get(group.rule)
    here = _endpoints(group, chosen)
    urls = list(here)
    endpoint = next((t.endpoint for ledger in traces.ledgers for u, t in ledger.endpoints.items() if urls and u == urls[0]), None)
    first, last = clock(group.first, zone, millis=False), clock(group.last, zone, millis=False)
    return {
        "key": group.key,
        "rule": group.rule,
        "title": rule.title if rule is not None else group.rule,
        "party": group.party,
        "severity": group.severity,
        "state": SEVERITY[group.severity],
        "count": sum(here.values()),
        "server": (server_name(endpoint) if endpoint is not None else host(urls[0]) if urls else "")
        + (f" +{len(urls) - 1}" if len(urls) > 1 else ""),
        "era": endpoint.era if endpoint is not None else "unknown",
        "span": (first if first == last else f"{first} – {last}") if not chosen.scope else "",
    }


def detail(traces: Traces, key: str, zone: tzinfo | None, chosen: Filter = EVERYTHING) -> dict[str, Any] | None:
    """The cases of a group with their evidence, those of the endpoint in view, and what the rule says. Cases that say the same
    are one."""
    group = next((g for g in traces.groups() if g.key == key), None)
    if group is None:
        return None
    rule = traces.rules.get(group.rule)
    told = explanation.of(rule) if rule is not None else explanation.Explanation("")
    here = _endpoints(group, chosen)
    cases: dict[tuple[str, str], dict[str, Any]] = {}
    listed = 0
    for flow in group.flows:
        found = traces.find(flow)
        if found is None or found[1].endpoint.url not in here:
            continue
        for finding in found[1].findings:
            if (finding.rule, finding.party, finding.severity) != (group.rule, group.party, group.severity):
                continue
            said = finding.message, repr(finding.evidence)
            if said in cases:
                cases[said]["same"] += 1
            elif len(cases) < CASES:
                cases[said] = _case(*found, finding, zone)
            else:
                continue
            listed += 1
    count = sum(here.values())
    first = next(iter(cases.values()), None)
    urls = [shown(url, 200) for url in here][:ENDPOINTS]
    return {
        "key": group.key,
        "rule": group.rule,
        "family": group.rule.rstrip("0123456789"),
        "name": rule.name if rule is not None else "",
        "title": rule.title if rule is not None else group.rule,
        "party": group.party,
        "severity": group.severity,
        "count": count,
        "cases": list(cases.values()),
        "more": max(count - listed, 0),
        "told": told,
        "spec": rule.spec if rule is not None else "",
        "link": explanation.link(rule.spec) if rule is not None else None,
        "sep": rule.sep if rule is not None else None,
        "urls": urls,
        "in_view": urls[0] if len(urls) == 1 else None,
        "first_flow": first["flow"]["id"] if first is not None else None,
    }


def _case(ledger: Ledger, exchange: Exchange, finding: Finding, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "time": clock(exchange.started, zone),
        "day": day(exchange.started, zone),
        "flow": parts.link(exchange.flow, "response" if finding.party == "server" else "request"),
        "operation": shown(ledger.head(exchange).flow, 80),
        "mcp": exchange.kind == "mcp",
        "method": shown(exchange.method or exchange.http_method, 60),
        "name": shown(exchange.name, 80) if exchange.name is not None else "",
        "message": shown(finding.message, 600),
        "evidence": parts.evidence(finding.evidence),
        "related": [parts.link(other) for other in finding.related[:10]],
        "same": 0,  # how many more findings say just this
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
