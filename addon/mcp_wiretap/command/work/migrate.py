"""`mcp-wiretap migrate RUN.flow`: what client and server must change for 2026-07-28, by what they used."""

import argparse
import asyncio
import json
from pathlib import Path

from mcp_wiretap.command import Refused, settings
from mcp_wiretap.command.output import destination, machine_readable, say
from mcp_wiretap.command.tracing import check_readable, follow
from mcp_wiretap.command.work.replay import header
from mcp_wiretap.command.work.serve import read
from mcp_wiretap.migrate import render
from mcp_wiretap.migrate.advice import advise
from mcp_wiretap.migrate.ask import Asked, Asker
from mcp_wiretap.migrate.usage import Usage
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.replay.http import Place, Unreachable
from mcp_wiretap.trace.judge import Judge
from mcp_wiretap.wire.secret import knowing, visible


def run(arguments: argparse.Namespace) -> int:
    check_readable(arguments.file)
    chosen = settings.read(arguments)
    place = _place(arguments.to)
    recording = Recording(Path(arguments.file))
    watching: list[Usage] = []

    def wrap(book: Judge) -> Judge:
        watching.append(Usage(book))
        return watching[0]

    inspector, _ = follow([recording], chosen, lambda _: None, wrap=wrap)
    advice = [advise(server) for server in watching[0].servers.values()]
    asked: list[Asked] = []
    notes: list[str] = []
    if place is not None:
        script = read(arguments.file)
        asker = Asker(script, place, chosen.book(), headers=[header(text) for text in arguments.header], all_tools=arguments.yes)
        try:
            asked = asyncio.run(asker.run())
        except Unreachable as error:
            raise Refused(f"--to: {error}") from None
        if asker.left_out:
            notes.append(f"not sent, as they belong to another server: {', '.join(asker.left_out)}; --header sends one")
    if unseen := watching[0].unseen:
        notes.append(
            f"the client answered {unseen} requests of servers that are not in the recording (a stream that was still open when "
            "it was saved): elicitation, sampling or roots may be in use"
        )
    if recording.damage:
        notes.append(f"the recording is damaged: {recording.damage}; read up to there")
    name = visible(Path(arguments.file).name)
    with knowing(inspector.secrets), destination(arguments.output, inputs=[arguments.file]) as out:
        if arguments.format == "json":
            machine_readable(out)
            json.dump(render.as_json(name, advice, asked, notes), out, indent=1, ensure_ascii=True)
            out.write("\n")
        else:
            made = render.as_markdown if arguments.format == "markdown" else render.as_text
            out.write("\n".join(made(name, advice, asked, notes)) + "\n")
    if recording.damage:
        say(f"{arguments.file}: {recording.damage}")
        return 2
    return int(any(one.verdict in ("failed", "differs") for one in asked))


def _place(url: str | None) -> Place | None:
    try:
        return Place.of(url) if url is not None else None
    except ValueError as error:
        raise Refused(f"--to: {error}") from None
