"""Stdio servers of a client's configuration put behind the wrapper, and back: `mcp-wiretap wrap` and `unwrap`."""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mcp_wiretap.command import Refused
from mcp_wiretap.command.work.client_config import (
    CLIENTS,
    LOOPBACK,
    Edit,
    Entry,
    edited,
    entries,
    places,
    redirect,
    undone,
    wrap,
)
from mcp_wiretap.command.work.jsonc import NotRead, parse
from mcp_wiretap.stdio.naming import clean
from mcp_wiretap.wire.secret import concealed, one_line

BACKUP = ".mcp-wiretap.bak"


@dataclass
class Plan:
    """What is to become of one file."""

    path: Path
    text: str
    after: str
    backup: str  # what the file is without any wrapper
    told: list[str] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        return self.after != self.text


def run(arguments: argparse.Namespace) -> int:
    """Both commands: `arguments.command` says which."""
    files = _files(arguments.client)
    ports: dict[str, int] = {}
    make = _wrapping if arguments.command == "wrap" else _unwrapping
    plans = [make(path, arguments, ports) for path in files]
    missing = set(arguments.names) - {entry.name for plan in plans for entry in entries(parse(plan.text))}
    if missing:
        raise Refused(f"there is no server {', '.join(sorted(missing))} in {', '.join(map(str, files))}")
    for plan in plans:
        print(plan.path)
        for line in plan.told:
            print(f"  {line}")
    changing = [plan for plan in plans if plan.changes]
    if not changing:
        print("Nothing is to be done.")
        return 0
    if arguments.dry_run:
        return 0
    if not arguments.yes and not _agreed(changing):
        print("Nothing is changed.")
        return 0
    for plan in changing:
        _carry_out(plan, keep=arguments.command == "wrap")
    if ports:
        modes = " ".join(f"--mode reverse:{origin}@{port}" for origin, port in ports.items())
        print(f"The HTTP servers are reached only while this runs:\n  mcp-wiretap web --listen-host 127.0.0.1 {modes}")
    elif arguments.command == "wrap":
        print("Start the client anew; `mcp-wiretap web` shows what its servers say. `mcp-wiretap unwrap` puts all back.")
    return 0


def _files(client: str | None) -> list[Path]:
    """The configurations that are meant and exist."""
    if client is not None:
        found = [path for path in places(client) if path.is_file()]
        if not found:
            looked = ", ".join(str(path) for path in places(client))
            hint = "" if client in CLIENTS else f" (known clients: {', '.join(CLIENTS)})"
            raise Refused(f"there is no configuration {looked}{hint}")
        return found
    found = [path for known in CLIENTS for path in places(known) if path.is_file()]
    if not found:
        raise Refused(f"no configuration of {', '.join(CLIENTS)} was found; name a file: --client FILE")
    return found


def _read(path: Path) -> tuple[str, str | None]:
    """A configuration and its backup, newlines as they are."""
    try:
        text = path.read_bytes().decode("utf-8")
        backup = _backup(path)
        before = backup.read_bytes().decode("utf-8") if backup.is_file() else None
        parse(text)
        if before is not None:
            parse(before)
    except (OSError, UnicodeDecodeError, NotRead) as error:
        raise Refused(f"{path} is not understood, nothing is changed: {error}") from error
    return text, before


def _wrapping(path: Path, arguments: argparse.Namespace, ports: dict[str, int]) -> Plan:
    text, before = _read(path)
    plan = Plan(path, text, text, undone(text, before)[0])
    edits: list[Edit] = []
    program = _program()
    for entry in entries(parse(text)):
        if arguments.names and entry.name not in arguments.names:
            continue
        more, what = _to_wrap(entry, program, arguments, ports)
        edits += more
        plan.told.append(f"{one_line(entry.name, 30):<20} {what}")
    plan.after = edited(text, edits)
    return plan


def _to_wrap(
    entry: Entry, program: Sequence[str], arguments: argparse.Namespace, ports: dict[str, int]
) -> tuple[list[Edit], str]:
    if entry.wrapped is not None:
        return [], "is wrapped already"
    if entry.command is not None:
        shown = one_line(concealed(shlex.join(entry.command)), 80)
        return wrap(entry, program, inline=arguments.inline), f"{shown}  ->  stdio://{clean(entry.name)}"
    if entry.url is None:
        return [], "left alone: neither a command nor a URL that is understood"
    parts = urlsplit(entry.url)
    if entry.url.startswith(LOOPBACK) and not arguments.http:
        return [], "left alone: an HTTP server of this machine; --http sends it through a reverse proxy"
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        return [], "left alone: its URL is not understood"
    if not arguments.http:
        return [], "left alone: an HTTP server; --http sends it through a reverse proxy"
    port = ports.setdefault(f"{parts.scheme}://{parts.netloc}", arguments.port + len(ports))
    return redirect(
        entry, port
    ), f"{parts.scheme}://{parts.netloc}  ->  port {port} (one that asks for OAuth wants a forward proxy)"


def _unwrapping(path: Path, arguments: argparse.Namespace, ports: dict[str, int]) -> Plan:
    text, before = _read(path)
    after, done = undone(text, before, arguments.names)
    return Plan(
        path, text, after, before or "", [f"{one_line(name, 30):<20} as it was" for name in done] or ["nothing is wrapped"]
    )


def _carry_out(plan: Plan, *, keep: bool) -> None:
    if keep:
        _write(_backup(plan.path), plan.backup, like=plan.path)
        print(f"{plan.path} is written; {_backup(plan.path).name} beside it is what it was")
    else:
        print(f"{plan.path} is written")
    _write(plan.path, plan.after, like=plan.path)


def _write(path: Path, text: str, *, like: Path) -> None:
    """At once, or not at all; with the mode of `like`. A link stays one."""
    target = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
        shutil.copymode(like, temporary)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _program() -> list[str]:
    """What starts this program from anywhere: clients of a desktop know no PATH of a shell."""
    own = Path(sys.argv[0])
    if own.name.removesuffix(".exe") == "mcp-wiretap" and own.is_file():
        return [str(own.absolute())]
    found = shutil.which("mcp-wiretap")
    if found is None:
        raise Refused("the program mcp-wiretap is not found; install it, or call it by its path")
    return [str(Path(found).absolute())]


def _agreed(plans: Sequence[Plan]) -> bool:
    if not sys.stdin.isatty():
        raise Refused("nobody can be asked; say --yes, or --dry-run to look only")
    files = "this file" if len(plans) == 1 else f"these {len(plans)} files"
    return input(f"Change {files}? [y/N] ").strip().lower() in ("y", "yes")
