"""Which recorded exchange answers a live request: by endpoint, session and likeness, in recorded order, then the last again."""

import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.replay.likeness import Key, answers_alike, canonical, circumstances, is_modern, key_of, state_of
from mcp_wiretap.replay.live_ids import Rewriting
from mcp_wiretap.replay.script import MAX_BODY, Scene, Script, Take, describe
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.secret import hidden

LISTED = 12  # of what is in the recording, in an error


class Missing(Exception):
    """The recording has no answer. `data` names what was asked for and what is there."""

    def __init__(self, status: int, code: int, message: str, recorded: Iterable[str] = (), asked: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.data = {"asked": asked, "recorded": list(recorded)}


@dataclass(eq=False)
class Asked:
    """A live request. `origin`: scheme://host:port as its client knows it; `connection`: the same object for one connection."""

    http_method: str
    target: str
    fields: Fields
    body: bytes
    connection: Hashable
    origin: str
    reading: jsonrpc.Reading | None = None

    def __post_init__(self) -> None:
        if self.body:
            self.reading = jsonrpc.read(self.body, max_bytes=MAX_BODY)
        self.path = self.target.partition("?")[0] or "/"
        self.modern = is_modern(self.fields, self.reading)
        self.key: Key = key_of(self.http_method, self.target, self.fields, self.body, self.reading)

    @property
    def first(self) -> jsonrpc.Message | None:
        return self.reading.messages[0] if self.reading is not None and self.reading.messages else None

    @property
    def is_answer(self) -> bool:
        """The client's answer to a question that the server asked on a stream."""
        return self.key == ("answer",)

    @property
    def is_notification(self) -> bool:
        return self.first is not None and self.first.kind == "notification" and self.http_method == "POST"

    def __str__(self) -> str:
        return describe(self.http_method, self.path, self.reading)


@dataclass(eq=False)
class Session:
    """A live client's session, played after one of the recording."""

    scene: Scene
    id: str
    post_target: str = ""  # HTTP+SSE: where its client posts to
    played: set[Take] = field(default_factory=set)
    rewriting: Rewriting = field(default_factory=Rewriting)
    answers: dict[Hashable, jsonrpc.Message] = field(default_factory=dict)  # what the client posted, by the question's id


class Cast:
    """Chooses takes and remembers what was played. `endpoint`: the one of the recording that is played, where it has several."""

    def __init__(self, script: Script, endpoint: str | None = None) -> None:
        takes = script.takes
        if endpoint is not None:
            origin = "/".join(endpoint.split("/", 3)[:3])
            takes = [take for take in takes if take.origin == origin]
        self.takes = takes
        self.sessions: dict[str, Session] = {}  # by id
        self.posting: dict[str, Session] = {}  # HTTP+SSE, by where their clients post to
        self._nameless: dict[Scene, Session] = {}
        self._by_path: dict[str, list[Take]] = {}
        self._by_key: dict[tuple[str, bool, Key], list[Take]] = {}
        self._by_task: dict[str, list[Take]] = {}
        for take in takes:
            self._by_path.setdefault(take.path, []).append(take)
            self._by_key.setdefault((take.path, take.modern, take.key), []).append(take)
            if (task := _task(take)) is not None:
                self._by_task.setdefault(task, []).append(take)
        self._calls = [take for take in takes if take.is_call]
        self._played: set[Take] = set()
        self._ever: set[Take] = set()  # since the start, in whatever session
        self._connections: dict[Hashable, None] = {}

    # What a live request is answered by

    def find(self, asked: Asked) -> tuple[Take, Session | None]:
        """The take that answers, without playing it. Missing where the recording has none."""
        pool = self._pool(asked)
        session = self.session_of(asked, pool)
        alike = self._by_key.get((asked.path, asked.modern, asked.key), ())
        fitting = [take for take in alike if take.origin == pool[0].origin or len(pool) == len(self._by_path.get(asked.path, ()))]
        if session is not None:
            fitting = [take for take in fitting if take.session is session.scene] or [
                take for take in fitting if take.session is not None and take.session.http_sse == session.scene.http_sse
            ]
        elif not asked.modern and not _opens(asked):
            named = fitting
            fitting = [take for take in named if take.session is None or not take.session.id]
            if named and not fitting:
                raise self._missing(asked, 400, rev.INVALID_REQUEST, "the request names no session (Mcp-Session-Id)")
        if not fitting:
            raise self._not_there(asked, pool)
        fitting = self._by_answers(asked, fitting)
        fitting = _by_circumstances(asked, fitting)
        played = session.played if session is not None else self._played
        return next((take for take in fitting if take not in played), fitting[-1]), session

    def play(self, asked: Asked) -> tuple[Take, Session | None]:
        """The take that answers, which counts as played from now on. Opens the session that it opens."""
        take, session = self.find(asked)
        played = session.played if session is not None else self._played
        if take in played and self._starts_anew(asked):
            self._played.clear()
            self._ever.clear()
            take, session = self.find(asked)
        again = take in played
        if again and (handle := _handle(take)) is not None:
            played.difference_update(self._by_task.get(handle, ()))
        played.add(take)
        self._ever.add(take)
        self._connections[asked.connection] = None
        while len(self._connections) > 10_000:
            del self._connections[next(iter(self._connections))]
        scene = take.session
        if session is None and scene is not None:
            session = self._open(asked, take, scene)
        return take, session

    def _open(self, asked: Asked, take: Take, scene: Scene) -> Session | None:
        if scene.http_sse:
            return Session(scene, "") if asked.http_method == "GET" else None
        if scene.id:
            if asked.first is None or asked.first.method != "initialize":
                return None
            session = Session(scene, uuid.uuid4().hex)
            self.sessions[session.id] = session
            session.played.add(take)
            return session
        return self._nameless.setdefault(scene, Session(scene, "", played=self._played))

    def end(self, session: Session) -> None:
        self.sessions.pop(session.id, None)
        self.posting.pop(session.post_target, None)

    def session_of(self, asked: Asked, pool: Sequence[Take]) -> Session | None:
        """The live session that a request names. Missing where there is none of that name."""
        announced = self.posting.get(asked.target)
        if announced is not None:
            return announced
        if asked.modern:
            return None
        if asked.http_method == "POST" and any(take.session is not None and take.session.http_sse for take in pool):
            raise self._missing(asked, 404, rev.INVALID_REQUEST, f"no open stream has announced {asked.target}")
        named = asked.fields.first("mcp-session-id")
        if named is None or (asked.first is not None and asked.first.method == "initialize"):
            return None
        session = self.sessions.get(named)
        if session is None and any(take.session is not None for take in pool):
            raise self._missing(asked, 404, rev.INVALID_REQUEST, "there is no session of that id; initialize a new one")
        return session

    def _pool(self, asked: Asked) -> list[Take]:
        """The takes of the endpoint that is asked."""
        pool = self._by_path.get(asked.path, [])
        if not pool and asked.target not in self.posting:
            paths = sorted({take.path for take in self.takes if take.exchange is not None and take.exchange.kind == "mcp"})
            text = f"the recording has nothing at {asked.path}; its endpoints: {', '.join(paths)}"
            raise Missing(404, rev.INVALID_REQUEST, text, paths, str(asked))
        origins = {take.origin for take in pool}
        if len(origins) > 1:
            own = [take for take in pool if take.origin == asked.origin]
            if not own:
                urls = sorted(origin + asked.path for origin in origins)
                text = f"none of the recording's endpoints with the path {asked.path} is at {asked.origin}: {', '.join(urls)}"
                raise Missing(404, rev.INVALID_REQUEST, text, urls, str(asked))
            return own
        return pool

    def _by_answers(self, asked: Asked, takes: list[Take]) -> list[Take]:
        """Of a further round: those that follow the same state, with the same answers where there are such."""
        state = state_of(asked.reading)
        if state is None:
            return takes
        named, answers = canonical(state[0]), canonical(state[1])
        following = [take for take in takes if take.state is not None and canonical(take.state[0]) == named]
        if not following:
            text = "the requestState is not one that the recording has for this request"
            raise self._missing(asked, 200, rev.INVALID_PARAMS, text)
        for alike in (
            [take for take in following if take.state is not None and canonical(take.state[1]) == answers],
            [take for take in following if take.state is not None and answers_alike(take.state[1], state[1])],
            [take for take in takes if take.state is not None and canonical(take.state[1]) == answers],
            [take for take in takes if take.state is not None and answers_alike(take.state[1], state[1])],
        ):
            if alike:
                return alike
        there = [f"{take}: {jsonrpc.dumps(take.state[1] if take.state else None, most=200, shown=hidden)}" for take in following]
        raise self._missing(asked, 200, rev.INVALID_PARAMS, "in the recording other answers were given to these questions", there)

    def _starts_anew(self, asked: Asked) -> bool:
        """Whether a client comes that plays the recording once more: it opens with what the recording opens with, on a new
        connection, after all was played to the end."""
        if len({take.key for take in self._calls}) < 2 or asked.connection in self._connections:
            return False
        return self._calls[0].key == asked.key and self._calls[-1] in self._ever

    def like(self, take: Take) -> Sequence[Take]:
        """The takes that ask the same of the same path."""
        return self._by_key[take.path, take.modern, take.key]

    def serves(self, asked: Asked) -> bool:
        """Whether anything was recorded where that request goes."""
        return asked.path in self._by_path or asked.target in self.posting

    # What is not there

    def _not_there(self, asked: Asked, pool: Sequence[Take]) -> Missing:
        message = asked.first
        if message is None or message.kind not in ("request", "notification"):
            status = 405 if asked.http_method in ("GET", "DELETE") else 404 if asked.reading is None else 400
            return self._missing(asked, status, rev.INVALID_REQUEST, f"the recording has no {asked}", _listed(pool))
        same = [take for take in pool if (call := take.request) is not None and call.method == message.method]
        if not same:
            return self._missing(
                asked, 404 if asked.modern else 200, rev.METHOD_NOT_FOUND, f"the recording has no {message.method}", _listed(pool)
            )
        era = [take for take in same if take.modern == asked.modern]
        if not era:
            text = f"the recording has {message.method} in the {'legacy' if asked.modern else 'modern'} era only"
            return self._missing(asked, 400 if asked.modern else 200, rev.INVALID_REQUEST, text, _listed(same))
        return self._missing(asked, 200, rev.INVALID_PARAMS, f"the recording has no {asked}", _listed(era))

    def _missing(self, asked: Asked, status: int, code: int, text: str, recorded: Sequence[str] | None = None) -> Missing:
        if recorded is None:
            recorded = ()
        there = f"; it has {'; '.join(recorded)}" if recorded else ""
        said = f"{text}{there}" if str(asked) in text else f"{text} (asked: {asked}){there}"
        return Missing(status, code, said, recorded, str(asked))


def _opens(asked: Asked) -> bool:
    message = asked.first
    return (message is not None and message.method == "initialize") or asked.key[0] in ("http", "stream")


def _by_circumstances(asked: Asked, takes: list[Take]) -> list[Take]:
    """Those that were asked in the same circumstances, as far as there are any."""
    if len(takes) > 1:
        for name, value in circumstances(asked.fields, asked.reading).items():
            takes = [take for take in takes if take.circumstances[name] == value] or takes
    return takes


def _listed(takes: Iterable[Take]) -> list[str]:
    counts = Counter(str(take) for take in takes if take.is_call)
    listed = [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]
    if len(listed) > LISTED:
        listed[LISTED:] = [f"and {len(listed) - LISTED} more"]
    return listed


def _task(take: Take) -> str | None:
    """The task that a request names."""
    request = take.request
    found: Any = request.params.get("taskId") if request is not None and isinstance(request.params, dict) else None
    return found if isinstance(found, str) else None


def _handle(take: Take) -> str | None:
    """The task that an answer hands out."""
    result = take.result.result if take.result is not None else None
    if not isinstance(result, dict) or _task(take) is not None:
        return None
    task = result.get("task") if isinstance(result.get("task"), dict) else result
    found = task.get("taskId") if isinstance(task, dict) else None
    return found if isinstance(found, str) else None
