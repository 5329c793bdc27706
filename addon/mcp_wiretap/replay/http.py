"""HTTP requests on connections that are kept as the recorded client kept its own, answers piece by piece as they come."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2


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
        return host if self.port == {"http": 80, "https": 443}.get(self.scheme, 0) else f"{host}:{self.port}"


class Reply:
    """An answer whose head has come."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self.status = response.status
        self.headers: list[tuple[bytes, bytes]] = list(response.headers)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body.

        Raises:
            Unreachable: it broke off.
        """
        with _as_unreachable(head_came=True):
            async for piece in self._response.aiter_stream():
                yield piece

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            await self._response.aclose()


class Lines:
    """The connections of a replay: one for each connection of the recorded client, kept as long as the server keeps it.

    A server that ties something to a connection sees as many clients as in the recording. Requests that overlap on one of them
    get further connections. HTTP/2 is spoken where a TLS server offers it; the proxies of the environment are used.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], httpcore2.AsyncConnectionPool] = {}

    async def ask(
        self,
        line: str,
        place: Place,
        method: str,
        target: str,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        *,
        host: str | None = None,
    ) -> Reply:
        """Send a request on a line; returns when the head of its answer has come. `headers` without Host and framing. `host`:
        another Host than the place's.

        Raises:
            Unreachable: nothing that speaks HTTP answered.
        """
        framing = [(b"Content-Length", str(len(body)).encode())] if body or method == "POST" else []
        request = httpcore2.Request(
            method,
            httpcore2.URL(
                scheme=place.scheme.encode(), host=place.host.encode("idna"), port=place.port, target=target.encode("latin-1")
            ),
            headers=[(b"Host", (host or place.authority).encode()), *headers, *framing],
            content=body,
        )
        with _as_unreachable(place):
            return Reply(await self._pool(line, place).handle_async_request(request))

    def _pool(self, line: str, place: Place) -> httpcore2.AsyncConnectionPool:
        key = (line, f"{place.scheme}://{place.authority}")
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = httpcore2.AsyncConnectionPool(
                ssl_context=ssl.create_default_context() if place.scheme == "https" else None,
                proxy=_proxy(place),
                max_connections=None,
                max_keepalive_connections=1,
                http2=place.scheme == "https",
                retries=0,
            )
        return pool

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            with contextlib.suppress(Exception):
                await pool.aclose()
        self._pools.clear()


def _proxy(place: Place) -> httpcore2.Proxy | None:
    """The proxy that the environment names for a place (HTTP_PROXY, HTTPS_PROXY, NO_PROXY)."""
    named = getproxies().get(place.scheme)
    if not named or proxy_bypass(place.host):
        return None
    return httpcore2.Proxy(named if "://" in named else f"http://{named}")


@contextlib.contextmanager
def _as_unreachable(place: Place | None = None, *, head_came: bool = False) -> Iterator[None]:
    """Say in words what went wrong on a connection."""
    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.ProxyError) as error:
        where = f"{place.scheme}://{place.authority}" if place is not None else "the server"
        raise Unreachable(f"{where} cannot be reached: {_reason(error)}") from None
    except httpcore2.RemoteProtocolError as error:
        if not head_came and "without sending a response" in str(error):
            raise Unreachable("the connection was closed before an answer came") from None
        raise Unreachable(f"the answer broke off ({error})") from None
    except (httpcore2.LocalProtocolError, httpcore2.WriteError) as error:
        raise Unreachable(f"the request could not be sent ({_reason(error)})") from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError) as error:
        raise Unreachable(f"the connection broke ({_reason(error)})") from None


def _reason(error: BaseException) -> str:
    """What the system said, below what the library made of it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return str(cause.strerror)
        if isinstance(cause, OSError) and str(cause) and "All connection attempts failed" not in str(cause):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
