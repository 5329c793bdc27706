"""Errors on demand: answers tools/call of a trigger_* tool before the SDK reads the body.

The answers are what a careless server would send (a mismatch where there is none, error data left out); configs that
use the injector list the findings to expect beside them.
"""

from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from test_servers.asgi import decoded, error_body, peek_body, send_json
from test_servers.eras import envelope_version

Answer = tuple[int, int, str, Any]


def _unsupported(message: Any) -> dict[str, Any]:
    return {"supported": ["2025-06-18", "2025-11-25", envelope_version(message) or "2026-07-28"]}


ANSWERS: dict[str, Callable[[Any], Answer]] = {
    "trigger_header_mismatch": lambda m: (400, -32020, "The Mcp-Method header and the body differ", None),
    "trigger_missing_capability": lambda m: (400, -32021, "A client capability is missing", None),
    "trigger_unsupported_version": lambda m: (400, -32022, "This protocol version is not supported", _unsupported(m)),
    "trigger_method_not_found": lambda m: (404, -32601, "There is no such method", None),
    "trigger_invalid_params": lambda m: (200, -32602, "Invalid params: 'code' has to be a positive integer", None),
}


class Injector:
    """ASGI middleware; passes on everything but calls of the trigger tools."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self.app = app
        self.path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self.path:
            await self.app(scope, receive, send)
            return
        body, receive = await peek_body(receive)
        message = decoded(body)
        answer = ANSWERS.get(_called_tool(message) or "")
        if answer is None:
            await self.app(scope, receive, send)
            return
        status, code, text, data = answer(message)
        await send_json(send, status, error_body(message.get("id"), code, text, data))


def _called_tool(message: Any) -> str | None:
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return None
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None
