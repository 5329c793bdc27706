"""HTTP Archive 1.2, true to the wire: bodies as they were kept, event streams as their text, and `_mcp` with what was found.

http://www.softwareishard.com/blog/har-12-spec/; names of our own begin with an underscore, as it says.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mcp_wiretap import __version__
from mcp_wiretap.export.account import Account
from mcp_wiretap.report.record import moment, optional, text
from mcp_wiretap.wire.coding import decode_body
from mcp_wiretap.wire.secret import safe

type State = dict[str, Any]

_MOST_DECODED = 256 << 20


def write(states: Iterable[tuple[State, Account | None]]) -> Iterator[str]:
    """The pieces of the archive, one an entry, so that it is never whole in memory."""
    head = {"version": "1.2", "creator": {"name": "mcp-wiretap", "version": __version__}, "pages": []}
    yield '{"log": ' + json.dumps(head)[:-1] + ', "entries": ['
    separator = "\n"
    for state, account in states:
        yield separator + json.dumps(entry(state, account), ensure_ascii=True)
        separator = ",\n"
    yield "\n]}}\n"


def entry(state: State, account: Account | None) -> dict[str, Any]:
    """One HTTP flow."""
    request, response, error = state["request"], state["response"], state["error"]
    timings = _timings(state)
    made: dict[str, Any] = {
        "startedDateTime": _iso(request["timestamp_start"]),
        "time": round(sum(value for value in timings.values() if value >= 0), 3),
        "request": _request(state, request),
        "response": _response(response) if response is not None else _no_response(error),
        "cache": {},
        "timings": timings,
    }
    peer = (state.get("server_conn") or {}).get("peername")
    if peer:
        made["serverIPAddress"] = str(peer[0])
    if (connection := (state.get("client_conn") or {}).get("id")) is not None:
        made["connection"] = str(connection)
    if account is not None and account.kind != "other":
        made["_mcp"] = mcp(account)
        if isinstance(note := state["metadata"].get("mcp.changed"), dict):
            made["_mcp"]["changed"] = _changed(note)
    if state.get("comment"):
        made["comment"] = safe(state["comment"])
    return made


def mcp(account: Account) -> dict[str, Any]:
    """What was found of an exchange, in the words of `audit --format json`."""
    own = account.kind == "mcp"
    return {
        "flow": text(account.flow),
        "kind": account.kind,
        "endpoint": text(account.endpoint),
        "era": account.era if own else None,
        "revision": optional(account.revision) if own else None,
        "method": optional(account.method),
        "name": optional(account.name),
        "outcome": account.outcome,
        "error_code": account.error_code,
        "error_message": optional(account.error_message),
        "conversation": optional(account.conversation),
        "round": account.round,
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "party": finding.party,
                "message": text(finding.message),
                "evidence": [
                    {"where": text(e.where), "value": text(e.value), "expected": optional(e.expected)} for e in finding.evidence
                ],
                "spec": finding.spec,
            }
            for finding in account.findings
        ],
        "events": [moment(at) for at in account.events] if account.timed else None,
        "ended_by": account.ended_by,
        "failure": optional(account.failure),
        "dropped_bytes": account.dropped,
    }


def _changed(note: dict[str, Any]) -> dict[str, Any]:
    """What was changed at the proxy: the other version of each message, its bytes as text or as Base64."""
    return {
        name: {inner: _plainly(value) for inner, value in part.items()} if isinstance(part, dict) else part
        for name, part in note.items()
        if isinstance(part, dict | str | bool | None)
    }


def _plainly(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, list | tuple):
        return [_plainly(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else None


def _timings(state: State) -> dict[str, float]:
    request, response, error = state["request"], state["response"], state["error"]
    started = float(request["timestamp_start"])
    sent = request["timestamp_end"]
    sent = float(sent) if sent is not None else started
    made = {"blocked": -1.0, "dns": -1.0, "connect": -1.0, "ssl": -1.0, "send": _ms(started, sent), "wait": 0.0, "receive": 0.0}
    server = state.get("server_conn") or {}
    begun, connected = server.get("timestamp_start"), server.get("timestamp_tls_setup") or server.get("timestamp_tcp_setup")
    if begun is not None and connected is not None and begun >= started and connected >= begun:
        made["connect"] = _ms(begun, connected)  # TLS included, as in HAR; a part of `wait` otherwise
    if response is None:
        ended = error["timestamp"] if error is not None else sent
        made["wait"] = max(_ms(sent, ended) - max(made["connect"], 0.0), 0.0)
        return made
    first = response["timestamp_start"] or sent
    made["wait"] = round(max(_ms(sent, first) - max(made["connect"], 0.0), 0.0), 3)
    made["receive"] = _ms(first, response["timestamp_end"] or (error["timestamp"] if error is not None else first))
    return made


def _ms(start: float, end: float) -> float:
    return round(max((float(end) - float(start)) * 1000, 0.0), 3)


def _iso(at: float | None) -> str:
    return datetime.fromtimestamp(at or 0.0, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _request(state: State, request: State) -> dict[str, Any]:
    fields = _fields(request)
    url = _url(request)
    content = request["content"]
    made: dict[str, Any] = {
        "method": _text(request["method"]),
        "url": url,
        "httpVersion": _text(request["http_version"]),
        "cookies": _cookies(v for n, v in fields if n.lower() == "cookie"),
        "headers": [{"name": name, "value": value} for name, value in fields],
        "queryString": [{"name": safe(n), "value": safe(v)} for n, v in _pairs(urlsplit(url).query)],
        "headersSize": -1,
        "bodySize": len(content) if content is not None else -1,
    }
    if content:
        plain, problem = _plain(content, fields)
        posted: dict[str, Any] = {"mimeType": _first(fields, "content-type"), "params": []}
        try:
            posted["text"] = plain.decode()
        except UnicodeDecodeError:
            posted |= {"text": base64.b64encode(plain).decode(), "_encoding": "base64"}
        if problem is not None:
            posted["comment"] = safe(f"its content coding could not be undone: {problem}")
        made["postData"] = posted
    elif content is None:
        made["comment"] = "the body was not stored"
    return made


def _response(response: State) -> dict[str, Any]:
    fields = _fields(response)
    content = response["content"]
    body: dict[str, Any] = {"size": 0, "mimeType": _first(fields, "content-type")}
    if content is None:
        body |= {"size": -1, "comment": "the body was not stored"}
    else:
        plain, problem = _plain(content, fields)
        body["size"] = len(plain)
        if _first(fields, "content-encoding"):
            body["compression"] = len(plain) - len(content)
        try:
            body["text"] = plain.decode()
        except UnicodeDecodeError:
            body |= {"text": base64.b64encode(plain).decode(), "encoding": "base64"}
        if problem is not None:
            body["comment"] = safe(f"its content coding could not be undone: {problem}")
    return {
        "status": response["status_code"],
        "statusText": _text(response["reason"]),
        "httpVersion": _text(response["http_version"]),
        "cookies": _cookies(v for n, v in fields if n.lower() == "set-cookie"),
        "headers": [{"name": name, "value": value} for name, value in fields],
        "content": body,
        "redirectURL": _first(fields, "location"),
        "headersSize": -1,
        "bodySize": len(content) if content is not None else -1,
    }


def _no_response(error: State | None) -> dict[str, Any]:
    said = safe(error["msg"]) if error is not None else "no response was recorded"
    return {
        "status": 0,
        "statusText": "",
        "httpVersion": "",
        "cookies": [],
        "headers": [],
        "content": {"size": 0, "mimeType": ""},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "comment": said,
        "_error": said,
    }


def _plain(content: bytes, fields: list[tuple[str, str]]) -> tuple[bytes, str | None]:
    """The body with its content coding undone, as HAR wants it; where that is impossible, as it came."""
    coding = ", ".join(value for name, value in fields if name.lower() == "content-encoding")
    if not coding:
        return content, None
    plain, problem = decode_body(content, coding, _MOST_DECODED)
    return (plain, problem) if plain or problem is None else (content, problem)


def _fields(message: State) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in message["headers"]]


def _first(fields: list[tuple[str, str]], name: str) -> str:
    return next((value for n, value in fields if n.lower() == name), "")


def _text(value: Any) -> str:
    """Bytes of a head as text: UTF-8 where they are that, else Latin-1."""
    if isinstance(value, str):
        return safe(value)
    raw = bytes(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _url(request: State) -> str:
    scheme, host, port = _text(request["scheme"]), _text(request["host"]), request["port"]
    shown = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{shown}{'' if port == default else f':{port}'}{_text(request['path'])}"


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        return []


def _cookies(values: Iterable[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for value in values:
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load(value)
        except Exception:  # a cookie that this parser does not take is in `headers` all the same
            continue
        found += [{"name": morsel.key, "value": morsel.value} for morsel in jar.values()]
    return found
