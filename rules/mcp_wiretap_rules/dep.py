"""DEP: deprecated features in use (2026-07-28 deprecated). Notes for those who plan ahead, once per endpoint."""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Evidence, Finding, evidence, rule
from mcp_wiretap.trace.model import Message
from mcp_wiretap.wire import revision as rev

DEPRECATED = "2026-07-28 deprecated#deprecated"


def _asked(message: Message, method: str) -> str | None:
    """The place of an input request of that method in an input_required result."""
    requests = message.result.get("inputRequests")
    if isinstance(requests, dict):
        for key, value in list(requests.items())[:100]:
            if isinstance(value, dict) and value.get("method") == method:
                return message.place("result", "inputRequests", key)
    return None


def _used(message: Message, capability: str, method: str) -> Iterator[Finding]:
    if message.rpc.kind == "request":
        declared: Any = message.meta.get(rev.CLIENT_CAPABILITIES)
        if isinstance(declared, dict) and capability in declared:
            place = message.place("params", "_meta", rev.CLIENT_CAPABILITIES, capability)
            yield Finding(
                f"the client declares {capability}, which is deprecated",
                [Evidence(place, "declared")],
                party="client",
                once="client",
            )
    elif (asked := _asked(message, method)) is not None:
        yield Finding(
            f"the server asks for {method}, which is deprecated", [evidence(asked, method)], party="server", once="server"
        )


@rule(
    "DEP001",
    "roots-used",
    "Roots in use",
    on=("request", "answer"),
    level="should",
    party="either",
    era="modern",
    severity="info",
    spec=DEPRECATED,
    sep="2577",
    once="endpoint",
    sorts=("request", "asking"),
    needs=("cap:roots", "result:inputRequests"),
)
def roots_used(message: Message) -> Iterator[Finding]:
    """Roots are deprecated from 2026-07-28.

    Why: a later revision may take them out.

    Fix: give the folder as a tool argument, a resource URI or configuration of the server.

    Wrong::

        modern tools/list
          capabilities {"roots": {}}
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    yield from _used(message, "roots", "roots/list")


@rule(
    "DEP002",
    "sampling-used",
    "Sampling in use",
    on=("request", "answer"),
    level="should",
    party="either",
    era="modern",
    severity="info",
    spec=DEPRECATED,
    sep="2577",
    once="endpoint",
    sorts=("request", "asking"),
    needs=("cap:sampling", "result:inputRequests"),
)
def sampling_used(message: Message) -> Iterator[Finding]:
    """Sampling is deprecated from 2026-07-28.

    Why: a later revision may take it out.

    Fix: let the server call a model provider itself.

    Wrong::

        modern tools/list
          capabilities {"sampling": {}}
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    yield from _used(message, "sampling", "sampling/createMessage")


@rule(
    "DEP003",
    "logging-used",
    "Logging in use",
    on=("request", "push", "answer"),
    level="should",
    party="either",
    era="modern",
    severity="info",
    spec=DEPRECATED,
    sep="2577",
    once="endpoint",
    sorts=("request", "notification", "result"),
    needs=("meta:io.modelcontextprotocol/logLevel", "params:level", "result:supportedVersions"),
)
def logging_used(message: Message) -> Iterator[Finding]:
    """Logging through MCP is deprecated from 2026-07-28.

    Why: a later revision may take it out.

    Fix: send logs where the rest of your logs go; OpenTelemetry is what the specification points to.

    Wrong::

        modern tools/list
          meta io.modelcontextprotocol/logLevel "info"
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    if message.rpc.kind == "request" and message.party == "client":
        if rev.LOG_LEVEL in message.meta:
            place = message.place("params", "_meta", rev.LOG_LEVEL)
            text = "the client asks for logs, which are deprecated"
            yield Finding(text, [evidence(place, message.meta[rev.LOG_LEVEL])], once="asks")
    elif message.method == "notifications/message":
        text = "the server sends logs, which are deprecated"
        yield Finding(text, [evidence(message.place("method"), message.method)], once="sends")
    elif message.request is not None and message.request.method == "server/discover":
        capabilities = message.result.get("capabilities")
        if isinstance(capabilities, dict) and "logging" in capabilities:
            place = message.place("result", "capabilities", "logging")
            text = "the server advertises logging, which is deprecated"
            yield Finding(text, [evidence(place, "advertised")], once="advertises")


@rule(
    "DEP004",
    "include-context",
    "includeContext thisServer/allServers",
    on=("push", "answer"),
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=DEPRECATED,
    sep="2596",
    versions=("2025-11-25", "2026-07-28"),
    sorts=("request", "asking"),
    needs=("params:messages", "result:inputRequests"),
)
def include_context(message: Message) -> Iterator[Finding]:
    """includeContext other than "none" is deprecated, and needs a client that declares sampling.context.

    Why: most clients ignore it, and the model lacks what the server counted on.

    Fix: put the context into the messages.

    Wrong::

        modern tools/call {"name": "a"}
          capabilities {"sampling": {}}
          -> result {"resultType": "input_required", "inputRequests": {"s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1, "includeContext": "thisServer"}}}}

    Right::

        modern tools/call {"name": "a"}
          capabilities {"sampling": {}}
          -> result {"resultType": "input_required", "inputRequests": {"s": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}}}
    """
    if message.rpc.kind == "request" and message.method == "sampling/createMessage":
        yield from _context(message, message.params, ("params",))
        return
    requests = message.result.get("inputRequests")
    for key, value in list(requests.items())[:100] if isinstance(requests, dict) else ():
        if isinstance(value, dict) and value.get("method") == "sampling/createMessage" and isinstance(value.get("params"), dict):
            yield from _context(message, value["params"], ("result", "inputRequests", key, "params"))


def _context(message: Message, params: dict[str, Any], steps: tuple[str, ...]) -> Iterator[Finding]:
    value = params.get("includeContext")
    if value not in ("thisServer", "allServers"):
        return
    sampling = message.exchange.capabilities.get("sampling")
    declared = isinstance(sampling, dict) and "context" in sampling
    yield Finding(
        f"includeContext is {value}" + ("" if declared else ", and the client does not declare sampling.context"),
        [evidence(message.place(*steps, "includeContext"), value, "none, or no such member")],
        "info" if declared else None,
    )


@rule(
    "DEP007",
    "removed-capability-fields",
    "Removed fields on modern",
    on=("request", "answer"),
    level="may-note",
    party="either",
    era="modern",
    severity="info",
    spec="2026-07-28 changelog#major-changes",
    sep="2575",
    once="endpoint",
    sorts=("request", "result"),
    needs=("cap:roots", "cap:tasks", "params:protocolVersion", "params:clientInfo", "result:supportedVersions"),
)
def removed_capability_fields(message: Message) -> Iterator[Finding]:
    """roots.listChanged, capabilities.tasks and the members of initialize have no meaning in the modern era.

    Why: whoever declares them counts on something that will not happen.

    Fix: leave them out; tasks are the extension io.modelcontextprotocol/tasks now.

    Wrong::

        modern tools/list
          capabilities {"roots": {"listChanged": true}}
          -> result {"tools": []}

    Right::

        modern tools/list
          capabilities {"roots": {}}
          -> result {"tools": []}
    """
    if message.rpc.kind == "result":
        request, capabilities = message.request, message.result.get("capabilities")
        if request is None or request.method != "server/discover":
            return
        gone: list[str] = [name for name in ("protocolVersion", "serverInfo") if name in message.result]
        gone += ["capabilities.tasks"] if isinstance(capabilities, dict) and "tasks" in capabilities else []
        place, who, verb = message.place("result"), "server", "gives"
    else:
        declared = message.meta.get(rev.CLIENT_CAPABILITIES)
        roots = declared.get("roots") if isinstance(declared, dict) else None
        gone = ["roots.listChanged"] if isinstance(roots, dict) and "listChanged" in roots else []
        gone += ["tasks"] if isinstance(declared, dict) and "tasks" in declared else []
        place, who, verb = message.place("params", "_meta", rev.CLIENT_CAPABILITIES), "client", "declares"
        if not gone and message.method != "initialize":
            gone = [f"params.{name}" for name in ("protocolVersion", "clientInfo") if name in message.params]
            place = message.place("params")
    if gone:
        text = f"the {who} {verb} {' and '.join(gone)}, which the modern era does not have"
        yield Finding(text, [evidence(place, ", ".join(gone))], once=who)
