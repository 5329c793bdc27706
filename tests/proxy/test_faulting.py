"""Faults put into live traffic: what the client gets, that the server is not blamed, and that the recording says the same."""

import json
import socket

import pytest

from mcp_wiretap.cli import main
from mcp_wiretap.proxy.faulting import read_plan
from mcp_wiretap.steering import FAULTS, parse_fault
from tests.proxy import flows, wire
from tests.proxy.test_changes import call, done, fields

EVENTS = b"event: message\ndata: %s\n\n"


@pytest.mark.parametrize(
    "line", ["error:-32020 tools/call", "cut:1 tools/call echo #2", "ask *", "status:403:admin tools/*", "delay:0.5 *"]
)
def test_a_line_reads_as_it_was_written(line):
    assert str(parse_fault(line)) == line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "cut",
        "break tools/call",
        "error tools/call",
        "error:x tools/call",
        "status:99 *",
        "ask:1 *",
        "big:99999999999 *",
        "cut:1 a b c",
    ],
)
def test_a_line_that_is_none_is_refused_and_says_why(line):
    with pytest.raises(ValueError, match=r"KIND|number|status|bounds|argument"):
        parse_fault(line)


def test_every_kind_is_explained_by_its_argument():
    assert set(FAULTS) >= {"error", "status", "ask", "drop", "delay", "cut", "end", "twice", "ttl", "big"}


def test_a_file_of_faults_is_the_same_each_time(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text('seed = 7\n[[fault]]\nkind = "drop"\nmethod = "tools/call"\nprobability = 0.5\n')
    plans = [read_plan([], str(path))[0] for _ in range(2)]
    taken = [[plan.takes(f"client {n}") for n in range(20)] for plan in plans]
    assert taken[0] == taken[1] and True in taken[0] and False in taken[0]
    for wrong in ("[[fault]]\n", '[[fault]]\nkind = "drop"\n', "no toml", 'other = 1\n[[fault]]\nkind="drop"\nmethod="*"\n'):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="mcp_faults"):
            read_plan([], str(path))


def asked(stream: socket.socket, message: bytes) -> bytes:
    stream.sendall(message)
    got = wire.read_message(stream)
    return got[0] if got is not None else b""


def judged(proxy, capsys) -> list[dict]:
    proxy.stop()
    main(["faults", str(proxy.path), "--format", "json"])
    return json.loads(capsys.readouterr().out)["faults"]


@pytest.fixture
def server():
    made = wire.Server()
    yield made
    made.close()


@pytest.mark.e2e
def test_an_error_is_the_proxys_and_a_wrong_reaction_the_clients(server, tmp_path, capsys):
    server.replies.put(done(3))
    with wire.proxy(tmp_path, server, options=["--set", "mcp_fault=error:-32021 tools/call"]) as proxy:
        with proxy.connect() as stream:
            refused = asked(stream, call(id=2))
            assert b"-32021" in refused and b"requiredCapabilities" in refused and b"400" in refused.splitlines()[0]
            assert b"sunny" in asked(stream, call(id=3))
        (told,) = judged(proxy, capsys)
        assert told["verdict"] == "failed" and "declared no more" in told["why"]
        first, second = proxy.flows()
    assert len(server.received) == 1
    assert first.metadata["mcp.fault"]["kind"] == "error" and first.marked == ":zap:" and "(fault: error:-32021)" in first.comment
    assert "RCT003" in second.metadata["mcp.rules"]
    main(["audit", str(proxy.path), "--format", "json", "--fail-on", "never"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert not [f for f in findings if f["party"] == "server" and f["severity"] != "info"]
    assert [f["flow"] for f in findings if f["rule"] == "RCT003"] == [second.id]


@pytest.mark.e2e
def test_a_question_is_put_in_and_its_retry_reaches_the_server_without_the_answer(server, tmp_path, capsys):
    server.replies.put(done(3))
    with wire.proxy(tmp_path, server, options=["--set", "mcp_fault=ask tools/call"]) as proxy:
        with proxy.connect() as stream:
            body = json.loads(asked(stream, call(id=2)).partition(b"\r\n\r\n")[2])
            state = body["result"]["requestState"]
            answers = {key: {"action": "decline"} for key in body["result"]["inputRequests"]}
            assert b"sunny" in asked(stream, call(id=3, params={"requestState": state, "inputResponses": answers}))
        (told,) = judged(proxy, capsys)
    assert told["verdict"] == "passed"
    sent = json.loads(server.received[0].partition(b"\r\n\r\n")[2])["params"]
    assert "requestState" not in sent and "inputResponses" not in sent and sent["arguments"] == {"city": "Paris"}
    main(["audit", str(proxy.path), "--format", "json", "--fail-on", "never"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert not [f["message"] for f in findings if f["severity"] == "error"]


def streamed(*messages: bytes) -> list[bytes]:
    return [
        wire.head("200 OK", "content-type: text/event-stream", "transfer-encoding: chunked"),
        *(wire.chunk(EVENTS % m) for m in messages),
        wire.LAST,
    ]


PROGRESS = b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}}'


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["cut:1", "twice", "foreign:1", "garbage:0"])
def test_a_stream_is_broken_as_the_fault_says(server, tmp_path, capsys, kind):
    answer = flows.result({"content": []}, id=2)
    server.replies.put(streamed(PROGRESS, answer))
    with wire.proxy(tmp_path, server, options=["--set", f"mcp_fault={kind} tools/call"]) as proxy:
        with proxy.connect() as stream:
            stream.sendall(call(id=2, params={"_meta": {"progressToken": "p"}}))
            got = b""
            stream.settimeout(10)
            try:
                while piece := stream.recv(65536):
                    got += piece
                    if got.endswith(wire.LAST):
                        break
            except ConnectionError:
                pass
        (told,) = judged(proxy, capsys)
    assert told["fault"] == kind and told["verdict"] != "not applied"
    assert got.count(b'"progress": 1') == (2 if kind == "twice" else 1)
    if kind == "cut:1":
        assert answer not in got and not got.endswith(wire.LAST)
    else:
        assert answer in got
    assert (b"mcp-wiretap-foreign" in got) is (kind == "foreign:1")
    assert len(fields("tools/call")) == 4


@pytest.mark.e2e
def test_what_could_not_be_broken_is_not_applied_and_changes_nothing(server, tmp_path, capsys):
    server.replies.put(done(2))
    with wire.proxy(
        tmp_path, server, options=["--set", "mcp_fault=cut:1 tools/call", "--set", "mcp_fault=drop tasks/get"]
    ) as proxy:
        with proxy.connect() as stream:
            assert asked(stream, call(id=2)).endswith(done(2)[0].partition(b"\r\n\r\n")[2])
        (told,) = judged(proxy, capsys)
    assert told["verdict"] == "not applied"
    main(["faults", str(proxy.path), "--fault", "drop tasks/get"])
    assert "not reached" in capsys.readouterr().out


@pytest.mark.e2e
def test_the_nth_call_is_meant_and_a_dropped_one_gets_no_answer(server, tmp_path, capsys):
    server.replies.put(done(2))
    with wire.proxy(tmp_path, server, options=["--set", "mcp_fault=drop tools/call #2"]) as proxy:
        with proxy.connect() as stream:
            assert b"sunny" in asked(stream, call(id=2))
            assert asked(stream, call(id=3)) == b""
        (told,) = judged(proxy, capsys)
    assert len(server.received) == 1 and told["verdict"] == "passed" and "gave up" in told["why"]
