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
from mcp_wiretap.wire.secret import KnownSecrets, knowing


def run(arguments: argparse.Namespace) -> int:
    chosen = settings.read(arguments)
    paths = [arguments.before, arguments.after]
    for path in paths:
        check_readable(path)
    damaged: list[str] = []
    secrets: list[KnownSecrets] = []

    def watched[W: Judge](path: str, watcher: Callable[[Judge], W]) -> W:
        recording = Recording(Path(path))
        made: list[W] = []

        def wrap(book: Judge) -> Judge:
            made.append(watcher(book))
            return made[0]

        inspector, _ = follow([recording], chosen, lambda _: None, wrap=wrap)
        secrets.append(inspector.secrets)
        if recording.damage:
            damaged.append(f"{path}: {recording.damage}")
        return made[0]

    if arguments.hop:
        outer, inner = watched(paths[0], Hops), watched(paths[1], Hops)
        with knowing(*secrets):
            crossing = pair(outer, inner)
            data, lines = render.hop_as_json(crossing), render.hop_as_text(crossing)
        different = any(one.changes for one in crossing.pairs) or bool(crossing.only_outer or crossing.only_inner)
        breaking = False
    else:
        before, after = watched(paths[0], Profile), watched(paths[1], Profile)
        before.close()
        after.close()
        with knowing(*secrets):
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
