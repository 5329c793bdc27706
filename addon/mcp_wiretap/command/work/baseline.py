"""`mcp-wiretap baseline RUN.flow`: what servers offer, kept in a file for review."""

import argparse
from dataclasses import replace
from pathlib import Path

from mcp_wiretap import project
from mcp_wiretap.command import Refused, settings
from mcp_wiretap.command.output import replacing, say
from mcp_wiretap.command.tracing import check_readable, follow
from mcp_wiretap.compare import baseline
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.report.words import plural
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.lists.promises import DRIFT, Drift
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.promised import Offer, Promised
from mcp_wiretap.wire.secret import concealed, knowing, visible

_WORDS = {
    "gone": "gone",
    "breaking": "BREAKING",
    "compatible": "compatible",
    "text": "TEXT",
    "wording": "wording",
    "new": "new",
}


def run(arguments: argparse.Namespace) -> int:
    check_readable(arguments.file)
    target = Path(arguments.output)
    if target.exists() and target.samefile(arguments.file):
        raise Refused(f"--output {target} is the recording itself; it would be overwritten")
    accepted = _accepted(target)
    chosen = replace(settings.read(arguments), promised=Promised(accepted))
    recording = Recording(Path(arguments.file))
    drifts: list[Drift] = []
    made: list[_Drifting] = []

    def wrap(book: Judge) -> Judge:
        made.append(_Drifting(book, drifts=drifts))
        return made[0]

    inspector, _ = follow([recording], chosen, lambda _: None, wrap=wrap)
    offers = made[0].offers
    if not offers:
        raise Refused(
            f"{arguments.file}: no server says what it offers there (no initialize, server/discover or list was answered)"
        )
    new = sorted(set(offers) - set(accepted))
    with knowing(inspector.secrets):
        for key in new:
            print(visible(concealed(f"{key}: {_counts(offers[key])}")))
        for drift in drifts:
            print(visible(concealed(f"{_WORDS[drift.sort]:10}  {drift.what}: {drift.words}")))
    if recording.damage:
        say(f"{arguments.file}: {recording.damage}; read up to there")
        return 2
    if accepted and (drifts or new) and not arguments.accept:
        print(f"{plural(len(drifts) + len(new), 'difference')} from {target}, which was left as it is; --accept takes them over")
        return 1
    with replacing(target) as file:
        file.write(baseline.write(accepted | {key: _merged(accepted.get(key), offer) for key, offer in offers.items()}).encode())
    print(f"{target}: {plural(len(accepted.keys() | offers.keys()), 'server')}")
    return 0


class _Drifting(baseline.Offered):
    """Gathers what is offered, and how it differs from what was accepted."""

    __slots__ = ("drifts",)

    def __init__(self, judge: Judge, *, drifts: list[Drift]) -> None:
        super().__init__(judge)
        self.drifts = drifts

    def take(self, exchange: Exchange) -> None:
        for drift in exchange.facts.get(DRIFT) or ():
            if drift not in self.drifts:
                self.drifts.append(drift)


def _accepted(target: Path) -> dict[str, Offer]:
    if not target.exists():
        return {}
    try:
        return project.load_baseline(target)
    except project.ProjectError as error:
        raise Refused(f"{error}; --output names another file") from None


def _merged(old: Offer | None, new: Offer) -> Offer:
    """What was recorded now, and what was accepted of what this recording does not show."""
    if old is None:
        return new
    return Offer(
        new.server or old.server,
        new.revisions or old.revisions,
        new.capabilities or old.capabilities,
        new.instructions if new.server or new.capabilities else old.instructions,
        old.lists | new.lists,
    )


def _counts(offer: Offer) -> str:
    return ", ".join(plural(len(items), "item") + f" in {member}" for member, items in sorted(offer.lists.items())) or "no lists"
