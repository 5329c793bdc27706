"""Goes through the probes: each base first as it was recorded, then with one thing changed, and a verdict on each answer."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mcp_wiretap import __version__
from mcp_wiretap.probe.bases import Base, Bases, call_of, choose, is_of_handling
from mcp_wiretap.probe.sending import Enough, Sender, Sent
from mcp_wiretap.replay.http import Place, Unreachable
from mcp_wiretap.replay.script import Script
from mcp_wiretap.rule.probes import Answer, Call, Probe
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.judge import Judge

type Verdict = Literal["pass", "fail", "warn", "note", "skipped"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "warn", "note", "skipped")
UNCHANGED = frozenset({"H00", "L00"})
_WHY_NOT = {
    "named": "no safe call with a name is in the recording",
    "call": "no tool may be called: none of the recorded ones is annotated as read-only, and none was named with --tool",
    "tools": "the recording does not show that the server has tools",
    "resources": "the recording does not show that the server has resources",
    "listed": "no list is in the recording",
    "param": "no call with a mirrored argument may be made; --tool NAME allows one",
    "authorized": "no call with Authorization is in the recording",
    "session": "the recorded server gives no session ids",
    "asked": "no call that asks for input may be made; --tool NAME allows one",
    "retry": "no operation of two rounds may be repeated; --tool NAME allows one",
}


@dataclass(slots=True)
class Result:
    """What one probe came to."""

    probe: Probe
    verdict: Verdict
    why: str = ""
    base: Base | None = None
    sent: Sent | None = None
    findings: list[Finding] = field(default_factory=list)  # about the server, by the rules

    @property
    def answer(self) -> Answer | None:
        return self.sent.answer if self.sent is not None else None


@dataclass(slots=True)
class Tried:
    """A base as it was sent unchanged."""

    base: Base
    works: str = ""  # "": it does; else why not


@dataclass(slots=True)
class Report:
    target: str
    era: str
    results: list[Result] = field(default_factory=list)
    bases: list[Tried] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    dual: bool = False
    stopped: str | None = None
    credentials: list[str] = field(default_factory=list)  # that were not sent, as they belong elsewhere
    not_called: dict[str, str] = field(default_factory=dict)

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict == verdict for result in self.results)

    @property
    def failed(self) -> bool:
        return self.count("fail") > 0


@dataclass(slots=True)
class Plan:
    """What is to be probed: chosen before anything is sent, so that it can be shown and asked about."""

    script: Script
    bases: Bases
    probes: list[Probe]
    unchanged: Probe | None  # what stands for a call that is sent as it was recorded
    headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        """The tools that would be called."""
        wanted = [*(self.bases.best(probe.needs) for probe in self.probes), *self.bases.faulty]
        return sorted({base.name for base in wanted if base is not None and base.method == "tools/call" and base.name})


def plan(
    script: Script,
    probes: Sequence[Probe],
    *,
    era: str,
    endpoint: str | None = None,
    tools: Collection[str] = (),
    select: Collection[str] = (),
    headers: Sequence[tuple[str, str]] = (),
    http: bool = True,
) -> Plan:
    """Choose bases and probes. `select`: ids or families (the letters of an id); the unchanged calls always belong to it."""
    bases = choose(script, era=era, endpoint=endpoint, tools=tools)
    unchanged = next((one for one in probes if one.era == era and one.id in UNCHANGED), None)
    wanted = [
        one
        for one in probes
        if one.era == era and (http or one.http) and (not select or one.id in select or one.id.rstrip("0123456789") in select)
    ]
    wanted.sort(key=lambda one: (one.last, one.id not in UNCHANGED, one.id))
    return Plan(script, bases, [one for one in wanted if one.id not in UNCHANGED], unchanged, list(headers))


class Prober:
    """Probes one server."""

    def __init__(self, what: Plan, sender: Sender, target: str) -> None:
        self._plan, self._sender = what, sender
        self.report = Report(target, what.bases.era, not_called=what.bases.left_out)
        self._works: dict[str, str] = {}  # flow of a base -> "" or why it does not
        self._session: str | None = None
        self._revision: str | None = None

    async def run(self, tell: Callable[[Result], None] = lambda _: None) -> Report:
        """Go through all probes. Unreachable where no server is there; where it is gone later, the rest is skipped."""
        try:
            self.report.dual = await self._is_dual()
            for base in self._plan.bases.faulty:
                await self._again(base)
            for probe in self._plan.probes:
                result = await self._one(probe)
                self.report.results.append(result)
                tell(result)
        except Enough as why:
            self.report.stopped = str(why)
            done = {result.probe.id for result in self.report.results}
            self.report.results += [Result(probe, "skipped", str(why)) for probe in self._plan.probes if probe.id not in done]
        finally:
            await self._sender.close()
        self._sender.inspector.finish()
        self.report.sent = self._sender.sent
        for result in self.report.results:
            result.findings = self._findings(result.sent)
            if result.probe.id in UNCHANGED:
                result.verdict, result.why = _by_rules(result)
        return self.report

    async def _again(self, base: Base) -> None:
        """Send a call whose recorded answer broke a rule as it was: the rules say whether it still does."""
        call = await self._ready(base)
        if not isinstance(call, str) and self._plan.unchanged is not None:
            self.report.results.append(Result(self._plan.unchanged, "pass", "", base, await self._sender.send(call)))

    async def _is_dual(self) -> bool:
        """Whether a modern server also speaks older revisions."""
        if self._plan.bases.era != "modern" or not any(probe.dual for probe in self._plan.probes) or not self._plan.bases.found:
            return False
        info = {"name": "mcp-wiretap", "version": __version__}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
        call = self._call(self._plan.bases.found[0])
        headers += [(name, value) for name, value in call.headers if name.lower() in ("authorization", "cookie")]
        body = {"jsonrpc": "2.0", "id": "probe-dual", "method": "initialize", "params": params}
        sent = await self._sender.send(Call("POST", headers, body))
        return sent.answer.kind == "result"

    async def _one(self, probe: Probe) -> Result:
        base = self._plan.bases.best(probe.needs)
        if base is None:
            missing = next((need for need in probe.needs if self._plan.bases.best({need}) is None), None)
            return Result(probe, "skipped", _WHY_NOT.get(missing or "", "no call that worked is in the recording"))
        why = await self._check(base)
        if why:
            return Result(probe, "skipped", f"the call unchanged does not work here: {why}", base)
        call = await self._ready(base)
        if isinstance(call, str):
            return Result(probe, "skipped", call, base)
        probe.change(call)
        if call.after_end:
            await self._end_session(call)
        try:
            sent = await self._sender.send(call)
            if call.twice:
                sent = await self._sender.send(call)
        except Unreachable as error:
            return Result(probe, "skipped", str(error), base)
        return Result(probe, *self._judge(probe, sent.answer), base, sent)

    def _judge(self, probe: Probe, answer: Answer) -> tuple[Verdict, str]:
        fits = any(right.fits(answer) for right in probe.right)
        came = str(answer) + (f": {answer.message}" if answer.message else "")
        wanted = " or ".join(dict.fromkeys(right.words(on_stdio=not self._sender.http) for right in probe.right))
        if probe.open:
            return "note", came
        if fits:
            return "pass", came
        if probe.dual and self.report.dual:
            return "note", f"{came}; the server also speaks older revisions, so it may (right for a modern one alone: {wanted})"
        return {"must": "fail", "should": "warn"}.get(probe.level or "must", "note"), f"{came}; right is {wanted}"  # type: ignore[return-value]

    async def _check(self, base: Base) -> str:
        """Send a base unchanged, once; why it does not work, or ""."""
        if base.flow in self._works:
            return self._works[base.flow]
        call = await self._ready(base)
        if isinstance(call, str):
            why = call
        else:
            sent = await self._sender.send(call)
            right = {"asked"} if "asked" in base.serves else {"result"}
            why = (
                ""
                if sent.answer.kind in right
                else str(sent.answer) + (f": {sent.answer.message}" if sent.answer.message else "")
            )
        self._works[base.flow] = why
        self.report.bases.append(Tried(base, why))
        return why

    async def _ready(self, base: Base) -> Call | str:
        """The call of a base with the session and the state of now; why it cannot be made, as a text."""
        if self._plan.bases.era == "legacy":
            problem = await self._open_session()
            if problem:
                return problem
        call = self._call(base)
        if self._plan.bases.era == "legacy" and self._sender.http:
            if self._session is not None:
                call.put("Mcp-Session-Id", self._session)
            if self._revision is not None:
                call.put("MCP-Protocol-Version", self._revision)
        if base.first is None:
            return call
        first = await self._sender.send(self._call(Base(base.first, base.method, base.name, frozenset())))
        result = first.message.result if first.message is not None else None
        questions = result.get("inputRequests") if isinstance(result, dict) else None
        if first.answer.kind != "asked" or not isinstance(result, dict) or not isinstance(questions, dict):
            return f"the server does not ask here ({first.answer})"
        if not set(questions) <= set(base.answers):
            return "the server asks what was not asked in the recording"
        call.params["inputResponses"] = {key: base.answers[key] for key in questions}
        call.params.pop("requestState", None)
        if "requestState" in result:
            call.params["requestState"] = result["requestState"]
        return call

    def _call(self, base: Base) -> Call:
        call = call_of(
            self._plan.script, base.take, self._sender.place, self._plan.headers, self._leave_out, http=self._sender.http
        )
        call.body["id"] = f"probe-{len(self._sender.sent) + 1}"
        return call

    def _leave_out(self, name: str) -> None:
        if name not in self.report.credentials:
            self.report.credentials.append(name)

    async def _open_session(self) -> str:
        """Initialize as the recorded client did, once; why that failed, or ""."""
        if self._revision is not None:
            return ""
        take = self._plan.bases.initialize
        if take is None:
            return "the recording has no initialize that was answered"
        sent = await self._sender.send(self._call(Base(take, "initialize", None, frozenset())), line=self._line)
        result = sent.message.result if sent.message is not None else None
        if sent.answer.kind != "result" or not isinstance(result, dict):
            return f"initialize is refused: {sent.answer}"
        self._session, self._revision = sent.fields.first("mcp-session-id"), str(result.get("protocolVersion"))
        told = Call(
            "POST",
            self._call(Base(take, "initialize", None, frozenset())).headers,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        )
        if self._sender.http:
            told.put("MCP-Protocol-Version", self._revision)
            if self._session is not None:
                told.put("Mcp-Session-Id", self._session)
        await self._sender.send(told, line=self._line)
        return ""

    @property
    def _line(self) -> str:
        return "" if self._sender.http else "probe"

    async def _end_session(self, call: Call) -> None:
        ended = call.copy()
        ended.http_method, ended.body, ended.raw = "DELETE", None, b""
        await self._sender.send(ended)

    def _findings(self, sent: Sent | None) -> list[Finding]:
        exchange = self._sender.inspector.exchanges.get(sent.flow) if sent is not None else None
        return [finding for finding in exchange.findings if is_of_handling(finding)] if exchange is not None else []


def _by_rules(result: Result) -> tuple[Verdict, str]:
    """The verdict on a call that was sent as it was recorded."""
    worst = next((f for f in result.findings if f.severity == "error"), next(iter(result.findings), None))
    name = f"{result.base.method} {result.base.name or ''}".strip() if result.base is not None else ""
    if worst is None:
        return "pass", f"{name} is answered as it must be by now"
    return "fail" if worst.severity == "error" else "warn", f"{name}: {worst.message} [{worst.rule}]"


def eras_of(script: Script) -> list[str]:
    """The eras in which a recording has answered calls, the modern one first."""
    found = {"modern" if take.modern else "legacy" for take in script.mcp if take.request is not None and take.result is not None}
    return [era for era in ("modern", "legacy") if era in found]


def prober(what: Plan, place: Place, judge: Judge, *, target: str, budget: int, command: Sequence[str] | None = None) -> Prober:
    return Prober(what, Sender(place, judge, budget=budget, command=command), target)
