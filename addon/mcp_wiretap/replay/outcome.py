"""What a replay against a live server came to: each operation the same, changed or failed; era; findings that are new or gone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_wiretap.replay.client import Client, Played, Stopped
from mcp_wiretap.replay.json_diff import Difference, differences, shown
from mcp_wiretap.replay.script import Script, Take
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.secret import concealed, knowing

type Outcome = Literal["same", "changed", "failed"]
_RANK: dict[Outcome, int] = {"same": 0, "changed": 1, "failed": 2}
_HARMLESS = frozenset({"GET", "DELETE"})


@dataclass(slots=True)
class Operation:
    """One operation of the recording at the live server."""

    flow: str  # of its first exchange in the recording
    request: str
    method: str | None
    name: str | None
    outcome: Outcome = "same"
    differences: list[Difference] = field(default_factory=list)
    error: str | None = None
    notes: list[str] = field(default_factory=list)

    def worsen(self, outcome: Outcome) -> None:
        if _RANK[outcome] > _RANK[self.outcome]:
            self.outcome = outcome


@dataclass(slots=True, frozen=True)
class FoundOnce:
    """A finding, however often it was found."""

    rule: str
    severity: str
    party: str
    message: str
    request: str


@dataclass(slots=True)
class Report:
    operations: list[Operation]
    era_was: str
    era_now: str
    server_was: str
    server_now: str
    new: list[FoundOnce]
    gone: list[FoundOnce]
    stopped: str | None = None  # why it was not played to its end
    left_out: dict[str, str] = field(default_factory=dict)  # credentials not sent, and the origin that they belong to

    @property
    def good(self) -> bool:
        """Nothing changed that matters: what is merely gone, and what clients are found to do, is the recording's."""
        worse = any(found.party == "server" and found.severity != "info" for found in self.new)
        same = all(operation.outcome == "same" for operation in self.operations)
        return same and not worse and self.stopped is None and not self.other_era

    @property
    def other_era(self) -> bool:
        return "unknown" not in (self.era_was, self.era_now) and self.era_was != self.era_now

    @property
    def told_left_out(self) -> str:
        """What was left out, in a sentence; "" where nothing was."""
        if not self.left_out:
            return ""
        homes = ", ".join(dict.fromkeys(self.left_out.values()))
        return f"not sent, as they go only to {homes}: {', '.join(self.left_out)}"

    def count(self, outcome: Outcome) -> int:
        return sum(operation.outcome == outcome for operation in self.operations)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "operations": [
                {
                    "flow": operation.flow,
                    "method": operation.method,
                    "name": operation.name,
                    "request": operation.request,
                    "outcome": operation.outcome,
                    "error": operation.error,
                    "notes": operation.notes,
                    "differences": [{"where": d.where, "was": d.was, "now": d.now} for d in operation.differences],
                }
                for operation in self.operations
            ],
            "era": {"recorded": self.era_was, "live": self.era_now},
            "server": {"recorded": self.server_was, "live": self.server_now},
            "findings": {"new": list(map(_finding_json, self.new)), "gone": list(map(_finding_json, self.gone))},
            "stopped": self.stopped,
            "left_out": list(self.left_out),
            "summary": {outcome: self.count(outcome) for outcome in _RANK},
        }


def report_of(script: Script, client: Client, stopped: Stopped | None = None) -> Report:
    """Compare what was played with the recording. Secrets are masked, those that either side has shown included."""
    with knowing(script.inspector.secrets, client.inspector.secrets):
        report = _report_of(script, client, stopped)
        for operation in report.operations:
            operation.request = concealed(operation.request)
            operation.name = concealed(operation.name) if operation.name is not None else None
            operation.error = concealed(operation.error) if operation.error is not None else None
            operation.notes = [concealed(note) for note in operation.notes]
        report.stopped = concealed(report.stopped) if report.stopped is not None else None
        return report


def _report_of(script: Script, client: Client, stopped: Stopped | None) -> Report:
    played = [client.played[take] for take in client.takes if take in client.played]
    operations = [_operation(group, client) for group in _groups(played)]
    was, now = _endpoint(script.inspector, client.takes), _endpoint(client.inspector, None)
    # Findings of half a trace would be its own.
    new, gone = _findings(script, client) if stopped is None else ([], [])
    if stopped is not None and stopped.era is not None:
        now = (stopped.era, now[1])
    told = [operation for operation in operations if operation is not None]
    return Report(
        told,
        was[0],
        now[0],
        was[1],
        now[1],
        new,
        gone,
        str(stopped) if stopped is not None else None,
        client.left_out,
    )


def _groups(played: Iterable[Played]) -> list[list[Played]]:
    """By operation, in the order of their first requests."""
    groups: dict[object, list[Played]] = {}
    for each in played:
        exchange = each.take.exchange
        conversation = exchange.conversation if exchange is not None else None
        together = (
            conversation is not None and each.take.is_call and conversation.method not in (None, "initialize", "server/discover")
        )
        groups.setdefault(conversation if together else each, []).append(each)
    return list(groups.values())


def _operation(group: list[Played], client: Client) -> Operation | None:
    first = group[0].take
    request = first.request
    exchange = first.exchange
    operation = Operation(
        first.flow, str(first), request.method if request is not None else None, exchange.name if exchange is not None else None
    )
    for each in group:
        _judge(operation, each, client, len(group) > 1)
    if not first.is_call and operation.outcome == "same":
        return None  # notifications, streams and goodbyes are worth a word only where they went wrong
    return operation


def _judge(operation: Operation, played: Played, client: Client, several: bool) -> None:
    was, now = client.expected.get(played.take), played.answer
    operation.notes += played.notes
    if played.notes:
        operation.worsen("changed")
    if played.skipped is not None and played.trouble is None:
        if played.take.is_call:
            operation.notes.append(f"not asked: {played.skipped}")
            operation.worsen("changed")
        return
    if played.trouble is not None and not (played.take.beats is not None and not played.take.is_call):
        operation.error = operation.error or str(played.trouble)
        operation.worsen("failed")
        return
    before = f"{played.take.first.method} " if several and played.take.first is not None and played.take.first.method else ""
    if was is None:
        _judge_bare(operation, played)
    elif now is None:
        hint = "; --header sends credentials" if played.status == 401 else ""
        operation.error = operation.error or f"no answer (HTTP {played.status}{hint})"
        operation.worsen("failed")
        return
    elif was.kind == "result" and now.kind == "error":
        operation.error = operation.error or f"error in place of a result: {shown(now.error)}"
        operation.worsen("failed")
    elif was.kind != now.kind:
        _note(operation, [Difference("/error", shown(was.error), None), Difference("/result", None, shown(now.result))])
    elif not _passing_poll(played.take, was):
        whole_was, whole_now = (was.result, now.result) if was.kind == "result" else (was.error, now.error)
        _note(operation, [Difference(before + d.where, d.was, d.now) for d in differences(whole_was, whole_now)])
    if was is not None and played.status != played.take.status:
        _note(operation, [Difference("HTTP status", str(played.take.status), str(played.status))])
    _judge_stream(operation, played)


def _judge_bare(operation: Operation, played: Played) -> None:
    """Without a JSON-RPC answer the status says what happened."""
    was, now = played.take.status, played.status
    if now == was or now is None or was is None:
        return
    if was < 300 <= now and played.take.seen.http_method not in _HARMLESS:
        operation.error = f"HTTP {now}, was {was}"
        operation.worsen("failed")
    elif was // 100 != now // 100:
        _note(operation, [Difference("HTTP status", str(was), str(now))])


def _judge_stream(operation: Operation, played: Played) -> None:
    """Which notifications came beside the answer; how many there were of each is a matter of time."""
    if played.take.beats is None:
        return
    was = {message.method for _, message in played.take.received if message.method is not None}
    now = {message.method for message in played.received if message.method is not None}
    own = played.take.is_call
    _note(operation, [Difference(f"{method}", "sent", None) for method in sorted(was - now)])
    if own:
        _note(operation, [Difference(f"{method}", None, "sent") for method in sorted(now - was)])


def _note(operation: Operation, found: Sequence[Difference]) -> None:
    operation.differences += found
    if found:
        operation.worsen("changed")


def _passing_poll(take: Take, was: jsonrpc.Message) -> bool:
    """A poll of a task that was still at work: how often one asks is a matter of time."""
    asked = take.first.method if take.first is not None else None
    return asked == "tasks/get" and isinstance(was.result, dict) and was.result.get("status") == "working"


def _endpoint(inspector: Inspector, takes: Sequence[Take] | None) -> tuple[str, str]:
    """Era and name of the server."""
    urls = {take.origin + take.path for take in takes} if takes is not None else None
    eras: set[str] = set()
    names: list[str] = []
    for endpoint in inspector.endpoints.values():
        if urls is None or endpoint.url in urls:
            if endpoint.era != "unknown":
                eras.add(endpoint.era)
            if isinstance(info := endpoint.server_info, dict):
                names.append(f"{info.get('name')} {info.get('version')}")
    era = "dual" if len(eras) > 1 else next(iter(eras), "unknown")
    played = {"modern" if take.modern else "legacy" for take in takes or () if take.is_call}
    if era == "dual" and len(played) == 1:
        era = played.pop()  # of a server of both eras only one is asked now
    return era, names[-1] if names else ""


def _findings(script: Script, client: Client) -> tuple[list[FoundOnce], list[FoundOnce]]:
    flows = {take.flow for take in client.played}
    recorded = _by_kind(exchange for exchange in script.inspector.exchanges.values() if exchange.flow in flows)
    live = _by_kind(client.inspector.exchanges.values())
    return [live[key] for key in live if key not in recorded], [recorded[key] for key in recorded if key not in live]


def _by_kind(exchanges: Iterable[Exchange]) -> dict[tuple[object, ...], FoundOnce]:
    found: dict[tuple[object, ...], FoundOnce] = {}
    for exchange in exchanges:
        for finding in exchange.findings:
            key = (finding.rule, finding.party, exchange.method, exchange.name)
            found.setdefault(key, _found(finding, exchange))
    return found


def _found(finding: Finding, exchange: Exchange) -> FoundOnce:
    request = " ".join(word for word in (exchange.method or exchange.http_method, exchange.name) if word)
    return FoundOnce(finding.rule, finding.severity or "info", finding.party or "server", finding.message, request)


def _finding_json(found: FoundOnce) -> dict[str, str]:
    return {
        "rule": found.rule,
        "severity": found.severity,
        "party": found.party,
        "message": found.message,
        "request": found.request,
    }
