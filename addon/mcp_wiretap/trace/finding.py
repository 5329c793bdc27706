"""A rule broken by a named party, with evidence. The vocabulary is docs/architecture.md's; `mcp_wiretap.rule` re-exports it."""

from dataclasses import dataclass, field
from typing import Literal

type Party = Literal["client", "server"]
type Severity = Literal["error", "warning", "info"]

RANK: dict[str, int] = {"error": 3, "warning": 2, "info": 1}


@dataclass(slots=True)
class Evidence:
    """One place on the wire. `where` is `request.header:Mcp-Name`, `request.body:/params/name`, `response.status`,
    `response.event[3]:/params/...` (dispatched SSE events counted from 0). Values are masked and short already."""

    where: str
    value: str
    expected: str | None = None


@dataclass(slots=True)
class Finding:
    """A rule yields it with what it knows: a message, evidence, and severity or party where the check text lowers or
    decides them. The judge fills in the rest (rule, severity, party, flow, spec)."""

    message: str
    evidence: list[Evidence] = field(default_factory=list)
    severity: Severity | None = None
    party: Party | None = None
    related: tuple[str, ...] = ()
    once: str | None = None  # only the first finding of the rule with this word is reported for each endpoint
    rule: str = ""
    flow: str = ""
    spec: str = ""


@dataclass(slots=True, frozen=True)
class Silence:
    """The user's word that a rule is not to be reported for an endpoint ("" or "*": all). Counted, never silent."""

    rule: str
    endpoint: str
    reason: str
    source: str = ""  # the project file that says so, where it is of a directory above

    @property
    def told(self) -> str:
        """The reason, and where it stands if not where one would look."""
        return f"{self.reason} ({self.source})" if self.source else self.reason


@dataclass(slots=True, frozen=True)
class Unchecked:
    """Something that could not be judged, and why: silence is not a pass."""

    what: str
    why: str
