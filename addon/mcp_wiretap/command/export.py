"""`mcp-wiretap export FILE`: a recording for others, without its secrets, in the format that they read."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.conversation_id import listed
from mcp_wiretap.command.output import replacing, say
from mcp_wiretap.command.redacted_copy import about, cleaned, flows_of_conversation, redactor_for
from mcp_wiretap.export import EXTRA, har, jsonl, markdown
from mcp_wiretap.export.account import Accounts
from mcp_wiretap.proxy.sharing import copy, states
from mcp_wiretap.report.words import plural

FORMATS = ("flow", "har", "jsonl", "otlp", "md")
_MEANT = ("mcp-", "content-type", "accept", "authorization", "www-authenticate", "last-event-id", "origin")


def run(arguments: argparse.Namespace) -> int:
    source = Path(arguments.file)
    tracing.check_readable(str(source))
    target = _target(arguments, source)
    chosen = settings.read(arguments)
    redactor = redactor_for(arguments)
    with cleaned(source, chosen, redactor) as clean:
        accounts = clean.accounts
        wanted = flows_of_conversation(accounts, arguments.conversation) if arguments.conversation is not None else None
        if arguments.endpoint is not None:
            _send(accounts, wanted, arguments.endpoint)
        else:
            with _out(target) as out:
                _write(arguments, clean.path, accounts, wanted, out)
    if clean.damage is not None:
        say(f"{source}: {clean.damage}; exported up to there")
    return 0 if clean.damage is None else 2


def _target(arguments: argparse.Namespace, source: Path) -> Path | None:
    if arguments.endpoint is not None:
        if arguments.format != "otlp":
            raise Refused("--endpoint is for --format otlp")
        if arguments.output is not None:
            raise Refused("--output and --endpoint: one of them")
        return None
    if arguments.output is None or arguments.output == "-":
        if arguments.format == "flow" and sys.stdout.isatty():
            raise Refused("a .flow file is nothing for a terminal; name one with --output")
        return None
    target = Path(arguments.output)
    if target.exists() and target.samefile(source):
        raise Refused(f"--output {target} is the recording itself; it would be overwritten")
    return target


@contextmanager
def _out(target: Path | None) -> Iterator[BinaryIO]:
    if target is None:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:  # it leads to a file on a disk that is full
            raise Refused(f"stdout cannot be written: {error.strerror}") from None
        return
    with replacing(target) as file:
        yield file


def _write(arguments: argparse.Namespace, clean: Path, accounts: Accounts, wanted: list[str] | None, out: BinaryIO) -> None:
    chosen = frozenset(wanted) if wanted is not None else None

    def keep(flow: str) -> bool:
        return chosen is None or flow in chosen

    flows = [flow for flow in accounts.flows if keep(flow)]
    match arguments.format:
        case "flow":
            copy(clean, out, None, keep)
        case "har":
            pairs = ((state, accounts.of(state["id"])) for state in _http(clean) if keep(state["id"]))
            for piece in har.write(pairs):
                out.write(piece.encode())
        case "jsonl":
            _write_sorted(jsonl.lines(filter(None, map(accounts.of, flows))), out)
        case "md":
            out.write(_page(clean, accounts, wanted, redacted=not arguments.no_redact).encode("utf-8", "backslashreplace"))
        case "otlp":
            _otlp(accounts, flows, out, arguments.output)


def _http(clean: Path) -> Iterator[dict[str, Any]]:
    for state in states(clean):
        if isinstance(state, dict) and state["type"] == "http":
            yield state


def _write_sorted(lines: Iterator[tuple[float, str]], out: BinaryIO) -> None:
    """In order of time, the lines themselves waiting in a file."""
    with tempfile.TemporaryFile() as file:
        places = []
        for at, line in lines:
            data = line.encode("utf-8", "backslashreplace") + b"\n"
            places.append((at, file.tell(), len(data)))
            file.write(data)
        for _, place, length in sorted(places):
            file.seek(place)
            out.write(file.read(length))


def _page(clean: Path, accounts: Accounts, wanted: list[str] | None, *, redacted: bool) -> str:
    if wanted is None:
        several = list(accounts.conversations)
        if len(several) != 1:
            known = f"it has {listed(several, partial(about, accounts))}" if several else "name the id of a flow"
            raise Refused(f"--format md is for one conversation: name it with --conversation; {known}")
        wanted = accounts.conversations[several[0]]
    headers = {state["id"]: _meant(state["request"]["headers"]) for state in _http(clean) if state["id"] in wanted}
    chosen = [account for flow in wanted if (account := accounts.of(flow)) is not None]
    return markdown.page(markdown.title(chosen), chosen, headers, redacted=redacted)


def _meant(headers: Any) -> list[tuple[str, str]]:
    read = [(bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in read if name.lower().startswith(_MEANT)]


def _otlp(accounts: Accounts, flows: list[str], out: BinaryIO, output: str | None) -> None:
    spans = _spans()
    binary = output is not None and output.endswith((".pb", ".binpb"))
    write: Callable[[BinaryIO, Any], None] = spans.write_protobuf if binary else spans.write_json
    write(out, spans.operations(filter(None, map(accounts.of, flows))))


def _send(accounts: Accounts, wanted: list[str] | None, endpoint: str) -> None:
    flows = wanted if wanted is not None else accounts.flows
    spans = _spans()
    sent = 0
    try:
        sent = spans.send(endpoint, spans.operations(filter(None, map(accounts.of, flows))))
    except spans.NotSent as error:
        raise Refused(f"--endpoint {endpoint}: {error}") from None
    say(f"{plural(sent, 'span')} sent to {endpoint}")


def _spans() -> Any:
    try:
        from mcp_wiretap.export import spans
    except ImportError as error:
        raise Refused(f"OTLP needs the OpenTelemetry SDK ({error.name} is missing); {EXTRA}") from None
    return spans
