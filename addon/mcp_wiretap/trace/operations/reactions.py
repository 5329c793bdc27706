"""What a client does after a fault that was put into its traffic (`mcp_fault`), judged by what comes next from the same client.

Bound by clientInfo and Authorization where the era is modern, by session id where it is legacy. A reaction has no time limit: the
next request that decides, or the end of the trace.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Fault, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import digest

MOST = 1_000  # faults of one trace
NOTHING_CAME = "the client ended, or nothing that decides came"
type Verdict = Literal["passed", "failed", "not applied", "undecided"]
_OWN = frozenset({"_meta", "inputResponses", "requestState"})
_BROKEN = frozenset({"cut", "end", "drop"})


@dataclass(slots=True)
class Reaction:
    """One fault and what came of it. `flow` is the exchange with the fault, `decided_by` the later one that decided."""

    fault: Fault
    flow: str
    endpoint: str
    who: tuple[object, ...]
    method: str
    name: str | None
    id: Any
    core: bytes
    whole: bytes
    revision: str | None
    session: str | None
    auth: str
    at: float
    verdict: Verdict = "undecided"
    words: str = ""
    decided_by: str | None = None
    listed: bool = False  # tools/list came since

    def __str__(self) -> str:
        about = one_line(f"{self.method} {self.name or ''}".strip(), 80)
        return f"{self.verdict:11}  {self.fault}  {about}: {self.words}"

    @property
    def open(self) -> bool:
        return self.fault.applied and self.decided_by is None and self.verdict == "undecided"


@dataclass(slots=True, frozen=True)
class Wrong:
    """The request of a client that reacts wrongly to a fault."""

    kind: str
    words: str
    flow: str  # of the exchange with the fault


WRONG_REACTION: ExchangeFact[Wrong] = ExchangeFact("wrong-reaction", "the request is a wrong reaction to a fault that was put in")


class Reactions(Tracker):
    name = "reactions"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.all: OrderedDict[str, Reaction] = OrderedDict()

    def faulted(self, exchange: Exchange, fault: Fault) -> None:
        """A fault was put into an exchange, or could not be."""
        known = self.all.get(exchange.flow)
        if known is not None:  # it was meant, and by now there was something to break
            known.fault = fault
            if fault.applied and known.verdict == "not applied":
                known.verdict, known.words = "undecided", NOTHING_CAME
            return
        request = exchange.request
        if len(self.all) >= MOST or request is None:
            self.memory.count_dropped("faults")
            return
        params = request.params
        self.all[exchange.flow] = Reaction(
            fault,
            exchange.flow,
            exchange.endpoint.url,
            _who(exchange),
            request.method or "",
            exchange.name,
            id_key(request.rpc.id),
            _core(request),
            digest(params),
            exchange.revision or exchange.claim.revision,
            exchange.request_fields.first("mcp-session-id"),
            exchange.auth,
            exchange.requested,
            "undecided" if fault.applied else "not applied",
            NOTHING_CAME if fault.applied else "it matched, and there was nothing to break",
        )

    def requested(self, exchange: Exchange) -> None:
        if not self.all or exchange.kind not in ("mcp", "oauth"):
            return
        for reaction in self.all.values():
            if reaction.open and reaction.flow != exchange.flow and self._same(reaction, exchange):
                self._decide(reaction, exchange)

    def finished(self) -> Iterable[Exchange] | None:
        for reaction in self.all.values():
            if reaction.open and _may_give_up(reaction.fault):
                reaction.verdict, reaction.words = "passed", "the client gave up, which it may"
        return None

    def _same(self, reaction: Reaction, exchange: Exchange) -> bool:
        """Whether an exchange is of the client that the fault was for."""
        if exchange.kind == "oauth":
            return reaction.fault.kind == "status" and reaction.fault.argument.partition(":")[0] in ("401", "403")
        return exchange.endpoint.url == reaction.endpoint and (
            _who(exchange) == reaction.who or exchange.method == "initialize" or exchange.method is None
        )

    def _decide(self, reaction: Reaction, exchange: Exchange) -> None:
        decided = _judge(reaction, exchange)
        if decided is None:
            return
        good, reaction.words = decided
        reaction.verdict, reaction.decided_by = ("passed" if good else "failed"), exchange.flow
        if not good:
            exchange.facts[WRONG_REACTION] = Wrong(_sort(reaction.fault), reaction.words, reaction.flow)


def _judge(reaction: Reaction, exchange: Exchange) -> tuple[bool, str] | None:
    """Whether a later exchange is a right reaction, and why; None where it decides nothing."""
    if exchange.kind == "oauth":
        return True, "it went for a token"
    request = exchange.request
    if request is None:
        return None
    again = request.method == reaction.method and _core(request) == reaction.core
    same_id = id_key(request.rpc.id) == reaction.id
    shown = one_line(f"{request.method} {exchange.name or ''}".strip(), 80)
    match _sort(reaction.fault):
        case "error:-32022":
            if request.method == "initialize":
                return False, "it fell back to initialize, although the refusal named versions of the modern era"
            if again and (exchange.claim.revision or "") == (reaction.revision or ""):
                return False, f"it asked {shown} again in the version that was refused"
            return (True, "it asked again in another version") if again else None
        case "error:-32020":
            reaction.listed |= request.method == "tools/list"
            if not again:
                return None
            if same_id:
                return False, f"it asked {shown} again with the id that was refused"
            return (
                (True, "it listed the tools and asked again")
                if reaction.listed
                else (False, f"it asked {shown} again without tools/list")
            )
        case "error:-32021":
            if again and digest(request.params) == reaction.whole:
                return False, f"it asked {shown} again and declared no more than before"
            return (True, "it declared what was missing") if again else None
        case "error:-32601":
            if reaction.method != "server/discover":
                return None
            if request.method == "initialize":
                return True, "it fell back to initialize"
            return (False, "it asked server/discover again") if again else None
        case "ask":
            return _retried(reaction, exchange, request, again=again, same_id=same_id)
        case "broken":
            if same_id and request.method == reaction.method:
                return False, f"it used the id of the broken {shown} again"
            return True, "it asked again with a new id" if again else "it went on with a new id"
        case "status:404":
            if request.method == "initialize":
                clean = exchange.request_fields.first("mcp-session-id") is None
                return (True, "it initialized anew") if clean else (False, "it initialized with the id of the dead session")
            if reaction.session is not None and exchange.request_fields.first("mcp-session-id") == reaction.session:
                return False, f"it went on with the dead session ({shown})"
            return None
        case "status:401" | "status:403":
            if again and exchange.auth == reaction.auth:
                return False, f"it asked {shown} again with the authorization that was refused"
            return (True, "it asked again with another token") if again else None
        case "status:429" | "status:503":
            if not again:
                return None
            wait = float(reaction.fault.argument.partition(":")[2] or 1)
            waited = exchange.started - reaction.at
            return (
                (True, "it waited as Retry-After says")
                if waited >= wait
                else (False, f"it asked again after {waited:.1f} s, Retry-After says {wait:g}")
            )
        case "changed":
            return (True, "it listed anew") if request.method == "tools/list" else None
        case "ttl":
            if request.method != reaction.method:
                return None
            fresh = exchange.started - reaction.at < float(reaction.fault.argument or 0) / 1000
            return (
                True,
                "it listed again while the list was fresh, which it may" if fresh else "it listed anew once the list was stale",
            )
        case "twice" | "foreign" | "garbage" | "big" | "type" | "json":
            return True, f"it goes on ({shown})"
    return None


def _retried(reaction: Reaction, exchange: Exchange, request: Message, *, again: bool, same_id: bool) -> tuple[bool, str] | None:
    params = request.params
    if not again or ("inputResponses" not in params and "requestState" not in params):
        return None
    if same_id:
        return False, "its retry has the id of the first round"
    if params.get("requestState") != reaction.fault.state:
        return False, "its retry does not bring back the requestState that it was given"
    answers = params.get("inputResponses")
    if not isinstance(answers, dict) or not answers:
        return False, "its retry answers nothing"
    return True, "it retried with a new id, the state and an answer"


def _sort(fault: Fault) -> str:
    """What a right reaction depends on: the kind, for errors and statuses with the number."""
    if fault.kind in _BROKEN:
        return "broken"
    return f"{fault.kind}:{fault.argument.partition(':')[0]}" if fault.kind in ("error", "status") else fault.kind


def _may_give_up(fault: Fault) -> bool:
    return fault.kind in (*_BROKEN, "delay") or _sort(fault) in (
        "error:-32022",
        "error:-32020",
        "error:-32021",
        "status:401",
        "status:403",
    )


def _core(request: Message) -> bytes:
    return digest({name: value for name, value in request.params.items() if name not in _OWN})


def _who(exchange: Exchange) -> tuple[object, ...]:
    session = exchange.request_fields.first("mcp-session-id")
    return ("session", session) if session is not None else (exchange.client_info, exchange.auth)
