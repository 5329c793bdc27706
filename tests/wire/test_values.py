"""Which JSON values are numbers, integers and times, and which are equal."""

from decimal import Decimal
from typing import Any

import pytest

from mcp_wiretap.wire import values
from mcp_wiretap.wire.jsonrpc import read_text


def parsed(text: str) -> Any:
    return read_text(text).value


@pytest.mark.parametrize("text", ["0", "-0", "1", "1.0", "1e3", "-7", "9" * 5_000])
def test_whole_numbers_are_integers_however_they_are_written(text: str) -> None:
    assert values.is_integer(parsed(f"[{text}]")[0])


@pytest.mark.parametrize("text", ["1.5", "true", "null", '"1"', "[]", "{}", "1e400"])
def test_other_values_are_no_integers(text: str) -> None:
    assert not values.is_integer(parsed(f"[{text}]")[0])


def test_true_is_no_number() -> None:
    assert not values.is_number(True)
    assert all(map(values.is_number, (1, 1.5, Decimal("-0"))))


def test_seconds_and_zone_of_a_time_may_be_missing() -> None:
    assert all(map(values.is_time, ("2026-08-01T10:00:00Z", "2026-08-01T10:00", "2026-08-01T10:00:00.25+02:00")))
    assert not any(map(values.is_time, ("2026-08-01", "10:00", "yesterday", 1_785_578_400, None)))
    assert values.is_date_or_time("2026-08-01") and values.is_date_or_time("2026-08-01T10:00")


def test_equal_values_meet_whatever_their_order_and_spelling() -> None:
    one = parsed('{"a": 1, "b": [2.0, {"c": 3e0}]}')
    other = parsed('{"b": [2, {"c": 3.0}], "a": 1.0}')
    assert values.canonical(one) == values.canonical(other)
    assert values.digest(one) == values.digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("1", '"1"'),
        ("0", "false"),
        ("[1, 2]", "[2, 1]"),
        ('["a 1.0, b"]', '["a 1, b"]'),
        ("1.5", "1"),
        ("null", '""'),
    ],
)
def test_different_values_stay_apart(one: str, other: str) -> None:
    assert values.digest(parsed(f"[{one}]")) != values.digest(parsed(f"[{other}]"))


def test_lone_surrogates_are_written_too() -> None:
    assert values.digest(parsed('["\\ud800"]')) != values.digest(parsed('["\\ud801"]'))
    assert values.digest_of_text("\ud800") != values.digest_of_text("\ud801")


def test_a_small_value_is_kept_as_it_is() -> None:
    value = {"tools": {"listChanged": True}, "n": [1, 2.5, None]}
    assert values.bounded(value) is value


@pytest.mark.parametrize(
    "value",
    [{"a": "x" * 10**6}, {str(i): i for i in range(10**5)}, ["y"] * 10**6, {"x" * 10**6: 1}, [10**4_000] * 1_000, "z" * 10**6],
    ids=["a text", "members", "items", "a name", "numbers", "nothing but a text"],
)
def test_a_huge_value_is_cut(value: Any) -> None:
    kept = values.bounded(value)
    assert type(kept) is type(value)
    assert 500 < len(values.canonical(kept)) < 200_000
    assert values.bounded(value) == kept


def test_long_strings_are_cut_before_members_are_left_out() -> None:
    kept = values.bounded({"description": "x" * 10**6, "tools": {}, "logging": {}})
    assert list(kept) == ["description", "tools", "logging"]


def test_short_keys_of_different_names_differ() -> None:
    assert values.short_key("confirm") == "confirm"
    one, other = values.short_key("x" * 10**6), values.short_key("x" * 10**6 + "y")
    assert one != other and max(len(one), len(other)) < 200
