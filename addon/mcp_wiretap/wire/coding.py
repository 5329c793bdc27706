"""Content codings undone on a copy: gzip, deflate, br, zstd, stacked or not, piece by piece, never more than a limit.

A coding that is broken, cut short or unknown is said in `problem`; what decoded before that is kept. RFC 9110 section 8.4.
"""

import sys
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

import brotli

from mcp_wiretap.wire.pace import breathe

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_PIECE = 64 << 10  # about how much one step of a decoder puts out: bombs are stopped between steps
_SLICE = 4 << 10  # how much goes in at one step: what a step had decoded is lost when it meets broken data
_MOST_STACKED = 8
_ZSTD: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}  # RFC 9659: 8 MB; a frame may ask for gigabytes


class _Coding(Protocol):
    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What these bytes decode to, in steps. Raises whatever the library raises on broken data."""
        ...

    @property
    def complete(self) -> bool: ...


class _Zlib:
    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._inner: Any = None  # of the member that is being read
        self._members = 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        full = False
        while data or full:
            if self._inner is None:
                data = self._between(data)
                if not data:
                    return
                self._inner = zlib.decompressobj(31 if self._gzip else _deflate_window(data))
            piece = self._inner.decompress(data, _PIECE)
            if piece:
                yield piece
            if self._inner.eof:
                data, full, self._inner = self._inner.unused_data, False, None
                self._members += 1
            else:
                # A full piece may have left output behind though all input is taken.
                data, full = self._inner.unconsumed_tail, len(piece) == _PIECE

    def _between(self, data: bytes) -> bytes:
        """What is left to read outside a member: gzip members follow each other, with zero bytes as padding."""
        if self._members == 0:
            return data
        return data.lstrip(b"\0") if self._gzip else b""

    @property
    def complete(self) -> bool:
        return self._inner is None


def _deflate_window(data: bytes) -> int:
    """`deflate` is zlib-wrapped by the RFC, raw from some servers: the first byte tells."""
    return 15 if data[0] & 0x0F == 8 else -15


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._started = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        self._started = True
        piece = self._inner.process(data, output_buffer_limit=_PIECE)
        # `can_accept_more_data` speaks of input that waits; a full piece may have left output behind as well.
        while len(piece) >= _PIECE or not self._inner.can_accept_more_data():
            yield piece
            piece = self._inner.process(b"", output_buffer_limit=_PIECE)
        yield piece

    @property
    def complete(self) -> bool:
        return not self._started or self._inner.is_finished()


class _Zstd:
    def __init__(self) -> None:
        self._inner: Any = None  # of the frame that is being read

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data or self._inner is not None:
            if self._inner is None:
                self._inner = zstd.ZstdDecompressor(options=_ZSTD)
            piece = self._inner.decompress(data, max_length=_PIECE)
            if piece:
                yield piece
            data = b""
            if self._inner.eof:
                data, self._inner = self._inner.unused_data, None  # a further frame may follow
            elif self._inner.needs_input or not piece:
                return

    @property
    def complete(self) -> bool:
        return self._inner is None


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


class _TooMuch(Exception):
    pass


class Decoder:
    """Undoes the codings of one body. After a `problem` nothing more comes out; `dropped` counts bytes in that were given up."""

    def __init__(self, content_encoding: str | None, max_output: int) -> None:
        self.problem: str | None = None
        self.dropped = 0
        self._room = max_output
        self._chain: list[_Coding] = []
        names = [n for part in (content_encoding or "").split(",") if (n := part.strip(" \t").lower()) not in ("", "identity")]
        for name in reversed(names[:_MOST_STACKED]):
            coding = _coding(name)
            if coding is None:
                self.problem = f"unknown coding {name[:40]!r}"
                break
            self._chain.append(coding)
        if len(names) > _MOST_STACKED:
            self.problem = f"{len(names)} codings stacked"
        # What lies between two codings is bounded, too; it may be a little more than the body itself.
        self._between = [max_output + _PIECE] * len(self._chain)

    def feed(self, data: bytes) -> bytes:
        """What these bytes decode to."""
        if self.problem is not None:
            self.dropped += len(data)
            return b""
        out = bytearray()
        try:
            for piece in self._decoded(data, 0):
                out += piece
                if len(out) > self._room:
                    raise _TooMuch
        except _TooMuch:
            self.problem = "decodes to more than the limit"
            del out[self._room :]
        except Exception as error:  # the libraries raise their own and each other's errors on hostile bytes
            self.problem = f"broken data ({error})"
        self._room -= len(out)
        return bytes(out)

    def _decoded(self, data: bytes, level: int) -> Iterator[bytes]:
        if level == len(self._chain):
            yield data
            return
        for start in range(0, len(data), _SLICE):
            for piece in self._chain[level].pieces(data[start : start + _SLICE]):
                breathe()
                self._between[level] -= len(piece)
                yield from self._decoded(piece, level + 1)
                if self._between[level] < 0:
                    raise _TooMuch

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


def compress(data: bytes, content_encoding: str, *, whole: bool = True) -> bytes:
    """A body in its codings. Not `whole`: without its end, as a body is that was cut short. ValueError for an unknown coding."""
    for name in [n for part in content_encoding.split(",") if (n := part.strip(" \t").lower()) not in ("", "identity")]:
        data = _compressed(data, name, whole)
    return data


def _compressed(data: bytes, name: str, whole: bool) -> bytes:
    match name:
        case "gzip" | "x-gzip" | "deflate":
            deflate = zlib.compressobj(wbits=15 if name == "deflate" else 31)
            out = deflate.compress(data)
            return out + deflate.flush(zlib.Z_FINISH if whole else zlib.Z_SYNC_FLUSH)
        case "br":
            brotlied = brotli.Compressor(quality=5)
            out = brotlied.process(data)
            return bytes(out + (brotlied.finish() if whole else brotlied.flush()))
        case "zstd":
            frame = zstd.ZstdCompressor()
            return frame.compress(data, frame.FLUSH_FRAME if whole else frame.FLUSH_BLOCK)
    raise ValueError(f"unknown coding {name[:40]!r}")
