"""One trace read from recordings and judged: what `audit` and `annotate` have in common.

Runs in this process or in one of its own: what goes in and what comes out can be pickled.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from mcp_wiretap.command import Refused
from mcp_wiretap.command.file_spool import FileSpool
from mcp_wiretap.expectation import Expectations, ExpectedEra
from mcp_wiretap.proxy.garbage import collecting_less
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.report.collect import Collector, Input, Trace
from mcp_wiretap.rule import RuleBook, RuleFile, Silence, find_rules
from mcp_wiretap.trace.events import Event, ExchangeEnded
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.promised import Promised
from mcp_wiretap.wire.secret import safe

MANY = 1_000  # flows for which it pays to look through all objects once before (some 50 ms)

type Advance = Callable[[float], None]  # told the share of the work that was done since the last call


@dataclass(slots=True, frozen=True)
class Settings:
    """By what a trace is judged."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    expect: tuple[tuple[str, ExpectedEra], ...] = ()
    silences: tuple[Silence, ...] = ()
    files: tuple[RuleFile, ...] = ()  # rules in plain Python files, beside the installed packs
    promised: Promised = field(default_factory=Promised)  # a baseline and a contract that servers are held to

    def book(self) -> RuleBook:
        return RuleBook.of(find_rules(self.files), select=self.select, ignore=self.ignore, silences=self.silences)


@dataclass(slots=True, frozen=True)
class Job:
    """One trace: the recordings it is made of (several only with --join) and the directory for its lines."""

    paths: tuple[str, ...]
    spool: str
    settings: Settings


def audit(job: Job, advance: Advance | None = None) -> Trace:
    """Read the recordings of a job, judge them, leave the lines in its spool. OSError where one cannot be opened."""
    spool = FileSpool(Path(job.spool))
    try:
        return _audit(job, spool, advance)
    finally:
        spool.close()


def _audit(job: Job, spool: FileSpool, advance: Advance | None) -> Trace:
    recordings = [Recording(Path(path)) for path in job.paths]
    names = [safe(path) for path in job.paths]  # a file name need not be UTF-8; a report is
    places: dict[str, tuple[str, int | None]] = {}
    for name, recording in zip(names, recordings, strict=True):
        for index, flow in enumerate(recording.flow_ids):
            places.setdefault(flow, (name, index))
    collector = Collector(spool, lambda flow: places.get(flow, (names[0], None)))
    with collecting_less(freeze=sum(recording.flows for recording in recordings) >= MANY):
        inspector, book = follow(recordings, job.settings, collector.retire, collector.fault, advance)
    inputs = [Input(name, recording.flows, recording.damage) for name, recording in zip(names, recordings, strict=True)]
    return collector.close(inspector, book, inputs)


def follow(
    recordings: list[Recording],
    settings: Settings,
    retire: Callable[[Exchange], None],
    fault: Callable[[str, str, Exception], None] | None = None,
    advance: Advance | None = None,
    wrap: Callable[[Judge], Judge] | None = None,
) -> tuple[Inspector, RuleBook]:
    """Feed a trace from its recordings to its end. `fault(flow, where, error)`: what we could not follow; the rest goes on.
    `wrap` puts a watcher in front of the rules."""
    book = settings.book()
    judge = wrap(book) if wrap is not None else book
    inspector = Inspector(judge, expect=Expectations(settings.expect), retire=retire, promised=settings.promised)
    step = _steps(sum(recording.flows for recording in recordings), advance)
    for event in _in_time_order(recordings):
        try:
            inspector.feed(event)
        except Exception as error:
            if fault is not None:
                fault(event.flow, "trace", error)
        if isinstance(event, ExchangeEnded):
            step()
    inspector.finish()
    return inspector, book


def check_readable(path: str) -> None:
    """Refused where a file cannot be read at all: that is said before any work is done."""
    try:
        if Path(path).is_dir():
            raise Refused(f"{path} is a directory; name the recordings in it")
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None


def _in_time_order(recordings: list[Recording]) -> Iterator[Event]:
    if len(recordings) == 1:
        return recordings[0].events()
    return heapq.merge(*(recording.events() for recording in recordings), key=attrgetter("at"))


def _steps(total: int, advance: Advance | None, every: int = 50) -> Callable[[], None]:
    """A function to call for each flow; it reports now and then."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if advance is not None and done % every == 0:
            advance(every / max(total, 1))

    return step
