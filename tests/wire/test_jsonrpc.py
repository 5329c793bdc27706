"""JSON-RPC read from bytes: nothing is raised, nothing is lost."""

import json
import math
import time
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_wiretap.wire.jsonrpc import ExactFloat, Reading, dumps, id_key, pointer, read, read_text
from mcp_wiretap.wire.secret import hidden


def one(text: str | bytes) -> Any:
    """The only message of a body."""
    reading = read(text.encode() if isinstance(text, str) else text)
    assert reading.kind == "single", reading
    return reading.messages[0]


# What a message is


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', "request"),
        ('{"id": null, "method": "ping"}', "request"),  # malformed, but no notification
        ('{"method": "ping"}', "notification"),
        ('{"id": 1, "result": {}}', "result"),
        ('{"id": 1, "result": null}', "result"),
        ('{"id": 1, "result": {}, "error": {"code": 1}}', "result"),
        ('{"id": 1, "error": {"code": 1}}', "error"),
        ('{"jsonrpc": "2.0", "error": {}}', "error"),
        ('{"jsonrpc": "2.0", "id": 1}', "invalid"),
        ('{"jsonrpc": "2.0", "id": 1, "method": 5}', "invalid"),
    ],
)
def test_a_message_is_told_by_its_members(text: str, kind: str) -> None:
    assert one(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "invalid_token"}',
        '{"error": "invalid_token", "error_description": "x", "jsonrpc": "2.0"}',
        '{"error": {"message": "no code"}}',
        '{"detail": "Not Found"}',
        "{}",
        "[1, 2]",
        '"text"',
        "42",
        "null",
        "true",
    ],
)
def test_json_that_is_no_message_is_called_so(text: str) -> None:
    reading = read(text.encode())
    assert (reading.kind, reading.messages) == ("not-rpc", ())


@pytest.mark.parametrize("text", ["[]", '[{"method": "ping"}]', '[1, {"id": 1, "result": {}}]'])
def test_an_array_with_a_message_in_it_is_a_batch(text: str) -> None:
    reading = read(text.encode())
    assert reading.kind == "batch"
    assert [m.index for m in reading.messages] == list(range(len(json.loads(text))))


def test_the_absence_of_an_id_is_told_from_null() -> None:
    assert one('{"id": null, "method": "m"}').has_id
    assert not one('{"method": "m"}').has_id


def test_meta_and_error_code_are_read_only_where_they_have_the_right_type() -> None:
    assert one('{"method": "m", "params": {"_meta": {"a": 1}}}').meta == {"a": 1}
    assert one('{"result": {"_meta": {"a": 1}}}').meta == {"a": 1}
    for params in ("null", "[]", '{"_meta": []}', '{"_meta": "x"}', "5"):
        assert one(f'{{"method": "m", "params": {params}}}').meta == {}
    for code, value in {
        "-32602": -32602,
        "-32602.0": -32602,
        "true": None,
        '"1"': None,
        "1.5": None,
        "1e400": None,
        "[]": None,
    }.items():
        assert one(f'{{"jsonrpc": "2.0", "error": {{"code": {code}}}}}').error_code == value
    assert one('{"jsonrpc": "2.0", "error": {"code": ' + "9" * 5_000 + "}}").error_code is None


# What is no JSON


@pytest.mark.parametrize(
    ("body", "kind", "offset"),
    [
        (b"", "empty", None),
        (b" \r\n\t", "empty", None),
        (b"<html>", "not-json", 0),
        (b"  <html>", "not-json", 2),
        (b'{"method": "m"} x', "not-json", 16),
        (b'{"a": "\xc3\xbc", x', "not-json", 12),
        (b"\xef\xbb\xbf{x", "not-json", 4),
        (b'{"method": "m"', "not-json", 14),
        (b'{"a": "\n"}', "not-json", 7),
        (b"{'a': 1}", "not-json", 1),
        (b"tru", "not-json", 0),
        (b"-", "not-json", 0),
        (b"\x00{}", "not-json", 0),
        (b'{"a": NaN}', "not-json", None),
        (b"[Infinity]", "not-json", None),
        (b"-Infinity", "not-json", None),
        (b'{"a": 1, "a": 2, "b": NaN}', "not-json", None),
        (b'{"a": "\xff"}', "not-utf8", 7),
        (b"\xef\xbb\xbf\xff", "not-utf8", 3),
        (b'{"a": "\xed\xa0\x80"}', "not-utf8", 7),
        ('{"method": "m"}'.encode("utf-16"), "not-utf8", 0),
    ],
)
def test_what_is_no_json_says_where(body: bytes, kind: str, offset: int | None) -> None:
    reading = read(body)
    assert (reading.kind, reading.offset, reading.size) == (kind, offset, len(body))
    assert reading.problem


def test_a_byte_order_mark_is_noticed_and_read_over() -> None:
    reading = read(b'\xef\xbb\xbf{"method": "m"}')
    assert (reading.kind, reading.bom) == ("single", True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"method": "a", "method": "b"}', ("method",)),
        ('{"method": "a", "params": {"x": 1, "x": 1, "y": 0, "y": 0}}', ("x", "y")),
        ('{"method": "a", "m\\u0065thod": "b"}', ("method",)),
        ('{"method": "a", "params": {"method": 1}}', ()),
        ('{"method": "{\\"a\\": 1, \\"a\\": 1}"}', ()),
    ],
)
def test_duplicate_names_are_noticed_and_the_last_one_counts(text: str, names: tuple[str, ...]) -> None:
    reading = read(text.encode())
    assert reading.duplicates == names
    assert reading.value == json.loads(text)


def test_a_million_duplicates_are_not_all_listed() -> None:
    assert len(read(("[" + '{"a":1,"a":1},' * 100_000 + "1]").encode()).duplicates) <= 20


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r'{"method": "\ud800"}', True),
        (r'{"method": "\uDFFF\ud800"}', True),
        (r'{"method": "m", "params": {"\ud800": [1]}}', True),
        (r'{"method": "m", "params": {"a": ["\udc00"]}}', True),
        (r'{"method": "\ud83d\ude00"}', False),
        (r'{"method": "\\ud800"}', False),
        ('{"method": "\U0001f600"}', False),
    ],
)
def test_lone_surrogates_are_noticed(text: str, found: bool) -> None:
    assert read(text.encode()).surrogates is found


# Numbers


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "-0.0",
        "1",
        "1.0",
        "1e2",
        "1E+2",
        "-1.50",
        "1e400",
        "-1e400",
        "1e-400",
        "9007199254740993",
        "0.1000",
        "9" * 5000,
        "-" + "9" * 4300,
    ],
)
def test_numbers_are_written_back_as_they_were_written(number: str) -> None:
    for text in (number, f"[{number}]", f'{{"id": {number}}}'):
        assert dumps(read(text.encode()).value) == text


def test_integers_of_any_size_are_exact() -> None:
    value = read(b"9" * 5_000).value
    assert value == 10**5_000 - 1
    assert isinstance(value, Decimal)
    assert read(b"9" * 4_300).value == 10**4_300 - 1


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1", '"1"', False),
        ("1", "1.0", True),
        ("1", "1e0", True),
        ("1", "true", False),
        ("0", "false", False),
        ("0", "-0", True),
        ("null", '"null"', False),
        ("1.5", "1.50", True),
        ("9007199254740993", "9007199254740992", False),
        ("9007199254740993", "9007199254740993.0", True),
        ("1e399", "1e400", False),
        ("1e999999999", "1e999999999", True),
        ("1e999999999", "1e999999998", False),
        ("9" * 5_000, "9" * 5_000, True),
        ("9" * 5_000, "9" * 4_999 + "8", False),
        ("[1]", "[1]", True),
        ('{"a": 1}', '"{\\"a\\": 1}"', False),
        ('""', "null", False),
        ('"' + "x" * 5_000 + '"', '"' + "x" * 5_000 + '"', True),
        ('"' + "x" * 5_000 + '"', '"' + "x" * 4_999 + 'y"', False),
    ],
)
def test_ids_are_equal_when_value_and_type_are(left: str, right: str, same: bool) -> None:
    keys = [id_key(read_text(text).value) for text in (left, right)]
    assert (keys[0] == keys[1]) is same
    assert (len(set(keys)) == 1) is same


# Written back


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=4),
    max_leaves=20,
)
NUMBER = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,12})?", fullmatch=True)


@given(JSON, st.sampled_from([None, 2]))
def test_what_is_read_is_written_back(value: Any, indent: int | None) -> None:
    reading = read(json.dumps(value).encode())
    assert json.loads(dumps(reading.value, indent)) == value
    again = read(dumps(reading.value, indent).encode())
    assert dumps(again.value) == dumps(reading.value)


@given(st.lists(NUMBER, max_size=5))
def test_every_number_is_written_back_exactly(numbers: list[str]) -> None:
    text = "[" + ", ".join(numbers) + "]"
    assert dumps(read(text.encode()).value) == text


@given(st.binary() | st.text(st.sampled_from('{}[]":,\\ud8-0123.eE+ntrue \n')).map(str.encode))
@example(b'{"a":1e999999999999999999999}')
@example(b'"\\')
@example(b'"\\u')
def test_no_bytes_make_reading_fail(body: bytes) -> None:
    reading = read(body)
    assert isinstance(reading, Reading)
    dumps(reading.value)
    for message in reading.messages:
        id_key(message.id)
        assert isinstance(message.meta, dict)
        assert message.error_code is None or isinstance(message.error_code, int)
    try:
        valid = json.loads(body.decode(), parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        assert reading.kind in ("not-json", "not-utf8", "empty") or reading.bom
    else:
        assert reading.value == valid


def test_the_head_of_a_value_is_written_alone() -> None:
    assert dumps([1, "abc", {}], most=8) == '[1, "abc'
    assert dumps([[[[[]]]]], most=100) == "[[[[[]]]]]"
    huge = [["x" * 1_000_000] * 5] * 1_000_000
    started = time.process_time()
    assert len(dumps(huge, most=200)) == 200
    assert time.process_time() - started < 0.5


def test_members_can_be_masked_where_they_are_written() -> None:
    text = dumps({"a": [{"access_token": "s3cret"}], "code": -32602}, shown=hidden)
    assert "s3cret" not in text
    assert '"code": -32602' in text


def test_what_only_arithmetic_makes_is_written_too() -> None:
    assert dumps(10**5_000) == "1" + "0" * 5_000
    assert json.loads(dumps({1: object()}))
    assert dumps(math.inf) == "Infinity"


def test_nothing_is_too_deep_to_be_written_or_told() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert "too deep" in dumps(deep)


def test_a_pointer_escapes_what_it_must() -> None:
    assert pointer() == ""
    assert pointer("params", "a/b", "m~n", 3) == "/params/a~1b/m~0n/3"


def test_exact_numbers_survive_copying() -> None:
    import copy
    import pickle

    number = ExactFloat("42.0")
    for made in (copy.deepcopy(number), pickle.loads(pickle.dumps(number)), copy.copy(number)):
        assert (made, made.text) == (42.0, "42.0")


# Bounds


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":[' * 201 + b"]}" * 201,
        b'["\\"' + b"[" * 300 + b'", ' + b"[" * 201,
        b'["\\\\", ' + b"[" * 201,
        b'["\\\\\\"", ' + b"[" * 201,
    ],
)
def test_what_is_nested_too_deep_is_not_parsed(body: bytes) -> None:
    assert read(body).kind == "too-deep"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200 + "]" * 200,
        "[" + "[[]], " * 1_000 + "1]",
        '["' + "[" * 1_000 + '"]',
        r'["\"' + "[" * 1_000 + '"]',
        r'["\\", "' + "[" * 1_000 + '"]',
        r'["\\\"' + "[" * 1_000 + '"]',
        r'["a\n", "' + "[" * 1_000 + r'\u005b"]',
    ],
)
def test_brackets_in_strings_and_side_by_side_are_not_depth(text: str) -> None:
    assert read(text.encode()).kind == "not-rpc"
    assert read(text.encode()).value == json.loads(text)


@given(JSON)
def test_depth_is_measured_as_it_is(value: Any) -> None:
    def depth(item: Any) -> int:
        if isinstance(item, dict):
            return 1 + max(map(depth, item.values()), default=0)
        return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0

    text = json.dumps(value)
    assert read_text(text, max_depth=depth(value)).kind != "too-deep"
    if depth(value):
        assert read_text(text, max_depth=depth(value) - 1).kind == "too-deep"


def test_what_is_too_large_is_not_read() -> None:
    assert read(b"[" + b"1," * 5_000_000 + b"1]").kind == "too-large"
    assert read_text('"' + "x" * 100 + '"', max_bytes=100).kind == "too-large"


EIGHT = 8 << 20


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * (EIGHT // 3 - 10) + b"1]",
        b"[" + b'"",' * (EIGHT // 3 - 10) + b"1]",
        b'"' + b"\\\\" * (EIGHT // 2 - 10) + b'"',
        b'"' + b'\\"' * (EIGHT // 2 - 10) + b'"',
        b'"' + b"\\ud800" * (EIGHT // 6 - 10) + b'"',
        b"9" * (EIGHT - 10),
        b"-0," * (EIGHT // 3 - 10),
        b"1." + b"9" * (EIGHT - 10),
        b"1e" + b"9" * (EIGHT - 10),
        b"[" + b"9" * 4_000_000 + b"," + b"9" * 4_000_000 + b"]",
        b'"' * (EIGHT - 10),
        b" " * (EIGHT - 10),
        b"{" * (EIGHT - 10),
        ("[" + "{" * 100 + "}" * 100).encode() * 40_000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_eight_hostile_megabytes_are_read_in_bounded_time_and_memory(body: bytes) -> None:
    started = time.process_time()
    reading = read(body)
    for message in reading.messages:
        id_key(message.id)
    id_key(reading.value)
    assert time.process_time() - started < 5


def test_reading_takes_memory_in_proportion_to_the_body() -> None:
    body = b'{"method": "m", "params": {"a": "' + b"x" * 4_000_000 + b'"}}'
    tracemalloc.start()
    read(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len(body)
