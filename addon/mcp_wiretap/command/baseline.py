"""`mcp-wiretap baseline RUN.flow`: what servers offer, kept in a file for review."""

import argparse

from mcp_wiretap.command.arguments import judging

FILE = "mcp-baseline.json"
DESCRIPTION = (
    "Writes what the servers of a recording offer (tools with schemas and descriptions, resources, prompts, capabilities, "
    "instructions, versions) to a file, to be reviewed and kept. Where the file is there already, says what is otherwise and "
    "leaves it as it is; --accept takes over the new state of the servers that were recorded. `audit --baseline` and "
    "mcp_baseline tell of drift. Exit status: 1 where something differs and was not accepted."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    parser.add_argument("--output", default=FILE, metavar="FILE", help=f"the baseline (default: {FILE})")
    parser.add_argument("--accept", action="store_true", help="take over what differs")
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import baseline

    return baseline.run(arguments)
