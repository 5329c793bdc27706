"""Log messages of servers, with the request that they belong to and the level that was asked for; and what servers announce.

The newest of the trace, for the pages: parsed bodies are let go, these stay, short. Spec: 2026-07-28 server/utilities/logging,
basic/patterns/subscriptions.
"""

from collections import deque
from dataclasses import dataclass

from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.model import Endpoint, Exchange, Message
from mcp_wiretap.trace.streams.subscriptions import LOG_LEVEL
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import hidden_head, one_line

MOST = 5_000  # log messages, and announcements, that are remembered
DATA = 2_000  # characters of the data of one, kept and shown
_ELSEWHERE = frozenset({"notifications/message", "notifications/progress", "notifications/subscriptions/acknowledged"})


@dataclass(slots=True)
class LogEntry:
    """One notifications/message."""

    number: int
    at: float
    endpoint: Endpoint
    flow: str
    where: str
    level: str
    logger: str
    data: str  # JSON or text, cut
    asked: str | None  # level asked for, None: none
    asked_by: str  # "this request", "the session", ""
    method: str | None  # of the request on whose stream it came
    name: str | None


@dataclass(slots=True)
class Announcement:
    """A notification that a server sends of itself: a list has changed, a resource was updated."""

    number: int
    at: float
    endpoint: Endpoint
    flow: str
    where: str
    method: str
    about: str  # URI, task, or ""


class Logs(Tracker):
    name = "logs"

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.entries: deque[LogEntry] = deque(maxlen=MOST)
        self.announcements: deque[Announcement] = deque(maxlen=MOST)
        self.count = 0
        self.announced = 0

    def said(self, message: Message) -> None:
        if message.rpc.kind != "notification" or message.party != "server":
            return
        method = message.method or ""
        if method == "notifications/message":
            self._log(message)
        elif method not in _ELSEWHERE:
            params = message.params
            about = params.get("uri") or params.get("taskId") or params.get("elicitationId") or ""
            self.announced += 1
            self.announcements.append(
                Announcement(
                    self.announced,
                    message.at,
                    message.exchange.endpoint,
                    message.exchange.flow,
                    message.where,
                    one_line(method, 100),
                    one_line(str(about), 200),
                )
            )

    def _log(self, message: Message) -> None:
        exchange, params = message.exchange, message.params
        asked, by = _asked(exchange)
        data = params.get("data")
        text = data if isinstance(data, str) else dumps(hidden_head("data", data), most=DATA + 1, shown=hidden_head)
        self.count += 1
        self.entries.append(
            LogEntry(
                self.count,
                message.at,
                exchange.endpoint,
                exchange.flow,
                message.where,
                one_line(str(params.get("level")), 40),
                one_line(str(params.get("logger") or ""), 100),
                text if len(text) <= DATA else f"{text[:DATA]}…",
                asked,
                by,
                exchange.method,
                exchange.name,
            )
        )


def _asked(exchange: Exchange) -> tuple[str | None, str]:
    """The level that holds for the stream: the request's own in the modern era, the session's before."""
    request = exchange.request
    if exchange.claim.modern:
        level = request.meta.get(rev.LOG_LEVEL) if request is not None else None
        return (one_line(level, 40), "this request") if isinstance(level, str) else (None, "")
    known = exchange.session.facts.get(LOG_LEVEL) if exchange.session is not None else None
    return (one_line(str(known[0]), 40), "the session") if known is not None else (None, "")
