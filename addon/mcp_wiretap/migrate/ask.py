"""The questions of a legacy recording, asked of a server in the modern era; the answers compared and judged.

Only questions that read are asked: lists, reads, prompts, completions, and calls of tools that are annotated as read-only or
idempotent; others where the user says so. Credentials go only home (`replay.credentials`).
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.migrate import modern
from mcp_wiretap.replay.credentials import is_credential, is_home
from mcp_wiretap.replay.http import Lines, Place
from mcp_wiretap.replay.json_diff import differences
from mcp_wiretap.replay.scope import repeated
from mcp_wiretap.replay.script import MAX_BODY, Script, Take, describe
from mcp_wiretap.trace.events import ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.sse import SseParser

QUESTIONS = frozenset(
    {
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/get",
        "completion/complete",
        "tools/call",
    }
)
MOST = 200  # questions of one recording
PATIENCE = 30.0  # seconds for an answer
_NEW = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})  # members that a modern result has more


@dataclass(slots=True)
class Asked:
    """One question, and how its answer compares: `same`, `differs`, `failed`, `skipped`."""

    what: str
    verdict: str
    why: str = ""
    differences: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # errors and warnings about the server


class Asker:
    """Asks a server. `headers` go with each request, in the place of recorded ones of the same name."""

    def __init__(
        self, script: Script, place: Place, judge: Judge, *, headers: Sequence[tuple[str, str]] = (), all_tools: bool = False
    ) -> None:
        self._script, self._place = script, place
        self._headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        self._all_tools = all_tools
        self._inspector = Inspector(judge)
        self._lines = Lines()
        self._sent = 0
        self.left_out: dict[str, None] = {}

    async def run(self) -> list[Asked]:
        """server/discover, then each question once. Unreachable where nothing answers there."""
        try:
            told = [await self._discover()]
            if told[0].verdict != "failed":
                told += [await self._ask(take) for take in self._questions()]
        finally:
            await self._lines.close()
        self._inspector.finish()
        return told

    def _questions(self) -> Iterator[Take]:
        seen = set[object]()
        for take in self._script.mcp:
            request = take.request
            if take.modern or request is None or request.method not in QUESTIONS or take.key in seen:
                continue
            seen.add(take.key)
            yield take
            if len(seen) >= MOST:
                return

    async def _discover(self) -> Asked:
        first = next((take for take in self._script.mcp if not take.modern), None)
        asked = modern.request({"id": "migrate-0", "method": "server/discover"}, _asker(first))
        status, answer, flow = await self._send(asked, first)
        told = Asked("server/discover", "same", findings=self._findings(flow))
        if answer is None or answer.kind != "result":
            told.verdict, told.why = "failed", f"the server does not speak the modern era: {_said(status, answer)}"
        return told

    async def _ask(self, take: Take) -> Asked:
        request = take.request
        assert request is not None
        told = Asked(describe("POST", take.path, take.reading), "same")
        recorded = take.exchange.answer if take.exchange is not None else None
        was = take.result or (recorded.rpc if recorded is not None else None)
        if was is None:
            told.verdict, told.why = "skipped", "it has no answer in the recording"
        elif not self._all_tools and repeated(self._script, [take]):
            told.verdict, told.why = "skipped", "the tool is annotated neither as read-only nor as idempotent; --yes calls it"
        if was is None or told.verdict == "skipped":
            return told
        asked = modern.request(request.body, _asker(take), self._definition(take))
        asked.body["id"] = f"migrate-{self._sent}"
        status, answer, flow = await self._send(asked, take)
        told.findings = self._findings(flow)
        if answer is None or answer.kind != was.kind:
            told.verdict, told.why = "failed", f"{_said(status, answer)}; the recording has {_said(None, was)}"
        elif answer.kind == "result" and isinstance(answer.result, dict) and answer.result.get("resultType") == "input_required":
            told.verdict, told.why = "differs", "the server asks for input where the recording has a result"
        elif found := differences(_content(was), _content(answer)):
            told.verdict, told.differences = "differs", [str(one) for one in found[:5]]
        return told

    def _definition(self, take: Take) -> Any:
        endpoint, request = self._script.endpoint(take), take.request
        name = request.params.get("name") if request is not None and isinstance(request.params, dict) else None
        return endpoint.tools.get(name) if endpoint is not None and isinstance(name, str) else None

    async def _send(self, asked: modern.Request, take: Take | None) -> tuple[int | None, jsonrpc.Message | None, str]:
        self._sent += 1
        flow, place = f"migrate-{self._sent}", self._place
        content = jsonrpc.dumps(asked.body).encode()
        headers = [(b"Content-Type", b"application/json"), (b"Accept", b"application/json, text/event-stream")]
        headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in asked.headers]
        headers += [*self._credentials(take), *self._headers]
        started, target = time.time(), place.path or "/"
        fields = Fields([(b"Host", place.authority.encode()), *headers])
        self._inspector.feed(
            RequestSeen(
                flow,
                started,
                started,
                "POST",
                place.scheme,
                place.host,
                place.port,
                target,
                fields,
                content,
                flow,
                place.authority,
            )
        )
        try:
            async with asyncio.timeout(PATIENCE):
                reply = await self._lines.ask("migrate", place, "POST", target, headers, content)
                try:
                    return reply.status, await self._answer(reply, flow), flow
                finally:
                    await reply.close()
        except TimeoutError:
            self._inspector.feed(ExchangeEnded(flow, time.time(), None, False, "client", "timeout"))
            return None, None, flow

    async def _answer(self, reply: Any, flow: str) -> jsonrpc.Message | None:
        fields = Fields(reply.headers)
        self._inspector.feed(ResponseStarted(flow, time.time(), reply.status, fields))
        streamed = (fields.first("content-type") or "").lower().startswith("text/event-stream")
        parser, body, found = SseParser(MAX_BODY), bytearray(), None
        async for piece in reply.pieces():
            if not streamed:
                body += piece
                continue
            self._inspector.feed(StreamData(flow, time.time(), piece))
            for event in parser.feed(piece):
                for message in jsonrpc.read_text(event.data, max_bytes=MAX_BODY).messages if event.data else ():
                    found = message if message.kind in ("result", "error") else found
        self._inspector.feed(ExchangeEnded(flow, time.time(), None if streamed else bytes(body), streamed, "complete"))
        if not streamed:
            found = next(
                (m for m in jsonrpc.read(bytes(body), max_bytes=MAX_BODY).messages if m.kind in ("result", "error")), None
            )
        return found

    def _credentials(self, take: Take | None) -> list[tuple[bytes, bytes]]:
        """Recorded credentials, where the server is the one that they were recorded at; else their names are kept."""
        if take is None or take.on_stdio:
            return []
        given = {name.lower() for name, _ in self._headers}
        found = []
        for name, value in take.seen.fields.raw:
            shown = name.decode("latin-1")
            if name.lower() in given or name.lower() in (b"mcp-session-id", b"host"):
                continue
            if is_credential(take, shown, value.decode("latin-1"), self._script.inspector.secrets):
                if is_home(take, self._place):
                    found.append((name, value))
                else:
                    self.left_out[shown] = None
        return found

    def _findings(self, flow: str) -> list[str]:
        exchange = self._inspector.exchanges.get(flow)
        found = exchange.findings if exchange is not None else []
        return [
            f"{f.severity} {f.rule}: {f.message}" for f in found if f.party == "server" and f.severity in ("error", "warning")
        ][:5]


def _asker(take: Take | None) -> modern.Asker:
    """What the recorded client said of itself."""
    session = take.exchange.session if take is not None and take.exchange is not None else None
    if session is None:
        return modern.Asker()
    return modern.Asker(session.client_info or modern.Asker().info, session.client_capabilities or {})


def _content(message: jsonrpc.Message) -> Any:
    """What is compared of an answer: a result without what only the modern era has, an error by its code."""
    if message.kind == "error":
        code = message.error_code
        return {"code": -32602 if code == -32002 else code}
    result = message.result
    return {k: v for k, v in result.items() if k not in _NEW} if isinstance(result, dict) else result


def _said(status: int | None, answer: jsonrpc.Message | None) -> str:
    if answer is None:
        return f"HTTP {status} without an answer" if status is not None else "no answer"
    if answer.kind == "error":
        said = answer.error.get("message") if isinstance(answer.error, dict) else None
        return f"error {answer.error_code}" + (f" ({said})" if isinstance(said, str) else "")
    return "a result"
