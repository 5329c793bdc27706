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
