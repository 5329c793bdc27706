"""`mcp-wiretap unwrap`: see `wrap`."""

from mcp_wiretap.command.wrap import run

__all__ = ["run"]
