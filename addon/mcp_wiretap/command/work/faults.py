"""`mcp-wiretap faults RUN.flow`: what clients did after the faults that were put into a recording."""

import argparse
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from mcp_wiretap.command import Refused, settings
from mcp_wiretap.command.output import destination, machine_readable, say
from mcp_wiretap.command.tracing import check_readable, follow
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.steering import FaultLine, parse_fault
from mcp_wiretap.trace.operations.reactions import Reaction, Reactions
from mcp_wiretap.wire.secret import concealed, escaped_json, knowing, visible

VERDICTS = ("passed", "failed", "not reached", "not applied", "undecided")


def run(arguments: argparse.Namespace) -> int:
    check_readable(arguments.file)
    try:
        planned = [parse_fault(line) for line in arguments.fault]
    except ValueError as error:
        raise Refused(f"--fault: {error}") from None
    recording = Recording(Path(arguments.file))
    inspector, _ = follow([recording], settings.read(arguments), lambda _: None)
    with knowing(inspector.secrets):
        told = [_told(reaction) for reaction in inspector.tracker(Reactions).all.values()]
        told += [_not_reached(line) for line in _missed(planned, list(inspector.tracker(Reactions).all.values()))]
        with destination(arguments.output, inputs=[arguments.file]) as out:
            if arguments.format != "text":
                machine_readable(out)
            if arguments.format == "json":
                counts = {verdict: sum(one["verdict"] == verdict for one in told) for verdict in VERDICTS}
                out.write(escaped_json(json.dumps({"schema": 1, "faults": told, "summary": counts}, indent=1)) + "\n")
            elif arguments.format == "junit":
                out.write(_junit(told))
            else:
                out.write("\n".join(_line(one) for one in told) + "\n" if told else "No faults were put into this recording.\n")
    if recording.damage:
        say(f"{arguments.file}: {recording.damage}; read up to there")
        return 2
    return int(any(one["verdict"] == "failed" for one in told))


def _told(reaction: Reaction) -> dict[str, Any]:
    return {
        "fault": str(reaction.fault).partition(",")[0],
        "method": concealed(reaction.method),
        "name": concealed(reaction.name) if reaction.name is not None else None,
        "flow": reaction.flow,
        "verdict": reaction.verdict,
        "why": concealed(reaction.words),
        "decided_by": reaction.decided_by,
    }


def _missed(planned: list[FaultLine], found: list[Reaction]) -> list[FaultLine]:
    """The planned faults that no call matched."""

    def reached(line: FaultLine) -> bool:
        return any(
            (one.fault.kind, one.fault.argument) == (line.kind, line.argument) and line.means(one.method, one.name)
            for one in found
        )

    return [line for line in planned if not reached(line)]


def _not_reached(line: FaultLine) -> dict[str, Any]:
    fault = f"{line.kind}:{line.argument}" if line.argument else line.kind
    return {
        "fault": fault,
        "method": line.method,
        "name": line.name if line.name != "*" else None,
        "flow": None,
        "verdict": "not reached",
        "why": "no call matched",
        "decided_by": None,
    }


def _line(one: dict[str, Any]) -> str:
    word = "FAILED" if one["verdict"] == "failed" else one["verdict"]
    return visible(f"{word:11}  {one['fault']}  {one['method']} {one['name'] or ''}".rstrip() + f": {one['why']}")


def _junit(told: list[dict[str, Any]]) -> str:
    cases = []
    for one in told:
        name = visible(f"{one['fault']} {one['method']} {one['name'] or ''}".rstrip())
        why = quoteattr(visible(one["why"]))
        inner = f"<failure message={why}/>" if one["verdict"] == "failed" else ""
        if one["verdict"] in ("not reached", "not applied", "undecided"):
            inner = f"<skipped message={quoteattr(visible(one['verdict'] + ': ' + one['why']))}/>"
        cases.append(f'  <testcase classname="mcp-wiretap faults" name={quoteattr(name)}>{inner}</testcase>')
    failures = sum(one["verdict"] == "failed" for one in told)
    head = f'<testsuite name="mcp-wiretap faults" tests="{len(told)}" failures="{failures}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>", ""])
