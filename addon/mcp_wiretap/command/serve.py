"""`mcp-wiretap serve FILE`: a recorded server answers live clients."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from mcp_wiretap.command import Refused, tracing
from mcp_wiretap.proxy.replaying import Unplayable, script_of
from mcp_wiretap.replay.player import Player
from mcp_wiretap.replay.script import Script
from mcp_wiretap.replay.server import Server, listening
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.wire.secret import one_line


def run(arguments: argparse.Namespace) -> int:
    script = read(arguments.file)
    player = Player(script, fast=arguments.timing == "fast", endpoint=_endpoint(script, arguments.endpoint))
    player.tell = lambda text: _say(one_line(text, 1_000))
    try:
        sock = listening(arguments.host, arguments.port)
    except OSError as error:
        raise Refused(f"--port {arguments.port}: nothing can listen on {arguments.host} there: {error.strerror}") from None
    return asyncio.run(_serve(Server(player, sock, _fault), script))


def read(path: str, book: RuleBook | None = None) -> Script:
    """The script of a recording; what cannot be replayed is said on stderr. Refused where there is nothing to replay."""
    tracing.check_readable(path)
    try:
        script, troubles = script_of(Path(path), book)
    except Unplayable as error:
        raise Refused(str(error)) from None
    for trouble in troubles:
        _say(trouble)
    return script


def _endpoint(script: Script, wanted: str | None) -> str | None:
    if wanted is None:
        return None
    fitting = [url for url in script.endpoints if url == wanted or url.partition("://")[2] == wanted]
    if not fitting:
        raise Refused(f"--endpoint {wanted} is not in the recording; it has {', '.join(script.endpoints)}")
    return fitting[0]


async def _serve(server: Server, script: Script) -> int:
    await server.start()
    host, port = server.address
    shown = f"[{host}]" if ":" in host else host
    paths = dict.fromkeys(url.split("/", 3)[3] for url in script.endpoints)
    for path in paths:
        print(f"http://{shown}:{port}/{path}", flush=True)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    await over.wait()
    await server.close()
    return 0


def _fault(error: Exception) -> None:
    _say(f"fault while answering: {error!r}")


def _say(text: str) -> None:
    print(f"mcp-wiretap: {text}", file=sys.stderr, flush=True)
