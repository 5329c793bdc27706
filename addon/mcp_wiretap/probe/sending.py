"""Sends one request at a time, each on a connection of its own, and reads its answer; the trace is told of both.

Spends a budget, keeps a pace, stops where the server says that it has enough.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_wiretap.replay.http import Lines, Place, Reply, Unreachable
from mcp_wiretap.replay.script import MAX_BODY
from mcp_wiretap.replay.stdio import Processes
from mcp_wiretap.rule.probes import Answer, Call
from mcp_wiretap.trace.events import EndedBy, Event, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.sse import SseParser

PATIENCE = 5.0  # seconds for an answer
PACE = 0.02  # seconds between two requests
MOST = 4 << 20  # bytes of an answer that are read


class Enough(Exception):
    """No more is sent. The message says why."""


@dataclass(slots=True)
class Sent:
    """A request that was sent, with all that came."""

    flow: str
    call: Call
    target: str
    started: float
    answer: Answer
    message: jsonrpc.Message | None = None  # the answer
    fields: Fields = field(default_factory=lambda: Fields(()))
    status: int | None = None
    body: bytes = b""
    times: list[float] = field(default_factory=list)  # of the pieces of a stream
    streamed: bool = False
    ended: float = 0.0
    error: str | None = None


class Sender:
    """`budget`: requests in all. `judge` sees what is sent and answered, with the server alone held to it."""

    def __init__(
        self,
        place: Place,
        judge: Judge,
        *,
        budget: int,
        command: Sequence[str] | None = None,
        patience: float = PATIENCE,
        pace: float = PACE,
    ) -> None:
        self.place = place
        self.inspector = Inspector(judge)
        self.sent: list[Sent] = []
        self._budget, self._patience, self._pace = budget, patience, pace
        self._lines: Lines | Processes = Processes(command, several=False) if command is not None else Lines()
        self.http = command is None

    async def close(self) -> None:
        await self._lines.close()

    async def send(self, call: Call, *, line: str = "") -> Sent:
        """Send a call; `line` keeps a connection (a stdio process) for several. Enough where the budget is spent, or the server
        has had enough; Unreachable where there is none."""
        if len(self.sent) >= self._budget:
            raise Enough(f"the budget of {self._budget} requests is spent; --budget allows more")
        if self.sent:
            await asyncio.sleep(self._pace)
        flow, target = f"probe-{len(self.sent) + 1}", self.place.path or "/"
        content, started = call.content, time.time()
        headers = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in call.headers]
        host = call.host or self.place.authority
        made = Sent(flow, call, target, started, Answer("nothing"))
        self.sent.append(made)
        self._tell(
            RequestSeen(
                flow,
                started,
                started,
                call.http_method,
                self.place.scheme,
                self.place.host,
                self.place.port,
                target,
                Fields([(b"Host", host.encode()), *headers]),
                content,
                line or flow,
                host,
                probe=True,
            )
        )
        by: EndedBy = "complete"
        try:
            async with asyncio.timeout(self._patience):
                await self._converse(made, call, headers, content, line or flow, host)
        except TimeoutError:
            by, made.error = "client", f"no answer within {self._patience:g} seconds"
        except Unreachable as error:
            by, made.error = "server", str(error)
            if len(self.sent) == 1:
                raise
        made.ended = time.time()
        self._tell(ExchangeEnded(flow, made.ended, None if made.streamed else made.body, made.streamed, by, made.error))
        made.answer = _answer(made)
        if made.status in (429, 503):
            after = made.fields.first("retry-after")
            said = f", and wants to be left alone for {after} s" if after is not None and after.isdigit() else ""
            raise Enough(f"the server answers {made.status}{said}")
        return made

    async def _converse(
        self, made: Sent, call: Call, headers: list[tuple[bytes, bytes]], content: bytes, line: str, host: str
    ) -> None:
        if isinstance(self._lines, Lines):
            reply = await self._lines.ask(line, self.place, call.http_method, made.target, headers, content, host=host)
        else:
            reply = await self._lines.ask(line, self.place, call.http_method, made.target, headers, content)
        try:
            made.status, made.fields = reply.status, Fields(reply.headers)
            self._tell(ResponseStarted(made.flow, time.time(), reply.status, made.fields))
            made.streamed = (made.fields.first("content-type") or "").lower().startswith("text/event-stream")
            if call.http_method == "GET" and made.streamed:
                return  # the head says it all, and the stream may never end
            await self._read(made, reply)
        finally:
            await reply.close()

    async def _read(self, made: Sent, reply: Reply) -> None:
        parser, body = SseParser(MAX_BODY), bytearray()
        async for piece in reply.pieces():
            body += piece
            if len(body) > MOST:
                made.error = f"more than {MOST >> 20} MB came"
                break
            if not made.streamed:
                continue
            made.times.append(time.time())
            self._tell(StreamData(made.flow, made.times[-1], piece))
            for event in parser.feed(piece):
                messages = jsonrpc.read_text(event.data, max_bytes=MAX_BODY).messages if event.data else ()
                made.message = next((m for m in messages if m.kind in ("result", "error")), made.message)
        made.body = bytes(body)
        if not made.streamed:
            messages = jsonrpc.read(made.body, max_bytes=MAX_BODY).messages if made.body else ()
            made.message = next((m for m in messages if m.kind in ("result", "error")), None)

    def _tell(self, event: Event) -> None:
        self.inspector.feed(event)


def _answer(made: Sent) -> Answer:
    message, challenge = made.message, made.fields.first("www-authenticate")
    if made.status is None:
        return Answer("nothing", message=made.error or "")
    if message is None:
        return Answer("none", made.status, message=made.error or "", challenge=challenge)
    if message.kind == "error":
        error = message.error if isinstance(message.error, dict) else {}
        said = error.get("message")
        return Answer(
            "error", made.status, message.error_code, said if isinstance(said, str) else "", error.get("data"), challenge
        )
    result = message.result if isinstance(message.result, dict) else {}
    if result.get("isError") is True:
        return Answer("tool-error", made.status, challenge=challenge)
    if result.get("resultType") == "input_required":
        return Answer("asked", made.status, challenge=challenge)
    return Answer("result", made.status, challenge=challenge)
