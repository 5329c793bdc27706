"""No message stops the proxy: whatever it holds, the loop goes on passing everybody's bytes while it is looked at.

Each of these took 0.5 to 10 s in one turn of the loop before messages were looked at in slices.
"""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from mitmproxy import http
from mitmproxy.test import taddons

from mcp_wiretap.proxy.inspection import Inspection
from mcp_wiretap.proxy.wiretap import Wiretap
from tests.proxy import flows
from tests.proxy.holding import turns

LEAST = 2  # turns of the loop; work in one piece leaves none
PIECE = 128 << 10  # bytes that are looked at without a rest, at the most
TOGETHER = 16  # and items of a message
ITEMS = {  # of the messages below, as far as they are read one by one
    "a list of 50,000 malformed tools": 50_000,
    "a list of 2,000 tools with schemas": 2_000,
    "a batch of 100,000": 100_000,
    "10,000 inputs": 10_000,
    "messages one after the other": 90_000,
}


def answer(members: str) -> bytes:
    return b'{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], ' + members.encode() + b"}}"


def form(number: int) -> dict[str, object]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {"method": "elicitation/create", "params": {"message": f"question {number}", "requestedSchema": schema}}


LISTS = {"ttlMs": 1, "cacheScope": "public"}
ANSWERS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a list of 50,000 malformed tools": (
        "tools/list",
        lambda: flows.result({"tools": [{"name": number} for number in range(50_000)], **LISTS}),
    ),
    "a list of 2,000 tools with schemas": (
        "tools/list",
        lambda: flows.result(
            {
                "tools": [
                    {"name": f"t{n}", "inputSchema": {"type": "object", "properties": {f"p{n}": {"type": "string"}}}}
                    for n in range(2_000)
                ],
                **LISTS,
            }
        ),
    ),
    "a batch of 100,000": ("tools/call", lambda: b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"result":{}}'] * 100_000) + b"]"),
    "10,000 inputs": (
        "tools/call",
        lambda: flows.result(
            {"resultType": "input_required", "inputRequests": {f"k{n}": form(n) for n in range(10_000)}, "requestState": "s"}
        ),
    ),
    "duplicate members": ("tools/call", lambda: answer('"x": [' + ",".join(['{"a":1,"a":2}'] * 300_000) + "]")),
    "text full of what looks like secrets": (
        "tools/call",
        lambda: flows.result({"content": [{"type": "text", "text": "Bearer abc password=x http://u:p@h " * 200_000}]}),
    ),
    "numbers": ("tools/call", lambda: answer('"x": [' + "1," * 900_000 + "1]")),
    "arrays": ("tools/call", lambda: answer('"x": [' + "[]," * 2_000_000 + "1]")),
    "strings": ("tools/call", lambda: answer('"x": [' + '"",' * 2_000_000 + "1]")),
    "brackets": ("tools/call", lambda: b"[" * (8 << 20)),
    "messages one after the other": (
        "tools/call",
        lambda: b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n' * 90_000,
    ),
}
REQUESTS: dict[str, Callable[[], bytes]] = {
    "a batch of 100,000": lambda: b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 100_000) + b"]",
    "250,000 arguments": lambda: call({f"k{n}": "v" for n in range(250_000)}),
    "an argument full of what looks like secrets": lambda: call({"a": "Bearer abc password=x http://u:p@h " * 200_000}),
}


def call(arguments: dict[str, str]) -> bytes:
    params = {"name": "echo", "arguments": arguments, "_meta": flows.META}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


@pytest.fixture
async def addon() -> AsyncIterator[Wiretap]:
    addon = Wiretap()
    with taddons.context(addon) as context:
        context.configure(addon)
        yield addon
        addon.done()


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each place of the work where it may rest: how many there are depends on no clock."""
    made: list[None] = []
    rest = Inspection._rest

    def counted(self: Inspection) -> None:
        made.append(None)
        rest(self)

    monkeypatch.setattr(Inspection, "_rest", counted)
    return made


async def done(unfinished: Awaitable[None] | None) -> None:
    """As mitmproxy waits for a hook."""
    if unfinished is not None:
        await unfinished


async def looked_at(addon: Wiretap) -> None:
    """Until nothing waits any more."""
    assert addon._capture is not None
    flow = flows.live()
    while (unfinished := addon._capture.inspection.now("test", flow, lambda: None)) is not None:
        await unfinished


@pytest.mark.parametrize("name", ANSWERS)
async def test_no_answer_holds_the_loop(addon: Wiretap, offers: list[None], name: str) -> None:
    method, make = ANSWERS[name]
    body = make()
    flow = flows.live(flows.request(method, {} if method == "tools/list" else None))
    addon.request(flow)
    flow.response = flows.response(body)
    addon.responseheaders(flow)

    async def work() -> None:
        await done(addon.response(flow))
        await looked_at(addon)

    offers.clear()
    assert await turns(work) >= LEAST
    assert len(offers) >= max(len(body) // PIECE, ITEMS.get(name, 0) // TOGETHER)
    assert flow.metadata["mcp.method"] == method
    assert not addon.faults.count


@pytest.mark.parametrize("name", REQUESTS)
async def test_no_request_holds_the_loop(addon: Wiretap, offers: list[None], name: str) -> None:
    flow = flows.live()
    flow.request.raw_content = body = REQUESTS[name]()

    async def work() -> None:
        await done(addon.request(flow))
        await looked_at(addon)

    offers.clear()
    assert await turns(work) >= LEAST
    assert len(offers) >= max(len(body) // PIECE, ITEMS.get(name, 0) // TOGETHER)
    assert addon.find(flow) is not None
    assert not addon.faults.count


async def test_no_event_stream_holds_the_loop_and_its_bytes_leave_first(addon: Wiretap) -> None:
    body = gzip.compress(b"data: x\n\n" * 930_000)
    flow = flows.live()
    addon.request(flow)
    flow.response = flows.response(None, flows.SSE)
    flow.response.headers["content-encoding"] = "gzip"
    addon.responseheaders(flow)

    async def work() -> None:
        assert flow.response is not None and callable(flow.response.stream)
        assert flow.response.stream(body) == body
        found = addon.find(flow)
        assert found is not None and found[1].stream is not None and found[1].stream.count == 0
        await asyncio.sleep(0)
        await looked_at(addon)
        assert found[1].stream.count == 20_000

    assert await turns(work) >= LEAST


def test_what_is_past_a_bound_is_said_to_be_unchecked() -> None:
    with flows.proxy() as addon:
        flow = flows.live()
        addon.request(flow)
        flow.response = flows.response(answer('"x": [' + "[]," * 200_000 + "1]"))
        addon.responseheaders(flow)
        addon.response(flow)
        assert "unchecked: response body: more than 100000 arrays" in flow.metadata["mcp.notes"]


def test_brackets_in_texts_are_no_arrays() -> None:
    with flows.proxy() as addon:
        flow = flows.live()
        addon.request(flow)
        flow.response = flows.response(flows.result({"content": [{"type": "text", "text": '[, \\" ' * 900_000}]}))
        assert isinstance(flow.response, http.Response)
        addon.responseheaders(flow)
        addon.response(flow)
        assert flow.metadata["mcp.outcome"] == "complete"
        assert "response body" not in flow.metadata.get("mcp.notes", "")
