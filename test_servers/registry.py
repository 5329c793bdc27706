"""How a preset is declared, and what it makes. Knows no preset and no config.

A preset is a factory; its keyword arguments are the `params` that a config may give, checked by pydantic from the
annotations. It returns one item or a list of them.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import mcp_types as types
from pydantic import BaseModel, ConfigDict, create_model

if TYPE_CHECKING:
    from test_servers.world import Call

Kind = Literal["tool", "resource", "resourceTemplate", "prompt"]
Era = Literal["legacy", "modern"]
BOTH: frozenset[Era] = frozenset({"legacy", "modern"})


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a task of the extension does: puts the questions of each round, works, ends."""

    end: Callable[[dict[str, Any]], types.CallToolResult | types.ErrorData]
    """From the answers by key to the result; ErrorData is a task that failed."""
    rounds: tuple[dict[str, types.ElicitRequest], ...] = ()
    loops: bool = False
    """Puts the last round again and again, under new keys."""
    polls: int = 0
    """How often tasks/get finds it at work before it ends."""
    seconds: float = 0
    """How long it works at least."""
    poll_interval_ms: int | None = None


ToolAnswer = types.CallToolResult | types.InputRequiredResult | TaskPlan | str
"""What a tool may return. A string is one text block; a TaskPlan, only where `call.takes_tasks`, starts a task."""

PromptAnswer = list[types.PromptMessage] | types.InputRequiredResult


@dataclass(frozen=True, slots=True)
class ToolItem:
    """One tool: what tools/list says of it, and what a call does."""

    definition: types.Tool
    run: Callable[["Call"], Awaitable[ToolAnswer]]
    eras: frozenset[Era] = BOTH
    legacy_task: str | None = None
    """What the task does that a 2025-11-25 client may ask of this tool (see tasks_legacy); None for most tools."""

    @property
    def key(self) -> str:
        return self.definition.name


@dataclass(frozen=True, slots=True)
class ResourceItem:
    """One resource and how its contents are made."""

    definition: types.Resource
    read: Callable[[], Sequence[types.TextResourceContents | types.BlobResourceContents]]

    @property
    def key(self) -> str:
        return self.definition.uri


@dataclass(frozen=True, slots=True)
class TemplateItem:
    """One resource template; `read` gets the URI and the values that the template found in it."""

    definition: types.ResourceTemplate
    read: Callable[[str, dict[str, Any]], Sequence[types.TextResourceContents | types.BlobResourceContents]]
    completions: dict[str, list[str]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.definition.uri_template


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One prompt; the required arguments of the call are already checked."""

    definition: types.Prompt
    get: Callable[["Call"], Awaitable[PromptAnswer]]
    completions: dict[str, list[str]] = field(default_factory=dict)
    eras: frozenset[Era] = BOTH

    @property
    def key(self) -> str:
        return self.definition.name


Item = ToolItem | ResourceItem | TemplateItem | PromptItem
Factory = Callable[..., Item | Sequence[Item]]


@dataclass(frozen=True, slots=True)
class Preset:
    """A named factory with the model of its parameters."""

    name: str
    factory: Factory
    params: type[BaseModel]
    summary: str

    def make(self, params: dict[str, Any]) -> list[Item]:
        made = self.factory(**params)
        return list(made) if isinstance(made, Sequence) else [made]


_registered: dict[Kind, dict[str, Preset]] = {"tool": {}, "resource": {}, "resourceTemplate": {}, "prompt": {}}


def preset(kind: Kind, name: str) -> Callable[[Factory], Factory]:
    """Declare the decorated factory as the preset `name`; a second one of that kind and name is a programming error."""

    def declare(factory: Factory) -> Factory:
        if name in _registered[kind]:
            raise ValueError(f"the {kind} preset {name!r} is declared twice")
        summary = (inspect.getdoc(factory) or "").partition("\n")[0]
        _registered[kind][name] = Preset(name, factory, params_model(name, factory), summary)
        return factory

    return declare


def registered(kind: Kind) -> dict[str, Preset]:
    return _registered[kind]


def params_model(name: str, factory: Callable[..., Any]) -> type[BaseModel]:
    """A model of the keyword parameters of a function, or of a class's constructor."""
    hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory, include_extras=True)
    fields: dict[str, Any] = {
        parameter.name: (
            hints.get(parameter.name, Any),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in inspect.signature(factory).parameters.values()
    }
    title = "".join(part.capitalize() for part in name.split("_")) + "Params"
    return create_model(title, __config__=ConfigDict(extra="forbid"), **fields)


def tool(
    name: str, description: str, properties: dict[str, Any] | None = None, *, required: Sequence[str] = (), **more: Any
) -> types.Tool:
    """A tool definition with a flat object schema; `more` goes to `mcp_types.Tool` as it is."""
    schema: dict[str, Any] = {"type": "object", "properties": properties or {}}
    if required:
        schema["required"] = list(required)
    return types.Tool(name=name, description=description, input_schema=schema, **more)


def text_result(text: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], **more)
