"""JSON values as they are judged and compared: what is a number, an integer or a time, and which values are equal.

Values are those of `wire.jsonrpc`: floats keep their text, integers that `int` does not keep are `Decimal`. JSON has no order of
members and no difference between 1 and 1.0 (RFC 8259 sections 4 and 6).
"""

import hashlib
import json
import re
from decimal import Decimal
from typing import Any, TypeGuard

from mcp_wiretap.wire.jsonrpc import dumps

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LONGEST_STRING = 1_000  # of a value that is cut
_LONGEST_KEY = 500
_MOST_EXACT = 2**53  # floats beyond are too far apart for whole numbers


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a JSON number; true and false are none. A Decimal passes for a float: it compares like one."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Whether it is an integer as JSON Schema has it: 100, and 100.0 as well."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int | Decimal) or (isinstance(value, float) and value.is_integer())


def is_time(value: object) -> bool:
    """Whether it has the form of an ISO 8601 date with time; seconds and zone may be missing."""
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def is_date_or_time(value: object) -> bool:
    """The same, or a date alone."""
    return is_time(value) or (isinstance(value, str) and _DATE.fullmatch(value) is not None)


def canonical(value: Any) -> str:
    """One text for all values that are equal: members sorted, whole numbers without a fraction. ASCII."""
    text = json.dumps(value, sort_keys=True, default=str)
    if ".0" in text:  # in a number or in a text: looking is what costs
        text = json.dumps(_whole(value), sort_keys=True, default=str)
    return text


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_EXACT:
        return int(value)
    return value


def bounded(value: Any, most: int = 16_000) -> Any:
    """A value as it may be kept for long: itself where its JSON has at most so many characters, else a copy cut down to about
    that. What comes first in it stays; long strings are cut before members are left out."""
    if len(dumps(value, most=most + 1)) <= most:
        return value
    return _cut(value, [most])


def _cut(value: Any, room: list[int]) -> Any:
    """`room`: how many characters are left, shared by all levels."""
    room[0] -= 1
    if isinstance(value, str):
        kept = value[: max(min(_LONGEST_STRING, room[0]), 0)]
        room[0] -= len(kept)
        return kept if len(kept) == len(value) else kept + "…"
    if isinstance(value, dict):
        made: dict[str, Any] = {}
        for name, item in value.items():
            if room[0] <= 0:
                break
            made[_cut(name, room)] = _cut(item, room)
        return made
    if isinstance(value, list):
        items = []
        for item in value:
            if room[0] <= 0:
                break
            items.append(_cut(item, room))
        return items
    text = dumps(value, most=_LONGEST_STRING + 1)  # numbers may have thousands of digits
    room[0] -= len(text)
    return value if len(text) <= _LONGEST_STRING else text[:_LONGEST_STRING] + "…"


def short_key(text: str) -> str:
    """A name as the key of what is kept: itself, or where it is long, its beginning with a digest."""
    return text if len(text) <= _LONGEST_KEY else f"{text[:100]}… {digest_of_text(text).hex()}"


def digest(value: Any) -> bytes:
    """16 bytes under which equal values meet."""
    return hashlib.sha256(canonical(value).encode()).digest()[:16]


def digest_of_text(text: str) -> bytes:
    """The same for a string alone, letter by letter: lone surrogates are kept apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def ttl_s(result: dict[str, Any]) -> float:
    """Return how long a result is fresh, in seconds (`ttlMs`); 0 where it is absent or no positive number."""
    ttl = result.get("ttlMs")
    if is_number(ttl) and 0 < ttl < 1e12:
        return float(ttl) / 1000
    return 0.0
