"""`mcp-wiretap serve FILE`: a recorded server answers live clients."""

import argparse

from mcp_wiretap.command.arguments import port, timing

DESCRIPTION = (
    "Plays the servers of a recording to live clients: each request gets the recorded answer to the same method, "
    "name and arguments, with the ids of now. What is not in the recording gets a JSON-RPC error that says so. Prints the "
    "URL of each endpoint and serves until it is interrupted. Servers with endpoints of the same path get ports of their "
    "own: the next free ones after --port."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    parser.add_argument("--port", type=port, default=8000, metavar="N", help="to listen on (default: 8000; 0: any that is free)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (default: 127.0.0.1)")
    parser.add_argument("--endpoint", metavar="URL", help="play this endpoint of the recording only")
    parser.add_argument("--stdio", action="store_true", help="play it on stdin and stdout: a client starts it as a stdio server")
    timing(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import serve

    return serve.run(arguments)
