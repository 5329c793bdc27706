"""What a tracker may touch of the trace that it watches. The Inspector is one; a tracker never sees more of it than this."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Protocol

from mcp_wiretap.trace.limits import Limits
from mcp_wiretap.trace.memory.conversations import Conversations
from mcp_wiretap.trace.memory.retained import Held
from mcp_wiretap.trace.memory.sessions import Sessions
from mcp_wiretap.trace.model import Endpoint, Exchange, Session
from mcp_wiretap.trace.promised import Promised


class Memory(Protocol):
    """The retained part of a trace, and the requests to judge or show an exchange anew."""

    @property
    def limits(self) -> Limits: ...

    @property
    def promised(self) -> Promised: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def held(self) -> Held: ...

    @property
    def exchanges(self) -> OrderedDict[str, Exchange]: ...

    @property
    def endpoints(self) -> Mapping[str, Endpoint]: ...

    def rejudge(self, exchange: Exchange) -> None:
        """Judge an earlier exchange anew, by what is known now."""

    def touched(self, exchange: Exchange) -> None:
        """Mark an exchange as changed: what is shown of it has to be renewed."""

    def count_dropped(self, what: str, number: int = 1) -> None:
        """Count what went past a limit."""

    def silent_streams(self, session: Session | None, endpoint: Endpoint) -> bool:
        """Return whether a stream of the session (without one: of the endpoint) is open of which nothing was read."""

    def tracker[T](self, kind: type[T]) -> T:
        """Return the tracker of that class."""
