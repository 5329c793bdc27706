"""`mcp-wiretap faults RUN.flow`: what clients did after the faults that were put into a recording."""

import argparse

from mcp_wiretap.command.arguments import judging

DESCRIPTION = (
    "Says of each fault that mcp_fault put into recorded traffic what the client did next: passed, failed, not applied (it "
    "matched, and there was nothing to break), undecided. --fault names those that were planned: one that no call matched is "
    "not reached. Exit status: 1 where a client failed."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file")
    parser.add_argument("--fault", action="append", default=[], metavar="LINE", help="a line of mcp_fault that was planned")
    parser.add_argument("--format", choices=("text", "json", "junit"), default="text", help="text (default), json or junit")
    parser.add_argument("--output", metavar="FILE", help="write it there instead of to stdout")
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import faults

    return faults.run(arguments)
