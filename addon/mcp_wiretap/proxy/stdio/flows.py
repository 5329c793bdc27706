"""Exchanges of a stdio session as flows of mitmproxy: scheme `stdio`, host the server's name, no header but the content type."""

import shlex
from collections.abc import Sequence

from mitmproxy import connection, http
from mitmproxy.flow import Error

from mcp_wiretap.stdio.lines import Step
from mcp_wiretap.stdio.session import PROCESS, STDERR, Session
from mcp_wiretap.wire.secret import concealed, is_secret, looks_secret, mask

SCHEME = "stdio"
TRANSPORT, COMMAND, EXIT, INPUT_ENDED = "mcp.transport", "mcp.command", "mcp.exit", "mcp.input_ended"
_LONGEST_COMMAND = 4_000  # characters


class Connections:
    """The one connection that all flows of a process share: it is what tells two processes of one name apart."""

    def __init__(self, name: str, session: Session) -> None:
        self.name = name
        at = session.started
        self.client = connection.Client(peername=(SCHEME, session.pid), sockname=(name, 0), timestamp_start=at)
        self.server = connection.Server(address=(name, 0))
        self.client.state = self.server.state = connection.ConnectionState.OPEN


def opened(connections: Connections, session: Session, step: Step, *, live: bool) -> http.HTTPFlow:
    """The flow of an exchange that begins."""
    made = http.HTTPFlow(connections.client, connections.server, live=live)
    path = STDERR if step.key == PROCESS else "/"
    headers = http.Headers(content_type="application/json") if step.http_method == "POST" else http.Headers()
    made.request = http.Request(
        connections.name,
        0,
        step.http_method.encode(),
        SCHEME.encode(),
        b"",
        path.encode(),
        b"HTTP/1.1",
        headers,
        step.data,
        None,
        step.at,
        step.at,
    )
    made.metadata[TRANSPORT] = SCHEME
    if step.key == PROCESS:
        made.metadata[COMMAND] = shown(session.command)
    return made


def answered(flow: http.HTTPFlow, step: Step, *, live: bool) -> None:
    """The head of its response."""
    if step.key == PROCESS:
        kind = "text/plain; charset=utf-8"
    else:
        kind = "text/event-stream" if step.sse else "" if step.status == 202 else "application/json"
    headers = http.Headers(content_type=kind) if kind else http.Headers()
    content = None if step.sse and live else b""
    flow.response = http.Response(b"HTTP/1.1", step.status, b"", headers, content, None, step.at, None)


def ended(flow: http.HTTPFlow, session: Session, step: Step) -> None:
    """It is over: when, and of a process how."""
    if step.what == "lost":
        flow.error = Error(step.why, step.at)
    elif flow.response is not None:
        flow.response.timestamp_end = step.at
    if step.key == PROCESS:
        if session.status is not None:
            flow.metadata[EXIT] = session.status
        if session.input_ended is not None:
            flow.metadata[INPUT_ENDED] = session.input_ended


def shown(command: Sequence[str]) -> str:
    """A command line as it may be stored: what looks like a secret in it is masked. The environment is never told at all."""
    words: list[str] = []
    secret = False
    for word in command:
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        if secret and not word.startswith("-"):
            words.append(mask(word))
        elif equals and value and _is_secret(name, value):
            words.append(f"{option}={mask(value)}")
        else:
            words.append(concealed(word))
        secret = not equals and word.startswith("-") and _names_secret(name)
    text = shlex.join(words)
    return text if len(text) <= _LONGEST_COMMAND else text[:_LONGEST_COMMAND] + "…"


def _is_secret(name: str, value: str) -> bool:
    return _names_secret(name) or is_secret(name, value, True)


def _names_secret(name: str) -> bool:
    return looks_secret(name)
