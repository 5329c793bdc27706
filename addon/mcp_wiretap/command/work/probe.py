"""`mcp-wiretap probe RUN.flow --to URL`: does a server refuse what it must?"""

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_wiretap.command import Refused, settings
from mcp_wiretap.command.output import destination, machine_readable, replacing, say
from mcp_wiretap.command.work.replay import header
from mcp_wiretap.command.work.serve import read
from mcp_wiretap.probe import report as reports
from mcp_wiretap.probe.run import Plan, Report, eras_of, plan, prober
from mcp_wiretap.proxy import probing
from mcp_wiretap.replay.http import Place, Unreachable
from mcp_wiretap.replay.stdio import place_of
from mcp_wiretap.rule import Probe, RuleBook, find_probes
from mcp_wiretap.wire.secret import escaped_json, knowing, visible


def run(arguments: argparse.Namespace) -> int:
    rules = settings.rules_for(arguments)
    try:
        probes = find_probes(rules)
    except ValueError as error:
        raise Refused(str(error)) from None
    if arguments.list:
        print(reports.list_as_json(probes) if arguments.format == "json" else "\n".join(reports.list_of(probes)))
        return 0
    if arguments.file is None or (arguments.to is None and arguments.server is None):
        raise Refused("probe needs a recording and --to URL or --command COMMAND (or --list)")
    place, command = _place(arguments)
    target = arguments.to or shlex.join(command or ())
    select = _selected(arguments.select, probes)
    script = read(arguments.file, RuleBook.of(rules))
    plans = [
        plan(
            script,
            probes,
            era=era,
            endpoint=arguments.endpoint,
            tools=arguments.tool,
            select=select,
            headers=[header(text) for text in arguments.header],
            http=command is None,
        )
        for era in ([arguments.era] if arguments.era else eras_of(script))
    ]
    plans = [one for one in plans if (one.bases.found or one.bases.faulty) and one.probes]
    if not plans:
        raise Refused(
            f"{arguments.file} has no call to begin with: one that was answered well, and that may be made again (lists, reads, "
            "prompts; tools that are annotated as read-only, or --tool NAME)"
        )
    _confirm(plans, target, yes=arguments.yes)
    done: list[Report] = []
    with knowing(script.inspector.secrets):
        for one in plans:
            budget = arguments.budget - sum(len(report.sent) for report in done)
            if budget < 1:
                break
            made = prober(one, place, RuleBook.of(rules), target=target, budget=budget, command=command)
            try:
                done.append(asyncio.run(made.run()))
            except Unreachable as error:
                raise Refused(f"{'--to' if command is None else '--command'}: {error}") from None
        _write(done, arguments)
    if arguments.write is not None:
        with replacing(Path(arguments.write)) as file:
            probing.write(done, place, file)
        say(f"{arguments.write}: what was sent and answered")
    return int(any(report.failed for report in done))


def _place(arguments: argparse.Namespace) -> tuple[Place, list[str] | None]:
    try:
        if arguments.to is not None:
            return Place.of(arguments.to), None
        words = shlex.split(arguments.server)
        if not words:
            raise ValueError("there is no command in it")
        return place_of(words), words
    except ValueError as error:
        raise Refused(f"{'--to' if arguments.to is not None else '--command'}: {error}") from None


def _selected(given: Sequence[str], probes: Sequence[Probe]) -> set[str]:
    words = {word.strip().upper() for text in given for word in text.split(",") if word.strip()}
    known = {one.id for one in probes} | {one.id.rstrip("0123456789") for one in probes}
    for word in sorted(words - known):
        raise Refused(f"--select: there is no probe {word}; --list lists them")
    return words


def _confirm(plans: Sequence[Plan], target: str, *, yes: bool) -> None:
    """Ask before tools are called: a server that does not refuse a changed call carries it out."""
    tools = sorted({name for one in plans for name in one.calls})
    if yes or not tools:
        return
    listed = ", ".join(map(visible, tools))
    said = f"tools would be called at {visible(target)}, with wrong headers and arguments, too: {listed}"
    if not sys.stdin.isatty():
        raise Refused(f"{said}; --yes does so")
    say(said)
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was sent")


def _write(done: Sequence[Report], arguments: argparse.Namespace) -> None:
    with destination(arguments.output, inputs=[arguments.file]) as out:
        if arguments.format != "text":
            machine_readable(out)
        match arguments.format:
            case "json":
                values = [reports.as_json(report) for report in done]
                text = json.dumps(values[0] if len(values) == 1 else {"schema": reports.SCHEMA, "eras": values}, indent=1)
                out.write(escaped_json(text) + "\n")
            case "sarif":
                made = reports.as_sarif(done[0])
                for report in done[1:]:
                    made["runs"] += reports.as_sarif(report)["runs"]
                out.write(escaped_json(json.dumps(made, indent=1)) + "\n")
            case "junit":
                out.write(reports.as_junit(*done))
            case _:
                out.write("\n\n".join("\n".join(reports.as_text(report)) for report in done) + "\n")
