"""subscriptions/listen streams: what was asked for, what was granted, what came, how it ended. And the log level of sessions.

Spec: 2026-07-28 basic/patterns/subscriptions. The facts stand in `exchange.facts[LISTEN]` and, for every stream of an endpoint,
in `endpoint.facts[LISTENS]` (newest last, bounded).
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_wiretap.trace.facts import EndpointFact, ExchangeFact, SessionFact
from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.trace.tracker import Tracker

MOST_STREAMS = 200  # listens of one endpoint that are remembered
MOST_SHOWN, LONGEST = 100, 1_000  # URIs of an old one, and characters of what is kept of the other side's words
LIST_TYPES = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}


@dataclass(slots=True)
class Filter:
    """A notification filter: what a listen asks for, or an acknowledgement grants."""

    flags: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()

    @classmethod
    def of(cls, value: Any) -> "Filter":
        """From a `notifications` object; what is malformed in it asks for nothing."""
        if not isinstance(value, dict):
            return cls()
        return cls(
            frozenset(k for k in LIST_TYPES.values() if value.get(k) is True),
            _strings(value.get("resourceSubscriptions")),
            _strings(value.get("taskIds")),
        )

    @property
    def empty(self) -> bool:
        return not (self.flags or self.uris or self.tasks)

    def cut(self) -> "Filter":
        """As it is shown once nothing is judged by it any more."""
        return Filter(self.flags, _few(self.uris), _few(self.tasks))


@dataclass(slots=True)
class Listen:
    """One subscriptions/listen stream."""

    flow: str
    id: Any
    asked: Filter
    opened: float
    granted: Filter | None = None  # None: not acknowledged
    acknowledged_at: float | None = None
    first: str = ""  # method of the first message, "result" or "error"
    notifications: dict[str, int] = field(default_factory=dict)
    state: Literal["connecting", "listening", "ended", "refused", "cut", "closed"] = "connecting"
    last_at: float | None = None
    ended: float | None = None
    connection: str = ""
    settled: bool = False  # nothing is judged by it any more, and its filters are cut


LISTEN: ExchangeFact[Listen] = ExchangeFact("listen", "the subscriptions/listen stream that this exchange is")
LISTENS: EndpointFact[list[Listen]] = EndpointFact("listens", "the subscriptions/listen streams, the newest last")
LOG_LEVEL: SessionFact[tuple[str | None, float]] = SessionFact("log-level", "the level that logging/setLevel set, and when")


class Listens(Tracker):
    name = "listens"

    def said(self, message: Message) -> None:
        exchange = message.exchange
        method, kind = message.method, message.rpc.kind
        if message.party == "client":
            if kind == "request" and method == "subscriptions/listen":
                self._open(message)
            return
        listen: Listen | None = exchange.facts.get(LISTEN)
        if listen is not None:
            self._heard(listen, message)
        elif kind == "result" and message.request is not None and message.request.method == "logging/setLevel":
            self._level(message)

    def _open(self, message: Message) -> None:
        exchange = message.exchange
        asked = Filter.of(message.params.get("notifications"))
        listen = Listen(exchange.flow, message.rpc.id, asked, exchange.started, connection=exchange.connection)
        exchange.facts[LISTEN] = listen
        streams: list[Listen] = exchange.endpoint.facts.setdefault(LISTENS, [])
        for earlier in streams:
            self._settle(earlier)
        streams.append(listen)
        if len(streams) > MOST_STREAMS:
            del streams[0]

    def _settle(self, listen: Listen) -> None:
        """An old stream is only shown: its filters may name ten thousand URIs, of any length."""
        if listen.settled or listen.ended is None:
            return
        exchange = self.memory.exchanges.get(listen.flow)
        if exchange is None or exchange.released:
            listen.settled, listen.asked = True, listen.asked.cut()
            listen.granted = listen.granted.cut() if listen.granted is not None else None

    @staticmethod
    def _heard(listen: Listen, message: Message) -> None:
        kind, method = message.rpc.kind, message.method
        listen.last_at = message.at
        method = method[:LONGEST] if method is not None else None
        listen.first = listen.first or method or kind
        if kind == "notification" and method is not None:
            if method == "notifications/subscriptions/acknowledged":
                listen.granted = Filter.of(message.params.get("notifications"))
                listen.acknowledged_at, listen.state = message.at, "listening"
            elif len(listen.notifications) < 100 or method in listen.notifications:
                listen.notifications[method] = listen.notifications.get(method, 0) + 1
        elif kind == "result":
            listen.state = "ended"
        elif kind == "error":
            listen.state = "refused"

    @staticmethod
    def _level(message: Message) -> None:
        """logging/setLevel was accepted: it holds for the session from now on."""
        session, request = message.exchange.session, message.request
        if session is not None and request is not None:
            level = request.params.get("level")
            session.facts[LOG_LEVEL] = (level[:LONGEST] if isinstance(level, str) else None, message.at)

    def ended(self, exchange: Exchange) -> None:
        listen: Listen | None = exchange.facts.get(LISTEN)
        if listen is None:
            return
        listen.ended = exchange.ended
        if listen.state in ("connecting", "listening"):
            if exchange.ended_by == "client":
                listen.state = "closed"
            elif exchange.status is not None and exchange.status >= 400:
                listen.state = "refused"
            else:
                listen.state = "cut"


def _few(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name[:LONGEST] for name in sorted(names)[:MOST_SHOWN])


def _strings(value: Any) -> frozenset[str]:
    return frozenset(v for v in value[:10_000] if isinstance(v, str)) if isinstance(value, list) else frozenset()
