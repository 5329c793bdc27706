"""The command line. Reads arguments and hands them to `command`; whatever is heavy is imported only by who needs it."""

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
FORMATS = ("text", "json", "jsonl", "sarif", "junit", "html")
SEVERITIES = ("error", "warning", "info", "never")


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
        return _dispatch(_parser().parse_args(arguments))
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
    """Each command is a module of its name, and only that one is loaded."""
    if arguments.command == "addon-path":
        from mcp_wiretap.command import tools

        print(tools.addon_path())
        return 0
    return cast("Command", import_module(f"mcp_wiretap.command.{arguments.command}")).run(arguments)


class Command(Protocol):
    """What a module of `mcp_wiretap.command` has. Returns the exit status."""

    def run(self, arguments: argparse.Namespace) -> int: ...


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {visible(message)}\nSee `{self.prog} --help`.\n")


def _parser() -> argparse.ArgumentParser:
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
    _audit(commands)
    _annotate(commands)
    rules = commands.add_parser("rules", help="the rules as implemented", description="Lists the rules as implemented.")
    rules.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    _rule_files(rules)
    explain = commands.add_parser(
        "explain", help="one rule: what, why, how to fix", description="Explains one rule: what it demands, why, how to fix it."
    )
    explain.add_argument("rule", metavar="RULE", help="an id (HDR006, case does not matter) or a name (name-header-mismatch)")
    _rule_files(explain)
    _diff(commands)
    _serve(commands)
    _export(commands)
    _extract(commands)
    _replay(commands)
    _trust(commands)
    commands.add_parser(
        "addon-path",
        help="where the addon is, for mitmweb -s",
        description="Prints the path of the addon, to be given to mitmweb, mitmproxy or mitmdump after -s.",
    )
    return parser


def _audit(commands: "argparse._SubParsersAction[_Parser]") -> None:
    audit = commands.add_parser(
        "audit",
        help="check recordings",
        description="Checks recordings (.flow files, HAR) and reports what is wrong in them. Exit status: 0 nothing at or above "
        "--fail-on, 1 findings, 2 usage, an unreadable file, or a damaged one (after the report).",
    )
    audit.add_argument("files", nargs="+", metavar="FILE", help="a .flow file or a HAR; each is a trace of its own")
    audit.add_argument("--format", choices=FORMATS, default="text", help="of the report (default: text)")
    audit.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    audit.add_argument(
        "--fail-on", choices=SEVERITIES, default="error", help="the mildest severity that gives exit status 1 (default: error)"
    )
    _judging(audit)
    audit.add_argument("--join", action="store_true", help="the files are one trace, for instance of a log that was rotated")
    audit.add_argument("--jobs", type=_positive, metavar="N", help="files audited at the same time (default: as many as pay)")


def _annotate(commands: "argparse._SubParsersAction[_Parser]") -> None:
    annotate = commands.add_parser(
        "annotate",
        help="write a recording anew with the final verdicts on its flows",
        description="Reads a recording to its end and writes its flows with the comments, marks and metadata that the whole "
        "trace gives them. What mitmproxy itself writes while traffic is going on has the verdicts of that time.",
    )
    annotate.add_argument("input", metavar="IN", help="a .flow file or a HAR")
    annotate.add_argument("output", metavar="OUT", help="the .flow file to write; it may not be IN")
    _judging(annotate)


def _serve(commands: "argparse._SubParsersAction[_Parser]") -> None:
    serve = commands.add_parser(
        "serve",
        help="a recorded server answers live clients",
        description="Plays the servers of a recording to live clients: each request gets the recorded answer to the same method, "
        "name and arguments, with the ids of now. What is not in the recording gets a JSON-RPC error that says so. Prints the "
        "URL of each endpoint and serves until it is interrupted. Servers with endpoints of the same path get ports of their "
        "own: the next free ones after --port.",
    )
    serve.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    serve.add_argument("--port", type=_port, default=8000, metavar="N", help="to listen on (default: 8000; 0: any that is free)")
    serve.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (default: 127.0.0.1)")
    serve.add_argument("--endpoint", metavar="URL", help="play this endpoint of the recording only")
    _timing(serve)


def _diff(commands: "argparse._SubParsersAction[_Parser]") -> None:
    diff = commands.add_parser(
        "diff",
        help="compare two recordings",
        description="Compares two recordings: tools added, removed, changed; calls with another outcome; findings that came and "
        "went; latencies beyond noise. With --hop: what a gateway changed, from a recording of each of its sides.",
    )
    diff.add_argument("before", metavar="A", help="the recording of before; with --hop, of the client's side")
    diff.add_argument("after", metavar="B", help="the recording of after; with --hop, of the server's side")
    diff.add_argument("--hop", action="store_true", help="pair the same operation on the two sides of a gateway")
    diff.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    diff.add_argument("--output", metavar="FILE", help="write it there instead of to stdout")
    diff.add_argument(
        "--fail-on", choices=("any", "breaking", "never"), default="never",
        help="exit with 1 where anything differs, or what may break a client (default: never)",
    )  # fmt: skip
    _judging(diff)


def _replay(commands: "argparse._SubParsersAction[_Parser]") -> None:
    replay = commands.add_parser(
        "replay",
        help="a recorded client asks a live server once more",
        description="Asks a live server what the client of a recording asked, and compares the answers. Ids, sessions, states, "
        "cursors and task ids are those of now. Exit status: 0 all the same, 1 something changed or failed, 2 usage or an "
        "unreadable file.",
    )
    replay.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    replay.add_argument("--to", required=True, metavar="URL", help="the server; without a path, the recorded one is used")
    replay.add_argument("--endpoint", metavar="URL", help="the endpoint of the recording to replay, where it has several")
    replay.add_argument("--conversation", metavar="ID", help="replay one conversation only: the id of a flow in it, or its start")
    replay.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="send this header; repeatable")
    replay.add_argument("--timeout", type=_seconds, default=30.0, metavar="SECONDS", help="to wait for an answer (default: 30)")
    replay.add_argument("--yes", action="store_true", help="repeat calls of tools that may do something twice without asking")
    replay.add_argument("--format", choices=("text", "json"), default="text", help="of the report (default: text)")
    replay.add_argument("--output", metavar="FILE", help="write the report there instead of to stdout")
    _timing(replay)
    _judging(replay)


def _trust(commands: "argparse._SubParsersAction[_Parser]") -> None:
    trust = commands.add_parser(
        "trust",
        help="allow the rule files of a project",
        description="Allows the rule files that the project file (wiretap.toml) of a directory names: they run from then on, as "
        "they are now. Where the project file or one of them changes, they do not run until they are allowed again.",
    )
    trust.add_argument("directory", nargs="?", default=".", metavar="DIR", help="of the project (default: the current one)")
    which = trust.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list what is allowed")
    which.add_argument("--remove", action="store_true", help="allow the project no more")


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


def _export(commands: "argparse._SubParsersAction[_Parser]") -> None:
    export = commands.add_parser(
        "export",
        help="a recording for others, without its secrets",
        description="Writes a recording in the format that others read. Tokens, cookies, session ids, states, codes and "
        "passwords are replaced by placeholders of the same form wherever they stand, equal ones by equal ones. What an audit "
        "finds stays.",
    )
    export.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    export.add_argument(
        "--format", choices=("flow", "har", "jsonl", "otlp", "md"), required=True,
        help="flow: a recording; har: HTTP Archive 1.2; jsonl: one message a line; otlp: spans of OpenTelemetry, as JSON, or "
        "as protobuf where FILE ends in .pb; md: one conversation for an issue",
    )  # fmt: skip
    export.add_argument("--output", metavar="FILE", help="write it there instead of to stdout; it may not be the recording")
    export.add_argument("--endpoint", metavar="URL", help="with otlp: the collector to send to (http://host:4318/v1/traces)")
    export.add_argument("--conversation", metavar="ID", help="only this one: its id, or that of a flow; eight digits will do")
    _redacting(export)
    _judging(export)


def _extract(commands: "argparse._SubParsersAction[_Parser]") -> None:
    extract = commands.add_parser(
        "extract",
        help="a test case made of a recording",
        description="Writes the smallest part of a recording that still shows what was found in a conversation (with the "
        "tools/list and the initialize that it needs), without secrets, and a pytest file that audits it and expects the same.",
    )
    extract.add_argument("file", metavar="FILE", help="a .flow file or a HAR")
    extract.add_argument("--conversation", required=True, metavar="ID", help="its id, or that of a flow; eight digits will do")
    extract.add_argument("--output", required=True, metavar="DIR", help="the directory for the recording and the test")
    extract.add_argument("--name", type=_identifier, metavar="NAME", help="of the test case (default: from what was found)")
    _redacting(extract)
    _judging(extract)


def _identifier(text: str) -> str:
    if not text.isidentifier() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} cannot be part of the name of a test: letters, digits and _ only")
    return text


def _redacting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--redact", action="append", default=[], metavar="WHAT",
        help="replace this, too: the name of a member, header or parameter, a JSONPath ($.params.arguments.email) or a regular "
        "expression; may be repeated",
    )  # fmt: skip
    parser.add_argument("--no-redact", action="store_true", help="leave the secrets in")


def _timing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timing", choices=("recorded", "fast"), default="recorded", help="the recording's own pace (default), or without waits"
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:6]) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _rule_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rules", action="append", default=[], metavar="FILE", help="rules of your own, in a plain Python file; may be repeated"
    )
    parser.add_argument(
        "--trust-project",
        action="store_true",
        help="run the rule files that the project file (wiretap.toml) names, though `mcp-wiretap trust` has not allowed them",
    )


def _judging(parser: argparse.ArgumentParser) -> None:
    """What a trace is judged by; the project file (wiretap.toml) says the same for good."""
    _rule_files(parser)
    parser.add_argument(
        "--select", action="append", default=[], metavar="IDS",
        help="check by these rules only: ids, families, names or parties, separated by commas",
    )  # fmt: skip
    parser.add_argument("--ignore", action="append", default=[], metavar="IDS", help="do not check by these rules")
    parser.add_argument(
        "--era", action="append", default=[], metavar="SERVER=ERA",
        help="the era that you expect of a server, as mcp_era: [SCHEME://]HOST[:PORT][/PATH]=legacy|modern|auto",
    )  # fmt: skip


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number
