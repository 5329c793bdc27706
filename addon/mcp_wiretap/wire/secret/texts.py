"""Secrets that stand in texts: tokens by their form, private keys, passwords of URLs, parameters, assignments, multipart fields.

`secrets_in` finds them, in text and in bytes alike: masks and exports go by the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mcp_wiretap.wire.secret import names

# Secrets by their form, in groups. A parameter of a challenge (`Bearer realm="x"`) is none.
TOKENS = (
    r"\b(?i:bearer|dpop)[ \t]+(?=[^\s\"]*[0-9])([A-Za-z0-9._~+/-]{16,}+(?!=\\*\"[^\s,}\])\\])=*+)"
    r"|\b(eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
    r"|\b((?:sk-|gh[opsu]_|github_pat_|glpat-|xox[abposr]-)[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16})\b"
)
_KEY = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = (
    rf"({_KEY}(?=(?:\\[nr]|\s)*[A-Za-z0-9+/=])(?:[^-\"'<>]|-(?!----)){{0,20000}}+"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?)"
)
_USER = r":(?:\\?/){2}(?:[^\s/?#\"'<>@\\:]{0,200}+:((?!\(sha )[^\s/?#\"'<>\\]{1,500})@|([^\s/?#\"'<>@\\:]{12,500}+)@)"
_WORDS = r"(?:password|passwd|secret|api[_-]?key)"
_SHOWN = (
    r"(?!\*|<|\[|\{|\(sha |x{3}|null\b|none\b|redacted|hidden|masked"
    r"|(?:missing|must|required?|invalid|incorrect|wrong|not|no|is|are|was|empty|unset|set|expired|undefined|true|false|x-api-key)(?![^\s.,;:!?)\"'])"
    r"|(?:os\.|process\.|\$|env\b))"
)  # not what stands in for one
# The same in texts for people, where short ones count, too.
_GUARD = r"(?!=\\*\"[^\s,}\])\\])"  # a parameter of a challenge
_BEARER = (
    rf"Bearer\s+([A-Za-z_~+/]{{16,}}+)(?![0-9.-]){_GUARD}"
    rf"|Bearer\s+(?=[A-Za-z._~+/-]*[0-9])([A-Za-z0-9._~+/-]{{6,}}+){_GUARD}"
)
# And `password=...` (LOG006).
_LOOSE = (
    rf"{_BEARER}"
    r"|(-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*)"
    rf"|(?i:\b{_WORDS}\s*[=:]\s*({_SHOWN}[^\s\"',;]{{3,}}))|(?i:\"{_WORDS}\"\s*:\s*\"({_SHOWN}[^\"]{{3,}}))"
)
SECRET_TEXT = re.compile(f"{_LOOSE}|{TOKENS}")
_QUERY = (
    r"(?:[?&;#]([A-Za-z0-9_.~\[\]-]{1,80}+)=(?!\(sha )([^&;#\s\"'<>\\]+)"
    r"|^([A-Za-z0-9_.~\[\]-]{1,80}+)=(?!\(sha )([^&;#\s\"'<>\\]++)(?=&|\Z))"
)
# A name and a sign; and what is assigned: to the closing quote where it is in quotes.
_ASSIGNED = r"(?<![A-Za-z0-9_.-])([A-Za-z_][A-Za-z0-9_.-]{0,80}+)(\\*[\"'])?[ \t]{0,4}(:=|=>|=(?!=)|:(?!=))[ \t]{0,4}"
_VALUE = (
    r"((?i:Bearer|Basic|DPoP|Digest|Token|ApiKey|Negotiate)[ \t]+)?"
    r"(?:\"((?:[^\"\\]|\\.)*+)|\\+\"([^\"\\]*+)|\\*'([^'\\]*+)|([^\s\"',;&<>\\(){}\[\]]++)(?![(\[]))"
)
_FIELD = (
    r"(?i:content-disposition:\s*form-data;[^\r\n]*?\bname=\"?)([^\"\r\n;]{1,80})\"?[^\r\n]*\r?\n(?:[^\r\n]+\r?\n){0,10}\r?\n"
    r"([^\r\n]+)"
)
_STAND_IN = re.compile(
    r"\*|<|\[|\{|\$|%[sd({]|\(sha |\.\.\.|…|x{3}|null\b|none\b|nil\b|redacted|hidden|masked|os\.|process\.|env\b"
    r"|(?:missing|must|required?|invalid|incorrect|wrong|not|no|is|are|was|empty|unset|set|expired|undefined|true|false"
    r"|x-api-key|str|string|text|bytes|int|any|optional|the|your|an?|this|my|for|to|in|of|and|or|if|with|can|may|should|will|has"
    r"|enabled|disabled|yes|include|omit|same-origin|see|use|used)(?![^\s.,;:!?)|\"'])",
    re.I,
)  # what stands where a secret would, and is none
_PROSE = frozenset({"password", "passwd", "secret", "apikey", "api_key", "api-key"})  # said of as `password: hunter`
_LINE_NAMES = frozenset({"cookie", "set-cookie"})
_LINE = r"[^\r\n\"]*"


class Found(NamedTuple):
    """Where a secret stands. `quoted`: it may be percent-encoded. `name`: that of the parameter that it is."""

    start: int
    end: int
    quoted: bool
    name: str = ""


@dataclass(slots=True, frozen=True)
class _Patterns[T: (str, bytes)]:
    tokens: re.Pattern[T]
    key: re.Pattern[T]
    user: re.Pattern[T]
    query: re.Pattern[T]
    assigned: re.Pattern[T]
    value: re.Pattern[T]
    fields: re.Pattern[T]
    line: re.Pattern[T]


_SOURCES = (f"{_BEARER}|{TOKENS}", _PRIVATE_KEY, _USER, _QUERY, _ASSIGNED, _VALUE, _FIELD, _LINE)
_STR: _Patterns[str] = _Patterns(*(re.compile(source) for source in _SOURCES))
_BYTES: _Patterns[bytes] = _Patterns(*(re.compile(source.encode()) for source in _SOURCES))
# One of them stands in every text with such a secret, in lower case; looking for words is quicker than for expressions.
_FORMS = ("bearer", "dpop", "eyj", "sk-", "gho_", "ghp_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox", "akia", "private key")
_NAMES = names.vocabulary(
    """
    pass pwd secret token key auth cred cookie otp pin bearer sess sig jwt code state ssn sid dpop assertion connection
    conn hint verifier
    """
)


def secrets_in(text: str) -> list[Found]:
    """The secrets in a text, sorted, without overlaps."""
    found: list[Found] = []
    lower = text.lower()
    if "=" in text or ":" in text:
        if "://" in text or ":\\/\\/" in text:
            found += _users(_STR, text)
        if any(name in lower for name in _NAMES):
            found += _named(_STR, text, lower)
    for form in _FORMS:
        if form in lower:
            found += _formed(_STR, text)
            break
    return merged(found) if len(found) > 1 else found


def secrets_in_bytes(data: bytes) -> list[Found]:
    """The same of bytes, of whatever encoding."""
    found: list[Found] = []
    lower = data.lower()
    if b"=" in data or b":" in data:
        if b"/" in data and b"@" in data:
            found += _users(_BYTES, data)
        if any(name.encode() in lower for name in _NAMES):
            found += _named(_BYTES, data, lower)
    if any(form.encode() in lower for form in _FORMS):
        found += _formed(_BYTES, data)
    return merged(found)


def parameters(text: str) -> Iterator[tuple[str, str]]:
    """The parameters of a URL or of a form, as they are written."""
    for match in _STR.query.finditer(text):
        group = match.lastindex or 0
        yield match.group(group - 1), match.group(group)


def passwords_of_urls(text: str) -> Iterator[str]:
    """`https://user:PASSWORD@host`, as they are written."""
    for start, end, *_ in _users(_STR, text):
        yield text[start:end]


def merged(found: list[Found]) -> list[Found]:
    """Sorted; of two that overlap the one that begins first stays, then the longer one."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda f: (f.start, -f.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _formed[T: (str, bytes)](patterns: _Patterns[T], text: T) -> Iterator[Found]:
    for pattern in (patterns.key, patterns.tokens):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastindex or 0)
            yield Found(start, end, False)


def _users[T: (str, bytes)](patterns: _Patterns[T], text: T) -> Iterator[Found]:
    """`https://user:PASSWORD@host`, `https://TOKEN@host`."""
    for match in patterns.user.finditer(text):
        group = match.lastindex or 0
        if group == 1 or names.looks_random(_text(match.group(2))):
            yield Found(*match.span(group), True)


def _named[T: (str, bytes)](patterns: _Patterns[T], text: T, lower: T) -> Iterator[Found]:
    for match in patterns.query.finditer(text):
        group = match.lastindex or 0
        name = _text(match.group(group - 1))
        if names.is_parameter(name, _text(match.group(group))):
            yield Found(*match.span(group), True, name.lower())
    for match in patterns.assigned.finditer(text):
        if (found := _assigned(patterns, text, match)) is not None:
            yield found
    if _as(lower, "form-data") in lower:
        for match in patterns.fields.finditer(text):
            if names.is_parameter(_text(match.group(1)), _text(match.group(2))):
                yield Found(*match.span(2), False)


def _assigned[T: (str, bytes)](patterns: _Patterns[T], text: T, match: re.Match[T]) -> Found | None:
    name = _text(match.group(1))
    said = names.member(name)
    before = _text(text[match.start() - 1 : match.start()]) if match.start() else ""
    if said == "nothing" or (before and before in "?&;#" and match.group(2) is None):  # a parameter
        return None
    assigned = patterns.value.match(text, match.end())
    if assigned is None:
        return None
    group = assigned.lastindex or 0
    start, end = assigned.span(group)
    value = _text(assigned.group(group))
    if group < 2 or not value or value[0] in ",:]}" or _STAND_IN.match(value):
        return None
    bare = group == 5
    in_quotes = match.group(2) is not None and not bare
    sign = _text(match.group(3))
    if said == "perhaps":
        wanted = names.looks_random(value) or (in_quotes and names.is_member(name, value))
    elif in_quotes:
        wanted = True
    elif _names_one(value):
        wanted = False
    elif sign == ":" and bare and name.lower() not in _PROSE:
        certain = assigned.group(1) is not None or (name.lower() in _LINE_NAMES and "=" in value)
        wanted = certain or (len(value) >= 6 and any(c.isdigit() for c in value))
    else:
        wanted = len(value) >= 3
    if not wanted:
        return None
    if bare and name.lower() in _LINE_NAMES and sign == ":":
        line = patterns.line.match(text, start)
        end = line.end() if line is not None else end
    return Found(start, end, False)


def _names_one(value: str) -> bool:
    """Whether what is assigned is itself the name of a secret: `args.password`, `api_key`."""
    return value.replace(".", "_").isidentifier() and not any(c.isdigit() for c in value) and names.member(value) != "nothing"


def _text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("latin-1")


def _as[T: (str, bytes)](like: T, text: str) -> T:
    return text if isinstance(like, str) else text.encode()
