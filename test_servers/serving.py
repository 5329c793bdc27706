"""Sockets, uvicorn and signals: from built applications to URLs. Knows no MCP but how to say goodbye to listeners."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import uvicorn

from test_servers.compose import ComposedServer, compose
from test_servers.config import Config
from test_servers.http import build

HOST = "127.0.0.1"
GRACE_SECONDS = 1
"""How long open streams may take to end after a signal; long-lived ones are cut then."""


class PortTaken(Exception):
    """The demanded port is in use."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers at `url`."""

    server: ComposedServer
    url: str


def bind(port: int, *, exact: bool) -> socket.socket:
    """A bound socket on loopback: `port`, or the next free one above it unless `exact`; 0 is any free port.

    Raises:
        PortTaken: `exact` and the port is in use, or no port above is free.
    """
    for candidate in [port] if exact or port == 0 else range(port, min(port + 1000, 65536)):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # So that a port just left by a stopped server can be used at once; a live listener still makes bind fail.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, candidate))
            sock.listen()
            return sock
        except OSError:
            sock.close()
    raise PortTaken(f"port {port} of {HOST} is in use; stop what uses it, or choose another")


def bind_all(wanted: Sequence[tuple[int, bool]]) -> list[socket.socket]:
    """A socket for each (port, exact), or none at all.

    Raises:
        PortTaken: see `bind`.
    """
    sockets: list[socket.socket] = []
    try:
        for port, exact in wanted:
            sockets.append(bind(port, exact=exact))
    except PortTaken:
        for sock in sockets:
            sock.close()
        raise
    return sockets


class _Quiet(uvicorn.Server):
    """uvicorn without its own signal handlers: several servers share one process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def running(configs: Sequence[Config], sockets: Sequence[socket.socket]) -> AsyncIterator[list[Running]]:
    """Serve each config on its socket until the block is left; the URLs answer when the block begins."""
    servers, uvicorns, listed = [], [], []
    for config, sock in zip(configs, sockets, strict=True):
        port = sock.getsockname()[1]
        server = compose(config)
        built = build(server, port)
        settings = uvicorn.Config(
            built.app, log_level="critical", access_log=False, lifespan="auto", timeout_graceful_shutdown=GRACE_SECONDS
        )
        servers.append(server)
        uvicorns.append(_Quiet(settings))
        listed.append(Running(server, f"http://{HOST}:{port}{built.path}"))
    jobs = [asyncio.create_task(u.serve(sockets=[s])) for u, s in zip(uvicorns, sockets, strict=True)]
    try:
        while not all(u.started or job.done() for u, job in zip(uvicorns, jobs, strict=True)):
            await asyncio.sleep(0.005)
        yield listed
    finally:
        for server in servers:
            # The graceful end of subscriptions/listen: each stream gets its result before it closes.
            server.world.listen.close()
            for job in list(server.world.background):
                job.cancel()
        await asyncio.sleep(0.05)
        for u in uvicorns:
            u.should_exit = True
        await asyncio.gather(*jobs)


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
