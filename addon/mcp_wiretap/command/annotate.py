"""`mcp-wiretap annotate IN OUT`: a recording written anew, its flows with the verdicts that the whole trace gives them."""

import argparse
import sys
from pathlib import Path

from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.output import replacing
from mcp_wiretap.proxy.annotate import annotate
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.rewriting import flows_of, writer
from mcp_wiretap.rule import find_rules
from mcp_wiretap.trace.model import Exchange


def run(arguments: argparse.Namespace) -> int:
    source, target = Path(arguments.input), Path(arguments.output)
    tracing.check_readable(str(source))
    if target.exists() and target.samefile(source):
        raise Refused(f"{target} is the recording itself; name another file to write")
    chosen = settings.read(arguments, find_rules())
    recording = Recording(source)
    judged: dict[str, Exchange] = {}

    def retire(exchange: Exchange) -> None:
        exchange.release()
        judged[exchange.flow] = exchange

    tracing.follow([recording], chosen, retire)
    damage = recording.damage
    with replacing(target) as file:
        write = writer(file)
        for flow in flows_of(source):
            if isinstance(flow, str):
                damage = damage or flow
            else:
                if flow.id in judged:
                    annotate(flow, judged[flow.id])
                write(flow)
    if damage is not None:
        print(f"mcp-wiretap: {source}: {damage}; annotated up to there", file=sys.stderr)
    return 0 if damage is None else 2
