"""OAU: what a server says when it refuses: the challenges of 401 and 403, and refusals for lack of scope."""

import re
from collections.abc import Iterator

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.authorization import urls
from mcp_wiretap.trace.authorization.steps import STEP, TOOL_ERROR
from mcp_wiretap.trace.model import Exchange
from mcp_wiretap_rules import sites
from mcp_wiretap_rules.oauth import (
    AUTH,
    DISCOVERY,
    LATE,
    MCP,
    NEWEST,
    RESOURCES,
    holds,
    holds_for,
    sent_challenge,
    short,
    step_of,
)

MOST_REFUSALS = 3


@rule(
    "OAU001",
    "401-without-challenge",
    "401 lacks usable WWW-Authenticate",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{DISCOVERY}#protected-resource-metadata-discovery-requirements",
    sep="985",
    versions=RESOURCES,
    always=True,
    kinds=MCP,
    needs=(STEP,),
    transport=("http",),
)
def challenge_missing(exchange: Exchange) -> Iterator[Finding]:
    """A server that answers 401 says in WWW-Authenticate where its resource metadata are, or serves them at the well-known place
    that is made from its URL. In 2025-06-18 only the header will do.

    Why: without either a client cannot find the authorization server, and the user sees nothing but a refusal.

    Fix: send `WWW-Authenticate: Bearer resource_metadata="https://.../.well-known/oauth-protected-resource/..."`.

    Wrong::

        modern tools/list
          -> 401

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="read"
    """
    step = step_of(exchange, "challenge")
    if step is None or step.challenge is None or exchange.status != 401:
        return
    challenge = step.challenge
    if urls.split(challenge.metadata_url) is not None or not holds_for(exchange, challenge, RESOURCES):
        return
    if challenge.given is None:
        what = (
            "no WWW-Authenticate" if not challenge.schemes else f"only {short(', '.join(challenge.schemes))} in WWW-Authenticate"
        )
    elif challenge.metadata_url is None:
        what = "no resource_metadata in WWW-Authenticate"
    else:
        what = f"resource_metadata is no URL: {short(challenge.metadata_url)}"
    failed = challenge.probes_failed
    if failed:
        what += ", and the well-known places of the metadata give none either"
    if not exchange.auth:
        what += "; the request sent no Authorization (are static headers expected?)" if failed else ""
    strict = failed or challenge.revision == "2025-06-18"
    yield Finding(
        f"HTTP 401 with {what}",
        [evidence("response.header:WWW-Authenticate", sent_challenge(exchange), "Bearer with resource_metadata")],
        severity=None if strict else "info",
        once="strict" if strict else "mild",
    )


@rule(
    "OAU002",
    "challenge-scope",
    "Challenge without scope",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{AUTH}#scope-selection-strategy",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=MCP,
    needs=(STEP,),
    transport=("http",),
)
def challenge_scope(exchange: Exchange) -> Iterator[Finding]:
    """A challenge names the scopes that the request needs. `offline_access` is not among them: a refresh token is no
    need of the resource.

    Why: a client that is told nothing asks for all scopes there are; one that is told offline_access asks for too long a life.

    Fix: add `scope="..."` with what this operation needs, without offline_access.

    Wrong::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="read offline_access"

    Right::

        modern tools/list
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp", scope="read"
    """
    step = step_of(exchange, "challenge")
    if step is None or step.challenge is None or step.challenge.given is None:
        return
    challenge = step.challenge
    if not holds_for(exchange, challenge, LATE):
        return
    where, scopes = "response.header:WWW-Authenticate", challenge.scopes
    if scopes is None:
        if exchange.status == 401 or challenge.error != "insufficient_scope":  # else OAU022
            message = "the challenge does not say which scopes the request needs"
            yield Finding(message, [evidence(where, sent_challenge(exchange), 'scope="..."')], severity="info", once="none")
    elif "offline_access" in scopes and holds_for(exchange, challenge, NEWEST):
        yield Finding(
            "the challenge asks for offline_access",
            [evidence(where, sent_challenge(exchange), "no offline_access")],
            once="offline",
        )


@rule(
    "OAU021",
    "step-up-loop",
    "Endless step-up",
    on="exchange",
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{AUTH}#step-up-authorization-flow",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=MCP,
    needs=(STEP,),
    transport=("http",),
)
def step_up_loop(exchange: Exchange) -> Iterator[Finding]:
    """A client gives up after a few step-ups for the same operation.

    Why: the user is sent to the login page again and again, for nothing.

    Fix: count the attempts for each resource and operation, and report a lasting refusal.

    Wrong::

        modern tools/call {"name": "write"}
          client one
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s1&scope=write&code_challenge=C1&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302 text/html
          -> header Location: http://127.0.0.1:9/cb?code=k1&state=s1
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k1&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "two", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client two
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s2&scope=write&code_challenge=C2&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=k2&state=s2
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k2&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "three", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client three
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s3&scope=write&code_challenge=C3&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=k3&state=s3
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k3&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "four", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client four
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s4&scope=write&code_challenge=C4&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
          -> header Location: http://127.0.0.1:9/cb?code=k4&state=s4
        POST https://auth.example/token
          header Content-Type: application/x-www-form-urlencoded
          body grant_type=authorization_code&code=k4&client_id=c&resource=http://server.example/mcp&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk
          -> 200 application/json {"access_token": "five", "token_type": "Bearer"}
        modern tools/call {"name": "write"}
          client five
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"

    Right::

        modern tools/call {"name": "write"}
          client one
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write"
        GET https://auth.example/authorize?response_type=code&client_id=c&state=s1&scope=write&code_challenge=C1&code_challenge_method=S256&resource=http://server.example/mcp
          -> 302
    """
    step = step_of(exchange, "challenge")
    if step is None or step.challenge is None or step.challenge.cycle <= MOST_REFUSALS or not holds(step, LATE):
        return
    yield Finding(
        f"refused for its scope the {_ordinal(step.challenge.cycle)} time, each time after another authorization",
        [evidence("response.header:WWW-Authenticate", sent_challenge(exchange), "the client gives up")],
    )


def _ordinal(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")


@rule(
    "OAU022",
    "insufficient-scope-shape",
    "Refusal for lack of scope incomplete",
    on="exchange",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{AUTH}#runtime-insufficient-scope-errors",
    sep="2350",
    versions=LATE,
    always=True,
    kinds=MCP,
    needs=(STEP, TOOL_ERROR),
    transport=("http",),
)
def insufficient_scope(exchange: Exchange) -> Iterator[Finding]:
    """A 403 for lack of scope has `WWW-Authenticate: Bearer` with `error="insufficient_scope"`, the scopes that are needed, and
    resource_metadata. A tool that says in its result that a scope is missing is but a note.

    Why: without the scopes a client does not know what to ask for, and the user gets a dead end.

    Fix: send all scopes that the operation needs in one challenge.

    Wrong::

        modern tools/call {"name": "write"}
          client alice
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope"

    Right::

        modern tools/call {"name": "write"}
          client alice
          -> 403
          -> header WWW-Authenticate: Bearer error="insufficient_scope", scope="write", resource_metadata="http://server.example/.well-known/oauth-protected-resource/mcp"
    """
    if TOOL_ERROR in exchange.facts:
        yield from _told_in_text(exchange)
        return
    step = step_of(exchange, "challenge")
    if step is None or step.challenge is None or exchange.status != 403 or step.challenge.given is None:
        return
    challenge = step.challenge
    if not holds_for(exchange, challenge, LATE):
        return
    where, sent = "response.header:WWW-Authenticate", sent_challenge(exchange)
    if challenge.error is None:
        yield Finding(
            "the 403 has a challenge without error", [evidence(where, sent, 'error="insufficient_scope"')], severity="info"
        )
    elif challenge.error == "insufficient_scope":
        if not challenge.scopes:
            message = "the refusal for lack of scope does not say which scope is needed"
            yield Finding(message, [evidence(where, sent, 'scope="..."')])
        elif challenge.metadata_url is None:
            message = "the refusal for lack of scope has no resource_metadata"
            yield Finding(message, [evidence(where, sent, 'resource_metadata="..."')], severity="info")


_LACKS_SCOPE = re.compile(
    r"insufficient[_ -]scopes?|\b(?:missing|lacks?|requires?|needs?)\b.{0,60}\bscopes?\b|\bscopes?\b.{0,60}\b(?:missing|required)\b",
    re.I | re.S,
)


def _told_in_text(exchange: Exchange) -> Iterator[Finding]:
    """A tool that says in words that a scope is missing: no client can ask for that one."""
    message = exchange.answer
    content = message.result.get("content") if message is not None else None
    if message is None or exchange.revision not in LATE:
        return
    for index, block in enumerate(content[:5] if isinstance(content, list) else ()):
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and (found := _LACKS_SCOPE.search(text[:1_000])) is not None:
            yield Finding(
                "a tool says in its result that a scope is missing",
                [evidence(message.place("result", "content", index, "text"), found[0], "HTTP 403 with insufficient_scope")],
                severity="info",
            )
            return


@rule(
    "OAU040",
    "challenge-names-another-origin",
    "Challenge names metadata at another origin",
    on="exchange",
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec="RFC 9728 section 5.1",
    versions=RESOURCES,
    once="endpoint",
    always=True,
    kinds=MCP,
    needs=(STEP,),
    transport=("http",),
)
def challenge_names_another_origin(exchange: Exchange) -> Iterator[Finding]:
    """`resource_metadata` of a challenge is a URL at the origin that the client called: the public one, not the one behind a gateway.

    Why: the client cannot reach that place, or must not trust it: the metadata would be those of another resource.

    Fix: tell the server its public URL, or let it read X-Forwarded-Proto and X-Forwarded-Host of the gateway.

    Wrong::

        modern tools/list
          path https://mcp.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:8080/.well-known/oauth-protected-resource/mcp", scope="a"

    Right::

        modern tools/list
          path https://mcp.example/mcp
          -> 401
          -> header WWW-Authenticate: Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp", scope="a"
    """
    step = step_of(exchange, "challenge")
    named = urls.split(step.challenge.metadata_url) if step is not None and step.challenge is not None else None
    own = urls.split(exchange.url)
    if named is None or own is None or exchange.reverse:  # else what clients call the server is not known
        return
    public = urls.split(f"{own.scheme}://{exchange.authority}/") if exchange.authority else None
    if named.origin in (own.origin, public.origin if public is not None else ""):
        return
    downgraded = named.scheme == "http" and own.scheme == "https"
    if not downgraded and not (sites.is_private(named.host) and named.host != own.host):
        return  # the metadata may stand anywhere that the client can reach
    yield Finding(
        f"resource_metadata of the challenge is at another origin ({short(named.origin)})",
        [evidence("response.header:WWW-Authenticate", sent_challenge(exchange), f"a URL at {short(own.origin)}")],
    )
