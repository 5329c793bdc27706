"""Which names belong to one site."""

import pytest

from mcp_wiretap_rules.sites import is_of, site


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("assets.example.com", "example.com"),
        ("www.bank.co.uk.", "bank.co.uk"),
        ("Alice.GitHub.io", "alice.github.io"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("localhost", "localhost"),
        ("co.uk", "co.uk"),
        ("server.internal", "server.internal"),
    ],
)
def test_the_site_of_a_host(host: str, expected: str) -> None:
    assert site(host) == expected


def test_neighbours_under_a_public_suffix_are_strangers() -> None:
    assert not is_of("evil.co.uk", frozenset({"bank.co.uk"}))
    assert not is_of("alice.github.io", frozenset({"bob.github.io"}))
    assert is_of("api.bank.co.uk", frozenset({"www.bank.co.uk"}))
