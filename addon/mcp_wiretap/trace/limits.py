"""How much is kept. Every bound has its reason beside it; what goes past one is counted in `Inspector.dropped`."""

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Limits:
    body: int = 8 << 20  # bytes of one body that are parsed, with rests between (`wire.pace`)
    stream: int = 8 << 20  # bytes of one event stream that are kept and parsed
    depth: int = 200  # nesting of JSON: no MCP message comes near, and recursion over it stays safe
    state: int = 20_000  # exchanges, conversations and open items of each kind remembered, about 3 kB each
    events: int = 2_000  # SSE events of one exchange kept with their messages; later ones are judged, then let go
    stream_events: int = 20_000  # SSE events of one exchange that are read at all: 16 kB of gzip hold a million
    endpoints: int = 1_000  # a client that walks a million URLs must not fill the memory
    findings: int = 200  # findings of one exchange: a hostile tools/list can break a rule a million times
    undecided: int = 64  # exchanges of an endpoint kept whole until its server's era is known
    held: int = 2_000  # exchanges kept whole in all, because a later one may change their verdict
    held_bytes: int = 32 << 20  # and the bytes that they were read from; as Python objects about five times that
