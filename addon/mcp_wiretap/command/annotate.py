"""`mcp-wiretap annotate IN OUT`: a recording written anew, its flows with the verdicts that the whole trace gives them."""

import argparse

from mcp_wiretap.command.arguments import judging

DESCRIPTION = (
    "Reads a recording to its end and writes its flows with the comments, marks and metadata that the whole "
    "trace gives them. What mitmproxy itself writes while traffic is going on has the verdicts of that time."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="a .flow file or a HAR")
    parser.add_argument("output", metavar="OUT", help="the .flow file to write; it may not be IN")
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import annotate

    return annotate.run(arguments)
