"""Recordings read and written for export: as flows, as states, without their secrets."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mitmproxy.flow import Flow

from mcp_wiretap.proxy.flow_io import flows_of, writer
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.limits import Limits


def copy(source: Path, target: BinaryIO, redactor: Redactor | None, wanted: Callable[[str], bool] | None = None) -> str | None:
    """Write the flows of a recording (those that are wanted), redacted where a redactor is given. How it is damaged, or None.

    The redactor learns from all flows first, also from those that are not wanted."""
    if redactor is not None:
        for state in states(source):
            if isinstance(state, dict):
                redactor.collect(state)
    add, damage = writer(target), None
    for flow in flows_of(source):
        if isinstance(flow, str):
            damage = flow
        elif wanted is None or wanted(flow.id):
            add(flow if redactor is None else _redacted(flow, redactor))
    return damage


def states(path: Path) -> Iterator[dict[str, Any] | str]:
    """The states of the flows; a text comes last where the file is damaged."""
    for flow in flows_of(path):
        yield flow if isinstance(flow, str) else dict(flow.get_state())


def events(path: Path) -> Iterator[tuple[str, list[Event]]]:
    """The events of each HTTP flow by its id."""
    for state in states(path):
        if isinstance(state, dict) and state["type"] == "http":
            yield state["id"], events_of(state, Limits().stream)


def _redacted(flow: Flow, redactor: Redactor) -> Flow:
    made: Flow = type(flow).from_state(redactor.redact(flow.get_state()))
    return made
