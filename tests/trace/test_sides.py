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
JSON_TYPE = (b"content-type", b"application/json")
JSON = Fields([JSON_TYPE])
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


TASKS = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
STATE = {"status": "working", "createdAt": "2026-11-30T10:00:00Z", "lastUpdatedAt": "2026-11-30T10:00:00Z", "ttlMs": None}


def task(task_id, *, interval=None, **members):
    pace = {"pollIntervalMs": interval} if interval is not None else {}
    return {"result": {"resultType": "task", "taskId": task_id, **STATE, **pace, **members}}


def state(task_id, **members):
    return result(taskId=task_id, **{**STATE, **members})


GONE = {"error": {"code": -32602, "message": "Task not found"}}
SLOW = {"name": "slow", "arguments": {}}
ASKED = {"taskId": "of-the-server-0001"}
ANSWERS = {"b": {"action": "accept", "content": {}}}


@pytest.fixture
def tasks(monkeypatch):
    monkeypatch.setitem(META, "io.modelcontextprotocol/clientCapabilities", {"elicitation": {}, **TASKS[next(iter(TASKS))]})
    return Wire()


def poll(wire, task_id, given, **more):
    return wire.call({"taskId": task_id}, given, method="tasks/get", headers={"mcp-name": task_id}, **more)


def test_a_task_that_the_proxy_renamed_is_asked_for_by_the_name_that_the_client_got(tasks):
    tasks.call(SLOW, task("of-the-server-0001"), passed=task("of-the-proxy-00001"))
    asked = poll(tasks, "of-the-proxy-00001", GONE)
    assert rules(asked) == []  # neither: the client was given this id, the server never gave it
    assert asked.conversation is not None
    untouched = Wire()
    untouched.call(SLOW, task("of-the-server-0001"))
    assert ("server", "TSK016") in rules(poll(untouched, "of-the-server-0001", GONE))


def test_the_interval_and_the_questions_of_a_task_are_those_that_the_client_got(tasks):
    question = {"b": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": SCHEMA}}}
    update = {"taskId": "of-the-server-0001", "inputResponses": ANSWERS}
    headers = {"mcp-name": "of-the-server-0001"}

    def told(wire, **passed):
        wire.call(SLOW, task("of-the-server-0001", interval=60_000), **passed)
        poll(wire, "of-the-server-0001", state("of-the-server-0001", pollIntervalMs=60_000))
        return poll(wire, "of-the-server-0001", state("of-the-server-0001", pollIntervalMs=60_000))

    def all_rules(exchange):
        return {(f.party, f.rule) for f in exchange.findings}

    assert ("client", "TSK020") in all_rules(told(Wire()))
    tasks.call(SLOW, task("of-the-server-0001", interval=60_000), passed=task("of-the-server-0001", interval=50))
    second = poll(
        tasks, "of-the-server-0001", state("of-the-server-0001"), passed=state("of-the-server-0001", inputRequests=question)
    )
    assert ("client", "TSK020") not in all_rules(second)
    assert rules(tasks.call(update, result(), method="tasks/update", headers=headers)) == []
    untouched = Wire()
    untouched.call(SLOW, task("of-the-server-0001"))
    assert ("client", "TSK010") in rules(untouched.call(update, result(), method="tasks/update", headers=headers))


def test_a_task_of_which_the_client_was_not_told_is_not_waited_for(tasks):
    def unpolled(wire, **passed):
        first = wire.call(SLOW, task("of-the-server-0001", interval=50), **passed)
        wire.at += 60
        wire.call({"name": "echo", "arguments": {}}, result(content=[]))
        wire.inspector.finish()
        return {(f.party, f.rule) for f in first.findings}

    assert ("client", "TSK020") in unpolled(Wire())
    assert ("client", "TSK020") not in unpolled(tasks, passed=result(content=[]))


def test_a_task_that_the_proxy_made_up_is_not_the_clients_invention(tasks):
    tasks.call(SLOW, result(content=[]), passed=task("of-the-proxy-00001", interval=50))
    assert rules(poll(tasks, "of-the-proxy-00001", GONE)) == []


class LegacyWire:
    """A legacy session of which the answer to initialize may be changed on its way."""

    def __init__(self):
        self.inspector, self.at, self.count = Inspector(RuleBook.of()), 1000.0, 0

    def post(self, method, params, given, *, headers=(), answered=(), passed=None, passed_headers=None):
        self.count += 1
        flow, self.at = str(self.count), self.at + 0.1
        base = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream"), *headers]
        body = json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}).encode()
        feed = self.inspector.feed
        feed(RequestSeen(flow, self.at, self.at, "POST", "http", "mcp.example", 80, "/mcp", Fields(base), body, "c"))
        fields = Fields([JSON_TYPE, *answered])
        feed(ResponseStarted(flow, self.at + 0.01, 200, fields))
        answer = json.dumps({"jsonrpc": "2.0", "id": self.count, **given}).encode()
        changed = passed is not None or passed_headers is not None
        feed(ExchangeEnded(flow, self.at + 0.02, answer, False, "complete", on_its_way=changed))
        if changed:
            got = json.dumps({"jsonrpc": "2.0", "id": self.count, **(passed or given)}).encode()
            shown = Fields([JSON_TYPE, *(answered if passed_headers is None else passed_headers)])
            feed(AnswerPassed(flow, self.at + 0.03, 200, shown, got, "script"))
        return self.inspector.exchanges[flow]

    def open(self, **more):
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        return self.post("initialize", params, opened("2025-11-25"), **more)


def opened(version):
    return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}


GIVEN = ((b"mcp-session-id", b"of-the-server-0123456789"),)
VERSION = (b"mcp-protocol-version", b"2025-11-25")


def test_a_session_id_that_the_client_never_got_is_not_missed():
    wire = LegacyWire()
    wire.open(answered=GIVEN)
    assert ("client", "LEG001") in rules(wire.post("tools/list", {}, {"result": {"tools": []}}, headers=[VERSION]))
    wire = LegacyWire()
    first = wire.open(answered=GIVEN, passed_headers=())
    assert rules(first) == []
    assert rules(wire.post("tools/list", {}, {"result": {"tools": []}}, headers=[VERSION])) == []


def test_a_session_id_that_the_proxy_changed_is_nobodys_fault():
    wire = LegacyWire()
    other = (b"mcp-session-id", b"of-the-proxy-9876543210")
    wire.open(answered=GIVEN, passed_headers=(other,))
    refusal = {"error": {"code": -32600, "message": "Unknown session"}}
    assert rules(wire.post("tools/list", {}, refusal, headers=[VERSION, other])) == []


@pytest.mark.parametrize("answered", [GIVEN, ()], ids=["with a session", "without"])
def test_the_revision_is_the_one_that_the_client_was_told(answered):
    def listed(version, **more):
        wire = LegacyWire()
        wire.open(answered=answered, **more)
        headers = [(b"mcp-protocol-version", version), *answered]
        return rules(wire.post("tools/list", {}, {"result": {"tools": []}}, headers=headers))

    assert ("client", "LEG009") in listed(b"2025-06-18")
    assert listed(b"2025-06-18", passed=opened("2025-06-18")) == []
    assert ("client", "LEG009") in listed(b"2025-11-25", passed=opened("2025-06-18"))
