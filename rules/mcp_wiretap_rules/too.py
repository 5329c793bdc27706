"""TOO: tool definitions, calls against their schemas, results (2026-07-28 server/tools, basic/index#json-schema-usage)."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcp_wiretap.rule import Evidence, Finding, Severity, Unchecked, evidence, rule
from mcp_wiretap.trace.lists.fetched_schemas import FETCHED, address
from mcp_wiretap.trace.lists.pagination import LIST, ListView
from mcp_wiretap.trace.lists.tools import TOOLS_CHANGED
from mcp_wiretap.trace.model import Message, ToolDefinition
from mcp_wiretap.trace.operations.tasks import TASK, Task, TaskView
from mcp_wiretap.trace.schema import fits
from mcp_wiretap.trace.schema.reading import canonical_dialect
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules.rsc import listed_twice, pages_apart

TOOLS = "2026-07-28 server/tools"
SCHEMAS = "2026-07-28 basic/index"
CALL = ("tools/call",)
OF_TASKS = ("tasks/get", "tasks/result")
WITH_NAMES = rev.since("2025-11-25")  # that say what a tool name looks like
STRUCTURED = rev.since("2025-06-18")
DEEP, MANY = fits.MOST_DEPTH, fits.MOST_NODES  # past these a schema is called extreme
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_UNKNOWN_TOOL = re.compile(r"unknown tool|no such tool|\btool\b.{0,200}\bnot found", re.I | re.S)
_KNOWN_SCHEMAS = re.compile(r"https?://json-schema\.org/draft")


def _named(definition: ToolDefinition) -> str:
    return f"tool {one_line(definition.name, 60)}"


@rule(
    "TOO001",
    "tool-name-charset",
    "Tool name outside recommended form",
    on="tool",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{TOOLS}#tool-names",
    sep="986",
    versions=WITH_NAMES,
)
def tool_name_charset(definition: ToolDefinition) -> Iterator[Finding]:
    """A tool name has 1 to 128 characters out of letters, digits, `_`, `-` and `.`.

    Why: model providers refuse other names, and clients have to rename the tool.

    Fix: put the pretty name into `title`.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "get weather", "inputSchema": {"type": "object"}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "get_weather", "title": "Get weather", "inputSchema": {"type": "object"}}]}
    """
    name = definition.raw.get("name")
    if isinstance(name, str) and not _NAME.fullmatch(name):
        why = f"{len(name)} characters" if len(name) > 128 or not name else "characters outside A-Z, a-z, 0-9, _, . and -"
        yield Finding(
            f"the tool name {one_line(name, 60)!r} has {why}", [evidence(definition.place("name"), name, "1-128 of A-Za-z0-9_-.")]
        )


@rule(
    "TOO002",
    "tool-name-duplicate",
    "Duplicate tool name",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{TOOLS}#tool-names",
    sep="986",
    versions=WITH_NAMES,
    methods=("tools/list",),
)
def tool_name_duplicate(message: Message) -> Iterator[Finding]:
    """A listing names each tool once, on all its pages. A tool that a change of the list moved to the next page is a note.

    Why: a call by that name reaches one of the two, and nobody knows which.

    Fix: give each tool a name of its own; behind a gateway, a prefix of its server.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": "a", "inputSchema": {"type": "object"}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": "A", "inputSchema": {"type": "object"}}]}
    """
    tools = message.result.get("tools")
    names = [tool.get("name") if isinstance(tool, dict) else None for tool in tools] if isinstance(tools, list) else []
    for index, name in listed_twice(message, "tools", "name"):
        first = names.index(name)
        place = [evidence(message.place("result", "tools", index, "name"), name, "each name once")]
        if first < index:
            yield Finding(f"the tool {one_line(name, 60)} is listed twice (first at {first})", place)
        else:
            text = f"the tool {one_line(name, 60)} is listed on an earlier page as well"
            yield Finding(text, place, "info" if _changed_between(message) or pages_apart(message) else None)


def _changed_between(message: Message) -> bool:
    """Whether the server told of a change between a page and the one before it."""
    owner = message.request.exchange if message.request is not None else message.exchange
    view: ListView | None = owner.facts.get(LIST)
    changed = owner.endpoint.facts.get(TOOLS_CHANGED)
    return changed is not None and view is not None and view.issuer is not None and view.issuer.at <= changed <= message.at


@rule(
    "TOO003",
    "input-schema-root",
    "inputSchema is not an object schema",
    on="tool",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{TOOLS}#tool",
)
def input_schema_root(definition: ToolDefinition) -> Iterator[Finding]:
    """inputSchema is there, is an object, and its root has `type: "object"`.

    Why: clients drop the tool, some the whole list.

    Fix: a tool without parameters has `{"type": "object", "additionalProperties": false}`.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
    """
    given = definition.raw.get("inputSchema")
    if not isinstance(given, dict):
        what = "absent" if "inputSchema" not in definition.raw else one_line(dumps(given), 40)
        yield Finding(
            f"{_named(definition)}: inputSchema is {what}", [evidence(definition.place("inputSchema"), given, "an object schema")]
        )
    elif given.get("type") != "object":
        what = "no type" if "type" not in given else f"the type {one_line(dumps(given['type']), 40)}"
        yield Finding(
            f"{_named(definition)}: the root of inputSchema has {what}, not object",
            [evidence(definition.place("inputSchema", "type"), given.get("type"), "object")],
        )


def _schemas(definition: ToolDefinition) -> Iterator[tuple[str, Any]]:
    for member in ("inputSchema", "outputSchema"):
        value = definition.raw.get(member)
        if isinstance(value, dict):
            yield member, value


@rule(
    "TOO004",
    "schema-invalid",
    "Schema invalid in its dialect",
    on="tool",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{SCHEMAS}#json-schema-usage",
    sep="2106",
    versions=WITH_NAMES,
)
def schema_invalid(definition: ToolDefinition) -> Iterator[Finding | Unchecked]:
    """A tool's schemas are valid in the dialect that `$schema` names, 2020-12 without it.

    Why: a validator cannot load the schema, and clients drop the tool.

    Fix: check the schema against its metaschema in a test.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"n": {"type": "strin"}}}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"n": {"type": "string", "x-any": 1}}}}]}
    """
    output = definition.raw.get("outputSchema")
    if output is not None and not isinstance(output, dict):
        text = f"{_named(definition)}: outputSchema is {one_line(dumps(output, most=60), 40)}, no schema object"
        yield Finding(text, [evidence(definition.place("outputSchema"), output, "a schema object")])
    for member, value in _schemas(definition):
        reading = fits.reading_of(value)
        if isinstance(value.get("$schema"), str) and canonical_dialect(value["$schema"]) is None:
            text = f"{_named(definition)}: {member} names a dialect that is not known here: {one_line(reading.dialect, 100)}"
            yield Finding(text, [evidence(definition.place(member, "$schema"), value.get("$schema"))], "info")
        for flaw in reading.flaws[:5]:
            yield Finding(
                f"{_named(definition)}: {member} is no valid schema: {one_line(fits.words_of(flaw), 120)}",
                [Evidence(definition.place(member, *flaw.path), one_line(flaw.words, 120), f"valid {reading.dialect}")],
            )
        if reading.unchecked and not reading.flaws:
            yield Unchecked(f"{member} of {_named(definition)}", one_line(reading.unchecked, 120))


@rule(
    "TOO005",
    "external-ref",
    "Schema has a network $ref",
    on="tool",
    level="may-note",
    party="either",
    era="both",
    severity="warning",
    spec=f"{SCHEMAS}#ref-resolution",
    sep="2106",
    versions=WITH_NAMES,
)
def external_ref(definition: ToolDefinition) -> Iterator[Finding]:
    """A `$ref` that leads out of the schema's own document is not fetched by clients, unless their user asked for that.

    Why: many reject the tool, the others leave that part unchecked; one that fetches it goes wherever a server sends it.

    Fix: put the referenced schema under `$defs`.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"n": {"$ref": "https://example.com/n.json"}}}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "string"}}}}]}
    """
    fetched = definition.message.exchange.facts.get(FETCHED, {}) if definition.message is not None else {}
    for member, value in _schemas(definition):
        for remote in fits.reading_of(value).remote[:5]:
            if _KNOWN_SCHEMAS.match(remote.words):
                continue
            shown, at = one_line(remote.words, 100), definition.place(member, *remote.path)
            text = f"{_named(definition)}: {member} refers to {shown}, which clients must not fetch"
            yield Finding(text, [Evidence(at, one_line(remote.words, 150), "a reference inside the schema")], "info")
            flow = fetched.get(address(remote.words))
            if flow is not None:
                text = f"{shown}, which {member} of {_named(definition)} refers to, was fetched after the list"
                yield Finding(text, [Evidence(at, one_line(remote.words, 150), "no request")], party="client", related=(flow,))


@rule(
    "TOO006",
    "schema-too-complex",
    "Schema depth/size extreme",
    on="tool",
    level="may-note",
    party="server",
    era="modern",
    severity="info",
    spec=f"{SCHEMAS}#composition-keyword-resource-use",
    sep="2106",
)
def schema_too_complex(definition: ToolDefinition) -> Iterator[Finding]:
    """Clients bound what they spend on a schema; one that is very deep or very large may be refused.

    Why: it costs each client time, and each model tokens.

    Fix: simplify the parameters.

    Wrong::

        modern tools/list
          -> tool deep {"a": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {"items": {}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}

    Right::

        modern tools/list
          -> tool flat {"a": {"items": {}}}
    """
    for member, value in _schemas(definition):
        reading = fits.reading_of(value)
        if reading.depth >= DEEP or reading.nodes >= MANY:  # the reading stops there
            yield Finding(
                f"{_named(definition)}: {member} is extreme ({one_line(reading.unchecked or 'very large', 80)})",
                [Evidence(definition.place(member), f"depth {reading.depth}, {reading.nodes} values", "less")],
            )


@rule(
    "TOO007",
    "unknown-tool-called",
    "Call of a tool not in the list",
    on="request",
    level="may-note",
    party="client",
    era="both",
    severity="info",
    spec=f"{TOOLS}#error-handling",
    methods=CALL,
)
def unknown_tool_called(message: Message) -> Iterator[Finding]:
    """The called tool is in no complete list that this client had seen.

    Why: the server will most likely answer that it does not know it.

    Fix: look at the newest list; a hidden tool may be called on purpose.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
        modern tools/call {"name": "b"}
          -> error -32602

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
        modern tools/call {"name": "a"}
          -> result {"content": []}
    """
    view = message.exchange.tool
    if view is not None and view.definition is None and view.unlisted:
        name = message.params.get("name")
        text = f"{one_line(str(name), 60)} is not in the list that the server gave"
        yield Finding(text, [evidence(message.place("params", "name"), name)], related=(view.unlisted,))


def _definition(message: Message) -> ToolDefinition | None:
    """The definition that the caller of this answer's request had seen, where it may be judged by."""
    request = message.request
    view = request.exchange.tool if request is not None else None
    return view.definition if view is not None and not view.by_other else None


def _verdict(wanted: dict[str, Any], value: Any) -> fits.SchemaVerdict:
    """What a schema says of a value; nothing where part of the schema is elsewhere: what stands there may change the rest."""
    remote = [r.words for r in fits.reading_of(wanted).remote if not _KNOWN_SCHEMAS.match(r.words)]
    if remote:
        return fits.SchemaVerdict(unchecked=f"it refers to {one_line(remote[0], 80)}, which is not fetched")
    return fits.check(wanted, value)


@rule(
    "TOO008",
    "arguments-vs-schema",
    "Arguments do not match inputSchema",
    on="answer",
    level="may-note",
    party="client",
    era="both",
    severity="warning",
    spec=f"{TOOLS}#tool",
    methods=CALL,
)
def arguments_vs_schema(message: Message) -> Iterator[Finding | Unchecked]:
    """The arguments of a call fit the inputSchema that the client had seen. A server that refuses them did its work: a note; one
    that takes them did not check them: a warning.

    Why: a tool that runs on what it did not ask for does something nobody meant.

    Fix: client: validate before calling. Server: validate, and answer with isError and the reason.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}]}
        modern tools/call {"name": "a", "arguments": {"n": "four"}}
          -> result {"content": []}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}]}
        modern tools/call {"name": "a", "arguments": {"n": 4.0}}
          -> result {"content": []}
    """
    definition, request = _definition(message), message.request
    if definition is None or request is None or (message.rpc.kind == "error" and message.error_code != rev.INVALID_PARAMS):
        return
    if "inputResponses" in request.params or "requestState" in request.params:
        return  # a retry repeats the arguments of its first round
    wanted = definition.raw.get("inputSchema")
    arguments = request.params.get("arguments", {})
    if not isinstance(wanted, dict):
        return
    verdict = _verdict(wanted, arguments)
    refused = message.rpc.kind == "error" or message.result.get("isError") is True
    for problem in verdict.problems[:5]:
        yield Finding(
            f"the arguments do not fit the schema: {one_line(fits.words_of(problem), 120)}"
            + ("" if refused else ", and the server took them"),
            [
                Evidence(
                    request.place("params", "arguments", *problem.path), one_line(problem.words, 120), "inputSchema of the tool"
                )
            ],
            "info" if refused else None,
            related=(definition.flow,),
        )
    if verdict.unchecked and not verdict.problems:
        yield Unchecked(f"arguments of {_named(definition)}", one_line(verdict.unchecked, 120))


class _Given(NamedTuple):
    """The result of a tool, and the steps to it in the answer that brings it."""

    result: dict[str, Any]
    steps: tuple[str, ...]


def _task(message: Message) -> Task | None:
    """The task of a tool that an answer is about."""
    view: TaskView | None = message.request.exchange.facts.get(TASK) if message.request is not None else None
    task = view.task if view is not None else None
    return task if task is not None and task.tool is not None and task.origin.method == "tools/call" else None


def _tool_result(message: Message) -> _Given | None:
    """The complete result of a tool: of a call, of tasks/result, or in a tasks/get."""
    result, request = message.result, message.request
    if request is None or message.rpc.kind != "result" or not isinstance(message.rpc.result, dict):
        return None
    if request.method == "tasks/get":
        inner = result.get("result")
        done = result.get("status") == "completed" and isinstance(inner, dict) and _task(message) is not None
        return _Given(inner, ("result", "result")) if done and isinstance(inner, dict) else None
    if request.method == "tasks/result" and _task(message) is None:
        return None
    if result.get("resultType") not in (None, "complete") or isinstance(result.get("task"), dict):
        return None
    return _Given(result, ("result",))


def _promised(message: Message) -> tuple[ToolDefinition | None, Severity | None]:
    """The definition that a result is judged by, and how sure that is: a note where it may be out of date, or was given to
    somebody else."""
    request, task = message.request, _task(message)
    view = request.exchange.tool if request is not None else None
    if task is not None:
        return task.definition, None
    if request is None or view is None:
        return None, None
    endpoint, definition = request.exchange.endpoint, view.definition
    if definition is None or view.by_other:
        listed = endpoint.tools.get(str(request.params.get("name"))) if not view.unlisted and endpoint.era != "dual" else None
        return (listed if isinstance(listed, ToolDefinition) and listed.listed_at < message.at else None), "info"
    changed = endpoint.facts.get(TOOLS_CHANGED, 0.0)
    stale = view.delisted or view.seen_at < changed <= message.at or (view.stale_at is not None and view.stale_at < message.at)
    return definition, "info" if stale else None


@rule(
    "TOO009",
    "structured-content-vs-output",
    "structuredContent violates outputSchema",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{TOOLS}#output-schema",
    versions=STRUCTURED,
    methods=(*CALL, *OF_TASKS),
    sorts=("result",),
)
def structured_content_vs_output(message: Message) -> Iterator[Finding | Unchecked]:
    """A tool with an outputSchema answers with structuredContent that fits it, unless the call failed (isError).

    Why: clients validate it and throw the result away.

    Fix: build the result from the type that the schema was made of.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}]}
        modern tools/call {"name": "a"}
          -> result {"content": [], "structuredContent": {"n": "four"}}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}]}
        modern tools/call {"name": "a"}
          -> result {"content": [{"type": "text", "text": "4"}], "structuredContent": {"n": 4, "more": true}}
    """
    given = _tool_result(message)
    if given is None or given.result.get("isError") is True:
        return
    definition, severity = _promised(message)
    wanted = definition.raw.get("outputSchema") if definition is not None else None
    if definition is None or not isinstance(wanted, dict):
        return
    if "structuredContent" not in given.result:
        yield Finding(
            f"{_named(definition)} has an outputSchema, and the result has no structuredContent",
            [evidence(message.place(*given.steps, "structuredContent"), None, "a value that fits outputSchema")],
            severity,
            related=(definition.flow,),
        )
        return
    verdict = _verdict(wanted, given.result["structuredContent"])
    for problem in verdict.problems[:5]:
        place = message.place(*given.steps, "structuredContent", *problem.path)
        yield Finding(
            f"structuredContent does not fit outputSchema: {one_line(fits.words_of(problem), 120)}",
            [Evidence(place, one_line(problem.words, 120), "outputSchema")],
            severity,
            related=(definition.flow,),
        )
    if verdict.unchecked and not verdict.problems:
        yield Unchecked(f"structuredContent of {_named(definition)}", one_line(verdict.unchecked, 120))


@rule(
    "TOO010",
    "structured-without-text",
    "No text fallback for structured content",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="info",
    spec=f"{TOOLS}#structured-content",
    versions=STRUCTURED,
    methods=CALL,
    once="endpoint",
    sorts=("result",),
)
def structured_without_text(message: Message) -> Iterator[Finding]:
    """structuredContent should also stand in `content` as JSON text.

    Why: older clients, and models, read `content` only.

    Fix: add a text block with the same JSON.

    Wrong::

        modern tools/call {"name": "a"}
          -> result {"content": [{"type": "text", "text": "done"}], "structuredContent": {"n": 4}}

    Right::

        modern tools/call {"name": "a"}
          -> result {"content": [{"type": "text", "text": "{\\"n\\": 4}"}], "structuredContent": {"n": 4}}
    """
    result = message.result
    if "structuredContent" not in result or result.get("isError") is True:
        return
    content = result.get("content")
    for block in content[:20] if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and len(text) < 100_000 and _same_json(text, result["structuredContent"]):
            return
    yield Finding(
        "structuredContent does not stand in content as text",
        [
            evidence(
                message.place("result", "content"),
                f"{len(content) if isinstance(content, list) else 0} blocks",
                "the JSON as text",
            )
        ],
    )


def _same_json(text: str, value: Any) -> bool:
    """Whether a text says the value; SDKs wrap what a tool returns into `{"result": ...}` where it is no object."""
    wrapped = value["result"] if isinstance(value, dict) and value.keys() == {"result"} else value
    if text == wrapped:
        return True
    try:
        return json.loads(text) in (value, wrapped)
    except (ValueError, RecursionError):
        return False


@rule(
    "TOO011",
    "structured-not-object-legacy",
    "structuredContent not an object on legacy",
    on="answer",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec="2025-11-25 schema#calltoolresult",
    sep="2106",
    versions=("2025-06-18", "2025-11-25"),
    methods=CALL,
)
def structured_not_object_legacy(message: Message) -> Iterator[Finding]:
    """Up to 2025-11-25 structuredContent is an object; any JSON value only from 2026-07-28 on.

    Why: typed legacy clients refuse the result.

    Fix: wrap the value: `{"result": [...]}`.

    Wrong::

        legacy tools/call {"name": "a"}
          version 2025-11-25
          -> result {"content": [], "structuredContent": [1]}

    Right::

        legacy tools/call {"name": "a"}
          version 2025-11-25
          -> result {"content": [], "structuredContent": {"result": [1]}}
    """
    result = message.result
    if "structuredContent" in result and not isinstance(result["structuredContent"], dict):
        place = message.place("result", "structuredContent")
        text = f"structuredContent is {one_line(dumps(result['structuredContent']), 40)}, not an object"
        yield Finding(text, [evidence(place, result["structuredContent"], "an object")])


@rule(
    "TOO013",
    "unknown-tool-as-iserror",
    "Unknown tool reported as isError result",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{TOOLS}#error-handling",
    methods=CALL,
    once="endpoint",
    sorts=("result",),
)
def unknown_tool_as_iserror(message: Message) -> Iterator[Finding]:
    """A tool that does not exist is a protocol error, -32602, not a result with isError.

    Why: the model is told that the tool failed, and tries again.

    Fix: answer the error -32602.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
        modern tools/call {"name": "nope"}
          -> result {"content": [{"type": "text", "text": "Unknown tool: nope"}], "isError": true}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
        modern tools/call {"name": "nope"}
          -> error -32602 {"message": "Unknown tool: nope"}
    """
    request, result = message.request, message.result
    name = request.params.get("name") if request is not None else None
    if result.get("isError") is not True or not isinstance(name, str) or request is None:
        return
    view = request.exchange.tool
    if view is not None and view.definition is not None:
        return
    content = result.get("content")
    for index, block in enumerate(content[:5] if isinstance(content, list) else ()):
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and name in text and _UNKNOWN_TOOL.search(text[:1_000]):
            listed = view is not None and view.unlisted
            severity: Severity | None = None if listed and message.exchange.claim.modern else "info"
            words = f"the unknown tool {one_line(name, 60)} was answered by a result with isError"
            place = message.place("result", "content", index, "text")
            yield Finding(words, [evidence(place, text, "error -32602")], severity, once=severity or "sure")
            return


@rule(
    "TOO014",
    "input-error-as-protocol-error",
    "Input validation reported as protocol error",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="info",
    spec=f"{TOOLS}#error-handling",
    sep="1303",
    versions=WITH_NAMES,
    methods=CALL,
    sorts=("error",),
)
def input_error_as_protocol_error(message: Message) -> Iterator[Finding]:
    """Arguments that do not fit are better answered by a result with isError than by -32602.

    Why: the model sees a tool's own words and can correct itself; a protocol error it never sees.

    Fix: answer `isError: true` with what was wrong in `content`.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "required": ["n"]}}]}
        modern tools/call {"name": "a", "arguments": {}}
          -> error -32602

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object", "required": ["n"]}}]}
        modern tools/call {"name": "a", "arguments": {}}
          -> result {"content": [{"type": "text", "text": "n is missing"}], "isError": true}
    """
    definition, request = _definition(message), message.request
    if message.error_code != rev.INVALID_PARAMS or definition is None or request is None:
        return
    wanted = definition.raw.get("inputSchema")
    if isinstance(wanted, dict) and _verdict(wanted, request.params.get("arguments", {})).problems:
        yield Finding(
            "arguments that do not fit were answered by -32602: a result with isError reaches the model",
            [evidence(message.place("error", "code"), "-32602", "a result with isError")],
        )


@rule(
    "TOO015",
    "tool-result-content-missing",
    "complete tool result without content",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="2026-07-28 schema#calltoolresult",
    methods=(*CALL, *OF_TASKS),
    sorts=("result",),
)
def tool_result_content_missing(message: Message) -> Iterator[Finding]:
    """A tool result has `content`, an array, also where it has structuredContent; `[]` is legal.

    Why: typed clients refuse the result.

    Fix: send `"content": []` at the least.

    Wrong::

        modern tools/call {"name": "a"}
          -> result {"structuredContent": {"n": 4}}

    Right::

        modern tools/call {"name": "a"}
          -> result {"content": []}
    """
    given = _tool_result(message)
    if given is None or isinstance(given.result.get("content"), list) or "toolResult" in given.result:
        return
    content = given.result.get("content")
    what = "absent" if "content" not in given.result else one_line(dumps(content), 40)
    yield Finding(
        f"content of the tool result is {what}", [evidence(message.place(*given.steps, "content"), content, "an array")]
    )


@rule(
    "TOO016",
    "tool-annotations-contradict",
    "Annotation hints contradict",
    on="tool",
    level="may-note",
    party="server",
    era="both",
    severity="info",
    spec="2026-07-28 schema#toolannotations",
    versions=("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"),
)
def tool_annotations_contradict(definition: ToolDefinition) -> Iterator[Finding]:
    """A tool that only reads destroys nothing.

    Why: a client that goes by the hints asks too often, or not at all.

    Fix: leave destructiveHint out where readOnlyHint is true.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "destructiveHint": true}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}
    """
    hints = definition.raw.get("annotations")
    if isinstance(hints, dict) and hints.get("readOnlyHint") is True and hints.get("destructiveHint") is True:
        place = definition.place("annotations", "destructiveHint")
        yield Finding(f"{_named(definition)} only reads, and destroys", [evidence(place, "true", "false, or absent")])


@rule(
    "TOO017",
    "legacy-task-support-field",
    "execution.taskSupport on modern",
    on="tool",
    level="may-note",
    party="server",
    era="modern",
    severity="info",
    spec="2663 Backward Compatibility",
    sep="2663",
    once="endpoint",
)
def legacy_task_support_field(definition: ToolDefinition) -> Iterator[Finding]:
    """execution.taskSupport belongs to the tasks of 2025-11-25; the extension does not read it.

    Why: it has no effect.

    Fix: leave it out for modern clients.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
    """
    execution = definition.raw.get("execution")
    if isinstance(execution, dict) and "taskSupport" in execution:
        place = definition.place("execution", "taskSupport")
        yield Finding("execution.taskSupport has no meaning in the modern era", [evidence(place, execution["taskSupport"])])


@rule(
    "TOO018",
    "output-schema-root-legacy",
    "outputSchema root is not type object on legacy",
    on="tool",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec="2025-11-25 schema#tool",
    sep="2106",
    versions=("2025-06-18", "2025-11-25"),
)
def output_schema_root_legacy(definition: ToolDefinition) -> Iterator[Finding]:
    """Up to 2025-11-25 the root of outputSchema has `type: "object"`.

    Why: typed legacy clients refuse the whole list.

    Fix: wrap or leave out such schemas for legacy clients.

    Wrong::

        legacy tools/list
          version 2025-11-25
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}]}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}]}
    """
    given = definition.raw.get("outputSchema")
    if "outputSchema" in definition.raw and not (isinstance(given, dict) and given.get("type") == "object"):
        place = definition.place("outputSchema", "type")
        kind = given.get("type") if isinstance(given, dict) else dumps(given, most=60)
        yield Finding(f"{_named(definition)}: the root of outputSchema is not type object", [evidence(place, kind, "object")])
