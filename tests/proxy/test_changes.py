"""Traffic that mitmproxy itself changes: the client is judged by what it sent, the server by what it was given, live and from the
file alike."""

import contextlib
import json
import re
import time
import urllib.request

import pytest

from mcp_wiretap.proxy import sharing
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.report.comment import comment
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.inspector import Inspector
from tests.proxy import flows, wire

pytestmark = pytest.mark.e2e

ACCEPT = "Accept: application/json, text/event-stream"
TOOL = {
    "name": "get_weather",
    "description": "The weather of a city",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string", "x-mcp-header": "City"}},
        "required": ["city"],
    },
}
MISMATCH = flows.error(-32020, message="Header mismatch: Mcp-Param-City")


ASK = {"name": "ask", "description": "Asks back", "inputSchema": {"type": "object"}}


def call(city="Paris", header=None, *more, id=2, params=None):
    made = flows.request("tools/call", {"name": "get_weather", "arguments": {"city": city}, **(params or {})}, id=id)
    return wire.post(made.raw_content, *fields("tools/call", "get_weather"), f"Mcp-Param-City: {header or city}", *more)


def listing(id=1):
    return wire.post(flows.request("tools/list", {}, id=id).raw_content, *fields("tools/list"))


def fields(method, name=None):
    found = ["Content-Type: application/json", ACCEPT, "MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}"]
    return [*found, f"Mcp-Name: {name}"] if name else found


def tools(id=1):
    return wire.whole(flows.result({"tools": [TOOL, ASK], "ttlMs": 60_000, "cacheScope": "public"}, id=id))


def refused(id=2):
    return wire.whole(flows.error(-32020, message="Header mismatch: Mcp-Param-City", id=id), status="400 Bad Request")


def done(id=2):
    return wire.whole(flows.result({"content": [{"type": "text", "text": "sunny"}]}, id=id))


@pytest.fixture
def server():
    made = wire.Server()
    yield made
    made.close()


def talk(proxy, server, *pairs, index=0):
    """Send each request and put its reply up; what the client got."""
    got = []
    with proxy.connect(index) as stream:
        for sent, reply in pairs:
            if reply is not None:
                server.replies.put(reply)
            stream.sendall(sent)
            message = wire.read_message(stream)
            got.append(message[0] if message else None)
    return got


def audit(path):
    """The exchanges of a recording, judged."""
    found = {}
    inspector = Inspector(RuleBook.of())
    for event in Recording(path).events():
        for exchange in inspector.feed(event):
            found[exchange.flow] = exchange
    for exchange in inspector.finish():
        found[exchange.flow] = exchange
    return found


def judged(proxy, folder):
    """The flows, after seeing to it that the file and a redacted copy of it say what was said live."""
    live = proxy.flows()
    verdicts = audit(proxy.path)
    clean = folder / "clean.flow"
    with clean.open("wb") as out:
        sharing.copy(proxy.path, out, Redactor())
    redacted = audit(clean)
    for flow in live:
        assert early(comment(verdicts[flow.id])) == early(flow.comment)
        assert [f.rule for f in redacted[flow.id].findings] == [f.rule for f in verdicts[flow.id].findings]
        assert redacted[flow.id].change == verdicts[flow.id].change
    return [(flow, verdicts[flow.id]) for flow in live]


def early(line):
    """A comment as it was when the flow was saved: how many rounds there are was not known yet."""
    return re.sub(r"\(MRTR (\d+)/\d+\)", r"(MRTR \1)", line)


def errors(exchange, party=None):
    return [f.rule for f in exchange.findings if f.severity != "info" and party in (None, f.party)]


def test_a_body_that_modify_body_changed(server, tmp_path):
    with wire.proxy(tmp_path, server, options=["--set", "modify_body=/~q/Paris/Oslo"]) as proxy:
        talk(proxy, server, (listing(), tools()), (call(), refused()))
        (_, first), (flow, second) = judged(proxy, tmp_path)
    assert b"Oslo" in server.received[1]
    assert not errors(second)
    assert first.change is None
    assert flow.comment.startswith("modern tools/call get_weather -> -32020 HeaderMismatch")
    assert flow.comment.endswith("(request changed by modify_body)")
    assert flow.metadata["mcp.changed"]["by"] == "modify_body"
    assert b"Paris" in flow.metadata["mcp.changed"]["request"]["body"]


def test_a_server_that_takes_what_it_had_to_refuse_is_judged_by_what_it_was_given(server, tmp_path):
    with wire.proxy(tmp_path, server, options=["--set", "modify_body=/~q/Paris/Oslo"]) as proxy:
        talk(proxy, server, (listing(), tools()), (call(), done()))
        _, (_, second) = judged(proxy, tmp_path)
    assert errors(second) == errors(second, "server") == ["HTS011"]


def test_headers_a_target_and_a_local_answer(server, tmp_path):
    local = tmp_path / "local.json"
    local.write_bytes(flows.result({"content": [{"type": "text", "text": "from a file"}]}, id=4))
    options = [
        "modify_headers=/~hq headers/Mcp-Param-City/Bergen",
        "map_remote=|~hq remote|/mcp|/other",
        f"map_local=|~hq local|/mcp|{local}",
    ]
    with wire.proxy(tmp_path, server, options=[part for option in options for part in ("--set", option)]) as proxy:
        talk(
            proxy,
            server,
            (listing(), tools()),
            (call("Paris", None, "X-Case: headers"), refused()),
            (call("Paris", None, "X-Case: remote", id=3), done(3)),
            (call("Paris", None, "X-Case: local", id=4), None),
            (call("Paris", None, id=5), done(5)),
        )
        found = judged(proxy, tmp_path)
    assert b"Mcp-Param-City: Bergen" in server.received[1]
    assert server.received[2].startswith(b"POST /other")
    assert len(server.received) == 4
    changes = [exchange.change for _, exchange in found]
    assert [(c.by, c.request_by is not None, c.answered_here) if c else None for c in changes] == [
        None,
        ("modify_headers", True, False),
        ("map_remote", True, False),
        ("map_local", False, True),
        None,
    ]
    assert [errors(exchange) for _, exchange in found] == [errors(found[0][1]), [], [], [], []]
    assert {exchange.endpoint.url for _, exchange in found} == {server.url}


SCRIPT = """
import json

def request(flow):
    if "answer-here" in flow.request.headers:
        from mitmproxy import http
        flow.response = http.Response.make(200, '{"jsonrpc": "2.0", "id": 9, "result": {}}', {"content-type": "text/html"})

def responseheaders(flow):
    if "change-stream" in flow.request.headers:
        before = flow.response.stream
        def change(data):
            made = before(data) if callable(before) else data
            return made.replace(b"state-of-the-server", b"state-of-the-proxy!")
        flow.response.stream = change

def response(flow):
    headers = flow.request.headers
    if "drop-tool" in headers:
        body = json.loads(flow.response.content)
        body["result"]["tools"] = []
        flow.response.text = json.dumps(body)
    if "change-state" in headers:
        flow.response.text = flow.response.text.replace("state-of-the-server", "state-of-the-proxy!")
    if "change-ttl" in headers:
        flow.response.text = flow.response.text.replace("60000", "0")
"""


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


def asks(state, id):
    asked = {"name": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": SCHEMA}}}
    return flows.result({"resultType": "input_required", "inputRequests": asked, "requestState": state}, id=id)


def ask(id, *more, state=None):
    params = {"name": "ask", "arguments": {}}
    if state is not None:
        params |= {"requestState": state, "inputResponses": {"name": {"action": "accept", "content": {}}}}
    body = flows.request("tools/call", params, id=id).raw_content.replace(
        b'"io.modelcontextprotocol/clientCapabilities": {}', b'"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}'
    )
    return wire.post(body, *fields("tools/call", "ask"), *more)


def test_answers_that_a_script_changes(server, tmp_path):
    script = tmp_path / "changing.py"
    script.write_text(SCRIPT)
    stream = wire.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    event = wire.chunk(flows.event(asks("state-of-the-server", 22))) + wire.LAST
    with wire.proxy(tmp_path, server, options=["-s", str(script)]) as proxy:
        got = talk(
            proxy,
            server,
            (listing(10), tools(id=10)),
            (wire.post(flows.request("tools/list", {}, id=11).raw_content, *fields("tools/list"), "drop-tool: 1"), tools(id=11)),
            (call(id=12), done(12)),
            (ask(20, "change-state: 1"), wire.whole(asks("state-of-the-server", 20))),
            (ask(21, state="state-of-the-proxy!"), wire.whole(flows.result(id=21))),
            (ask(22, "change-stream: 1"), [stream, event]),
            (ask(23, state="state-of-the-proxy!"), wire.whole(flows.result(id=23))),
            (call("Paris", None, "answer-here: 1", id=24), None),
            (wire.post(flows.request("tools/list", {}, id=25).raw_content, *fields("tools/list"), "change-ttl: 1"), tools(id=25)),
        )
        found = judged(proxy, tmp_path)
    assert b"state-of-the-proxy!" in got[3] and b"state-of-the-proxy!" in got[5]
    assert b'"tools": []' in got[1]
    exchanges = [exchange for _, exchange in found]
    assert [e.change.by if e.change else None for e in exchanges] == [
        None,
        "script",
        None,
        "script",
        None,
        "script",
        None,
        "script",
        "script",
    ]
    assert [errors(e, "client") for e in exchanges] == [[]] * 9
    listed = errors(exchanges[0])
    assert [errors(e, "server") for e in exchanges] == [listed, listed, [], [], [], [], [], [], listed]
    assert exchanges[7].change.answered_here
    assert b"state-of-the-server" in found[3][0].metadata["mcp.changed"]["response"]["body"]


class Web:
    """mitmweb's REST interface."""

    def __init__(self, page):
        self.base = page.partition("/?")[0].partition("/#")[0].rstrip("/")
        self.token = page.partition("token=")[2]

    def call(self, method, path, data=None):
        body = json.dumps(data).encode() if data is not None else b""
        request = urllib.request.Request(self.base + path, method=method, data=None if method == "GET" else body)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        request.add_header("Cookie", "_mitmproxy_xsrf=" + "ab" * 16)
        request.add_header("X-XSRFToken", "ab" * 16)
        with urllib.request.urlopen(request, timeout=wire.PATIENCE) as answer:
            return answer.read()

    def held(self):
        """The flow that is held, once there is one."""
        until = time.time() + wire.PATIENCE
        while time.time() < until:
            for flow in json.loads(self.call("GET", "/flows")):
                if flow["intercepted"]:
                    return flow["id"]
            time.sleep(0.05)
        raise AssertionError("no flow is held")

    def edit(self, flow, **members):
        self.call("PUT", f"/flows/{flow}", members)

    def resume(self, flow):
        self.call("POST", f"/flows/{flow}/resume")

    def kill(self, flow):
        self.call("POST", f"/flows/{flow}/kill")

    def body(self, flow, side="request"):
        return self.call("GET", f"/flows/{flow}/{side}/content.data").decode()


@contextlib.contextmanager
def mitmweb(server, folder, *options):
    with wire.proxy(folder, server, tool="mitmweb", options=options) as proxy:
        yield proxy, Web(proxy.page)


@contextlib.contextmanager
def asking(proxy, sent, index=0):
    """A request on its way, on a connection of its own. Gives a function that waits for its answer."""
    with proxy.connect(index) as stream:
        stream.sendall(sent)
        yield lambda: (wire.read_message(stream) or (None,))[0]


def test_what_a_person_does_to_held_flows(server, tmp_path):
    hold = "~q & ~hq hold-request | ~s & ~hq hold-answer"
    with mitmweb(server, tmp_path, "--set", f"intercept={hold}", "--set", "mcp_remirror=false") as (proxy, web):
        talk(proxy, server, (listing(30), tools(id=30)))
        with asking(proxy, call("Paris", None, "hold-request: 1", id=31)) as answer:
            flow = web.held()
            web.edit(flow, request={"content": web.body(flow).replace("Paris", "Bergen")})
            web.edit(flow, request={"content": web.body(flow).replace("Bergen", "Oslo")})
            server.replies.put(refused(31))
            web.resume(flow)
            assert b"-32020" in answer()
        assert b"Oslo" in server.received[-1]
        with asking(proxy, call("Paris", None, "hold-request: 1", id=32)) as answer:
            flow = web.held()
            web.edit(flow, request={"content": "{no json"})
            server.replies.put(wire.whole(flows.error(-32700, id=None), status="400 Bad Request"))
            web.resume(flow)
            answer()
        with asking(proxy, call("Paris", None, "hold-request: 1", id=33)) as answer:
            flow = web.held()
            web.edit(flow, request={"content": f"[{web.body(flow)}]"})
            server.replies.put(wire.whole(flows.error(-32600, id=None), status="400 Bad Request"))
            web.resume(flow)
            answer()
        with asking(proxy, call("Paris", None, "hold-request: 1", id=34)) as answer:
            flow = web.held()
            web.edit(flow, request={"content": web.body(flow).replace("Paris", "Oslo")})
            web.kill(flow)
            answer()
        with asking(proxy, call("Paris", None, "hold-request: 1", id=35)) as answer:
            flow = web.held()
            server.replies.put(done(35))
            web.resume(flow)
            answer()
        server.replies.put(wire.whole(asks("state-of-the-server", 36)))
        with asking(proxy, ask(36, "hold-answer: 1")) as answer:
            flow = web.held()
            web.edit(flow, response={"content": web.body(flow, "response").replace("of-the-server", "of-the-person")})
            web.resume(flow)
            assert b"state-of-the-person" in answer()
        server.replies.put(wire.whole(asks("another-state-of-the-server", 37)))
        talk(proxy, server, (ask(37, state="state-of-the-person"), None))
        with asking(proxy, ask(38, "hold-request: 1", state="another-state-of-the-server")) as answer:
            flow = web.held()
            web.edit(flow, request={"content": web.body(flow).replace("another-state", "no-such-state")})
            server.replies.put(wire.whole(flows.error(-32602, id=38)))
            web.resume(flow)
            answer()
        server.replies.put(done(39))
        with asking(proxy, call("Paris", None, "hold-answer: 1", id=39)) as answer:
            flow = web.held()
            web.kill(flow)
            answer()
        talk(proxy, server, (call(id=40), done(40)))
        flow = json.loads(web.call("GET", "/flows"))[-1]["id"]
        web.edit(flow, request={"content": web.body(flow).replace("Paris", "Oslo")})  # the record, not the traffic
        (tmp_path / "shown.flow").write_bytes(web.call("GET", "/flows/dump"))
        proxy.stop()
        proxy.path = tmp_path / "shown.flow"
        found = judged(proxy, tmp_path)
    exchanges = [exchange for _, exchange in found]
    changed = [None if e.change is None else (e.change.request_by, e.change.response_by) for e in exchanges]
    user = ("user", None)
    assert changed == [None, user, user, user, user, None, (None, "user"), None, user, (None, "user"), None]
    assert [errors(e) for e in exchanges] == [errors(exchanges[0])] + [[]] * 10
    assert exchanges[1].error_code == -32020
    assert exchanges[4].outcome == "broken"
