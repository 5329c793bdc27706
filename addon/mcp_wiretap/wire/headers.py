"""Header fields as they came, and the codec of mirrored values: what is a sentinel, what needs one, whether a value agrees.

Spec: 2026-07-28 basic/transports/streamable-http#value-encoding, #server-validation. docs/ambiguities.md A6, A7, A10, A25.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Literal

type Verdict = Literal[
    "match",
    "mismatch",
    "missing",
    "not-required",
    "undecodable",
    "should-be-encoded",
    "needless-encoding",
    "duplicate",
    "undeclared",
    "unchecked",
]

PREFIX, SUFFIX = "=?base64?", "?="
SHORTEST_SENTINEL = len(PREFIX) + len(SUFFIX)  # 11: in `=?base64?=` prefix and suffix overlap (A7)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_ALPHABET = re.compile(r"[A-Za-z0-9+/=]*")
# Interior HTAB may travel raw (RFC 9110) or encoded (SEP-2243): both are right (A6), so it is not unsafe.
_UNSAFE = re.compile(r"[^\t\x20-\x7e]")
_BAD_OCTET = re.compile(rb"[^\t\x20-\x7e]")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?0*[0-9]{1,6})?")
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)")
_MOST_DIGITS = 100_000  # longest number compared: no header field comes near
_names: dict[bytes, str] = {}  # lower-case names of header fields met before; traffic repeats a few
_MOST_NAMES, _LONGEST_NAME = 1_000, 64


class Fields:
    """Header fields in order, as bytes; looked up by name without regard to case. Values are read as Latin-1."""

    __slots__ = ("_index", "_spelled", "raw")

    def __init__(self, raw: Sequence[tuple[bytes, bytes]]) -> None:
        self.raw: tuple[tuple[bytes, bytes], ...] = tuple(raw)
        self._index: dict[str, list[bytes]] | None = None
        self._spelled: dict[str, str] | None = None

    def _by_name(self) -> dict[str, list[bytes]]:
        index = self._index
        if index is None:
            index = self._index = {}
            for name, value in self.raw:
                key = _names.get(name) or _lower(name)
                if key in index:
                    index[key].append(value)
                else:
                    index[key] = [value]
        return index

    @property
    def index(self) -> Mapping[str, list[bytes]]:
        """The values by lower-case name."""
        return self._by_name()

    def all_bytes(self, name: str) -> list[bytes]:
        return self._by_name().get(name.lower(), [])

    def all(self, name: str) -> list[str]:
        """All values of a header, one a field line."""
        return [value.decode("latin-1") for value in self._by_name().get(name.lower(), ())]

    def first(self, name: str) -> str | None:
        values = (self._index if self._index is not None else self._by_name()).get(name.lower())
        return values[0].decode("latin-1") if values else None

    def joined(self, name: str) -> str | None:
        """The lines of a header that is a list, as one list (RFC 9110 section 5.3)."""
        values = self._by_name().get(name.lower())
        return b", ".join(values).decode("latin-1") if values else None

    def has(self, name: str) -> bool:
        return name.lower() in self._by_name()

    def names_starting(self, prefix: str) -> list[str]:
        """The lower-case names that begin so."""
        prefix = prefix.lower()
        return [name for name in self._by_name() if name.startswith(prefix)]

    def as_sent(self, name: str) -> str:
        """The name as its first field line spells it. KeyError where there is none."""
        if self._spelled is None:
            self._spelled = {}
            for spelled, _ in self.raw:
                self._spelled.setdefault(_names.get(spelled) or _lower(spelled), spelled.decode("latin-1"))
        return self._spelled[name.lower()]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for name, value in self.raw:
            yield name.decode("latin-1"), value.decode("latin-1")

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        return f"Fields({list(self)!r})"


def _lower(name: bytes) -> str:
    lower = name.decode("latin-1").lower()
    if len(name) <= _LONGEST_NAME and len(_names) < _MOST_NAMES:  # names are the other side's choice
        _names[name] = lower
    return lower


def trim_ows(value: str) -> str:
    """Without optional whitespace at the ends: space and tab only (RFC 9110), no other Unicode space."""
    return value.strip(" \t")


def is_sentinel(value: str) -> bool:
    """Whether a value has the form `=?base64?...?=`. The marker is lower case; whether the payload decodes is another matter."""
    return value.startswith(PREFIX) and value.endswith(SUFFIX) and len(value) >= SHORTEST_SENTINEL


def first_unsafe(text: str) -> tuple[int, str] | None:
    """Where a value cannot travel raw: (index, character), or None. Edge whitespace counts, interior tabs do not."""
    found = _UNSAFE.search(text)
    if found:
        return found.start(), found.group()
    if text.startswith((" ", "\t")):
        return 0, text[0]
    if text.endswith((" ", "\t")):
        return len(text) - 1, text[-1]
    return None


def needs_encoding(text: str) -> bool:
    """Whether a value must travel as a sentinel: not header-safe, or it looks like a sentinel itself."""
    return first_unsafe(text) is not None or is_sentinel(text)


def encode(text: str) -> str:
    """The header value for a text: raw where that is safe, a sentinel where not. Lone surrogates are encoded as they stand."""
    if not needs_encoding(text):
        return text
    return PREFIX + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode() + SUFFIX


@dataclass(slots=True)
class Decoded:
    """A header value read: `text` is None where a sentinel does not decode, and `problem` says why."""

    text: str | None
    sentinel: bool
    problem: str | None = None
    spare_bits: bool = False  # Base64 whose unused bits are not zero: odd, but every reader gets the same text


def decode(value: str) -> Decoded:
    """Read a header value: outer whitespace off, a sentinel decoded strictly (padded, standard alphabet, UTF-8)."""
    value = trim_ows(value)
    if not is_sentinel(value):
        return Decoded(value, False)
    payload = value[len(PREFIX) : -len(SUFFIX)]
    if not _BASE64.fullmatch(payload):
        if _ALPHABET.fullmatch(payload):
            return Decoded(None, True, "wrong padding")
        if re.search(r"\s", payload):
            return Decoded(None, True, "whitespace in the payload")
        return Decoded(None, True, "not the standard Base64 alphabet")
    try:
        data = base64.b64decode(payload, validate=True)
    except binascii.Error:
        return Decoded(None, True, "wrong padding")
    spare = base64.b64encode(data).decode() != payload
    try:
        return Decoded(data.decode("utf-8"), True, None, spare)
    except UnicodeDecodeError:
        return Decoded(None, True, "not UTF-8", spare)


@dataclass(slots=True)
class Comparison:
    """A mirrored header beside its body value. `expected` is what the header should read; `detail` says the rest in words."""

    verdict: Verdict
    raw: str | None
    decoded: str | None
    expected: str
    detail: str = ""
    duplicate: Literal["none", "equal", "different"] = "none"
    plain: bool = True  # an integer in its plain decimal form ("42", not "42.0", "042", "+42", "4.2e1")
    sentinel: bool = False
    spare_bits: bool = False
    lookalike_raw: bool = False  # the body value looks like a sentinel and was sent raw
    merged: tuple[str, ...] = ()  # parts of a comma list in a header that has one value


def _duplicates(values: list[str]) -> Literal["none", "equal", "different"]:
    if len(values) < 2:
        return "none"
    return "equal" if len({trim_ows(v) for v in values}) == 1 else "different"


def compare_exact(values: list[str], body: str) -> Comparison:
    """MCP-Protocol-Version and Mcp-Method: outer whitespace off, then code point for code point; no sentinel is defined here."""
    if not values:
        return Comparison("missing", None, None, body)
    if len(values) == 1 and values[0] == body:
        return Comparison("match", body, body, body)
    duplicate = _duplicates(values)
    raw = next((v for v in values if trim_ows(v) != body), values[0])
    value = trim_ows(raw)
    merged = tuple(trim_ows(part) for part in value.split(",")) if "," in value else ()
    if value != body:
        detail = "two values merged in one line" if merged else ""
        return Comparison("mismatch", raw, value, body, detail, duplicate, merged=merged)
    return Comparison("duplicate" if duplicate != "none" else "match", raw, value, body, "", duplicate)


def compare_text(values: list[str], body: str) -> Comparison:
    """Mcp-Name and string parameters: decoded where a sentinel, then code point for code point; no normalisation."""
    expected = encode(body)
    if not values:
        return Comparison("missing", None, None, expected)
    if len(values) == 1 and values[0] == body == expected:
        return Comparison("match", body, body, body)
    duplicate = _duplicates(values)
    raw = next((value for value in values if decode(value).text != body), values[0])
    decoded = decode(raw)
    if not decoded.sentinel:
        return _compare_raw(raw, decoded.text or "", body, expected, duplicate)
    verdict: Verdict = "match"
    detail = ""
    lookalike = False
    if is_sentinel(body) and trim_ows(raw) == body:
        verdict, detail, lookalike = "should-be-encoded", "the body value looks like a sentinel and was sent raw", True
    elif decoded.text is None:
        verdict, detail = "undecodable", decoded.problem or ""
    elif decoded.text != body:
        verdict = "mismatch"
    elif duplicate != "none":
        verdict = "duplicate"
    elif is_needless(decoded):
        verdict, detail = "needless-encoding", "a safe value needs no sentinel"
    return Comparison(verdict, raw, decoded.text, expected, detail, duplicate, True, True, decoded.spare_bits, lookalike)


def is_needless(decoded: Decoded) -> bool:
    """Whether a sentinel stands for a value that is safe as it is, and nothing says that it may be encoded all the same."""
    text = decoded.text
    return decoded.sentinel and text is not None and not needs_encoding(text) and not _either_way(text)


def _either_way(text: str) -> bool:
    """Safe values that senders may encode all the same: nothing (A10), a tab inside (A6), the shortest look-alike (A7)."""
    return not text or "\t" in text or text == "=?base64?="


def _compare_raw(raw: str, value: str, body: str, expected: str, duplicate: Literal["none", "equal", "different"]) -> Comparison:
    if needs_encoding(body):
        # UTF-8 bytes sent raw arrive as Latin-1: the same text, but it had to be encoded.
        same = value in (trim_ows(body), body) or value.encode("latin-1", "replace") == trim_ows(body).encode("utf-8", "replace")
        if same:
            at = first_unsafe(body)
            detail = f"U+{ord(at[1]):04X} at index {at[0]}" if at else ""
            return Comparison("should-be-encoded", raw, value, expected, detail, duplicate)
        return Comparison("mismatch", raw, value, expected, "and the body value needs a sentinel", duplicate)
    if value != body:
        return Comparison("mismatch", raw, value, expected, "", duplicate)
    return Comparison("duplicate" if duplicate != "none" else "match", raw, value, expected, "", duplicate)


def compare_boolean(values: list[str], body: bool) -> Comparison:
    """Boolean parameters: exactly `true` or `false`."""
    expected = "true" if body else "false"
    return compare_text(values, expected)


def compare_integer(values: list[str], body: int | Decimal) -> Comparison:
    """Integer parameters: numerically equal, with arbitrary precision (A25: `42.0` equals 42, but is not the plain form)."""
    short = isinstance(body, int) and body.bit_length() < 13_000
    expected = str(body) if short else "(a number of more than 3,900 digits)"
    if not values:
        return Comparison("missing", None, None, expected)
    if short and len(values) == 1 and values[0] == expected:
        return Comparison("match", expected, expected, expected)
    duplicate = _duplicates(values)
    chosen = next((v for v in values if not _equals(decode(v).text, body)), values[0])
    decoded = decode(chosen)
    text = decoded.text
    if text is None:
        return Comparison("undecodable", chosen, None, expected, decoded.problem or "", duplicate, sentinel=True)
    plain = _PLAIN.fullmatch(text) is not None and text != "-0"
    if not _equals(text, body):
        detail = "" if _DECIMAL.fullmatch(text) else "not a decimal number"
        return Comparison("mismatch", chosen, text, expected, detail, duplicate, plain, decoded.sentinel, decoded.spare_bits)
    verdict: Verdict = "match"
    if duplicate != "none":
        verdict = "duplicate"
    elif decoded.sentinel:
        verdict = "needless-encoding"
    return Comparison(verdict, chosen, text, expected, "", duplicate, plain, decoded.sentinel, decoded.spare_bits)


_EXACT = Context(prec=_MOST_DIGITS + 50, Emax=10**7, Emin=-(10**7))


def _equals(text: str | None, body: int | Decimal) -> bool:
    if text is None or len(text) > _MOST_DIGITS or not _DECIMAL.fullmatch(text):
        return False
    try:
        number = Decimal(text)
        wanted = body if isinstance(body, Decimal) else Decimal(body)
        # Magnitudes first: subtracting 1e999999 from 1 would write out a million digits.
        if number and wanted and number.adjusted() != wanted.adjusted():
            return False
        return _EXACT.compare(number, wanted) == 0
    except (InvalidOperation, ValueError, OverflowError):
        return False


def invalid_octets(value: bytes) -> tuple[int, int] | None:
    """The first byte that no mirrored header may have: (offset, byte), or None (HDR009)."""
    found = _BAD_OCTET.search(value)
    return (found.start(), value[found.start()]) if found else None
