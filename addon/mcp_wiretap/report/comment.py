"""An exchange in one line, one mark and a few flat words: what stands on a flow and in a list ("On the flow"
in docs/architecture.md).

ERA METHOD [NAME] -> OUTCOME ["WORDS"] [(MRTR n[/m])] [(WHAT WAS CHANGED)][: MESSAGE [ID] (+k)]

WORDS are the other side's own. A warning or an error is the headline; notes are counted where the words say more.
"""

import re

from mcp_wiretap.report import change
from mcp_wiretap.trace.finding import RANK, Finding
from mcp_wiretap.trace.model import Conversation, Exchange
from mcp_wiretap.trace.summary.error_words import quoted
from mcp_wiretap.wire import cors, secret
from mcp_wiretap.wire.revision import error_name

NAME = 120  # characters of a name or a method: a line is read at a glance, the whole name is in the content view
MESSAGE = 300
VALUE = 400  # characters of one metadata value
MARKS = {"error": ":red_circle:", "warning": ":yellow_circle:"}
ROUND_MARK = ":repeat:"
FAULT_MARK = ":zap:"
_ROUNDS = ("requestState", "inputResponses")
_OF_FORM = frozenset({"HTS017", "RPC008", "RPC010"})  # the form of a refusal: what it is for says more
_ENDED = {
    "complete": "ended by the server",
    "client": "closed by the client",
    "server": "cut off by the server",
    "unknown": "cut off",
}
_OAUTH_ERROR = re.compile(r"[a-z][a-z0-9_]{1,50}(: |\Z)")
_ERRNO = re.compile(r"\[Errno -?[0-9]+\] ")
SLOW = 1.0  # seconds: a failure that took longer tells how long
_ASIDE = frozenset({"ERA003", "PAR023", "PAR031"})  # notes of how it went, not of something wrong


def comment(exchange: Exchange) -> str:
    """The line of an exchange; "" where nothing is to be said of it."""
    with secret.knowing(exchange.secrets):
        return _comment(exchange)


def _comment(exchange: Exchange) -> str:
    if exchange.kind == "other" and not exchange.findings:
        return ""
    line = f"{_subject(exchange)} -> {outcome(exchange)}"
    if said := in_words(exchange):
        line += f" {said}"
    if took := _took(exchange):
        line += f" {took}"
    if place := mrtr(exchange):
        line += f" (MRTR {place})"
    if exchange.held:
        line += f" ({exchange.held})"
    if exchange.change is not None and not (exchange.fault is not None and exchange.change.by == "fault"):
        line += f" ({change.short(exchange.change)})"
    if exchange.fault is not None:
        line += f" (fault: {exchange.fault})"
    return line + _finding(exchange)


def _subject(exchange: Exchange) -> str:
    """What it was about: era, method and name; of a step of authorization and of a preflight, what was asked."""
    if exchange.kind == "oauth" and exchange.step_words:
        return f"oauth {shown(exchange.step_words, NAME)}"
    if exchange.kind == "preflight":
        wanted = exchange.request_fields.first("access-control-request-method") or ""
        names = exchange.request_fields.joined("access-control-request-headers") or ""
        asked = ", ".join(name.strip().lower() for name in names.split(",") if name.strip())
        return f"preflight {shown(wanted, 40)}" + (f" for {shown(asked, NAME)}" if asked else "")
    words = [
        exchange.shown_era if exchange.kind == "mcp" else exchange.kind,
        shown(exchange.method or _act(exchange), NAME),
    ]
    if exchange.name is not None:
        words.append(shown(exchange.name, NAME))
    elif exchange.kind not in ("mcp", "process"):
        words.append(shown(exchange.endpoint.url, NAME))
    return " ".join(words)


def in_words(exchange: Exchange) -> str:
    """What the other side said of a failure, in quotes; "" where it said nothing."""
    said = exchange.error_message
    if said is None or _unreached(exchange) or (exchange.outcome == "broken" and said == exchange.failure):
        return ""  # what the proxy said is in the outcome, or says no more than who ended it
    if exchange.kind == "oauth":
        code, _, said = said.partition(": ") if _OAUTH_ERROR.match(said) else ("", "", said)
        return f"{code} {quoted(said)}" if code and said else code or quoted(said)
    if exchange.error_code is None and exchange.status is not None:
        said = said.removeprefix(f"{exchange.status} ")  # "502 Bad Gateway": the line has the number already
    return quoted(said)


def _unreached(exchange: Exchange) -> bool:
    return exchange.outcome == "broken" and not exchange.connected


def _took(exchange: Exchange) -> str:
    """How long a failure took, where that tells something of it."""
    if exchange.ended is None or exchange.outcome not in ("error", "broken", "cancelled"):
        return ""
    took = exchange.ended - exchange.started
    cut = exchange.outcome != "error" and exchange.status is not None and exchange.ended_by != "complete"
    return f"after {duration(took)}" if took > SLOW or cut else ""


def duration(seconds: float) -> str:
    """A time in words, to two digits: 40 ms, 2.0 s, 60 s."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _finding(exchange: Exchange) -> str:
    """The finding that the line ends with, and how many more there are."""
    headline = headline_of(exchange)
    others = [f for f in _told(exchange) if f is not headline]
    more = f" (+{len(others)})" if others else ""
    if headline is None:
        notes = all(f.severity in (None, "info") for f in others)
        return f"{more[:-1]} note{'' if len(others) == 1 else 's'})" if others and notes else more
    message = headline.message
    if exchange.outcome == "error" and message.startswith(f"{outcome(exchange)} "):
        message = message[len(outcome(exchange)) + 1 :]  # the line says it already
    return f": {shown(message, MESSAGE)} [{headline.rule}]{more}"


def _act(exchange: Exchange) -> str:
    """What stands for a method where there is none: on stdio there are no GET and POST."""
    if not exchange.endpoint.on_stdio:
        return exchange.http_method
    if exchange.kind == "process":
        return exchange.process.command if exchange.process is not None else "server"
    return "stdout" if exchange.http_method == "GET" else "stdin"


def outcome(exchange: Exchange) -> str:
    """The outcome with what makes it concrete: the error's code and name, the HTTP status, the number of events, who ended it."""
    if exchange.kind == "process":
        return _of_process(exchange)
    if exchange.kind == "preflight" and exchange.status is not None:
        lacks = lacking(exchange)
        if not lacks:
            return "granted"
        words = ", ".join(shown(one.words, NAME) for one in lacks if one.where != "response.status")
        return f"{exchange.status}, not granted" + (f": {words}" if words and not exchange.findings else "")
    if exchange.kind != "mcp" and exchange.status is not None:
        return f"HTTP {exchange.status}" if exchange.kind == "other" else str(exchange.status)
    if exchange.outcome == "error":
        if exchange.error_code is not None:
            return _code(exchange.error_code)
        onward = " to" if exchange.status is not None and 300 <= exchange.status < 400 and exchange.error_message else ""
        return f"HTTP {exchange.status}{onward}" if exchange.status is not None else "error"
    if exchange.outcome == "complete" and exchange.error_message is not None and exchange.error_code is None:
        return "complete, isError"
    if exchange.outcome in ("accepted", "complete") and exchange.error_code is not None:
        return f"{exchange.outcome}, answers {_code(exchange.error_code)}"
    if exchange.outcome == "stream":
        return _stream(exchange)
    if exchange.outcome == "broken":
        return _broken(exchange)
    return exchange.outcome


def lacking(exchange: Exchange) -> list[cors.Lack]:
    """What a preflight was not granted."""
    if exchange.status is None or exchange.response_fields is None:
        return []
    return cors.lacks(exchange.request_fields, exchange.response_fields, exchange.status)


def _stream(exchange: Exchange) -> str:
    """`stream, 3 events`; once it is over also how long it was and who ended it."""
    count = exchange.stream.count if exchange.stream is not None else 0
    words = f"stream, {count} event{'' if count == 1 else 's'}"
    if exchange.ended is None:
        return words
    words += f" in {duration(exchange.ended - exchange.started)}"
    stream = exchange.stream
    if stream is not None and stream.recorded and not (count or stream.comments or stream.unfinished or stream.retry):
        words += ", no byte came"
    return f"{words}, {_ENDED[exchange.ended_by or 'unknown']}"


def _broken(exchange: Exchange) -> str:
    """Why there is no answer, as the proxy saw it."""
    if _unreached(exchange):
        return f"no connection: {shown(reason(exchange.failure or 'the server was not reached'), MESSAGE)}"
    words = "broken" if exchange.ended_by in (None, "complete") else f"broken, {_ENDED[exchange.ended_by]}"
    if exchange.failure and exchange.ended_by == "unknown":
        words = f"broken, {shown(reason(exchange.failure), MESSAGE)}"
    if exchange.status is not None and exchange.ended_by in (None, "complete") and exchange.error_message is None:
        words += f", HTTP {exchange.status} without an answer"
    return words


def reason(failure: str) -> str:
    """What the proxy said of a connection, without the numbers of the operating system."""
    return _ERRNO.sub("", failure.removeprefix("Multiple exceptions: ")).strip()


def _code(code: int) -> str:
    name = error_name(code)
    return f"{number(code)} {name}" if name else str(number(code))


def _of_process(exchange: Exchange) -> str:
    process = exchange.process
    if process is None or process.ended is None:
        return "running"
    if process.status is None:
        return "its wrapper is gone"
    return f"exit {process.status}" if process.status >= 0 else f"killed by signal {-process.status}"


def mrtr(exchange: Exchange) -> str:
    """The place in a multi round-trip operation: `2`, or `2/3` once it has ended; "" outside of one."""
    conversation = exchange.conversation
    if conversation is None or exchange.round is None:
        return "1" if exchange.outcome == "input_required" else ""
    if not is_mrtr(conversation):
        return str(exchange.round) if exchange.outcome == "input_required" else ""
    return f"{exchange.round}/{len(conversation.rounds)}" if conversation.over else str(exchange.round)


def is_mrtr(conversation: Conversation) -> bool:
    return any(link.by in _ROUNDS for link in conversation.links)


def headline_of(exchange: Exchange) -> Finding | None:
    """The finding that the line of an exchange spells out, the first of the most severe. Where the other side's words say why it
    failed, no note takes their place, nor what is wrong with the form of the refusal."""
    found = _told(exchange)
    if exchange.error_message is not None and exchange.outcome in ("error", "broken"):
        found = [f for f in found if f.rule not in _OF_FORM and f.severity not in (None, "info")]
    return max(found, key=lambda f: (RANK[f.severity or "info"], f.rule not in _OF_FORM), default=None)


def _told(exchange: Exchange) -> list[Finding]:
    return [f for f in exchange.findings if f.rule not in _ASIDE]


def mark(exchange: Exchange) -> str:
    """The emoji of an exchange: red for an error, yellow for a warning, a loop for a round without findings."""
    if exchange.findings:
        return MARKS.get(exchange.severity or "info", "")
    if exchange.fault is not None:
        return FAULT_MARK
    return ROUND_MARK if mrtr(exchange) else ""


def metadata(exchange: Exchange) -> dict[str, str | int]:
    """Flat facts for mitmproxy's `~meta`. A key without a value is absent."""
    with secret.knowing(exchange.secrets):
        return _metadata(exchange)


def _metadata(exchange: Exchange) -> dict[str, str | int]:
    if exchange.kind == "other":
        return {}
    found: dict[str, str | int] = {}
    if exchange.kind == "mcp":
        found["mcp.era"] = exchange.shown_era
        if exchange.revision:
            found["mcp.revision"] = shown(exchange.revision, VALUE)
        if exchange.method:
            found["mcp.method"] = shown(exchange.method, VALUE)
        if exchange.name is not None:
            found["mcp.name"] = shown(exchange.name, VALUE)
        if exchange.error_code is not None:
            found["mcp.code"] = number(exchange.error_code)
        if exchange.conversation is not None and exchange.round is not None:
            found["mcp.conversation"] = exchange.conversation.id
            found["mcp.round"] = exchange.round
    else:
        found["mcp.step"] = exchange.step or exchange.kind
        found["mcp.endpoint"] = shown(exchange.endpoint.url, VALUE)
    found["mcp.outcome"] = exchange.outcome
    if exchange.error_message is not None:
        found["mcp.error"] = shown(exchange.error_message, VALUE)
    if exchange.findings:
        found["mcp.rules"] = " ".join(dict.fromkeys(f.rule for f in exchange.findings))
        found["mcp.severity"] = exchange.severity or "info"
    if notes := _notes(exchange):
        found["mcp.notes"] = notes
    return found


def _notes(exchange: Exchange) -> str:
    """What was changed at the proxy, faults of ours, what was not kept, what was not checked."""
    notes = [f"changed: {sentence}" for sentence in (change.sentences(exchange.change) if exchange.change is not None else ())]
    notes += [f"fault in {where}: {error}" for where, error in exchange.faults]
    notes += [f"unchecked: {u.what}: {u.why}" for u in exchange.unchecked]
    return "; ".join(shown(note, VALUE) for note in notes[:20])


def number(value: int) -> int | str:
    """An integer that any reader of the file can hold; a hostile error code may have thousands of digits."""
    return value if abs(value) < 1 << 62 else shown(f"{value:.5e}" if abs(value) < 10**300 else "(huge)", VALUE)


def shown(text: str, limit: int) -> str:
    """Text from the wire on one line, visible, encodable, cut."""
    return secret.safe(secret.shown(text, limit))
