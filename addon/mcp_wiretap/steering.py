"""What the user says of calls that are to be held or refused: one line each (options `mcp_intercept`, `mcp_gate`).

    mcp_intercept   [request|answer] METHOD [NAME]  |  rule ID|FAMILY  |  era legacy|modern
    mcp_fault       KIND[:ARGUMENT] METHOD [NAME] [#N]
    mcp_gate        headers  |  readonly  |  deny METHOD [NAME]  |  allow METHOD [NAME]

METHOD and NAME may hold `*`. NAME is the tool, prompt, resource or task that a request names.
"""

import re
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


FAULTS = {  # kind -> what its argument is
    "error": "CODE",
    "status": "CODE[:SECONDS|SCOPE]",
    "ask": "",
    "drop": "",
    "delay": "SECONDS",
    "cut": "EVENTS",
    "end": "EVENTS",
    "twice": "",
    "foreign": "EVENTS",
    "garbage": "EVENTS",
    "changed": "EVENTS",
    "ttl": "MILLISECONDS",
    "big": "BYTES",
    "type": "RESULTTYPE",
    "json": "",
}
_FAULT = re.compile(r"(\w+)(?::(\S+))?\s+(\S+)(?:\s+([^#\s]+))?(?:\s+#(\d{1,6}))?")
_NUMBERS = frozenset({"error", "status", "delay", "cut", "end", "foreign", "garbage", "changed", "ttl", "big"})
LARGEST_FAULT = 64 << 20  # bytes of `big`


@dataclass(slots=True, frozen=True)
class FaultLine:
    """One line of `mcp_fault`: a fault, and the call that it is put into: the `nth` of each client that fits, once."""

    kind: str
    argument: str
    method: str
    name: str = "*"
    nth: int = 1

    def means(self, method: str | None, name: str | None) -> bool:
        return _means(self.method, self.name, method, name)

    def __str__(self) -> str:
        words = [f"{self.kind}:{self.argument}" if self.argument else self.kind, self.method]
        return " ".join([*words, *([self.name] if self.name != "*" else []), *([f"#{self.nth}"] if self.nth != 1 else [])])


def parse_fault(text: str) -> FaultLine:
    """One line of `mcp_fault`. ValueError says what is wrong with it."""
    found = _FAULT.fullmatch(text.strip())
    if found is None or found[1] not in FAULTS:
        kinds = ", ".join(f"{kind}:{argument}" if argument else kind for kind, argument in FAULTS.items())
        raise ValueError(f"{text!r} is not KIND[:ARGUMENT] METHOD [NAME] [#N]; the kinds are {kinds}")
    kind, argument = found[1], found[2] or ""
    number = argument.partition(":")[0]
    if kind in _NUMBERS:
        try:
            value = float(number or 0)
        except ValueError:
            raise ValueError(f"{text!r}: {number!r} is no number; it is {kind}:{FAULTS[kind]}") from None
        if kind in ("error", "status", "ttl", "big", "delay") and not argument:
            raise ValueError(f"{text!r}: the number is missing; it is {kind}:{FAULTS[kind]}")
        if kind == "status" and not 200 <= value <= 599:
            raise ValueError(f"{text!r}: {number} is no HTTP status")
        if kind != "error" and not 0 <= value <= LARGEST_FAULT:
            raise ValueError(f"{text!r}: {number} is out of bounds")
    elif argument and not FAULTS[kind]:
        raise ValueError(f"{text!r}: {kind} takes no argument")
    return FaultLine(kind, argument, found[3], found[4] or "*", max(int(found[5] or 1), 1))


def _means(method: str, name: str, asked: str | None, named: str | None) -> bool:
    if asked is None or not fnmatchcase(asked, method):
        return False
    return name == "*" or (named is not None and fnmatchcase(named, name))
