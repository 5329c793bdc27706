"""How clients and servers found their era: probes, refusals, corrective retries, fallbacks (ERA003, ERA006, ERA020-ERA022).

A negotiation is what one client does at one endpoint until it knows how to talk to it. HTTP does not name clients: here a client
is an endpoint with its Authorization and its clientInfo, and the connection is a hint (SDKs open one a request, and two copies of
a program look alike). An Authorization that comes after a 401 continues what the request without it began (ERA019).
Spec: 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions,
basic/transports/streamable-http#backward-compatibility.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from mcp_wiretap.trace.era import claim
from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev

PATIENCE = 60.0  # seconds: a fallback that comes later, on another connection, may be another run of the program (ERA006)
STEPS = 40  # of one endpoint's story; a server with many clients tells the same story again and again
CONNECTIONS = 8  # of one client that are remembered as its own
VERSIONS = 20  # that one client tried; none tries more

type Key = tuple[str, str, tuple[str, str] | None]  # endpoint, Authorization, clientInfo
type Role = Literal["probe", "opening", "retry", "fallback", "http+sse"]
type Verdict = Literal["pending", "modern", "legacy", "http+sse", "refused", "unauthorized", "failed", "no answer", "unrecorded"]


@dataclass(slots=True)
class Step:
    """One step of the story of an endpoint (`endpoint.facts[STORY]`), for people."""

    flow: str
    at: float
    client: str  # name of the client, "" where it gave none
    role: Role
    what: str  # server/discover with a 2026-07-28 envelope
    verdict: Verdict = "pending"
    result: str = ""  # HTTP 400, -32600
    note: str = ""  # fallback, allowed: no recognised modern error


@dataclass(slots=True)
class Refusal:
    """An answer that did not give a client what its opening request asked for."""

    flow: str
    method: str | None
    version: str | None  # that the request asked for
    at: float  # when the response had ended
    status: int | None
    code: int | None
    recognised: bool  # as a modern server's error (ERA005): falling back is wrong then
    supported: tuple[str, ...] | None  # data.supported of -32022

    @property
    def words(self) -> str:
        """HTTP 400, -32600."""
        if self.status is None:
            return "no answer"
        return f"HTTP {self.status}" + (f", {self.code}" if self.code is not None else "")


@dataclass(slots=True)
class Listed:
    """The versions that a server said it supports, and where: supportedVersions of discover or data.supported of -32022."""

    versions: tuple[str, ...]
    flow: str
    where: str  # evidence place in that flow


@dataclass(slots=True)
class Repeat:
    """A client went through probe and fallback again, though nothing had failed in between (ERA021)."""

    count: int
    since: float  # seconds after the fallback before
    earlier: str  # flow of that fallback


@dataclass(slots=True)
class Follow:
    """What a client did after a refused probe."""

    role: Role
    flow: str
    method: str | None
    after: float  # seconds after the refusal


@dataclass(slots=True)
class Part:
    """The part of one exchange in a negotiation: what rules read (`exchange.facts[NEGOTIATION]`)."""

    role: Role | None = None
    first: bool = False  # nothing that this client asked for before was seen
    version: str | None = None  # that it asks for
    after: Refusal | None = None  # the refused attempt that this one follows
    premature: bool = False  # it falls back although a recognised modern error told it not to (ERA006, ERA020)
    not_offered: Refusal | None = None  # it asks for a version that this -32022 did not offer (ERA007)
    repeat: Repeat | None = None
    refusal: Refusal | None = None  # how this attempt ended, where it did not succeed
    follow: Follow | None = None  # of a refused attempt: what came next
    unlisted: Listed | None = None  # the freshest list of versions, where it omits the version of this request
    client: Client | None = None


@dataclass(slots=True, eq=False)
class Client:
    """One client at one endpoint."""

    key: Key
    state: Literal["open", "modern", "legacy"] = "open"
    connections: list[str] = field(default_factory=list)  # of its attempts
    reuses: bool = False  # one of them carried more than one attempt: another connection may be another program then
    last: Exchange | None = None  # newest attempt, while the negotiation is open
    part: Part | None = None  # the part of that attempt
    step: Step | None = None
    copies: bool = False  # two attempts side by side: more than one program looks like this client
    tried: set[str] = field(default_factory=set)  # versions of modern requests
    tried_modern: bool = False
    refused_modern: Refusal | None = None  # the newest refusal of a modern attempt
    modern_ok: bool = False  # it has had a modern result
    legacy_ok: bool = False  # its initialize has succeeded
    refused_version: Refusal | None = None  # the newest -32022, until the next request
    fallbacks: int = 0  # complete sequences of probe and fallback
    fallback_at: float = 0.0
    fallback_flow: str = ""
    fallback_on: set[str] = field(default_factory=set)  # the connections of its attempts until then
    fallback_failed: bool = False  # the era it settled on failed it since


NEGOTIATION: ExchangeFact[Part] = ExchangeFact("negotiation", "the part of this exchange in a negotiation")
STORY: EndpointFact[list[Step]] = EndpointFact("negotiation", "the steps in which clients found the era of this endpoint")
UNTOLD: EndpointFact[int] = EndpointFact("negotiation-untold", "how many steps of that are not kept")


class Negotiations(Tracker):
    name = "negotiation"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._clients: Recent[Key, Client] = Recent(lambda: self.limits.state)
        self._connections: Recent[tuple[str, str], Client] = Recent(lambda: self.limits.state)  # by endpoint and connection
        self._newest: Recent[tuple[str, str], Client] = Recent(lambda: self.limits.state)  # by endpoint and Authorization
        self._walled: Recent[tuple[str, tuple[str, str] | None], Client] = Recent(lambda: self.limits.state)  # got 401 or 403
        self._listed: Recent[tuple[str, str], Listed] = Recent(lambda: self.limits.state)  # by endpoint and Authorization
        self._refused: Recent[str, Exchange] = Recent(lambda: self.limits.endpoints)  # refused initialize, kept for ERA014

    def client(self, exchange: Exchange) -> Client | None:
        """The client that sent this request, where it is known."""
        return self._clients.get(_key(exchange))

    # Requests

    def requested(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind != "mcp":
            return None
        request, claim = exchange.request, exchange.claim
        if request is None:
            if exchange.http_method == "GET" and not exchange.request_fields.has("mcp-session-id"):
                return self._look_for_stream(exchange)
            return None
        if claim.modern or claim.kind == "legacy-envelope":
            return self._ask_modern(exchange, request)
        if request.method == "initialize" and claim.kind == "legacy":
            return self._initialize(exchange)
        return None

    def _ask_modern(self, exchange: Exchange, request: Message) -> Iterable[Exchange] | None:
        client, version = self._identify(exchange), exchange.claim.revision
        client.tried_modern = True
        if version is not None and version not in client.tried and len(client.tried) < VERSIONS:
            client.tried.add(version)
        if client.state == "modern" and client.refused_version is None:
            return None
        part = Part(version=version, client=client)
        refused = client.refused_version
        if refused is not None and exchange.started >= refused.at:
            client.refused_version = None
            exchange.facts[NEGOTIATION] = part
            if refused.supported and version is not None and version not in refused.supported:
                part.not_offered = refused
            if client.state == "modern":
                again = request.method == refused.method and version not in (None, refused.version)
                return self._link(refused.flow, refused.at, exchange) if again else None
        if client.state == "legacy":  # it knew the server as legacy, and asks again
            client.state, client.last, client.part = "open", None, None
        if client.state == "modern" or (client.last is not None and not client.last.over):
            return None  # requests in parallel: the first one stands for all
        part.role = "probe" if request.method == "server/discover" else "opening"
        return self._attempt(client, exchange, part, f"{request.method} with a {version or 'malformed'} envelope")

    def _initialize(self, exchange: Exchange) -> Iterable[Exchange] | None:
        client, wanted = self._identify(exchange), exchange.claim.revision
        if client.state != "open":
            client.state, client.last, client.part = "open", None, None
        part = Part(role="opening", version=wanted, client=client)
        return self._attempt(client, exchange, part, f"initialize, asking for {wanted or 'no version'}")

    def _look_for_stream(self, exchange: Exchange) -> Iterable[Exchange] | None:
        """A GET without session right after a refused POST looks for the 2024-11-05 transport."""
        url = exchange.endpoint.url
        client = self._connections.get((url, exchange.connection)) or self._newest.get((url, exchange.auth))
        if client is None or client.state != "open" or client.part is None or client.part.role == "http+sse":
            return None
        refusal = client.part.refusal
        if refusal is None or refusal.status in (401, 403) or exchange.started - refusal.at > PATIENCE:
            return None
        part = Part(role="http+sse", client=client)
        return self._attempt(client, exchange, part, "GET, looking for an event stream of 2024-11-05")

    def _attempt(self, client: Client, exchange: Exchange, part: Part, what: str) -> Iterable[Exchange] | None:
        """The next step of an open negotiation: what does it follow, and may it?"""
        changed: Iterable[Exchange] | None = None
        before, earlier = client.last, client.part
        if before is not None and earlier is not None:
            refusal = earlier.refusal
            if refusal is not None and _follows(client, before, refusal, exchange):
                changed = self._follow(client, before, earlier, refusal, exchange, part)
            elif before.stream is not None and before.stream.http_sse and exchange.session is before.session:
                part.role, part.after = "fallback", earlier.after  # the handshake over the stream that was found
                changed = self._link(before.flow, before.started, exchange)
            elif exchange.http_method == "POST" and before.http_method == "POST":
                beside = refusal is None or exchange.started < refusal.at
                client.copies = client.copies or beside or exchange.method == before.method
        part.first = not client.connections
        if exchange.connection in client.connections:
            client.reuses = True
        else:
            client.connections.append(exchange.connection)
            del client.connections[:-CONNECTIONS]
        client.last, client.part = exchange, part
        self._newest.put((exchange.endpoint.url, exchange.auth), client)
        exchange.facts[NEGOTIATION] = part
        client.step = self._tell(exchange, part, what)
        return changed

    def _follow(
        self, client: Client, before: Exchange, earlier: Part, refusal: Refusal, exchange: Exchange, part: Part
    ) -> Iterable[Exchange] | None:
        asked_modern, asks_modern = _is_modern(before), _is_modern(exchange)
        after = exchange.started - refusal.at
        part.after = refusal
        if exchange.http_method == "POST":
            part.role = "retry" if asks_modern == asked_modern else "fallback"
        earlier.follow = Follow(part.role or "opening", exchange.flow, exchange.method or exchange.http_method, after)
        if asked_modern and not asks_modern:
            only = exchange.connection == before.connection or not (client.legacy_ok or client.copies)
            settled = client.modern_ok or (client.legacy_ok and part.role == "http+sse")  # a GET then opens a listening stream
            if refusal.recognised and not settled and only and after <= PATIENCE:
                part.premature = not _only_legacy_left(refusal, client.tried)
            one = not client.reuses or bool({before.connection, exchange.connection} & client.fallback_on)
            if client.fallbacks and not client.fallback_failed and one:
                since = exchange.started - client.fallback_at
                part.repeat = Repeat(client.fallbacks + 1, since, client.fallback_flow)
        return self._link(refusal.flow, refusal.at, exchange)

    def _link(self, flow: str, since: float, exchange: Exchange) -> Iterable[Exchange] | None:
        earlier = self.memory.exchanges.get(flow)
        if earlier is None:
            return None
        confidence: Literal["exact", "likely"] = "exact" if exchange.connection == earlier.connection else "likely"
        held = max(exchange.started - since, 0.0) * 1000
        link = self.memory.conversations.link(earlier, exchange, "negotiation", confidence, client_ms=held)
        return [earlier] if link is not None else None

    # Answers

    def said(self, message: Message) -> None:
        request = message.request
        if request is None or message.party != "server" or request.answer is not message:
            return
        exchange, code = request.exchange, message.error_code
        if exchange.released:
            return
        if code == rev.UNSUPPORTED_VERSION or (request.method == "server/discover" and message.rpc.kind == "result"):
            self._list(exchange, message)
        claim = exchange.claim
        if claim.kind in ("modern", "modern-unknown", "legacy-envelope") and claim.revision is not None:
            listed = self._listed.get((exchange.endpoint.url, exchange.auth))
            if listed is not None and claim.revision not in listed.versions:
                exchange.facts.setdefault(NEGOTIATION, Part()).unlisted = listed
            if code == rev.UNSUPPORTED_VERSION:
                self._identify(exchange).refused_version = _refusal(exchange, message, message.at)
        if request.method == "initialize" and claim.kind == "legacy":
            self._initialized(exchange, message)
        part: Part | None = exchange.facts.get(NEGOTIATION)
        if part is not None and part.role is not None and part.client is not None and part.client.last is exchange:
            if message.rpc.kind == "error":
                self._refuse(part.client, exchange, part, _refusal(exchange, message, message.at))
            else:
                self._succeed(part.client, exchange, part, message)

    def _succeed(self, client: Client, exchange: Exchange, part: Part, message: Message) -> None:
        result = message.result
        client.last = client.part = None
        if _is_modern(exchange):
            listed = result.get("supportedVersions")
            shaped = isinstance(result.get("resultType"), str) or isinstance(listed, list)
            client.state, client.modern_ok = "modern", client.modern_ok or shaped
            words = "offers " + ", ".join(str(v) for v in listed[:5]) if isinstance(listed, list) else "served"
            self._end_step(client, exchange, "modern" if shaped else "legacy", words)
            return
        client.state, client.legacy_ok = "legacy", True
        if part.role == "fallback":
            client.fallbacks += 1
            client.fallback_at, client.fallback_flow, client.fallback_failed = message.at, exchange.flow, False
            client.fallback_on = set(client.connections)
        over = " over HTTP+SSE" if exchange.session is not None and exchange.session.transport == "http+sse" else ""
        self._end_step(client, exchange, "legacy", f"agreed on {result.get('protocolVersion', 'no version')}{over}")

    def _refuse(self, client: Client, exchange: Exchange, part: Part, refusal: Refusal) -> None:
        part.refusal = refusal
        verdict: Verdict = "refused"
        if refusal.status is None:
            verdict = "no answer"
        elif refusal.status in (401, 403):
            verdict = "unauthorized"
            self._walled.put((exchange.endpoint.url, exchange.client_info), client)
        elif refusal.status == 429 or refusal.status >= 500:
            verdict = "failed"
        if _is_modern(exchange) and verdict != "unauthorized":
            client.refused_modern = refusal
        told: Verdict = "refused" if verdict == "unauthorized" and not _asks_for_token(exchange) else verdict
        self._end_step(client, exchange, told, refusal.words)

    def resized(self) -> None:
        for forgotten in self._refused.shrink():
            self.memory.held.free(forgotten, self.name)
        super().resized()

    def _initialized(self, exchange: Exchange, message: Message) -> None:
        """A refused initialize is kept: whether that is a fault (ERA014) hangs on whether any is ever accepted."""
        endpoint, held = exchange.endpoint, self.memory.held
        if message.rpc.kind == "error":
            if not endpoint.initialize_accepted and endpoint.url not in self._refused:
                held.keep(exchange, self.name)
                for forgotten in self._refused.put(endpoint.url, exchange):
                    held.free(forgotten, self.name)
            return
        earlier = self._refused.pop(endpoint.url)
        if earlier is not None:
            self.memory.rejudge(earlier)
            held.free(earlier, self.name)

    def _list(self, exchange: Exchange, message: Message) -> None:
        if message.rpc.kind == "result":
            versions, where = message.result.get("supportedVersions"), message.place("result", "supportedVersions")
        else:
            versions = _data(message).get("supported")
            where = message.place("error", "data", "supported")
        known = _versions(versions)
        if known:
            self._listed.put((exchange.endpoint.url, exchange.auth), Listed(known, exchange.flow, where))

    def event(self, item: StreamItem) -> None:
        exchange = item.exchange
        if item.event.index == 0 and exchange.stream is not None and exchange.stream.http_sse:
            part: Part | None = exchange.facts.get(NEGOTIATION)
            if part is not None and part.client is not None:
                self._end_step(part.client, exchange, "http+sse", "an endpoint event: HTTP+SSE")

    def ended(self, exchange: Exchange) -> None:
        if exchange.session is not None and (exchange.status is None or exchange.status >= 400):
            known = self._clients.get(_key(exchange))
            if known is not None:
                known.fallback_failed = True
        part: Part | None = exchange.facts.get(NEGOTIATION)
        if part is None or part.role is None or part.client is None or part.client.last is not exchange:
            return
        ended = exchange.ended if exchange.ended is not None else exchange.requested
        if part.refusal is not None:
            part.refusal.at = max(part.refusal.at, ended)
        elif exchange.stream is not None and exchange.stream.http_sse:
            pass  # the initialize that it carries decides
        elif exchange.outcome == "none" or (exchange.outcome == "accepted" and not _is_modern(exchange)):
            # The answer was not recorded, or may come on another stream.
            if exchange.outcome == "none":
                self._end_step(part.client, exchange, "unrecorded", "the answer was not recorded")
                part.client.last = part.client.part = None
        else:
            self._refuse(part.client, exchange, part, _refusal(exchange, None, ended))

    def finished(self) -> Iterable[Exchange] | None:
        """Refused attempts that nothing followed."""
        return [
            client.last
            for client in list(self._clients.values())
            if client.last is not None and client.part is not None and client.part.refusal is not None
        ]

    # Clients and the story

    def _identify(self, exchange: Exchange) -> Client:
        """The client that sent this request; a new one where none fits."""
        key = _key(exchange)
        url, _, info = key
        client = self._clients.get(key)
        if client is None:
            client = self._walled.pop((url, info)) or self._connections.get((url, exchange.connection))
            if client is not None and client.key[2] is not None and info is not None and client.key[2] != info:
                client = None  # a gateway's connection carries many clients
            if client is None:
                client = Client(key)
            else:
                self._clients.pop(client.key)
                client.key = (url, key[1], info if info is not None else client.key[2])
            self._clients.put(key, client)
        if exchange.connection:
            self._connections.put((url, exchange.connection), client)
        return client

    def _tell(self, exchange: Exchange, part: Part, what: str) -> Step | None:
        story: list[Step] = exchange.endpoint.facts.setdefault(STORY, [])
        if len(story) >= STEPS:
            exchange.endpoint.facts[UNTOLD] = exchange.endpoint.facts.get(UNTOLD, 0) + 1
            return None
        name = exchange.client_info[0] if exchange.client_info is not None else ""
        step = Step(exchange.flow, exchange.started, name, part.role or "opening", what[:200])  # a method is its client's choice
        refusal = part.after
        if refusal is not None:
            if refusal.status in (401, 403) or part.role not in ("fallback", "http+sse"):
                step.note = f"after {refusal.words}"
            elif part.premature:
                step.note = f"{refusal.words} is a modern server's error, no reason to fall back"
            elif refusal.recognised:
                step.note = "allowed: no modern version is left to try"
            else:
                step.note = f"allowed: {refusal.words} is no recognised modern error"
        story.append(step)
        return step

    @staticmethod
    def _end_step(client: Client, exchange: Exchange, verdict: Verdict, result: str) -> None:
        step = client.step
        if step is not None and step.flow == exchange.flow:
            step.verdict, step.result = verdict, result


def _key(exchange: Exchange) -> Key:
    return exchange.endpoint.url, exchange.auth, exchange.client_info


def _is_modern(exchange: Exchange) -> bool:
    return exchange.claim.modern or exchange.claim.kind == "legacy-envelope"


def _data(message: Message) -> dict[str, object]:
    data = message.rpc.error.get("data") if isinstance(message.rpc.error, dict) else None
    return data if isinstance(data, dict) else {}


_OAUTH_ERRORS = frozenset({"invalid_token", "insufficient_scope", "unauthorized", "access_denied"})


def _asks_for_token(exchange: Exchange) -> bool:
    """Whether a 401 or 403 is about authorization: a server may refuse a Host or an Origin with 403 as well."""
    if exchange.status == 401 or (exchange.response_fields is not None and exchange.response_fields.has("www-authenticate")):
        return True
    return exchange.body_words.partition(":")[0] in _OAUTH_ERRORS


def _refusal(exchange: Exchange, answer: Message | None, at: float) -> Refusal:
    supported = _data(answer).get("supported") if answer is not None else None
    return Refusal(
        exchange.flow,
        exchange.method,
        exchange.claim.revision,
        at,
        exchange.status,
        answer.error_code if answer is not None else None,
        answer is not None and claim.is_recognised_modern_error(answer, exchange.status),
        _versions(supported) if isinstance(supported, list) else None,
    )


_MOST_VERSIONS, _LONGEST_VERSION = 200, 1_000  # of one list, and characters of one: they are kept for long


def _versions(listed: object) -> tuple[str, ...]:
    found = listed[:_MOST_VERSIONS] if isinstance(listed, list) else ()
    return tuple(version[:_LONGEST_VERSION] for version in found if isinstance(version, str))


def _follows(client: Client, before: Exchange, refusal: Refusal, exchange: Exchange) -> bool:
    """Whether an attempt is the next step after a refused one, and not another run of the program, or another copy of it."""
    if exchange.started < refusal.at:
        return False
    same = exchange.connection == before.connection
    if exchange.http_method == "POST" and _is_modern(exchange) == _is_modern(before):
        return _is_retry(before, refusal, exchange) and (same or not client.copies)
    if _is_modern(exchange) or refusal.status in (401, 403):
        return False
    if refusal.method != "server/discover" and _is_modern(before):
        # Not every error says what the server is: that of a call with HTTP 200 does not, nor does a call that was cancelled.
        failed = same if refusal.status is None else refusal.status >= 400
        if not failed:
            return False
    return same or (not client.copies and exchange.started - refusal.at <= PATIENCE)


def _is_retry(before: Exchange, refusal: Refusal, exchange: Exchange) -> bool:
    """The same request again: with a token after a wall, or corrected after an error that says how."""
    if exchange.method != before.method or exchange.name != before.name:
        return False
    if refusal.status in (401, 403):
        # A person may take minutes to log in. An ordinary call that is repeated with a token is no negotiation.
        return exchange.auth != before.auth and refusal.method in ("server/discover", "initialize")
    return refusal.recognised and exchange.started - refusal.at <= PATIENCE


def _only_legacy_left(refusal: Refusal, tried: set[str]) -> bool:
    """-32022 whose list holds no modern version that the client has not tried: falling back is right then (ERA006)."""
    if refusal.code != rev.UNSUPPORTED_VERSION or refusal.supported is None:
        return False
    return not any(rev.version_kind(v) in ("modern", "future") and v not in tried for v in refusal.supported)
