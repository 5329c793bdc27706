"""What is asked of the rogue servers: right requests by hand, because an SDK's client would stop at the first fault.

A few are wrong on purpose, where the fault is in how the server takes that.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import httpx2

from test_servers.raw import Headers, RawClient, Reply
from test_servers.scenarios.base import Target, scenario
from test_servers.steps import Scenario

FORM: dict[str, Any] = {"elicitation": {"form": {}}}
ALL: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; `seconds` is when the client leaves an answer that does not end."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    capabilities: dict[str, Any] | None = None
    seconds: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """As `RawClient.call` takes them."""

    @property
    def title(self) -> str:
        return " ".join([self.method, *(str(self.params[key]) for key in ("name", "uri", "taskId") if key in self.params)])


def ask(
    method: str,
    params: dict[str, Any] | None = None,
    capabilities: dict[str, Any] | None = None,
    seconds: float | None = None,
    **options: Any,
) -> Ask:
    return Ask(method, params or {}, capabilities, seconds, options)


def call(name: str, arguments: dict[str, Any] | None = None, **more: Any) -> Ask:
    """A tools/call; `token`, `state` and `responses` go to their places in params."""
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
    for key, place in (("state", "requestState"), ("responses", "inputResponses")):
        if key in more:
            params[place] = more.pop(key)
    if "token" in more:
        params["_meta"] = {"progressToken": more.pop("token")}
    return ask("tools/call", params, **more)


def tour(name: str, *asks: Ask) -> None:
    """Declare a scenario that sends `asks` one after the other, whatever comes back."""

    @scenario(name)
    async def run(target: Target, steps: Scenario) -> None:
        client = RawClient(target.url)
        for asked in asks:
            await steps.step(asked.title, lambda asked=asked: _sent(client, asked))  # type: ignore[misc]


async def _sent(client: RawClient, asked: Ask) -> str:
    client.capabilities = asked.capabilities or {}
    return await told(client.call(asked.method, asked.params, **asked.options), asked.seconds)


async def told(answer: Any, seconds: float | None = None) -> str:
    """How a request ended, in a word or two; an answer that breaks off or does not end is an end as well."""
    try:
        async with asyncio.timeout(seconds):
            reply: Reply = await answer
    except TimeoutError:
        return f"left after {seconds} s"
    except httpx2.RemoteProtocolError:
        return "broken off"
    return f"HTTP {reply.status}" + (f", error {reply.code}" if reply.code is not None else "")


@dataclass
class LegacyCaller:
    """A client of the handshake era by hand: in a session, or not."""

    url: str
    version: str = "2025-11-25"
    session: str | None = None
    next_id: int = 1

    def headers(self) -> Headers:
        lines = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        if self.session is not None:
            lines.append(("mcp-session-id", self.session))
        return lines

    async def initialize(self, capabilities: dict[str, Any] | None = None) -> Reply:
        """Shake hands; the session id of the answer is used from then on."""
        client = {"name": "raw-client", "version": "1.0.0"}
        params = {"protocolVersion": self.version, "capabilities": capabilities or {}, "clientInfo": client}
        self.session = None
        reply = await self.post("initialize", params, before=True)
        self.session = reply.headers.get("mcp-session-id")
        await self.post("notifications/initialized", None, request=False)
        return reply

    async def post(self, method: str, params: dict[str, Any] | None, *, request: bool = True, before: bool = False) -> Reply:
        """Send a request or a notification."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if request:
            body["id"], self.next_id = self.next_id, self.next_id + 1
        if params is not None:
            body["params"] = params
        return await self.send(body, before=before)

    async def send(self, body: Any, *, before: bool = False) -> Reply:
        version: Headers = [] if before else [("mcp-protocol-version", self.version)]
        return await RawClient(self.url).send(json.dumps(body).encode(), [*self.headers(), *version])

    async def other(self, http_method: str, extra: Headers | None = None) -> Reply:
        """A GET or DELETE."""
        lines = [*self.headers(), ("mcp-protocol-version", self.version), *(extra or [])]
        return await RawClient(self.url).send(b"", lines, http_method=http_method)
