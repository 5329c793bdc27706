"""`mcp-wiretap extract FILE --conversation ID`: a test case made of a recording: its smallest part that shows the same findings,
without secrets, and a test that expects them.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_wiretap import __version__
from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.output import replacing, say
from mcp_wiretap.command.redacted_copy import cleaned, flows_of_conversation, redactor_for
from mcp_wiretap.expectation import Expectations
from mcp_wiretap.export.account import Account, Accounts
from mcp_wiretap.export.extract import Search, Shown, name_of, replay_test, test_file
from mcp_wiretap.proxy.sharing import copy, events
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.secret import one_line

MOST_FLOWS = 3_000  # before the conversation's end that are looked at; those of its endpoint and of authorization
_PREPARING = frozenset(
    {"initialize", "server/discover", "tools/list", "prompts/list", "resources/list", "notifications/initialized"}
)


def run(arguments: argparse.Namespace) -> int:
    source, directory = Path(arguments.file), Path(arguments.output)
    tracing.check_readable(str(source))
    chosen = settings.read(arguments)
    redactor = redactor_for(arguments)
    _prepare(directory)
    with cleaned(source, chosen, redactor) as clean:
        accounts = clean.accounts
        flows = flows_of_conversation(accounts, arguments.conversation)
        told = [account for flow in flows if (account := accounts.of(flow)) is not None]
        shown = _shown(told)
        if arguments.server:
            opening = [flow for flow in _others(accounts, flows, told) if _opens(accounts, flow)]
            _write_replay(directory, source, clean.path, [*opening, *flows], told, arguments.name)
            return 0 if clean.damage is None else 2
        if not shown:
            raise Refused(f"nothing was found in {arguments.conversation}: there is nothing for a test case to show")
        case = _Case(clean.path, chosen, flows, shown)
        beside = case.search(_others(accounts, flows, told), accounts)
        _write(directory, source, clean.path, [*flows, *beside], told, shown, arguments.name)
    if case.exhausted:
        say(f"not reduced further after {case.audits} audits")
    if clean.damage is not None:
        say(f"{source}: {clean.damage}; looked at up to there")
    return 0 if clean.damage is None else 2


def _prepare(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--output {directory} cannot be made a directory: {error.strerror}") from None


def _opens(accounts: Accounts, flow: str) -> bool:
    account = accounts.of(flow)
    return account is not None and account.method in _PREPARING


def _shown(accounts: Sequence[Account]) -> Shown:
    return frozenset((f.rule, f.party or "") for account in accounts for f in account.findings)


def _others(accounts: Accounts, flows: Sequence[str], told: Sequence[Account]) -> list[str]:
    """The flows that may matter: those of the same endpoint and of authorization, up to the end of the conversation."""
    end = max(account.ended or account.requested for account in told)
    endpoint = told[0].endpoint
    found = []
    for flow in accounts.flows:
        other = accounts.of(flow)
        if other is None or flow in flows or other.kind == "other" or other.started > end:
            continue
        if other.endpoint == endpoint:
            found.append(flow)
    return found[-MOST_FLOWS:]


class _Case:
    """The findings of a conversation, and whether a part of the recording still shows them."""

    def __init__(self, clean: Path, chosen: tracing.Settings, flows: Sequence[str], shown: Shown) -> None:
        self._clean, self._chosen, self._flows, self._shown = clean, chosen, flows, shown
        self._events: dict[str, list[Event]] = {}
        self.audits = 0
        self.exhausted = False

    def search(self, others: list[str], accounts: Accounts) -> list[str]:
        """The flows that the findings need beside the conversation's own, in the order of the recording."""
        wanted = {*self._flows, *others}
        self._events = {flow: found for flow, found in events(self._clean) if flow in wanted}
        search = Search(self._shows)
        likely = [flow for flow in others if (account := accounts.of(flow)) is not None and account.method in _PREPARING]
        if not self._shows([*self._flows, *others]):
            raise Refused("what was found there needs more of the recording than the traffic of its endpoint: share all of it")
        beside = search.smallest(self._flows, others, likely)
        self.exhausted = search.exhausted
        return beside

    def _shows(self, flows: Sequence[str]) -> bool:
        self.audits += 1
        found: set[tuple[str, str]] = set()

        def retire(exchange: Exchange) -> None:
            if exchange.flow in self._flows:
                found.update((finding.rule, finding.party or "") for finding in exchange.findings)

        chosen = self._chosen
        inspector = Inspector(chosen.book(), expect=Expectations(chosen.expect), retire=retire, promised=chosen.promised)
        for event in _in_order([self._events[flow] for flow in flows if flow in self._events]):
            inspector.feed(event)
        inspector.finish()
        return found == self._shown


def _in_order(flows: Sequence[Sequence[Event]]) -> Iterator[Event]:
    """As `Recording.events`: by time, flows in the order of their start, never an event before its flow's earlier ones."""
    timed: list[tuple[float, int, int, Event]] = []
    for order, flow in enumerate(sorted(flows, key=lambda events: events[0].at if events else 0.0)):
        latest = 0.0
        for place, event in enumerate(flow):
            latest = max(latest, event.at)
            timed.append((latest, order, place, event))
    timed.sort(key=lambda entry: entry[:3])
    return (event for *_, event in timed)


def _write_replay(
    directory: Path, source: Path, clean: Path, flows: Sequence[str], told: Sequence[Account], name: str | None
) -> None:
    name = name or name_of(told[0].method, told[0].name, frozenset({("replay", "server")}))
    recording, kept = _copy(directory, source, clean, flows, name)
    said = [one_line(f"{one.method or one.kind} {one.name or ''} -> {one.outcome}", 110) for one in told]
    text = replay_test(name, recording.name, [line.replace("\\", "/").replace('"', "'") for line in said], __version__)
    _finish(directory, recording, kept, name, text)


def _copy(directory: Path, source: Path, clean: Path, flows: Sequence[str], name: str) -> tuple[Path, frozenset[str]]:
    """Write the recording of a test case; its path and its flows."""
    recording = directory / f"{name}.flow"
    if recording.exists() and recording.samefile(source):
        raise Refused(f"{recording} is the recording itself; --name gives the test case another name")
    kept = frozenset(flows)
    with replacing(recording) as file:
        copy(clean, file, None, kept.__contains__)
    return recording, kept


def _finish(directory: Path, recording: Path, kept: frozenset[str], name: str, text: str) -> None:
    test = directory / f"test_{name}.py"
    with replacing(test) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    print(f"{recording}: {len(kept)} flow{'' if len(kept) == 1 else 's'}")
    print(test)


def _write(
    directory: Path, source: Path, clean: Path, flows: Sequence[str], told: Sequence[Account], shown: Shown, name: str | None
) -> None:
    name = name or name_of(told[0].method, told[0].name, shown)
    recording, kept = _copy(directory, source, clean, flows, name)
    said = [one_line(f"{f.rule} ({f.party}): {f.message}", 110) for one in told for f in one.findings]
    lines = [line.replace("\\", "/").replace('"', "'") for line in said]  # they stand in a docstring
    text = test_file(name, recording.name, [one.flow for one in told], shown, list(dict.fromkeys(lines)), __version__)
    _finish(directory, recording, kept, name, text)
