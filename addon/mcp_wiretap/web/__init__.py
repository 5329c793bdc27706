"""The inspector's pages inside mitmweb, under /mcp/: same port, same token, same protections.

`mount` is the door. Everything that hangs on mitmweb's internals is in `mitmweb`; if a future mitmweb lacks them, the pages say
so once and everything else works. What the pages show is made in `mcp_wiretap.pages`, which knows no mitmproxy.
"""

import logging
from typing import Any

from mcp_wiretap.web.source import Source

__all__ = ["Source", "mount"]

logger = logging.getLogger(__name__)


def mount(master: Any, source: Source) -> str | None:
    """Serve the pages from a running mitmweb; their address, None where that cannot be."""
    try:
        from mcp_wiretap.web import mitmweb

        address = mitmweb.install(master, source)
    except Exception as error:
        logger.warning(
            f"The inspector's pages under /mcp/ are not there: this mitmweb has other internals than they need ({error!r}). "
            "Everything else of mcp-wiretap works."
        )
        return None
    logger.info(f"MCP inspector at {address}")
    return address
