"""Server-sent events, read piece by piece as the WHATWG HTML standard says: LF, CR and CRLF, one BOM, comments, many data lines.

Bytes in any portions give the same events. An event is dispatched at its blank line when it has a `data` field; the data may be
empty (a legacy priming event has an id and empty data: it is an event, not a message). Time is linear in the bytes.
"""

from dataclasses import dataclass

MAX_EVENT = 8 << 20
_SLICE = 64 << 10  # bytes split into lines at once: a chunk of line ends becomes a list eight times its size
_FIELD_NAME = 64  # room for the name of a field beside a value of the greatest size
_MOST_TYPE, _MOST_ID = 1_000, 10_000
_FOREIGN, _MOST_FOREIGN = (b"{", b"[", b"<"), 2_000  # how other things than an event stream begin
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class SseEvent:
    """One dispatched event; `index` counts dispatched events from 0."""

    index: int
    data: str
    event: str = "message"
    id: str | None = None
    retry: int | None = None
    size: int = 0  # bytes of the event on the wire, comments included, each line end counted as one byte
    truncated: bool = False  # past the limit, its data was cut
    not_utf8: bool = False
    lines: int = 1  # how many data fields it was made of
    typed: bool = False  # it has an `event` field


@dataclass(slots=True, frozen=True)
class Tail:
    """What was left when the stream ended: an event without its blank line is discarded."""

    unfinished: bool
    size: int
    foreign: bytes = b""  # how the bytes begin where they are no event stream, but JSON or a page


class SseParser:
    """Feed it the decoded bytes of one stream in order."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._line = bytearray()  # what has come of the line that is not yet complete
        self._line_cut = False
        self._cr = False  # the last byte was CR: a LF that follows belongs to it
        self._start = True
        self._data: list[bytes] = []
        self._data_size = 0
        self._data_lines = 0
        self._event: str | None = None
        self._id: str | None = None
        self._retry: int | None = None
        self._size = 0
        self._truncated = False
        self._bad = False
        self._fields = 0
        self._foreign = b""
        self.index = 0
        self.comments = 0
        self.last_id: str | None = None
        self.retry: int | None = None
        self.bytes = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        length = len(chunk)
        self.bytes += length
        events: list[SseEvent] = []
        if 0 < length <= _SLICE:
            self._read(chunk, events)
        else:
            for start in range(0, length, _SLICE):
                self._read(chunk[start : start + _SLICE], events)
        return events

    def finish(self) -> Tail:
        """The stream is over."""
        line = self._line.removeprefix(_BOM) if self._start else self._line
        unfinished = self._fields > 0 or (bool(line) and not line.startswith(b":"))
        foreign = self._foreign or (bytes(line[:_MOST_FOREIGN]) if line.startswith(_FOREIGN) else b"")
        return Tail(unfinished, self._size, b"" if self.index or self._fields else foreign)

    def _read(self, data: bytes, events: list[SseEvent]) -> None:
        """Read some bytes, not none."""
        if self._cr:
            self._cr = False
            if data[0] == 0x0A:
                data = data[1:]
        if b"\r" in data:
            self._cr = data[-1] == 0x0D
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        ahead = begin = len(data)  # bytes of this portion that are not yet read; where the event that is being read began in it
        if lines:
            ahead += self._complete(lines)
        for line in lines:
            ahead -= len(line) + 1
            if line:
                self._field(line)
            else:
                if self._fields:
                    self._size += begin - ahead
                    if self._data_lines:
                        events.append(self._made())
                    self._forget()
                self._size, begin = 0, ahead
        self._size += begin
        if rest:
            self._keep(rest)

    def _complete(self, lines: list[bytes]) -> int:
        """Put what had come of the first line before it. Returns by how much that made it longer."""
        before = len(lines[0])
        if self._line:
            self._keep(lines[0])
            lines[0] = bytes(self._line)
            self._line.clear()
        added = len(lines[0]) - before
        if self._start:
            self._start = False
            if lines[0].startswith(_BOM):
                lines[0], added = lines[0][3:], added - 3
        return added

    def _keep(self, piece: bytes) -> None:
        room = self._max + _FIELD_NAME - len(self._line)
        if len(piece) > room:
            self._line_cut = True
            piece = piece[: max(room, 0)]
        self._line += piece

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        cut, self._line_cut = self._line_cut, False
        if not name:
            self.comments += 1
            return
        if value[:1] == b" ":
            value = value[1:]
        self._fields += 1
        if name == b"data":
            self._data_lines += 1
            room = self._max - self._data_size
            if len(value) > room or cut:
                self._truncated, value = True, value[: max(room, 0)]
            if room >= 0:
                self._data.append(value)
                self._data_size += len(value) + 1
        elif name == b"event":
            self._event = self._text(value[:_MOST_TYPE], len(value) > _MOST_TYPE)
        elif name == b"id":
            if b"\0" not in value:
                self._id = self.last_id = self._text(value[:_MOST_ID], len(value) > _MOST_ID)
        elif name == b"retry":
            if value.isdigit() and len(value) < 16:
                self._retry = self.retry = int(value)
        else:
            self._fields -= 1
            if line.startswith(_FOREIGN) and not self._foreign:
                self._foreign = line[:_MOST_FOREIGN]

    def _text(self, value: bytes, cut: bool) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            if cut and error.end == len(value) and error.reason == "unexpected end of data":
                return value[: error.start].decode()  # a character that the cut went through
            self._bad = True
            return value.decode("utf-8", "replace")

    def _made(self) -> SseEvent:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        text = self._text(data, self._truncated)
        event = SseEvent(
            self.index,
            text,
            self._event or "message",
            self._id,
            self._retry,
            self._size,
            self._truncated,
            self._bad,
            self._data_lines,
            self._event is not None,
        )
        self.index += 1
        return event

    def _forget(self) -> None:
        self._data, self._data_size, self._data_lines = [], 0, 0
        self._event = self._id = self._retry = None
        self._fields = 0
        self._truncated = self._bad = False
