"""What stands behind /mcp/rpc: the server of `mcp_wiretap.ask` over the traces of the pages, and a bridge from tornado to ASGI.

Loaded with the first question only.
"""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from mitmproxy.tools.web import app as webapp

from mcp_wiretap.ask.http import Endpoint
from mcp_wiretap.ask.server import server
from mcp_wiretap.ask.traces import Trace
from mcp_wiretap.rule import Rule
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.web.gently import gently
from mcp_wiretap.web.site import Site

LIVE = "live traffic"


class Asked:
    """The traces of the pages (`ask.traces.Traces`)."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def traces(self) -> list[Trace]:
        inspectors = self._site.source.inspectors()
        return [Trace(f"loaded file {number}" if number else LIVE, inspector) for number, inspector in enumerate(inspectors)]

    def subject(self, trace: Trace, exchange: Exchange) -> Subject | None:
        return self._site.subject(exchange.flow)

    def rules(self) -> Mapping[str, Rule]:
        return self._site.source.rules()


class Door:
    """The endpoint, started with the first question."""

    def __init__(self, site: Site, hosts: list[str]) -> None:
        self._endpoint = Endpoint(server(Asked(site), run=gently), hosts)
        self._site = site
        self._task: asyncio.Task[None] | None = None
        self._open = asyncio.Event()

    async def answer(self, handler: webapp.RequestHandler) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        await self._open.wait()
        request = handler.request
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method or "",
            "scheme": request.protocol,
            "path": request.path,
            "raw_path": request.path.encode(),
            "root_path": "",
            "query_string": request.query.encode(),
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.get_all()],
            "client": (request.remote_ip or "", 0),
            "server": None,
            "state": {},
        }
        await self._endpoint(scope, _receiver(request.body), _sender(handler))

    async def _run(self) -> None:
        try:
            async with self._endpoint.running():
                self._open.set()
                await asyncio.Event().wait()
        finally:
            self._open.clear()


def _receiver(body: bytes) -> Any:
    given = False

    async def receive() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            await asyncio.Event().wait()  # the answer is short: whether the client has gone does not matter
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _sender(handler: webapp.RequestHandler) -> Any:
    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            handler.set_status(message["status"])
            handler.clear_header("Content-Type")
            for name, value in message.get("headers", ()):
                if name.lower() != b"content-length":  # tornado counts itself
                    handler.set_header(name.decode("latin-1"), value.decode("latin-1"))
        elif message.get("body"):
            handler.write(message["body"])

    return send
