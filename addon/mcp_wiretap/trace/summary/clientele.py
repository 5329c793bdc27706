"""Who talks to an endpoint: each client by the name it gives itself and its Authorization, and what it declared last.

In `endpoint.facts[CLIENTELE]`, bounded. HTTP does not name clients, so two copies of one program are one here.
"""

from dataclasses import dataclass, field
from typing import Any

from mcp_wiretap.trace.facts import EndpointFact
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.tracker import Tracker
from mcp_wiretap.wire.secret import one_line

MOST = 100  # clients of one endpoint
EXTENSIONS = 50
SMALL = 4_096  # bytes of a request whose capabilities are remembered as they came


@dataclass(slots=True)
class Who:
    """One client of an endpoint."""

    name: str
    version: str
    auth: str  # first 8 hex digits of SHA-256 of its Authorization
    flow: str
    at: float
    exchanges: int = 0
    agent: str = ""  # User-Agent
    revisions: dict[str, None] = field(default_factory=dict)
    capabilities: list[str] = field(default_factory=list)  # leaves, as words
    extensions: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, Any] | None = None  # what it declared last: it says the same with each request

    @property
    def key(self) -> str:
        return client_key((self.name, self.version), self.auth)


CLIENTELE: EndpointFact[dict[tuple[tuple[str, str], str], Who]] = EndpointFact("who", "the clients seen at this endpoint")


class Clientele(Tracker):
    name = "who"

    def requested(self, exchange: Exchange) -> None:
        if exchange.kind != "mcp" or exchange.client_info is None:
            return
        table: dict[tuple[tuple[str, str], str], Who] = exchange.endpoint.facts.setdefault(CLIENTELE, {})
        key = (exchange.client_info, exchange.auth)
        who = table.get(key)
        if who is None:
            if len(table) >= MOST:
                return
            name, version = exchange.client_info
            who = table[key] = Who(one_line(name, 100), one_line(version, 50), exchange.auth, exchange.flow, exchange.started)
            who.agent = one_line(exchange.request_fields.first("user-agent") or "", 200)
        who.exchanges += 1
        revision = exchange.claim.revision or (exchange.session.revision if exchange.session is not None else None)
        if revision is not None and len(who.revisions) < 10:
            who.revisions.setdefault(one_line(revision, 40))
        request = exchange.request
        declared: Any = exchange.capabilities
        if request is not None and request.method == "initialize":
            declared = request.params.get("capabilities")
        if isinstance(declared, dict) and declared and declared != who.declared:
            self._declared(who, declared)
            who.declared = declared if exchange.reading is not None and exchange.reading.size <= SMALL else None

    @staticmethod
    def _declared(who: Who, declared: dict[str, Any]) -> None:
        who.capabilities = leaves({k: v for k, v in declared.items() if k not in ("extensions", "experimental")})
        extensions = declared.get("extensions")
        if isinstance(extensions, dict):
            who.extensions = {one_line(str(k), 200): None for k in list(extensions)[:EXTENSIONS]}


def client_key(info: tuple[str, str] | None, auth: str) -> str:
    """A client in one word, as filters name it: `labclient/0.9#4ffafd97`."""
    if info is None:
        return f"#{auth}" if auth else ""
    name, version = one_line(info[0], 100), one_line(info[1], 50)
    return f"{name}/{version}" + (f"#{auth}" if auth else "")


def leaves(value: dict[str, Any], prefix: str = "", depth: int = 0) -> list[str]:
    """`elicitation.form`, `roots.listChanged`: what a capabilities object has on; a member without any on in it is on itself."""
    found: list[str] = []
    for name, inner in list(value.items())[:40]:
        path = one_line(f"{prefix}{name}", 120)
        if isinstance(inner, dict) and inner and depth < 2:
            found += leaves(inner, f"{path}.", depth + 1) or [path]
        elif inner is not False and inner is not None:
            found.append(path)
        if len(found) >= 60:
            break
    return found
