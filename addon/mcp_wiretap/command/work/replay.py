"""`mcp-wiretap replay FILE --to URL`: a recorded client asks a live server once more; what it answers now is compared."""

import argparse
import asyncio
import shlex
import sys
from collections.abc import Sequence

from mcp_wiretap.command import Refused, settings
from mcp_wiretap.command.conversation_id import conversation
from mcp_wiretap.command.output import destination, machine_readable, say
from mcp_wiretap.command.work.serve import read
from mcp_wiretap.replay.client import Client, Stopped
from mcp_wiretap.replay.http import Place
from mcp_wiretap.replay.outcome import Report, report_of
from mcp_wiretap.replay.render import text_of
from mcp_wiretap.replay.scope import NotChosen, conversation_id, repeated, takes_of
from mcp_wiretap.replay.script import Script, Take
from mcp_wiretap.replay.stdio import Processes, place_of
from mcp_wiretap.wire import jsonrpc
from mcp_wiretap.wire.secret import escaped_json, visible


def run(arguments: argparse.Namespace) -> int:
    try:
        place, command = (Place.of(arguments.to), None) if arguments.to is not None else _command(arguments.server)
    except ValueError as error:
        raise Refused(f"{'--to' if arguments.to is not None else '--command'}: {error}") from None
    chosen = settings.read(arguments)
    script = read(arguments.file, chosen.book())
    wanted = _conversation(script, arguments.conversation) if arguments.conversation is not None else None
    try:
        takes = takes_of(script, arguments.endpoint, wanted)
    except NotChosen as error:
        raise Refused(str(error)) from None
    _confirm(script, takes, arguments.to or f"stdio://{place.host}", arguments.yes)
    several = any(take.on_stdio for take in takes)
    client = Client(
        script,
        takes,
        place,
        judge=chosen.book(),
        fast=arguments.timing == "fast",
        patience=arguments.timeout,
        headers=[header(text) for text in arguments.header],
        processes=Processes(command, several=several) if command is not None else None,
    )
    report = asyncio.run(_play(script, client))
    with destination(arguments.output, inputs=[arguments.file]) as out:
        if arguments.format == "json":
            machine_readable(out)
            out.write(escaped_json(jsonrpc.dumps(report.to_json(), 2)) + "\n")
        else:
            out.write(text_of(report))
    if report.stopped is not None and (arguments.format == "json" or arguments.output is not None):
        say(report.stopped)
    if report.left_out:
        say(f"{report.told_left_out}; --header sends one all the same")
    return 0 if report.good else 1


def _command(text: str) -> tuple[Place, list[str]]:
    """A server that is started. ValueError where the text is no command."""
    words = shlex.split(text)
    if not words:
        raise ValueError("there is no command in it")
    return place_of(words), words


def _conversation(script: Script, wanted: str) -> str:
    takes = {take.flow: take for take in script.mcp}
    return conversation(wanted, {flow: conversation_id(take) for flow, take in takes.items()}, lambda id: str(takes.get(id, "")))


async def _play(script: Script, client: Client) -> Report:
    try:
        await client.run()
    except Stopped as stopped:
        return report_of(script, client, stopped)
    return report_of(script, client)


def _confirm(script: Script, takes: Sequence[Take], url: str, yes: bool) -> None:
    """Ask before calls are repeated that may do something twice. Refused where there is nobody to ask, or the answer is no."""
    tools = repeated(script, takes)
    if yes or not tools:
        return
    listed = ", ".join(visible(name) + (f" ({count} calls)" if count > 1 else "") for name, count in tools)
    said = f"tools that are not annotated as read-only or idempotent would be called again at {url}: {listed}"
    if not sys.stdin.isatty():
        raise Refused(f"{said}; --yes does so")
    say(said)
    print("Call them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was sent")


def header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise Refused(f"--header {text!r} is not NAME: VALUE")
    return name.strip(), value.strip()
