"""Reads the words in which a server refuses a request, and says what they speak of.

Codes and statuses of refusals are the server's choice more often than not; what is meant stands in a sentence, as JSON-RPC error,
as other JSON or as plain text. This is the one table of such words: whoever judges a refusal by its words asks here.
"""

import re
from typing import Any, Literal, NamedTuple

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.wire.secret import mask, shown

type Topic = Literal["session", "initialization", "version", "state", "origin", "host"]

MOST = 2_000  # characters of a refusal that are looked at
LONGEST_QUOTE = 100  # characters of it that a finding shows
_USUAL_MEMBERS = ("message", "error", "error_description", "detail", "details", "title", "reason", "description", "errors")
_MOST_MEMBERS = 20
_DEEPEST = 3
_REFUSED = (
    r"(?:invalid|unknown|unrecogni[sz]ed|expired|stale|bad|wrong|tampered|corrupt\w*|mismatch\w*"
    r"|not (?:found|valid|known)|no longer)"
)
_NO_SUPPORT = r"(?:\bunsupported|\bnot (?:\w+ )?support\w*|\b(?:does|do|can)(?:n't| not) support|\bincompatible)"
_DATE = r"\b20\d\d-\d\d-\d\d\b"
_INITIALIZE = r"\binitiali[sz]\w*"

_TOPICS: dict[Topic, re.Pattern[str]] = {
    "session": re.compile(r"(?<![a-zA-Z])session|Session|SESSION"),
    "initialization": re.compile(
        r"\buninitiali[sz]ed\b"
        rf"|\b(?:not|never|n't)\W(?:\w+ ){{0,2}}{_INITIALIZE}"
        rf"|\b(?:before|without|expect\w*|requires?|required|missing|must|needs?|send|call|first)\b[^.]{{0,30}}{_INITIALIZE}"
        rf"|{_INITIALIZE}[^.]{{0,30}}\b(?:first|required|before|missing|expected|incomplete|not (?:complete|finished|received))"
        r"|\bhandshake\b",
        re.I,
    ),
    "version": re.compile(
        r"protocol[ _-]?versions?|\bversion (?:mismatch|negotiation)"
        rf"|{_NO_SUPPORT}[^.]{{0,40}}\bversions?\b|\bversions?\b.{{0,60}}{_NO_SUPPORT}"
        r"|\b(?:unknown|invalid|bad|wrong)\b[^.]{0,20}\bversion"
        rf"|{_DATE}.{{0,40}}{_NO_SUPPORT}|{_NO_SUPPORT}[^.]{{0,40}}{_DATE}",
        re.I | re.S,
    ),
    "state": re.compile(
        rf"request[ _-]?state|\bstate\b[^.]{{0,40}}\b{_REFUSED}|\b{_REFUSED}[^.]{{0,40}}\bstate\b"
        r"|\bstate\b[^.]{0,40}\b(?:signature|integrity|verif\w+|decrypt\w*|decod\w+)"
        r"|\b(?:verify|decrypt|decode|unseal|parse)\b[^.]{0,40}\bstate\b",
        re.I,
    ),
    "origin": re.compile(r"\borigins?\b", re.I),
    "host": re.compile(
        r"\bhost(?:name|s|names)?\b|\brebinding\b|\bmisdirected\b|\ballowed (?:at|on|from|via)\b.{0,20}\blocalhost\b", re.I
    ),
}


class Said(NamedTuple):
    """What a server said, cut, and the place of it as evidence names places."""

    text: str
    where: str


def words_of(exchange: Exchange) -> Said | None:
    """The words of a refusal; None where there are none, or where the body was not kept."""
    refusal = _error(exchange)
    if refusal is not None:
        return Said(error_text(refusal), refusal.place("error", "message"))
    reading = exchange.answer_reading
    if reading is None:
        return None
    text = reading.head if reading.kind == "not-json" else _sentences(reading.value) if reading.kind == "not-rpc" else ""
    return Said(text[:MOST], "response.body:") if text.strip() else None


def error_text(message: Message) -> str:
    """The words of a JSON-RPC error: its message, then the sentences in its data."""
    error = message.rpc.error
    if not isinstance(error, dict):
        return ""
    text, more = error.get("message"), _sentences(error.get("data"))
    return " ".join(part[:MOST] for part in (text if isinstance(text, str) else "", more) if part)[:MOST]


def _error(exchange: Exchange) -> Message | None:
    """The JSON-RPC error in this response, also one that names no request."""
    answer = exchange.answer
    if answer is not None and answer.exchange is exchange:
        return answer if answer.rpc.kind == "error" else None
    return next((message for message in exchange.received if message.rpc.kind == "error"), None)


def _sentences(value: Any, depth: int = 0) -> str:
    """The sentences in a JSON value that is no JSON-RPC: those of the usual members, else all texts."""
    if isinstance(value, str):
        return value[:MOST]
    if depth >= _DEEPEST:
        return ""
    if isinstance(value, list):
        return " ".join(filter(None, (_sentences(item, depth + 1) for item in value[:_MOST_MEMBERS])))
    if not isinstance(value, dict):
        return ""
    usual = [value[name] for name in _USUAL_MEMBERS if name in value]
    return " ".join(filter(None, (_sentences(item, depth + 1) for item in usual or list(value.values())[:_MOST_MEMBERS])))


def speaks_of(text: str, *topics: Topic) -> Topic | None:
    """The first of these topics that the words name."""
    return next((topic for topic in topics if _TOPICS[topic].search(text) is not None), None)


def quoted(exchange: Exchange, text: str, most: int = LONGEST_QUOTE) -> str:
    """The words as a finding shows them: in quotes, on one line, cut; the session id and the state of this exchange masked."""
    for secret in _own_secrets(exchange):
        text = text.replace(secret, mask(secret))
    return f'"{shown(text.strip(), most)}"'


_SHORTEST_SECRET = 4  # characters; shorter ones stand in words by chance


def _own_secrets(exchange: Exchange) -> list[str]:
    fields = exchange.request_fields
    found = [fields.first("mcp-session-id")]
    scheme, _, token = (fields.first("authorization") or "").partition(" ")
    found += [token or scheme]
    request = exchange.request
    if request is not None and isinstance(state := request.params.get("requestState"), str):
        found.append(state)
    if exchange.response_fields is not None:
        found.append(exchange.response_fields.first("mcp-session-id"))
    return [secret for secret in found if secret and len(secret) >= _SHORTEST_SECRET]
