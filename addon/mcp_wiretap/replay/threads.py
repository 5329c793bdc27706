"""What a live server gives that later requests must name: ids, sessions, task ids, cursors, states. Recorded values are looked
up here and become the live ones.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.replay.script import Scene, Take
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.headers import decode, encode

_RELATED_TASK = "io.modelcontextprotocol/related-task"


@dataclass(eq=False)
class LiveScene:
    """A legacy session as the live server gave it."""

    id: str | None = None
    revision: str | None = None
    opened: bool = False
    post_target: str | None = None  # HTTP+SSE


@dataclass
class Threads:
    """From the recording's values to those of now."""

    scenes: dict[Scene, LiveScene] = field(default_factory=dict)
    _ids: dict[tuple[Scene | None, Hashable], Any] = field(default_factory=dict)
    _tokens: dict[Hashable, Any] = field(default_factory=dict)
    _given: dict[tuple[str, str], str] = field(default_factory=dict)  # (cursor or taskId, recorded) -> live
    _count: int = 0

    def scene(self, take: Take) -> LiveScene | None:
        return self.scenes.setdefault(take.session, LiveScene()) if take.session is not None else None

    def fresh(self, like: Any) -> Any:
        """A new id of the same JSON type."""
        self._count += 1
        return f"replay-{self._count}" if isinstance(like, str) else self._count

    def learn(self, was: Any, now: Any) -> None:
        """A recorded result and the live one of the same request."""
        if not isinstance(was, dict) or not isinstance(now, dict):
            return
        self._pair("cursor", was.get("nextCursor"), now.get("nextCursor"))
        for before, after in ((was, now), (was.get("task"), now.get("task"))):
            if isinstance(before, dict) and isinstance(after, dict):
                self._pair("taskId", before.get("taskId"), after.get("taskId"))

    def _pair(self, kind: str, was: Any, now: Any) -> None:
        if isinstance(was, str) and isinstance(now, str):
            self._given[kind, was] = now

    def message(self, take: Take, body: Any) -> Any:
        """A message of the client with live values, a copy."""
        if not isinstance(body, dict):
            return body
        made = dict(body)
        if "id" in made and "method" in made:
            made["id"] = self._ids[take.session, jsonrpc.id_key(made["id"])] = self.fresh(made["id"])
        if isinstance(params := made.get("params"), dict):
            made["params"] = self._params(take, made.get("method"), dict(params))
        return made

    def _params(self, take: Take, method: Any, params: dict[str, Any]) -> dict[str, Any]:
        for name in ("cursor", "taskId"):
            if isinstance(value := params.get(name), str):
                params[name] = self._given.get((name, value), value)
        if method == "notifications/cancelled" and "requestId" in params:
            known = (take.session, jsonrpc.id_key(params["requestId"]))
            params["requestId"] = self._ids.get(known, params["requestId"])
        if isinstance(meta := params.get("_meta"), dict):
            params["_meta"] = self._meta(dict(meta))
        return params

    def _meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        if "progressToken" in meta:
            token = meta["progressToken"]
            meta["progressToken"] = self._tokens.setdefault(jsonrpc.id_key(token), self.fresh(token))
        if isinstance(related := meta.get(_RELATED_TASK), dict) and isinstance(task := related.get("taskId"), str):
            meta[_RELATED_TASK] = {**related, "taskId": self._given.get(("taskId", task), task)}
        return meta

    def mirrored(self, value: str, was: Any, now: Any) -> str:
        """A header that mirrors a value of the body, for the value of now."""
        for name in ("taskId", "cursor"):
            before, after = _member(was, name), _member(now, name)
            if before != after and isinstance(after, str) and decode(value).text == before:
                return encode(after)
        return value

    def id_of(self, take: Take, recorded: Any) -> Any:
        return self._ids.get((take.session, jsonrpc.id_key(recorded)), recorded)


def _member(body: Any, name: str) -> Any:
    params = body.get("params") if isinstance(body, dict) else None
    return params.get(name) if isinstance(params, dict) else None
