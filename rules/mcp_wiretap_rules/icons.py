"""Icons: where their sources lead. Spec: 2026-07-28 basic/index#icons."""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.wire import uri
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules import sites

type Steps = tuple[str | int, ...]

MOST = 20  # icons of one thing that are looked at
EXPECTED = "https: or data:"
_ALLOWED = frozenset({"https", "http", "data"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def sources(holder: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    """The src of each icon of a tool, a prompt, an implementation ..., with its place."""
    icons = holder.get("icons") if isinstance(holder, dict) else None
    for index, icon in enumerate(icons[:MOST] if isinstance(icons, list) else ()):
        src = icon.get("src") if isinstance(icon, dict) else None
        if isinstance(src, str):
            yield (*steps, "icons", index, "src"), src


def unsafe(holder: Any, steps: Steps) -> Iterator[tuple[Steps, str, str]]:
    """Those that a receiver must reject: place, src, what is wrong in words."""
    for place, src in sources(holder, steps):
        words = problem(src)
        if words is not None:
            yield place, src, words


def problem(src: str) -> str | None:
    """Why a receiver must reject the source: it is neither http(s): nor data:."""
    scheme = _scheme(src)
    if scheme in _ALLOWED:
        return None
    return f"the scheme {one_line(scheme, 20)}" if scheme else "no scheme"


def remark(src: str, hosts: frozenset[str]) -> str | None:
    """What is worth a note about a source that may be fetched: it is not encrypted, or not one of the server's hosts'."""
    host = uri.host(src[:2_000])
    if host is None or _scheme(src) == "data" or host in _LOCAL:
        return None
    if _scheme(src) == "http":
        return "is http, not https"
    return None if not hosts or sites.is_of(host, hosts) else "is on another host than the server"


def _scheme(src: str) -> str:
    return src[:40].partition(":")[0].lower() if ":" in src[:40] else ""
