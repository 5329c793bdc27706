"""The project file: which rules, what is expected of which server, which findings are silenced and why.

`wiretap.toml`, or the table `[tool.mcp-wiretap]` of `pyproject.toml`, in the directory where one stands or the nearest above it
that belongs to the same work: the search ends at the root of the repository or at the home directory. Files that others can write
are not read, and the rule files that it names run only where the user has allowed them (`mcp_wiretap.trust`):

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

    [contract]                          # what you hold servers to; what breaks it is a finding (CON001 to CON005)
    expect_tools = ["deploy"]           # some server must offer it
    forbid_tools = ["delete_*"]
    max_ms = {"tools/call" = 5000, "report" = 60000}    # by method or tool
    max_failures = 0.1                  # share of tool calls
    max_definitions = 50000             # bytes of a server's tool definitions
    max_result = 20000                  # bytes of one tool result
    baseline = "mcp-baseline.json"      # what was accepted of servers (`mcp-wiretap baseline`); drift is DRF001 to DRF006

    [gate]                              # as mcp_gate, in a proxy: the first line that fits decides
    lines = ["headers", "allow tools/call get_*", "deny tools/call *"]
"""

import json
import os
import shlex
import stat
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcp_wiretap import expectation, selection
from mcp_wiretap.compare import baseline
from mcp_wiretap.expectation import ExpectedEra
from mcp_wiretap.rule import Rule, RuleFile, Silence
from mcp_wiretap.steering import GateLine, parse_gate
from mcp_wiretap.trace.promised import Contract, Offer
from mcp_wiretap.trust import NotOurs, Trusted, digest, read_own
from mcp_wiretap.wire.secret import shown, visible

FILE = "wiretap.toml"
TABLE = "[tool.mcp-wiretap]"
LARGEST_BASELINE = 64 << 20  # bytes
_REPOSITORY = (".git", ".hg", ".jj")  # what the root of a repository has in it


class ProjectError(ValueError):
    """The project file cannot be used. The message names file, key and fix."""


@dataclass(slots=True)
class Project:
    """What the file says; all empty without one."""

    path: Path | None = None
    files: list[str] = field(default_factory=list)  # rule files, as they are named in it
    digest: str = ""  # of what it says
    select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    expect: list[tuple[str, ExpectedEra]] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    gate: list[GateLine] = field(default_factory=list)
    contract: Contract = field(default_factory=Contract)
    baseline: Path | None = None
    passed_over: list[str] = field(default_factory=list)  # nearer project files that were not read, and why; one line each

    def check_rules(self, rules: Iterable[Rule], *, complete: bool = True) -> None:
        """ProjectError where a word means none of the rules; the words are brought to the form that `rule.matches` knows. Where
        the rules are not complete, as the project's own did not run, a word may mean one of those."""
        rules = list(rules)
        self.select = self._resolve("rules.select", self.select, rules, complete)
        self.ignore = self._resolve("rules.ignore", self.ignore, rules, complete)
        ids, names = {rule.id for rule in rules} | {rule.family for rule in rules}, {rule.name for rule in rules}
        checked = []
        for number, silence in enumerate(self.silences):
            word = silence.rule
            if word != "*":
                word = self._resolve(f"silence[{number}].rule", [word], rules, complete)[0]
                if word in names or (complete and word not in ids):
                    word = selection.find(word, rules).id
            checked.append(replace(silence, rule=word))
        self.silences = checked

    def _resolve(self, key: str, words: list[str], rules: list[Rule], complete: bool) -> list[str]:
        resolved = []
        for word in words:
            try:
                resolved += selection.resolve([word], rules)
            except selection.UnknownRule as error:
                if complete:
                    raise ProjectError(f"{self.path}: {key}: {error}") from None
                resolved.append(word)
        return resolved


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Rules(_Strict):
    select: list[str] = []
    ignore: list[str] = []
    files: list[str] = []


class _Gate(_Strict):
    lines: list[str] = []


class _Silence(_Strict):
    rule: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]
    endpoint: str = "*"


class _Contract(_Strict):
    expect_tools: list[str] = []
    forbid_tools: list[str] = []
    max_ms: dict[str, Annotated[float, Field(gt=0)]] = {}
    max_failures: Annotated[float, Field(ge=0, le=1)] | None = None
    max_definitions: Annotated[int, Field(gt=0)] | None = None
    max_result: Annotated[int, Field(gt=0)] | None = None
    baseline: str | None = None


class _File(_Strict):
    rules: _Rules = _Rules()
    expect: dict[str, str] = {}
    silence: list[_Silence] = []
    gate: _Gate = _Gate()
    contract: _Contract = _Contract()


def load(directory: Path) -> Project:
    """The project of a directory: its own file or that of the nearest directory above, up to the root of the repository or the
    home directory. ProjectError where the file is wrong. Files that are not ours to read are passed over."""
    passed_over: list[str] = []
    directory = Path(os.path.realpath(directory))
    found = next(_readable(directory, passed_over), Project())
    found.passed_over = passed_over
    if found.path is not None and found.path.parent != directory:
        found.silences = [replace(silence, source=str(found.path)) for silence in found.silences]
    return found


def _readable(directory: Path, passed_over: list[str]) -> Iterator[Project]:
    for place in _searched(directory):
        for name, read_it in ((FILE, read), ("pyproject.toml", read_pyproject)):
            path = place / name
            if os.path.isfile(path):  # noqa: PTH113  (Path.is_file raises where the directory may not be looked at)
                try:
                    project = read_it(path)
                except NotOurs as why:
                    passed_over.append(f"{visible(str(path))} is not read: {why}")
                    continue
                if project is not None:
                    yield project


def _searched(directory: Path) -> list[Path]:
    """The directory and those above it that are its own: to the root of its repository or to the home directory, whichever comes
    first; above neither, only itself."""
    try:
        home = Path(os.path.realpath(Path.home()))
    except RuntimeError:
        home = None
    places = []
    for place in (directory, *directory.parents):
        places.append(place)
        if any(os.path.lexists(place / name) for name in _REPOSITORY) or (place == home and place.parent != place):
            return places
    return [directory]


def read(path: Path) -> Project:
    """A wiretap.toml. NotOurs where it is not read."""
    content = _content(path)
    return _project(path, _toml(path, content), digest(content))


def read_pyproject(path: Path) -> Project | None:
    """The table of a pyproject.toml; None where it has none. NotOurs where it is not read."""
    tool = _toml(path, _content(path)).get("tool")
    table = tool.get("mcp-wiretap") if isinstance(tool, dict) else None
    if table is None:
        return None
    return _project(path, table, digest(json.dumps(table, sort_keys=True, default=str).encode()))


def load_baseline(path: Path | None) -> dict[str, Offer]:
    """What a baseline says was accepted of servers; nothing without a path. It is data, whoever wrote it. ProjectError, naming
    the path, where it cannot be used."""
    if path is None:
        return {}
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ProjectError(f"{path} is no regular file")
            content = file.read(LARGEST_BASELINE + 1)
    except OSError as error:
        raise ProjectError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_BASELINE:
        raise ProjectError(f"{path} is larger than {LARGEST_BASELINE >> 20} MB")
    try:
        return baseline.read(content)
    except baseline.NotABaseline as why:
        raise ProjectError(f"{path}: {why}") from None


def _content(path: Path) -> bytes:
    try:
        return read_own(path)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None


def _toml(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ProjectError(f"{path}: not valid TOML: it is not UTF-8 (byte {error.start})") from None
    except (ValueError, RecursionError) as error:  # also what Python itself does not take: numbers of 5,000 digits, deep nesting
        why = "it is nested too deep" if isinstance(error, RecursionError) else shown(str(error), 200)
        raise ProjectError(f"{path}: not valid TOML: {why}") from None


@dataclass(slots=True)
class Rules:
    """The rule files of a project that may run, and in one line each what may not and why."""

    files: list[RuleFile] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not self.refused


def rules_of(project: Project, *, trust: bool, switch: str) -> Rules:
    """What of a project's rule files may run: those below its directory that are the user's, where he has allowed the project as
    it is now (`mcp-wiretap trust`) or trusts it for this once (`trust`; `switch` says how). ProjectError for a file that may run
    and cannot be read."""
    if project.path is None or not project.files:
        return Rules()
    rules, missing, content = _own_rules(project)
    if not trust:
        trusted = Trusted.load()
        if trusted.problem is not None:
            rules.refused.append(visible(trusted.problem))
        if not trusted.allows(project.path, content):
            changed = "have changed since they were allowed and " if str(project.path) in trusted.projects else ""
            where = shlex.quote(visible(str(project.path.parent)))
            rules.refused.append(
                f"{visible(str(project.path))}: its rules ({shown(', '.join(project.files), 200)}) {changed}did not run; "
                f"`mcp-wiretap trust {where}` allows them, {switch} for this once"
            )
            rules.files = []
            return rules
    if missing:
        raise ProjectError(f"{project.path}: rules.files: {missing[0]}")
    return rules


def content_of(project: Project) -> dict[str, str]:
    """What is allowed when a project is: its file and its rule files, path -> SHA-256. ProjectError where one of them could not
    run even then."""
    rules, missing, content = _own_rules(project)
    for problem in (*missing, *rules.refused):
        raise ProjectError(f"{project.path}: rules.files: {problem}")
    return content


def _own_rules(project: Project) -> tuple[Rules, list[str], dict[str, str]]:
    """The rule files that could run, what is wrong with the others, and the digests of all that was read."""
    assert project.path is not None
    rules, missing = Rules(), list[str]()
    content = {str(project.path): project.digest}
    within = Path(os.path.realpath(project.path.parent))
    for name in dict.fromkeys(project.files):
        told, refused = shown(name, 200), f"{shown(name, 200)} of {visible(str(project.path))} did not run"
        try:
            path = Path(os.path.realpath(within / name))
        except (OSError, ValueError) as error:  # a NUL in it
            missing.append(f"{told} is no name of a file: {error}")
            continue
        if not path.is_relative_to(within):
            rules.refused.append(
                f"{told} of {visible(str(project.path))} did not run: it is outside of that directory; --rules runs it"
            )
            continue
        try:
            source = read_own(path)
        except NotOurs as why:
            rules.refused.append(f"{refused}: {why}")
            continue
        except (OSError, ValueError) as error:
            missing.append(f"{told} cannot be read: {getattr(error, 'strerror', None) or error}")
            continue
        content[str(path)] = digest(source)
        rules.files.append(RuleFile(str(path), source, str(project.path)))
    return rules, missing, content


def _project(path: Path, table: object, content: str) -> Project:
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
    gate = []
    for number, line in enumerate(file.gate.lines):
        try:
            gate.append(parse_gate(line))
        except ValueError as error:
            raise ProjectError(f"{path}: gate.lines[{number}]: {error}") from None
    held = file.contract
    contract = Contract(
        tuple(held.expect_tools),
        tuple(held.forbid_tools),
        tuple(held.max_ms.items()),
        held.max_failures,
        held.max_definitions,
        held.max_result,
    )
    return Project(
        path,
        file.rules.files,
        content,
        file.rules.select,
        file.rules.ignore,
        entries,
        silences,
        gate,
        contract,
        path.parent / held.baseline if held.baseline is not None else None,
    )


_KNOWN = {
    (): ("rules", "expect", "silence", "gate", "contract"),
    ("contract",): (
        "expect_tools",
        "forbid_tools",
        "max_ms",
        "max_failures",
        "max_definitions",
        "max_result",
        "baseline",
    ),
    ("gate",): ("lines",),
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
            return f"{key or 'the file'}: {said}, not {shown(repr(problem['input']), 100)}"
