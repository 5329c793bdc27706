"""What the user holds servers to: what they offered when it was accepted (a baseline), and a contract. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from mcp_wiretap.wire import uri

KINDS = {  # the lists of a server: method -> (member of the result, what names an item, what one is called)
    "tools/list": ("tools", "name", "tool"),
    "resources/list": ("resources", "uri", "resource"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "resource template"),
    "prompts/list": ("prompts", "name", "prompt"),
}
_LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


@dataclass(slots=True)
class Offer:
    """What one server offered: what a client or a model goes by."""

    server: dict[str, Any] = field(default_factory=dict)  # name, version
    revisions: list[str] = field(default_factory=list)
    capabilities: dict[str, Any] = field(default_factory=dict)
    instructions: str | None = None
    lists: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)  # member of KINDS -> items by name


@dataclass(slots=True, frozen=True)
class Contract:
    """Limits of the user's own. None and empty: not limited."""

    expect_tools: tuple[str, ...] = ()  # names that some server must offer
    forbid_tools: tuple[str, ...] = ()  # patterns (*, ?) of names that none may offer
    max_ms: tuple[tuple[str, float], ...] = ()  # method or tool -> milliseconds that an answer may take
    max_failures: float | None = None  # share of the tool calls of a server that may fail, 0 to 1
    max_definitions: int | None = None  # bytes of all tool definitions of a server, as a model is given them
    max_result: int | None = None  # bytes of one tool result

    def __bool__(self) -> bool:
        return self is not _NO_CONTRACT and self != _NO_CONTRACT

    def forbids(self, name: str) -> str | None:
        """The pattern that a name is forbidden by."""
        return next((pattern for pattern in self.forbid_tools if fnmatchcase(name, pattern)), None)

    def longest(self, method: str, name: str | None) -> float | None:
        """The milliseconds that the answer to a call may take; what is said of a tool goes before what is said of a method."""
        limits = dict(self.max_ms)
        return limits.get(name or "", limits.get(method))


_NO_CONTRACT = Contract()


@dataclass(slots=True, frozen=True)
class Promised:
    """Both. `offers` by the key of the endpoint (`key_of`)."""

    offers: Mapping[str, Offer] = field(default_factory=dict)
    contract: Contract = _NO_CONTRACT

    def __bool__(self) -> bool:
        return bool(self.offers) or bool(self.contract)


def key_of(url: str) -> str:
    """The key of an endpoint in a baseline: its URL, without the port on this machine, where it is another each time."""
    parts = uri.split(url)
    if parts.scheme in ("http", "https") and parts.hostname is not None and parts.hostname.lower() in _LOOPBACK:
        return f"{parts.scheme}://localhost{parts.path or '/'}"
    return url


def one_offer(offers: Mapping[str, Offer], url: str) -> Offer | None:
    """What was accepted of the server at a URL."""
    return offers.get(key_of(url))
