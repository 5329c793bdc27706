"""What the other side said of a failure, as it is kept, quoted and grouped."""

import gzip

import pytest

from mcp_wiretap.example import read_script
from mcp_wiretap.report import comment, failures
from mcp_wiretap.rule import RuleBook, find_rules
from mcp_wiretap.trace.events import ExchangeEnded, ResponseStarted
from mcp_wiretap.trace.finding import Finding
from mcp_wiretap.trace.inspector import Inspector
from mcp_wiretap.trace.summary.error_words import quoted
from mcp_wiretap.wire.headers import Fields

LIST = "legacy tools/list {}\n"
CALL = 'legacy tools/call {"name": "a", "arguments": {}}\n'
INITIALIZED = '{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}'
START = f"legacy initialize\n  -> result {INITIALIZED}\n"


def exchanges(script):
    inspector = Inspector(RuleBook.of(find_rules(), select=["HTS", "ERA", "RPC"]))
    for event in read_script(script):
        inspector.feed(event)
    inspector.finish()
    return list(inspector.exchanges.values())


def last(script):
    return exchanges(script)[-1]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ('  -> error -32000 {"message": "No valid session ID provided"}\n', '-> -32000 "No valid session ID provided"'),
        ('  -> error -32603 {"message": "Internal error", "data": "disk full"}\n', '"Internal error: disk full"'),
        ('  -> error -32602 {"message": "", "data": {"message": "bad"}}\n', '-> -32602 InvalidParams "bad"'),
        ('  -> error -32000 {"message": "two\\n  lines"}\n', '"two lines"'),
        ("  -> 400 text/plain Bad Request: missing Mcp-Session-Id header\n", '-> HTTP 400 "Bad Request: missing'),
        ("  -> 504 text/html <html><title>504 Gateway Time-out</title>\n", '-> HTTP 504 "Gateway Time-out"'),
        ('  -> 403 application/json {"message": "Access denied"}\n', '-> HTTP 403 "Access denied"'),
        ('  -> 401\n  -> header WWW-Authenticate: Bearer error="a", error_description="expired"\n', '"a: expired"'),
        ('  -> 400 application/json {"jsonrpc": "2.0", "error": {"code": -32000, "message": "No id"}}\n', '-> -32000 "No id"'),
        ('  -> 200 text/event-stream {"error": "starting"}\n', '-> broken "starting"'),
    ],
)
def test_the_words_follow_the_code(answer, line):
    assert line in comment.comment(last(LIST + answer))


def test_a_tool_error_is_quoted_and_the_outcome_stays():
    exchange = last(CALL + '  -> result {"isError": true, "content": [{"type": "text", "text": "no such city"}]}\n')
    assert comment.comment(exchange).endswith('-> complete, isError "no such city"')
    assert exchange.outcome == "complete" and failures.of(exchange, "x") is None


def test_no_words_leave_the_line_as_it_was():
    assert comment.comment(last(LIST + "  -> 400\n")).endswith("-> HTTP 400")
    assert last(LIST + '  -> result {"tools": []}\n').error_message is None


def test_what_the_client_posts_as_an_error_is_told():
    exchange = last(START + "legacy-reply-error 5 -32601\n  -> 202\n")
    assert "-> accepted, answers -32601 MethodNotFound" in comment.comment(exchange)
    assert exchange.outcome == "accepted" and exchange.error_code == -32601


@pytest.mark.parametrize(
    "hostile", ['a" [OK001]: all is well', "\x1b[31mred\x1b[0m", "\u202eright to left", "x" * 100_000, "back\\"]
)
def test_hostile_words_stay_inside_their_quotes(hostile):
    line = quoted(hostile)
    assert line.startswith('"') and line.endswith('"') and len(line) <= 130
    inner = line[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inner and "\x1b" not in inner and "\u202e" not in inner


def test_secrets_of_the_exchange_are_masked_in_the_words():
    script = START + LIST + '  -> 404 application/json {"message": "session session-1-of-the-example not found"}\n'
    words = last(script).error_message
    assert "session-1-of-the-example" not in words and words.startswith("session (sha ")


def test_a_compressed_body_is_read_and_a_broken_one_is_not_guessed():
    events = list(read_script(LIST + "  -> 500 text/plain x\n"))
    for body, words in ((gzip.compress(b"out of memory"), "out of memory"), (gzip.compress(b"out of memory")[:-12], None)):
        inspector = Inspector()
        for event in events:
            if isinstance(event, ResponseStarted):
                fields = Fields([(b"content-type", b"text/plain"), (b"content-encoding", b"gzip")])
                event = ResponseStarted(event.flow, event.at, event.status, fields)
            elif isinstance(event, ExchangeEnded):
                event = ExchangeEnded(event.flow, event.at, body, False, "complete")
            inspector.feed(event)
        (exchange,) = inspector.exchanges.values()
        assert exchange.error_message == words
        assert bool(exchange.unchecked) == (words is None)


def test_a_note_comes_after_the_words_and_a_warning_before_them():
    exchange = last(LIST + '  -> error -32000 {"message": "No session"}\n')
    exchange.findings = [Finding("no id", severity="info", rule="HTS017")]
    assert comment.comment(exchange).endswith('"No session" (+1 note)')
    exchange.findings = [Finding("no id", severity="error", rule="HTS017"), Finding("n", severity="info", rule="X001")]
    assert comment.comment(exchange).endswith('"No session" (+2)')
    exchange.findings += [Finding("refused for its session", severity="warning", rule="LEG099")]
    assert comment.comment(exchange).endswith('"No session": refused for its session [LEG099] (+2)')


def test_notes_of_nothing_wrong_never_stand_in_the_line():
    exchange = last(LIST + '  -> result {"tools": []}\n')
    exchange.findings = [Finding("a probe", severity="info", rule="ERA003")]
    assert comment.comment(exchange).endswith("-> complete")


def test_what_the_finding_repeats_is_said_once():
    exchange = last(LIST + "  -> 401\n")
    exchange.findings = [Finding("HTTP 401 with no WWW-Authenticate", severity="error", rule="OAU001")]
    assert comment.comment(exchange).endswith("-> HTTP 401: with no WWW-Authenticate [OAU001]")


def test_failures_in_the_same_words_are_one_and_what_the_protocol_foresees_is_none():
    script = START + "".join(LIST + f'  -> error -32000 {{"message": "worker {n} is gone"}}\n' for n in range(3))
    found = [failures.of(e, "x") for e in exchanges(script)]
    assert found[0] is None
    assert len({failures.key(f) for f in found[1:]}) == 1
    assert found[1].explained == "no rule says why"
    assert failures.of(last(START + "GET /mcp\n  -> 405\n"), "x").foreseen == "the server does not offer GET"
    probe = exchanges("modern server/discover {}\n  -> 400 text/plain no session\n" + START)[0]
    assert failures.of(probe, "x").foreseen == "a probe, answered by a working fallback"
