"""Reads what CORS asks and grants: whether a browser lets a page send a request, and which headers of the answer it may read.

Spec: Fetch (https://fetch.spec.whatwg.org/#http-cors-protocol).
"""

from typing import NamedTuple

from mcp_wiretap.wire import uri
from mcp_wiretap.wire.headers import Fields

MOST_NAMES = 100  # of one header
_NEVER_BY_STAR = "authorization"  # `*` in Access-Control-Allow-Headers grants all but this one
_FREE_METHODS = frozenset({"GET", "HEAD", "POST"})
_OF_MCP = frozenset({"authorization", "content-type", "last-event-id", "dpop"})


class Lack(NamedTuple):
    """One thing that a preflight was not granted: the place, what stands there, what a browser wants there, in words."""

    where: str
    value: str | None
    wanted: str
    words: str


def is_preflight(http_method: str, fields: Fields) -> bool:
    return http_method == "OPTIONS" and fields.has("access-control-request-method")


def names(value: str | None) -> list[str]:
    """The header names of a list, in lower case."""
    return [name.strip().lower() for name in (value or "").split(",") if name.strip()][:MOST_NAMES]


def is_granted(name: str, granted: list[str]) -> bool:
    """Whether a header name (in lower case) is among those granted."""
    return name in granted or ("*" in granted and name != _NEVER_BY_STAR)


def lacks(asked: Fields, answer: Fields, status: int) -> list[Lack]:
    """What keeps a browser from sending the request that this preflight asks for. Of headers only those that MCP needs."""
    found = []
    if not 200 <= status < 300:
        found.append(Lack("response.status", str(status), "a status from 200 to 299", f"got HTTP {status}"))
    origin = asked.first("origin") or ""
    if (told := allows_origin(origin, answer)) is not None:
        found.append(told)
    wanted = [n for n in names(asked.joined("access-control-request-headers")) if n.startswith("mcp-") or n in _OF_MCP]
    granted = names(answer.joined("access-control-allow-headers"))
    lacking = ", ".join(name for name in wanted if not is_granted(name, granted))
    if lacking:
        where, value = "response.header:Access-Control-Allow-Headers", answer.joined("access-control-allow-headers")
        found.append(Lack(where, value, lacking, f"is not granted {lacking}"))
    method = (asked.first("access-control-request-method") or "").strip()
    methods = [m.strip() for m in (answer.joined("access-control-allow-methods") or "").split(",")]
    if method not in _FREE_METHODS and method not in methods and "*" not in methods:
        where, value = "response.header:Access-Control-Allow-Methods", answer.joined("access-control-allow-methods")
        found.append(Lack(where, value, method, f"is not granted {method}"))
    return found


def allows_origin(origin: str, answer: Fields) -> Lack | None:
    """Why an answer does not allow this origin; None where it does."""
    where = "response.header:Access-Control-Allow-Origin"
    allowed = answer.joined("access-control-allow-origin")
    if allowed is None:
        return Lack(where, None, origin, "has no Access-Control-Allow-Origin")
    if allowed.strip() not in ("*", origin):
        return Lack(where, allowed, origin, "is granted to another origin")
    return None


def exposes(name: str, answer: Fields) -> bool:
    """Whether a page of another origin may read this header of the answer."""
    exposed = names(answer.joined("access-control-expose-headers"))
    return name.lower() in exposed or "*" in exposed


def is_cross_origin(origin: str, url: str, authority: str | None) -> bool:
    """Whether a page of that origin calls another one: the endpoint's, as the proxy or as the client named it."""
    if not origin or origin == "null":
        return bool(origin)
    scheme, _, named = origin.partition("://")
    own = uri.split(url)
    return named.lower() not in (own.netloc.lower(), (authority or "").lower(), _without_port(own.netloc, scheme))


def _without_port(netloc: str, scheme: str) -> str:
    return netloc.lower().removesuffix(":443" if scheme == "https" else ":80")
