"""`mcp-wiretap export FILE`: a recording for others, without its secrets, in the format that they read."""

import argparse

from mcp_wiretap.command.arguments import judging, redacting
from mcp_wiretap.export.formats import FORMATS

DESCRIPTION = (
    "Writes a recording in the format that others read. Tokens, cookies, session ids, states, codes and "
    "passwords are replaced by placeholders of the same form wherever they stand, equal ones by equal ones. What an audit "
    "finds stays."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        required=True,
        help="; ".join(f"{name}: {found.says}" for name, found in FORMATS.items()),
    )
    parser.add_argument("--output", metavar="FILE", help="write it there instead of to stdout; it may not be the recording")
    parser.add_argument("--endpoint", metavar="URL", help="with otlp: the collector to send to (http://host:4318/v1/traces)")
    parser.add_argument("--conversation", metavar="ID", help="only this one: its id, or that of a flow; eight digits will do")
    redacting(parser)
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import export

    return export.run(arguments)
