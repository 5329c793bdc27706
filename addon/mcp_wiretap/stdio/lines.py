"""Lines of a stdio conversation made into exchanges, without I/O: the proxy, the recorder and the tests use the same.

stdio has one channel and no headers; a trace wants exchanges. The picture is the one that the trackers know from HTTP. A line
of the client is a POST. The answer with its id is the response; what belongs to an open request by progress token, subscription
id or request id comes before it, as an event of that response. Everything else that the server says is an event of one long GET:
its stdout. A notification that names no request belongs to none: nothing is guessed.
Spec: 2026-07-28 basic/transports/stdio, basic/patterns/cancellation, basic/patterns/subscriptions.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

type What = Literal[
    "open",  # a request begins: `data` is the client's line, `http_method` says POST or GET
    "head",  # its response begins: `status`, `sse`
    "event",  # an event of its response: `data` is the block, `line` what the server wrote
    "end",  # it is over: `data` is the whole body where it is no event stream
    "lost",  # it is over without an answer: `why` says why
]

UNTERMINATED = "unterminated"  # the type of an event that holds a line without its newline: the output ended inside it
OUTPUT_ENDED = "the server's output has ended"
CANCELLED = "cancelled by the client"
NOT_KEPT = "what the server said then was not kept: there was no proxy yet"

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
_MOST_OPEN = 5_000  # requests without an answer; a client that floods must not fill the memory
_MOST_DOUBTFUL = 100  # lines of the client that are no message, and may be answered by an error without id


@dataclass(slots=True, frozen=True)
class Step:
    """What happens to one exchange."""

    what: What
    key: int  # of the exchange, counted from 1 in its session
    at: float
    data: bytes = b""
    line: bytes = b""
    http_method: str = "POST"
    status: int = 200
    sse: bool = False
    why: str = ""


@dataclass(slots=True, eq=False)
class _Open:
    """A line of the client that may be answered."""

    key: int
    method: str = ""
    pending: set[str] = field(default_factory=set)  # ids of its requests without an answer: several in a batch
    tokens: set[str] = field(default_factory=set)
    streams: bool = False
    logs: bool = False
    doubtful: bool = False  # it is no message: an error without id answers it
    cancelled: bool = False

    @property
    def is_call(self) -> bool:
        return not self.doubtful and not self.cancelled and self.method != "subscriptions/listen"


class Lines:
    """One session: the lines of a server process and of its client, in the order of their times."""

    def __init__(self) -> None:
        self._keys = 0
        self._open: OrderedDict[int, _Open] = OrderedDict()  # by key
        self._by_id: dict[str, list[_Open]] = {}
        self._stdout = 0

    def client(self, line: bytes, at: float) -> Iterator[Step]:
        """A line of the client, without its newline."""
        yield from self.close_doubtful(at, most=_MOST_DOUBTFUL)
        self._keys += 1
        yield Step("open", self._keys, at, line)
        opened = _read_client(self._keys, _json(line))
        self._note_cancelled(_json_messages(line))
        if opened is None:  # notifications and answers: nobody answers them
            yield from _accepted(self._keys, at)
            return
        self._open[opened.key] = opened
        for id_ in opened.pending:
            self._by_id.setdefault(id_, []).append(opened)
        while len(self._open) > _MOST_OPEN:
            oldest = next(iter(self._open.values()))
            self._forget(oldest)
            yield Step("lost", oldest.key, at, why="too many requests without an answer")

    def server(self, line: bytes, at: float, *, terminated: bool = True) -> Iterator[Step]:
        """A line of the server, without its newline. `terminated`: it had one."""
        value = _json(line)
        owner = self._owner(value) if terminated or value is not None else None
        block = _block(line, "" if terminated else UNTERMINATED)
        if owner is None:
            yield from self._said(line, block, at)
            return
        done = self._answered(owner, value)
        if done:
            self._forget(owner)
            if not owner.doubtful:
                yield from self.close_doubtful(at, before=owner.key)
            if not owner.streams and terminated:
                yield Step("head", owner.key, at)
                yield Step("end", owner.key, at, line, line=line)
                return
        if not owner.streams:
            owner.streams = True
            yield Step("head", owner.key, at, sse=True)
        yield Step("event", owner.key, at, block, line=line)
        if done:
            yield Step("end", owner.key, at)

    def over(self, at: float, why: str = OUTPUT_ENDED) -> Iterator[Step]:
        """The server's output has ended: what is open stays without an answer."""
        yield from self.close_doubtful(at)
        yield from self._lose(at, why)
        if self._stdout:
            yield Step("end", self._stdout, at)
            self._stdout = 0

    def gap(self, at: float) -> Iterator[Step]:
        """Lines are missing here: what was open may have been answered by them."""
        yield from self.close_doubtful(at)
        yield from self._lose(at, NOT_KEPT)

    def close_doubtful(self, at: float, *, before: int | None = None, most: int = 0) -> Iterator[Step]:
        """Close lines of the client that are no messages: nobody has answered them. `before`: only those that came before that
        exchange, whose answer shows that the server is past them; `most`: leave so many of them open."""
        doubtful = [o for o in self._open.values() if o.doubtful and (before is None or o.key < before)]
        for one in doubtful[: len(doubtful) - most if most else None]:
            self._forget(one)
            if one.streams:
                yield Step("end", one.key, at)
            else:
                yield from _accepted(one.key, at)

    def _lose(self, at: float, why: str) -> Iterator[Step]:
        for one in list(self._open.values()):
            self._forget(one)
            yield Step("lost", one.key, at, why=CANCELLED if one.cancelled else why)

    def _said(self, line: bytes, block: bytes, at: float) -> Iterator[Step]:
        """What belongs to no request: an event of the server's stdout."""
        if not self._stdout:
            self._keys += 1
            self._stdout = self._keys
            yield Step("open", self._stdout, at, http_method="GET")
            yield Step("head", self._stdout, at, sse=True)
        yield Step("event", self._stdout, at, block, line=line)

    def _forget(self, one: _Open) -> None:
        self._open.pop(one.key, None)
        for id_ in list(one.pending):
            self._no_longer(one, id_)

    def _no_longer(self, one: _Open, id_: str) -> None:
        one.pending.discard(id_)
        waiting = self._by_id.get(id_, [])
        if one in waiting:
            waiting.remove(one)
        if not waiting:
            self._by_id.pop(id_, None)

    def _answered(self, owner: _Open, value: Any) -> bool:
        """Whether this is the last message of the owner's response."""
        messages = [m for m in (value if isinstance(value, list) else [value]) if isinstance(m, dict)]
        answers = [m for m in messages if "method" not in m]
        for message in answers:
            id_ = _id(message.get("id"))
            self._no_longer(owner, id_ if id_ in owner.pending else next(iter(owner.pending), id_))
        return bool(answers) and not owner.pending

    def _owner(self, value: Any) -> _Open | None:
        """The open request that a message of the server belongs to; None where it belongs to none, or might to several."""
        if isinstance(value, list):
            return next((owner for item in value if (owner := self._owner(item)) is not None), None)
        if not isinstance(value, dict):
            return None
        if "method" not in value:
            return self._asked(value) if "result" in value or "error" in value else None
        params = _object(value.get("params"))
        match value["method"]:
            case "notifications/progress":
                return self._by_token(params.get("progressToken")) if "progressToken" in params else None
            case "notifications/cancelled":
                return self._by_key(params["requestId"]) if "requestId" in params else None
        meta = _object(params.get("_meta"))
        if _SUBSCRIPTION in meta:
            return self._by_key(meta[_SUBSCRIPTION])
        if value["method"] == "notifications/message":
            return self._only(o for o in self._open.values() if o.logs)
        if "id" in value and value["method"] != "ping":  # a question of a legacy server: about the one call that is open
            return self._only(o for o in self._open.values() if o.is_call)
        return None

    def _asked(self, answer: dict[str, Any]) -> _Open | None:
        found = self._by_key(answer.get("id"))
        if found is not None:
            return found
        if answer.get("id") is None:  # it answers a line that could not be read, or a request whose id could not be
            return next((o for o in self._open.values() if o.doubtful), None)
        alike = [o for key, waiting in self._by_id.items() if key.partition(":")[2] == str(answer["id"]) for o in waiting]
        return alike[0] if len(alike) == 1 else None  # "1" for 1: the request is clear, the fault as well

    def _by_key(self, id_: Any) -> _Open | None:
        waiting = self._by_id.get(_id(id_))
        return waiting[0] if waiting else None

    def _by_token(self, token: Any) -> _Open | None:
        wanted = _id(token)
        return next((o for o in self._open.values() if wanted in o.tokens), None)

    def _only(self, found: Iterator[_Open]) -> _Open | None:
        """The only one; None where there are none or several."""
        one = next(found, None)
        return one if next(found, None) is None else None

    def _note_cancelled(self, messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if message.get("method") == "notifications/cancelled":
                params = _object(message.get("params"))
                owner = self._by_key(params["requestId"]) if "requestId" in params else None
                if owner is not None:
                    owner.cancelled = True


def _accepted(key: int, at: float) -> Iterator[Step]:
    yield Step("head", key, at, status=202)
    yield Step("end", key, at)


def _read_client(key: int, value: Any) -> _Open | None:
    """What waits for an answer to a line of the client; None where nothing does."""
    opened = _Open(key)
    items = value if isinstance(value, list) else [value]
    for message in items:
        if not isinstance(message, dict):
            opened.doubtful = True
        elif "method" in message:
            if "id" in message:
                _ask(opened, message)
        elif "result" not in message and "error" not in message:
            opened.doubtful = True
            if "id" in message:
                opened.pending.add(_id(message["id"]))
    if not items:
        opened.doubtful = True
    return opened if opened.pending or opened.doubtful else None


def _ask(opened: _Open, message: dict[str, Any]) -> None:
    opened.pending.add(_id(message["id"]))
    opened.method = opened.method or str(message["method"])
    meta = _object(_object(message.get("params")).get("_meta"))
    if "progressToken" in meta:
        opened.tokens.add(_id(meta["progressToken"]))
    opened.logs = opened.logs or _LOG_LEVEL in meta


def _json_messages(line: bytes) -> list[dict[str, Any]]:
    """The messages of a line that may cancel something."""
    if b"notifications/cancelled" not in line:
        return []
    value = _json(line)
    return [m for m in (value if isinstance(value, list) else [value]) if isinstance(m, dict)]


def _json(line: bytes) -> Any:
    """The JSON value of a line; None where it is none, and where it is one that must not be looked into."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _id(value: Any) -> str:
    """An id with its JSON type: 1 is not "1"."""
    return f"{type(value).__name__}:{value}" if not isinstance(value, dict | list) else "other:"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _block(line: bytes, kind: str) -> bytes:
    """A line as an event. A carriage return would end it in an event stream: a line with some has several data fields."""
    parts = line.rstrip(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    head = b"event: %s\n" % kind.encode() if kind else b""
    return head + b"".join(b"data: %s\n" % part for part in parts) + b"\n"
