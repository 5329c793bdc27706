"""APP: MCP Apps, the ui extension (io.modelcontextprotocol/ui 2026-01-26)."""

import re
from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Finding, Severity, evidence, rule
from mcp_wiretap.trace.lists.catalog import UI_LINKS
from mcp_wiretap.trace.model import Message, ToolDefinition
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps, pointer
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules.extensions import extensions_of
from mcp_wiretap_rules.rsc import NOT_FOUND

SPEC = "io.modelcontextprotocol/ui 2026-01-26"
UI = "io.modelcontextprotocol/ui"
VERSIONS = rev.since("2025-11-25")
_ORIGIN = re.compile(r"(?:https|wss)://(?:\*\.)?[A-Za-z0-9.-]+(?::[0-9]{1,5})?/?|'[a-z-]+'|data:|blob:")
_PROFILE = re.compile(r'profile=(?:mcp-app|"mcp-app")', re.I)
_DOMAINS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")


def _ui(meta: Any) -> Any:
    return meta.get("ui") if isinstance(meta, dict) else None


def _where(definition: ToolDefinition, *steps: str) -> str:
    """Evidence place of a value inside a listed tool."""
    if definition.message is not None:
        return definition.message.place("result", "tools", definition.index, *steps)
    return f"response.body:{pointer('result', 'tools', definition.index, *steps)}"


@rule(
    "APP001",
    "ui-resource-uri",
    "_meta.ui.resourceUri invalid",
    on="tool",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{SPEC} #resource-discovery",
    sep="1865",
    versions=VERSIONS,
)
def ui_resource_uri(definition: ToolDefinition) -> Iterator[Finding]:
    """`_meta.ui` of a tool is an object; resourceUri in it is a ui:// URI, visibility an array of "model" and "app".

    Why: the host cannot find the user interface, or shows the tool to the wrong side.

    Fix: `"_meta": {"ui": {"resourceUri": "ui://server/view"}}`.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "https://a"}}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}]}
    """
    meta = definition.raw.get("_meta")
    if not isinstance(meta, dict) or "ui" not in meta:
        return
    ui, tool = meta["ui"], one_line(definition.name, 60)
    if not isinstance(ui, dict):
        yield Finding(
            f"tool {tool}: _meta.ui is no object", [evidence(_where(definition, "_meta", "ui"), dumps(ui), "an object")]
        )
        return
    uri, visibility = ui.get("resourceUri"), ui.get("visibility")
    if "resourceUri" not in ui and "visibility" not in ui:
        text = f"tool {tool}: _meta.ui has neither resourceUri nor visibility"
        yield Finding(text, [evidence(_where(definition, "_meta", "ui"), dumps(ui), "a resourceUri")], "info")
    if "resourceUri" in ui and not (isinstance(uri, str) and uri.startswith("ui://")):
        text = f"tool {tool}: resourceUri is {one_line(dumps(uri), 60)}"
        yield Finding(text, [evidence(_where(definition, "_meta", "ui", "resourceUri"), uri, "a ui:// URI")])
    if "visibility" in ui:
        place = _where(definition, "_meta", "ui", "visibility")
        if not isinstance(visibility, list) or any(v not in ("model", "app") for v in visibility):
            text = f"tool {tool}: visibility is {one_line(dumps(visibility), 60)}"
            yield Finding(text, [evidence(place, dumps(visibility), 'an array of "model" and "app"')])
        elif not visibility:
            text = f"tool {tool}: visibility is empty: nobody can see the tool"
            yield Finding(text, [evidence(place, "[]", 'an array of "model" and "app"')], "warning")


@rule(
    "APP002",
    "ui-flat-key",
    'Deprecated _meta["ui/resourceUri"]',
    on="tool",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{SPEC} #resource-discovery",
    sep="1865",
    versions=VERSIONS,
    once="endpoint",
)
def ui_flat_key(definition: ToolDefinition) -> Iterator[Finding]:
    """The flat key `ui/resourceUri` gave way to `ui.resourceUri`. Having both is fine where they agree.

    Why: hosts read the one or the other.

    Fix: write `"ui": {"resourceUri": ...}`.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui/resourceUri": "ui://a"}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}]}
    """
    meta = definition.raw.get("_meta")
    if not isinstance(meta, dict) or "ui/resourceUri" not in meta:
        return
    flat, ui = meta["ui/resourceUri"], meta.get("ui")
    nested = ui.get("resourceUri") if isinstance(ui, dict) else None
    place = _where(definition, "_meta", "ui/resourceUri")
    if nested is not None and nested != flat:
        text = f"tool {one_line(definition.name, 60)}: ui/resourceUri and ui.resourceUri differ"
        yield Finding(text, [evidence(place, flat, nested)])
    elif nested is None:
        yield Finding("the flat key ui/resourceUri is deprecated", [evidence(place, flat, "ui.resourceUri")], "info")


def _linked(message: Message, uri: str) -> bool:
    """Whether a tool of the newest list that this Authorization was given names the URI as its user interface."""
    exchange = message.request.exchange if message.request is not None else message.exchange
    return one_line(uri, 500) in exchange.endpoint.facts.get(UI_LINKS, {}).get(exchange.auth, ())


def _declares_ui(capabilities: Any) -> bool:
    return UI in extensions_of(capabilities)


def _is_app_type(mime: Any) -> bool:
    if not isinstance(mime, str):
        return False
    kind, *parameters = (part.strip() for part in mime.split(";"))
    return kind.lower() == "text/html" and any(_PROFILE.fullmatch(p) for p in parameters)


@rule(
    "APP003",
    "ui-mime-type",
    "UI resource mime type",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{SPEC} #ui-resource-format",
    sep="1865",
    versions=VERSIONS,
    methods=("resources/read",),
)
def ui_mime_type(message: Message) -> Iterator[Finding]:
    """A ui:// resource is `text/html;profile=mcp-app`, under the URI that was asked for.

    Why: hosts refuse to render anything else.

    Fix: set `mimeType` on the item of `contents`.

    Wrong::

        modern resources/read {"uri": "ui://a"}
          capabilities {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
          -> result {"contents": [{"uri": "ui://a", "mimeType": "text/html", "text": "<p>"}]}

    Right::

        modern resources/read {"uri": "ui://a"}
          capabilities {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
          -> result {"contents": [{"uri": "ui://a", "mimeType": "text/html; profile=mcp-app", "text": "<p>"}]}
    """
    request = message.request
    uri = request.params.get("uri") if request is not None else None
    contents = message.result.get("contents")
    if not isinstance(uri, str) or not uri.startswith("ui://") or not isinstance(contents, list) or not contents:
        return
    exchange = message.exchange
    meant = _declares_ui(exchange.capabilities) or _declares_ui(exchange.endpoint.capabilities) or _linked(message, uri)
    item = next((c for c in contents if isinstance(c, dict) and c.get("uri") == uri), None)
    severity: Severity | None = None if meant else "info"
    if item is None:
        place = message.place("result", "contents")
        yield Finding(f"no item has the uri {one_line(uri, 60)}", [evidence(place, "other uris", uri)], severity)
    elif not _is_app_type(item.get("mimeType")):
        index = contents.index(item)
        yield Finding(
            f"the user interface {one_line(uri, 60)} has the type {one_line(dumps(item.get('mimeType')), 60)}",
            [evidence(message.place("result", "contents", index, "mimeType"), item.get("mimeType"), "text/html;profile=mcp-app")],
            severity,
        )
    elif not (isinstance(item.get("text"), str) or isinstance(item.get("blob"), str)):
        place = message.place("result", "contents", contents.index(item))
        text = f"the user interface {one_line(uri, 60)} has neither text nor blob"
        yield Finding(text, [evidence(place, sorted(item)[:10], "text or blob")], severity)


@rule(
    "APP004",
    "ui-resource-missing",
    "Referenced UI resource not readable",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{SPEC} #resource-discovery",
    sep="1865",
    versions=VERSIONS,
    methods=("resources/read",),
)
def ui_resource_missing(message: Message) -> Iterator[Finding]:
    """The user interface that a tool names can be read. It need not be in resources/list. An error that does not say that it is
    missing is but a note.

    Why: the host shows an empty frame.

    Fix: serve the resource, or take `_meta.ui` off the tool.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}]}
        modern resources/read {"uri": "ui://a"}
          -> error -32602 {"message": "Resource not found", "data": {"uri": "ui://a"}}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}]}
        modern resources/read {"uri": "ui://a"}
          -> result {"contents": [{"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": "<p>"}]}
    """
    request = message.request
    uri = request.params.get("uri") if request is not None else None
    if not isinstance(uri, str) or not uri.startswith("ui://") or not _linked(message, uri):
        return
    shown = f"{one_line(uri, 80)}, which a tool names as its user interface,"
    if message.rpc.kind == "result":
        if message.result.get("contents") == []:
            yield Finding(f"{shown} is not there", [evidence(message.place("result", "contents"), "[]", "the resource")])
        return
    code, status = message.error_code, message.exchange.status or 0
    if code is None or status in (401, 403):
        return
    place = message.place("error", "code")
    if code in (rev.INVALID_PARAMS, rev.RESOURCE_NOT_FOUND) and _says_missing(message, uri):
        yield Finding(f"{shown} is not there", [evidence(place, str(code), "the resource")])
    else:
        yield Finding(f"{shown} could not be read", [evidence(place, str(code), "the resource")], "info")


def _says_missing(message: Message, uri: str) -> bool:
    """Whether an error names the resource, or says that it is not there."""
    error = message.rpc.error
    data, text = (error.get("data"), error.get("message")) if isinstance(error, dict) else (None, None)
    if message.error_code == rev.RESOURCE_NOT_FOUND or (isinstance(data, dict) and data.get("uri") == uri):
        return True
    return isinstance(text, str) and (uri in text or NOT_FOUND.search(text[:1_000]) is not None)


@rule(
    "APP005",
    "ui-csp-shape",
    "csp/permissions malformed",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{SPEC} #ui-resource-format",
    sep="1865",
    versions=VERSIONS,
    methods=("resources/read", "resources/list"),
)
def ui_csp_shape(message: Message) -> Iterator[Finding]:
    """`_meta.ui.csp` holds arrays of https origins (a subdomain may be `*`), `_meta.ui.permissions` an object of objects.

    Why: a host drops what it cannot read, and the interface then cannot reach its server; `*` opens it to everybody's.

    Fix: name each origin: `"connectDomains": ["https://api.example.com"]`.

    Wrong::

        modern resources/read {"uri": "ui://a"}
          -> result {"contents": [{"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": "", "_meta": {"ui": {"csp": {"connectDomains": ["*"]}}}}]}

    Right::

        modern resources/read {"uri": "ui://a"}
          -> result {"contents": [{"uri": "ui://a", "mimeType": "text/html;profile=mcp-app", "text": "", "_meta": {"ui": {"csp": {"connectDomains": ["https://*.example.com"]}}}}]}
    """
    member = "contents" if "contents" in message.result else "resources"
    items = message.result.get(member)
    for index, item in enumerate(items[:200] if isinstance(items, list) else ()):
        ui = _ui(item.get("_meta")) if isinstance(item, dict) else None
        if not isinstance(ui, dict):
            continue
        csp, steps = ui.get("csp"), ("result", member, index, "_meta", "ui", "csp")
        if "csp" in ui and not isinstance(csp, dict):
            yield Finding("_meta.ui.csp is no object", [evidence(message.place(*steps), dumps(csp), "an object")])
        domains: dict[str, Any] = csp if isinstance(csp, dict) else {}
        for name in _DOMAINS:
            if name not in domains:
                continue
            origins, place = domains[name], message.place(*steps, name)
            if not isinstance(origins, list):
                yield Finding(f"{name} is no array", [evidence(place, dumps(origins), "an array of origins")])
                continue
            bad = next((o for o in origins[:100] if not isinstance(o, str) or not _ORIGIN.fullmatch(o)), None)
            if bad is not None:
                text = f"{name} has {one_line(dumps(bad), 60)}, which is no https origin"
                yield Finding(text, [evidence(place, dumps(bad), "https://host")])
        permissions = ui.get("permissions")
        if "permissions" in ui and not (isinstance(permissions, dict) and all(isinstance(v, dict) for v in permissions.values())):
            place = message.place(*steps[:-1], "permissions")
            yield Finding("_meta.ui.permissions is no object of objects", [evidence(place, dumps(permissions), "an object")])


@rule(
    "APP006",
    "ui-client-mime-settings",
    "Client ui settings",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="warning",
    spec=f"{SPEC} #capability-negotiation",
    sep="1865",
    once="client",
    needs=("cap:extensions",),
)
def ui_client_mime_settings(message: Message) -> Iterator[Finding]:
    """A client that declares the ui extension says which types it renders: `mimeTypes`, with the type of MCP Apps in it.

    Why: servers register interfaces only for types that the client names.

    Fix: `"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}`.

    Wrong::

        modern tools/list
          capabilities {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": "text/html"}}}
          -> result {"tools": []}

    Right::

        modern tools/list
          capabilities {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
          -> result {"tools": []}
    """
    settings = extensions_of(message.meta.get(rev.CLIENT_CAPABILITIES)).get(UI)
    if not isinstance(settings, dict) or not settings:
        return  # {} is tolerated
    types = settings.get("mimeTypes")
    if isinstance(types, list) and any(map(_is_app_type, types)) and all(isinstance(t, str) for t in types):
        return
    place = message.place("params", "_meta", rev.CLIENT_CAPABILITIES, "extensions", UI, "mimeTypes")
    yield Finding(
        "the client's mimeTypes are no list of strings with text/html;profile=mcp-app in it",
        [evidence(place, dumps(types) if "mimeTypes" in settings else None, '["text/html;profile=mcp-app"]')],
    )


@rule(
    "APP007",
    "ui-app-only-tool-called",
    "App-only tool called",
    on="request",
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec=f"{SPEC} #visibility",
    sep="1865",
    versions=VERSIONS,
    methods=("tools/call",),
)
def ui_app_only_tool_called(message: Message) -> Iterator[Finding]:
    """A tool with the visibility ["app"] is for the user interface, not for the model. The wire does not show who called.

    Why: it explains a call that no model made.

    Fix: nothing, if the interface called it.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}}]}
        modern tools/call {"name": "a"}
          -> result {"content": []}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app", "model"]}}}]}
        modern tools/call {"name": "a"}
          -> result {"content": [{"type": "text", "text": "x"}]}
    """
    view = message.exchange.tool
    definition = view.definition if view is not None else None
    ui = _ui(definition.raw.get("_meta")) if definition is not None else None
    if isinstance(ui, dict) and ui.get("visibility") == ["app"]:
        yield Finding(
            f"{one_line(str(message.params.get('name')), 60)} is for the user interface only",
            [evidence(message.place("params", "name"), message.params.get("name"))],
        )
