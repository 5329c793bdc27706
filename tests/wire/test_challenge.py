"""WWW-Authenticate: what servers send, and what they should not."""

from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.challenge import read


def test_parameters_are_tokens_or_quoted_strings_with_escapes() -> None:
    (found,) = read(['Bearer realm="a \\"b\\", c", error=invalid_token , scope = "read write"'])
    assert found.scheme == "Bearer"
    assert found.params == {"realm": 'a "b", c', "error": "invalid_token", "scope": "read write"}
    assert found.scopes == ("read", "write")


def test_several_challenges_stand_in_one_line_or_in_several() -> None:
    found = read(['Negotiate abc==, Bearer scope="a", Basic realm="x"', "DPoP algs=ES256"])
    assert [c.scheme for c in found] == ["Negotiate", "Bearer", "Basic", "DPoP"]
    assert found[0].token68 == "abc=="
    assert found[1].params == {"scope": "a"}


def test_a_bare_scheme_is_a_challenge_without_parameters() -> None:
    (found,) = read(["Bearer"])
    assert found.params == {} and found.scopes is None and found.get("resource_metadata") is None


def test_a_url_without_quotes_is_read_all_the_same() -> None:
    (found,) = read(["Bearer resource_metadata=https://h.example/.well-known/oauth-protected-resource/mcp, scope=a"])
    assert found.get("resource_metadata") == "https://h.example/.well-known/oauth-protected-resource/mcp"


def test_of_a_parameter_that_is_given_twice_the_first_value_stands() -> None:
    (found,) = read(['Bearer scope="a", SCOPE="b"'])
    assert found.params == {"scope": "a"}


@given(st.lists(st.text(), max_size=5))
def test_nothing_that_a_server_sends_raises(lines: list[str]) -> None:
    assert len(read(lines)) <= 20


def test_a_long_line_takes_no_long_time() -> None:
    assert read(['Bearer a="' + '\\"' * 500_000, "a=" * 500_000, "," * 500_000, "x " * 500_000])
