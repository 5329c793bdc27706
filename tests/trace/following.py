"""Follows a script in the notation of examples with an Inspector without rules."""

from collections.abc import Callable

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.model import Exchange

INITIALIZED = '{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}'
SESSION = f"legacy initialize\n  -> result {INITIALIZED}\n"


def follow(
    script: str, limits: Limits | None = None, expect: Callable[[str], str | None] | None = None
) -> tuple[Inspector, list[Exchange]]:
    """The inspector after the script, and its exchanges in the order in which they began. Nothing is finished yet."""
    inspector = Inspector(limits=limits, expect=expect)
    for event in read_script(script):
        inspector.feed(event)
    return inspector, list(inspector.exchanges.values())
