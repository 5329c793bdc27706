"""The formats of an export: the names that `--format` takes. A format is one function that writes a redacted recording."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from mcp_wiretap.export.account import Account, Accounts


@dataclass(slots=True, frozen=True, kw_only=True)
class Redacted:
    """A recording without its secrets, and which part of it is wanted."""

    accounts: "Accounts"
    flows: Sequence[str]  # that are wanted, in order
    conversation: Sequence[str] | None  # flows of the one that was asked for; None: all is wanted
    states: Callable[[], Iterator[dict[str, Any]]]  # HTTP flows as mitmproxy keeps them
    copy: Callable[[BinaryIO], object]  # the wanted flows as a .flow file
    redacted: bool  # False: the user left the secrets in
    name: str | None  # of the file that is written

    def wanted(self) -> Iterator["Account"]:
        """Yield the accounts of the wanted flows, in order."""
        return filter(None, map(self.accounts.of, self.flows))


class NotOneConversation(Exception):
    """The format is for one conversation, and the recording has another number of them."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Format:
    """One format. `write` imports what it needs when it is called."""

    says: str  # for --help
    write: Callable[[Redacted, BinaryIO], None]


def _flow(recording: Redacted, out: BinaryIO) -> None:
    recording.copy(out)


def _har(recording: Redacted, out: BinaryIO) -> None:
    from mcp_wiretap.export import har

    wanted = frozenset(recording.flows)
    pairs = ((state, recording.accounts.of(state["id"])) for state in recording.states() if state["id"] in wanted)
    for piece in har.write(pairs):
        out.write(piece.encode())


def _jsonl(recording: Redacted, out: BinaryIO) -> None:
    """One message a line in order of time, the lines themselves waiting in a file."""
    from mcp_wiretap.export import jsonl

    with tempfile.TemporaryFile() as file:
        places = []
        for at, line in jsonl.lines(recording.wanted()):
            data = line.encode("utf-8", "backslashreplace") + b"\n"
            places.append((at, file.tell(), len(data)))
            file.write(data)
        for _, place, length in sorted(places):
            file.seek(place)
            out.write(file.read(length))


def _otlp(recording: Redacted, out: BinaryIO) -> None:
    from mcp_wiretap.export import spans

    binary = recording.name is not None and recording.name.endswith((".pb", ".binpb"))
    write: Callable[[BinaryIO, Any], None] = spans.write_protobuf if binary else spans.write_json
    write(out, spans.operations(recording.wanted()))


_MEANT = ("mcp-", "content-type", "accept", "authorization", "www-authenticate", "last-event-id", "origin")


def _md(recording: Redacted, out: BinaryIO) -> None:
    from mcp_wiretap.export import markdown

    wanted = recording.conversation
    if wanted is None:
        several = list(recording.accounts.conversations)
        if len(several) != 1:
            raise NotOneConversation
        wanted = recording.accounts.conversations[several[0]]
    headers = {state["id"]: _meant(state["request"]["headers"]) for state in recording.states() if state["id"] in wanted}
    chosen = [account for flow in wanted if (account := recording.accounts.of(flow)) is not None]
    page = markdown.page(markdown.title(chosen), chosen, headers, redacted=recording.redacted)
    out.write(page.encode("utf-8", "backslashreplace"))


def _meant(headers: Any) -> list[tuple[str, str]]:
    read = [(bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in headers]
    return [(name, value) for name, value in read if name.lower().startswith(_MEANT)]


FORMATS = {
    "flow": Format(says="a recording", write=_flow),
    "har": Format(says="HTTP Archive 1.2", write=_har),
    "jsonl": Format(says="one message a line", write=_jsonl),
    "otlp": Format(says="spans of OpenTelemetry, as JSON, or as protobuf where FILE ends in .pb", write=_otlp),
    "md": Format(says="one conversation for an issue", write=_md),
}
