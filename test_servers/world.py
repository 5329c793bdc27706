"""What one running server knows: its items, its counters, its legacy sessions; and one tool call seen from a tool.

Nothing here knows a transport. `World` outlives requests; `Call` is one request.
"""

import asyncio
import json
import uuid
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from test_servers.registry import Era, PromptItem, ResourceItem, TemplateItem, ToolItem

if TYPE_CHECKING:
    from test_servers.config import Config

# The SDK warns on every use of a feature that 2026-07-28 deprecates; serving those features is the purpose here.
warnings.filterwarnings("ignore", category=MCPDeprecationWarning)

LEVELS: tuple[types.LoggingLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
STATUS_KEY = "test_servers.status"
"""Where in the ASGI scope a handler leaves the HTTP status it wants for its error."""

Context = ServerRequestContext[Any, Any]


def era_of(ctx: Context) -> Era:
    return "modern" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"


def refuse(ctx: Context, code: int, message: str, data: Any = None, *, status: int | None = None) -> MCPError:
    """The error to raise; `status` overrides the HTTP status that the SDK would derive from the code."""
    if status is not None and ctx.request is not None:
        ctx.request.scope[STATUS_KEY] = status
    return MCPError(code, message, data)


@dataclass(eq=False)
class LegacySession:
    """One handshake-era connection: what it subscribed to, which logs it wants, what its tasks are."""

    connection: Connection
    subscriptions: set[str] = field(default_factory=set)
    level: types.LoggingLevel = "debug"


class World:
    """The state of one server, shared by all its requests."""

    def __init__(self, config: "Config") -> None:
        self.config = config
        self.tools: dict[str, ToolItem] = {}
        self.resources: dict[str, ResourceItem] = {}
        self.templates: dict[str, TemplateItem] = {}
        self.prompts: dict[str, PromptItem] = {}
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)
        self.sessions: set[LegacySession] = set()
        self.modern_tasks: dict[str, Any] = {}
        self.legacy_tasks: dict[str, Any] = {}
        self.background: set[asyncio.Task[None]] = set()
        self._minted = 0

    def mint(self) -> int:
        """The next value of the counter that keeps states of one server apart."""
        self._minted += 1
        return self._minted

    def session(self, ctx: Context) -> LegacySession:
        """The legacy session of a request, made at its first use and forgotten when its connection closes."""
        # The SDK keeps no public way from a request to its connection, and per-connection state lives only there.
        connection: Connection = ctx.session._connection
        known = connection.state.get("test_servers")
        if isinstance(known, LegacySession):
            return known
        session = LegacySession(connection)
        connection.state["test_servers"] = session
        self.sessions.add(session)
        connection.exit_stack.callback(self.sessions.discard, session)
        return session

    async def tools_changed(self) -> None:
        await self._announce(ToolsListChanged(), lambda s: s.connection.send_tool_list_changed(), "tools")

    async def prompts_changed(self) -> None:
        await self._announce(PromptsListChanged(), lambda s: s.connection.send_prompt_list_changed(), "prompts")

    async def resources_changed(self) -> None:
        await self._announce(ResourcesListChanged(), lambda s: s.connection.send_resource_list_changed(), "resources")

    async def resource_updated(self, uri: str) -> None:
        await self.bus.publish(ResourceUpdated(uri=uri))
        for session in [s for s in self.sessions if uri in s.subscriptions]:
            await session.connection.send_resource_updated(uri)

    async def _announce(self, event: ServerEvent, tell: Callable[[LegacySession], Any], kind: str) -> None:
        if not getattr(self.config.list_changed, kind):
            return
        await self.bus.publish(event)
        for session in list(self.sessions):
            await tell(session)

    def visible_tools(self, ctx: Context) -> list[ToolItem]:
        """The tools this client may see: of its era, and not gated behind an extension it did not declare."""
        era = era_of(ctx)
        return [t for t in self.tools.values() if era in t.eras and self.missing_extension(ctx, t.key) is None]

    def missing_extension(self, ctx: Context, tool: str) -> str | None:
        """The extension that gates `tool` and that the client did not declare, if there is one."""
        declared = declared_extensions(ctx)
        for extension, gated in self.config.extension_gated_tools.items():
            if tool in gated and extension not in declared:
                return extension
        return None


def declared_extensions(ctx: Context) -> dict[str, Any]:
    capabilities = ctx.session.client_capabilities
    return (capabilities.extensions if capabilities is not None else None) or {}


def missing_capability(ctx: Context, required: dict[str, Any]) -> MCPError:
    """-32021 that names what the client did not declare."""
    names = ", ".join(sorted(required))
    return refuse(
        ctx,
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"This request needs a client capability that was not declared: {names}",
        {"requiredCapabilities": required},
    )


def undeclared(capabilities: types.ClientCapabilities | None, request: types.InputRequest) -> dict[str, Any] | None:
    """The capability that `request` needs and `capabilities` lacks, in the shape of requiredCapabilities."""
    have = capabilities or types.ClientCapabilities()
    match request:
        case types.ListRootsRequest():
            return None if have.roots is not None else {"roots": {}}
        case types.CreateMessageRequest():
            if have.sampling is None:
                return {"sampling": {}}
            wants_tools = request.params.tools is not None or request.params.tool_choice is not None
            return {"sampling": {"tools": {}}} if wants_tools and have.sampling.tools is None else None
        case types.ElicitRequest():
            elicitation = have.elicitation
            if request.params.mode == "url":
                return None if elicitation is not None and elicitation.url is not None else {"elicitation": {"url": {}}}
            # An empty elicitation capability means form mode; one that names only url does not.
            form = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
            return None if form else {"elicitation": {"form": {}}}


@dataclass(slots=True)
class Call:
    """One tools/call or prompts/get: its arguments, the answers it brought, and the ways back to the client."""

    world: World
    ctx: Context
    name: str
    arguments: dict[str, Any]
    responses: dict[str, Any]
    """Plain JSON of the inputResponses."""
    state: str | None
    """The requestState as this server minted it (unsealed)."""

    @property
    def era(self) -> Era:
        return era_of(self.ctx)

    @property
    def takes_tasks(self) -> bool:
        """Whether the answer may be a task of the extension: served here, and declared by this very request."""
        served = self.world.config.tasks_extension and self.era == "modern"
        return served and TASKS_EXTENSION in declared_extensions(self.ctx)

    async def log(self, level: types.LoggingLevel, data: Any, logger: str = "test-server") -> None:
        """Send a log message on this call's stream, if the server logs and the client asked for that level."""
        if not self.world.config.logging:
            return
        if self.era == "legacy" and LEVELS.index(level) < LEVELS.index(self.world.session(self.ctx).level):
            return
        await self.ctx.session.send_log_message(level, data, logger, related_request_id=self.ctx.request_id)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        await self.ctx.session.report_progress(progress, total, message)

    def ask(self, requests: dict[str, types.InputRequest], state: str | None = None) -> types.InputRequiredResult:
        """An input_required result, or -32021 when the client did not declare what one of the requests needs."""
        for request in requests.values():
            if missing := self.lacks(request):
                raise missing_capability(self.ctx, missing)
        return types.InputRequiredResult(input_requests=requests or None, request_state=state)

    def lacks(self, request: types.InputRequest) -> dict[str, Any] | None:
        """What the client of this call did not declare of what `request` needs."""
        return undeclared(self.ctx.session.client_capabilities, request)

    async def ask_now(self, request: types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest) -> Any:
        """Legacy era: send the request to the client on this call's stream and return its result as plain JSON."""
        results: dict[str, type[Any]] = {
            "elicitation/create": types.ElicitResult,
            "sampling/createMessage": types.CreateMessageResult,
            "roots/list": types.ListRootsResult,
        }
        answer = await self.ctx.session.send_request(
            request,
            results[request.method],
            metadata=ServerMessageMetadata(related_request_id=self.ctx.request_id),
        )
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def plain(responses: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """inputResponses models as the JSON they came from."""
    return {key: value.model_dump(by_alias=True, mode="json", exclude_none=True) for key, value in responses}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fresh_id() -> str:
    return str(uuid.uuid4())
