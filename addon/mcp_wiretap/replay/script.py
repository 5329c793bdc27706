"""What a recording says: its exchanges as takes, each with what was asked, what was answered, and when.

Built from the events of a recording, without mitmproxy; sessions, conversations and kinds are those that the Inspector sees.
"""

import re
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mcp_wiretap.replay.likeness import Key, circumstances, is_modern, key_of, state_of
from mcp_wiretap.trace.events import EndedBy, Event, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Endpoint, Exchange
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.coding import decode_body
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.secret import concealed, masked
from mcp_wiretap.wire.sse import SseEvent, SseParser

MAX_BODY = 64 << 20
NEWEST = 64  # calls looked at for the one that an event belongs to; no client has more of them open
_BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")


@dataclass(slots=True, eq=False)
class Beat:
    """One event of a recorded stream, with its bytes, and the request of the client that it belongs to."""

    at: float
    block: bytes
    event: SseEvent
    messages: tuple[jsonrpc.Message, ...]
    cause: "Take | None" = None
    reply: "Take | None" = None  # what the client posted as the answer to the question in it


@dataclass(eq=False)
class Take:
    """One recorded exchange."""

    flow: str
    seen: RequestSeen
    reading: jsonrpc.Reading | None
    status: int | None = None
    answer_fields: Fields = field(default_factory=lambda: Fields(()))
    responded: float | None = None
    answer: bytes | None = None  # the body, its content coding undone; None: a stream, or not stored
    beats: list[Beat] | None = None
    ended: float | None = None
    ended_by: EndedBy | None = None
    dropped: int = 0
    session: "Scene | None" = None
    exchange: Exchange | None = None

    @cached_property
    def modern(self) -> bool:
        if self.on_stdio and self.exchange is not None:
            return self.exchange.claim.modern
        return is_modern(self.seen.fields, self.reading)

    @cached_property
    def key(self) -> Key:
        seen = self.seen
        if self.on_stdio and seen.http_method == "GET":
            return ("stream", None)  # what the server says on its own
        return key_of(seen.http_method, seen.target, seen.fields, seen.body, self.reading)

    @cached_property
    def circumstances(self) -> Any:
        return circumstances(self.seen.fields, self.reading)

    @property
    def on_stdio(self) -> bool:
        return self.seen.scheme == "stdio"

    @cached_property
    def path(self) -> str:
        return self.seen.target.partition("?")[0] or "/"

    @cached_property
    def origin(self) -> str:
        return origin(self.seen.scheme, self.seen.host, self.seen.port)

    @property
    def request(self) -> jsonrpc.Message | None:
        """The first JSON-RPC request in it."""
        messages = self.reading.messages if self.reading is not None else ()
        return next((message for message in messages if message.kind == "request"), None)

    @property
    def first(self) -> jsonrpc.Message | None:
        return self.reading.messages[0] if self.reading is not None and self.reading.messages else None

    @cached_property
    def state(self) -> tuple[Any, Any] | None:
        return state_of(self.reading)

    @cached_property
    def answer_reading(self) -> jsonrpc.Reading | None:
        return jsonrpc.read(self.answer, max_bytes=MAX_BODY) if self.answer else None

    @cached_property
    def received(self) -> list[tuple[float, jsonrpc.Message]]:
        """The messages of the server in it, with their times."""
        if self.beats is not None:
            return [(beat.at, message) for beat in self.beats for message in beat.messages]
        messages = self.answer_reading.messages if self.answer_reading is not None else ()
        return [(self.ended or self.seen.at, message) for message in messages]

    @cached_property
    def result(self) -> jsonrpc.Message | None:
        """The answer to its request that came with it."""
        request = self.request
        if request is None:
            return None
        found = None
        for _, message in self.received:
            if message.kind in ("result", "error"):
                if jsonrpc.id_key(message.id) == jsonrpc.id_key(request.id):
                    return message
                found = found or message
        return found

    @property
    def is_call(self) -> bool:
        """A JSON-RPC request of the client, alone or in a batch."""
        return self.request is not None

    def __str__(self) -> str:
        return describe(self.seen.http_method, self.path, self.reading)


@dataclass(eq=False)
class Scene:
    """A legacy session of the recording; `id` is "" where the server gave none."""

    id: str
    http_sse: bool
    takes: list[Take] = field(default_factory=list)

    @cached_property
    def caused(self) -> dict[Take, list[Beat]]:
        """What came on streams that clients keep open, by the request that brought it."""
        found: dict[Take, list[Beat]] = {}
        for take in self.takes:
            if take.key == ("stream", None):
                for beat in take.beats or ():
                    if beat.cause is not None and beat.cause is not take:
                        found.setdefault(beat.cause, []).append(beat)
        return found


@dataclass
class Script:
    """All that can be replayed of a recording, in the order of its times, and what cannot."""

    takes: list[Take]
    scenes: list[Scene]
    problems: list[str]
    inspector: Inspector

    @property
    def mcp(self) -> list[Take]:
        return [take for take in self.takes if take.exchange is not None and take.exchange.kind == "mcp"]

    @cached_property
    def endpoints(self) -> list[str]:
        """scheme://host:port/path of each, in order of appearance."""
        return list(dict.fromkeys(take.origin + take.path for take in self.mcp))

    def endpoint(self, take: Take) -> Endpoint | None:
        return take.exchange.endpoint if take.exchange is not None else None


def origin(scheme: str, host: str, port: int) -> str:
    if scheme == "stdio":
        return f"stdio://{host}"
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{port}"


def describe(http_method: str, path: str, reading: jsonrpc.Reading | None) -> str:
    """A request in words: method, name and arguments; no more than a line, and without its secrets."""
    message = reading.messages[0] if reading is not None and reading.messages else None
    if message is None:
        return f"{http_method} {path}"
    if message.kind in ("result", "error"):
        return f"an answer to {jsonrpc.dumps(message.id, most=40)}"
    params = message.params if isinstance(message.params, dict) else {}
    name = next((params[m] for m in ("name", "uri", "taskId", "cursor") if isinstance(params.get(m), str)), None)
    words = [message.method or "?"] + ([concealed(name)] if name is not None else [])
    if isinstance(params.get("arguments"), dict):
        words.append(jsonrpc.dumps(masked(params["arguments"], entered=True), most=200))
    if "inputResponses" in params or "requestState" in params:
        words.append("(a further round)")
    return " ".join(words)


def build(events: Iterable[Event], judge: Judge | None = None) -> Script:
    """Read the events of a recording, in the order of their times."""
    builder = _Builder(judge)
    for event in events:
        builder.feed(event)
    return builder.finish()


@dataclass(slots=True)
class _Stream:
    parser: SseParser
    buffer: bytes = b""
    held: bytes = b""  # blocks without an event: they go with the next one


class _Builder:
    def __init__(self, judge: Judge | None) -> None:
        self._inspector = Inspector(judge)
        self._takes: dict[str, Take] = {}
        self._streams: dict[str, _Stream] = {}
        self._problems: list[str] = []

    def feed(self, event: Event) -> None:
        self._inspector.feed(event)
        match event:
            case RequestSeen():
                self._request(event)
            case ResponseStarted():
                self._response(event)
            case StreamData():
                self._data(event)
            case ExchangeEnded():
                self._ended(event)

    def _request(self, event: RequestSeen) -> None:
        if event.flow in self._takes:
            return
        body, reading = event.body, None
        coding = event.fields.first("content-encoding")
        if body and coding:
            body = decode_body(body, coding, MAX_BODY)[0]
        if body:
            reading = jsonrpc.read(body, max_bytes=MAX_BODY)
        take = Take(event.flow, event, reading)
        take.exchange = self._inspector.exchanges.get(event.flow)
        self._takes[event.flow] = take

    def _response(self, event: ResponseStarted) -> None:
        take = self._takes.get(event.flow)
        if take is None or take.status is not None:
            return
        take.status, take.answer_fields, take.responded = event.status, event.fields, event.at
        if (event.fields.first("content-type") or "").lower().startswith("text/event-stream"):
            take.beats = []
            self._streams[event.flow] = _Stream(SseParser(MAX_BODY))

    def _data(self, event: StreamData) -> None:
        take, stream = self._takes.get(event.flow), self._streams.get(event.flow)
        if take is None or stream is None or take.beats is None:
            return
        at = event.at if event.timed or take.responded is None else take.responded
        data, start = stream.buffer + event.data, 0
        for match in _BLANK_LINE.finditer(data):
            if match.end() == len(data) and data.endswith(b"\r") and not data.endswith(b"\r\r"):
                break
            block, start = data[start : match.end()], match.end()
            stream.held += block
            for sse in stream.parser.feed(block):
                messages = jsonrpc.read_text(sse.data, max_bytes=MAX_BODY).messages if sse.data else ()
                take.beats.append(Beat(at, stream.held, sse, messages))
                stream.held = b""
        stream.buffer = data[start:]

    def _ended(self, event: ExchangeEnded) -> None:
        take = self._takes.get(event.flow)
        if take is None or take.ended is not None:
            return
        take.ended, take.ended_by, take.dropped = event.at, event.ended_by, event.dropped
        if event.streamed or take.status is None:
            return
        take.beats = None
        take.answer = event.body
        if event.body and (coding := take.answer_fields.first("content-encoding")):
            take.answer, problem = decode_body(event.body, coding, MAX_BODY)
            if problem is not None:
                self._problems.append(f"the answer to {take} (flow {take.flow}) cannot be decoded: {problem}")

    def finish(self) -> Script:
        self._inspector.finish()
        usable = [take for take in self._takes.values() if self._usable(take)]
        usable.sort(key=lambda take: take.seen.started)
        scenes = _scenes(usable)
        for scene in scenes:
            _attribute(scene)
        return Script(usable, scenes, self._problems, self._inspector)

    def _usable(self, take: Take) -> bool:
        exchange = take.exchange
        if exchange is None or exchange.kind in ("other", "process"):
            return False
        if take.status is None:
            if take.ended is None or take.ended_by != "client":
                self._problems.append(f"{take} has no answer in the recording (flow {take.flow})")
            return False
        if take.seen.body is None and take.seen.http_method == "POST":
            self._problems.append(f"the body of a POST to {take.path} was not stored (flow {take.flow})")
            return False
        bodiless = take.seen.http_method == "HEAD" or take.status in (202, 204, 304) or take.status < 200
        if take.answer is None and take.beats is None and not bodiless:
            self._problems.append(f"the answer to {take} was not stored (flow {take.flow})")
            return False
        if take.dropped:
            self._problems.append(f"the stream that answers {take} was not stored whole (flow {take.flow})")
        return True


def _scenes(takes: list[Take]) -> list[Scene]:
    """The legacy sessions; what names none belongs to one without an id, by its URL."""
    found: dict[object, Scene] = {}
    for take in takes:
        exchange = take.exchange
        if exchange is None or exchange.kind != "mcp" or take.modern:
            continue
        session = exchange.session
        key: object = session if session is not None else (take.origin, take.path)
        scene = found.get(key)
        if scene is None:
            scene = found[key] = Scene(session.id if session else "", session is not None and session.transport == "http+sse")
        scene.takes.append(take)
        take.session = scene
    return list(found.values())


def _attribute(scene: Scene) -> None:
    """Which request of the client brought each event of its streams, and which posted answer each question got."""
    books = _Books(scene)
    for stream in scene.takes:
        own = stream.key != ("stream", None)
        for beat in stream.beats or ():
            beat.cause = stream if own else books.cause(beat)
            question = next((message for message in beat.messages if message.kind == "request"), None)
            if question is not None:
                beat.reply = books.reply(question, beat.at)


class _Books:
    """The requests and posted answers of a session, by id and by time."""

    def __init__(self, scene: Scene) -> None:
        self._calls: dict[Hashable, list[Take]] = {}
        self._by_token: dict[Hashable, Take] = {}
        self._posted: dict[Hashable, list[Take]] = {}
        self._spans: list[tuple[float, float, Take]] = []  # asked, answered
        for take in scene.takes:
            for message in take.reading.messages if take.reading is not None else ():
                key = jsonrpc.id_key(message.id)
                if message.kind == "request":
                    self._calls.setdefault(key, []).append(take)
                    if "progressToken" in message.meta:
                        self._by_token.setdefault(jsonrpc.id_key(message.meta["progressToken"]), take)
                elif message.kind in ("result", "error"):
                    self._posted.setdefault(key, []).append(take)
        answered: dict[Take, float] = {}
        for stream in scene.takes:
            for at, message in stream.received:
                if message.kind in ("result", "error") and (call := self.call(message, at)) is not None:
                    answered[call] = at
        calls = dict.fromkeys(call for calls in self._calls.values() for call in calls)
        self._spans = sorted(((call.seen.started, answered.get(call, 0.0), call) for call in calls), key=lambda span: span[:2])

    def call(self, answer: jsonrpc.Message, at: float) -> Take | None:
        """The request that an answer belongs to."""
        calls = self._calls.get(jsonrpc.id_key(answer.id), ())
        return next((call for call in reversed(calls) if call.seen.started <= at), None)

    def reply(self, question: jsonrpc.Message, at: float) -> Take | None:
        """What the client posted as the answer to a question."""
        return next((take for take in self._posted.get(jsonrpc.id_key(question.id), ()) if take.seen.at >= at), None)

    def cause(self, beat: Beat) -> Take | None:
        """The call that an event on a stream of its own belongs to: the one it answers, whose progress it tells, or the newest
        of those that were not answered when it came."""
        for message in beat.messages:
            if message.kind in ("result", "error"):
                return self.call(message, beat.at)
            if message.method == "notifications/progress" and isinstance(message.params, dict):
                named = self._by_token.get(jsonrpc.id_key(message.params.get("progressToken")))
                if named is not None:
                    return named
        if not beat.messages:
            return None
        last = bisect_right(self._spans, beat.at, key=lambda span: span[0])
        return next((call for _, over, call in reversed(self._spans[max(last - NEWEST, 0) : last]) if over >= beat.at), None)
