"""What was changed of an exchange at the proxy, in words: never a finding, for neither side did it."""

from typing import Any

from mcp_wiretap.trace.model import Change

_BY = {
    "user": "by a person",
    "script": "by a script",
    "unknown": "by whom is not known",
    "gate": "by the gate",
    "fault": "by an injected fault",
    "edit": "by a command of mcp-wiretap",
    "sticky": "by a sticky cookie or Authorization",
}


def by(who: str | None) -> str:
    """Who did it: `by a person`, `by modify_body`."""
    who = who or "unknown"
    return _BY.get(who, f"by {who}")


def short(change: Change) -> str:
    """For the comment of a flow: `request changed by modify_body`."""
    words = [f"request changed {by(change.request_by)}"] if change.request_by is not None else []
    if change.answered_here:
        words.append("refused by the gate" if change.response_by == "gate" else f"answered {by(change.response_by)}")
    elif change.response_by is not None:
        words.append(f"answer changed {by(change.response_by)}")
    return ", ".join(words)


def sentences(change: Change) -> list[str]:
    """What was changed, and what is judged by what."""
    found = []
    if change.unsure:
        found.append(f"the request was changed at the proxy ({by(change.request_by)}): the client is judged by what it sent")
    elif change.request_by is not None and change.answered_here:
        found.append(f"the proxy changed the request ({by(change.request_by)}): the client is judged by what it sent")
    elif change.request_by is not None:
        found.append(f"the proxy changed the request ({by(change.request_by)}): the server is judged by what it was given")
    if change.answered_here:
        found.append(f"the proxy answered ({by(change.response_by)}): nothing was sent to the server, and it is not judged")
    elif change.response_by is not None:
        found.append(f"the proxy changed the answer ({by(change.response_by)}): the client is judged by what it got")
    return found


def record(change: Change | None) -> dict[str, Any] | None:
    """`flows[].changed` of the audit contract."""
    if change is None:
        return None
    return {"by": change.by, "request": change.request_by is not None, "response": change.response_by is not None}
