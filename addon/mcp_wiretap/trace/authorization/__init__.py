"""Authorization on the wire: which HTTP exchanges around an MCP endpoint belong to which way to a token, step by step.

`urls` knows the well-known forms and how URLs are compared, `documents` reads what servers and clients publish, `steps` has the
facts, `tracker` ties exchanges to endpoints and to each other. Secrets are kept as digests, shown masked.
Spec: 2026-07-28 basic/authorization.
"""

from mcp_wiretap.trace.authorization.steps import (
    Ask,
    AuthorizationFlow,
    Challenge,
    Redirect,
    Registration,
    Server,
    Step,
    Token,
    TokenCall,
)
from mcp_wiretap.trace.authorization.tracker import Authorization

__all__ = [
    "Ask",
    "Authorization",
    "AuthorizationFlow",
    "Challenge",
    "Redirect",
    "Registration",
    "Server",
    "Step",
    "Token",
    "TokenCall",
]
