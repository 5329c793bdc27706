"""What happens on the wire, as the trace is told of it. Every event carries its own time; nothing here reads a clock.

The same events describe live traffic and a recording; `Inspector.feed` takes them in time order. Four of them tell of traffic
that passes as it came; the others say what the proxy changed: the request (`RequestSent`), the answer (`AnswerPassed`), or that
it answered in the server's place (`AnsweredHere`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from mcp_wiretap.wire.headers import Fields

NOTHING: Mapping[str, Any] = MappingProxyType({})

type EndedBy = Literal["complete", "client", "server", "unknown"]


@dataclass(slots=True, frozen=True)
class RequestSeen:
    """An HTTP request, complete. `body` is None when the recorder did not keep it, b"" when it was empty."""

    flow: str
    at: float  # the request's last byte
    started: float  # the request's first byte
    http_method: str
    scheme: str
    host: str
    port: int
    target: str  # path with query, as sent
    fields: Fields
    body: bytes | None
    connection: str  # id of the client connection: a hint, never an identity
    authority: str | None = None  # what the client called the host (Host or :authority)
    reverse: bool = False  # the URL is that of the server behind a reverse proxy, not what the client called
    redacted: Mapping[str, Any] = NOTHING  # facts of secrets that an export has replaced (the package redact)
    command: str | None = None  # of a stdio server's process: what it is started by, secrets masked
    probe: bool = False  # `mcp-wiretap probe` sent it, wrong on purpose: the server alone is judged by it


@dataclass(slots=True, frozen=True)
class ResponseStarted:
    """Status line and header fields of the response."""

    flow: str
    at: float
    status: int
    fields: Fields


@dataclass(slots=True, frozen=True)
class StreamData:
    """Bytes of an event stream as they arrived. `decoded`: the content coding is undone already. `timed` is False where a
    recording does not tell when they came (`at` is then the end of the response)."""

    flow: str
    at: float
    data: bytes
    decoded: bool = False
    timed: bool = True


@dataclass(slots=True, frozen=True)
class ProcessEnd:
    """How the process of a stdio server ended."""

    status: int | None  # negative: killed by that signal; None: its wrapper did not say
    input_ended: float | None  # when the client closed its standard input; None: it did not


@dataclass(slots=True, frozen=True)
class ExchangeEnded:
    """The exchange is over. `body` is the whole response body where it was buffered; None where it was fed as StreamData
    (`streamed`) or was not kept by the recorder."""

    flow: str
    at: float
    body: bytes | None
    streamed: bool
    ended_by: EndedBy
    error: str | None = None
    dropped: int = 0  # bytes past a limit that were not kept
    connected: bool = True  # False: the proxy did not reach the server
    decode_problem: str | None = None  # what was wrong with the content coding of a stream that was fed decoded
    on_its_way: bool = False  # the answer may be changed before the client gets it: `AnswerPassed` may follow
    process: ProcessEnd | None = None  # where the exchange stands for a stdio server's process


@dataclass(slots=True, frozen=True)
class RequestSent:
    """The request as the server was given it, where it is no longer the one that the client sent (`RequestSeen`). `by`: who
    changed it, as far as that is known."""

    flow: str
    at: float
    http_method: str
    scheme: str
    host: str
    port: int
    target: str
    fields: Fields
    body: bytes | None
    by: str = "unknown"
    unsure: str = ""  # why it is not sure that the server was given this


@dataclass(slots=True, frozen=True)
class AnsweredHere:
    """Somebody at the proxy answers: nothing is sent to the server, and what comes now is not its answer."""

    flow: str
    at: float
    by: str = "unknown"


@dataclass(slots=True, frozen=True)
class AnswerPassed:
    """The answer as the client got it, where it is no longer the one that the server gave. `body` is the whole body, also of an
    event stream; None where it was not kept. `status` is None where the client got none: the flow was killed."""

    flow: str
    at: float
    status: int | None
    fields: Fields
    body: bytes | None
    by: str = "unknown"
    on_its_way: bool = False  # it may be changed once more: another `AnswerPassed` may follow


@dataclass(slots=True, frozen=True)
class Faulted:
    """A fault was put into an exchange (`mcp_fault`), or could not be (`applied` False)."""

    flow: str
    at: float
    kind: str
    argument: str = ""
    applied: bool = True
    state: str = ""


type Event = RequestSeen | Faulted | RequestSent | AnsweredHere | ResponseStarted | StreamData | ExchangeEnded | AnswerPassed
