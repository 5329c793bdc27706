"""Secrets masked in one spelling, and text from the wire made safe to show."""

import hashlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.secret import hidden, mask, mask_header, masked, one_line, safe, visible

ANY = st.text(st.characters())


def test_a_masked_secret_shows_its_length_and_whether_it_equals_another() -> None:
    digest = hashlib.sha256(b"s3cret").hexdigest()[:8]
    assert mask("s3cret") == f"(sha {digest}, 6 chars)"
    assert mask("s3cret") != mask("s3cret2")


def test_what_is_masked_stays_as_it_is() -> None:
    assert mask(mask("a")) == mask("a")
    assert mask("(sha 12345678, 3 chars) and more").startswith("(sha")
    assert "and more" not in mask("(sha 12345678, 3 chars) and more")


@given(ANY)
def test_any_text_can_be_masked(text: str) -> None:
    assert mask(text).isascii()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer s3cret", f"Bearer {mask('s3cret')}"),
        ("authorization", "s3cret", mask("s3cret")),
        ("Proxy-Authorization", "Basic s3cret x", f"Basic {mask('s3cret x')}"),
        ("Authorization", "s3-cr.et x", mask("s3-cr.et x")),
        ("Cookie", "a=b; c=d", mask("a=b; c=d")),
        ("Mcp-Session-Id", "s1", mask("s1")),
        ("Mcp-Name", "get_weather", "get_weather"),
    ],
)
def test_secret_headers_are_masked(name: str, value: str, shown: str) -> None:
    assert mask_header(name, value) == shown


def test_secret_members_are_masked_at_any_depth() -> None:
    value = {"result": [{"requestState": "s3cret", "n": 1}], "code": -32602, "access_token": {"code": "c0de"}, "password": None}
    shown = masked(value)
    assert shown["result"] == [{"requestState": mask("s3cret"), "n": 1}]
    assert (shown["code"], shown["access_token"], shown["password"]) == (-32602, {"code": mask("c0de")}, None)
    assert hidden("requestState", "s3cret") == mask("s3cret") and hidden("name", "echo") == "echo"


def test_nothing_is_too_deep_to_be_masked() -> None:
    deep: object = "s3cret"
    for _ in range(100_000):
        deep = [deep]
    assert "s3cret" not in str(masked(deep))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, z\u00fcrich, \U0001f600", "plain text, z\u00fcrich, \U0001f600"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x1b[31m\x00\x7f\x9b", r"\x1b[31m\x00\x7f\x9b"),
        ("a\u202eb\u200bc\u2066\ufeff", r"a\u202eb\u200bc\u2066\ufeff"),
        ("\U000e0041\U000e0100", r"\U000e0041\U000e0100"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_hides_or_reorders_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(ANY, st.integers(1, 50))
def test_one_line_is_one_short_printable_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.splitlines() in ([], [line])
    line.encode()
    assert visible(line) == line


def test_what_was_cut_ends_with_an_ellipsis() -> None:
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde\u2026"
    assert one_line("abcde\n", 6) == "abcde\u2026"


def test_a_huge_text_costs_no_more_than_its_line() -> None:
    text = "\u202e" * 50_000_000
    started = time.process_time()
    for _ in range(100):
        one_line(text, 200)
    assert time.process_time() - started < 0.5


@given(ANY)
def test_safe_text_can_be_stored(text: str) -> None:
    safe(text).encode()
    if text.isascii():
        assert safe(text) == text
