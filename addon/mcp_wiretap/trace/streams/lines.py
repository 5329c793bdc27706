"""What is on the pipes of a stdio server and is no message, and what its client does there that only stdio has.

Spec: 2026-07-28 basic/transports/stdio, basic/patterns/cancellation.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import ExchangeFact
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Exchange, Message, StreamItem
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import digest

MOST = 1_000  # open requests of one process, and processes
_LONGEST = 400  # characters of a line that are shown
_MOST_LINES, _MOST_TEXT = 5_000, 500_000  # lines and characters of a message that is written over several lines
_AGAIN = 10.0  # seconds after which the same request, put again, shows that the first was given up
_RACE = 1.0  # seconds in which an answer may cross its cancellation


@dataclass(slots=True, frozen=True)
class GivenUp:
    """The same request, put before and neither answered nor cancelled."""

    flow: str
    id: Any
    seconds: float


@dataclass(slots=True)
class Stray:
    """Lines of one pipe that are no messages. Written on the exchange of the first of them."""

    text: str  # the first of them, as it may be shown
    where: str
    kind: str  # text, empty, json (no JSON-RPC), utf8, bom
    count: int = 1
    only_empty: bool = False
    spread: int = 0  # lines over which one message is written


@dataclass(slots=True, frozen=True)
class AnsweredBefore:
    """`Message.found` of an answer whose request has one already."""

    flow: str  # of that request


@dataclass(slots=True)
class _Spread:
    """Lines that may make one message together."""

    lines: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> int:
        """Over how many lines a message is written that ends with this one; 0 where none does."""
        if not self.lines and not text.lstrip().startswith(("{", "[")):
            return 0
        self.lines.append(text)
        self.size += len(text)
        if len(self.lines) > _MOST_LINES or self.size > _MOST_TEXT:
            self.lines, self.size = [], 0
        elif text.rstrip() in ("}", "]") and text[:1] in ("}", "]"):
            whole, count = "\n".join(self.lines), len(self.lines)
            self.lines, self.size = [], 0
            try:
                value = json.loads(whole)
            except (ValueError, RecursionError):
                return 0
            return count if isinstance(value, dict | list) else 0
        return 0


@dataclass(slots=True)
class _Pipes:
    """What is remembered of one process."""

    strays: dict[str, tuple[Stray, Exchange]] = field(default_factory=dict)  # of "client" and "server"
    spread: dict[str, _Spread] = field(default_factory=dict)
    asked: OrderedDict[tuple[str, bytes], Message] = field(default_factory=OrderedDict)  # method, digest of params -> request
    answered: OrderedDict[object, str] = field(default_factory=OrderedDict)  # id -> flow of the request
    open: OrderedDict[object, Message] = field(default_factory=OrderedDict)  # by id


STRAY: ExchangeFact[Stray] = ExchangeFact("stray", "a pipe of this stdio server carries what is no message")
GIVEN_UP: ExchangeFact[GivenUp] = ExchangeFact("given-up", "the request was put before, and neither answered nor cancelled")
LINE: ExchangeFact[str] = ExchangeFact("line", "what the client wrote to a stdio server and is no JSON")
JUDGE_WHOLE: ExchangeFact[bool] = ExchangeFact("judge-whole", "what was said of it is to be said anew at its end")
CANCELLED_AT: ExchangeFact[float] = ExchangeFact("cancelled-at", "when the client cancelled the request, on stdio")


class StdioLines(Tracker):
    """Writes `STRAY`, `GIVEN_UP` and `CANCELLED_AT` on exchanges of stdio servers."""

    name = "stdio"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._pipes: OrderedDict[str, _Pipes] = OrderedDict()  # by connection

    def requested(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if not exchange.endpoint.on_stdio or exchange.http_method != "POST" or exchange.reading is None:
            return None
        text = exchange.facts.get(LINE) or _text(exchange.reading)
        kind = _kind(exchange.reading, text)
        return self._stray(exchange, "client", kind, text, "request.body") if kind else None

    def event(self, item: StreamItem) -> Iterable[Exchange] | None:
        exchange = item.exchange
        if not exchange.endpoint.on_stdio or item.reading is None:
            return None
        if exchange.process is not None:
            exchange.process.last_said = item.at
        if item.event.truncated:
            return None
        text = item.event.data
        if is_cut(item) and text.lstrip().startswith("{"):
            return None
        kind = "utf8" if item.event.not_utf8 else _kind(item.reading, text)
        return self._stray(exchange, "server", kind, text, item.where) if kind else None

    def _stray(self, exchange: Exchange, side: str, kind: str, text: str, where: str) -> Iterable[Exchange] | None:
        pipes = self._of(exchange)
        spread = pipes.spread.setdefault(side, _Spread()).add(text)
        known = pipes.strays.get(side)
        if known is None:
            stray = Stray(one_line(text, _LONGEST), where, kind, only_empty=kind == "empty", spread=spread)
            pipes.strays[side] = stray, exchange
            exchange.facts[STRAY] = stray
            return None
        stray, first = known
        stray.count += 1
        news = spread > stray.spread or (stray.only_empty and kind != "empty")
        if stray.only_empty and kind != "empty":
            stray.text, stray.where, stray.kind, stray.only_empty = one_line(text, _LONGEST), where, kind, False
        stray.spread = max(stray.spread, spread)
        # Not for each line: a server that logs to stdout writes many.
        return [first] if news or stray.count & (stray.count - 1) == 0 else None

    def said(self, message: Message) -> Iterable[Exchange] | None:
        exchange = message.exchange
        if not exchange.endpoint.on_stdio:
            return None
        if message.party == "server":
            if exchange.process is not None:
                exchange.process.last_said = message.at
            self._answered(message)
            return None
        if message.kind == "request":
            return self._asked(message)
        if message.method == "notifications/cancelled" and "requestId" in message.params:
            cancelled = self._of(exchange).open.get(id_key(message.params["requestId"]))
            if cancelled is not None and cancelled.answer is None:
                cancelled.exchange.facts[CANCELLED_AT] = message.at
        return None

    def _answered(self, message: Message) -> None:
        """An answer on its way to nobody: its request has got one before."""
        if message.kind not in ("result", "error"):
            return
        answered, request = self._of(message.exchange).answered, message.request
        key = id_key(message.rpc.id)
        if request is not None:
            answered[id_key(request.rpc.id)] = request.exchange.flow
            if len(answered) > MOST:
                answered.popitem(last=False)
        elif key in answered:
            message.found = AnsweredBefore(answered[key])

    def _asked(self, message: Message) -> Iterable[Exchange] | None:
        pipes = self._of(message.exchange)
        pipes.open[id_key(message.rpc.id)] = message
        asked = {key: value for key, value in message.params.items() if key != "_meta"}
        key = (message.method or "", digest(asked))
        before = pipes.asked.get(key)
        pipes.asked[key] = message
        for table in (pipes.open, pipes.asked):
            if len(table) > MOST:
                table.popitem(last=False)
        if before is None or before.answer is not None or before.exchange.over or message.at - before.at < _AGAIN:
            return None
        if CANCELLED_AT in before.exchange.facts or id_key(before.rpc.id) == id_key(message.rpc.id):
            return None
        message.exchange.facts[GIVEN_UP] = GivenUp(before.exchange.flow, before.rpc.id, message.at - before.at)
        return None

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if not exchange.endpoint.on_stdio:
            return None
        if exchange.kind == "process":
            self._pipes.pop(exchange.connection, None)
            return None
        stray = exchange.facts.get(STRAY)
        if stray is not None and exchange.stream is not None and stray.count > 1:
            exchange.facts[JUDGE_WHOLE] = True  # how many lines there were is known only now
        return None

    def _of(self, exchange: Exchange) -> _Pipes:
        pipes = self._pipes.get(exchange.connection)
        if pipes is None:
            pipes = self._pipes[exchange.connection] = _Pipes()
            if len(self._pipes) > MOST:
                self._pipes.popitem(last=False)
        return pipes


def is_cut(item: StreamItem) -> bool:
    """Whether the server's output ended inside this line (`stdio.lines`)."""
    return item.event.event == "unterminated"


def after_cancellation(exchange: Exchange) -> list[Message]:
    """What a server said for a request later than a race with its cancellation explains."""
    at = exchange.facts.get(CANCELLED_AT)
    return [m for m in exchange.received if m.at > at + _RACE] if at is not None else []


def _kind(reading: jsonrpc.Reading, text: str) -> str:
    """What a line is that is no message; "" where it is one."""
    if reading.bom or text.startswith("\ufeff"):
        return "bom"
    match reading.kind:
        case "empty":
            return "empty"
        case "not-utf8":
            return "utf8"
        case "not-json":
            return "text"
        case "not-rpc":
            return "json"
        case "single":
            value = reading.messages[0].body
            return "json" if reading.messages[0].kind == "invalid" and isinstance(value, dict) and "jsonrpc" not in value else ""
    return ""


def _text(reading: jsonrpc.Reading) -> str:
    value = reading.messages[0].body if reading.kind == "single" else reading.value
    return jsonrpc.dumps(value, most=_LONGEST) if value is not None else reading.head
