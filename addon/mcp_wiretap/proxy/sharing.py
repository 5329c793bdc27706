"""Recordings read and written for export: as flows, as states, without their secrets."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mitmproxy.flow import Flow

from mcp_wiretap.proxy import form
from mcp_wiretap.proxy.flow_io import flows_of, unreadable, writer
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.limits import Limits


def copy(source: Path, target: BinaryIO, redactor: Redactor | None, wanted: Callable[[str], bool] | None = None) -> str | None:
    """Write the flows of a recording (those that are wanted), redacted where a redactor is given. How it is damaged, or None.

    The redactor learns from all flows first, also from those that are not wanted."""
    unread: set[str] = set()
    if redactor is not None:
        for state in states(source):
            if isinstance(state, dict):
                try:
                    redactor.collect(state)
                except Exception:  # what is not understood is not given away
                    unread.add(state["id"])
    add, damage = writer(target), None
    for flow in flows_of(source):
        made = flow
        if isinstance(flow, Flow):
            if wanted is not None and not wanted(flow.id):
                continue
            if redactor is not None:
                made = _redacted(flow, redactor) if flow.id not in unread else unreadable(flow.id, "its secrets cannot be told")
        if isinstance(made, str):
            damage = damage or made
        else:
            add(made)
    return damage


def states(path: Path) -> Iterator[dict[str, Any] | str]:
    """The states of the flows, with times that can be told; a text in the place of one that cannot be read."""
    for flow in flows_of(path):
        if isinstance(flow, str):
            yield flow
            continue
        state = dict(flow.get_state())
        if state["type"] == "http":
            form.settle_times(state)
        yield state


def events(path: Path) -> Iterator[tuple[str, list[Event]]]:
    """The events of each HTTP flow by its id."""
    for state in states(path):
        if isinstance(state, dict) and state["type"] == "http":
            yield state["id"], events_of(state, Limits().stream)


def _redacted(flow: Flow, redactor: Redactor) -> Flow | str:
    try:
        made: Flow = type(flow).from_state(redactor.redact(flow.get_state()))
    except Exception as error:
        return unreadable(flow.id, f"its secrets cannot be told ({type(error).__name__})")
    return made
