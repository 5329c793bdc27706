"""The mirrored headers of a request beside what its body says, and where the tool declared them."""

from mcp_wiretap.report.words import duration, short_flow
from mcp_wiretap.trace.model import Exchange, HeaderCheck, ToolDefinition
from mcp_wiretap.trace.schema.annotations import Mirror
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, key, pairs, scalar
from mcp_wiretap.wire.secret import mask_header

_WORDS = {
    "match": "= match",
    "mismatch": "≠ MISMATCH",
    "missing": "✕ MISSING",
    "undecodable": "✕ UNDECODABLE",
    "should-be-encoded": "✕ SHOULD BE ENCODED",
    "duplicate": "▲ DUPLICATE",
    "undeclared": "▲ undeclared",
    "needless-encoding": "= match, needlessly encoded",
    "not-required": "– not required",
    "unchecked": "– not compared",
}


def table(subject: Subject) -> list[Row]:
    """One line a header: raw value, verdict, decoded value, what the body says, the rule that complains."""
    checks = subject.record.header_checks
    if not checks:
        return []
    seen: dict[str, int] = {}
    items = []
    for check in checks:
        name = _spelling(subject.whole, check.header)
        seen[name.lower()] = seen.get(name.lower(), 0) + 1
        if seen[name.lower()] > 1:
            name = f"{name} ({seen[name.lower()]})"
        raw = "(absent)" if check.raw is None else scalar(mask_header(check.header, check.raw), 120) or '""'
        items.append((key(name), raw, said(subject, check)))
    return [(0, "headers:", ""), *pairs(items, 2)]


def said(subject: Subject, check: HeaderCheck) -> str:
    """The verdict on one header in words."""
    words = _WORDS.get(check.verdict, check.verdict)
    if check.decoded is not None and check.raw is not None and check.decoded != check.raw.strip(" \t"):
        words += f", decoded: {check.decoded}"
    if check.verdict == "mismatch":
        words += f", body says: {check.body}"
    elif check.verdict in ("missing", "undecodable", "should-be-encoded") and check.body is not None:
        expected = check.expected if check.expected is not None else check.body
        words += f", it should read: {expected}"
    if check.detail:
        words += f" ({check.detail})"
    rules = [f.rule for f in subject.record.findings if any(e.where.lower() == _where(check) for e in f.evidence)]
    return words + (f"  [{' '.join(dict.fromkeys(rules))}]" if rules else "")


def _where(check: HeaderCheck) -> str:
    return f"request.header:{check.header}".lower()


def _spelling(exchange: Exchange, header: str) -> str:
    """The name as it came."""
    return next((name for name, _ in exchange.request_fields if name.lower() == header.lower()), header)


def declared(subject: Subject) -> list[Row]:
    """Which parameters the tool declared to be mirrored, by the definition that the client had (the newest one known)."""
    request = subject.request
    if request is None or request.method != "tools/call":
        return []
    definition = definition_of(subject)
    if definition is None or not definition.annotations.mirrors:
        return []
    whole = subject.whole
    age = duration((whole.started - definition.listed_at) * 1000)
    when = f"{age} earlier" if whole.started >= definition.listed_at else "listed later"
    rows = [(0, "declared:", f"tools/list, flow {short_flow(definition.flow)}, {when}")]
    arguments = request.params.get("arguments")
    mirrors = definition.annotations.mirrors
    items = [(key(".".join(m.path)), m.field, _of_mirror(m, arguments, definition)) for m in mirrors]
    return rows + pairs(items, 2)


def _of_mirror(mirror: Mirror, arguments: object, definition: ToolDefinition) -> str:
    schema = definition.raw.get("inputSchema")
    required = schema.get("required") if isinstance(schema, dict) else None
    words = mirror.type
    if len(mirror.path) == 1 and isinstance(required, list) and mirror.path[0] in required:
        words += ", required"
    node: object = arguments
    for step in mirror.path:
        node = node.get(step) if isinstance(node, dict) else None
    return words if node is not None else f"{words}, not sent: no header needed"


def definition_of(subject: Subject) -> ToolDefinition | None:
    """The tool that a call names: as its client saw it, else as it was listed last."""
    record, request = subject.record, subject.request
    if record.tool is not None and record.tool.definition is not None:
        return record.tool.definition
    name = request.params.get("name") if request is not None else None
    found = record.endpoint.tools.get(name) if isinstance(name, str) else None
    return found if isinstance(found, ToolDefinition) else None


def mirrored_in(subject: Subject) -> dict[str, str]:
    """Argument name -> the header that mirrors it."""
    definition = definition_of(subject)
    if definition is None:
        return {}
    return {m.path[0]: f"-> {m.field}, {m.type}" for m in definition.annotations.mirrors if len(m.path) == 1}
