"""Revisions and eras, the `_meta` keys and the error codes that the specification names.

Spec: 2026-07-28 basic/versioning, basic/index#_meta, basic/index#error-codes.
"""

import re
from typing import Literal

type Era = Literal["modern", "legacy", "unknown"]

MODERN_FROM = "2026-07-28"
# As `mcp_types.version` has them, which loads half a second of models.
KNOWN: tuple[str, ...] = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN_FROM)
MODERN: frozenset[str] = frozenset({MODERN_FROM})
LEGACY: frozenset[str] = frozenset(KNOWN) - MODERN


def since(first: str) -> tuple[str, ...]:
    """The known revisions from one on."""
    return tuple(version for version in KNOWN if version >= first)


STREAMABLE = since("2025-03-26")  # those with the Streamable HTTP transport
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")  # the least severe first

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # up to 2025-11-25
URL_ELICITATION_REQUIRED = -32042  # 2025-11-25 only
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

_NAMES = {
    PARSE_ERROR: "ParseError",
    INVALID_REQUEST: "InvalidRequest",
    METHOD_NOT_FOUND: "MethodNotFound",
    INVALID_PARAMS: "InvalidParams",
    INTERNAL_ERROR: "InternalError",
    RESOURCE_NOT_FOUND: "ResourceNotFound",
    URL_ELICITATION_REQUIRED: "URLElicitationRequired",
    HEADER_MISMATCH: "HeaderMismatch",
    MISSING_CAPABILITY: "MissingRequiredClientCapability",
    UNSUPPORTED_VERSION: "UnsupportedProtocolVersion",
}
_DATE = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")


def version_kind(version: str) -> Literal["modern", "legacy", "future", "foreign"]:
    """Which kind of version a string is. Known revisions by name; a well-formed date after 2026-07-28 is `future`; anything
    else, unknown earlier dates included, is `foreign`. Strings are compared as they stand: 2026-7-28 is foreign."""
    if version in MODERN:
        return "modern"
    if version in LEGACY:
        return "legacy"
    if _DATE.fullmatch(version) and version > MODERN_FROM:
        return "future"
    return "foreign"


def error_name(code: int | None) -> str | None:
    """The name of a code that JSON-RPC or MCP defines. None for the rest: -32000..-32019 have no cross-server meaning."""
    return _NAMES.get(code) if code is not None else None
