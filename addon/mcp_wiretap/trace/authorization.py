"""Authorization on the wire: which HTTP exchanges around an MCP endpoint belong to which flow of getting a token."""

from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.tracker import Tracker


class Authorization(Tracker):
    name = "authorization"

    def recognises(self, exchange: Exchange) -> bool:
        return False
