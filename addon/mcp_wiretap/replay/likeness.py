"""What makes two requests the same one: endpoint, method, name and arguments as JSON values. Ids, progress tokens and trace
context make no difference; who asked, with which capabilities and headers, only decides between recorded answers that all fit.
"""

import hashlib
from collections.abc import Hashable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields, decode

_TRACE_CONTEXT = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
_ENVELOPE = frozenset({rev.PROTOCOL_VERSION, rev.CLIENT_INFO, rev.CLIENT_CAPABILITIES, rev.LOG_LEVEL})
_ANSWERS = frozenset({"requestState", "inputResponses"})
_FRESH = frozenset(  # of authorization requests: another value each time
    {
        "state",
        "code_challenge",
        "code",
        "code_verifier",
        "nonce",
        "client_id",
        "refresh_token",
        "client_secret",
        "client_assertion",
        "redirect_uri",
        "resource",
    }
)

type Key = tuple[Hashable, ...]


def canonical(value: Any) -> str:
    """A text that is the same for equal JSON values: member order and the spelling of numbers make no difference."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{jsonrpc.dumps(k)}:{canonical(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, str):
        return jsonrpc.dumps(value)
    return repr(jsonrpc.id_key(value))


def is_modern(fields: Fields, reading: jsonrpc.Reading | None) -> bool:
    """Whether a request is put in the modern era's way: by its envelope, its method, or a header of that era."""
    for message in reading.messages if reading is not None else ():
        if message.kind == "request" and (message.method == "server/discover" or not _ENVELOPE.isdisjoint(message.meta)):
            return True
        if message.method == "initialize":
            return False
    version = (fields.first("mcp-protocol-version") or "").strip()
    return rev.version_kind(version) in ("modern", "future") or fields.has("mcp-method")


def key_of(http_method: str, target: str, fields: Fields, body: bytes | None, reading: jsonrpc.Reading | None) -> Key:
    """Under which a request and the recorded ones of the same meaning meet."""
    if http_method == "GET" and "text/event-stream" in (fields.first("accept") or ""):
        return ("stream", fields.first("last-event-id"))
    if reading is not None and reading.messages and http_method == "POST":
        if reading.kind == "batch":
            return ("batch", *(_message_key(message) for message in reading.messages))
        return _message_key(reading.messages[0])
    if http_method == "DELETE":
        return ("delete",)
    return ("http", http_method, *_stable(target.partition("?")[2]), "|", *_form(fields, body))


def _message_key(message: jsonrpc.Message) -> Key:
    match message.kind:
        case "result" | "error":
            return ("answer",)
        case "invalid":
            return ("invalid", canonical(message.body))
    if message.method == "initialize":
        return (message.kind, message.method)  # what the client is called and can do does not make it another request
    params = message.params
    if not isinstance(params, dict):
        return (message.kind, message.method, canonical(params))
    retry = not _ANSWERS.isdisjoint(params)
    asked = {name: value for name, value in params.items() if name != "_meta" and name not in _ANSWERS}
    return (message.kind, message.method, canonical(asked), retry)


def _stable(query: str) -> tuple[Hashable, ...]:
    return tuple(sorted(pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] not in _FRESH))


def _form(fields: Fields, body: bytes | None) -> tuple[Hashable, ...]:
    """Form bodies by their fields; JSON bodies of registrations and anything else make no difference."""
    if body is None or not (fields.first("content-type") or "").lower().startswith("application/x-www-form-urlencoded"):
        return ()
    return _stable(body.decode("latin-1"))


def state_of(reading: jsonrpc.Reading | None) -> tuple[Any, Any] | None:
    """(requestState, inputResponses) of a retry, None for a request that is none."""
    for message in reading.messages if reading is not None else ():
        if message.kind == "request" and isinstance(message.params, dict) and not _ANSWERS.isdisjoint(message.params):
            return message.params.get("requestState"), message.params.get("inputResponses")
    return None


def answers_alike(one: Any, other: Any) -> bool:
    """Whether two sets of inputResponses answer the same keys with the same actions, whatever was typed."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return canonical(one) == canonical(other)
    return {k: _action(v) for k, v in one.items()} == {k: _action(v) for k, v in other.items()}


def _action(answer: Any) -> Hashable:
    action = answer.get("action") if isinstance(answer, dict) else None
    return action if isinstance(action, str) else None


def circumstances(fields: Fields, reading: jsonrpc.Reading | None) -> Mapping[str, Hashable]:
    """What else may decide between recorded answers, the weightiest first: `fitting` compares it."""
    message = reading.messages[0] if reading is not None and reading.messages else None
    meta = message.meta if message is not None and message.kind == "request" else {}
    capabilities = meta.get(rev.CLIENT_CAPABILITIES)
    rest = {name: value for name, value in meta.items() if name not in _TRACE_CONTEXT and name not in _ENVELOPE}
    authorization = fields.first("authorization")
    asked = message.params.get("protocolVersion") if message and isinstance(message.params, dict) else None
    return {
        "authorized": authorization is not None,
        "authorization": hashlib.sha256(authorization.encode()).digest() if authorization is not None else None,
        "version": canonical(meta.get(rev.PROTOCOL_VERSION, asked)),
        "capabilities": canonical(capabilities),
        "headers": _mirrored(fields),
        "level": canonical(meta.get(rev.LOG_LEVEL)),
        "meta": canonical(rest),
    }


def _mirrored(fields: Fields) -> Hashable:
    names = [*fields.names_starting("mcp-param-"), *(name for name in ("mcp-method", "mcp-name") if fields.has(name))]
    return tuple(sorted((name, tuple(decode(value).text or "" for value in fields.all(name))) for name in names))
