"""What a page shows of all there is: words of the filter box and the buttons beside it, as the query of the page's address.

    tool:hdr code:-32020 status:4xx rule:HDR party:server method:tools/call outcome:error era:legacy client:NAME flow:ID words

All must hold; a word with `-` before it must not. Free words are looked for in everything that a row shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from mcp_wiretap.pages.words import host, server_name
from mcp_wiretap.report import comment
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.summary.clientele import client_key

KEYS = ("method", "era", "outcome", "severity", "party", "endpoint", "client", "kind")
_LONGEST = 500
_OUTCOMES = {
    "errors": frozenset({"error", "broken"}),
    "pending": frozenset({"none", "stream", "input_required", "task"}),
}


@dataclass(slots=True, frozen=True)
class Filter:
    """The conditions of one page."""

    text: str = ""
    words: tuple[tuple[bool, str, str], ...] = ()  # (wanted, key, value)
    chosen: Mapping[str, str] = field(default_factory=dict)
    newest_first: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Filter":
        text = query.get("q", "").strip()[:_LONGEST]
        words = []
        for word in text.split():
            wanted = not (word.startswith("-") and len(word) > 1 and not word[1:].isdigit())
            key, colon, value = word.removeprefix("" if wanted else "-").partition(":")
            if not colon or not value or key.lower() not in _TESTS:
                key, value = "", word.removeprefix("" if wanted else "-")
            words.append((wanted, key.lower(), value.lower()))
        chosen = {key: query[key][:_LONGEST] for key in KEYS if query.get(key)}
        return cls(text, tuple(words), chosen, query.get("order") == "newest")

    @property
    def empty(self) -> bool:
        return not self.words and not self.chosen

    @property
    def scope(self) -> str:
        """Part of the URL of the endpoint in view, chosen or typed, in small letters; "" for all."""
        typed = (value for wanted, key, value in self.words if wanted and key == "endpoint")
        return self.chosen.get("endpoint", "").lower() or next(typed, "")

    def query(self, **changed: str | None) -> str:
        """The query string, with some members changed; "" for none."""
        members: dict[str, str | None] = {"q": self.text or None, **self.chosen}
        members["order"] = "newest" if self.newest_first else None
        members |= changed
        found = urlencode({key: value for key, value in members.items() if value})
        return f"?{found}" if found else ""

    def fits(self, exchanges: list[Exchange]) -> bool:
        """Whether an operation of these exchanges (or a single exchange) is shown."""
        for key, value in self.chosen.items():
            if not any(_TESTS[key](exchange, value.lower()) for exchange in exchanges):
                return False
        return all(any(_TESTS[key](e, value) for e in exchanges) is wanted for wanted, key, value in self.words)

    def fits_words(self, *texts: str) -> bool:
        """For rows that are not exchanges: free words are looked for in the texts; `key:value` words are taken whole."""
        joined = "\n".join(texts).lower()
        return all((value in joined) is wanted for wanted, _, value in self.words)


def _method(e: Exchange, value: str) -> bool:
    return (e.method or e.http_method).lower() == value


def _tool(e: Exchange, value: str) -> bool:
    return e.name is not None and value in e.name.lower()


def _code(e: Exchange, value: str) -> bool:
    return e.error_code is not None and str(e.error_code).lstrip("-") == value.lstrip("-")


def _status(e: Exchange, value: str) -> bool:
    if e.status is None:
        return value == "none"
    status = str(e.status)
    return len(status) == len(value) and all(b in ("x", a) for a, b in zip(status, value, strict=True))


def _rule(e: Exchange, value: str) -> bool:
    return any(f.rule.lower().startswith(value) for f in e.findings)


def _party(e: Exchange, value: str) -> bool:
    return any(f.party == value for f in e.findings)


def _severity(e: Exchange, value: str) -> bool:
    return any(f.severity == value for f in e.findings)


def _era(e: Exchange, value: str) -> bool:
    return e.shown_era == value


def _outcome(e: Exchange, value: str) -> bool:
    if value == "pending" and e.over and e.outcome in ("none", "stream"):
        return False
    if value == "errors" and any(f.severity == "error" for f in e.findings):
        return True
    wanted = _OUTCOMES.get(value)
    return e.outcome in wanted if wanted is not None else e.outcome == value.replace("-", "_")


def _endpoint(e: Exchange, value: str) -> bool:
    return value in e.endpoint.url.lower()


def _client(e: Exchange, value: str) -> bool:
    return value in client_key(e.client_info, e.auth).lower()


def _flow(e: Exchange, value: str) -> bool:
    return e.flow.startswith(value)


def _kind(e: Exchange, value: str) -> bool:
    return e.kind == value


def _id(e: Exchange, value: str) -> bool:
    return str(e.jsonrpc_id).lower() == value


def _free(e: Exchange, value: str) -> bool:
    return (
        value in (e.method or "").lower()
        or value in (e.name or "").lower()
        or value in e.url.lower()
        or value in host(e.endpoint.url).lower()
        or value in server_name(e.endpoint).lower()
        or value in comment.comment(e).lower()
        or e.flow.startswith(value)
    )


_TESTS = {
    "": _free,
    "method": _method,
    "tool": _tool,
    "name": _tool,
    "code": _code,
    "status": _status,
    "rule": _rule,
    "party": _party,
    "severity": _severity,
    "era": _era,
    "outcome": _outcome,
    "endpoint": _endpoint,
    "client": _client,
    "flow": _flow,
    "kind": _kind,
    "id": _id,
}
