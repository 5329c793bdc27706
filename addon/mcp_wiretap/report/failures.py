"""Operations that failed, grouped by what the other side said of them, whether a rule explains it or not.

What the protocol foresees is no failure: a probe that a working fallback follows, a challenge that a token answers, a stream or
an end of session that the server does not offer.
"""

import re
from dataclasses import dataclass, field

from mcp_wiretap.report import comment
from mcp_wiretap.trace.authorization.steps import AUTHORIZATION_FLOWS, TOKENS
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire.secret import concealed

NAMES = 3  # of one line
_CHANGING = re.compile(r"[0-9A-Fa-f-]*[0-9][0-9A-Fa-f-]*")  # counters, ids and times do not make it another failure


@dataclass(slots=True)
class Failure:
    """Operations of one method that failed in the same way."""

    endpoint: str
    method: str
    outcome: str  # the code with its name, or the HTTP status
    words: str  # of the other side in quotes, secrets masked
    first: str  # flow
    input: str
    at: float
    names: dict[str, None] = field(default_factory=dict)  # of the tools, prompts and resources, bounded
    rules: dict[str, None] = field(default_factory=dict)  # whose warnings and errors stand on these flows
    foreseen: str = ""  # why it is no failure for all that
    count: int = 0
    silent: int = 0  # of them without such a finding

    @property
    def line(self) -> str:
        """The failure on one line: `tools/list -> -32000 "Session not found"`."""
        names = list(self.names)
        operation = " ".join([self.method, ", ".join(names[:NAMES]) + (", …" if len(names) > NAMES else "")]).strip()
        return f"{operation} -> {self.outcome}" + (f" {self.words}" if self.words else "")

    @property
    def explained(self) -> str:
        """What says more of it: rules, or why it is no failure; that nothing does."""
        if self.foreseen:
            return self.foreseen
        if not self.rules:
            return "no rule says why"
        return f"see {', '.join(self.rules)}" + (f"; no rule says why in {self.silent} of them" if self.silent else "")

    def add(self, other: "Failure") -> None:
        self.count += other.count
        self.silent += other.silent
        self.rules |= other.rules
        for name in other.names:
            if len(self.names) <= NAMES:
                self.names[name] = None


def of(exchange: Exchange, input_: str) -> Failure | None:
    """The failure of an exchange; None where it did not fail."""
    if not is_failed(exchange):
        return None
    rules = dict.fromkeys(f.rule for f in exchange.findings if f.severity not in (None, "info"))
    return Failure(
        endpoint=exchange.endpoint.url,
        method=_method(exchange),
        outcome=comment.outcome(exchange),
        words=comment.in_words(exchange),
        first=exchange.flow,
        input=input_,
        at=exchange.started,
        names={concealed(exchange.name): None} if exchange.name else {},
        rules=rules,
        foreseen=_foreseen(exchange),
        count=1,
        silent=not rules,
    )


def _method(exchange: Exchange) -> str:
    if exchange.kind == "oauth":
        return f"oauth {exchange.step_words}"
    return exchange.method or (exchange.http_method if exchange.kind == "mcp" else f"preflight {exchange.http_method}")


def is_failed(exchange: Exchange) -> bool:
    """Whether an operation failed. Metadata that are looked for at several places may be missing at one of them."""
    if exchange.kind == "oauth":
        if exchange.step in ("resource-metadata", "server-metadata", "client-metadata", None) and exchange.status is not None:
            return False
        return exchange.outcome in ("error", "broken") or exchange.error_message is not None
    if exchange.kind == "preflight":
        return exchange.outcome in ("error", "broken") or bool(comment.lacking(exchange))
    return exchange.outcome in ("error", "broken") and exchange.kind == "mcp"


def key(failure: Failure) -> tuple[str, ...]:
    """What two failures have in common that were told in the same words."""
    words = _CHANGING.sub("0", failure.words)
    return (failure.input, failure.endpoint, failure.method, failure.outcome, words, failure.foreseen)


def _foreseen(exchange: Exchange) -> str:
    conversation = exchange.conversation
    if conversation is not None and conversation.status == "complete" and conversation.rounds[-1:] != [exchange.flow]:
        if any(link.by == "negotiation" and link.earlier == exchange.flow for link in conversation.links):
            return "a probe, answered by a working fallback"
        if any(link.earlier == exchange.flow for link in conversation.links):
            return "the client tried again and succeeded"
    if exchange.status == 401 and _answered(exchange):
        return "a challenge, answered by a token"
    if exchange.status == 405 and exchange.http_method in ("GET", "DELETE"):
        return f"the server does not offer {exchange.http_method}"
    return ""


def _answered(exchange: Exchange) -> bool:
    """Whether a token was let in after a request without one was refused."""
    for flow in exchange.endpoint.facts.get(AUTHORIZATION_FLOWS) or ():
        if any(step.flow == exchange.flow for step in flow.steps):
            return flow.tokens > 0 and not flow.reopened
    tokens = exchange.endpoint.facts.get(TOKENS) or {}
    return not exchange.auth and any(token.accepted for token in tokens.values())
