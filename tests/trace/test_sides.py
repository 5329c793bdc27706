"""Each party is judged by its own side of an exchange that was changed at the proxy."""

import json

import pytest

from mcp_wiretap.report import change, record
from mcp_wiretap.rule import RuleBook
from mcp_wiretap.trace.events import AnsweredHere, AnswerPassed, ExchangeEnded, RequestSeen, RequestSent, ResponseStarted
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.wire.headers import Fields

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
JSON = Fields([(b"content-type", b"application/json")])
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


class Wire:
    """A trace that is fed call by call."""

    def __init__(self):
        self.inspector = Inspector(RuleBook.of())
        self.at = 1000.0
        self.count = 0

    def tick(self):
        self.at += 0.1
        return self.at

    def call(self, received, given, *, sent=None, passed=None, here=None, method="tools/call", status=200, headers=None):
        """One exchange. `received`, `sent`: params; `given`, `passed`: the members of the answer."""
        self.count += 1
        flow = str(self.count)
        fields, body = self.request(method, received, headers)
        self.feed(RequestSeen(flow, self.tick(), self.at, "POST", "http", "mcp.example", 80, "/mcp", fields, body, "c"))
        if sent is not None:
            _, body = self.request(method, sent, headers) if isinstance(sent, dict) else (None, sent)
            self.feed(RequestSent(flow, self.tick(), "POST", "http", "mcp.example", 80, "/mcp", fields, body, "script"))
        if here:
            self.feed(AnsweredHere(flow, self.tick(), here))
        self.feed(ResponseStarted(flow, self.tick(), status, JSON))
        body = self.answer(given)
        self.feed(ExchangeEnded(flow, self.tick(), body, False, "complete", on_its_way=passed is not None))
        if passed is not None:
            self.feed(AnswerPassed(flow, self.tick(), status, JSON, self.answer(passed), "script"))
        return self.inspector.exchanges[flow]

    def request(self, method, params, headers):
        params = {**params, "_meta": META}
        name = params.get("name")
        pairs = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            **({"mcp-name": name} if name else {}),
            **(headers or {}),
        }
        body = json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}).encode()
        return Fields([(k.encode(), v.encode()) for k, v in pairs.items()]), body

    def answer(self, members):
        return json.dumps({"jsonrpc": "2.0", "id": self.count, **members}).encode()

    def feed(self, event):
        return self.inspector.feed(event)


def result(**members):
    return {"result": {"resultType": "complete", **members}}


def asks(state):
    asked = {"q": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": SCHEMA}}}
    return {"result": {"resultType": "input_required", "inputRequests": asked, "requestState": state}}


def retry(state):
    return {"name": "ask", "arguments": {}, "requestState": state, "inputResponses": {"q": {"action": "accept", "content": {}}}}


def error(code):
    return {"error": {"code": code, "message": "Header mismatch: Mcp-Name"}}


def rules(exchange):
    return [(f.party, f.rule) for f in exchange.findings if f.severity != "info"]


def test_a_right_refusal_of_what_the_proxy_made_of_a_right_request():
    echo, named = {"name": "echo", "arguments": {}}, {"mcp-name": "echo"}
    given = {"name": "other", "arguments": {}}
    exchange = Wire().call(echo, error(-32020), sent=given, headers=named, method="prompts/get", status=400)
    assert rules(exchange) == []
    wrong = Wire().call(echo, error(-32020), headers=named, method="prompts/get", status=400)
    assert ("server", "HTS012") in rules(wrong)


def test_a_lie_of_the_client_that_the_proxy_mended_is_still_the_clients():
    other, named = {"name": "other", "arguments": {}}, {"mcp-name": "echo"}
    exchange = Wire().call(other, result(content=[]), sent={"name": "echo", "arguments": {}}, headers=named)
    assert {party for party, _ in rules(exchange)} == {"client"}
    untouched = Wire().call(other, result(content=[]), headers=named)
    assert {party for party, _ in rules(untouched)} == {"client", "server"}


def test_the_server_is_judged_by_its_own_answer_and_the_client_by_the_one_that_it_got():
    wire = Wire()
    first = wire.call({"name": "ask", "arguments": {}}, asks("state-of-the-server"), passed=asks("state-of-the-proxy!"))
    second = wire.call(retry("state-of-the-proxy!"), result(content=[]))
    assert rules(first) == rules(second) == []
    assert second.conversation is not None and second.conversation.rounds == ["1", "2"]
    wire = Wire()
    wire.call({"name": "ask", "arguments": {}}, asks("state-of-the-server"))
    assert any(party == "client" for party, _ in rules(wire.call(retry("state-of-the-proxy!"), result(content=[]))))


def test_a_state_that_the_proxy_changed_is_not_the_clients_doing():
    wire = Wire()
    wire.call({"name": "ask", "arguments": {}}, asks("state-of-the-server"))
    exchange = wire.call(retry("state-of-the-server"), error(-32602), sent=retry("state-of-nobody"))
    assert rules(exchange) == []
    wire = Wire()
    wire.call({"name": "ask", "arguments": {}}, asks("state-of-the-server"))
    accepted = wire.call(retry("state-of-the-server"), result(content=[]), sent=retry("state-of-nobody"))
    assert {party for party, _ in rules(accepted)} == {"server"}  # it takes a state that it never gave


@pytest.mark.parametrize("sent", [b"{no json", b"[]", b"", b"[{}]"])
def test_whatever_the_request_became(sent):
    exchange = Wire().call({"name": "echo", "arguments": {}}, error(-32700), sent=sent, status=400)
    assert rules(exchange) == []
    assert not exchange.faults


def test_an_answer_of_the_proxy_is_nobodys():
    exchange = Wire().call({"name": "echo", "arguments": {}}, {"result": {"odd": 1}}, here="map_local")
    assert rules(exchange) == []
    assert json.loads(record.flow_line(exchange, "a", 0))["changed"] == {"by": "map_local", "request": False, "response": True}
    assert exchange.endpoint.modern is None
    assert "nothing was sent" in change.sentences(exchange.change)[0]


def test_a_flow_that_nobody_touched_has_one_side():
    exchange = Wire().call({"name": "echo", "arguments": {}}, result(content=[]))
    assert exchange.change is exchange.at_server is exchange.at_client is exchange.judged is None
    assert json.loads(record.flow_line(exchange, "a", 0))["changed"] is None


def test_a_refusal_that_the_proxy_brought_about_is_no_habit_of_the_server():
    wire = Wire()
    failed = {"error": {"code": -32603, "message": "unsupported version"}}
    for _ in range(4):
        exchange = wire.call({"name": "echo", "arguments": {}}, failed, here="gate")
        assert rules(exchange) == []
    changed = wire.call(
        {"name": "echo", "arguments": {}},
        {"error": {"code": -32600, "message": "unsupported protocol version"}},
        sent={"name": "other", "arguments": {}},
        status=400,
    )
    assert [rule for party, rule in rules(changed) if party == "client"] == []
