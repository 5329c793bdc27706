"""What a recorded flow holds, in one line without ids and times: for the text beside a recording. Judges nothing."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from mitmproxy.flow import Flow
from mitmproxy.http import HTTPFlow, Message
from mitmproxy.io import FlowReader

NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def lines(path: Path) -> list[str]:
    """One line a flow, in the order in which the requests began."""
    with path.open("rb") as file:
        flows: list[Flow] = list(FlowReader(file).stream())
    http = [flow for flow in flows if isinstance(flow, HTTPFlow)]
    return [line(flow) for flow in sorted(http, key=lambda flow: flow.request.timestamp_start)]


def line(flow: HTTPFlow) -> str:
    """Method, path and JSON-RPC message of the request; status and JSON-RPC messages of the answer."""
    request = flow.request
    asked = [request.method, request.path.partition("?")[0], *_told(_messages(request))]
    if flow.response is None:
        return f"{' '.join(asked)} -> no answer"
    told = _told(_messages(flow.response))
    stream = ["SSE"] if _is_stream(flow.response) else []
    return f"{' '.join(asked)} -> {' '.join([str(flow.response.status_code), *stream, *told])}"


def _is_stream(message: Message) -> bool:
    return "text/event-stream" in message.headers.get("content-type", "")


def _messages(message: Message) -> list[Any]:
    text = (message.get_content(strict=False) or b"").decode("utf-8", "replace")
    if _is_stream(message):
        data = [part.removeprefix("data:").strip() for part in text.splitlines() if part.startswith("data:")]
    else:
        data = [text]
    return [decoded for decoded in map(_decoded, data) if isinstance(decoded, dict)]


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _told(messages: list[Any]) -> list[str]:
    """Each message in a word or two; equal ones that follow each other are counted."""
    counted: list[tuple[str, int]] = []
    for word in filter(None, map(_word, messages)):
        if counted and counted[-1][0] == word:
            counted[-1] = (word, counted[-1][1] + 1)
        else:
            counted.append((word, 1))
    return [word if count == 1 else f"{word} x{count}" for word, count in counted]


def _word(message: dict[str, Any]) -> str | None:
    method = message.get("method")
    if isinstance(method, str):
        params = message.get("params") or {}
        extra = [str(params[NAMES[method]])] if method in NAMES and NAMES[method] in params else []
        extra += [f"+{key}" for key in ("inputResponses", "requestState", "task") if key in params]
        return " ".join([method, *extra])
    error = message.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    result = message.get("result")
    if isinstance(result, dict):
        kinds = Counter(key for key in ("inputRequests", "requestState") if key in result)
        status = result.get("status") if "taskId" in result else None
        kind = [result.get("resultType"), status, *(f"+{key}" for key in kinds)]
        return " ".join(["result", *(str(part) for part in kind if part is not None)])
    return None
