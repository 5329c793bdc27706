"""Which differences between two answers are told."""

import pytest

from mcp_wiretap.replay.json_diff import differences


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1.0}),
        ({"requestState": "x", "nextCursor": "c"}, {"requestState": "y", "nextCursor": "d"}),
        ({"text": "task 4c0720ef-9af5-4733-892b-1f3d789ad8e3"}, {"text": "task 8ac957c6-e543-4d54-b316-199bbf04dbb3"}),
        ({"text": "at 2026-11-30T13:13:09.154Z"}, {"text": "at 2027-01-01T00:00:00Z"}),
        ({"serverInfo": {"name": "s", "version": "1"}}, {"serverInfo": {"name": "s", "version": "2"}}),
    ],
)
def test_what_may_differ_is_no_difference(was, now):
    assert differences(was, now) == []


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["/a/b: was 1, now 2"]),
        ({"a": 1}, {"a": "1"}, ['/a: was 1, now "1"']),
        ({"a": True}, {"a": 1}, ["/a: was true, now 1"]),
        ({"a": None}, {}, ["/a: gone, was null"]),
        ({}, {"a/b": 1}, ["/a~1b: new, 1"]),
        ([1, 2, 3], [1, 3], ["/1: was 2, now 3", "/2: gone, was 3"]),
        ({"nextCursor": "c"}, {}, ['/nextCursor: gone, was "c"']),
        ({"serverInfo": {"name": "s"}}, {"serverInfo": {"name": "t"}}, ['/serverInfo/name: was "s", now "t"']),
        ({"tools": [{"name": "a"}, {"name": "b"}]}, {"tools": [{"name": "b"}]}, ['/tools/a: gone, was {"name": "a"}']),
        (
            {"tools": [{"name": "b", "x": 1}]},
            {"tools": [{"name": "a"}, {"name": "b", "x": 2}]},
            ["/tools/b/x: was 1, now 2", '/tools/a: new, {"name": "a"}'],
        ),
        (
            {"tools": [{"name": "a"}, {"name": "b"}]},
            {"tools": [{"name": "b"}, {"name": "a"}]},
            ["/tools: was in the order a, b, now in another order"],
        ),
    ],
)
def test_a_difference_says_where_and_what(was, now, told):
    assert [str(difference) for difference in differences(was, now)] == told


def test_secrets_are_masked():
    (difference,) = differences({"x": {"requestState": "very secret"}}, {"x": 1})
    assert "very secret" not in str(difference)


def test_huge_and_deep_values_are_bounded():
    deep_was: object = 1
    deep_now: object = 2
    for _ in range(5_000):
        deep_was, deep_now = [deep_was], [deep_now]
    assert differences(deep_was, deep_now) == []
    assert len(differences(list(range(10_000)), list(range(1, 10_001)))) == 50
