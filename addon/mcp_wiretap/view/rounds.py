"""The conversation that a flow belongs to, round by round: when, who held it, what was asked and how it was answered."""

from mcp_wiretap.report import comment
from mcp_wiretap.report.words import duration, plural, short_flow
from mcp_wiretap.trace.model import Conversation, Exchange
from mcp_wiretap.view import calls
from mcp_wiretap.view.events import offset
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, key, scalar, value
from mcp_wiretap.wire.secret import masked

_MOST = 30  # rounds shown; the middle of a longer conversation is left out
_STATUS = {"awaiting-input": "awaiting input"}


def table(subject: Subject) -> list[Row]:
    """One entry a round."""
    conversation = subject.record.conversation
    if conversation is None:
        return []
    status = _STATUS.get(conversation.status, conversation.status)
    by = dict.fromkeys(f"{link.by}, {link.confidence}" for link in conversation.links)
    rows: list[Row] = [(0, "conversation:", f"{status}; linked by {'; '.join(by)}")]
    shape = conversation.shape
    skipped = len(shape) - _MOST
    for number, (flow, start, end, outcome) in enumerate(shape, 1):
        if skipped > 0 and _MOST // 2 < number <= _MOST // 2 + skipped:
            if number == _MOST // 2 + 1:
                rows.append((2, f"# … {skipped} rounds more", ""))
            continue
        here = "  <- here" if flow == subject.record.flow else ""
        following = shape[number][1] if number < len(shape) else None
        rows.append((2, f"- round {number}: {short_flow(flow)}{here}", _held(conversation, start, end, following, outcome)))
        rows += _inputs(subject, flow)
    if conversation.ended is not None:
        total = duration((conversation.ended - conversation.started) * 1000)
        client = f", of which the client held it {duration(conversation.client_ms)}" if conversation.client_ms else ""
        rows.append((2, f"- total: {total}{client}", ""))
    return rows


def _held(conversation: Conversation, start: float, end: float | None, following: float | None, outcome: str) -> str:
    words = [offset(start - conversation.started).strip()]
    words.append(f"server {duration((end - start) * 1000)}" if end is not None else "open")
    if following is not None and end is not None and following >= end:
        words.append(f"then client {duration((following - end) * 1000)}")
    words.append(outcome)
    return ", ".join(words)


def _inputs(subject: Subject, flow: str) -> list[Row]:
    """What a round asked of the client, with the answer that the next one gave."""
    whole = _whole(subject, flow)
    asked = whole.answer.result.get("inputRequests") if whole is not None and whole.answer is not None else None
    if not isinstance(asked, dict):
        return []
    conversation = subject.record.conversation
    links = conversation.links if conversation is not None else []
    link = next((entry for entry in links if entry.earlier == flow), None)
    later = _whole(subject, link.later) if link is not None else None
    given = later.request.params.get("inputResponses") if later is not None and later.request is not None else None
    rows: list[Row] = []
    for name, question in list(asked.items())[:20]:
        answer = given.get(name) if isinstance(given, dict) else None
        shown = f"{calls.question_text(question)[:60]} -> {_short(answer)}"
        rows.append((4, f"{key(name)}: {scalar(shown, 120)}", ""))
    return rows


def _short(answer: object) -> str:
    if answer is None:
        return "no answer seen"
    answer = masked(answer, entered=True)
    if isinstance(answer, dict):
        if "action" in answer:
            content = f" {value(answer['content'], 60)}" if "content" in answer else ""
            return f"{answer['action']}{content}"
        if "content" in answer:
            return calls.text_of(answer["content"])[:60]
        if isinstance(answer.get("roots"), list):
            return plural(len(answer["roots"]), "root")
    return value(answer, 60)


def _whole(subject: Subject, flow: str) -> Exchange | None:
    return subject.whole if flow == subject.record.flow else subject.sibling(flow)


def place(subject: Subject) -> str:
    """`2 of 3`, or ""."""
    return comment.mrtr(subject.record).replace("/", " of ")
