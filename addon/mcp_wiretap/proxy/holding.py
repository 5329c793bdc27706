"""Live flows held and refused by what is in them (options `mcp_intercept`, `mcp_remirror`, `mcp_gate`).

A request is looked at when its inspection is done; the hook waits for that. A flow that is held is mitmproxy's to resume.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from mitmproxy import ctx
from mitmproxy.http import HTTPFlow
from mitmproxy.log import ALERT

from mcp_wiretap.proxy import gate
from mcp_wiretap.proxy.capture import Capture
from mcp_wiretap.proxy.changes import Request
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.proxy.remirror import remirror
from mcp_wiretap.proxy.watch import Watch
from mcp_wiretap.steering import Break
from mcp_wiretap.trace.lists.tools import Tools
from mcp_wiretap.trace.model import Exchange, ToolDefinition
from mcp_wiretap.wire.secret import visible

logger = logging.getLogger(__name__)

PATIENCE = 20.0  # seconds that the gate waits for the inspection of a request, before it refuses it unread

type Find = Callable[[HTTPFlow], tuple[Watch, Exchange] | None]


class Holding:
    """`find` gives what the live trace knows of a flow."""

    def __init__(self, capture: Capture, find: Find, settings: Callable[[], Settings], faults: Faults) -> None:
        self._capture = capture
        self._find = find
        self._settings = settings
        self._faults = faults
        capture.leaving, capture.answer_leaving = self.leaving, self.answer_leaving

    @property
    def needed(self) -> bool:
        """Whether anything is to be held or refused."""
        settings = self._settings()
        return bool(settings.gate or settings.breaks)

    # The request

    def request_head(self, flow: HTTPFlow) -> None:
        """mitmproxy would send a body that is streamed before anybody can read it: with a gate it goes nowhere."""
        if not self._settings().gate or flow.request.method in ("GET", "HEAD", "OPTIONS", "DELETE"):
            return
        late = bool(ctx.options.stream_large_bodies) and "content-length" not in flow.request.headers
        if (flow.request.stream or late) and flow.killable:
            flow.metadata[gate.METADATA] = "the body is streamed (stream_large_bodies) and cannot be read before it is sent"
            logger.warning("mcp_gate: %s", flow.metadata[gate.METADATA])
            flow.kill()

    async def request(self, flow: HTTPFlow, after: Callable[[], None]) -> None:
        """Inspect a request, then refuse it, hold it, or let it go on. `after` is done whatever becomes of it."""
        try:
            exchange = await self._inspected(flow)
            if not self._refused(flow, exchange) and exchange is not None and flow.is_replay is None:
                self._hold_request(flow, exchange)
        except Exception as error:
            self._faults.note("mcp_intercept", error, flow.id)
        finally:
            after()

    async def _inspected(self, flow: HTTPFlow) -> Exchange | None:
        done: list[bool] = []
        try:
            unfinished = self._capture.request(flow)
            self._capture.inspection.now("gate", flow, lambda: done.append(True))
            if unfinished is not None:
                await unfinished
            waited = 0.0
            while not done and waited < PATIENCE:
                await asyncio.sleep(0.02)
                waited += 0.02
        except Exception as error:
            self._faults.note("request", error, flow.id)
            return None
        found = self._find(flow) if done else None
        return found[1] if found is not None else None

    def _refused(self, flow: HTTPFlow, exchange: Exchange | None) -> bool:
        lines = self._settings().gate
        if not lines or flow.response is not None:
            return False
        try:
            found = gate.refusal(flow, exchange, lines)
        except Exception as error:
            self._faults.note("mcp_gate", error, flow.id)
            found = gate.unread("a fault of the gate")
        if found is None:
            return False
        flow.response = found.response()
        flow.metadata[gate.METADATA] = visible(found.message)
        self._capture.changes.ours(flow, "gate")
        logger.warning("mcp_gate: %d %d %s", found.status, found.code, visible(found.message))
        return True

    def _hold_request(self, flow: HTTPFlow, exchange: Exchange) -> None:
        for line in self._settings().breaks:
            if line.at == "request" and exchange.kind == "mcp" and _fits(line, exchange):
                self._hold(flow, exchange, "request")
                return

    # The answer

    def waits_for_answer(self, flow: HTTPFlow) -> bool:
        """Whether the answer is to be held: then it must not be passed on as it comes."""
        breaks = self._settings().breaks
        found = self._find(flow) if any(line.at == "answer" for line in breaks) else None
        if found is None or flow.is_replay is not None:
            return False
        exchange = found[1]
        if not any(line.at == "answer" and line.means(exchange.method, exchange.name) for line in breaks):
            return False
        exchange.held = "its answer is kept back until it is whole: progress comes late"
        return True

    async def response(self, flow: HTTPFlow, unfinished: Awaitable[None] | None) -> None:
        try:
            if unfinished is not None:
                await unfinished
            found = self._find(flow)
            if found is None or flow.is_replay is not None or (flow.response is not None and flow.response.stream):
                return
            for line in self._settings().breaks:
                if (line.at == "answer" or line.rule) and _fits(line, found[1]):
                    self._hold(flow, found[1], "answer")
                    return
        except Exception as error:
            self._faults.note("mcp_intercept", error, flow.id)

    def _hold(self, flow: HTTPFlow, exchange: Exchange, what: str) -> None:
        since = datetime.now().astimezone()
        exchange.held = f"{what} held since {since:%H:%M:%S}, while the client waits"
        flow.intercept()
        self._show(flow, exchange)

    # The end of the chain

    def leaving(self, flow: HTTPFlow, before: Request | None) -> None:
        """The request was resumed, or not held at all: what a person changed is mirrored."""
        found = self._find(flow)
        if found is None:
            return
        exchange = found[1]
        if exchange.held:
            exchange.held = ""
            self._show(flow, exchange)
        if before is None or not self._settings().remirror or flow.error is not None or flow.response is not None:
            return
        if flow.request.raw_content == before.body:
            return
        for line in remirror(flow, before.head.fields, exchange, self._definitions(found[0], exchange)):
            logger.log(ALERT, "mcp_remirror: %s", visible(line))

    @staticmethod
    def _definitions(watch: Watch, exchange: Exchange) -> Callable[[str], ToolDefinition | None]:
        tools = watch.inspector.tracker(Tools)
        return lambda name: tools.definition(exchange, name)

    def answer_leaving(self, flow: HTTPFlow) -> None:
        found = self._find(flow)
        if found is not None and found[1].held:
            found[1].held = ""
            self._show(flow, found[1])

    def _show(self, flow: HTTPFlow, exchange: Exchange) -> None:
        found = self._find(flow)
        if found is not None:
            found[0].show([exchange])


def _fits(line: Break, exchange: Exchange) -> bool:
    if line.rule:
        return any(line.rule in (finding.rule, finding.rule.rstrip("0123456789")) for finding in exchange.findings)
    if line.era:
        return exchange.era == line.era or (exchange.era == "unknown" and _claims(exchange) == line.era)
    return line.means(exchange.method, exchange.name)


def _claims(exchange: Exchange) -> str:
    """The era that a request claims, while its server's is not known."""
    return "modern" if exchange.claim.modern else "legacy" if exchange.claim.kind.startswith("legacy") else ""
