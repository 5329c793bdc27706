"""The words in which the other side tells of a failure: `exchange.error_message`, with the secrets of the trace masked.

The message of the JSON-RPC error; else the words of the body, or of the challenge; else what the proxy said of a connection that
broke. Nothing here judges: the words are quoted, so that nobody takes them for ours.
"""

from mcp_wiretap.trace.model import Exchange, Message
from mcp_wiretap.wire import challenge, form, jsonrpc, plain_text
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.secret import concealed, one_line, safe

LONGEST = 500  # characters that are kept of an exchange
QUOTED = 100  # of a line
# Messages that only repeat what the code says: what `data` says comes with them.
_BARE = frozenset(
    {
        "",
        "error",
        "server error",
        "internal error",
        "internal server error",
        "invalid params",
        "invalid request",
        "invalid parameters",
        "method not found",
        "parse error",
        "bad request",
        "unknown error",
    }
)


def settle(exchange: Exchange) -> None:
    """Set `error_message` by what is known so far. `outcome` and `error_code` are settled."""
    words = raw(exchange)
    exchange.error_message = _masked(words) if words else None


def raw(exchange: Exchange) -> str:
    """The words as they came, on one line: to be searched, not to be shown. "" where nothing was said."""
    if exchange.status is not None and 300 <= exchange.status < 400:
        return _of_redirect(exchange)
    if exchange.kind == "oauth" and exchange.outcome == "complete":
        reading = exchange.answer_reading  # a page in place of metadata or of a token
        return exchange.body_words if reading is not None and reading.kind == "not-json" else ""
    if exchange.outcome in ("complete", "accepted"):
        own = posted(exchange)
        return message_words(own) if own is not None else _of_tool_error(exchange)
    if exchange.outcome not in ("error", "broken"):
        return ""
    error = exchange.answer
    if error is None or error.rpc.kind != "error":
        error = refusal(exchange)
    if error is not None and (words := message_words(error)):
        return words
    return exchange.body_words or _of_challenge(exchange.response_fields) or _of_connection(exchange)


def refusal(exchange: Exchange) -> Message | None:
    """The JSON-RPC error in the body of a refusal whose id fits no request."""
    return next((m for m in exchange.received if m.rpc.kind == "error" and m.request is None), None)


def posted(exchange: Exchange) -> Message | None:
    """The JSON-RPC error that the client posted, as its answer to a request of the server."""
    if exchange.request is not None:
        return None
    for message in exchange.sent:
        if message.rpc.kind == "error":
            return message
    return None


def message_words(error: Message) -> str:
    """What a JSON-RPC error says: its message, with its data where the message only repeats the code."""
    inside = error.rpc.error
    if not isinstance(inside, dict):
        return plain_text.json_words(inside)
    message = inside.get("message")
    text = " ".join(message[: 2 * plain_text.LONGEST].split()) if isinstance(message, str) else ""
    if text.lower().removeprefix("error ") == str(error.error_code):
        text = ""  # the code once more
    if text.lower().rstrip(".") not in _BARE and text != (rev.error_name(error.error_code) or ""):
        return text[: plain_text.LONGEST]
    more = plain_text.json_words(inside.get("data"))
    return f"{text}: {more}" if text and more else text or more


def body_words(exchange: Exchange, body: bytes | None) -> str:
    """The words of an answer that is no JSON-RPC (`body`: without content coding)."""
    reading = exchange.answer_reading
    if reading is None or exchange.status is None or exchange.stream is not None:
        return ""
    if reading.kind == "not-rpc":
        return plain_text.json_words(reading.value)
    if reading.kind in ("not-json", "not-utf8") and body is not None:
        fields = exchange.response_fields
        return plain_text.first_words(body, fields.first("content-type") if fields is not None else None)
    return next((plain_text.json_words(m.body) for m in reading.messages if m.kind == "invalid"), "")


def stream_words(exchange: Exchange) -> str:
    """The words of what came as an event stream and is none, or of its last event where that is no JSON-RPC."""
    stream = exchange.stream
    if stream is None:
        return ""
    text, item = stream.foreign, stream.items[-1] if stream.items else None
    if not text and item is not None and item.event.data and all(m.kind == "invalid" for m in item.messages):
        text = item.event.data
    if not text:
        return ""
    reading = jsonrpc.read_text(text[: plain_text.READ])
    if reading.kind in ("not-rpc", "single"):
        return plain_text.json_words(reading.value)
    return plain_text.first_words(text.encode("utf-8", "replace"), None)


def quoted(words: str, limit: int = QUOTED) -> str:
    """The words in quotes, on one line, cut; no quote or backslash of theirs can end the quotation."""
    shown = one_line(words.replace("\\", "\\\\").replace('"', '\\"'), limit)
    if shown.endswith("…") and not words.endswith("…"):
        shown = shown[:-1].rstrip("\\") + "…"
    return f'"{safe(shown)}"'


def _of_redirect(exchange: Exchange) -> str:
    """Where an MCP request is sent on to; of a step of authorization what the redirect says of a failure."""
    location = exchange.response_fields.first("location") if exchange.response_fields is not None else None
    if location is None:
        return ""
    if exchange.kind == "mcp":
        return concealed(location[: plain_text.LONGEST])
    query = location[: plain_text.LONGEST].partition("?")[2] or location[: plain_text.LONGEST].partition("#")[2]
    if "error=" not in query:
        return ""
    given = form.read(query.partition("#")[0])
    return plain_text.json_words({name: given.get(name) for name in ("error", "error_description")})


def _of_tool_error(exchange: Exchange) -> str:
    """The first text of a result with isError."""
    answer = exchange.answer
    if answer is None or answer.result.get("isError") is not True:
        return ""
    content = answer.result.get("content")
    for block in content[:20] if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(text := block.get("text"), str) and text.strip():
            return " ".join(text[: plain_text.LONGEST].split())
    return ""


def _of_challenge(fields: Fields | None) -> str:
    """`error: error_description` of a challenge."""
    for given in challenge.read(fields.all("www-authenticate")) if fields is not None else ():
        if words := plain_text.json_words(dict(given.params)):
            return words
    return ""


def _of_connection(exchange: Exchange) -> str:
    return " ".join((exchange.failure or "")[: plain_text.LONGEST].split())


def _masked(words: str) -> str:
    words = concealed(words)  # also what the trace has shown to be a secret: servers repeat what they were given
    return safe(words if len(words) <= LONGEST else words[: LONGEST - 1] + "…")
