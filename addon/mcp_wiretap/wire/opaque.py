"""What a text that should be opaque gives away: data that anybody can read, and that nothing protects from being changed.

Looked at for diagnosis only; a client must not do that. Base64, hexadecimal, percent-encoding and zlib are undone, bounded.
Spec: 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow.
"""

import base64
import binascii
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcp_wiretap.wire import jose

LONGEST = 65_536  # characters that are looked at, before and after each step
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
_TAG = re.compile(r"[0-9a-fA-F]{32,}|[A-Za-z0-9+/_-]{22,}={0,2}")
_STRUCTURE = re.compile(rb"[=:;,| ]")  # a bare identifier says nothing
_SIGNED = frozenset(
    {
        "sig",
        "mac",
        "hmac",
        "tag",
        "signature",
        "digest",
        "checksum",
        "hash",
        "proof",
        "jwt",
        "iv",
        "nonce",
        "ciphertext",
    }
)
_SHORTEST_TAG = 16  # bytes of a message authentication code, or of the tag of an AEAD
_SHORTEST_TEXT = 12  # bytes; fewer may be printable by chance
_DEEPEST = 3  # codings undone one after the other


@dataclass(slots=True, frozen=True)
class Opened:
    """What was found: its form in words (`Base64 of JSON`), and the names of its members."""

    form: str
    members: tuple[str, ...] = ()


def open_(text: str) -> Opened | None:
    """What a text gives away; None where it gives nothing away, or where something protects it."""
    if len(text) > LONGEST:
        return None
    token = jose.read(text)
    if token is not None:
        unsigned = str(token.header.get("alg", "none")).lower() == "none" or not token.signed
        return Opened("an unsigned JWT", _members(token.claims)) if unsigned else None
    if text.startswith("eyJ") and text.count(".") in (2, 4):
        return None  # JWS or JWE
    if text.startswith(("%7B", "%5B", "%7b", "%5b")):
        found = _json(unquote(text, errors="replace"))
        return None if found is None else Opened("percent-encoded JSON", found)
    found = _json(text)
    if found is not None:
        return Opened("JSON", found)
    if _has_tag(text):
        return None
    return _decoded(text.encode("latin-1", "replace"), "", _DEEPEST)


def _decoded(data: bytes, form: str, depth: int) -> Opened | None:
    """Look behind one coding after the other."""
    if form:
        text = _text(data)
        if text is not None:
            found = _json(text)
            if found is not None:
                return Opened(f"{form}JSON", found)
            if text.lstrip().startswith(("{", "[")) or _has_tag(text):
                return None  # signed inside, or after it
        elif _json_before_a_tag(data):
            return None
    if not depth:
        return None
    for name, inner in _layers(data):
        opened = _decoded(inner, f"{form}{name} of ", depth - 1)
        if opened is not None:
            return opened
    if form and len(data) >= _SHORTEST_TEXT and all(32 <= b < 127 for b in data) and _STRUCTURE.search(data):
        return Opened(f"{form}text")
    return None


def _layers(data: bytes) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    if data[:1] == b"\x78" or data[:2] == b"\x1f\x8b":
        inner = _inflated(data)
        if inner is not None:
            found.append(("zlib", inner))
    if data.isascii():
        text = data.decode("ascii")
        if _HEX.fullmatch(text):
            found.append(("hexadecimal", bytes.fromhex(text)))
        elif _BASE64.fullmatch(text):
            inner = _from_base64(text)
            if inner is not None:
                found.append(("Base64", inner))
    return found


def _from_base64(text: str) -> bytes | None:
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare.replace("-", "+").replace("_", "/") + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _inflated(data: bytes) -> bytes | None:
    engine = zlib.decompressobj(wbits=47)  # zlib or gzip, by its header
    try:
        return engine.decompress(data, LONGEST)
    except zlib.error:
        return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _json(text: str) -> tuple[str, ...] | None:
    """The member names of a JSON object, () for a list; None where a text is neither or carries its own signature."""
    text = text.strip()
    if not text.startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and any(isinstance(k, str) and k.lower() in _SIGNED for k in value):
        return None
    return _members(value)


def _json_before_a_tag(data: bytes) -> bool:
    """JSON with so many bytes after it that they may be a tag."""
    end = max(data.rfind(b"}"), data.rfind(b"]")) + 1
    return data[:1] in (b"{", b"[") and 0 < end <= len(data) - _SHORTEST_TAG


def _has_tag(text: str) -> bool:
    """`payload.tag`, with a usual separator: the last part is long enough, and no text."""
    for separator in (".", "|", "--", ":", "~", "$"):
        head, found, tail = text.rpartition(separator)
        if found and head and _TAG.fullmatch(tail):
            data = bytes.fromhex(tail) if _HEX.fullmatch(tail) else _from_base64(tail)
            if data is not None and len(data) >= _SHORTEST_TAG and _text(data) is None:
                return True
    return False


def _members(value: Any) -> tuple[str, ...]:
    return tuple(k[:40] for k in list(value)[:12]) if isinstance(value, dict) else ()
