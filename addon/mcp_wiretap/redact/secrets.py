"""The secrets of a recording, and what stands in their place: texts of the same form made by a keyed hash.

The key is random and belongs to one export, so nobody can try out guesses; within the export equal secrets stay equal and
different ones different. The form (length, letters for letters, digits for digits, the rest as it was) stays, because rules look
at it: how long a session id is, whether a state is Base64, whether a header value needs encoding. A JSON Web Token stays one,
without who it is for and with a signature that is none.
"""

import hashlib
import hmac
import json
import re
import string
from typing import Any

import re2

from mcp_wiretap.wire import jose, opaque
from mcp_wiretap.wire.secret import looks_random
from mcp_wiretap.wire.secret.known import is_word

SHORTEST = 8  # bytes; a shorter secret is replaced in its own place only: elsewhere it may be any word
_PREFIX = 8
_SIGN = "redacted"  # how a long one begins, so that a reader sees what it is
_SHAPED = 60  # tries to find a placeholder of the secret's form
_LONG = 20  # letters and digits from which on there is room for that
_KNOWN_PREFIX = re.compile(r"sk-(?:ant-|proj-)?|gh[opsu]_|github_pat_|glpat-|xox[abposr]-|AKIA|-----BEGIN [A-Z ]*-----")
_KEPT_CLAIMS = frozenset({"iss", "aud", "scope", "scp", "client_id", "azp", "cnf", "htm", "htu", "token_use", "typ"})
_NUMBER = re.compile(rb"-?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?")


class Secrets:
    """Secrets by their text, each with its placeholder. Texts are bytes as they stand in the recording, decoded."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._placeholders: dict[bytes, bytes] = {}
        self._given: set[bytes] = set()
        self._real: set[bytes] = set()
        self._by_mask: dict[str, bytes] = {}
        self._masks: dict[str, str] = {}  # digits of a secret's mask -> those of its placeholder's
        self._new_masks: set[str] = set()
        self._everywhere: dict[bytes, list[bytes]] = {}  # by the first bytes, the longest first
        self._pattern: Any = None

    def __len__(self) -> int:
        return len(self._placeholders)

    def is_placeholder(self, text: bytes) -> bool:
        return text in self._given and text not in self._real

    def is_mask(self, digits: str) -> bool:
        """Whether the digits of a mask are those of a placeholder, or keyed already."""
        return digits in self._new_masks

    def placeholder(self, secret: bytes) -> bytes:
        """What stands for a secret. The same one for the same secret, another one for another."""
        found = self._placeholders.get(secret)
        if found is None:
            found = self._made(secret)
            self._put(secret, found)
        return found

    def _put(self, secret: bytes, placeholder: bytes) -> None:
        self._placeholders[secret] = placeholder
        self._given.add(placeholder)
        self._masks[_digits(secret)] = _digits(placeholder)
        self._new_masks.add(_digits(placeholder))

    def mask(self, digits: str) -> str:
        """The digits of a mask (wire.secret) as they may leave the house: those of the placeholder, or keyed ones where the
        secret is not known. A plain hash lets anybody try out guesses."""
        if digits in self._by_mask:
            self.placeholder(self._by_mask[digits])
        if digits not in self._masks:
            self._masks[digits] = hmac.digest(self._key, b"mask\0" + digits.encode(), "sha256").hex()[:8]
            self._new_masks.add(self._masks[digits])
        return self._masks[digits]

    def add(self, secret: bytes, placeholder: bytes | None = None) -> None:
        """A secret was seen in its own place: from now on it is looked for everywhere, unless it is too short for that."""
        if not secret:
            return
        self._real.add(secret)
        self._by_mask[_digits(secret)] = secret
        if placeholder is not None and secret not in self._placeholders:
            self._put(secret, placeholder)
        if len(secret) < SHORTEST or is_word(secret.decode("utf-8", "replace")):
            return
        same = self._everywhere.setdefault(secret[:_PREFIX], [])
        if secret not in same:
            same.append(secret)
            same.sort(key=len, reverse=True)
            self._pattern = None

    def occurrences(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Where secrets stand in the bytes as they are, with what is to stand there."""
        if len(data) < SHORTEST or not self._everywhere:
            return []
        if self._pattern is None:
            self._pattern = _any_of(self._everywhere)
        found: list[tuple[int, int, bytes]] = []
        position = 0
        while (match := self._pattern.search(data, position)) is not None:
            start = match.start()
            same = self._everywhere[data[start : start + _PREFIX]]
            secret = next((s for s in same if data.startswith(s, start)), None)
            if secret is None and any(s.startswith(data[start : start + len(s)]) for s in same):  # cut off with the text
                if looks_random((rest := data[start:]).decode("latin-1")):
                    found.append((start, len(data), self.placeholder(rest)))
                break
            if secret is None:
                position = start + 1
            else:
                position = start + len(secret)
                found.append((start, position, self.placeholder(secret)))
        return found

    def _made(self, secret: bytes) -> bytes:
        if (token := self._token(secret)) is not None:
            return token
        number = _NUMBER.fullmatch(secret) is not None
        silent = readable(secret) is None  # the letters of a signed state are gone, and with them what says that it is signed
        for attempt in range(_SHAPED):
            made = self._number(secret, attempt) if number else self._formed(secret, attempt)
            if made != secret and made not in self._given and made not in self._real and not (silent and readable(made)):
                return made
        if number:  # all of that length are taken; a number it must be
            return self._number(secret, 0)
        return self._stream(secret, b"other", max(len(secret) // 2, 16)).hex().encode()  # no text of that form will do

    def _formed(self, secret: bytes, attempt: int) -> bytes:
        try:
            text, coding = secret.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            text, coding = secret.decode("latin-1"), "latin-1"
        known = _KNOWN_PREFIX.match(text)
        kept = known.group() if known is not None and known.end() < len(text) - 8 else ""
        rest = text[len(kept) :]
        noise = self._stream(secret, b"%d" % attempt, 2 * len(rest))
        numbers = [int.from_bytes(noise[i : i + 2]) for i in range(0, len(noise), 2)]
        telling = sum(c.isalnum() for c in rest)
        made = [_other(c, n, 2 * telling < len(rest)) for c, n in zip(rest, numbers, strict=True)]
        if telling >= _LONG and rest[: len(_SIGN)].isalnum() and rest.isascii():
            made[: len(_SIGN)] = _SIGN
        return (kept + "".join(made)).encode(coding)

    def _token(self, secret: bytes) -> bytes | None:
        """A JSON Web Token as one that says the same of its issuer and its audience."""
        text = secret.decode("latin-1")
        if (read := jose.read(text)) is None:
            return None
        head, _, signature = text.split(".")
        claims = {name: value if name in _KEPT_CLAIMS else self._claim(value) for name, value in read.claims.items()}
        body = jose.encode(json.dumps(claims, separators=(",", ":")).encode())
        seal = jose.encode(self._stream(secret, b"signature", max(len(signature) * 3 // 4, 8))) if signature else ""
        return f"{head}.{body}.{seal}".encode()

    def _claim(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._formed(value.encode("utf-8", "surrogatepass"), 0).decode("utf-8", "surrogatepass") if value else value
        if isinstance(value, list):
            return [self._claim(item) for item in value]
        if isinstance(value, dict):
            return {name: self._claim(item) for name, item in value.items()}
        return value

    def _number(self, written: bytes, attempt: int) -> bytes:
        """A number of the same form, so that it stays one."""
        noise = self._stream(written, b"number %d" % attempt, len(written))
        made = bytearray(written)
        first = True
        for index, byte in enumerate(written):
            if 0x30 <= byte <= 0x39:
                made[index] = 0x31 + noise[index] % 9 if first else 0x30 + noise[index] % 10
                first = False
        return bytes(made)

    def _stream(self, secret: bytes, purpose: bytes, length: int) -> bytes:
        seed = hmac.digest(self._key, purpose + b"\0" + secret, "sha256")
        return hashlib.shake_256(seed).digest(length)


def _digits(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()[:8]


def _other(character: str, number: int, sparse: bool) -> str:
    """Another character of the same kind. `sparse`: what is neither letter nor digit is most of the secret, so it goes, too."""
    if character.isascii():
        if character.isdigit():
            return string.digits[number % 10]
        if character.isalpha():
            return (string.ascii_lowercase if character.islower() else string.ascii_uppercase)[number % 26]
        return string.ascii_lowercase[number % 26] if sparse and "!" <= character <= "~" else character
    if 0xA0 <= ord(character) <= 0xFF:
        return chr(0xE0 + number % 24)
    return chr(0x3B1 + number % 17) if ord(character) >= 0x100 else character


def _any_of(prefixes: dict[bytes, list[bytes]]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 256 << 20  # an automaton over the beginnings of all secrets: a megabyte for thousands of them
    options.log_errors = False
    return re2.compile(b"|".join(_quoted(prefix) for prefix in prefixes), options)


def _quoted(literal: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in literal)


def readable(secret: bytes) -> str | None:
    """What a secret is to everybody who reads it (`Base64 of JSON`); None where it says nothing. (SEC001 goes by it.)"""
    opened = opaque.open_(secret.decode("utf-8", "replace"))
    return opened.form if opened is not None else None
