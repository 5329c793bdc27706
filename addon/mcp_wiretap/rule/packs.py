"""Finds rules: of installed packs (entry point group `mcp_wiretap.rules`), of modules and of plain Python files."""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mcp_wiretap.rule.api import Rule
from mcp_wiretap.rule.containment import is_interrupt, told
from mcp_wiretap.rule.probes import Probe, probes_of
from mcp_wiretap.trace.facts import Fact


@dataclass(slots=True, frozen=True)
class RuleFile:
    """A plain Python file of rules as it was read: what runs is what was looked at, even where the file has changed since, and
    never what Python has cached beside it."""

    path: str
    source: bytes
    project: str | None = None  # the project file that names it; None: the user did

    @classmethod
    def read(cls, path: str) -> "RuleFile":
        """ValueError, naming file and reason, where it cannot be read."""
        try:
            return cls(path, Path(path).read_bytes())
        except OSError as error:
            raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error.strerror}") from None


class _OfSource(SourceFileLoader):
    def __init__(self, name: str, file: RuleFile) -> None:
        super().__init__(name, file.path)
        self._source = file.source

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._source, self.path)
        return code


def rules_of(module: ModuleType) -> list[Rule]:
    """The rules defined in a module, in order of definition."""
    found = [getattr(thing, "__rule__", None) for thing in vars(module).values()]
    return [r for r in found if isinstance(r, Rule) and r.check.__module__ == module.__name__]


def load_module(module: ModuleType) -> list[Rule]:
    """Return the rules of a module and, where it is a package, of all modules below it."""
    rules = rules_of(module)
    if hasattr(module, "__path__"):
        for info in sorted(pkgutil.walk_packages(module.__path__, f"{module.__name__}."), key=lambda i: i.name):
            rules += rules_of(importlib.import_module(info.name))
    return rules


def load_file(file: str | RuleFile) -> list[Rule]:
    """The rules of a plain Python file. ValueError, naming file and reason, where it cannot be run or has no rule in it."""
    path = file if isinstance(file, str) else file.path
    if not path.endswith(".py"):
        raise ValueError(f"{path} is no Python file; a rule file ends in .py")
    if isinstance(file, str):
        file = RuleFile.read(file)
    name = "mcp_wiretap_rules_of_file_" + re.sub(r"\W", "_", path)
    loader = _OfSource(name, file)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise ValueError(f"{path} cannot be run: {told(error)}") from error
    rules = rules_of(module)
    if not rules:
        raise ValueError(f"{path} has no rule: mark a function with @rule from mcp_wiretap.rule")
    return rules


def with_facts(rule: Rule) -> Rule:
    """Return the rule with each need `fact:NAME`, as a pack may write it, replaced by the fact of that name.

    Raises:
        ValueError: no tracker declares a fact of that name; the message lists those there are.
    """
    if rule.needs is None or not any(isinstance(need, str) and need.startswith("fact:") for need in rule.needs):
        return rule
    importlib.import_module("mcp_wiretap.trace.inspector")  # which loads every tracker, and so every fact
    facts = {name: fact for (scope, name), fact in Fact.known.items() if scope == "exchange" and not name.startswith("_")}
    needs: list[str | Fact[Any]] = []
    for need in rule.needs:
        name = need.removeprefix("fact:") if isinstance(need, str) and need.startswith("fact:") else None
        if name is not None and name not in facts:
            raise ValueError(f"{rule.id}: needs: there is no fact {name}; the facts are {', '.join(sorted(facts))}")
        needs.append(need if name is None else facts[name])
    return replace(rule, needs=frozenset(needs))


def find_rules(files: Iterable[str | RuleFile] = ()) -> list[Rule]:
    """All rules of the installed packs (entry point group `mcp_wiretap.rules`) and of plain Python files, sorted by id.
    ValueError for an id used twice, for a pack that cannot be loaded, and for a file that is no rule file."""
    rules: dict[str, Rule] = {}
    packs = [(f"entry point {entry.name}", _load_pack(entry)) for entry in entry_points(group="mcp_wiretap.rules")]
    named = [(file if isinstance(file, str) else file.path, load_file(file)) for file in files]
    for origin, found in [*packs, *named]:
        for one in found:
            if one.id in rules:
                raise ValueError(f"rule id {one.id} is defined twice (again in {origin})")
            rules[one.id] = with_facts(one)
    return [rules[key] for key in sorted(rules)]


def find_probes(rules: Iterable[Rule]) -> list[Probe]:
    """All probes of the installed packs, sorted by id, with level and section of the rule that each proves. ValueError for an id
    used twice and for a rule that is not there."""
    known = {rule.id: rule for rule in rules}
    found: dict[str, Probe] = {}
    for entry in entry_points(group="mcp_wiretap.rules"):
        _load_pack(entry)
        for module in _modules(entry.load()):
            for one in probes_of(module):
                if one.id in found:
                    raise ValueError(f"probe id {one.id} is defined twice (again in entry point {entry.name})")
                found[one.id] = _proving(one, known)
    return [found[key] for key in sorted(found)]


def _modules(module: ModuleType) -> list[ModuleType]:
    """A module and, where it is a package, all modules below it."""
    found = [module]
    if hasattr(module, "__path__"):
        for info in sorted(pkgutil.walk_packages(module.__path__, f"{module.__name__}."), key=lambda i: i.name):
            found += [importlib.import_module(info.name)]
    return found


def _proving(one: Probe, known: dict[str, Rule]) -> Probe:
    if one.rule is None:
        return one
    rule = known.get(one.rule)
    if rule is None:
        raise ValueError(f"probe {one.id}: there is no rule {one.rule}")
    return replace(one, level=one.level or rule.level, spec=one.spec or rule.spec)


def _load_pack(entry: EntryPoint) -> list[Rule]:
    try:
        return load_module(entry.load())
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise ValueError(f"the rule pack {entry.value} cannot be loaded ({told(error)}); repair or uninstall it") from error


def left_out() -> dict[str, str]:
    """Ids that the installed packs know of and have no rule for, with the reason (`LEFT_OUT` of a pack), sorted."""
    found: dict[str, str] = {}
    for entry in entry_points(group="mcp_wiretap.rules"):
        table = getattr(entry.load(), "LEFT_OUT", None)
        if isinstance(table, dict):
            found |= {str(id): str(why) for id, why in table.items()}
    return dict(sorted(found.items()))
