"""A store of SSE events, so that a legacy client can come back with Last-Event-ID. Bounded; the oldest events go first."""

from collections import OrderedDict

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import JSONRPCMessage

EVENTS_KEPT = 2000


class MemoryEvents(EventStore):
    """Event ids are numbers that rise over all streams of a server, so they are unique in every session."""

    def __init__(self) -> None:
        self._events: OrderedDict[EventId, tuple[StreamId, JSONRPCMessage | None]] = OrderedDict()
        self._issued = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._issued += 1
        event_id = str(self._issued)
        self._events[event_id] = (stream_id, message)
        if len(self._events) > EVENTS_KEPT:
            self._events.popitem(last=False)
        return event_id

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        if last_event_id not in self._events:
            return None
        stream, _ = self._events[last_event_id]
        for event_id, (of, message) in list(self._events.items()):
            if of == stream and int(event_id) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, event_id))
        return stream
