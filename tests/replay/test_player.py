"""What a live client is answered from a recording."""

import asyncio
import time

import pytest

from tests.replay.playing import Caller, events, playing, recorded, written

COUNTER = """
modern tools/list
  -> tool counter {"by": {"type": "integer"}}
modern tools/call {"name": "counter", "arguments": {"by": 1}}
  -> result {"content": [{"type": "text", "text": "first"}]}
modern tools/call {"name": "counter", "arguments": {"by": 1}}
  -> result {"content": [{"type": "text", "text": "second"}]}
modern tools/call {"name": "counter", "arguments": {"by": 2}}
  -> result {"content": [{"type": "text", "text": "by two"}]}
"""


def text(answer):
    return answer["result"]["content"][0]["text"]


async def test_repeated_calls_follow_the_recorded_order_then_repeat_the_last():
    async with playing(written(COUNTER)) as origin, Caller(origin) as caller:
        said = [text(await caller.call("counter", {"by": 1})) for _ in range(4)]
    assert said == ["first", "second", "second", "second"]


async def test_a_client_that_starts_anew_after_the_end_sees_the_recording_from_its_beginning():
    async with playing(written(COUNTER)) as origin:
        for _ in range(2):
            async with Caller(origin) as caller:
                await caller.modern("tools/list")
                said = [text(await caller.call("counter", {"by": by})) for by in (1, 1, 2)]
                assert said == ["first", "second", "by two"]


@pytest.mark.parametrize("id", [7, "seven", 0])
async def test_the_live_id_is_in_the_answer_with_its_type(id):
    async with playing(written(COUNTER)) as origin, Caller(origin) as caller:
        answer = await caller.call("counter", {"by": 1}, id=id)
    assert answer["id"] == id and type(answer["id"]) is type(id)


async def test_arguments_are_compared_as_json_values():
    script = written("""
modern tools/call {"name": "t", "arguments": {"a": 1, "b": {"x": 1.0, "y": [1, 2]}}}
  -> result {"content": [{"type": "text", "text": "found"}]}
""")
    async with playing(script) as origin, Caller(origin) as caller:
        assert text(await caller.call("t", {"b": {"y": [1, 2], "x": 1}, "a": 1.0})) == "found"
        for other in ({"a": 1, "b": {"x": 1, "y": [2, 1]}}, {"a": True, "b": {"x": 1, "y": [1, 2]}}, {"a": "1", "b": {}}):
            assert (await caller.call("t", other))["error"]["code"] == -32602


async def test_progress_token_and_trace_context_make_no_difference_and_the_token_is_that_of_now():
    script = written("""
modern tools/call {"name": "t", "arguments": {}}
  meta progressToken "recorded"
  meta traceparent "00-1-1-01"
  -> sse
  -> notify notifications/progress {"progressToken": "recorded", "progress": 1}
  -> result {"content": []}
""")
    async with playing(script) as origin, Caller(origin) as caller:
        asked = {"name": "t", "arguments": {}}
        response = await caller.modern("tools/call", asked, id=5, meta={"progressToken": 99, "traceparent": "00-2-2-01"})
        progress, result = events(response.text)
        without = events((await caller.modern("tools/call", asked, id=6)).text)
    assert progress["params"]["progressToken"] == 99 and result["id"] == 5
    assert [event.get("id") for event in without] == [6], "who gave no token is told no progress"


async def test_the_subscription_id_is_that_of_now():
    script = written("""
modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
  -> sse
  -> ack {"toolsListChanged": true}
  -> publish notifications/tools/list_changed
""")
    async with playing(script) as origin, Caller(origin) as caller:
        response = await caller.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="now")
        told = [event["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for event in events(response.text)]
    assert told == ["now", "now"]


LISTEN = """
modern subscriptions/listen {"notifications": {"toolsListChanged": true}}
  -> sse
  -> ack {"toolsListChanged": true}
  -> after 0.4
  -> publish notifications/tools/list_changed
  -> after 0.3
  -> publish notifications/tools/list_changed
"""


@pytest.mark.parametrize(("fast", "least", "most"), [(False, 0.65, 5.0), (True, 0.0, 0.6)])
async def test_streams_keep_the_recorded_timing_or_come_at_once(fast, least, most):
    async with playing(written(LISTEN), fast=fast) as origin, Caller(origin) as caller:
        begun = time.monotonic()
        response = await caller.modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        took = time.monotonic() - begun
    assert len(events(response.text)) == 3 and least <= took <= most


ASKED = """
modern tools/call {"name": "a", "arguments": {"api_key": "RECORDED-4711", "note": "Authorization: Bearer RECORDEDTOKEN0815"}}
  -> result {"content": []}
"""


async def test_what_was_asked_is_told_without_its_secrets():
    given = {"api_key": "ASKED-APIKEY-4711", "note": "Authorization: Bearer ASKEDTOKEN0815", "city": "Oslo"}
    async with playing(written(ASKED)) as origin, Caller(origin) as caller:
        told = (await caller.modern("tools/call", {"name": "a", "arguments": given})).text
    assert "Oslo" in told
    assert not [secret for secret in ("4711", "0815") if secret in told]


MRTR = """
modern tools/call {"name": "deploy", "arguments": {}}
  -> needs state-one confirm
modern tools/call {"name": "deploy", "arguments": {}}
  answers state-one confirm
  -> result {"content": [{"type": "text", "text": "first chain"}]}
modern tools/call {"name": "deploy", "arguments": {}}
  -> needs state-two confirm
modern tools/call {"name": "deploy", "arguments": {}}
  answers state-two confirm
  -> result {"content": [{"type": "text", "text": "second chain"}]}
"""
ACCEPTED = {"confirm": {"action": "accept", "content": {}}}


async def test_rounds_follow_the_recorded_states():
    async with playing(written(MRTR)) as origin, Caller(origin) as caller:
        states = [(await caller.call("deploy", {}))["result"]["requestState"] for _ in range(2)]
        assert states == ["state-one", "state-two"]
        later = [text(await caller.call("deploy", {}, requestState=s, inputResponses=ACCEPTED)) for s in reversed(states)]
    assert later == ["second chain", "first chain"]


async def test_a_state_or_an_answer_that_was_not_recorded_is_an_error():
    async with playing(written(MRTR)) as origin, Caller(origin) as caller:
        foreign = await caller.call("deploy", {}, requestState="other", inputResponses=ACCEPTED)
        declined = {"confirm": {"action": "decline"}}
        other = await caller.call("deploy", {}, requestState="state-one", inputResponses=declined)
    assert "requestState is not one" in foreign["error"]["message"]
    assert "other answers were given" in other["error"]["message"]


async def test_what_is_not_recorded_is_an_error_that_names_what_was_asked_and_what_is_there():
    async with playing(written(COUNTER)) as origin, Caller(origin) as caller:
        answer = await caller.call("counter", {"by": 3}, id="mine")
        method = await caller.modern("prompts/list")
        path = await Caller(origin, "/other").modern("tools/list")
        stream = await caller.http.get(caller.url, headers={"accept": "text/event-stream"})
    error = answer["error"]
    assert answer["id"] == "mine" and error["code"] == -32602
    assert 'tools/call counter {"by": 3}' in error["message"] and 'tools/call counter {"by": 1} (2 times)' in error["message"]
    assert error["data"]["asked"] == 'tools/call counter {"by": 3}'
    assert (method.status_code, method.json()["error"]["code"]) == (404, -32601)
    assert path.status_code == 404 and "/mcp" in path.json()["error"]["message"]
    assert stream.status_code == 405


async def test_a_legacy_client_of_a_modern_recording_is_told_so():
    async with playing(written(COUNTER)) as origin, Caller(origin) as caller:
        answer = (await caller.legacy("tools/list")).json()
    assert "in the modern era only" in answer["error"]["message"]


async def test_a_session_gets_an_id_of_its_own_and_ends():
    async with playing(recorded("logging-legacy-http")) as origin, Caller(origin) as one, Caller(origin) as other:
        await one.initialize()
        await other.initialize()
        assert one.session and other.session and one.session != other.session
        headers = {"mcp-session-id": one.session}
        assert (await one.http.delete(one.url, headers=headers)).status_code == 200
        assert (await one.legacy("tools/list")).status_code == 404
        one.session = None
        assert (await one.legacy("tools/list")).status_code == 400


async def test_after_a_question_the_stream_waits_for_the_clients_answer():
    async with playing(recorded("dual-era-http")) as origin, Caller(origin) as caller:
        await caller.initialize()
        await caller.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        call = {"name": "collect_elicitation", "arguments": {"message": "Who are you?"}}
        waiting = asyncio.create_task(caller.legacy("tools/call", call, id="mine"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        stray = await caller.post({"jsonrpc": "2.0", "id": "never asked", "result": {}})
        assert stray.status_code == 400
        # The recorded server counts its questions from 0.
        answer = {"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"name": "Ada"}}}
        statuses = [(await caller.post({**answer, "id": number})).status_code for number in range(3)]
        assert 202 in statuses
        question, result = events((await waiting).text)[-2:]
    assert question["method"] == "elicitation/create" and result["id"] == "mine"


def asking(answer, text):
    """A legacy session in which the server asks."""
    return f"""
legacy initialize {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "clientInfo": {{"name": "c", "version": "1"}}}}
  -> result {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s", "version": "1"}}}}
legacy tools/call {{"name": "ask", "arguments": {{}}}}
  label {text}
  -> sse
  -> ask 900 elicitation/create {{"message": "Sure?", "requestedSchema": {{"type": "object", "properties": {{}}}}}}
  -> open
legacy-reply 900 {{"action": "{answer}"}}
  -> 202
continue {text}
  -> result {{"content": [{{"type": "text", "text": "{text}"}}]}}
DELETE
  -> 200
"""


@pytest.mark.parametrize(("answer", "said"), [("accept", "thanks"), ("decline", "pity"), ("cancel", "thanks")])
async def test_it_goes_on_as_it_went_on_after_that_answer(answer, said):
    script = written(asking("accept", "thanks") + asking("decline", "pity"))
    async with playing(script) as origin, Caller(origin) as caller:
        await caller.initialize()
        waiting = asyncio.create_task(caller.legacy("tools/call", {"name": "ask", "arguments": {}}, id=3))
        for _ in range(100):
            reply = await caller.post({"jsonrpc": "2.0", "id": 900, "result": {"action": answer}})
            if reply.status_code == 202:
                break
            await asyncio.sleep(0.02)
        assert text(events((await waiting).text)[-1]) == said


async def test_polls_of_a_task_come_in_recorded_order():
    script = written("""
modern tools/call {"name": "work", "arguments": {}}
  -> result {"resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null}
modern tasks/get {"taskId": "t-1"}
  -> result {"taskId": "t-1", "status": "working"}
modern tasks/get {"taskId": "t-1"}
  -> result {"taskId": "t-1", "status": "completed"}
""")
    async with playing(script) as origin, Caller(origin) as caller:
        for _ in range(2):  # a task that is started again is polled from its beginning
            task = (await caller.call("work", {}))["result"]["taskId"]
            polls = [(await caller.modern("tasks/get", {"taskId": task})).json()["result"]["status"] for _ in range(3)]
            assert polls == ["working", "completed", "completed"]


TWO_SERVERS = """
modern tools/list
  path http://one.example/mcp
  -> tool of_one
modern tools/list
  path http://two.example/mcp
  -> tool of_two
"""


async def test_of_several_endpoints_the_one_that_is_asked_answers():
    async with playing(written(TWO_SERVERS)) as origin, Caller(origin) as caller:
        lost = (await caller.modern("tools/list")).json()
        meta = {"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", **meta}
        found = (await caller.post(asked, host="two.example")).json()
    assert "http://one.example:80/mcp, http://two.example:80/mcp" in lost["error"]["message"]
    assert found["result"]["tools"][0]["name"] == "of_two"
    async with playing(written(TWO_SERVERS), endpoint="http://one.example:80/mcp") as origin, Caller(origin) as caller:
        chosen = (await caller.modern("tools/list")).json()
    assert chosen["result"]["tools"][0]["name"] == "of_one"


async def test_bodies_that_were_not_stored_are_said_and_not_played():
    script = written("""
modern tools/list
  -> tool t
modern tools/call {"name": "t", "arguments": {}}
  body-lost
  -> result {"content": []}
""")
    assert len(script.problems) == 1 and "was not stored" in script.problems[0]
    async with playing(script) as origin, Caller(origin) as caller:
        assert (await caller.call("t", {}))["error"]["code"] in (-32601, -32602)


async def test_hostile_requests_are_answered_or_refused():
    async with playing(written(COUNTER)) as origin, Caller(origin) as caller:
        deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 5000 + b"]" * 5000 + b"}"
        for body in (b"{", b"[]", b"\xff\xfe", deep, b'{"jsonrpc":"2.0","id":' + b"9" * 6000 + b',"method":"x"}', b"null"):
            response = await caller.http.post(caller.url, content=body, headers={"content-type": "application/json"})
            assert '"message": "mcp-wiretap replay: ' in response.text
        assert text(await caller.call("counter", {"by": 2})) == "by two"
