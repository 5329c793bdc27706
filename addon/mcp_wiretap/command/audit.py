"""`mcp-wiretap audit`: recordings in, a report out, an exit status that a CI job can go by."""

import argparse

from mcp_wiretap.command.arguments import contract, judging, positive
from mcp_wiretap.report.formats import FORMATS

SEVERITIES = ("error", "warning", "info", "drift", "never")
DESCRIPTION = (
    "Checks recordings (.flow files, HAR) and reports what is wrong in them. Exit status: 0 nothing at or above "
    "--fail-on, 1 findings, 2 usage, an unreadable file, or a damaged one (after the report)."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .flow file or a HAR; each is a trace of its own")
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="of the report (default: text)")
    parser.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="error",
        help="the mildest severity that gives exit status 1 (default: error); "
        "drift: an error, or what differs from the baseline in more than its wording",
    )
    judging(parser)
    contract(parser)
    parser.add_argument("--join", action="store_true", help="the files are one trace, for instance of a log that was rotated")
    parser.add_argument("--jobs", type=positive, metavar="N", help="files audited at the same time (default: as many as pay)")


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import audit

    return audit.run(arguments)
