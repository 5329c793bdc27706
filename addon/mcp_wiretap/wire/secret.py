"""Secrets masked, and text from the wire made safe to store and to show.

One spelling everywhere: `(sha 4ffafd97, 270 chars)`, the first 8 hex digits of SHA-256, so that equality stays visible.
"""

import hashlib
import re
from typing import Any

SECRET_HEADERS = frozenset(
    {
        "authorization", "proxy-authorization", "cookie", "set-cookie", "mcp-session-id", "x-api-key", "api-key",
        "x-auth-token", "dpop",
    }
)  # fmt: skip
SECRET_MEMBERS = frozenset(
    {
        "requestState", "access_token", "refresh_token", "id_token", "client_secret", "client_assertion", "assertion",
        "subject_token", "actor_token", "code", "code_verifier", "device_code", "password", "registration_access_token",
    }
)  # fmt: skip
# What is written where a secret would stand, and is none.
STAND_INS = frozenset({"(absent)", "(not kept)", "(redeemed)", "(the same)"})
_MASKED = re.compile(r"\(sha [0-9a-f]{8}, [0-9]+ chars\)")
_DEEPEST = 200
# Controls, line separators, zero-width and bidirectional controls, tags: they hide or reorder what a person reads.
_INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
    r"|[\U000e0000-\U000e0fff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def mask(text: str) -> str:
    """The masked spelling of a secret. What is masked already stays."""
    if _MASKED.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"(sha {digest[:8]}, {len(text)} chars)"


def mask_header(name: str, value: str) -> str:
    """A header value as it may be shown. Authorization keeps its scheme, cookies their names go too."""
    lower = name.lower()
    if lower not in SECRET_HEADERS:
        return value
    scheme, space, rest = value.partition(" ")
    if lower.endswith("authorization") and space and scheme.isalnum():
        return f"{scheme} {mask(rest)}"
    return mask(value)


def masked(value: Any, depth: int = 0) -> Any:
    """A copy of a JSON value with the string values of secret members masked."""
    if depth > _DEEPEST:
        return "(nested too deep to show)"
    if isinstance(value, dict):
        return {k: hidden(k, v) if isinstance(v, str) else masked(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [masked(v, depth + 1) for v in value]
    return value


def hidden(name: str, value: Any) -> Any:
    """The value of a member as it may be shown: masked where the name is a secret's. (`shown` of `jsonrpc.dumps`.)"""
    return mask(value) if name in SECRET_MEMBERS and isinstance(value, str) else value


def safe(text: str) -> str:
    """Without lone surrogates (they become backslash escapes), so that it can be encoded and stored."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Control, zero-width and bidirectional characters written as escapes: \\x1b, \\u202e."""
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, limit: int) -> str:
    """Visible, on one line, cut at `limit` characters with an ellipsis."""
    text = visible(text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"
