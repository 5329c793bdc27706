"""`python -m mcp_wiretap` is `mcp-wiretap`."""

import os
import sys

if not sys.flags.safe_path and sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109
    del sys.path[0]  # modules of the current directory, where `python -m` looks first, are not ours to run

from mcp_wiretap.cli import main

sys.exit(main())
