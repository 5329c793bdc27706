"""Writes a recording of any length: what a long-running proxy sees, in the order in which it would save it.

Five servers; mostly single calls, some with several rounds, some streamed, some of the legacy era, some not MCP at all.
Nothing in it is random, so the same length is always the same work.
"""

from collections.abc import Iterator
from pathlib import Path

from mitmproxy import http
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from harness.bench import wire

START = 1_780_000_000.0
SSE = [("content-type", "text/event-stream"), ("cache-control", "no-cache"), ("Transfer-Encoding", "chunked")]
JSON = [("content-type", "application/json")]


def _flow(
    server: int, at: float, fields: wire.Headers, sent: bytes, got: bytes, answer: wire.Headers, took: float = 0.02
) -> http.HTTPFlow:
    client, upstream = tflow.tclient_conn(), tflow.tserver_conn()
    upstream.address = (f"server-{server}.example", 8000)
    client.timestamp_start = upstream.timestamp_start = at
    flow = http.HTTPFlow(client, upstream)
    flow.request = http.Request.make("POST", f"http://server-{server}.example:8000/mcp", sent, _bytes(fields))
    flow.response = http.Response.make(200, b"", _bytes(answer))
    flow.response.raw_content = got
    flow.request.timestamp_start, flow.request.timestamp_end = at, at + 0.001
    flow.response.timestamp_start, flow.response.timestamp_end = at + took / 2, at + took
    flow.timestamp_created = at
    return flow


def _bytes(fields: wire.Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in fields]


def _call(server: int, at: float, number: int) -> http.HTTPFlow:
    content = wire.request(number, "tools/call", name="lookup", arguments={"text": f"n {number}", "region": "eu"})
    fields = wire.modern_headers(f"server-{server}.example:8000", "tools/call", "lookup", region="eu")
    return _flow(server, at, fields, content, wire.call_result(number, f"found {number}"), JSON)


def _list(server: int, at: float, number: int) -> http.HTTPFlow:
    fields = wire.modern_headers(f"server-{server}.example:8000", "tools/list")
    return _flow(server, at, fields, wire.request(number, "tools/list"), wire.tools_result(number), JSON)


def _streamed(server: int, at: float, number: int) -> http.HTTPFlow:
    content = wire.request(number, "tools/call", name="report", arguments={"text": "all"}, meta={"progressToken": number})
    events = [wire.progress(number, step) for step in range(3)] + [wire.call_result(number, "done")]
    fields = wire.modern_headers(f"server-{server}.example:8000", "tools/call", "report")
    return _flow(server, at, fields, content, b"".join(map(wire.event, events)), SSE, took=0.4)


def _rounds(server: int, at: float, number: int) -> Iterator[http.HTTPFlow]:
    """An operation of two rounds: the server asks, the client answers with the state it was given."""
    fields = wire.modern_headers(f"server-{server}.example:8000", "tools/call", "deploy")
    call = {"name": "deploy", "arguments": {"text": f"build {number}"}}
    state = f"v1.{number:0230d}"
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    asked = {"method": "elicitation/create", "params": {"message": "Sure?", "mode": "form", "requestedSchema": schema}}
    question = wire.result(number, resultType="input_required", inputRequests={"sure": asked}, requestState=state)
    yield _flow(server, at, fields, wire.request(number, "tools/call", **call), question, JSON)
    answers = {"sure": {"action": "accept", "content": {"sure": True}}}
    retry = wire.request(number + 1, "tools/call", **call, inputResponses=answers, requestState=state)
    yield _flow(server, at + 0.1, fields, retry, wire.call_result(number + 1, "deployed"), JSON)


def _legacy(at: float, number: int) -> http.HTTPFlow:
    server = 4
    fields = wire.headers(
        f"server-{server}.example:8000", ("mcp-session-id", "5e5510" * 5), ("mcp-protocol-version", wire.LEGACY)
    )
    content = wire.body({"id": number, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}})
    answer = wire.body({"id": number, "result": {"content": [{"type": "text", "text": "x"}], "isError": False}})
    return _flow(server, at, fields, content, wire.event(answer), [*SSE, ("mcp-session-id", "5e5510" * 5)])


def _other(at: float, number: int) -> http.HTTPFlow:
    fields = [("Host", "status.example"), ("Accept", "*/*")]
    return _flow(9, at, fields, b"", b'{"status":"up","n":%d}' % number, JSON)


def flows(count: int) -> Iterator[http.HTTPFlow]:
    """`count` flows in saving order: a streamed call starts before its neighbours and is saved after them."""
    made = 0
    for step in range(count):
        at, number, server = START + step, step * 100 + 1, step % 4
        batch = [_list(server, at, number)] if step % 25 < 4 else []
        batch += [_call(server, at + 0.02 * i, number + i) for i in range(1, 14)]
        batch += _rounds(server, at + 0.3, number + 20)
        batch += [_legacy(at + 0.5, number), _legacy(at + 0.55, number + 1), _other(at + 0.6, number)]
        batch.append(_streamed(server, at + 0.25, number + 30))
        yield from batch[: count - made]
        made += len(batch)
        if made >= count:
            return


def write(path: Path, count: int) -> None:
    with path.open("wb") as file:
        writer = FlowWriter(file)
        for flow in flows(count):
            writer.add(flow)
