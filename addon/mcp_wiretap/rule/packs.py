"""Finds rules: of installed packs (entry point group `mcp_wiretap.rules`), of modules and of plain Python files."""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterable
from importlib.metadata import entry_points
from types import ModuleType

from mcp_wiretap.rule.api import Rule


def rules_of(module: ModuleType) -> list[Rule]:
    """The rules defined in a module, in order of definition."""
    found = [getattr(thing, "__rule__", None) for thing in vars(module).values()]
    return [r for r in found if isinstance(r, Rule) and r.check.__module__ == module.__name__]


def load_module(module: ModuleType) -> list[Rule]:
    """The rules of a module and, where it is a package, of its submodules."""
    rules = rules_of(module)
    if hasattr(module, "__path__"):
        for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda i: i.name):
            rules += rules_of(importlib.import_module(f"{module.__name__}.{info.name}"))
    return rules


def load_file(path: str) -> list[Rule]:
    """The rules of a plain Python file. ValueError, naming file and reason, where it cannot be run or has no rule in it."""
    name = "mcp_wiretap_rules_of_file_" + re.sub(r"\W", "_", path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file; a rule file ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    rules = rules_of(module)
    if not rules:
        raise ValueError(f"{path} has no rule: mark a function with @rule from mcp_wiretap.rule")
    return rules


def find_rules(files: Iterable[str] = ()) -> list[Rule]:
    """All rules of the installed packs (entry point group `mcp_wiretap.rules`) and of plain Python files, sorted by id.
    ValueError for an id used twice, and for a file that is no rule file."""
    rules: dict[str, Rule] = {}
    packs = [(f"entry point {entry.name}", load_module(entry.load())) for entry in entry_points(group="mcp_wiretap.rules")]
    for origin, found in [*packs, *((path, load_file(path)) for path in files)]:
        for one in found:
            if one.id in rules:
                raise ValueError(f"rule id {one.id} is defined twice (again in {origin})")
            rules[one.id] = one
    return [rules[key] for key in sorted(rules)]


def left_out() -> dict[str, str]:
    """Ids that the installed packs know of and have no rule for, with the reason (`LEFT_OUT` of a pack), sorted."""
    found: dict[str, str] = {}
    for entry in entry_points(group="mcp_wiretap.rules"):
        table = getattr(entry.load(), "LEFT_OUT", None)
        if isinstance(table, dict):
            found |= {str(id): str(why) for id, why in table.items()}
    return dict(sorted(found.items()))
