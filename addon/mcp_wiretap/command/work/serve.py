"""`mcp-wiretap serve FILE`: a recorded server answers live clients."""

import argparse
import asyncio
import signal
import socket
from pathlib import Path

from mcp_wiretap.command import Refused, tracing
from mcp_wiretap.command.output import say
from mcp_wiretap.proxy.replay_server import Unplayable, script_of
from mcp_wiretap.replay import stdio_server
from mcp_wiretap.replay.player import Player
from mcp_wiretap.replay.script import Script
from mcp_wiretap.replay.server import Server, listening
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.wire.secret import concealed, visible

MOST_TRIED = 100  # ports after the first


def run(arguments: argparse.Namespace) -> int:
    script = read(arguments.file)
    if arguments.stdio:
        return _on_stdio(script, _endpoint(script, arguments.endpoint), fast=arguments.timing == "fast")
    parts = _parts(script, _endpoint(script, arguments.endpoint))
    sockets = _sockets(arguments.host, arguments.port, len(parts))
    servers = []
    for part, sock in zip(parts, sockets, strict=True):
        player = Player(script, fast=arguments.timing == "fast", endpoint=part)
        player.tell = lambda text: say(concealed(text[:1_000]))
        servers.append((Server(player, sock, _fault), part))
    return asyncio.run(_serve(servers, script))


def _on_stdio(script: Script, wanted: str | None, *, fast: bool) -> int:
    """One recorded server, on this process's own input and output."""
    if wanted is None and len(script.endpoints) > 1:
        raise Refused(f"the recording has several servers, choose one with --endpoint: {', '.join(script.endpoints)}")
    endpoint = wanted or script.endpoints[0]
    player = Player(script, fast=fast, endpoint=endpoint)
    player.tell = lambda text: say(text[:1_000])
    asyncio.run(stdio_server.serve(player, endpoint))
    return 0


def _parts(script: Script, wanted: str | None) -> list[str | None]:
    """What each port plays: everything (None), or an endpoint of each recorded server where some have the same path."""
    if wanted is not None:
        return [wanted]
    paths = [_path(url) for url in script.endpoints]
    if len(paths) == len(set(paths)):
        return [None]
    first = {_origin(url): url for url in reversed(script.endpoints)}
    return [url for url in script.endpoints if url in first.values()]


def _sockets(host: str, port: int, number: int) -> list[socket.socket]:
    """The first on the port, each other one on the next that is free."""
    found: list[socket.socket] = []
    wanted = port
    while len(found) < number:
        try:
            found.append(listening(host, wanted))
        except (OSError, OverflowError) as error:
            if not found or wanted >= port + MOST_TRIED:
                for sock in found:
                    sock.close()
                said = error.strerror if isinstance(error, OSError) else "there is no such port"
                raise Refused(f"--port {wanted}: nothing can listen on {host} there: {said}") from None
        wanted = wanted + 1 if port else 0
    return found


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _path(url: str) -> str:
    return url.split("/", 3)[3]


def read(path: str, book: RuleBook | None = None) -> Script:
    """The script of a recording; what cannot be replayed is said on stderr. Refused where there is nothing to replay."""
    tracing.check_readable(path)
    try:
        script, troubles = script_of(Path(path), book)
    except Unplayable as error:
        raise Refused(str(error)) from None
    for trouble in troubles:
        say(trouble)
    return script


def _endpoint(script: Script, wanted: str | None) -> str | None:
    if wanted is None:
        return None
    fitting = [url for url in script.endpoints if url == wanted or url.partition("://")[2] == wanted]
    if not fitting:
        raise Refused(f"--endpoint {wanted} is not in the recording; it has {', '.join(script.endpoints)}")
    return fitting[0]


async def _serve(servers: list[tuple[Server, str | None]], script: Script) -> int:
    for server, part in servers:
        await server.start()
        host, port = server.address
        shown = f"[{host}]" if ":" in host else host
        urls = [url for url in script.endpoints if part is None or _origin(url) == _origin(part)]
        for path in dict.fromkeys(map(_path, urls)):
            recorded = f"   (recorded at {_origin(urls[0])}/{path})" if len(servers) > 1 else ""
            print(visible(f"http://{shown}:{port}/{path}{recorded}"), flush=True)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    await over.wait()
    for server, _ in servers:
        await server.close()
    return 0


def _fault(error: Exception) -> None:
    say(f"fault while answering: {error!r}")
