"""The page Overview: each endpoint with its era, the evidence, who talks there, how they found each other, and how it goes."""

from datetime import tzinfo
from typing import Any

from mcp_wiretap.pages import rows as parts
from mcp_wiretap.pages.ledger import EndpointTally, Ledger
from mcp_wiretap.pages.traces import Traces
from mcp_wiretap.pages.words import State, clock, day, offset, server_name, server_version, shown
from mcp_wiretap.report.words import plural, revisions_words
from mcp_wiretap.trace.authorization.steps import AUTHORIZATION_FLOWS
from mcp_wiretap.trace.era.negotiation import STORY, UNTOLD, Step
from mcp_wiretap.trace.lists.catalog import UI
from mcp_wiretap.trace.model import Endpoint
from mcp_wiretap.trace.operations.tasks import TASKS
from mcp_wiretap.trace.summary.clientele import CLIENTELE, Who, leaves
from mcp_wiretap.wire.secret import mask

BUCKETS = 16  # of the little picture of requests over time
CLIENTS = 20
STEPS = 40
SESSIONS = 20
ROWS = 300
_LIMITS = {"exchanges": "mcp_max_state", "input_required answers": "mcp_max_state", "stream bytes": "mcp_max_stream"}
_VERDICTS = {
    "modern": State("ok", "ok", "modern"),
    "legacy": State("ok", "ok", "legacy"),
    "http+sse": State("ok", "ok", "HTTP+SSE"),
    "refused": State("err", "x", "refused"),
    "unauthorized": State("off", "lock", "unauthorized"),
    "failed": State("err", "x", "failed"),
    "no answer": State("warn", "warn", "no answer"),
    "pending": State("wait", "wait", "pending"),
    "unrecorded": State("off", "minus", "not recorded"),
}


def summary(traces: Traces) -> dict[str, Any]:
    """The counts that stand on every page: eras, findings, flows; and how many rows each page has."""
    eras = {"modern": 0, "legacy": 0, "dual": 0, "unknown": 0}
    tools = tasks = logs = ui = auth = 0
    for ledger in traces.ledgers:
        for tally in ledger.endpoints.values():
            endpoint = tally.endpoint
            if not endpoint.proven and tally.flows == 0:
                continue
            eras[endpoint.era] += 1
            tools += len(endpoint.tools)
            tasks += len(endpoint.facts.get(TASKS, []))
            ui += len(endpoint.facts.get(UI, {}))
            auth += len(endpoint.facts.get(AUTHORIZATION_FLOWS, []))
        logs += ledger.inspector.tracker(_logs()).count
    counts = traces.severity_counts()
    return {
        "eras": eras,
        "endpoints": sum(eras.values()),
        "flows": sum(ledger.flows for ledger in traces.ledgers),
        "listed": sum(ledger.listed for ledger in traces.ledgers),
        "operations": sum(ledger.operations for ledger in traces.ledgers),
        "error": counts["error"],
        "warning": counts["warning"],
        "info": counts["info"],
        "waiting": sum(ledger.waiting for ledger in traces.ledgers),
        "open": sum(ledger.open_streams for ledger in traces.ledgers),
        "streams": sum(len(ledger.streams) for ledger in traces.ledgers),
        "tools": tools,
        "tasks": tasks,
        "logs": logs,
        "auth": auth,
        "apps": ui,
        "rules": len({group.rule for group in traces.groups() if group.severity == "error"}),
        "broken": sum(1 for ledger in traces.ledgers for tally in ledger.endpoints.values() if tally.expectation_broken),
        "dropped": dropped(traces),
        "behind": sum(ledger.behind for ledger in traces.ledgers),
    }


def _logs() -> Any:
    from mcp_wiretap.trace.streams.logs import Logs

    return Logs


def dropped(traces: Traces) -> list[str]:
    """What went past a limit, in words, and the option that moves it where there is one."""
    found: dict[str, int] = {}
    for ledger in traces.ledgers:
        for what, count in ledger.inspector.dropped.items():
            found[what] = found.get(what, 0) + count
    return [f"{count:,} {what}, past {_LIMITS.get(what, 'what is kept of one trace')}" for what, count in sorted(found.items())]


def endpoints(traces: Traces) -> list[dict[str, Any]]:
    """The rows: broken expectations first, then by errors and warnings."""
    found = [(ledger, tally) for ledger in traces.ledgers for tally in ledger.endpoints.values()]
    found.sort(
        key=lambda f: (not f[1].expectation_broken, -f[1].severities["error"], -f[1].severities["warning"], f[1].endpoint.url)
    )
    return [row(ledger, tally) for ledger, tally in found[:ROWS]]


def row(ledger: Ledger, tally: EndpointTally) -> dict[str, Any]:
    endpoint = tally.endpoint
    story, detail = negotiation_words(endpoint)
    who: dict[Any, Who] = endpoint.facts.get(CLIENTELE, {})
    names = list(dict.fromkeys(w.name for w in who.values() if w.name))
    broken = bool(tally.expectation_broken)
    severity = tally.severities
    return {
        "key": f"e{ledger.number}-{shown(endpoint.url, 200)}",
        "url": shown(endpoint.url, 200),
        "era": endpoint.era,
        "name": server_name(endpoint),
        "version": server_version(endpoint),
        "revisions": shown(revisions_words(endpoint.revisions), 60),
        "expected": endpoint.expected,
        "broken": broken,
        "clients": ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else ""),
        "story": story,
        "story_detail": detail,
        "spark": spark(tally),
        "rate": rate(tally, ledger.latest),
        "flows": tally.flows,
        "open": tally.open_streams,
        "counts": dict(severity),
        "worst": "error" if broken or severity["error"] else "warning" if severity["warning"] else None,
    }


def spark(tally: EndpointTally) -> list[int]:
    """Requests over the time of the newest ones, in buckets, in percent of the fullest."""
    starts = list(tally.starts)
    if not starts:
        return []
    first, last = min(starts), max(starts)  # not the first and the last: a slow upload is overtaken, a clock is put back
    width = max(last - first, 0.001) / BUCKETS
    counts = [0] * BUCKETS
    for at in starts:
        counts[min(int((at - first) / width), BUCKETS - 1)] += 1
    most = max(counts)
    return [round(count / most * 100) for count in counts]


def rate(tally: EndpointTally, latest: float) -> str:
    """Requests of the last minute that was seen."""
    recent = sum(1 for at in tally.starts if at > latest - 60)
    return f"{recent}/min" if recent else ""


def negotiation_words(endpoint: Endpoint) -> tuple[str, str]:
    """The story in two short lines."""
    steps: list[Step] = endpoint.facts.get(STORY, [])
    if not steps:
        if not endpoint.proven:
            return "no MCP answer yet", ""
        return "no negotiation seen", "the capture may have begun after it"
    fell_back = any(step.role == "fallback" and step.verdict in ("legacy", "http+sse") for step in steps)
    verdicts = {step.verdict for step in steps}
    if fell_back:
        words = "probe refused, fell back"
    elif "modern" in verdicts and "legacy" in verdicts:
        words = "answers both eras"
    elif "modern" in verdicts:
        probed = any(step.role == "probe" and step.verdict == "modern" for step in steps)
        words = "probe accepted" if probed else "speaks modern, unasked"
    elif "legacy" in verdicts:
        words = "initialize accepted"
    elif "http+sse" in verdicts:
        words = "HTTP+SSE of 2024-11-05"
    else:
        words = "unauthorized so far" if "unauthorized" in verdicts else "refused" if "refused" in verdicts else "not settled"
    retries = sum(step.role == "retry" for step in steps)
    newest = steps[-3:]
    told = " → ".join(f"{shown(s.what.partition(' ')[0], 30)} {shown(s.result, 40)}".strip() for s in newest)
    return words, told + (f" · {plural(retries, 'retry').replace('retrys', 'retries')}" if retries else "")


def detail(ledger: Ledger, tally: EndpointTally, zone: tzinfo | None) -> dict[str, Any]:
    """All that an opened endpoint shows."""
    endpoint = tally.endpoint
    steps: list[Step] = endpoint.facts.get(STORY, [])
    who: dict[Any, Who] = endpoint.facts.get(CLIENTELE, {})
    capabilities = endpoint.capabilities or {}
    extensions = capabilities.get("extensions")
    started = steps[0].at if steps else 0.0
    evidence = [
        {"era": era, "what": shown(found.what), "flow": parts.link(found.flow)}
        for era, found in (("modern", endpoint.modern), ("legacy", endpoint.legacy))
        if found is not None
    ]
    return {
        "url": shown(endpoint.url, 400),
        "expected": endpoint.expected,
        "era": endpoint.era,
        "broken": parts.link(tally.expectation_broken) if tally.expectation_broken else None,
        "steps": [_step(step, started) for step in steps[:STEPS]],
        "more_steps": max(len(steps) - STEPS, 0) + endpoint.facts.get(UNTOLD, 0),
        "server": server_name(endpoint),
        "version": server_version(endpoint),
        "title": shown(str(endpoint.server_info.get("title") or ""), 120) if endpoint.server_info else "",
        "evidence": evidence,
        "revisions": [shown(revision, 40) for revision in endpoint.revisions],
        "supported": [shown(version, 40) for version in (endpoint.supported or [])[:20]],
        "instructions": parts.texts(endpoint.instructions, 2_000) if endpoint.instructions else "",
        "capabilities": leaves({k: v for k, v in capabilities.items() if k not in ("extensions",)}),
        "extensions": [shown(name, 120) for name in extensions] if isinstance(extensions, dict) else [],
        "clients": [_client(w, zone) for w in list(who.values())[:CLIENTS]],
        "more_clients": max(len(who) - CLIENTS, 0),
        "sessions": _sessions(ledger, endpoint, zone),
        "sessionless": endpoint.era == "modern",
        "open": tally.open_streams,
        "counts": dict(tally.severities),
        "rate": rate(tally, ledger.latest),
        "query": shown(endpoint.url, 300),
    }


def _step(step: Step, started: float) -> dict[str, Any]:
    return {
        "what": shown(step.what, 200),
        "role": step.role,
        "client": shown(step.client, 60),
        "state": _VERDICTS.get(step.verdict, State("off", "minus", step.verdict)),
        "result": shown(step.result, 200),
        "note": shown(step.note, 200),
        "off": offset(step.at - started),
        "flow": parts.link(step.flow),
        "good": step.verdict in ("modern", "legacy", "http+sse"),
        "bad": step.verdict in ("refused", "failed"),
    }


def _client(who: Who, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "name": who.name or "(no name)",
        "version": who.version,
        "auth": who.auth,
        "agent": who.agent,
        "exchanges": who.exchanges,
        "revisions": list(who.revisions),
        "capabilities": who.capabilities,
        "extensions": list(who.extensions),
        "since": clock(who.at, zone),
        "day": day(who.at, zone),
        "key": who.key,
        "flow": parts.link(who.flow),
    }


def _sessions(ledger: Ledger, endpoint: Endpoint, zone: tzinfo | None) -> list[dict[str, Any]]:
    """The newest legacy sessions of an endpoint."""
    found = [s for s in ledger.inspector.sessions if s.endpoint is endpoint]
    return [
        {
            "id": mask(s.id) if s.transport == "streamable" else "its HTTP+SSE stream",
            "revision": shown(s.revision or "", 40),
            "opened": clock(s.started, zone),
            "ended": f"ended by {shown(s.ended_why, 60)} at {clock(s.ended_at, zone)}" if s.ended_at is not None else "open",
            "live": s.live,
        }
        for s in found[-SESSIONS:]
    ]
