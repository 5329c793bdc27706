"""A recorded answer written for the live request: its ids, its progress token, its subscription, the origin it came to.

What needs no change keeps its bytes.
"""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev

_LINE_END = re.compile(rb"\r\n|\r|\n")
_NOBODY = object()  # of a progress token: the live request has none


@dataclass(slots=True)
class Rewriting:
    """From the ids and progress tokens of the recording to the live ones."""

    ids: dict[Hashable, Any] = field(default_factory=dict)
    tokens: dict[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def between(cls, recorded: jsonrpc.Reading | None, live: jsonrpc.Reading | None) -> "Rewriting":
        """The requests of two bodies that mean the same."""
        made = cls()
        if recorded is None or live is None:
            return made
        for was, now in zip(recorded.messages, live.messages, strict=False):
            if was.kind != "request" or now.kind != "request":
                continue
            made.ids[jsonrpc.id_key(was.id)] = now.id
            if "progressToken" in was.meta:
                made.tokens[jsonrpc.id_key(was.meta["progressToken"])] = now.meta.get("progressToken", _NOBODY)
        return made

    def join(self, other: "Rewriting") -> None:
        self.ids.update(other.ids)
        self.tokens.update(other.tokens)

    def body(self, body: bytes) -> bytes:
        reading = jsonrpc.read(body, max_bytes=len(body) + 1)
        value, changed = self._value(reading)
        return jsonrpc.dumps(value).encode("utf-8", "backslashreplace") if changed else body

    def block(self, block: bytes, data: str) -> bytes | None:
        """An SSE event with `data`, rewritten; None where the live client has not asked for it."""
        reading = jsonrpc.read_text(data, max_bytes=len(data) + 1)
        for message in reading.messages:
            if message.method == "notifications/progress" and isinstance(message.params, dict):
                token = jsonrpc.id_key(message.params.get("progressToken"))
                if self.tokens.get(token) is _NOBODY:
                    return None
        value, changed = self._value(reading)
        return with_data(block, jsonrpc.dumps(value)) if changed else block

    def _value(self, reading: jsonrpc.Reading) -> tuple[Any, bool]:
        """The JSON value of a body with the live ids in it, and whether there was anything to write."""
        changed = False
        for message in reading.messages:
            changed |= self._message(message)
        return reading.value, changed

    def _message(self, message: jsonrpc.Message) -> bool:
        changed, body = False, message.body
        if message.kind in ("result", "error"):
            changed = _put(body, "id", self.ids)
        elif message.method == "notifications/progress" and isinstance(message.params, dict):
            changed = _put(message.params, "progressToken", self.tokens)
        if rev.SUBSCRIPTION_ID in message.meta:
            changed |= _put(message.meta, rev.SUBSCRIPTION_ID, self.ids)
        return changed


def _put(holder: dict[str, Any], name: str, live: dict[Hashable, Any]) -> bool:
    if name not in holder:
        return False
    was = holder[name]
    now = live.get(jsonrpc.id_key(was), was)
    if type(now) is type(was) and now == was:
        return False
    holder[name] = now
    return True


def with_data(block: bytes, data: str) -> bytes:
    """An SSE event as it was, but for its data."""
    end = found.group() if (found := _LINE_END.search(block)) else b"\n"
    lines = [line for line in _LINE_END.split(block) if line and not line.startswith(b"data")]
    encoded = data.encode("utf-8", "backslashreplace")
    lines += [b"data: " + line for line in _LINE_END.split(encoded)]
    return end.join(lines) + end + end


def origins_of(scheme: str, authorities: Iterable[str]) -> list[str]:
    """The origins as a server may write them, the longest first."""
    default = {"http": ":80", "https": ":443"}.get(scheme, "")
    found = {f"{scheme}://{authority}" for authority in authorities}
    found |= {origin.removesuffix(default) for origin in found if default and origin.endswith(default)}
    return sorted(found, key=len, reverse=True)


def with_origin(text: bytes, recorded: Iterable[str], live: str) -> bytes:
    """URLs of the recorded server made into URLs of the one that answers now."""
    for origin in recorded:
        text = re.sub(re.escape(origin.encode()) + rb"(?![\w.:-])", lambda _: live.encode(), text)
    return text


def sent_back(location: str, asked: dict[str, str], recorded: Iterable[str], live: str) -> str:
    """Where an authorization page sends its user: the live request's redirect_uri, with the live state and issuer."""
    recorded = list(recorded)
    parts = urlsplit(location)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if "redirect_uri" in asked:
        parts = urlsplit(asked["redirect_uri"])
    base = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    told = {name: with_origin(value.encode(), recorded, live).decode() for name, value in query}
    if "state" in asked and "state" in told:
        told["state"] = asked["state"]
    target = base if "redirect_uri" in asked else with_origin(base.encode(), recorded, live).decode()
    return target + ("?" + urlencode(told) if told else "") + ("#" + parts.fragment if parts.fragment else "")
