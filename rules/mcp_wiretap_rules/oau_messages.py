"""OAU: the members that OAuth requests and answers must have, whatever the revision of MCP: RFC 6749, RFC 7591, OAuth 2.1."""

from collections.abc import Iterator

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.authorization import reading
from mcp_wiretap.trace.authorization.steps import STEP
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap.trace.schema.fits import kind_of
from mcp_wiretap.wire import form as forms
from mcp_wiretap_rules.oauth import OAUTH, place_of, short, step_of

_CODE_GRANTS = ("authorization_code",)
_OF_THE_BODY = ("code", "code_verifier", "refresh_token", "client_secret", "client_assertion", "assertion", "grant_type")


@rule(
    "OAU042",
    "token-answer-members",
    "Token answer lacks what it must have",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="RFC 6749 section 5.1",
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
)
def token_answer_members(exchange: Exchange) -> Iterator[Finding]:
    """A token answer has `access_token` and `token_type`, both texts; `expires_in`, where it is there, is a number of seconds.

    Why: a client that checks them has no token, or takes one for another kind.

    Fix: answer `{"access_token": "...", "token_type": "Bearer", "expires_in": 3600}`.

    Wrong::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=client_credentials&client_id=c&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t"}

    Right::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=client_credentials&client_id=c&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    step, value = step_of(exchange, "token"), reading.answer_of(exchange)
    if step is None or not step.ok or value is None or "error" in value:
        return
    for name in ("access_token", "token_type"):
        if not isinstance(value.get(name), str) or not value[name]:
            what = f"has {kind_of(value[name])} as {name}" if value.get(name) else f"has no {name}"
            yield Finding(f"the token answer {what}", [evidence(f"response.body:/{name}", value.get(name), "a text")])
    lifetime = value.get("expires_in")
    if "expires_in" in value and (isinstance(lifetime, bool) or not isinstance(lifetime, int | float) or lifetime < 0):
        message = f"expires_in of the token answer is {kind_of(lifetime)}, not a number of seconds"
        if isinstance(lifetime, int | float) and not isinstance(lifetime, bool):
            message = "expires_in of the token answer is negative"
        yield Finding(message, [evidence("response.body:/expires_in", str(lifetime), "a number of seconds")])


@rule(
    "OAU043",
    "token-request-members",
    "Token request lacks what it must have",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="RFC 6749 section 4.1.3",
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
)
def token_request_members(exchange: Exchange) -> Iterator[Finding]:
    """A token request is a form in the body: with `grant_type`, for a code with `code`, and with the client id that asked for it.

    Why: servers refuse it; and what stands in a URL ends up in logs.

    Fix: POST `application/x-www-form-urlencoded`, all parameters in the body.

    Wrong::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&client_id=c&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk&resource=http://server.example/mcp
          -> 400 application/json {"error": "invalid_request"}

    Right::

        modern tools/list
          -> 401
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=abc&client_id=c&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk&resource=http://server.example/mcp
          -> 200 application/json {"access_token": "t", "token_type": "Bearer"}
    """
    step = step_of(exchange, "token")
    if step is None or step.call is None:
        return
    call = step.call
    query = forms.read(exchange.query) if exchange.query else reading.NO_FORM
    misplaced = [name for name in _OF_THE_BODY if query.has(name)]
    if misplaced:
        message = f"the token request has {', '.join(misplaced)} in the URL, not in the body"
        yield Finding(message, [evidence(f"request.query:{misplaced[0]}", "(present)", "in the body")])
    if exchange.form is None:
        if reading.object_of(exchange) is not None:
            sent = exchange.request_fields.first("content-type")
            message = "the token request is JSON, not a form"
            yield Finding(message, [evidence("request.header:Content-Type", sent, "application/x-www-form-urlencoded")])
        return
    if not call.grant:
        yield Finding("the token request has no grant_type", [evidence("request.form:grant_type", None, "authorization_code")])
    if call.grant in _CODE_GRANTS and not forms.read(exchange.form).get("code"):
        yield Finding("the token request has no code", [evidence("request.form:code", None, "the code of the redirect")])
    asked = call.ask.client_id if call.ask is not None else None
    if asked is not None and call.client_id is not None and call.client_id != asked:
        yield Finding(
            f"the code is redeemed by client {short(call.client_id)}, it was asked for by {short(asked)}",
            [evidence("request.form:client_id", call.client_id, asked)],
            related=(call.ask.flow,) if call.ask is not None else (),
        )


@rule(
    "OAU044",
    "authorization-request-members",
    "Authorization request lacks what it must have",
    on="exchange",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="RFC 6749 section 4.1.1",
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
)
def authorization_request_members(exchange: Exchange) -> Iterator[Finding]:
    """An authorization request has `client_id`, and `response_type=code`: OAuth 2.1 has no other.

    Why: a server has to refuse it, or gives a token where everybody sees it.

    Fix: ask for a code.

    Wrong::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=token&client_id=c&state=s&resource=http://server.example/mcp
          -> 302

    Right::

        modern tools/list
          -> 401
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    step = step_of(exchange, "authorize", "pushed")
    if step is None or step.ask is None or step.ask.by_reference:
        return
    ask = step.ask
    if not ask.client_id:
        yield Finding(
            "the authorization request has no client_id", [evidence(place_of(exchange, "client_id"), None, "the client id")]
        )
    if ask.response_type != "code" and "code" not in (ask.response_type or "").split():
        what = f"is {short(ask.response_type)}" if ask.response_type else "is absent"
        yield Finding(f"response_type {what}", [evidence(place_of(exchange, "response_type"), ask.response_type, "code")])


@rule(
    "OAU045",
    "registration-answer-members",
    "Registration answer lacks what it must have",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="RFC 7591 section 3.2.1",
    always=True,
    kinds=OAUTH,
    needs=(STEP,),
)
def registration_answer_members(exchange: Exchange) -> Iterator[Finding]:
    """A registration is answered with HTTP 201 and a `client_id`.

    Why: without the id the client has nothing to go on with; clients that look for 201 take 200 for a failure.

    Fix: answer 201 with `client_id` and what was registered.

    Wrong::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_name": "c"}

    Right::

        modern tools/list
          -> 401
        POST /register
          header Content-Type: application/json
          body {"client_name": "c", "redirect_uris": ["http://127.0.0.1:9/cb"], "application_type": "native"}
          -> 201 application/json {"client_id": "1", "client_name": "c"}
    """
    step, value = step_of(exchange, "registration"), reading.answer_of(exchange)
    if step is None or not step.ok or value is None:
        return
    if not isinstance(value.get("client_id"), str) or not value["client_id"]:
        yield Finding("the registration answer has no client_id", [evidence("response.body:/client_id", None, "a text")])
    elif exchange.status == 200:
        message = "the registration was answered with HTTP 200, not 201"
        yield Finding(message, [evidence("response.status", "200", "201")], severity="warning")
