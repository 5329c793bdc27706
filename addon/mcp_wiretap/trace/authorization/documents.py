"""What servers and clients publish for authorization, read from their JSON: metadata of a protected resource, of an authorization
server, of a client. Only what is asked for later is kept, and each text is bounded.

Spec: RFC 9728 section 2, RFC 8414 section 2, RFC 7591 sections 2 and 3.2, Client ID Metadata Documents.
"""

from dataclasses import dataclass, field
from typing import Any

LONGEST = 2_000  # characters of one text
MOST = 100  # items of one list
ROLES = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "registration_endpoint": "registration",
    "revocation_endpoint": "revocation",
    "pushed_authorization_request_endpoint": "pushed",
}
# Endpoints that need not be served for authorization, but must be served over TLS like the rest.
FURTHER = ("introspection_endpoint", "device_authorization_endpoint", "userinfo_endpoint", "jwks_uri")


@dataclass(slots=True, eq=False)
class ResourceMetadata:
    """A request for the metadata of a protected resource, and the document where there was one."""

    url: str  # as `Exchange.url`
    form: str  # named (by the challenge), path, root, other
    read: bool = False  # HTTP 200 with a JSON object
    resource: str | None = None
    servers: tuple[str, ...] = ()
    scopes: tuple[str, ...] | None = None
    relation: str = ""  # of `resource` to the endpoint (urls.Relation); "" where it is not known
    origin_known: bool = True  # False: a reverse proxy recorded it, and what clients call the server is not known
    named: str | None = None  # what the challenge before it names
    named_before: bool = False  # that was asked for already
    path_form: str | None = None  # where the metadata of an endpoint with a path are looked for first
    path_before: bool = False  # there they were asked for already
    challenged: bool = False  # it follows a challenge of the same client


@dataclass(slots=True, eq=False)
class ServerMetadata:
    """A request for the metadata of an authorization server, and the document where there was one."""

    url: str
    identifier: str  # the issuer that the URL was made from
    listed: bool  # that issuer stands in metadata of the resource
    index: int | None = None  # place of this form in the order; None: it is none of the forms
    skipped: tuple[str, ...] = ()  # earlier forms that nobody had asked for
    needless: str = ""  # an earlier form that had given a document to this client
    read: bool = False
    issuer: str | None = None
    alternatives: tuple[str, ...] = ()  # other issuers that the resource lists
    endpoints: dict[str, str] = field(default_factory=dict)  # member -> URL
    challenge_methods: tuple[str, ...] | None = None  # None: the member is absent
    scopes: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] | None = None
    iss_supported: bool = False
    cimd_supported: bool = False

    @property
    def right_issuer(self) -> bool:
        return self.issuer == self.identifier or self.issuer in self.alternatives


@dataclass(slots=True, eq=False)
class ClientMetadata:
    """What a client says of itself, or a server of a client; None for what is absent."""

    client_id: str | None = None
    client_name: str | None = None
    redirect_uris: tuple[str, ...] | None = None
    grant_types: tuple[str, ...] | None = None
    auth_method: str | None = None
    application_type: str | None = None
    has_secret: bool = False


def read_resource(found: ResourceMetadata, value: dict[str, Any]) -> None:
    found.read = True
    found.resource = text(value.get("resource"))
    found.servers = texts(value.get("authorization_servers")) or ()
    found.scopes = texts(value.get("scopes_supported"))


def read_server(found: ServerMetadata, value: dict[str, Any]) -> None:
    found.read = True
    found.issuer = text(value.get("issuer"))
    for name in (*ROLES, *FURTHER):
        url = text(value.get(name))
        if url is not None:
            found.endpoints[name] = url
    found.challenge_methods = texts(value.get("code_challenge_methods_supported"))
    found.scopes = texts(value.get("scopes_supported"))
    found.auth_methods = texts(value.get("token_endpoint_auth_methods_supported"))
    found.iss_supported = value.get("authorization_response_iss_parameter_supported") is True
    found.cimd_supported = value.get("client_id_metadata_document_supported") is True


def read_client(value: Any) -> ClientMetadata:
    if not isinstance(value, dict):
        return ClientMetadata()
    return ClientMetadata(
        text(value.get("client_id")),
        text(value.get("client_name")),
        texts(value.get("redirect_uris")),
        texts(value.get("grant_types")),
        text(value.get("token_endpoint_auth_method")),
        text(value.get("application_type")),
        isinstance(value.get("client_secret"), str),
    )


def text(value: Any) -> str | None:
    return value[:LONGEST] if isinstance(value, str) else None


def texts(value: Any) -> tuple[str, ...] | None:
    """The strings of a list; None where it is no list."""
    if not isinstance(value, list):
        return None
    return tuple(v[:LONGEST] for v in value[:MOST] if isinstance(v, str))
