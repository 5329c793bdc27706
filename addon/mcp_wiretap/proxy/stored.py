"""A stored flow made into the events that it was when it was live. Reads the state of mitmproxy's flows (its .flow format).

Kept event streams are split at the boundaries of their events, each with the time that `mcp.events` holds for it; without times
(a recording of someone else's) they come in one piece at the end, marked untimed; but the address that an HTTP+SSE stream
announces comes first of all.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_wiretap.proxy import form
from mcp_wiretap.proxy.form import State
from mcp_wiretap.proxy.stored_changes import Change, changes_of
from mcp_wiretap.stdio.lines import CANCELLED, OUTPUT_ENDED
from mcp_wiretap.stdio.session import WRAPPER_GONE
from mcp_wiretap.trace.events import (
    NOTHING,
    AnsweredHere,
    AnswerPassed,
    EndedBy,
    Event,
    ExchangeEnded,
    Faulted,
    ProcessEnd,
    RequestSeen,
    RequestSent,
    ResponseStarted,
    StreamData,
)
from mcp_wiretap.wire.coding import Decoder
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.sse import SseParser

_BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
_BEGINNING = 64 << 10  # bytes in which a stream announces its address
_HAS_DATA = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])data[:\r\n]")
_ENDS: dict[str, EndedBy] = {"client": "client", "server": "server", "unknown": "unknown"}


def events_of(state: State, stream_limit: int, *, address: tuple[str, str, int] | None = None) -> list[Event]:
    """The events of a stored HTTP flow, in order. `address` (scheme, host, port) replaces the request's, where mitmproxy has
    rewritten it while loading. Times that are none are settled in the state. Malformed (a ValueError) where the state is not that
    of an HTTP flow."""
    form.check(state)
    form.settle_times(state)
    request, response, error = state["request"], state["response"], state["error"]
    flow, metadata = state["id"], state["metadata"]
    change = changes_of(state)
    if change.received is not None:  # it has an address of its own, as it was received
        seen = _request(flow, state, change.received, response, error, None)
    else:
        seen = _request(flow, state, request, response, error, address)
    events: list[Event] = [seen]
    if change.received is not None and change.sent:
        events.append(_sent(flow, request, max(change.at, seen.at), change, address))
    if (fault := _fault_of(flow, metadata, seen.at)) is not None:
        events.append(fault)
    if response is None and error is None:
        return events
    ended = _ended_at(response, error)
    if response is None:
        by, why = _who(error, response, metadata)
        connected = by == "client" or seen.scheme == "stdio" or _connected(state["server_conn"])
        events.append(ExchangeEnded(flow, ended or seen.at, None, False, by, why, connected=connected, process=exit_of(metadata)))
        return events
    given = change.given or response
    head = response["timestamp_start"]
    head = float(head) if head is not None else seen.at
    fields = Fields([(name, value) for name, value in given["headers"]])
    if change.answered:
        events.append(AnsweredHere(flow, head, change.by))
    events.append(ResponseStarted(flow, head, given["status_code"], fields))
    body, streamed, problem = given["content"], False, None
    if body is not None and is_event_stream(fields.first("content-type") or ""):
        times = metadata.get("mcp.events")
        coding = fields.first("content-encoding")
        pieces, problem = _stream(flow, body, coding, times, (head, ended if ended is not None else head), stream_limit)
        events += pieces
        body, streamed = None, True
    elif body and seen.command is not None:
        events.append(StreamData(flow, head, body[:stream_limit], timed=False))
    if ended is None:
        return events  # saved while it was open
    by, why = ("complete", None) if change.killed else _who(error, response, metadata)
    dropped = metadata.get("mcp.dropped")
    passed = change.given is not None and change.passed
    events.append(
        ExchangeEnded(
            flow,
            ended,
            body,
            streamed,
            by,
            why,
            dropped if isinstance(dropped, int) else 0,
            decode_problem=problem,
            on_its_way=passed,
            process=exit_of(metadata),
        )
    )
    if passed and change.killed:
        events.append(AnswerPassed(flow, ended, None, Fields(()), None, change.response_by))
    elif passed:
        got = Fields([(name, value) for name, value in response["headers"]])
        events.append(AnswerPassed(flow, ended, response["status_code"], got, response["content"], change.response_by))
    return events


def started_at(request: State) -> float:
    at = request["timestamp_start"]
    return float(at) if form.is_time(at) else 0.0


def _request(
    flow: str, state: State, request: State, response: State | None, error: State | None, address: tuple[str, str, int] | None
) -> RequestSeen:
    started = started_at(request)
    ended, body = request["timestamp_end"], request["content"]
    if ended is None:  # the client broke off
        body = None
        ended = error["timestamp"] if error is not None else started
    head = response["timestamp_start"] if response is not None else None
    if head is not None and started <= head < ended:
        ended = head  # HAR readers give the request the end of the whole entry
    scheme, host, port = address or (text(request["scheme"]), _name(request["host"]), request["port"])
    fields = Fields([(name, value) for name, value in request["headers"]])
    client, redacted = state["client_conn"], state["metadata"].get("mcp.redacted")
    return RequestSeen(
        flow,
        float(ended),
        started,
        text(request["method"]),
        scheme,
        host,
        port,
        text(request["path"]),
        fields,
        body,
        client["id"],
        authority(request["http_version"], request["authority"], fields),
        _is_reverse(client.get("proxy_mode")),
        redacted if isinstance(redacted, dict) else NOTHING,
        command_of(state["metadata"]),
        "mcp.probe" in state["metadata"],
    )


def _sent(flow: str, request: State, at: float, change: Change, address: tuple[str, str, int] | None) -> RequestSent:
    scheme, host, port = address or (text(request["scheme"]), _name(request["host"]), request["port"])
    fields = Fields([(name, value) for name, value in request["headers"]])
    return RequestSent(
        flow,
        at,
        text(request["method"]),
        scheme,
        host,
        port,
        text(request["path"]),
        fields,
        request["content"],
        change.by,
        change.unsure,
    )


def _fault_of(flow: str, metadata: Mapping[str, Any], at: float) -> Faulted | None:
    """The fault that `mcp_fault` put in; None without one."""
    told = metadata.get("mcp.fault")
    if not isinstance(told, dict) or not isinstance(told.get("kind"), str):
        return None
    argument, state = told.get("argument"), told.get("state")
    return Faulted(
        flow,
        at,
        told["kind"],
        argument if isinstance(argument, str) else "",
        told.get("applied") is not False,
        state if isinstance(state, str) else "",
    )


def command_of(metadata: Mapping[str, Any]) -> str | None:
    """What a stdio server is started by; None where the flow does not stand for its process."""
    command = metadata.get("mcp.command")
    return command if isinstance(command, str) else None


def exit_of(metadata: Mapping[str, Any]) -> ProcessEnd | None:
    """How a stdio server's process ended; None where the flow does not stand for one."""
    if command_of(metadata) is None:
        return None
    status, input_ended = metadata.get("mcp.exit"), metadata.get("mcp.input_ended")
    return ProcessEnd(
        status if isinstance(status, int) else None, float(input_ended) if isinstance(input_ended, int | float) else None
    )


def _is_reverse(mode: bytes | str | None) -> bool:
    """Whether the client took the proxy for the server: the URL is then not the one that it called."""
    return mode is not None and text(mode).startswith("reverse")


def authority(http_version: bytes, named: bytes, fields: Fields) -> str | None:
    """What the client called the host: :authority on HTTP/2 and 3 (`named`), Host before."""
    if named and http_version.startswith((b"HTTP/2", b"HTTP/3")):
        return _idna(named)
    hosts = fields.all_bytes("host")
    return ", ".join(map(text, hosts)) if hosts else None


def _idna(value: bytes) -> str:
    try:
        return value.decode("idna")
    except UnicodeError:
        return value.decode("utf-8", "surrogateescape")


def _ended_at(response: State | None, error: State | None) -> float | None:
    if error is not None:
        return float(error["timestamp"])
    ended = response["timestamp_end"] if response is not None else None
    return float(ended) if ended is not None else None


def _who(error: State | None, response: State | None, metadata: State) -> tuple[EndedBy, str | None]:
    """Who ended a stored flow: what we noted when it was live, else what the error's text tells (connection states are not
    stored)."""
    if error is None:
        return "complete", None
    said: str = error["msg"]
    noted = metadata.get("mcp.ended")
    by = _ENDS.get(noted) if isinstance(noted, str) else None
    if by is None:
        by = ended_by(said, response is not None)
    return by, failure(said, by)


def ended_by(said: str, answered: bool) -> EndedBy:
    """Who ended a flow, by the text of its error."""
    if said in (OUTPUT_ENDED, WRAPPER_GONE):
        return "server"
    if said == CANCELLED:
        return "client"
    if said == "Client disconnected." or said.endswith("(CANCEL)"):
        return "client"
    if answered:
        return "server" if "peer closed connection without sending complete message body" in said else "unknown"
    refused = "Connect call failed" in said or "server closed connection" in said or said.startswith("[Errno")
    return "server" if refused else "unknown"


def _connected(server: State) -> bool:
    """Whether the connection to the server came about, its TLS included."""
    if server.get("timestamp_tcp_setup") is None:
        return False
    return not server.get("tls") or server.get("timestamp_tls_setup") is not None


def failure(said: str, by: EndedBy) -> str:
    """mitmproxy's word for an error, put right where it is known to say something else than happened."""
    if said == "Connection killed.":
        return "killed in mitmproxy"
    if by == "unknown" and said == "Client disconnected.":
        return "closed by mitmproxy after too long without traffic (option tcp_timeout)"
    return said


def is_event_stream(content_type: str) -> bool:
    return content_type[:17].lower() == "text/event-stream"


def _stream(
    flow: str, body: bytes, coding: str | None, times: Any, span: tuple[float, float], limit: int
) -> tuple[list[StreamData], str | None]:
    """The pieces of a kept event stream (`span`: its start and end), and what was wrong with its content coding."""
    problem, (start, end) = None, span
    if coding:
        decoder = Decoder(coding, limit)
        body = decoder.feed(body[:limit])
        decoder.finish()
        problem = decoder.problem
    if not isinstance(times, list) or not all(isinstance(t, int | float) for t in times):
        first = announcement(body)
        pieces = [(start, body[:first]), (end, body[first:])]
        return [StreamData(flow, at, data, decoded=True, timed=False) for at, data in pieces if data], problem
    return [StreamData(flow, at, data, decoded=True) for at, data in split(body, times, end)], problem


def announcement(body: bytes) -> int:
    """Where the `endpoint` event ends with which an HTTP+SSE stream begins, after whatever comments, retry times and empty lines;
    0 for other streams."""
    beginning, parser, done = body[:_BEGINNING], SseParser(), 0
    for blank in _BLANK_LINE.finditer(beginning):
        events = parser.feed(beginning[done : blank.end()])
        done = blank.end()
        if events:
            return done if events[0].event == "endpoint" else 0
    return 0


def split(body: bytes, times: list[float], end: float) -> Iterator[tuple[float, bytes]]:
    """Cut an event stream after each event, with the time of that event. Events that came at once stay together. What follows
    the last event, and events without a time, come at `end`."""
    start = boundary = scanned = count = 0
    current: float | None = None
    for match in _BLANK_LINE.finditer(body):
        block, scanned = scanned, match.end()
        # From the newline before the block: the pattern wants one in front of a field.
        if not _HAS_DATA.search(body, max(block - 1, 0), scanned):
            continue
        at = times[count] if count < len(times) else end
        count += 1
        if current is not None and at != current:
            yield current, body[start:boundary]
            start = boundary
        current, boundary = at, scanned
    if current is not None and boundary > start:
        yield current, body[start:boundary]
    if boundary < len(body):
        yield end, body[boundary:]


def text(value: bytes | str) -> str:
    """A member that mitmproxy keeps as bytes, as its own properties read it."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _name(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("idna")
