"""Which names belong to one site, and which are names of the user's own network."""

import pytest

from mcp_wiretap_rules.sites import is_of, is_private, site


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


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "app.localhost",
        "127.0.0.1",
        "[::1]",
        "::1",
        "0.0.0.0",
        "10.1.2.3",
        "192.168.1.9",
        "printer",
        "nas.local",
        "host.docker.internal",
        "router.home.arpa",
        "LOCALHOST.",
    ],
)
def test_names_of_the_own_machine_and_network_are_private(host: str) -> None:
    assert is_private(host)


@pytest.mark.parametrize("host", ["example.com", "8.8.8.8", "evil.localhost.example.com", "2606:4700::1111", "internal.example"])
def test_public_names_are_not_private(host: str) -> None:
    assert not is_private(host)


def test_the_names_of_a_hostile_page_cost_nothing() -> None:
    assert site("a." * 5_000 + "com")
