"""`mcp-wiretap diff A B`: two recordings compared, or (--hop) the two sides of a gateway."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from mcp_wiretap.command import settings
from mcp_wiretap.command.output import destination
from mcp_wiretap.command.tracing import check_readable, follow
from mcp_wiretap.compare import render
from mcp_wiretap.compare.difference import compare
from mcp_wiretap.compare.hop import Hops, pair
from mcp_wiretap.compare.profile import Profile
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.trace.judge import Judge


def run(arguments: argparse.Namespace) -> int:
    chosen = settings.read(arguments)
    paths = [arguments.before, arguments.after]
    for path in paths:
        check_readable(path)
    damaged: list[str] = []

    def watched[W: Judge](path: str, watcher: Callable[[Judge], W]) -> W:
        recording = Recording(Path(path))
        made: list[W] = []

        def wrap(book: Judge) -> Judge:
            made.append(watcher(book))
            return made[0]

        follow([recording], chosen, lambda _: None, wrap=wrap)
        if recording.damage:
            damaged.append(f"{path}: {recording.damage}")
        return made[0]

    if arguments.hop:
        crossing = pair(watched(paths[0], Hops), watched(paths[1], Hops))
        data, lines, different, breaking = render.hop_as_json(crossing), render.hop_as_text(crossing), True, False
        different = any(one.changes for one in crossing.pairs) or bool(crossing.only_outer or crossing.only_inner)
    else:
        before, after = watched(paths[0], Profile), watched(paths[1], Profile)
        before.close()
        after.close()
        found = compare(before, after)
        data, lines = render.as_json(found, *paths), render.as_text(found)
        different, breaking = found.any, found.breaking
    with destination(arguments.output, inputs=paths) as out:
        if arguments.format == "json":
            json.dump(data, out, indent=1, ensure_ascii=True)
            out.write("\n")
        else:
            out.write("\n".join([*lines, *(f"Damaged: {text}" for text in damaged)]) + "\n")
    if damaged:
        return 2
    return int((arguments.fail_on == "any" and different) or (arguments.fail_on == "breaking" and breaking))
