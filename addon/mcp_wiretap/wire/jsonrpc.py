"""JSON-RPC messages read from bytes: single, batch or malformed; nothing is lost, nothing is raised.

Ids keep their JSON type, numbers their digits, duplicate member names are noticed. What counts as JSON-RPC follows catalogue
RPC001: an OAuth body such as {"error": "invalid_token"} does not. Spec: 2026-07-28 basic/index#messages.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate, count
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Literal

from mcp_wiretap.wire.pace import breathe

MAX_BYTES = 8 << 20
MAX_DEPTH = 200
MAX_ITEMS = 1_000  # of a batch: every item becomes a message that is judged
MAX_VALUES = 1_000_000  # JSON values of one message: `[[],[],...` of 8 MB would be ten times as much as Python objects
MAX_ARRAYS = 100_000  # and arrays, which are read without a rest
MAX_MEMBERS = 100_000  # of objects that have more than a few: one object is read without a rest
_FEW = 64
_LARGE = 64 << 10  # characters that are read without a rest
_MEMBERS = 4_096  # of an object, the same
_MOST_DUPLICATES = 20
_HEAD = 300  # characters
_DIGITS = 4_300  # Python refuses to convert longer decimal integers

type MessageKind = Literal["request", "notification", "result", "error", "invalid"]
type ReadingKind = Literal["single", "batch", "empty", "not-json", "not-utf8", "not-rpc", "too-deep", "too-large", "lines", "cut"]


class ExactFloat(float):
    """A JSON number with fraction or exponent, and the text it was written as (42.0 is not 42, 1e400 is not infinity)."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "ExactFloat":
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __deepcopy__(self, memo: Any) -> "ExactFloat":
        return self

    def __reduce__(self) -> Any:
        return (ExactFloat, (self.text,))


@dataclass(slots=True)
class Message:
    """One JSON-RPC message. `body` is the JSON value it was read from; `index` its place in a batch."""

    kind: MessageKind
    id: Any
    has_id: bool
    method: str | None
    params: Any
    result: Any
    error: Any
    body: Any
    index: int | None = None
    problem: str | None = None  # of an invalid message: why
    duplicates: tuple[str, ...] = ()  # duplicated member names of the whole body that it came in
    meta: dict[str, Any] = field(init=False)  # params._meta or result._meta; empty where there is none or it is not an object

    def __post_init__(self) -> None:
        holder = self.result if self.kind == "result" else self.params
        meta = holder.get("_meta") if isinstance(holder, dict) else None
        self.meta = meta if isinstance(meta, dict) else {}

    @property
    def error_code(self) -> int | None:
        """error.code where it is an integer (-32602.0 is one); None otherwise."""
        code = self.error.get("code") if isinstance(self.error, dict) else None
        if isinstance(code, bool):
            return None
        if isinstance(code, int):
            return code
        return int(code) if isinstance(code, float) and code.is_integer() else None


@dataclass(slots=True)
class Reading:
    """What a body turned out to be."""

    kind: ReadingKind
    messages: tuple[Message, ...] = ()
    value: Any = None
    problem: str | None = None
    offset: int | None = None  # byte where reading failed
    duplicates: tuple[str, ...] = ()  # duplicated member names
    bom: bool = False
    surrogates: bool = False
    size: int = 0
    unread: int = 0  # items of a batch past the limit
    head: str = ""  # of a body that is no JSON: how it begins


def read(body: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Reading:
    """Read a body. Never raises."""
    size = len(body)
    if size > max_bytes:
        return Reading("too-large", problem=f"{size} bytes, more than the limit of {max_bytes}", size=size)
    bom = body[:3] == b"\xef\xbb\xbf"
    try:
        text = body[3:].decode() if bom else body.decode()
    except UnicodeDecodeError as error:
        at = error.start + (3 if bom else 0)
        return Reading("not-utf8", problem=f"byte 0x{body[at]:02x} at {at}", offset=at, bom=bom, size=size)
    reading = read_text(text, max_bytes=max_bytes, max_depth=max_depth)
    reading.bom, reading.size = bom, size
    if bom and reading.offset is not None:
        reading.offset += 3
    return reading


def read_lines(body: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Reading | None:
    """Read a body that holds several JSON values, one after the other, as a server writes that streams messages without events.
    A last value that was cut off is left out. None where it is something else. Never raises."""
    if len(body) > max_bytes:
        return None
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    readings: list[Reading] = []
    for value in _values(text):
        breathe()
        reading = read_text(value, max_bytes=max_bytes, max_depth=max_depth)
        if reading.kind != "single":
            break
        readings.append(reading)
        if len(readings) >= MAX_ITEMS:
            break
    if not readings:
        return None
    made = Reading("lines", tuple(reading.messages[0] for reading in readings), [reading.value for reading in readings])
    made.size, made.problem = len(body), f"{len(readings)} JSON values in one body"
    return made


def _values(text: str) -> Iterator[str]:
    """The JSON values of a text that stand one after the other."""
    start, decoder = 0, json.JSONDecoder()
    while (start := _ANY_SPACE.match(text, start).end()) < len(text):  # type: ignore[union-attr]
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return
        yield text[start:end]
        start = end


def read_text(text: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Reading:
    """Read the data of an SSE event. Never raises."""
    size = len(text)
    if size > max_bytes:
        return Reading("too-large", problem=f"{size} characters, more than the limit of {max_bytes}", size=size)
    start = 0 if text[:1] in "{[" and text else size - len(text.lstrip(_SPACE))
    if start == size:
        return Reading("empty", problem="empty", size=size)
    if text[start] not in '{["-0123456789tfn':
        offset, head = _bytes_before(text, start), text[start : start + _HEAD]
        return Reading("not-json", problem=f"begins with {text[start]!r}", offset=offset, size=size, head=head)
    # Only what may be too deep, or too much, is looked at bracket by bracket.
    if text.count("[") + text.count("{") > max_depth:
        structure = _structure(text)
        if _depth(structure, max_depth) > max_depth:
            return Reading("too-deep", problem=f"nested more than {max_depth} deep", size=size)
        if structure.count(b"[") > MAX_ARRAYS:
            return Reading("too-large", problem=f"more than {MAX_ARRAYS} arrays", size=size)
    if size > _LARGE and text.count(",") > MAX_VALUES and _structure(text, b",").count(b",") > MAX_VALUES:
        return Reading("too-large", problem=f"more than {MAX_VALUES} JSON values", size=size)
    if size > _LARGE and text.count(":") > MAX_MEMBERS:
        structure = _structure(text, b"{:")
        members = structure.count(b":")
        if members > MAX_MEMBERS and members > _FEW * structure.count(b"{"):
            return Reading("too-large", problem=f"objects of more than {_FEW} members, {members} in all", size=size)
    usual = _USUAL if size <= _LARGE else _USUAL_PACED
    duplicates: list[str] = []
    try:
        try:
            if "-0" in text and _MINUS_ZERO.search(text):
                raise _Unusual
            value, end = usual.raw_decode(text, start)
        except json.JSONDecodeError:
            raise
        except (_Unusual, ValueError):
            value, end = _exact_decoder(duplicates).raw_decode(text, start)
        if end != size and text[end:].strip(_SPACE):
            raise json.JSONDecodeError("Extra data", text, end + len(text[end:]) - len(text[end:].lstrip(_SPACE)))
    except json.JSONDecodeError as error:
        problem, offset = f"{error.msg} at {error.pos}", _bytes_before(text, error.pos)
        return Reading("not-json", problem=problem, offset=offset, size=size, head=text[start : start + _HEAD])
    except _Constant as error:
        return Reading("not-json", problem=f"{error} is not JSON", size=size)
    except (ValueError, RecursionError, ArithmeticError) as error:
        return Reading("not-json", problem=str(error), size=size)
    reading = _sort(value)
    if duplicates:
        reading.duplicates = tuple(duplicates[:_MOST_DUPLICATES])
        for message in reading.messages:
            message.duplicates = reading.duplicates
    # Only an escape can bring a surrogate in, since the bytes were UTF-8.
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        reading.surrogates = _has_surrogate(value)
    reading.size = size
    return reading


_SPACE = " \t\r\n"
_ANY_SPACE = re.compile(r"[ \t\r\n]*")


class _Constant(Exception):
    pass


class _Unusual(Exception):
    """A duplicate name, or a number that `int` does not keep as it was written: to be read again, more slowly."""


def _no_constant(name: str) -> Any:
    raise _Constant(name)


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(items)
    if len(made) != len(items):
        raise _Unusual
    return made


def _paced[T, R](make: Callable[[T], R]) -> Callable[[T], R]:
    """`make`, with a rest now and then: what calls it is a loop of C over a long text."""
    ticks = count(1)

    def paced(given: T) -> R:
        if not next(ticks) % 64:
            breathe()
        return make(given)

    return paced


def _unique_of_many(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """`_unique` with rests: one object may hold all members of the message."""
    if len(items) <= _MEMBERS:
        return _unique(items)
    made: dict[str, Any] = {}
    for start in range(0, len(items), _MEMBERS):
        made.update(items[start : start + _MEMBERS])
        breathe()
    if len(made) != len(items):
        raise _Unusual
    return made


# Made once: making a decoder costs as much as reading a small body with it.
_USUAL = json.JSONDecoder(object_pairs_hook=_unique, parse_float=ExactFloat, parse_constant=_no_constant)
_USUAL_PACED = json.JSONDecoder(
    object_pairs_hook=_paced(_unique_of_many), parse_float=_paced(ExactFloat), parse_int=_paced(int), parse_constant=_no_constant
)
_MINUS_ZERO = re.compile(r"-0(?![0-9.eE])")


def _exact_decoder(duplicates: list[str]) -> json.JSONDecoder:
    """A decoder that reads everything, and notes duplicate names."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items) and len(duplicates) < _MOST_DUPLICATES:
            counts = Counter(name for name, _ in items)
            duplicates.extend(sorted(name for name, count in counts.items() if count > 1))
        return made

    return json.JSONDecoder(
        object_pairs_hook=_paced(pairs), parse_float=_paced(ExactFloat), parse_int=_paced(_integer), parse_constant=_no_constant
    )


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _DIGITS and text != "-0" else Decimal(text)


def _bytes_before(text: str, position: int) -> int:
    return len(text[:position].encode("utf-8", "surrogatepass"))


_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def _structure(text: str, marks: bytes = b"[]{}") -> bytes:
    """These marks, where they are not inside of strings. Linear, and without a step of Python for each."""
    if "\\" in text:
        # A run of backslashes inside a string escapes itself in pairs; what is left over escapes a quote.
        text = text.replace("\\\\", "").replace('\\"', "")
        breathe()
    others = bytes(set(range(256)) - set(marks + b'"'))
    found = text.encode("utf-8", "surrogatepass").translate(None, others)
    outside: list[bytes] = []
    inside = 0  # of a string: whether the number of quotes so far is odd
    for start in range(0, len(found), _LARGE):
        breathe()
        parts = found[start : start + _LARGE].split(b'"')
        outside.append(b"".join(parts[inside::2]))
        inside = (inside + len(parts) - 1) % 2
    return b"".join(outside)


def _depth(structure: bytes, most: int) -> int:
    """How deep arrays and objects nest; no more is known than that it is deeper than `most`."""
    deepest = level = 0
    for start in range(0, len(structure), _LARGE):
        steps = memoryview(structure[start : start + _LARGE].translate(_STEPS)).cast("b")
        levels = list(accumulate(steps, initial=level))
        deepest, level = max(deepest, max(levels)), levels[-1]
        if deepest > most:
            break
        breathe()
    return deepest


_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _has_surrogate(value: Any) -> bool:
    stack = [value]
    ticks = count(1)
    while stack:
        if not next(ticks) % 256:
            breathe()
        item = stack.pop()
        if isinstance(item, str):
            if not item.isascii() and _SURROGATE.search(item):
                return True
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def _sort(value: Any) -> Reading:
    if isinstance(value, list):
        messages = tuple(_message(item, index) for index, item in enumerate(value[:MAX_ITEMS]))
        if any(m.kind != "invalid" or m.problem != _NOT_RPC for m in messages) or not messages:
            return Reading("batch", messages, value, unread=len(value) - len(messages))
        return Reading("not-rpc", (), value, "an array without JSON-RPC messages")
    message = _message(value, None)
    if message.kind == "invalid" and message.problem == _NOT_RPC:
        return Reading("not-rpc", (), value, _what(value))
    return Reading("single", (message,), value)


_NOT_RPC = "not JSON-RPC"


def _what(value: Any) -> str:
    if isinstance(value, dict):
        return "an object without method, result or error object"
    return f"a JSON {type(value).__name__}" if value is not None else "null"


def _message(value: Any, index: int | None) -> Message:
    if not isinstance(value, dict):
        return Message("invalid", None, False, None, None, None, None, value, index, _NOT_RPC)
    has_id = "id" in value
    id_, method, error = value.get("id"), value.get("method"), value.get("error")
    params, result = value.get("params"), value.get("result")
    if isinstance(method, str):
        kind: MessageKind = "request" if has_id else "notification"
        return Message(kind, id_, has_id, method, params, result, error, value, index)
    if "result" in value:
        return Message("result", id_, has_id, None, None, result, error, value, index)
    if isinstance(error, dict) and ("code" in error or value.get("jsonrpc") == "2.0"):
        return Message("error", id_, has_id, None, None, None, error, value, index)
    if "jsonrpc" in value and not isinstance(error, str):
        problem = "method is not a string" if "method" in value else "neither method, result nor error"
        return Message("invalid", id_, has_id, None, params, result, error, value, index, problem)
    return Message("invalid", id_, has_id, None, params, result, error, value, index, _NOT_RPC)


_LONGEST_KEY = 1_000  # keys are kept for long, ids are the other side's choice


def id_key(value: Any) -> Hashable:
    """A key under which equal ids meet and others do not: "1" and 1 apart, true apart from 1, 1.0 with 1."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_KEY else ("long", hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest())
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, int | Decimal):
        return ("number", value)
    if isinstance(value, ExactFloat):
        try:
            number = Decimal(value.text)
            if abs(number.adjusted()) > 400:  # 1e999999: never written out
                return ("text", value.text)
            return ("number", int(number)) if number == number.to_integral_value() else ("number", number)
        except ArithmeticError:
            return ("text", value.text)
    if isinstance(value, float):
        return ("number", int(value)) if value.is_integer() else ("number", value)
    return ("json", dumps(value, most=2_000))  # no id at all; telling such apart is not worth megabytes of work


def pointer(*steps: str | int) -> str:
    """A JSON pointer (RFC 6901). No steps: the whole document, ""."""
    text = ""
    for step in steps:
        one = str(step)
        if "~" in one or "/" in one:
            one = one.replace("~", "~0").replace("/", "~1")
        text += "/" + one
    return text


def dumps(
    value: Any, indent: int | None = None, *, most: int | None = None, shown: Callable[[str, Any], Any] | None = None
) -> str:
    """Write back what `read` gave: numbers as they were written, lone surrogates escaped. Never raises.

    `most`: no more than so many characters are wanted, so that showing the head of a huge value costs little. `shown` says what
    to write for a member, given its name and value (secrets).
    """
    writer = _Writer(indent, most, shown)
    try:
        writer.write(value, 0)
    except RecursionError:
        return '"(nested too deep to show)"'
    except _Enough:
        pass
    return "".join(writer.out)[:most]


class _Enough(Exception):
    pass


class _Writer:
    def __init__(self, indent: int | None, most: int | None, shown: Callable[[str, Any], Any] | None) -> None:
        self.out: list[str] = []
        self._indent, self._most, self._shown = indent, most, shown

    def write(self, value: Any, level: int) -> None:
        out = self.out
        if isinstance(value, str):
            out.append(_string(value if self._most is None else value[: self._most]))
        elif isinstance(value, ExactFloat):
            out.append(value.text)
        elif value is None or value is True or value is False:
            out.append({None: "null", True: "true", False: "false"}[value])
        elif isinstance(value, int):
            out.append(_int_text(value))
        elif isinstance(value, Decimal):
            out.append(f"{value:f}")
        elif isinstance(value, float):
            out.append(json.dumps(value))
        elif isinstance(value, dict):
            self._container("{", "}", value.items(), level, named=True)
        elif isinstance(value, list | tuple):
            self._container("[", "]", enumerate(value), level, named=False)
        else:
            out.append(_string(str(value)))

    def _container(self, left: str, right: str, items: Iterable[tuple[Any, Any]], level: int, *, named: bool) -> None:
        out, indent = self.out, self._indent
        out.append(left)
        inner = "\n" + " " * (indent * (level + 1)) if indent else ""
        between = ("," if indent else ", ") + inner
        first = True
        for name, item in items:
            out.append(inner if first else between)
            first = False
            if named:
                out.append(_string(str(name)) + ": ")
                if self._shown is not None:
                    item = self._shown(name, item)
            self.write(item, level + 1)
            if self._most is not None and len(out) > 2 * self._most:  # every other piece has a character at least
                raise _Enough
        if indent and not first:
            out.append("\n" + " " * (indent * level))
        out.append(right)


def _int_text(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # more digits than Python converts; only numbers made by arithmetic get here
        return f"{Decimal(value):f}"


def _string(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return encode_basestring_ascii(text)
    return encode_basestring(text)
