"""`python -m mcp_wiretap` is `mcp-wiretap`."""

import sys

from mcp_wiretap.cli import main

sys.exit(main())
