"""Recordings read and written as mitmproxy's own flows: for what changes flows, where `recording` is for what only looks."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from mitmproxy.exceptions import FlowReadException
from mitmproxy.flow import Flow
from mitmproxy.io import FlowWriter

from mcp_wiretap.proxy import flowfile, form
from mcp_wiretap.proxy.form import State
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.wire.secret import shown


def flows_of(path: Path) -> Iterator[Flow | str]:
    """The flows of a .flow file or a HAR in their order, HAR flows with the ids of the audit contract. In the place of a flow
    that cannot be read, and at the end where nothing more can be found, comes a text that says so."""
    with path.open("rb") as file:
        if file.read(4).removeprefix(b"\xef\xbb\xbf").startswith(b"{"):
            yield from _of_har(path)
            return
        file.seek(0)
        try:
            for record in flowfile.records(file):
                yield _made(record.id, partial(flowfile.whole, file, record))
        except flowfile.Damaged as error:
            yield str(error)


def _made(id: str, state_of: Callable[[], State]) -> Flow | str:
    try:
        state = state_of()
        if state["type"] == "http":
            form.check(state)
        flow: Flow = Flow.from_state(state)
        return flow
    except Exception as error:  # mitmproxy asserts, converts and looks up as if it had written the file itself
        said = str(error) or "it has a member that this mitmproxy does not know"
        words = said if isinstance(error, form.Malformed | FlowReadException) else f"{type(error).__name__}: {said}"
        return unreadable(id, words)


def unreadable(id: str, why: str) -> str:
    return f"flow {shown(id, 80)} cannot be read: {shown(why, 200)}"


def _of_har(path: Path) -> Iterator[Flow | str]:
    """As `Recording` reads a HAR: bodies and header fields as the entries have them."""
    recording = Recording(path)
    for state in recording.entries:
        yield _made(state["id"], partial(dict, state))
    if recording.damage is not None:
        yield recording.damage


def writer(file: BinaryIO) -> Callable[[Flow], None]:
    """A function that adds a flow to a .flow file."""
    add: Callable[[Flow], None] = FlowWriter(file).add
    return add
