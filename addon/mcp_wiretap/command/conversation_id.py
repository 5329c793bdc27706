"""`--conversation ID`: which one is meant. Reports print the first eight digits of an id, so that many are enough, or fewer."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mcp_wiretap.command import Refused
from mcp_wiretap.wire.secret import shown

SHORTEST = 4  # digits of an id
LISTED = 8


def conversation(wanted: str, conversations: Mapping[str, str], words: Callable[[str], str]) -> str:
    """The id of a conversation, as `wanted` says or begins to say it. `conversations`: of each flow, the id of the one that it is
    in (its own id, where it is in none); `words` tells what that is about. Refused where none or several are meant."""
    if wanted in conversations:
        return conversations[wanted]
    begun = wanted.lower()
    fitting = [flow for flow in conversations if flow.startswith(begun)] if len(begun) >= SHORTEST else []
    found = list(dict.fromkeys(conversations[flow] for flow in fitting))
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(f"--conversation {wanted} may be any of {listed(found, words)}")
    several = [id for flow, id in conversations.items() if flow != id]
    there = listed(several or conversations.values(), words)
    few = f" (an id is named by {SHORTEST} of its digits at least)" if len(begun) < SHORTEST else ""
    raise Refused(f"--conversation {wanted} is neither a conversation nor a flow of the recording{few}; it has {there or 'none'}")


def listed(ids: Iterable[str], words: Callable[[str], str]) -> str:
    """`932438d2 tools/call deploy, ...`: as few digits as tell them apart, eight at least."""
    known = list(dict.fromkeys(ids))
    first = known[:LISTED]
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return ", ".join(f"{_short(id, known)} {shown(words(id), 60)}".rstrip() for id in first) + more


def _short(id: str, known: Sequence[str]) -> str:
    if id.startswith("har-"):
        return id
    digits = next((n for n in range(8, len(id)) if sum(other.startswith(id[:n]) for other in known) == 1), len(id))
    return id[:digits]
