"""A recorded client, live: asks a server what the recording's client asked, in its order and with its concurrency.

Nothing is asked that the recording does not have, but for two things that a client must do to get to an end: further rounds that
its answers suffice for, and further polls of a task.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from mcp_wiretap.replay.credentials import is_credential, is_home, without_secrets
from mcp_wiretap.replay.http import Lines, Place, Reply, Unreachable
from mcp_wiretap.replay.likeness import canonical
from mcp_wiretap.replay.script import MAX_BODY, Script, Take
from mcp_wiretap.replay.stdio import Processes
from mcp_wiretap.replay.threads import Threads
from mcp_wiretap.trace.events import EndedBy, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.mirrored.check import NAME_SOURCE
from mcp_wiretap.trace.mirrored.params import headers_of
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields, encode
from mcp_wiretap.wire.sse import SseParser

PATIENCE = 30.0  # seconds for an answer
STREAM_PATIENCE = 2.0  # and for what a stream brought in the recording, before it is closed
ROUNDS, POLLS = 10, 200  # beyond the recording's own
_OWN = frozenset(
    {
        b"host",
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"content-length",
        b"transfer-encoding",
        b"content-encoding",
        b"accept-encoding",
        b"mcp-session-id",
        b"te",
        b"upgrade",
        b"expect",
    }
)
_MOST_TOLD = 100  # credentials that are named
_ENDED = frozenset({"completed", "failed", "cancelled"})


class Stopped(Exception):
    """The replay makes no sense any further. The message says why; `era` is the server's where that is the reason."""

    def __init__(self, message: str, era: str | None = None) -> None:
        super().__init__(message)
        self.era = era


@dataclass(eq=False)
class Played:
    """What became of a take at the live server."""

    take: Take
    sent: list[jsonrpc.Message] = field(default_factory=list)
    status: int | None = None
    fields: Fields = field(default_factory=lambda: Fields(()))
    received: list[jsonrpc.Message] = field(default_factory=list)
    answer: jsonrpc.Message | None = None  # to its request, wherever it came
    trouble: str | None = None
    notes: list[str] = field(default_factory=list)  # what was done otherwise than in the recording
    skipped: str | None = None
    last_event_id: str | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)  # the head of the answer has come, or none will
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False
    task: asyncio.Task[None] | None = None

    @property
    def result(self) -> dict[str, Any]:
        result = self.answer.result if self.answer is not None and self.answer.kind == "result" else None
        return result if isinstance(result, dict) else {}


class Client:
    """Drives `takes` of a script against the server at `place`. `headers` are sent with each request, in the place of recorded
    ones of the same name. Recorded credentials go only to the origin that they were recorded at."""

    def __init__(
        self,
        script: Script,
        takes: Sequence[Take],
        place: Place,
        *,
        judge: Judge | None = None,
        fast: bool = False,
        patience: float = PATIENCE,
        headers: Sequence[tuple[str, str]] = (),
        processes: Processes | None = None,
    ) -> None:
        self.takes = [take for take in takes if not _is_posted_answer(take)]
        self.inspector = Inspector(judge)
        self.played: dict[Take, Played] = {}
        self.refused_questions: list[str] = []
        self.left_out: dict[str, str] = {}  # credentials that were not sent: `header X-Api-Key` -> the origin that they belong to
        self._place, self._fast, self._patience = place, fast, patience
        self._headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        self._threads = Threads()
        self._lines: Lines | Processes = processes if processes is not None else Lines()
        self._processes = processes
        self._script = script
        self.expected = _answers(script)
        self._waiting: dict[tuple[Any, Any], Played] = {}  # (session, id key) -> who waits for that answer
        self._answered_questions: Counter[str] = Counter()
        self._answers_by_key = _input_answers(takes)
        self._flows = 0
        self._side: set[asyncio.Task[None]] = set()
        self._known_good = False

    async def run(self) -> None:
        """Play all. Stopped where the server cannot be reached, or is of the other era."""
        now, then = time.monotonic(), self.takes[0].seen.started if self.takes else 0.0
        try:
            for at, what, take in _timeline(self.takes, self.expected):
                if what == "start":
                    if not self._fast or _has_a_pace(take):
                        await asyncio.sleep(max(0.0, now + (at - then) - time.monotonic()))
                    await self._start(take)
                elif (played := self.played.get(take)) is not None:
                    await self._follow(what, played)
                now, then = time.monotonic(), at
            for played in self.played.values():
                await self._follow("end", played)
        finally:
            await self._clean_up()
            self.inspector.finish()

    async def _clean_up(self) -> None:
        tasks = [played.task for played in self.played.values() if played.task is not None] + list(self._side)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._lines.close()

    async def _start(self, take: Take) -> None:
        played = self.played[take] = Played(take)
        played.task = asyncio.create_task(self._play(played))
        await asyncio.sleep(0)

    async def _follow(self, what: str, played: Played) -> None:
        """Come to where the recording was: the answer has begun, came on another stream, or is over."""
        if what == "begin" and played.take.key[0] == "stream":
            with contextlib.suppress(TimeoutError):  # some servers send no head before there is an event
                async with asyncio.timeout(STREAM_PATIENCE):
                    await played.begun.wait()
        elif what == "begin":
            await self._wait(played.begun, played, "no answer")
        elif what == "answer":
            await self._wait(played.answered, played, "no answer on the session's stream")
        elif played.take.is_call and not _is_listen(played.take):
            if played.take.ended_by == "client" and played.take not in self.expected:  # it was given up
                await self._close(played)
            else:
                await self._wait(played.done, played, "no answer")
            await self._check_era(played)
        elif played.take.beats is not None:
            await self._close_stream(played)
        else:
            await self._wait(played.done, played, "no answer")
        if isinstance(played.trouble, _Down):
            raise Stopped(played.trouble)

    async def _wait(self, event: asyncio.Event, played: Played, otherwise: str) -> None:
        patience = self._patience + max((played.take.ended or 0.0) - played.take.seen.at, 0.0)
        try:
            async with asyncio.timeout(patience):
                await event.wait()
        except TimeoutError:
            if played.trouble is None and played.skipped is None:
                played.trouble = f"{otherwise} within {patience:.0f} seconds"
            await self._close(played)

    async def _close(self, played: Played) -> None:
        played.closing = True
        if played.task is not None:
            played.task.cancel()
            await asyncio.gather(played.task, return_exceptions=True)
        for event in (played.begun, played.answered, played.done):
            event.set()

    async def _close_stream(self, played: Played) -> None:
        """Close a stream that was open until here, once it has brought what it brought then."""
        wanted = Counter(_sort(message) for _, message in played.take.received)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STREAM_PATIENCE if wanted else 0.05):
                while wanted - Counter(map(_sort, played.received)) and not played.done.is_set():
                    played.changed.clear()
                    await played.changed.wait()
        await self._close(played)

    async def _check_era(self, played: Played) -> None:
        """The first request that the recorded server took decides whether it is worth going on."""
        take = played.take
        was = self.expected.get(take)
        if self._known_good or was is None or was.kind != "result":
            return
        if played.answer is not None and played.answer.kind == "result":
            self._known_good = True
            return
        told = played.trouble or _told(played)
        modern = await self._probe("server/discover") if not take.modern else None
        legacy = await self._probe("initialize") if take.modern else None
        if modern or legacy:
            here, there = ("modern", "legacy") if take.modern else ("legacy", "modern")
            raise Stopped(f"the server answers in the {there} era only; the recording is {here} ({take}: {told})", there)
        self._known_good = True  # it fails for another reason

    async def _probe(self, method: str) -> bool:
        """Whether the server speaks the era that a method is of."""
        info = {"name": "mcp-wiretap", "version": "0"}
        if method == "initialize":
            params: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
            headers = []
        else:
            meta = {rev.PROTOCOL_VERSION: rev.MODERN_FROM, rev.CLIENT_INFO: info, rev.CLIENT_CAPABILITIES: {}}
            params = {"_meta": meta}
            headers = [(b"MCP-Protocol-Version", rev.MODERN_FROM.encode()), (b"Mcp-Method", method.encode())]
        body = jsonrpc.dumps({"jsonrpc": "2.0", "id": "replay-probe", "method": method, "params": params}).encode()
        headers += [(b"Content-Type", b"application/json"), (b"Accept", b"application/json, text/event-stream"), *self._headers]
        try:
            async with asyncio.timeout(self._patience):
                reply = await self._lines.ask("probe", self._place, "POST", self._place.path or "/", headers, body)
                text = b"".join([piece async for piece in _until(reply, b"\n\n")])
                await reply.close()
        except (Unreachable, TimeoutError):
            return False
        return b'"serverInfo"' in text if method == "initialize" else b'"supportedVersions"' in text

    # One request

    async def _play(self, played: Played) -> None:
        try:
            await self._exchange(played)
        except Unreachable as error:
            played.trouble = str(error) if self._flows > 1 or played.status is not None else _Down(str(error))
        finally:
            for event in (played.begun, played.done):
                event.set()
            if played.take not in self.expected or played.answer is not None or played.trouble or played.skipped:
                played.answered.set()

    async def _exchange(self, played: Played) -> None:
        """A request, and what a client does of itself to get its answer: the rounds of now, polls until the task moves on."""
        take = played.take
        body = self._body(played)
        if played.skipped is not None:
            return
        await self._send(played, body)
        was = self.expected.get(take)
        recorded = was.result if was is not None and was.kind == "result" else None
        if isinstance(recorded, dict):
            await self._poll(played, body, recorded)
            if recorded.get("resultType") != "input_required":
                await self._more_rounds(played, body)
            self._threads.learn(recorded, played.result)

    async def _poll(self, played: Played, body: Any, recorded: dict[str, Any]) -> None:
        """Ask after a task until it is where the recording had it, or has ended."""
        if played.take.first is None or played.take.first.method != "tasks/get":
            return
        goal = recorded.get("status")
        for _ in range(POLLS):
            status = played.result.get("status")
            if goal == "working" or status == goal or status in _ENDED or status is None:
                return
            interval = played.result.get("pollIntervalMs", played.result.get("pollInterval", 200))
            await asyncio.sleep(min(max(interval if isinstance(interval, int) else 200, 20), 5_000) / 1000)
            body = {**body, "id": self._threads.fresh(body["id"])}
            await self._send(played, body)

    async def _more_rounds(self, played: Played, body: Any) -> None:
        for _ in range(ROUNDS):
            if played.result.get("resultType") != "input_required" or not isinstance(body, dict):
                return
            answers = self._answers_to(played, played.result, {})
            if answers is None:
                return
            played.notes.append("one round more than in the recording")
            body = {**body, "id": self._threads.fresh(body["id"]), "params": _round(body["params"], played.result, answers)}
            await self._send(played, body)

    def _body(self, played: Played) -> Any:
        """The JSON value to send; None where the body is none."""
        take = played.take
        if take.reading is None or not take.reading.messages:
            return None
        value = take.reading.value
        if isinstance(value, list):
            return [self._threads.message(take, item) for item in value]
        made = self._threads.message(take, value)
        state = take.state
        if state is not None and take.first is not None and take.first.method != "tasks/update":
            self._answer_round(played, made, state)
        return made

    def _answer_round(self, played: Played, made: Any, state: tuple[Any, Any]) -> None:
        """A further round: with the state and for the questions of now."""
        before = self._round_before(played.take)
        if before is None:
            return  # its first round is not in the recording: as it was
        asked = before.result
        if asked.get("resultType") != "input_required":
            played.skipped = "its operation had ended a round earlier"
            return
        answers = self._answers_to(played, asked, state[1] if isinstance(state[1], dict) else {})
        if answers is None:
            played.trouble = played.skipped = "the server asks what it did not ask in the recording"
            return
        made["params"] = _round(made["params"], asked, answers)

    def _answers_to(self, played: Played, asked: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any] | None:
        """Recorded answers for the questions of now, by their keys. None where one has none."""
        answers = {}
        questions = asked.get("inputRequests")
        for key in questions if isinstance(questions, dict) else ():
            if key in recorded:
                answers[key] = recorded[key]
            elif key in self._answers_by_key:
                answers[key] = self._answers_by_key[key]
            else:
                played.notes.append(f"the server asks for {key}, which the recording has no answer to")
                return None
        return answers

    def _round_before(self, take: Take) -> Played | None:
        state = take.state[0] if take.state is not None else None
        found = None
        for other, played in self.played.items():
            was = self.expected.get(other)
            result = was.result if was is not None and isinstance(was.result, dict) else None
            if result is None or result.get("resultType") != "input_required" or other.key[:-1] != take.key[:-1]:
                continue
            if canonical(result.get("requestState")) == canonical(state) and (other.ended or 0.0) <= take.seen.started:
                found = played
        return found

    async def _send(self, played: Played, body: Any) -> None:
        take = played.take
        scene = self._threads.scene(take)
        if take.seen.http_method != "POST" and (self._processes is not None or take.on_stdio):
            played.skipped = "it is of the other transport alone"
            return
        content = jsonrpc.dumps(body).encode("utf-8", "backslashreplace") if body is not None else (take.seen.body or b"")
        if self._processes is not None:
            target = "/"
        elif take.session is not None and take.session.http_sse and take.seen.http_method == "POST":
            if scene is None or scene.post_target is None:
                played.trouble = played.skipped = "no stream has told where to post to"
                return
            target = scene.post_target
        else:
            query = take.seen.target.partition("?")[2]
            if query and not self._place.path and not is_home(take, self._place):
                query, secret = without_secrets(query, self._script.inspector.secrets)
                for name in secret:
                    self._leave_out(take, f"parameter {name}")
            target = self._place.path or (take.path + (f"?{query}" if query else ""))
        if take.key == ("delete",) and scene is not None and scene.id is None:
            played.skipped = "the server gave no session that could be ended"
            return
        reading = jsonrpc.read(content, max_bytes=MAX_BODY) if content else None
        played.sent = list(reading.messages) if reading is not None else []
        for message in played.sent:
            if message.kind == "request":
                self._waiting[take.session, jsonrpc.id_key(message.id)] = played
        await self._converse(played, target, self._head(take, body), content)

    def _head(self, take: Take, body: Any) -> list[tuple[bytes, bytes]]:
        scene = self._threads.scene(take)
        given = {name.lower() for name, _ in self._headers}
        home = is_home(take, self._place)
        headers = self._mirrored(take, body, scene.revision if scene is not None else None) if take.on_stdio else []
        if self._processes is not None:
            return [(b"Content-Type", b"application/json")]
        for name, value in () if take.on_stdio else take.seen.fields.raw:
            lower = name.lower()
            if lower in _OWN or lower in given:
                continue
            shown = name.decode("latin-1")
            if not home and is_credential(take, shown, value.decode("latin-1"), self._script.inspector.secrets):
                self._leave_out(take, f"header {shown}")
                continue
            if lower == b"mcp-name":
                value = self._threads.mirrored(value.decode("latin-1"), _single(take), body).encode("latin-1")
            elif lower == b"mcp-protocol-version" and scene is not None and scene.revision is not None:
                value = scene.revision.encode()
            elif lower == b"last-event-id":
                value = self._last_event_id(value.decode("latin-1")).encode("latin-1")
            headers.append((name, value))
        if scene is not None and scene.id is not None and not _is_initialize(take):
            headers.append((b"Mcp-Session-Id", scene.id.encode("latin-1")))
        return [*headers, *self._headers]

    def _mirrored(self, take: Take, body: Any, revision: str | None) -> list[tuple[bytes, bytes]]:
        """The headers that HTTP wants of a request that was recorded on stdio, where there are none."""
        headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
        request = take.request
        if not take.modern or request is None or not isinstance(body, dict):
            if revision is not None and not _is_initialize(take):
                headers.append(("MCP-Protocol-Version", revision))
            elif take.modern and take.exchange is not None and take.exchange.claim.revision is not None:
                headers.append(("MCP-Protocol-Version", take.exchange.claim.revision))
        else:
            params, meta = _object(body.get("params")), _object(_object(body.get("params")).get("_meta"))
            headers += [("MCP-Protocol-Version", str(meta.get(rev.PROTOCOL_VERSION, ""))), ("Mcp-Method", request.method or "")]
            source = NAME_SOURCE.get(request.method or "")
            if source is not None and isinstance(params.get(source), str):
                headers.append(("Mcp-Name", encode(params[source])))
            endpoint = self._script.endpoint(take)
            tool = (
                endpoint.tools.get(str(params.get("name"))) if endpoint is not None and request.method == "tools/call" else None
            )
            headers += headers_of(tool, params.get("arguments")) if tool is not None else []
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]

    def _leave_out(self, take: Take, what: str) -> None:
        if what.lower() not in map(str.lower, self.left_out) and len(self.left_out) < _MOST_TOLD:
            self.left_out[what] = take.origin

    def _last_event_id(self, recorded: str) -> str:
        for take, played in self.played.items():
            if any(beat.event.id == recorded for beat in take.beats or ()) and played.last_event_id is not None:
                return played.last_event_id
        return recorded

    async def _converse(self, played: Played, target: str, headers: list[tuple[bytes, bytes]], content: bytes) -> None:
        """Send one request and take in its answer to the end, the trace told of all."""
        take, place = played.take, self._place
        self._flows += 1
        flow, started = f"replay-{self._flows}", time.time()
        method = take.seen.http_method
        fields = Fields([(b"Host", place.authority.encode()), *headers])
        self.inspector.feed(
            RequestSeen(
                flow,
                started,
                started,
                method,
                place.scheme,
                place.host,
                place.port,
                target,
                fields,
                content,
                self._processes.connection(take.seen.connection) if self._processes is not None else flow,
                place.authority,
            )
        )
        by: EndedBy = "complete"
        body: bytes | None = None
        streamed = False
        failure: str | None = None
        try:
            async with asyncio.timeout(self._patience + max((take.responded or 0.0) - take.seen.at, 0.0)):
                reply = await self._lines.ask(take.seen.connection, place, method, target, headers, content)
            try:
                played.status, played.fields = reply.status, Fields(reply.headers)
                self.inspector.feed(ResponseStarted(flow, time.time(), reply.status, played.fields))
                self._session_of(played)
                streamed = (played.fields.first("content-type") or "").lower().startswith("text/event-stream")
                if streamed:
                    await self._stream(played, reply, flow)
                else:
                    body = b"".join([piece async for piece in reply.pieces()])
                    for message in jsonrpc.read(body, max_bytes=MAX_BODY).messages:
                        self._take_in(played, message)
            finally:
                played.begun.set()
                await reply.close()
        except Unreachable as error:
            by, failure = "server", str(error)
            raise
        except TimeoutError:
            by, failure = "client", "timeout"
            played.trouble = f"no answer within {self._patience:g} seconds"
        except asyncio.CancelledError:
            by, failure = "client", "closed"
            raise
        finally:
            self.inspector.feed(ExchangeEnded(flow, time.time(), body, streamed, by, failure))

    def _session_of(self, played: Played) -> None:
        scene = self._threads.scene(played.take)
        if scene is not None and _is_initialize(played.take) and (given := played.fields.first("mcp-session-id")):
            scene.id = given

    async def _stream(self, played: Played, reply: Reply, flow: str) -> None:
        parser = SseParser(MAX_BODY)
        if not (played.take.session is not None and played.take.session.http_sse):
            played.begun.set()  # where the stream tells where to post to, only that begins it
        async for piece in reply.pieces():
            self.inspector.feed(StreamData(flow, time.time(), piece))
            for event in parser.feed(piece):
                played.last_event_id = event.id or played.last_event_id
                if event.event == "endpoint" and event.index == 0:
                    self._announced(played.take, event.data)
                    played.begun.set()
                    continue
                for message in jsonrpc.read_text(event.data, max_bytes=MAX_BODY).messages if event.data else ():
                    self._take_in(played, message)
                played.changed.set()

    def _announced(self, take: Take, address: str) -> None:
        scene = self._threads.scene(take)
        if scene is not None:
            parts = urlsplit(urljoin(self._place.path or take.path, address))
            scene.post_target = parts.path + (f"?{parts.query}" if parts.query else "")

    def _take_in(self, played: Played, message: jsonrpc.Message) -> None:
        """A message of the server."""
        played.received.append(message)
        if message.kind in ("result", "error"):
            owner = self._waiting.pop((played.take.session, jsonrpc.id_key(message.id)), None) or played
            owner.answer = message
            scene = self._threads.scene(owner.take)
            if scene is not None and _is_initialize(owner.take) and isinstance(message.result, dict):
                version = message.result.get("protocolVersion")
                scene.revision = version if isinstance(version, str) else None
            if owner is not played:
                was = self.expected.get(owner.take)
                self._threads.learn(was.result if was is not None else None, message.result)
            owner.answered.set()
        elif message.kind == "request":
            task = asyncio.create_task(self._reply(played, message))
            self._side.add(task)
            task.add_done_callback(self._side.discard)
        played.changed.set()

    # Questions of a legacy server

    async def _reply(self, played: Played, question: jsonrpc.Message) -> None:
        """Post the recorded answer to a question of the server."""
        thought, recorded = self._recorded_reply(played.take, question)
        if not self._fast:
            await asyncio.sleep(thought)
        if recorded is None or recorded.first is None:
            said = f"the server asks {question.method}, which the recording has no answer to"
            played.notes.append(said)
            value: Any = {"code": rev.METHOD_NOT_FOUND, "message": "not in the recording that is replayed"}
            body = {"jsonrpc": "2.0", "id": question.id, "error": value}
            recorded = None
        else:
            body = {**recorded.first.body, "id": question.id}
        model = recorded or next((t for t in self.takes if t.session is played.take.session and t.is_call), played.take)
        posted = Played(model)
        with contextlib.suppress(Unreachable):
            await self._post_answer(posted, body)

    async def _post_answer(self, posted: Played, body: Any) -> None:
        content = jsonrpc.dumps(body).encode("utf-8", "backslashreplace")
        scene = self._threads.scene(posted.take)
        target = scene.post_target if scene is not None and scene.post_target else self._place.path or posted.take.path
        await self._converse(posted, target, self._head(posted.take, body), content)

    def _recorded_reply(self, take: Take, question: jsonrpc.Message) -> tuple[float, Take | None]:
        """How long the client took for the like question, and its answer: to the same one in the same session first, then to any
        of that method, in order."""
        fitting = []
        for other in self._script.takes:
            for beat in other.beats or ():
                if beat.reply is not None and any(m.method == question.method for m in beat.messages if m.kind == "request"):
                    same = any(canonical(m.params) == canonical(question.params) for m in beat.messages)
                    fitting.append((other.session is not take.session, not same, beat.at, beat.reply))
        if not fitting:
            return 0.0, None
        best = min(entry[:2] for entry in fitting)
        replies = [
            (max(entry[3].seen.started - entry[2], 0.0), entry[3])
            for entry in sorted(fitting, key=lambda entry: entry[2])
            if entry[:2] == best
        ]
        key = f"{id(take.session)} {question.method} {canonical(question.params)}"
        self._answered_questions[key] += 1
        return replies[min(self._answered_questions[key], len(replies)) - 1]


class _Down(str):
    """Trouble: nothing answers at all."""


def _timeline(takes: Sequence[Take], expected: dict[Take, jsonrpc.Message]) -> Iterator[tuple[float, str, Take]]:
    """What happened in the recording, in order: who waited for what is kept by that."""
    late = {take: at for take, at in _late_answers(takes).items() if take in expected}
    entries: list[tuple[float, int, str, Take]] = []
    for number, take in enumerate(takes):
        entries.append((take.seen.started, number, "start", take))
        if take.responded is not None:
            entries.append((take.responded, number, "begin", take))
        if take in late:
            entries.append((late[take], number, "answer", take))
        if take.ended is not None:
            entries.append((take.ended, number, "end", take))
    order = {"begin": 0, "answer": 0, "end": 0, "start": 1}
    entries.sort(key=lambda entry: (entry[0], order[entry[2]], entry[1]))
    for at, _, what, take in entries:
        yield at, what, take


def _late_answers(takes: Sequence[Take]) -> dict[Take, float]:
    """Requests whose answer came on another stream, and when."""
    return {
        beat.cause: beat.at
        for take in takes
        for beat in take.beats or ()
        if beat.cause is not None and beat.cause is not take and any(m.kind in ("result", "error") for m in beat.messages)
    }


def _answers(script: Script) -> dict[Take, jsonrpc.Message]:
    """The recorded answer to each request."""
    found = {take: take.result for take in script.takes if take.result is not None}
    for take in script.takes:
        for beat in take.beats or ():
            for message in beat.messages:
                if message.kind in ("result", "error") and beat.cause is not None and beat.cause is not take:
                    found.setdefault(beat.cause, message)
    _resumed(script, found)
    return found


def _resumed(script: Script, found: dict[Take, jsonrpc.Message]) -> None:
    """Answers that came on a stream that was taken up again."""
    for scene in script.scenes:
        open_ = {jsonrpc.id_key(call.request.id): call for call in scene.takes if call.request is not None and call not in found}
        for take in scene.takes:
            if take.key[0] == "stream" and take.key[1] is not None:
                for _, message in take.received:
                    call = open_.get(jsonrpc.id_key(message.id)) if message.kind in ("result", "error") else None
                    if call is not None:
                        found.setdefault(call, message)


def _input_answers(takes: Sequence[Take]) -> dict[str, Any]:
    """All recorded answers to questions of modern servers by their key, the newest of each."""
    found: dict[str, Any] = {}
    for take in takes:
        if take.state is not None and isinstance(take.state[1], dict):
            found.update(take.state[1])
    return found


def _round(params: dict[str, Any], asked: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the round that answers `asked`."""
    made = {name: value for name, value in params.items() if name not in ("requestState", "inputResponses")}
    if answers or "inputRequests" in asked:
        made["inputResponses"] = answers
    if "requestState" in asked:
        made["requestState"] = asked["requestState"]
    return made


def _has_a_pace(take: Take) -> bool:
    """What a server sets the pace of: polls of a task, coming back to a stream."""
    return (take.first is not None and take.first.method == "tasks/get") or (take.key[0] == "stream" and take.key[1] is not None)


def _is_posted_answer(take: Take) -> bool:
    return take.key == ("answer",)


def _is_listen(take: Take) -> bool:
    return take.first is not None and take.first.method == "subscriptions/listen" and take.beats is not None


def _is_initialize(take: Take) -> bool:
    return take.first is not None and take.first.method == "initialize"


def _single(take: Take) -> Any:
    return take.reading.value if take.reading is not None else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sort(message: jsonrpc.Message) -> str:
    return message.method or message.kind


def _told(played: Played) -> str:
    answer = played.answer
    if answer is not None and answer.kind == "error" and isinstance(answer.error, dict):
        return f"HTTP {played.status}, error {answer.error.get('code')} {answer.error.get('message')}"
    return f"HTTP {played.status}"


async def _until(reply: Reply, mark: bytes) -> Any:
    """The body, or the beginning of a stream up to its first event."""
    seen = b""
    stream = any(name.lower() == b"content-type" and b"event-stream" in value for name, value in reply.headers)
    async for piece in reply.pieces():
        yield piece
        seen += piece
        if stream and (mark in seen or b"\r\n\r\n" in seen) and b"data:" in seen and b"{" in seen:
            return
