"""Bad input, anything at any place: no exception, no fault in a rule, bounded time."""

import copy
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.events import Event, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.jsonrpc import ExactFloat, dumps
from tests.trace.every_method import SCRIPTS

RULES = find_rules()
SECONDS = 3.0  # of processor time for a short trace of a few small messages: far more than it takes, less than a hang
every_script = pytest.mark.parametrize("name", SCRIPTS)
some = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@cache
def events_of(name: str) -> tuple[Event, ...]:
    return tuple(read_script(SCRIPTS[name]))


def run(events: Sequence[Event], seconds: float = SECONDS) -> Inspector:
    """Feed a trace with all rules at work. Fails on exceptions, faults and hangs."""
    inspector = Inspector(RuleBook.of(RULES))
    started = time.process_time()
    for event in events:
        inspector.feed(event)
    inspector.finish()
    assert time.process_time() - started < seconds
    assert [fault for exchange in inspector.exchanges.values() for fault in exchange.faults] == []
    return inspector


@every_script
def test_right_traffic_is_read(name: str) -> None:
    assert run(events_of(name)).exchanges


# Any type at any place of known messages


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


HOSTILE: tuple[Any, ...] = (
    None,
    [],
    {},
    [None],
    [{}],
    [[]],
    {"a": {"b": [1]}},
    {"": None},
    5,
    -1,
    0,
    1.5,
    ExactFloat("1e400"),
    ExactFloat("1.0"),
    Decimal("9" * 5_000),
    Decimal("-" + "9" * 5_000),
    True,
    False,
    "",
    "x",
    "\ud800",
    "x" * 3_000,
    "\u202e\x00\n",
    deep(150),
    ["a", "a"],
    {"type": 5},
    {"type": "object", "properties": []},
    "2026-07-28",
    "http://[::1",
    "=?base64?x?=",
    list(range(200)),
)

type Write = Callable[[Any], Event]


def documents(events: Sequence[Event]) -> Iterator[tuple[int, Any, Write]]:
    """The JSON in a trace: index of its event, value, and how to make that event with another value."""
    for index, event in enumerate(events):
        if isinstance(event, RequestSeen | ExchangeEnded) and event.body and event.body[:1] in (b"{", b"["):
            yield index, json.loads(event.body), lambda value, event=event: replace(event, body=dumps(value).encode())
        elif isinstance(event, StreamData) and b"data: {" in event.data:
            head, _, data = event.data.partition(b"data: ")
            yield (
                index,
                json.loads(data),
                lambda value, event=event, head=head: replace(event, data=head + b"data: " + dumps(value).encode() + b"\n\n"),
            )


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict | list):
        for step in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[step], (*at, step))


def changed(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    made = copy.copy(value)
    if new is _REMOVED and len(at) == 1:
        del made[at[0]]
    else:
        made[at[0]] = changed(value[at[0]], at[1:], new)
    return made


_REMOVED = object()


@cache
def all_places(name: str) -> list[tuple[int, Any, Write, tuple[Any, ...]]]:
    return [(index, value, write, at) for index, value, write in documents(events_of(name)) for at in places(value)]


def with_other(name: str, place: int, new: Any) -> list[Event]:
    index, value, write, at = all_places(name)[place]
    events = list(events_of(name))
    events[index] = write(changed(value, at, new))
    return events


@every_script
def test_every_place_of_every_message_may_hold_anything(name: str) -> None:
    """Every second place in turn, with one hostile value after the other: all values at all places take ten minutes."""
    for place in range(0, len(all_places(name)), 2):
        run(with_other(name, place, HOSTILE[place * 7 // 2 % len(HOSTILE)]))


@every_script
def test_any_member_may_be_missing(name: str) -> None:
    for place in range(1, len(all_places(name)), 6):
        if all_places(name)[place][3]:
            run(with_other(name, place, _REMOVED))


JSON = st.recursive(
    st.sampled_from(HOSTILE) | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@some
@given(st.sampled_from(sorted(SCRIPTS)), st.data())
def test_several_places_may_hold_anything(name: str, data: st.DataObject) -> None:
    events = list(events_of(name))
    for index, value, write in documents(events_of(name)):
        if data.draw(st.booleans()):
            at = data.draw(st.sampled_from(list(places(value))))
            events[index] = write(changed(value, at, data.draw(JSON)))
    run(events)


# Bodies


BODIES = [
    None,
    b"",
    b" ",
    b"\xff",
    b"\xef\xbb\xbf{}",
    b"null",
    b"5",
    b"[]",
    b"{}",
    b'[[], {}, 1, null, "x"]',
    b'{"jsonrpc": "2.0", "id": 1, "meth',
    b"[" * 100_000,
    b'{"a":' * 150 + b"1" + b"}" * 150,
    b"<html>",
    b"data: {}\n\n",
    b"NaN",
    b'{"id": NaN}',
    b'{"id": 1, "id": 2, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b', "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1e999999999, "result": {}}',
    b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "\\ud800", "params": {"\\ud800": "\\ud800"}}',
    b"a=b&code=%zz&&=&resource=",
    b'{"jsonrpc": "2.0", "id": null, "error": {"code": ' + b"9" * 5_000 + b"}}",
    b"x" * 2_000_000,
    b'{"error": "invalid_token"}',
]


@every_script
def test_any_body_may_come(name: str) -> None:
    for index, event in enumerate(events_of(name)):
        if isinstance(event, RequestSeen | ExchangeEnded):
            events = list(events_of(name))
            events[index] = replace(event, body=BODIES[index * 5 % len(BODIES)])
            run(events)


@some
@given(st.sampled_from(sorted(SCRIPTS)), st.data())
def test_bodies_and_streams_may_be_cut_and_damaged(name: str, data: st.DataObject) -> None:
    events = list(events_of(name))
    index = data.draw(st.integers(0, len(events) - 1))
    event = events[index]
    content = event.data if isinstance(event, StreamData) else getattr(event, "body", None)
    if content:
        at = data.draw(st.integers(0, len(content)))
        content = content[:at] + data.draw(st.sampled_from([b"", b"\xff", b"\n", b'"', b"[", b"\0", b"9"])) + content[at + 1 :]
        events[index] = replace(event, data=content) if isinstance(event, StreamData) else replace(event, body=content)  # type: ignore[call-arg]
    run(events)


# Heads


VALUES = [
    b"",
    b" ",
    b"\xff\xfe",
    b"x" * 65_536,
    "\u00fc".encode(),
    b"=?base64?!?=",
    b"=?base64?/w==?=",
    b",",
    b"a, b",
    b"\x00\n",
    b"-1",
    b"9" * 5_000,
    b"Bearer",
    b'Bearer =,="",,x="',
    b'Bearer resource_metadata="http://[::1", scope=""',
    b"text/event-stream",
    b"application/json; charset=\xff",
    b"gzip",
    b"br, zstd",
    b"nonsense",
    b"http://[::1",
    b"q=;;=,*/*;q=x",
    b"2026-07-28",
    b"2025-11-25",
    b"s1",
]
NAMES = [
    b"Mcp-Param-",
    b"Mcp-Param-Region",
    b"Mcp-Param-\xff",
    b"Mcp-",
    b"Mcp-Session-Id",
    b"Mcp-Name",
    b"Mcp-Method",
    b"MCP-Protocol-Version",
    b"",
    b"\xff",
    b"Last-Event-ID",
    b"Origin",
    b"Authorization",
    b"Content-Encoding",
    b"Content-Type",
    b"Content-Length",
    b"Accept",
    b"WWW-Authenticate",
    b"Location",
    b"Retry-After",
    b"Host",
    b"Cookie",
    b"Cache-Control",
]
FIELDS = st.lists(
    st.tuples(st.sampled_from(NAMES) | st.binary(max_size=5), st.sampled_from(VALUES) | st.binary(max_size=9)), max_size=6
)


@every_script
def test_every_header_may_hold_anything_and_be_missing_or_repeated(name: str) -> None:
    turn = 0
    for index, event in enumerate(events_of(name)):
        if isinstance(event, RequestSeen | ResponseStarted):
            raw = event.fields.raw
            for line, (field, _) in enumerate(raw):
                turn += 1
                bad = VALUES[turn * 7 % len(VALUES)]
                other = [raw[:line] + raw[line + 1 :], (*raw[:line], (field, bad), *raw[line + 1 :]), (*raw, (field, bad))][
                    turn % 3
                ]
                events = list(events_of(name))
                events[index] = replace(event, fields=Fields(other))
                run(events)


@some
@given(st.sampled_from(sorted(SCRIPTS)), st.data())
def test_any_head_may_come(name: str, data: st.DataObject) -> None:
    events = list(events_of(name))
    index = data.draw(st.sampled_from([i for i, e in enumerate(events) if isinstance(e, RequestSeen | ResponseStarted)]))
    event = events[index]
    assert isinstance(event, RequestSeen | ResponseStarted)
    fields = Fields([*(event.fields.raw if data.draw(st.booleans()) else ()), *data.draw(FIELDS)])
    if isinstance(event, ResponseStarted):
        status = data.draw(
            st.sampled_from([0, 100, 200, 202, 204, 302, 307, 400, 401, 403, 404, 405, 421, 429, 431, 500, 999, -1])
        )
        events[index] = replace(event, fields=fields, status=status)
    else:
        target = data.draw(
            st.sampled_from(["", "/", "//", "/?", "/mcp?" + "a=b&" * 5_000, "/\xff%zz?code=%", "*", "http://[x/", event.target])
        )
        host = data.draw(st.sampled_from(["", "[::1]", "[", "a b", "\u00fc", event.host]))
        method = data.draw(st.sampled_from(["", "GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "get", "CONNECT"]))
        events[index] = replace(event, fields=fields, target=target, host=host, authority=host or None, http_method=method)
    run(events)


# Order


@some
@given(st.lists(st.sampled_from(sorted(SCRIPTS)), min_size=1, max_size=2, unique=True), st.data())
def test_events_may_come_in_any_order_twice_or_not_at_all(names: list[str], data: st.DataObject) -> None:
    events = [replace(e, flow=f"{name} {e.flow}") for name in names for e in events_of(name)]
    for _ in range(data.draw(st.integers(1, 15))):
        one, other = (data.draw(st.integers(0, len(events) - 1)) for _ in range(2))
        match data.draw(st.integers(0, 5)):
            case 0 if len(events) > 1:
                del events[one]
            case 1:
                events.insert(other, events[one])
            case 2:
                events[one], events[other] = events[other], events[one]
            case 3:
                events[one] = replace(events[one], flow=events[other].flow)
            case 4:
                events[one] = replace(events[one], at=data.draw(st.sampled_from([0.0, -1.0, 1e12, events[other].at])))
            case _:
                events[one : one + 3] = events[one : one + 3][::-1]
    run(events)


@every_script
def test_everything_may_come_twice_and_backwards(name: str) -> None:
    events = events_of(name)
    run([event for event in events for _ in range(2)])
    run(events * 2)
    run(events[::-1])
    run([e for e in events if not isinstance(e, RequestSeen)])
    run([e for e in events if not isinstance(e, ResponseStarted)])
    run([e for e in events if not isinstance(e, ExchangeEnded)])


# Size


ENVELOPE = {rev.PROTOCOL_VERSION: "2026-07-28", rev.CLIENT_INFO: {"name": "c", "version": "1"}, rev.CLIENT_CAPABILITIES: {}}
HEADERS = [
    (b"Content-Type", b"application/json"),
    (b"Accept", b"application/json, text/event-stream"),
    (b"MCP-Protocol-Version", b"2026-07-28"),
]


def asked(params: dict[str, Any], method: str = "tools/call", headers: Sequence[tuple[bytes, bytes]] = ()) -> RequestSeen:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": ENVELOPE} | params}).encode()
    return posted(body, [*HEADERS, (b"Mcp-Method", method.encode()), *headers])


def posted(body: bytes, headers: Sequence[tuple[bytes, bytes]]) -> RequestSeen:
    return RequestSeen("a", 1.0, 1.0, "POST", "http", "server.example", 80, "/mcp", Fields(headers), body, "c", "server.example")


def answered(result: Any) -> list[Event]:
    body = result if isinstance(result, bytes) else json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    return [ResponseStarted("a", 2.0, 200, Fields(HEADERS[:1])), ExchangeEnded("a", 2.0, body, False, "complete")]


def streamed(*chunks: bytes, over: bool = True) -> list[Event]:
    head: list[Event] = [ResponseStarted("a", 2.0, 200, Fields([(b"Content-Type", b"text/event-stream")]))]
    end: list[Event] = [ExchangeEnded("a", 9.0, None, True, "complete")] if over else []
    return head + [StreamData("a", 2.0 + i / 1e6, chunk) for i, chunk in enumerate(chunks)] + end


def listed(tools: list[Any]) -> list[Event]:
    return [asked({}, "tools/list"), *answered({"tools": tools})]


def mirrored(number: int) -> dict[str, str]:
    return {"type": "string", "x-mcp-header": f"H{number}"}


def deep_schema(levels: int) -> dict[str, Any]:
    return {"allOf": [deep_schema(levels - 1)]} if levels else {}


MEGA = 1 << 20
HUGE = "x" * (7 * MEGA)
TOOL = {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
BIG: dict[str, Callable[[], list[Event]]] = {
    "a stream without end": lambda: [asked({"name": "t"}), *streamed(*[b": keep-alive\n\n"] * 10_000, over=False)],
    "one event of 50 MB": lambda: [asked({"name": "t"}), *streamed(b'data: "', *[b"x" * MEGA] * 50, b'"\n\n')],
    "one byte at a time": lambda: [asked({"name": "t"}), *streamed(*[b"d", b"a"] * 20_000)],
    "many tiny events": lambda: [asked({"name": "t"}), *streamed(*[b"data:x\n\n" * 1_000] * 50)],
    "many answers": lambda: [asked({"name": "t"}), *streamed(*[b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n' * 100] * 100)],
    "many questions": lambda: [
        asked({"name": "t"}),
        *streamed(*(b'data: {"jsonrpc":"2.0","id":%d,"method":"roots/list"}\n\n' % i for i in range(10_000))),
    ],
    "a batch": lambda: [
        posted(json.dumps([{"jsonrpc": "2.0", "id": i, "method": "tools/list"} for i in range(4_000)]).encode(), HEADERS[:2]),
        *answered(json.dumps([{"jsonrpc": "2.0", "id": i, "result": {"tools": []}} for i in range(4_000)]).encode()),
    ],
    "a batch of notifications": lambda: [
        posted(b"[" + b'{"jsonrpc":"2.0","method":"notifications/x"},' * 9_999 + b"1]", HEADERS[:2]),
        *answered(b""),
    ],
    "long names": lambda: [
        asked({"name": HUGE, "arguments": {HUGE[:MEGA]: HUGE[:MEGA]}}, headers=[(b"Mcp-Name", b"x" * 65_536)]),
        *answered({"content": []}),
    ],
    "a long text": lambda: [
        asked({"name": "t"}),
        *answered({"content": [{"type": "text", "text": "password: \u200b" * 300_000}]}),
    ],
    "a long state": lambda: [
        asked({"name": "t"}),
        *answered({"resultType": "input_required", "requestState": "eyJ" + HUGE[:MEGA]}),
    ],
    "many questions to a client": lambda: [
        asked({"name": "t"}),
        *answered({"resultType": "input_required", "inputRequests": {f"k{i}": {"method": "roots/list"} for i in range(20_000)}}),
        replace(asked({"name": "t", "inputResponses": {f"k{i}": {"roots": []} for i in range(20_000)}}), flow="b"),
    ],
    "many tools": lambda: [*listed([TOOL | {"name": f"t{i}"} for i in range(20_000)])],
    "many tools of one name": lambda: [*listed([{"name": "t"}] * 50_000)],
    "a tool of many parameters": lambda: [
        *listed([{"name": "t", "inputSchema": {"type": "object", "properties": {f"p{i}": mirrored(i) for i in range(50_000)}}}]),
        replace(asked({"name": "t", "arguments": {f"p{i}": "x" for i in range(20_000)}}), flow="b"),
    ],
    "deep schemas": lambda: [*listed([{"name": "t", "inputSchema": deep_schema(90)}] * 500)],
    "many resources": lambda: [
        asked({}, "resources/list"),
        *answered({"resources": [{"uri": f"file:///{i}", "name": "x"} for i in range(50_000)]}),
    ],
    "many prompts": lambda: [
        asked({}, "prompts/list"),
        *answered({"prompts": [{"name": f"p{i}", "arguments": [{"name": "a"}]} for i in range(30_000)]}),
    ],
    "many contents": lambda: [asked({"name": "t"}), *answered({"content": [{"type": "text", "text": "x"}, {}, 5] * 50_000})],
    "many headers": lambda: [
        asked({"name": "t"}, headers=[(b"Mcp-Param-%d" % i, b"x") for i in range(5_000)]),
        *answered({}),
    ],
    "one header many times": lambda: [
        asked({"name": "t"}, headers=[(b"Mcp-Name", b"t")] * 5_000 + [(b"Accept", b"a/b;q=1," * 1_000)] * 10),
        *answered({}),
    ],
    "a long challenge": lambda: [
        asked({"name": "t"}),
        ResponseStarted("a", 2.0, 401, Fields([(b"WWW-Authenticate", b'Bearer a="\\"", ' * 5_000)])),
        ExchangeEnded("a", 2.0, b"{}", False, "complete"),
    ],
    "a long form": lambda: [
        posted(b"code=a&resource=%zz&" * 100_000, [(b"Content-Type", b"application/x-www-form-urlencoded")]),
        *answered({}),
    ],
    "long trace context": lambda: [
        asked({"_meta": ENVELOPE | {"baggage": "a=b," * 500_000, "tracestate": "a=b," * 500_000, "traceparent": HUGE[:MEGA]}}),
        *answered({}),
    ],
}


@pytest.mark.parametrize("events", BIG.values(), ids=BIG)
def test_much_of_anything_takes_bounded_time(events: Callable[[], list[Event]]) -> None:
    run(events(), seconds=12)


def test_what_is_kept_of_exchanges_does_not_grow_with_their_bodies() -> None:
    inspector = Inspector(RuleBook.of(RULES))
    tracemalloc.start()
    for turn in range(20):
        huge = f"{turn}" + "x" * MEGA
        body = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": huge,
                "method": huge,
                "params": {"name": huge, "_meta": ENVELOPE | {rev.PROTOCOL_VERSION: huge}},
            }
        )
        for event in [posted(body.encode(), HEADERS), *answered({"resultType": "complete", "content": [huge]})]:
            inspector.feed(replace(event, flow=str(turn)))
    del huge, body, event
    gc.collect()  # messages and their answers name each other
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(inspector.exchanges) == 20
    assert kept < 5 * MEGA
