"""Progress tokens: whose they are, whether their request still runs, and whether the numbers rise.

Modern: a token belongs to the request on whose stream the progress comes. Legacy: to a request of the opposite direction in the
same session, on whatever stream. Spec: 2026-07-28 basic/patterns/progress; catalogue SSE009, SSE010.
"""

import re
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from mcp_wiretap.trace.facts import ExchangeFact, SessionFact
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.jsonrpc import id_key

MOST = 2_000  # tokens remembered of one session
_INTEGER = re.compile(r"-?[0-9]{1,299}")
RACE_S = 2.0  # progress may cross the answer on another stream


@dataclass(slots=True)
class Progress:
    """What is to be said of one notifications/progress (`message.found`)."""

    token: Any
    state: Literal["active", "none-asked", "type-change", "unknown", "unknown-session", "answered", "answered-elsewhere"]
    asked: Any = None  # the token that the request gave
    before: Any = None  # the progress value before
    same_stream: bool = True
    flow: str = ""  # of the request


@dataclass(slots=True)
class _Token:
    request: Message
    last: Any = None
    last_flow: str = ""
    task: bool = False


PROGRESS_LAST: ExchangeFact[Any] = ExchangeFact("progress-last", "the newest progress value on this stream")
_TOKENS: dict[str, ExchangeFact[OrderedDict[Hashable, _Token]]] = {
    asker: ExchangeFact(f"_progress-{asker}", f"progress tokens that the {asker} gave") for asker in ("client", "server")
}
_TOKENS_OF_SESSION: dict[str, SessionFact[OrderedDict[Hashable, _Token]]] = {
    asker: SessionFact(f"_progress-{asker}", f"progress tokens that the {asker} gave") for asker in ("client", "server")
}


class ProgressTokens(Tracker):
    """Writes `message.found` of progress notifications."""

    name = "progress"

    def said(self, message: Message) -> None:
        if message.rpc.kind == "request":
            self._register(message)
        elif message.method == "notifications/progress" and message.rpc.kind == "notification":
            if message.exchange.claim.modern:
                if message.party == "server":
                    self._modern(message)
            else:
                self._legacy(message)

    def _register(self, message: Message) -> None:
        exchange = message.exchange
        if exchange.claim.modern or "progressToken" not in message.meta:
            return
        token = message.meta["progressToken"]
        table = self._table(exchange, message.party)
        table[id_key(token)] = _Token(message, task=isinstance(message.params.get("task"), dict))
        if len(table) > MOST:
            table.popitem(last=False)

    def _table(self, exchange: Exchange, asker: str) -> OrderedDict[Hashable, _Token]:
        # Without a session only the stream of the request itself is sure.
        if exchange.session is not None:
            return exchange.session.facts.setdefault(_TOKENS_OF_SESSION[asker], OrderedDict())
        return exchange.facts.setdefault(_TOKENS[asker], OrderedDict())

    def _modern(self, message: Message) -> None:
        exchange, request = message.exchange, message.exchange.request
        token = message.params.get("progressToken")
        if request is None:
            return
        found = Progress(token, "active", flow=exchange.flow)
        if "progressToken" not in request.meta:
            found.state = "none-asked"
        else:
            found.asked = request.meta["progressToken"]
            found.state = _compare(found.asked, token)
        found.before = exchange.facts.get(PROGRESS_LAST)
        exchange.facts[PROGRESS_LAST] = message.params.get("progress")
        message.found = found

    def _legacy(self, message: Message) -> None:
        exchange = message.exchange
        token = message.params.get("progressToken")
        table = self._table(exchange, "client" if message.party == "server" else "server")
        entry = table.get(id_key(token))
        found = Progress(token, "active")
        if entry is None:
            found.state = self._unknown(exchange, table, token)
            if message.party == "client" and self.memory.silent_streams(exchange.session, exchange.endpoint):
                found.state = "unknown-session"  # the request may have come on a stream that was not read yet
        else:
            found.asked, found.flow = token, entry.request.exchange.flow
            found.before, found.same_stream = entry.last, entry.last_flow in ("", exchange.flow)
            entry.last, entry.last_flow = message.params.get("progress"), exchange.flow
            answer = entry.request.answer
            if answer is not None and not entry.task:
                if answer.exchange is exchange:
                    found.state = "answered"
                elif (exchange.stream is None or exchange.stream.timed) and message.at - answer.at > RACE_S:
                    found.state = "answered-elsewhere"
        message.found = found

    @staticmethod
    def _unknown(exchange: Exchange, table: OrderedDict[Hashable, _Token], token: Any) -> Any:
        twin: Hashable = str(token) if not isinstance(token, str) else None
        if isinstance(token, str) and _INTEGER.fullmatch(token):
            twin = ("number", int(token))
        if twin is not None and twin in table:
            return "type-change"
        session = exchange.session
        if session is None:
            return "none-asked" if exchange.http_method == "POST" and exchange.request is not None else "unknown-session"
        if session.initialize_flow == "" or len(table) >= MOST:
            return "unknown-session"
        return "unknown"


def _compare(asked: Any, token: Any) -> Literal["active", "type-change", "unknown"]:
    if id_key(asked) == id_key(token):
        return "active"
    same_text = isinstance(asked, str | int) and isinstance(token, str | int) and str(asked) == str(token)
    return "type-change" if same_text else "unknown"
