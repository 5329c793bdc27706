"""Exchanges, conversations, endpoints and findings as the JSON objects of the audit contract (docs/architecture.md).

Every field of the contract is always there; null where unknown. Text from the wire is made encodable and cut at `LONGEST`, so
that a report of a hostile recording can be read by any JSON parser.
"""

import json
import math
from collections.abc import Iterable
from typing import Any

from mcp_wiretap.report import change
from mcp_wiretap.trace.finding import Finding, Unchecked
from mcp_wiretap.trace.lists.context_cost import cost_of
from mcp_wiretap.trace.model import BatchItem, Conversation, Endpoint, Exchange, HeaderCheck
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.secret import concealed, escaped_json, safe

LONGEST = 2_000  # characters of one text from the wire: names and URIs fit, a 64 KB header does not
TOOLS = 500  # names of tools listed for one endpoint

_json = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "), check_circular=False).encode


def encode(value: Any) -> str:
    """One line of JSON, whatever a reader takes for the end of a line or a terminal for a command."""
    return escaped_json(_json(value))


def text(value: str) -> str:
    """Text from the wire, its secrets masked, encodable as UTF-8 and of bounded length."""
    return own(concealed(value))


def own(value: str) -> str:
    """Text that holds no secret: ids of ours, what rules say (masked already)."""
    if len(value) > LONGEST:
        value = f"{value[:LONGEST]}… ({len(value)} characters)"
    return safe(value)


def optional(value: Any) -> str | None:
    return text(value) if isinstance(value, str) else None


def moment(value: float | None) -> float | None:
    """A time in Unix seconds with microseconds, as mitmproxy keeps it; None for what is no time."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, 6)


def flow_line(exchange: Exchange, input_: str, index: int | None) -> str:
    """One object of `flows`."""
    mcp = exchange.kind == "mcp"
    conversation = exchange.conversation
    head = encode(
        {
            "id": own(exchange.flow),
            "input": input_,
            "index": index,
            "kind": exchange.kind,
            "endpoint": _endpoint_of(exchange),
            "era": exchange.shown_era if mcp else None,
            "revision": optional(exchange.revision) if mcp else None,
            "http_method": text(exchange.http_method),
            "status": exchange.status,
            "started": moment(exchange.started),
            "ended": moment(exchange.ended),
            "method": optional(exchange.method),
            "name": optional(exchange.name),
        }
    )
    batch = exchange.batch_items
    tail = encode(
        {
            "outcome": exchange.outcome,
            "error_code": exchange.error_code,
            "error_message": optional(exchange.error_message),
            "conversation": own(conversation.id) if conversation is not None else None,
            "round": exchange.round,
            "headers": [_header(check) for check in exchange.header_checks],
            "changed": change.record(exchange.change),
            "transport": exchange.transport,
            "process": _process(exchange),
        }
    )
    messages = "null" if batch is None else "[" + ", ".join(map(_batch_item, batch)) + "]"
    return f'{head[:-1]}, "jsonrpc_id": {_id(exchange.jsonrpc_id)}, "messages": {messages}, {tail[1:]}'


def _process(exchange: Exchange) -> dict[str, Any] | None:
    """What a stdio server's process was started by and how it ended, on the flow that stands for it."""
    process = exchange.process
    if process is None or exchange.kind != "process":
        return None
    return {"command": text(process.command), "exit": process.status, "stderr_bytes": process.stderr_size}


def _endpoint_of(exchange: Exchange) -> str | None:
    """The MCP endpoint of the flow. A discovery or token request goes elsewhere: its endpoint is the one that it is for."""
    return text(exchange.endpoint.url) if exchange.kind != "other" or exchange.endpoint.proven else None


def _header(check: HeaderCheck) -> dict[str, str | None]:
    return {
        "header": own(check.header),
        "raw": optional(check.raw),
        "decoded": optional(check.decoded),
        "body": optional(check.body),
        "verdict": check.verdict,
    }


def _batch_item(item: BatchItem) -> str:
    head = encode({"kind": item.kind, "method": optional(item.method), "outcome": item.outcome, "error_code": item.error_code})
    return f'{head[:-1]}, "jsonrpc_id": {_id(item.id)}}}'


def _id(value: Any) -> str:
    """A JSON-RPC id with the JSON type that it had; what is too long for most readers of JSON becomes a cut string."""
    if isinstance(value, str):
        return encode(text(value))
    written = jsonrpc.dumps(value)
    return written if len(written) <= LONGEST else encode(text(written))


def finding_line(finding: Finding, input_: str) -> str:
    """One object of `findings`."""
    return encode(
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "party": finding.party,
            "message": own(finding.message),
            "input": input_,
            "flow": own(finding.flow),
            "related": [own(flow) for flow in finding.related],
            "evidence": [
                {"where": own(e.where), "value": own(e.value), "expected": None if e.expected is None else own(e.expected)}
                for e in finding.evidence
            ],
            "spec": finding.spec,
        }
    )


def conversation_line(conversation: Conversation, input_: str) -> str:
    """One object of `conversations`."""
    return encode(
        {
            "id": own(conversation.id),
            "input": input_,
            "endpoint": text(conversation.endpoint.url),
            "method": optional(conversation.method),
            "name": optional(conversation.name),
            "status": conversation.status,
            "rounds": [own(flow) for flow in conversation.rounds],
            "started": moment(conversation.started),
            "ended": moment(conversation.ended),
            "client_ms": round(conversation.client_ms, 3),
            "links": [
                {"from": own(link.earlier), "to": own(link.later), "by": link.by, "confidence": link.confidence}
                for link in conversation.links
            ],
        }
    )


def server_of(endpoint: Endpoint) -> dict[str, str | None] | None:
    """What the server calls itself."""
    info = endpoint.server_info
    if info is None:
        return None
    return {"name": optional(info.get("name")), "version": optional(info.get("version"))}


def endpoint_line(endpoint: Endpoint, input_: str) -> str:
    """One object of `endpoints`."""
    tools: Iterable[str] = list(endpoint.tools)[:TOOLS]
    return encode(
        {
            "url": text(endpoint.url),
            "transport": endpoint.transport,
            "input": input_,
            "era": endpoint.era,
            "revisions": [text(revision) for revision in endpoint.revisions],
            "server": server_of(endpoint),
            "tools": [text(tool) for tool in tools],
            "context": _context(endpoint),
        }
    )


def _context(endpoint: Endpoint) -> dict[str, Any]:
    """What a model is given of the server, in bytes."""
    found = cost_of(endpoint)
    return {
        "definitions": sum(tool.definition for tool in found),
        "results": sum(tool.results.size for tool in found),
        "tools": [
            {
                "name": text(tool.name),
                "definition": tool.definition,
                "calls": tool.results.calls,
                "results": tool.results.size,
                "largest": tool.results.largest,
            }
            for tool in found[:TOOLS]
        ],
    }


def unchecked_line(flow: str, unchecked: Unchecked) -> str:
    """One object of `unchecked`."""
    return encode({"flow": own(flow), "what": text(unchecked.what), "why": text(unchecked.why)})


def fault_line(flow: str | None, where: str, error: str) -> str:
    """One object of `faults`: where in our own code something went wrong."""
    return encode({"flow": optional(flow), "where": own(where), "error": text(error)})
