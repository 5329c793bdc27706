"""What the user says of calls that are to be held or refused: one line each (options `mcp_intercept`, `mcp_gate`).

    mcp_intercept   [request|answer] METHOD [NAME]  |  rule ID|FAMILY  |  era legacy|modern
    mcp_gate        headers  |  readonly  |  deny METHOD [NAME]  |  allow METHOD [NAME]

METHOD and NAME may hold `*`. NAME is the tool, prompt, resource or task that a request names.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

ERAS = ("legacy", "modern")


@dataclass(slots=True, frozen=True)
class GateLine:
    """One line of the gate."""

    verb: Literal["headers", "readonly", "deny", "allow"]
    method: str = "*"
    name: str = "*"

    def means(self, method: str | None, name: str | None) -> bool:
        return _means(self.method, self.name, method, name)


@dataclass(slots=True, frozen=True)
class Break:
    """Where calls are held: a method and a name at their request or answer, a rule that complains, or an era."""

    at: Literal["request", "answer"] = "request"
    method: str = "*"
    name: str = "*"
    rule: str = ""
    era: str = ""

    def means(self, method: str | None, name: str | None) -> bool:
        return not self.rule and not self.era and _means(self.method, self.name, method, name)


def parse_gate(text: str) -> GateLine:
    """One line of `mcp_gate`. ValueError says what is wrong with it."""
    words = text.split()
    match words:
        case ["headers"]:
            return GateLine("headers")
        case ["readonly"]:
            return GateLine("readonly")
        case ["deny", method, *name] if len(name) <= 1:
            return GateLine("deny", method, *name)
        case ["allow", method, *name] if len(name) <= 1:
            return GateLine("allow", method, *name)
    raise ValueError(f"{text!r} is none of: headers, readonly, deny METHOD [NAME], allow METHOD [NAME]")


def parse_break(text: str) -> Break:
    """One line of `mcp_intercept`. ValueError says what is wrong with it."""
    words = text.split()
    match words:
        case ["rule", rule]:
            return Break(rule=rule.upper())
        case ["era", era] if era in ERAS:
            return Break(era=era)
        case [("request" | "answer") as at, method, *name] if len(name) <= 1:
            return Break("answer" if at == "answer" else "request", method, *name)
        case [method, *name] if len(name) <= 1 and method not in ("rule", "era", "request", "answer"):
            return Break("request", method, *name)
    raise ValueError(f"{text!r} is none of: [request|answer] METHOD [NAME], rule ID|FAMILY, era legacy|modern")


def _means(method: str, name: str, asked: str | None, named: str | None) -> bool:
    if asked is None or not fnmatchcase(asked, method):
        return False
    return name == "*" or (named is not None and fnmatchcase(named, name))
