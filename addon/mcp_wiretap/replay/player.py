"""A recorded server, live: answers requests as the recording was answered, at its pace or at once, with the ids of today."""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mcp_wiretap.replay.cast import Asked, Cast, Missing, Session
from mcp_wiretap.replay.likeness import canonical
from mcp_wiretap.replay.live_ids import Rewriting, origins_of, sent_back, with_data, with_origin
from mcp_wiretap.replay.script import Beat, Script, Take
from mcp_wiretap.wire import jsonrpc

_NOT_PASSED_ON = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"content-length",
        b"content-encoding",
        b"trailer",
        b"upgrade",
        b"mcp-session-id",
        b"alt-svc",
        b"strict-transport-security",
    }
)
SESSIONS = 1_000  # live sessions that are remembered; few clients say goodbye
WAITING = 1_000  # events for a stream that no client has opened; later ones are lost, as a server would lose them

type Headers = list[tuple[bytes, bytes]]
type Emit = Callable[[bytes], Awaitable[None]]


class Outlet(Protocol):
    """Where an answer goes."""

    async def head(self, status: int, headers: Headers, length: int | None) -> None:
        """Status and header fields; `length` of the body, None where it is a stream."""

    async def data(self, data: bytes) -> None: ...

    async def end(self) -> None: ...

    def cut(self) -> None:
        """The answer breaks off here."""


@dataclass(eq=False)
class _Live:
    """What goes on in a session: its open stream, the questions that wait for an answer, what was asked so far."""

    session: Session
    queue: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(WAITING))
    over: asyncio.Event = field(default_factory=asyncio.Event)
    posted: asyncio.Condition = field(default_factory=asyncio.Condition)
    asked: set[Hashable] = field(default_factory=set)  # questions on the wire without an answer
    performed: set[Take] = field(default_factory=set)
    sent: set[Beat] = field(default_factory=set)
    groups: set[asyncio.Task[None]] = field(default_factory=set)
    stirred: asyncio.Event = field(default_factory=asyncio.Event)

    async def put(self, block: bytes) -> None:
        """An event for the session's open stream."""
        with contextlib.suppress(asyncio.QueueFull):
            self.queue.put_nowait(block)


class Player:
    """Plays a script to live clients. One event loop."""

    def __init__(self, script: Script, *, fast: bool = False, endpoint: str | None = None) -> None:
        self.script = script
        self.cast = Cast(script, endpoint)
        self.played = 0
        self.missed = 0
        self.tell: Callable[[str], None] = lambda text: None
        self._fast = fast
        self._live: dict[Session, _Live] = {}

    def knows(self, asked: Asked) -> bool:
        """Whether the recording has an answer."""
        try:
            if asked.is_answer:
                self._waiting_for(asked)
            elif not asked.is_notification:
                self.cast.find(asked)
            else:
                self.cast.session_of(asked, ())
        except Missing:
            return False
        return not asked.is_notification or self.cast.serves(asked)

    async def answer(self, asked: Asked, out: Outlet) -> None:
        """Answer one request. Returns when the answer is over; to be cancelled when its client has gone."""
        arrived = self._now()
        try:
            if asked.is_answer:
                await self._posted(asked, out)
                return
            try:
                take, session = self.cast.play(asked)
            except Missing as missing:
                if not asked.is_notification or missing.status == 404:
                    raise
                await out.head(202, [], 0)  # a notification has no answer that could be missing
                await out.end()
                return
        except Missing as missing:
            self.missed += 1
            self.tell(f"not answered: {missing.message}")
            await _refuse(asked, missing, out)
            return
        self.played += 1
        await self._perform(take, session, asked, arrived, out)

    async def _perform(self, take: Take, session: Session | None, asked: Asked, arrived: float, out: Outlet) -> None:
        rewriting = Rewriting.between(take.reading, asked.reading)
        live = self._of(session) if session is not None else None
        if live is not None:
            live.session.rewriting.join(rewriting)
            self._bring(take, live, arrived)
        clock = _Clock(arrived, take.seen.at, self._fast)
        await clock.reach(take.responded or take.seen.at)
        headers = self._headers(take, session, asked)
        if take.beats is None:
            await self._whole(take, asked, rewriting, headers, clock, out)
        elif take.key[0] == "stream" and live is not None:
            await out.head(take.status or 200, headers, None)
            try:
                await self._open_stream(take, live, asked, clock, out)
            finally:
                if live.session.scene.http_sse:  # the stream is the session
                    self._end(live)
        else:
            await out.head(take.status or 200, headers, None)
            await self._roll(take, take.beats, clock, rewriting, live, out.data)
            await self._close(take, clock, live, out)
        if take.key == ("delete",) and live is not None and take.status is not None and take.status < 300:
            self._end(live)

    async def _whole(
        self, take: Take, asked: Asked, rewriting: Rewriting, headers: Headers, clock: "_Clock", out: Outlet
    ) -> None:
        body = rewriting.body(take.answer or b"")
        if take.exchange is not None and take.exchange.kind == "oauth":
            body = with_origin(body, _origins(take), asked.origin)
        await clock.reach(take.ended or take.seen.at)
        await out.head(take.status or 200, headers, len(body))
        if body and take.seen.http_method != "HEAD":
            await out.data(body)
        await out.end()

    async def _close(self, take: Take, clock: "_Clock", live: _Live | None, out: Outlet) -> None:
        """End a stream as it was ended: by the server then, or by the client now."""
        answered = take.is_call and take.result is not None
        if take.ended_by == "complete" or (answered and take.ended_by != "server"):
            if take.ended is not None and not answered:
                await clock.reach(take.ended)
            await out.end()
        elif take.ended_by == "server":
            await clock.reach(take.ended or take.seen.at)
            out.cut()
        else:
            await _over(live)
            await out.end()

    async def _open_stream(self, take: Take, live: _Live, asked: Asked, clock: "_Clock", out: Outlet) -> None:
        """A stream that a legacy client keeps open: its own events by their times, those that requests bring when they come."""
        async with asyncio.TaskGroup() as tasks:
            own = [beat for beat in take.beats or () if beat.cause is None or take.key[1] is not None]
            if take.key[1] is None:
                first = own[0] if own and own[0].event.event == "endpoint" else None
                if first is not None:
                    own = own[1:]
                    await out.data(self._announce(first, live, asked))
                fresh = [beat for beat in own if beat not in live.sent]
                live.sent.update(fresh)
                passing = tasks.create_task(self._pass_on(live, out))
            else:
                fresh, passing = own, None
            await self._roll(take, fresh, clock, live.session.rewriting, live, out.data)
            await self._until_closed(take, live, clock)
            if passing is not None:
                passing.cancel()
        while passing is not None and not live.queue.empty():
            await out.data(live.queue.get_nowait())
        await out.end()

    async def _pass_on(self, live: _Live, out: Outlet) -> None:
        while True:
            await out.data(await live.queue.get())

    async def _until_closed(self, take: Take, live: _Live, clock: "_Clock") -> None:
        """Where the recording's server closed the stream: not before its client has asked all that it had asked by then."""
        scene = live.session.scene
        deleted = any(other.key == ("delete",) for other in scene.takes)
        if take.ended_by not in ("complete", "server") or take.ended is None or (deleted and take.key[1] is None):
            await _over(live)
            return
        before = {other for other in scene.takes if other.is_call and other.seen.started < take.ended}
        while take.key[1] is None and not (before <= live.performed and not live.groups) and not live.over.is_set():
            live.stirred.clear()
            await _first(live.stirred.wait(), live.over.wait())
        await clock.reach(take.ended)

    def _announce(self, beat: Beat, live: _Live, asked: Asked) -> bytes:
        """The `endpoint` event of HTTP+SSE: an address to post to that is this session's alone."""
        parts = urlsplit(beat.event.data)
        query = parse_qsl(parts.query, keep_blank_values=True) or [("session_id", "")]
        query[-1] = (query[-1][0], uuid.uuid4().hex)
        target = urlunsplit(("", "", parts.path, urlencode(query), ""))
        if not target.startswith("/"):
            target = asked.path.rpartition("/")[0] + "/" + target
        live.session.post_target = target
        self.cast.posting[target] = live.session
        written = target if not parts.scheme else asked.origin + target
        return with_data(beat.block, written)

    # Legacy sessions

    def _of(self, session: Session) -> _Live:
        live = self._live.get(session)
        if live is None:
            live = self._live[session] = _Live(session)
            if len(self._live) > SESSIONS:
                self._end(next(iter(self._live.values())))
        return live

    def _end(self, live: _Live) -> None:
        live.over.set()
        for task in live.groups:
            task.cancel()
        self.cast.end(live.session)
        self._live.pop(live.session, None)

    def _bring(self, take: Take, live: _Live, arrived: float) -> None:
        """A request was made: what it brought on the session's open stream begins."""
        live.performed.add(take)
        live.stirred.set()
        beats = live.session.scene.caused.get(take)
        if not beats:
            return
        rewriting = Rewriting(dict(live.session.rewriting.ids), dict(live.session.rewriting.tokens))
        clock = _Clock(arrived, take.seen.at, self._fast)
        task = asyncio.create_task(self._roll(take, beats, clock, rewriting, live, live.put))
        live.groups.add(task)

        def done(task: asyncio.Task[None]) -> None:
            live.groups.discard(task)
            live.stirred.set()

        task.add_done_callback(done)

    async def _roll(
        self, take: Take, beats: Sequence[Beat], clock: "_Clock", rewriting: Rewriting, live: _Live | None, emit: Emit
    ) -> None:
        """Send events at their times; after a question, wait until the client has answered it."""
        todo = list(beats)
        while todo:
            beat = todo.pop(0)
            await clock.reach(beat.at)
            block = rewriting.block(beat.block, beat.event.data) if beat.messages else beat.block
            question = next((m for m in beat.messages if m.kind == "request"), None)
            if question is not None and live is not None:
                live.asked.add(jsonrpc.id_key(question.id))
            if block is not None:
                await emit(block)
            if question is not None and live is not None and beat.reply is not None:
                answer = await self._answered(live, jsonrpc.id_key(question.id))
                reply, todo = _course(take, beat, todo, answer, self.cast.like(take))
                clock.restart(reply.seen.at)

    async def _answered(self, live: _Live, key: Hashable) -> jsonrpc.Message:
        async with live.posted:
            await live.posted.wait_for(lambda: key in live.session.answers)
            live.asked.discard(key)
            return live.session.answers.pop(key)

    async def _posted(self, asked: Asked, out: Outlet) -> None:
        """The client answers a question."""
        live = self._waiting_for(asked)
        assert asked.first is not None
        key = jsonrpc.id_key(asked.first.id)
        async with live.posted:
            live.session.answers[key] = asked.first
            live.posted.notify_all()
        await out.head(202, [], 0)
        await out.end()

    def _waiting_for(self, asked: Asked) -> _Live:
        """The session in which that question was asked."""
        assert asked.first is not None
        key = jsonrpc.id_key(asked.first.id)
        session = self.cast.session_of(asked, self.script.takes)
        lives = [self._of(session)] if session is not None else list(self._live.values())
        for live in reversed(lives):
            if key in live.asked:
                return live
        raise Missing(400, -32600, f"no question with the id {jsonrpc.dumps(asked.first.id, most=60)} is open", (), str(asked))

    def _headers(self, take: Take, session: Session | None, asked: Asked) -> Headers:
        recorded = _origins(take)
        headers: Headers = []
        for name, value in take.answer_fields.raw:
            lower = name.lower()
            if lower in _NOT_PASSED_ON:
                continue
            if lower == b"www-authenticate":
                value = with_origin(value, recorded, asked.origin)
            elif lower == b"location":
                query = dict(parse_qsl(asked.target.partition("?")[2], keep_blank_values=True))
                value = sent_back(value.decode("latin-1"), query, recorded, asked.origin).encode("latin-1")
            headers.append((name, value))
        if take.answer_fields.has("mcp-session-id") and session is not None and session.id:
            headers.append((b"Mcp-Session-Id", session.id.encode()))
        return headers

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class _Clock:
    """Recorded times in the time of now: `then` was when it is `now`."""

    def __init__(self, now: float, then: float, fast: bool) -> None:
        self._now, self._then, self._fast = now, then, fast

    async def reach(self, then: float) -> None:
        if self._fast:
            return
        wait = self._now + (then - self._then) - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)

    def restart(self, then: float) -> None:
        self._now, self._then = asyncio.get_running_loop().time(), then


def _course(take: Take, beat: Beat, todo: list[Beat], answer: jsonrpc.Message, others: Sequence[Take]) -> tuple[Take, list[Beat]]:
    """How it goes on after an answer: as recorded, or, where the answer is another one, as a take like this one went on after
    that answer."""
    assert beat.reply is not None
    if beat not in (take.beats or ()) or _said(beat.reply.first) == _said(answer):
        return beat.reply, todo
    place = (take.beats or []).index(beat)
    for other in others:
        beats = other.beats or []
        if place < len(beats) and (reply := beats[place].reply) is not None and _said(reply.first) == _said(answer):
            return reply, beats[place + 1 :]
    return beat.reply, todo


def _said(message: jsonrpc.Message | None) -> str:
    if message is None:
        return ""
    return canonical(message.result if message.kind == "result" else message.error)


def _origins(take: Take) -> list[str]:
    authorities = [take.origin.partition("://")[2]]
    if take.seen.authority:
        authorities.append(take.seen.authority)
    return origins_of(take.seen.scheme, authorities)


async def _over(live: _Live | None) -> None:
    """Until the session is over; without one, until the client goes and this is cancelled."""
    await (live.over if live is not None else asyncio.Event()).wait()


async def _first(*waits: Awaitable[Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _refuse(asked: Asked, missing: Missing, out: Outlet) -> None:
    """The JSON-RPC error for what is not in the recording."""
    first = asked.first
    error = {"code": missing.code, "message": f"mcp-wiretap replay: {missing.message}", "data": missing.data}
    value = {"jsonrpc": "2.0", "id": first.id if first is not None and first.kind == "request" else None, "error": error}
    body = jsonrpc.dumps(value).encode("utf-8", "backslashreplace")
    await out.head(missing.status, [(b"Content-Type", b"application/json")], len(body))
    if asked.http_method != "HEAD":
        await out.data(body)
    await out.end()
