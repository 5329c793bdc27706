"""What was changed of a live flow on its way: by a person, by an option of mitmproxy, by a script, by ourselves.

Our own hooks stand before all that: they see the request as it was received and the answer as the server gave it. What became of
either is looked at once more, at the end of the chain where something there may change it (`proxy.last`), else at the next hook.
First by identity: mitmproxy makes new objects of what is edited, so a flow that nobody touched costs a few comparisons.

What was changed is kept in the flow (`mcp.changed`), so that a recording tells both versions: the other one stands there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from mitmproxy import ctx
from mitmproxy.addonmanager import traverse
from mitmproxy.flow import Error
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.stored import text
from mcp_wiretap.trace.events import AnsweredHere, AnswerPassed, Event, RequestSent
from mcp_wiretap.wire.headers import Fields

CHANGED = "mcp.changed"
MOST = 10_000  # flows on their way at once; of those past it a change is not noticed
_OPTIONS = ("modify_body", "modify_headers", "map_remote", "map_local", "stickycookie", "stickyauth", "intercept", "block_list")

type RawFields = tuple[tuple[bytes, bytes], ...]


class Head(NamedTuple):
    """A request without its body, as mitmproxy holds it."""

    fields: RawFields
    method: bytes
    scheme: bytes
    host: str
    port: int
    path: bytes
    authority: bytes


class Request(NamedTuple):
    head: Head
    body: bytes | None


class Answer(NamedTuple):
    status: int
    fields: RawFields
    body: bytes | None


@dataclass(slots=True)
class _Way:
    """One flow on its way through mitmproxy."""

    received: Request | None = None  # as it was fed; None once what was sent is known
    given: Answer | None = None  # as the server gave it
    left: Answer | None = None  # the head of a stream as it was passed on
    streamed: bytes | None = None  # what other addons made of an event stream
    told: Answer | None = None  # the answer that the trace was told of last
    answered: bool = False  # an addon has answered before anything was sent
    by: str | None = None  # who changes it, where that is ourselves


class Changes:
    """`feed` takes what is found."""

    def __init__(self, feed: Callable[[Event, HTTPFlow], None], clock: Callable[[], float]) -> None:
        self.scripts = False  # there are addons that may change traffic
        self._feed = feed
        self._clock = clock
        self._heads: dict[str, Request] = {}
        self._ways: dict[str, _Way] = {}

    # The request

    def came(self, flow: HTTPFlow) -> None:
        """The head of a request has come, or all of it: other addons may change it before we are asked again."""
        known = self._heads.get(flow.id)
        self._heads[flow.id] = Request(known.head if known is not None else head_of(flow), flow.request.data.content)
        if len(self._heads) > MOST:
            del self._heads[next(iter(self._heads))]

    def received(self, flow: HTTPFlow) -> Request:
        """The whole request has come. Returns it as the client sent it."""
        flow.metadata.pop(CHANGED, None)  # of an earlier way: mitmproxy replays flows in place
        now = head_of(flow)
        body = flow.request.data.content
        head, before = self._heads.pop(flow.id, Request(now, body))
        if before is not None and flow.request.data.timestamp_end is not None:
            body = before
        if head.fields is not now.fields and _without(head.fields, b"expect") == now.fields:
            head = now  # mitmproxy itself answered `Expect: 100-continue`
        received = Request(head, body)
        self._ways[flow.id] = _Way(received, answered=flow.response is not None)
        if len(self._ways) > MOST:
            del self._ways[next(iter(self._ways))]
        return received

    def ours(self, flow: HTTPFlow, by: str) -> None:
        """It is ourselves who change this flow."""
        if (way := self._ways.get(flow.id)) is not None:
            way.by = by

    def sent(self, flow: HTTPFlow, trace_id: str, limit: int, *, leaves: bool = False, held: Request | None = None) -> None:
        """The request goes to the server now (`leaves`), or has gone there. `held`: how it was when a person began to hold it."""
        way = self._ways.get(flow.id)
        if way is None or way.received is None:
            return
        received, way.received = way.received, None
        way.answered = way.answered or (leaves and flow.response is not None)
        data = flow.request.data
        now = Request(head_of(flow), data.content)
        if _are_equal(received, now) or "mcp.replay" in flow.metadata:  # that goes to the server that we play ourselves
            return
        by_user = held is not None and not _are_equal(held, now)
        by = way.by or ("user" if by_user else _by_whom(flow, _parts(received, now), self.scripts))
        at = self._clock()
        _note(flow, by)["request"] = stored_request(received, at, limit)
        self._feed(request_sent(trace_id, at, now, by), flow)

    # The answer

    def answered(self, flow: HTTPFlow, trace_id: str) -> None:
        """The head of a response has come, of the server or of an addon."""
        response = flow.response
        assert response is not None
        way = self._ways.get(flow.id)
        if way is None:
            return
        way.given = Answer(response.data.status_code, response.data.headers.fields, None)
        if not way.answered or flow.is_replay == "response" or "mcp.replay" in flow.metadata:
            return  # what is replayed was a server's answer
        by = way.by or _by_whom(flow, {"answer"}, self.scripts)
        _note(flow, by)["answered"] = True
        self._feed(AnsweredHere(trace_id, self._clock(), by), flow)

    def head_left(self, flow: HTTPFlow) -> None:
        """All addons have seen the head of the response. Of a stream it goes to the client now."""
        way, response = self._ways.get(flow.id), flow.response
        if way is not None and response is not None and response.stream:
            way.left = Answer(response.data.status_code, response.data.headers.fields, None)

    def answer_came(self, flow: HTTPFlow) -> None:
        """The whole answer has come, and no addon has seen it."""
        way, response = self._ways.get(flow.id), flow.response
        if way is not None and way.given is not None and response is not None and not response.stream:
            way.given = way.given._replace(body=response.data.content)

    def given(self, flow: HTTPFlow, body: bytes | None) -> bytes | None:
        """The whole answer of the server is here. Returns its body as it came: a script may have changed it already."""
        way = self._ways.get(flow.id)
        if way is None or way.given is None:
            return body
        if way.given.body is None:
            way.given = way.given._replace(body=body)
        return way.given.body

    def differs(self, flow: HTTPFlow, streamed: bytes | None) -> bool:
        """Whether the answer, as it is by now, is another one than the server gave."""
        way = self._ways.get(flow.id)
        return way is not None and _changed_answer(way, flow, streamed) is not None

    def passed(
        self,
        flow: HTTPFlow,
        trace_id: str,
        limit: int,
        *,
        held: Answer | None = None,
        streamed: bytes | None = None,
        last: bool = True,
    ) -> bool:
        """The answer goes to the client now, or has gone there. `held`: how it was when a person began to hold it; `streamed`:
        what other addons made of an event stream; `last`: nobody changes it any more. Whether the trace was told of a change."""
        way = self._ways.pop(flow.id, None) if last else self._ways.get(flow.id)
        if way is None or way.given is None or flow.response is None:
            return False
        killed = held is not None and flow.error is not None and flow.error.msg == Error.KILLED_MESSAGE
        streamed = streamed if streamed is not None else way.streamed
        now = _changed_answer(way, flow, streamed)
        if not killed and (now is None or now == way.told):
            return False
        given = way.given
        if now is None:
            now = given
        note = flow.metadata.get(CHANGED)
        if isinstance(note, dict) and note.get("answered") and not killed:
            return False  # an addon's answer, changed: it is not the server's in any case
        by_user = killed or (held is not None and held != now)
        by = way.by or ("user" if by_user else _by_whom(flow, _answer_parts(given, now), self.scripts))
        note = _note(flow, by)
        note["response_by"] = by
        note["response"] = {"status": given.status, "headers": _listed(given.fields), "body": _bounded(given.body, limit)}
        if killed:
            note["killed"] = True
        elif streamed is not None:
            way.streamed = flow.response.raw_content = streamed
        way.told = now
        self._feed(answer_passed(trace_id, self._clock(), None if killed else now, by, on_its_way=not last), flow)
        return True

    def over(self, flow: HTTPFlow) -> None:
        """Nothing more comes of it."""
        self._heads.pop(flow.id, None)
        self._ways.pop(flow.id, None)


def _note(flow: HTTPFlow, by: str) -> dict[str, Any]:
    note = flow.metadata.get(CHANGED)
    if not isinstance(note, dict):
        note = flow.metadata[CHANGED] = {"by": by, "request": None, "response": None}
    return note


def _are_equal(one: Request, other: Request) -> bool:
    if one.body is not other.body and one.body != other.body:
        return False
    return one.head == other.head or _differ_in_length_only(one.head, other.head)


def _changed_answer(way: _Way, flow: HTTPFlow, streamed: bytes | None) -> Answer | None:
    """The answer as the client gets it; None where it is the one that the server gave."""
    given, response = way.given, flow.response
    if given is None or response is None:
        return None
    data = response.data
    now = Answer(data.status_code, data.headers.fields, data.content if streamed is None else streamed)
    if response.stream:  # its head went out long ago, and what is edited of its body is the record only
        head = way.left or now
        now = Answer(head.status, head.fields, given.body if streamed is None else streamed)
    if now.status != given.status or (now.body is not given.body and now.body != given.body):
        return now
    if now.fields is given.fields or _without(now.fields, b"content-length") == _without(given.fields, b"content-length"):
        return None
    return now


def may_change(scripts: bool) -> bool:
    """Whether anything here can change what passes, after our own hooks."""
    return scripts or any(name in ctx.options and getattr(ctx.options, name) for name in _OPTIONS)


def other_scripts(ours: object) -> bool:
    """Whether there are addons that are neither mitmproxy's nor ours."""
    for addon in traverse(ctx.master.addons.chain):
        if addon is ours or type(addon).__module__.startswith(("mitmproxy.", "mcp_wiretap.")):
            continue
        if type(addon).__name__ == "module" and not any(hasattr(addon, hook) for hook in _HOOKS):
            continue  # the module of a script whose addons are objects
        return True
    return False


_HOOKS = ("requestheaders", "request", "responseheaders", "response")


def head_of(flow: HTTPFlow) -> Head:
    data = flow.request.data
    return Head(data.headers.fields, data.method, data.scheme, data.host, data.port, data.path, data.authority)


def stored_request(request: Request, at: float, limit: int) -> dict[str, Any]:
    """A request as it stands in `mcp.changed`. `at`: when the other one was sent."""
    head = request.head
    return {
        "method": head.method,
        "scheme": head.scheme,
        "host": head.host,
        "port": head.port,
        "path": head.path,
        "authority": head.authority,
        "headers": _listed(head.fields),
        "body": _bounded(request.body, limit),
        "at": at,
    }


def request_sent(trace_id: str, at: float, request: Request, by: str) -> RequestSent:
    head = request.head
    return RequestSent(
        trace_id,
        at,
        text(head.method),
        text(head.scheme),
        head.host,
        head.port,
        text(head.path),
        Fields(head.fields),
        request.body,
        by,
    )


def answer_passed(trace_id: str, at: float, answer: Answer | None, by: str, *, on_its_way: bool) -> AnswerPassed:
    if answer is None:
        return AnswerPassed(trace_id, at, None, Fields(()), None, by, on_its_way)
    return AnswerPassed(trace_id, at, answer.status, Fields(answer.fields), answer.body, by, on_its_way)


def _listed(fields: RawFields) -> list[list[bytes]]:
    return [list(pair) for pair in fields]


def _bounded(body: bytes | None, limit: int) -> bytes | None:
    """One byte more than is read, so that a reader sees that there was more."""
    return body if body is None or len(body) <= limit else body[: limit + 1]


def _without(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> RawFields:
    return tuple(pair for pair in fields if pair[0].lower() != name)


def _differ_in_length_only(one: Head, other: Head) -> bool:
    same = _without(one.fields, b"content-length") == _without(other.fields, b"content-length")
    return same and one._replace(fields=()) == other._replace(fields=())


def _parts(before: Request, now: Request) -> set[str]:
    """What of a request differs."""
    parts = set()
    if before.body != now.body:
        parts.add("body")
    left, right = (_without(request.head.fields, b"content-length") for request in (before, now))
    if left != right:
        names = {name.lower() for name, _ in set(left) ^ set(right)}
        parts |= {"cookie"} if names == {b"cookie"} else {"authorization"} if names == {b"authorization"} else {"headers"}
    if before.head._replace(fields=()) != now.head._replace(fields=()):
        parts.add("target")
        if parts >= {"headers"} and {name.lower() for name, _ in set(left) ^ set(right)} == {b"host"}:
            parts.discard("headers")
    return parts


def _answer_parts(before: Answer, now: Answer) -> set[str]:
    parts = set()
    if before.body != now.body:
        parts.add("body")
    if _without(before.fields, b"content-length") != _without(now.fields, b"content-length"):
        parts.add("headers")
    if before.status != now.status:
        parts.add("status")
    return parts


_ABLE = {
    "modify_body": {"body"},
    "modify_headers": {"headers", "cookie", "authorization"},
    "map_remote": {"target"},
    "stickycookie": {"cookie"},
    "stickyauth": {"authorization"},
    "map_local": {"answer"},
    "block_list": {"answer"},
}
_CALLED = {"stickycookie": "sticky", "stickyauth": "sticky"}


def _by_whom(flow: HTTPFlow, parts: set[str], scripts: bool) -> str:
    """A guess by what can have done it: `unknown` where that may be several, or nobody that we know."""
    able = {name for name, can in _ABLE.items() if parts & can and name in ctx.options and getattr(ctx.options, name)}
    if parts - set().union(*(_ABLE[name] for name in able)) or scripts:
        able |= {"script"} if scripts else set()
        if getattr(flow, "_backup", None) is not None:
            able.add("user")  # mitmproxy's own sign of an edit
    if len(able) != 1:
        return "unknown"
    found = able.pop()
    return _CALLED.get(found, found)
