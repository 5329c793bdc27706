"""Secrets masked where something is shown, written or told.

One spelling everywhere: `(sha 4ffafd97, 270 chars)`, the first 8 hex digits of SHA-256, so that equality stays visible.
"""

from functools import lru_cache
from itertools import islice
from typing import Any

from mcp_wiretap.wire.secret import names
from mcp_wiretap.wire.secret.known import current
from mcp_wiretap.wire.secret.names import ENTERED, is_header, is_member, is_number_member
from mcp_wiretap.wire.secret.spelling import mask
from mcp_wiretap.wire.secret.texts import secrets_in
from mcp_wiretap.wire.secret.visible import one_line

# What is written where a secret would stand, and is none.
STAND_INS = frozenset({"(absent)", "(not kept)", "(redeemed)", "(the same)"})
_DEEPEST = 200
_BEYOND = 2_000
_LISTED = 2_000  # items of a list that are looked into
_REMEMBERED = 300  # characters of a text whose secrets are remembered: the same words come with every flow
IN_SCHEMAS = frozenset({"default", "const", "example", "examples", "enum"})  # values of what a schema describes
LABELS = ("name", "key", "header")  # members that name what stands beside them in `value`


def mask_header(name: str, value: str) -> str:
    """A header value as it may be shown. Authorization keeps its scheme, cookies their names go too."""
    if not is_header(name, value):
        return concealed(value)
    scheme, space, rest = value.partition(" ")
    if name.lower().endswith("authorization") and space and scheme.isalnum():
        return f"{scheme} {mask(rest)}"
    return mask(value)


def masked(value: Any, depth: int = 0, entered: bool = False, of: str = "") -> Any:
    """A copy of a JSON value with the texts of secret members masked, and the secrets that stand in other texts. `entered`: it
    is of what somebody entered, where more names are a secret's. `of`: the name of the member that it is the value of."""
    if depth > _DEEPEST:
        return "(nested too deep to show)"
    if isinstance(value, dict):
        return {
            k: _leaf(k, v, entered, of, value)
            if isinstance(v, str | int)
            else masked(v, depth + 1, entered or k in ENTERED, of if k in IN_SCHEMAS else k)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_leaf(of, v, entered) if isinstance(v, str | int) else masked(v, depth + 1, entered, of) for v in value]
    return concealed(value) if isinstance(value, str) else value


def hidden(name: str, value: Any, entered: bool = False) -> Any:
    """The value of a member as it may be shown: masked where it is a secret by its name. (`shown` of `jsonrpc.dumps`, which
    comes to what is inside later: only what can be told here alone, by the names around it, is masked in it.)"""
    if isinstance(value, str | int):
        return _leaf(name, value, entered)
    if isinstance(value, dict):
        return {k: _leaf(k, v, entered, name, value) if isinstance(v, str) else v for k, v in value.items()}
    if isinstance(value, list):
        return [hidden(name, v, entered) for v in value[:_LISTED]] + value[_LISTED:]
    return value


def _leaf(name: str, value: str | int, entered: bool = False, of: str = "", beside: dict[str, Any] | None = None) -> Any:
    if isinstance(value, str):
        return mask(value) if value and is_secret(name, value, entered, of, beside) else concealed(value)
    return mask(str(value)) if is_number_member(name, value) else value


def hidden_head(name: str, value: Any) -> Any:
    """As `hidden`, for where no more than the head of a value is shown: of a long one, no more than that is looked through."""
    if isinstance(value, str):
        return _head(name, value)
    if isinstance(value, dict):
        some = islice(value.items(), _BEYOND)
        return {k: _head(k, v, name, value) if isinstance(v, str) else v for k, v in some}
    if isinstance(value, list):
        return [hidden_head(name, v) for v in value[:_LISTED]] + value[_LISTED:]
    return hidden(name, value)


def _head(name: str, value: str, of: str = "", beside: dict[str, Any] | None = None) -> Any:
    if len(value) > _BEYOND and not is_secret(name, value, False, of, beside):
        return concealed(value[:_BEYOND])
    return _leaf(name, value, False, of, beside)


def is_secret(name: str, value: str, entered: bool = False, of: str = "", beside: dict[str, Any] | None = None) -> bool:
    """Whether the text of a member is a secret: by its name; where the name says too little, by its look, too; where it is
    the value of something named beside it, or of a schema or a set of headers, by their names."""
    if is_member(name, value, entered):
        return True
    if name in IN_SCHEMAS:
        return (bool(of) and names.member(of) == "secret") or (beside is not None and beside.get("format") == "password")
    if of and names.of_headers(of):
        return is_header(name, value)
    if name == "value" and beside is not None:
        return any(isinstance(label := beside.get(key), str) and _labels(label, value) for key in LABELS)
    return False


def _labels(label: str, value: str) -> bool:
    return is_member(label, value) or is_header(label, value)


def concealed(text: str) -> str:
    """A text with the secrets in it masked, the rest as it was: what is known to be secret in this trace (`knowing`), bearer
    tokens, private keys, passwords of URLs, `password=...`, parameters of URLs. The one function for any text from the wire
    that is shown, written or told."""
    for known in current():
        text = known.masked(text)
    return _remembered(text) if len(text) <= _REMEMBERED else _conceal(text)


def _conceal(text: str) -> str:
    found = secrets_in(text)
    if not found:
        return text
    parts: list[str] = []
    position = 0
    for start, end, *_ in found:
        parts += (text[position:start], mask(text[start:end]))
        position = end
    return "".join((*parts, text[position:]))


_remembered = lru_cache(maxsize=4_096)(_conceal)


def shown(text: str, limit: int) -> str:
    """A text from the wire as people may see it: its secrets masked, visible, on one line, cut. (A secret is no shorter for being
    cut, so it is looked for a little beyond.)"""
    return one_line(concealed(text[: limit + _BEYOND]), limit)
