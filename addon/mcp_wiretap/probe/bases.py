"""The calls of a recording that probes begin with: calls that worked, and that may be made again.

Lists, server/discover, reads, prompts and completions change nothing by the protocol. A tool is called only where it is annotated
as read-only, or where the user named it.
"""

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.replay.credentials import is_credential, is_home
from mcp_wiretap.replay.http import Place
from mcp_wiretap.replay.script import Script, Take
from mcp_wiretap.rule.probes import Call, Need
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.mirrored.check import NAME_SOURCE
from mcp_wiretap.trace.mirrored.params import headers_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import decode, encode

SAFE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/get",
        "completion/complete",
    }
)
HANDLING = frozenset({"HTS", "HDR", "RPC", "ERA", "MRT", "SEC", "LEG", "OAU"})
FAULTY = 40  # calls that are asked again, as their answers broke a rule
LISTS = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_NOT_SENT = frozenset(  # of a recorded request: what the connection of now has of its own
    {
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "content-length",
        "transfer-encoding",
        "content-encoding",
        "accept-encoding",
        "mcp-session-id",
        "te",
        "upgrade",
        "expect",
        "origin",
    }
)


@dataclass(slots=True)
class Base:
    """A recorded call that probes begin with. `first`: of a retry, the round before it; `answers` what was answered then."""

    take: Take
    method: str
    name: str | None
    serves: frozenset[Need]
    first: Take | None = None
    answers: dict[str, Any] = field(default_factory=dict)

    @property
    def flow(self) -> str:
        return self.take.flow


@dataclass(slots=True)
class Bases:
    """What a recording has to begin with, for one era."""

    era: str
    found: list[Base] = field(default_factory=list)
    faulty: list[Base] = field(default_factory=list)  # calls whose recorded answer broke a rule: they are asked again
    left_out: dict[str, str] = field(default_factory=dict)  # tools that are not called, and why
    initialize: Take | None = None  # legacy: how the recorded client opened its session
    has_session: bool = False
    lists_tools: bool = False
    has_resources: bool = False

    def best(self, needs: Collection[Need]) -> Base | None:
        """The base for a probe that needs this."""
        own = {need for need in needs if need not in ("tools", "resources", "session")}
        if ("tools" in needs and not self.lists_tools) or ("resources" in needs and not self.has_resources):
            return None
        if "session" in needs and not self.has_session:
            return None
        plain = [base for base in self.found if base.first is None and "asked" not in base.serves]
        if "retry" in own:
            return next((base for base in self.found if base.first is not None), None)
        if "asked" in own:
            return next((base for base in self.found if "asked" in base.serves), None)
        return next((base for base in plain if own <= base.serves), None)


def choose(script: Script, *, era: str, endpoint: str | None = None, tools: Collection[str] = ()) -> Bases:
    """The bases of an era; of one endpoint where it is named. `tools`: those that may be called besides the read-only ones."""
    found = Bases(era)
    takes = [take for take in script.mcp if take.modern is (era == "modern") and _of(take, script, endpoint)]
    for take in takes:
        method = take.request.method if take.request is not None else None
        if method == "initialize" and found.initialize is None and take.result is not None and take.result.kind == "result":
            found.initialize = take
        found.has_session |= take.session is not None and bool(take.session.id)
        endpoint_of = script.endpoint(take)
        found.lists_tools |= endpoint_of is not None and bool(endpoint_of.tools)
        found.has_resources |= method in ("resources/read", "resources/list")
    ordered = sorted(takes, key=lambda take: take.request is not None and take.request.method == "tools/call")
    for take in ordered:
        again = _faulty(script, take, found, tools)
        if again is not None and len(found.faulty) < FAULTY and all(again.take.key != other.take.key for other in found.faulty):
            found.faulty.append(again)
        base = _base(script, take, found, tools)
        if base is not None and len(found.found) < 200:
            found.found.append(base)
    return found


def _of(take: Take, script: Script, endpoint: str | None) -> bool:
    if endpoint is None:
        return True
    found = script.endpoint(take)
    return found is not None and (found.url == endpoint or found.url.partition("://")[2] == endpoint)


def _base(script: Script, take: Take, bases: Bases, tools: Collection[str]) -> Base | None:
    request, answer = take.request, take.result
    if answer is None and take.exchange is not None and take.exchange.late_answer is not None:
        answer = take.exchange.late_answer.rpc
    if request is None or request.method is None or answer is None or answer.kind != "result":
        return None
    if not isinstance(request.body, dict) or not isinstance(answer.result, dict) or answer.result.get("isError") is True:
        return None
    params = request.params if isinstance(request.params, dict) else {}
    name = params.get(NAME_SOURCE.get(request.method, ""), None)
    if request.method not in SAFE and not _may_call(script, take, request.method, name, bases, tools):
        return None
    asks = answer.result.get("resultType") == "input_required"
    retries = take.state is not None
    serves = set(_serves(script, take, request.method, name))
    if retries:
        return _retry(script, take, request.method, name, params) if not asks else None
    if asks:
        serves.add("asked")
    return Base(take, request.method, name if isinstance(name, str) else None, frozenset(serves))


def _faulty(script: Script, take: Take, bases: Bases, tools: Collection[str]) -> Base | None:
    """A call whose answer the rules held against the server."""
    request, exchange = take.request, take.exchange
    if (
        request is None
        or request.method is None
        or exchange is None
        or not isinstance(request.body, dict)
        or take.state is not None
    ):
        return None
    if not any(is_of_handling(finding) for finding in exchange.findings):
        return None
    params = request.params if isinstance(request.params, dict) else {}
    name = params.get(NAME_SOURCE.get(request.method, ""), None)
    if request.method not in SAFE and not _may_call(script, take, request.method, name, bases, tools):
        return None
    return Base(take, request.method, name if isinstance(name, str) else None, frozenset())


def is_of_handling(finding: Finding) -> bool:
    """Whether it is about how a server treats requests (not about what it offers: audits tell that)."""
    return finding.party == "server" and finding.severity in ("error", "warning") and finding.rule[:3] in HANDLING


def _serves(script: Script, take: Take, method: str, name: Any) -> Iterator[Need]:
    if isinstance(name, str):
        yield "named"
    if method == "tools/call":
        yield "call"
        if _mirrored(script, take):
            yield "param"
    if method in LISTS:
        yield "listed"
    if take.seen.fields.has("authorization"):
        yield "authorized"


def _may_call(script: Script, take: Take, method: str, name: Any, bases: Bases, tools: Collection[str]) -> bool:
    if method != "tools/call" or not isinstance(name, str):
        return False
    if name in tools:
        return True
    endpoint = script.endpoint(take)
    definition = endpoint.tools.get(name) if endpoint is not None else None
    raw = getattr(definition, "raw", None)
    annotations = raw.get("annotations") if isinstance(raw, dict) else None
    if isinstance(annotations, dict) and annotations.get("readOnlyHint") is True:
        return True
    bases.left_out.setdefault(name, "not annotated as read-only; --tool calls it")
    return False


def _retry(script: Script, take: Take, method: str, name: Any, params: dict[str, Any]) -> Base | None:
    """A retry with the round before it, where both are in the recording."""
    conversation = take.exchange.conversation if take.exchange is not None else None
    responses = params.get("inputResponses")
    if conversation is None or not isinstance(responses, dict) or take.flow not in conversation.rounds:
        return None
    place = conversation.rounds.index(take.flow)
    if place != 1:  # of a longer operation each round would have to be gone through
        return None
    first = next((one for one in script.mcp if one.flow == conversation.rounds[0]), None)
    if first is None:
        return None
    return Base(take, method, name if isinstance(name, str) else None, frozenset({"retry"}), first, dict(responses))


def _mirrored(script: Script, take: Take) -> dict[str, str]:
    """The Mcp-Param fields that the call has, by what its tool declares, with the values as they read."""
    request = take.request
    params = request.params if request is not None and isinstance(request.params, dict) else {}
    endpoint = script.endpoint(take)
    definition = endpoint.tools.get(str(params.get("name"))) if endpoint is not None else None
    if definition is None or not hasattr(definition, "mirrors"):
        return {}
    return {field: decode(value).text or "" for field, value in headers_of(definition, params.get("arguments"))}


def call_of(
    script: Script, take: Take, place: Place, given: Collection[tuple[str, str]], left_out: Callable[[str], None], *, http: bool
) -> Call:
    """The recorded request as it is sent to a server now. `given`: headers of the user's, in the place of recorded ones.
    `left_out` is told each credential that stays at home."""
    request = take.request
    assert request is not None
    names = {name.lower() for name, _ in given}
    home, headers = is_home(take, place), list[tuple[str, str]]()
    if http and take.on_stdio:
        headers = _headers_of(script, take)
    elif http:
        for name, value in take.seen.fields.raw:
            shown, text = name.decode("latin-1"), value.decode("latin-1")
            if shown.lower() in _NOT_SENT or shown.lower() in names:
                continue
            if not home and is_credential(take, shown, text, script.inspector.secrets):
                left_out(shown)
                continue
            headers.append((shown, text))
    headers += given
    return Call("POST", headers, copy.deepcopy(request.body), mirrored=_mirrored(script, take) if http else {})


def _headers_of(script: Script, take: Take) -> list[tuple[str, str]]:
    """The headers that HTTP wants of a request that was recorded on stdio."""
    request = take.request
    assert request is not None
    headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
    if not take.modern:
        return headers
    params = request.params if isinstance(request.params, dict) else {}
    version = request.meta.get(rev.PROTOCOL_VERSION)
    headers += [("MCP-Protocol-Version", str(version)), ("Mcp-Method", request.method or "")]
    if isinstance(name := params.get(NAME_SOURCE.get(request.method or "", "")), str):
        headers.append(("Mcp-Name", encode(name)))
    return headers + [(field, encode(value)) for field, value in _mirrored(script, take).items()]
