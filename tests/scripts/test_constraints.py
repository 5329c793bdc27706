"""constraints.txt pins all that is installed, satisfies pyproject.toml on every supported Python, holds no address."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LINES = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(**environment: str) -> dict[str, str]:
    """Name to version, for a machine that is like this one except for the given marker variables."""
    found = {}
    for requirement in map(Requirement, LINES):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            found[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return found


def declared() -> Iterator[Requirement]:
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        yield from (requirement for requirement in map(Requirement, group) if requirement.name != PROJECT["name"])


def reached(name: str, extras: frozenset[str], seen: dict[str, str]) -> dict[str, str]:
    """The installed distributions that `name[extras]` needs here, with their versions, itself left out."""
    for requirement in map(Requirement, metadata.requires(name) or ()):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            continue
        key = canonicalize_name(requirement.name)
        wanted = frozenset(requirement.extras)
        if key == canonicalize_name(PROJECT["name"]):
            reached(key, wanted, seen)
        elif key not in seen or wanted:
            seen[key] = metadata.version(key)
            reached(key, wanted, seen)
    return seen


@pytest.mark.parametrize("line", LINES)
def test_each_line_is_one_exact_version_without_an_address(line: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[0-9][0-9a-z.]*( ; [^/@]+)?", line)


def test_the_lines_are_sorted_so_that_a_change_is_a_small_diff() -> None:
    names = [re.split("==", line)[0] for line in LINES]
    assert names == sorted(names)


@pytest.mark.parametrize("python", ["3.12", "3.13", "3.14"])
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_the_project_asks_for_is_pinned_within_its_bounds(python: str, system: str) -> None:
    machine = {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": system}
    available = pins(**machine)
    for requirement in declared():
        if requirement.marker is None or requirement.marker.evaluate(machine):
            version = available.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement} is not pinned; run scripts/freeze --keep"
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement} excludes {version}"


def test_what_is_installed_is_what_is_pinned() -> None:
    installed = reached(PROJECT["name"], frozenset({"dev"}), {})
    assert len(installed) > 50
    pinned = pins()
    assert {name: pinned.get(name) for name in installed} == installed


def imported() -> dict[str, str]:
    """The packages that our modules import, each with one that does; what stands in the folder itself left out."""
    found: dict[str, str] = {}
    sources = ("addon", "rules", "scripts", "test_servers", "tests")
    for path in (path for source in sources for path in (ROOT / source).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0]: str(path) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module.split(".")[0]] = str(path)
    return found


def test_what_is_imported_comes_with_what_is_declared() -> None:
    ours = {"mcp_wiretap", "mcp_wiretap_rules", "harness", "test_servers", "tests"}
    known = reached(PROJECT["name"], frozenset({"dev"}), {})
    givers = metadata.packages_distributions()
    for package, path in imported().items():
        if package not in ours and package not in sys.stdlib_module_names and package != "compression":
            names = {canonicalize_name(name) for name in givers.get(package, ())}
            assert names & known.keys(), f"{path} imports {package}, which no requirement brings: {names or 'not installed'}"
