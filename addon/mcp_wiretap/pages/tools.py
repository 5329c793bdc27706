"""The page Tools, resources and prompts: as each server listed them, what is mirrored, excluded, changed, and how calls went."""

from collections.abc import Mapping
from datetime import tzinfo
from itertools import pairwise
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import EndpointTally, Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import clock, duration, host, server_name, server_version, shown, size
from mcp_wiretap.trace.lists.catalog import LISTED, Listing
from mcp_wiretap.trace.lists.context_cost import cost_of
from mcp_wiretap.trace.lists.tools import Tools
from mcp_wiretap.trace.model import ToolDefinition
from mcp_wiretap.trace.summary.call_counts import CALLS, Calls
from mcp_wiretap.wire.values import is_number

_MOST_TTL = 10**15  # milliseconds
KINDS = ("tools", "resources", "prompts")
ROWS = 300  # tools of one endpoint that are listed
ARGUMENTS = 12
CHANGES = 12
_METHOD = {"tools": "tools/call", "resources": "resources/read", "resourceTemplates": "resources/read", "prompts": "prompts/get"}


def kind_of(query: Mapping[str, str]) -> str:
    kind = query.get("kind", "tools")
    return kind if kind in KINDS else "tools"


def head(traces: Traces, query: Mapping[str, str]) -> dict[str, Any]:
    counts = {"tools": 0, "resources": 0, "prompts": 0, "excluded": 0}
    for tally in _tallies(traces):
        endpoint = tally.endpoint
        counts["tools"] += len(endpoint.tools)
        counts["excluded"] += sum(1 for d in endpoint.tools.values() if isinstance(d, ToolDefinition) and d.excluded)
        listed: dict[str, Listing] = endpoint.facts.get(LISTED, {})
        for name, listing in listed.items():
            if name != "tools":
                counts["prompts" if name == "prompts" else "resources"] += len(listing.items)
    return {"kind": kind_of(query), "kinds": counts, "only": query.get("only", "")}


def _tallies(traces: Traces) -> list[EndpointTally]:
    return [tally for ledger in traces.ledgers for tally in ledger.endpoints.values()]


def rows(traces: Traces, query: Mapping[str, str], chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """One card an endpoint."""
    kind, only = kind_of(query), query.get("only", "")
    out = []
    for ledger in traces.ledgers:
        for tally in ledger.endpoints.values():
            if chosen.scope not in tally.endpoint.url.lower():
                continue
            card = _tools(ledger, tally, chosen, only, zone) if kind == "tools" else _others(ledger, tally, chosen, kind, zone)
            if card is not None:
                out.append(card)
    return out


def _card(ledger: Ledger, tally: EndpointTally, listing: Listing | None, kind: str, zone: tzinfo | None) -> dict[str, Any]:
    endpoint = tally.endpoint
    return {
        "key": f"c{ledger.number}-{kind}-{shown(endpoint.url, 200)}",
        "era": endpoint.era,
        "server": server_name(endpoint),
        "version": server_version(endpoint),
        "host": host(endpoint.url),
        "url": shown(endpoint.url, 200),
        "kind": kind,
        "hints": hints(listing, ledger.latest),
        "context": "",
        "listed": f"listed {listing.count} time{'s' if listing.count != 1 else ''}, last"
        if listing is not None
        else "not listed here",
        "flow": parts.link(listing.flow, "response") if listing is not None else None,
        "more_pages": listing is not None and listing.pages,
        "changes": [
            {
                "time": clock(c.at, zone),
                "flow": parts.link(c.flow, "response"),
                "added": [shown(n, 120) for n in c.added],
                "removed": [shown(n, 120) for n in c.removed],
            }
            for c in (listing.changes[-CHANGES:] if listing is not None else ())
        ],
    }


def hints(listing: Listing | None, now: float) -> dict[str, Any]:
    """The cache hints of the newest list, and what they mean by now."""
    if listing is None:
        return {"tags": [], "words": ""}
    tags, words = [], ""
    ttl = listing.ttl_ms
    if is_number(ttl):
        ttl = float(max(min(ttl, _MOST_TTL), -_MOST_TTL))  # a server may say any number
        tags.append(f"ttl {duration(ttl) if ttl > 0 else '0 ms'}")
        if ttl <= 0:
            words = "stale at once: a client should list again before it relies on it"
        else:
            left = listing.at + ttl / 1000 - now
            words = f"fresh for {duration(left * 1000)} after the newest traffic" if left > 0 else "stale by now"
    elif ttl is not None:
        tags.append(f"ttl {parts.brief(ttl, 30)}")
    else:
        words = "no cache hints"
    if listing.scope is not None:
        tags.append(parts.brief(listing.scope, 30))
    return {"tags": tags, "words": words}


def _tools(ledger: Ledger, tally: EndpointTally, chosen: Filter, only: str, zone: tzinfo | None) -> dict[str, Any] | None:
    endpoint = tally.endpoint
    listed: dict[str, Listing] = endpoint.facts.get(LISTED, {})
    calls: dict[tuple[str, str], Calls] = endpoint.facts.get(CALLS, {})
    called = {name for method, name in calls if method == "tools/call"}
    if not endpoint.tools and not called:
        return None
    card = _card(ledger, tally, listed.get("tools"), "tools", zone)
    tracker = ledger.inspector.tracker(Tools)
    items = [
        _tool(ledger, d, calls.get(("tools/call", d.name)), tracker.versions(endpoint.url, d.name))
        for d in endpoint.tools.values()
        if isinstance(d, ToolDefinition)
    ]
    items += [_unlisted(name, calls[("tools/call", name)]) for name in sorted(called - set(endpoint.tools))][:50]
    shown_items = [i for i in items if _fits(i, chosen, only)]
    if not shown_items:
        return None
    cost = cost_of(endpoint)
    card["context"] = (
        f"a model is given {size(sum(tool.definition for tool in cost))} of definitions"
        f" and was given {size(sum(tool.results.size for tool in cost))} of results"
    )
    card["items"] = shown_items[:ROWS]
    card["count"] = sum(bool(i["key"]) for i in items)
    card["unlisted"] = len(items) - card["count"]
    card["hidden"] = len(items) - len(card["items"])
    return card


def _fits(item: dict[str, Any], chosen: Filter, only: str) -> bool:
    if only == "mirrored" and not item["mirrors"]:
        return False
    if only == "excluded" and not item["excluded"]:
        return False
    if only == "called" and not item["calls"]:
        return False
    return chosen.fits_words(item["name"], item["description"], item["arguments"], *(m["field"] for m in item["mirrors"]))


def _tool(ledger: Ledger, definition: ToolDefinition, calls: Calls | None, versions: int) -> dict[str, Any]:
    raw = definition.raw
    return {
        "key": f"d{ledger.number}-{definition.flow}-{definition.index}",
        "name": shown(definition.name, 200),
        "title": shown(raw["title"], 120) if isinstance(raw.get("title"), str) else "",
        "description": shown(raw["description"], 240) if isinstance(raw.get("description"), str) else "",
        "length": len(raw["description"]) if isinstance(raw.get("description"), str) else 0,
        "mirrors": [
            {"path": shown(".".join(m.path), 80), "field": shown(m.field, 120), "type": shown(m.type, 20)}
            for m in definition.mirrors[:30]
        ],
        "excluded": [{"rule": f.rule, "text": shown(f.detail or str(f.value), 300)} for f in definition.excluded[:5]],
        "remarks": [{"rule": f.rule, "text": shown(f.detail, 200)} for f in definition.remarks[:5]],
        "unchecked": shown(definition.unchecked, 200),
        "arguments": arguments(raw.get("inputSchema")),
        "versions": versions,
        "ui": _ui(raw),
        **_numbers(calls),
    }


def _unlisted(name: str, calls: Calls) -> dict[str, Any]:
    return {
        "key": "",
        "name": shown(name, 200),
        "title": "",
        "description": "called, but no list that names it was seen",
        "length": 0,
        "mirrors": [],
        "excluded": [],
        "remarks": [],
        "unchecked": "",
        "arguments": "",
        "versions": 0,
        "ui": "",
        **_numbers(calls),
    }


def _numbers(calls: Calls | None) -> dict[str, Any]:
    if calls is None:
        return {"calls": 0, "errors": 0, "tool_errors": 0, "asked": 0, "p50": "", "p95": "", "last": None}
    p50, p95 = calls.percentile(0.5), calls.percentile(0.95)
    return {
        "calls": calls.count,
        "errors": calls.errors,
        "tool_errors": calls.tool_errors,
        "asked": calls.input_required,
        "p50": duration(p50) if p50 is not None else "",
        "p95": duration(p95) if p95 is not None else "",
        "last": parts.link(calls.last_flow),
    }


def _ui(raw: dict[str, Any]) -> str:
    meta = raw.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    uri = ui.get("resourceUri") if isinstance(ui, dict) else meta.get("ui/resourceUri") if isinstance(meta, dict) else None
    return shown(uri, 200) if isinstance(uri, str) else ""


def arguments(schema: Any) -> str:
    """city: string, units?: c|f"""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    words = []
    for name, spec in list(properties.items())[:ARGUMENTS]:
        kind: Any = spec.get("type", "any") if isinstance(spec, dict) else "any"
        choices = spec.get("enum") if isinstance(spec, dict) else None
        if isinstance(choices, list) and choices:
            kind = "|".join(str(c) for c in choices[:5])
        elif isinstance(kind, list):
            kind = "|".join(str(k) for k in kind[:5])
        words.append(f"{name}{'' if name in required else '?'}: {kind}")
    if len(properties) > ARGUMENTS:
        words.append(f"{len(properties) - ARGUMENTS} more")
    return shown(", ".join(words), 400)


def _others(ledger: Ledger, tally: EndpointTally, chosen: Filter, kind: str, zone: tzinfo | None) -> dict[str, Any] | None:
    listed: dict[str, Listing] = tally.endpoint.facts.get(LISTED, {})
    calls: dict[tuple[str, str], Calls] = tally.endpoint.facts.get(CALLS, {})
    sources = ["prompts"] if kind == "prompts" else ["resources", "resourceTemplates"]
    items: list[dict[str, Any]] = []
    for source in sources:
        listing = listed.get(source)
        for name, item in listing.items.items() if listing is not None else ():
            entry = {
                "name": name,
                "title": item.get("title") or (item.get("name", "") if source != "prompts" else ""),
                "description": item.get("description", ""),
                "mime": item.get("mimeType", ""),
                "template": source == "resourceTemplates",
                "arguments": ", ".join(f"{n}{'' if required else '?'}" for n, required in item.get("arguments", ())),
                **_numbers(calls.get((_METHOD[source], name))),
            }
            if chosen.fits_words(name, str(entry["title"]), entry["description"]):
                items.append(entry)
    known, count = {i["name"] for i in items}, len(items)
    method = "prompts/get" if kind == "prompts" else "resources/read"
    for (called, name), numbers in list(calls.items()):
        if called == method and shown(name, 500) not in known and chosen.fits_words(name) and len(items) < ROWS:
            items.append(
                {
                    "name": shown(name, 300),
                    "title": "",
                    "description": "used, but not in a list that was seen",
                    "mime": "",
                    "template": False,
                    "arguments": "",
                    **_numbers(numbers),
                }
            )
    if not items:
        return None
    card = _card(ledger, tally, listed.get(sources[0]) or listed.get(sources[-1]), kind, zone)
    card["items"], card["hidden"] = items[:ROWS], max(len(items) - ROWS, 0)
    card["count"], card["unlisted"] = count, len(items) - count
    return card


def detail(traces: Traces, key: str, zone: tzinfo | None) -> dict[str, Any] | None:
    """A tool with its schemas and its earlier definitions."""
    for ledger in traces.ledgers:
        for tally in ledger.endpoints.values():
            for definition in tally.endpoint.tools.values():
                if isinstance(definition, ToolDefinition) and f"d{ledger.number}-{definition.flow}-{definition.index}" == key:
                    return _detail(ledger, tally, definition, zone)
    return None


def _detail(ledger: Ledger, tally: EndpointTally, definition: ToolDefinition, zone: tzinfo | None) -> dict[str, Any]:
    raw = definition.raw
    history = ledger.inspector.tracker(Tools).history(tally.endpoint.url, definition.name)
    diffs = []
    for earlier, later in pairwise(history):
        lines = difference(parts.json_text(earlier.raw), parts.json_text(later.raw))
        if lines:
            diffs.append({"time": clock(later.listed_at, zone), "flow": parts.link(later.flow, "response"), "lines": lines})
    return {
        "key": f"d{ledger.number}-{definition.flow}-{definition.index}",
        "name": shown(definition.name, 300),
        "description": parts.texts(raw["description"], 4_000) if isinstance(raw.get("description"), str) else "",
        "flow": parts.link(definition.flow, "response"),
        "input": parts.json_text(raw.get("inputSchema")) if "inputSchema" in raw else None,
        "output": parts.json_text(raw["outputSchema"]) if "outputSchema" in raw else None,
        "annotations": parts.json_text(raw["annotations"]) if "annotations" in raw else None,
        "meta": parts.json_text(raw["_meta"]) if "_meta" in raw else None,
        "diffs": diffs[-5:],
        "query": shown(definition.name, 200),
    }


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """(" " | "+" | "-", line) of two texts, with a little around each change."""
    from difflib import unified_diff

    one, two = before.split("\n")[:1_500], after.split("\n")[:1_500]
    lines = list(unified_diff(one, two, lineterm="", n=2))[2:200]
    return [(line[0] if line[0] in "+-@" else " ", line[1:] if line[0] != "@" else line) for line in lines if line]
