"""Follows refused sessions: with another status than 404, in turn with being served, without an id that was given or sent.

Facts are Notes beside those of `session_use`, on the first exchange that a fault shows on; later ones are counted there, and it
is judged anew with each. Spec: 2025-11-25 basic/transports#session-management.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcp_wiretap.trace.facts import SessionFact
from mcp_wiretap.trace.finding import Unchecked
from mcp_wiretap.trace.legacy.session_use import LEGACY, TOLD_MISSING, VERSION_DIFFERS, Note, add_note, drop_notes, is_hidden
from mcp_wiretap.trace.memory.memory import Memory
from mcp_wiretap.trace.memory.recent import Recent
from mcp_wiretap.trace.memory.repeats import MOST_RELATED
from mcp_wiretap.trace.model import Exchange, Session
from mcp_wiretap.trace.refusals.words import Said, speaks_of, words_of
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.headers import Fields

NAME = "session-refusals"
REFUSALS = frozenset({400, 401, 403, 404})
MOST_HELD = 10  # refused exchanges of one session that may be judged anew
REPEATS = 3  # refusals of one id, after the first, from which on its use is a client's fault as well
_CODES_OF_OAUTH = frozenset({"invalid_token", "insufficient_scope", "invalid_request", "unauthorized", "invalid_client"})


@dataclass(slots=True)
class Refused:
    """A session id that was refused, by its first refusal."""

    first: Exchange
    said: Said | None
    in_words: bool  # the words speak of a session
    count: int = 1
    served: int = 0  # requests that were served after a refusal
    named: int = 0  # requests that named the id
    related: list[str] = field(default_factory=list)
    held: list[Exchange] = field(default_factory=list)

    def is_contradicted_by(self, exchange: Exchange) -> bool:
        """Whether it tells of instances that do not share the session that this exchange is served: a refusal without words may
        have been for the method."""
        return self.in_words or exchange.method == self.first.method


REFUSED: SessionFact[Refused] = SessionFact("_refused", "how the id of this session was refused")


@dataclass(slots=True)
class _Idless:
    """An initialize that was answered without Mcp-Session-Id, and where else the answer has something like one."""

    exchange: Exchange
    where: str
    value: str
    served: bool = False  # a request without id was served since
    told: bool = False


PROGRAM: SessionFact[str | None] = SessionFact("_program", "User-Agent of its initialize")
NAMED: SessionFact[int] = SessionFact("_named", "requests that named this session")
SERVED_SESSION: SessionFact[bool] = SessionFact("_served", "a request that names this session was served")


class SessionRefusals(Tracker):
    name = NAME

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._idless: Recent[tuple[str, str], _Idless] = Recent(lambda: self.limits.undecided)  # by endpoint and Authorization
        self._newest: Recent[tuple[str, str], Session] = Recent(lambda: self.limits.state)  # likewise

    def resized(self) -> None:
        for forgotten in self._idless.shrink():
            self.memory.held.free(forgotten.exchange, NAME)
        super().resized()

    def ended(self, exchange: Exchange) -> Iterable[Exchange] | None:
        if exchange.kind != "mcp" or exchange.claim.modern or exchange.status is None or exchange.change is not None:
            return None
        if exchange.method == "initialize" and exchange.http_method == "POST":
            self._initialized(exchange)
            return None
        named = exchange.request_fields.has("mcp-session-id")
        changed = self._with_id(exchange) if named else self._without_id(exchange)
        return [earlier for earlier in changed if earlier is not exchange]

    def _initialized(self, exchange: Exchange) -> None:
        answer = exchange.answer
        if answer is None or answer.rpc.kind != "result":
            return
        key = (exchange.endpoint.url, exchange.auth)
        before = self._idless.pop(key)
        if before is not None:
            self.memory.held.free(before.exchange, NAME)
        if exchange.session is not None:
            if exchange.session.transport == "streamable":
                exchange.session.facts[PROGRAM] = exchange.request_fields.first("user-agent")
                self._newest.put(key, exchange.session)
            return
        where, value = _other_name(exchange)
        self.memory.held.keep(exchange, NAME)
        for forgotten in self._idless.put(key, _Idless(exchange, where, value)):
            self.memory.held.free(forgotten.exchange, NAME)

    # Requests that name a session

    def _with_id(self, exchange: Exchange) -> Iterable[Exchange]:
        session, status = exchange.session, exchange.status or 0
        if session is None or session.transport != "streamable":
            return
        record = session.facts.get(REFUSED)
        named = session.facts[NAMED] = session.facts.get(NAMED, 0) + 1
        if record is not None:
            record.named = named
        if 200 <= status < 300:
            session.facts[SERVED_SESSION] = True
            if record is not None and exchange.http_method != "DELETE" and exchange.started > (record.first.ended or 0.0):
                yield from self._served_again(exchange, session, record)
        elif status in REFUSALS and session.ended_why != "DELETE" and not _has_faults(exchange):
            words = words_of(exchange)
            in_words = words is not None and _speaks_of_session(words, session)
            if not in_words and (status != 404 or session.ended_why != "404"):
                return
            if status in (401, 403) and _is_authorization(exchange):
                return
            yield from self._refused(exchange, session, record, words, in_words, named)

    def _refused(
        self, exchange: Exchange, session: Session, record: Refused | None, words: Said | None, in_words: bool, named: int
    ) -> Iterable[Exchange]:
        if record is None:
            record = session.facts[REFUSED] = Refused(exchange, words, in_words, named=named)
            if exchange.status != 404 and not session.initialize_flow and not session.facts.get(SERVED_SESSION):
                why = f"it was refused with HTTP {exchange.status}; whether the server had given it was not recorded"
                exchange.unchecked.append(Unchecked("session id", why))
        else:
            if exchange.started < (record.first.ended or 0.0):
                return  # it was on its way already
            record.count += 1
            record.in_words = record.in_words or in_words
            if len(record.related) < MOST_RELATED:
                record.related.append(exchange.flow)
        if len(record.held) < MOST_HELD:
            record.held.append(exchange)
            self.memory.held.keep(exchange, NAME)
        if record.served:
            self._tell_of_instances(session, record)
            yield record.first
            return
        known = bool(session.initialize_flow or session.facts.get(SERVED_SESSION, False))
        if record.first.status == 404 or not known:
            return
        self._note(record.first, "session-refused", record, session)
        yield record.first
        newest = self._newest.get((exchange.endpoint.url, exchange.auth))
        if record.count == REPEATS + 1 and newest in (None, session):
            add_note(exchange, Note("refused-session-used", record.count, exchange.status, record.first.flow))

    def _served_again(self, exchange: Exchange, session: Session, record: Refused) -> Iterable[Exchange]:
        if not record.is_contradicted_by(exchange):
            return
        drop_notes(exchange, "session-lives")  # that the 404 had another cause is a guess, and this is not
        record.served += 1
        if len(record.related) < MOST_RELATED and record.served == 1:
            record.related.append(exchange.flow)
        if record.served > 1:
            return
        for earlier in record.held:
            drop_notes(earlier, "session-refused", "refused-session-used", "dead-session-used")
        self._tell_of_instances(session, record)
        yield from record.held

    def _tell_of_instances(self, session: Session, record: Refused) -> None:
        self._note(record.first, "session-in-turn", record, session)

    @staticmethod
    def _note(exchange: Exchange, what: str, record: Refused, session: Session) -> None:
        notes = exchange.facts.get(LEGACY, [])
        if not exchange.released and not any(note.what == what for note in notes):
            add_note(exchange, Note(what, record, None, session.initialize_flow))

    # Requests that name none

    def _without_id(self, exchange: Exchange) -> Iterable[Exchange]:
        key, status = (exchange.endpoint.url, exchange.auth), exchange.status or 0
        idless = self._idless.get(key)
        if idless is not None and 200 <= status < 300 and exchange.http_method == "POST":
            idless.served = True
        if status not in REFUSALS or _has_faults(exchange):
            return
        words = words_of(exchange)
        if words is None or speaks_of(words.text, "session", "initialization") is None or _is_authorization(exchange):
            return
        if idless is not None:
            if not idless.told and (idless.where or not (idless.served or exchange.http_method != "POST")):
                idless.told = True
                add_note(idless.exchange, Note("session-id-elsewhere", idless.value, idless.where, exchange.flow))
                yield idless.exchange
            return
        session = self._newest.get(key)
        if session is None or not session.live or session.facts.get(TOLD_MISSING):
            return
        if speaks_of(words.text, "session") and exchange.request_fields.first("user-agent") == session.facts.get(PROGRAM):
            session.facts[TOLD_MISSING] = True
            others = sum(1 for s in self.memory.sessions if s.endpoint is exchange.endpoint and s.live)
            add_note(exchange, Note("session-dropped", is_hidden(session), session.id, session.initialize_flow, others <= 1))


def _has_faults(exchange: Exchange) -> bool:
    """Whether the request has a fault of its own for which it may have been refused."""
    reading = exchange.reading
    if exchange.http_method == "POST" and (reading is None or reading.kind not in ("single", "batch")):
        return True
    notes = exchange.facts.get(LEGACY, [])
    return VERSION_DIFFERS in exchange.facts or any(note.what == "version-missing" for note in notes)


def _speaks_of_session(words: Said, session: Session) -> bool:
    if len(session.id) > 3 and session.id in words.text:
        return True
    topic = speaks_of(words.text, "session", "initialization")
    if topic == "initialization":  # a client that never said that it is ready is refused for that
        return session.initialized_at is not None or not session.initialize_flow
    return topic is not None


def _is_authorization(exchange: Exchange) -> bool:
    """Whether a refusal is a matter of OAuth: a challenge, or an OAuth error body."""
    fields = exchange.response_fields or Fields([])
    challenge = (fields.first("www-authenticate") or "").lower()
    if challenge.startswith(("bearer", "dpop")):
        return True
    reading = exchange.answer_reading
    value = reading.value if reading is not None and reading.kind == "not-rpc" else None
    return isinstance(value, dict) and isinstance(error := value.get("error"), str) and error in _CODES_OF_OAUTH


def _other_name(exchange: Exchange) -> tuple[str, str]:
    """Where an initialize answer has something like a session id beside Mcp-Session-Id, and the value; "" where it has none."""
    fields = exchange.response_fields
    if fields is not None:
        for name in fields.index:
            if "session" in name and name not in ("mcp-session-id", "set-cookie"):
                return f"response.header:{name}", fields.first(name) or ""
        for cookie in fields.all("set-cookie"):
            name = cookie.partition("=")[0].strip().lower()
            if "session" in name or name.endswith("sid"):
                return "response.header:Set-Cookie", cookie.partition("=")[2].partition(";")[0]
    answer = exchange.answer
    for name in ("sessionId", "session_id", "mcpSessionId"):
        value = answer.result.get(name) if answer is not None else None
        if isinstance(value, str):
            return f"response.body:/result/{name}", value
    return "", ""
