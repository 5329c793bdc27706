"""Hosts and sites: whether two names belong together, by the list of public suffixes, and which are of the user's own network."""

from functools import lru_cache
from ipaddress import ip_address

from publicsuffix2 import get_sld

from mcp_wiretap.wire import uri

# Names that no public zone has: of the machine itself, of a container's host, of a home or company network.
_PRIVATE_ZONES = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa")


@lru_cache(maxsize=1024)
def site(host: str) -> str:
    """Return the registrable domain of a name: example.com for assets.example.com, bank.co.uk for www.bank.co.uk.

    An address, a single label and a public suffix are sites of their own.
    """
    name = host.rstrip(".").lower()
    if "." not in name or _is_address(name):
        return name
    found = str(get_sld(name) or "")
    return found if "." in found else ".".join(name.split(".")[-2:])  # a top-level domain that the list does not have


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return name.rpartition(".")[2].isdigit()
    return True


def is_private(host: str) -> bool:
    """Whether a host is the user's own machine, or one of a private network: by its address, or by a name that is not public."""
    name = host.rstrip(".").lower()
    try:
        address = ip_address(name.strip("[]"))
    except ValueError:
        return "." not in name or name.endswith(_PRIVATE_ZONES)
    return address.is_loopback or address.is_private


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
