"""The facts of a trace: exchanges, messages, endpoints, streams, conversations. Data only; `inspector` and the trackers fill it.

Memory: an exchange keeps its parsed bodies only while something may still be judged by them (`Exchange.release`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_wiretap.trace.events import NOTHING, EndedBy
from mcp_wiretap.trace.facts import EndpointFacts, ExchangeFacts, SessionFacts
from mcp_wiretap.trace.finding import RANK, Finding, Party, Severity, Silence, Unchecked
from mcp_wiretap.trace.schema.annotations import Annotations, Flaw, Mirror
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.revision import CLIENT_CAPABILITIES, Era, version_kind
from mcp_wiretap.wire.secret import KnownSecrets
from mcp_wiretap.wire.sse import SseEvent

_LONGEST_REVISION = 100  # characters; it is kept after the bodies are gone
BATCH_ITEMS = 200  # messages of one batch that are listed one by one

type Kind = Literal["mcp", "oauth", "preflight", "process", "other"]
type Transport = Literal["http", "http+sse", "stdio"]
type ClaimKind = Literal[
    "modern",  # envelope with a known modern revision
    "modern-unknown",  # envelope with a version this tool does not know
    "modern-malformed",  # signs of the modern era, but no usable envelope
    "legacy-envelope",  # envelope that names a legacy revision
    "legacy",
    "legacy-transport",  # GET, DELETE, batch, posted response: a legacy candidate
    "unknown-body",  # the recorder did not keep the body
    "none",  # nothing to go by
]
type Outcome = Literal["complete", "input_required", "task", "error", "accepted", "stream", "cancelled", "broken", "none"]
type LinkBy = Literal["requestState", "inputResponses", "jsonrpc-id", "taskId", "negotiation", "resumption"]
type Confidence = Literal["exact", "likely"]
type Status = Literal["complete", "error", "awaiting-input", "working", "cancelled", "broken", "abandoned"]


@dataclass(slots=True)
class Claim:
    """What era a request claims for itself (catalogue ERA001), body first. `basis` says it in words."""

    kind: ClaimKind
    revision: str | None
    basis: str

    def __post_init__(self) -> None:
        if self.revision is not None and len(self.revision) > _LONGEST_REVISION:
            self.revision = self.revision[:_LONGEST_REVISION] + "…"

    @property
    def modern(self) -> bool:
        return self.kind in ("modern", "modern-unknown", "modern-malformed")


@dataclass(slots=True, eq=False)
class Message:
    """One JSON-RPC message with where it was seen and when."""

    rpc: jsonrpc.Message
    exchange: Exchange
    party: Party  # who sent it
    where: str  # request.body, response.body, response.event[3]
    at: float
    request: Message | None = None  # of a result or error: the request that it answers
    answer: Message | None = None  # of a request: the first answer seen
    id_matches: bool = True  # of an answer: its id is the request's, value and JSON type
    found: Any = None  # what a tracker has to say of this very message

    @property
    def kind(self) -> str:
        return self.rpc.kind

    @property
    def method(self) -> str | None:
        return self.rpc.method

    @property
    def params(self) -> dict[str, Any]:
        """The params object; empty where there is none or it is not an object."""
        params = self.rpc.params
        return params if isinstance(params, dict) else {}

    @property
    def result(self) -> dict[str, Any]:
        """The result object; empty where there is none or it is not an object."""
        result = self.rpc.result
        return result if isinstance(result, dict) else {}

    @property
    def meta(self) -> dict[str, Any]:
        return self.rpc.meta

    @property
    def error_code(self) -> int | None:
        return self.rpc.error_code

    def place(self, *steps: str | int) -> str:
        """Evidence `where` of a value inside this message: `request.body:/params/name`."""
        if self.rpc.index is not None:
            steps = (self.rpc.index, *steps)
        return f"{self.where}:{jsonrpc.pointer(*steps)}"


@dataclass(slots=True)
class StreamItem:
    """One dispatched SSE event of an exchange, with the messages read from it."""

    exchange: Exchange
    at: float
    event: SseEvent
    reading: jsonrpc.Reading | None  # None: the event has no data
    messages: list[Message]

    @property
    def where(self) -> str:
        return f"response.event[{self.event.index}]"


@dataclass(slots=True)
class Stream:
    """The event stream that answered an exchange."""

    items: list[StreamItem] = field(default_factory=list)  # bounded by Limits.events; `count` goes on
    times: list[float] = field(default_factory=list)
    count: int = 0
    unread: bool = False  # there are more events than are read
    comments: int = 0
    retry: int | None = None  # the newest retry field, of an event or alone in its block
    first_at: float | None = None
    last_at: float | None = None
    http_sse: bool = False  # first dispatched event is `endpoint`: the 2024-11-05 transport
    timed: bool = True  # False: the recording has no arrival times of single events
    recorded: bool = True  # False: the recorder did not keep its bytes
    unfinished: bool = False  # ended inside an event, which was discarded
    foreign: str = ""  # how it begins where it is no event stream, but JSON or a page
    decode_problem: str | None = None


@dataclass(slots=True)
class HeaderCheck:
    """One mirrored header of a request beside what the body says (`headers` of the audit contract)."""

    header: str
    raw: str | None
    decoded: str | None
    body: str | None
    verdict: str
    detail: str = ""
    where: tuple[str | int, ...] = ()  # steps below the message to the body value
    expected: str | None = None  # what the header should read
    problems: frozenset[str] = frozenset()  # all that is wrong with it, in the words of `mirror`; a verdict says but one
    doubt: str = ""  # why its faults are less than certain
    secret: bool = False  # of an argument that its tool declares as secret: the values are masked


@dataclass(slots=True, frozen=True)
class BatchItem:
    """One message of a JSON-RPC batch that a client sent, and what became of it."""

    kind: str
    id: Any
    has_id: bool
    method: str | None
    outcome: Outcome
    error_code: int | None


@dataclass(slots=True)
class Change:
    """What was changed of an exchange at the proxy, and by whom (`user`, `modify_body`, ..., `unknown`); None: it was not."""

    request_by: str | None = None
    response_by: str | None = None
    answered_here: bool = False  # nothing was sent to the server: the answer is that of `response_by`
    unsure: str = ""  # why it is not known what the server was given

    @property
    def by(self) -> str:
        """Who changed it; of two, who changed the request."""
        return self.request_by or self.response_by or "unknown"


@dataclass(slots=True, frozen=True)
class Fault:
    """A fault that was put into an exchange (`mcp_fault`): `cut:1`. `applied`: there was something to break. `state`: of a
    question that was put in, the requestState that it gave."""

    kind: str
    argument: str = ""
    applied: bool = True
    state: str = ""

    def __str__(self) -> str:
        words = f"{self.kind}:{self.argument}" if self.argument else self.kind
        return words if self.applied else f"{words}, not applied"


@dataclass(slots=True, eq=False)
class Exchange:
    """One HTTP request with its response (or the lack of one), and every JSON-RPC message in it."""

    flow: str
    seq: int  # position in the trace, by start
    kind: Kind
    endpoint: Endpoint
    http_method: str
    url: str  # scheme://host:port/path, no query
    query: str
    authority: str | None
    connection: str
    started: float
    requested: float  # last byte of the request
    request_fields: Fields
    reading: jsonrpc.Reading | None = None  # of the request body; None: not captured
    form: bytes | None = None  # the request body where it is a form, bounded (wire.form)
    reverse: bool = False  # `url` is that of the server behind a reverse proxy, not what the client called
    claim: Claim = field(default_factory=lambda: Claim("none", None, "nothing to go by"))
    auth: str = ""  # who it is of: first 8 hex digits of SHA-256 of Authorization, "" without; on stdio, of its process
    redacted: Mapping[str, Any] = NOTHING  # what an export kept of secrets that it replaced: `challenge`, `states`
    client_info: tuple[str, str] | None = None  # (name, version): the envelope's, or the session's initialize's

    status: int | None = None
    response_fields: Fields | None = None
    responded: float | None = None  # first byte of the response
    answer_reading: jsonrpc.Reading | None = None  # of a response body that is not a stream
    stream: Stream | None = None
    ended: float | None = None
    ended_by: EndedBy | None = None
    failure: str | None = None  # what the proxy said of a broken exchange
    connected: bool = True  # False: the proxy did not reach the server
    step: str | None = None  # of authorization: its kind
    step_words: str = ""  # the step with what makes it concrete: token (refresh_token)
    dropped: int = 0  # response bytes past a limit
    large: bool = False  # a message of it is long enough that looking at all of it takes time
    body_words: str = ""  # of an answer that is no JSON-RPC, as they came (`wire.plain_text`)

    sent: list[Message] = field(default_factory=list)  # by the client, in this request
    received: list[Message] = field(default_factory=list)  # from the server, bounded like Stream.items
    header_checks: list[HeaderCheck] = field(default_factory=list)
    session: Session | None = None
    process: Process | None = None  # on stdio, where its start was recorded
    mrtr: Round | None = None
    tool: ToolView | None = None  # of a tools/call: the definition this client had seen
    definitions: list[ToolDefinition] = field(default_factory=list)  # the tools that its answers list
    finished: bool = False  # the trace is over, and a tracker has something to say about this exchange
    facts: ExchangeFacts = field(default_factory=ExchangeFacts)  # what the trackers found

    era: Era = "unknown"
    revision: str | None = None
    conversation: Conversation | None = None
    round: int | None = None
    findings: list[Finding] = field(default_factory=list)
    judged_by_head: bool = False  # some of these were found before its body was there: they are looked at anew at its end
    mildest: int = -1  # rank below which no finding is, where there are as many as are kept
    silenced: dict[Silence, int] = field(default_factory=dict)  # findings that the user does not want to see
    suppressed: int = 0  # findings past the limit
    unchecked: list[Unchecked] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)  # (where in our code, error)

    late_answer: Message | None = None  # legacy: the answer came on another stream
    # Where something was changed on its way, the exchange has two sides (`sides`). Itself, it has the request as it was received
    # and the answer as the server gave it.
    change: Change | None = None
    at_server: Exchange | None = None  # with the request as the server was given it
    at_client: Exchange | None = None  # with the answer as the client got it
    fault: Fault | None = None  # that was put in, for the client to show what it does
    held: str = ""  # at the proxy, by the user: since when, in words; "" once it goes on
    judged: Party | Literal["nobody"] | None = None  # who is judged by it; None: both
    released: bool = False
    # A settled summary, so that everything that is shown survives release().
    method: str | None = None
    name: str | None = None
    jsonrpc_id: Any = None
    asked: str = ""  # in a few words, for lists (`trace.gist`)
    said: str = ""
    outcome: Outcome = "none"
    error_code: int | None = None
    error_message: str | None = None  # how the other side told of the failure, secrets masked (`trace.summary.error_words`)
    batch: tuple[BatchItem, ...] | None = None  # settled by release(); `batch_items` before that
    secrets: KnownSecrets = field(default_factory=KnownSecrets)  # of the trace, for `knowing`
    _requests: dict[Any, Message] | None = None  # `requests`, made when the first answer comes

    @property
    def request(self) -> Message | None:
        """The first JSON-RPC request of the body (the only one, outside batches)."""
        for message in self.sent:
            if message.rpc.kind == "request":
                return message
        return None

    @property
    def requests(self) -> dict[Any, Message]:
        """The requests of the body by `id_key`; the first one, where an id is used twice."""
        if self._requests is None:
            self._requests = {}
            for message in self.sent:
                if message.rpc.kind == "request":
                    self._requests.setdefault(jsonrpc.id_key(message.rpc.id), message)
        return self._requests

    @property
    def answer(self) -> Message | None:
        """The answer to `request`, wherever it came."""
        request = self.request
        return request.answer if request is not None else None

    @property
    def transport(self) -> Transport:
        """What the messages travel by. `http+sse` is the transport of 2024-11-05."""
        if self.endpoint.on_stdio:
            return "stdio"
        return "http+sse" if self.over_http_sse else "http"

    @property
    def over_http_sse(self) -> bool:
        """Whether it belongs to the 2024-11-05 HTTP+SSE transport (RPC031), whatever revision was negotiated there. Where the GET
        was not recorded, a session id in the query without MCP headers tells it."""
        if self.session is not None and self.session.transport == "http+sse":
            return True
        if self.stream is not None and self.stream.http_sse:
            return True
        return bool(self.query) and _names_session(self.query) and not self.request_fields.names_starting("mcp-")

    @property
    def shown_era(self) -> Era:
        """The era that people are told. Where the server has not shown its own, a request is what it claims to be, if nothing
        contradicts that. (Rules go by `era`: a refusal proves nothing of the server.)"""
        if self.era != "unknown":
            return self.era
        header = self.request_fields.first("mcp-protocol-version")
        named = version_kind(header.strip()) if header is not None else None
        if self.claim.kind in ("legacy", "legacy-transport"):
            own = self.method == "initialize" or named == "legacy" or self.session is not None
            if own and named in (None, "legacy") and version_kind(self.claim.revision or "") == "legacy":
                return "legacy"
        if self.claim.kind in ("legacy-transport", "none", "unknown-body"):
            server = self.endpoint.era
            if server == "modern" or (server == "dual" and named == "modern"):
                return "modern"
            return "legacy" if server == "legacy" else "unknown"
        return "unknown"

    @property
    def over(self) -> bool:
        return self.ended is not None

    @property
    def capabilities(self) -> dict[str, Any]:
        """The client's capabilities that hold for this request: its own envelope's, or its session's."""
        request = self.request
        found = request.meta.get(CLIENT_CAPABILITIES) if request is not None else None
        if found is None and self.session is not None and not self.claim.modern:
            found = self.session.client_capabilities
        return found if isinstance(found, dict) else {}

    @property
    def severity(self) -> Severity | None:
        """The worst finding's."""
        return max((f.severity or "info" for f in self.findings), key=lambda s: RANK[s], default=None)

    @property
    def messages(self) -> Iterator[Message]:
        yield from self.sent
        yield from self.received

    @property
    def batch_items(self) -> tuple[BatchItem, ...] | None:
        """The messages of a batch with their answers, bounded; None where the request is not a batch."""
        if self.batch is not None or self.reading is None or self.reading.kind != "batch":
            return self.batch
        return tuple(_batch_item(message) for message in self.sent[:BATCH_ITEMS])

    def release(self) -> None:
        """Let go of the parsed bodies; what is shown of the exchange stays."""
        self.batch = self.batch_items
        self.released = True
        self.reading = self.answer_reading = self.tool = self.form = None
        self.body_words = ""
        self.late_answer = self.at_server = self.at_client = None
        self.sent = []
        self.received = []
        self._requests = None
        self.facts = ExchangeFacts()
        self.definitions = []
        self.mrtr = None
        if self.stream is not None:
            self.stream.items = []


def _batch_item(message: Message) -> BatchItem:
    rpc, answer = message.rpc, message.answer
    outcome: Outcome = "none"
    if answer is not None:
        outcome = "error" if answer.rpc.kind == "error" else "complete"
    elif rpc.kind != "request" and message.exchange.status == 202:
        outcome = "accepted"
    code = answer.error_code if answer is not None else None
    return BatchItem(rpc.kind, rpc.id if rpc.has_id else None, rpc.has_id, rpc.method, outcome, code)


def _names_session(query: str) -> bool:
    return "session_id=" in query or "sessionId=" in query


@dataclass(slots=True)
class ServerEvidence:
    """What shows a server's era, and where it was seen."""

    flow: str
    what: str
    inferred: bool = False  # from two answers that show it together only: one of the other era takes it back


@dataclass(slots=True, eq=False)
class Process:
    """The process of a stdio server: what its wrapper told of it."""

    flow: str  # of the exchange that stands for it
    command: str
    started: float
    stderr: str = ""  # its end, bounded
    stderr_size: int = 0
    input_ended: float | None = None  # when the client closed its standard input
    last_said: float = 0.0  # when its last message came
    status: int | None = None  # negative: killed by that signal
    ended: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # what trackers keep per process


@dataclass(slots=True, eq=False)
class Endpoint:
    """scheme + host + port + path of an MCP server, and what is known of the server behind it."""

    url: str
    proven: bool = False  # real MCP traffic was seen there
    modern: ServerEvidence | None = None
    legacy: ServerEvidence | None = None
    http_sse: bool = False
    revisions: dict[str, None] = field(default_factory=dict)  # in order of appearance
    server_info: dict[str, Any] | None = None
    capabilities: dict[str, Any] | None = None  # newest discover's or initialize result's
    instructions: str | None = None
    supported: list[str] | None = None  # newest supportedVersions or data.supported
    supported_flow: str = ""
    initialize_accepted: bool = False
    initialize_refused: bool = False
    enveloped: set[str] = field(default_factory=set)  # Authorization (hashed) whose enveloped requests were served
    without_handshake: set[str] = field(default_factory=set)  # those to which there was no initialize
    expected: Literal["modern", "legacy"] | None = None  # mcp_era
    tools: dict[str, Any] = field(default_factory=dict)  # newest definition by name, for display
    facts: EndpointFacts = field(default_factory=EndpointFacts)  # what trackers keep of an endpoint
    on_stdio: bool = field(init=False)

    def __post_init__(self) -> None:
        self.on_stdio = self.url.startswith("stdio:")

    @property
    def transport(self) -> Transport:
        return "stdio" if self.on_stdio else "http+sse" if self.http_sse else "http"

    @property
    def era(self) -> Literal["modern", "legacy", "dual", "unknown"]:
        if self.modern and self.legacy:
            return "dual"
        if self.modern:
            return "modern"
        return "legacy" if self.legacy else "unknown"


@dataclass(slots=True)
class Link:
    """Why one exchange belongs after another."""

    earlier: str
    later: str
    by: LinkBy
    confidence: Confidence


@dataclass(slots=True, eq=False)
class Conversation:
    """The exchanges of one operation, in order, with the evidence that links each to the one before."""

    id: str  # flow of the first exchange
    endpoint: Endpoint
    method: str | None
    name: str | None
    rounds: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    started: float = 0.0
    ended: float | None = None
    client_ms: float = 0.0  # how long the client held the operation
    status: Status = "working"
    over: bool = False  # no further round is expected
    forced: Status | None = None  # a tracker knows better than the last outcome (abandoned, a task's own status)
    shape: list[tuple[str, float, float | None, str]] = field(default_factory=list)  # (flow, start, end, outcome)


PENDING = 1_000  # requests of one session waiting for an answer; the oldest is forgotten first


@dataclass(slots=True, eq=False)
class Session:
    id: str
    endpoint: Endpoint
    transport: Literal["streamable", "http+sse", "stdio"]
    started: float
    initialize_flow: str = ""  # "" when the initialize was not recorded
    confirmed: bool = False  # its initialize was seen, or the server accepted a request that names it
    revision: str | None = None
    client_info: dict[str, Any] | None = None
    client_capabilities: dict[str, Any] | None = None
    server_info: dict[str, Any] | None = None
    server_capabilities: dict[str, Any] | None = None
    initialized_at: float | None = None
    ended_at: float | None = None
    ended_why: str = ""
    deleted_flow: str = ""
    from_client: OrderedDict[Any, Message] = field(default_factory=OrderedDict)  # by id_key, unanswered
    from_server: OrderedDict[Any, Message] = field(default_factory=OrderedDict)
    unasked: OrderedDict[Any, Message] = field(default_factory=OrderedDict)  # answers of the client to what is not seen (yet)
    facts: SessionFacts = field(default_factory=SessionFacts)  # what trackers keep of a session

    @property
    def live(self) -> bool:
        return self.ended_at is None

    @property
    def serves(self) -> bool:
        """Whether a request that names it is a legacy one for that reason alone (ERA001 step 5)."""
        return self.confirmed and self.ended_at is None

    def waiting(self, message: Message, key: Any) -> list[Message]:
        """Wait for the answer to a request. Returns those that are waited for no longer: the oldest, or one with that id."""
        table = self.from_client if message.party == "client" else self.from_server
        forgotten = [before] if (before := table.pop(key, None)) is not None else []
        table[key] = message
        while len(table) > PENDING:
            forgotten.append(table.popitem(last=False)[1])
        return forgotten


@dataclass(slots=True, eq=False)
class ToolDefinition:
    """One tool as one tools/list answer gave it."""

    name: str  # "" where the tool has none
    raw: dict[str, Any]
    message: Message | None  # the answer that listed it; None in what is kept of it
    index: int
    flow: str
    listed_at: float
    annotations: Annotations = field(default_factory=Annotations)
    beside: tuple[str, ...] = ()  # tools of the same answer that a client must exclude
    replaces: ToolDefinition | None = None  # another one that this client had called the tool by
    announced: bool = False  # the server had said meanwhile that its tools changed

    @property
    def mirrors(self) -> tuple[Mirror, ...]:
        """The parameters to mirror; none where the definition is not valid."""
        return self.annotations.mirrors

    @property
    def flaws(self) -> tuple[Flaw, ...]:
        return self.annotations.flaws

    @property
    def remarks(self) -> tuple[Flaw, ...]:
        return self.annotations.remarks

    @property
    def unchecked(self) -> str:
        """Why its schema was not looked through; "" where it was."""
        return self.annotations.unchecked

    @property
    def excluded(self) -> tuple[Flaw, ...]:
        """Why a client must not offer this tool. PAR006 is not among it: the wording leaves that open (A8)."""
        return tuple(flaw for flaw in self.flaws if flaw.rule != "PAR006")

    def place(self, *steps: str | int) -> str:
        """Evidence `where` of something in this definition, in the answer that listed it."""
        if self.message is None:
            return f"response.body:/result/tools/{self.index}"
        return self.message.place("result", "tools", self.index, *steps)


@dataclass(slots=True)
class ToolView:
    """What a client had seen of a tool when it called it."""

    definition: ToolDefinition | None  # the newest
    flow: str = ""  # the newest list that gave it
    earlier: list[ToolDefinition] = field(default_factory=list)  # newest first
    fresh: frozenset[str] = frozenset()  # flows of earlier lists whose ttlMs had not run out
    why_unknown: str = ""  # why there is no definition
    by_other: bool = False  # only another client with the same Authorization had listed it
    delisted: str = ""  # flow of a later complete list that does not name it
    seen_at: float = 0.0  # when that list had come
    stale_at: float | None = None  # when its ttlMs has run out; None: it names none, or 0
    unlisted: str = ""  # without definition: flow of a complete list that does not name it
    first: bool = True  # the first call of this tool by this client since it was (not) known


type LinkClass = Literal["a", "b", "c", "d"]


type StateVerdict = Literal[
    "none",  # neither was one given, nor is one sent
    "same",
    "missing",  # one was given, none is sent
    "changed",  # another one is sent, which the server never gave
    "older",  # that of an earlier round of the same call
    "foreign",  # one that the server gave for another call
    "invented",  # one is sent, none was given
    "unknown",  # one is sent, and no round is known that it could belong to
]


@dataclass(slots=True, eq=False)
class Item:
    """One input_required answer: what the client was given, and what became of it."""

    exchange: Exchange  # that got the answer
    at: float
    auth: str
    client: tuple[str, str] | None
    method: str
    name: str | None
    core: bytes  # digest
    state: str | None  # None: none was given. Cut at MOST_STATE
    state_key: bytes  # digest of the whole state; b"" without
    keys: tuple[str, ...]
    requests: dict[str, Any] | None  # inputRequests; None once let go
    asked: bytes  # digest of inputRequests; b"" without
    size: int
    number: int  # of the round of `exchange`
    id: Hashable  # id_key of its request
    first_id: Hashable  # of the operation's first request
    first_flow: str
    earlier_keys: frozenset[str]  # asked in the rounds before
    repeats: int = 1  # rounds in a row that asked the same with the same state
    starts: int = 1  # times that the same call was started afresh, up to this one
    continuations: list[Exchange] = field(default_factory=list)
    closed_by: str | None = None  # flow of the first continuation that was answered
    closed_how: str = ""  # complete, input_required, task, error
    abandoned: bool = False  # the same call was started afresh meanwhile
    held: bool = False
    altered: bool = False  # the proxy changed the answer: what the client was given is not what the server gave

    @property
    def open(self) -> bool:
        return self.closed_by is None

    @property
    def asks_nothing(self) -> bool:
        return not self.keys

    @property
    def flow(self) -> str:
        return self.exchange.flow


@dataclass(slots=True)
class Round:
    """The place of an exchange in a multi round-trip operation: what rules and pages need."""

    number: int
    continues: Item | None = None  # the item that the request is linked to
    link: LinkClass | None = None
    sure: bool = True  # False: several items could be meant, or only the state speaks for it: no errors from the link
    sure_of_keys: bool = True  # whichever item is meant, it asked for the same keys
    state: StateVerdict = "none"
    given: str | None = None  # the state of the request, masked
    expected: str | None = None  # the state of the item, masked
    differs_at: int | None = None  # first character in which they differ
    owner: Item | None = None  # the newest item that was given the state of the request, whoever's it is
    shared: bool = False  # the state was given for two or more cores: it belongs to nobody
    other_auth: bool = False  # the state was given under another Authorization
    asked: tuple[str, ...] = ()  # keys of the item
    answered: tuple[str, ...] = ()  # keys of the request
    missing: tuple[str, ...] = ()  # asked, not answered
    unknown: tuple[str, ...] = ()  # answered, never asked in this operation
    repeated: tuple[str, ...] = ()  # answered, asked in an earlier round
    requests: dict[str, Any] | None = None  # what was asked, by key
    same_id: str = ""  # flow of the request before, or of the first, that had the same id
    siblings: tuple[Exchange, ...] = ()  # other continuations of the same item, those without an answer left out
    consumed: str = ""  # flow that had used up the state before
    consumed_how: str = ""
    restarts: Item | None = None  # the open item that this same call, without state and responses, starts over
    never_retried: bool = False  # of one that starts over: its client has continued no item here so far
    issues: Item | None = None  # the item that the answer made
    waited: float | None = None  # seconds from that answer to the end of the trace, while nothing continued it
    after_task: str = ""  # flow of the round that had returned a task for the same operation
