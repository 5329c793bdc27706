"""Typed facts: each is written and read, and a type checker refuses a wrong value."""

import ast
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_wiretap.rule import find_rules
from mcp_wiretap.rule.packs import with_facts
from mcp_wiretap.trace.facts import ExchangeFact, Fact
from mcp_wiretap.trace.operations.tasks import TASK

ROOT = Path(__file__).parents[2]
SOURCES = [path for base in ("addon", "rules") for path in sorted((ROOT / base).rglob("*.py"))]
DECLARED = re.compile(r"\b(?:Exchange|Endpoint|Session)Fact$")


def _constants() -> set[str]:
    """Return the names of the constants that hold a fact, or a table of facts."""
    found = set()
    for path in SOURCES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and "Fact[" in ast.unparse(node.annotation):
                found.add(node.target.id)
    return found


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _used() -> tuple[set[str], set[str]]:
    """Return the constants that are written, and those that are read, through `.facts` or `needs=`."""
    written: set[str] = set()
    read: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Subscript(value=ast.Attribute(attr="facts"), slice=key, ctx=ast.Store()):
                    written |= _names(key)
                case ast.Subscript(value=ast.Attribute(attr="facts"), slice=key):
                    read |= _names(key)
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="facts"), attr="setdefault"), args=[key, *_]):
                    written |= _names(key)
                    read |= _names(key)
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="facts"), attr="get"), args=[key, *_]):
                    read |= _names(key)
                case ast.Compare(left=key, comparators=[ast.Attribute(attr="facts")]):
                    read |= _names(key)
                case ast.keyword(arg="needs", value=needs):
                    read |= _names(needs)
                case ast.Call(func=ast.Name(id="_remember"), args=[_, key, _]):
                    written |= _names(key)
    return written, read


def test_each_fact_has_a_writer() -> None:
    assert _constants() - _used()[0] == set()


def test_each_fact_has_a_reader() -> None:
    assert _constants() - _used()[1] == set()


def test_no_fact_is_a_string() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\.facts(\[|\.get\(|\.setdefault\()f?[\"']|needs=.*\"fact:", line)
    ]
    assert found == []


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="the exchange fact task is declared twice"):
        ExchangeFact("task", "again")


def test_a_pack_may_name_a_fact() -> None:
    rule = next(one for one in find_rules() if one.needs is not None and TASK in one.needs)
    assert with_facts(replace(rule, needs=frozenset({"fact:task"}))).needs == frozenset({TASK})


def test_an_unknown_fact_is_refused_with_those_there_are() -> None:
    rule = replace(find_rules()[0], id="ACME001", needs=frozenset({"fact:tokne"}))
    with pytest.raises(ValueError, match=r"ACME001: needs: there is no fact tokne; the facts are .*token"):
        with_facts(rule)


def test_each_fact_says_what_it_means() -> None:
    assert all(fact.says for fact in Fact.known.values())


def test_a_type_checker_refuses_a_wrong_value(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from mcp_wiretap.trace.model import Endpoint, Exchange\n"
        "from mcp_wiretap.trace.operations.reissued import REISSUE\n"
        "def f(exchange: Exchange, endpoint: Endpoint) -> None:\n"
        "    exchange.facts[REISSUE] = ('a', True, False)\n"
        "    endpoint.facts.get(REISSUE)\n"
        "    found = exchange.facts.get(REISSUE)\n"
        "    if found is not None:\n"
        "        print(found.brokne)\n"
        "    exchange.facts['reissue']\n",
        encoding="utf-8",
    )
    said = subprocess.run(
        [sys.executable, "-m", "mypy", str(wrong)],  # by the project's own settings: its cache will do
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    ).stdout
    assert sorted({int(line) for line in re.findall(r"wrong\.py:([0-9]+): error", said)}) == [4, 5, 8, 9], said
