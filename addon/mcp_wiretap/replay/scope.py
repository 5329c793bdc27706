"""Which exchanges of a recording are replayed, and which of the calls among them may do something twice."""

from collections import Counter
from collections.abc import Collection

from mcp_wiretap.replay.script import Script, Take


class NotChosen(Exception):
    """It is not clear what to replay. The message says what there is."""


def takes_of(script: Script, endpoint: str | None = None, conversation: str | None = None) -> list[Take]:
    """The exchanges to replay: of the only endpoint or the named one; all, or one conversation (the id of any of its flows) with
    the opening of its session."""
    takes = [take for take in script.mcp if take.seen.http_method != "OPTIONS"]
    if conversation is not None:
        return conversation_of(script, {conversation})
    servers = list(dict.fromkeys(take.origin for take in takes))
    if endpoint is not None:
        origin = "/".join(endpoint.split("/", 3)[:3])
        path = endpoint.removeprefix(origin)
        takes = [take for take in takes if take.origin == origin and (path in ("", take.path) or _same_session(take, path))]
        if not takes:
            raise NotChosen(f"--endpoint {endpoint} is not in the recording; it has {', '.join(script.endpoints)}")
    elif len(servers) > 1:
        raise NotChosen(f"the recording has several servers, choose one with --endpoint: {', '.join(script.endpoints)}")
    return takes


def conversation_of(script: Script, flows: Collection[str]) -> list[Take]:
    """The whole conversations of flows, and what opens the sessions that they are in. NotChosen for flows that are not there."""
    wanted = [take for take in script.mcp if take.flow in flows or conversation_id(take) in flows]
    if not wanted:
        raise NotChosen(f"there is no MCP exchange {', '.join(sorted(flows))} in the recording")
    ids = {conversation_id(take) for take in wanted}
    sessions = {take.session for take in wanted if take.session is not None}
    chosen = []
    for take in script.mcp:
        mine = take in wanted or (
            take.exchange is not None and take.exchange.conversation is not None and conversation_id(take) in ids
        )
        if mine or (take.session in sessions and (_opening(take) or take.key == ("answer",))):
            chosen.append(take)
    return chosen


def repeated(script: Script, takes: Collection[Take]) -> list[tuple[str, int]]:
    """The tools among the calls that no annotation calls read-only or idempotent, with the number of calls of each."""
    counts: Counter[str] = Counter()
    for take in takes:
        request = take.request
        if request is None or request.method != "tools/call" or take.state is not None:
            continue
        name = request.params.get("name") if isinstance(request.params, dict) else None
        endpoint = script.endpoint(take)
        tool = endpoint.tools.get(name) if endpoint is not None and isinstance(name, str) else None
        raw = getattr(tool, "raw", None)
        annotations = raw.get("annotations") if isinstance(raw, dict) else None
        hints = annotations if isinstance(annotations, dict) else {}
        if hints.get("readOnlyHint") is not True and hints.get("idempotentHint") is not True:
            counts[str(name)] += 1
    return sorted(counts.items())


def conversation_id(take: Take) -> str:
    """The id of the conversation of an exchange; its flow's, where it is in none."""
    conversation = take.exchange.conversation if take.exchange is not None else None
    return conversation.id if conversation is not None else take.flow


def _opening(take: Take) -> bool:
    message = take.first
    opens = message is not None and message.method in ("initialize", "notifications/initialized")
    return opens or take.key[0] in ("stream", "delete")


def _same_session(take: Take, path: str) -> bool:
    """HTTP+SSE: what is posted elsewhere belongs to the stream at `path`."""
    return take.session is not None and take.session.http_sse and any(other.path == path for other in take.session.takes)
