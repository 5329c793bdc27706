"""What an exchange was, small and complete: who said what when, what it was part of, what was wrong. All exports but the flows
themselves are made of these. They can be pickled, so that a long recording waits in a file.
"""

import os
import pickle
from dataclasses import dataclass, field, replace
from typing import IO, Any

from mcp_wiretap.report import change
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.summary import outcome
from mcp_wiretap.wire import jsonrpc

_TRACE_CONTEXT = ("traceparent", "tracestate", "baggage")


@dataclass(slots=True, frozen=True)
class Said:
    """One JSON-RPC message."""

    at: float
    party: str
    where: str
    kind: str
    method: str | None
    id: str | None  # as JSON
    text: str  # as JSON
    error_code: int | None = None
    version: str | None = None  # `sent`, `passed on`: what the proxy made of a message that it changed


@dataclass(slots=True)
class Account:
    """One exchange."""

    flow: str
    kind: str
    endpoint: str
    era: str
    revision: str | None
    http_method: str
    url: str
    status: int | None
    started: float
    requested: float
    responded: float | None
    ended: float | None
    ended_by: str | None
    failure: str | None
    method: str | None
    name: str | None
    outcome: str
    error_code: int | None
    tool_error: bool
    id: str | None  # of the request, as JSON
    uri: str | None
    session: str | None
    client: tuple[str, str] | None
    server: tuple[str | None, str | None] | None
    context: dict[str, str]  # traceparent and what goes with it
    conversation: str | None = None
    round: int | None = None
    findings: list[Finding] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    events: list[float] = field(default_factory=list)  # when each SSE event came
    timed: bool = True
    dropped: int = 0
    error_message: str | None = None  # of the other side, secrets masked
    changed: dict[str, Any] | None = None  # `flows[].changed` of the audit contract


def messages(exchange: Exchange, *, texts: bool = True) -> list[Said]:
    """The messages of an exchange that has not been released yet, in order of time."""
    found = [_said(message, texts) for message in exchange.messages]
    if exchange.at_server is not None:
        found += [replace(_said(message, texts), version="sent") for message in exchange.at_server.sent]
    if exchange.at_client is not None:
        found += [replace(_said(message, texts), version="passed on") for message in exchange.at_client.received]
    found.sort(key=lambda said: said.at)
    return found


def _said(message: Message, texts: bool) -> Said:
    rpc = message.rpc
    return Said(
        message.at,
        message.party,
        message.where,
        rpc.kind,
        rpc.method,
        jsonrpc.dumps(rpc.id) if rpc.has_id else None,
        jsonrpc.dumps(rpc.body) if texts else "",
        message.error_code if rpc.kind == "error" else None,
    )


@dataclass(slots=True)
class Details:
    """What is gone when an exchange is released."""

    said: list[Said]
    tool_error: bool
    uri: str | None
    context: dict[str, str]


def details(exchange: Exchange, *, texts: bool = True) -> Details:
    """`texts`: also what the messages say, which takes time."""
    request, answer = exchange.request, exchange.answer
    meta = request.meta if request is not None else {}
    uri = request.params.get("uri") if request is not None else None
    return Details(
        messages(exchange, texts=texts),
        answer is not None and answer.rpc.kind == "result" and answer.result.get("isError") is True,
        uri if isinstance(uri, str) else None,
        {name: value for name in _TRACE_CONTEXT if isinstance(value := meta.get(name), str)},
    )


def account(exchange: Exchange, known: Details | None = None) -> Account:
    """`known`: its details, where they were taken before it was released."""
    if exchange.kind == "other":
        outcome.settle(exchange)
    if known is None:
        known = details(exchange)
    info = exchange.endpoint.server_info
    stream, conversation = exchange.stream, exchange.conversation
    return Account(
        exchange.flow,
        exchange.kind,
        exchange.endpoint.url,
        exchange.shown_era,
        exchange.revision,
        exchange.http_method,
        exchange.url,
        exchange.status,
        exchange.started,
        exchange.requested,
        exchange.responded,
        exchange.ended,
        exchange.ended_by,
        exchange.failure,
        exchange.method,
        exchange.name,
        exchange.outcome,
        exchange.error_code,
        known.tool_error,
        None if exchange.jsonrpc_id is None else jsonrpc.dumps(exchange.jsonrpc_id),
        known.uri,
        exchange.request_fields.first("mcp-session-id"),
        exchange.client_info,
        None if info is None else (_text(info, "name"), _text(info, "version")),
        known.context,
        conversation.id if conversation is not None else None,
        exchange.round,
        list(exchange.findings),
        known.said,
        list(stream.times) if stream is not None else [],
        stream is None or stream.timed,
        exchange.dropped,
        exchange.error_message,
        change.record(exchange.change),
    )


def _text(info: dict[str, Any], name: str) -> str | None:
    value = info.get(name)
    return value if isinstance(value, str) else None


class Accounts:
    """Keeps the accounts of a trace in a file. Give it to an Inspector as its judge, and `retire` as its callback."""

    def __init__(self, judge: Judge, file: IO[bytes]) -> None:
        self._judge = judge
        self._file = file
        self._details: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self.conversations: dict[str, list[str]] = {}  # id -> flows

    def requested(self, exchange: Exchange) -> bool:
        return self._judge.requested(exchange)

    def responded(self, exchange: Exchange) -> bool:
        return self._judge.responded(exchange)

    def said(self, message: Message) -> bool:
        return self._judge.said(message)

    def event(self, item: StreamItem) -> bool:
        return self._judge.event(item)

    def ended(self, exchange: Exchange) -> bool:
        added = self._judge.ended(exchange)
        self._take(exchange)
        return added

    def again(self, exchange: Exchange) -> bool:
        added = self._judge.again(exchange)
        if exchange.over:
            self._take(exchange)
        return added

    def _take(self, exchange: Exchange) -> None:
        self._details[exchange.flow] = self._write(details(exchange))

    def retire(self, exchange: Exchange) -> None:
        place = self._details.pop(exchange.flow, None)
        known: Details | None = None if place is None or not exchange.released else self._read(place)
        self._places[exchange.flow] = self._write(account(exchange, known))
        if exchange.conversation is not None:
            self.conversations.setdefault(exchange.conversation.id, list(exchange.conversation.rounds))

    def __contains__(self, flow: str) -> bool:
        return flow in self._places

    def of(self, flow: str) -> Account | None:
        place = self._places.get(flow)
        if place is None:
            return None
        found: Account = self._read(place)
        return found

    @property
    def flows(self) -> list[str]:
        return list(self._places)

    def _write(self, value: object) -> int:
        place = self._file.seek(0, os.SEEK_END)
        pickle.dump(value, self._file)
        return place

    def _read(self, place: int) -> Any:
        self._file.seek(place)
        return pickle.load(self._file)
