"""The one door: what is MCP, what answers what across streams, what is judged anew, what is let go."""

import json

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.events import ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import NoRules
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.wire.headers import Fields
from tests.trace.following import SESSION, follow


def links(inspector: Inspector) -> list[tuple[str, str, str, str]]:
    return [(k.earlier, k.later, k.by, k.confidence) for c in inspector.conversations for k in c.links]


def answers(exchange: Exchange) -> list[str]:
    return [m.rpc.kind for m in exchange.received]


# What is MCP


def test_a_get_before_the_first_message_is_promoted_when_its_url_is_proven() -> None:
    inspector, [get, post] = follow("GET /mcp\n  -> 405\nmodern tools/list\n  -> result {}\n")
    assert (get.kind, post.kind) == ("mcp", "mcp")
    assert get.outcome == "error"
    assert len(inspector.held) == 0


def test_a_preflight_is_one_whether_it_comes_before_or_after_the_proof() -> None:
    preflight = "OPTIONS /mcp\n  header Access-Control-Request-Method: POST\n  -> 204\n"
    _, [early, _, late] = follow(preflight + "modern tools/list\n  -> result {}\n" + preflight)
    assert (early.kind, late.kind) == ("preflight", "preflight")


def test_what_is_not_mcp_stays_so_and_is_let_go() -> None:
    _, [page, elsewhere] = follow("GET /\n  -> 200 text/html <p>hello</p>\nPOST /login\n  body a=b\n  -> 200\n")
    assert (page.kind, elsewhere.kind) == ("other", "other")


def test_a_stream_that_carries_json_rpc_makes_its_exchange_mcp() -> None:
    script = 'GET /events\n  -> sse\n  -> event {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}\n  -> open\n'
    _, [stream] = follow(script)
    assert stream.kind == "mcp"
    assert [m.method for m in stream.received] == ["notifications/message"]


def test_an_event_stream_of_something_else_is_not_touched() -> None:
    _, [stream] = follow("GET /ticker\n  -> sse\n  -> event 42\n  -> event hello\n")
    assert stream.kind == "other"


def test_a_flow_that_is_told_twice_counts_once() -> None:
    inspector = Inspector()
    events = read_script("modern tools/list\n  -> result {}\n")
    for event in [e for e in events for _ in (1, 2)]:
        inspector.feed(event)
    [exchange] = inspector.exchanges.values()
    assert exchange.outcome == "complete"


def test_discovery_of_an_authorization_server_is_no_mcp_whatever_headers_it_carries() -> None:
    script = "GET /.well-known/oauth-protected-resource/mcp\n  header MCP-Protocol-Version: 2026-07-28\n  -> 404\n"
    _, [discovery] = follow(script)
    assert discovery.kind == "other"


# Pairing across streams


def test_an_answer_on_its_own_exchange_needs_no_conversation() -> None:
    inspector, exchanges = follow(SESSION + "legacy tools/list\n  -> result {}\n")
    assert not list(inspector.conversations)
    assert [x.conversation for x in exchanges] == [None, None]


def test_equal_ids_on_parallel_exchanges_do_not_meet() -> None:
    script = "modern tools/list\n  label a\n  id 1\n  -> open\nmodern prompts/list\n  id 1\n  -> result {}\n"
    script += "continue a\n  -> error -32603\n"
    _, [first, second] = follow(script)
    assert (first.outcome, second.outcome) == ("error", "complete")


def test_a_server_request_is_answered_by_a_post_of_the_same_session() -> None:
    script = SESSION + (
        'legacy tools/call {"name": "ask"}\n  label call\n  -> sse\n  -> ask 7 elicitation/create {}\n  -> open\n'
        'legacy-reply 7 {"action": "accept"}\n  after 2\n  -> 202\n'
        "continue call\n  -> result {}\n"
    )
    inspector, [_, call, reply] = follow(script)
    assert links(inspector) == [(call.flow, reply.flow, "jsonrpc-id", "exact")]
    assert reply.method == "elicitation/create"
    [conversation] = inspector.conversations
    assert (conversation.status, conversation.method, conversation.over) == ("complete", "tools/call", True)
    assert conversation.client_ms == pytest.approx(2000, abs=50)


def test_a_server_request_on_the_listening_stream_belongs_to_the_only_call_that_waits() -> None:
    script = SESSION + (
        "GET /mcp\n  label stream\n  session session-1-of-the-example\n  -> sse\n  -> open\n"
        'legacy tools/call {"name": "ask"}\n  label call\n  -> sse\n  -> open\n'
        "continue stream\n  -> ask 7 roots/list\n  -> open\n"
        'legacy-reply 7 {"roots": []}\n  -> 202\n'
        "continue call\n  -> result {}\n"
    )
    inspector, [_, _, call, reply] = follow(script)
    assert links(inspector) == [(call.flow, reply.flow, "jsonrpc-id", "likely")]


def test_a_server_request_on_the_listening_stream_is_linked_to_none_of_two_calls() -> None:
    script = SESSION + (
        "GET /mcp\n  label stream\n  session session-1-of-the-example\n  -> sse\n  -> open\n"
        'legacy tools/call {"name": "one"}\n  -> sse\n  -> open\n'
        'legacy tools/call {"name": "two"}\n  -> sse\n  -> open\n'
        "continue stream\n  -> ask 7 roots/list\n  -> open\n"
        'legacy-reply 7 {"roots": []}\n  -> 202\n'
    )
    inspector, exchanges = follow(script)
    assert links(inspector) == []
    assert exchanges[-1].method == "roots/list"


def test_replies_of_two_sessions_with_the_same_id_find_their_own_calls() -> None:
    other = SESSION.replace("\n", "\n  client b\n", 1)
    ask = "  -> sse\n  -> ask 1 elicitation/create {}\n  -> open\n"
    script = SESSION + other
    script += 'legacy tools/call {"name": "a"}\n' + ask + 'legacy tools/call {"name": "b"}\n  client b\n' + ask
    script += 'legacy-reply 1 {"action": "accept"}\n  client b\n  -> 202\nlegacy-reply 1 {"action": "decline"}\n  -> 202\n'
    inspector, [_, _, call_a, call_b, reply_b, reply_a] = follow(script)
    assert sorted(links(inspector)) == sorted(
        [(call_b.flow, reply_b.flow, "jsonrpc-id", "exact"), (call_a.flow, reply_a.flow, "jsonrpc-id", "exact")]
    )


def test_an_answer_on_another_stream_completes_the_request_that_was_over_already() -> None:
    script = SESSION + (
        "GET /mcp\n  label stream\n  session session-1-of-the-example\n  -> sse\n  -> open\n"
        "legacy tools/list\n  id 9\n  -> 202\n"
        'continue stream\n  -> event {"jsonrpc": "2.0", "id": 9, "result": {"tools": []}}\n  -> open\n'
    )
    inspector, [_, _, call] = follow(script)
    assert call.outcome == "complete"
    assert call.released
    assert len(inspector.held) == 0


def test_an_answer_with_another_id_is_paired_and_marked() -> None:
    _, [exchange] = follow("modern tools/list\n  id 1\n  -> answer-id 2\n  -> error -32603\n")
    assert exchange.outcome == "error"


def test_an_id_keeps_its_json_type() -> None:
    seen: list[bool] = []

    class Watching(Judging):
        def said(self, message: Message) -> bool:
            seen.append(message.id_matches)
            return False

    inspector = Inspector(Watching())
    for event in read_script('modern tools/list\n  id 1\n  -> answer-id "1"\n  -> result {}\n'):
        inspector.feed(event)
    assert seen == [False]


class Judging(NoRules):
    """A judge that counts how often each exchange is judged anew."""

    def __init__(self) -> None:
        self.anew: list[str] = []

    def again(self, exchange: Exchange) -> bool:
        self.anew.append(exchange.flow)
        return False


def test_a_request_that_can_get_no_answer_any_more_is_not_waited_for() -> None:
    script = SESSION + "legacy tools/list\n  -> 503\nlegacy tools/list\n  -> closed server\nlegacy tools/list\n  -> 202\n"
    _, [handshake, *_] = follow(script)
    assert handshake.session is not None
    assert [m.exchange.status for m in handshake.session.from_client.values()] == [202]


def test_questions_of_servers_wait_in_a_bounded_number() -> None:
    asks = "".join(f"  -> ask {n} roots/list\n" for n in range(1_050))
    inspector, [handshake, call] = follow(SESSION + "legacy tools/list\n  -> sse\n" + asks + "  -> open\n")
    assert handshake.session is not None
    assert len(handshake.session.from_server) == 1_000
    big = json.dumps({"text": "x" * (1 << 20)})
    asks = "".join(f"  -> ask {n} roots/list {big}\n" for n in range(20))
    limits = Limits(stream=64 << 20)
    inspector, [handshake, call] = follow(SESSION + "legacy tools/list\n  -> sse\n" + asks + "  -> open\n", limits)
    assert handshake.session is not None
    assert len(handshake.session.from_server) == 15
    assert inspector.sessions.dropped == 5
    assert len(call.received) == 20


# HTTP+SSE of 2024-11-05

HTTP_SSE = "GET /sse\n  label stream\n  -> sse\n  -> sse-raw event: endpoint\\ndata: /messages?session_id=1\\n\\n\n  -> open\n"


def test_http_sse_posts_belong_to_the_stream_that_announced_their_address() -> None:
    script = HTTP_SSE + (
        "legacy initialize\n  id 0\n  path /messages?session_id=1\n  -> 202\n"
        'continue stream\n  -> event {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2024-11-05"}}\n  -> open\n'
        "legacy tools/list\n  id 1\n  path /messages?session_id=1\n  -> 202\n"
        'continue stream\n  -> event {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}\n  -> open\n'
    )
    inspector, [stream, handshake, call] = follow(script)
    assert stream.endpoint is handshake.endpoint is call.endpoint
    assert stream.endpoint.http_sse
    assert (handshake.outcome, call.outcome, call.error_code) == ("complete", "error", -32603)
    assert call.revision == "2024-11-05"
    assert [x.era for x in (stream, handshake, call)] == ["legacy"] * 3
    assert list(inspector.conversations) == []


def test_comments_before_the_endpoint_event_do_not_count() -> None:
    script = "GET /sse\n  -> sse\n  -> sse-raw : hello\\n\\nretry: 5\\n\\nevent: endpoint\\ndata: /m\\n\\n\n  -> open\n"
    _, [stream] = follow(script)
    assert stream.stream is not None and stream.stream.http_sse


def test_an_endpoint_event_that_is_not_the_first_announces_nothing() -> None:
    script = "GET /sse\n  -> sse\n  -> event hello\n  -> sse-raw event: endpoint\\ndata: /m\\n\\n\n  -> open\n"
    _, [stream] = follow(script)
    assert stream.kind == "other"


def test_the_announced_address_may_name_the_public_origin() -> None:
    script = HTTP_SSE.replace("/messages", "https://public.example/messages")
    script += "legacy initialize\n  path /messages?session_id=1\n  -> 202\n"
    _, [stream, post] = follow(script)
    assert post.session is stream.session is not None


# Judging anew, and letting go


def test_a_dual_server_is_followed_in_both_eras_at_once() -> None:
    script = SESSION + "modern tools/list\n  -> result {}\nlegacy tools/list\n  -> result {}\n"
    _, [handshake, modern, legacy] = follow(script)
    assert [x.era for x in (handshake, modern, legacy)] == ["legacy", "modern", "legacy"]
    assert legacy.revision == "2025-11-25"
    assert handshake.endpoint.era == "dual"


def test_what_was_judged_before_the_era_was_known_is_judged_anew() -> None:
    judge = Judging()
    inspector = Inspector(judge)
    for event in read_script("modern server/discover\n  -> status 400\n  -> error -32600\n" + SESSION):
        changed = inspector.feed(event)
    assert "flow-1" in judge.anew
    assert changed[0].flow == "flow-2"


def test_feed_returns_the_exchanges_that_changed_the_event_s_own_first() -> None:
    inspector = Inspector()
    changed = [
        [x.flow for x in inspector.feed(event)]
        for event in read_script("modern server/discover\n  -> status 400\n  -> error -32600\n" + SESSION)
    ]
    assert changed[0] == ["flow-1"]
    assert changed[-1] == ["flow-2", "flow-1"]


def test_undecided_exchanges_of_an_endpoint_are_kept_up_to_the_limit() -> None:
    script = "modern tools/list\n  -> 503\n" * 5
    inspector, exchanges = follow(script, Limits(undecided=2))
    assert [x.released for x in exchanges] == [True, True, True, False, False]
    assert inspector.dropped == {"undecided exchanges": 3}


def test_what_is_kept_whole_is_bounded_by_number_and_by_bytes() -> None:
    script = "".join(f"modern tools/list\n  path /{n}\n  -> 503\n" for n in range(5))
    inspector, exchanges = follow(script, Limits(held=3))
    assert [x.released for x in exchanges] == [True, True, False, False, False]
    assert inspector.dropped == {"held exchanges": 2}
    inspector, exchanges = follow(script, Limits(held_bytes=800))
    assert exchanges[0].released
    assert not exchanges[-1].released


def test_exchanges_past_the_limit_are_retired() -> None:
    retired: list[str] = []
    inspector = Inspector(limits=Limits(state=2), retire=lambda x: retired.append(x.flow))
    for event in read_script("modern tools/list\n  -> result {}\n" * 4):
        inspector.feed(event)
    assert retired == ["flow-1", "flow-2"]
    inspector.finish()
    assert retired == ["flow-1", "flow-2", "flow-3", "flow-4"]
    assert inspector.dropped == {"exchanges": 2}


def test_endpoints_past_the_limit_are_forgotten_the_unproven_first() -> None:
    script = "modern tools/list\n  path /real\n  -> result {}\n"
    script += "".join(f"GET /{n}\n  -> 200 text/html x\n" for n in range(5))
    inspector, _ = follow(script, Limits(endpoints=3))
    assert len(inspector.endpoints) == 3
    assert "http://server.example:80/real" in inspector.endpoints


def test_a_session_ends_by_delete_and_by_404_and_not_by_an_unknown_method() -> None:
    delete = "DELETE /mcp\n  session session-1-of-the-example\n  -> 200\n"
    _, [handshake, _] = follow(SESSION + delete)
    assert handshake.session is not None and handshake.session.ended_why == "DELETE"
    _, [handshake, _] = follow(SESSION + "legacy tools/list\n  -> 404\n")
    assert handshake.session is not None and handshake.session.ended_why == "404"
    _, [handshake, _] = follow(SESSION + "legacy example/unknown\n  -> status 404\n  -> error -32601\n")
    assert handshake.session is not None and handshake.session.live


def test_bytes_past_the_limit_of_a_stream_are_counted_and_said() -> None:
    inspector, [exchange] = follow(
        'modern tools/list\n  -> sse\n  -> event {"jsonrpc": "2.0", "method": "notifications/message"}\n  -> result {}\n',
        Limits(stream=60),
    )
    assert inspector.dropped["stream bytes"] > 0
    assert exchange.unchecked[0].what == "response body"


def test_an_event_for_an_exchange_that_is_not_known_is_passed_over() -> None:
    inspector = Inspector()
    assert inspector.feed(ResponseStarted("x", 1.0, 200, Fields([]))) == []
    assert inspector.feed(StreamData("x", 1.0, b"data: 1\n\n")) == []
    assert inspector.feed(ExchangeEnded("x", 1.0, b"", False, "complete")) == []


def test_a_request_with_nothing_in_it_is_nothing_special() -> None:
    inspector = Inspector()
    inspector.feed(RequestSeen("x", 1.0, 1.0, "POST", "http", "h", 80, "", Fields([]), None, ""))
    inspector.feed(ExchangeEnded("x", 2.0, None, False, "unknown", "broken"))
    [exchange] = inspector.exchanges.values()
    assert exchange.url == "http://h:80/"
    assert exchange.kind == "other"


def test_messages_after_the_answer_are_received_all_the_same() -> None:
    _, [exchange] = follow("modern tools/list\n  -> sse\n  -> result {}\n  -> notify notifications/message {}\n  -> open\n")
    assert answers(exchange) == ["result", "notification"]
