"""A row to take along: as JSON, as a curl command, as a test case in the notation of rule examples. Secrets stay masked."""

import json
import shlex
from typing import Any

from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view import body
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import concealed, mask_header, masked, visible

_NOT_COPIED = frozenset({"content-length", "host", "connection", "transfer-encoding", "accept-encoding", "user-agent"})
_LONGEST = 20_000
EVENTS = 200


def as_json(subjects: list[Subject]) -> str:
    """The messages of an operation as they were, with their findings."""
    return json.dumps([_exchange(subject) for subject in subjects], ensure_ascii=False, indent=2, default=str)


def _exchange(subject: Subject) -> dict[str, Any]:
    whole, record = subject.whole, subject.record
    return {
        "flow": record.flow,
        "http": f"{whole.http_method} {whole.url}",
        "headers": {name: mask_header(name, value) for name, value in whole.request_fields},
        "request": _value(whole, "request"),
        "status": whole.status,
        "response": _value(whole, "response") if whole.stream is None else None,
        "events": [
            {
                "at_ms": round((item.at - whole.started) * 1000, 1),
                "data": _masked(item.reading.value if item.reading else item.event.data),
            }
            for item in whole.stream.items[:EVENTS]
        ]
        if whole.stream is not None
        else None,
        "era": record.shown_era,
        "revision": record.revision,
        "outcome": record.outcome,
        "findings": [
            {"rule": f.rule, "severity": f.severity, "party": f.party, "message": f.message, "spec": f.spec}
            for f in record.findings
        ],
    }


def _value(whole: Exchange, side: str) -> Any:
    found, problem = body.content(whole, side)
    return _masked(found) if problem is None else None


def _masked(value: Any) -> Any:
    """Through our own writer, which keeps numbers as they were; back into what `json` writes."""
    try:
        return json.loads(dumps(masked(value)))
    except ValueError:
        return visible(dumps(masked(value), most=_LONGEST))


def as_curl(subject: Subject) -> str:
    """The request as a curl command; a secret header has to be filled in."""
    whole = subject.whole
    found, problem = body.content(whole, "request")
    words = ["curl", "-sS", "-N", "--globoff"]  # or it takes [1-100] and {a,b} of a URL for many URLs
    if whole.http_method != "POST" or problem is not None:  # data alone makes it a POST
        words += ["-X", shlex.quote(visible(whole.http_method))]
    words.append(shlex.quote(visible(concealed(whole.url + (f"?{whole.query}" if whole.query else "")))))
    lines = [" ".join(words)]
    for name, value in whole.request_fields:
        if name.lower() not in _NOT_COPIED:
            lines.append(f"-H {shlex.quote(visible(f'{name}: {mask_header(name, value)}'))}")
    if problem is None:
        lines.append(f"--data-raw {shlex.quote(visible(dumps(masked(found))))}")
    elif problem != "empty":
        return " \\\n  ".join(lines) + "\n# the body is not copied: it is no JSON\n"
    return " \\\n  ".join(lines) + "\n"


def as_case(subjects: list[Subject]) -> str:
    """A case file of the operation: it fires what it fired here."""
    rules = dict.fromkeys(f.rule for subject in subjects for f in subject.record.findings if f.severity != "info")
    head = next((s for s in subjects if s.record.method), subjects[0])
    title = f"{head.record.method or head.whole.http_method} {head.record.name or ''} as it was on the wire".replace("  ", " ")
    lines = [f"=== {visible(concealed(title))}"]
    lines.append(f"fires: {', '.join(rules)}" if rules else "only:")
    for subject in subjects:
        lines += _script(subject)
    return "\n".join(lines) + "\n"


def _script(subject: Subject) -> list[str]:
    whole = subject.whole
    query = f"?{whole.query}" if whole.query else ""
    lines = [visible(concealed(f"{whole.http_method} {whole.url}{query}"))]
    for name, value in whole.request_fields:
        if name.lower() not in _NOT_COPIED:
            lines.append(visible(f"  +header {name}: {mask_header(name, value)}"))
    found, problem = body.content(whole, "request")
    if problem is None:
        lines.append(f"  body {_escaped(dumps(masked(found)))}")
    if whole.stream is not None:
        lines.append("  -> sse")
        readings = [item.reading for item in whole.stream.items[:EVENTS]]
        lines += [f"  -> event {visible(dumps(masked(r.value))) if r is not None else ''}" for r in readings]
        if subject.record.ended_by in ("client", "server"):
            lines.append(f"  -> closed {subject.record.ended_by}")
        if not whole.over:
            lines.append("  -> open")
    elif whole.status is not None:
        fields = whole.response_fields
        kind = (fields.first("content-type") or "").partition(";")[0] if fields is not None else ""
        answer, problem = body.content(whole, "response")
        text = f" {_escaped(dumps(masked(answer)))}" if problem is None else ""
        lines.append(f"  -> {whole.status} {kind}{text}".rstrip())
    return lines


def _escaped(text: str) -> str:
    """A body in the notation's own escapes."""
    return visible(text.replace("\\", "\\\\"))
