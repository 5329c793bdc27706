"""Which names belong to one owner, and which are names of the user's own network."""

import pytest

from mcp_wiretap_rules.sites import is_of, is_private, site


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("assets.example.com", "example.com", True),
        ("EXAMPLE.com.", "www.example.com", True),
        ("evil.co.uk", "bank.co.uk", False),
        ("www.bank.co.uk", "bank.co.uk", True),
        ("alice.github.io", "bob.github.io", False),
        ("github.io", "alice.github.io", False),
        ("co.uk", "bank.co.uk", False),
        ("evil.example", "mcp.example", False),
        ("a.mcp.example", "b.mcp.example", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("::1", "::1", True),
        ("::1", "fe80::1", False),
        ("localhost", "localhost", True),
        ("localhost", "otherhost", False),
        ("", "", True),
        ("..", "example.com", False),
    ],
)
def test_two_names_are_of_one_site_where_one_owner_registered_both(one: str, two: str, same: bool) -> None:
    assert is_of(one, frozenset({two})) is same
    assert is_of(two, frozenset({one})) is same


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
