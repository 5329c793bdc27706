"""Single requests and answers of authorization read: what a request is, by its shape alone, and what stands in it."""

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

from mcp_wiretap.trace.authorization import urls
from mcp_wiretap.trace.authorization.documents import LONGEST, read_client
from mcp_wiretap.trace.authorization.steps import Ask, Redirect, Registration, Secrets, StepKind, Token, TokenCall
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.wire import form as forms
from mcp_wiretap.wire import jose
from mcp_wiretap.wire.secret import mask, one_line

_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
_SECRET = frozenset(
    {
        "code",
        "state",
        "code_verifier",
        "client_secret",
        "refresh_token",
        "access_token",
        "id_token",
        "assertion",
        "client_assertion",
        "subject_token",
        "actor_token",
        "token",
        "device_code",
        "password",
    }
)
NO_FORM = forms.Form({})


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def auth_of(header: str) -> str:
    """An Authorization value as `Exchange.auth` names it."""
    return hashlib.sha256(header.encode("latin-1", "replace")).hexdigest()[:8]


def read_token(value: str) -> Token:
    ath = jose.encode(hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest())
    return Token(digest(value), mask(value), len(value), ath, jwt=jose.read(value))


def form_of(exchange: Exchange) -> forms.Form:
    """The parameters of a request: its form body, else its query."""
    if exchange.form is not None:
        return forms.read(exchange.form)
    return forms.read(exchange.query) if exchange.query else NO_FORM


def object_of(exchange: Exchange) -> dict[str, Any] | None:
    """The JSON object that a request carries, where it is no JSON-RPC."""
    reading = exchange.reading
    value = reading.value if reading is not None and reading.kind == "not-rpc" else None
    return value if isinstance(value, dict) else None


def answer_of(exchange: Exchange) -> dict[str, Any] | None:
    """The JSON object of a response, where it is no JSON-RPC."""
    reading = exchange.answer_reading
    value = reading.value if reading is not None and reading.kind == "not-rpc" else None
    return value if isinstance(value, dict) else None


def shape(exchange: Exchange) -> StepKind | None:
    """What a request looks like by itself. Cheap: it is asked of all traffic that is not known to be MCP."""
    method, query = exchange.http_method, exchange.query
    if "/.well-known/" in exchange.url and method in ("GET", "HEAD"):
        return urls.well_known(exchange.url)
    if exchange.form is not None:
        if b"grant_type=" in exchange.form:
            return "token"
        return "authorize" if b"client_id=" in exchange.form and b"response_type=" in exchange.form else None
    if method == "GET":
        asks = "client_id=" in query and ("response_type=" in query or "code_challenge=" in query or "request_uri=" in query)
        return "authorize" if asks else None
    if method == "POST":
        sent = object_of(exchange)
        if sent is not None and isinstance(sent.get("redirect_uris"), list):
            return "registration"
    return None


def read_ask(exchange: Exchange, form: forms.Form) -> Ask:
    scope = form.get("scope")
    return Ask(
        exchange.flow,
        exchange.started,
        exchange.url,
        form.get("response_type"),
        cut(form.get("client_id")),
        cut(form.get("redirect_uri")),
        None if scope is None else tuple(scope.split()[:200]),
        tuple(r[:LONGEST] for r in form.all("resource")[:20]),
        cut(form.get("code_challenge")),
        cut(form.get("code_challenge_method")),
        form.has("state"),
        form.has("request_uri") or form.has("request"),
    )


def read_call(exchange: Exchange, form: forms.Form) -> tuple[TokenCall, Secrets]:
    scope = form.get("scope")
    auth_method, client_id = client_auth(exchange, form)
    call = TokenCall(
        (form.get("grant_type") or "")[:200],
        cut(client_id),
        auth_method,
        None if scope is None else tuple(scope.split()[:200]),
        tuple(r[:LONGEST] for r in form.all("resource")[:20]),
        cut(form.get("redirect_uri")),
        dpop=exchange.request_fields.has("dpop"),
    )
    secrets = Secrets()
    if (code := form.get("code")) is not None:
        secrets.code = digest(code)
    if (refresh := form.get("refresh_token")) is not None:
        secrets.refresh = digest(refresh)
    if (verifier := form.get("code_verifier")) is not None:
        secrets.verifier = True
        hashed = hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest()
        kept = exchange.redacted.get("challenge")
        secrets.challenge = kept if isinstance(kept, str) else jose.encode(hashed)
        if not _VERIFIER.fullmatch(verifier):
            fits = 43 <= len(verifier) <= 128
            call.verifier_form = "has characters that a verifier may not have" if fits else f"has {len(verifier)} characters"
    assertion = form.get("assertion") or form.get("client_assertion")
    if assertion is not None:
        call.has_assertion, call.assertion, secrets.assertion = True, jose.read(assertion), digest(assertion)
        call.assertion_typed = form.has("client_assertion_type") or form.has("assertion")
        kind = (form.get("grant_type") if form.has("assertion") else form.get("client_assertion_type")) or ""
        call.saml = kind.endswith(":saml2-bearer")
    return call, secrets


def client_auth(exchange: Exchange, form: forms.Form) -> tuple[str, str | None]:
    """How the client shows who it is at the token endpoint (names of RFC 7591), and the client id."""
    client_id = form.get("client_id")
    header = exchange.request_fields.first("authorization")
    if header is not None and header[:6].lower() == "basic ":
        user = (jose.decode(header[6:].strip().rstrip("=").replace("+", "-").replace("/", "_")) or b"").decode("utf-8", "replace")
        return "client_secret_basic", unquote_plus(user.partition(":")[0]) or client_id
    assertion = form.get("client_assertion")
    if assertion is not None:
        token = jose.read(assertion)
        symmetric = token is not None and str(token.header.get("alg", "")).startswith("HS")
        subject = token.text("sub") if token is not None else None
        return ("client_secret_jwt" if symmetric else "private_key_jwt"), client_id or subject
    return ("client_secret_post" if form.has("client_secret") else "none"), client_id


def read_registration(exchange: Exchange) -> Registration:
    return Registration(exchange.flow, exchange.started, read_client(object_of(exchange)))


def read_redirect(exchange: Exchange) -> tuple[Redirect, forms.Form] | None:
    """The authorization response that a redirect carries back to the client; None where it carries none."""
    fields = exchange.response_fields
    location = fields.first("location") if fields is not None else None
    if location is None or len(location) > forms.LONGEST:
        return None
    target, mark, rest = location.partition("?")
    query, _, fragment = rest.partition("#")
    if not mark and "#" in target:
        target, _, fragment = target.partition("#")
    form = forms.read(query or fragment)
    if not form.has("code") and not form.has("error"):
        return None
    redirect = Redirect(
        exchange.flow,
        exchange.ended or exchange.requested,
        target[:LONGEST],
        form.has("code"),
        form.get("iss"),
        None,
        cut(form.get("error")),
    )
    return redirect, form


def cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= LONGEST else value[:LONGEST]


def shown_form(form: forms.Form) -> dict[str, str]:
    """Parameters as they may be shown."""
    return {one_line(name, 60): shown(name, form.get(name) or "") for name in list(form)[:30]}


def shown(name: str, value: str) -> str:
    return mask(value) if name in _SECRET and value else one_line(value, 300)


@dataclass(slots=True)
class Shown:
    """Members of a JSON document as they may be shown."""

    members: dict[str, str] = field(default_factory=dict)

    def add(self, value: dict[str, Any], names: tuple[str, ...]) -> "Shown":
        for name in names:
            found = value.get(name)
            if isinstance(found, str):
                self.members[name] = shown(name, found)
            elif isinstance(found, list):
                self.members[name] = one_line(" ".join(str(v)[:300] for v in found[:20]), 300)
            elif isinstance(found, bool | int | float):
                self.members[name] = str(found).lower() if isinstance(found, bool) else str(found)[:40]
        return self
