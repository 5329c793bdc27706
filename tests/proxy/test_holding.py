"""Calls that are held, edited, answered by hand or refused by the gate, in a real mitmproxy."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from mitmproxy import exceptions

from mcp_wiretap import project
from mcp_wiretap.steering import GateLine, parse_gate
from tests.proxy import flows, wire
from tests.proxy.test_changes import (
    asking,
    call,
    done,
    errors,
    fields,
    judged,
    listing,
    mitmweb,
    refused,
    server,  # noqa: F401  (a fixture)
    talk,
    tools,
)

pytestmark = pytest.mark.e2e


def field(message, name):
    found = [line for line in message.decode("latin-1").split("\r\n") if line.lower().startswith(f"{name.lower()}: ")]
    return found[0].partition(": ")[2] if found else None


def command(web, name, *arguments):
    return json.loads(web.call("POST", f"/commands/{name}", {"arguments": list(arguments)}))


def test_an_edit_of_a_held_call_is_mirrored(server, tmp_path):  # noqa: F811
    lines = ["tools/call get_weather", "answer tools/list", "rule HDR"]
    options = [part for line in lines for part in ("--set", f"mcp_intercept={line}")]
    with mitmweb(server, tmp_path, *options) as (proxy, web):
        server.replies.put(tools(id=1))
        with asking(proxy, listing(1)) as answer:
            held = web.held()
            assert "held since" in next(f for f in json.loads(web.call("GET", "/flows")) if f["id"] == held)["comment"]
            web.resume(held)
            assert b"get_weather" in answer()
        with asking(proxy, call("Paris", id=2)) as answer:
            held = web.held()
            command(web, "mcp.edit", "~bq Paris", "/arguments/city", "Zürich")
            server.replies.put(done(2))
            web.resume(held)
            assert b"sunny" in answer()
        assert field(server.received[-1], "Mcp-Param-City") == "=?base64?WsO8cmljaA==?="
        assert field(server.received[-1], "Mcp-Name") == "get_weather"
        with asking(proxy, call("Paris", "Rome", id=3)) as answer:  # a lie stays one
            held = web.held()
            web.edit(held, request={"content": web.body(held).replace("Paris", "Oslo")})
            server.replies.put(refused(3))
            web.resume(held)
            answer()
        assert field(server.received[-1], "Mcp-Param-City") == "Rome"
        with asking(proxy, call("Paris", id=4)) as answer:
            held = web.held()
            web.edit(held, request={"content": web.body(held).replace('"city": "Paris"', '"city": null')})
            server.replies.put(done(4))
            web.resume(held)
            answer()
        assert field(server.received[-1], "Mcp-Param-City") is None
        count = len(server.received)
        with asking(proxy, call("Tromso", id=5)) as answer:
            web.held()
            command(web, "mcp.answer", "~bq Tromso", "error", "-32021")
            got = answer()
            assert b"400" in got[:12] and b"-32021" in got and b'"id": 5' in got
        wrong = wire.post(flows.request("tools/call", {"name": "ask", "arguments": {}}, id=6).raw_content, *fields("tools/list"))
        with asking(proxy, wrong) as answer:  # a rule complains
            held = web.held()
            assert len(server.received) == count
            web.kill(held)
            answer()
        (tmp_path / "shown.flow").write_bytes(web.call("GET", "/flows/dump"))
        proxy.stop()
        proxy.path = tmp_path / "shown.flow"
        found = [exchange for _, exchange in judged(proxy, tmp_path)]
    assert [e.change.request_by if e.change else None for e in found] == [None, "user", "user", "user", None, None]
    assert found[4].change.answered_here and found[4].change.by == "user"
    assert errors(found[1]) == [] and errors(found[3]) == []
    assert {f.party for f in found[2].findings if f.severity == "error"} == {"client"}


READER = {
    "name": "read",
    "description": "Reads",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


def plain(name, id, *more, method="tools/call", header=None):
    body = flows.request(method, {"name": name, "arguments": {}}, id=id).raw_content
    return wire.post(body, *fields(method, header or name), *more)


def test_the_gate_refuses_and_says_why(server, tmp_path):  # noqa: F811
    lines = ["headers", "allow tools/call safe_*", "readonly", "deny prompts/get secret*"]
    options = [part for line in lines for part in ("--set", f"mcp_gate={line}")]
    tool = {**READER, "name": "write", "annotations": {}}
    broken = wire.post(b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"', *fields("tools/call", "read"))
    twice = wire.post(
        b'{"jsonrpc": "2.0", "id": 8, "method": "tools/list", "method": "tools/call", "params": {"name": "write"}}',
        *fields("tools/list"),
    )
    with wire.proxy(tmp_path, server, options=options) as proxy:
        got = talk(
            proxy,
            server,
            (listing(1), wire.whole(flows.result({"tools": [READER, tool], "ttlMs": 60_000, "cacheScope": "public"}, id=1))),
            (plain("read", 2), done(2)),
            (plain("write", 3), None),
            (plain("safe_thing", 4), done(4)),
            (plain("read", 5, header="write"), None),
            (plain("secret-one", 6, method="prompts/get"), None),
            (broken, None),
            (twice, None),
        )
        found = judged(proxy, tmp_path)
    assert len(server.received) == 3
    bodies = [json.loads(message.partition(b"\r\n\r\n")[2]) for message in got]
    assert [message.split(b" ", 2)[1] for message in got] == [b"200", b"200", b"403", b"200", b"400", b"403", b"403", b"403"]
    assert [body["id"] for body in bodies] == [1, 2, 3, 4, 5, 6, None, None]
    assert bodies[4]["error"]["code"] == -32020
    assert "read-only" in bodies[2]["error"]["message"] and "denied by policy" in bodies[5]["error"]["message"]
    for flow, exchange in found[2:3] + found[4:]:
        assert exchange.change.by == "gate" and exchange.change.answered_here
        assert errors(exchange, "server") == []
        assert "refused by the gate" in flow.comment and flow.metadata["mcp.gate"]


def test_a_gate_reads_no_streamed_body_and_lets_none_pass(server, tmp_path):  # noqa: F811
    options = ["--set", "mcp_gate=headers", "--set", "stream_large_bodies=100"]
    with wire.proxy(tmp_path, server, options=options) as proxy:
        with proxy.connect() as stream:
            stream.sendall(call())
            stream.settimeout(wire.PATIENCE)
            assert b"-32020" not in (stream.recv(1 << 16) or b"") and server.received == []
        assert "streamed" in proxy.saved()[0].metadata["mcp.gate"]


def test_an_edit_over_http2_and_a_stream_that_is_held(server, tmp_path):  # noqa: F811
    options = ["--set", "mcp_intercept=tools/call get_weather", "--set", "mcp_intercept=answer tools/call slow"]
    headers = dict(line.split(": ", 1) for line in [*fields("tools/call", "get_weather"), "Mcp-Param-City: Paris"])
    body = flows.request("tools/call", {"name": "get_weather", "arguments": {"city": "Paris"}}, id=2).raw_content
    stream = wire.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    progress = flows.event(b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}')
    with mitmweb(server, tmp_path, *options) as (proxy, web), ThreadPoolExecutor(1) as pool:
        talk(proxy, server, (listing(1), tools(id=1)))
        with httpx2.Client(http2=True, verify=False) as client:
            url = f"https://127.0.0.1:{proxy.ports[0]}/mcp"
            answer = pool.submit(client.post, url, headers=headers, content=body, timeout=wire.PATIENCE)
            held = web.held()
            web.edit(held, request={"content": web.body(held).replace("Paris", "Oslo")})
            server.replies.put(done(2))
            web.resume(held)
            assert answer.result().http_version == "HTTP/2" and b"sunny" in answer.result().content
        assert field(server.received[-1], "Mcp-Param-City") == "Oslo"
        server.replies.put([stream, wire.chunk(progress), 0.2, wire.chunk(flows.event(flows.result(id=3))), wire.LAST])
        with asking(proxy, plain("slow", 3)) as answer:
            held = web.held()
            web.edit(held, response={"content": web.body(held, "response").replace('"content": []', '"content": [{}]')})
            web.resume(held)
            assert b"[{}]" in answer()
        (tmp_path / "shown.flow").write_bytes(web.call("GET", "/flows/dump"))
        proxy.stop()
        proxy.path = tmp_path / "shown.flow"
        found = [exchange for _, exchange in judged(proxy, tmp_path)]
    assert [e.change and (e.change.request_by, e.change.response_by) for e in found] == [None, ("user", None), (None, "user")]
    assert errors(found[1]) == []


@pytest.mark.parametrize("line", ["", "deny", "headers please", "allow a b c", "permit tools/call"])
def test_a_line_of_the_gate_that_makes_no_sense(line):
    with pytest.raises(ValueError, match="deny METHOD"):
        parse_gate(line)
    with pytest.raises(exceptions.OptionsError, match="mcp_gate"), flows.proxy(mcp_gate=[line]):
        pass


@pytest.mark.parametrize("line", ["rule", "rule NIX001", "era future", "request", "answer a b c"])
def test_a_break_that_makes_no_sense(line):
    with pytest.raises(exceptions.OptionsError, match="mcp_intercept"), flows.proxy(mcp_intercept=[line]):
        pass


def test_the_gate_of_the_project_file(tmp_path):
    (tmp_path / "wiretap.toml").write_text('[gate]\nlines = ["headers", "deny tools/call delete_*"]\n')
    assert project.load(tmp_path).gate == [GateLine("headers"), GateLine("deny", "tools/call", "delete_*")]
    (tmp_path / "wiretap.toml").write_text('[gate]\nlines = ["deny"]\n')
    with pytest.raises(project.ProjectError, match=r"gate.lines\[0\]"):
        project.load(tmp_path)
