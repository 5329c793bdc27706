"""`mcp-wiretap rules`: the rules as implemented, for people and for programs."""

import argparse
import json
import sys
from typing import Any

from mcp_wiretap.command.output import console, machine_readable
from mcp_wiretap.command.settings import rules_for
from mcp_wiretap.rule import Rule, left_out

FAMILIES = {
    "APP": "MCP Apps",
    "CAC": "cache hints",
    "CMP": "completion",
    "DEP": "deprecated",
    "ELI": "elicitation",
    "ERA": "eras and negotiation",
    "EXT": "extensions",
    "HDR": "mirrored headers",
    "HTS": "HTTP status and transport",
    "LEG": "legacy sessions",
    "LOG": "logging",
    "MET": "_meta",
    "MRT": "multi round-trip requests",
    "OAU": "authorization",
    "PAR": "Mcp-Param headers",
    "PMT": "prompts",
    "RES": "results",
    "RPC": "JSON-RPC",
    "RSC": "resources",
    "SEC": "security",
    "SSE": "event streams",
    "STD": "servers on stdio",
    "SUB": "subscriptions",
    "TOO": "tools",
    "TSK": "tasks (modern)",
    "TSL": "tasks (legacy)",
}


def run(arguments: argparse.Namespace) -> int:
    rules = rules_for(arguments)
    if arguments.format == "json":
        machine_readable(sys.stdout)
        others = [{"id": id, "why": why} for id, why in left_out().items()]
        print(json.dumps({"rules": [described(rule) for rule in rules], "left_out": others}, indent=1, ensure_ascii=False))
    else:
        _print(rules)
    return 0


def described(rule: Rule) -> dict[str, Any]:
    """One rule as `rules --format json` gives it."""
    return {
        "id": rule.id,
        "name": rule.name,
        "title": rule.title,
        "level": rule.level,
        "severity": rule.severity,
        "party": rule.party,
        "era": rule.era,
        "spec": rule.spec,
    }


def _print(rules: list[Rule]) -> None:
    from rich.text import Text

    out = console()
    family = ""
    styles = {"error": "red", "warning": "yellow", "info": "blue"}
    for rule in rules:
        if rule.family != family:
            family = rule.family
            out.print(Text(f"\n{family}  {FAMILIES.get(family, '')}".rstrip(), "bold"))
        line = Text.assemble(
            f"  {rule.id:<7} ",
            (f"{rule.severity:<8}", styles[rule.severity]),
            (f"{rule.party:<7} {rule.era:<7} ", "dim"),
            rule.title,
        )
        out.print(line, soft_wrap=not out.is_terminal)
    others = left_out()
    if others:
        out.print(Text("\nNo rules, and why", "bold"))
        for id, why in others.items():
            out.print(Text.assemble(f"  {id:<7} ", (why, "dim")), soft_wrap=not out.is_terminal)
    out.print(Text(f"\n{len(rules)} rules. One in full: mcp-wiretap explain {rules[0].id if rules else 'RULE'}", "dim"))
