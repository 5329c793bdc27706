"""`mcp-wiretap rules`: the rules as implemented, for people and for programs."""

import argparse

from mcp_wiretap.command.arguments import rule_files

DESCRIPTION = "Lists the rules as implemented."


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    rule_files(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import rules

    return rules.run(arguments)
