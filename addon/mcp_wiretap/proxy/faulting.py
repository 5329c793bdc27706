"""Faults put into live traffic (options `mcp_fault`, `mcp_faults`), so that a client shows what it does: each once, the same way.

An addon object behind ours: what it makes of an answer is known as changed by `fault`, and the server is not judged by it. Each
flow that was meant says so in its metadata (`mcp.fault`), whether there was something to break or not.
"""

import asyncio
import json
import logging
import random
import re
import secrets
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mitmproxy import ctx
from mitmproxy.http import HTTPFlow, Response

from mcp_wiretap.proxy.capture import Capture
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.steering import FaultLine, parse_fault
from mcp_wiretap.trace.events import AnsweredHere, Faulted
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import visible

logger = logging.getLogger(__name__)

METADATA = "mcp.fault"
STREAM_KINDS = frozenset({"cut", "end", "twice", "foreign", "garbage", "changed"})
BODY_KINDS = frozenset({"ttl", "big", "type", "json"})
SEVERED_AFTER = 0.05  # seconds: what was let pass is at the client by then
NEVER = 1 << 40  # bytes: the length of an answer that is cut
MOST_CLIENTS = 10_000
STATES = 1_000  # questions of ours that wait for their retry
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_OWN_QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "mcp-wiretap asks, in the server's place",
        "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
    },
}


@dataclass(slots=True)
class Planned:
    """A line of the plan, and how often each client came by."""

    line: FaultLine
    probability: float = 1.0
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    seen: dict[str, int] = field(default_factory=dict)
    put: int = 0

    def takes(self, who: str) -> bool:
        """Whether this is the call of this client that it is for."""
        if len(self.seen) >= MOST_CLIENTS and who not in self.seen:
            return False
        self.seen[who] = count = self.seen.get(who, 0) + 1
        return count == self.line.nth and (self.probability >= 1 or self.chance.random() < self.probability)


def read_plan(lines: Iterable[str], path: str) -> list[Planned]:
    """The faults of both options. ValueError says what is wrong, and where."""
    plan = [Planned(parse_fault(line)) for line in lines]
    if not path:
        return plan
    try:
        value = tomllib.loads(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"mcp_faults: {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"mcp_faults: {path}: not valid TOML: {visible(str(error))[:200]}") from None
    seed, entries = value.get("seed", 0), value.get("fault")
    if set(value) - {"seed", "fault"} or not isinstance(entries, list):
        raise ValueError(f"mcp_faults: {path}: it holds `seed` and a list of [[fault]]")
    for number, entry in enumerate(entries):
        plan.append(_planned(entry, f"mcp_faults: {path}: fault[{number}]", random.Random(f"{seed}-{number}")))
    return plan


def _planned(entry: Any, at: str, chance: random.Random) -> Planned:
    known = {"kind", "argument", "method", "name", "nth", "probability"}
    if not isinstance(entry, dict) or set(entry) - known or not {"kind", "method"} <= set(entry):
        raise ValueError(f"{at}: it has kind and method, and may have {', '.join(sorted(known - {'kind', 'method'}))}")
    kind = f"{entry['kind']}:{entry['argument']}" if "argument" in entry else str(entry["kind"])
    words = [kind, str(entry["method"]), *([str(entry["name"])] if "name" in entry else []), f"#{entry.get('nth', 1)}"]
    probability = entry.get("probability", 1.0)
    if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 < probability <= 1:
        raise ValueError(f"{at}: probability is no number above 0 and up to 1")
    try:
        return Planned(parse_fault(" ".join(words)), float(probability), chance)
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from None


class Faulting:
    """The addon object. Its attributes are named so that mitmproxy takes none of them for a hook."""

    name = "mcpwiretapfault"

    def __init__(self, capture: Capture, faults: Faults, plan: list[Planned]) -> None:
        self.plan = plan
        self._capture = capture
        self._faults = faults
        self._states: dict[str, None] = {}
        self._meant: dict[str, FaultLine] = {}  # flow id -> what is to be done to its answer

    def place(self) -> None:
        ctx.master.addons.add(self)

    def leave(self) -> None:
        if self in ctx.master.addons.chain:
            ctx.master.addons.remove(self)

    async def request(self, flow: HTTPFlow) -> None:
        try:
            if flow.live and flow.response is None and flow.error is None and flow.request.scheme != "stdio":
                await self._at_request(flow)
        except Exception as error:
            self._faults.note("mcp_fault", error, flow.id)

    async def _at_request(self, flow: HTTPFlow) -> None:
        body = _object(flow.request.raw_content)
        if body is None or not isinstance(body.get("method"), str) or "id" not in body:
            return
        if self._is_retry(flow, body):
            return
        line = self._meant_for(flow, body)
        if line is None:
            return
        logger.warning("mcp_fault: %s is put into flow %s", line, flow.id[:8])
        if line.kind in STREAM_KINDS | BODY_KINDS:
            self._meant[flow.id] = line
            self._tell(flow, line, applied=False)  # until there is something to break
        elif line.kind == "delay":
            self._tell(flow, line)
            await asyncio.sleep(float(line.argument))
        elif line.kind == "drop":
            self._tell(flow, line)
            flow.metadata.setdefault("mcp.changed", {"by": "fault", "request": None, "response": None})["answered"] = True
            self._feed(flow, AnsweredHere(self._capture.trace_id(flow), self._capture.clock(), "fault"))
            flow.kill()
        else:
            self._capture.changes.ours(flow, "fault")
            state = secrets.token_urlsafe(16) if line.kind == "ask" else ""
            flow.response = self._answer(line, body, state)
            self._tell(flow, line, state=state)

    def _is_retry(self, flow: HTTPFlow, body: dict[str, Any]) -> bool:
        """Whether it answers a question of ours: the server knows nothing of it, and is given the call without the answer."""
        params = body.get("params")
        if not isinstance(params, dict) or params.get("requestState") not in self._states:
            return False
        self._states.pop(params.pop("requestState"))
        params.pop("inputResponses", None)
        self._capture.changes.ours(flow, "fault")
        flow.request.content = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return True

    def _meant_for(self, flow: HTTPFlow, body: dict[str, Any]) -> FaultLine | None:
        params = body["params"] if isinstance(body.get("params"), dict) else {}
        name = next((params[key] for key in ("name", "uri", "taskId") if isinstance(params.get(key), str)), None)
        who = _client_of(flow, params)
        for planned in self.plan:
            if planned.line.means(body["method"], name) and planned.takes(who):
                planned.put += 1
                return planned.line
        return None

    def _answer(self, line: FaultLine, body: dict[str, Any], state: str) -> Response:
        if line.kind == "status":
            code, _, more = line.argument.partition(":")
            headers = {"Content-Length": "0"}
            if code == "401":
                headers["WWW-Authenticate"] = "Bearer"
            elif code == "403":
                headers["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{more or "mcp:more"}"'
            elif code in ("429", "503"):
                headers["Retry-After"] = more or "1"
            return Response.make(int(code), b"", headers)
        if line.kind == "ask":
            self._states[state] = None
            while len(self._states) > STATES:
                self._states.pop(next(iter(self._states)))
            result = {"resultType": "input_required", "inputRequests": {"mcp-wiretap": _OWN_QUESTION}, "requestState": state}
            return _made(200, {"jsonrpc": "2.0", "id": body["id"], "result": result})
        number = int(float(line.argument))
        error: dict[str, Any] = {"code": number, "message": f"{rev.error_name(number) or 'Error'} (put in by mcp-wiretap)"}
        if number == rev.UNSUPPORTED_VERSION:
            error["data"] = {"supported": sorted(rev.MODERN), "requested": _version(body)}
        elif number == rev.MISSING_CAPABILITY:
            error["data"] = {"requiredCapabilities": {"elicitation": {"form": {}}}}
        status = 404 if number == rev.METHOD_NOT_FOUND else 400
        return _made(status if _version(body) is not None else 200, {"jsonrpc": "2.0", "id": body["id"], "error": error})

    def responseheaders(self, flow: HTTPFlow) -> None:
        line = self._meant.get(flow.id)
        if line is None or line.kind not in STREAM_KINDS or flow.response is None:
            return
        try:
            if flow.response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                self._meant.pop(flow.id)
                self._capture.changes.ours(flow, "fault")
                if line.kind == "cut" and flow.request.http_version.startswith("HTTP/1"):
                    # With a length that is never reached no end that follows at once looks like a whole answer.
                    flow.response.headers.pop("transfer-encoding", None)
                    flow.response.headers["content-length"] = str(NEVER)
                flow.response.stream = _Tampering(line, flow, flow.response.stream, partial(self._tell, flow, line)).pass_on
        except Exception as error:
            self._faults.note("mcp_fault", error, flow.id)

    def response(self, flow: HTTPFlow) -> None:
        line = self._meant.pop(flow.id, None)
        if line is None or flow.response is None:
            return
        try:
            changed = self._changed(flow, line) if line.kind in BODY_KINDS and not flow.response.stream else None
            if changed is not None:
                self._capture.changes.ours(flow, "fault")
                flow.response.content = changed
                self._tell(flow, line)
        except Exception as error:
            self._faults.note("mcp_fault", error, flow.id)

    @staticmethod
    def _changed(flow: HTTPFlow, line: FaultLine) -> bytes | None:
        """The body of a whole answer with the fault in it; None where there is nothing to break."""
        assert flow.response is not None
        content = flow.response.get_content(strict=False) or b""
        if line.kind == "json":
            return content[: len(content) // 2] if content else None
        body = _object(content)
        result = body.get("result") if body is not None else None
        if body is None or not isinstance(result, dict):
            return None
        if line.kind == "ttl":
            result["ttlMs"] = int(float(line.argument))
        elif line.kind == "type":
            result["resultType"] = line.argument or "mcp-wiretap"
        else:
            blocks = result.get("content")
            result["content"] = [
                *(blocks if isinstance(blocks, list) else ()),
                {"type": "text", "text": "x" * int(float(line.argument))},
            ]
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def error(self, flow: HTTPFlow) -> None:
        self._meant.pop(flow.id, None)

    def _tell(self, flow: HTTPFlow, line: FaultLine, *, applied: bool = True, state: str = "") -> None:
        """Write on the flow what was put in, and let the trace know."""
        flow.metadata[METADATA] = {"kind": line.kind, "argument": line.argument, "applied": applied, "state": state}
        event = Faulted(self._capture.trace_id(flow), self._capture.clock(), line.kind, line.argument, applied, state)
        self._feed(flow, event)

    def _feed(self, flow: HTTPFlow, event: Faulted | AnsweredHere) -> None:
        self._capture.inspection.later("fault", flow, partial(self._capture.tell, event, flow))

    def told(self) -> list[str]:
        """The plan, one line each, with how often it was put in."""
        return [f"{planned.line}: {f'put in {planned.put} times' if planned.put else 'not reached'}" for planned in self.plan]


class _Tampering:
    """The stream callable of one response: whole events pass, and the fault comes after `argument` of them."""

    def __init__(self, line: FaultLine, flow: HTTPFlow, before: Any, put: Callable[..., None]) -> None:
        self._line = line
        self._flow = flow
        self._before = before if callable(before) else None
        self._put = put
        self._rest = b""
        self._events = 0
        self._over = False
        self._told = False

    def pass_on(self, data: bytes) -> bytes | Iterable[bytes]:
        passed = self._before(data) if self._before is not None else data
        whole = passed if isinstance(passed, bytes) else b"".join(passed)
        if self._over:
            return []
        if not data:
            return self._at_end(whole)
        self._rest += whole
        pieces: list[bytes] = []
        while not self._over and (found := _EVENT_END.search(self._rest)) is not None:
            event, self._rest = self._rest[: found.end()], self._rest[found.end() :]
            pieces += self._one(event)
            if self._over and self._line.kind == "end":
                return [*pieces, b""]
        return pieces

    def _one(self, event: bytes) -> list[bytes]:
        kind, wanted = self._line.kind, int(float(self._line.argument or 0))
        if kind == "twice":
            self._was_put()
            return [event, event]
        if self._events < wanted:
            self._events += 1
            return [event]
        if self._told:
            return [event]
        self._was_put()
        if kind in ("cut", "end"):
            self._over = True
            asyncio.get_running_loop().call_later(SEVERED_AFTER, _sever, self._flow)
            return [event[: max(len(event) // 2, 1)]] if kind == "cut" else []
        return [_event(kind, self._flow), event]

    def _at_end(self, rest: bytes) -> bytes | Iterable[bytes]:
        if not self._told and self._line.kind not in ("cut", "end", "twice"):
            self._was_put()
            return [self._rest + _event(self._line.kind, self._flow), rest]
        return [self._rest, rest] if self._rest else rest

    def _was_put(self) -> None:
        if not self._told:
            self._told = True
            self._put()


def _event(kind: str, flow: HTTPFlow) -> bytes:
    """An event that the server did not send."""
    if kind == "garbage":
        return b'data: {"jsonrpc": "2.0", "id"\n\n'
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": "mcp-wiretap-foreign", "result": {"resultType": "complete", "content": []}}
    if kind == "changed":
        body = _object(flow.request.raw_content) or {}
        meta = {rev.SUBSCRIPTION_ID: body.get("id")} if body.get("method") == "subscriptions/listen" else None
        message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"} | ({"params": {"_meta": meta}} if meta else {})
    return f"event: message\ndata: {json.dumps(message)}\n\n".encode()


def _sever(flow: HTTPFlow) -> None:
    """End the client's connection in the middle of a body: `kill` waits for the end of a streamed one (private to mitmproxy: the
    connections of its addon `proxyserver`). Where that is not there any more, the stream just ends."""
    try:
        for handler in list(ctx.master.addons.get("proxyserver").connections.values()):
            for connection, io in list(handler.transports.items()):
                if connection is flow.client_conn and io.writer is not None:
                    io.writer.transport.abort()
    except Exception as error:
        logger.warning("mcp_fault: the connection could not be cut (%r): this mitmproxy is another one than we know", error)


def _made(status: int, message: dict[str, Any]) -> Response:
    return Response.make(status, json.dumps(message), {"Content-Type": "application/json"})


def _object(content: bytes | None) -> dict[str, Any] | None:
    try:
        value = json.loads(content or b"")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _version(body: dict[str, Any]) -> str | None:
    """The version that the envelope of a request names; None without one."""
    params = body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(rev.PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _client_of(flow: HTTPFlow, params: dict[str, Any]) -> str:
    """Who asks: by session where there is one, else by name and Authorization."""
    session = flow.request.headers.get("mcp-session-id")
    if session:
        return f"session {session}"
    meta = params.get("_meta")
    info = meta.get(rev.CLIENT_INFO) if isinstance(meta, dict) else None
    return f"{json.dumps(info, sort_keys=True)} {flow.request.headers.get('authorization', '')}"
