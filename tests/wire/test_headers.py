"""Header look-ups and the codec of mirrored values: what is a sentinel, what needs one, whether a value agrees."""

import base64
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.headers import (
    Fields,
    compare_boolean,
    compare_exact,
    compare_integer,
    compare_text,
    decode,
    encode,
    first_unsafe,
    invalid_octets,
    is_sentinel,
    needs_encoding,
    trim_ows,
)

PLAIN = st.text(st.characters(codec="utf-8"))
ANY = st.text(st.characters())  # lone surrogates too


def sentinel(text: str | bytes) -> str:
    return "=?base64?" + base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode() + "?="


# Fields


def test_names_are_looked_up_without_regard_to_case() -> None:
    fields = Fields([(b"MCP-METHOD", b"a"), (b"mcp-method", b"b"), (b"Other", b"c")])
    assert fields.all("Mcp-Method") == ["a", "b"]
    assert fields.first("mcp-method") == "a"
    assert fields.has("OTHER") and not fields.has("absent")
    assert fields.first("absent") is None and fields.all("absent") == []


def test_fields_keep_their_order_their_case_and_their_bytes() -> None:
    raw = [(b"B", b"\xff\x00"), (b"a", b""), (b"B", b"2")]
    fields = Fields(raw)
    assert fields.raw == tuple(raw) and len(fields) == 3
    assert list(fields) == [("B", "\xff\x00"), ("a", ""), ("B", "2")]
    assert fields.all_bytes("b") == [b"\xff\x00", b"2"]


def test_the_lines_of_a_list_are_one_list() -> None:
    fields = Fields([(b"Content-Encoding", b"gzip"), (b"content-encoding", b"br")])
    assert fields.joined("Content-Encoding") == "gzip, br"
    assert fields.joined("absent") is None


def test_a_name_is_spelled_as_its_first_line_spells_it() -> None:
    fields = Fields([(b"MCP-Param-X", b"1"), (b"mcp-param-x", b"2")])
    assert fields.as_sent("mcp-Param-x") == "MCP-Param-X"


def test_names_can_be_listed_by_their_beginning() -> None:
    fields = Fields([(b"Mcp-Param-Region", b"eu"), (b"MCP-PARAM-X", b"1"), (b"Mcp-Name", b"n")])
    assert fields.names_starting("Mcp-Param-") == ["mcp-param-region", "mcp-param-x"]


def test_many_names_do_not_fill_the_memory() -> None:
    from mcp_wiretap.wire import headers

    for number in range(5_000):
        Fields([(b"x-%d" % number, b""), (b"y" * 100 + b"%d" % number, b"")]).has("a")
    assert len(headers._names) <= headers._MOST_NAMES
    assert all(len(name) <= headers._LONGEST_NAME for name in headers._names)


@given(st.lists(st.tuples(st.binary(), st.binary()), max_size=8))
def test_any_bytes_are_fields(raw: list[tuple[bytes, bytes]]) -> None:
    fields = Fields(raw)
    for name, value in raw:
        assert value in fields.all_bytes(name.decode("latin-1"))


# What is a sentinel


@pytest.mark.parametrize("value", ["=?base64?SGk=?=", "=?base64??=", "=?base64?!?=", "=?base64?=?="])
def test_a_sentinel_has_the_marker_and_eleven_characters(value: str) -> None:
    assert is_sentinel(value)


@pytest.mark.parametrize(
    "value", ["=?base64?=", "=?BASE64?SGk=?=", "=?base64?SGk=", "base64?SGk=?=", "=?base64?SGk=?=x", "", "=?="]
)
def test_anything_else_is_a_literal(value: str) -> None:
    assert not is_sentinel(value)
    assert decode(value).text == value


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ("SGk", "wrong padding"),
        ("SGk==", "wrong padding"),
        ("=SGk", "wrong padding"),
        ("====", "wrong padding"),
        ("=", "wrong padding"),
        ("SGk=SGk=", "wrong padding"),
        ("a-_b", "not the standard Base64 alphabet"),
        ("SGk\u00e9", "not the standard Base64 alphabet"),
        ("SG k", "whitespace in the payload"),
        ("SGk=\n", "whitespace in the payload"),
        ("/w==", "not UTF-8"),
        ("7aCA", "not UTF-8"),  # a surrogate as UTF-8
    ],
)
def test_a_sentinel_that_does_not_decode_says_why(payload: str, problem: str) -> None:
    decoded = decode(f"=?base64?{payload}?=")
    assert (decoded.text, decoded.sentinel, decoded.problem) == (None, True, problem)


def test_spare_bits_are_noticed_and_do_no_harm() -> None:
    assert decode("=?base64?SGl=?=") == decode("=?base64?SGl=?=")
    decoded = decode("=?base64?SGl=?=")
    assert (decoded.text, decoded.spare_bits) == ("Hi", True)
    assert not decode("=?base64?SGk=?=").spare_bits


def test_only_space_and_tab_are_trimmed() -> None:
    assert trim_ows(" \t\u00a0x\u00a0\t ") == "\u00a0x\u00a0"
    assert decode(" \t=?base64?SGk=?= ").text == "Hi"


# What needs one


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b", None),
        ("a\tb", None),
        ("", None),
        ("~!=?base64?", None),
        (" a", (0, " ")),
        ("a\t", (1, "\t")),
        (" ", (0, " ")),
        ("a\nb", (1, "\n")),
        ("\x7f", (0, "\x7f")),
        ("z\u00fc", (1, "\u00fc")),
        ("\ud800", (0, "\ud800")),
        (" \u00fc", (1, "\u00fc")),
    ],
)
def test_what_cannot_travel_raw_is_found_with_its_place(text: str, found: tuple[int, str] | None) -> None:
    assert first_unsafe(text) == found
    assert needs_encoding(text) == (found is not None)


def test_what_looks_like_a_sentinel_needs_one() -> None:
    assert encode("=?base64?SGk=?=") == sentinel("=?base64?SGk=?=")
    assert encode("=?base64?=") == "=?base64?="
    assert encode("=?BASE64?SGk=?=") == "=?BASE64?SGk=?="


@given(PLAIN)
def test_what_is_encoded_decodes_to_itself(text: str) -> None:
    value = encode(text)
    assert first_unsafe(value) is None
    assert decode(value).text == text
    assert compare_text([f" {value}\t"], text).verdict == "match"


@given(ANY)
def test_lone_surrogates_are_encoded_as_they_stand_and_are_not_utf8(text: str) -> None:
    value = encode(text)
    decoded = decode(value)
    if decoded.text is None:
        assert decoded.problem == "not UTF-8"
        payload = base64.b64decode(value.removeprefix("=?base64?").removesuffix("?="))
        assert payload.decode("utf-8", "surrogatepass") == text
    else:
        assert decoded.text == text


@given(ANY, ANY)
def test_any_two_texts_can_be_compared(value: str, body: str) -> None:
    found = compare_text([value], body)
    assert found.raw == value
    if found.verdict == "match":
        assert decode(value).text == body
    compare_exact([value], body)
    compare_integer([value], 7)


# Whether a value agrees


def test_no_header_is_missing_and_says_what_is_expected() -> None:
    assert compare_text([], "\u00fc").verdict == "missing"
    assert compare_text([], "\u00fc").expected == sentinel("\u00fc")
    assert compare_exact([], "tools/call").verdict == "missing"
    assert compare_boolean([], True).expected == "true"
    assert compare_integer([], 42).expected == "42"


@pytest.mark.parametrize(
    ("values", "body", "verdict"),
    [
        (["eu"], "eu", "match"),
        ([" eu\t"], "eu", "match"),
        (["us"], "eu", "mismatch"),
        (["EU"], "eu", "mismatch"),
        ([""], "", "match"),
        ([""], "eu", "mismatch"),
        (["e\u0301"], "\u00e9", "mismatch"),  # no normalisation
        (["a b"], "a b", "match"),
        ([sentinel("z\u00fc")], "z\u00fc", "match"),
        ([sentinel("zu")], "z\u00fc", "mismatch"),
        ([sentinel("eu")], "eu", "needless-encoding"),
        ([sentinel("")], "", "match"),  # A10: either way
        ([sentinel("a\tb")], "a\tb", "match"),  # A6: either way
        (["a\tb"], "a\tb", "match"),
        (["=?base64?="], "=?base64?=", "match"),  # A7: either way
        ([sentinel("=?base64?=")], "=?base64?=", "match"),
        (["=?base64?SG k?="], "eu", "undecodable"),
        (["\u00fc"], "\u00fc", "should-be-encoded"),  # Latin-1
        (["\u00c3\u00bc"], "\u00fc", "should-be-encoded"),  # UTF-8, read as Latin-1
        (["x"], " x ", "should-be-encoded"),  # the edges were lost on the way
        (["x"], "\u00fc", "mismatch"),
        (["=?BASE64?SGk=?="], "Hi", "mismatch"),
    ],
)
def test_a_text_is_compared_code_point_for_code_point(values: list[str], body: str, verdict: str) -> None:
    assert compare_text(values, body).verdict == verdict


def test_what_had_to_be_encoded_is_named() -> None:
    assert compare_text(["z\u00fc"], "z\u00fc").detail == "U+00FC at index 1"


def test_a_body_value_that_looks_like_a_sentinel_is_told_apart_when_it_is_sent_raw() -> None:
    for body in ("=?base64?SGk=?=", "=?base64?!?="):
        found = compare_text([body], body)
        assert (found.verdict, found.lookalike_raw) == ("should-be-encoded", True)
        assert compare_text([sentinel(body)], body).verdict == "match"


@pytest.mark.parametrize(
    ("values", "verdict", "duplicate"),
    [
        (["a", "a"], "duplicate", "equal"),
        (["a", " a "], "duplicate", "equal"),
        (["a", "b"], "mismatch", "different"),
        (["b", "a"], "mismatch", "different"),
        (["b", "b"], "mismatch", "equal"),
    ],
)
def test_each_copy_of_a_header_is_compared(values: list[str], verdict: str, duplicate: str) -> None:
    for found in (compare_text(values, "a"), compare_exact(values, "a")):
        assert (found.verdict, found.duplicate) == (verdict, duplicate)
        if verdict == "mismatch":
            assert found.decoded == "b"


def test_copies_of_numbers_are_compared_as_numbers() -> None:
    assert compare_integer(["42", "42.0"], 42).verdict == "duplicate"
    assert compare_integer(["42", "43"], 42).verdict == "mismatch"
    assert compare_boolean(["true", "false"], True).verdict == "mismatch"


def test_the_version_and_the_method_have_no_sentinel() -> None:
    assert compare_exact([sentinel("tools/call")], "tools/call").verdict == "mismatch"
    assert compare_exact(["tools/Call"], "tools/call").verdict == "mismatch"
    assert compare_exact([" tools/call\t"], "tools/call").verdict == "match"


def test_a_comma_list_is_taken_apart_where_one_value_is_allowed() -> None:
    assert compare_exact(["2026-07-28, 2025-11-25"], "2026-07-28").merged == ("2026-07-28", "2025-11-25")
    assert compare_text(["a, b"], "a, b").verdict == "match"


@pytest.mark.parametrize("value", ["True", "TRUE", "1", "yes", ""])
def test_a_boolean_is_written_in_one_way(value: str) -> None:
    assert compare_boolean([value], True).verdict == "mismatch"
    assert compare_boolean(["true"], True).verdict == "match"
    assert compare_boolean(["false"], False).verdict == "match"


@pytest.mark.parametrize(
    ("value", "body", "verdict", "plain"),
    [
        ("42", 42, "match", True),
        ("-42", -42, "match", True),
        (" 42 ", 42, "match", True),
        ("42.0", 42, "match", False),
        ("42.", 42, "match", False),
        ("042", 42, "match", False),
        ("+42", 42, "match", False),
        ("4.2e1", 42, "match", False),
        ("420e-0000000001", 42, "match", False),
        ("-0", 0, "match", False),
        ("0.0", 0, "match", False),
        ("0e999999", 0, "match", False),
        ("42.5", 42, "mismatch", False),
        ("1e999999", 42, "mismatch", False),
        ("1e-999999", 0, "mismatch", False),
        ("1e99999999", 42, "mismatch", False),
        ("0x2a", 42, "mismatch", False),
        ("4 2", 42, "mismatch", False),
        ("4_2", 42, "mismatch", False),
        ("\u0664\u0662", 42, "mismatch", False),
        ("NaN", 42, "mismatch", False),
        ("Infinity", 42, "mismatch", False),
        ("", 0, "mismatch", False),
        ("9007199254740993", 9007199254740993, "match", True),
        ("9007199254740992", 9007199254740993, "mismatch", True),
        ("9007199254740993.0", 9007199254740993, "match", False),
        ("true", 1, "mismatch", False),
    ],
)
def test_an_integer_is_compared_as_a_number_of_any_size(value: str, body: int, verdict: str, plain: bool) -> None:
    found = compare_integer([value], body)
    assert (found.verdict, found.plain) == (verdict, plain)


def test_an_integer_inside_a_sentinel_is_right_but_odd() -> None:
    found = compare_integer([sentinel("42")], 42)
    assert (found.verdict, found.sentinel, found.plain) == ("needless-encoding", True, True)
    assert compare_integer(["=?base64?4?="], 42).verdict == "undecodable"


@pytest.mark.parametrize("digits", [4_300, 5_000, 60_000])
def test_integers_longer_than_python_converts_are_compared(digits: int) -> None:
    body = Decimal("9" * digits)
    assert compare_integer(["9" * digits], body).verdict == "match"
    assert compare_integer(["9" * digits + ".0"], body).verdict == "match"
    assert compare_integer(["9" * (digits - 1) + "8"], body).verdict == "mismatch"
    assert compare_integer(["(a number of more than 3,900 digits)"], body).verdict == "mismatch"
    assert compare_integer(["9"], Decimal("9" * 2_000_000)).verdict == "mismatch"


@given(st.integers(), st.integers(min_value=0, max_value=40))
def test_every_spelling_of_an_integer_equals_it(number: int, zeros: int) -> None:
    sign = "-" if number < 0 else "+"
    for spelling in (
        str(number),
        f"{number}." + "0" * zeros,
        f"{sign}{'0' * zeros}{abs(number)}",
        f"{number}{'0' * zeros}e-{zeros}",
    ):
        assert compare_integer([spelling], number).verdict == "match"
    assert compare_integer([str(number)], number + 1).verdict == "mismatch"


def test_bytes_that_no_header_value_may_have_are_found() -> None:
    assert invalid_octets(b"a\tb ~") is None
    assert invalid_octets(b"ab\x00") == (2, 0)
    assert invalid_octets(b"\xc3\xbc") == (0, 0xC3)
    assert invalid_octets(b"\x7f") == (0, 0x7F)


@pytest.mark.parametrize(
    "value",
    [
        "a" * 65_536,
        "\u00fc" * 65_536,
        "=?base64?" + "A" * 65_536 + "?=",
        "=?base64?" + "A" * 65_535 + "?=",
        "=?base64?" + "=" * 65_536 + "?=",
        "=?base64?" + " " * 65_536 + "?=",
        "0" * 65_536,
        "1e" + "0" * 65_536,
        "1" + " " * 65_536 + "1",
        "," * 65_536,
    ],
)
def test_a_header_of_64_kilobytes_takes_no_time(value: str) -> None:
    started = time.process_time()
    for body in (value, value[:-1], "short"):
        compare_text([value, value], body)
        compare_exact([value], body)
        compare_integer([value], 42)
    assert time.process_time() - started < 1
