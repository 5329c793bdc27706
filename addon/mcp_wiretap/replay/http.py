"""One HTTP/1.1 request on a connection of its own, its answer piece by piece as it comes."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

_READ = 64 << 10


class Unreachable(Exception):
    """Nothing that speaks HTTP answers there. The message says what happened."""


@dataclass(slots=True, frozen=True)
class Place:
    """Where a server is."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str) -> "Place":
        """ValueError where it is no http or https URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is not a URL that begins with http:// or https://")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        query = f"?{parts.query}" if parts.query else ""
        return cls(parts.scheme, parts.hostname, port, parts.path + query)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"


class Reply:
    """An answer whose head has come."""

    def __init__(self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._h11, self._reader, self._writer = connection, reader, writer
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []

    async def read_head(self) -> None:
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                self.status, self.headers = event.status_code, event.headers.raw_items()
                return
            if not isinstance(event, h11.InformationalResponse):
                raise Unreachable("the connection was closed before an answer came")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body. Unreachable where it breaks off."""
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif not isinstance(event, h11.InformationalResponse):
                return

    async def _next(self) -> object:
        try:
            while (event := self._h11.next_event()) is h11.NEED_DATA:
                self._h11.receive_data(await self._reader.read(_READ))
        except h11.RemoteProtocolError as error:
            raise Unreachable(f"the answer broke off ({error})") from None
        except OSError as error:
            raise Unreachable(f"the connection broke ({error.strerror or error})") from None
        return event

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(Exception):
            await self._writer.wait_closed()


async def ask(place: Place, method: str, target: str, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Reply:
    """Send a request; returns when the head of its answer has come. `headers` without Host and framing."""
    try:
        tls = ssl.create_default_context() if place.scheme == "https" else None
        reader, writer = await asyncio.open_connection(place.host, place.port, ssl=tls)
    except OSError as error:
        raise Unreachable(f"{place.scheme}://{place.authority} cannot be reached: {error.strerror or error}") from None
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    framing = [(b"Content-Length", str(len(body)).encode())] if body or method == "POST" else []
    fields = [(b"Host", place.authority.encode()), *headers, *framing]
    reply = Reply(connection, reader, writer)
    try:
        sent = connection.send(h11.Request(method=method.encode(), target=target.encode("latin-1"), headers=fields)) or b""
        if body:
            sent += connection.send(h11.Data(data=body)) or b""
        sent += connection.send(h11.EndOfMessage()) or b""
        writer.write(sent)
        await writer.drain()
        await reply.read_head()
    except (OSError, h11.LocalProtocolError) as error:
        await reply.close()
        raise Unreachable(f"the request could not be sent ({error})") from None
    except BaseException:
        writer.close()
        raise
    return reply
