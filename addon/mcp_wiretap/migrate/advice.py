"""What must change, by what was used: each demand with the party, the section, and a message of the recording as it would be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.migrate import modern
from mcp_wiretap.migrate.usage import Example, Server, Use
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.revision import LOG_LEVEL, MODERN_FROM

HTTP, LISTEN = "basic/transports/streamable-http", "basic/patterns/subscriptions"
MRTR, TASKS = "basic/patterns/mrtr", "io.modelcontextprotocol/tasks"
LOGGING = "server/utilities/logging"

type Lines = list[str]
type Becomes = Callable[[Server, Example], tuple[Lines, Lines]]  # the message as it was, and as it would be


@dataclass(slots=True, frozen=True)
class Demand:
    """One thing that is otherwise in 2026-07-28."""

    key: str  # of `usage.Server.uses`
    seen: str  # what it is called
    who: str  # client, server, both
    what: str
    spec: str
    becomes: Becomes | None = None
    stdio: bool = True  # whether it concerns stdio, too


@dataclass(slots=True, frozen=True)
class Change:
    """A demand that this recording meets, with what it was met by."""

    demand: Demand
    count: int
    flows: list[str]
    was: Lines
    becomes: Lines


@dataclass(slots=True)
class Advice:
    """What the client and the server of one endpoint must change."""

    server: Server
    changes: list[Change] = field(default_factory=list)
    always: list[Change] = field(default_factory=list)  # of every migration, not of something that was seen
    not_seen: list[str] = field(default_factory=list)


def advise(server: Server) -> Advice:
    """The advice for one endpoint."""
    found = Advice(server)
    for demand in DEMANDS:
        if server.on_stdio and not demand.stdio:
            continue
        use = server.uses.get(demand.key)
        if use is None:
            found.not_seen.append(demand.seen)
        else:
            found.changes.append(_change(server, demand, use))
    for demand in ALWAYS:
        if not (server.on_stdio and not demand.stdio):
            found.always.append(_change(server, demand, server.uses.get(demand.key, Use())))
    return found


def _change(server: Server, demand: Demand, use: Use) -> Change:
    was, becomes = demand.becomes(server, use.example) if demand.becomes is not None and use.example is not None else ([], [])
    return Change(demand, use.count, use.flows, was, becomes)


# How messages look afterwards


def _asker(server: Server) -> modern.Asker:
    info, capabilities = server.client.get("clientInfo"), server.client.get("capabilities")
    return modern.Asker(info if isinstance(info, dict) else {}, capabilities if isinstance(capabilities, dict) else {})


def _request(server: Server, made: modern.Request) -> Lines:
    head = [] if server.on_stdio else [f"{name}: {value}" for name, value in made.headers]
    return [*head, dumps(made.body)]


def _own(example: Example) -> Lines:
    return [dumps(example.message)] if example.message else [example.note] if example.note else []


def _initialize(server: Server, example: Example) -> tuple[Lines, Lines]:
    asked = modern.request({"id": example.message.get("id", 1), "method": "server/discover"}, _asker(server))
    return _own(example), [*_request(server, asked), f"answered by {dumps(modern.discover(server.server))}"]


def _call(server: Server, example: Example) -> tuple[Lines, Lines]:
    becomes = _request(server, modern.request(example.message, _asker(server), example.definition))
    result = example.answer.get("result")
    if isinstance(result, dict):
        becomes.append(f"answered by {dumps(modern.result(example.message.get('method'), result))}")
    return _own(example), becomes


def _question(server: Server, example: Example) -> tuple[Lines, Lines]:
    becomes = [f"the call is answered by {dumps(modern.input_required(example.message))}"]
    answer = example.answer.get("result")
    if example.call:
        params = modern.retry(example.call, answer if answer is not None else "(the answer)")
        again = modern.request({**example.call, "id": "(a new id)", "params": params}, _asker(server))
        becomes += ["and the client asks again:", *_request(server, again)]
    return _own(example), becomes


def _log_level(server: Server, example: Example) -> tuple[Lines, Lines]:
    params = example.message.get("params")
    level = params.get("level") if isinstance(params, dict) else None
    return _own(example), [f"in params._meta of each request that wants logs: {dumps({LOG_LEVEL: level})}"]


def _listen(server: Server, example: Example) -> tuple[Lines, Lines]:
    capabilities = server.server.get("capabilities")
    params = modern.listen(capabilities if isinstance(capabilities, dict) else {}, list(server.uris))
    asked = modern.request({"id": "(an id)", "method": "subscriptions/listen", "params": params}, _asker(server))
    return _own(example), _request(server, asked)


def _gone(server: Server, example: Example) -> tuple[Lines, Lines]:
    return _own(example), ["(nothing)"]


def _not_found(server: Server, example: Example) -> tuple[Lines, Lines]:
    error = example.message.get("error")
    params = example.call.get("params")
    uri = params.get("uri") if isinstance(params, dict) else None
    made = {**(error if isinstance(error, dict) else {}), "code": -32602} | ({"data": {"uri": uri}} if uri is not None else {})
    return _own(example), [dumps({**example.message, "error": made})]


def _url_elicitation(server: Server, example: Example) -> tuple[Lines, Lines]:
    error: Any = example.message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    asked = data.get("elicitations") if isinstance(data, dict) else None
    questions = {
        f"question-{number}": {"method": "elicitation/create", "params": one}
        for number, one in enumerate(asked if isinstance(asked, list) else [], 1)
    }
    made = {"resultType": "input_required", "inputRequests": questions, "requestState": "(not kept)"}
    return _own(example), [dumps(made)]


def _task(server: Server, example: Example) -> tuple[Lines, Lines]:
    becomes = _request(server, modern.request(example.message, _asker(server), example.definition))
    return _own(example), [*becomes, 'the server may answer {"resultType": "task", "taskId": ..., "status": "working", ...}']


def _session(server: Server, example: Example) -> tuple[Lines, Lines]:
    return _own(example), ["no Mcp-Session-Id; a handle in the tool's arguments, or requestState, where state must be kept"]


def _cancel(server: Server, example: Example) -> tuple[Lines, Lines]:
    return _own(example), [
        "the notification, as before" if server.on_stdio else "the client closes the response stream of the call"
    ]


DEMANDS = (
    Demand(
        "client:initialize",
        "initialize",
        "both",
        "no handshake: version, client and capabilities stand in _meta of each request; the server answers server/discover",
        "basic/versioning",
        _initialize,
    ),
    Demand(
        "client:notifications/initialized",
        "notifications/initialized",
        "client",
        "gone with the handshake",
        "basic/versioning",
        _gone,
    ),
    Demand(
        "header:mcp-session-id",
        "Mcp-Session-Id",
        "server",
        "no sessions: explicit handles as arguments, or requestState; each request is understood by itself (SEP-2567)",
        "basic/index#statelessness",
        _session,
        stdio=False,
    ),
    Demand(
        "http:GET",
        "GET stream",
        "both",
        "changes come on the stream that answers subscriptions/listen; GET is 405",
        LISTEN,
        _listen,
        stdio=False,
    ),
    Demand(
        "http:DELETE", "DELETE of a session", "client", "there is nothing to tear down; DELETE is 405", HTTP, _gone, stdio=False
    ),
    Demand(
        "http+sse",
        "the HTTP+SSE transport of 2024-11-05",
        "both",
        "Streamable HTTP: each message is a POST to one URL, answered in its own response",
        f"{HTTP}#httpsse-transport-2024-11-05",
        stdio=False,
    ),
    Demand(
        "server:elicitation/create",
        "elicitation/create of the server",
        "both",
        "the call is answered with resultType input_required and inputRequests; the client asks again with inputResponses",
        MRTR,
        _question,
    ),
    Demand(
        "server:sampling/createMessage",
        "sampling/createMessage of the server",
        "both",
        "asked for by inputRequests, as elicitation is; sampling is deprecated: call a model provider yourself",
        MRTR,
        _question,
    ),
    Demand(
        "server:roots/list",
        "roots/list of the server",
        "both",
        "asked for by inputRequests, as elicitation is; roots are deprecated: take paths as arguments or configuration",
        MRTR,
        _question,
    ),
    Demand("client:ping", "ping of the client", "both", "gone (SEP-2575)", "changelog#major-changes", _gone),
    Demand(
        "server:ping", "ping of the server", "both", "gone (SEP-2575): servers send no requests", "changelog#major-changes", _gone
    ),
    Demand(
        "client:logging/setLevel",
        "logging/setLevel",
        "both",
        f"gone: {LOG_LEVEL} in _meta of each request that wants logs, and none are sent without it; logging is deprecated",
        LOGGING,
        _log_level,
    ),
    Demand(
        "server:notifications/message",
        "log messages of the server",
        "server",
        "sent only on the stream of a request whose _meta names a log level; logging is deprecated",
        LOGGING,
    ),
    Demand(
        "client:resources/subscribe",
        "resources/subscribe",
        "both",
        "gone: the URIs stand in resourceSubscriptions of subscriptions/listen",
        LISTEN,
        _listen,
    ),
    Demand(
        "client:resources/unsubscribe",
        "resources/unsubscribe",
        "both",
        "gone: the client closes the stream, or opens another with fewer URIs",
        LISTEN,
        _gone,
    ),
    *(
        Demand(
            f"server:notifications/{name}",
            f"notifications/{name}",
            "server",
            "sent only on the stream of a subscriptions/listen that asked for it, with its subscriptionId",
            LISTEN,
        )
        for name in ("tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated")
    ),
    Demand(
        "client:notifications/cancelled",
        "notifications/cancelled",
        "client",
        "over HTTP the response stream is closed instead; on stdio it stays",
        "basic/patterns/cancellation#transport-specific-cancellation",
        _cancel,
    ),
    Demand(
        "client:notifications/roots/list_changed",
        "notifications/roots/list_changed",
        "client",
        "gone",
        "changelog#major-changes",
        _gone,
    ),
    Demand(
        "client:notifications/progress",
        "notifications/progress of the client",
        "client",
        "gone: the server sends no requests whose progress could be told",
        "basic/patterns/progress#progress-flow",
        _gone,
    ),
    Demand(
        "task",
        "a call that asks for a task (params.task)",
        "both",
        "tasks are an extension: the client declares it in its capabilities, the server decides whether it answers with a task",
        TASKS,
        _task,
    ),
    Demand("client:tasks/list", "tasks/list", "both", "gone: the client keeps the handles of its tasks", TASKS, _gone),
    Demand(
        "client:tasks/result",
        "tasks/result",
        "both",
        "gone: the client polls tasks/get, which brings the result when the task is completed",
        TASKS,
        lambda server, example: (
            _own(example),
            _request(server, modern.request({**example.message, "method": "tasks/get"}, _asker(server))),
        ),
    ),
    Demand(
        "client:tasks/get",
        "tasks/get",
        "both",
        "of the extension; the result stands in it once the task is completed",
        TASKS,
        _call,
    ),
    Demand("client:tasks/cancel", "tasks/cancel", "both", "of the extension; answered by an empty result", TASKS, _call),
    Demand(
        "error:-32002",
        "error -32002 (resource not found)",
        "server",
        "resource not found is -32602 with data.uri",
        "server/resources#error-handling",
        _not_found,
    ),
    Demand(
        "error:-32042",
        "error -32042 (URL elicitation required)",
        "server",
        "a question with a URL is an inputRequest of an input_required result, as any other",
        MRTR,
        _url_elicitation,
    ),
    Demand(
        "server:notifications/elicitation/complete",
        "notifications/elicitation/complete",
        "server",
        "gone: the client asks again when its user is back",
        MRTR,
        _gone,
    ),
    Demand(
        "header:last-event-id",
        "Last-Event-ID",
        "both",
        "streams are not resumed: the client asks again with a new id",
        HTTP,
        lambda server, example: (_own(example), ["the request once more, with a new id"]),
        stdio=False,
    ),
    Demand("batch", "batches", "client", "one message in a POST", HTTP, stdio=False),
)
ALWAYS = (
    Demand(
        "call",
        "requests",
        "client",
        f"each request carries its envelope in _meta; over HTTP MCP-Protocol-Version: {MODERN_FROM}, Mcp-Method and, where the "
        "method has one, Mcp-Name are mirrored, and Mcp-Param-* that the tool declares",
        "basic/index#_meta",
        _call,
    ),
    Demand(
        "result",
        "results",
        "server",
        "each result has resultType; lists, reads and server/discover have ttlMs and cacheScope",
        "basic/index#result-responses",
    ),
    Demand(
        "",
        "refusals",
        "server",
        "mirrored headers are checked against the body (400, -32020), unknown versions refused with data.supported "
        "(400, -32022), missing capabilities named (400, -32021), unknown methods are 404 with -32601",
        f"{HTTP}#server-validation",
        stdio=False,
    ),
    Demand(
        "",
        "retries",
        "client",
        "each retry has a new id; a result without resultType, of an older server, is complete",
        "basic/index#result-responses",
    ),
)
