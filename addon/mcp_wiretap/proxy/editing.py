"""What the commands `mcp.edit` and `mcp.answer` do to a flow: change a value of the params, answer in the server's place."""

import json
from pathlib import Path
from typing import Any

from mitmproxy.http import HTTPFlow, Response

from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev

_STATUS = {
    rev.HEADER_MISMATCH: 400,
    rev.MISSING_CAPABILITY: 400,
    rev.UNSUPPORTED_VERSION: 400,
    rev.METHOD_NOT_FOUND: 404,
    rev.PARSE_ERROR: 400,
    rev.INVALID_REQUEST: 400,
    rev.INVALID_PARAMS: 400,
}


def edit(flow: HTTPFlow, pointer: str, text: str) -> str:
    """Set a value of the request's params (`pointer`: JSON Pointer below them); what was done, in words. `text` is JSON, else a
    string. ValueError where that cannot be."""
    body = _body(flow)
    params = body.setdefault("params", {})
    steps = _steps(pointer)
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    place: Any = params
    for step in steps[:-1]:
        place = _entered(place, step, pointer)
    last = steps[-1]
    if isinstance(place, dict):
        before = place.get(last)
        place[last] = value
    elif isinstance(place, list):
        index = _index(place, last, pointer, or_end=True)
        before = place[index] if index < len(place) else None
        place[index : index + 1] = [value]
    else:
        raise ValueError(f"{pointer}: there is no object and no array to hold {last!r}")
    flow.backup()
    flow.request.text = json.dumps(body, ensure_ascii=False)
    return f"{pointer}: {jsonrpc.dumps(before, most=80)} -> {jsonrpc.dumps(value, most=80)}"


def answer(flow: HTTPFlow, exchange: Exchange | None, words: list[str]) -> str:
    """Answer a held flow: `error CODE`, or a file with a result or a whole JSON-RPC response. ValueError, OSError."""
    id_ = _body(flow).get("id")
    match words:
        case ["error", code]:
            try:
                number = int(code)
            except ValueError:
                raise ValueError(f"{code!r} is no error code") from None
            made: dict[str, Any] = {"error": _error(number, exchange)}
            status = _STATUS.get(number, 200) if exchange is None or exchange.claim.modern else 200
        case [path]:
            made, status = _from_file(Path(path).expanduser()), 200
        case _:
            raise ValueError("mcp.answer takes a file, or: error CODE")
    flow.backup()
    text = json.dumps({"jsonrpc": "2.0", "id": id_, **made}, ensure_ascii=False)
    flow.response = Response.make(status, text.encode(), {"Content-Type": "application/json"})
    return f"answered with {' '.join(words)}"


def _from_file(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} holds no JSON object")
    if "result" in value or "error" in value:
        return {name: value[name] for name in ("result", "error") if name in value}
    return {"result": value}


def _error(code: int, exchange: Exchange | None) -> dict[str, Any]:
    made: dict[str, Any] = {"code": code, "message": rev.error_name(code) or "answered in the server's place"}
    if code == rev.MISSING_CAPABILITY:
        made["data"] = {"requiredCapabilities": {"elicitation": {}}}
    elif code == rev.UNSUPPORTED_VERSION:
        supported = exchange.endpoint.supported if exchange is not None else None
        made["data"] = {
            "supported": supported or sorted(rev.MODERN),
            "requested": exchange.revision if exchange is not None else None,
        }
    return made


def _body(flow: HTTPFlow) -> dict[str, Any]:
    try:
        body = json.loads(flow.request.get_content(strict=False) or b"")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ValueError("the body of the request is no JSON object")
    return body


def _steps(pointer: str) -> list[str]:
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON Pointer; write for example /arguments/city")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _entered(place: Any, step: str, pointer: str) -> Any:
    if isinstance(place, dict) and step in place:
        return place[step]
    if isinstance(place, list):
        return place[_index(place, step, pointer)]
    if isinstance(place, dict):
        return place.setdefault(step, {})
    raise ValueError(f"{pointer}: there is no {step!r}")


def _index(place: list[Any], step: str, pointer: str, *, or_end: bool = False) -> int:
    if or_end and step == "-":
        return len(place)
    if not (step.isascii() and step.isdigit()) or int(step) >= len(place) + or_end:
        raise ValueError(f"{pointer}: the array has no item {step}")
    return int(step)
