"""The import graph of both packages, imports for type checkers counted: no file may reach itself."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def modules() -> dict[str, Path]:
    found = {}
    for base in ("addon", "rules"):
        for path in (ROOT / base).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT / base).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imported(source: str) -> Iterator[str]:
    """Yield what a file imports, wherever in it: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module


def graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Return for each module those of `sources` that it imports. A package counts where a name is taken from itself."""
    edges = {}
    for name, source in sources.items():
        found = set(imported(source)) & sources.keys()
        packages = {package for package in found if any(other.startswith(package + ".") for other in found)}
        edges[name] = found - packages - {name}
    return edges


def circle(sources: dict[str, str]) -> list[str]:
    try:
        TopologicalSorter(graph(sources)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_file_imports_itself_by_a_detour() -> None:
    assert circle({name: path.read_text(encoding="utf-8") for name, path in modules().items()}) == []


def test_an_import_for_a_type_checker_counts() -> None:
    sources = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b import B\n",
        "b": "import a\n",
    }
    assert circle(sources) != []
