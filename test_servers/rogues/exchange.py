"""One HTTP exchange as a fault sees it: what was asked, what the honest server answers, and a way to send anything else.

Knows JSON-RPC and SSE as far as finding the answer in a body takes; judges nothing.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from test_servers.asgi import decoded, peek_body

NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ANSWER = "$answer"
"""Stands for the honest answer in a script."""


class Cut(ConnectionError):
    """Raised into the HTTP server after the answer has begun, which then drops the connection."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the server; `message` is its JSON-RPC message, empty where there is none."""

    http_method: str
    message: dict[str, Any]

    @property
    def method(self) -> str:
        """The JSON-RPC method; of a request without one the HTTP method."""
        return str(self.message.get("method", self.http_method))

    @property
    def params(self) -> dict[str, Any]:
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def name(self) -> str | None:
        """What is called, got or read."""
        name = self.params.get(NAMES.get(self.method, ""))
        return name if isinstance(name, str) else None

    def filled(self, value: Any) -> Any:
        """`value` with "$id", "$token" and "$name" replaced by those of this request, at any depth."""
        if isinstance(value, dict):
            return {key: self.filled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.filled(part) for part in value]
        match value:
            case "$id":
                return self.message.get("id")
            case "$token":
                return self.params.get("_meta", {}).get("progressToken")
            case "$name":
                return self.name
            case _:
                return value


async def asked_of(scope: Scope, receive: Receive) -> tuple[Asked, Receive]:
    """What a request asks, and a `receive` that gives its body again."""
    body, receive = await peek_body(receive)
    message = decoded(body)
    return Asked(scope["method"], message if isinstance(message, dict) else {}), receive


@dataclass
class Honest:
    """The honest server's whole answer."""

    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    @property
    def is_stream(self) -> bool:
        return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in self.headers)

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC answer: the body, or the last event of a stream."""
        events = self.events()
        message = events[-1] if events else decoded(self.body)
        return message if isinstance(message, dict) else {}

    def events(self) -> list[Any]:
        """The messages of a stream."""
        if not self.is_stream:
            return []
        lines = self.body.decode().splitlines()
        return [decoded(line[5:].encode()) for line in lines if line.startswith("data:") and line[5:].strip()]


async def honest_answer(app: ASGIApp, scope: Scope, receive: Receive) -> Honest:
    """Let the honest server answer, unsent."""
    told = Honest()

    async def keep(message: Message) -> None:
        if message["type"] == "http.response.start":
            told.status, told.headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            told.body += message.get("body", b"")

    await app(scope, receive, keep)
    return told


@dataclass
class Out:
    """The way back to the client, for answers of any shape."""

    send: Send
    receive: Receive

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def close(self) -> None:
        await self.send({"type": "http.response.body", "body": b""})

    async def stay(self) -> None:
        """Hold the stream until the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            await asyncio.sleep(0)

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        length = (b"content-length", str(len(body)).encode())
        kept = [line for line in headers if line[0] != b"content-length"]
        await self.start(status, [*kept, length])
        await self.send({"type": "http.response.body", "body": body})


def changed_headers(headers: list[tuple[bytes, bytes]], changes: Mapping[str, str | None]) -> list[tuple[bytes, bytes]]:
    """`headers` with some set, and those of value None left out."""
    touched = {name.lower().encode() for name in changes}
    kept = [line for line in headers if line[0].lower() not in touched]
    return kept + [(name.lower().encode(), text.encode("latin-1")) for name, text in changes.items() if text is not None]


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396: `target` with `patch` laid over it; null takes a member away."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def encoded(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def event(message: Any) -> bytes:
    """One SSE event. A string is the event's text as it is, line feeds included."""
    return message.encode() if isinstance(message, str) else b"event: message\ndata: " + encoded(message) + b"\n\n"
