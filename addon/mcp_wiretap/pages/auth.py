"""The page Authorization: each way to a token as a timeline, from the challenge to the first call that was let in.

What belongs together is the tracker's business (`trace.authorization`), which masks secrets; here its steps get words.
"""

from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.filters import Filter
from mcp_wiretap.pages.ledger import EndpointTally, Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import SEVERITY, State, clock, day, duration, host, idle, offset, server_name, shown
from mcp_wiretap.trace.authorization import AuthorizationFlow, Step
from mcp_wiretap.trace.authorization.steps import AUTHORIZATION_FLOWS, CHALLENGES
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.summary.error_words import quoted
from mcp_wiretap.wire.secret import visible

FLOWS = 40  # newest timelines shown
STEPS = 60
UNFOLLOWED = 5  # challenges that nobody followed
FACTS = 14  # of one step
_NAMES = {
    "challenge": "Challenge",
    "resource-metadata": "Resource metadata",
    "server-metadata": "Server metadata",
    "client-metadata": "Client metadata",
    "registration": "Registration",
    "pushed": "Pushed request",
    "authorize": "Authorize",
    "login": "User signs in",
    "callback": "Redirect back",
    "token": "Token",
    "revocation": "Revocation",
    "use": "In use",
}
_STATES = {
    "token": State("ok", "ok", "token given", True),
    "in use": State("ok", "ok", "authorized", True),
    "refused": State("err", "x", "token refused"),
}
_HOW = {
    "metadata-document": "client metadata document (CIMD)",
    "dynamic": "dynamic registration (DCR)",
    "pre-registered": "pre-registered",
}


def flows_of(tally: EndpointTally) -> list[AuthorizationFlow]:
    found: list[AuthorizationFlow] = tally.endpoint.facts.get(AUTHORIZATION_FLOWS, [])
    return found


def rows(traces: Traces, chosen: Filter, zone: tzinfo | None) -> list[dict[str, Any]]:
    """The newest timelines first."""
    found = [
        (ledger, flow)
        for ledger in traces.ledgers
        for tally in ledger.endpoints.values()
        for flow in flows_of(tally)
        if flow.steps and chosen.scope in tally.endpoint.url.lower()
    ]
    found += [
        (ledger, waiting)
        for ledger in traces.ledgers
        for tally in ledger.endpoints.values()
        if chosen.scope in tally.endpoint.url.lower() and (waiting := _unfollowed(tally)) is not None
    ]
    found.sort(key=lambda item: -item[1].started)
    cards = [card(ledger, flow, zone) for ledger, flow in found[: FLOWS * 2]]
    return [c for c in cards if chosen.fits_words(c["server"], c["url"], c["client"], *(s["step"] for s in c["steps"]))][:FLOWS]


def _unfollowed(tally: EndpointTally) -> AuthorizationFlow | None:
    """The challenges that no client has followed so far, as a timeline of their own."""
    pending: list[Step] = tally.endpoint.facts.get(CHALLENGES, [])
    if not pending:
        return None
    steps = pending[-UNFOLLOWED:]
    return AuthorizationFlow(tally.endpoint, steps[0].at, 0, steps=list(steps), more=len(pending) - len(steps), last=steps[-1].at)


def card(ledger: Ledger, flow: AuthorizationFlow, zone: tzinfo | None) -> dict[str, Any]:
    steps = [_step(ledger, step, flow) for step in flow.steps[:STEPS]]
    exchanges = [e for step in flow.steps if (e := ledger.find(step.flow)) is not None]
    severities = [f.severity for e in exchanges for f in e.findings]
    client = next((e.client_info for e in exchanges if e.client_info is not None), None)
    step_up = any(step.ask is not None and step.ask.step_up is not None for step in flow.steps)
    span = max(flow.last - flow.started, 0.0)
    return {
        "key": f"o{ledger.number}-{flow.number}-{shown(flow.steps[0].flow, 80)}",
        "at": flow.started,
        "time": clock(flow.started, zone),
        "day": day(flow.started, zone),
        "era": flow.endpoint.era,
        "server": server_name(flow.endpoint),
        "url": shown(flow.endpoint.url, 200),
        "host": host(flow.endpoint.url),
        "client": shown(" ".join(client), 80) if client is not None else shown(flow.agent, 80),
        "total": duration(span * 1000) if span < 100 else idle(span),
        "words": ", ".join(_words(flow, step_up)),
        "state": _state(flow),
        "steps": steps,
        "more": max(len(flow.steps) - STEPS, 0) + flow.more,
        "error": severities.count("error"),
        "warning": severities.count("warning"),
        "binding": _binding(flow),
        "unions": [union for step in flow.steps if (union := _union(step)) is not None],
    }


def _state(flow: AuthorizationFlow) -> State:
    """How far it got: done, refused at a step, or stopped after the last one that was seen."""
    if not flow.number:
        return State("off", "lock", "not followed so far")
    if flow.status in ("in use", "token", "refused"):
        return _STATES[flow.status]
    last = flow.steps[-1]
    refused = next((s for s in reversed(flow.steps) if _is_refused(s)), None)
    if refused is not None and not any(s.at > refused.at and s.ok and s.kind == refused.kind for s in flow.steps):
        return State("err", "x", f"refused at {_NAMES[refused.kind]}")
    if last.status is None:
        return State("wait", "wait", f"waits for {_NAMES[last.kind]}")
    return State("wait", "wait", f"stopped after {_NAMES[last.kind]}")


def _is_refused(step: Step) -> bool:
    """Whether a step was refused that the way to a token needs."""
    if step.redirect is not None and step.redirect.error is not None:
        return True
    return step.kind in ("registration", "pushed", "authorize", "token") and step.status is not None and step.status >= 400


def _words(flow: AuthorizationFlow, step_up: bool) -> list[str]:
    words = [f"{len(flow.steps) + flow.more} exchanges"]
    if flow.how is not None:
        words.append(_HOW[flow.how])
    if step_up:
        words.append("step-up")
    if flow.refreshes:
        words.append(f"{flow.refreshes} refresh{'es' if flow.refreshes != 1 else ''}")
    if not flow.sure:
        words.append("likely: other flows were under way")
    return words


def _step(ledger: Ledger, step: Step, flow: AuthorizationFlow) -> dict[str, Any]:
    exchange = ledger.find(step.flow)
    found = exchange.findings if exchange is not None else []
    looked = step.kind in ("resource-metadata", "server-metadata") and step.status in (404, 405)  # the next place is tried
    kind = "chal" if step.kind == "challenge" else "good" if step.ok else "" if looked or (step.status or 0) < 400 else "bad"
    if any(f.severity == "error" for f in found):
        kind = "bad"
    elif any(f.severity == "warning" for f in found):
        kind = "iffy"
    return {
        "off": offset(step.at - flow.started),
        "step": _NAMES[step.kind],
        "kind": kind,
        "what": _what(step, exchange),
        "name": shown(exchange.name, 80) if exchange is not None and exchange.name is not None else "",
        "host": host(step.url),
        "status": State("off", "minus", f"{step.status} not there") if looked else _status(step),
        "facts": [
            *([("says", shown(quoted(exchange.error_message), 300))] if exchange is not None and exchange.error_message else []),
            *((shown(name, 60), visible(value)) for name, value in list(step.shown.items())[:FACTS]),
        ],
        "checks": _checks(step),
        "flow": parts.link(step.flow),
        "findings": [
            {"rule": f.rule, "state": SEVERITY[f.severity or "info"], "message": shown(f.message, 240)} for f in found[:8]
        ],
    }


def _what(step: Step, exchange: Exchange | None) -> str:
    if exchange is not None and exchange.kind == "mcp":
        return shown(exchange.method or exchange.http_method, 80)
    method = exchange.http_method if exchange is not None else ""
    path = "/" + step.url.partition("://")[2].partition("/")[2]
    return shown(f"{method} {path}".strip(), 160)


def _status(step: Step) -> State:
    status = step.status
    if status is None:
        return State("wait", "wait", "pending")
    if status in (401, 403):
        return State("off", "lock", str(status))
    if status >= 400:
        return State("err", "x", str(status))
    return State("ok", "ok", str(status)) if status < 300 else State("off", "out", str(status))


def _checks(step: Step) -> list[State]:
    """What was compared and agrees, or could not be; what is wrong is a finding and stands beside."""
    out: list[State] = []
    if step.resource is not None and step.resource.relation in ("equal", "slash"):
        out.append(State("ok", "eq", "resource is this endpoint"))
    elif step.resource is not None and step.resource.relation == "parent":
        out.append(State("ok", "eq", "resource holds this endpoint"))
    server = step.server
    if server is not None and server.read and server.issuer is not None and server.issuer == server.identifier:
        out.append(State("ok", "eq", "issuer is the one asked for"))
    if step.target == "right":
        out.append(State("ok", "eq", "resource names this endpoint"))
    elif step.target == "unknown":
        out.append(State("off", "minus", "resource not compared: recorded by a reverse proxy"))
    redirect = step.redirect
    if redirect is not None and redirect.same_state is True:
        out.append(State("ok", "eq", "state came back"))
    call = step.call
    if call is not None:
        if call.verifier == "right":
            out.append(State("ok", "eq", "verifier matches the S256 challenge"))
        elif call.verifier == "unknown":
            out.append(State("off", "minus", "verifier not compared: no challenge seen"))
        if call.refresh == "new":
            out.append(State("ok", "loop", "refresh token is a new one"))
    return out


def _union(step: Step) -> dict[str, Any] | None:
    """How the scopes of a step-up came together."""
    ask = step.ask
    up = ask.step_up if ask is not None and step.kind in ("authorize", "pushed") else None
    if ask is None or up is None:
        return None
    union = list(dict.fromkeys([*up.before, *up.challenged]))
    return {
        "before": shown(" ".join(up.before), 300) or "none seen",
        "challenged": shown(" ".join(up.challenged), 300) or "none named",
        "union": shown(" ".join(union), 300),
        "asked": shown(" ".join(ask.scopes or ()), 300) or "none",
        "state": State("ok", "eq", "asks for the union")
        if not up.missing
        else State("warn" if up.sure else "off", "warn", shown(f"leaves out {' '.join(up.missing)}", 200)),
    }


def _binding(flow: AuthorizationFlow) -> list[tuple[str, str]]:
    """What this flow is bound to: (MCP server, issuer), client and scopes."""
    out = [("MCP server", shown(flow.endpoint.url, 200))]
    if flow.issuer is not None:
        out.append(("Issuer", shown(flow.issuer, 200)))
    if flow.client_id is not None:
        out.append(("Client id", shown(flow.client_id, 200)))
    if flow.asked is not None:
        out.append(("Asked for", shown(" ".join(flow.asked), 300) or "no scope"))
    if flow.granted is not None:
        out.append(("Granted", shown(" ".join(flow.granted), 300) or "no scope"))
    return out
