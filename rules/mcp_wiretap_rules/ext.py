"""EXT: the extensions map of both sides (2026-07-28 basic/versioning#extension-negotiation)."""

import re
from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Finding, Severity, evidence, rule
from mcp_wiretap.trace.era.discover import advertised
from mcp_wiretap.trace.model import Message
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules.extensions import extensions_of, names_a_foreign_one

NEGOTIATION = "2026-07-28 basic/versioning#extension-negotiation"
TASKS = "io.modelcontextprotocol/tasks"
UI = "io.modelcontextprotocol/ui"
OFFICIAL = frozenset(
    {
        TASKS,
        UI,
        "io.modelcontextprotocol/oauth-client-credentials",
        "io.modelcontextprotocol/enterprise-managed-authorization",
        "io.modelcontextprotocol/skills",
    }
)
_VENDOR = re.compile(r"[./:]")  # in a name with a prefix
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IDENTIFIER = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def _extensions(message: Message) -> tuple[tuple[str, ...], Any] | None:
    """Where the message declares extensions, and what: an envelope, initialize, a discover or initialize result."""
    if message.rpc.kind == "request":
        steps: tuple[str, ...] = ("params", "_meta", rev.CLIENT_CAPABILITIES)
        declared = message.meta.get(rev.CLIENT_CAPABILITIES)
        if declared is None and message.method == "initialize":
            declared, steps = message.params.get("capabilities"), ("params", "capabilities")
    else:
        request = message.request
        if request is None or request.method not in ("server/discover", "initialize"):
            return None
        declared, steps = message.result.get("capabilities"), ("result", "capabilities")
    if not isinstance(declared, dict) or "extensions" not in declared:
        return None
    return (*steps, "extensions"), declared["extensions"]


@rule(
    "EXT001",
    "extension-key-grammar",
    "Extension identifier malformed",
    on=("request", "answer"),
    level="must",
    party="either",
    era="both",
    severity="error",
    spec=NEGOTIATION,
    sep="2133",
    versions=("2025-11-25", "2026-07-28"),
    sorts=("request", "result"),
    needs=("cap:extensions", "params:capabilities", "result:capabilities"),
)
def extension_key_grammar(message: Message) -> Iterator[Finding]:
    """`capabilities.extensions` maps identifiers with a prefix (`com.example/name`) to objects of settings.

    Why: the other side looks an extension up by its identifier; without a prefix two vendors collide.

    Fix: `"extensions": {"com.example/thing": {}}`.

    Wrong::

        modern tools/list
          capabilities {"extensions": {"thing": {}}}
          -> result {"tools": []}

    Right::

        modern tools/list
          capabilities {"extensions": {"com.example/thing": {}}}
          -> result {"tools": []}
    """
    found = _extensions(message)
    if found is None:
        return
    steps, extensions = found
    severity: Severity | None = None if message.exchange.claim.modern else "warning"
    if not isinstance(extensions, dict):
        yield Finding(
            f"extensions is {one_line(dumps(extensions), 40)}, not an object",
            [evidence(message.place(*steps), dumps(extensions), "an object")],
            severity,
        )
        return
    for key, value in list(extensions.items())[:50]:
        place = message.place(*steps, key)
        if not _IDENTIFIER.fullmatch(key):
            text = f"the extension {one_line(key, 60)!r} is not prefix/name"
            yield Finding(text, [evidence(place, key, "com.example/name")], severity)
        if not isinstance(value, dict):
            text = f"the settings of {one_line(key, 60)} are {one_line(dumps(value), 40)}, not an object"
            yield Finding(text, [evidence(place, dumps(value), "an object")], severity)


@rule(
    "EXT002",
    "extension-used-undeclared",
    "Extension feature used without declaration",
    on=("push", "request", "answer"),
    level="must",
    party="either",
    era="modern",
    severity="warning",
    spec=NEGOTIATION,
    sep="2133",
    needs=("params:taskId", "params:notifications", "params:uri", "result:resultType"),
)
def extension_used_undeclared(message: Message) -> Iterator[Finding]:
    """An extension is used only with a side that declared it.

    Why: the other side does not know what to do with it.

    Fix: look at the extensions of this very request (server), or of the newest server/discover (client).

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern tasks/get {"taskId": "t"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32601

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
        modern tasks/get {"taskId": "t"}
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}}}
          -> error -32602
    """
    exchange = message.exchange
    if message.rpc.kind == "result":
        yield from _foreign_result(message)
    elif message.party == "server":
        if message.method == "notifications/tasks" and TASKS not in extensions_of(exchange.capabilities):
            yield Finding(
                f"{message.method} to a client that did not declare {TASKS}",
                [evidence(message.place("method"), message.method, f"extensions[{TASKS}]")],
            )
    elif message.rpc.kind == "request" and (extension := _used(message)) is not None:
        told = advertised(exchange)
        if told is not None and extension not in extensions_of(told[0]):
            yield Finding(
                f"{one_line(message.method or '', 60)} uses {extension}, which the server does not advertise",
                [evidence(message.place("method"), message.method, f"extensions[{extension}]")],
                "info",
                related=(told[1],),
            )


def _used(message: Message) -> str | None:
    """The extension that a request needs."""
    wanted, uri = message.params.get("notifications"), message.params.get("uri")
    listens = message.method == "subscriptions/listen" and isinstance(wanted, dict) and bool(wanted.get("taskIds"))
    if listens or message.method in ("tasks/get", "tasks/update", "tasks/cancel"):
        return TASKS
    return UI if message.method == "resources/read" and isinstance(uri, str) and uri.startswith("ui://") else None


def _foreign_result(message: Message) -> Iterator[Finding]:
    """A resultType that the specification does not have belongs to an extension, which the client must have declared."""
    kind, request = message.result.get("resultType"), message.request
    if not isinstance(kind, str) or request is None or not _VENDOR.search(kind):
        return  # task: TSK001; what is nobody's: RES002
    if not names_a_foreign_one(request.meta.get(rev.CLIENT_CAPABILITIES)):
        yield Finding(
            f"resultType {one_line(kind, 60)} to a client that declared no extension which has it",
            [evidence(message.place("result", "resultType"), kind, "complete, or input_required")],
        )


@rule(
    "EXT003",
    "server-ignores-client-extensions",
    "UI-only content to a client without the extension",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec="2133 Capability negotiation",
    sep="2133",
    methods=("tools/call",),
)
def server_ignores_client_extensions(message: Message) -> Iterator[Finding]:
    """A tool with a user interface still answers in text to a client that cannot show it.

    Why: the model gets nothing at all.

    Fix: fill `content` with a text that says the same.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}]}
        modern tools/call {"name": "a"}
          -> result {"content": []}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://a"}}}]}
        modern tools/call {"name": "a"}
          -> result {"content": [{"type": "text", "text": "done"}]}
    """
    if message.result.get("content") != []:
        return
    view = message.exchange.tool
    definition = view.definition if view is not None else None
    meta = definition.raw.get("_meta") if definition is not None else None
    if not isinstance(meta, dict) or not isinstance(meta.get("ui"), dict):
        return
    extensions = message.exchange.capabilities.get("extensions")
    if not isinstance(extensions, dict) or UI not in extensions:
        yield Finding(
            "empty content from a tool with a user interface, to a client that did not declare it",
            [evidence(message.place("result", "content"), "[]", "a text that says the same")],
        )


@rule(
    "EXT004",
    "reserved-extension-prefix",
    "Third-party extension under reserved prefix",
    on=("request", "answer"),
    level="must",
    party="either",
    era="modern",
    severity="warning",
    spec="2026-07-28 basic/index#_meta",
    sep="2133",
    sorts=("request", "result"),
    once="client",
    needs=("cap:extensions", "params:capabilities", "result:capabilities"),
)
def reserved_extension_prefix(message: Message) -> Iterator[Finding]:
    """Prefixes whose second label is `modelcontextprotocol` or `mcp` are for official extensions. One under `io.modelcontextprotocol/`
    that this build does not know is a note: new ones appear at any time.

    Why: an official extension may take the name.

    Fix: use a prefix of your own domain.

    Wrong::

        modern tools/list
          capabilities {"extensions": {"dev.mcp/thing": {}}}
          -> result {"tools": []}

    Right::

        modern tools/list
          capabilities {"extensions": {"io.modelcontextprotocol/tasks": {}, "com.example/thing": {}}}
          -> result {"tools": []}
    """
    found = _extensions(message)
    if found is None or not isinstance(found[1], dict):
        return
    steps, extensions = found
    for key in list(extensions)[:50]:
        labels = key.partition("/")[0].split(".")
        if len(labels) < 2 or labels[1] not in ("modelcontextprotocol", "mcp") or key in OFFICIAL:
            continue
        if key.startswith("io.modelcontextprotocol/"):  # a new one may appear at any time (SEP-3392)
            yield Finding(
                f"the official extension {one_line(key, 60)} is not known to this build",
                [evidence(message.place(*steps, key), key)],
                "info",
                once=f"{message.party} {one_line(key, 60)}",
            )
            continue
        yield Finding(
            f"the extension {one_line(key, 60)} is under a prefix reserved for MCP",
            [evidence(message.place(*steps, key), key, "a prefix of your own domain")],
            once=f"{message.party} {one_line(key, 60)}",
        )
