"""WWW-Authenticate read: the challenges of one response, each with its scheme and parameters.

Several challenges may stand in one field line or in several; a parameter value is a token or a quoted string with escapes.
Spec: RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_LONGEST = 8_192  # characters of one field line; a challenge with scopes and a URL has some hundred
_MOST = 20  # challenges of one response
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TOKEN68 = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"[ \t,]*")
_ESCAPE = re.compile(r"\\(.)", re.S)
_BARE = re.compile(r"[^ \t,]*")


@dataclass(slots=True)
class Challenge:
    """One challenge. Names of parameters are in lower case; of one that is given twice the first value stands."""

    scheme: str  # as sent
    params: dict[str, str] = field(default_factory=dict)
    token68: str | None = None

    def get(self, name: str) -> str | None:
        return self.params.get(name)

    @property
    def scopes(self) -> tuple[str, ...] | None:
        """The scope values; None where the challenge has no scope."""
        scope = self.params.get("scope")
        return None if scope is None else tuple(scope.split())


def read(lines: Iterable[str]) -> list[Challenge]:
    """The challenges of all WWW-Authenticate field lines. Never raises; what cannot be read ends its line."""
    found: list[Challenge] = []
    for line in lines:
        _read_line(line[:_LONGEST], found)
    return found[:_MOST]


def _read_line(text: str, found: list[Challenge]) -> None:
    current: Challenge | None = None
    position = _after(_GAP, text, 0)
    while position < len(text) and len(found) < _MOST:
        name = _TOKEN.match(text, position)
        if name is None:
            return
        after = _after(_SPACE, text, name.end())
        if current is not None and text[after : after + 1] == "=":
            value, position = _value(text, _after(_SPACE, text, after + 1))
            current.params.setdefault(name.group().lower(), value)
        else:
            current = Challenge(name.group())
            found.append(current)
            position = after
            token = _TOKEN68.match(text, position) if after > name.end() else None
            if token is not None:
                current.token68, position = token.group(), token.end()
        position = _after(_GAP, text, position)


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match is not None else position


def _value(text: str, position: int) -> tuple[str, int]:
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        return _ESCAPE.sub(r"\1", quoted.group(1)), quoted.end()
    bare = _BARE.match(text, position)  # servers send URLs unquoted, which a token may not be
    return (bare.group(), bare.end()) if bare is not None else ("", len(text))
