"""Secrets masked in one spelling, and text from the wire made safe to show."""

import hashlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.secret import concealed, hidden, mask, mask_header, masked, one_line, safe, shown, visible

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
    code = "c0de-7f3a9b21"
    value = {"result": [{"requestState": "s3cret", "n": 1}], "code": -32602, "access_token": {"code": code}, "password": None}
    seen = masked(value)
    assert seen["result"] == [{"requestState": mask("s3cret"), "n": 1}]
    assert (seen["code"], seen["access_token"], seen["password"]) == (-32602, {"code": mask(code)}, None)
    assert hidden("requestState", "s3cret") == mask("s3cret") and hidden("name", "echo") == "echo"


def test_a_name_that_says_too_little_is_a_secrets_only_where_the_value_looks_like_one() -> None:
    call = {"arguments": {"code": "print(1+1) # hello", "key": "name", "token": "9f3c6a0b7d2e4f8a"}}
    assert masked(call) == {"arguments": {"code": "print(1+1) # hello", "key": "name", "token": mask("9f3c6a0b7d2e4f8a")}}


def test_arguments_are_masked_by_more_names_than_members_of_the_protocol() -> None:
    call = {"arguments": {"api_key": "k-1", "dbPassword": "p", "pageToken": "2"}, "progressToken": "p1", "token_endpoint": "/t"}
    assert masked(call) == {
        "arguments": {"api_key": mask("k-1"), "dbPassword": mask("p"), "pageToken": "2"},
        "progressToken": "p1",
        "token_endpoint": "/t",
    }
    assert masked({"dbPassword": "p"}, entered=True) == {"dbPassword": mask("p")}


@pytest.mark.parametrize(
    ("text", "before", "secret", "after"),
    [
        ("Authorization: Bearer TEXTSECRET123456", "Authorization: Bearer ", "TEXTSECRET123456", ""),
        ('{"note": "Bearer c2VjcmV0LXRva2Vu=="}', '{"note": "Bearer ', "c2VjcmV0LXRva2Vu", '=="}'),
        ("login with password=hunter22, then", "login with password=", "hunter22", ", then"),
        ("https://h/p?q=1&api_key=abc#top", "https://h/p?q=1&api_key=", "abc", "#top"),
        ("GET /p?code=9f3c6a0b7d2e4f8a HTTP/1.1", "GET /p?code=", "9f3c6a0b7d2e4f8a", " HTTP/1.1"),
        ("key sk-abcdefghij0123456789!", "key ", "sk-abcdefghij0123456789", "!"),
    ],
)
def test_a_secret_inside_a_text_is_masked_and_the_rest_stays(text: str, before: str, secret: str, after: str) -> None:
    assert concealed(text) == masked([text])[0] == hidden("note", text) == f"{before}{mask(secret)}{after}"
    assert concealed(concealed(text)) == concealed(text)


@pytest.mark.parametrize(
    "text",
    [
        'Bearer resource_metadata="https://h/.well-known/x", scope="a1"',
        "the password was wrong: try again",
        "password=****, Bearer authentication, secret: [hidden]",
        "https://h/p?code=US&state=CA&key=name",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert concealed(text) == text


def test_a_secret_that_is_cut_is_still_one() -> None:
    text = "x" * 90 + " Bearer abcdefghij0123456789abcdefghij"
    assert "abcd" not in shown(text, 105) and "Bearer (sha" in shown(text, 105)


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
        ("\ud800\ufffe", r"\ud800\ufffe"),
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
