"""Recordings played in process: a server of ours on a port of its own, and requests to it by hand."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from mcp_wiretap.example import read_script
from mcp_wiretap.proxy.replay_server import script_of
from mcp_wiretap.replay.player import Player
from mcp_wiretap.replay.script import Script, build
from mcp_wiretap.replay.server import Server, listening

RECORDINGS = Path(__file__).parents[1] / "recordings"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "live", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def recorded(name: str) -> Script:
    """One of the recordings of the repository."""
    return script_of(RECORDINGS / f"{name}.flow")[0]


def written(text: str) -> Script:
    """A recording in the notation of examples."""
    return build(read_script(text))


@contextlib.asynccontextmanager
async def playing(script: Script, *, fast: bool = True, endpoint: str | None = None) -> AsyncIterator[str]:
    """The origin at which a recording is played; a fault of ours fails the test."""
    faults: list[Exception] = []
    server = Server(Player(script, fast=fast, endpoint=endpoint), listening("127.0.0.1", 0), faults.append)
    await server.start()
    try:
        yield f"http://127.0.0.1:{server.address[1]}"
    finally:
        await server.close()
    assert faults == []


class Caller:
    """A client by hand."""

    def __init__(self, origin: str, path: str = "/mcp") -> None:
        self.url = origin + path
        self.http = httpx2.AsyncClient(trust_env=False, timeout=20)
        self.session: str | None = None

    async def __aenter__(self) -> "Caller":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.http.aclose()

    async def post(self, value: Any, **headers: str) -> httpx2.Response:
        named = {"accept": "application/json, text/event-stream", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.session is not None:
            named["mcp-session-id"] = self.session
        return await self.http.post(self.url, json=value, headers=named)

    async def modern(self, method: str, params: Any = None, *, id: Any = "live-1", meta: Any = None) -> httpx2.Response:
        """A request of the modern era."""
        asked = {**(params or {}), "_meta": {**META, **(meta or {})}}
        return await self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": asked}, mcp_method=method)

    async def call(self, name: str, arguments: Any, *, id: Any = "live-1", meta: Any = None, **params: Any) -> Any:
        """The answer to a modern tools/call."""
        response = await self.modern("tools/call", {"name": name, "arguments": arguments, **params}, id=id, meta=meta)
        return response.json()

    async def legacy(self, method: str, params: Any = None, *, id: Any = 41) -> httpx2.Response:
        return await self.post({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})})

    async def initialize(self) -> httpx2.Response:
        info = {"name": "live", "version": "1"}
        response = await self.legacy(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}, id=40
        )
        self.session = response.headers.get("mcp-session-id")
        return response


def events(text: str) -> list[Any]:
    """The JSON of each event of a stream."""
    blocks = text.replace("\r\n", "\n").split("\n\n")
    data = ["\n".join(line[5:].strip() for line in block.split("\n") if line.startswith("data:")) for block in blocks]
    return [json.loads(one) for one in data if one]
