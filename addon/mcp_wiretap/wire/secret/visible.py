"""Text from the wire made safe to store and to show: nothing invisible, on one line, cut."""

import re

# Controls, line separators, zero-width and bidirectional controls, tags: they hide or reorder what a person reads.
_INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
    r"|[\U000e0000-\U000e0fff]"
)
_IN_JSON = re.compile(_INVISIBLE.pattern.replace(r"\x00-\x1f", "", 1))  # those below a space stand only between values
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def safe(text: str) -> str:
    """Without lone surrogates (they become backslash escapes), so that it can be encoded and stored."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Control, zero-width and bidirectional characters written as escapes: \\x1b, \\u202e."""
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub(_escape, text)


def escaped_json(written: str) -> str:
    """JSON text with the same characters written as escapes of JSON: it says the same, and a terminal obeys nothing in it."""
    return written if written.isprintable() else _IN_JSON.sub(_escape_json, written)


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"


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
