"""One message a line, in the order of time: for `jq`, `grep` and programs of one's own."""

from collections.abc import Iterable, Iterator

from mcp_wiretap.export.account import Account, Said
from mcp_wiretap.report.record import encode, moment, optional, text
from mcp_wiretap.wire.secret import escaped_json


def lines(accounts: Iterable[Account]) -> Iterator[tuple[float, str]]:
    """(time, line) of each message; the lines of one account are in order."""
    for account in accounts:
        for said in account.said:
            yield said.at, _line(account, said)


def _line(account: Account, said: Said) -> str:
    head = encode(
        {
            "time": moment(said.at),
            "from": said.party,
            "to": "server" if said.party == "client" else "client",
            "kind": said.kind,
            "method": optional(said.method),
            "flow": text(account.flow),
            "where": said.where,
            "endpoint": text(account.endpoint),
            "era": account.era,
            "revision": optional(account.revision),
            "conversation": optional(account.conversation),
            "round": account.round,
            "outcome": account.outcome if said.party == "client" else None,
            "error_message": optional(account.error_message) if said.party == "client" else None,
            "changed": account.changed,
            "version": said.version,
            "rules": list(dict.fromkeys(finding.rule for finding in account.findings if finding.party == said.party)),
        }
    )
    return f'{head[:-1]}, "message": {_one_line(said.text)}}}'


def _one_line(written: str) -> str:
    """JSON as it was read, without what a reader might take for the end of a line or a terminal for a command."""
    return escaped_json(written)
