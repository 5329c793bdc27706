"""By what a trace is judged: the project file and, before it, the command line."""

import argparse
from pathlib import Path

from mcp_wiretap import expectation, project, selection
from mcp_wiretap.command import Refused
from mcp_wiretap.command.tracing import Settings
from mcp_wiretap.rule import Rule, find_rules


def rules_for(arguments: argparse.Namespace) -> list[Rule]:
    """The rules of the installed packs and of the files that --rules and the project name. Refused where one cannot be loaded:
    half of the rules would be a wrong answer."""
    return _load(_files(arguments))


def _files(arguments: argparse.Namespace) -> tuple[str, ...]:
    try:
        return (*arguments.rules, *project.load(Path.cwd()).files)
    except project.ProjectError as error:
        raise Refused(str(error)) from None


def _load(files: tuple[str, ...]) -> list[Rule]:
    try:
        return find_rules(files)
    except ValueError as error:
        raise Refused(str(error)) from error
    except Exception as error:
        raise Refused(f"a rule pack cannot be loaded ({type(error).__name__}: {error}); repair or uninstall it") from error


def read(arguments: argparse.Namespace) -> Settings:
    """`--select` takes the place of the project's selection; `--rules`, `--ignore` and `--era` come on top of what it says."""
    files = _files(arguments)
    rules = _load(files)
    try:
        found = project.load(Path.cwd())
        found.check_rules(rules)
    except project.ProjectError as error:
        raise Refused(str(error)) from None
    select = _rules("--select", arguments.select, rules) or found.select
    ignore = [*_rules("--ignore", arguments.ignore, rules), *found.ignore]
    expect = []
    for entry in arguments.era:
        try:
            expect.append(expectation.parse(entry))
        except ValueError as error:
            raise Refused(f"--era: {error}") from None
    return Settings(tuple(select), tuple(ignore), (*expect, *found.expect), tuple(found.silences), files)


def _rules(option: str, values: list[str], rules: list[Rule]) -> list[str]:
    try:
        return selection.resolve(selection.split(values), rules)
    except selection.UnknownRule as error:
        raise Refused(f"{option}: {error}") from None
