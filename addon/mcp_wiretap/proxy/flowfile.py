"""mitmproxy's .flow format, read without building flows: one typed netstring after the other, each a flow's state.

A netstring is `LENGTH:PAYLOAD TAG`, so what is not wanted is skipped by its length. Only what the trace needs is read: that takes
a third of the time of a whole flow. Files of older mitmproxy versions go through mitmproxy's own migration.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from mitmproxy import version
from mitmproxy.io import compat, tnetstring

from mcp_wiretap.proxy.form import State, is_time

type Span = tuple[int, int, int]  # tag, start and end of a value

_DIGITS = 12  # of a length: mitmproxy's own bound
_COMMA, _SEMICOLON, _HASH, _CARET, _BANG, _TILDE, _BRACKET, _BRACE = b",;#^!~]}"
_WANTED: dict[bytes, frozenset[bytes] | None] = {  # member -> its own members that are wanted; None: all
    b"version": None,
    b"type": None,
    b"id": None,
    b"request": None,
    b"response": None,
    b"error": None,
    b"metadata": frozenset(
        {
            b"mcp.events",
            b"mcp.ended",
            b"mcp.dropped",
            b"mcp.probe",
            b"mcp.fault",
            b"mcp.redacted",
            b"mcp.command",
            b"mcp.exit",
            b"mcp.input_ended",
            b"mcp.changed",
        }
    ),
    b"backup": frozenset({b"request", b"response"}),  # the flow before a person edited it
    b"is_replay": None,
    b"client_conn": frozenset({b"id", b"proxy_mode"}),
    b"server_conn": frozenset({b"tls", b"timestamp_tcp_setup", b"timestamp_tls_setup"}),
}


class Damaged(ValueError):
    """The bytes are not what the format says."""


@dataclass(slots=True, frozen=True)
class Record:
    """One flow of the file, found but not read."""

    offset: int
    length: int  # of the payload, which starts at `offset`
    id: str
    started: float
    http: bool


def records(file: BinaryIO) -> Iterator[Record]:
    """The flows of a file in its order. Damaged, with the byte where, at the first that cannot be found."""
    position = file.tell()
    end = file.seek(0, io.SEEK_END)
    while True:
        payload, start = _payload(file, position, end)
        if payload is None:
            return
        try:
            yield _record(payload, start)
        except (Damaged, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise Damaged(f"the flow at byte {position} cannot be read ({error})") from error
        position = start + len(payload) + 1


def read(file: BinaryIO, record: Record) -> State:
    """The state of one flow, of this mitmproxy's format version. Only the parts that the trace needs."""
    file.seek(record.offset)
    payload = file.read(record.length)
    try:
        parts = _parts(payload)
        if parts.get("version") != version.FLOW_FORMAT_VERSION:
            return _migrated(payload)
        return parts
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise Damaged(f"the flow at byte {record.offset} cannot be read ({error})") from error


def _payload(file: BinaryIO, position: int, end: int) -> tuple[bytes | None, int]:
    file.seek(position)
    head = file.read(_DIGITS + 1)
    if not head:
        return None, position
    digits, colon, _ = head.partition(b":")
    if not colon:
        if head.isdigit() and len(head) <= _DIGITS:
            raise Damaged(f"cut off at byte {position + len(head)}")
        raise Damaged(f"not a flow at byte {position}")
    if not digits.isdigit():
        raise Damaged(f"not a flow at byte {position}")
    length, start = int(digits), position + len(digits) + 1
    if start + length >= end:
        raise Damaged(f"cut off at byte {end}, inside the flow at byte {position}")
    file.seek(start)
    payload = file.read(length)
    tag = file.read(1)
    if tag != b"}":
        raise Damaged(f"not a flow at byte {position}")
    return payload, start


def _record(payload: bytes, start: int) -> Record:
    spans = _spans(payload, 0, len(payload))
    if b"version" not in spans or _at(payload, spans[b"version"]) != version.FLOW_FORMAT_VERSION:
        state = _migrated(payload)
        http = state["type"] == "http"
        started = state["request"]["timestamp_start"] if http else state["timestamp_created"]
        return Record(start, len(payload), state["id"], _started(started), http)
    http = _at(payload, spans[b"type"]) == "http"
    if http:
        _, begin, end = spans[b"request"]
        request = _spans(payload, begin, end)
        started = _at(payload, request[b"timestamp_start"])
    else:
        started = _at(payload, spans[b"timestamp_created"])
    flow = _at(payload, spans[b"id"])
    if not isinstance(flow, str):
        raise Damaged("its id is not a text")
    return Record(start, len(payload), flow, _started(started), http)


def _started(value: Any) -> float:
    return float(value) if is_time(value) else 0.0


def whole(file: BinaryIO, record: Record) -> State:
    """The state of one flow, of this mitmproxy's format version, all of it. It raises whatever its members lead to."""
    file.seek(record.offset)
    return _migrated(file.read(record.length))


def _migrated(payload: bytes) -> State:
    """The state of a flow that another version of mitmproxy wrote, in this one's form."""
    state: Any = tnetstring.parse(_BRACE, memoryview(payload))
    return compat.migrate_flow(state)  # type: ignore[return-value]


def _spans(data: bytes, position: int, end: int) -> dict[bytes, Span]:
    """The members of a dictionary: key -> where its value is."""
    found: dict[bytes, Span] = {}
    key: bytes | None = None
    while position < end:
        colon = data.find(b":", position, position + _DIGITS + 1)
        if colon < 0:
            raise Damaged("a length is missing")
        stop = colon + 1 + int(data[position:colon])
        if stop >= end:
            raise Damaged("a value is longer than what holds it")
        if key is None:
            key = data[colon + 1 : stop]
        else:
            found[key] = data[stop], colon + 1, stop
            key = None
        position = stop + 1
    if key is not None:
        raise Damaged("a member has no value")
    return found


def _parts(data: bytes) -> State:
    parts: State = {}
    for key, span in _spans(data, 0, len(data)).items():
        if key not in _WANTED:
            continue
        wanted = _WANTED[key]
        if wanted is None:
            parts[key.decode()] = _at(data, span)
        else:
            inner = _spans(data, span[1], span[2])
            parts[key.decode()] = {name.decode(): _at(data, inner[name]) for name in wanted if name in inner}
    return parts


def _at(data: bytes, span: Span) -> Any:
    tag, start, end = span
    if tag == _BRACE:
        names_and_values = _list(data, start, end)
        return dict(zip(names_and_values[::2], names_and_values[1::2], strict=True))
    if tag == _BRACKET:
        return _list(data, start, end)
    return _SCALARS[tag](data[start:end])


def _list(data: bytes, position: int, end: int) -> list[Any]:
    """The values of a list, in one loop with what they mostly are: most of a flow is in the lists of its header fields."""
    values: list[Any] = []
    while position < end:
        colon = data.find(b":", position, position + _DIGITS + 1)
        if colon < 0:
            raise Damaged("a length is missing")
        stop = colon + 1 + int(data[position:colon])
        if stop >= end:
            raise Damaged("a value is longer than what holds it")
        tag = data[stop]
        if tag == _COMMA:
            values.append(data[colon + 1 : stop])
        elif tag == _SEMICOLON:
            values.append(data[colon + 1 : stop].decode())
        elif tag == _BRACKET:
            values.append(_list(data, colon + 1, stop))
        else:
            values.append(_at(data, (tag, colon + 1, stop)))
        position = stop + 1
    return values


def _boolean(text: bytes) -> bool:
    if text not in (b"true", b"false"):
        raise Damaged("a boolean is neither true nor false")
    return text == b"true"


_SCALARS: dict[int, Callable[[bytes], Any]] = {
    _COMMA: bytes,
    _SEMICOLON: lambda text: text.decode("utf-8"),
    _HASH: int,
    _CARET: float,
    _BANG: _boolean,
    _TILDE: lambda _: None,
}
