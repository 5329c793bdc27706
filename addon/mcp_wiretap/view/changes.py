"""What the proxy changed of an exchange: as it was received beside as it was sent, the lines that differ."""

from collections.abc import Iterator
from difflib import unified_diff

from mcp_wiretap.report import change as words
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view import body
from mcp_wiretap.view.subject import Subject
from mcp_wiretap.view.yaml import Row, quoted
from mcp_wiretap.wire.headers import Fields
from mcp_wiretap.wire.secret import mask_header

MOST = 40  # lines that are shown
COMPARED = 2_000  # lines of a body that are compared


def table(subject: Subject, side: str) -> list[Row]:
    """Who changed it, and `- received` and `+ sent` lines."""
    whole = subject.whole
    change = subject.record.change or whole.change
    if change is None:
        return []
    rows: list[Row] = [(0, "changed:", words.short(change))]
    rows += [(2, f"- {quoted(sentence)}", "") for sentence in words.sentences(change)]
    other = whole.at_server if side == "request" else whole.at_client
    if other is not None:
        came, went = ("received", "sent") if side == "request" else ("from the server", "to the client")
        found = list(_lines(whole, other, side))
        rows += [(2, f"- {quoted(line)}", {"-": came, "+": went}[line[0]]) for line in found[:MOST]]
        if len(found) > MOST:
            rows.append((2, f"- {quoted(f'… {len(found) - MOST} more lines')}", ""))
    return rows


def lines(whole: Exchange, side: str) -> list[str]:
    """The lines that differ, `-` as it came and `+` as it went on; none where nothing was changed on that side."""
    other = whole.at_server if side == "request" else whole.at_client
    return list(_lines(whole, other, side))[:MOST] if other is not None else []


def _lines(whole: Exchange, other: Exchange, side: str) -> Iterator[str]:
    before, after = _text(whole, side), _text(other, side)
    for line in unified_diff(before, after, lineterm="", n=0):
        if line[0] in "+-" and not line.startswith(("+++", "---")):
            yield f"{line[0]} {line[1:].strip()}"


def _text(exchange: Exchange, side: str) -> list[str]:
    """A message as lines: its head, then its body as JSON; secrets masked."""
    fields = exchange.request_fields if side == "request" else exchange.response_fields
    if side == "request":
        head = [f"{exchange.http_method} {exchange.url}" + (f"?{exchange.query}" if exchange.query else "")]
    else:
        head = [f"HTTP {exchange.status}" if exchange.status is not None else "no answer"]
    return [*head, *_fields(fields), *_body(exchange, side)]


def _fields(fields: Fields | None) -> list[str]:
    found = list(fields)[:200] if fields is not None else []
    return [f"{name}: {mask_header(name, value)}" for name, value in found if name.lower() != "content-length"]


def _body(exchange: Exchange, side: str) -> list[str]:
    if side == "response" and exchange.stream is not None:
        readings = [item.reading for item in exchange.stream.items]
        return [line for r in readings if r is not None for line in body.pretty(r.value).split("\n")][:COMPARED]
    found, problem = body.content(exchange, side)
    return [f"({problem})"] if problem is not None else body.pretty(found).split("\n")[:COMPARED]
