"""What the tools answer: short texts about traces, in which everything off the wire is quoted (`quoting`)."""

from collections.abc import Mapping

from mcp_wiretap import explanation
from mcp_wiretap.ask.quoting import bounded, flow_id, quoted, quoted_lines
from mcp_wiretap.ask.traces import Trace, Traces, Unknown, conversation_of, find, newest
from mcp_wiretap.compare import render
from mcp_wiretap.compare.difference import compare as difference_of
from mcp_wiretap.report import comment
from mcp_wiretap.report import failures as failing
from mcp_wiretap.report.words import duration
from mcp_wiretap.rule import Rule, left_out
from mcp_wiretap.trace.finding import RANK, Evidence, Finding
from mcp_wiretap.trace.model import Endpoint, Exchange, HeaderCheck
from mcp_wiretap.view import order
from mcp_wiretap.wire.pace import paced
from mcp_wiretap.wire.revision import error_name
from mcp_wiretap.wire.secret import knowing, mask

SERVERS = 40  # of one trace
FINDINGS = 3  # of one exchange, the worst
EVIDENCE = 3  # of one finding
MOST = 50  # exchanges of one answer
EVENTS = 60  # messages of one exchange in a sequence


def overview(of: Traces) -> str:
    """Servers with their eras, and the numbers of operations, failures and findings, of each trace."""
    lines: list[str] = []
    for trace in of.traces():
        with knowing(trace.inspector.secrets):
            lines += _of_trace(trace)
    return bounded(lines or ["Nothing was seen yet."], "ask `operations` with server= or last=")


def trace(one: Trace) -> str:
    """The same of one trace."""
    with knowing(one.inspector.secrets):
        return bounded(_of_trace(one), "ask `operations` with server= or last=")


def _of_trace(trace: Trace) -> list[str]:
    exchanges = list(trace.inspector.exchanges.values())
    shown = [e for e in exchanges if e.kind not in ("other", "process")]
    counts = dict.fromkeys(("error", "warning", "info"), 0)
    for exchange in paced(exchanges):
        for finding in exchange.findings:
            counts[finding.severity or "info"] += 1
    failed = sum(1 for e in paced(shown) if _failed(e))
    waiting = [e for e in shown if _waits(e)]
    lines = [
        f"{trace.name}: {len(shown)} exchanges of MCP and authorization, {failed} failed, "
        f"{len(waiting)} without an answer so far; "
        f"findings: {counts['error']} errors, {counts['warning']} warnings, {counts['info']} notes"
    ]
    if trace.damage:
        lines.append(f"  damaged: {quoted(trace.damage)}; what could be read is here")
    servers = [endpoint for endpoint in trace.inspector.endpoints.values() if endpoint.proven]
    lines += [f"  {_server(endpoint)}" for endpoint in servers[:SERVERS]]
    if len(servers) > SERVERS:
        lines.append(f"  ... {len(servers) - SERVERS} more servers")
    lines += [f"  no answer yet: {_line(e)}" for e in waiting[-FINDINGS:]]
    for what, number in trace.inspector.dropped.items():
        lines.append(f"  not kept, past a limit: {number} {what}")
    return lines


def _server(endpoint: Endpoint) -> str:
    info = endpoint.server_info or {}
    name = " ".join(word for word in (info.get("name"), info.get("version")) if isinstance(word, str))
    revisions = ", ".join(quoted(revision, 40) for revision in list(endpoint.revisions)[:6])
    return (
        f"server {quoted(endpoint.url)} over {endpoint.transport}: era {endpoint.era}"
        + (f", revisions {revisions}" if revisions else "")
        + (f", calls itself {quoted(name, 80)}" if name else "")
        + f", {len(endpoint.tools)} tools"
    )


def failures(of: Traces, tool: str = "", server: str = "", last: int = 5) -> str:
    """The newest exchanges that failed, or that broke a rule by an error, with cause, party, evidence and fix."""
    rules = of.rules()
    blocks: list[list[str]] = []
    total = 0
    for trace, exchange in newest(of.traces()):
        if not _fits(exchange, tool, server) or not (_failed(exchange) or exchange.severity == "error"):
            continue
        total += 1
        if len(blocks) < min(last, MOST):
            with knowing(trace.inspector.secrets):
                blocks.append(_explained(exchange, rules))
    if not blocks:
        return "Nothing failed, and no rule was broken by an error" + (" there." if tool or server else ".")
    lines = [line for block in blocks for line in block]
    if total > len(blocks):
        lines.append(f"{total - len(blocks)} older ones: ask with last={min(total, MOST)}, or with tool= or server=")
    return bounded(lines, "ask with a smaller last=, or about one flow with `exchange`")


def _explained(exchange: Exchange, rules: Mapping[str, Rule]) -> list[str]:
    lines = [_line(exchange)]
    found = _sorted(exchange)
    for finding in found[:FINDINGS]:
        lines += _finding(finding)
        if (rule := rules.get(finding.rule)) is not None and (fix := explanation.of(rule).fix):
            lines.append(f"    fix: {fix}")
    if not found:
        said = f": {quoted(exchange.error_message)}" if exchange.error_message else ""
        lines.append(f"  no rule explains it; the other side's own words are all there is{said}")
    elif len(found) > FINDINGS:
        lines.append(f"  {len(found) - FINDINGS} more findings: ask `exchange`")
    if exchange.conversation is not None and len(exchange.conversation.rounds) > 1:
        rounds = ", ".join(flow_id(flow)[:8] for flow in exchange.conversation.rounds[:8])
        lines.append(f"  part of a conversation of {len(exchange.conversation.rounds)} exchanges: {rounds}")
    return lines


def operations(of: Traces, method: str = "", tool: str = "", server: str = "", last: int = 20) -> str:
    """What clients asked, the newest first, one line each."""
    lines: list[str] = []
    total = 0
    for trace, exchange in newest(of.traces()):
        if not _fits(exchange, tool, server) or (method and exchange.method != method):
            continue
        total += 1
        if total <= min(last, MOST):
            with knowing(trace.inspector.secrets):
                lines.append(_line(exchange))
    if not lines:
        return "There is nothing of that kind."
    if total > len(lines):
        lines.append(f"{total - len(lines)} older ones: ask with last={min(total, MOST)}, or with method=, tool= or server=")
    return bounded(lines, "ask with a smaller last=")


def exchange(of: Traces, flow: str) -> str:
    """All that is known of one exchange: mirrored headers with their verdicts, findings, conversation, both messages."""
    trace, found = find(of.traces(), flow)
    with knowing(trace.inspector.secrets):
        return _exchange(of, trace, found)


def _exchange(of: Traces, trace: Trace, found: Exchange) -> str:
    lines = [_line(found), f"at {quoted(found.url)}" + (f", conversation of {_rounds(found)}" if found.conversation else "")]
    lines += [_header(check) for check in found.header_checks]
    rules = of.rules()
    for finding in _sorted(found):
        lines += _finding(finding)
        if (rule := rules.get(finding.rule)) is not None and (fix := explanation.of(rule).fix):
            lines.append(f"    fix: {fix}")
    if not found.findings:
        lines.append("  no findings")
    for one in found.unchecked[:FINDINGS]:
        lines.append(f"  not checked: {quoted(one.what)}, as {quoted(one.why)}")
    subject = of.subject(trace, found)
    if subject is None:
        return bounded([*lines, "  the messages themselves are not kept any more"], "that is all there is room for")
    for title, page in (("request", order.request(subject)), ("response", order.response(subject))):
        lines += [f"{title}:", *quoted_lines(page).splitlines()]
    return _closed(bounded(lines, "the messages are longer than an answer may be"))


def _closed(answer: str) -> str:
    """With the last quotation closed where the answer was cut inside of it."""
    return answer + "\n»" if answer.count("«") > answer.count("»") else answer


def conversation(of: Traces, flow: str) -> str:
    """The operation that a flow belongs to as a sequence: who sent what to whom, when, with what is wrong in its place."""
    trace, found = find(of.traces(), flow)
    with knowing(trace.inspector.secrets):
        return _conversation(of, trace, found)


def _conversation(of: Traces, trace: Trace, found: Exchange) -> str:
    whole, rounds = conversation_of(trace, found)
    start = rounds[0].started
    head = f"{_subject(rounds[0])} at {quoted(rounds[0].endpoint.url)}"
    lines = [head + (f": {whole.status}, {len(whole.rounds)} exchanges" if whole is not None else "")]
    links = {link.later: link for link in whole.links} if whole is not None else {}
    for number, one in enumerate(rounds, 1):
        if (link := links.get(one.flow)) is not None:
            lines.append(f"{number}. continues {flow_id(link.earlier)[:8]} by {link.by} ({link.confidence})")
        else:
            lines.append(f"{number}. flow {flow_id(one.flow)}")
        lines.append(
            f"   {_after(one.started, start)} client -> server: {_subject(one)}" + (f" {quoted(one.asked)}" if one.asked else "")
        )
        lines += [f"   {line}" for line in _between(of, trace, one, start)]
        end = f"{_after(one.ended, start)} " if one.ended is not None else ""
        lines.append(f"   {end}server -> client: {_outcome(one)}" + (f" {quoted(one.said)}" if one.said else ""))
        for finding in _sorted(one)[:FINDINGS]:
            lines += [f" {line}" for line in _finding(finding)]
    return bounded(lines, "ask `exchange` about one flow")


def _between(of: Traces, trace: Trace, one: Exchange, start: float) -> list[str]:
    """What the server sent on the stream before the answer: requests of its own, notifications."""
    if one.stream is None or (subject := of.subject(trace, one)) is None:
        return []
    messages = [m for m in subject.whole.received if m.kind in ("request", "notification")]
    lines = [f"{_after(m.at, start)} server -> client: {m.kind} {quoted(m.method or '?', 80)}" for m in messages[:EVENTS]]
    return [*lines, f"... {len(messages) - EVENTS} more"] if len(messages) > EVENTS else lines


def streams(of: Traces, last: int = 20) -> str:
    """Event streams: what they answer, how many events came, which are open, who ended them."""
    lines = []
    for trace, one in newest(of.traces()):
        if one.stream is None:
            continue
        with knowing(trace.inspector.secrets):
            state = (
                "open"
                if one.ended is None
                else f"ended by {one.ended_by or 'unknown'} after {duration((one.ended - one.started) * 1000)}"
            )
            lines.append(f"{flow_id(one.flow)} {_subject(one)} at {quoted(one.endpoint.url)}: {one.stream.count} events, {state}")
        if len(lines) >= min(last, MOST):
            break
    return bounded(lines or ["There were no event streams."], "ask with a smaller last=")


def rule(of: Traces, id_: str) -> str:
    """What a rule demands, why, how to fix it, an example of each, and the section of the specification."""
    found = of.rules().get(id_.strip().upper())
    if found is None:
        why = left_out().get(id_.strip().upper())
        raise Unknown(f"it is no rule: {why}" if why else "there is no such rule; findings name theirs, as HDR004")
    told = explanation.of(found)
    parts = [f"{found.id} {found.title}", f"{found.severity}, broken by the {found.party}, era {found.era}", told.demand]
    parts += [
        f"{title}:\n{text}"
        for title, text in (("Why", told.why), ("Fix", told.fix), ("Wrong", told.wrong), ("Right", told.right))
        if text
    ]
    address = explanation.link(found.spec)
    return "\n\n".join([*parts, f"Specification: {found.spec}" + (f" {address}" if address else "")])


def rule_list(of: Traces) -> str:
    """All rules, one line each."""
    return "\n".join(f"{one.id} {one.title} ({one.severity}, {one.party})" for _, one in sorted(of.rules().items()))


def compare(of: Traces, before: str, after: str) -> str:
    """What differs between two recordings: tools, outcomes of calls, findings that came and went, eras, latencies."""
    one, other = _named(of, before), _named(of, after)
    if one.profile is None or other.profile is None:
        raise Unknown("live traffic cannot be compared; record it, and give both recordings to `mcp-wiretap mcp`")
    with knowing(one.inspector.secrets, other.inspector.secrets):
        lines = render.as_text(difference_of(one.profile, other.profile))
        return _closed(
            bounded(
                ["What `diff` says; it quotes names and messages of both:", *quoted_lines("\n".join(lines)).splitlines()],
                "use `mcp-wiretap diff`",
            )
        )


def _named(of: Traces, name: str) -> Trace:
    traces = of.traces()
    for number, trace in enumerate(traces, 1):
        if name in (trace.name, str(number)):
            return trace
    raise Unknown(
        f"there is no recording of that name; there are {', '.join(f'{n} ({t.name})' for n, t in enumerate(traces, 1))}"
    )


# Words


def _line(exchange: Exchange) -> str:
    """`FLOW ERA METHOD «NAME» -> OUTCOME «WORDS»`."""
    return f"{flow_id(exchange.flow)} {_subject(exchange)} -> {_outcome(exchange)}"


def _subject(exchange: Exchange) -> str:
    if exchange.kind == "oauth":
        return f"authorization {quoted(exchange.step_words or exchange.http_method, 120)}"
    if exchange.kind == "preflight":
        return f"preflight at {quoted(exchange.endpoint.url)}"
    words = [exchange.shown_era, quoted(exchange.method, 80) if exchange.method else exchange.http_method]
    return " ".join(words) + (f" {quoted(exchange.name, 120)}" if exchange.name else "")


def _outcome(exchange: Exchange) -> str:
    words: list[str] = [exchange.outcome if not _waits(exchange) else "no answer so far"]
    if exchange.error_code is not None:
        name = error_name(exchange.error_code)
        words.append(f"{comment.number(exchange.error_code)}" + (f" {name}" if name else ""))
    if exchange.status is not None:
        words.append(f"HTTP {exchange.status}")
    if exchange.ended is not None and exchange.ended >= exchange.started:
        words.append(f"after {duration((exchange.ended - exchange.started) * 1000)}")
    if place := comment.mrtr(exchange):
        words.append(f"(MRTR {place})")
    if exchange.change is not None:
        words.append("(changed at the proxy)")
    said = exchange.error_message or (comment.reason(exchange.failure) if exchange.failure else "")
    return " ".join(words) + (f" {quoted(said, 300)}" if said else "")


def _finding(finding: Finding) -> list[str]:
    lines = [f"  {finding.severity or 'info'} {finding.rule} by the {finding.party or 'client'}: {quoted(finding.message, 300)}"]
    return lines + [f"    evidence: {_evidence(evidence)}" for evidence in finding.evidence[:EVIDENCE]]


def _evidence(evidence: Evidence) -> str:
    expected = f", expected {quoted(evidence.expected)}" if evidence.expected is not None else ""
    return f"{quoted(evidence.where, 120)} is {quoted(evidence.value)}{expected}"


def _header(check: HeaderCheck) -> str:
    sent = _value(check.decoded if check.raw is not None else None, secret=check.secret)
    return f"  header {quoted(check.header, 80)}: {check.verdict}; header {sent}, body {_value(check.body, secret=check.secret)}"


def _rounds(exchange: Exchange) -> str:
    rounds = exchange.conversation.rounds if exchange.conversation is not None else []
    return ", ".join(flow_id(flow) for flow in rounds[:8]) + (f" and {len(rounds) - 8} more" if len(rounds) > 8 else "")


def _value(value: str | None, *, secret: bool) -> str:
    if value is None:
        return "absent"
    return mask(value) if secret else quoted(value, 120)


def _after(moment: float | None, start: float) -> str:
    return f"+{duration(((moment or start) - start) * 1000)}"


def _sorted(exchange: Exchange) -> list[Finding]:
    """The worst first, the headline before its like."""
    headline = comment.headline_of(exchange)
    return sorted(exchange.findings, key=lambda f: (-RANK[f.severity or "info"], f is not headline))


def _failed(exchange: Exchange) -> bool:
    failure = failing.of(exchange, "")
    return failure is not None and not failure.foreseen


def _waits(exchange: Exchange) -> bool:
    return exchange.kind == "mcp" and exchange.ended is None and exchange.stream is None and exchange.outcome == "none"


def _fits(exchange: Exchange, tool: str, server: str) -> bool:
    return exchange.kind != "process" and (not tool or exchange.name == tool) and (not server or server in exchange.endpoint.url)
