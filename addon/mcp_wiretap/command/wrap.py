"""`mcp-wiretap wrap`: the stdio servers of a client's configuration are put behind `mcp-wiretap stdio`."""

import argparse

from mcp_wiretap.command.arguments import port

DESCRIPTION = (
    "Writes `mcp-wiretap stdio` in front of the stdio servers in a client's configuration, so that a running "
    "mcp-wiretap web, console or dump shows what they say. Shows what it will do, asks, and keeps a backup."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    configuration(parser)
    parser.add_argument("--inline", action="store_true", help="let each message be held, edited or answered in the proxy")
    parser.add_argument("--http", action="store_true", help="point HTTP servers at a reverse proxy of this machine, too")
    parser.add_argument("--port", type=port, default=8081, metavar="N", help="with --http: the first port (default: 8081)")


def configuration(parser: argparse.ArgumentParser) -> None:
    """Which servers of which client; the same for `unwrap`."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a server in the configuration (default: all)")
    parser.add_argument(
        "--client",
        metavar="CLIENT|FILE",
        help="claude-desktop, claude-code, cursor, vscode, gemini, opencode, or a file (default: all that are found)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, change nothing")


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import wrap

    return wrap.run(arguments)
