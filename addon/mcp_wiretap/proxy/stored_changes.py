"""What a stored flow tells of what was changed on its way: our own note (`mcp.changed`), or the backup that mitmproxy makes of a
flow that a person edits. Both come from a file: whatever is not as we write it is passed over.
"""

from dataclasses import dataclass
from typing import Any

from mcp_wiretap.proxy.form import State, is_time

_UNSURE = (
    "the request was edited in mitmproxy, and the recording does not tell what the server was given: whether its answer is right "
    "is not checked"
)
_KINDS = frozenset(
    {
        "user",
        "modify_body",
        "modify_headers",
        "map_remote",
        "map_local",
        "sticky",
        "block_list",
        "script",
        "gate",
        "fault",
        "edit",
    }
)


@dataclass(slots=True)
class Change:
    """Messages as mitmproxy's states have them."""

    by: str = "unknown"
    response_by: str = "unknown"
    received: State | None = None  # the request as the client sent it; None: as it is stored
    sent: bool = True  # the stored request is what the server was given
    at: float = 0.0  # when it was sent
    unsure: str = ""
    given: State | None = None  # the answer as the server gave it; None: as it is stored
    passed: bool = True  # the stored answer is what the client got
    answered: bool = False  # the answer was made at the proxy
    killed: bool = False  # the client got none


def changes_of(state: State) -> Change:
    """What was changed of a stored flow."""
    note = state["metadata"].get("mcp.changed")
    if isinstance(note, dict):
        return _noted(state, note)
    backup = state.get("backup")
    if isinstance(backup, dict) and isinstance(backup.get("request"), dict) and state.get("is_replay") != "request":
        return _backed_up(state, backup)
    return Change()


def _noted(state: State, note: dict[str, Any]) -> Change:
    by = _kind(note.get("by"))
    change = Change(by, _kind(note.get("response_by", by)))
    change.answered, change.killed = note.get("answered") is True, note.get("killed") is True
    request, response = note.get("request"), note.get("response")
    if isinstance(request, dict) and (fields := _fields(request)) is not None:
        stored = state["request"]
        change.received = {**stored, "headers": fields, "content": _body(request)}
        for name in ("method", "scheme", "host", "port", "path", "authority"):
            if type(request.get(name)) is type(stored.get(name)):
                change.received[name] = request[name]
        at = request.get("at")
        change.at = float(at) if is_time(at) else 0.0
    if isinstance(response, dict) and (fields := _fields(response)) is not None and state["response"] is not None:
        change.given = {**state["response"], "headers": fields, "content": _body(response)}
        if isinstance(response.get("status"), int):
            change.given["status_code"] = response["status"]
    return change


def _backed_up(state: State, backup: State) -> Change:
    """An edit that a person made. One made before the answer came changed what was sent, one made later the record only."""
    change = Change("user", "user")
    stored, before = state["request"], backup["request"]
    request_differs = any(_differ(stored, before, name) for name in ("headers", "content", "method", "path", "host", "port"))
    answered = isinstance(backup.get("response"), dict)
    if request_differs:
        change.received = {**stored, **before}
        change.sent, change.unsure = not answered, _UNSURE
    if answered and state["response"] is not None and backup["response"].get("content") is not None:
        change.given, change.passed = {**state["response"], **backup["response"]}, False
    return change


def _differ(stored: State, before: State, name: str) -> bool:
    one, other = stored.get(name), before.get(name)
    if name == "headers":
        return _pairs(one) != _pairs(other)
    return bool(one != other)


def _pairs(fields: Any) -> list[tuple[bytes, ...]]:
    """Without the length, which every edit renews."""
    return [tuple(map(bytes, pair)) for pair in fields or () if bytes(pair[0]).lower() != b"content-length"]


def _kind(said: Any) -> str:
    return said if isinstance(said, str) and said in _KINDS else "unknown"


def _fields(message: State) -> list[tuple[bytes, bytes]] | None:
    pairs = message.get("headers")
    if not isinstance(pairs, list | tuple):
        return None
    found = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, bytes) for part in pair):
            return None
        found.append((pair[0], pair[1]))
    return found


def _body(message: State) -> bytes | None:
    body = message.get("body")
    return body if isinstance(body, bytes) else None
