"""URLs of authorization: compared as the specifications say, and the well-known forms in their order.

Spec: RFC 9728 section 3, RFC 8414 section 3.1, 2026-07-28 basic/authorization/authorization-server-discovery.
"""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urljoin, urlsplit

RESOURCE = "/.well-known/oauth-protected-resource"
OAUTH = "/.well-known/oauth-authorization-server"
OIDC = "/.well-known/openid-configuration"
_LONGEST = 4_096
_PORTS = {"http": 80, "https": 443}

type Relation = Literal["equal", "slash", "parent", "other-path", "other-origin", "invalid"]


@dataclass(slots=True, frozen=True)
class Url:
    """An absolute URL in its parts; scheme and host in lower case, the port filled in."""

    scheme: str
    host: str
    port: int
    path: str  # "/" where it is empty
    query: str
    fragment: str | None

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def place(self) -> str:
        """As `Exchange.url` spells it: no query, the port always there."""
        return self.origin + self.path

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def split(text: str | None) -> Url | None:
    """The parts of an absolute http or https URL; None where the text is none."""
    if text is None or len(text) > _LONGEST:
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not parts.hostname:
        return None
    fragment = parts.fragment if "#" in text else None
    return Url(scheme, parts.hostname, port or _PORTS[scheme], parts.path or "/", parts.query, fragment)


def place(text: str | None) -> str | None:
    url = split(text)
    return url.place if url is not None else None


def origin(text: str | None) -> str | None:
    url = split(text)
    return url.origin if url is not None else None


def canonical(text: str | None) -> str | None:
    """A URL as it is looked up: without a slash at the end, which is no difference worth a missed link."""
    url = split(text)
    return url.origin + url.path.rstrip("/") if url is not None else None


def same_place(one: str | None, two: str | None) -> bool:
    """The same URL but for its query; on the user's own machine the port is chosen at run time (RFC 8252 section 7.3)."""
    if one is None or two is None or one.partition("?")[0] == two.partition("?")[0]:
        return one is not None and two is not None
    a, b = split(one), split(two)
    if a is None or b is None:
        return False
    return a.place == b.place or (a.loopback and b.loopback and (a.scheme, a.host, a.path) == (b.scheme, b.host, b.path))


@lru_cache(maxsize=256)  # asked of every exchange
def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if ":" not in host and not host[:1].isdigit():
        return False  # a name, as nearly always
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def relation(resource: str | None, endpoint: str, *, origins: bool = True) -> Relation:
    """How a resource identifier stands to the endpoint that it is to name. `origins`: whether those can be compared."""
    one, two = split(resource), split(endpoint)
    if one is None or two is None or one.fragment is not None:
        return "invalid"
    if origins and one.origin != two.origin:
        return "other-origin"
    if one.path == two.path:
        return "equal"
    if one.path.rstrip("/") == two.path.rstrip("/"):
        return "slash"
    parent = one.path if one.path.endswith("/") else one.path + "/"
    return "parent" if two.path.startswith(parent) else "other-path"


def resource_forms(endpoint: str) -> list[str]:
    """Where the metadata of a protected resource are looked for without a challenge that names the place, in order."""
    url = split(endpoint)
    if url is None:
        return []
    root = url.origin + RESOURCE
    return [root] if url.path == "/" else [root + url.path, root]


def issuer_forms(issuer: str) -> list[str]:
    """Where the metadata of an authorization server are looked for, in order."""
    url = split(issuer)
    if url is None:
        return []
    path = url.path.rstrip("/")
    if not path:
        return [url.origin + OAUTH, url.origin + OIDC]
    return [url.origin + OAUTH + path, url.origin + OIDC + path, url.origin + path + OIDC]


def well_known(url: str) -> Literal["resource-metadata", "server-metadata"] | None:
    """What a well-known URL is for."""
    path = url.partition("://")[2]
    path = path[path.find("/") :]
    if RESOURCE in path:
        return "resource-metadata"
    if OAUTH in path or OIDC in path:
        return "server-metadata"
    return None


def issuer_of(url: str) -> str:
    """The issuer identifier from which a metadata URL was made."""
    parts = split(url)
    if parts is None:
        return url
    default = parts.port == _PORTS[parts.scheme]
    base = f"{parts.scheme}://{parts.host}" + ("" if default else f":{parts.port}")
    for suffix in (OAUTH, OIDC):
        before, found, after = parts.path.partition(suffix)
        if found:
            return base + before + after
    return base


def joined(base: str, reference: str) -> Url | None:
    """Where a Location header leads to."""
    if len(reference) > _LONGEST:
        return None
    try:
        return split(urljoin(base, reference))
    except ValueError:
        return None


def moved(url: str, from_origin: str, to_origin: str) -> str:
    """The same path at another origin."""
    return to_origin + url[len(from_origin) :] if url.startswith(from_origin + "/") else url
