"""`mcp-wiretap export FILE`: a recording for others, without its secrets, in the format that they read."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mcp_wiretap.command import Refused, settings, tracing
from mcp_wiretap.command.conversation_id import listed
from mcp_wiretap.command.output import replacing, say
from mcp_wiretap.command.redacted_copy import about, cleaned, flows_of_conversation, redactor_for
from mcp_wiretap.export import EXTRA
from mcp_wiretap.export.account import Accounts
from mcp_wiretap.export.formats import FORMATS, NotOneConversation, Redacted
from mcp_wiretap.proxy.sharing import copy, states
from mcp_wiretap.report.words import plural


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

    recording = Redacted(
        accounts=accounts,
        flows=[flow for flow in accounts.flows if keep(flow)],
        conversation=wanted,
        states=partial(_http, clean),
        copy=lambda out: copy(clean, out, None, keep),
        redacted=not arguments.no_redact,
        name=arguments.output,
    )
    if arguments.format == "otlp":
        _spans()  # which says what to install
    try:
        FORMATS[arguments.format].write(recording, out)
    except NotOneConversation:
        several = list(accounts.conversations)
        known = f"it has {listed(several, partial(about, accounts))}" if several else "name the id of a flow"
        raise Refused(f"--format {arguments.format} is for one conversation: name it with --conversation; {known}") from None


def _http(clean: Path) -> Iterator[dict[str, Any]]:
    for state in states(clean):
        if isinstance(state, dict) and state["type"] == "http":
            yield state


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
