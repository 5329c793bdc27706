"""Operations as OpenTelemetry spans, by the semantic conventions for MCP, made and encoded by the OpenTelemetry SDK.

One span an operation; where it took several exchanges, a child span each; messages and SSE events are span events. The parent is
what the client named in `_meta.traceparent`. Ids follow from the flow ids, so an operation that is sent twice is one.
Needs the extra `otlp`. https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
"""

import base64
import hashlib
import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from google.protobuf.json_format import MessageToDict
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mcp_wiretap import __version__
from mcp_wiretap.export.account import Account
from mcp_wiretap.wire.secret import mask, one_line

TOGETHER = 500  # spans of one request to a collector
MOST_EVENTS = 128  # of one span: the SDK's own default
TIMEOUT = 10.0  # seconds for one request, retries included
VALUE = 1_000  # characters of an attribute

_SCOPE = "mcp_wiretap"
_FAILED = frozenset({"error", "broken"})


class NotSent(Exception):
    """A collector did not take the spans. The message says why, as far as the SDK tells."""


def operations(accounts: Iterable[Account]) -> Iterator[Sequence[ReadableSpan]]:
    """The spans of each operation: those of a conversation together, each other MCP request alone."""
    maker = Maker()
    conversations: dict[str, list[Account]] = {}
    for account in accounts:
        if account.kind != "mcp" or (account.method is None and account.conversation is None):
            continue
        if account.conversation is None:
            yield maker.operation([account])
        else:
            conversations.setdefault(account.conversation, []).append(account)
    for rounds in conversations.values():
        yield maker.operation(sorted(rounds, key=lambda one: one.round or 0))


class Maker:
    """Makes spans. Not thread-safe."""

    def __init__(self) -> None:
        self._ids = _Ids()
        self._done = InMemorySpanExporter()
        resource = Resource.create({"service.name": "mcp-wiretap", "service.version": __version__})
        limits = SpanLimits(max_events=MOST_EVENTS, max_attribute_length=VALUE)
        self._provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, id_generator=self._ids, span_limits=limits, shutdown_on_exit=False
        )
        self._provider.add_span_processor(SimpleSpanProcessor(self._done))
        self._tracer: Tracer = self._provider.get_tracer(_SCOPE, __version__)

    def operation(self, rounds: Sequence[Account]) -> Sequence[ReadableSpan]:
        """The spans of one operation, whose exchanges come in order."""
        first, last = rounds[0], _deciding(rounds)
        self._ids.use(first.flow)
        parent = TraceContextTextMapPropagator().extract(first.context, Context())
        span = self._tracer.start_span(_name(first), parent, SpanKind.CLIENT, start_time=_ns(first.started))
        span.set_attributes(_attributes(first))
        _came_to(span, last)
        found = list(dict.fromkeys(finding.rule for one in rounds for finding in one.findings))
        if found:
            span.set_attribute("mcp_wiretap.rules", found)
        if len(rounds) > 1:
            span.set_attribute("mcp_wiretap.conversation", first.conversation or first.flow)
            span.set_attribute("mcp_wiretap.rounds", len(rounds))
            within = set_span_in_context(span, Context())
            for one in rounds:
                self._round(one, within)
        else:
            span.set_attributes(_http(first))
            _events(span, first)
        span.end(_ns(max((one.ended or one.responded or one.requested for one in rounds), default=first.started)))
        made = self._done.get_finished_spans()
        self._done.clear()
        return made

    def _round(self, one: Account, within: Context) -> None:
        self._ids.use(one.flow + "/round")
        name = " ".join(filter(None, [one.http_method, one.method]))
        span = self._tracer.start_span(one_line(name, 200), within, SpanKind.CLIENT, start_time=_ns(one.started))
        span.set_attributes({**_attributes(one), **_http(one), "mcp_wiretap.round": one.round or 1})
        _came_to(span, one)
        _events(span, one)
        span.end(_ns(one.ended or one.responded or one.requested))


class _Ids(IdGenerator):
    """Ids that follow from the flow that a span is of."""

    def __init__(self) -> None:
        self._seed = ""

    def use(self, seed: str) -> None:
        self._seed = seed

    def generate_span_id(self) -> int:
        return int.from_bytes(self._digest("span")[:8]) or 1

    def generate_trace_id(self) -> int:
        return int.from_bytes(self._digest("trace")[:16]) or 1

    def is_trace_id_random(self) -> bool:
        return True

    def _digest(self, purpose: str) -> bytes:
        return hashlib.sha256(f"{purpose} {self._seed}".encode("utf-8", "surrogatepass")).digest()


def _deciding(rounds: Sequence[Account]) -> Account:
    """The exchange whose outcome is the operation's."""
    return next((one for one in reversed(rounds) if one.outcome not in ("accepted", "none")), rounds[-1])


def _name(account: Account) -> str:
    """Never a URI: names of spans are few."""
    words = [account.method or account.http_method]
    if account.method in ("tools/call", "prompts/get") and account.name is not None:
        words.append(account.name)
    return one_line(" ".join(words), 200)


def _attributes(account: Account) -> dict[str, Any]:
    where = urlsplit(account.endpoint)
    made: dict[str, Any] = {
        "mcp.method.name": account.method,
        "mcp.protocol.version": account.revision,
        "mcp.session.id": mask(account.session) if account.session is not None else None,
        "mcp.resource.uri": account.uri,
        "jsonrpc.request.id": _bare(account.id),
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": where.hostname,
        "server.port": _port(where.netloc) or {"http": 80, "https": 443}.get(where.scheme),
        "mcp_wiretap.era": account.era,
        "mcp_wiretap.flow": account.flow,
    }
    if account.method == "tools/call":
        made |= {"gen_ai.tool.name": account.name, "gen_ai.operation.name": "execute_tool"}
    elif account.method == "prompts/get":
        made["gen_ai.prompt.name"] = account.name
    given = {name: value for name, value in made.items() if value is not None}
    return {name: one_line(value, VALUE) if isinstance(value, str) else value for name, value in given.items()}


def _port(netloc: str) -> int | None:
    digits = netloc.rpartition(":")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None


def _bare(written: str | None) -> str | None:
    """An id as text: a JSON string without its quotes."""
    if written is None or written == "null":
        return None
    return str(json.loads(written)) if written.startswith('"') else written


def _http(account: Account) -> dict[str, Any]:
    made: dict[str, Any] = {"http.request.method": one_line(account.http_method, 100), "url.full": one_line(account.url, VALUE)}
    if account.status is not None:
        made["http.response.status_code"] = account.status
    return made


def _came_to(span: Span, account: Account) -> None:
    span.set_attribute("mcp_wiretap.outcome", account.outcome)
    error: str | None = None
    if account.error_code is not None:
        error = one_line(str(account.error_code) if abs(account.error_code) < 10**100 else "huge", 100)
        span.set_attribute("rpc.response.status_code", error)
    elif account.outcome in _FAILED or account.outcome == "cancelled":
        error = str(account.status) if account.status is not None and account.status >= 400 else account.outcome
    elif account.tool_error:
        error = "tool_error"
    if error is not None:
        span.set_attribute("error.type", error)
        if account.outcome != "cancelled":
            span.set_status(StatusCode.ERROR, one_line(account.error_message, VALUE) if account.error_message else None)


def _events(span: Span, account: Account) -> None:
    """The messages, and the findings at the end."""
    for said in account.said[:MOST_EVENTS]:
        made: dict[str, Any] = {"mcp_wiretap.from": said.party, "mcp_wiretap.where": said.where, "mcp_wiretap.kind": said.kind}
        if said.method is not None:
            made["mcp.method.name"] = one_line(said.method, 200)
        if (id_ := _bare(said.id)) is not None:
            made["jsonrpc.request.id"] = one_line(id_, 200)
        if said.error_code is not None:
            made["rpc.response.status_code"] = one_line(str(said.error_code)[:100], 100)
        span.add_event("mcp.message", made, _ns(said.at))
    for finding in account.findings[:MOST_EVENTS]:
        told = {
            "mcp_wiretap.rule": finding.rule,
            "mcp_wiretap.severity": finding.severity or "info",
            "mcp_wiretap.party": finding.party or "",
            "mcp_wiretap.finding": one_line(finding.message, VALUE),
        }
        span.add_event("mcp_wiretap.finding", told, _ns(account.ended or account.requested))


def _ns(at: float) -> int:
    return max(int(at * 1_000_000), 0) * 1_000


# Where they go


def batches(spans: Iterable[Sequence[ReadableSpan]]) -> Iterator[tuple[ReadableSpan, ...]]:
    yield from itertools.batched(itertools.chain.from_iterable(spans), TOGETHER)


def write_protobuf(out: BinaryIO, spans: Iterable[Sequence[ReadableSpan]]) -> None:
    """One ExportTraceServiceRequest: protobuf messages of one type, one after the other, are one message."""
    for batch in batches(spans):
        out.write(encode_spans(batch).SerializeToString())


def write_json(out: BinaryIO, spans: Iterable[Sequence[ReadableSpan]]) -> None:
    """OTLP JSON lines, as the OpenTelemetry Collector reads and writes them in files: one ExportTraceServiceRequest a line."""
    for batch in batches(spans):
        request = MessageToDict(encode_spans(batch), use_integers_for_enums=True)
        for resource in request.get("resourceSpans", ()):
            for scope in resource.get("scopeSpans", ()):
                for span in scope.get("spans", ()):
                    _hexadecimal(span)
        out.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")


def _hexadecimal(span: dict[str, Any]) -> None:
    """Ids in OTLP JSON are hexadecimal, where JSON of protobuf would have Base64."""
    for name in ("traceId", "spanId", "parentSpanId"):
        if name in span:
            span[name] = base64.b64decode(span[name]).hex()


def send(endpoint: str, spans: Iterable[Sequence[ReadableSpan]]) -> int:
    """Send spans to a collector; how many it took. NotSent where it does not take them."""
    sent = 0
    with Sender(endpoint) as sender:
        for batch in batches(spans):
            if not sender.send(batch):
                after = f" after the first {sent}" if sent else ""
                raise NotSent(f"the collector did not take the spans{after} ({sender.said or 'no answer'})")
            sent += len(batch)
    return sent


class Sender:
    """The SDK's exporter over HTTP with protobuf. What it logs is kept for the one who asks, and goes nowhere else."""

    def __init__(self, endpoint: str, timeout: float = TIMEOUT) -> None:
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=timeout)
        self._logger = logging.getLogger("opentelemetry")
        self._handler = _Last()
        self._before = self._logger.propagate
        self._logger.propagate = False
        self._logger.addHandler(self._handler)

    @property
    def said(self) -> str:
        return self._handler.said

    def send(self, batch: Sequence[ReadableSpan]) -> bool:
        try:
            return self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception as error:  # whatever the transport raises: a collector that is down is no fault of ours
            self._handler.said = str(error)
            return False

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self._logger.removeHandler(self._handler)
        self._logger.propagate = self._before

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Last(logging.Handler):
    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said = one_line(record.getMessage(), 300)
