"""Recorded credentials go only home: to the scheme, host and port that they were recorded at (or to https there).

What counts as one is what the inspector masks: a secret header, an `Mcp-Param-*` header of an argument that its tool declares as
secret, a header whose value repeats a secret of the recording, a secret parameter of the URL. Bodies are sent as they are: they
are the call.
"""

from mcp_wiretap.replay.http import Place
from mcp_wiretap.replay.script import Take
from mcp_wiretap.wire.secret import KnownSecrets, concealed, is_header, is_parameter, knowing

_PORTS = {"http": 80, "https": 443}
# Headers that say what the body says, or how to read it. They are part of the call.
_OF_THE_CALL = frozenset(
    {"mcp-method", "mcp-name", "mcp-protocol-version", "content-type", "accept", "last-event-id", "traceparent", "tracestate"}
)


def is_home(take: Take, place: Place) -> bool:
    """Whether a server is where a take was recorded."""
    seen = take.seen
    if seen.host.lower().rstrip(".") != place.host.lower().rstrip("."):
        return False
    if seen.scheme == place.scheme:
        return seen.port == place.port
    if (seen.scheme, place.scheme) != ("http", "https"):
        return False
    return seen.port == place.port or (seen.port == _PORTS["http"] and place.port == _PORTS["https"])


def is_credential(take: Take, name: str, value: str, known: KnownSecrets) -> bool:
    """Whether a recorded header field stays at home."""
    lower = name.lower()
    if lower in _OF_THE_CALL:
        return False
    if is_header(name, value):
        return True
    checks = take.exchange.header_checks if take.exchange is not None else ()
    if any(check.secret and check.header.lower() == lower for check in checks):
        return True
    with knowing(known):
        return concealed(value) != value


def without_secrets(query: str, known: KnownSecrets) -> tuple[str, list[str]]:
    """A recorded query as it may be sent elsewhere, and the names of the parameters that were left out."""
    kept, left_out = [], []
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        with knowing(known):
            secret = bool(equals) and (is_parameter(name, value) or concealed(f"?{part}") != f"?{part}")
        if secret:
            left_out.append(name)
        else:
            kept.append(part)
    return "&".join(kept), left_out
