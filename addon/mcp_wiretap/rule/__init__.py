"""The rule API for packs and for the inspector. How a rule is written stands in `mcp_wiretap.rule.api`."""

from mcp_wiretap.rule.api import ALL_REVISIONS, Era, Level, On, Rule, Sort, evidence, matches, rule
from mcp_wiretap.rule.book import RuleBook
from mcp_wiretap.rule.packs import RuleFile, find_probes, find_rules, left_out, load_file, load_module, rules_of
from mcp_wiretap.rule.probes import Answer, Call, Probe, Right, probe
from mcp_wiretap.rule.scope import endpoint_matches
from mcp_wiretap.trace.finding import Evidence, Finding, Severity, Silence, Unchecked

__all__ = [
    "ALL_REVISIONS",
    "Answer",
    "Call",
    "Era",
    "Evidence",
    "Finding",
    "Level",
    "On",
    "Probe",
    "Right",
    "Rule",
    "RuleBook",
    "RuleFile",
    "Severity",
    "Silence",
    "Sort",
    "Unchecked",
    "endpoint_matches",
    "evidence",
    "find_probes",
    "find_rules",
    "left_out",
    "load_file",
    "load_module",
    "matches",
    "probe",
    "rule",
    "rules_of",
]
