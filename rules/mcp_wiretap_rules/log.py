"""LOG: notifications/message and the level asked for (2026-07-28 server/utilities/logging)."""

from collections.abc import Iterator

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.era.discover import advertised
from mcp_wiretap.trace.model import Message
from mcp_wiretap.trace.streams.subscriptions import LOG_LEVEL
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import SECRET_TEXT, mask, one_line
from mcp_wiretap_rules.sse import answer_before

LOGGING = "2026-07-28 server/utilities/logging"
RANK = {level: rank for rank, level in enumerate(rev.LOG_LEVELS)}
SETTLED_S = 1.0  # messages queued before setLevel was answered may still come


@rule(
    "LOG001",
    "log-without-opt-in",
    "Log message for a request that did not opt in",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{LOGGING}#per-request-log-level",
    sep="2575",
    methods=("notifications/message",),
)
def log_without_opt_in(message: Message) -> Iterator[Finding]:
    """A modern server logs only for requests that carry a logLevel.

    Why: a client that did not ask pays for logs that it does not read, and strict ones refuse the stream.

    Fix: look for `_meta["io.modelcontextprotocol/logLevel"]` of the request; without it send no notifications/message.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> notify notifications/message {"level": "info", "data": "hello"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> notify notifications/message {"level": "info", "data": "hello"}
          -> result {"content": []}
    """
    request = message.exchange.request
    if request is None or request.method == "subscriptions/listen":
        return  # SUB009
    if request.meta.get(rev.LOG_LEVEL) is None:
        yield Finding(
            "a log message for a request without logLevel",
            [evidence(message.place("method"), "notifications/message", "no logs without logLevel")],
        )


@rule(
    "LOG002",
    "log-below-level",
    "Log below the requested level",
    on="push",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{LOGGING}#per-request-log-level",
    sep="2575",
    methods=("notifications/message",),
)
def log_below_level(message: Message) -> Iterator[Finding]:
    """Logs are at the level that was asked for, or above.

    Why: the client asked not to be told.

    Fix: compare in the order debug, info, notice, warning, error, critical, alert, emergency.

    Wrong::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "warning"
          -> sse
          -> notify notifications/message {"level": "info", "data": "hello"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "warning"
          -> sse
          -> notify notifications/message {"level": "error", "data": "hello"}
          -> result {"content": []}
    """
    exchange = message.exchange
    level = message.params.get("level")
    rank = RANK.get(level) if isinstance(level, str) else None
    if rank is None:
        return
    severity: Severity | None = None
    if exchange.claim.modern:
        request = exchange.request
        asked = request.meta.get(rev.LOG_LEVEL) if request is not None else None
    else:
        session, stream = exchange.session, exchange.stream
        at = message.at if stream is None or stream.timed else exchange.started  # at the least
        known = session.facts.get(LOG_LEVEL) if session is not None else None
        if known is None or at - known[1] < SETTLED_S:
            return
        asked, severity = known[0], "warning"
    if isinstance(asked, str) and rank < RANK.get(asked, -1):
        yield Finding(
            f"a log at level {level}, but {asked} and above was asked for",
            [evidence(message.place("params", "level"), level, f"{asked} or above")],
            severity,
        )


@rule(
    "LOG003",
    "log-wrong-stream",
    "Log message on a stream it does not belong to",
    on="push",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{LOGGING}#per-request-log-level",
    sep="2575",
    methods=("notifications/message",),
)
def log_wrong_stream(message: Message) -> Iterator[Finding]:
    """A modern server logs on the stream of the request that it logs about, before the response, and never on a listen stream.

    Why: the level was asked for by that request; whoever reads another stream, or has its answer, does not look for logs.

    Fix: send the log before the response of its request; what happens outside any request belongs in the server's own log.

    Wrong::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> result {"content": []}
          -> notify notifications/message {"level": "info", "data": "done"}

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> notify notifications/message {"level": "info", "data": "done"}
          -> result {"content": []}
    """
    if message.exchange.method == "subscriptions/listen":
        where = "on a listen stream"
    elif answer_before(message) is not None:
        where = "after the response"
    else:
        return
    yield Finding(
        f"a log message {where}",
        [evidence(message.place("method"), "notifications/message", "on the request's own stream, before its response")],
    )


@rule(
    "LOG004",
    "log-shape",
    "Log message malformed",
    on="push",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{LOGGING}#log-message-notifications",
    methods=("notifications/message",),
)
def log_shape(message: Message) -> Iterator[Finding]:
    """A log message has a level of the list, data of any JSON kind, and where it names a logger, a string.

    Why: clients sort and colour by the level, and show the data.

    Fix: `{"level": "info", "data": ...}`; `data` may be null, but must be there.

    Wrong::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "debug"
          -> sse
          -> notify notifications/message {"level": "warn", "data": "hello"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "debug"
          -> sse
          -> notify notifications/message {"level": "warning", "data": null, "logger": "db"}
          -> result {"content": []}
    """
    params = message.params
    level = params.get("level")
    if not isinstance(level, str) or level not in RANK:
        what = "absent" if "level" not in params else one_line(dumps(level), 40)
        yield Finding(f"the log level is {what}", [evidence(message.place("params", "level"), level, ", ".join(rev.LOG_LEVELS))])
    if "data" not in params:
        yield Finding("the log message has no data", [evidence(message.place("params", "data"), None, "any JSON value")])
    if "logger" in params and not isinstance(params["logger"], str):
        yield Finding("logger is no string", [evidence(message.place("params", "logger"), params["logger"], "a string")])


@rule(
    "LOG005",
    "log-capability-missing",
    "Logs without logging capability",
    on="push",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{LOGGING}#capabilities",
    methods=("notifications/message",),
    once="endpoint",
)
def log_capability_missing(message: Message) -> Iterator[Finding]:
    """A server that logs advertises the capability `logging`.

    Why: clients ask for logs only where they are advertised.

    Fix: add `"logging": {}` to the capabilities of server/discover (or initialize).

    Wrong::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> notify notifications/message {"level": "info", "data": "hello"}
          -> result {"content": []}

    Right::

        modern server/discover
          -> result {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "logging": {}}}
        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> notify notifications/message {"level": "info", "data": "hello"}
          -> result {"content": []}
    """
    exchange = message.exchange
    told = advertised(exchange)
    if told is not None and "logging" not in told[0]:
        yield Finding(
            "the server logs, but does not advertise logging",
            [evidence(message.place("method"), "notifications/message")],
            related=(told[1],) if told[1] else (),
        )


@rule(
    "LOG006",
    "log-secret",
    "Secrets in log data",
    on="push",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{LOGGING}#security",
    methods=("notifications/message",),
)
def log_secret(message: Message) -> Iterator[Finding]:
    """Logs hold no credentials. Found by form: bearer tokens, JWTs, cloud keys, private keys, `password=...`.

    Why: logs are shown, stored and sent on by people who do not expect a secret in them.

    Fix: mask the value before logging.

    Wrong::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> notify notifications/message {"level": "info", "data": "login with password=hunter22"}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "info"
          -> sse
          -> notify notifications/message {"level": "info", "data": "the password was wrong"}
          -> result {"content": []}
    """
    data = message.params.get("data")
    text = data if isinstance(data, str) else dumps(data)
    found = SECRET_TEXT.search(text[:100_000])
    if found:
        yield Finding(
            "a log message holds what looks like a secret",
            [Evidence(message.place("params", "data"), mask(found.group()), "no credentials")],
        )


@rule(
    "LOG007",
    "invalid-level-accepted",
    "Unknown log level accepted",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{LOGGING}#error-handling",
    sorts=("result",),
)
def invalid_level_accepted(message: Message) -> Iterator[Finding]:
    """A level that is not in the list is refused with -32602.

    Why: the client believes that it will get logs.

    Fix: check the level before anything else.

    Wrong::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "warn"
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta io.modelcontextprotocol/logLevel "warning"
          -> result {"content": []}
    """
    request = message.request
    if request is None or message.rpc.kind != "result":
        return
    level, steps = request.meta.get(rev.LOG_LEVEL), ["params", "_meta", rev.LOG_LEVEL]
    if request.method == "logging/setLevel" and not request.exchange.claim.modern:
        level, steps = request.params.get("level"), ["params", "level"]
        if "level" not in request.params:
            where = [evidence(request.place(*steps), None, "refused with -32602")]
            yield Finding("logging/setLevel was accepted without a level", where)
    if level is not None and (not isinstance(level, str) or level not in RANK):
        where = [evidence(request.place(*steps), level, "refused with -32602")]
        yield Finding(f"the level {one_line(dumps(level), 40)} was accepted", where)
