"""Writes YAML for people: aligned keys, aligned comments, narrow lines, nothing from the wire that could break out.

Text from the wire is visible (control and bidirectional characters as escapes) and one line, whatever it holds.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.secret import concealed, one_line, shown, visible

WIDTH = 86  # columns of the pane beside the flow list in mitmweb, where the window is 1440 pixels wide
TEXT = 400  # characters of one text; the body below shows all of it
_COMMENT_COLUMN = 50  # where comments stand at most: beyond, there is no room for them
_NAME = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_.$/-]*")
_FLOW_KEY = re.compile(r'"(?:[^"\\]|\\.)*":|(?:(?<=\{)|(?<=, ))[\w$/(][\w.$/() -]*:')
_FLOW_PLAIN = re.compile(r"(?:[^\W\d]|[$/(])[\w.$/() -]*(?<! )")
_OTHER_TYPE = re.compile(r"[-+]?(?:\d|\.\d)|(?:true|false|null|yes|no|on|off|y|n|~)\Z|\.(?:inf|nan)\Z", re.I)
_TRAPS = re.compile(r"=|<<|[-+.0-9_:]*_[-+.0-9_:]*")  # YAML readers take these for numbers, or for a word of theirs
_SPECIAL = "-?:,[]{}#&*!|>'\"%@`"

type Row = tuple[int, str, str]  # indentation, what stands there, comment


def scalar(text: str, limit: int = TEXT) -> str:
    """A text as a YAML scalar: plain where that is safe, in double quotes where not."""
    text = concealed(text[: limit + 2_000])
    line = one_line(text, limit)
    if _is_plain(line):
        return line
    return _in_quotes(text, limit)


def quoted(text: str, limit: int = TEXT) -> str:
    """A text in double quotes, in the escapes that JSON and YAML share."""
    return _in_quotes(concealed(text[: limit + 2_000]), limit)


def _in_quotes(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return visible(json.dumps(cut, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    if not text or text != text.strip() or _TRAPS.fullmatch(text) or text.startswith(("---", "...")):
        return False
    if text[0] in _SPECIAL and not (text[0] in "-?:" and len(text) > 1 and text[1] != " "):
        return False
    return ": " not in text and " #" not in text and not text.endswith(":")


def key(name: str) -> str:
    """A member name as a mapping key. One that looks like a number is quoted: to YAML 00 and 000 are one key."""
    plain = _NAME.fullmatch(name) and len(name) <= 80 and not _OTHER_TYPE.match(name)
    return name if plain else quoted(name, 80)


def value(item: Any, limit: int = TEXT) -> str:
    """A JSON value on one line: a text stays a text ("42", "true" in quotes), objects and arrays in flow style. What is longer
    than `limit` is cut and becomes a text."""
    if isinstance(item, str):
        return quoted(item, limit) if _OTHER_TYPE.match(item) else scalar(item, limit)
    if isinstance(item, dict | list):
        written = _flow(item, limit)
        return written if written is not None else scalar(jsonrpc.dumps(item), limit)
    return _number(item, limit)


def _number(item: Any, limit: int) -> str:
    written = jsonrpc.dumps(item)
    return written if len(written) <= limit else scalar(f"{written[:40]}… ({len(written)} digits)", limit)


def _flow(item: Any, room: int) -> str | None:
    """A value in flow style, or None where it is longer than the room there is."""
    if isinstance(item, str):
        if len(item) > room:
            return None
        plain = _FLOW_PLAIN.fullmatch(item) and not _OTHER_TYPE.match(item)
        return item if plain else quoted(item, room + 2)
    if not isinstance(item, dict | list):
        written = jsonrpc.dumps(item)
        return written if len(written) <= room else None
    parts: list[str] = []
    for name, inner in item.items() if isinstance(item, dict) else ((None, inner) for inner in item):
        named = _flow(str(name), room) if name is not None else ""
        if named is None:
            return None
        lead = f"{named}: " if name is not None else ""
        written_inner = _flow(inner, room - len(lead))
        if written_inner is None:
            return None
        parts.append(lead + written_inner)
        room -= len(parts[-1]) + 2
        if room < 0:
            return None
    return "{" + ", ".join(parts) + "}" if isinstance(item, dict) else "[" + ", ".join(parts) + "]"


def block(item: Any, indent: int, budget: int = 60, depth: int = 0) -> list[Row]:
    """A JSON object or array over several lines, at most `budget` of them; short inner values stay on one line."""
    rows: list[Row] = []
    entries: Iterable[tuple[str | None, Any]]
    entries = item.items() if isinstance(item, dict) else [(None, inner) for inner in item]
    left = len(item)
    for name, inner in entries:
        if len(rows) >= budget:
            rows.append((indent, f"# … {left} more" if rows else "# …", ""))
            break
        left -= 1
        lead = "-" if name is None else f"{key(name)}:"
        short = _flow(inner, WIDTH - indent - len(lead) - 20) if isinstance(inner, dict | list) else value(inner)
        if short is not None or depth >= 4:
            rows.append((indent, f"{lead} {short if short is not None else value(inner, 60)}", ""))
        else:
            rows.append((indent, lead, ""))
            rows += block(inner, indent + 2, budget - len(rows), depth + 1)
    return rows


def pairs(items: Sequence[tuple[str, str, str]], indent: int) -> list[Row]:
    """Lines `key: value  # comment` with their values under each other. Keys and values are YAML already."""
    width = min(max((len(name) for name, _, _ in items), default=0), 32)
    return [(indent, f"{name}:{' ' * max(width - len(name) + 1, 1)}{text}".rstrip(), comment) for name, text, comment in items]


def columns(lead: str, text: str, indent: int) -> Row:
    """An entry of a list whose text stands in columns; `lead` is the part in front, which is harmless."""
    together = f"{lead}{text}"
    line = shown(together, TEXT)
    if _is_plain(line.strip()):
        return indent, f"- {line}", ""
    return indent, f"- {' ' * (len(lead) - len(lead.lstrip()))}{quoted(together.strip())}", ""


def lines(rows: Sequence[Row]) -> list[str]:
    """Rows as text, their comments under each other. What does not fit goes on in the next line: YAML reads a line end inside a
    scalar as the space that was there."""
    commented = [indent + len(text) for indent, text, comment in rows if comment]
    column = min(max(commented, default=0), _COMMENT_COLUMN) + 3
    out: list[str] = []
    for indent, text, comment in rows:
        *begun, last = _folded(text, indent)
        out += begun
        if comment:
            out += _commented(last, shown(comment, 1_000), column, folded=bool(begun))
        else:
            out.append(last)
    return out


def _folded(text: str, indent: int) -> list[str]:
    if indent + len(text) <= WIDTH:
        return [" " * indent + text if text else ""]
    kept = _FLOW_KEY.sub(lambda found: found[0].replace(" ", "\0"), text)  # YAML wants a key on one line
    first = textwrap.wrap(
        kept, WIDTH - indent, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False, drop_whitespace=True
    )
    return [" " * indent + part.replace("\0", " ") for part in first]


def _commented(line: str, comment: str, column: int, *, folded: bool) -> list[str]:
    out = []
    if folded or (len(line) + 3 > column and len(line) + 5 + len(comment) > WIDTH):
        out.append(line)
        line = ""
    start = max(column, len(line) + 3) if line else column
    parts = textwrap.wrap(comment, max(WIDTH - start - 2, 30), break_on_hyphens=False) or [""]
    out.append(f"{line:<{start}}# {parts[0]}")
    return out + [f"{'':<{start}}# {part}" for part in parts[1:]]


def note(text: str, indent: int = 0) -> list[str]:
    """A comment that stands alone."""
    width = WIDTH - indent - 2
    wrapped = textwrap.wrap(shown(text, 2_000), width, break_on_hyphens=False)
    return [" " * indent + f"# {part}" for part in wrapped]
