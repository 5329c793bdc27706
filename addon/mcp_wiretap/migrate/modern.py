"""A legacy message as it would be in 2026-07-28: the same call, question or answer in the modern era's form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap import __version__
from mcp_wiretap.trace.mirrored.check import NAME_SOURCE
from mcp_wiretap.trace.mirrored.params import headers_of
from mcp_wiretap.trace.model import ToolDefinition
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import encode

_GONE_CLIENT = ("tasks",)  # capabilities that are no longer there: tasks are an extension
_GONE_SERVER = ("tasks",)
TASKS = "io.modelcontextprotocol/tasks"


@dataclass(slots=True)
class Asker:
    """What a client said of itself when it initialized."""

    info: Mapping[str, Any] = field(default_factory=lambda: {"name": "mcp-wiretap", "version": __version__})
    capabilities: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class Request:
    """A modern request: the mirrored headers and the body."""

    headers: list[tuple[str, str]]
    body: dict[str, Any]


def request(message: Mapping[str, Any], asker: Asker, definition: ToolDefinition | None = None) -> Request:
    """A legacy request in the modern era: envelope in `_meta`, mirrored headers. `definition`: the tool that is called, which
    may declare Mcp-Param headers. Spec: 2026-07-28 basic/index#_meta, basic/transports/streamable-http."""
    method = str(message.get("method", ""))
    params = dict(message["params"]) if isinstance(message.get("params"), dict) else {}
    meta = params.get("_meta")
    kept = (
        {key: value for key, value in meta.items() if not key.startswith("io.modelcontextprotocol/")}
        if isinstance(meta, dict)
        else {}
    )
    params.pop("task", None)
    params["_meta"] = kept | {
        rev.PROTOCOL_VERSION: rev.MODERN_FROM,
        rev.CLIENT_INFO: dict(asker.info),
        rev.CLIENT_CAPABILITIES: client_capabilities(asker.capabilities),
    }
    headers = [("MCP-Protocol-Version", rev.MODERN_FROM), ("Mcp-Method", encode(method))]
    source = NAME_SOURCE.get(method)
    if source is not None and isinstance(name := params.get(source), str):
        headers.append(("Mcp-Name", encode(name)))
    if definition is not None and method == "tools/call":
        headers += headers_of(definition, params.get("arguments"))
    return Request(headers, {"jsonrpc": "2.0", "id": message.get("id", 1), "method": method, "params": params})


def client_capabilities(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Capabilities of a client as the envelope has them: tasks are an extension."""
    found = {name: value for name, value in recorded.items() if name not in _GONE_CLIENT}
    if "tasks" in recorded:
        extensions = found.get("extensions")
        found["extensions"] = {**(extensions if isinstance(extensions, dict) else {}), TASKS: {}}
    return found


def result(method: str | None, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """A legacy result in the modern era. Spec: 2026-07-28 basic/index#result-responses, server/utilities/caching."""
    made: dict[str, Any] = {**recorded, "resultType": "complete"}
    from mcp_types.methods import CACHEABLE_METHODS  # it takes half a second to load

    if method in CACHEABLE_METHODS:
        made |= {"ttlMs": 0, "cacheScope": "private"}
    return made


def discover(initialize: Mapping[str, Any]) -> dict[str, Any]:
    """The result of server/discover that says what this result of initialize said. Spec: 2026-07-28 server/discover."""
    capabilities = initialize.get("capabilities")
    offered = {k: v for k, v in capabilities.items() if k not in _GONE_SERVER} if isinstance(capabilities, dict) else {}
    if isinstance(capabilities, dict) and "tasks" in capabilities:
        extensions = offered.get("extensions")
        offered["extensions"] = {**(extensions if isinstance(extensions, dict) else {}), TASKS: {}}
    made: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": [rev.MODERN_FROM],
        "capabilities": offered,
        "ttlMs": 0,
        "cacheScope": "private",
    }
    if isinstance(instructions := initialize.get("instructions"), str):
        made["instructions"] = instructions
    if isinstance(info := initialize.get("serverInfo"), dict):
        made["_meta"] = {rev.SERVER_INFO: info}
    return made


def input_required(question: Mapping[str, Any]) -> dict[str, Any]:
    """The result that asks what a legacy server asked with a request of its own. Spec: 2026-07-28 basic/patterns/mrtr."""
    asked: dict[str, Any] = {"method": question.get("method")}
    if isinstance(params := question.get("params"), dict):
        asked["params"] = {key: value for key, value in params.items() if key != "_meta"}
    return {
        "resultType": "input_required",
        "inputRequests": {"question-1": asked},
        "requestState": "(not kept)",
    }


def retry(call: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """The params with which the client asks again, once its user has answered."""
    params = dict(call["params"]) if isinstance(call.get("params"), dict) else {}
    params.pop("_meta", None)
    return {**params, "inputResponses": {"question-1": answer}, "requestState": "(the same)"}


def listen(capabilities: Mapping[str, Any], uris: list[str]) -> dict[str, Any]:
    """The params of subscriptions/listen that bring what the GET stream and resources/subscribe brought.
    Spec: 2026-07-28 basic/patterns/subscriptions."""
    wanted: dict[str, Any] = {}
    for capability, member in (
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ):
        offered = capabilities.get(capability)
        if isinstance(offered, dict) and offered.get("listChanged") is True:
            wanted[member] = True
    if uris:
        wanted["resourceSubscriptions"] = uris
    return {"notifications": wanted}
