"""A recording without its secrets, in a scratch directory, and the accounts of its exchanges: for `export` and `extract`."""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from mcp_wiretap.command import Refused, conversation_id, tracing
from mcp_wiretap.export.account import Accounts
from mcp_wiretap.proxy.recording import Recording
from mcp_wiretap.proxy.sharing import copy
from mcp_wiretap.redact.places import Named
from mcp_wiretap.redact.redact import Redactor
from mcp_wiretap.trace.judge import Judge


@dataclass(slots=True, frozen=True)
class Cleaned:
    """The copy, what of the original could not be read (None: all could), and the accounts of the copy."""

    path: Path
    damage: str | None
    accounts: Accounts


@contextmanager
def cleaned(source: Path, judging: tracing.Settings, redactor: Redactor | None) -> Iterator[Cleaned]:
    """Copy a recording without its secrets (all of it, without a redactor) and judge the copy. Both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mcp-wiretap-") as scratch, _readable_errors(scratch):
        path = Path(scratch) / "recording.flow"
        with path.open("wb") as file:
            damage = copy(source, file, redactor)
        with (Path(scratch) / "accounts").open("w+b") as spool:
            yield Cleaned(path, damage, _read(path, judging, spool))


def redactor_for(arguments: argparse.Namespace) -> Redactor | None:
    if arguments.no_redact:
        if arguments.redact:
            raise Refused("--no-redact and --redact contradict each other")
        return None
    try:
        return Redactor(Named.of(arguments.redact))
    except ValueError as error:
        raise Refused(f"--redact: {error}") from None


def flows_of_conversation(accounts: Accounts, wanted: str) -> list[str]:
    """The flows of a conversation; a flow that is in none is one of its own."""
    rounds = {flow: id for id, flows in accounts.conversations.items() for flow in flows}
    id = conversation_id.conversation(wanted, {flow: rounds.get(flow, flow) for flow in accounts.flows}, partial(about, accounts))
    return accounts.conversations.get(id, [id])


def about(accounts: Accounts, flow: str) -> str:
    """What a flow, or the conversation that it opens, is about: `tools/call deploy`."""
    account = accounts.of(flow)
    if account is None:
        return ""
    return " ".join(filter(None, [account.method or account.http_method, account.name]))


def _read(path: Path, judging: tracing.Settings, spool: IO[bytes]) -> Accounts:
    """The accounts of a recording, judged."""
    made: list[Accounts] = []

    def wrap(book: Judge) -> Judge:
        made.append(Accounts(book, spool))
        return made[0]

    tracing.follow([Recording(path)], judging, lambda exchange: made[0].retire(exchange), wrap=wrap)
    return made[0]


@contextmanager
def _readable_errors(scratch: str) -> Iterator[None]:
    """A full disk under the scratch directory is said to be one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(scratch):
            raise Refused(f"{tempfile.gettempdir()} cannot be written: {error.strerror}; TMPDIR may name another place") from None
        raise
