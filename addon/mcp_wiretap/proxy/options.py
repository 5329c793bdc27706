"""The options `mcp_*`: what they are called, what they may hold, and what the trace is made of by them."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mitmproxy import exceptions
from mitmproxy.addonmanager import Loader
from mitmproxy.optmanager import OptManager

from mcp_wiretap import expectation, project, selection
from mcp_wiretap.expectation import Expectations, ExpectedEra
from mcp_wiretap.rule import Rule, RuleBook, RuleFile, Silence, find_rules
from mcp_wiretap.steering import Break, GateLine, parse_break, parse_gate
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.promised import Promised
from mcp_wiretap.wire.secret import safe

_DEFAULT = Limits()

_OPTIONS: tuple[tuple[str, Any, Any, str], ...] = (
    (
        "mcp_era",
        Sequence[str],
        [],
        "What you expect of a server: [SCHEME://]HOST[:PORT][/PATH]=legacy|modern|auto, * allowed, the first that fits counts. "
        "Traffic of the other era there is an error (ERA025). Without it, nothing is expected.",
    ),
    ("mcp_select", Sequence[str], [], "Check by these rules only: ids (HDR006), families (HDR), names, client or server."),
    ("mcp_ignore", Sequence[str], [], "Do not check by these rules: ids, families, names, or a party."),
    ("mcp_rules", Sequence[str], [], "Rules of your own: paths of plain Python files, beside those of the installed packs."),
    (
        "mcp_trust_project",
        bool,
        False,
        "Run the rule files that the project file (wiretap.toml) names without `mcp-wiretap trust` having allowed them.",
    ),
    ("mcp_comment", bool, True, "Write what was found into the comment of each MCP flow. Your own comments stay."),
    ("mcp_mark", bool, True, "Mark MCP flows: red for an error, yellow for a warning, a loop for a round. Your own marks stay."),
    ("mcp_max_body", int, _DEFAULT.body, "Bytes of one body that are read; a longer one is listed as unchecked."),
    (
        "mcp_max_stream",
        int,
        _DEFAULT.stream,
        "Bytes of one event stream that are kept with the flow and read. All of it is forwarded; what is past this is counted.",
    ),
    ("mcp_max_state", int, _DEFAULT.state, "Exchanges and conversations remembered, about 3 kB each; the oldest go first."),
    (
        "mcp_replay",
        str,
        "",
        "A recording whose servers answer instead of the real ones; nothing is forwarded. Sets connection_strategy to lazy.",
    ),
    ("mcp_replay_timing", str, "recorded", "The pace of mcp_replay: recorded, or fast."),
    (
        "mcp_replay_missing",
        str,
        "error",
        "What becomes of a request that mcp_replay has no answer to: error (says what the recording has), or forward.",
    ),
    ("mcp_stdio", bool, True, "See the servers on stdio that are started by `mcp-wiretap stdio`."),
    (
        "mcp_socket",
        str,
        "",
        "Where their wrappers are heard: the path of a Unix socket; after `loopback:`, of a file that names a port and a secret. "
        "Default: MCP_WIRETAP_SOCKET, else .mcp-wiretap.sock in XDG_RUNTIME_DIR or the home folder.",
    ),
    (
        "mcp_intercept",
        Sequence[str],
        [],
        "Hold calls: [request|answer] METHOD [NAME] (* allowed), rule ID|FAMILY, or era legacy|modern. A held call runs into the "
        "client's timeout; an answer that is held comes whole, its progress late.",
    ),
    (
        "mcp_remirror",
        str,
        "on",
        "After a person edited a held request: mirror anew those headers that agreed with the body before the edit. on or off.",
    ),
    (
        "mcp_gate",
        Sequence[str],
        [],
        "Refuse requests before they reach the server; the first line that fits decides: headers (what a server must refuse with "
        "-32020), readonly (only tools whose definition has readOnlyHint true, which few have), deny METHOD [NAME], allow METHOD "
        "[NAME]. What cannot be read is refused, too.",
    ),
    (
        "mcp_fault",
        Sequence[str],
        [],
        "Put faults into traffic, to see what clients do: KIND[:ARGUMENT] METHOD [NAME] [#N], the Nth call of each client that "
        "fits, once. Kinds: error:CODE, status:CODE, ask, drop, delay:SECONDS, cut:EVENTS, end:EVENTS, twice, foreign:EVENTS, "
        "garbage:EVENTS, changed:EVENTS, ttl:MS, big:BYTES, type:RESULTTYPE, json. For tests only.",
    ),
    ("mcp_faults", str, "", "A TOML file of such faults: [[fault]] kind, argument, method, name, nth, probability, with a seed."),
    (
        "mcp_baseline",
        str,
        "",
        "What was accepted of servers (a file of `mcp-wiretap baseline`): what is offered otherwise is told (DRF001 to DRF006).",
    ),
    (
        "mcp_otlp_endpoint",
        str,
        "",
        "Send each operation as an OpenTelemetry span to this collector: http://127.0.0.1:4318/v1/traces. What it does not take "
        "is dropped and counted. Needs the extra otlp.",
    ),
    (
        "mcp_fast_hooks",
        bool,
        True,
        "Call only those of mitmproxy's own addons that have a hook, where its source is a known one: saves about a third of the "
        "time of a request, for all traffic. false leaves mitmproxy's own way.",
    ),
)
KINDS: dict[str, Any] = {name: kind for name, kind, *_ in _OPTIONS}
NAMES = frozenset(KINDS)


def add(loader: Loader) -> None:
    """Register the options with mitmproxy."""
    for name, kind, default, text in _OPTIONS:
        loader.add_option(name, kind, default, text)
    _check_given(loader.master.options)


def _check_given(given: OptManager) -> None:
    """Refuse what `--set` gave to an option of ours and is of another type: mitmproxy would leave the addon out, and not say so.
    An error in its log while it starts ends it."""
    for name in sorted(NAMES & given.deferred.keys()):
        values = getattr(given.deferred[name], "val", None)  # None: typed already, from a configuration file
        if isinstance(values, list):
            try:
                given.set(*([f"{name}={value}" for value in values] or [name]))
            except exceptions.OptionsError as error:
                del given.deferred[name]
                logging.getLogger(__name__).error("%s", error)


def tell_unknown(given: OptManager) -> None:
    """Warn of options `mcp_...` that nobody has, neither we nor another script: mitmproxy keeps them and says nothing."""
    for name in sorted(given.deferred):
        if name.startswith("mcp_"):
            near = selection.nearest(name, NAMES)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            logging.getLogger(__name__).warning("There is no option %s%s", safe(name), hint)


@dataclass(frozen=True)
class Settings:
    """The options of one moment, read and found valid."""

    limits: Limits
    expectations: tuple[tuple[str, ExpectedEra], ...]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    comment: bool
    mark: bool
    files: tuple[RuleFile, ...] = ()  # rules in plain Python files
    silences: tuple[Silence, ...] = ()
    breaks: tuple[Break, ...] = ()
    remirror: bool = True
    gate: tuple[GateLine, ...] = ()
    promised: Promised = field(default_factory=Promised)
    told: tuple[str, ...] = ()  # what was not read or did not run, and what did; one line each

    @property
    def judging(self) -> tuple[Any, ...]:
        """By what a trace is judged: two settings that are equal in it make the same book."""
        return self.select, self.ignore, self.files, self.silences

    @classmethod
    def read(cls, options: Any) -> "Settings":
        """What the options and the project file (wiretap.toml) say; `mcp_select` takes the place of the project's selection, the
        others come on top of it. OptionsError, saying what is wrong and what would be right, for a value that makes no sense."""
        try:
            found = project.load(Path.cwd())
            own = project.rules_of(found, trust=options.mcp_trust_project, switch="--set mcp_trust_project=true")
            files = (*_given(options.mcp_rules), *own.files)
            rules = installed_rules(files)
            found.check_rules(rules, complete=own.complete)
            offers = project.load_baseline(Path(options.mcp_baseline) if options.mcp_baseline else found.baseline)
        except ValueError as error:
            raise exceptions.OptionsError(str(error)) from None
        return cls(
            Limits(
                body=_positive("mcp_max_body", options.mcp_max_body),
                stream=_positive("mcp_max_stream", options.mcp_max_stream),
                state=_positive("mcp_max_state", options.mcp_max_state),
            ),
            (*(_expectation(value) for value in options.mcp_era), *found.expect),
            _words("mcp_select", options.mcp_select, rules) or tuple(found.select),
            (*_words("mcp_ignore", options.mcp_ignore, rules), *found.ignore),
            options.mcp_comment,
            options.mcp_mark,
            files,
            tuple(found.silences),
            _lines("mcp_intercept", options.mcp_intercept, lambda line: _break(line, rules)),
            _switch("mcp_remirror", options.mcp_remirror),
            (*_lines("mcp_gate", options.mcp_gate, parse_gate), *found.gate),
            Promised(offers, found.contract),
            (*found.passed_over, *own.refused, *(f"rules of {found.path} ran: {file.path}" for file in own.files)),
        )

    def expected(self, url: str) -> str | None:
        """The era that the user expects of an endpoint; None without an expectation."""
        return Expectations(self.expectations)(url)

    def book(self) -> RuleBook:
        """The rules chosen."""
        return RuleBook.of(self.rules(), select=self.select, ignore=self.ignore, silences=self.silences)

    def rules(self) -> list[Rule]:
        """All rules there are, chosen or not."""
        return installed_rules(self.files)


@lru_cache(maxsize=4)
def installed_rules(files: tuple[RuleFile, ...] = ()) -> list[Rule]:
    """The rules of all installed packs and of the user's files, found once. ValueError where one cannot be loaded."""
    return find_rules(files)


def _given(paths: Sequence[str]) -> list[RuleFile]:
    try:
        return [RuleFile.read(path) for path in paths]
    except ValueError as error:
        raise ValueError(f"mcp_rules: {error}") from None


def _lines[T](name: str, values: Sequence[str], parse: Callable[[str], T]) -> tuple[T, ...]:
    try:
        return tuple(parse(value) for value in values)
    except ValueError as error:
        raise exceptions.OptionsError(f"{name}: {error}") from None


def _break(line: str, rules: list[Rule]) -> Break:
    found = parse_break(line)
    if found.rule and not any(found.rule in (rule.id, rule.family) for rule in rules):
        raise ValueError(f"{line!r} names no rule and no family of rules")
    return found


def _switch(name: str, value: str) -> bool:
    if value.lower() not in ("on", "off", "true", "false"):
        raise exceptions.OptionsError(f"{name}: {value!r} is neither on nor off")
    return value.lower() in ("on", "true")


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise exceptions.OptionsError(f"{name}: {value} is not a number above 0")
    return value


def _words(name: str, values: Sequence[str], rules: list[Rule]) -> tuple[str, ...]:
    """The words of `mcp_select` or `mcp_ignore`, comma lists taken apart; each must mean a rule."""
    try:
        return tuple(selection.resolve(selection.split(values), rules))
    except selection.UnknownRule as error:
        raise exceptions.OptionsError(f"{name}: {error}") from None


def _expectation(value: str) -> tuple[str, ExpectedEra]:
    try:
        return expectation.parse(value)
    except ValueError as error:
        raise exceptions.OptionsError(f"mcp_era: {error}") from None
