"""Content codings undone on a copy: gzip, deflate, br, zstd, stacked or not, piece by piece, never more than a limit.

A coding that is broken, cut short or unknown is said in `problem`; what decoded before that is kept. RFC 9110 section 8.4.
"""

import sys
import zlib
from typing import Any, Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CHUNK = 64 << 10  # how much one step of a decoder may put out: bombs are stopped between steps


class _Coding(Protocol):
    def feed(self, data: bytes, room: int) -> bytes: ...
    @property
    def complete(self) -> bool: ...


class _Zlib:
    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._inner: Any = zlib.decompressobj(31) if gzip else None
        self._started = False

    def feed(self, data: bytes, room: int) -> bytes:
        if self._inner is None:
            # deflate is zlib-wrapped by the RFC, raw from some servers: the first byte tells.
            wrapped = len(data) > 0 and data[0] & 0x0F == 8
            self._inner = zlib.decompressobj(15 if wrapped else -15)
        out = bytearray()
        self._started = self._started or bool(data)
        while data and len(out) < room:
            out += self._inner.decompress(data, min(_CHUNK, room - len(out)))
            data = self._inner.unconsumed_tail
            if self._inner.eof:
                data = self._inner.unused_data.lstrip(b"\0")
                if not data or not self._gzip:
                    break
                self._inner = zlib.decompressobj(31)  # a further gzip member
        return bytes(out)

    @property
    def complete(self) -> bool:
        return not self._started or self._inner.eof


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._started = False

    def feed(self, data: bytes, room: int) -> bytes:
        self._started = self._started or bool(data)
        out = bytearray(self._inner.process(data, output_buffer_limit=min(_CHUNK, max(room, 1))))
        while len(out) < room and not self._inner.can_accept_more_data():
            more = self._inner.process(b"", output_buffer_limit=min(_CHUNK, room - len(out)))
            if not more:
                break
            out += more
        return bytes(out)

    @property
    def complete(self) -> bool:
        return not self._started or self._inner.is_finished()


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor()
        self._started = False

    def feed(self, data: bytes, room: int) -> bytes:
        self._started = self._started or bool(data)
        out = bytearray()
        while len(out) < room:
            if self._inner.eof:
                data = self._inner.unused_data
                if not data:
                    break
                self._inner = zstd.ZstdDecompressor()  # a further frame
            piece = self._inner.decompress(data, max_length=min(_CHUNK, room - len(out)))
            data = b""
            out += piece
            if not piece and not self._inner.eof:
                break
        return bytes(out)

    @property
    def complete(self) -> bool:
        return not self._started or self._inner.eof


def _coding(name: str) -> _Coding | None:
    match name:
        case "gzip" | "x-gzip":
            return _Zlib(gzip=True)
        case "deflate":
            return _Zlib(gzip=False)
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
    return None


class Decoder:
    """Undoes the codings of one body. After a `problem` nothing more comes out; `dropped` counts bytes in that were given up."""

    def __init__(self, content_encoding: str | None, max_output: int) -> None:
        self.problem: str | None = None
        self.dropped = 0
        self._room = max_output
        self._chain: list[_Coding] = []
        names = [n.strip().lower() for n in (content_encoding or "").split(",") if n.strip()]
        for name in reversed(names[:8]):
            if name == "identity":
                continue
            coding = _coding(name)
            if coding is None:
                self.problem = f"unknown coding {name[:40]!r}"
                break
            self._chain.append(coding)
        if len(names) > 8:
            self.problem = f"{len(names)} codings stacked"

    def feed(self, data: bytes) -> bytes:
        """What these bytes decode to."""
        if self.problem is not None:
            self.dropped += len(data)
            return b""
        try:
            for coding in self._chain:
                data = coding.feed(data, self._room + 1)
        except Exception as error:  # the libraries raise their own and each other's errors on hostile bytes
            self.problem = f"broken data ({error})"
            return b""
        if len(data) > self._room:
            self.problem = "decodes to more than the limit"
            data = data[: self._room]
        self._room -= len(data)
        return data

    def finish(self) -> bytes:
        """The body is over: nothing more comes, but a body that was cut short is noticed."""
        if self.problem is None and not all(coding.complete for coding in self._chain):
            self.problem = "cut short"
        return b""


def decode_body(data: bytes, content_encoding: str | None, max_output: int) -> tuple[bytes, str | None]:
    """A whole body decoded: (what could be had, what was wrong or None)."""
    decoder = Decoder(content_encoding, max_output)
    out = decoder.feed(data)
    decoder.finish()
    return out, decoder.problem
