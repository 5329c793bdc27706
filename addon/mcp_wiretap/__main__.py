"""The command `mcp-wiretap`, and `python -m mcp_wiretap`."""

import os
import sys


def main() -> int:
    """`mcp-wiretap stdio` before all else: a client waits for the server's start, and the other commands load much more."""
    if sys.argv[1:2] == ["stdio"]:
        from mcp_wiretap.stdio import wrapper

        wrapper.run(sys.argv[2:])
    from mcp_wiretap import cli

    return cli.main()


if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109
        del sys.path[0]  # modules of the current directory, where `python -m` looks first, are not ours to run
    sys.exit(main())
