"""What a request asks for, in the words of its method, and who asks: arguments, answers to the server, capabilities."""

from typing import Any

from mcp_wiretap.report.words import short_flow
from mcp_wiretap.trace.model import Message
from mcp_wiretap.trace.schema import fits
from mcp_wiretap.view import headers
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, block, key, pairs, scalar, value
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import mask, masked

_MEMBERS = {
    "prompts/get": ("name", "arguments"),
    "resources/read": ("uri",),
    "resources/subscribe": ("uri",),
    "resources/unsubscribe": ("uri",),
    "completion/complete": ("ref", "argument", "context"),
    "logging/setLevel": ("level",),
    "tasks/get": ("taskId",),
    "tasks/cancel": ("taskId",),
    "tasks/update": ("taskId", "inputResponses"),
    "tasks/result": ("taskId",),
    "subscriptions/listen": ("notifications",),
    "initialize": ("protocolVersion",),
}
_NOT_SHOWN = ("_meta", "inputResponses", "requestState", "capabilities", "clientInfo")


def asked(subject: Subject) -> list[Row]:
    """The section that says what is wanted."""
    message = subject.request
    if message is None:
        return []
    if message.kind in ("result", "error"):
        return _reply(subject, message)
    params = masked(message.params)
    if message.method == "tools/call":
        return _call(subject, params)
    wanted = _MEMBERS.get(message.method or "") or tuple(n for n in params if n not in _NOT_SHOWN)
    shown = {name: params[name] for name in wanted if name in params}
    if not shown:
        return []
    return [(0, "asks for:", ""), *block(shown, 2, 30)]


def _call(subject: Subject, params: dict[str, Any]) -> list[Row]:
    rows: list[Row] = [(0, "call:", ""), (2, f"tool: {value(params.get('name'))}", "")]
    arguments = params.get("arguments")
    if not isinstance(arguments, dict) or not arguments:
        rows.append((2, "arguments: none" if arguments is None or arguments == {} else f"arguments: {value(arguments)}", ""))
        return rows
    mirrored = headers.mirrored_in(subject)
    rows.append((2, "arguments:", ""))
    for name, item in list(arguments.items())[:60]:
        inner = block({name: item}, 4, 30)
        indent, text, _ = inner[0]
        rows += [(indent, text, mirrored.get(name, "")), *inner[1:]]
    if len(arguments) > 60:
        rows.append((4, f"# … {len(arguments) - 60} more", ""))
    task = params.get("task")
    if task is not None:
        rows.append((2, f"task: {value(task, 80)}", "the client wants it run as a task"))
    return rows


def _reply(subject: Subject, message: Message) -> list[Row]:
    """The client answers a request of the server (legacy)."""
    content = message.result if message.kind == "result" else message.rpc.error
    return [(0, "answers the server:", subject.record.method or ""), *block(masked({message.kind: content}), 2, 30)]


# Multi round-trips: what was asked in the round before, and what is answered here


def answers(subject: Subject) -> list[Row]:
    """The answers of a retry beside the questions they answer."""
    message = subject.request
    given = message.params.get("inputResponses") if message is not None else None
    if not isinstance(given, dict) or not given:
        return []
    link = subject.before
    earlier = subject.sibling(link.earlier) if link is not None else None
    questions = _questions(earlier.answer if earlier is not None else None)
    to = f"to flow {short_flow(link.earlier)}" if link is not None else "to a round that was not seen"
    rows: list[Row] = [(0, "answers:", to)]
    for name, answer in list(given.items())[:40]:
        question = questions.get(name)
        rows.append((2, f"{key(name)}:", ""))
        if question is not None:
            rows.append((4, f"asked: {scalar(question_text(question), 200)}", _question_kind(question)))
        elif earlier is not None:
            rows.append((4, "asked: nothing", "✕ that round has no request of this name"))
        rows += answer_rows(answer, question, 4)
    rows += [(2, f"{key(name)}: not answered", "✕ it was asked") for name in questions if name not in given]
    return rows


def state(subject: Subject) -> list[Row]:
    """Whether the retry echoes the state that it was given."""
    message = subject.request
    echoed = message.params.get("requestState") if message is not None else None
    link = subject.before
    earlier = subject.sibling(link.earlier) if link is not None else None
    given = earlier.answer.result.get("requestState") if earlier is not None and earlier.answer is not None else None
    if not isinstance(echoed, str):
        if isinstance(given, str) and earlier is not None:
            return [(0, "state:", ""), (2, "echoed: missing", f"✕ flow {short_flow(earlier.flow)} gave {mask(given)}")]
        return []
    row: Row = (2, f"echoed: {scalar(mask(echoed))}", "")
    if isinstance(given, str) and earlier is not None:
        if given == echoed:
            row = (2, "echoed: same", f"{mask(echoed)}, as flow {short_flow(earlier.flow)} gave it")
        else:
            row = (2, "echoed: CHANGED", f"≠ {mask(echoed)}; flow {short_flow(earlier.flow)} gave {mask(given)}")
    return [(0, "state:", ""), row]


def _questions(answer: Message | None) -> dict[str, Any]:
    found = answer.result.get("inputRequests") if answer is not None else None
    return found if isinstance(found, dict) else {}


def question_text(question: Any) -> str:
    """What a requested input asks the user, in its own words."""
    if not isinstance(question, dict):
        return "(not an object)"
    params = question.get("params")
    params = params if isinstance(params, dict) else {}
    for name in ("message", "systemPrompt"):
        if isinstance(params.get(name), str):
            return str(params[name])
    messages = params.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        return text_of(messages[-1].get("content"))
    return str(question.get("method", "(no method)"))


def text_of(content: Any) -> str:
    """The text of a content block, or what else it is."""
    if isinstance(content, list) and content:
        content = content[0]
    if isinstance(content, dict):
        return str(content["text"]) if isinstance(content.get("text"), str) else f"({content.get('type', 'content')})"
    return str(content)


def _question_kind(question: Any) -> str:
    if not isinstance(question, dict):
        return ""
    params = question.get("params")
    mode = params.get("mode") if isinstance(params, dict) else None
    return f"{question.get('method')}{f', {mode}' if isinstance(mode, str) else ''}"


def answer_rows(answer: Any, question: Any, indent: int) -> list[Row]:
    """An answer: action and content of an elicitation, the text of a sampling, the roots."""
    answer = masked(answer, entered=True)
    if not isinstance(answer, dict):
        return [(indent, f"answer: {value(answer, 120)}", "✕ not an object")]
    items: list[tuple[str, str, str]] = []
    if "action" in answer:
        items.append(("action", value(answer["action"], 60), ""))
    if "content" in answer:
        content = answer["content"]
        shown = content if "action" in answer else text_of(content)
        items.append(("content", value(shown, 200), content_fits(question, content) if "action" in answer else ""))
    if isinstance(answer.get("roots"), list):
        items.append(("roots", value([r.get("uri") for r in answer["roots"][:10] if isinstance(r, dict)], 200), ""))
    items += [(name, value(answer[name], 120), "") for name in ("model", "stopReason", "error") if name in answer]
    return pairs(items or [("answer", value(answer, 200), "")], indent)


def content_fits(question: Any, content: Any) -> str:
    """Whether the content of an elicitation fits the schema that asked for it."""
    params = question.get("params") if isinstance(question, dict) else None
    wanted = params.get("requestedSchema") if isinstance(params, dict) else None
    if not isinstance(wanted, dict):
        return ""
    verdict = fits.check(wanted, content)
    if verdict.problems:
        return f"✕ does not fit: {verdict.words}"
    return "✓ fits the schema" if verdict.unchecked is None else f"– not checked: {verdict.unchecked}"


# Who asks


def client(subject: Subject) -> list[Row]:
    """Who sent it, and with what: name, capabilities, session, tokens (masked), trace context."""
    record, message = subject.record, subject.request
    meta = message.meta if message is not None else {}
    items: list[tuple[str, str, str]] = []
    if record.client_info is not None:
        items.append(("client", scalar(" ".join(record.client_info).strip() or "(no name)", 80), ""))
    capabilities = meta.get(rev.CLIENT_CAPABILITIES)
    if capabilities is None and message is not None and message.method == "initialize":
        capabilities = message.params.get("capabilities")
    inherited = capabilities is None and record.session is not None and record.session.client_capabilities is not None
    if inherited and record.session is not None:
        capabilities = record.session.client_capabilities
    if isinstance(capabilities, dict):
        names = sorted(flattened(capabilities))
        items.append(("capabilities", scalar(", ".join(names) or "none", 200), "declared at initialize" if inherited else ""))
    session = subject.whole.request_fields.first("mcp-session-id")
    if session:
        items.append(("session", scalar(mask(session)), ""))
    if record.auth:
        items.append(("authorization", scalar(f"(sha {record.auth})"), "masked; equal hashes are equal tokens"))
    for name, member in (("log level", rev.LOG_LEVEL), ("progress token", "progressToken"), ("traceparent", "traceparent")):
        if member in meta:
            items.append((name, value(meta[member], 80), ""))
    return [(0, "from:", ""), *pairs(items, 2)] if items else []


def flattened(capabilities: dict[str, Any], prefix: str = "", depth: int = 0) -> list[str]:
    """`elicitation.form`, `roots.listChanged`: the leaves of a capabilities object."""
    found: list[str] = []
    for name, inner in list(capabilities.items())[:100]:
        path = f"{prefix}{name}"
        if isinstance(inner, dict) and inner and depth < 3:
            found += flattened(inner, f"{path}.", depth + 1)
        elif inner is not False:
            found.append(path)
    return found
