"""Extensions in capabilities: `{"extensions": {"io.modelcontextprotocol/tasks": {}}}`, as either side declares them."""

from typing import Any

_OFFICIAL = "io.modelcontextprotocol/"


def extensions_of(capabilities: Any) -> dict[str, Any]:
    """What capabilities declare, by identifier; empty where that is nothing, or nothing of that shape."""
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return extensions if isinstance(extensions, dict) else {}


def names_a_foreign_one(capabilities: Any) -> bool:
    """Whether an extension is declared that this tool does not know: it may define kinds and members of its own."""
    return any(not name.startswith(_OFFICIAL) for name in extensions_of(capabilities))
