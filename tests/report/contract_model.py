"""The audit contract of docs/architecture.md as a model that takes nothing more and nothing less."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

type Severity = Literal["error", "warning", "info"]
type Outcome = Literal["complete", "input_required", "task", "error", "accepted", "stream", "cancelled", "broken", "none"]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class Tool(Strict):
    name: str
    version: str


class Input(Strict):
    path: str
    flows: int
    error: str | None


class Header(Strict):
    header: str
    raw: str | None
    decoded: str | None
    body: str | None
    verdict: Literal[
        "match",
        "mismatch",
        "missing",
        "not-required",
        "undecodable",
        "should-be-encoded",
        "needless-encoding",
        "duplicate",
        "undeclared",
        "unchecked",
    ]


class BatchMessage(Strict):
    kind: Literal["request", "notification", "result", "error", "invalid"]
    method: str | None
    jsonrpc_id: Any
    outcome: Outcome
    error_code: int | None


class Changed(Strict):
    by: str
    request: bool
    response: bool


class Process(Strict):
    command: str
    exit: int | None
    stderr_bytes: int


class Flow(Strict):
    id: str
    input: str
    index: int | None
    kind: Literal["mcp", "oauth", "preflight", "process", "other"]
    endpoint: str | None
    era: Literal["modern", "legacy", "unknown"] | None
    revision: str | None
    http_method: str
    status: int | None
    started: float | None
    ended: float | None
    method: str | None
    name: str | None
    jsonrpc_id: Any
    messages: list[BatchMessage] | None
    outcome: Outcome
    error_code: int | None
    error_message: str | None
    conversation: str | None
    round: int | None
    headers: list[Header]
    changed: Changed | None
    transport: Literal["http", "http+sse", "stdio"]
    process: Process | None


class Link(Strict):
    from_: str = Field(alias="from")
    to: str
    by: Literal["requestState", "inputResponses", "jsonrpc-id", "taskId", "negotiation", "resumption"]
    confidence: Literal["exact", "likely"]


class Conversation(Strict):
    id: str
    input: str
    endpoint: str
    method: str | None
    name: str | None
    status: Literal["complete", "error", "awaiting-input", "working", "cancelled", "broken", "abandoned"]
    rounds: list[str] = Field(min_length=2)
    started: float | None
    ended: float | None
    client_ms: float | int
    links: list[Link] = Field(min_length=1)


class Server(Strict):
    name: str | None
    version: str | None


class ToolCost(Strict):
    name: str
    definition: int
    calls: int
    results: int
    largest: int


class Context(Strict):
    definitions: int
    results: int
    tools: list[ToolCost]


class Endpoint(Strict):
    url: str
    transport: Literal["http", "http+sse", "stdio"]
    input: str
    era: Literal["modern", "legacy", "dual", "unknown"]
    revisions: list[str]
    server: Server | None
    tools: list[str]
    context: Context


class Evidence(Strict):
    where: str
    value: str
    expected: str | None


class Finding(Strict):
    rule: str
    severity: Severity
    party: Literal["client", "server"]
    message: str
    input: str
    flow: str
    related: list[str]
    evidence: list[Evidence]
    spec: str


class Unchecked(Strict):
    flow: str
    what: str
    why: str


class Fault(Strict):
    flow: str | None
    where: str
    error: str


class Silenced(Strict):
    rule: str
    endpoint: str
    count: int
    reason: str


class Summary(Strict):
    error: int
    warning: int
    info: int
    flows: int
    mcp_flows: int


class Contract(Strict):
    schema_: Literal[1] = Field(alias="schema")
    tool: Tool
    inputs: list[Input]
    flows: list[Flow]
    conversations: list[Conversation]
    endpoints: list[Endpoint]
    findings: list[Finding]
    unchecked: list[Unchecked]
    faults: list[Fault]
    silenced: list[Silenced]
    dropped: dict[str, int]
    summary: Summary
