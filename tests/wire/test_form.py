"""Form-encoded parameters."""

from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire.form import LONGEST, read


def test_parameters_are_decoded_in_order() -> None:
    form = read(b"grant_type=authorization_code&code=a%2Bb+c&resource=x&resource=y")
    assert form.get("grant_type") == "authorization_code"
    assert form.get("code") == "a+b c"
    assert form.all("resource") == ["x", "y"]
    assert list(form) == ["grant_type", "code", "resource"] and len(form) == 3


def test_an_empty_value_counts_as_omitted() -> None:
    form = read("state=&scope=a")
    assert not form.has("state") and form.get("state") is None and form.has("scope")


def test_what_is_too_much_is_not_read_and_says_so() -> None:
    assert read(b"a" * (LONGEST + 1)).problem
    assert read("&".join(f"a{n}=1" for n in range(500))).problem


@given(st.binary(max_size=200))
def test_nothing_that_a_client_sends_raises(body: bytes) -> None:
    read(body)
