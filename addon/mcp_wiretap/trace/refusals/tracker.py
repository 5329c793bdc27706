"""Follows operations that a server refuses in words of its own: initialize for its version, conforming modern requests in an old
way, and every request with the same internal error.

Written on the first exchange of each kind, with the count of those that followed. Spec: 2025-11-25
basic/lifecycle#version-negotiation, 2026-07-28 basic/transports/streamable-http.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.repeats import Repeat, Repeats
from mcp_wiretap.trace.mirrored import request_faults as faults
from mcp_wiretap.trace.model import Endpoint, Exchange, Message, Round
from mcp_wiretap.trace.refusals.words import Said, Topic, speaks_of, words_of
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line

NAME = "refusals"
# Answers that say nothing about the MCP message: who may call, how, and how often.
ELSEWHERE = frozenset({401, 403, 405, 406, 408, 411, 413, 415, 421, 429})
GATEWAY = frozenset({502, 503, 504})
TYPED = frozenset({rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION})
LEAST_FAILED, LEAST_METHODS = 3, 2  # from so many on a server is said to fail at everything
_MOST_METHODS = 50
_LISTS = ("supported", "supportedVersions", "supportedProtocolVersions", "supported_versions")
_MOST_VERSIONS = 20


@dataclass(slots=True)
class VersionRefused:
    """initialize was refused for its version."""

    said: Said
    listed: tuple[str, ...]  # the versions that the server names in data
    repeat: Repeat
    came_back: str = ""  # flow of a later initialize that succeeded


@dataclass(slots=True)
class OldWay:
    """A conforming request of a modern client was refused. `topic` is what the words speak of; None: there are no such words."""

    said: Said | None
    topic: Topic | None
    repeat: Repeat


@dataclass(slots=True)
class AlwaysFailed:
    """Every request to an endpoint failed with an internal error."""

    repeat: Repeat
    methods: dict[str, None] = field(default_factory=dict)
    taken_back: bool = False  # it did something else since


@dataclass(slots=True)
class StateRefused:
    """A requestState was refused by the server that gave it."""

    said: Said
    age: float  # seconds since it was given
    given: str  # flow of the answer that gave it
    repeat: Repeat


STATE_REFUSED: ExchangeFact[StateRefused] = ExchangeFact("state-refused", "the server refuses the requestState that it gave")
VERSION_REFUSED: ExchangeFact[VersionRefused] = ExchangeFact("version-refused", "initialize was refused for its version")
OLD_WAY: ExchangeFact[OldWay] = ExchangeFact("refused-in-an-old-way", "a conforming modern request was refused")
ALWAYS_FAILED: ExchangeFact[AlwaysFailed] = ExchangeFact("always-failed", "every request to this endpoint failed")
REFUSED_HERE: EndpointFact[VersionRefused] = EndpointFact("_version-refused", "the first initialize refused for its version")
SOMETHING_ELSE: EndpointFact[bool] = EndpointFact("_something-else", "the server can do something else than fail")


class Refusals(Tracker):
    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._versions: Repeats[str] = Repeats(memory.held, "refused for its version")
        self._old_ways: Repeats[tuple[str, Topic | None]] = Repeats(memory.held, "refused in an old way")
        self._states: Repeats[str] = Repeats(memory.held, "state refused")
        self._failed: Repeats[str] = Repeats(memory.held, "always failed")

    def said(self, message: Message) -> None:
        request = message.request
        if request is not None and message.party == "server" and message.rpc.kind == "result" and not _changed(request.exchange):
            self._succeeded(request.exchange.endpoint)

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        request = exchange.request
        if exchange.kind != "mcp" or request is None or exchange.status is None or exchange.http_method != "POST":
            return None
        if _changed(exchange):
            return None
        changed: list[Exchange] = []
        if exchange.claim.kind == "legacy" and request.method == "initialize":
            changed += self._initialize(exchange)
        elif exchange.claim.kind == "modern":
            changed += self._modern(exchange)
            if exchange.mrtr is not None:
                changed += self._state(exchange, exchange.mrtr)
        changed += self._internal(exchange)
        return [earlier for earlier in changed if earlier is not exchange]

    # initialize

    def _initialize(self, exchange: Exchange) -> Iterable[Exchange]:
        answer, status, key = exchange.answer, exchange.status or 0, exchange.endpoint.url
        if answer is not None and answer.rpc.kind == "result":
            known = exchange.endpoint.facts.get(REFUSED_HERE)
            if known is not None and not known.came_back:
                known.came_back = exchange.flow
                yield known.repeat.first
            return
        code = answer.error_code if answer is not None else None
        if (
            status in ELSEWHERE
            or status >= 500
            or code in TYPED
            or code == rev.METHOD_NOT_FOUND
            or (code is None and status < 400)
        ):
            return
        words, listed = words_of(exchange), versions_listed(answer)
        if words is None or (not listed and speaks_of(words.text, "version") is None):
            return
        repeat = self._versions.add(key, exchange)
        if repeat.first is exchange:
            told = VersionRefused(words, listed, repeat)
            exchange.facts[VERSION_REFUSED] = exchange.endpoint.facts[REFUSED_HERE] = told
        yield repeat.first

    # Requests with an envelope

    def _modern(self, exchange: Exchange) -> Iterable[Exchange]:
        answer, status, request = exchange.answer, exchange.status, exchange.request
        if request is None or status is None or (answer is not None and answer.rpc.kind == "result"):
            return
        refused = status in (400, 404) or (answer is not None and 200 <= status < 300)
        code = answer.error_code if answer is not None else None
        if not refused or code in TYPED or _has_faults(exchange):
            return
        if exchange.session is not None and exchange.session.live and exchange.session.confirmed:
            return  # a dual-era server may route a session of its own to its legacy side
        words = words_of(exchange)
        topic = speaks_of(words.text, "version", "session", "initialization") if words is not None else None
        if topic is not None and words is not None and _may_be_of_the_call(exchange, topic, words):
            return
        if topic is None and (answer is not None or status != 400 or exchange.answer_reading is None):
            return  # a JSON-RPC error says what it says; 404 without one is HTS007's
        repeat = self._old_ways.add((exchange.endpoint.url, topic), exchange)
        exchange.facts[OLD_WAY] = OldWay(words, topic, repeat)
        yield repeat.first

    def _state(self, exchange: Exchange, round_: Round) -> Iterable[Exchange]:
        """A server refuses the state that it gave: the same, to the same client, not used before."""
        item, answer, status = round_.continues, exchange.answer, exchange.status
        if item is None or round_.state != "same" or round_.link != "a" or round_.other_auth or round_.consumed or round_.shared:
            return
        code = answer.error_code if answer is not None else None
        if (answer is not None and answer.rpc.kind == "result") or not (status == 400 or code == rev.INVALID_PARAMS):
            return
        words = words_of(exchange)
        if code in TYPED or words is None or (speaks_of(words.text, "state") is None and round_.answered):
            return  # without such words the answers to what was asked may be meant
        repeat = self._states.add(exchange.endpoint.url, exchange)
        if repeat.first is exchange:
            exchange.facts[STATE_REFUSED] = StateRefused(words, exchange.started - item.at, item.flow, repeat)
        yield repeat.first

    # Everything

    def _internal(self, exchange: Exchange) -> Iterable[Exchange]:
        endpoint, status, answer = exchange.endpoint, exchange.status or 0, exchange.answer
        if SOMETHING_ELSE in endpoint.facts or status in ELSEWHERE or status in GATEWAY:
            return
        code = answer.error_code if answer is not None else None
        if not (status == 500 or (answer is not None and code == rev.INTERNAL_ERROR)):
            if status >= 300 or answer is not None:
                self._succeeded(endpoint)
            return
        repeat = self._failed.add(endpoint.url, exchange)
        first = repeat.first
        told = first.facts.get(ALWAYS_FAILED)
        if told is None:
            told = first.facts[ALWAYS_FAILED] = AlwaysFailed(repeat)
        if len(told.methods) < _MOST_METHODS:
            told.methods.setdefault(one_line(exchange.method or "", 60))
        yield first

    def _succeeded(self, endpoint: Endpoint) -> None:
        """The server can do something else than fail: what was said of it is taken back."""
        if SOMETHING_ELSE in endpoint.facts:
            return
        endpoint.facts[SOMETHING_ELSE] = True
        known = self._failed.forget(endpoint.url)
        if known is not None and not known.first.released:
            if (told := known.first.facts.get(ALWAYS_FAILED)) is not None:
                told.taken_back = True
            self.memory.rejudge(known.first)
            self._failed.let_go(known)


def _changed(exchange: Exchange) -> bool:
    """Whether the proxy changed the request, or answered itself: that tells nothing of the server."""
    return exchange.change is not None and (exchange.change.request_by is not None or exchange.change.answered_here)


def _has_faults(exchange: Exchange) -> bool:
    return bool(
        faults.header_faults(exchange)
        or faults.envelope_faults(exchange)
        or faults.message_faults(exchange)
        or faults.method_fault(exchange)
        or faults.odd_headers(exchange)
    )


def _may_be_of_the_call(exchange: Exchange, topic: Topic, words: Said) -> bool:
    """Whether the words may speak of what was asked for, and not of the protocol: a tool may have sessions of its own."""
    request, answer = exchange.request, exchange.answer
    if request is None or answer is None or request.method in faults.PLAIN:
        return False
    if topic == "version":
        return exchange.claim.revision is None or exchange.claim.revision not in words.text
    if "mcp-session" in words.text.lower():
        return False
    plain = {name: value for name, value in request.params.items() if name != "_meta"}
    named = speaks_of(dumps(plain, most=10_000), "session", "initialization") is not None
    return named or (exchange.status or 0) < 300 or answer.error_code == rev.INVALID_PARAMS


def versions_listed(answer: Message | None) -> tuple[str, ...]:
    """The versions that an error lists in its data as supported."""
    error = answer.rpc.error if answer is not None else None
    data: Any = error.get("data") if isinstance(error, dict) else None
    if not isinstance(data, dict):
        return ()
    for name in _LISTS:
        listed = data.get(name)
        if isinstance(listed, list) and listed and all(isinstance(v, str) for v in listed[:_MOST_VERSIONS]):
            return tuple(one_line(v, 40) for v in listed[:_MOST_VERSIONS])
    return ()
