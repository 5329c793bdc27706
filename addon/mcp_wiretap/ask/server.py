"""The MCP server behind which the inspector can be asked, on the official SDK: both eras, stdio and HTTP.

Tools only read, but for `replay` and `probe`, which are there where the user named the server to send to.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcp_wiretap import __version__
from mcp_wiretap.ask import answers
from mcp_wiretap.ask.quoting import INSTRUCTIONS, quoted
from mcp_wiretap.ask.traces import Traces, Unknown

NAME = "mcp-wiretap"
RULES = "wiretap://rules"
RULE = "wiretap://rule/"
TRACE = "wiretap://trace/"
HELD_MS = 60_000  # lists and rules stay as they are while the server runs; what traces say changes at any moment

type Context = ServerRequestContext[Any, Any]
type Run = Callable[[Callable[[], str]], Awaitable[str]]  # makes an answer
type Action = Callable[[str], Awaitable[str]]  # sends something about a flow to the server that the user named; the outcome


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Nothing(_Arguments):
    """No arguments."""


class Failures(_Arguments):
    tool: str = Field("", description="only calls of this tool, or reads of this resource")
    server: str = Field("", description="only servers whose URL holds this")
    last: int = Field(5, ge=1, le=answers.MOST, description="how many, the newest first")


class Operations(_Arguments):
    method: str = Field("", description="only this method, such as tools/call")
    tool: str = Field("", description="only this tool, prompt or resource")
    server: str = Field("", description="only servers whose URL holds this")
    last: int = Field(20, ge=1, le=answers.MOST, description="how many, the newest first")


class Flow(_Arguments):
    flow: str = Field(min_length=1, max_length=200, description="the id of a flow as answers name it, or its beginning")


class RuleId(_Arguments):
    id: str = Field(min_length=1, max_length=20, description="such as HDR004")


class Two(_Arguments):
    before: str = Field(description="name or number of a recording, as `overview` lists them")
    after: str = Field(description="name or number of another one")


class Last(_Arguments):
    last: int = Field(20, ge=1, le=answers.MOST, description="how many, the newest first")


@dataclass(slots=True, frozen=True)
class _Tool:
    title: str
    what: str
    arguments: type[_Arguments]
    answer: Callable[..., str]


TOOLS = {
    "overview": _Tool(
        "Overview", "Servers with their eras, numbers of operations, failures and findings.", Nothing, answers.overview
    ),
    "failures": _Tool(
        "Failures",
        "Why calls failed: the newest exchanges that failed or broke a rule, each with cause, party at fault, evidence and fix.",
        Failures,
        answers.failures,
    ),
    "operations": _Tool(
        "Operations", "What clients asked of servers, the newest first, one line each.", Operations, answers.operations
    ),
    "exchange": _Tool(
        "One exchange",
        "One HTTP exchange: mirrored headers with verdicts, findings with evidence and fix, conversation, both messages.",
        Flow,
        answers.exchange,
    ),
    "conversation": _Tool(
        "Conversation",
        "The operation that a flow belongs to, as a sequence of who sent what to whom and when.",
        Flow,
        answers.conversation,
    ),
    "streams": _Tool("Streams", "Event streams: what they answer, how many events came, which are open.", Last, answers.streams),
    "rule": _Tool(
        "Rule", "What a rule demands, why, how to fix a breach, with the section of the specification.", RuleId, answers.rule
    ),
    "compare": _Tool(
        "Compare two recordings",
        "What differs: tools, outcomes, findings that came and went, eras, latencies.",
        Two,
        answers.compare,
    ),
}
ACTIONS = {
    "replay": (
        "Replay",
        "Ask the server that the user named once more what a flow asked, and say what differs in the answer.",
    ),
    "probe": (
        "Probe",
        "Send to the server that the user named what was answered well in the recording, with one thing changed each time, and "
        "say what it does not refuse and must. Up to 100 requests; lists, reads and prompts, and tools that are annotated as "
        "read-only.",
    ),
}
PROMPTS = {
    "why-did-my-last-call-fail": (
        "Find out why the newest call failed",
        "Use `failures` of mcp-wiretap with last=1{tool}. If it names a rule, read `rule` for it. Say in three sentences: what "
        "failed, which side has to change, and exactly what it has to send instead. If the cause is not clear, read "
        "`conversation` of the flow.",
    ),
    "is-my-server-right": (
        "Judge a server by what it sent",
        "Use `overview` of mcp-wiretap, then `failures` with last=20{tool}. List what the SERVER broke, the worst first, each "
        "with the rule's id, one example of what it sent and what it should have sent. Leave out what the client broke.",
    ),
    "is-my-client-right": (
        "Judge a client by what it sent",
        "Use `overview` of mcp-wiretap, then `failures` with last=20{tool}. List what the CLIENT broke, the worst first, each "
        "with the rule's id, one example of what it sent and what it should have sent. Leave out what the server broke.",
    ),
}


async def at_once(make: Callable[[], str]) -> str:
    return make()


def server(of: Traces, actions: Mapping[str, Action] | None = None, run: Run = at_once) -> Server[Any]:
    """The server. `actions`: what of ACTIONS the user allows, and how it is done. `run`: how answers are made where others wait
    for the same loop."""
    asked = _Asked(of, actions or {}, run)
    made: Server[Any] = Server(
        NAME,
        version=__version__,
        title="mcp-wiretap, an inspector for the Model Context Protocol",
        instructions=INSTRUCTIONS,
        cache_hints={
            "server/discover": CacheHint(HELD_MS, "private"),
            "tools/list": CacheHint(HELD_MS, "private"),
            "prompts/list": CacheHint(HELD_MS, "private"),
            "resources/list": CacheHint(0, "private"),
            "resources/templates/list": CacheHint(HELD_MS, "private"),
            "resources/read": CacheHint(0, "private"),
        },
        get_tool_input_schema=lambda name: asked.schemas.get(name),
        on_list_tools=asked.list_tools,
        on_call_tool=asked.call,
        on_list_resources=asked.list_resources,
        on_list_resource_templates=asked.list_templates,
        on_read_resource=asked.read,
        on_list_prompts=asked.list_prompts,
        on_get_prompt=asked.prompt,
    )
    return made


class _Asked:
    """The handlers."""

    def __init__(self, of: Traces, actions: Mapping[str, Action], run: Run) -> None:
        self._of = of
        self._run = run
        self._actions = actions
        self.schemas = {name: tool.arguments.model_json_schema() for name, tool in TOOLS.items()}
        self.schemas |= {name: Flow.model_json_schema() for name in actions}

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        reads = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
        tools = [
            types.Tool(
                name=name, title=tool.title, description=tool.what, input_schema=_schema(tool.arguments), annotations=reads
            )
            for name, tool in TOOLS.items()
        ]
        sends = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
        tools += [
            types.Tool(
                name=name, title=ACTIONS[name][0], description=ACTIONS[name][1], input_schema=_schema(Flow), annotations=sends
            )
            for name in self._actions
        ]
        return types.ListToolsResult(tools=tools)

    async def call(self, _: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        action = self._actions.get(params.name)
        if tool is None and action is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        try:
            given = (tool.arguments if tool is not None else Flow).model_validate(params.arguments or {})
        except ValidationError as error:
            return _refused(f"The arguments do not fit: {_problems(error)}")
        try:
            if tool is not None:
                named = {_name(key): value for key, value in given.model_dump().items()}
                return _text(await self._run(partial(tool.answer, self._of, **named)))
            assert action is not None
            assert isinstance(given, Flow)
            return _text(await action(given.flow))
        except Unknown as error:
            return _refused(str(error))

    async def list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        traces = [
            types.Resource(uri=f"{TRACE}{number}", name=trace.name, title=f"What was seen: {trace.name}", mime_type="text/plain")
            for number, trace in enumerate(self._of.traces(), 1)
        ]
        rules = types.Resource(uri=RULES, name="rules", title="All rules, one line each", mime_type="text/plain")
        return types.ListResourcesResult(resources=[*traces, rules])

    async def list_templates(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        rule = types.ResourceTemplate(uri_template=RULE + "{id}", name="rule", title="One rule", mime_type="text/plain")
        return types.ListResourceTemplatesResult(resource_templates=[rule])

    async def read(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await self._run(partial(self._resource, uri))
        except Unknown as error:
            raise MCPError(types.INVALID_PARAMS, f"Resource not found: {error}", {"uri": uri[:500]}) from None
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)])

    def _resource(self, uri: str) -> str:
        if uri == RULES:
            return answers.rule_list(self._of)
        if uri.startswith(RULE):
            return answers.rule(self._of, uri.removeprefix(RULE))
        number = uri.removeprefix(TRACE)
        traces = self._of.traces()
        if uri.startswith(TRACE) and number.isascii() and number.isdigit() and 0 < int(number[:6]) <= len(traces):
            return answers.trace(traces[int(number[:6]) - 1])
        raise Unknown("resources/list names what there is")

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="tool", description="only calls of this tool", required=False)
        prompts = [
            types.Prompt(name=name, title=title, description=f"{title}, with the tools of mcp-wiretap", arguments=[argument])
            for name, (title, _) in PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        found = PROMPTS.get(params.name)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        tool = (params.arguments or {}).get("tool", "")
        text = found[1].format(tool=f" and tool={json.dumps(tool[:200])}" if tool else "")
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=found[0], messages=[message])


def _schema(arguments: type[_Arguments]) -> dict[str, Any]:
    """The JSON Schema of arguments, without what pydantic adds of its own."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    for member in schema["properties"].values():
        member.pop("title", None)
    return schema


def _name(member: str) -> str:
    return "id_" if member == "id" else member


def _problems(error: ValidationError) -> str:
    said = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False, include_input=False)]
    return quoted("; ".join(said[:5]), 400)


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _refused(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
