"""JSON Web Tokens, read without keys."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_wiretap.wire import jose


def token(header: object, claims: object, signature: str = "c2ln") -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in (header, claims)]
    return ".".join([*parts, signature])


def test_header_and_claims_are_read() -> None:
    found = jose.read(token({"alg": "ES256"}, {"sub": "ada", "aud": ["a", "b"], "exp": 5, "cnf": {"jkt": "k"}}))
    assert found is not None and found.signed
    assert found.text("sub") == "ada" and found.number("exp") == 5.0
    assert found.audience == ("a", "b") and found.thumbprint == "k"


def test_what_a_claim_lacks_or_has_in_another_type_is_none() -> None:
    found = jose.read(token({"alg": "none"}, {"sub": 1, "exp": "soon", "aud": 7}, signature=""))
    assert found is not None and not found.signed
    assert found.text("sub") is None and found.number("exp") is None and found.audience == () and found.thumbprint is None


@pytest.mark.parametrize(
    "text", ["", "a.b.c", "eyJhbGciOiJub25lIn0", "eyJhbGciOiJub25lIn0.!!!.x", token([1], {}), token({}, "x")]
)
def test_another_text_is_no_token(text: str) -> None:
    assert jose.read(text) is None


def test_base64url_goes_there_and_back() -> None:
    assert jose.decode(jose.encode(b"\xff\xfe?")) == b"\xff\xfe?"
    assert jose.decode("a") is None


@given(st.text())
def test_no_text_raises(text: str) -> None:
    jose.read(text)
    jose.read("eyJ" + text + ".e30.")
