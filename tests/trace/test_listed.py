"""Whether a URI may have come of a URI template: what a read of a missing resource is judged by."""

import pytest

from mcp_wiretap.trace.lists.catalog import fits_template


@pytest.mark.parametrize(
    ("uri", "template"),
    [
        ("file:///a", "file:///{path}"),
        ("file:///a/b", "file:///{+path}"),
        ("file:///", "file:///{path}"),
        ("lab://a/x/b", "lab://{one}/x/{two}"),
        ("lab://a", "lab://a"),
        ("lab://a?q=1", "lab://a{?q}"),
    ],
)
def test_it_fits(uri: str, template: str) -> None:
    assert fits_template(uri, template)


@pytest.mark.parametrize(
    ("uri", "template"),
    [
        ("file:///a", "other:///{path}"),
        ("lab://a/y/b", "lab://{one}/x/{two}"),
        ("lab://ab", "lab://a"),
        ("lab://x", "lab://{one}/x"),
        ("lab://a/", "lab://a/{b}/a/"),
        ("aa", "aa{b}aa"),
    ],
)
def test_it_does_not_fit(uri: str, template: str) -> None:
    assert not fits_template(uri, template)
