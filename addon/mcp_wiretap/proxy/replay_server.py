"""A recorded server behind the proxy (`mcp_replay`): requests go to an HTTP server of our own instead of upstream.

mitmproxy can only send at once what an addon answers by itself; our server keeps the recording's pace and its open streams.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitmproxy import ctx, exceptions
from mitmproxy.connection import Server as ServerConnection
from mitmproxy.http import Headers, HTTPFlow, Response
from mitmproxy.log import ALERT

from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.replay.cast import Asked
from mcp_wiretap.replay.player import Player
from mcp_wiretap.replay.script import Script, build, origin
from mcp_wiretap.replay.server import ORIGIN, Server, listening
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.secret import shown

logger = logging.getLogger(__name__)

OPTIONS = frozenset({"mcp_replay", "mcp_replay_timing", "mcp_replay_missing"})
TIMINGS, WHEN_MISSING = ("recorded", "fast"), ("error", "forward")
LISTED = 5  # problems of a recording that are said one by one


class Unplayable(ValueError):
    """There is nothing to replay in a file. The message says why."""


def script_of(path: Path, book: RuleBook | None = None) -> tuple[Script, list[str]]:
    """What a recording says, and what in it cannot be replayed. Unplayable, or OSError where it cannot be read at all."""
    if path.is_dir():
        raise Unplayable(f"{path} is a directory; name a recording in it")
    recording = Recording(path)
    script = build(recording.events(), book)
    if not script.mcp:
        if recording.damage:
            why = f": {recording.damage}"
        elif script.problems:
            why = f": {script.problems[0]}"
        else:
            why = (
                f"; it has {recording.flows} HTTP flow{'s' if recording.flows > 1 else ''}"
                if recording.flows
                else "; it is empty"
            )
        raise Unplayable(f"{path} has no MCP exchange that could be replayed{why}")
    return script, list(_troubles(path, recording.damage, script.problems))


def _troubles(path: Path, damage: str | None, problems: list[str]) -> Iterator[str]:
    if damage is not None:
        yield f"{path}: {damage}; what comes before is replayed"
    for problem in problems[:LISTED]:
        yield f"{path}: not replayed: {problem}"
    if len(problems) > LISTED:
        yield f"{path}: and {len(problems) - LISTED} more that cannot be replayed"


@dataclass(frozen=True)
class Wanted:
    """The options of one moment."""

    path: str
    fast: bool
    forward: bool

    @classmethod
    def read(cls, options: Any) -> "Wanted":
        for name, allowed in (("mcp_replay_timing", TIMINGS), ("mcp_replay_missing", WHEN_MISSING)):
            value = getattr(options, name)
            if value not in allowed:
                raise exceptions.OptionsError(f"{name}: {value!r} is not {' or '.join(allowed)}")
        return cls(options.mcp_replay, options.mcp_replay_timing == "fast", options.mcp_replay_missing == "forward")


@dataclass
class _Way:
    """Where a request was to go before it was sent to our server."""

    host: str
    port: int
    scheme: bytes


class Replaying:
    """Routes live requests to the recorded server. `OptionsError` at once for a recording that cannot be replayed."""

    def __init__(self, wanted: Wanted, faults: Faults) -> None:
        self.wanted = wanted
        self._faults = faults
        try:
            script, troubles = script_of(Path(wanted.path).expanduser())
        except (OSError, Unplayable) as error:
            said = f"{wanted.path} cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise exceptions.OptionsError(f"mcp_replay: {said}") from error
        for trouble in troubles:
            logger.warning("mcp_replay: %s", trouble)
        self._player = Player(script, fast=wanted.fast)
        self._player.tell = lambda text: logger.log(ALERT, "mcp_replay: %s", shown(text, 1_000))
        self._server = Server(self._player, listening("127.0.0.1", 0), lambda error: faults.note("replay", error))
        self._started: asyncio.Task[None] | None = None
        self._ways: dict[str, _Way] = {}
        self.start()

    def start(self) -> None:
        """Serve; until there is an event loop, who connects waits."""
        if self._started is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            self._started = loop.create_task(self._server.start())

    def stop(self) -> None:
        if self._started is not None and not self._started.get_loop().is_closed():
            self._closing = self._started.get_loop().create_task(self._server.close())

    def request(self, flow: HTTPFlow) -> None:
        """Send a request to the recording's server. Nothing is forwarded that was not asked to be: not even after a fault."""
        if flow.response is not None or flow.error is not None:
            return
        try:
            self._route(flow)
        except Exception as error:
            self._faults.note("replay", error, flow.id)
            flow.response = _failed(error)

    def _route(self, flow: HTTPFlow) -> None:
        data = flow.request.data
        known = origin(flow.request.scheme, data.host, data.port)
        if self.wanted.forward and not self._player.knows(_asked(flow, known)):
            asked = shown(f"{flow.request.method} {flow.request.pretty_url}", 1_000)
            logger.log(ALERT, "mcp_replay: not in the recording, forwarded: %s", asked)
            return
        self._ways[flow.id] = _Way(data.host, data.port, data.scheme)
        flow.request.headers[ORIGIN.decode()] = known
        flow.metadata["mcp.replay"] = Path(self.wanted.path).name
        # Not by the setters of host and port: they rewrite the Host header, which is the client's.
        data.host, data.port = self._server.address
        data.scheme = b"http"
        if flow.server_conn.via is not None:
            flow.server_conn = ServerConnection(address=self._server.address)

    def answered(self, flow: HTTPFlow) -> None:
        """The way to our server is nobody's business: the flow says where the client's request was to go."""
        way = self._ways.get(flow.id)
        if way is not None:
            data = flow.request.data
            data.host, data.port, data.scheme = way.host, way.port, way.scheme
            flow.request.headers.pop(ORIGIN.decode(), None)

    def over(self, flow: HTTPFlow) -> None:
        """The same for the connection that the flow names: where it went tells a later reader the endpoint."""
        self.answered(flow)
        way = self._ways.pop(flow.id, None)
        if way is not None:
            shown = ServerConnection.from_state(flow.server_conn.get_state())
            shown.address = (way.host, way.port)
            flow.server_conn = shown


def _asked(flow: HTTPFlow, known: str) -> Asked:
    request = flow.request
    return Asked(
        request.method, request.path, Fields(request.data.headers.fields), request.content or b"", flow.client_conn.id, known
    )


def _failed(error: Exception) -> Response:
    value = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32603, "message": f"mcp-wiretap replay: fault ({type(error).__name__}); nothing was forwarded"},
    }
    return Response.make(500, jsonrpc.dumps(value), Headers(content_type="application/json"))


def use_lazily() -> None:
    """With its default strategy mitmproxy connects to the server before any hook runs: there may be none."""
    if ctx.options.connection_strategy != "lazy":
        ctx.options.update(connection_strategy="lazy")
