"""`mcp-wiretap migrate RUN.flow`: what client and server must change for 2026-07-28, by what they used."""

import argparse

from mcp_wiretap.command.arguments import judging

DESCRIPTION = (
    "Reads a recording of a legacy revision and says what its client and its server must change for 2026-07-28, from what they "
    "really used: each demand with the section and a message of the recording as it would be. With --to URL the recorded "
    "questions are asked of that server in the modern era, and the answers compared. Exit status with --to: 1 where an answer "
    "failed or differs."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    parser.add_argument("--to", metavar="URL", help="ask this server the recorded questions in the modern era")
    parser.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="with --to: send this, too")
    parser.add_argument(
        "--yes", action="store_true", help="with --to: call also tools that are not annotated as read-only or idempotent"
    )
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="text (default), json or markdown")
    parser.add_argument("--output", metavar="FILE", help="write it there instead of to stdout")
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import migrate

    return migrate.run(arguments)
