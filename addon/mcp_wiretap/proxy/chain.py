"""Addon objects at places of the chain where ours does not stand: they see what came, and what mitmproxy is about to send on.

`First` is at the start: a script that was loaded before ours may change a message before we see it. `Last` is at the very end:
mitmproxy has no hook for "resumed", its core waits for a held flow after the last addon, so this one waits there itself.
`BeforeSave` stands in front of the addon that writes flows to a file (`-w`), which does so before a flow can be held: what
scripts and options made of an answer is to be in the flow by then. They are added only while something can change traffic: each
addon object costs each flow a little.
"""

import asyncio
from collections.abc import Awaitable, Callable
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

    def request_came(self, flow: HTTPFlow) -> None:
        """No addon has seen the request yet."""

    def response_came(self, flow: HTTPFlow) -> None:
        """No addon has seen the whole answer yet."""

    def response_settles(self, flow: HTTPFlow) -> Awaitable[None] | None:
        """All addons but those that hold flows have seen the answer. What is returned may be waited for."""

    def response_leaves(self, flow: HTTPFlow, before: Answer | None) -> None:
        """The answer goes to the client."""


class _Placed:
    """An object with a place of its own in the chain (private to mitmproxy: `chain`)."""

    def __init__(self, ends: Ends, faults: Faults) -> None:
        self.ends = ends
        self.faults = faults

    def place(self) -> None:
        """Join the chain, at its end."""
        ctx.master.addons.add(self)

    def leave(self) -> None:
        """Leave the chain as it was."""
        if self in ctx.master.addons.chain:
            ctx.master.addons.remove(self)

    def told[T](self, tell: Callable[[HTTPFlow], T], flow: HTTPFlow) -> T | None:
        """What it returns; None after a fault of ours, which harms nobody."""
        try:
            return tell(flow)
        except Exception as error:
            self.faults.note("passing message", error, flow.id)
            return None


class First(_Placed):
    """Put at the start of the chain by `place`."""

    name = "mcpwiretapfirst"

    def place(self) -> None:
        super().place()
        chain = ctx.master.addons.chain
        chain.remove(self)
        chain.insert(0, self)

    def requestheaders(self, flow: HTTPFlow) -> None:
        self.told(self.ends.request_came, flow)

    def request(self, flow: HTTPFlow) -> None:
        self.told(self.ends.request_came, flow)

    def response(self, flow: HTTPFlow) -> None:
        self.told(self.ends.response_came, flow)


class BeforeSave(_Placed):
    """Put in front of mitmproxy's `save` by `place`; where there is none, it has nothing to do."""

    name = "mcpwiretapsave"

    def place(self) -> None:
        save = ctx.master.addons.get("save")
        if save in ctx.master.addons.chain:
            super().place()
            chain = ctx.master.addons.chain
            chain.remove(self)
            chain.insert(chain.index(save), self)

    async def response(self, flow: HTTPFlow) -> None:
        unfinished = self.told(self.ends.response_settles, flow)
        if unfinished is not None:
            await unfinished  # so that the file holds the verdict


class Last(_Placed):
    """At the end of the chain."""

    name = "mcpwiretaplast"

    async def request(self, flow: HTTPFlow) -> None:
        before: Request | None = None
        if flow.intercepted:
            before = Request(head_of(flow), flow.request.data.content)
            await _resumed(flow)
        self.told(lambda leaving: self.ends.request_leaves(leaving, before), flow)

    def responseheaders(self, flow: HTTPFlow) -> None:
        self.told(self.ends.response_head_leaves, flow)

    async def response(self, flow: HTTPFlow) -> None:
        before: Answer | None = None
        if flow.intercepted and flow.response is not None:
            data = flow.response.data
            before = Answer(data.status_code, data.headers.fields, data.content)
            await _resumed(flow)
        self.told(lambda leaving: self.ends.response_leaves(leaving, before), flow)


async def _resumed(flow: HTTPFlow) -> None:
    ctx.master.addons.trigger(hooks.UpdateHook([flow]))  # mitmproxy would tell the UIs after the last addon
    while flow.intercepted:
        try:
            await asyncio.wait_for(flow.wait_for_resume(), POLL)
        except TimeoutError:
            continue
