"""The page Authorization: each way to a token as a timeline, from the challenge to the first call that was let in."""

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any
from urllib.parse import parse_qsl

from mcp_wiretap.report.pages import rows as parts
from mcp_wiretap.report.pages.filters import Filter
from mcp_wiretap.report.pages.ledger import Ledger
from mcp_wiretap.report.pages.traces import Traces
from mcp_wiretap.report.pages.words import SEVERITY, State, clock, duration, host, offset, server_name, shown, status_state
from mcp_wiretap.report.view import body
from mcp_wiretap.trace.model import Endpoint, Exchange
from mcp_wiretap.wire.secret import SECRET_MEMBERS, mask

FLOWS = 30  # newest timelines shown
STEPS = 40
QUIET = 900.0  # seconds after which what comes is another flow: a person may take minutes to log in
_SHOWN = {
    "Resource metadata": ("resource", "authorization_servers", "scopes_supported", "bearer_methods_supported"),
    "Server metadata": (
        "issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint", "scopes_supported",
        "code_challenge_methods_supported", "client_id_metadata_document_supported", "authorization_response_iss_parameter_supported",
    ),
    "Registration": ("client_name", "application_type", "redirect_uris", "grant_types", "token_endpoint_auth_method", "scope", "client_id", "client_secret"),
    "Authorize": ("client_id", "scope", "resource", "redirect_uri", "code_challenge_method", "state", "prompt"),
    "Code": ("code", "iss", "state", "error", "error_description"),
    "Token": ("grant_type", "scope", "resource", "client_id", "token_type", "expires_in", "access_token", "refresh_token", "error", "error_description"),
}  # fmt: skip


def rows(traces: Traces, chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """The newest timelines first."""
    out: list[dict[str, Any]] = []
    for ledger in traces.ledgers:
        for flow in _flows(ledger):
            if chosen.chosen.get("endpoint", "") in flow.endpoint.url.lower():
                out.append(_card(traces, ledger, flow, zone))
    found = [card for card in out if chosen.fits_words(card["server"], card["url"], *(s["step"] for s in card["steps"]))]
    return sorted(found, key=lambda card: -card["at"])[:FLOWS]


class _Flow:
    """The exchanges of one way to a token."""

    def __init__(self, endpoint: Endpoint, first: Exchange) -> None:
        self.endpoint = endpoint
        self.steps: list[Exchange] = [first]
        self.authorized = False


def _flows(ledger: Ledger) -> Iterator[_Flow]:
    """Each challenge begins a flow, unless one that it repeats is open; discovery, registration and tokens go to the open one."""
    current: _Flow | None = None
    made: list[_Flow] = []
    for exchange in ledger.rows:
        if exchange.kind == "oauth":
            if current is None or exchange.started - current.steps[-1].started > QUIET:
                current = _Flow(_served(ledger, exchange), exchange)
                made.append(current)
            else:
                current.steps.append(exchange)
        elif exchange.kind == "mcp":
            challenged = exchange.status in (401, 403) and exchange.response_fields is not None
            if challenged:
                same = current is not None and current.endpoint is exchange.endpoint and not current.authorized
                if current is not None and same and exchange.started - current.steps[-1].started <= QUIET:
                    current.steps.append(exchange)
                else:
                    current = _Flow(exchange.endpoint, exchange)
                    made.append(current)
            elif current is not None and exchange.endpoint is current.endpoint and exchange.auth and not current.authorized:
                if exchange.status is not None and exchange.status < 300 and len(current.steps) > 1:
                    current.steps.append(exchange)
                    current.authorized = True
    yield from made[-FLOWS:]


def _served(ledger: Ledger, exchange: Exchange) -> Endpoint:
    """The MCP endpoint that a discovery without a challenge was for: the one on its host, else its own."""
    for tally in ledger.endpoints.values():
        if tally.endpoint.proven and host(tally.endpoint.url) == host(exchange.url):
            return tally.endpoint
    return exchange.endpoint


def _card(traces: Traces, ledger: Ledger, flow: _Flow, zone: tzinfo | None) -> dict[str, Any]:
    first, last = flow.steps[0], flow.steps[-1]
    steps = [_step(traces, exchange, first.started, flow) for exchange in flow.steps[:STEPS]]
    scopes = _scopes(steps)
    severity = [f.severity for e in flow.steps for f in e.findings]
    client = next((e.client_info for e in flow.steps if e.client_info is not None), None)
    step_up = first.status == 403
    if flow.authorized:
        state = State("ok", "ok", "stepped up" if step_up else "authorized", True)
    elif any(s["step"] == "Token" and s["ok"] for s in steps):
        state = State("ok", "ok", "token given", True)
    else:
        state = State("off", "lock", "not authorized yet")
    end = last.ended or last.started
    return {
        "key": f"o{ledger.number}-{shown(first.flow, 80)}",
        "at": first.started,
        "time": clock(first.started, zone),
        "era": flow.endpoint.era,
        "server": server_name(flow.endpoint),
        "url": shown(flow.endpoint.url, 200),
        "host": host(flow.endpoint.url),
        "client": shown(" ".join(client), 80) if client is not None else "",
        "total": duration((end - first.started) * 1000),
        "words": f"{'step-up, ' if step_up else ''}{len(flow.steps)} exchanges",
        "state": state,
        "steps": steps,
        "more": max(len(flow.steps) - STEPS, 0),
        "error": severity.count("error"),
        "warning": severity.count("warning"),
        "scopes": scopes,
        "issuers": list(dict.fromkeys(s["issuer"] for s in steps if s["issuer"])),
    }


def _step(traces: Traces, exchange: Exchange, start: float, flow: _Flow) -> dict[str, Any]:
    name, facts = _facts(traces, exchange)
    status = exchange.status
    ok = status is not None and status < 400
    kind = "chal" if name == "Challenge" else "good" if ok and (status or 0) < 300 else "" if ok else "bad"
    if any(f.severity == "error" for f in exchange.findings):
        kind = "bad"
    elif any(f.severity == "warning" for f in exchange.findings):
        kind = "iffy"
    return {
        "off": offset(exchange.started - start),
        "step": name,
        "kind": kind,
        "ok": ok,
        "what": shown(
            exchange.method or f"{exchange.http_method} {exchange.url.partition('://')[2].partition('/')[2].join(('/', ''))}", 160
        ),
        "name": shown(exchange.name, 80) if exchange.name is not None else "",
        "host": host(exchange.url),
        "status": status_state(exchange),
        "facts": [(shown(key, 60), value) for key, value in facts],
        "issuer": next((value for key, value in facts if key in ("issuer", "iss")), ""),
        "scope": next((value for key, value in facts if key == "scope"), ""),
        "flow": parts.link(exchange.flow),
        "findings": [
            {"rule": f.rule, "state": SEVERITY[f.severity or "info"], "message": shown(f.message, 200)}
            for f in exchange.findings[:8]
        ],
    }


def _facts(traces: Traces, exchange: Exchange) -> tuple[str, list[tuple[str, str]]]:
    """What a step is, and what is telling in it. Secrets masked."""
    path = exchange.url.partition("://")[2].partition("/")[2]
    fields = exchange.response_fields
    challenge = fields.first("www-authenticate") if fields is not None else None
    if exchange.kind == "mcp":
        if exchange.status in (401, 403):
            return "Challenge", [("www-authenticate", shown(challenge, 400))] if challenge else [
                ("challenge", "none: no WWW-Authenticate")
            ]
        return "In use", [("authorization", f"(sha {exchange.auth})")] if exchange.auth else []
    query = dict(parse_qsl(exchange.query, max_num_fields=100)) if len(exchange.query) < 20_000 else {}
    subject = traces.whole(exchange.flow)
    sent, got = {}, {}
    if subject is not None:
        sent, got = _object(subject.whole, "request"), _object(subject.whole, "response")
    if "oauth-protected-resource" in path:
        return "Resource metadata", _chosen("Resource metadata", got)
    if "oauth-authorization-server" in path or "openid-configuration" in path:
        return "Server metadata", _chosen("Server metadata", got)
    if "redirect_uris" in sent:
        return "Registration", _chosen("Registration", sent | got)
    if "response_type" in query or "code_challenge" in query:
        return "Authorize", _chosen("Authorize", query) + _location(exchange)
    if exchange.http_method == "POST" and ("access_token" in got or "token_type" in got or "token" in path):
        return "Token", _chosen("Token", sent | got)
    if "redirect_uris" in got and "client_id" in got:
        return "Client metadata", _chosen("Registration", got)
    return "Sign-in", _location(exchange)


def _object(whole: Exchange, side: str) -> dict[str, Any]:
    found, problem = body.content(whole, side)
    return found if problem is None and isinstance(found, dict) else {}


def _location(exchange: Exchange) -> list[tuple[str, str]]:
    """Where a redirect goes, with the code masked."""
    fields = exchange.response_fields
    location = fields.first("location") if fields is not None else None
    if not location or len(location) > 20_000:
        return []
    target, _, query = location.partition("?")
    members = dict(parse_qsl(query.partition("#")[0], max_num_fields=100))
    return [("redirects to", shown(target, 200)), *_chosen("Code", members)]


def _chosen(step: str, members: dict[str, Any]) -> list[tuple[str, str]]:
    out = []
    for name in _SHOWN[step]:
        if name in members:
            value = members[name]
            if name in SECRET_MEMBERS or name == "state":
                out.append((name, mask(value) if isinstance(value, str) else parts.brief(value, 60)))
            else:
                out.append((name, parts.brief(value if not isinstance(value, list) else " ".join(map(str, value[:12])), 240)))
    return out


def _scopes(steps: list[dict[str, Any]]) -> list[dict[str, str]]:
    """How the scopes of a step-up came together: what was challenged for, what was asked for, what was given."""
    out = []
    for step in steps:
        if step["scope"]:
            out.append({"step": step["step"], "scope": step["scope"]})
        elif step["step"] == "Challenge":
            for key, value in step["facts"]:
                if key == "www-authenticate" and 'scope="' in value:
                    out.append({"step": "Challenge", "scope": value.partition('scope="')[2].partition('"')[0]})
    return out if len(out) > 1 else []
