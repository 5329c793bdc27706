"""What findings say: values that are secrets by their place, and only those, are masked; the sentence fits the fault."""

import pytest

from mcp_wiretap.rule import evidence
from tests.rules.running import run


@pytest.mark.parametrize("where", ["response.body:/error/code", "response.event[2]:/error/code", "request.body:/1/error/code"])
def test_the_code_of_an_error_is_no_authorization_code(where: str) -> None:
    assert evidence(where, "-32603", "-32602") == evidence(where, -32603, -32602)
    assert evidence(where, "E_FAIL", "an integer").value == "E_FAIL"


@pytest.mark.parametrize("where", ["request.body:/code", "request.query:code", "response.body:/result/code"])
def test_any_other_code_may_be_one(where: str) -> None:
    assert evidence(where, "4/0AX4").value == "(sha bc25f4ab, 6 chars)"


@pytest.mark.parametrize("secret", ["(s3cret", "(sha 4ffafd97)", "(absent) but not quite"])
def test_a_secret_that_begins_with_a_parenthesis_is_masked(secret: str) -> None:
    shown = evidence("response.header:Mcp-Session-Id", secret, secret)
    assert secret not in f"{shown.value}{shown.expected}" and shown.value.startswith("(sha ")


@pytest.mark.parametrize("words", ["(absent)", "(not kept)", "(sha 4ffafd97, 270 chars)"])
def test_what_stands_in_for_a_secret_stays(words: str) -> None:
    assert evidence("request.body:/params/requestState", words, words).expected == words


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("file:///a b.txt", "U+0020 at index 9 has to be percent-encoded"),
        ("lab://naïve", "U+00EF at index 8 has to be percent-encoded"),
        ("docs/a b.txt", "is no absolute URI"),
    ],
)
def test_what_is_wrong_with_a_uri(uri: str, said: str) -> None:
    ran = run(f'modern resources/read {{"uri": "{uri}"}}\n  -> result {{"contents": []}}\n')
    assert [said in finding.message for finding in ran.findings if finding.rule == "RSC004"] == [True]
