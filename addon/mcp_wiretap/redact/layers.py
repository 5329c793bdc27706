"""The encodings in which one text lies inside another: backslash escapes, percent-encoding, entities, Base64.

A layer is what a stretch of bytes decodes to, with the way back: an edit of the decoded bytes becomes an edit of the stretch, and
what the edit does not touch stays as it was written.
"""

import base64
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

type Edit = tuple[int, int, bytes]  # start, end, what stands there instead

DEEPEST = 4  # encodings inside each other: JSON in a JSON string in Base64 in a URL
SHORTEST_BASE64 = 10  # characters: the shortest secret that is looked for everywhere has eight bytes

_ESCAPE = re.compile(rb'\\(?:u([0-9A-Fa-f]{4})(?:\\u([Dd][C-Fc-f][0-9A-Fa-f]{2}))?|(["\\/bfnrt]))')
_SHORT = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_ENTITY = re.compile(rb"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));")
_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{%d,}" % SHORTEST_BASE64)
_SAFE = re.compile(rb"[^A-Za-z0-9._~-]")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_URL = bytes.maketrans(b"+/", b"-_")
_MUST_ESCAPE = re.compile(rb"[\x00-\x1f\x7f\"\\]")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


class Layer(Protocol):
    @property
    def data(self) -> bytes: ...

    @property
    def word(self) -> bytes | None:
        """The run of Base64 that this is one reading of."""
        ...

    @property
    def escapes(self) -> bool:
        """Backslash escapes undone in a whole document: its structure is gone."""
        ...

    @property
    def text(self) -> bool:
        """Whether it may be text: what is read from any word as Base64 seldom is."""
        ...

    def outward(self, edits: list[Edit]) -> list[Edit]:
        """Edits of `data` as edits of what it was decoded from."""
        ...


def layers(data: bytes, clean: set[bytes], *, escapes: bool = True) -> Iterator[Layer]:
    """What the bytes decode to, in each of the encodings that they seem to hold. `clean` are runs of Base64 to pass over."""
    if escapes and b"\\" in data and (layer := unescaped(data)) is not None:
        yield layer
    if b"%" in data and (layer := _Escaped.of(data, _PERCENT, "percent")) is not None:
        yield layer
    if b"&" in data and b";" in data and (layer := _Escaped.of(data, _ENTITY, "entity")) is not None:
        yield layer
    for run in _RUN.finditer(data):
        if run.group() not in clean:
            yield from _base64(run.start(), run.group())


def unescaped(data: bytes) -> "_Escaped | None":
    """The bytes with their backslash escapes undone; None where there are none."""
    return _Escaped.of(data, _ESCAPE, "escape")


def apply(data: bytes, edits: list[Edit]) -> bytes:
    """The bytes with their edits, which are sorted and do not overlap."""
    parts: list[bytes] = []
    position = 0
    for start, end, new in edits:
        parts += (data[position:start], new)
        position = end
    parts.append(data[position:])
    return b"".join(parts)


def merged(edits: list[Edit]) -> list[Edit]:
    """Sorted, without overlaps: of two that overlap the one that begins first stays, then the longer one."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e[0], -e[1])):
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept


@dataclass(slots=True)
class _Escaped:
    """Bytes whose escapes are undone; what stands between them is as it was."""

    data: bytes
    how: str
    decoded: list[int] = field(default_factory=list)  # where each escape begins in `data`
    decoded_ends: list[int] = field(default_factory=list)
    source: list[int] = field(default_factory=list)  # and in what it was decoded from
    source_ends: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes, pattern: re.Pattern[bytes], how: str) -> "_Escaped | None":
        layer = cls(b"", how)
        parts: list[bytes] = []
        position = length = 0
        for match in pattern.finditer(data):
            value = _UNDO[how](match)
            parts += (data[position : match.start()], value)
            length += match.start() - position
            layer.decoded.append(length)
            length += len(value)
            layer.decoded_ends.append(length)
            layer.source.append(match.start())
            layer.source_ends.append(match.end())
            position = match.end()
        if not layer.source:
            return None
        parts.append(data[position:])
        layer.data = b"".join(parts)
        return layer

    @property
    def word(self) -> None:
        return None

    @property
    def escapes(self) -> bool:
        return self.how == "escape"

    @property
    def text(self) -> bool:
        return True

    def outward(self, edits: list[Edit]) -> list[Edit]:
        return [(self._start(start), self._end(end), self.written(new)) for start, end, new in edits]

    def _start(self, at: int) -> int:
        index = bisect_right(self.decoded, at) - 1
        if index < 0:
            return at
        if at < self.decoded_ends[index]:
            return self.source[index]
        return self.source_ends[index] + at - self.decoded_ends[index]

    def _end(self, at: int) -> int:
        index = bisect_left(self.decoded, at) - 1  # the last escape that begins before the end
        if index < 0:
            return at
        if at <= self.decoded_ends[index]:
            return self.source_ends[index]
        return self.source_ends[index] + at - self.decoded_ends[index]

    def written(self, new: bytes) -> bytes:
        """Bytes in this encoding."""
        if self.how == "percent":
            return _SAFE.sub(lambda m: b"%%%02X" % m.group()[0], new)
        if self.how == "entity":
            return new.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;").replace(b'"', b"&quot;")
        return _MUST_ESCAPE.sub(lambda m: b"\\" + m.group() if m.group() in b'"\\' else b"\\u%04x" % m.group()[0], new)


def _backslash(match: re.Match[bytes]) -> bytes:
    first, second, short = match.groups()
    if short is not None:
        return _SHORT[short]
    code = int(first, 16)
    if second is not None:
        if 0xD800 <= code < 0xDC00:
            code = 0x10000 + ((code - 0xD800) << 10) + int(second, 16) - 0xDC00
        else:
            return chr(code).encode("utf-8", "surrogatepass") + chr(int(second, 16)).encode("utf-8", "surrogatepass")
    return chr(code).encode("utf-8", "surrogatepass")


def _entity(match: re.Match[bytes]) -> bytes:
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        return _ENTITIES[name]
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    return chr(code).encode("utf-8", "surrogatepass") if code <= 0x10FFFF else match.group()


_UNDO = {"escape": _backslash, "percent": lambda match: bytes((int(match.group(1), 16),)), "entity": _entity}


@dataclass(slots=True)
class _Base64:
    """A run of Base64 read from one of the four places where its first group may begin: what stands before it may be a word."""

    data: bytes
    at: int  # where its first group is
    spelled: bytes
    word: bytes

    @property
    def escapes(self) -> bool:
        return False

    @property
    def text(self) -> bool:
        if self.data.isascii():
            return _CONTROLS.search(self.data) is None
        try:
            self.data.decode()
        except UnicodeDecodeError as error:
            return error.end == len(self.data) and error.start >= len(self.data) - 3  # cut inside its last character
        return True

    def outward(self, edits: list[Edit]) -> list[Edit]:
        new = apply(self.data, edits)
        written = base64.b64encode(new).rstrip(b"=")
        if b"-" in self.spelled or b"_" in self.spelled:
            written = written.translate(_URL)
        # What follows the last edit, to the byte: spare bits and the spelling of the other alphabet stay as they were.
        return [(self.at, self.at + len(self.spelled), _as_before(self.spelled, written))]


def _as_before(old: bytes, new: bytes) -> bytes:
    if len(old) != len(new):
        return new
    same = old.translate(_STANDARD), new.translate(_STANDARD)
    return bytes(o if a == b else n for o, n, a, b in zip(old, new, *same, strict=True))


def _base64(at: int, run: bytes) -> Iterator[_Base64]:
    plain = run.translate(_STANDARD)
    for offset in range(4):
        length = len(plain) - offset
        if length % 4 == 1:
            length -= 1
        if length < SHORTEST_BASE64:
            return
        piece = plain[offset : offset + length]
        yield _Base64(base64.b64decode(piece + b"=" * (-length % 4)), at + offset, run[offset : offset + length], run)
