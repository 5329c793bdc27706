"""Requests and the messages that answer them. In the modern era both are of one exchange; in the legacy era an answer may come
on another stream of the session, or the answer to a server's request in a POST of the client's.

What is answered elsewhere keeps its exchange whole (`Held`) until the answer has come, or cannot come any more. A recording
without the times of single events tells of all that a server asked at the end of its stream, when the client has answered long
since: then the answer waits for its request.
"""

from collections.abc import Iterator

from mcp_wiretap.trace.memory.conversations import Conversations
from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.memory.sessions import Sessions
from mcp_wiretap.trace.model import Exchange, Message, Session
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev

LATE = "late answer"  # why an exchange that is over is held
UNASKED = "unasked answer"  # likewise
MOST_UNASKED = 100  # answers of one session that wait for their request


class Pairing:
    def __init__(self, sessions: Sessions, conversations: Conversations, held: Held) -> None:
        self._sessions = sessions
        self._conversations = conversations
        self._held = held

    def sent(self, message: Message) -> Exchange | None:
        """A message of the client. Returns the earlier exchange of which this one is now known to be a part."""
        rpc, exchange = message.rpc, message.exchange
        if exchange.claim.modern:
            return None
        if rpc.kind == "request":
            self._wait(message)
        elif rpc.kind in ("result", "error"):
            return self._reply(message)
        return None

    def received(self, message: Message, size: int) -> Exchange | None:
        """A message of the server, of so many bytes: `message.request` is set where it answers one. Returns the exchange of the
        client's answer to it, where that had been sent before."""
        exchange, rpc = message.exchange, message.rpc
        if rpc.kind == "request" and not exchange.claim.modern:
            reply = self._replied(message)
            if reply is not None:
                self._link(message, reply)
                return reply.exchange
            self._wait(message, size)
        elif rpc.kind in ("result", "error"):
            self._answer(message)
        return None

    def _answer(self, message: Message) -> None:
        exchange, rpc = message.exchange, message.rpc
        key, requests = jsonrpc.id_key(rpc.id), exchange.requests
        found = requests.get(key) if rpc.has_id else None
        if found is None and not exchange.claim.modern:
            found = self._session(exchange).from_client.get(key) if rpc.has_id else None
        if found is None and len(requests) == 1 and exchange.http_method == "POST":
            found, message.id_matches = next(iter(requests.values())), False
        if found is None:
            return
        message.request = found
        if found.answer is None:
            found.answer = message
            if found.exchange is not exchange:
                found.exchange.late_answer = message
        if not exchange.claim.modern:
            self._no_longer_waits(found)

    def ended(self, exchange: Exchange) -> None:
        """It is over: hold it while its answer may still come, or give up waiting."""
        if _may_be_answered_elsewhere(exchange):
            self._held.keep(exchange, LATE)
        else:
            self.give_up(exchange)

    def give_up(self, exchange: Exchange) -> None:
        """Its requests get no answer any more."""
        if not exchange.claim.modern:
            for message in exchange.sent:
                if message.rpc.kind == "request" and message.answer is None:
                    self._no_longer_waits(message)

    def end_session(self, exchange: Exchange) -> Iterator[Exchange]:
        """A DELETE, a 404 or the end of its HTTP+SSE stream ends a session. Yields the exchanges, over by then, whose answer
        will not come any more."""
        session = exchange.session
        if session is None or not session.live or not _ends(exchange, session):
            return
        session.ended_at = exchange.ended
        for message in list(session.from_client.values()):
            if message.exchange.over and message.exchange is not exchange:
                yield message.exchange
        session.from_client.clear()
        session.from_server.clear()

    def _reply(self, message: Message) -> Exchange | None:
        """The client answers what the server asked."""
        session, key = self._session(message.exchange), jsonrpc.id_key(message.rpc.id)
        asked = session.from_server.pop(key, None)
        if asked is not None:
            return self._link(asked, message)
        session.unasked[key] = message
        self._held.keep(message.exchange, UNASKED)
        if len(session.unasked) > MOST_UNASKED:
            self.not_asked(session.unasked.popitem(last=False)[1].exchange)
        return None

    def _replied(self, asked: Message) -> Message | None:
        """What the client had answered to a request that is only known now: its stream has no times, and was open by then."""
        session, stream = self._session(asked.exchange), asked.exchange.stream
        if not session.unasked or stream is None or stream.timed:
            return None
        key = jsonrpc.id_key(asked.rpc.id)
        reply = session.unasked.get(key)
        if reply is None or reply.at < asked.exchange.started:
            return None
        return session.unasked.pop(key)

    def not_asked(self, exchange: Exchange) -> None:
        """An answer of the client waits for its request no longer."""
        self._held.free(exchange, UNASKED)

    def _link(self, asked: Message, message: Message) -> Exchange | None:
        """The client's message answers that request. Returns the exchange whose operation it belongs to."""
        exchange = message.exchange
        session = self._session(exchange)
        message.request, asked.answer = asked, message
        exchange.method = exchange.method or asked.method
        origin, exact = asked.exchange, session.id != "" or session.transport == "stdio"
        if origin.http_method == "GET":  # the stream carries everybody's messages: it is no part of one operation
            waiting = [m for m in session.from_client.values() if m.exchange.late_answer is None]
            if len(waiting) != 1:
                return None
            origin, exact = waiting[0].exchange, False
        held_ms = max((exchange.started - asked.at) * 1000, 0.0)
        linked = self._conversations.link(origin, exchange, "jsonrpc-id", "exact" if exact else "likely", client_ms=held_ms)
        return origin if linked else None

    def _wait(self, message: Message, size: int = 0) -> None:
        """A legacy request of either side: its answer may come on another stream."""
        session, key = self._session(message.exchange), jsonrpc.id_key(message.rpc.id)
        for forgotten in session.waiting(message, key):
            self._held.free(forgotten.exchange, LATE)
        if message.party == "server":
            self._sessions.asked(session, message, key, size)

    def _no_longer_waits(self, request: Message) -> None:
        waiting, key = self._session(request.exchange).from_client, jsonrpc.id_key(request.rpc.id)
        if waiting.get(key) is request:
            del waiting[key]

    def _session(self, exchange: Exchange) -> Session:
        return exchange.session or self._sessions.stateless(exchange)


def _ends(exchange: Exchange, session: Session) -> bool:
    """Whether this exchange ends its session; writes down why."""
    answer = exchange.answer
    if session.transport == "http+sse":
        if exchange.stream is None or not exchange.stream.http_sse:
            return False
        session.ended_why = "its stream ended"
    elif exchange.http_method == "DELETE" and exchange.status is not None and 200 <= exchange.status < 300:
        session.ended_why, session.deleted_flow = "DELETE", exchange.flow
    elif exchange.status == 404 and exchange.request_fields.has("mcp-session-id") and not exchange.claim.modern:
        if exchange.http_method != "POST":
            return False  # it may only mean that there is no such stream
        if answer is not None and answer.error_code == rev.METHOD_NOT_FOUND:
            return False
        session.ended_why = "404"
    else:
        return False
    return True


def _may_be_answered_elsewhere(exchange: Exchange) -> bool:
    """A legacy request that was accepted without an answer: it comes on the session's GET stream, or after a resumption."""
    session = exchange.session
    if exchange.claim.modern or session is None or not session.live or exchange.status is None or exchange.status >= 300:
        return False
    return any(m.rpc.kind == "request" and m.answer is None for m in exchange.sent)
