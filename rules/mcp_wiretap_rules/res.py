"""RES: results (2026-07-28 basic/index#result-responses and the schema of each method)."""

from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Finding, Severity, Unchecked, evidence, rule
from mcp_wiretap.trace.era.discover import DRIFT, Drift, advertised
from mcp_wiretap.trace.lists.pagination import LIST, ListView
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap.wire.values import is_date_or_time, is_number
from mcp_wiretap_rules import blocks, icons, shapes
from mcp_wiretap_rules.extensions import names_a_foreign_one
from mcp_wiretap_rules.inputs import MRTR, SAMPLE, asks, declared, supports

RESULT_TYPE = "2026-07-28 basic/index#resulttype"
TOOLS = "2026-07-28 server/tools#capabilities"
MOST = 200  # entries of one list that are looked at one by one
_LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_GROUPS = {"tools": "tools", "prompts": "prompts", "resources": "resources"}
_FLAGS = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
}
_ACKNOWLEDGED = {
    "toolsListChanged": ("tools", "listChanged"),
    "promptsListChanged": ("prompts", "listChanged"),
    "resourcesListChanged": ("resources", "listChanged"),
    "resourceSubscriptions": ("resources", "subscribe"),
}
_BEFORE_THE_METHOD = frozenset({rev.METHOD_NOT_FOUND, rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION})


def _owner(answer: Message) -> Exchange:
    return answer.request.exchange if answer.request is not None else answer.exchange


def _items(result: dict[str, Any], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    entries = result.get(name)
    for index, item in enumerate(entries[:MOST] if isinstance(entries, list) else ()):
        if isinstance(item, dict):
            yield index, item


def _shown(value: Any) -> str:
    return "null" if value is None else one_line(dumps(value, most=60), 40)


@rule(
    "RES001",
    "result-type-missing",
    "Modern result without resultType",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=RESULT_TYPE,
    sep="2322",
    sorts=("result",),
)
def result_type_missing(message: Message) -> Iterator[Finding]:
    """Every result of a modern server says by resultType what it is, for every method.

    Why: the client tells a question (`input_required`) or a task from the final result by it.

    Fix: `"resultType": "complete"`.

    Wrong::

        modern tools/list
          -> result {"tools": []}
        modern tools/call {"name": "open"}
          -> raw-result {"content": []}

    Right::

        modern tools/list
          -> result {"tools": []}
        modern tools/call {"name": "open"}
          -> raw-result {"content": [], "resultType": "complete"}
    """
    result = message.rpc.result
    if message.rpc.kind != "result" or not isinstance(result, dict) or "resultType" in result:
        return
    yield Finding(
        "the result has no resultType",
        [evidence(message.place("result", "resultType"), None, "complete")],
    )


@rule(
    "RES002",
    "result-type-unknown",
    "resultType not usable by this client",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=RESULT_TYPE,
    sep="2322",
    sorts=("result",),
)
def result_type_unknown(message: Message) -> Iterator[Finding]:
    """resultType is `complete`, `input_required`, or a word of an extension that both sides declared.

    Why: a client must take a result of a type that it does not know for invalid.

    Fix: `complete`. Use words of an extension only where the request declares it.

    Wrong::

        modern tools/call {"name": "open"}
          -> result {"content": [], "resultType": "done"}

    Right::

        modern tools/call {"name": "open"}
          -> result {"content": [], "resultType": "complete"}
    """
    result = message.result
    if "resultType" not in result:
        return
    kind = result["resultType"]
    if kind in ("complete", "input_required", "task"):
        return
    if not isinstance(kind, str):
        yield Finding(
            f"resultType is {kind_of(kind)}, not a string", [evidence(message.place("result", "resultType"), _shown(kind))]
        )
        return
    capabilities = declared(_owner(message)) or {}
    may_be = names_a_foreign_one(capabilities)
    yield Finding(
        f"resultType is {one_line(kind, 40)}, which the client must take for invalid",
        [evidence(message.place("result", "resultType"), kind, "complete or input_required")],
        "info" if may_be else None,
    )


@rule(
    "RES003",
    "input-required-not-allowed-here",
    "input_required on an unsupported method",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 basic/patterns/mrtr#supported-requests",
    sep="2322",
    sorts=("result",),
)
def input_required_not_allowed_here(message: Message) -> Iterator[Finding]:
    """Only tools/call, prompts/get and resources/read may be answered by input_required.

    Why: clients retry those three; elsewhere the answer is an invalid result.

    Fix: ask in one of those calls, or answer -32021 where the client lacks a capability.

    Wrong::

        modern tools/list
          -> result {"resultType": "input_required", "requestState": "sealed-state-1"}

    Right::

        modern tools/call {"name": "open"}
          -> result {"resultType": "input_required", "requestState": "sealed-state-1"}
    """
    if message.result.get("resultType") != "input_required" or message.request is None:
        return
    method = message.request.rpc.method or ""
    if method in MRTR:
        return
    yield Finding(
        f"{one_line(method, 60)} was answered by input_required",
        [evidence(message.place("result", "resultType"), "input_required", "complete")],
    )


@rule(
    "RES004",
    "result-shape",
    "complete result does not match the method schema",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="2026-07-28 schema",
)
def result_shape(message: Message) -> Iterator[Finding | Unchecked]:
    """A complete result has the members that the schema of its method demands, of the right type.

    Why: clients parse results by the schema; one wrong entry makes many of them reject the whole list.

    Fix: the message names the place. Members without a value are left out, not null.

    Wrong::

        modern resources/list
          -> result {"resources": [{"uri": "file:///a"}]}

    Right::

        modern resources/list
          -> result {"resources": [{"uri": "file:///a", "name": "a"}]}
    """
    result, request = message.rpc.result, message.request
    if message.rpc.kind != "result" or not isinstance(result, dict) or request is None:
        return
    if result.get("resultType", "complete") != "complete" or isinstance(request.params.get("task"), dict):
        return
    owner = request.exchange
    for problem in shapes.problems(request.rpc.method or "", owner.revision, result):
        value = "null" if problem.value is None else problem.value
        where = message.place("result", *problem.steps)
        shown = None if problem.words.endswith("is missing") else value
        yield Finding(problem.words, [evidence(where, shown)], problem.severity)
    if (rest := shapes.left_out(request.rpc.method or "", result)) is not None:
        yield Unchecked("shape of the result", rest)


@rule(
    "RES005",
    "discover-fields",
    "DiscoverResult incomplete",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 server/discover#discoverresult",
    sep="2575",
    methods=("server/discover",),
)
def discover_fields(message: Message) -> Iterator[Finding]:
    """server/discover lists the supported versions and the capabilities; instructions are text.

    Why: the client chooses its version from the list, and its calls from the capabilities.

    Fix: `{"supportedVersions": ["2026-07-28"], "capabilities": {}}`.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": "2026-07-28", "capabilities": {}}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    """
    result = message.rpc.result
    if message.rpc.kind != "result" or not isinstance(result, dict):
        return
    if "resultType" not in result and "supportedVersions" not in result:
        return  # a legacy server that answers whatever it is asked
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(v, str) for v in versions):
        what = "no supportedVersions" if versions is None else "supportedVersions that are no list of strings"
        yield Finding(
            f"the result has {what}", [evidence(message.place("result", "supportedVersions"), versions, "a list of versions")]
        )
    elif not versions:
        yield Finding("supportedVersions is empty", [evidence(message.place("result", "supportedVersions"), [])], "warning")
    if not isinstance(result.get("capabilities"), dict):
        yield Finding(
            "the result has no capabilities object",
            [evidence(message.place("result", "capabilities"), result.get("capabilities"), "an object")],
        )
    if not isinstance(result.get("instructions", ""), str):
        yield Finding(
            f"instructions is {kind_of(result['instructions'])}, not a string",
            [evidence(message.place("result", "instructions"), _shown(result["instructions"]))],
        )


_INITIALIZE = {
    "request": (("protocolVersion", str), ("capabilities", dict), ("clientInfo", dict)),
    "result": (("protocolVersion", str), ("capabilities", dict), ("serverInfo", dict)),
}


@rule(
    "RES006",
    "legacy-initialize-fields",
    "InitializeResult incomplete",
    on=("request", "answer"),
    level="must",
    party="either",
    era="legacy",
    severity="error",
    spec="2025-11-25 basic/lifecycle#initialization",
    methods=("initialize",),
)
def legacy_initialize_fields(message: Message) -> Iterator[Finding]:
    """initialize and its result say protocolVersion, capabilities, and who is speaking.

    Why: nothing else in the session says it.

    Fix: `{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "...", "version": "..."}}`.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"}}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    """
    kind = message.rpc.kind
    if kind not in _INITIALIZE or (kind == "result" and not isinstance(message.rpc.result, dict)):
        return
    content, holder = (message.params, "params") if kind == "request" else (message.result, "result")
    for name, wanted in _INITIALIZE[kind]:
        value = content.get(name)
        if not isinstance(value, wanted):
            needed = "a string" if wanted is str else "an object"
            what = f"has no {name}" if value is None else f"has a {name} that is {kind_of(value)}, not {needed}"
            yield Finding(f"the initialize {kind} {what}", [evidence(message.place(holder, name), value, needed)])


def _lacks(capabilities: dict[str, Any], group: str) -> bool:
    return not isinstance(capabilities.get(group), dict)


@rule(
    "RES007",
    "capability-not-advertised",
    "Server serves or sends what it did not advertise",
    on=("answer", "push"),
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=TOOLS,
    sep="2575",
)
def capability_not_advertised(message: Message) -> Iterator[Finding]:
    """A server advertises what it serves: tools, prompts, resources, and the notifications that it sends for them.

    Why: clients call only what is advertised; the rest is never found.

    Fix: add the capability, with `listChanged` or `subscribe` where notifications are sent.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        modern prompts/list
          -> result {"prompts": []}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"prompts": {}}}
        modern prompts/list
          -> result {"prompts": []}
    """
    if message.request is not None:
        if message.rpc.kind == "result":
            yield from _served_unadvertised(message, message.request)
        return
    if message.rpc.kind != "notification":
        return
    flag = _FLAGS.get(message.method or "")
    if flag is not None:
        yield from _unadvertised_notification(message, *flag)
    elif message.method == "notifications/subscriptions/acknowledged":
        granted = message.params.get("notifications")
        for name, flag in _ACKNOWLEDGED.items():
            if isinstance(granted, dict) and granted.get(name):
                yield from _unadvertised_notification(message, *flag, name)


def _served_unadvertised(message: Message, request: Message) -> Iterator[Finding]:
    group = _GROUPS.get((request.rpc.method or "").partition("/")[0])
    if group is None:
        return
    told = advertised(request.exchange)
    if told is None or not _lacks(told[0], group):
        return
    yield Finding(
        f"the server serves {request.rpc.method}, but advertises no {group}",
        [evidence(request.place("method"), request.rpc.method, f"capabilities.{group}")],
        related=(told[1],) if told[1] else (),
    )


def _unadvertised_notification(message: Message, group: str, flag: str, granted: str = "") -> Iterator[Finding]:
    told = advertised(message.exchange)
    if told is None:
        return
    capability = told[0].get(group)
    if isinstance(capability, dict) and capability.get(flag) is True:
        return
    what = f"grants {granted}" if granted else f"sends {message.method}"
    lacking = f"{group}.{flag}" if isinstance(capability, dict) else group
    where = message.place("params", "notifications", granted) if granted else message.place("method")
    severity: Severity = "info" if isinstance(capability, dict) or granted else "warning"
    yield Finding(
        f"the server {what}, but advertises no {lacking}",
        [evidence(where, granted or message.method, f"capabilities.{lacking}")],
        severity,
        related=(told[1],) if told[1] else (),
    )


@rule(
    "RES008",
    "capability-advertised-but-missing",
    "Advertised feature answers -32601",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=TOOLS,
    sep="2575",
    methods=(*_LISTED, "subscriptions/listen"),
    sorts=("error",),
)
def capability_advertised_but_missing(message: Message) -> Iterator[Finding]:
    """What a server advertises it serves: the list of its kind, and subscriptions where it says that lists change.

    Why: the client offers the feature to its user, and it fails each time.

    Fix: implement the method, or do not advertise the capability.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"prompts": {}}}
        modern prompts/list
          -> error -32601

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern prompts/list
          -> error -32601
    """
    request = message.request
    if message.error_code != rev.METHOD_NOT_FOUND or request is None:
        return
    told = advertised(request.exchange)
    if told is None:
        return
    method = request.rpc.method or ""
    if method == "subscriptions/listen":
        promise = next((f"{g}.{f}" for g, f in _FLAGS.values() if _is_set(told[0], g, f)), None)
    else:
        group = method.partition("/")[0]
        promise = None if _lacks(told[0], group) else group
    if promise is None:
        return
    yield Finding(
        f"the server advertises {promise}, but answers {method} with -32601",
        [evidence(message.place("error", "code"), "-32601", f"a result: capabilities.{promise} is advertised")],
        "warning" if method == "resources/templates/list" else None,
        related=(told[1],) if told[1] else (),
    )


def _is_set(capabilities: dict[str, Any], group: str, flag: str) -> bool:
    capability = capabilities.get(group)
    return isinstance(capability, dict) and capability.get(flag) is True


@rule(
    "RES009",
    "tools-order",
    "tools/list order changes for the same set",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    spec=TOOLS,
    methods=("tools/list",),
    sorts=("result",),
)
def tools_order(message: Message) -> Iterator[Finding]:
    """The same tools are listed in the same order each time.

    Why: the list goes into the model's prompt; another order makes the prompt cache miss.

    Fix: sort by name, or keep the order of registration; do not iterate over a hash table.

    Wrong::

        modern tools/list
          -> tool open
          -> tool close
        modern tools/list
          -> tool close
          -> tool open

    Right::

        modern tools/list
          -> tool open
          -> tool close
        modern tools/list
          -> tool open
          -> tool close
    """
    view: ListView | None = _owner(message).facts.get(LIST)
    if view is None or not view.reordered or view.page is None:
        return
    names = list((view.page.names or ())[:10])
    yield Finding(
        "the same tools are listed in another order than before",
        [evidence(message.place("result", "tools"), names, "the order of the listing before")],
        related=(view.reordered,),
    )


@rule(
    "RES010",
    "list-varies-by-connection",
    "List differs without a visible reason",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=TOOLS,
    sep="2567",
    methods=("tools/list",),
    sorts=("result",),
)
def list_varies_by_connection(message: Message) -> Iterator[Finding]:
    """What is listed depends on the request and its authorization, not on the connection that it came over.

    Why: requests of one client come over many connections, and caches hold the list for ttlMs.

    Fix: all instances behind a balancer list the same; announce a change by list_changed, or give a ttlMs of 0.

    Wrong::

        modern tools/list
          -> result {"tools": [{"name": "open", "inputSchema": {"type": "object"}}], "ttlMs": 60000}
        modern tools/list
          client another-connection
          -header Authorization
          -> result {"tools": [], "ttlMs": 60000}

    Right::

        modern tools/list
          -> result {"tools": [{"name": "open", "inputSchema": {"type": "object"}}], "ttlMs": 60000}
        modern tools/list
          -> result {"tools": [{"name": "open", "inputSchema": {"type": "object"}}], "ttlMs": 60000}
    """
    view: ListView | None = _owner(message).facts.get(LIST)
    if view is None or view.varies is None:
        return
    varies = view.varies
    changes = [f"{len(varies.added)} added"] * bool(varies.added) + [f"{len(varies.removed)} gone"] * bool(varies.removed)
    names = ", ".join(one_line(str(n), 30) for n in (*varies.added, *varies.removed)[:5])
    how = "flips back and forth between connections" if varies.flips else "differs from that on another connection"
    yield Finding(
        f"the list {how} while it should be fresh: {' and '.join(changes)} ({names})",
        [evidence(message.place("result", "tools"), list(varies.added[:10]), "the list of the listing before")],
        "warning" if varies.flips else "info",
        related=(varies.before,),
    )


@rule(
    "RES011",
    "legacy-result-type",
    "resultType on legacy results",
    on="answer",
    level="may-note",
    party="server",
    era="legacy",
    severity="warning",
    spec=RESULT_TYPE,
    sep="2322",
    sorts=("result",),
)
def legacy_result_type(message: Message) -> Iterator[Finding]:
    """resultType belongs to 2026-07-28; a legacy client does not look at it.

    Why: an `input_required` answer in a legacy session is taken for the final result.

    Fix: send server requests on the session's stream instead.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "open"}
          -> result {"content": [], "resultType": "input_required"}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "open"}
          -> result {"content": []}
    """
    result = message.result
    if "resultType" not in result:
        return
    kind = result["resultType"]
    where = [evidence(message.place("result", "resultType"), _shown(kind), "(absent)")]
    if kind == "input_required":
        yield Finding("input_required in a legacy session: the client takes it for the final result", where)
    else:
        yield Finding("resultType on a legacy result: a legacy client may ignore or refuse it", where, "info", once="ignored")


@rule(
    "RES012",
    "result-not-object",
    "result is not an object",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="2026-07-28 basic/index#result-responses",
    sorts=("result",),
)
def result_not_object(message: Message) -> Iterator[Finding]:
    """A result is an object; where there is nothing to say it is empty.

    Why: clients read members of it, at least `_meta`.

    Fix: `{}` in the legacy era, `{"resultType": "complete"}` in the modern.

    Wrong::

        modern tools/call {"name": "open"}
          -> raw-result "done"

    Right::

        modern tools/call {"name": "open"}
          -> result {"content": []}
    """
    result = message.rpc.result
    if message.rpc.kind == "result" and not isinstance(result, dict):
        yield Finding(
            f"result is {kind_of(result)}, not an object", [evidence(message.place("result"), _shown(result), "an object")]
        )


def _blocks(message: Message, method: str) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The content blocks of a result, with their places below it."""
    result = message.result
    if method in ("tools/call", "tasks/result"):
        content = result.get("content")
        for index, block in enumerate(content[:MOST] if isinstance(content, list) else ()):
            yield ("content", index), block
    elif method == "tasks/get":
        inner = result.get("result")  # of the call that became a task
        content = inner.get("content") if isinstance(inner, dict) else None
        for index, block in enumerate(content[:MOST] if isinstance(content, list) else ()):
            yield ("result", "content", index), block
    elif method == "prompts/get":
        for index, item in _items(result, "messages"):
            content = item.get("content")
            if not isinstance(content, list):  # PMT003
                yield ("messages", index, "content"), content


@rule(
    "RES013",
    "content-block-shape",
    "Content block malformed",
    on=("answer", "push"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="2026-07-28 schema#contentblock",
    methods=("tools/call", "prompts/get", "tasks/result", "tasks/get", SAMPLE),
    sorts=("result", "request"),
)
def content_block_shape(message: Message) -> Iterator[Finding]:
    """A content block has a type that the revision knows, and what belongs to that type; binary data is standard Base64.

    Why: clients parse blocks by their type, and reject the result for one that does not parse.

    Fix: the message names the place.

    Wrong::

        modern tools/call {"name": "open"}
          -> result {"content": [{"type": "image", "data": "aGk="}]}

    Right::

        modern tools/call {"name": "open"}
          -> result {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
    """
    revision = _owner(message).revision
    revision = revision if revision in rev.KNOWN else None
    yield from _sampling_blocks(message, revision)
    if message.rpc.kind != "result" or message.request is None:
        return
    method = message.request.rpc.method or ""
    for steps, block in _blocks(message, method):
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            continue  # most are plain text
        if method == "prompts/get" and not isinstance(block, dict):
            continue  # PMT003
        for flaw in blocks.flaws(block, revision):
            yield Finding(
                f"{shapes.path(*steps)} {flaw.words}",
                [evidence(message.place("result", *steps, *flaw.steps), flaw.value)],
                flaw.severity,
            )


def _sampling_blocks(message: Message, revision: str | None) -> Iterator[Finding]:
    """The content of the messages in a sampling request, wherever it is carried. ELI011 looks into what was sampled."""
    if message.party == "client":
        return
    for steps, block in _sampled(message):
        for flaw in blocks.flaws(block, revision, sampling=True):
            where = message.place(*steps, *flaw.steps)
            yield Finding(f"{shapes.path(*steps[1:])} {flaw.words}", [evidence(where, flaw.value)], flaw.severity)


def _sampled(message: Message) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The content blocks of sampling in a message of either side, with their places."""
    contents: list[tuple[tuple[str | int, ...], Any]] = []
    for ask in asks(message):
        listed = ask.params.get("messages") if ask.method == SAMPLE else None
        for index, item in enumerate(listed[:MOST] if isinstance(listed, list) else ()):
            if isinstance(item, dict):
                contents.append(((*ask.steps, "messages", index, "content"), item.get("content")))
    if message.party == "client" and message.request is not None and message.request.method == SAMPLE:
        contents.append((("result", "content"), message.result.get("content")))
    for steps, content in contents:
        if isinstance(content, list):
            yield from (((*steps, place), block) for place, block in enumerate(content[:MOST]))
        elif content is not None:  # ELI010 and ELI011 tell of a message without any
            yield steps, content


@rule(
    "RES014",
    "annotations-range",
    "Annotations out of range",
    on=("answer", "push", "reply"),
    level="must",
    party="either",
    era="both",
    severity="warning",
    spec="2026-07-28 server/resources#annotations",
    versions=("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"),
    methods=("tools/call", "prompts/get", "resources/list", "resources/templates/list", "tasks/result", "tasks/get", SAMPLE),
    sorts=("result", "request"),
)
def annotations_range(message: Message) -> Iterator[Finding]:
    """Annotations of content and resources: audience of user and assistant, priority from 0 to 1, lastModified in ISO 8601.

    Why: clients filter and sort by them; a priority of 5 outranks everything, or makes the result invalid.

    Fix: `{"audience": ["user"], "priority": 0.8, "lastModified": "2026-08-01T10:00:00Z"}`.

    Wrong::

        modern tools/call {"name": "open"}
          -> result {"content": [{"type": "text", "text": "hi", "annotations": {"priority": 5}}]}

    Right::

        modern tools/call {"name": "open"}
          -> result {"content": [{"type": "text", "text": "hi", "annotations": {"priority": 0.5}}]}
    """
    for steps, holder in _annotated(message):
        annotations = holder.get("annotations")
        if annotations is None:
            continue
        place = shapes.path(*steps[1:], "annotations")
        if not isinstance(annotations, dict):
            yield Finding(
                f"{place} is {kind_of(annotations)}, not an object",
                [evidence(message.place(*steps, "annotations"), _shown(annotations))],
            )
            continue
        for name, words, expected in _out_of_range(annotations):
            yield Finding(
                f"{place}.{name} {words}",
                [evidence(message.place(*steps, "annotations", name), annotations[name], expected)],
            )


def _annotated(message: Message) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """What may carry annotations in a message, with its place: content of results and of sampling, resources of a list."""
    for steps, block in _sampled(message):
        if isinstance(block, dict) and "annotations" in block:
            yield steps, block
    if message.rpc.kind != "result" or message.request is None or message.party == "client":
        return
    for steps, holder in _annotated_in_result(message, message.request.rpc.method or ""):
        yield ("result", *steps), holder


def _annotated_in_result(message: Message, method: str) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    listed = _LISTED.get(method)
    if listed is not None:
        for index, item in _items(message.result, listed):
            yield (listed, index), item
        return
    for steps, block in _blocks(message, method):
        if isinstance(block, dict) and "annotations" in block:
            yield steps, block


def _out_of_range(annotations: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    audience = annotations.get("audience")
    if audience is not None and (not isinstance(audience, list) or not all(a in ("user", "assistant") for a in audience)):
        yield "audience", f"is {_shown(audience)}", "a list of user and assistant"
    priority = annotations.get("priority")
    if priority is not None and (not is_number(priority) or not 0 <= priority <= 1):
        yield "priority", f"is {_shown(priority)}", "a number from 0 to 1"
    modified = annotations.get("lastModified")
    if modified is not None and not is_date_or_time(modified):
        yield "lastModified", f"is {_shown(modified)}, no time of ISO 8601", "2026-08-01T10:00:00Z"


@rule(
    "RES015",
    "method-gated-not-found",
    "Unadvertised method should give -32601",
    on="answer",
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    spec="2026-07-28 schema#methodnotfounderror",
    sep="2575",
    sorts=("error",),
)
def method_gated_not_found(message: Message) -> Iterator[Finding]:
    """A method whose capability the server does not have is answered by -32601.

    Why: the client learns from the code that the feature is not there; any other error looks like a failure of it.

    Fix: register no handler: -32601 with HTTP 404.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern prompts/list
          -> error -32603

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        modern prompts/list
          -> error -32601
    """
    code, request = message.error_code, message.request
    if code is None or request is None or code in _BEFORE_THE_METHOD or message.exchange.status in (401, 403):
        return
    method = request.rpc.method or ""
    group = "completions" if method == "completion/complete" else _GROUPS.get(method.partition("/")[0])
    told = advertised(request.exchange) if group is not None else None
    if told is None or group is None or not _lacks(told[0], group):
        return
    if code == rev.INVALID_PARAMS and not request.meta:
        return  # MET001
    yield Finding(
        f"the server has no {group}, but answers {method} with {code}, not -32601",
        [evidence(message.place("error", "code"), str(code), "-32601")],
        related=(told[1],) if told[1] else (),
    )


@rule(
    "RES016",
    "icon-scheme",
    "Icon src uses an unsafe scheme",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/index#icons",
    sep="973",
    versions=("2025-11-25", "2026-07-28"),
    methods=(*_LISTED, "initialize", "server/discover"),
    sorts=("result",),
)
def icon_scheme(message: Message) -> Iterator[Finding]:
    """The src of an icon is https, http or data. That it is not encrypted or on another host than the server is noted only.

    Why: clients must reject anything else: javascript: runs, file: leaks, a relative path leads nowhere.

    Fix: `https://` on the server's own origin, or a `data:` URI.

    Wrong::

        modern tools/list
          -> tool open {} {"icons": [{"src": "file:///icon.png"}]}

    Right::

        modern tools/list
          -> tool open {} {"icons": [{"src": "data:image/png;base64,aGk="}]}
    """
    if message.rpc.kind != "result" or message.request is None:
        return
    for steps, src in _icons(message, message.request.rpc.method or ""):
        words, place = icons.problem(src), message.place("result", *steps)
        if words is not None:
            yield Finding(f"an icon's src has {words}: clients reject it", [evidence(place, src, icons.EXPECTED)])
            continue
        note = icons.remark(src, _hosts(_owner(message)))
        if note is not None:
            once = f"{note} {one_line(uri.host(src[:2_000]) or '', 200)}"
            yield Finding(f"an icon's src {note}", [evidence(place, src, "https: on the server's own host")], "info", once=once)


def _hosts(exchange: Exchange) -> frozenset[str]:
    """The server's hosts, as the client and as the proxy name it. Empty behind a reverse proxy: the server's public name may
    not show."""
    if exchange.reverse:
        return frozenset()
    named = (uri.host(exchange.url), uri.host("//" + (exchange.authority or "")))
    return frozenset(host for host in named if host)


def _icons(message: Message, method: str) -> Iterator[tuple[icons.Steps, str]]:
    result = message.result
    if method == "initialize":
        yield from icons.sources(result.get("serverInfo"), ("serverInfo",))
        return
    yield from icons.sources(message.meta.get(rev.SERVER_INFO), ("_meta", rev.SERVER_INFO))
    listed = _LISTED.get(method)
    for index, item in _items(result, listed) if listed is not None else ():
        if "icons" in item:
            yield from icons.sources(item, (listed or "", index))


@rule(
    "RES017",
    "server-info-behaviour",
    "Discover results drift",
    on="answer",
    level="may-note",
    party="server",
    era="modern",
    severity="info",
    spec="2026-07-28 server/discover#response",
    sep="2575",
    methods=("server/discover",),
)
def server_info_behaviour(message: Message) -> Iterator[Finding]:
    """What server/discover says holds for its ttlMs.

    Why: a client caches it; two instances that differ make features come and go.

    Fix: bring all instances to one version, or give a ttlMs that fits how often they change.

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 60000}
        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 60000}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 60000}
        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 60000}
    """
    drift: Drift | None = _owner(message).facts.get(DRIFT)
    if drift is None or message.rpc.kind != "result":
        return
    yield Finding(
        f"{', '.join(drift.changed)} changed after {drift.after_s:.1f} s, though fresh for {drift.ttl_s:.0f} s",
        [evidence(message.place("result", name), message.result.get(name)) for name in drift.changed if name != "serverInfo"]
        or [evidence(message.place("result", "_meta", rev.SERVER_INFO), message.meta.get(rev.SERVER_INFO))],
        related=(drift.before,),
    )


@rule(
    "RES018",
    "client-capability-not-served",
    "Client answers -32601 to what it declared",
    on="reply",
    level="must",
    party="client",
    era="legacy",
    severity="warning",
    spec="2025-11-25 basic/lifecycle#capability-negotiation",
    methods=("elicitation/create", "sampling/createMessage", "roots/list"),
    sorts=("error",),
)
def client_capability_not_served(message: Message) -> Iterator[Finding]:
    """What a client declares it serves: elicitation (in its mode), sampling and roots.

    Why: the server asks because it was told that it may, and the call that waits for the answer fails.

    Fix: register a handler for the method, or do not declare the capability. Said once for an endpoint and a method.

    Wrong::

        legacy initialize
          params {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/initialized
          -> 202
        legacy tools/call {"name": "a"}
          label call
          -> sse
          -> ask 7 elicitation/create {"message": "ok?", "requestedSchema": {"type": "object", "properties": {}}}
        legacy-reply-error 7 -32601
          -> 202
        continue call
          -> result {"content": []}

    Right::

        legacy initialize
          params {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy-notify notifications/initialized
          -> 202
        legacy tools/call {"name": "a"}
          label call
          -> sse
          -> ask 7 elicitation/create {"message": "ok?", "requestedSchema": {"type": "object", "properties": {}}}
        legacy-reply 7 {"action": "decline"}
          -> 202
        continue call
          -> result {"content": []}
    """
    request, capabilities = message.request, declared(message.exchange)
    if message.error_code != rev.METHOD_NOT_FOUND or request is None or capabilities is None:
        return
    method = request.method or ""
    if supports(capabilities, method, request.params) is not None:
        return  # the server asked for what was not declared
    group = {"roots/list": "roots", "sampling/createMessage": "sampling"}.get(method, "elicitation")
    yield Finding(
        f"the client declares {group}, but answers {method} with -32601",
        [evidence(message.place("error", "code"), "-32601", f"a result: capabilities.{group} is declared")],
        related=(request.exchange.flow,),
        once=method,
    )
