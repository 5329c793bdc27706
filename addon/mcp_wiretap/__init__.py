"""mcp-wiretap: an inspector for the Model Context Protocol inside mitmproxy."""

__version__ = "0.1.0"
