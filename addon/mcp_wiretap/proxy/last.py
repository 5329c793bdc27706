"""The addon object at the very end of the chain: it sees what mitmproxy is about to send on.

mitmproxy has no hook for that, nor for "resumed": the core waits for a held flow after the last addon. So this one waits there
itself. It is added only while something can change traffic: each addon object costs each flow a little.
"""

import asyncio
from typing import Protocol

from mitmproxy import ctx, hooks
from mitmproxy.http import HTTPFlow

from mcp_wiretap.proxy.changes import Answer, Request, head_of
from mcp_wiretap.proxy.faults import Faults

POLL = 0.25  # seconds: a flow that is killed while it is held is not resumed


class Ends(Protocol):
    """Who wants to know what leaves."""

    def request_leaves(self, flow: HTTPFlow, before: Request | None) -> None:
        """The request goes to the server. `before`: how it was when it was held; None: it was not."""

    def response_head_leaves(self, flow: HTTPFlow) -> None:
        """All addons have seen the head of the response."""

    def response_leaves(self, flow: HTTPFlow, before: Answer | None) -> None:
        """The answer goes to the client."""


class Last:
    """`ends` is asked for each flow; a fault of ours harms nobody."""

    name = "mcpwiretaplast"

    def __init__(self, ends: Ends, faults: Faults) -> None:
        self.ends = ends
        self.faults = faults

    async def request(self, flow: HTTPFlow) -> None:
        before: Request | None = None
        if flow.intercepted:
            before = Request(head_of(flow), flow.request.data.content)
            await _resumed(flow)
        try:
            self.ends.request_leaves(flow, before)
        except Exception as error:
            self.faults.note("request leaves", error, flow.id)

    def responseheaders(self, flow: HTTPFlow) -> None:
        try:
            self.ends.response_head_leaves(flow)
        except Exception as error:
            self.faults.note("response head leaves", error, flow.id)

    async def response(self, flow: HTTPFlow) -> None:
        before: Answer | None = None
        if flow.intercepted and flow.response is not None:
            data = flow.response.data
            before = Answer(data.status_code, data.headers.fields, data.content)
            await _resumed(flow)
        try:
            self.ends.response_leaves(flow, before)
        except Exception as error:
            self.faults.note("response leaves", error, flow.id)


async def _resumed(flow: HTTPFlow) -> None:
    ctx.master.addons.trigger(hooks.UpdateHook([flow]))  # mitmproxy would tell the UIs after the last addon
    while flow.intercepted:
        try:
            await asyncio.wait_for(flow.wait_for_resume(), POLL)
        except TimeoutError:
            continue
