"""Server-sent events, read piece by piece as the WHATWG HTML standard says: LF, CR and CRLF, one BOM, comments, many data lines.

Bytes in any portions give the same events. An event is dispatched at its blank line when it has a `data` field; the data may be
empty (a legacy priming event has an id and empty data: it is an event, not a message). Time is linear in the bytes.
"""

from dataclasses import dataclass

MAX_EVENT = 8 << 20


@dataclass(slots=True, frozen=True)
class SseEvent:
    """One dispatched event; `index` counts dispatched events from 0."""

    index: int
    data: str
    event: str = "message"
    id: str | None = None
    retry: int | None = None
    size: int = 0  # bytes of the event on the wire
    truncated: bool = False  # past the limit, its data was cut
    not_utf8: bool = False
    lines: int = 1  # how many data fields it was made of
    typed: bool = False  # it has an `event` field


@dataclass(slots=True, frozen=True)
class Tail:
    """What was left when the stream ended: an event without its blank line is discarded."""

    unfinished: bool
    size: int


class SseParser:
    """Feed it the decoded bytes of one stream in order."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._line: list[bytes] = []  # pieces of the line that is not yet complete
        self._line_size = 0
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
        self.index = 0
        self.comments = 0
        self.last_id: str | None = None
        self.retry: int | None = None
        self.bytes = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        self.bytes += len(chunk)
        events: list[SseEvent] = []
        if self._cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._size += 1
        if chunk:
            self._cr = False
        position, length = 0, len(chunk)
        next_lf = next_cr = -2  # -2: not looked for yet, -1: none left
        while position < length:
            if next_lf != -1 and next_lf < position:
                next_lf = chunk.find(b"\n", position)
            if next_cr != -1 and next_cr < position:
                next_cr = chunk.find(b"\r", position)
            if next_lf == -1 and next_cr == -1:
                self._keep(chunk[position:])
                break
            end = next_lf if next_cr == -1 else next_cr if next_lf == -1 else min(next_lf, next_cr)
            self._keep(chunk[position:end])
            position = end + 1
            self._size += 1
            if end == next_cr:
                if position < length:
                    if chunk[position] == 0x0A:
                        position += 1
                        self._size += 1
                else:
                    self._cr = True
            event = self._end_line()
            if event is not None:
                events.append(event)
        return events

    def finish(self) -> Tail:
        """The stream is over."""
        return Tail(self._fields > 0 or self._line_size > 0, self._size)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        room = self._max + 64 - self._line_size  # 64: the field name
        if len(piece) > room:
            self._truncated = True
            piece = piece[: max(room, 0)]
        if piece:
            self._line.append(piece)
            self._line_size += len(piece)

    def _end_line(self) -> SseEvent | None:
        line = self._line[0] if len(self._line) == 1 else b"".join(self._line)
        self._line.clear()
        self._line_size = 0
        if self._start:
            self._start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        if line[0] == 0x3A:
            self.comments += 1
            return None
        name, colon, value = line.partition(b":")
        if colon and value[:1] == b" ":
            value = value[1:]
        self._fields += 1
        if name == b"data":
            self._data_lines += 1
            room = self._max - self._data_size
            if len(value) > room:
                self._truncated, value = True, value[: max(room, 0)]
            self._data.append(value)
            self._data_size += len(value) + 1
        elif name == b"event":
            self._event = self._text(value[:1_000])
        elif name == b"id":
            if b"\0" not in value:
                self._id = self.last_id = self._text(value[:10_000])
        elif name == b"retry":
            if value.isdigit() and len(value) < 16:
                self._retry = self.retry = int(value)
        else:
            self._fields -= 1
        return None

    def _text(self, value: bytes) -> str:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            self._bad = True
            return value.decode("utf-8", "replace")

    def _dispatch(self) -> SseEvent | None:
        event = None
        if self._data_lines:
            data = self._text(b"\n".join(self._data))
            event = SseEvent(
                self.index, data, self._event or "message", self._id, self._retry, self._size, self._truncated, self._bad,
                self._data_lines, self._event is not None,
            )  # fmt: skip
            self.index += 1
        self._data, self._data_size, self._data_lines = [], 0, 0
        self._event = self._id = self._retry = None
        self._size = self._fields = 0
        self._truncated = self._bad = False
        return event
