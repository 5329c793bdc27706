"""`mcp-wiretap unwrap`: a client's configuration is put back as it was before `wrap`."""

import argparse

from mcp_wiretap.command import wrap

DESCRIPTION = (
    "Takes `mcp-wiretap stdio` away from the servers in a client's configuration: the file is as it was before, byte for byte, "
    "but for what was changed in it meanwhile."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    wrap.configuration(parser)


def run(arguments: argparse.Namespace) -> int:
    return wrap.run(arguments)
