"""`mcp-wiretap explain RULE`: what a rule demands, why, how to fix it, where the specification says so, and an example."""

import argparse
from typing import TYPE_CHECKING

from mcp_wiretap import explanation, selection
from mcp_wiretap.command import Refused
from mcp_wiretap.command.output import PLAIN_WIDTH, console
from mcp_wiretap.command.settings import rules_for
from mcp_wiretap.rule import ALL_REVISIONS, Rule, left_out

if TYPE_CHECKING:
    from rich.console import Console

_LEVELS = {"must": "MUST", "should": "SHOULD", "may-note": "worth knowing"}
_STYLES = {"error": "red", "warning": "yellow", "info": "blue"}


def run(arguments: argparse.Namespace) -> int:
    try:
        rule = selection.find(arguments.rule, rules_for(arguments))
    except selection.UnknownRule as error:
        why = left_out().get(arguments.rule.upper())
        if why is None:
            raise Refused(str(error)) from None
        console().print(f"{arguments.rule.upper()} is no rule: {why}.", soft_wrap=True)
        return 0
    show(rule, console())
    return 0


def show(rule: Rule, out: "Console") -> None:
    from rich.text import Text

    told = explanation.of(rule)
    out.print(Text.assemble((rule.id, f"bold {_STYLES[rule.severity]}"), "  ", (rule.title, "bold")))
    _prose(out, f"{rule.name} · {', '.join(_properties(rule))}", style="dim")
    out.print()
    _prose(out, told.demand)
    for heading, text in (("Why", told.why), ("Fix", told.fix)):
        if text:
            out.print()
            out.print(Text(heading, "bold"))
            _prose(out, text[:1].upper() + text[1:], indent=2)
    for heading, script, style in (("Wrong", told.wrong, "red"), ("Right", told.right, "green")):
        if script:
            out.print()
            out.print(Text(heading, f"bold {style}"))
            for line in script.splitlines():
                out.print(Text(f"  {line}".rstrip()), soft_wrap=True)
    out.print()
    out.print(Text("Specification", "bold"))
    out.print(Text("  " + rule.spec), soft_wrap=True)
    if address := explanation.link(rule.spec):
        out.print(Text("  " + address, f"link {address}" if out.is_terminal else ""), soft_wrap=True)


def _prose(out: "Console", prose: str, *, indent: int = 0, style: str = "") -> None:
    """Paragraphs, wrapped, without the trailing spaces that rich pads with."""
    from rich.text import Text

    width = min(out.width, PLAIN_WIDTH) - indent
    for paragraph in prose.split("\n"):
        for line in Text(paragraph, style).wrap(out, width):
            line.rstrip()
            out.print(Text(" " * indent if line else "").append_text(line), soft_wrap=True)


def _properties(rule: Rule) -> list[str]:
    words = [rule.severity, _LEVELS[rule.level], f"breaks it: {rule.party}", f"era: {rule.era}"]
    if rule.versions != ALL_REVISIONS:
        words.append("revisions: " + ", ".join(sorted(rule.versions)))
    if rule.sep:
        words.append(f"SEP-{rule.sep}")
    return words
