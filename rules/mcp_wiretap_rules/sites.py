"""Hosts and sites: whether two names belong together, as near as one gets without a list of public suffixes."""

from functools import lru_cache

from mcp_wiretap.wire import uri


def site(host: str) -> str:
    """The last two labels of a name: example.com for assets.example.com. An address is itself."""
    labels = host.rstrip(".").split(".")
    return host if labels[-1].isdigit() or ":" in host else ".".join(labels[-2:])


def is_of(host: str, hosts: frozenset[str]) -> bool:
    """Whether a host is one of these, or a name of the same site."""
    return any(site(host) == site(own) for own in hosts)


@lru_cache(maxsize=256)  # asked of every exchange
def host(url: str) -> str:
    """The host of a URL, also where an IPv6 address stands in it without brackets. "" where there is none."""
    authority = url.partition("://")[2].partition("/")[0]
    if authority.count(":") > 1 and "[" not in authority:
        return authority.rpartition(":")[0].lower()
    return uri.host(url) or ""
