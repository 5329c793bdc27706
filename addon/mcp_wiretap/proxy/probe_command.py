"""The command `mcp.probe`: does the server of a flow refuse what it must? What is sent lands in the flow list, with verdicts."""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any

from mitmproxy import command, ctx, exceptions
from mitmproxy.log import ALERT

from mcp_wiretap.probe.report import as_text
from mcp_wiretap.probe.run import Prober, plan, prober
from mcp_wiretap.proxy import probing
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.proxy.replay_command import TOLD, beside, chosen_flows, in_order
from mcp_wiretap.replay.http import Place, Unreachable
from mcp_wiretap.replay.script import build
from mcp_wiretap.rule import find_probes
from mcp_wiretap.wire.secret import knowing, one_line

logger = logging.getLogger(__name__)

BUDGET = 100  # requests of one probe


class Probing(ABC):
    """What the addon object inherits beside its other commands."""

    @abstractmethod
    def settings(self) -> Settings:
        """The options of this moment."""

    @command.command("mcp.probe")  # type: ignore[untyped-decorator]
    def probe(self, flows: str, yes: str = "") -> str:
        """Send what the server of these flows answered well once more, with one thing changed each time, and judge the answers:
        headers, versions, envelopes, methods, state, sessions. Lists, reads and prompts only, and tools that are annotated as
        read-only; `yes` says that these may be called. Up to 100 requests."""
        chosen = chosen_flows(flows, "mcp.probe")
        settings = self.settings()
        script = build(in_order(beside(chosen), settings), settings.book())
        ids = {flow.id for flow in chosen}
        takes = [take for take in script.mcp if take.flow in ids and not take.on_stdio]
        if not takes:
            raise exceptions.CommandError(f"mcp.probe: {flows} means no MCP flow over HTTP")
        take = takes[0]
        endpoint = script.endpoint(take)
        era = "modern" if take.modern else "legacy"
        what = plan(script, find_probes(settings.rules()), era=era, endpoint=endpoint.url if endpoint is not None else None)
        if not what.bases.found and not what.bases.faulty:
            raise exceptions.CommandError("mcp.probe: no call that the server answered well may be made again")
        if what.calls and yes.lower() not in ("yes", "y", "true"):
            listed = ", ".join(one_line(name, 60) for name in what.calls)
            raise exceptions.CommandError(
                f"mcp.probe: tools would be called, with wrong headers and arguments, too: {listed}; "
                f"`mcp.probe {flows} yes` does so"
            )
        place = Place.of(take.origin + take.path)
        made = prober(what, place, settings.book(), target=take.origin + take.path, budget=BUDGET)
        task = asyncio.get_running_loop().create_task(_run(made, place))
        running: set[asyncio.Task[None]] = self.__dict__.setdefault("_probes", set())
        running.add(task)
        task.add_done_callback(running.discard)
        said = f"probing {take.origin}{take.path} in the {era} era"
        logger.log(ALERT, "mcp.probe: %s", said)
        return said


async def _run(made: Prober, place: Place) -> None:
    try:
        report = await made.run()
    except Unreachable as error:
        logger.warning("mcp.probe: %s", error)
        return
    except Exception as error:
        logger.warning("mcp.probe: fault (%s: %s)", type(error).__name__, error)
        return
    with knowing():
        for line in as_text(report)[:TOLD]:
            logger.log(ALERT, "mcp.probe: %s", line)
    load: Any = ctx.master.load_flow
    for flow in probing.flows_of(report, place):
        await load(flow)
