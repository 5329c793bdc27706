"""`mcp-wiretap probe RUN.flow --to URL`: does a server refuse what it must?"""

import argparse

from mcp_wiretap.command.arguments import positive, rule_files

DESCRIPTION = (
    "Takes calls of a recording that work at a server, with their own authorization, session and arguments, sends each "
    "unchanged first, then with one thing changed, and judges the answers by the rules. Safe by default: lists, reads, prompts, "
    "and tools that are annotated as read-only or named with --tool; one request at a time, stops on 429 and 503; recorded "
    "credentials only go home. The server's log will show what looks like an attack. Exit status: 0, 1 a probe failed, 2 "
    "nothing could be probed."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a .flow file or a HAR")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="URL", help="the server")
    where.add_argument("--command", dest="server", metavar="COMMAND", help="a stdio server, started for this")
    parser.add_argument("--list", action="store_true", help="list the probes, and send nothing")
    parser.add_argument("--endpoint", metavar="URL", help="take calls to this endpoint of the recording only")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME", help="a tool that may be called; may be repeated")
    parser.add_argument(
        "--select", action="append", default=[], metavar="IDS", help="only these probes: ids (H02) or families (H)"
    )
    parser.add_argument("--era", choices=("modern", "legacy"), help="only this era (default: those that the recording has)")
    parser.add_argument("--budget", type=positive, default=100, metavar="N", help="requests in all (default: 100)")
    parser.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="send this with each request")
    parser.add_argument("--yes", action="store_true", help="do not ask before tools are called")
    parser.add_argument(
        "--format", choices=("text", "json", "junit", "sarif"), default="text", help="of the report (default: text)"
    )
    parser.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    parser.add_argument("--write", metavar="FILE", help="keep what was sent and answered as a .flow file")
    rule_files(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import probe

    return probe.run(arguments)
