"""Recordings read and written as mitmproxy's own flows: for what changes flows, where `recording` is for what only looks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from mitmproxy.exceptions import FlowReadException
from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader, FlowWriter

from mcp_wiretap.proxy.recording import Recording


def flows_of(path: Path) -> Iterator[Flow | str]:
    """The flows of a .flow file or a HAR in their order, HAR flows with the ids of the audit contract. Where the file is damaged
    a text comes last that says how."""
    with path.open("rb") as file:
        if file.read(4).removeprefix(b"\xef\xbb\xbf").startswith(b"{"):
            yield from _of_har(path)
            return
        file.seek(0)
        number = 0
        try:
            for flow in FlowReader(file).stream():
                number += 1
                yield flow
        except (FlowReadException, AssertionError) as error:  # it asserts that it knows every member of a flow
            yield f"flow {number} cannot be read ({error or 'it has a member that this mitmproxy does not know'})"


def _of_har(path: Path) -> Iterator[Flow | str]:
    """As `Recording` reads a HAR: bodies and header fields as the entries have them."""
    recording = Recording(path)
    for state in recording.entries:
        yield HTTPFlow.from_state(state)
    if recording.damage is not None:
        yield recording.damage


def writer(file: BinaryIO) -> Callable[[Flow], None]:
    """A function that adds a flow to a .flow file."""
    add: Callable[[Flow], None] = FlowWriter(file).add
    return add
