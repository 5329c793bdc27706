"""Where secrets stand: header fields, members of JSON, parameters of URLs and forms, tokens in texts; and what the user names."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from mcp_wiretap.redact.members import Leaf, compiled, leaves, spelled
from mcp_wiretap.wire import secret

_NAME = re.compile(r"[A-Za-z0-9_.\[\]-]+")
_COOKIE = re.compile(rb"(?:^|;)\s*[^=;\s]+=\"?([^;\"]*)")
_FIRST_COOKIE = re.compile(rb"\s*[^=;\s]+=\"?([^;\"]*)")


@dataclass(slots=True, frozen=True)
class Place:
    """A secret where it belongs. `value` is decoded; `start` and `end` are where it stands, as it is written there.
    `quoted`: percent-encoded."""

    start: int
    end: int
    value: bytes
    name: str = ""
    number: bool = False
    quoted: bool = False


@dataclass(slots=True, frozen=True)
class Named:
    """What the user wants redacted, too."""

    keys: frozenset[str] = frozenset()  # lower case
    paths: tuple[re.Pattern[str], ...] = ()
    patterns: tuple[re.Pattern[bytes], ...] = ()
    _seen: dict[str, bool] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, values: Iterable[str]) -> "Named":
        """`$.a.b` is a JSONPath, a plain word the name of a member, a header or a parameter, the rest a regular expression.
        ValueError, saying what is wrong, for what is none of these."""
        keys, paths, patterns = set(), [], []
        for value in values:
            if value.startswith(("$.", "$[")):
                paths.append(compiled(value))
            elif _NAME.fullmatch(value) and "[" not in value:
                keys.add(value.lower())
            else:
                try:
                    pattern = re.compile(value.encode())
                except re.error as error:
                    raise ValueError(f"{value} is no regular expression ({error})") from None
                if pattern.match(b""):
                    raise ValueError(f"{value} matches nothing at all; it would match everywhere")
                patterns.append(pattern)
        return cls(frozenset(keys), tuple(paths), tuple(patterns))

    def key(self, name: str) -> bool:
        return name.lower() in self.keys


def labelled(data: bytes) -> Iterator[tuple[Leaf, str]]:
    """The strings and numbers of all JSON in the bytes, each with what names it where that stands beside it:
    `{"name": "X-Api-Key", "value": "..."}`."""
    where: tuple[str | int, ...] = ()
    label = ""
    for leaf in leaves(data):
        last = leaf.path[-1] if leaf.path else ""
        if last in secret.LABELS and not leaf.number:
            where, label = leaf.path[:-1], data[leaf.start : leaf.end].decode("latin-1")
        yield leaf, label if label and last == "value" and leaf.path[:-1] == where else ""


def of_leaf(data: bytes, leaf: Leaf, named: Named, label: str = "") -> Place | None:
    """Whether a string or number of JSON is a secret by where it stands. `label`: what names it beside it."""
    steps = [step for step in leaf.path if isinstance(step, str)]
    name = steps[-1] if steps else ""
    wanted = named.key(name) or (bool(named.paths) and any(p.fullmatch(spelled(leaf.path)) for p in named.paths))
    if not wanted:
        text = data[leaf.start : leaf.end].decode("latin-1")
        if leaf.number:
            wanted = text.isdigit() and secret.is_number_member(name, int(text[:20]))
        else:
            of = next((step for step in reversed(steps[:-1]) if step not in secret.IN_SCHEMAS), "")
            entered = not secret.ENTERED.isdisjoint(steps)
            wanted = secret.is_secret(name, text, entered, of, {"name": label} if label else None)
    if not wanted or leaf.start == leaf.end:
        return None
    return Place(leaf.start, leaf.end, data[leaf.start : leaf.end], name, leaf.number)


def in_text(data: bytes, named: Named) -> Iterator[Place]:
    """Parameters, tokens and what the user's expressions match, in any text."""
    for start, end, quoted, name in secret.secrets_in_bytes(data):
        value = data[start:end]
        yield Place(start, end, unquote_to_bytes(value.replace(b"+", b" ")) if quoted else value, name, quoted=quoted)
    if named.keys and b"=" in data:
        for match in _named(named.keys).finditer(data):
            yield _parameter(match)
    for pattern in named.patterns:
        for match in pattern.finditer(data):
            group = 1 if match.re.groups and match.group(1) else 0
            if match.group(group):
                yield Place(*match.span(group), match.group(group))


def of_header(name: str, value: bytes, named: Named) -> Iterator[Place]:
    """The secrets of a header field."""
    lower = name.lower()
    start, end = len(value) - len(value.lstrip(b" \t")), len(value.rstrip(b" \t"))
    if lower in ("authorization", "proxy-authorization"):
        scheme = value.find(b" ", start)
        start = start if scheme < 0 else scheme + 1 + len(value[scheme + 1 :]) - len(value[scheme + 1 :].lstrip())
    elif lower in ("cookie", "set-cookie"):
        for match in _COOKIE.finditer(value) if lower == "cookie" else filter(None, [_FIRST_COOKIE.match(value)]):
            if match.group(1):
                yield Place(*match.span(1), match.group(1).rstrip())
        return
    elif not (secret.is_header(name, value.decode("latin-1").strip()) or named.key(lower) or _names_parameter(lower, named)):
        return
    if start < end:
        yield Place(start, end, value[start:end], lower)


def _names_parameter(lower: str, named: Named) -> bool:
    return lower.startswith("mcp-param-") and named.key(lower.removeprefix("mcp-param-"))


def _parameter(match: re.Match[bytes]) -> Place:
    return Place(
        *match.span(2), unquote_to_bytes(match.group(2).replace(b"+", b" ")), match.group(1).decode().lower(), quoted=True
    )


def _named(keys: frozenset[str]) -> re.Pattern[bytes]:
    return re.compile(rb"(?:^|[?&;#])(" + b"|".join(re.escape(k.encode()) for k in sorted(keys)) + rb")=([^&;#\s\"'<>\\]+)", re.I)
