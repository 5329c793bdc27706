"""Arguments that several commands share, and the types of single ones. Imports nothing heavy: `--help` reads it."""

import argparse


def judging(parser: argparse.ArgumentParser) -> None:
    """What a trace is judged by; the project file (wiretap.toml) says the same for good."""
    rule_files(parser)
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="IDS",
        help="check by these rules only: ids, families, names or parties, separated by commas",
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="IDS", help="do not check by these rules")
    parser.add_argument(
        "--era",
        action="append",
        default=[],
        metavar="SERVER=ERA",
        help="the era that you expect of a server, as mcp_era: [SCHEME://]HOST[:PORT][/PATH]=legacy|modern|auto",
    )


def contract(parser: argparse.ArgumentParser) -> None:
    """What servers are held to; `[contract]` in the project file says the same for good."""
    parser.add_argument(
        "--baseline", metavar="FILE", help="what was accepted of servers (`mcp-wiretap baseline`): tell what is otherwise (DRF)"
    )
    parser.add_argument(
        "--expect-tool",
        action="append",
        default=[],
        dest="expect_tools",
        metavar="NAME",
        help="a tool that some server must offer (CON001); may be repeated, as the following",
    )
    parser.add_argument(
        "--forbid-tool",
        action="append",
        default=[],
        dest="forbid_tools",
        metavar="PATTERN",
        help="a tool that none may offer; * and ? are allowed (CON002)",
    )
    parser.add_argument(
        "--max-duration",
        action="append",
        default=[],
        dest="max_ms",
        type=duration,
        metavar="METHOD=MS",
        help="how long answers of a method, or of a tool, may take (CON003)",
    )
    parser.add_argument("--max-failures", type=share, metavar="SHARE", help="share of tool calls that may fail, as 0.1 (CON004)")
    parser.add_argument("--max-definitions", type=positive, metavar="BYTES", help="of all tool definitions of a server (CON005)")
    parser.add_argument("--max-result", type=positive, metavar="BYTES", help="of the content of one tool result (CON005)")


def duration(text: str) -> tuple[str, float]:
    method, equals, number = text.rpartition("=")
    try:
        limit = float(number)
    except ValueError:
        limit = 0.0
    if not equals or not method or not 0 < limit < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not METHOD=MILLISECONDS, as in tools/call=5000")
    return method, limit


def share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1, as 0.1 for a tenth")
    return number


def rule_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rules", action="append", default=[], metavar="FILE", help="rules of your own, in a plain Python file; may be repeated"
    )
    parser.add_argument(
        "--trust-project",
        action="store_true",
        help="run the rule files that the project file (wiretap.toml) names, though `mcp-wiretap trust` has not allowed them",
    )


def redacting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        metavar="WHAT",
        help="replace this, too: the name of a member, header or parameter, a JSONPath ($.params.arguments.email) or a regular "
        "expression; may be repeated",
    )
    parser.add_argument("--no-redact", action="store_true", help="leave the secrets in")


def timing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timing", choices=("recorded", "fast"), default="recorded", help="the recording's own pace (default), or without waits"
    )


def positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:6]) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return number


def identifier(text: str) -> str:
    if not text.isidentifier() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} cannot be part of the name of a test: letters, digits and _ only")
    return text
