"""A config made into an MCP server: handlers, capabilities, pages. Knows no HTTP.

The SDK's low-level server does the protocol; what is added here is what the SDK leaves to the application, and what it
does not do: capabilities by era, -32021 for input that the client did not declare, HTTP 200 for "unknown tool".
"""

import base64
import binascii
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.uri_template import UriTemplate
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from test_servers import tasks_legacy, tasks_modern
from test_servers.config import Config, PresetRef
from test_servers.misbehaviours import Fault, all_faults
from test_servers.presets import all_presets
from test_servers.registry import Item, Kind, TaskPlan, ToolItem, text_result
from test_servers.world import TASKS_EXTENSION, Call, Context, World, compact, era_of, missing_capability, plain, refuse


class ComposedServer(Server[Any]):
    """The SDK's server with the world of its config, and capabilities that say what the config says."""

    def __init__(self, config: Config, world: World, **handlers: Any) -> None:
        info = config.server_info
        super().__init__(info.name, version=info.version, title=info.title, instructions=config.instructions, **handlers)
        self.config = config
        self.world = world
        self.faults: list[Fault] = []

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """What is advertised; `protocol_version` is None for a handshake."""
        config, modern = self.config, protocol_version in MODERN_PROTOCOL_VERSIONS
        serves = self._request_handlers.__contains__
        changed = config.list_changed
        extra = dict(config.extensions)
        if modern and config.tasks_extension:
            extra[TASKS_EXTENSION] = {}
        tasks = None
        if config.tasks is not None and not modern:
            tasks = tasks_legacy.capability(config.tasks)
        return types.ServerCapabilities(
            tools=types.ToolsCapability(list_changed=changed.tools) if serves("tools/list") else None,
            resources=types.ResourcesCapability(subscribe=config.subscriptions, list_changed=changed.resources)
            if serves("resources/list")
            else None,
            prompts=types.PromptsCapability(list_changed=changed.prompts) if serves("prompts/list") else None,
            logging=types.LoggingCapability() if config.logging else None,
            completions=types.CompletionsCapability() if serves("completion/complete") else None,
            extensions=extra or None,
            tasks=tasks,
        )


def compose(config: Config) -> ComposedServer:
    """The server that `config` describes, faults included."""
    # The SDK logs every refusal of a state or a crash of a handler; on show here, both are wanted and seen on the wire.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    world = World(config)
    world.tools.update((item.key, item) for item in _items("tool", config.tools) if isinstance(item, ToolItem))
    world.resources.update((item.key, item) for item in _items("resource", config.resources))  # type: ignore[misc]
    world.templates.update((item.key, item) for item in _items("resourceTemplate", config.resource_templates))  # type: ignore[misc]
    world.prompts.update((item.key, item) for item in _items("prompt", config.prompts))  # type: ignore[misc]

    server = ComposedServer(config, world, **_handlers(config, world))
    if config.tasks_extension:
        tasks_modern.install(server, world)
    if config.tasks is not None:
        tasks_legacy.install(server, world, config.tasks)
    if config.request_state == "sealed":
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=config.server_info.name))
    server.middleware.append(_remember_sessions(world))
    kinds = all_faults()
    for reference in config.faults:
        made = kinds[reference.fault].make(**reference.given())
        made.on_server(server)
        server.faults.append(made)
    return server


def items_of(kind: Kind, reference: PresetRef) -> list[Item]:
    """What one use of a preset makes."""
    return all_presets(kind)[reference.preset].make(reference.given())


def _items(kind: Kind, references: Iterable[PresetRef]) -> list[Item]:
    return [item for reference in references for item in items_of(kind, reference)]


def _remember_sessions(world: World) -> Any:
    async def middleware(ctx: Context, call_next: CallNext) -> HandlerResult:
        if era_of(ctx) == "legacy":
            world.session(ctx)
        return await call_next(ctx)

    return middleware


def _handlers(config: Config, world: World) -> dict[str, Any]:
    handlers: dict[str, Any] = {}
    if config.tools:
        handlers |= {"on_list_tools": _list_tools(world), "on_call_tool": _call_tool(world)}
    if config.resources or config.resource_templates:
        handlers |= {
            "on_list_resources": _list_resources(world),
            "on_list_resource_templates": _list_templates(world),
            "on_read_resource": _read_resource(world),
        }
    if config.prompts:
        handlers |= {"on_list_prompts": _list_prompts(world), "on_get_prompt": _get_prompt(world)}
    if any(p.completions for p in world.prompts.values()) or any(t.completions for t in world.templates.values()):
        handlers["on_completion"] = _complete(world)
    if config.logging:
        handlers["on_set_logging_level"] = _set_level(world)
    if config.subscriptions and (config.resources or config.resource_templates):
        handlers |= {"on_subscribe_resource": _subscribe(world), "on_unsubscribe_resource": _unsubscribe(world)}
    changed = config.list_changed
    if config.subscriptions or changed.tools or changed.resources or changed.prompts:
        handlers["on_subscriptions_listen"] = _listen(world)
    return handlers


def page_of[T](ctx: Context, items: Sequence[T], size: int | None, cursor: str | None) -> tuple[list[T], str | None]:
    """The page that `cursor` names and the cursor of the next one; -32602 for a cursor never issued."""
    start = 0
    if cursor is not None:
        try:
            start = int(base64.b64decode(cursor, validate=True).decode().removeprefix("after:"))
        except (binascii.Error, ValueError):
            start = -1
        if size is None or not 0 < start < len(items) or start % size:
            raise refuse(ctx, types.INVALID_PARAMS, "This cursor was not issued by this server", {"cursor": cursor})
    end = len(items) if size is None else start + size
    following = base64.b64encode(f"after:{end}".encode()).decode() if end < len(items) else None
    return list(items[start:end]), following


def _list_tools(world: World) -> Any:
    async def list_tools(ctx: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        tools = []
        for item in world.visible_tools(ctx):
            tools += [item.definition] * (2 if item.key in world.config.duplicate_tool_names else 1)
        page, following = page_of(ctx, tools, world.config.max_page_size.tools, params.cursor)
        return types.ListToolsResult(tools=page, next_cursor=following)

    return list_tools


def _call_tool(world: World) -> Any:
    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        item = world.tools.get(params.name)
        if item is None or era_of(ctx) not in item.eras:
            raise refuse(ctx, types.INVALID_PARAMS, f"There is no tool named {params.name}", status=200)
        if extension := world.missing_extension(ctx, item.key):
            raise missing_capability(ctx, {"extensions": {extension: {}}})
        arguments = params.arguments or {}
        if fault := argument_fault(item, arguments):
            if world.config.argument_errors == "protocol":
                raise refuse(ctx, types.INVALID_PARAMS, f"Invalid arguments for {item.key}: {fault}")
            return text_result(f"The arguments do not fit: {fault}", is_error=True)
        call = Call(world, ctx, item.key, arguments, plain((params.input_responses or {}).items()), params.request_state)
        answer = await item.run(call)
        if isinstance(answer, TaskPlan):
            return tasks_modern.start(call, answer)
        return text_result(answer) if isinstance(answer, str) else answer

    return call_tool


def argument_fault(item: ToolItem, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, in one line, or None."""
    errors = Draft202012Validator(item.definition.input_schema).iter_errors(arguments)
    first = min(errors, key=lambda error: len(error.path), default=None)
    return None if first is None else f"{first.json_path}: {first.message}"


def _list_resources(world: World) -> Any:
    async def list_resources(ctx: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        resources = [item.definition for item in world.resources.values()]
        page, following = page_of(ctx, resources, world.config.max_page_size.resources, params.cursor)
        return types.ListResourcesResult(resources=page, next_cursor=following)

    return list_resources


def _list_templates(world: World) -> Any:
    async def list_templates(ctx: Context, params: types.PaginatedRequestParams) -> types.ListResourceTemplatesResult:
        templates = [item.definition for item in world.templates.values()]
        page, following = page_of(ctx, templates, world.config.max_page_size.resource_templates, params.cursor)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=following)

    return list_templates


def _read_resource(world: World) -> Any:
    async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri in world.resources:
            return types.ReadResourceResult(contents=list(world.resources[uri].read()))
        for item in world.templates.values():
            values = UriTemplate.parse(item.key).match(uri)
            if values is not None:
                return types.ReadResourceResult(contents=list(item.read(uri, dict(values))))
        # -32002 belongs to the earlier revisions and was retired with 2026-07-28.
        code = types.INVALID_PARAMS if era_of(ctx) == "modern" else -32002
        raise refuse(ctx, code, f"There is no resource {uri}", {"uri": uri}, status=200)

    return read_resource


def _list_prompts(world: World) -> Any:
    async def list_prompts(ctx: Context, params: types.PaginatedRequestParams) -> types.ListPromptsResult:
        prompts = [item.definition for item in world.prompts.values() if era_of(ctx) in item.eras]
        page, following = page_of(ctx, prompts, world.config.max_page_size.prompts, params.cursor)
        return types.ListPromptsResult(prompts=page, next_cursor=following)

    return list_prompts


def _get_prompt(world: World) -> Any:
    async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> HandlerResult:
        item = world.prompts.get(params.name)
        if item is None or era_of(ctx) not in item.eras:
            raise refuse(ctx, types.INVALID_PARAMS, f"There is no prompt named {params.name}", status=200)
        given = params.arguments or {}
        missing = [a.name for a in item.definition.arguments or [] if a.required and a.name not in given]
        if missing:
            raise refuse(ctx, types.INVALID_PARAMS, f"The prompt needs {', '.join(missing)}", {"missing": missing})
        responses = plain((params.input_responses or {}).items())
        answer = await item.get(Call(world, ctx, params.name, dict(given), responses, params.request_state))
        if isinstance(answer, types.InputRequiredResult):
            return answer
        return types.GetPromptResult(description=item.definition.description, messages=answer)

    return get_prompt


def _complete(world: World) -> Any:
    async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        reference = params.ref
        known: Any
        if isinstance(reference, types.PromptReference):
            known = world.prompts.get(reference.name)
        else:
            known = world.templates.get(reference.uri)
        if known is None:
            raise refuse(ctx, types.INVALID_PARAMS, f"There is nothing to complete for {compact(reference.model_dump())}")
        typed = params.argument.value.casefold()
        values = [v for v in known.completions.get(params.argument.name, []) if v.casefold().startswith(typed)]
        completion = types.Completion(values=values[:100], total=len(values), has_more=len(values) > 100)
        return types.CompleteResult(completion=completion)

    return complete


def _set_level(world: World) -> Any:
    async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        world.session(ctx).level = params.level
        return types.EmptyResult()

    return set_level


def _subscribe(world: World) -> Any:
    async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        world.session(ctx).subscriptions.add(str(params.uri))
        return types.EmptyResult()

    return subscribe


def _unsubscribe(world: World) -> Any:
    async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        world.session(ctx).subscriptions.discard(str(params.uri))
        return types.EmptyResult()

    return unsubscribe


def _listen(world: World) -> Any:
    changed = world.config.list_changed

    async def listen(ctx: Context, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
        # The SDK's handler grants whatever is asked for; grant only what this server really announces.
        asked = params.notifications
        granted = types.SubscriptionFilter(
            tools_list_changed=asked.tools_list_changed if changed.tools else None,
            prompts_list_changed=asked.prompts_list_changed if changed.prompts else None,
            resources_list_changed=asked.resources_list_changed if changed.resources else None,
            resource_subscriptions=asked.resource_subscriptions if world.config.subscriptions else None,
        )
        return await world.listen(ctx, params.model_copy(update={"notifications": granted}))

    return listen
