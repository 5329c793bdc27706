"""Servers for tests, in process: the application of a config, and a caller that needs no socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from test_servers.compose import compose
from test_servers.config import parse
from test_servers.http import build
from test_servers.raw import RawClient


@asynccontextmanager
async def serve(modern: Any = True, **config: Any) -> AsyncIterator[RawClient]:
    """Serve a config in process; gives a caller of it that declares form elicitation."""
    transport = {"type": "streamable-http", "modern": modern}
    data = {"serverInfo": {"name": "test", "version": "1"}, "transport": transport, **config}
    server = compose(parse(data, "test"))
    built = build(server, 8000)
    async with server.session_manager.run():
        yield RawClient(
            f"http://127.0.0.1:8000{built.path}",
            transport=httpx2.ASGITransport(built.app),
            capabilities={"elicitation": {}},
        )


def preset(name: str, **params: Any) -> dict[str, Any]:
    """One use of a preset in a config."""
    return {"preset": name, "params": params}
