"""The page of a request and the page of a response: which sections, in which order."""

from collections.abc import Callable, Sequence

from mcp_wiretap.view import body, calls, changes, errors, events, findings, head, headers, results, rounds
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, lines
from mcp_wiretap.wire.secret import knowing


def request(subject: Subject) -> str:
    """What the client sent, in words, as YAML."""
    return _page(
        subject,
        "request",
        (
            head.outcome,
            lambda s: changes.table(s, "request"),
            head.era,
            headers.table,
            calls.asked,
            headers.declared,
            calls.answers,
            calls.state,
            lambda s: findings.table(s, "request"),
            rounds.table,
            calls.client,
            lambda s: findings.unchecked(s, "request"),
            findings.faults,
        ),
        body.request,
    )


def response(subject: Subject) -> str:
    """What the server sent, in words, as YAML."""
    return _page(
        subject,
        "response",
        (
            head.outcome,
            lambda s: changes.table(s, "response"),
            errors.panel,
            errors.afterwards,
            events.table,
            events.progress,
            results.result,
            lambda s: findings.table(s, "response"),
            rounds.table,
            head.era,
            events.way,
            results.server,
            lambda s: findings.unchecked(s, "response"),
            findings.faults,
        ),
        body.response,
    )


def _page(
    subject: Subject, side: str, sections: Sequence[Callable[[Subject], list[Row]]], end: Callable[[Subject], list[str]]
) -> str:
    with knowing(subject.record.secrets):
        return _within(subject, side, sections, end)


def _within(
    subject: Subject, side: str, sections: Sequence[Callable[[Subject], list[Row]]], end: Callable[[Subject], list[str]]
) -> str:
    out = [*head.title(subject, side), *head.verdict(subject, side)]
    long = False  # the section before has more than one line
    for section in sections:
        rows = section(subject)
        if not rows:
            continue
        if long or len(rows) > 1:
            out.append("")
        out += lines(rows)
        long = len(rows) > 1
    out += ["", *end(subject)]
    return "\n".join(out).rstrip() + "\n"
