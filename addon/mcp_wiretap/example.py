"""The notation of examples: tiny exchanges written down, read into the events of a trace.

Rule docstrings (`Wrong::`, `Right::`) and the case files of the tests are written in it, so that each can be run. A line at
column 0 begins an exchange; indented lines say more about it; `->` lines are the server's side. `#` begins a comment line.

    modern tools/call {"name": "echo", "arguments": {}}     a POST with right envelope, id and mirrored headers (Mcp-Method,
                                                            Mcp-Name, MCP-Protocol-Version; Mcp-Param-* are written by hand)
    modern-notify METHOD PARAMS                             a notification with the modern version header
    legacy METHOD PARAMS                                    a POST without envelope; in the session that an initialize before
                                                            it opened, with its version header (2025-11-25 unless negotiated)
    legacy-notify METHOD PARAMS
    legacy-reply ID RESULT | legacy-reply-error ID CODE     the client answers a request of the server
    POST|GET|DELETE|OPTIONS|PUT [PATH or URL]               as it stands: no header, no body but what is written below
    continue LABEL                                          further `->` lines of an exchange that was left open

    Indented, the client's side:
      header NAME: VALUE | +header NAME: VALUE | -header NAME     replace, add one more, remove
      meta KEY JSON | -meta KEY                                   a member of params._meta
      params JSON                                                 the params as they stand (no envelope added)
      id JSON | no-id
      body TEXT                                                   the body as it stands; \\xNN, \\n and \\r are bytes
      body-lost                                                   the recorder did not keep the request body
      authority NAME | reverse                                    another Host than the URL's; a reverse proxy recorded it
      client NAME                                                 another client: connection, Authorization, clientInfo
      answers STATE|- KEY...                                      a retry: requestState, an accepted empty form for each KEY
      capabilities JSON | version V | session ID                  of the envelope; of envelope and header; Mcp-Session-Id
      fault KIND[:ARGUMENT]                                       a fault of mcp_fault was put into it
      path PATH or URL                                            default http://server.example:80/mcp
      after SECONDS                                               starts so long after what came before (default 1)
      label NAME
    Indented, the server's side:
      -> result JSON          the answer; on modern resultType, serverInfo, and ttlMs/cacheScope of cacheable methods are
                              filled in where absent; a member with the value "$none" is removed
      -> raw-result JSON      nothing filled in
      -> tool NAME [PROPERTIES [MEMBERS]]   the tools/list answer with this tool, its inputSchema has these properties; a
                              further line adds a tool; MEMBERS are the tool's other ones, inputSchema's are added to it
      -> needs STATE|- KEY...  input_required with that requestState (-: none), an empty form for each KEY
      -> error CODE [{"message": ..., "data": ...}]   HTTP 400 for -32020..-32022, 404 for -32601 (modern); otherwise 200
      -> STATUS [CONTENT-TYPE [BODY]]                 any other response, e.g. `-> 202`, `-> 404 text/html <p>no</p>`
      -> status N | -> header NAME: VALUE | -> -header NAME
      -> answer-id JSON | -> no-answer-id             the id in the answers that follow
      -> sse                  an event stream; `result`, `error` after it are events, and:
      -> notify METHOD PARAMS | -> ask ID METHOD PARAMS | -> event JSON-or-text
      -> ack FILTER | -> publish METHOD PARAMS        on a listen stream, with its subscriptionId
      -> sse-raw TEXT         bytes of the stream as they stand, escapes as in body
      -> after SECONDS        before the next line (default 0.01)
      -> closed client|server|unknown     how it ended, where it did not simply complete
      -> open                 it has not ended (yet)

    stdio [NAME]                        a process on stdio; its lines, in their order, indented:
      > TEXT | < TEXT | <| TEXT         the client, the server writes this line as it stands, escapes as in body; the server's
                                        output ends inside this one
      modern METHOD PARAMS | modern-notify METHOD PARAMS | legacy METHOD PARAMS | legacy-notify METHOD PARAMS | reply ID RESULT
      -> result JSON | -> error CODE [MORE] | -> notify METHOD PARAMS | -> ask ID METHOD PARAMS | -> ack FILTER
      -> publish METHOD PARAMS          the server, about the newest request; `-> to ID` first: about that one
      errors TEXT | after SECONDS | eof | exit STATUS      stderr; time; the client closes its end; the process ends

An exchange without `->` lines got no answer. Answers to initialize open a session (Mcp-Session-Id
"session-1-of-the-example" ...) unless `-> -header Mcp-Session-Id` is there.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mcp_wiretap.stdio.lines import CANCELLED, Step
from mcp_wiretap.stdio.session import PROCESS, STDERR, Session
from mcp_wiretap.trace.events import (
    AnsweredHere,
    EndedBy,
    Event,
    ExchangeEnded,
    Faulted,
    ProcessEnd,
    RequestSeen,
    ResponseStarted,
    StreamData,
)
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields, encode

CACHEABLE = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"}
)
NAME_SOURCE = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"} | dict.fromkeys(
    ("tasks/get", "tasks/update", "tasks/cancel"), "taskId"
)
SERVER = {"name": "example-server", "version": "1.0"}
URL = "http://server.example/mcp"


class ScriptError(ValueError):
    """A line of an example that does not fit the notation; says which line and why."""


@dataclass(slots=True)
class _Exchange:
    """An exchange as it is being written down."""

    flow: str
    http_method: str
    era: str  # modern, legacy, raw
    line: int
    method: str | None = None
    body: dict[str, Any] | None = None
    raw_body: bytes | None = None
    body_lost: bool = False
    headers: list[tuple[str, str]] = field(default_factory=list)
    url: str = URL
    authority: str | None = None
    reverse: bool = False
    fault: str = ""
    client: str = ""
    after: float = 1.0
    began: bool = False  # the request was emitted
    response: list[tuple[str, str]] = field(default_factory=list)  # header changes, until the head was sent
    removed: list[str] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)  # of a tools/list answer that is written tool by tool
    status: int | None = None
    answer_id: Any = None
    streaming: bool = False
    answered: bool = False
    over: bool = False
    leave_open: bool = False
    ended_by: EndedBy = "complete"

    def set_header(self, name: str, value: str | None, *, add: bool = False) -> None:
        if not add:
            self.headers = [(n, v) for n, v in self.headers if n.lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))


class _Reader:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 1_800_000_000.0
        self.next_id = 1
        self.exchanges: list[_Exchange] = []
        self.labels: dict[str, _Exchange] = {}
        self.current: _Exchange | None = None
        self.sessions: dict[tuple[str, str], tuple[str, str]] = {}  # (url, client) -> (session id, version)
        self.pending: list[str] = []  # the body of the answer is sent when the exchange is closed
        self.body: tuple[int, str | None, bytes] | None = None
        self.process: _Process | None = None
        self.processes = 0
        self.flows = 0

    # Lines at column 0

    def begin(self, line: str, number: int) -> None:
        self.close()
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        self.process = None
        if word == "stdio":
            self.process = _Process(self, rest or "example-server")
            return
        if word == "continue":
            if rest not in self.labels:
                raise ScriptError(f"line {number}: no exchange is labelled {rest!r}")
            self.current = self.labels[rest]
            return
        flow = self.new_flow()
        if word in ("modern", "modern-notify", "legacy", "legacy-notify"):
            method, _, params_text = rest.partition(" ")
            exchange = _Exchange(flow, "POST", word.partition("-")[0], number, method)
            exchange.body = {"jsonrpc": "2.0", "method": method}
            if not word.endswith("notify"):
                exchange.body["id"] = self._id()
            if params_text.strip():
                exchange.body["params"] = _json(params_text, number)
        elif word in ("legacy-reply", "legacy-reply-error"):
            id_text, _, value = rest.partition(" ")
            exchange = _Exchange(flow, "POST", "legacy", number)
            exchange.body = {"jsonrpc": "2.0", "id": _json(id_text, number)}
            if word == "legacy-reply":
                exchange.body["result"] = _json(value or "{}", number)
            else:
                exchange.body["error"] = {"code": _json(value or "-32603", number), "message": "refused"}
        elif word in ("GET", "DELETE", "POST", "OPTIONS", "PUT", "PATCH", "HEAD"):
            exchange = _Exchange(flow, word, "raw", number)
            if rest:
                exchange.url = _url(rest)
        else:
            raise ScriptError(f"line {number}: {word!r} does not begin an exchange")
        self.exchanges.append(exchange)
        self.labels[flow] = exchange
        self.current = exchange
        if exchange.era != "raw":
            exchange.headers = [
                ("Content-Type", "application/json"),
                ("Accept", "application/json, text/event-stream"),
            ]

    def new_flow(self) -> str:
        self.flows += 1
        return f"flow-{self.flows}"

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    # The client's side

    def modify(self, line: str, number: int) -> None:
        if self.process is not None:
            self.process.line(line, number)
            return
        exchange = self.current
        if exchange is None:
            raise ScriptError(f"line {number}: nothing to say this about")
        if line.startswith("->"):
            if not exchange.began:
                self.request(exchange)
            self.respond(exchange, line[2:].strip(), number)
            return
        if exchange.began:
            raise ScriptError(f"line {number}: the request was sent already")
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        # Changes to the finished request wait until all lines are read.
        self.pending.append(f"{number} {word} {rest}")

    def _complete(self, exchange: _Exchange) -> None:
        """Fill in what the era wants, then apply the written changes."""
        changes = [entry.split(" ", 2) for entry in self.pending]
        self.pending = []
        early = {
            "client",
            "capabilities",
            "version",
            "params",
            "id",
            "no-id",
            "path",
            "meta",
            "-meta",
            "label",
            "after",
            "authority",
            "reverse",
            "fault",
        }
        version, capabilities, envelope, sets_params = rev.MODERN_FROM, {}, True, None
        session_id: str | None = None
        for number, word, rest in changes:
            line = int(number)
            if word == "client":
                exchange.client = rest
            elif word == "capabilities":
                capabilities = _json(rest, line)
            elif word == "version":
                version = rest
            elif word == "params":
                sets_params, envelope = (rest,), False
            elif word == "session":
                session_id = rest
            elif word == "path":
                exchange.url = _url(rest)
            elif word == "after":
                exchange.after = float(rest)
            elif word == "authority":
                exchange.authority = rest
            elif word == "reverse":
                exchange.reverse = True
            elif word == "fault":
                exchange.fault = rest
            elif word == "label":
                self.labels[rest] = exchange
        chosen = any(word == "version" for _, word, _ in changes)
        if exchange.body is not None:
            if sets_params is not None:
                exchange.body["params"] = _json(sets_params[0], 0)
            if exchange.era == "modern":
                self._modern(exchange, version, capabilities, envelope)
            else:
                self._legacy(exchange, version if chosen else None, session_id)
        if exchange.client:
            exchange.set_header("Authorization", f"Bearer {exchange.client}")
        for number, word, rest in changes:
            if word not in early - {"id", "no-id", "meta", "-meta"}:
                self._change(exchange, word, rest, int(number))

    def _modern(self, exchange: _Exchange, version: str, capabilities: Any, envelope: bool) -> None:
        body, method = exchange.body, exchange.method
        assert body is not None
        if envelope and "id" in body:
            params = body.setdefault("params", {})
            meta = params.setdefault("_meta", {})
            meta.setdefault(rev.PROTOCOL_VERSION, version)
            meta.setdefault(rev.CLIENT_INFO, {"name": exchange.client or "example-client", "version": "1.0"})
            meta.setdefault(rev.CLIENT_CAPABILITIES, capabilities)
        exchange.set_header("MCP-Protocol-Version", version)
        if "id" in body:
            exchange.set_header("Mcp-Method", str(method))
            params = body.get("params")
            source = NAME_SOURCE.get(str(method))
            value = params.get(source) if source and isinstance(params, dict) else None
            if isinstance(value, str):
                exchange.set_header("Mcp-Name", encode(value))

    def _legacy(self, exchange: _Exchange, version: str | None, session_id: str | None) -> None:
        if exchange.method == "initialize":
            params = exchange.body.setdefault("params", {}) if exchange.body is not None else {}
            if isinstance(params, dict):
                params.setdefault("protocolVersion", version or "2025-11-25")
                params.setdefault("capabilities", {})
                params.setdefault("clientInfo", {"name": exchange.client or "example-client", "version": "1.0"})
            return
        known = self.sessions.get((exchange.url, exchange.client))
        if known is not None and session_id is None:
            exchange.set_header("Mcp-Session-Id", known[0])
        if known is not None or version is not None:
            exchange.set_header("MCP-Protocol-Version", version or (known[1] if known else "2025-11-25"))

    def _change(self, exchange: _Exchange, word: str, rest: str, number: int) -> None:
        body = exchange.body
        match word:
            case "header" | "+header":
                name, _, value = rest.partition(":")
                exchange.set_header(name.strip(), value[1:] if value.startswith(" ") else value, add=word[0] == "+")
            case "-header":
                exchange.set_header(rest, None)
            case "session":
                exchange.set_header("Mcp-Session-Id", rest)
            case "meta" | "-meta":
                key, _, text = rest.partition(" ")
                params = body.setdefault("params", {}) if body is not None else {}
                meta = params.setdefault("_meta", {})
                if word == "meta":
                    meta[key] = _json(text, number)
                else:
                    meta.pop(key, None)
            case "id":
                if body is not None:
                    body["id"] = _json(rest, number)
            case "no-id":
                if body is not None:
                    body.pop("id", None)
            case "answers":
                if body is not None:
                    body.setdefault("params", {}).update(_answers(rest))
            case "body":
                exchange.raw_body = _bytes(rest)
            case "body-lost":
                exchange.body_lost = True
            case _:
                raise ScriptError(f"line {number}: {word!r} is not a word of the notation")

    def request(self, exchange: _Exchange) -> None:
        self._complete(exchange)
        exchange.began = True
        if exchange.body is not None:
            exchange.answer_id = exchange.body.get("id")
        data: bytes | None = exchange.raw_body
        if data is None:
            data = json.dumps(exchange.body, ensure_ascii=False).encode() if exchange.body is not None else b""
        self.now += exchange.after
        parts = urlsplit(exchange.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.events.append(
            RequestSeen(
                exchange.flow,
                self.now,
                self.now - 0.001,
                exchange.http_method,
                parts.scheme,
                parts.hostname or "",
                port,
                target,
                Fields([(n.encode("latin-1"), _latin(v)) for n, v in exchange.headers]),
                None if exchange.body_lost else data,
                f"connection-{exchange.client or 'a'}",
                exchange.authority or parts.netloc,
                exchange.reverse,
            )
        )
        if exchange.fault:
            kind, _, argument = exchange.fault.partition(":")
            self.events.append(
                Faulted(exchange.flow, self.now, kind, argument, state="state-of-the-fault" if kind == "ask" else "")
            )
            if kind in ("error", "status", "ask", "drop"):
                self.events.append(AnsweredHere(exchange.flow, self.now, "fault"))

    # The server's side

    def respond(self, exchange: _Exchange, line: str, number: int) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word:
            case "result" | "raw-result":
                result = _json(rest or "{}", number)
                if word == "result" and exchange.era == "modern":
                    result = _filled(result, exchange.method)
                self._answer(exchange, {"result": _pruned(result)})
            case "tool":
                exchange.tools.append(_tool(rest, number))
                result = {"tools": exchange.tools}
                if exchange.era == "modern":
                    result = _filled(result, exchange.method)
                self._answer(exchange, {"result": result})
            case "needs":
                self._answer(exchange, {"result": _filled(_needs(rest), exchange.method)})
            case "error":
                code_text, _, more = rest.partition(" ")
                code = _json(code_text, number)
                error = {"code": code, "message": f"error {code}"} | (_json(more, number) if more.strip() else {})
                if not exchange.streaming and exchange.status is None:
                    exchange.status = _status(code, exchange.era)
                self._answer(exchange, {"error": _pruned(error)})
            case "status":
                exchange.status = int(rest)
            case "header":
                name, _, value = rest.partition(":")
                exchange.response.append((name.strip(), value.strip()))
            case "-header":
                exchange.removed.append(rest.lower())
            case "answer-id":
                exchange.answer_id = _json(rest, number)
            case "no-answer-id":
                exchange.answer_id = _ABSENT
            case "sse":
                exchange.streaming = True
                sse = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
                sse += [("X-Accel-Buffering", "no")] if exchange.era == "modern" else []
                self._head(exchange, exchange.status or 200, sse)
            case "notify":
                method, _, params = rest.partition(" ")
                message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
                if params.strip():
                    message["params"] = _json(params, number)
                self._event(exchange, json.dumps(message, ensure_ascii=False))
            case "ack" | "publish":
                method, params = "notifications/subscriptions/acknowledged", f'{{"notifications": {rest or "{}"}}}'
                if word == "publish":
                    method, _, params = rest.partition(" ")
                message = {"jsonrpc": "2.0", "method": method, "params": _json(params.strip() or "{}", number)}
                message["params"].setdefault("_meta", {})[rev.SUBSCRIPTION_ID] = exchange.answer_id
                self._event(exchange, json.dumps(message, ensure_ascii=False))
            case "ask":
                id_text, method, params = [*rest.split(" ", 2), "", ""][:3]
                message = {"jsonrpc": "2.0", "id": _json(id_text, number), "method": method}
                if params.strip():
                    message["params"] = _json(params, number)
                self._event(exchange, json.dumps(message, ensure_ascii=False))
            case "event":
                self._event(exchange, rest)
            case "sse-raw":
                self._data(exchange, _bytes(rest))
            case "after":
                self.now += float(rest)
            case "closed":
                if rest not in ("client", "server", "unknown"):
                    raise ScriptError(f"line {number}: closed by whom? client, server or unknown, not {rest!r}")
                exchange.ended_by = rest  # type: ignore[assignment]
                exchange.answered = True
            case "open":
                exchange.leave_open = True
            case _ if word.isdigit():
                content_type, _, text = rest.partition(" ")
                exchange.status = int(word)
                self.body = (exchange.status, content_type or None, _bytes(text.strip()))
                exchange.answered = True
            case _:
                raise ScriptError(f"line {number}: '-> {word}' is not a word of the notation")

    def _answer(self, exchange: _Exchange, member: dict[str, Any]) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0"}
        if exchange.answer_id is not _ABSENT:
            message["id"] = exchange.answer_id
        message |= member
        if exchange.method == "initialize" and exchange.era == "legacy" and "result" in member:
            self._open_session(exchange, member["result"])
        text = json.dumps(message, ensure_ascii=False)
        if exchange.streaming:
            self._event(exchange, text)
        else:
            self.body = (exchange.status or 200, "application/json", text.encode())
            exchange.answered = True

    def _open_session(self, exchange: _Exchange, result: Any) -> None:
        version = result.get("protocolVersion", "2025-11-25") if isinstance(result, dict) else "2025-11-25"
        if "mcp-session-id" in exchange.removed:
            return
        given = next((v for n, v in exchange.response if n.lower() == "mcp-session-id"), None)
        session_id = given or f"session-{len(self.sessions) + 1}-of-the-example"
        if given is None and not exchange.streaming:
            exchange.response.append(("Mcp-Session-Id", session_id))
        self.sessions[exchange.url, exchange.client] = (session_id, str(version))

    def _head(self, exchange: _Exchange, status: int, headers: list[tuple[str, str]]) -> None:
        self.now += 0.01
        named = {n.lower() for n, _ in exchange.response}
        if exchange.streaming and exchange.method == "initialize" and "mcp-session-id" not in named | set(exchange.removed):
            exchange.response.append(("Mcp-Session-Id", f"session-{len(self.sessions) + 1}-of-the-example"))
            named.add("mcp-session-id")
        fields = [(n, v) for n, v in headers if n.lower() not in named] + exchange.response
        fields = [(n, v) for n, v in fields if n.lower() not in exchange.removed]
        self.events.append(ResponseStarted(exchange.flow, self.now, status, Fields([(n.encode(), _latin(v)) for n, v in fields])))

    def _event(self, exchange: _Exchange, data: str) -> None:
        if not exchange.streaming:
            raise ScriptError(f"the exchange of line {exchange.line} has no event stream: write '-> sse' first")
        lines = "".join(f"data: {part}\n" for part in data.split("\n"))
        self._data(exchange, f"event: message\n{lines}\n".encode())

    def _data(self, exchange: _Exchange, data: bytes) -> None:
        self.now += 0.01
        self.events.append(StreamData(exchange.flow, self.now, data))

    def close(self) -> None:
        """The current exchange is written down; end it unless it is left open."""
        exchange, self.current = self.current, None
        if exchange is None:
            return
        if not exchange.began:
            self.request(exchange)
        if exchange.leave_open:
            exchange.leave_open = False
            if self.body is not None:
                status, content_type, early = self.body
                if early:
                    raise ScriptError(f"the exchange of line {exchange.line} is open and no stream: its body is not there yet")
                self.body = None
                self._head(exchange, exchange.status or status, [("Content-Type", content_type)] if content_type else [])
            return
        if exchange.over or not (exchange.answered or exchange.streaming):
            return
        exchange.over = True
        content = None
        if self.body is not None:
            status, content_type, content = self.body
            self.body = None
            self._head(exchange, exchange.status or status, [("Content-Type", content_type)] if content_type else [])
        self.now += 0.01
        streamed = exchange.streaming
        self.events.append(ExchangeEnded(exchange.flow, self.now, None if streamed else content, streamed, exchange.ended_by))


class _Process:
    """A stdio server's process, by the same mapping of lines to exchanges as live traffic."""

    def __init__(self, reader: _Reader, name: str) -> None:
        reader.processes += 1
        self._reader = reader
        self._number = reader.processes
        self._flows: dict[int, str] = {}
        self._streams: set[int] = set()
        self._asked: dict[str, str] = {}  # id as JSON -> method
        self._newest: Any = None
        reader.now += 1.0
        hello = {"hello": 1, "name": name, "pid": 1, "command": [name], "t": reader.now}
        self._session = Session(hello)
        self._follow(self._session.begin())

    def line(self, text: str, number: int) -> None:
        word, _, rest = text.partition(" ")
        rest = rest.strip() if word not in (">", "<", "<|") else rest
        match word:
            case ">":
                self._client(_bytes(rest))
            case "<" | "<|":
                self._frame({"d": "s", "line": _escaped(rest), "open": word == "<|"})
            case "modern" | "modern-notify" | "legacy" | "legacy-notify" | "reply":
                self._client(json.dumps(self._asks(word, rest, number), ensure_ascii=False).encode())
            case "->":
                self._says(*rest.partition(" ")[::2], number)
            case "errors":
                self._frame({"d": "e", "line": _escaped(rest)})
            case "after":
                self._reader.now += float(rest)
            case "eof":
                self._frame({"eof": "c"})
            case "exit":
                self._frame({"exit": int(rest)})
            case _:
                raise ScriptError(f"line {number}: {word!r} is not a word of the notation of stdio")

    def _asks(self, word: str, rest: str, number: int) -> dict[str, Any]:
        method, _, params = rest.partition(" ")
        if word == "reply":
            return {"jsonrpc": "2.0", "id": _json(method, number), "result": _json(params or "{}", number)}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        given = _json(params, number) if params.strip() else {}
        if not word.endswith("notify"):
            message["id"] = self._newest = self._reader._id()
            self._asked[json.dumps(self._newest)] = method
        if word == "modern":
            meta = given.setdefault("_meta", {})
            meta.setdefault(rev.PROTOCOL_VERSION, rev.MODERN_FROM)
            meta.setdefault(rev.CLIENT_INFO, {"name": "example-client", "version": "1.0"})
            meta.setdefault(rev.CLIENT_CAPABILITIES, {})
        elif method == "initialize":
            info = {"name": "example-client", "version": "1.0"}
            given = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info} | given
        if given:
            message["params"] = given
        return message

    def _says(self, word: str, rest: str, number: int) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0"}
        method, _, text = rest.partition(" ")
        match word:
            case "to":
                self._newest = _json(rest, number)
                return
            case "result":
                asked = self._asked.get(json.dumps(self._newest), "")
                result = _json(rest or "{}", number)
                filled = _filled(result, asked) if "initialize" not in asked and self._is_modern(asked) else result
                message |= {"id": self._newest, "result": _pruned(filled)}
            case "error":
                more = _json(text, number) if text.strip() else {}
                message |= {"id": self._newest, "error": {"code": _json(method, number), "message": "refused"} | more}
            case "notify":
                message |= {"method": method} | ({"params": _json(text, number)} if text.strip() else {})
            case "ask":
                id_text, method, text = [*rest.split(" ", 2), "", ""][:3]
                message |= {"id": _json(id_text, number), "method": method}
                message |= {"params": _json(text, number)} if text.strip() else {}
            case "ack" | "publish":
                if word == "ack":
                    method, text = "notifications/subscriptions/acknowledged", f'{{"notifications": {rest or "{}"}}}'
                params = _json(text.strip() or "{}", number)
                params.setdefault("_meta", {})[rev.SUBSCRIPTION_ID] = self._newest
                message |= {"method": method, "params": params}
            case _:
                raise ScriptError(f"line {number}: '-> {word}' is not a word of the notation of stdio")
        self._frame({"d": "s", "line": json.dumps(message, ensure_ascii=False)})

    def _is_modern(self, method: str) -> bool:
        return not any(asked == "initialize" for asked in self._asked.values()) and bool(method)

    def _client(self, line: bytes) -> None:
        self._reader.now += 1.0
        self._frame({"d": "c", "line": line.decode("utf-8", "surrogateescape")})

    def _frame(self, frame: dict[str, Any]) -> None:
        self._reader.now += 0.01
        self._follow(self._session.take({**frame, "t": self._reader.now}))

    def _follow(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._reader.events.append(self._event(step))

    def _event(self, step: Step) -> Event:
        of_process = step.key == PROCESS
        if step.what == "open":
            flow = self._flows[step.key] = self._reader.new_flow()
            content = [] if step.http_method == "GET" else [(b"Content-Type", b"application/json")]
            return RequestSeen(
                flow,
                step.at,
                step.at,
                step.http_method,
                "stdio",
                self._session.name,
                0,
                STDERR if of_process else "/",
                Fields(content),
                step.data,
                f"process-{self._number}",
                command=self._session.name if of_process else None,
            )
        flow = self._flows[step.key]
        if step.what == "head":
            kind = b"text/event-stream" if step.sse else b"text/plain" if of_process else b"application/json"
            if step.sse:
                self._streams.add(step.key)
            return ResponseStarted(flow, step.at, step.status, Fields([(b"Content-Type", kind)] if step.status != 202 else []))
        if step.what == "event":
            return StreamData(flow, step.at, step.data)
        streamed = step.key in self._streams
        ended = ProcessEnd(self._session.status, self._session.input_ended) if of_process else None
        body = None if streamed or step.what == "lost" else step.data
        by: EndedBy = "complete" if step.what == "end" else "client" if step.why == CANCELLED else "server"
        return ExchangeEnded(flow, step.at, body, streamed, by, step.why or None, process=ended)


def _escaped(text: str) -> str:
    return _bytes(text).decode("utf-8", "surrogateescape")


_ABSENT = object()


def read_script(text: str) -> list[Event]:
    """The events of a script in this notation. Flows are named flow-1, flow-2 ... in order. Raises ScriptError."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t":
            reader.modify(line.strip(), number)
        else:
            reader.begin(line.rstrip(), number)
    reader.close()
    return reader.events


def _json(text: str, number: int) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ScriptError(f"line {number}: not JSON: {text[:60]!r} ({error})") from error


def _url(text: str) -> str:
    return text if re.match(r"[a-z]+://", text) else "http://server.example" + (text if text.startswith("/") else f"/{text}")


def _latin(value: str) -> bytes:
    """Header text as bytes; \\xNN stands for a byte, other characters beyond Latin-1 go out as UTF-8."""
    return _bytes(value)


def _bytes(text: str) -> bytes:
    def one(match: re.Match[str]) -> str:
        escape = match.group(0)
        return {"\\n": "\n", "\\r": "\r", "\\t": "\t", "\\\\": "\\"}.get(escape) or chr(0xDC00 + int(escape[2:], 16))

    marked = re.sub(r"\\(?:[nrt\\]|x[0-9a-fA-F]{2})", one, text)
    out = bytearray()
    for character in marked:
        code = ord(character)
        if 0xDC00 <= code <= 0xDCFF:
            out.append(code - 0xDC00)
        else:
            out += character.encode()
    return bytes(out)


def _tool(text: str, number: int) -> dict[str, Any]:
    name, _, rest = text.partition(" ")
    tool: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}}
    decoder = json.JSONDecoder()
    values = []
    try:
        while rest := rest.strip():
            value, end = decoder.raw_decode(rest)
            values.append(value)
            rest = rest[end:]
    except ValueError as error:
        raise ScriptError(f"line {number}: not JSON: {rest[:60]!r} ({error})") from error
    if values:
        tool["inputSchema"]["properties"] = values[0]
    for members in values[1:]:
        schema = tool["inputSchema"] | members.get("inputSchema", {})
        tool |= members | {"inputSchema": schema}
    return tool


def _filled(result: Any, method: str | None) -> Any:
    if not isinstance(result, dict):
        return result
    filled: dict[str, Any] = {"resultType": "complete"} | result
    if "_meta" not in filled:
        filled["_meta"] = {rev.SERVER_INFO: SERVER}
    elif isinstance(filled["_meta"], dict):
        filled["_meta"] = {rev.SERVER_INFO: SERVER} | filled["_meta"]
    if method in CACHEABLE and filled["resultType"] == "complete":
        filled = {"ttlMs": 0, "cacheScope": "private"} | filled
    return filled


def _needs(text: str) -> dict[str, Any]:
    state, *keys = text.split()
    form = {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
    result: dict[str, Any] = {"resultType": "input_required"}
    if keys:
        result["inputRequests"] = {key: {"method": "elicitation/create", "params": form} for key in keys}
    return result if state == "-" else result | {"requestState": state}


def _answers(text: str) -> dict[str, Any]:
    state, *keys = text.split()
    params: dict[str, Any] = {} if state == "-" else {"requestState": state}
    if keys:
        params["inputResponses"] = {key: {"action": "accept", "content": {}} for key in keys}
    return params


def _pruned(value: Any) -> Any:
    return {k: v for k, v in value.items() if v != "$none"} if isinstance(value, dict) else value


def _status(code: Any, era: str) -> int:
    if era != "modern":
        return 200
    if code in (rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION):
        return 400
    return 404 if code == rev.METHOD_NOT_FOUND else 200
