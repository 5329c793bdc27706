"""`mcp-wiretap explain RULE`: what a rule demands, why, how to fix it, where the specification says so, and an example."""

import argparse

from mcp_wiretap.command.arguments import rule_files

DESCRIPTION = "Explains one rule: what it demands, why, how to fix it."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", help="an id (HDR006, case does not matter) or a name (name-header-mismatch)")
    rule_files(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import explain

    return explain.run(arguments)
