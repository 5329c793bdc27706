"""What an exchange is called after its bodies are gone: method, name, id and client of its request. Names, not megabytes."""

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire import revision as rev

LONGEST = 1_000  # characters
_SUBJECT = {  # method -> the parameter that says what the operation is about
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
    "tasks/result": "taskId",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
}


def name(exchange: Exchange) -> None:
    """Write on an exchange what its request says of itself."""
    request = exchange.request
    if request is not None:
        exchange.method = cut(request.method)
        exchange.name = _subject(request)
        exchange.jsonrpc_id = _id(request.rpc.id) if request.rpc.has_id else None
    elif exchange.sent and exchange.sent[0].rpc.kind == "notification":
        exchange.method = cut(exchange.sent[0].method)
    exchange.client_info = _client(exchange)


def cut[S: (str, str | None)](text: S) -> S:
    return text if text is None or len(text) <= LONGEST else text[:LONGEST] + "…"


def _subject(request: Message) -> str | None:
    """The tool, prompt, resource or task that the request names."""
    source = _SUBJECT.get(request.method or "")
    value = request.params.get(source) if source else None
    return cut(value) if isinstance(value, str) else None


def _id(value: object) -> object:
    """An id as it is kept: as it came where it is one, cut where it is not."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return cut(value)
    text = jsonrpc.dumps(value, most=LONGEST)
    return value if len(text) < LONGEST else text + "…"


def _client(exchange: Exchange) -> tuple[str, str] | None:
    request = exchange.request
    info = request.meta.get(rev.CLIENT_INFO) if request is not None else None
    if info is None and request is not None and request.method == "initialize":
        info = request.params.get("clientInfo")
    if info is None and exchange.session is not None:
        info = exchange.session.client_info
    if isinstance(info, dict):
        return _word(info.get("name", "")), _word(info.get("version", ""))
    return None


def _word(value: object) -> str:
    return cut(value) if isinstance(value, str) else jsonrpc.dumps(value, most=LONGEST)
