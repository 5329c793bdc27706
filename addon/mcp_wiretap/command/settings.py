"""By what a trace is judged: the project file and, before it, the command line."""

import argparse
from dataclasses import replace
from pathlib import Path

from mcp_wiretap import expectation, project, selection
from mcp_wiretap.command import Refused
from mcp_wiretap.command.output import say
from mcp_wiretap.command.tracing import Settings
from mcp_wiretap.project import Project
from mcp_wiretap.rule import Rule, RuleFile, find_rules
from mcp_wiretap.trace.promised import Promised


def rules_for(arguments: argparse.Namespace) -> list[Rule]:
    """The rules of the installed packs, of the files that --rules names and of those of the project that may run. Refused where
    one cannot be loaded: half of the rules would be a wrong answer."""
    return _gather(arguments)[1]


def _gather(arguments: argparse.Namespace) -> tuple[Project, list[Rule], tuple[RuleFile, ...], bool]:
    """The project, the rules, the files that some of them are of, and whether these are all that the project names. What is not
    read and what ran of the project is said."""
    try:
        found = project.load(Path.cwd())
        own = project.rules_of(found, trust=arguments.trust_project, switch="--trust-project")
    except project.ProjectError as error:
        raise Refused(str(error)) from None
    for line in (*found.passed_over, *own.refused):
        say(line)
    try:
        files = (*map(RuleFile.read, arguments.rules), *own.files)
        rules = find_rules(files)
    except ValueError as error:
        raise Refused(str(error)) from error
    if own.files:
        say(f"rules of {found.path} ran: {', '.join(file.path for file in own.files)}")
    return found, rules, files, own.complete


def read(arguments: argparse.Namespace) -> Settings:
    """`--select` takes the place of the project's selection; `--rules`, `--ignore` and `--era` come on top of what it says."""
    found, rules, files, complete = _gather(arguments)
    try:
        found.check_rules(rules, complete=complete)
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
    held = promised(found, arguments)
    return Settings(tuple(select), tuple(ignore), (*expect, *found.expect), tuple(found.silences), files, held)


def promised(found: Project, arguments: argparse.Namespace) -> Promised:
    """What servers are held to: the project's contract with what the command line has over it, and the baseline."""
    given = {
        name: value
        for name in ("expect_tools", "forbid_tools", "max_ms", "max_failures", "max_definitions", "max_result")
        if (value := getattr(arguments, name, None))
    }
    for name in ("expect_tools", "forbid_tools", "max_ms"):
        if name in given:
            given[name] = (*getattr(found.contract, name), *given[name])
    path = getattr(arguments, "baseline", None)
    try:
        offers = project.load_baseline(Path(path) if path is not None else found.baseline)
    except project.ProjectError as error:
        raise Refused(f"{'--baseline' if path is not None else 'contract.baseline'}: {error}") from None
    return Promised(offers, replace(found.contract, **given))


def _rules(option: str, values: list[str], rules: list[Rule]) -> list[str]:
    try:
        return selection.resolve(selection.split(values), rules)
    except selection.UnknownRule as error:
        raise Refused(f"{option}: {error}") from None
