"""Whether the state of a flow has the form that mitmproxy gives it. A recording comes from anybody: a member may be of any type,
a time may be none.
"""

import math
from typing import Any, TypeGuard

type State = dict[str, Any]

_LATEST = 253_402_300_800.0  # the year 10000: no calendar shows what comes then
_TEXTS = ("method", "scheme", "host", "path", "http_version", "authority")


class Malformed(ValueError):
    """A state is not as mitmproxy writes one. The message says which member of it."""


def check(state: State) -> None:
    """Malformed where a member that is read of an HTTP flow is missing or of another type."""
    try:
        request, response, error = state["request"], state["response"], state["error"]
        _expect(state["id"], str, "id")
        _expect(state["metadata"], dict, "metadata")
        _expect(state.get("comment", ""), str, "comment")
        _expect(state.get("marked", ""), str, "marked")
        _expect(state["client_conn"], dict, "client_conn")
        _expect(state["client_conn"]["id"], str, "client_conn.id")
        _message(request, "request")
        for name in _TEXTS:
            _expect(request[name], (bytes, str), f"request.{name}")
        if response is not None:
            _message(response, "response")
            _expect(response["status_code"], int, "response.status_code")
        if error is not None:
            _expect(error, dict, "error")
            _expect(error["msg"], str, "error.msg")
            _time(error["timestamp"], "error.timestamp")
    except KeyError as missing:
        raise Malformed(f"{missing.args[0]} is missing") from None


def _message(message: Any, name: str) -> None:
    _expect(message, dict, name)
    _expect(message["content"], (bytes, type(None)), f"{name}.content")
    for field in message["headers"] if isinstance(message["headers"], list | tuple) else (None,):
        if not (isinstance(field, list | tuple) and len(field) == 2 and all(isinstance(part, bytes | str) for part in field)):
            raise Malformed(f"{name}.headers is no list of names and values")
    _time(message["timestamp_start"], f"{name}.timestamp_start")
    _time(message["timestamp_end"], f"{name}.timestamp_end")


def _expect(value: Any, kind: type | tuple[type, ...], name: str) -> None:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed(f"{name} is a {type(value).__name__}")


def _time(value: Any, name: str) -> None:
    if value is not None:
        _expect(value, (int, float), name)


def settle_times(state: State) -> bool:
    """Put a known time in the place of each that is none (not a number, infinite, of no year): the one before it of the same
    flow. Whether there was any. The state has passed `check`."""
    request, response, error = state["request"], state["response"], state["error"]
    places: list[tuple[State, str]] = [(request, "timestamp_start"), (request, "timestamp_end")]
    if response is not None:
        places += [(response, "timestamp_start"), (response, "timestamp_end")]
    if error is not None:
        places.append((error, "timestamp"))
    times = [part[name] for part, name in places]
    of_connections = [
        (part, name)
        for part in (state.get("client_conn"), state.get("server_conn"))
        if isinstance(part, dict)
        for name, at in part.items()
        if name.startswith("timestamp") and at is not None and not is_time(at)
    ]
    for part, name in of_connections:
        part[name] = None
    if all(at is None or is_time(at) for at in times):
        _settle_backup(state)
        return bool(of_connections)
    before = next((at for at in (*times, state.get("timestamp_created")) if is_time(at)), 0.0)
    for (part, name), at in zip(places, times, strict=True):
        if is_time(at):
            before = at
        elif at is not None:
            part[name] = before
    _settle_backup(state)
    return True


def _settle_backup(state: State) -> None:
    """The messages as they were before a person edited them."""
    backup = state.get("backup")
    if not isinstance(backup, dict):
        return
    for name in ("request", "response"):
        kept, stored = backup.get(name), state[name]
        if not isinstance(kept, dict) or not isinstance(stored, dict):
            continue
        for key, at in list(kept.items()):
            if key.startswith("timestamp") and at is not None and not is_time(at):
                kept[key] = stored.get(key)


def is_time(value: object) -> TypeGuard[float]:
    """Whether it can be a time of this world, in Unix seconds."""
    return isinstance(value, int | float) and math.isfinite(value) and 0 <= value < _LATEST
