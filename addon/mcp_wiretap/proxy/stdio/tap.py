"""Wrappers of stdio servers heard by a running proxy: each exchange is taken through the hooks that HTTP traffic has.

requestheaders, request, responseheaders, the stream callable, response: as mitmproxy's HTTP layer does it. So the view, saving,
intercepting, the trace and every other addon work on it as they are. Nothing is in the way of the bytes: a wrapper that only
observes has passed them before it tells; one that asks (`--inline`) waits five seconds at most, unless somebody holds the line.
"""

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mitmproxy import ctx, hooks
from mitmproxy.connection import ConnectionState
from mitmproxy.flow import Error
from mitmproxy.http import HTTPFlow
from mitmproxy.proxy.layers.http._hooks import (
    HttpErrorHook,
    HttpRequestHeadersHook,
    HttpRequestHook,
    HttpResponseHeadersHook,
    HttpResponseHook,
)

from mcp_wiretap.proxy.capture import Capture
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.stdio import flows
from mcp_wiretap.stdio import address
from mcp_wiretap.stdio.frames import MOST_LINE, line_of
from mcp_wiretap.stdio.lines import Step
from mcp_wiretap.stdio.session import PROCESS, Session
from mcp_wiretap.wire.sse import SseParser

logger = logging.getLogger(__name__)

MOST_SESSIONS = 500  # wrappers at once: each costs an open file
MOST_FRAME = 8 * MOST_LINE  # bytes of a frame: each byte of a line may be written as \udcXX
MOST_HELLO = 1 << 20
SLICE = 0.005  # seconds of work between two looks at the network
REFRESH = 0.5  # seconds between two pictures of a growing stderr
BUSY = 2.0  # seconds between two tries for the socket, where another proxy has it
type Told = list[tuple[str, bytes]]


class Tap:
    """Listens for wrappers while mitmproxy runs."""

    def __init__(self, path: str, capture: Callable[[], Capture | None], faults: Faults) -> None:
        self._path = path or address.default()
        self._capture = capture
        self._faults = faults
        self._names: dict[str, list[str]] = {}  # name -> the command that has it
        self._sessions: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._token = ""
        self.warned: set[str] = set()

    def start(self) -> None:
        try:
            self._starting = asyncio.get_running_loop().create_task(self._listen())
        except RuntimeError:
            return  # mitmproxy does not run, it is only loaded

    def stop(self) -> None:
        """Hear nobody any more. Wrappers go on without us."""
        if self._starting is not None:
            self._starting.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None
            Path(address.plain(self._path)).unlink(missing_ok=True)
        for session in list(self._sessions):
            session.cancel()

    async def _listen(self) -> None:
        said = False
        while True:
            try:
                if not await self._taken():
                    await self._bind()
                    return
            except OSError as error:
                logger.warning(f"stdio servers are not seen: {address.plain(self._path)}: {error.strerror or error}")
                return
            if not said:
                logger.info(f"stdio servers are seen by another proxy, which has {address.plain(self._path)}")
                said = True
            await asyncio.sleep(BUSY)

    async def _taken(self) -> bool:
        """Whether another proxy listens there. What a proxy that was killed left behind is removed."""
        file = Path(address.plain(self._path))
        if not file.exists() and not file.is_symlink():
            return False
        try:
            made = await asyncio.to_thread(address.connect, self._path, 0.5)
        except address.NotOurs:
            raise
        except OSError:
            file.unlink(missing_ok=True)
            return False
        made.close()
        return True

    async def _bind(self) -> None:
        file = Path(address.plain(self._path))
        if address.has_unix(self._path):
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._heard, file, limit=MOST_FRAME)
            finally:
                os.umask(before)
        else:
            self._token = secrets.token_hex(32)
            self._server = await asyncio.start_server(self._heard, "127.0.0.1", 0, limit=MOST_FRAME)
            port = self._server.sockets[0].getsockname()[1]
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as writing:
                json.dump({"port": port, "token": self._token}, writing)
        logger.info(f"stdio servers are seen through {file}")

    async def _heard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        try:
            if len(self._sessions) <= MOST_SESSIONS and await self._is_ours(reader, writer):
                await self._follow(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        except Exception as error:
            self._faults.note("stdio session", error)
        finally:
            self._sessions.discard(task)
            writer.close()

    async def _is_ours(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the wrapper is the same user's."""
        if not self._token:
            address.check_peer(writer.get_extra_info("socket"))
            return True
        told = json.loads(await reader.readline())
        nonce = secrets.token_hex(16)
        writer.write(address.line({"proof": address.proof(self._token, "proxy", str(told["nonce"])), "nonce": nonce}))
        proof = json.loads(await reader.readline()).get("proof")
        return address.same(proof, address.proof(self._token, "wrapper", nonce))

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = await reader.readline()
        capture = self._capture()
        if not hello or capture is None:  # a look whether somebody listens
            return
        session = Session(json.loads(hello))
        live = Live(session, self._name(session), writer, capture, self)
        await live.begin()
        until = time.monotonic() + SLICE
        try:
            while line := await reader.readline():
                await live.take(json.loads(line))
                if time.monotonic() >= until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + SLICE
        finally:
            await live.end()

    def _name(self, session: Session) -> str:
        """The session's name; another one where a server of another command has it."""
        number, name = 1, session.name
        while self._names.setdefault(name, session.command) != session.command:
            number += 1
            name = f"{session.name}-{number}"
        while len(self._names) > 10 * MOST_SESSIONS:
            del self._names[next(iter(self._names))]
        return name

    def warn(self, what: str) -> None:
        """Say something once."""
        if what not in self.warned:
            self.warned.add(what)
            logger.warning(what)


class _Shown:
    """A flow of a session. The lock keeps its hooks in order where several lines are asked about at once."""

    def __init__(self, flow: HTTPFlow) -> None:
        self.flow = flow
        self.lock = asyncio.Lock()
        self.over = False


class Live:
    """One process, live."""

    def __init__(self, session: Session, name: str, writer: asyncio.StreamWriter, capture: Capture, tap: Tap) -> None:
        self._session = session
        self._connections = flows.Connections(name, session)
        self._writer = writer
        self._capture = capture
        self._tap = tap
        self._shown: dict[int, _Shown] = {}
        self._asked: set[asyncio.Task[None]] = set()
        self._stderr = bytearray()
        self._pictured = 0.0

    async def begin(self) -> None:
        for step in self._session.begin():
            await self._step(step)

    async def take(self, frame: dict[str, Any]) -> None:
        number = frame.get("n")
        if not isinstance(number, int):
            for step in self._session.take(frame):
                await self._step(step)
            return
        steps = list(self._session.take(frame))
        task = asyncio.get_running_loop().create_task(self._answer(number, str(frame["d"]), line_of(frame), steps))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def end(self) -> None:
        """The wrapper has gone, with a word or without."""
        for task in list(self._asked):
            task.cancel()
        for step in self._session.end(None if self._session.status is not None else time.time()):
            await self._step(step)
        self._connections.client.state = self._connections.server.state = ConnectionState.CLOSED
        self._connections.client.timestamp_end = self._session.last

    async def _answer(self, number: int, direction: str, line: bytes, steps: list[Step]) -> None:
        """Tell the wrapper what becomes of a line. Whatever goes wrong here: it passes as it was."""
        told: Told | None = [(direction, line)]
        try:
            for step in steps:
                instead = await self._step(step, asked=number)
                told = told if instead is None else instead
        except Exception as error:
            self._tap._faults.note("stdio line", error)
            told = None
        if told == [(direction, line)]:
            told = None
        lines = None if told is None else [(to, text.decode("utf-8", "surrogateescape")) for to, text in told]
        self._say({"n": number, "pass": lines})

    def _say(self, value: dict[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(address.line(value))

    async def _step(self, step: Step, asked: int = 0) -> Told | None:
        """Take a flow one step further. `asked`: the wrapper waits. Returns what passes instead of its line, or None."""
        if step.what == "open":
            shown = self._shown[step.key] = _Shown(flows.opened(self._connections, self._session, step, live=True))
        elif (found := self._shown.get(step.key)) is not None:
            shown = found
        else:
            return None
        async with shown.lock:
            if shown.over:
                return None
            if step.what == "open":
                return await self._opened(shown, step, asked)
            if step.what == "head":
                flows.answered(shown.flow, step, live=True)
                await self._hook(HttpResponseHeadersHook(shown.flow))
                return None
            if step.what == "event":
                return self._event(shown, step, asked)
            return await self._ended(shown, step, asked)

    async def _opened(self, shown: _Shown, step: Step, asked: int) -> Told | None:
        flow, sent = shown.flow, step.data
        await self._hook(HttpRequestHeadersHook(flow))
        await self._hook(HttpRequestHook(flow))
        if not asked or step.http_method != "POST":
            self._let_go(flow)
            if flow.request.raw_content != sent:
                flow.request.raw_content = sent  # what passed, and not what an addon made of it later
                self._tap.warn(_ONLY_OBSERVED.format(name=self._connections.name))
            if await self._is_killed(shown):
                self._tap.warn(_ONLY_OBSERVED.format(name=self._connections.name))
            return None
        await self._held(flow, asked)
        if await self._is_killed(shown):
            return []
        if flow.response is not None:
            await self._answered_here(shown)
            return [("s", line) for line in _lines(flow)]
        body = flow.request.raw_content or b""
        return None if body == sent else [("c", _one_line(body))]

    async def _answered_here(self, shown: _Shown) -> None:
        """An addon answers: the server is not asked."""
        flow = shown.flow
        assert flow.response is not None
        now = time.time()
        flow.response.timestamp_start = flow.response.timestamp_start or now
        flow.response.timestamp_end = now
        await self._hook(HttpResponseHeadersHook(flow))
        await self._hook(HttpResponseHook(flow))
        self._close(shown)

    def _event(self, shown: _Shown, step: Step, asked: int) -> Told | None:
        response = shown.flow.response
        assert response is not None
        if step.key == PROCESS:
            self._errors(shown, step)
            return None
        if not callable(response.stream):
            response.raw_content = (response.raw_content or b"") + step.data
            return None
        with self._capture.at(step.at):
            out = response.stream(step.data)
        passed = out if isinstance(out, bytes) else b"".join(out)
        if not asked or passed == step.data:
            return None
        return [("s", _one_line(event.data.encode())) for event in SseParser().feed(passed)]

    async def _ended(self, shown: _Shown, step: Step, asked: int) -> Told | None:
        flow = shown.flow
        flows.ended(flow, self._session, step)
        if flow.error is not None or flow.response is None:
            await self._hook(HttpErrorHook(flow))
            self._close(shown)
            return None
        sent = step.data
        if step.key == PROCESS:
            flow.response.raw_content = bytes(self._stderr)
        elif callable(flow.response.stream):
            with self._capture.at(step.at):
                flow.response.stream(b"")
        else:
            flow.response.raw_content = sent if sent or not step.key else flow.response.raw_content
        await self._hook(HttpResponseHook(flow))
        before = flow.response.raw_content
        if not asked:
            self._let_go(flow)
            if sent and before != sent:
                flow.response.raw_content = sent
                self._tap.warn(_ONLY_OBSERVED.format(name=self._connections.name))
            self._close(shown)
            return None
        await self._held(flow, asked)
        if flow.error is not None and flow.error.msg == Error.KILLED_MESSAGE:
            await self._is_killed(shown)
            return [] if flow.response.status_code != 202 else None
        after = flow.response.raw_content
        self._close(shown)
        if flow.response.status_code == 202 or (after == sent if sent else after == before):
            return None
        return [("s", line) for line in _lines(flow)[-1:]]

    def _errors(self, shown: _Shown, step: Step) -> None:
        """stderr: one growing text of the process, bounded."""
        response, limit = shown.flow.response, self._capture.limits.stream
        assert response is not None
        room = limit - len(self._stderr)
        self._stderr += step.data[: max(room, 0)]
        dropped = step.status + max(len(step.data) - max(room, 0), 0)
        if dropped:
            shown.flow.metadata["mcp.dropped"] = shown.flow.metadata.get("mcp.dropped", 0) + dropped
        self._capture.errors(shown.flow, step.at, step.data[: max(room, 0)])
        if time.monotonic() - self._pictured >= REFRESH:
            self._pictured = time.monotonic()
            response.raw_content = bytes(self._stderr)
            ctx.master.addons.trigger(hooks.UpdateHook([shown.flow]))

    async def _hook(self, hook: Any) -> None:
        await ctx.master.addons.handle_lifecycle(hook)

    def _let_go(self, flow: HTTPFlow) -> None:
        """What has passed already cannot be held."""
        if flow.intercepted:
            flow.resume()
            self._tap.warn(_ONLY_OBSERVED.format(name=self._connections.name))

    async def _held(self, flow: HTTPFlow, asked: int) -> None:
        if flow.intercepted:
            self._say({"n": asked, "held": True})
            await flow.wait_for_resume()

    async def _is_killed(self, shown: _Shown) -> bool:
        flow = shown.flow
        if flow.error is None or flow.error.msg != Error.KILLED_MESSAGE:
            return False
        await self._hook(HttpErrorHook(flow))
        self._close(shown)
        return True

    def _close(self, shown: _Shown) -> None:
        shown.over, shown.flow.live = True, False
        for key, one in list(self._shown.items()):
            if one is shown:
                del self._shown[key]


_ONLY_OBSERVED = (
    "{name} is a stdio server that is only observed: what is held, killed or changed here has passed already. Start its wrapper "
    "with --inline to have a say."
)


def _lines(flow: HTTPFlow) -> list[bytes]:
    """The lines that a response stands for."""
    assert flow.response is not None
    body = flow.response.raw_content or b""
    if flow.response.headers.get("content-type", "").startswith("text/event-stream"):
        return [_one_line(event.data.encode()) for event in SseParser().feed(body) if event.data]
    return [_one_line(body)] if body else []


def _one_line(body: bytes) -> bytes:
    """A message as one line: newlines of JSON stand between its tokens only."""
    return body.replace(b"\r\n", b" ").replace(b"\n", b" ").replace(b"\r", b" ")
