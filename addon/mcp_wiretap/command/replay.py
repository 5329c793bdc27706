"""`mcp-wiretap replay FILE --to URL`: a recorded client asks a live server once more; what it answers now is compared."""

import argparse

from mcp_wiretap.command.arguments import judging, seconds, timing

DESCRIPTION = (
    "Asks a live server what the client of a recording asked, and compares the answers. Ids, sessions, states, "
    "cursors and task ids are those of now. Exit status: 0 all the same, 1 something changed or failed, 2 usage or an "
    "unreadable file."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", metavar="URL", help="the server; without a path, the recorded one is used")
    to.add_argument("--command", dest="server", metavar="COMMAND", help="the command of a stdio server, in quotes")
    parser.add_argument("--endpoint", metavar="URL", help="the endpoint of the recording to replay, where it has several")
    parser.add_argument("--conversation", metavar="ID", help="replay one conversation only: the id of a flow in it, or its start")
    parser.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="send this header; repeatable")
    parser.add_argument("--timeout", type=seconds, default=30.0, metavar="SECONDS", help="to wait for an answer (default: 30)")
    parser.add_argument("--yes", action="store_true", help="repeat calls of tools that may do something twice without asking")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")
    parser.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    timing(parser)
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import replay

    return replay.run(arguments)
