"""`mcp-wiretap annotate IN OUT`: a recording written anew, its flows with the verdicts that the whole trace gives them."""

import argparse
import os
import pickle
import tempfile
from pathlib import Path
from typing import IO

from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.output import replacing, say
from mcp_wiretap.proxy.annotate import Words, words, write
from mcp_wiretap.proxy.flow_io import flows_of, writer
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.trace.model import Exchange


def run(arguments: argparse.Namespace) -> int:
    source, target = Path(arguments.input), Path(arguments.output)
    tracing.check_readable(str(source))
    if target.exists() and target.samefile(source):
        raise Refused(f"{target} is the recording itself; name another file to write")
    chosen = settings.read(arguments)
    recording = Recording(source)
    with tempfile.TemporaryFile() as scratch:
        judged = _Kept(scratch)
        tracing.follow([recording], chosen, judged.retire)
        damage = recording.damage
        with replacing(target) as file:
            add = writer(file)
            for flow in flows_of(source):
                if isinstance(flow, str):
                    damage = damage or flow
                    continue
                if (said := judged.words_of(flow.id)) is not None:
                    write(flow, said)
                add(flow)
    if damage is not None:
        say(f"{source}: {damage}; annotated up to there")
    return 0 if damage is None else 2


class _Kept:
    """What is to be written on each flow, kept in a file until the flow comes by: the memory holds a number for each."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[str, int] = {}

    def retire(self, exchange: Exchange) -> None:
        said = words(exchange)
        if said is not None:
            self._places[exchange.flow] = self._file.seek(0, os.SEEK_END)
            pickle.dump(said, self._file)

    def words_of(self, flow: str) -> Words | None:
        place = self._places.get(flow)
        if place is None:
            return None
        self._file.seek(place)
        said: Words = pickle.load(self._file)
        return said
