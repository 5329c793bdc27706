"""Secrets masked, and text from the wire made safe to store and to show.

One spelling everywhere: `(sha 4ffafd97, 270 chars)`, the first 8 hex digits of SHA-256, so that equality stays visible.
"""

import hashlib
import re
from functools import lru_cache
from typing import Any

SECRET_HEADERS = frozenset(
    {
        "authorization", "proxy-authorization", "cookie", "set-cookie", "mcp-session-id", "x-api-key", "api-key",
        "x-auth-token", "dpop",
    }
)  # fmt: skip
SECRET_MEMBERS = frozenset(
    {
        "requestState", "access_token", "refresh_token", "id_token", "client_secret", "client_assertion", "assertion",
        "subject_token", "actor_token", "code", "code_verifier", "device_code", "password", "registration_access_token",
    }
)  # fmt: skip
AMBIGUOUS = frozenset({"code", "assertion", "token", "key"})  # also names of what is no secret: the value must look random
# Members whose text is a secret whatever it says: those, and what arguments are called that hold one.
MEMBERS = (SECRET_MEMBERS - AMBIGUOUS) | {
    "accessToken", "refreshToken", "idToken", "clientSecret", "api_key", "apiKey", "apikey", "private_key", "privateKey",
    "secret_key", "secretKey", "passwd",
}  # fmt: skip
ENTERED = frozenset({"arguments", "structuredContent", "inputResponses"})  # what people and models entered or got
PARAMETERS = SECRET_MEMBERS | {
    "token", "api_key", "apikey", "api-key", "session_id", "sessionId", "sig", "signature", "x-amz-signature",
    "x-amz-security-token", "id_token_hint", "passwd", "secret", "auth", "state", "key",
}  # fmt: skip
RANDOM = r"(?=[^0-9]*[0-9])[A-Za-z0-9._~+/=:-]{12,}"
# Secrets by their form, in groups. A parameter of a challenge (`Bearer realm="x"`) is none.
TOKENS = (
    r"\b(?i:bearer|dpop)[ \t]+(?=[^\s\"]*[0-9])([A-Za-z0-9._~+/-]{16,}+(?!=\\*\"[^\s,}\])\\])=*+)"
    r"|\b(eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
    r"|\b((?:sk-|gh[opsu]_|github_pat_|glpat-|xox[abposr]-)[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16})\b"
)
_WORDS = r"(?:password|passwd|secret|api[_-]?key)"
_SHOWN = (
    r"(?!\*|<|\[|\{|\(sha |x{3}|null\b|none\b|redacted|hidden|masked"
    r"|(?:missing|must|required?|invalid|incorrect|wrong|not|no|is|are|was|empty|unset|set|expired|undefined|true|false|x-api-key)(?![^\s.,;:!?)\"'])"
    r"|(?:os\.|process\.|\$|env\b))"
)  # not what stands in for one
# The same in texts for people, where short ones and `password=...` count, too (LOG006).
_LOOSE = (
    r"Bearer\s+([A-Za-z_~+/]{16,}+)(?![0-9.-]|=\\*\"[^\s,}\])\\])|Bearer\s+(?=[A-Za-z._~+/-]*[0-9])([A-Za-z0-9._~+/-]{6,})"
    r"|(-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s]*)"
    rf"|(?i:\b{_WORDS}\s*[=:]\s*({_SHOWN}[^\s\"',;]{{3,}}))|(?i:\"{_WORDS}\"\s*:\s*\"({_SHOWN}[^\"]{{3,}}))"
)
SECRET_TEXT = re.compile(f"{_LOOSE}|{TOKENS}")
QUERY = r"(?:^|[?&;#])(" + "|".join(map(re.escape, sorted(PARAMETERS))) + r")=(?!\(sha )([^&;#\s\"'<>\\]*)"
_QUERY = re.compile(QUERY.replace("^|", "", 1), re.I)  # of a text that is more than a query
# One of them stands in every text with such a secret, in lower case; looking for words is quicker than for expressions.
_HINTS = ("bearer", "dpop", "eyj", "sk-", "gho_", "ghp_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox", "akia", "private key")
_ALL_HINTS = (*_HINTS, "passw", "secret", "api")
# What is written where a secret would stand, and is none.
STAND_INS = frozenset({"(absent)", "(not kept)", "(redeemed)", "(the same)"})
_MASKED = re.compile(r"\(sha [0-9a-f]{8}, [0-9]+ chars\)")
_DEEPEST = 200
_BEYOND = 2_000
# Controls, line separators, zero-width and bidirectional controls, tags: they hide or reorder what a person reads.
_INVISIBLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
    r"|[\U000e0000-\U000e0fff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def mask(text: str) -> str:
    """The masked spelling of a secret. What is masked already stays."""
    if _MASKED.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"(sha {digest[:8]}, {len(text)} chars)"


def mask_header(name: str, value: str) -> str:
    """A header value as it may be shown. Authorization keeps its scheme, cookies their names go too."""
    lower = name.lower()
    if lower not in SECRET_HEADERS:
        return value
    scheme, space, rest = value.partition(" ")
    if lower.endswith("authorization") and space and scheme.isalnum():
        return f"{scheme} {mask(rest)}"
    return mask(value)


def masked(value: Any, depth: int = 0, entered: bool = False) -> Any:
    """A copy of a JSON value with the texts of secret members masked, and the secrets that stand in other texts. `entered`: it
    is of what somebody entered, where more names are a secret's."""
    if depth > _DEEPEST:
        return "(nested too deep to show)"
    if isinstance(value, dict):
        return {
            k: hidden(k, v, entered) if isinstance(v, str) else masked(v, depth + 1, entered or k in ENTERED)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [masked(v, depth + 1, entered) for v in value]
    return concealed(value) if isinstance(value, str) else value


def hidden(name: str, value: Any, entered: bool = False) -> Any:
    """The value of a member as it may be shown: masked where it is a secret by its name. (`shown` of `jsonrpc.dumps`.)"""
    if not isinstance(value, str):
        return value
    return mask(value) if is_secret(name, value, entered) else concealed(value)


def is_secret(name: str, value: str, entered: bool = False) -> bool:
    """Whether the text of a member is a secret, by its name; where the name says too little, by its look, too."""
    if name in AMBIGUOUS:
        return looks_random(value)
    return name in MEMBERS or (entered and looks_secret(name))


_RANDOM = re.compile(RANDOM)


def looks_random(value: str) -> bool:
    """Whether a text may be a code or a token: a dozen characters without a space, digits among them."""
    return _RANDOM.fullmatch(value) is not None


def concealed(text: str) -> str:
    """A text with the secrets in it masked: bearer tokens, keys, `password=...`, parameters of URLs. The rest stays."""
    if "=" in text:
        text = _QUERY.sub(_conceal_parameter, text)
    lower = text.lower()
    for hint in _HINTS if ":" not in text and "=" not in text else _ALL_HINTS:
        if hint in lower:
            return SECRET_TEXT.sub(_conceal, text)
    return text


def shown(text: str, limit: int) -> str:
    """A text from the wire as people may see it: its secrets masked, visible, on one line, cut. (A secret is no shorter for being
    cut, so it is looked for a little beyond.)"""
    return one_line(concealed(text[: limit + _BEYOND]), limit)


def _conceal(found: re.Match[str]) -> str:
    group = found.lastindex or 0
    start, end = found.span(group)
    return found.group()[: start - found.start()] + mask(found.group(group)) + found.group()[end - found.start() :]


def _conceal_parameter(found: re.Match[str]) -> str:
    name, value = found.groups()
    if not value or (name.lower() in AMBIGUOUS | {"state"} and not looks_random(value)):
        return found.group()
    return found.group()[: -len(value)] + mask(value)


_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset({"password", "passwd", "secret", "apikey", "credential", "credentials", "authorization", "ssn"})
_COUNTING = frozenset({"max", "count", "limit", "page", "next", "cursor", "num", "budget"})


@lru_cache(maxsize=1_024)
def looks_secret(name: str) -> bool:
    """Whether a parameter's name says that its value is a secret (PAR030): by whole words, not by parts of words."""
    words = [w.lower() for w in _PARTS.findall(name[:200])]
    for index, word in enumerate(words):
        beside = words[max(index - 1, 0) : index] + words[index + 1 : index + 2]
        if word in _SECRET_WORDS or (word == "api" and words[index + 1 : index + 2] == ["key"]):
            return True
        if word == "token" and not _COUNTING & set(beside):
            return True
    return False


def safe(text: str) -> str:
    """Without lone surrogates (they become backslash escapes), so that it can be encoded and stored."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Control, zero-width and bidirectional characters written as escapes: \\x1b, \\u202e."""
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, limit: int) -> str:
    """Visible, on one line, cut at `limit` characters with an ellipsis."""
    text = visible(text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"
