"""One conversation as Markdown, ready to be pasted into an issue: what happened in a table, findings, each exchange in full.

Text from the wire stands in code only, in fences longer than any run of backticks in it.
"""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime

from mcp_wiretap import __version__
from mcp_wiretap.export.account import Account, Said
from mcp_wiretap.wire.secret import one_line, visible

MOST = 60_000  # characters of a page: an issue takes 65,536
LONGEST = 6_000  # of one message
MOST_MESSAGES = 40  # of one exchange
_TICKS = re.compile("`+")


def page(title: str, accounts: Iterable[Account], headers: dict[str, list[tuple[str, str]]], *, redacted: bool = True) -> str:
    """The page of a conversation. `headers`: by flow, the request's header fields that MCP gives a meaning. `redacted`: whether
    secrets are replaced."""
    rounds = list(accounts)
    out = [f"### {title}", "", *_table(rounds), "", *_findings(rounds)]
    room = MOST - sum(map(len, out))
    for number, account in enumerate(rounds, 1):
        lines = _exchange(number, account, headers.get(account.flow, []))
        room -= sum(len(line) + 1 for line in lines)
        out += lines if room >= 0 else [f"Exchange {number} is left out: the page would be too long for an issue.", ""]
    replaced = "secrets are replaced, equal ones by equal placeholders" if redacted else "secrets are NOT replaced"
    out += [f"<sub>mcp-wiretap {__version__}; {replaced}</sub>", ""]
    return "\n".join(out)


def title(accounts: list[Account]) -> str:
    """What it is about."""
    first = accounts[0]
    words = " ".join(filter(None, [first.method or first.http_method, first.name]))
    return f"{code(words)} at {code(first.endpoint)} ({first.era}{f', {code(first.revision)}' if first.revision else ''})"


def code(text: str) -> str:
    """Inline code, whatever the text is."""
    text = one_line(text, 300).replace("|", "\\|")
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _table(rounds: list[Account]) -> list[str]:
    out = ["| # | started | request | outcome | HTTP | ms |", "|--:|---|---|---|--:|--:|"]
    start = rounds[0].started
    for number, one in enumerate(rounds, 1):
        words = " ".join(filter(None, [one.method or one.http_method, one.name]))
        outcome = one.outcome + (f" {one.error_code}" if one.error_code is not None else "")
        outcome += " (isError)" if one.tool_error else ""
        outcome += f" {code(one.error_message)}" if one.error_message else ""
        when = _clock(one.started) if number == 1 else f"+{one.started - start:.3f} s"
        took = f"{(one.ended - one.started) * 1000:.0f}" if one.ended is not None else ""
        out.append(f"| {number} | {when} | {code(words)} | {outcome} | {one.status if one.status is not None else ''} | {took} |")
    return out


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def _findings(rounds: list[Account]) -> list[str]:
    found = [(number, finding) for number, one in enumerate(rounds, 1) for finding in one.findings]
    if not found:
        return ["No findings.", ""]
    out = ["**Findings**", ""]
    for number, finding in found:
        out.append(f"- **{finding.rule}** ({finding.severity}, {finding.party}, exchange {number}): {code(finding.message)}")
        for evidence in finding.evidence[:10]:
            expected = f", expected {code(evidence.expected)}" if evidence.expected is not None else ""
            out.append(f"  - {code(evidence.where)}: {code(evidence.value)}{expected}")
        if finding.spec:
            out.append(f"  - {finding.spec}")
    return [*out, ""]


def _exchange(number: int, account: Account, headers: list[tuple[str, str]]) -> list[str]:
    words = " ".join(filter(None, [account.method or account.http_method, account.name]))
    head = f"{code(f'{account.http_method} {account.url}')} {code(words)}"
    out = [f"<details><summary>Exchange {number}</summary>", "", head, ""]
    if headers:
        out += _fence("http", "\n".join(f"{one_line(n, 200)}: {one_line(v, 1_000)}" for n, v in headers))
    for said in account.said[:MOST_MESSAGES]:
        arrow = "client → server" if said.party == "client" else "server → client"
        after = f"+{(said.at - account.started) * 1000:.0f} ms"
        out += [f"{arrow}, {after}, {code(said.where)}", "", *_fence("json", _pretty(said))]
    if len(account.said) > MOST_MESSAGES:
        out += [f"… {len(account.said) - MOST_MESSAGES} more messages", ""]
    if account.failure:
        out += [f"Ended by {account.ended_by}: {code(account.failure)}", ""]
    return [*out, "</details>", ""]


def _pretty(said: Said) -> str:
    try:
        text = json.dumps(json.loads(said.text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):  # numbers of thousands of digits, deep nesting
        text = said.text
    text = "\n".join(visible(line) for line in text.split("\n"))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _fence(language: str, text: str) -> list[str]:
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return [f"{fence}{language}", text, fence, ""]
