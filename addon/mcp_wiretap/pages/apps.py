"""The page Apps and extensions: what each side advertises, `ui://` resources, the tools linked to them, what they ask of a host.
Nothing of it is ever rendered."""

from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import Ledger
from mcp_wiretap.pages.tools import _ui
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import SEVERITY, State, clock, host, server_name, server_version, shown, size
from mcp_wiretap.trace.finding import RANK
from mcp_wiretap.trace.lists.catalog import LISTED, UI, Listing, UiResource
from mcp_wiretap.trace.model import Endpoint, ToolDefinition
from mcp_wiretap.trace.summary.clientele import CLIENTELE, Who

UI_EXTENSION = "io.modelcontextprotocol/ui"
FINDINGS = 50  # of one endpoint


def rows(traces: Traces, chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """One card an endpoint."""
    out = []
    for ledger in traces.ledgers:
        for tally in ledger.endpoints.values():
            endpoint = tally.endpoint
            if not endpoint.proven or chosen.scope not in endpoint.url.lower():
                continue
            card = _card(ledger, endpoint, zone)
            if chosen.fits_words(
                endpoint.url,
                card["server"],
                *(e["name"] for e in card["extensions"]),
                *(a["uri"] for a in card["apps"]),
                *(f["rule"] for f in card["findings"]),
            ):
                out.append(card)
    return sorted(out, key=lambda card: (-len(card["apps"]), -len(card["extensions"]), card["server"]))


def _card(ledger: Ledger, endpoint: Endpoint, zone: tzinfo | None) -> dict[str, Any]:
    capabilities = endpoint.capabilities or {}
    declared = capabilities.get("extensions")
    server = {shown(k, 200): v for k, v in list(declared.items())[:50]} if isinstance(declared, dict) else {}
    who: dict[Any, Who] = endpoint.facts.get(CLIENTELE, {})
    clients: dict[str, list[str]] = {}
    for client in who.values():
        for name in client.extensions:
            clients.setdefault(name, []).append(client.name or client.key)
    extensions = [
        {
            "name": name,
            "server": name in server,
            "settings": parts.brief(server[name], 200) if server.get(name) not in (None, {}) else "",
            "clients": ", ".join(dict.fromkeys(clients.get(name, ()))),
            "state": _state(name in server, name in clients, endpoint.capabilities is not None),
        }
        for name in sorted({*server, *clients})
    ]
    return {
        "key": f"a{ledger.number}-{shown(endpoint.url, 200)}",
        "era": endpoint.era,
        "server": server_name(endpoint),
        "version": server_version(endpoint),
        "host": host(endpoint.url),
        "extensions": extensions,
        "experimental": [shown(k, 100) for k in list(_object(capabilities.get("experimental")))[:30]],
        "apps": _apps(endpoint, zone),
        "findings": _findings(ledger, endpoint),
    }


def _state(server: bool, client: bool, told: bool) -> State:
    if server and client:
        return State("ok", "eq", "both sides")
    if not server and not told:
        return State("off", "minus", "server's side not seen")
    return State("off", "minus", "server only" if server else "client only")


def _apps(endpoint: Any, zone: tzinfo | None) -> list[dict[str, Any]]:
    read: dict[str, UiResource] = endpoint.facts.get(UI, {})
    linked: dict[str, list[str]] = {}
    for definition in endpoint.tools.values():
        if isinstance(definition, ToolDefinition) and (uri := _ui(definition.raw)):
            linked.setdefault(uri, []).append(shown(definition.name, 100))
    listed: dict[str, Listing] = endpoint.facts.get(LISTED, {})
    resources = listed["resources"].items if "resources" in listed else {}
    uris = dict.fromkeys([*linked, *(uri for uri in resources if uri.startswith("ui://")), *read])
    out = []
    for uri in list(uris)[:200]:
        found = read.get(uri)
        asks = _object(found.asks if found is not None else resources.get(uri, {}).get("ui"))
        out.append(
            {
                "uri": shown(uri, 300),
                "read": clock(found.at, zone) if found is not None else "",
                "flow": parts.link(found.flow, "response") if found is not None else None,
                "tools": linked.get(uri, []),
                "about": " · ".join(w for w in (_about(found, resources.get(uri)), *_missing(uri, listed)) if w),
                "csp": _csp(asks.get("csp")),
                "permissions": [shown(p, 60) for p in list(_object(asks.get("permissions")))[:20]],
                "domain": shown(asks["domain"], 200) if isinstance(asks.get("domain"), str) else "",
            }
        )
    return out


def _about(found: UiResource | None, listed: Any) -> str:
    """Its media type and size."""
    if found is None:
        return shown(_object(listed).get("mimeType", ""), 100)
    return f"{found.mime} {size(found.size)}".strip()


def _missing(uri: str, listed: dict[str, Listing]) -> list[str]:
    return ["not in resources/list"] if "resources" in listed and uri not in listed["resources"].items else []


def _findings(ledger: Ledger, endpoint: Endpoint) -> list[dict[str, Any]]:
    """What is wrong with apps at an endpoint, the worst first; what is said again and again is said once."""
    told: dict[tuple[str, str], dict[str, Any]] = {}
    for (rule, party, severity), group in sorted(ledger.groups.items(), key=lambda item: (-RANK[item[0][2]], item[0][0])):
        for flow in group.flows if rule.startswith("APP") else ():
            exchange = ledger.find(flow)
            if exchange is None or exchange.endpoint is not endpoint:
                continue
            for f in exchange.findings:
                if (f.rule, f.party, f.severity) != (rule, party, severity):
                    continue
                line = {"rule": rule, "party": party, "state": SEVERITY[severity], "message": shown(f.message, 300)}
                line |= {"flow": parts.link(flow, "response" if party == "server" else "request"), "times": 0}
                told.setdefault((rule, f.message), line)["times"] += 1
    return list(told.values())[:FINDINGS]


def _object(value: Any) -> dict[str, Any]:
    """Of a list, its members as names."""
    if isinstance(value, list):
        return {str(member): None for member in value[:50]}
    return value if isinstance(value, dict) else {}


def _csp(csp: Any) -> list[dict[str, Any]]:
    """What the app asks the host's CSP to allow."""
    if not isinstance(csp, dict):
        return []
    return [
        {
            "name": shown(name, 60),
            "values": [shown(v, 200) for v in values[:30]] if isinstance(values, list) else [parts.brief(values, 200)],
        }
        for name, values in list(csp.items())[:20]
    ]
