"""`mcp-wiretap mcp [FILE...]`: the inspector is an MCP server, so that an agent can ask why its calls fail."""

import argparse
import hmac
import secrets
import socket
from functools import partial
from pathlib import Path

import anyio
import uvicorn
from mcp.server.stdio import stdio_server

from mcp_wiretap.ask.http import Endpoint, Receive, Scope, Send
from mcp_wiretap.ask.quoting import bounded, quoted_lines
from mcp_wiretap.ask.server import Action, server
from mcp_wiretap.ask.traces import Held, Trace, Unknown, find
from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.output import say
from mcp_wiretap.command.tracing import Settings
from mcp_wiretap.compare.profile import Profile
from mcp_wiretap.probe.report import as_text
from mcp_wiretap.probe.run import plan, prober
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.replay_server import Unplayable, script_of
from mcp_wiretap.replay.client import Client, Stopped
from mcp_wiretap.replay.http import Place, Unreachable
from mcp_wiretap.replay.outcome import report_of
from mcp_wiretap.replay.render import text_of
from mcp_wiretap.replay.scope import NotChosen, conversation_id, repeated, takes_of
from mcp_wiretap.rule import Rule, find_probes, find_rules
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.view.subject import Subject, read_alone
from mcp_wiretap.wire.secret import visible

PATH = "/mcp"
BUDGET = 100  # requests of one probe
HOSTS = ["127.0.0.1:*", "localhost:*", "[::1]:*"]


def run(arguments: argparse.Namespace) -> int:
    for path in arguments.files:
        tracing.check_readable(path)
    chosen = settings.read(arguments)
    held, recordings = _read(arguments.files, chosen)
    actions = _actions(held, recordings, chosen, arguments.to, yes=arguments.yes) if arguments.to is not None else {}
    if arguments.http is not None:
        return anyio.run(_over_http, held, actions, arguments.http, not arguments.no_token)
    anyio.run(_on_stdio, held, actions)
    return 0


def _read(paths: list[str], chosen: Settings) -> tuple[Held, dict[str, Recording]]:
    """All recordings, each followed once."""
    names = _names(paths)
    traces: list[Trace] = []
    recordings: dict[str, Recording] = {}
    for name, path in zip(names, paths, strict=True):
        recording = recordings[name] = Recording(Path(path))
        made: list[Profile] = []

        def wrap(book: Judge, made: list[Profile] = made) -> Judge:
            made.append(Profile(book))
            return made[0]

        inspector, _ = tracing.follow([recording], chosen, lambda _: None, wrap=wrap)
        made[0].close()
        traces.append(Trace(name, inspector, made[0], recording.damage))
    rules = {rule.id: rule for rule in chosen.book().rules}
    return Held(traces, rules, partial(_subject, recordings, rules)), recordings


def _names(paths: list[str]) -> list[str]:
    """What each recording is called: its file name, with its path where two have the same."""
    short = [Path(path).name for path in paths]
    return [visible(path if short.count(name) > 1 else name) for path, name in zip(paths, short, strict=True)]


def _subject(recordings: dict[str, Recording], rules: dict[str, Rule], trace: Trace, exchange: Exchange) -> Subject | None:
    """An exchange with its bodies, read from its file again."""
    whole = read_alone(recordings[trace.name].events_of(exchange.flow))
    return Subject(exchange, whole, rules=rules) if whole is not None else None


def _actions(held: Held, recordings: dict[str, Recording], chosen: Settings, url: str, *, yes: bool) -> dict[str, Action]:
    """What may be sent to the server at `url`: what a flow asked, or probes. Refused where that is no URL."""
    try:
        place = Place.of(url)
    except ValueError as error:
        raise Refused(f"--to: {error}") from None

    async def replay(flow: str) -> str:
        trace, exchange = find(held.traces(), flow)
        try:
            script, _ = script_of(recordings[trace.name].path, chosen.book())
            wanted = next((conversation_id(take) for take in script.mcp if take.flow == exchange.flow), None)
            takes = takes_of(script, None, wanted) if wanted is not None else ()
        except (Unplayable, NotChosen) as error:
            raise Unknown(str(error)) from None
        if not takes:
            raise Unknown("that flow holds no call that can be asked again")
        if not yes and (tools := repeated(script, takes)):
            named = ", ".join(name for name, _ in tools)
            raise Unknown(f"not annotated as read-only or idempotent: {named[:300]}. The user allows it with --yes at the start")
        client = Client(script, takes, place, judge=chosen.book(), fast=True)
        stopped = None
        try:
            await client.run()
        except Stopped as why:
            stopped = why
        report = report_of(script, client, stopped)
        return bounded(
            ["What the server answers now, beside the recording:", *quoted_lines(text_of(report)).splitlines()], "use replay"
        )

    async def probe(flow: str) -> str:
        trace, exchange = find(held.traces(), flow)
        try:
            script, _ = script_of(recordings[trace.name].path, chosen.book())
        except Unplayable as error:
            raise Unknown(str(error)) from None
        take = next((take for take in script.mcp if take.flow == exchange.flow), None)
        endpoint = script.endpoint(take) if take is not None else None
        if take is None or endpoint is None:
            raise Unknown("that flow holds no call of MCP")
        era = "modern" if take.modern else "legacy"
        what = plan(script, find_probes(find_rules(chosen.files)), era=era, endpoint=endpoint.url)
        if what.calls and not yes:
            raise Unknown(f"tools would be called: {', '.join(what.calls)[:300]}. The user allows it with --yes at the start")
        try:
            report = await prober(what, place, chosen.book(), target=url, budget=BUDGET).run()
        except Unreachable as error:
            raise Unknown(str(error)) from None
        return bounded(
            ["What the server refuses and what it does not:", *quoted_lines("\n".join(as_text(report))).splitlines()], "use probe"
        )

    return {"replay": replay, "probe": probe}


async def _on_stdio(held: Held, actions: dict[str, Action]) -> None:
    asked = server(held, actions)
    async with stdio_server() as (incoming, outgoing):
        await asked.run(incoming, outgoing, asked.create_initialization_options())


async def _over_http(held: Held, actions: dict[str, Action], port: int, guarded: bool) -> int:
    try:
        sock = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise Refused(f"--http {port}: nothing can listen there: {error.strerror}") from None
    token = secrets.token_urlsafe(24) if guarded else None
    endpoint = Endpoint(server(held, actions), HOSTS)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] != PATH:
            await _plain(send, 404)
        elif token is not None and not _allowed(scope, token):
            await _plain(send, 401, (b"www-authenticate", b"Bearer"))
        else:
            await endpoint(scope, receive, send)

    print(f"http://127.0.0.1:{sock.getsockname()[1]}{PATH}", flush=True)
    if token is not None:
        print(f"Authorization: Bearer {token}", flush=True)
    say("serving until it is interrupted")
    async with endpoint.running():
        await uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning")).serve(sockets=[sock])
    return 0


def _allowed(scope: Scope, token: str) -> bool:
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, value = given.partition(b" ")
    return bool(scheme.lower() == b"bearer" and hmac.compare_digest(value.strip(), token.encode()))


async def _plain(send: Send, status: int, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
