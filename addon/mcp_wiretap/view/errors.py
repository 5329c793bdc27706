"""Errors in words, each with a panel of its own: what the code means, what the server complained of, and whether the request
really was at fault.

Spec: 2026-07-28 basic/index#error-codes, basic/transports/streamable-http#server-validation.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from mcp_wiretap.report import comment
from mcp_wiretap.report.words import duration, short_flow
from mcp_wiretap.trace.mirrored import check as mirror
from mcp_wiretap.trace.model import Message
from mcp_wiretap.trace.schema import fits
from mcp_wiretap.view import calls, headers
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, block, key, pairs, scalar, value
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import mask_header, masked

RIGHT, WRONG, OPEN = "✓ the server is right", "✕ the server is wrong", "– not decided"
_JUDGED_WRONG = frozenset({"HTS012", "HTS013", "HTS014"})  # rules that find a refusal without cause
_STATUS = {rev.HEADER_MISMATCH: 400, rev.MISSING_CAPABILITY: 400, rev.UNSUPPORTED_VERSION: 400, rev.METHOD_NOT_FOUND: 404}
_UNKNOWN = re.compile(r"unknown|not found|no such|does not exist|doesn't exist|not registered|not available", re.I)


def panel(subject: Subject) -> list[Row]:
    """The panel of the error that the response carries; of a refusal without JSON-RPC, of its HTTP status."""
    answer = subject.answer
    if answer is None or answer.kind != "error":
        return _http(subject)
    code = answer.error_code
    rows = [(0, "error:", "")]
    rows += pairs(list(_facts(subject, answer, code)), 2)
    maker = _PANELS.get(code or 0)
    if maker is not None:
        meaning, wire, judged = maker(subject, answer)
    else:
        meaning, wire, judged = _of_other(answer, code), [], ""
    if meaning:
        rows += pairs([("means", scalar(meaning), "")], 2)
    data = answer.rpc.error.get("data") if isinstance(answer.rpc.error, dict) else None
    if isinstance(data, dict | list) and data:
        rows += [(2, "data:", ""), *block(masked(data), 4, 30)]
    elif data is not None:
        rows.append((2, f"data: {value(masked(data))}", ""))
    found = next((f for f in subject.record.findings if f.rule in _JUDGED_WRONG), None)
    if found is not None:
        judged = f"{WRONG if found.severity == 'error' else OPEN}: {found.message}  [{found.rule}]"
    if wire or judged:
        rows += [(0, "", ""), (0, "against the wire:", ""), *wire]
        if judged:
            rows += pairs([("verdict", scalar(judged, 1_000), "")], 2)
    return rows


def afterwards(subject: Subject) -> list[Row]:
    """What the client did after a refusal that asks for something: after -32020 it should list again, after -32022 take another
    version."""
    record = subject.record
    if record.error_code not in _ASK_FOR_MORE or record.ended is None:
        return []
    rows: list[Row] = []
    for later in subject.following():
        what = " ".join(comment.shown(word, 60) for word in (later.method or later.http_method, later.name) if word)
        gap = duration((later.started - record.ended) * 1000)
        said = f"{gap} later, {comment.outcome(later)}"
        if later.revision != record.revision and later.revision is not None:
            said += f", {later.revision}"
        rows.append((2, f"- {scalar(what)}", f"flow {short_flow(later.flow)}, {said}"))
    return [(0, "afterwards:", _ASK_FOR_MORE[record.error_code]), *rows] if rows else []


_ASK_FOR_MORE = {
    rev.HEADER_MISMATCH: "after -32020 a client should list the tools again, then call again",
    rev.MISSING_CAPABILITY: "",
    rev.UNSUPPORTED_VERSION: "after -32022 a client should go on with a version of the list",
}


def _facts(subject: Subject, answer: Message, code: int | None) -> Iterable[tuple[str, str, str]]:
    error = answer.rpc.error if isinstance(answer.rpc.error, dict) else {}
    name, status = rev.error_name(code), subject.whole.status
    wanted = _STATUS.get(code or 0)
    said = name or ("of the server's own making: -32000 to -32019 mean something else on every server" if code else "")
    if wanted is not None and status is not None and subject.record.claim.modern and answer.exchange is subject.whole:
        said += f"; HTTP {status} fits" if status == wanted else f"; ✕ HTTP {status}, {wanted} is due"
    yield "code", value(error.get("code")), said
    yield "message", value(error.get("message"), 1_000), ""


# The panels: (what it means, what stands on the wire, the verdict)

type _Panel = tuple[str, list[Row], str]


def _header_mismatch(subject: Subject, answer: Message) -> _Panel:
    meaning = "a mirrored header is missing, cannot be read, or says something else than the body"
    record = subject.record
    if not record.claim.modern:
        return meaning, [], f"{OPEN}: the request does not claim the modern era, in which headers mirror the body"
    given = subject.whole.at_server
    if given is not None:  # the proxy changed the request: what counts is what the server was given
        if not record.change or not (faulty := mirror.fatal(given)):
            return meaning, [], f"{OPEN}: the proxy changed the request on its way to the server"
        what = ", ".join(f"{c.header} says {c.raw if c.raw is not None else 'nothing'}, the body {c.body}" for c in faulty[:3])
        return meaning, [], f"{RIGHT}: in what the server was given, {scalar(what)}"
    if record.change is not None and record.change.unsure:
        return meaning, [], f"{OPEN}: {record.change.unsure}"
    faulty = mirror.fatal(record)
    if faulty:
        items = []
        for check in faulty[:20]:
            raw = "(absent)" if check.raw is None else scalar(mask_header(check.header, check.raw), 80)
            items.append((key(check.header), raw, f"body: {check.body}" if check.body is not None else ""))
        words = ", ".join(f"{c.header}: {headers.said(subject, c)[2:].partition('  [')[0]}" for c in faulty[:3])
        return meaning, pairs(items, 2), f"{RIGHT}: {words}"
    unchecked = [c for c in record.header_checks if c.verdict == "unchecked"]
    if unchecked:
        why = "; ".join(dict.fromkeys(f"{c.header}: {c.detail}" for c in unchecked[:3]))
        return meaning, [], f"{OPEN}: what could be compared agrees, but {why}"
    if not record.header_checks:
        return meaning, [], f"{OPEN}: no header could be compared"
    return meaning, [], f"{WRONG}: every mirrored header agrees with the body"


def _missing_capability(subject: Subject, answer: Message) -> _Panel:
    meaning = "the server needs something of the client that it did not declare in clientCapabilities"
    data = answer.rpc.error.get("data")
    required = data.get("requiredCapabilities") if isinstance(data, dict) else None
    if not isinstance(required, dict) or not required:
        return meaning, [], f"{OPEN}: the error does not say which capability (data.requiredCapabilities)"
    request = subject.request
    declared = request.meta.get(rev.CLIENT_CAPABILITIES) if request is not None else None
    declared = declared if isinstance(declared, dict) else {}
    items, missing = [], []
    for path in calls.flattened(required)[:30]:
        there = _declares(declared, path.split("."))
        items.append((key(path), "declared" if there else "not declared", ""))
        if not there:
            missing.append(path)
    if missing:
        return meaning, pairs(items, 2), f"{RIGHT}: the client did not declare {', '.join(missing)}"
    return meaning, pairs(items, 2), f"{WRONG}: the client declared all of it"


def _declares(declared: Any, path: list[str]) -> bool:
    for step in path:
        if not isinstance(declared, dict) or step not in declared or declared[step] is False:
            return False
        declared = declared[step]
    return True


def _unsupported_version(subject: Subject, answer: Message) -> _Panel:
    meaning = "the server does not speak the revision that the request declares"
    data = answer.rpc.error.get("data")
    data = data if isinstance(data, dict) else {}
    request = subject.request
    declared = request.meta.get(rev.PROTOCOL_VERSION) if request is not None else None
    supported, requested = data.get("supported"), data.get("requested")
    items = [
        ("declared", value(declared) if declared is not None else "none", "in the envelope"),
        ("requested", value(requested) if requested is not None else "not said", "by the error's data"),
        ("supported", value(supported, 120) if supported is not None else "not said", "by the error's data"),
    ]
    rows = pairs(items, 2)
    if isinstance(requested, str) and isinstance(declared, str) and requested != declared:
        return meaning, rows, f"{WRONG}: it refuses {requested}, the request declares {declared}"
    if not isinstance(supported, list):
        return meaning, rows, f"{OPEN}: the error does not say what is supported (data.supported)"
    if declared in supported:
        return meaning, rows, f"{WRONG}: it lists {declared}, the version that it refuses"
    common = [v for v in supported if isinstance(v, str) and v in rev.KNOWN]
    advice = f"the client may go on with {common[0]}" if common else "there is no version that both could speak"
    return meaning, rows, f"{RIGHT}: {declared if isinstance(declared, str) else 'no version'} is not in its list; {advice}"


def _method_not_found(subject: Subject, answer: Message) -> _Panel:
    method = subject.record.method or ""
    meaning = "the server has no such method, or does not offer it"
    version = subject.record.revision
    known = _versions(method)
    rows: list[Row] = [(2, f"method: {scalar(method) if method else 'none'}", "")]
    if not method:
        return meaning, rows, ""
    if not known:
        rows[0] = (2, rows[0][1], "no revision of the protocol defines it")
        return meaning, rows, f"{OPEN}: the method is an extension or a mistake; only the server knows"
    if version is not None and version in rev.KNOWN and version not in known:
        rows[0] = (2, rows[0][1], f"defined in {', '.join(known)}")
        return meaning, rows, f"{RIGHT}: {version} has no {method}"
    group = _CAPABILITY.get(method.partition("/")[0])
    capabilities = subject.record.endpoint.capabilities
    if group is None or capabilities is None:
        return meaning, rows, f"{OPEN}: the method is defined; what this server offers was not seen"
    if group in capabilities:
        return meaning, rows, f"{WRONG}: it declares the capability {group}"
    return meaning, rows, f"{RIGHT}: it does not declare the capability {group}; the client should not have asked"


_CAPABILITY = {name: name for name in ("tools", "prompts", "resources", "logging")} | {"completion": "completions"}


def _versions(method: str) -> list[str]:
    from mcp_types import methods  # it takes half a second to load, and few need it

    return [version for name, version in methods.CLIENT_REQUESTS if name == method]


def _invalid_params(subject: Subject, answer: Message) -> _Panel:
    if subject.record.method == "tools/call":
        error = answer.rpc.error if isinstance(answer.rpc.error, dict) else {}
        name = subject.request.params.get("name") if subject.request is not None else None
        text = str(error.get("message", ""))
        says_unknown = bool(_UNKNOWN.search(text)) and ("tool" in text.lower() or (isinstance(name, str) and name in text))
        listed = headers.definition_of(subject) is not None
        if says_unknown or (not listed and subject.record.endpoint.tools):
            return _unknown_tool(subject, name, listed)
        return _bad_arguments(subject)
    return _bad_params(subject)


def _unknown_tool(subject: Subject, name: Any, listed: bool) -> _Panel:
    meaning = "unknown tool: the server has no tool of that name (one of the two kinds of -32602 on tools/call)"
    tools = list(subject.record.endpoint.tools)
    rows: list[Row] = [(2, f"tool: {value(name)}", "")]
    if tools:
        more = f"; {len(tools) - 20} more" if len(tools) > 20 else ""
        rows.append((2, f"listed: {value(tools[:20], 300)}", f"tools/list, newest{more}"))
    if listed:
        definition = headers.definition_of(subject)
        where = f"flow {short_flow(definition.flow)}" if definition is not None else "tools/list"
        return meaning, rows, f"{WRONG}: it listed this tool ({where}); unless it has been taken away since"
    if not tools:
        return meaning, rows, f"{OPEN}: no tools/list of this server was seen"
    near = _nearest(str(name), tools)
    return meaning, rows, f"{RIGHT}: no tools/list answer names it" + (f"; the nearest is {near}" if near else "")


def _nearest(name: str, tools: list[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name[:100], tools[:500], n=1)), None)


def _bad_arguments(subject: Subject) -> _Panel:
    meaning = "invalid parameters: the tool is known, the arguments are not what it takes"
    request = subject.request
    if request is not None and "requestState" in request.params:
        meaning = "invalid parameters; this is a retry with requestState: the state may be meant"
    definition = headers.definition_of(subject)
    arguments = request.params.get("arguments") if request is not None else None
    if definition is None:
        return meaning, [], f"{OPEN}: no tools/list that describes this tool was seen"
    verdict = fits.check(definition.raw.get("inputSchema"), arguments if arguments is not None else {})
    rows: list[Row] = [(2, f"schema: flow {short_flow(definition.flow)}", "inputSchema of the tool, as it was listed")]
    if verdict.problems:
        rows.append((2, "arguments:", ""))
        rows += [(4, f"- {scalar(fits.words_of(problem))}", "") for problem in verdict.problems[:10]]
        return meaning, rows, f"{RIGHT}: {verdict.words}"
    if verdict.unchecked is not None:
        return meaning, rows, f"{OPEN}: {verdict.unchecked}"
    return meaning, rows, f"{OPEN}: the arguments fit the inputSchema; the server may ask for more than its schema says"


def _bad_params(subject: Subject) -> _Panel:
    from mcp_types import methods
    from pydantic import ValidationError

    record, request = subject.record, subject.request
    method = record.method or ""
    meaning = "invalid parameters"
    named = {"prompts/get": "prompt", "resources/read": "resource"}
    if method in named or method.startswith("tasks/"):
        meaning += f", or a {named.get(method, 'task')} that the server does not have"
    if request is None or record.revision not in rev.KNOWN or (method, record.revision) not in methods.CLIENT_REQUESTS:
        return meaning, [], f"{OPEN}: there is nothing to compare the parameters with"
    try:
        methods.validate_client_request(method, str(record.revision), request.params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        rows: list[Row] = [(2, f"{key(where or 'params')}: {scalar(first['msg'])}", f"by the schema of {record.revision}")]
        return meaning, rows, f"{RIGHT}: {where}: {first['msg']}"
    except (ValueError, RecursionError) as error:
        return meaning, [], f"{OPEN}: {error}"
    return meaning, [], f"{OPEN}: the parameters have the form that {record.revision} asks for; what they name, the server knows"


def _parse_error(subject: Subject, answer: Message) -> _Panel:
    meaning = "the server could not read the body as JSON"
    reading = subject.whole.reading
    if reading is None:
        return meaning, [], f"{OPEN}: the request body was not recorded"
    if reading.kind in ("not-json", "not-utf8", "empty"):
        problem = reading.problem or reading.kind
        return meaning, [(2, f"body: {scalar(problem)}", "")], f"{RIGHT}: {problem}"
    return meaning, [], f"{WRONG}: the body is JSON"


_PANELS: dict[int, Callable[[Subject, Message], _Panel]] = {
    rev.HEADER_MISMATCH: _header_mismatch,
    rev.MISSING_CAPABILITY: _missing_capability,
    rev.UNSUPPORTED_VERSION: _unsupported_version,
    rev.METHOD_NOT_FOUND: _method_not_found,
    rev.INVALID_PARAMS: _invalid_params,
    rev.PARSE_ERROR: _parse_error,
}
_MEANINGS = {
    rev.INVALID_REQUEST: "the body is JSON, but not a request that the server takes at this point",
    rev.INTERNAL_ERROR: "the server failed; the request may be right",
    rev.RESOURCE_NOT_FOUND: "the server has no such resource (up to 2025-11-25; the modern era uses -32602)",
    rev.URL_ELICITATION_REQUIRED: "the user must visit a URL first (2025-11-25 only)",
}


def _of_other(answer: Message, code: int | None) -> str:
    return _MEANINGS.get(code, "") if code is not None else "the error has no integer code"


def _http(subject: Subject) -> list[Row]:
    """A refusal without JSON-RPC."""
    whole = subject.whole
    if whole.status is None or whole.status < 400 or whole.response_fields is None:
        return []
    meaning = _HTTP.get(whole.status, "there is no JSON-RPC error in the body")
    rows: list[Row] = [(0, "refused:", ""), (2, f"status: {whole.status}", meaning)]
    reading = whole.answer_reading
    if reading is not None and reading.kind in ("not-json", "not-utf8") and subject.record.error_message is not None:
        rows.append((2, f"says: {scalar(subject.record.error_message, 500)}", "in the words of the other side"))
    challenge = whole.response_fields.first("www-authenticate")
    if challenge:
        rows.append((2, f"www-authenticate: {scalar(challenge)}", ""))
    location = whole.response_fields.first("location")
    if location:
        rows.append((2, f"location: {scalar(location)}", ""))
    if reading is not None and reading.kind == "not-rpc" and isinstance(reading.value, dict):
        rows += [(2, "says:", ""), *block(masked(reading.value), 4, 15)]
    return rows


_HTTP = {
    401: "the client must authorize first",
    403: "refused: the token is not enough, or the Origin is not allowed",
    404: "no such endpoint, or (legacy) the session is over: the client must initialize anew",
    405: "the server does not offer this HTTP method here",
    406: "the client must accept application/json and text/event-stream",
    415: "the server wants application/json",
}
