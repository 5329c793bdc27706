"""`mcp-wiretap extract FILE --conversation ID`: a test case made of a recording: its smallest part that shows the same findings,
without secrets, and a test that expects them.
"""

import argparse

from mcp_wiretap.command.arguments import identifier, judging, redacting

DESCRIPTION = (
    "Writes the smallest part of a recording that still shows what was found in a conversation (with the "
    "tools/list and the initialize that it needs), without secrets, and a pytest file that audits it and expects the same. "
    "With --server the test replays the conversation, with what opens its session, against a server and expects the same answers."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    parser.add_argument("--conversation", required=True, metavar="ID", help="its id, or that of a flow; eight digits will do")
    parser.add_argument("--output", required=True, metavar="DIR", help="the directory for the recording and the test")
    parser.add_argument(
        "--server",
        action="store_true",
        help="write a test that asks a server once more what was asked, in place of one that audits",
    )
    parser.add_argument("--name", type=identifier, metavar="NAME", help="of the test case (default: from what was found)")
    redacting(parser)
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import extract

    return extract.run(arguments)
