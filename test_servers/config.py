"""What a config file may say, and how a wrong one is answered. Knows no transport and starts nothing.

The models are the source; `configs/schema.json` is generated from them (`python -m test_servers.config` prints it) and
a test keeps the two equal. Names are camelCase, as on the wire.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.alias_generators import to_camel

from test_servers.misbehaviours import all_faults
from test_servers.presets import all_presets
from test_servers.registry import Kind

CONFIGS = Path(__file__).parent / "configs"


class ConfigError(Exception):
    """A config that cannot be served; the text names the file, the place and the fix."""


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class PresetRef(_Part):
    """One use of a preset. `requiredScopes` only means something with `oauth`."""

    preset: str
    params: Any = Field(default_factory=dict)
    required_scopes: list[str] = Field(default_factory=list)

    def given(self) -> dict[str, Any]:
        """The parameters as the factory takes them."""
        return {name: getattr(self.params, name) for name in type(self.params).model_fields}


class FaultRef(_Part):
    """One deliberate fault of a rogue server."""

    fault: str
    params: Any = Field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        return {name: getattr(self.params, name) for name in type(self.params).model_fields}


def _choice(kind: str, base: type[_Part], tag: str, models: dict[str, tuple[type[BaseModel], str]]) -> Any:
    """A union of `base`, one member a name, told apart by `tag`, so that errors and the JSON Schema know the params."""
    members = []
    for name, (params, summary) in models.items():
        needs_params = any(field.is_required() for field in params.model_fields.values())
        fields: dict[str, Any] = {
            tag: (Literal[name], ...),
            "params": (params, ... if needs_params else Field(default_factory=params)),
        }
        members.append(create_model(f"{kind}_{name}", __base__=base, __doc__=summary, **fields))
    if not members:
        return base
    union: Any = members[0]
    for member in members[1:]:
        union = union | member
    return Annotated[union, Field(discriminator=tag)] if len(members) > 1 else union


def _presets(kind: Kind) -> Any:
    return _choice(kind, PresetRef, "preset", {n: (p.params, p.summary) for n, p in all_presets(kind).items()})


if TYPE_CHECKING:
    type ToolRef = PresetRef
    type ResourceRef = PresetRef
    type TemplateRef = PresetRef
    type PromptRef = PresetRef
    type AnyFault = FaultRef
else:
    ToolRef, ResourceRef = _presets("tool"), _presets("resource")
    TemplateRef, PromptRef = _presets("resourceTemplate"), _presets("prompt")
    AnyFault = _choice("fault", FaultRef, "fault", {n: (f.params, f.summary) for n, f in all_faults().items()})


class ServerInfo(_Part):
    name: str = Field(min_length=1)
    version: str = Field(min_length=1)
    title: str | None = None


class ListChanged(_Part):
    """For which lists the server announces changes."""

    tools: bool = False
    resources: bool = False
    prompts: bool = False


class LegacyTasks(_Part):
    """The 2025-11-25 `tasks` capability."""

    list: bool = True
    cancel: bool = True


class PageSizes(_Part):
    """Largest page of each list; absent means one page."""

    tools: int | None = Field(default=None, ge=1)
    resources: int | None = Field(default=None, ge=1)
    resource_templates: int | None = Field(default=None, ge=1)
    prompts: int | None = Field(default=None, ge=1)


class OAuth(_Part):
    """Protect the server. `combined`: this process is the authorization server as well."""

    enabled: bool = True
    mode: Literal["combined", "protected-resource"] = "combined"
    require_auth: bool = Field(default=True, description="Refuse every request without a token, not only scoped tools.")
    scopes_supported: list[str] = Field(default_factory=list)
    required_scopes: list[str] = Field(default_factory=list, description="Scopes that every request needs.")
    issuer: str | None = Field(default=None, description="The authorization server, with mode protected-resource.")
    dynamic_registration: bool = True
    client_id_metadata_documents: bool = True
    client_metadata_documents: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Metadata documents of clients by URL, known without fetching them."
    )
    further_resources: list[str] = Field(
        default_factory=list, description="URLs of other servers that this one issues tokens for, with mode combined."
    )
    token_ttl_seconds: int = Field(default=3600, ge=1)

    @model_validator(mode="after")
    def _issuer_fits_mode(self) -> "OAuth":
        if self.mode == "protected-resource" and self.issuer is None:
            raise ValueError('mode "protected-resource" needs "issuer", the URL of the authorization server')
        return self


class ModernOptions(_Part):
    """How a server of 2026-07-28 treats the earlier revisions."""

    legacy: Literal["stateless", "stateful", "reject"] = "stateless"
    inject_spec_errors: bool = Field(default=False, description="Answer calls of trigger_* tools before the SDK does.")


class Transport(_Part):
    """Where and in which era the server is reached."""

    type: Literal["streamable-http", "sse", "stdio"] = "streamable-http"
    port: int = Field(default=0, ge=0, le=65535, description="0: any free port.")
    path: str | None = Field(default=None, pattern="^/[^?#]*$")
    modern: bool | ModernOptions = False
    resumable: bool = Field(default=False, description="Legacy streams: event ids, priming events, Last-Event-ID.")
    json_response: bool = Field(default=False, description="Never answer a request with a stream.")

    @model_validator(mode="after")
    def _modern_needs_streamable_http(self) -> "Transport":
        if self.modern and self.type == "sse":
            raise ValueError('"modern" needs "type": "streamable-http"; HTTP+SSE belongs to 2024-11-05')
        return self

    @property
    def modern_options(self) -> ModernOptions | None:
        """None for a legacy-only server."""
        if self.modern is True:
            return ModernOptions()
        return self.modern or None


class Config(_Part):
    """One test server."""

    schema_: str | None = Field(default=None, alias="$schema")
    description: str = ""
    server_info: ServerInfo
    instructions: str | None = None
    tools: list[ToolRef] = Field(default_factory=list)
    resources: list[ResourceRef] = Field(default_factory=list)
    resource_templates: list[TemplateRef] = Field(default_factory=list)
    prompts: list[PromptRef] = Field(default_factory=list)
    logging: bool = False
    list_changed: ListChanged = Field(default_factory=ListChanged)
    subscriptions: bool = Field(default=False, description="Resource subscriptions (both eras).")
    tasks: LegacyTasks | None = Field(default=None, description="Tasks of 2025-11-25.")
    tasks_extension: bool = Field(default=False, description="The extension io.modelcontextprotocol/tasks.")
    extensions: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Further extensions to advertise.")
    max_page_size: PageSizes = Field(default_factory=PageSizes)
    extension_gated_tools: dict[str, list[str]] = Field(default_factory=dict)
    duplicate_tool_names: list[str] = Field(default_factory=list, description="Tools to list twice.")
    argument_errors: Literal["result", "protocol"] = Field(
        default="result", description="Bad tool arguments: a result with isError, or error -32602."
    )
    request_state: Literal["sealed", "plain"] = Field(
        default="sealed", description="plain: readable and unprotected, which is a fault on show."
    )
    oauth: OAuth | None = None
    transport: Transport = Field(default_factory=Transport)
    faults: list[AnyFault] = Field(default_factory=list)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> "Config":
        if self.oauth is not None and self.transport.type != "streamable-http":
            raise ValueError('"oauth" needs "transport": {"type": "streamable-http"}')
        if unknown := [reference.fault for reference in self.faults if reference.fault not in all_faults()]:
            raise ValueError(f"there is no fault {', '.join(unknown)}; leave it out")
        modern_only = self.transport.modern_options is not None and self.transport.modern_options.legacy == "reject"
        if self.tasks is not None and modern_only:
            raise ValueError('"tasks" is the 2025-11-25 capability; a modern server wants "tasksExtension": true')
        return self


def load(path: Path) -> Config:
    """Read and check one config file.

    Raises:
        ConfigError: the file cannot be read, is not JSON, or breaks the schema; every fault is in the text.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give the path of a config file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}:{error.colno}: not JSON ({error.msg}); fix the text there") from None
    return parse(data, str(path))


def parse(data: Any, name: str) -> Config:
    """Check a decoded config; `name` is what messages call it."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        lines = [f"{name}: {_place(fault['loc'], data)}: {_advice(fault)}" for fault in error.errors()]
        raise ConfigError("\n".join(lines)) from None


def _place(loc: tuple[int | str, ...], data: Any) -> str:
    """The JSON pointer of a fault; steps of pydantic that are not in the file (union tags) are left out."""
    pointer, node = "", data
    for index, step in enumerate(loc):
        inside = step in node if isinstance(node, dict) else isinstance(node, list) and isinstance(step, int)
        if inside:
            node = node[step]
        elif index != len(loc) - 1 or not isinstance(node, dict):
            continue
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer or "/"


def _advice(fault: Any) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "is required; add it"
        case "extra_forbidden":
            return "is not a known setting here; remove it or correct the spelling (see configs/schema.json)"
        case "union_tag_invalid":
            return f"{context['tag']!r} does not exist; choose one of {context['expected_tags']}"
        case "union_tag_not_found":
            return f"needs {context['discriminator']}; name what is wanted"
        case "value_error":
            return str(context["error"])
        case _:
            return f"{fault['msg'][0].lower()}{fault['msg'][1:]} (found {json.dumps(fault['input'], default=str)[:80]})"


def expected_findings(path: Path) -> dict[str, str]:
    """The rules that a recording of this config breaks on the server's side, with the reason of each.

    They stand beside the config, in a file of its name that ends in `.expected`: a rule id and its reason a line, `#` for
    comments. No file: none.
    """
    beside = path.with_suffix(".expected")
    if not beside.exists():
        return {}
    lines = [line for line in beside.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {rule: reason.strip() for rule, _, reason in (line.partition(" ") for line in lines)}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a config file."""
    schema = Config.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "mcp-wiretap test server", **schema}


def schema_text() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
