"""JSON Web Tokens read without checking them: what header and claims say. No key is known here, so no signature is verified.

Spec: RFC 7515 section 3.1, RFC 7519 section 4; cnf.jkt is RFC 9449 section 6.1.
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

_LONGEST = 32_768  # characters; more than servers accept in a header
_COMPACT = re.compile(r"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*")


@dataclass(slots=True, frozen=True)
class Jwt:
    """A token in the compact form whose header and claims are JSON objects."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bool  # there is a signature; whether it is right is not known

    def text(self, name: str) -> str | None:
        value = self.claims.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> float | None:
        value = self.claims.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12 else None

    @property
    def audience(self) -> tuple[str, ...]:
        """The aud claim as a list; empty where there is none."""
        value = self.claims.get("aud")
        values = value if isinstance(value, list) else [value]
        return tuple(v for v in values[:50] if isinstance(v, str))

    @property
    def thumbprint(self) -> str | None:
        """cnf.jkt: the key that the token is bound to."""
        cnf = self.claims.get("cnf")
        value = cnf.get("jkt") if isinstance(cnf, dict) else None
        return value if isinstance(value, str) else None


def looks_like(text: str) -> bool:
    """Whether a text has the form of a JWT, by its beginning and its dots."""
    return text.startswith("eyJ") and len(text) <= _LONGEST and _COMPACT.fullmatch(text) is not None


def read(text: str) -> Jwt | None:
    """The parts of a JWT; None where the text is none. Never raises."""
    if not looks_like(text):
        return None
    head, body, signature = text.split(".")
    header, claims = _object(head), _object(body)
    if header is None or claims is None:
        return None
    return Jwt(header, claims, bool(signature))


def decode(part: str) -> bytes | None:
    """Base64URL without padding; None where it is not."""
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


def encode(data: bytes) -> str:
    """Base64URL without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _object(part: str) -> dict[str, Any] | None:
    data = decode(part)
    if data is None:
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
