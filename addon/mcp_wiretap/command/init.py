"""`mcp-wiretap init [RUN.flow]`: a commented wiretap.toml, and a workflow that audits in CI."""

import argparse

from mcp_wiretap.command.arguments import judging

DESCRIPTION = (
    "Writes a commented wiretap.toml: the servers of the recording with their eras, a contract with the tools that were seen, "
    "and what was found as silences to choose from; all that would judge differently is a comment. With --ci also a workflow "
    "that records and audits. What is there already is not overwritten."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a .flow file or a HAR of the servers in question")
    parser.add_argument("--ci", choices=("github",), help="also write .github/workflows/mcp-wiretap.yml")
    parser.add_argument("--output", default=".", metavar="DIR", help="the directory to write to (default: this one)")
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import init

    return init.run(arguments)
