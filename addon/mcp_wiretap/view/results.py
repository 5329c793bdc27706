"""What a response brings, in the words of its method: results, questions to the client, tasks, lists; and who answers."""

from typing import Any

from mcp_wiretap.report.words import duration, short_flow
from mcp_wiretap.trace.model import Message
from mcp_wiretap.view import calls
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, block, key, pairs, scalar, value
from mcp_wiretap.wire.secret import concealed, mask, masked

_LISTS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate", "roots": "uri"}
_SHOWN = 60  # entries of one list


def result(subject: Subject) -> list[Row]:
    """The section that says what came."""
    answer = subject.answer
    if answer is None or answer.kind != "result":
        return []
    content = answer.rpc.result
    if not isinstance(content, dict):
        return [(0, f"result: {value(content, 200)}", "✕ not an object")]
    if content.get("resultType") == "input_required":
        given = state(subject, answer)
        return [*asks(subject, answer), *([(0, "", ""), *given] if given else [])]
    for member, label in _LISTS.items():
        if isinstance(content.get(member), list):
            return _list(content, member, label)
    rows: list[Row] = [(0, "result:", "")]
    shown = masked({name: inner for name, inner in list(content.items())[:200] if name not in ("_meta", "resultType", "content")})
    if isinstance(content.get("content"), list):
        if "isError" in content:
            shown.pop("isError", None)
            failed = content["isError"] is True
            said = "✕ the tool itself failed; for the protocol it is a result" if failed else ""
            rows.append((2, f"isError: {value(content['isError'])}", said))
        rows += _content(content["content"])
    rows += block(shown, 2, 60)
    return rows if len(rows) > 1 else []


def _content(blocks: list[Any]) -> list[Row]:
    rows: list[Row] = [(2, "content:" if blocks else "content: []", "")]
    for item in blocks[:20]:
        kind = str(item.get("type", "?")) if isinstance(item, dict) else "not an object"
        if isinstance(item, dict) and isinstance(item.get("text"), str):
            rows.append((4, f"- {scalar(item['text'], 300)}", kind))
        elif isinstance(item, dict) and isinstance(item.get("data"), str):
            rows.append((4, f"- {scalar(str(item.get('mimeType', kind)))}", f"{kind}, {len(item['data'])} characters of Base64"))
        else:
            rows.append((4, f"- {value(masked(item), 200)}", ""))
    if len(blocks) > 20:
        rows.append((4, f"# … {len(blocks) - 20} more", ""))
    return rows


def _list(content: dict[str, Any], member: str, label: str) -> list[Row]:
    entries = content[member]
    rows: list[Row] = [(0, f"{member}:" if entries else f"{member}: []", f"{len(entries)} of them")]
    for entry in entries[:_SHOWN]:
        name = entry.get(label) if isinstance(entry, dict) else entry
        about = entry.get("description") or entry.get("title") if isinstance(entry, dict) else None
        rows.append((2, f"- {value(name, 80)}", str(about)[:200] if isinstance(about, str) else ""))
    if len(entries) > _SHOWN:
        rows.append((2, f"# … {len(entries) - _SHOWN} more", ""))
    rest = {n: v for n, v in content.items() if n not in (member, "_meta", "resultType")}
    return rows + (block(masked(rest), 0, 10) if rest else [])


# Multi round-trips: what is asked, and what the next round answers


def asks(subject: Subject, answer: Message) -> list[Row]:
    """Each requested input, with its fields and with the answer that the next round gave."""
    questions = answer.result.get("inputRequests")
    if not isinstance(questions, dict) or not questions:
        return [(0, "asks: nothing", "the state alone: the client may call again at once")]
    link = subject.after
    later = subject.sibling(link.later) if link is not None else None
    replies = later.request.params.get("inputResponses") if later is not None and later.request is not None else None
    rows: list[Row] = [(0, "asks:", "")]
    for name, question in list(questions.items())[:40]:
        rows.append((2, f"{key(name)}:", ""))
        rows += _question(question)
        if link is None:
            rows.append((4, "answer: none seen", ""))
        elif isinstance(replies, dict) and name in replies and later is not None and answer is not None:
            gap = later.started - (subject.whole.ended or subject.whole.started)
            rows.append((4, "answer:", f"flow {short_flow(link.later)}, {duration(max(gap, 0) * 1000)} later"))
            rows += calls.answer_rows(replies[name], question, 6)
        elif later is not None:
            rows.append((4, "answer: missing", f"✕ flow {short_flow(link.later)} does not answer it"))
        else:
            rows.append((4, "answer: given", f"in flow {short_flow(link.later)}, which mitmproxy holds no more"))
    return rows


def _question(question: Any) -> list[Row]:
    if not isinstance(question, dict):
        return [(4, f"request: {value(question, 100)}", "✕ not an object")]
    params = question.get("params")
    params = params if isinstance(params, dict) else {}
    mode = params.get("mode")
    rows = [
        (4, f"method: {value(question.get('method'), 80)}", mode if isinstance(mode, str) else ""),
        (4, f"message: {scalar(calls.question_text(question), 300)}", ""),
    ]
    if isinstance(params.get("url"), str):
        how = "shown as it came" if concealed(params["url"]) == params["url"] else "its secrets masked"
        rows.append((4, f"url: {scalar(params['url'], 300)}", f"{how}; nothing was opened"))
    wanted = params.get("requestedSchema")
    properties = wanted.get("properties") if isinstance(wanted, dict) else None
    if isinstance(properties, dict) and properties:
        required = wanted.get("required") if isinstance(wanted, dict) else None
        rows.append((4, "fields:", ""))
        rows += pairs([_field(name, spec, required) for name, spec in list(properties.items())[:40]], 6)
    return rows


def _field(name: str, spec: Any, required: Any) -> tuple[str, str, str]:
    if not isinstance(spec, dict):
        return key(name), value(spec, 60), ""
    choices, titled = spec.get("enum"), spec.get("oneOf")
    if not isinstance(choices, list):
        choices = [c.get("const") for c in titled if isinstance(c, dict)] if isinstance(titled, list) else None
    kind = str(spec.get("type", "any"))
    words = [kind] + (["required"] if isinstance(required, list) and name in required else [])
    shown = " | ".join(str(c) for c in choices[:12]) if choices else str(spec.get("title") or spec.get("description") or kind)
    return key(name), scalar(shown, 80), ", ".join(words)


def state(subject: Subject, answer: Message) -> list[Row]:
    """The state that goes round: what the request echoed, what is given now, and whether the next round echoes it."""
    items: list[tuple[str, str, str]] = []
    request = subject.request
    received = request.params.get("requestState") if request is not None else None
    if isinstance(received, str):
        items.append(("received", scalar(mask(received)), "with this request"))
    given = answer.result.get("requestState")
    if isinstance(given, str):
        link = subject.after
        later = subject.sibling(link.later) if link is not None else None
        said = ""
        if link is not None and later is not None and later.request is not None:
            echoed = later.request.params.get("requestState")
            what = "echoed it: same" if echoed == given else "did not echo it" if echoed is None else "≠ CHANGED it"
            said = f"flow {short_flow(link.later)} {what}"
        items.append(("given", scalar(mask(given)), said))
    return [(0, "state:", ""), *pairs(items, 2)] if items else []


def server(subject: Subject) -> list[Row]:
    """Who answers."""
    record, answer = subject.record, subject.answer
    info = answer.meta.get("io.modelcontextprotocol/serverInfo") if answer is not None else None
    if info is None and answer is not None:
        info = answer.result.get("serverInfo")
    if info is None and record.session is not None:
        info = record.session.server_info
    if info is None:
        info = record.endpoint.server_info
    if not isinstance(info, dict):
        return []
    name = f"{info.get('name', '')} {info.get('version', '')}".strip()
    return [(0, f"from: {scalar(name or '(no name)', 80)}", "")]
