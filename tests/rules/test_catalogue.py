"""The rule pack as a whole: ids, names and modules fit together."""

import importlib
import pkgutil
import re
from types import ModuleType

import pytest

import mcp_wiretap_rules
from mcp_wiretap.rule import rules_of
from tests.rules.running import installed_rules

MODULES = [importlib.import_module(f"mcp_wiretap_rules.{info.name}") for info in pkgutil.iter_modules(mcp_wiretap_rules.__path__)]
every_module = pytest.mark.parametrize("module", MODULES, ids=[m.__name__.rpartition(".")[2] for m in MODULES])


def test_ids_and_names_are_unique() -> None:
    rules = installed_rules()
    assert len({r.id for r in rules}) == len(rules)
    names = [r.name for r in rules]
    assert not {n for n in names if names.count(n) > 1}


def test_a_rule_is_named_alike_everywhere() -> None:
    for rule in installed_rules():
        assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.id), rule.id
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name), f"{rule.id} {rule.name}"


@every_module
def test_a_family_has_its_module_and_its_rules_stand_in_order(module: ModuleType) -> None:
    rules = rules_of(module)
    name = module.__name__.rpartition(".")[2]
    if rules:
        assert {r.family for r in rules} == {name.partition("_")[0].upper()}  # oau_tokens: of OAU, the rules on tokens
        assert [r.id for r in rules] == sorted(r.id for r in rules)


@every_module
def test_a_module_says_what_it_knows(module: ModuleType) -> None:
    assert module.__doc__ and module.__doc__.strip(), module.__name__
