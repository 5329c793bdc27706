"""Recordings without their secrets. Twice through the flows: `collect` finds the secrets, `redact` puts placeholders wherever
they stand, in whatever encoding, and changes nothing else.

Flows are the states of mitmproxy's flows, as dictionaries. What rules want to know of a secret itself, and its placeholder cannot
show, is left in the metadata as `mcp.redacted` (trace: `Exchange.redacted`).
"""

import hashlib
import re
import secrets as randomness
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from mcp_wiretap.redact.layers import DEEPEST, Edit, apply, layers, merged, unescaped
from mcp_wiretap.redact.places import Named, Place, in_text, labelled, of_header, of_leaf
from mcp_wiretap.redact.secrets import Secrets, readable
from mcp_wiretap.wire import headers as mirrored
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.coding import compress, decode_body

type State = dict[str, Any]

REDACTED = "mcp.redacted"
CHANGED = "mcp.changed"  # the other version of a message that was changed at the proxy
_MOST_DECODED = 256 << 20  # bytes of one body; a bomb is not for sharing
_MOST_CLEAN = 200_000  # words known to hold no secret, each with its four readings as Base64
_LATER = 3  # passes over one text: two secrets may overlap
_MASK = re.compile(rb"\(sha ([0-9a-f]{8}), ([0-9]+ chars\))")
# What is no text from the wire. Connections have certificates and addresses, which are as public as the URL.
_LEFT = frozenset(
    {
        "id",
        "type",
        "version",
        "timestamp_created",
        "http_version",
        "scheme",
        "method",
        "via",
        "address",
        "client_conn",
        "server_conn",
        REDACTED,
    }
)
_SUBJECTS = ("request", "response")


class Redactor:
    """For one export: its placeholders are of one random key."""

    def __init__(self, named: Named | None = None, key: bytes | None = None) -> None:
        self._named = named or Named()
        self.secrets = Secrets(key or randomness.token_bytes(32))
        self._clean: set[bytes] = set()  # no secret in any reading of them
        self._placeless: set[bytes] = set()  # nothing in them where a secret would stand
        self._facts: dict[str, Any] = {}

    def collect(self, state: State) -> None:
        """Learn the secrets of a flow."""
        self._walk(state, self._learn, self._learn_header)

    def redact(self, state: State) -> State:
        """The flow without secrets, also without those that other flows have shown to be some."""
        self._facts = {}
        redacted = self._walk(state, self._replace, self._replace_header)
        if self._facts and isinstance(redacted.get("metadata"), dict):
            redacted["metadata"] = {**redacted["metadata"], REDACTED: self._facts}
        return redacted

    # Through a flow

    def _walk(self, state: State, text: Callable[[bytes], bytes], header: Callable[[str, bytes], bytes]) -> State:
        made: State = {}
        for name, value in state.items():
            if name in _SUBJECTS and isinstance(value, dict):
                made[name] = self._message(value, text, header)
            elif name == "backup" and isinstance(value, dict):  # the flow before somebody edited it
                made[name] = self._walk(value, text, header)
            elif name == "metadata" and isinstance(value, dict) and REDACTED in value:
                self._facts.update(value[REDACTED] if isinstance(value[REDACTED], dict) else {})
                made[name] = self._metadata(value, text, header)
            elif name == "metadata" and isinstance(value, dict) and CHANGED in value:
                made[name] = self._metadata(value, text, header)
            else:
                made[name] = value if name in _LEFT else _every(value, text)
        return made

    def _metadata(self, metadata: State, text: Callable[[bytes], bytes], header: Callable[[str, bytes], bytes]) -> State:
        made: State = _every({name: value for name, value in metadata.items() if name != CHANGED}, text)
        note = metadata.get(CHANGED)
        if CHANGED in metadata:
            made[CHANGED] = (
                {name: self._version(value, text, header) for name, value in note.items()} if isinstance(note, dict) else None
            )
        return made

    def _version(self, version: Any, text: Callable[[bytes], bytes], header: Callable[[str, bytes], bytes]) -> Any:
        """A message as `mcp.changed` has it."""
        if not isinstance(version, dict) or not isinstance(version.get("headers"), list | tuple):
            return _every(version, text)
        pairs = [pair for pair in version["headers"] if len(pair) == 2 and all(isinstance(part, bytes) for part in pair)]
        body = version.get("body")
        message = {**version, "headers": pairs, "content": body if isinstance(body, bytes) else None}
        made = self._message({name: value for name, value in message.items() if name != "body"}, text, header)
        made["headers"] = [list(pair) for pair in made["headers"]]
        made["body"] = made.pop("content")
        return made

    def _message(self, message: State, text: Callable[[bytes], bytes], header: Callable[[str, bytes], bytes]) -> State:
        made: State = {}
        for name, value in message.items():
            if name in ("headers", "trailers") and value is not None:
                made[name] = tuple((bytes(n), header(_text(n), bytes(v))) for n, v in value)
            elif name == "content":
                made[name] = value
            else:
                made[name] = value if name in _LEFT or name.startswith("timestamp") else _every(value, text)
        content = message.get("content")
        if content:
            new = self._body(content, message, text)
            if new != content:
                made["headers"] = tuple(_length(n, v, len(content), len(new)) for n, v in made["headers"])
                made["content"] = new
        return made

    def _body(self, content: bytes, message: State, text: Callable[[bytes], bytes]) -> bytes:
        names = [bytes(v) for n, v in message["headers"] if bytes(n).lower() == b"content-encoding"]
        coding = b", ".join(names).decode("latin-1")
        if not coding:
            return text(content)
        plain, problem = decode_body(content, coding, _MOST_DECODED)
        if not plain:
            return text(content)
        new = text(plain)
        if new == plain:
            return content if problem is None else text(content)  # what could not be decoded may be no coding at all
        return compress(new, coding, whole=problem is None)

    # The two passes

    def _learn(self, data: bytes) -> bytes:
        self._find(data, 0)
        return data

    def _find(self, data: bytes, depth: int) -> None:
        for leaf, label in labelled(data):
            place = of_leaf(data, leaf, self._named, label)
            raw = data[leaf.start : leaf.end]
            inner = unescaped(raw) if not leaf.number and b"\\" in raw else None
            if place is not None and not place.number:
                self._add(inner.data if inner is not None else raw)
            if inner is not None and depth < DEEPEST:
                self._find(inner.data, depth + 1)
        for place in in_text(data, self._named):
            self._add(place.value)
        if depth < DEEPEST:
            for layer in layers(data, self._placeless, escapes=False):
                if layer.text:
                    self._find(layer.data, depth + 1)
                if layer.word is not None and len(self._placeless) < _MOST_CLEAN:
                    self._placeless.add(layer.word)

    def _learn_header(self, name: str, value: bytes) -> bytes:
        for place in of_header(name, value, self._named):
            if place.name.endswith("authorization") and value.lstrip()[:6].lower() == b"basic ":
                self._basic(place.value)
            else:
                self._add(_mirrored(place.value) if place.name.startswith("mcp-param-") else place.value)
        self._find(value, 0)
        return value

    def _basic(self, value: bytes) -> None:
        """User and password: only the password is a secret, and the user (a client id) is left to be read."""
        pair = jose.decode(value.decode("latin-1").rstrip("=").replace("+", "-").replace("/", "_"))
        _, colon, password = (pair or b"").partition(b":")
        if not colon:
            self._add(value)
            return
        self._add(password)
        if (plain := _unquoted(password)) != password:
            self._add(plain)

    def _add(self, secret: bytes) -> None:
        self.secrets.add(secret)
        if b" " in secret:
            self.secrets.add(secret.replace(b" ", b"+"), self.secrets.placeholder(secret).replace(b" ", b"+"))

    def _replace(self, data: bytes) -> bytes:
        data = apply(data, self._edits(data, 0))
        for _ in range(_LATER):
            edits = self._edits(data, 0, own=False)
            if not edits:
                break
            data = apply(data, edits)
        return data

    def _replace_header(self, name: str, value: bytes) -> bytes:
        places = list(of_header(name, value, self._named))
        edits = [edit for place in places if (edit := self._header_edit(place, value)) is not None]
        return self._replace(apply(value, merged(edits)))

    def _header_edit(self, place: Place, value: bytes) -> Edit | None:
        if place.name.endswith("authorization") and value.lstrip()[:6].lower() == b"basic ":
            return self._basic_edit(place)
        if place.name.startswith("mcp-param-"):
            plain = _mirrored(place.value)
            if self.secrets.is_placeholder(plain):
                return None
            new = self.secrets.placeholder(plain)
            if plain != place.value:
                new = mirrored.encode(new.decode("utf-8", "surrogateescape")).encode("latin-1", "replace")
            return place.start, place.end, new
        if self.secrets.is_placeholder(place.value):
            return None
        return place.start, place.end, self.secrets.placeholder(place.value)

    def _basic_edit(self, place: Place) -> Edit | None:
        text = place.value.decode("latin-1").rstrip("=").replace("+", "-").replace("/", "_")
        user, colon, password = (jose.decode(text) or b"").partition(b":")
        if not colon:
            return place.start, place.end, self.secrets.placeholder(place.value)
        if not password or self.secrets.is_placeholder(password):
            return None
        pair = user + b":" + self.secrets.placeholder(password)
        made = jose.encode(pair).replace("-", "+").replace("_", "/")
        return place.start, place.end, (made + "=" * (-len(made) % 4)).encode()

    def _edits(self, data: bytes, depth: int, own: bool = True) -> list[Edit]:
        edits: list[Edit] = list(self.secrets.occurrences(data))
        if own:
            edits += self._own(data, depth)
        if depth < DEEPEST:
            seen: set[bytes] = set()
            dirty: set[bytes] = set()
            for layer in layers(data, self._clean):
                if layer.text:
                    inner = self._edits(layer.data, depth + 1, own=own and not layer.escapes)
                else:
                    inner = list(self.secrets.occurrences(layer.data))
                if inner:
                    edits += layer.outward(merged(inner))
                if layer.word is not None:
                    (dirty if inner else seen).add(layer.word)
            if own and depth == 0 and len(self._clean) < _MOST_CLEAN:
                self._clean |= seen - dirty
        return merged(edits) if edits else edits

    def _own(self, data: bytes, depth: int) -> list[Edit]:
        """Secrets in their own places, however short."""
        edits: list[Edit] = []
        for leaf, label in labelled(data):
            place = of_leaf(data, leaf, self._named, label)
            raw = data[leaf.start : leaf.end]
            inner = unescaped(raw) if not leaf.number and b"\\" in raw else None
            if place is not None:
                value = inner.data if inner is not None else raw
                if place.number:
                    edits.append((leaf.start, leaf.end, self.secrets.placeholder(raw)))
                elif not self.secrets.is_placeholder(value):
                    new = self.secrets.placeholder(value)
                    edits += [(leaf.start, leaf.end, inner.written(new) if inner is not None else new)]
                    self._note(place.name, value, new)
            elif inner is not None and depth < DEEPEST:
                found = inner.outward(merged(self._edits(inner.data, depth + 1)))
                edits += [(leaf.start + start, leaf.start + end, new) for start, end, new in found]
        for place in in_text(data, self._named):
            if not self.secrets.is_placeholder(place.value):
                new = self.secrets.placeholder(place.value)
                edits.append((place.start, place.end, _quoted(new) if place.quoted else new))
                self._note(place.name, place.value, new)
        for mask in _MASK.finditer(data):
            digits = mask.group(1).decode()
            if not self.secrets.is_mask(digits):
                edits.append((*mask.span(1), self.secrets.mask(digits).encode()))
        return edits

    def _note(self, name: str, value: bytes, placeholder: bytes) -> None:
        """What rules look at in the secret itself."""
        if name == "code_verifier":
            self._facts["challenge"] = jose.encode(hashlib.sha256(value).digest())
        elif name == "requestState" and (form := readable(value)) is not None:
            states = self._facts.setdefault("states", {})
            if len(states) < 50:
                states[placeholder.decode("utf-8", "replace")] = form


def _every(value: Any, text: Callable[[bytes], bytes]) -> Any:
    """A value of a flow's state with all its texts redacted."""
    if isinstance(value, bytes):
        return text(value) if value else value
    if isinstance(value, str):
        return text(value.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape") if value else value
    if isinstance(value, dict):
        return {name: inner if name in _LEFT else _every(inner, text) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_every(inner, text) for inner in value)
    return value


def _length(name: Any, value: Any, before: int, after: int) -> tuple[bytes, bytes]:
    """A Content-Length that was right stays right."""
    if bytes(name).lower() == b"content-length" and bytes(value).strip() == b"%d" % before:
        return bytes(name), b"%d" % after
    return bytes(name), bytes(value)


def _text(name: Any) -> str:
    return bytes(name).decode("latin-1")


def _mirrored(value: bytes) -> bytes:
    """A mirrored header value decoded, where it is a sentinel."""
    read = mirrored.decode(value.decode("latin-1"))
    return read.text.encode("utf-8", "surrogatepass") if read.sentinel and read.text is not None else value


def _unquoted(value: bytes) -> bytes:
    return unquote_to_bytes(value.replace(b"+", b" "))


def _quoted(value: bytes) -> bytes:
    return quote(value, safe="-._~").encode()
