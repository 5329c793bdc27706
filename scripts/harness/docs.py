"""Writes the generated pages of the documentation and builds the site.

Generated are one page a rule, an index of the rules, the options and the commands. They are kept in the repository, so that
they can be read there; `--check` says which of them are stale.
"""

import argparse
import html
import inspect
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mcp_wiretap import explanation
from mcp_wiretap.proxy import options, wiretap
from mcp_wiretap.rule import Rule, find_rules, left_out

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RULES = DOCS / "rules"
REFERENCE = DOCS / "reference"
MADE = "<!-- Made by scripts/docs --write; do not edit. -->\n\n"


def pages() -> dict[Path, str]:
    """Return the generated pages, by path."""
    rules = [rule for rule in find_rules() if rule.check.__module__.startswith("mcp_wiretap_rules")]
    made = {RULES / f"{rule.id}.md": MADE + rule_page(rule) for rule in rules}
    made[RULES / "index.md"] = MADE + rules_page(rules)
    made[REFERENCE / "options.md"] = MADE + options_page()
    made[REFERENCE / "commands.md"] = MADE + commands_page()
    return made


def rule_page(rule: Rule) -> str:
    told = explanation.of(rule)
    address = explanation.link(rule.spec)
    parts = [
        f"# {rule.id}: {prose(rule.title)}",
        f"`{rule.name}` · {rule.severity} · {rule.level.upper().replace('-', ' ')} · breaks it: {rule.party} · era: {rule.era}",
        prose(told.demand),
    ]
    if told.why:
        parts += ["## Why", prose(capital(told.why))]
    if told.fix:
        parts += ["## Fix", prose(capital(told.fix))]
    for name, script in (("Wrong", told.wrong), ("Right", told.right)):
        if script:
            parts += [f"## {name}", f"```text\n{script}\n```"]
    parts += ["## Specification", f"[{rule.spec}]({address})" if address else prose(rule.spec), "[All rules](index.md)"]
    return "\n\n".join(parts) + "\n"


def rules_page(rules: Sequence[Rule]) -> str:
    parts = [
        "# Rules",
        f"{len(rules)} rules are checked. [How they are numbered and scoped](../catalogue.md); "
        "`mcp-wiretap explain ID` prints the same pages.",
    ]
    for family, of_family in groupby(sorted(rules, key=lambda rule: rule.id), key=lambda rule: rule.family):
        rows = [
            f"| [{rule.id}]({rule.id}.md) | {cell(rule.title)} | {rule.severity} | {rule.party} | {rule.era} |"
            for rule in of_family
        ]
        parts += [f"## {family}", "| rule | | severity | party | era |\n|---|---|---|---|---|\n" + "\n".join(rows)]
    reasons = [f"| {id} | {cell(why)} |" for id, why in left_out().items()]
    parts += ["## Numbers without a rule", "| number | reason |\n|---|---|\n" + "\n".join(reasons)]
    return "\n\n".join(parts) + "\n"


def options_page() -> str:
    rows = []
    for name, kind, default, text in options._OPTIONS:
        shown = "none" if default in ("", []) else str(default).lower() if isinstance(default, bool) else str(default)
        several = "" if kind in (str, int, bool) else " Repeat `--set` for several."
        rows.append(f"| `{name}` | `{shown}` | {cell(text)}{several} |")
    return (
        "# Options\n\nGiven as `--set NAME=VALUE`, in mitmproxy's `config.yaml`, or on the options page of mitmweb.\n\n"
        "| option | default | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def commands_page() -> str:
    from mcp_wiretap import cli

    text = ["# Commands", "## mcp-wiretap"]
    for name, parser in subcommands(cli._parser()).items():
        usage = parser.format_help()
        text += [f"### {name}", f"```text\n{usage.strip()}\n```"]
    text += ["## In mitmproxy", "In the console's prompt (`:`), by a key binding, or in mitmweb.", console_commands()]
    return "\n\n".join(text) + "\n"


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    action = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    found: dict[str, argparse.ArgumentParser] = action.choices
    for one in found.values():
        one.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100)
    return found


def console_commands() -> str:
    found: dict[str, Any] = {}
    for module in {member.__module__ for member in wiretap.Wiretap.__mro__ if member.__module__.startswith("mcp_wiretap")}:
        for _, function in inspect.getmembers(sys.modules[module]):
            for member in [function, *vars(function).values()] if inspect.isclass(function) else [function]:
                if command := getattr(member, "command_name", None):
                    found[command] = member
    rows = [f"| `{name}` | {cell((inspect.getdoc(one) or '').split(chr(10) * 2)[0])} |" for name, one in sorted(found.items())]
    return "| command | what it does |\n|---|---|\n" + "\n".join(rows)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def prose(text: str) -> str:
    """Return text for Markdown: what looks like markup stays text, what stands in backticks stays code."""
    pieces = re.split(r"(`+[^`]+`+)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([<>*_\[\]#|])", r"\\\1", html.unescape(piece)) for piece in pieces
    )


def cell(text: str) -> str:
    return prose(" ".join(text.split())).replace(r"\|", "|").replace("|", r"\|")


def stale() -> list[Path]:
    """Return the generated pages that are missing, stale or left over."""
    made = pages()
    changed = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    return changed + [path for path in RULES.glob("*.md") if path not in made]


def write() -> int:
    made = pages()
    for path in RULES.glob("*.md"):
        if path not in made:
            path.unlink()
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(made)} pages")
    return 0


def check() -> int:
    found = stale()
    for path in found:
        print(f"stale: {path.relative_to(ROOT)}")
    if found:
        print("write them anew: ./scripts/docs --write")
    return 1 if found else 0


def main(arguments: Sequence[str]) -> int:
    match list(arguments):
        case ["--write"]:
            return write()
        case ["--check"]:
            return check()
        case ["--serve"]:
            return subprocess.run(
                [sys.executable, "-m", "mkdocs", "serve", "-f", ".mkdocs.yml"], cwd=ROOT, check=False
            ).returncode
        case []:
            build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", ".mkdocs.yml"]
            return subprocess.run(build, cwd=ROOT, check=False).returncode
    print("usage: scripts/docs [--write | --check | --serve]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
