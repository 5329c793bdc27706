"""A recording (.flow or HAR) read as the trace that it was: the events of all its flows in the order of their times.

Flows are saved when they end, so about one in six is out of order in the file. Therefore the file is gone through twice: once for
where each flow is and when it started, once for the flows themselves, of which only those that are open at the moment are held.
"""

import base64
import heapq
import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mitmproxy.io.har import fix_headers, request_to_flow

from mcp_wiretap.proxy import flowfile, form
from mcp_wiretap.proxy.flowfile import Damaged, Record
from mcp_wiretap.proxy.form import State
from mcp_wiretap.proxy.stored import events_of, is_event_stream, started_at
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.wire.secret import shown

_BOM = b"\xef\xbb\xbf"


class Recording:
    """OSError where the file cannot be opened; all else that is wrong with it is in `damage`, and what could be read is there.

    `flow_ids` are the HTTP flows in the order of the file. A flow that was written twice (mitmproxy does so to flows with a
    response and an error when it copies a file) counts once, where it came first, as it was written last.
    """

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self.path = path
        self.flow_ids: list[str] = []
        self.damage: str | None = None
        self.others = 0  # flows that are not HTTP
        self._limits = limits or Limits()
        self._starts = array("d")
        self._offsets = array("Q")
        self._lengths = array("Q")
        self._entries: list[State] | None = None
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            if head.removeprefix(_BOM).startswith(b"{"):
                self._read_har(file)
            else:
                self._index(file)

    @property
    def flows(self) -> int:
        return len(self.flow_ids)

    @property
    def entries(self) -> list[State]:
        """The states of the flows of a HAR; none of a .flow file, which is read flow by flow."""
        return self._entries or []

    def events(self) -> Iterator[Event]:
        """The events of all flows in time order. May be asked for again."""
        heap: list[tuple[float, int, int, list[Event]]] = []  # (time of the next event, order of start, its place, all events)
        with self.path.open("rb") as file:
            for order, number in enumerate(sorted(range(len(self.flow_ids)), key=self._starts.__getitem__)):
                while heap and heap[0][0] <= self._starts[number]:
                    yield _next(heap)
                if events := self._events_of(file, number):
                    heapq.heappush(heap, (events[0].at, order, 0, events))
        while heap:
            yield _next(heap)

    def events_of(self, flow: str) -> list[Event]:
        """The events of one flow, read again; empty where it has none that can be read."""
        if flow not in self.flow_ids:
            return []
        with self.path.open("rb") as file:
            return self._events_of(file, self.flow_ids.index(flow))

    def _index(self, file: BinaryIO) -> None:
        places: dict[str, int] = {}
        try:
            for record in flowfile.records(file):
                if not record.http:
                    self.others += 1
                elif (place := places.get(record.id)) is not None:
                    self._starts[place], self._offsets[place], self._lengths[place] = record.started, record.offset, record.length
                else:
                    places[record.id] = len(self.flow_ids)
                    self.flow_ids.append(record.id)
                    self._starts.append(record.started)
                    self._offsets.append(record.offset)
                    self._lengths.append(record.length)
        except Damaged as error:
            self.damage = str(error)

    def _events_of(self, file: BinaryIO, number: int) -> list[Event]:
        try:
            if self._entries is not None:
                state = self._entries[number]
            else:
                record = Record(self._offsets[number], self._lengths[number], self.flow_ids[number], self._starts[number], True)
                state = flowfile.read(file, record)
            form.check(state)
            if form.settle_times(state):
                self._damaged(f"flow {shown(self.flow_ids[number], 80)} has a time that is none, and was read without it")
            return events_of(state, self._limits.stream)
        except Exception as error:  # whatever the members of a state lead to
            said = str(error) if isinstance(error, Damaged) else f"it is not as mitmproxy writes one ({error})"
            self._damaged(f"flow {shown(self.flow_ids[number], 80)} cannot be read: {shown(said, 200)}")
            return []

    def _damaged(self, said: str) -> None:
        """The first thing that is wrong is told."""
        if self.damage is None:
            self.damage = said

    def _read_har(self, file: BinaryIO) -> None:
        self._entries = []
        try:
            entries = list(json.loads(file.read().removeprefix(_BOM))["log"]["entries"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else shown(str(error), 200)
            self.damage = f"not a HAR file ({why})" if not isinstance(error, json.JSONDecodeError) else f"not JSON ({error})"
            return
        unread: list[str] = []
        for index, entry in enumerate(entries):
            try:
                state = _har_state(entry, f"har-{index}")
            except Exception as error:  # the reader of HAR entries raises whatever a missing member leads to
                unread.append(f"entry {index} of the HAR cannot be read ({error!r})")
                continue
            self.flow_ids.append(state["id"])
            self._starts.append(started_at(state["request"]))
            self._entries.append(state)
        if unread:
            self.damage = unread[0] + (f", nor can {len(unread) - 1} more" if len(unread) > 1 else "")


def _next(heap: list[tuple[float, int, int, list[Event]]]) -> Event:
    """Take the earliest event; the one after it of the same flow takes its place (never before it, whatever its clock says)."""
    at, order, place, events = heap[0]
    if place + 1 < len(events):
        heapq.heapreplace(heap, (max(at, events[place + 1].at), order, place + 1, events))
    else:
        heapq.heappop(heap)
    return events[place]


def _har_state(entry: dict[str, Any], flow_id: str) -> State:
    """A HAR entry as the state of a flow. mitmproxy's reader gives the frame; header fields and bodies are taken as the entry
    has them: it would add a Content-Length, and read text as Latin-1 where no charset says otherwise (event streams)."""
    flow = request_to_flow(entry)
    flow.id = flow_id
    state: State = flow.get_state()
    request, response = state["request"], state["response"]
    request["headers"] = _har_fields(entry["request"])
    posted = entry["request"].get("postData")
    request["content"] = _har_text(posted["text"]) if posted is not None else b""
    response["headers"] = _har_fields(entry["response"])
    content = entry["response"]["content"]
    if "text" not in content:
        response["content"] = b"" if content.get("size") == 0 else None
    elif content.get("encoding") != "base64":
        response["content"] = _har_text(content["text"])
    if response["status_code"] == 0:  # browsers write that where no response came
        state["response"] = None
        state["error"] = {"msg": "no response in the HAR", "timestamp": response["timestamp_end"]}
    _har_end(entry.get("_mcp"), state, response)
    _har_changed(entry.get("_mcp"), state)
    return state


def _har_end(told: Any, state: State, response: State) -> None:
    """Who ended it: what our own export says (`_mcp`). A HAR itself has no place for that, and of an event stream it matters."""
    by = told.get("ended_by") if isinstance(told, dict) else None
    if by is None and state["response"] is not None and is_event_stream(_content_type(response)):
        by = "unknown"
    if by not in ("client", "server", "unknown"):
        return
    why = told.get("failure") if isinstance(told, dict) else None
    if not isinstance(why, str):
        why = "the HAR does not say who ended the stream" if by == "unknown" else f"closed by the {by}"
    state["metadata"] = {**state["metadata"], "mcp.ended": by}
    state["error"] = {"msg": why, "timestamp": response["timestamp_end"]}


_TEXTS = frozenset({"host"})  # of a request: what mitmproxy keeps as text, and not as bytes


def _har_changed(told: Any, state: State) -> None:
    """What was changed at the proxy, as our own export says it (`_mcp.changed`)."""
    note = told.get("changed") if isinstance(told, dict) else None
    if not isinstance(note, dict):
        return
    made = {
        name: {inner: value if inner in _TEXTS else _as_bytes(value) for inner, value in part.items()}
        if isinstance(part, dict)
        else part
        for name, part in note.items()
    }
    state["metadata"] = {**state["metadata"], "mcp.changed": made}


def _as_bytes(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, dict):
        encoded = value.get("base64")
        try:
            return base64.b64decode(encoded) if isinstance(encoded, str) else None
        except ValueError:
            return None
    return [_as_bytes(inner) for inner in value] if isinstance(value, list) else value


def _content_type(response: State) -> str:
    return next((value.decode("latin-1") for name, value in response["headers"] if name.lower() == b"content-type"), "")


def _har_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape" if not text.isascii() else "strict")


def _har_fields(message: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    """Without the pseudo fields of HTTP/2, which are not header fields, and without the coding that the exporter has undone."""
    return [
        (name, value)
        for name, value in fix_headers(message["headers"]).fields
        if not name.startswith(b":") and name.lower() != b"content-encoding"
    ]
