"""URLs are anybody's words: what is none gives nothing, and no error."""

import pytest

from mcp_wiretap.rule import endpoint_matches
from mcp_wiretap.wire import uri
from tests.rules.running import run


@pytest.mark.parametrize("url", ["http://[", "//[x", "http://[::1", "", "nonsense", "http://\u2100/"])
def test_what_is_no_url_has_no_host(url: str) -> None:
    assert not uri.host(url)
    assert uri.resolve("http://h/a", url).path in ("", "/", "/a", "/nonsense")


def test_the_host_of_a_url() -> None:
    assert uri.host("http://Server.Example:99x/mcp") == "server.example"
    assert uri.host("http://[::1]:80/") == "::1"


def test_no_pattern_means_an_endpoint_that_is_no_url() -> None:
    assert not endpoint_matches("h", "http://[:80/x")


@pytest.mark.parametrize("address", ["http://[x", "//[", "/messages"])
def test_an_announced_address_may_be_no_url(address: str) -> None:
    ran = run(f"GET\n  -> sse\n  -> sse-raw event: endpoint\\ndata: {address}\\n\\n\n  -> closed client\n")
    assert ran.faults == []
    assert [e.stream.http_sse for e in ran.exchanges if e.stream is not None] == [True]
