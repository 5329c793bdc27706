"""The command `mcp.replay`: what a client asked, asked once more of the same server, and the answers compared."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from mitmproxy import command, ctx, exceptions
from mitmproxy.http import HTTPFlow
from mitmproxy.log import ALERT

from mcp_wiretap.proxy.loaded import recorded_address
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.replay.client import Client, Stopped
from mcp_wiretap.replay.http import Place
from mcp_wiretap.replay.outcome import report_of
from mcp_wiretap.replay.render import text_of
from mcp_wiretap.replay.scope import NotChosen, conversation_of, repeated
from mcp_wiretap.replay.script import Script, Take, build
from mcp_wiretap.trace.events import Event
from mcp_wiretap.wire.secret import one_line

logger = logging.getLogger(__name__)

CONVERSATION = "@conversation"
TOLD = 200  # lines of a report in the event log


class Repeating(ABC):
    """What the addon object inherits beside its other commands."""

    @abstractmethod
    def settings(self) -> Settings:
        """The options of this moment."""

    @command.command("mcp.replay")  # type: ignore[untyped-decorator]
    def replay(self, flows: str, yes: str = "") -> str:
        """Ask the server once more what the conversations of flows asked: @conversation (of the focused flow), or any flows. The
        event log tells what changed. `yes` repeats calls of tools that may do something twice."""
        chosen = chosen_flows(flows)
        script = build(in_order(beside(chosen), self.settings()), self.settings().book())
        try:
            takes = conversation_of(script, {flow.id for flow in chosen})
        except NotChosen as error:
            raise exceptions.CommandError(f"mcp.replay: {error}") from error
        if len({take.origin for take in takes}) > 1:
            raise exceptions.CommandError("mcp.replay: these flows are of several servers; choose those of one")
        tools = repeated(script, takes)
        if tools and yes.lower() not in ("yes", "y", "true"):
            listed = ", ".join(one_line(name, 60) for name, _ in tools)
            raise exceptions.CommandError(
                f"mcp.replay: tools that are not annotated as read-only or idempotent would be called again: {listed}; "
                f"`mcp.replay {flows} yes` does so"
            )
        place = Place.of(takes[0].origin + "/")
        place = Place(place.scheme, place.host, place.port, "")
        client = Client(script, takes, place, judge=self.settings().book(), fast=True)
        task = asyncio.get_running_loop().create_task(_play(script, client))
        running: set[asyncio.Task[None]] = self.__dict__.setdefault("_replays", set())
        running.add(task)
        task.add_done_callback(running.discard)
        said = f"replaying {_count(takes)} to {takes[0].origin}"
        logger.log(ALERT, "mcp.replay: %s", said)
        return said


async def _play(script: Script, client: Client) -> None:
    try:
        await client.run()
        report = report_of(script, client)
    except Stopped as stopped:
        report = report_of(script, client, stopped)
    except Exception as error:
        logger.warning("mcp.replay: fault (%s: %s)", type(error).__name__, error)
        return
    for line in text_of(report).splitlines()[:TOLD]:
        logger.log(ALERT, "mcp.replay: %s", line)


def _count(takes: Sequence[Take]) -> str:
    return f"{len(takes)} exchanges" if len(takes) != 1 else "1 exchange"


def chosen_flows(flows: str, command_name: str = "mcp.replay") -> list[HTTPFlow]:
    """The flows that an argument means."""
    view: Any = ctx.master.addons.get("view")
    if view is None:
        raise exceptions.CommandError(f"{command_name}: there is no flow list here")
    if flows == CONVERSATION:
        focus = view.focus.flow
        if focus is None:
            raise exceptions.CommandError(f"{command_name}: no flow has the focus; name one: @focus, @marked, ~u /mcp")
        found = [focus]
    else:
        found = view.resolve(flows)
    chosen = [flow for flow in found if isinstance(flow, HTTPFlow)]
    if not chosen:
        raise exceptions.CommandError(f"{command_name}: {flows} means no HTTP flow")
    return chosen


def beside(chosen: list[HTTPFlow]) -> list[HTTPFlow]:
    """All flows of the same servers: a conversation may need what opened its session."""
    servers = {(flow.request.data.host, flow.request.data.port) for flow in chosen}
    view: Any = ctx.master.addons.get("view")
    flows = [flow for flow in view.resolve("@all") if isinstance(flow, HTTPFlow)]
    return [flow for flow in flows if (flow.request.data.host, flow.request.data.port) in servers]


def in_order(flows: Iterable[HTTPFlow], settings: Settings) -> list[Event]:
    timed: list[tuple[float, int, Event]] = []
    for number, flow in enumerate(flows):
        latest = 0.0
        address = recorded_address(flow) if not flow.live else None
        for event in events_of(flow.get_state(), settings.limits.stream, address=address):
            latest = max(latest, event.at)
            timed.append((latest, number, event))
    return [event for _, _, event in sorted(timed, key=lambda entry: entry[:2])]
