"""`mcp-wiretap export FILE`: a recording for others, without its secrets, in the format that they read."""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.output import replacing
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.sharing import copy, states
from mcp_wiretap.share import har, jsonl, markdown
from mcp_wiretap.share.account import Accounts
from mcp_wiretap.share.places import Named
from mcp_wiretap.share.redact import Redactor
from mcp_wiretap.trace.judge import Judge

FORMATS = ("flow", "har", "jsonl", "otlp", "md")
_MEANT = ("mcp-", "content-type", "accept", "authorization", "www-authenticate", "last-event-id", "origin")


def run(arguments: argparse.Namespace) -> int:
    source = Path(arguments.file)
    tracing.check_readable(str(source))
    target = _target(arguments, source)
    chosen = settings.read(arguments)
    redactor = redactor_for(arguments)
    with tempfile.TemporaryDirectory(prefix="mcp-wiretap-") as scratch, readable_errors(scratch):
        clean = Path(scratch) / "recording.flow"
        with clean.open("wb") as file:
            damage = copy(source, file, redactor)
        with (Path(scratch) / "accounts").open("w+b") as spool:
            accounts = read(clean, chosen, spool)
            wanted = flows_of_conversation(accounts, arguments.conversation) if arguments.conversation is not None else None
            if arguments.endpoint is not None:
                _send(accounts, wanted, arguments.endpoint)
            else:
                with _out(target) as out:
                    _write(arguments, clean, accounts, wanted, out)
    if damage is not None:
        print(f"mcp-wiretap: {source}: {damage}; exported up to there", file=sys.stderr)
    return 0 if damage is None else 2


def redactor_for(arguments: argparse.Namespace) -> Redactor | None:
    if arguments.no_redact:
        if arguments.redact:
            raise Refused("--no-redact and --redact contradict each other")
        return None
    try:
        return Redactor(Named.of(arguments.redact))
    except ValueError as error:
        raise Refused(f"--redact: {error}") from None


def read(path: Path, chosen: tracing.Settings, spool: IO[bytes]) -> Accounts:
    """The accounts of a recording, judged."""
    made: list[Accounts] = []

    def wrap(book: Judge) -> Judge:
        made.append(Accounts(book, spool))
        return made[0]

    tracing.follow([Recording(path)], chosen, lambda exchange: made[0].retire(exchange), wrap=wrap)
    return made[0]


def flows_of_conversation(accounts: Accounts, wanted: str) -> list[str]:
    """The flows of a conversation; a flow that is in none is one of its own."""
    if wanted in accounts.conversations:
        return accounts.conversations[wanted]
    account = accounts.of(wanted)
    if account is None:
        known = list(accounts.conversations)
        listed = f"it has {', '.join(known[:8])}{' …' if len(known) > 8 else ''}" if known else "it has no conversations"
        raise Refused(f"--conversation {wanted} is neither a conversation nor a flow of the recording; {listed}")
    if account.conversation is not None:
        return accounts.conversations[account.conversation]
    return [wanted]


@contextmanager
def readable_errors(scratch: str) -> Iterator[None]:
    """A full disk under the scratch directory is said to be one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(scratch):
            raise Refused(f"{tempfile.gettempdir()} cannot be written: {error.strerror}; TMPDIR may name another place") from None
        raise


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
            known = f"it has {', '.join(several[:8])}{' …' if len(several) > 8 else ''}" if several else "name the id of a flow"
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
    with contextlib.suppress(OSError):
        print(f"mcp-wiretap: {sent} spans sent to {endpoint}", file=sys.stderr)


def _spans() -> Any:
    try:
        from mcp_wiretap.share import spans
    except ImportError as error:
        raise Refused(f"OTLP needs the OpenTelemetry SDK ({error.name} is missing): pip install 'mcp-wiretap[otlp]'") from None
    return spans
