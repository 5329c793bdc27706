"""`mcp-wiretap trust [DIR]`: the rule files of a project may run from now on, as they are now."""

import argparse

DESCRIPTION = (
    "Allows the rule files that the project file (wiretap.toml) of a directory names: they run from then on, as "
    "they are now. Where the project file or one of them changes, they do not run until they are allowed again."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", default=".", metavar="DIR", help="of the project (default: the current one)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--list", action="store_true", help="list what is allowed")
    which.add_argument("--remove", action="store_true", help="allow the project no more")


def run(arguments: argparse.Namespace) -> int:
    from mcp_wiretap.command.work import trust

    return trust.run(arguments)
