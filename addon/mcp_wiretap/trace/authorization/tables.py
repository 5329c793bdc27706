"""What links the steps of authorization to each other and to MCP endpoints, over a whole trace.

Each table is bounded; those used last stay. Codes, tokens and states are keyed by digest. A code, a state, a verifier, a refresh
token or a client id is unique within its issuer only (RFC 6749 section 4.1.3): those tables keep all that may be meant.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcp_wiretap.trace.authorization import urls
from mcp_wiretap.trace.authorization.documents import ServerMetadata
from mcp_wiretap.trace.authorization.sites import Site
from mcp_wiretap.trace.authorization.steps import AuthorizationFlow, RefreshUse, Registration, Server, Step, Token
from mcp_wiretap.trace.memory.recent import Recent

MOST = 2_000  # entries of each table, about 200 bytes each
TOKENS = 5_000
SERVERS = 500


EACH = 100  # candidates of one key: a test server may give each client the same code


def _table[K, V](most: int = MOST) -> "Recent[K, V]":
    return Recent(most)


class Candidates[K, V]:
    """For each key all that may be meant by it, newest last; at most `most` values in all."""

    __slots__ = ("_count", "_entries", "_most")

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._count = 0
        self._entries: Recent[K, list[V]] = Recent(most)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def of(self, key: K) -> list[V]:
        return self._entries.get(key) or []

    def add(self, key: K, value: V) -> None:
        before = self.of(key)
        after = [*(v for v in before if v is not value), value][-EACH:]
        self._count += len(after) - len(before) - sum(len(gone) for gone in self._entries.put(key, after))
        while self._count > self._most:
            self._count -= len(self._entries.pop_oldest())


@dataclass(slots=True)
class Tables:
    sites: OrderedDict[str, Site] = field(default_factory=OrderedDict)  # by the URL of the MCP endpoint
    at: Recent[str, list[Site]] = field(default_factory=_table)  # by origin
    named: Recent[str, Site] = field(default_factory=_table)  # URLs of resource metadata that challenges name
    resources: Recent[str, Site] = field(default_factory=_table)  # resource identifiers, canonical
    servers: Recent[str, Server] = field(default_factory=lambda: Recent(SERVERS))  # by issuer identifier
    forms: Recent[str, tuple[Server, int]] = field(default_factory=_table)  # places of server metadata
    server_at: Recent[str, Server] = field(default_factory=_table)  # by origin of a listed issuer
    roles: Recent[str, tuple[str, Server, ServerMetadata]] = field(default_factory=_table)  # endpoints that metadata name
    asks: Candidates[str, Step] = field(default_factory=Candidates)  # by code_challenge
    states: Candidates[bytes, Step] = field(default_factory=Candidates)
    codes: Candidates[bytes, Step] = field(default_factory=Candidates)
    next: Recent[str, Step] = field(default_factory=_table)  # where redirects on the way lead to
    callbacks: Candidates[str, Step] = field(default_factory=Candidates)  # redirect URIs
    documents: Recent[str, Step] = field(default_factory=_table)  # client ids that are URLs
    refresh: Candidates[bytes, Step] = field(default_factory=Candidates)  # token steps that brought a refresh token
    refreshes: Recent[tuple[str, str, bytes], RefreshUse] = field(
        default_factory=_table
    )  # token endpoint, client id, refresh token
    rejected: Recent[tuple[str, bytes], str] = field(default_factory=_table)  # token endpoint, refused assertion -> flow
    waiting: Recent[tuple[str, str], list[Step]] = field(default_factory=_table)  # by client id and redirect_uri: newest requests
    identities: Candidates[bytes, Step] = field(default_factory=Candidates)  # token exchanges that gave an identity assertion
    nonces: Recent[tuple[str, str], str] = field(
        default_factory=_table
    )  # token endpoint, client id -> flow that asked for a nonce
    grants: Recent[tuple[str, str], tuple[str, str, float]] = field(
        default_factory=_table
    )  # refused assertions: grant, flow, when
    clients: Candidates[str, AuthorizationFlow] = field(default_factory=Candidates)  # flows of a client id
    registered: Candidates[str, Registration] = field(default_factory=Candidates)
    tokens: Recent[str, Token] = field(default_factory=lambda: Recent(TOKENS))  # by `Exchange.auth`
    proofs: Recent[tuple[str, bytes], str] = field(default_factory=_table)  # URL, DPoP proof -> flow

    def server(self, identifier: str) -> Server:
        found = self.servers.get(identifier)
        if found is None:
            found = Server(identifier)
            self.servers.put(identifier, found)
        return found

    def resource(self, site: Site, identifier: str | None) -> None:
        """What a site is called; the first one who is called so keeps the name."""
        key = urls.canonical(identifier)
        if key is not None and key not in self.resources:
            self.resources.put(key, site)

    def registration(self, client_id: str, server: Server | None) -> Registration | None:
        """That of a client id: with this server, else the newest. Where servers that were seen gave the same id to several, and
        which of them is meant is not known, none."""
        here = server.clients.get(client_id) if server is not None else None
        if here is not None:
            return here
        given = self.registered.of(client_id)
        issuers = {id(r.server) for r in given if r.server is not None}
        if len(issuers) < 2:
            return given[-1] if given else None
        unknown = [r for r in given if r.server is None]
        return unknown[-1] if unknown and server is not None else None

    def sites_at(self, url: str) -> list[Site]:
        return self.at.get(urls.origin(url) or "") or []

    def sites_of(self, server: Server | None) -> Iterator[Site]:
        """The MCP endpoints that list an authorization server."""
        for url in server.sites if server is not None else ():
            site = self.sites.get(url)
            if site is not None:
                yield site
