"""Lines of a stdio conversation made into exchanges: what belongs to whom, and what belongs to nobody."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.stdio.lines import CANCELLED, NOT_KEPT, OUTPUT_ENDED, Lines, Step

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Pipe:
    """A session written down: each call is a line, `told` what became of it."""

    def __init__(self) -> None:
        self.lines = Lines()
        self.steps: list[Step] = []
        self.now = 0.0

    def client(self, value: Any) -> list[Step]:
        return self._take(self.lines.client(_line(value), self._at()))

    def server(self, value: Any, **more: Any) -> list[Step]:
        return self._take(self.lines.server(_line(value), self._at(), **more))

    def over(self) -> list[Step]:
        return self._take(self.lines.over(self._at()))

    def _at(self) -> float:
        self.now += 1.0
        return self.now

    def _take(self, steps: Any) -> list[Step]:
        new = list(steps)
        self.steps += new
        return new


def _line(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def told(steps: list[Step]) -> list[tuple[str, int]]:
    return [(step.what, step.key) for step in steps]


def request(id_: Any, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def result(id_: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": {}}


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def test_an_answer_is_the_response_of_its_request_whatever_came_between() -> None:
    pipe = Pipe()
    pipe.client(request(1))
    pipe.client(request(2))
    assert told(pipe.server(result(2))) == [("head", 2), ("end", 2)]
    steps = pipe.server(result(1))
    assert told(steps) == [("head", 1), ("end", 1)]
    assert json.loads(steps[-1].data) == result(1)


def test_a_notification_is_accepted_at_once() -> None:
    steps = Pipe().client(notification("notifications/initialized"))
    assert told(steps) == [("open", 1), ("head", 1), ("end", 1)]
    assert steps[1].status == 202


def test_progress_makes_a_stream_of_the_request_that_has_its_token_and_the_answer_ends_it() -> None:
    pipe = Pipe()
    pipe.client(request(1, _meta={"progressToken": "p"}))
    pipe.client(request(2, _meta={"progressToken": 7}))
    steps = pipe.server(notification("notifications/progress", progressToken=7, progress=1))
    assert told(steps) == [("head", 2), ("event", 2)]
    assert steps[0].sse
    assert told(pipe.server(result(2))) == [("event", 2), ("end", 2)]
    assert told(pipe.server(result(1))) == [("head", 1), ("end", 1)]


def test_what_names_no_request_belongs_to_none_of_them() -> None:
    pipe = Pipe()
    pipe.client(request(1))
    steps = pipe.server(notification("notifications/message", level="info", data="x"))
    assert [(step.what, step.http_method) for step in steps if step.what == "open"] == [("open", "GET")]
    assert told(pipe.server(notification("notifications/progress", progressToken="unknown", progress=1))) == [("event", 2)]
    assert told(pipe.server(notification("notifications/tools/list_changed"))) == [("event", 2)]


def test_a_log_message_goes_to_the_only_request_that_asked_for_logs() -> None:
    pipe = Pipe()
    pipe.client(request(1, _meta={"io.modelcontextprotocol/logLevel": "info"}))
    pipe.client(request(2))
    assert told(pipe.server(notification("notifications/message", level="info"))) == [("head", 1), ("event", 1)]
    pipe.client(request(3, _meta={"io.modelcontextprotocol/logLevel": "info"}))
    assert pipe.server(notification("notifications/message", level="info"))[0].http_method == "GET"


def test_a_message_with_a_subscription_id_belongs_to_that_listen() -> None:
    pipe = Pipe()
    pipe.client(request(1, "subscriptions/listen"))
    pipe.client(request(2, "subscriptions/listen"))
    message = notification("notifications/tools/list_changed", _meta={SUBSCRIPTION: 2})
    assert told(pipe.server(message)) == [("head", 2), ("event", 2)]
    assert told(pipe.server(notification("notifications/cancelled", requestId=1))) == [("head", 1), ("event", 1)]


def test_a_question_of_a_legacy_server_is_about_the_one_call_that_is_open() -> None:
    pipe = Pipe()
    pipe.client(request(1, "subscriptions/listen"))
    pipe.client(request(2))
    assert told(pipe.server(request(9, "elicitation/create"))) == [("head", 2), ("event", 2)]
    pipe.client(request(3))
    assert pipe.server(request(10, "elicitation/create"))[0].http_method == "GET"


def test_ids_keep_their_type_but_an_answer_that_can_mean_one_request_only_is_its() -> None:
    pipe = Pipe()
    pipe.client(request(1))
    pipe.client(request("1"))
    assert told(pipe.server(result("1"))) == [("head", 2), ("end", 2)]
    assert told(pipe.server(result("1"))) == [("head", 1), ("end", 1)]


def test_an_error_without_id_answers_the_line_that_could_not_be_read() -> None:
    pipe = Pipe()
    assert told(pipe.client(b"hello")) == [("open", 1)]
    pipe.client(request(1))
    steps = pipe.server({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
    assert told(steps) == [("head", 1), ("end", 1)]


def test_a_line_that_could_not_be_read_is_closed_once_the_server_is_past_it() -> None:
    pipe = Pipe()
    pipe.client(b"hello")
    pipe.client(request(1))
    steps = pipe.server(result(1))
    assert told(steps) == [("head", 1), ("end", 1), ("head", 2), ("end", 2)]
    assert steps[0].status == 202


def test_a_batch_is_answered_by_a_batch_or_one_by_one() -> None:
    pipe = Pipe()
    pipe.client([request(1), request(2), notification("x")])
    assert told(pipe.server([result(2), result(1)])) == [("head", 1), ("end", 1)]
    pipe.client([request(3), request(4)])
    assert told(pipe.server(result(4))) == [("head", 2), ("event", 2)]
    assert told(pipe.server(result(3))) == [("event", 2), ("end", 2)]


def test_the_end_of_the_output_ends_what_is_open_and_says_why() -> None:
    pipe = Pipe()
    pipe.client(request(1))
    pipe.client(request(2))
    pipe.client(notification("notifications/cancelled", requestId=2))
    pipe.server(b"hello")
    steps = pipe.over()
    assert [(s.what, s.key, s.why) for s in steps] == [("lost", 1, OUTPUT_ENDED), ("lost", 2, CANCELLED), ("end", 4, "")]


def test_a_gap_ends_what_may_have_been_answered_in_it() -> None:
    pipe = Pipe()
    pipe.client(request(1))
    assert [(s.what, s.why) for s in pipe.lines.gap(9.0)] == [("lost", NOT_KEPT)]
    assert pipe.server(result(1))[0].http_method == "GET"


def test_carriage_returns_do_not_break_an_event() -> None:
    steps = Pipe().server(b'{"a":\r1}\r')
    assert steps[-1].data == b'data: {"a":\ndata: 1}\n\n'


@pytest.mark.parametrize(
    "line", [b"", b"null", b"[]", b"[1]", b'{"id": 1}', b'{"id": {}, "method": "x"}', b"[" * 100_000, b"\xff"]
)
def test_any_line_of_either_side_makes_exchanges_that_end(line: bytes) -> None:
    pipe = Pipe()
    pipe.client(line)
    pipe.server(line)
    pipe.over()
    ends = {step.key for step in pipe.steps if step.what in ("end", "lost")}
    assert ends == {step.key for step in pipe.steps if step.what == "open"}


MESSAGES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["tools/call", "notifications/progress", "notifications/cancelled", "p"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "method", "params", "_meta", "result", "progressToken", "requestId"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.booleans(), MESSAGES), max_size=30))
def test_steps_of_an_exchange_come_in_order_and_each_ends_once(lines: list[tuple[bool, Any]]) -> None:
    pipe = Pipe()
    for of_client, value in lines:
        (pipe.client if of_client else pipe.server)(value)
    pipe.over()
    state: dict[int, str] = {}
    follows = {"": {"open"}, "open": {"head", "lost"}, "head": {"event", "end", "lost"}, "event": {"event", "end", "lost"}}
    for step in pipe.steps:
        assert step.what in follows[state.get(step.key, "")]
        state[step.key] = step.what
    assert set(state.values()) <= {"end", "lost"}
