"""What of the legacy revisions a recording uses, with counts, first flows and one message of each kind.

A judge that looks on (`compare.watching`): give it to an Inspector as its judge. Exchanges of the modern era are passed over.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.compare.watching import Watching
from mcp_wiretap.trace.model import Endpoint, Exchange, Message, Session, ToolDefinition
from mcp_wiretap.wire.jsonrpc import id_key
from mcp_wiretap.wire.revision import RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED
from mcp_wiretap.wire.secret import masked

FLOWS = 3  # of one feature that are named
ENDPOINTS = 200
OPEN = 1_000  # questions of servers that wait for an answer
LONGEST = 20_000  # bytes of a message that is kept as an example
METHODS = frozenset(
    {
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
        "tasks/list",
        "tasks/result",
        "tasks/get",
        "tasks/cancel",
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/elicitation/complete",
        "notifications/tasks/status",
    }
)


@dataclass(slots=True)
class Example:
    """One message as it was, secrets masked, and what is needed to say how it would be."""

    flow: str
    message: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)  # the message that answered it, where it is known
    call: dict[str, Any] = field(default_factory=dict)  # of a question of the server: the request on whose stream it came
    definition: ToolDefinition | None = None
    note: str = ""


@dataclass(slots=True)
class Use:
    """How often something was used, and where first."""

    count: int = 0
    flows: list[str] = field(default_factory=list)
    example: Example | None = None

    def add(self, flow: str, example: Example | None = None) -> None:
        self.count += 1
        if len(self.flows) < FLOWS and flow not in self.flows:
            self.flows.append(flow)
        if self.example is None:
            self.example = example


@dataclass(slots=True)
class Server:
    """What one endpoint and its clients used."""

    url: str
    uses: dict[str, Use] = field(default_factory=dict)
    client: dict[str, Any] = field(default_factory=dict)  # clientInfo, capabilities
    server: dict[str, Any] = field(default_factory=dict)  # the result of initialize
    revisions: dict[str, None] = field(default_factory=dict)
    uris: dict[str, None] = field(default_factory=dict)  # subscribed
    methods: Counter[str] = field(default_factory=Counter)
    modern: int = 0  # exchanges of the modern era
    legacy: int = 0
    on_stdio: bool = False

    def use(self, key: str, flow: str, example: Example | None = None) -> Use:
        found = self.uses.setdefault(key, Use())
        found.add(flow, example)
        return found


@dataclass(slots=True)
class Usage(Watching):
    """What every endpoint used, by its URL."""

    servers: OrderedDict[str, Server] = field(default_factory=OrderedDict)
    dropped: int = 0
    _over: set[str] = field(default_factory=set)
    _open: OrderedDict[tuple[int, Any], Example] = field(default_factory=OrderedDict)
    _early: dict[tuple[int, Any], dict[str, Any]] = field(default_factory=dict)  # a recording may tell a stream at its end only

    @property
    def unseen(self) -> int:
        """Answers of clients to requests that are not in the recording."""
        return len(self._early)

    def server(self, endpoint: Endpoint) -> Server | None:
        found = self.servers.get(endpoint.url)
        if found is None:
            if len(self.servers) >= ENDPOINTS:
                self.dropped += 1
                return None
            found = self.servers[endpoint.url] = Server(endpoint.url, on_stdio=endpoint.on_stdio)
        return found

    def requested(self, exchange: Exchange) -> bool:
        added = Watching.requested(self, exchange)
        for message in exchange.sent:
            self._look_at(message)
        return added

    def said(self, message: Message) -> bool:
        added = Watching.said(self, message)
        self._look_at(message)
        return added

    def _look_at(self, message: Message) -> None:
        exchange = message.request.exchange if message.request is not None else message.exchange
        if exchange.claim.modern or exchange.kind != "mcp" or (server := self.server(exchange.endpoint)) is None:
            return
        if message.kind in ("request", "notification") and message.method is not None:
            self._asked(server, message, message.method)
        elif message.kind in ("result", "error"):
            self._answered(server, message)

    def take(self, exchange: Exchange) -> None:
        if exchange.kind != "mcp" or exchange.flow in self._over or (server := self.server(exchange.endpoint)) is None:
            return
        self._over.add(exchange.flow)
        if exchange.claim.modern:
            server.modern += 1
            return
        server.legacy += 1
        self._of_http(server, exchange)

    def _of_http(self, server: Server, exchange: Exchange) -> None:
        flow, fields = exchange.flow, exchange.request_fields
        if server.on_stdio:
            return
        if exchange.http_method in ("GET", "DELETE"):
            server.use(f"http:{exchange.http_method}", flow, Example(flow, note=f"{exchange.http_method} {exchange.url}"))
        if fields.has("mcp-session-id"):
            server.use("header:mcp-session-id", flow, Example(flow, note="Mcp-Session-Id: (masked)"))
        if fields.has("last-event-id"):
            server.use("header:last-event-id", flow, Example(flow, note=f"Last-Event-ID: {fields.first('last-event-id')}"))
        if exchange.batch_items is not None and exchange.http_method == "POST":
            server.use("batch", flow, Example(flow, note=f"{len(exchange.batch_items)} messages in one POST"))
        if exchange.over_http_sse:
            server.use("http+sse", flow)
        if exchange.stream is not None and exchange.http_method == "POST":
            server.use("stream", flow)

    def _asked(self, server: Server, message: Message, method: str) -> None:
        key = f"{message.party}:{method}"
        server.methods[key] += 1
        example = self._example(message)
        if method in METHODS:
            server.use(key, message.exchange.flow, example)
        elif message.party == "client" and message.kind == "request":
            server.use("call", message.exchange.flow, example)
        if method == "initialize" and message.party == "client":
            server.client = server.client or _kept(message.params)
        if method == "resources/subscribe" and isinstance(uri := message.params.get("uri"), str) and len(server.uris) < FLOWS:
            server.uris[uri] = None
        if isinstance(message.params.get("task"), dict):
            server.use("task", message.exchange.flow, example)
        if message.kind == "request" and message.party == "server":
            self._wait(message, example)

    def _answered(self, server: Server, message: Message) -> None:
        exchange, request = message.exchange, message.request
        if message.kind == "error":
            code = message.error_code
            if message.party == "server" and code in (RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED):
                example = self._example(message)
                example.call = _kept(request.rpc.body) if request is not None else {}
                server.use(f"error:{code}", exchange.flow, example)
            return
        if message.party == "client":
            key = self._key(exchange.session, message)
            waiting = self._open.pop(key, None)
            if waiting is not None:
                waiting.answer = _kept(message.rpc.body)
            elif len(self._early) < OPEN:
                self._early[key] = _kept(message.rpc.body)
            return
        if request is None:
            return
        if request.method == "initialize":
            server.server = server.server or _kept(message.result)
            if isinstance(revision := message.result.get("protocolVersion"), str):
                server.revisions[revision[:40]] = None
        use = server.uses.get("call")
        if use is not None and use.example is not None and not use.example.answer and use.example.flow == exchange.flow:
            use.example.answer = _kept(message.rpc.body)
        if "resultType" not in message.result:
            server.use("result", exchange.flow)

    def _example(self, message: Message) -> Example:
        exchange = message.exchange
        example = Example(exchange.flow, _kept(message.rpc.body))
        if message.party == "client" and exchange.tool is not None:
            example.definition = exchange.tool.definition
        if message.party == "server" and exchange.request is not None:
            example.call = _kept(exchange.request.rpc.body)
        return example

    def _wait(self, message: Message, example: Example) -> None:
        key = self._key(message.exchange.session, message)
        if key in self._early:
            example.answer = self._early.pop(key)
            return
        self._open[key] = example
        while len(self._open) > OPEN:
            self._open.popitem(last=False)

    def _key(self, session: Session | None, message: Message) -> tuple[int, Any]:
        return id(session), id_key(message.rpc.id)


def _kept(value: Any) -> dict[str, Any]:
    """An object as it may be shown later; empty where it is too long to be an example."""
    if not isinstance(value, dict):
        return {}
    made: dict[str, Any] = masked(value)
    return made if len(str(made)) <= LONGEST else {}
