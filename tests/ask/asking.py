"""Scripts as traces that can be asked about, and the server's endpoint asked over HTTP without a socket."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp_wiretap.ask.http import Endpoint
from mcp_wiretap.ask.server import server
from mcp_wiretap.ask.traces import Held, Trace
from mcp_wiretap.compare.profile import Profile
from mcp_wiretap.example import read_script
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.events import Event, ExchangeEnded, RequestSeen, ResponseStarted
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject, read_alone
from mcp_wiretap.wire.headers import Fields

RULES = {rule.id: rule for rule in find_rules()}
MODERN = "2026-07-28"
HOST = "127.0.0.1:8081"


def held(*scripts: str) -> Held:
    traces: list[Trace] = []
    events: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for number, script in enumerate(scripts, 1):
        profile = Profile(RuleBook.of(RULES.values()))
        inspector = Inspector(profile)
        name = f"{number}.flow"
        for event in read_script(script):
            events[name, event.flow].append(event)
            inspector.feed(event)
        inspector.finish()
        profile.close()
        traces.append(Trace(name, inspector, profile))

    def again(trace: Trace, exchange: Exchange) -> Subject | None:
        whole = read_alone(events[trace.name, exchange.flow])
        return Subject(exchange, whole, rules=RULES) if whole is not None else None

    return Held(traces, RULES, again)


class Http:
    """The endpoint, and what passed as the events that the inspector would see."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.events: list[Event] = []

    async def ask(self, body: Any, method: str = "POST", **headers: str) -> tuple[int, dict[str, str], bytes]:
        content = json.dumps(body).encode() if body is not None else b""
        named = {"host": HOST, "accept": "application/json, text/event-stream", "content-type": "application/json"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        pairs = [(name.encode(), value.encode()) for name, value in {**named, "content-length": str(len(content))}.items()]
        status, answered, received = 0, list[tuple[bytes, bytes]](), bytearray()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status, answered = message["status"], list(message.get("headers", ()))
            received.extend(message.get("body", b""))

        scope = {"type": "http", "method": method, "path": "/mcp", "headers": pairs, "query_string": b"", "root_path": ""}
        await self._endpoint(scope | {"scheme": "http", "server": None, "client": None, "http_version": "1.1"}, receive, send)
        flow, at = f"flow-{len(self.events)}", float(len(self.events))
        self.events += [
            RequestSeen(flow, at, at, method, "http", "127.0.0.1", 8081, "/mcp", Fields(pairs), content, "c", authority=HOST),
            ResponseStarted(flow, at + 0.5, status, Fields(answered)),
            ExchangeEnded(flow, at + 0.6, bytes(received), False, "complete"),
        ]
        return status, {name.decode(): value.decode() for name, value in answered}, bytes(received)

    async def modern(self, method: str, named: str | None = None, /, **params: Any) -> Any:
        """A request of the modern era as it must be; its answer's body."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": len(self.events), "method": method, "params": {**params, "_meta": meta}}
        mirrored = {"mcp_protocol_version": MODERN, "mcp_method": method} | ({"mcp_name": named} if named is not None else {})
        _, _, answer = await self.ask(body, **mirrored)
        return json.loads(answer)

    def findings(self) -> list[str]:
        """What our own rules say of all that passed."""
        inspector = Inspector(RuleBook.of(RULES.values()))
        for event in self.events:
            inspector.feed(event)
        inspector.finish()
        return [f"{f.severity} {f.rule} {f.party}: {f.message}" for e in inspector.exchanges.values() for f in e.findings]


@asynccontextmanager
async def over_http(of: Held) -> AsyncIterator[Http]:
    endpoint = Endpoint(server(of), ["127.0.0.1:*"])
    async with endpoint.running():
        yield Http(endpoint)
