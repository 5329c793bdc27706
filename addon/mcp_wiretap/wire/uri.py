"""URLs taken apart without an error: those on the wire are anybody's words, and `urlsplit` refuses `http://[`."""

from urllib.parse import SplitResult, urljoin, urlsplit

_NONE = SplitResult("", "", "", "", "")


def split(url: str) -> SplitResult:
    """The parts of a URL or reference; all empty where it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return _NONE


def host(url: str) -> str | None:
    """Its host in lower case; None where there is none. A port that is no number makes no difference."""
    return split(url).hostname


def resolve(base: str, reference: str) -> SplitResult:
    """A reference as seen from a page; all empty where it is none."""
    try:
        return urlsplit(urljoin(base, reference))
    except ValueError:
        return _NONE
