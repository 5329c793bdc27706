"""The project file: which rules, what is expected of which server, which findings are silenced and why.

`wiretap.toml`, or the table `[tool.mcp-wiretap]` of `pyproject.toml`, in the directory where one stands or the nearest above it:

    [rules]
    select = ["HDR", "PAR"]             # ids, families, names or parties; without it all
    ignore = ["CAC004"]
    files = ["rules/ours.py"]           # rules of your own, in plain Python files; from the directory of this file

    [expect]                            # as mcp_era: [SCHEME://]HOST[:PORT][/PATH]
    "api.example.com" = "modern"

    [[silence]]
    rule = "HDR005"
    endpoint = "old.example.com/mcp"    # without it every endpoint
    reason = "the gateway strips it; ticket 4711"
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcp_wiretap import expectation, selection
from mcp_wiretap.expectation import ExpectedEra
from mcp_wiretap.rule import Rule, Silence

FILE = "wiretap.toml"
TABLE = "[tool.mcp-wiretap]"


class ProjectError(ValueError):
    """The project file cannot be used. The message names file, key and fix."""


@dataclass(slots=True)
class Project:
    """What the file says; all empty without one."""

    path: Path | None = None
    files: list[str] = field(default_factory=list)
    select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    expect: list[tuple[str, ExpectedEra]] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)

    def check_rules(self, rules: Iterable[Rule]) -> None:
        """ProjectError where a word means none of the rules; the words are brought to the form that `rule.matches` knows."""
        rules = list(rules)
        self.select = self._resolve("rules.select", self.select, rules)
        self.ignore = self._resolve("rules.ignore", self.ignore, rules)
        checked = []
        for number, silence in enumerate(self.silences):
            word = silence.rule
            if word != "*":
                word = self._resolve(f"silence[{number}].rule", [word], rules)[0]
                if word not in {rule.id for rule in rules} | {rule.family for rule in rules}:
                    word = selection.find(word, rules).id
            checked.append(Silence(word, silence.endpoint, silence.reason))
        self.silences = checked

    def _resolve(self, key: str, words: list[str], rules: list[Rule]) -> list[str]:
        try:
            return selection.resolve(words, rules)
        except selection.UnknownRule as error:
            raise ProjectError(f"{self.path}: {key}: {error}") from None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Rules(_Strict):
    select: list[str] = []
    ignore: list[str] = []
    files: list[str] = []


class _Silence(_Strict):
    rule: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]
    endpoint: str = "*"


class _File(_Strict):
    rules: _Rules = _Rules()
    expect: dict[str, str] = {}
    silence: list[_Silence] = []


def load(directory: Path) -> Project:
    """The project of a directory: its own file or that of the nearest directory above. ProjectError where it is wrong."""
    for place in (directory, *directory.parents):
        own = place / FILE
        if own.is_file():
            return read(own)
        shared = place / "pyproject.toml"
        if shared.is_file() and (project := read_pyproject(shared)) is not None:
            return project
    return Project()


def read(path: Path) -> Project:
    """A wiretap.toml."""
    return _project(path, _toml(path))


def read_pyproject(path: Path) -> Project | None:
    """The table of a pyproject.toml; None where it has none."""
    tool = _toml(path).get("tool")
    table = tool.get("mcp-wiretap") if isinstance(tool, dict) else None
    return _project(path, table) if table is not None else None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProjectError(f"{path}: not valid TOML: {error}") from None


def _project(path: Path, table: object) -> Project:
    try:
        file = _File.model_validate(table)
    except ValidationError as error:
        raise ProjectError("\n".join(f"{path}: {_words(problem)}" for problem in error.errors())) from None
    entries = []
    for pattern, era in file.expect.items():
        try:
            entries.append(expectation.parse(f"{pattern}={era}"))
        except ValueError as error:
            raise ProjectError(f'{path}: expect."{pattern}": {error}') from None
    for number, silence in enumerate(file.silence):
        if silence.endpoint not in ("", "*"):
            try:
                expectation.check_pattern(silence.endpoint)
            except ValueError as error:
                raise ProjectError(f"{path}: silence[{number}].endpoint: {error}") from None
    silences = [Silence(silence.rule, silence.endpoint, silence.reason) for silence in file.silence]
    files = [str(path.parent / name) for name in file.rules.files]
    return Project(path, files, file.rules.select, file.rules.ignore, entries, silences)


_KNOWN = {
    (): ("rules", "expect", "silence"),
    ("rules",): ("select", "ignore", "files"),
    ("silence",): ("rule", "endpoint", "reason"),
}


def _words(problem: Any) -> str:
    """One problem that pydantic found, as key and fix."""
    steps = problem["loc"]
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    match problem["type"]:
        case "extra_forbidden":
            known = _KNOWN.get(tuple(step for step in steps[:-1] if isinstance(step, str)), ())
            near = selection.nearest(str(steps[-1]), known)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}" if known else "remove it"
            return f"{key}: no such key; {hint}"
        case "missing":
            return f"{key}: missing; a silence needs a rule and a reason"
        case "string_too_short":
            return f"{key}: empty; say it in words"
        case _:
            said = problem["msg"].removeprefix("Input ")
            return f"{key or 'the file'}: {said}, not {problem['input']!r}"
