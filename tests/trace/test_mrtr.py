"""Which retry continues which input_required answer: interleaved, forked, replayed, restarted, broken."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.operations.rounds import core_of
from mcp_wiretap.wire.jsonrpc import read_text
from tests.rules.running import Ran, run

ASK = '{"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}'
YES = '{"action": "accept", "content": {}}'


def needs(state: str | None = None, *keys: str) -> str:
    members = ['"resultType": "input_required"']
    if state is not None:
        members.append(f'"requestState": "{state}"')
    if keys:
        members.append('"inputRequests": {' + ", ".join(f'"{k}": {ASK}' for k in keys) + "}")
    return "  -> result {" + ", ".join(members) + "}"


def call(state: str | None = None, *keys: str, name: str = "deploy", arguments: str = "{}", more: str = "") -> str:
    members = [f'"name": "{name}"', f'"arguments": {arguments}']
    if state is not None:
        members.append(f'"requestState": "{state}"')
    if keys:
        members.append('"inputResponses": {' + ", ".join(f'"{k}": {YES}' for k in keys) + "}")
    return f'modern tools/call {{{", ".join(members)}}}\n  capabilities {{"elicitation": {{}}}}{more}'


DONE = '  -> result {"content": []}'


def trace(*lines: str, limits: Limits | None = None) -> Ran:
    return run("\n".join(lines) + "\n", select=["ERA001"], limits=limits)


def groups(ran: Ran) -> list[list[int]]:
    """The conversations as lists of exchange numbers, from 1."""
    number = {e.flow: i for i, e in enumerate(ran.exchanges, 1)}
    return [[number[flow] for flow in c.rounds] for c in ran.inspector.conversations]


def links(ran: Ran) -> list[tuple[str, str]]:
    return [(link.by, link.confidence) for c in ran.inspector.conversations for link in c.links]


def test_rounds_are_linked_by_the_state_that_is_echoed() -> None:
    ran = trace(call(), needs("state-0001", "a"), call("state-0001", "a"), DONE)
    assert groups(ran) == [[1, 2]]
    assert links(ran) == [("requestState", "exact")]
    conversation = next(iter(ran.inspector.conversations))
    assert conversation.status == "complete"
    assert 900 < conversation.client_ms < 1100


def test_rounds_without_state_are_linked_by_the_keys_that_are_answered() -> None:
    ran = trace(call(), needs(None, "a"), call(None, "a"), DONE)
    assert groups(ran) == [[1, 2]]
    assert links(ran) == [("inputResponses", "likely")]


def test_a_chain_goes_on_while_the_state_rotates() -> None:
    ran = trace(
        call(), needs("state-0001", "a"), call("state-0001", "a"), needs("state-0002", "b"), call("state-0002", "b"), DONE
    )
    assert groups(ran) == [[1, 2, 3]]


def test_a_round_with_nothing_but_state_is_a_round() -> None:
    ran = trace(call(), needs("state-0001"), call("state-0001"), DONE)
    assert groups(ran) == [[1, 2]]


def test_an_empty_state_is_a_state() -> None:
    ran = trace(call(), needs(""), call(""), DONE)
    assert groups(ran) == [[1, 2]]
    assert links(ran) == [("requestState", "likely")]


def test_a_constant_state_does_not_merge_calls_with_other_arguments() -> None:
    ran = trace(
        call(arguments='{"n": 1}'),
        needs("s", "a"),
        call(arguments='{"n": 2}'),
        needs("s", "a"),
        call("s", "a", arguments='{"n": 1}'),
        DONE,
        call("s", "a", arguments='{"n": 2}'),
        DONE,
    )
    assert groups(ran) == [[1, 3], [2, 4]]


def test_the_same_call_twice_at_once_is_told_apart_by_its_states() -> None:
    ran = trace(
        call(),
        needs("state-0001", "a"),
        call(),
        needs("state-0002", "a"),
        call("state-0001", "a"),
        DONE,
        call("state-0002", "a"),
        DONE,
    )
    assert groups(ran) == [[1, 3], [2, 4]]
    assert links(ran) == [("requestState", "exact")] * 2


def test_the_same_call_twice_at_once_without_states_is_only_likely() -> None:
    ran = trace(call(), needs(None, "a"), call(), needs(None, "a"), call(None, "a"), DONE, call(None, "a"), DONE)
    assert sorted(len(g) for g in groups(ran)) == [2, 2]
    assert links(ran) == [("inputResponses", "likely")] * 2


def test_argument_order_and_spelling_of_numbers_do_not_matter() -> None:
    one = read_text('{"name": "x", "arguments": {"a": 1, "b": [1.0, 2]}, "_meta": {"progressToken": 1}}').value
    two = read_text('{"arguments": {"b": [1, 2.0], "a": 1.0}, "name": "x", "requestState": "s"}').value
    other = read_text('{"arguments": {"b": [1, 2.5], "a": 1}, "name": "x"}').value
    assert core_of(one) == core_of(two) != core_of(other)


def test_another_client_or_authorization_does_not_continue_by_keys() -> None:
    ran = trace(call(), needs(None, "a"), call(None, "a", more="\n  client other"), DONE)
    assert groups(ran) == []


def test_a_state_under_another_authorization_is_linked_but_proves_nothing() -> None:
    ran = trace(call(), needs("state-0001", "a"), call("state-0001", "a", more="\n  client other"), DONE)
    assert groups(ran) == [[1, 2]]
    assert links(ran) == [("requestState", "likely")]


def test_a_broken_retry_leaves_the_round_open() -> None:
    ran = trace(
        call(), needs("state-0001", "a"), call("state-0001", "a"), "  -> sse", "  -> closed server", call("state-0001", "a"), DONE
    )
    assert groups(ran) == [[1, 2, 3]]
    assert next(iter(ran.inspector.conversations)).status == "complete"


def test_a_retry_refused_for_its_headers_leaves_the_round_open() -> None:
    ran = trace(call(), needs(None, "a"), call(None, "a"), "  -> error -32020", call(None, "a"), DONE)
    assert groups(ran) == [[1, 2, 3]]


def test_a_retry_refused_with_401_leaves_the_round_open() -> None:
    ran = trace(call(), needs(None, "a"), call(None, "a"), "  -> 401", call(None, "a"), DONE)
    assert groups(ran) == [[1, 2, 3]]


def test_a_fresh_start_abandons_what_waited_and_a_late_retry_takes_it_up_again() -> None:
    begun = [
        call(),
        needs("state-0001", "a"),
        call("state-0001", "a"),
        needs("state-0002", "b"),
        call(),
        needs("state-0003", "a"),
    ]
    ran = trace(*begun)
    assert [c.status for c in ran.inspector.conversations] == ["abandoned"]
    ran = trace(*begun, call("state-0002", "b"), DONE)
    assert groups(ran) == [[1, 2, 4]]
    assert [c.status for c in ran.inspector.conversations] == ["complete"]


def test_silence_is_no_abandonment() -> None:
    ran = trace(call(), needs("state-0001", "a"), call("state-0001", "a"), needs("state-0002", "b"))
    assert [c.status for c in ran.inspector.conversations] == ["awaiting-input"]


def test_branches_keep_their_own_chain() -> None:
    ran = trace(
        call(),
        needs("state-0001", "a"),
        call("state-0001", "a"),
        needs("state-000x", "b"),
        call("state-0001", "a"),
        needs("state-000y", "b"),
        call("state-000x", "b"),
        DONE,
    )
    conversation = next(iter(ran.inspector.conversations))
    number = {e.flow: i for i, e in enumerate(ran.exchanges, 1)}
    assert [(number[link.earlier], number[link.later]) for link in conversation.links] == [(1, 2), (1, 3), (2, 4)]


def test_states_of_other_methods_and_tools_do_not_link() -> None:
    ran = trace(call(), needs("state-0001", "a"), call("state-0001", "a", name="destroy"), DONE)
    assert groups(ran) == []


def test_tasks_update_is_never_a_round() -> None:
    ran = trace(
        call(), needs("state-0001", "a"), 'modern tasks/update {"taskId": "t", "requestState": "state-0001"}', "  -> result {}"
    )
    assert groups(ran) == []


def test_what_is_remembered_is_bounded() -> None:
    lines = []
    for number in range(60):
        lines += [call(arguments=f'{{"n": {number}}}'), needs(f"state-{number:04}", "a")]
    ran = trace(*lines, call("state-0001", "a", arguments='{"n": 1}'), DONE, limits=Limits(state=20))
    assert groups(ran) == []
    assert ran.inspector.dropped["input_required answers"] == 40


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_interleaved_operations_are_told_apart(operations: int, rounds: int, states: bool, same_tool: bool, seed: int) -> None:
    """Whatever the order: each operation is one conversation of its own rounds, in order."""
    source = random.Random(seed)
    left = dict.fromkeys(range(operations), 0)
    lines, owner = [], []
    while left:
        op = source.choice(sorted(left))
        number = left[op]
        arguments = f'{{"op": {op}}}'
        name = "deploy" if same_tool else f"tool{op}"
        echoed = (f"op-{op}-round-{number}" if states else None) if number else None
        lines.append(call(echoed, *([f"key{number}"] if number else []), name=name, arguments=arguments))
        owner.append(op)
        if number == rounds:
            lines.append(DONE)
            del left[op]
        else:
            lines.append(needs(f"op-{op}-round-{number + 1}" if states else None, f"key{number + 1}"))
            left[op] += 1
    expected = sorted([i for i, o in enumerate(owner, 1) if o == op] for op in range(operations))
    assert sorted(groups(trace(*lines))) == expected


def test_facts_are_gone_with_the_bodies() -> None:
    ran = trace(call(), needs("state-0001", "a"), call("state-0001", "a"), DONE)
    assert all(exchange.mrtr is None for exchange in ran.exchanges)
