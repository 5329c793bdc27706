"""Reads the words in which a server refuses a request, and says what they speak of.

Codes and statuses of refusals are the server's choice more often than not; what is meant stands in a sentence, as JSON-RPC error,
as other JSON or as plain text. This is the one table of such words: whoever judges a refusal by its words asks here.
"""

import re
from typing import Literal, NamedTuple

from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.summary import error_words

type Topic = Literal["session", "initialization", "version", "state", "origin", "host"]

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
    """What a server said: as it came, to be searched; as it may be shown, in quotes; and the place of it."""

    text: str
    quote: str
    where: str


def words_of(exchange: Exchange) -> Said | None:
    """The words of a refusal; None where there are none."""
    text = error_words.raw(exchange)
    if not text or exchange.status is None:
        return None
    error = (
        exchange.answer if exchange.answer is not None and exchange.answer.rpc.kind == "error" else error_words.refusal(exchange)
    )
    where = error.place("error", "message") if error is not None else "response.body:"
    return Said(text, error_words.quoted(exchange.error_message or ""), where)


def speaks_of(text: str, *topics: Topic) -> Topic | None:
    """The first of these topics that the words name."""
    return next((topic for topic in topics if _TOPICS[topic].search(text) is not None), None)
