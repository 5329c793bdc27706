"""mitmdump prints lines of its own for each flow and shows no comments: the comment, as a line in front of them."""

import logging
from typing import Any

from mitmproxy import ctx
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.annotate import COMMENT

logger = logging.getLogger(__name__)


def tell(flow: HTTPFlow) -> None:
    """Print what is known of a flow that has ended, where mitmdump prints the flow (`flow_detail`, its filter; not with `-q`)."""
    dumper: Any = ctx.master.addons.get("dumper")
    said = flow.metadata.get(COMMENT)
    if dumper is not None and said and dumper.match(flow):
        logger.info("%s", said)
