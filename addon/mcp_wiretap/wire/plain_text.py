"""What a body says in words: the first line of a text, the title of an HTML page, the usual members of a JSON document.

For answers that are no JSON-RPC: the words of a gateway, a sign-in page, a framework. Only the beginning of a body is read, in
one pass; nothing is raised. RFC 9457 (problem details), RFC 6749 section 5.2 (`error`, `error_description`).
"""

import html
from typing import Any

READ = 16_384  # bytes of a body that are looked at: a page has its title there
LONGEST = 4_000  # characters that are kept: a secret in them is masked before they are cut further
_MOST_TAGS = 400
_DEEPEST = 4

_UNREAD = frozenset({"script", "style", "template", "svg", "noscript"})  # elements whose text nobody sees
_INLINE = frozenset({"a", "abbr", "b", "code", "em", "font", "i", "kbd", "small", "span", "strong", "sub", "sup", "tt", "u"})
_BARE_TITLES = frozenset({"", "error", "errors", "oops", "document", "untitled", "index", "home", "app"})  # say nothing alone
# Members that carry the words, in this order; names without regard to case.
_MEMBERS = ("message", "detail", "details", "title", "error_description", "msg", "errormessage", "reason", "description")


def first_words(body: bytes, content_type: str | None) -> str:
    """The words of a body that is no JSON: the title (or first text) of a page, the first line of a text; "" without."""
    text = _decoded(body[:READ], content_type or "").lstrip("\ufeff").strip()
    if text[:1] == "<":
        return _of_markup(text)[:LONGEST]
    if text[:1] in ("{", "[") or "\x00" in text or text.count("\ufffd") > len(text) // 10:
        return ""  # JSON that cannot be read, or no text at all
    return _one_spaced(text.partition("\n")[0])[:LONGEST]


def json_words(value: Any) -> str:
    """The words of a JSON document that is no JSON-RPC message; "" where none of the usual members has any."""
    return _of_json(value, 0)[:LONGEST]


def _decoded(body: bytes, content_type: str) -> str:
    named = content_type.lower().partition("charset=")[2].partition(";")[0].strip(" \t\"'")
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        named = "utf-16"
    try:
        return body.decode(named or "utf-8", "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _of_markup(text: str) -> str:
    """The title; where that is missing or says nothing, the first text that a reader sees."""
    title, first = "", ""
    for kind, words in _blocks(text):
        if kind == "title":
            title = title or words
        else:
            first = words
            break
        if not _says_little(title):
            return title
    if title.lower() in _BARE_TITLES - {"error", "errors", "oops"} and first:
        return first
    return f"{title}: {first}" if title and first and first.lower() != title.lower() else first or title


def _says_little(title: str) -> bool:
    """Whether a title is only the name of a site, or a word that stands on any page."""
    return title.lower() in _BARE_TITLES or " " not in title


def _blocks(text: str) -> list[tuple[str, str]]:
    """The pieces of text that stand between block elements, each with the element that it is in; at most two."""
    found: list[tuple[str, str]] = []
    pieces: list[str] = []
    position, element = 0, ""
    for _ in range(_MOST_TAGS):
        opens = text.find("<", position)
        pieces.append(text[position : opens if opens >= 0 else len(text)])
        if opens < 0:
            break
        if text.startswith("<!--", opens):
            closes = text.find("-->", opens + 4)
            position = closes + 3
        else:
            closes = text.find(">", opens + 1)
            position = closes + 1
        if closes < 0:
            break
        name = _name(text, opens, closes)
        bare = name.removeprefix("/")
        if name in _UNREAD:
            closes = text.lower().find(f"</{name}", position)
            if closes < 0:
                break
            position = closes
        if bare in _INLINE:
            continue
        if words := _one_spaced(html.unescape("".join(pieces))):
            found.append(("title" if element == "title" else "text", words))
            if len(found) == 2:
                return found
        pieces, element = [], name
    if words := _one_spaced(html.unescape("".join(pieces))):
        found.append(("title" if element == "title" else "text", words))
    return found


def _name(text: str, opens: int, closes: int) -> str:
    """The name of a tag in lower case, with its slash where it closes."""
    words = text[opens + 1 : min(closes, opens + 40)].split(None, 1)
    name = words[0].lower() if words else ""
    return name if name.startswith("/") else name.rstrip("/")


def _of_json(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return _one_spaced(value[: 2 * LONGEST])
    if depth > _DEEPEST:
        return ""
    if isinstance(value, list):
        return next((words for item in value[:3] if (words := _of_json(item, depth + 1))), "")
    if not isinstance(value, dict):
        return ""
    members = {name.lower(): member for name, member in list(value.items())[:100] if isinstance(name, str)}
    error, said = members.get("error"), _of_members(members, depth)
    if isinstance(error, str) and error:
        return _joined(_one_spaced(error[: 2 * LONGEST]), _text(members.get("error_description")) or said)
    for name in ("error", "errors", "fault"):
        if isinstance(members.get(name), dict | list) and (words := _of_json(members[name], depth + 1)):
            return words
    return said


def _of_members(members: dict[str, Any], depth: int) -> str:
    if title := _text(members.get("title")):
        return _joined(title, _text(members.get("detail")))
    for name in _MEMBERS:
        if words := _text(members.get(name)):
            return words
    for name in ("message", "detail", "details", "faultstring"):
        if words := _of_json(members.get(name), depth + 1):
            return words
    return ""


def _text(value: Any) -> str:
    return _one_spaced(value[: 2 * LONGEST]) if isinstance(value, str) else ""


def _joined(one: str, other: str) -> str:
    """`one: other`, and one of them where the other adds nothing."""
    if not other or other.lower() in one.lower():
        return one
    return other if other.lower().startswith(one.lower()) else f"{one}: {other}"


def _one_spaced(text: str) -> str:
    return " ".join(text.split())
