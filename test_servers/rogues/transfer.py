"""Faults, and lawful oddities, of the bytes that carry an answer: content codings, drips, session ids."""

import asyncio
import sys
import zlib
from collections.abc import Callable
from typing import Any, Literal

import brotli
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from test_servers.misbehaviours import Fault, fault
from test_servers.rogues.exchange import changed_headers

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Coding = Literal["gzip", "br", "zstd"]


class _Coder:
    """A stream coder of any of the codings, flushed after every piece, so that an event leaves when it is written."""

    def __init__(self, coding: Coding) -> None:
        self._feed: Callable[[bytes], bytes]
        self._flush: Callable[[], bytes]
        self._finish: Callable[[], bytes]
        coder: Any
        match coding:
            case "gzip":
                coder = zlib.compressobj(wbits=31)
                self._feed, self._flush = coder.compress, lambda: coder.flush(zlib.Z_SYNC_FLUSH)
                self._finish = coder.flush
            case "br":
                coder = brotli.Compressor()
                self._feed, self._flush, self._finish = coder.process, coder.flush, coder.finish
            case "zstd":
                coder = zstd.ZstdCompressor()
                self._feed, self._flush = coder.compress, lambda: coder.flush(coder.FLUSH_BLOCK)
                self._finish = coder.flush

    def code(self, piece: bytes, *, last: bool) -> bytes:
        return self._feed(piece) + (self._finish() if last else self._flush())


@fault("codings")
class Codings(Fault):
    """Encodes every answer, streams too, with the given codings in turn. That is lawful: clients offered them."""

    def __init__(self, codings: list[Coding]) -> None:
        self.codings = codings
        self.given = 0

    def on_app(self, app: ASGIApp) -> ASGIApp:
        async def encode(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            coding = self.codings[self.given % len(self.codings)]
            self.given += 1
            coder = _Coder(coding)

            async def coded(message: Message) -> None:
                if message["type"] == "http.response.start":
                    changes = {"content-encoding": coding, "content-length": None}
                    message = {**message, "headers": changed_headers(list(message["headers"]), changes)}
                elif message["type"] == "http.response.body":
                    last = not message.get("more_body", False)
                    message = {**message, "body": coder.code(message.get("body", b""), last=last)}
                await send(message)

            await app(scope, receive, coded)

        return encode


@fault("drips")
class Drips(Fault):
    """Sends every body one byte at a time. That is lawful, and hard on who reads in pieces."""

    def __init__(self, pause_ms: float = 0) -> None:
        self.pause = pause_ms / 1000

    def on_app(self, app: ASGIApp) -> ASGIApp:
        async def drip(scope: Scope, receive: Receive, send: Send) -> None:
            async def dripping(message: Message) -> None:
                if message["type"] != "http.response.body":
                    await send(message)
                    return
                body = message.get("body", b"")
                for index in range(len(body)):
                    await send({**message, "body": body[index : index + 1], "more_body": True})
                    await asyncio.sleep(self.pause)
                await send({**message, "body": b""})

            await app(scope, receive, dripping)

        return drip


@fault("headers")
class Headers(Fault):
    """Sets headers on every answer; null takes one away."""

    def __init__(self, set: dict[str, str | None]) -> None:
        self.changes = set

    def on_app(self, app: ASGIApp) -> ASGIApp:
        async def change(scope: Scope, receive: Receive, send: Send) -> None:
            async def changed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message = {**message, "headers": changed_headers(list(message["headers"]), self.changes)}
                await send(message)

            await app(scope, receive, changed)

        return change
