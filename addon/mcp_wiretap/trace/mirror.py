"""The mirrored headers of a modern request beside what its body says, one verdict each (DESIGN.md `headers`)."""

from mcp_wiretap.trace.model import Exchange


def check(exchange: Exchange) -> None:
    """Fill `exchange.header_checks`."""
