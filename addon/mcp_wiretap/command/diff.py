"""`mcp-wiretap diff A B`: two recordings compared, or (--hop) the two sides of a gateway."""

import argparse

from mcp_wiretap.command.arguments import judging

DESCRIPTION = (
    "Compares two recordings: tools added, removed, changed; calls with another outcome; findings that came and "
    "went; latencies beyond noise. With --hop: what a gateway changed, from a recording of each of its sides."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="the recording of before; with --hop, of the client's side")
    parser.add_argument("after", metavar="B", help="the recording of after; with --hop, of the server's side")
    parser.add_argument("--hop", action="store_true", help="pair the same operation on the two sides of a gateway")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    parser.add_argument("--output", metavar="FILE", help="write it there instead of to stdout")
    parser.add_argument(
        "--fail-on",
        choices=("any", "breaking", "never"),
        default="never",
        help="exit with 1 where anything differs, or what may break a client (default: never)",
    )
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import diff

    return diff.run(arguments)
