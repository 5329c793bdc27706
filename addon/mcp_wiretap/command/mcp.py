"""`mcp-wiretap mcp [FILE...]`: the inspector is an MCP server, so that an agent can ask why its calls fail."""

import argparse

from mcp_wiretap.command.arguments import judging, port

DESCRIPTION = (
    "Serves what was found in recordings as an MCP server, on stdin and stdout or over HTTP: tools overview, failures, "
    "operations, exchange, conversation, streams, rule, compare. Reads each file once. Inside mitmweb the same server is at "
    "/mcp/rpc, behind mitmweb's token, and tells of live traffic."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .flow file or a HAR; each is a trace of its own")
    parser.add_argument(
        "--http", type=port, metavar="PORT", help="serve over HTTP on this port of 127.0.0.1 (0: any that is free)"
    )
    parser.add_argument(
        "--no-token", action="store_true", help="with --http: let any program of this machine ask, without the bearer token"
    )
    parser.add_argument("--to", metavar="URL", help="also offer the tools `replay` and `probe`, which send to this server")
    parser.add_argument(
        "--yes", action="store_true", help="with --to: call also tools that are not annotated as read-only or idempotent"
    )
    judging(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import mcp

    return mcp.run(arguments)
