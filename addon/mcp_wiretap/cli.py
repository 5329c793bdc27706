"""The command line. Reads arguments and hands them to `command`; a command is imported only where it is asked for."""

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol, cast

from mcp_wiretap import __version__
from mcp_wiretap.command import Refused
from mcp_wiretap.command.output import say
from mcp_wiretap.wire.secret import visible

TOOLS = {"web": "mitmweb", "console": "mitmproxy", "dump": "mitmdump"}
# The commands, each a module of `mcp_wiretap.command` with DESCRIPTION, `arguments` and `run`: its name and what it is for.
COMMANDS = {
    "audit": "check recordings",
    "annotate": "write a recording anew with the final verdicts on its flows",
    "rules": "the rules as implemented",
    "explain": "one rule: what, why, how to fix",
    "diff": "compare two recordings",
    "serve": "a recorded server answers live clients",
    "export": "a recording for others, without its secrets",
    "extract": "a test case made of a recording",
    "replay": "a recorded client asks a live server once more",
    "mcp": "recordings answer an agent's questions, as an MCP server",
    "faults": "what clients did after the faults that were put into their traffic",
    "probe": "does a server refuse what it must?",
    "init": "a commented wiretap.toml, and a workflow for CI",
    "baseline": "what servers offer, kept in a file for review",
    "migrate": "what a legacy client and server must change for 2026-07-28",
    "wrap": "put the stdio servers of a client behind mcp-wiretap",
    "unwrap": "put a client's configuration back as it was",
    "trust": "allow the rule files of a project",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments and arguments[0] == "stdio":  # before all else: a client waits for the server's start
            from mcp_wiretap.stdio import wrapper

            wrapper.run(arguments[1:])
        if arguments and arguments[0] in TOOLS and arguments[1:2] not in (["-h"], ["--help"]):
            from mcp_wiretap.command import tools

            return tools.run(arguments[0], arguments[1:])
        if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal of another encoding shows what it has no character for
            sys.stdout.reconfigure(errors="backslashreplace")
        return _dispatch(_parser(arguments[0] if arguments else "").parse_args(arguments))
    except Refused as refused:
        say(str(refused))
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        # Who read the report has gone (`| head`); Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except OSError as error:  # a file that vanished meanwhile, a full disk
        say(str(error))
        return 2
    except Exception:  # Python's own exit status would be 1, which means findings
        for line in traceback.format_exc().splitlines():
            print(visible(line), file=sys.stderr)
        say("a fault of mcp-wiretap itself; nothing is said about the recording")
        return 2


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command == "addon-path":
        from mcp_wiretap.command import tools

        print(tools.addon_path())
        return 0
    return _command(arguments.command).run(arguments)


class Command(Protocol):
    """What a module of `mcp_wiretap.command` has."""

    DESCRIPTION: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Run it and return the exit status."""


def _command(name: str) -> Command:
    return cast("Command", import_module(f"mcp_wiretap.command.{name.replace('-', '_')}"))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {visible(message)}\nSee `{self.prog} --help`.\n")


def _parser(*wanted: str) -> argparse.ArgumentParser:
    """Return the parser of all commands; of those in `wanted`, if any, with their arguments, without loading the others."""
    parser = _Parser(prog="mcp-wiretap", description="An inspector for the Model Context Protocol, inside mitmproxy.")
    parser.add_argument("--version", action="version", version=f"mcp-wiretap {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, tool in TOOLS.items():
        commands.add_parser(
            name,
            add_help=True,
            help=f"{tool} with the addon loaded",
            usage=f"mcp-wiretap {name} [any {tool} arguments]",
            description=f"Starts {tool} with the addon loaded. All arguments go to {tool}; --options lists its options, ours "
            "begin with mcp_.",
        )
    commands.add_parser("stdio", help="a server on stdio, seen by the inspector", add_help=False)  # it reads its own arguments
    for name, what in COMMANDS.items():
        if wanted and name not in wanted:
            commands.add_parser(name, help=what)
        else:
            command = _command(name)
            command.arguments(commands.add_parser(name, help=what, description=command.DESCRIPTION))
    commands.add_parser(
        "addon-path",
        help="where the addon is, for mitmweb -s",
        description="Prints the path of the addon, to be given to mitmweb, mitmproxy or mitmdump after -s.",
    )
    return parser
