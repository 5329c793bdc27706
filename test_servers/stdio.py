"""One config served over standard input and output."""

from mcp.server.stdio import stdio_server

from test_servers.compose import compose
from test_servers.config import Config


async def serve_stdio(config: Config) -> int:
    """Serve until standard input closes."""
    server = compose(config)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
    return 0
