"""How a masked secret is spelled."""

import hashlib
import re

_MASKED = re.compile(r"\(sha [0-9a-f]{8}, [0-9]+ chars\)")


def mask(text: str) -> str:
    """The masked spelling of a secret: `(sha 4ffafd97, 270 chars)`. What is masked already stays."""
    if _MASKED.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"(sha {digest[:8]}, {len(text)} chars)"
