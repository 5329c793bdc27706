"""What links the steps of authorization to each other and to MCP endpoints, over a whole trace.

Each table is bounded; entries used last stay. Codes, tokens and states are keyed by digest.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcp_wiretap.trace.authorization import urls
from mcp_wiretap.trace.authorization.documents import ServerMetadata
from mcp_wiretap.trace.authorization.sites import Site
from mcp_wiretap.trace.authorization.steps import AuthorizationFlow, Registration, Server, Step, Token
from mcp_wiretap.trace.memory.recent import Recent

MOST = 2_000  # entries of each table, about 200 bytes each
TOKENS = 5_000
SERVERS = 500


def _table[K, V](most: int = MOST) -> "Recent[K, V]":
    return Recent(most)


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
    asks: Recent[str, Step] = field(default_factory=_table)  # by code_challenge
    states: Recent[bytes, Step] = field(default_factory=_table)
    codes: Recent[bytes, Step] = field(default_factory=_table)
    next: Recent[str, Step] = field(default_factory=_table)  # where redirects on the way lead to
    callbacks: Recent[str, Step] = field(default_factory=_table)  # redirect URIs
    documents: Recent[str, Step] = field(default_factory=_table)  # client ids that are URLs
    refresh: Recent[bytes, Step] = field(default_factory=_table)  # the token step that brought a refresh token
    rejected: Recent[bytes, str] = field(default_factory=_table)  # assertions that were refused
    waiting: Recent[tuple[str, str], list[Step]] = field(default_factory=_table)  # by client id and redirect_uri: newest requests
    identities: Recent[bytes, str] = field(default_factory=_table)  # identity assertions that a token exchange gave
    nonces: Recent[tuple[str, str], str] = field(
        default_factory=_table
    )  # token endpoint, client id -> flow that asked for a nonce
    grants: Recent[tuple[str, str], tuple[str, str, float]] = field(
        default_factory=_table
    )  # refused assertions: grant, flow, when
    clients: Recent[str, AuthorizationFlow] = field(default_factory=_table)  # newest flow of a client id
    registered: Recent[str, Registration] = field(default_factory=_table)
    tokens: Recent[str, Token] = field(default_factory=lambda: Recent(TOKENS))  # by `Exchange.auth`
    proofs: Recent[bytes, str] = field(default_factory=_table)  # DPoP proofs

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
        here = server.clients.get(client_id) if server is not None else None
        return here or self.registered.get(client_id)

    def sites_at(self, url: str) -> list[Site]:
        return self.at.get(urls.origin(url) or "") or []

    def sites_of(self, server: Server | None) -> Iterator[Site]:
        """The MCP endpoints that list an authorization server."""
        for url in server.sites if server is not None else ():
            site = self.sites.get(url)
            if site is not None:
                yield site
