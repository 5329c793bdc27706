"""ELI: what servers ask of users, models and file systems, and the answers (2026-07-28 client/elicitation, sampling, roots).

The same demands hold for a request of the server (legacy), an input_required answer, a task and error -32042: `inputs` finds
them all.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mcp_wiretap.rule import Finding, Severity, Unchecked, evidence, rule
from mcp_wiretap.trace.model import Message
from mcp_wiretap.trace.schema.fits import check, kind_of
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire import uri
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import mask, one_line
from mcp_wiretap.wire.values import is_integer
from mcp_wiretap_rules import blocks, forms
from mcp_wiretap_rules.inputs import ELICIT, ROOTS, SAMPLE, Ask, Reply, asks, mode, replies, supports

ELICITATION = "2026-07-28 client/elicitation"
_OF_OTHERS = frozenset({"task", "role", "roots"})  # members that make it the answer to something else: MRT017
WITH_ELICITATION = rev.since("2025-06-18")
WITH_URL = rev.since("2025-11-25")
TOOLS_SINCE = "2025-11-25"  # sampling with tools, and with lists of content blocks
MOST = 100


def _revision(message: Message) -> str | None:
    owner = message.request.exchange if message.request is not None else message.exchange
    return owner.revision or message.exchange.revision


def _what(ask: Ask) -> str:
    return f"the input request {one_line(ask.key, 40)}" if ask.key else "the request"


@rule(
    "ELI001",
    "elicit-params",
    "Elicitation request incomplete",
    on=("answer", "push"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{ELICITATION}#elicitation-requests",
    sep="1036",
    versions=WITH_ELICITATION,
    sorts=("asking", "error", "request", "notification"),
)
def elicit_params(message: Message) -> Iterator[Finding]:
    """An elicitation has a message, and by its mode a requestedSchema (form, also where mode is absent) or a url.

    Why: clients build the dialog from these; without them there is nothing to show.

    Fix: `{"message": "...", "requestedSchema": {"type": "object", "properties": {...}}}`, or `{"mode": "url", "message": "...",
    "url": "https://..."}`; in 2025-11-25 with an elicitationId.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"ok": {"method": "elicitation/create", "params": {"message": "Go on?"}}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"ok": {"method": "elicitation/create", "params": {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}}}}
    """
    for ask in asks(message):
        if ask.method == ELICIT:
            for words, name, value, severity in _incomplete(ask, _revision(message)):
                yield Finding(f"{_what(ask)} {words}", [evidence(ask.place(name), value)], severity)


def _incomplete(ask: Ask, revision: str | None) -> Iterator[tuple[str, str, Any, Severity]]:
    params, wanted = ask.params, mode(ask.params)
    if ask.origin != "error" and not isinstance(params.get("message"), str):
        yield "has no message", "message", params.get("message"), "error"
    if revision == "2025-06-18" and "mode" in params:
        yield f"has a mode, which {revision} does not know", "mode", wanted, "error" if wanted == "url" else "info"
    if wanted == "form":
        schema = params.get("requestedSchema")
        if not isinstance(schema, dict):
            yield "has no requestedSchema object", "requestedSchema", schema, "error"
    elif wanted == "url":
        url = params.get("url")
        if not isinstance(url, str) or not _is_url(url):
            yield "has no absolute URL" if url is None else "has a url that is no absolute URL", "url", url, "error"
        if revision == "2025-11-25" and not isinstance(params.get("elicitationId"), str):
            yield "has no elicitationId", "elicitationId", params.get("elicitationId"), "error"
    else:
        shown = "null" if wanted is None else one_line(dumps(wanted, most=60), 40)
        yield f"has the mode {shown}, not form or url", "mode", shown, "error"


def _is_url(url: str) -> bool:
    parts = uri.split(url)
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", url)


@rule(
    "ELI002",
    "elicit-schema-flat",
    "requestedSchema is not a flat object of primitives",
    on=("answer", "push"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{ELICITATION}#requested-schema",
    sep="1330",
    versions=WITH_ELICITATION,
    sorts=("asking", "error", "request", "notification"),
)
def elicit_schema_flat(message: Message) -> Iterator[Finding]:
    """requestedSchema is an object of fields that are strings, numbers, booleans or choices: nothing nested, nothing combined.

    Why: clients draw one form field for each property; a client refuses or misdraws what is more than that.

    Fix: one question for each field. An optional field is left out of `required`; it is not `anyOf` with null.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"ok": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"who": {"type": "object"}}}}}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"ok": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"who": {"type": "string"}}}}}}}
    """
    for ask in asks(message):
        schema = ask.params.get("requestedSchema") if ask.method == ELICIT and mode(ask.params) == "form" else None
        if isinstance(schema, dict):
            for count, flaw in enumerate(forms.flaws(schema, _revision(message))):
                if count == MOST:
                    break
                yield Finding(
                    f"{_what(ask)} has a requestedSchema beyond flat fields: {flaw.words}",
                    [evidence(ask.place("requestedSchema", *flaw.steps), flaw.value)],
                    flaw.severity,
                )


@rule(
    "ELI003",
    "elicit-content-invalid",
    "accept content does not match requestedSchema",
    on=("request", "reply"),
    level="should",
    party="client",
    era="both",
    severity="warning",
    spec=f"{ELICITATION}#response-actions",
    versions=WITH_ELICITATION,
    sorts=("retry", "result", "error"),
)
def elicit_content_invalid(message: Message) -> Iterator[Finding | Unchecked]:
    """An accepted form carries content that fits the requestedSchema; its values are strings, numbers, booleans or lists of
    strings.

    Why: the server takes the content for what it asked for.

    Fix: validate the form before sending: types, required fields, choices, bounds. Leave out optional fields that are empty.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"age": {"type": "integer"}}}}}}}
        modern tools/call {"name": "deploy", "inputResponses": {"who": {"action": "accept", "content": {"age": "four"}}}}
          capabilities {"elicitation": {}}
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"age": {"type": "integer"}}}}}}}
        modern tools/call {"name": "deploy", "inputResponses": {"who": {"action": "accept", "content": {"age": 4}}}}
          capabilities {"elicitation": {}}
          -> result {"content": []}
    """
    problems: list[Finding] = []
    for reply in replies(message):
        value, asked = reply.value, reply.asked
        if reply.method != ELICIT or asked is None or not isinstance(value, dict) or value.get("action") != "accept":
            continue
        schema = asked.get("requestedSchema")
        if mode(asked) != "form" or not isinstance(schema, dict):
            continue
        content = value.get("content")
        if not isinstance(content, dict):
            what = "has no content" if content is None else f"has content that is {kind_of(content)}"
            problems.append(
                Finding(f"{one_line(reply.name, 60)} {what}", [evidence(reply.place("content"), content, "an object")])
            )
            continue
        for found in _against(reply, content, schema):
            if isinstance(found, Unchecked):
                yield found
            else:
                problems.append(found)
    if problems:
        more = len(problems) - _TOLD
        words = "; ".join(found.message for found in problems[:_TOLD]) + (f"; and {more} more" if more > 0 else "")
        yield Finding(words, [place for found in problems[:MOST] for place in found.evidence])


_TOLD = 5  # problems in words; the places of others are in the evidence


def _against(reply: Reply, content: dict[str, Any], schema: dict[str, Any]) -> Iterator[Finding | Unchecked]:
    name = one_line(reply.name, 60)
    verdict = check(schema, content)
    told: set[str] = set()
    for problem in verdict.problems:
        field = one_line(".".join(map(str, problem.path)), 60)
        told.add(str(problem.path[0]) if problem.path else "")
        value: Any = content
        for step in problem.path:
            value = value[step]
        yield Finding(
            f"{name} does not fit the requestedSchema: {field + ' ' if field else ''}{problem.words}",
            [evidence(reply.place("content", *problem.path), "null" if value is None else value)],
        )
    for field, value in list(content.items())[:MOST]:
        plain = isinstance(value, str | int | float) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
        if not plain and not isinstance(value, Decimal) and field not in told:
            yield Finding(
                f"{name} has {kind_of(value)} as {one_line(field, 40)}: only strings, numbers, booleans and lists of strings are allowed",
                [evidence(reply.place("content", field), "null" if value is None else value)],
            )
    if verdict.unchecked:
        yield Unchecked(f"{name} against its requestedSchema", verdict.unchecked)


@rule(
    "ELI004",
    "elicit-action",
    "action not accept/decline/cancel",
    on=("request", "reply"),
    level="must",
    party="client",
    era="both",
    severity="error",
    spec=f"{ELICITATION}#response-actions",
    versions=WITH_ELICITATION,
    sorts=("retry", "result", "error"),
)
def elicit_action(message: Message) -> Iterator[Finding]:
    """The action of an answered elicitation is exactly accept, decline or cancel.

    Why: a server that does not know the action cannot tell consent from refusal.

    Fix: spell one of the three, in lower case.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - ok
        modern tools/call {"name": "deploy", "inputResponses": {"ok": {"action": "accepted", "content": {}}}}
          capabilities {"elicitation": {}}
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - ok
        modern tools/call {"name": "deploy", "inputResponses": {"ok": {"action": "decline"}}}
          capabilities {"elicitation": {}}
          -> result {"content": []}
    """
    for reply in replies(message):
        value = reply.value
        unknown = reply.method is None and isinstance(value, dict) and "action" in value  # what was asked; by its form this
        if not unknown and (reply.method != ELICIT or reply.wrapped):
            continue
        if not isinstance(value, dict):
            if reply.origin != "mrtr":  # MRT017
                yield Finding(f"{one_line(reply.name, 60)} is {kind_of(value)}, not an object", [evidence(reply.place(), value)])
        elif "action" in value or not value.keys() & (_OF_OTHERS if reply.origin == "mrtr" else {"task"}):
            action = value.get("action")
            if action not in ("accept", "decline", "cancel"):
                shown = "no action" if action is None else f"the action {one_line(dumps(action, most=60), 40)}"
                yield Finding(
                    f"{one_line(reply.name, 60)} has {shown}",
                    [evidence(reply.place("action"), action, "accept, decline or cancel")],
                    "info" if unknown else None,
                )


@rule(
    "ELI005",
    "elicit-content-misplaced",
    "content on decline/cancel or url mode",
    on=("request", "reply"),
    level="may-note",
    party="client",
    era="both",
    severity="warning",
    spec=f"{ELICITATION}#response-actions",
    versions=WITH_ELICITATION,
    sorts=("retry", "result", "error"),
)
def elicit_content_misplaced(message: Message) -> Iterator[Finding]:
    """Content belongs to an accepted form: a url elicitation, a decline and a cancel have none.

    Why: what the user entered and then refused to send should not leave the client.

    Fix: leave `content` out.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - ok
        modern tools/call {"name": "deploy", "inputResponses": {"ok": {"action": "decline", "content": {"why": "no"}}}}
          capabilities {"elicitation": {}}
          -> result {"content": []}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> needs - ok
        modern tools/call {"name": "deploy", "inputResponses": {"ok": {"action": "decline"}}}
          capabilities {"elicitation": {}}
          -> result {"content": []}
    """
    for reply in replies(message):
        value = reply.value
        if reply.method != ELICIT or not isinstance(value, dict) or not value.get("content"):
            continue
        action = value.get("action")
        where = [evidence(reply.place("content"), value["content"], "(absent)")]
        if action in ("decline", "cancel"):
            yield Finding(f"{one_line(reply.name, 60)} is {action} and carries content all the same", where, "info")
        elif action == "accept" and reply.asked is not None and mode(reply.asked) == "url":
            yield Finding(f"{one_line(reply.name, 60)} accepts a url and carries content", where)


@rule(
    "ELI006",
    "elicit-secret-in-form",
    "Form asks for credentials",
    on=("answer", "push"),
    level="must",
    party="server",
    era="both",
    severity="warning",
    spec=f"{ELICITATION}#form-mode-security",
    versions=WITH_ELICITATION,
    sorts=("asking", "error", "request", "notification"),
)
def elicit_secret_in_form(message: Message) -> Iterator[Finding]:
    """A form never asks for passwords, keys, tokens or payment data. Found by names and texts: it may be mistaken.

    Why: what is entered into a form passes through the client, and often through a model and its logs.

    Fix: url mode: the user enters the secret on a page of the server.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Sign in", "requestedSchema": {"type": "object", "properties": {"password": {"type": "string"}}}}}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Sign in", "requestedSchema": {"type": "object", "properties": {"username": {"type": "string"}}}}}}}
    """
    for ask in asks(message):
        if ask.method == ELICIT and mode(ask.params) == "form" and (found := forms.secret(ask.params)) is not None:
            steps, said = found
            yield Finding(
                f"{_what(ask)} asks for a secret in a form: {one_line(said, 40)}",
                [evidence(ask.place(*steps), said, "url mode")],
            )


@rule(
    "ELI007",
    "elicit-url-safety",
    "URL elicitation leaks or is insecure",
    on=("answer", "push"),
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{ELICITATION}#safe-url-handling",
    sep="1036",
    versions=WITH_URL,
    sorts=("asking", "error", "request", "notification"),
)
def elicit_url_safety(message: Message) -> Iterator[Finding]:
    """The URL of an elicitation is https, carries no credentials and no personal data, and forms contain no links.

    Why: the client shows the URL, logs it, hands it to a browser; a pre-authenticated link can be used by whoever gets it.

    Fix: a link to a page of the server with an opaque id, behind the user's own session there.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {"url": {}}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "http://example.com/connect"}}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {"url": {}}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/connect?id=4711"}}}}
    """
    for ask in asks(message):
        if ask.method != ELICIT:
            continue
        url = ask.params.get("url")
        if mode(ask.params) == "url" and isinstance(url, str):
            for words, shown, severity in _unsafe(url[:2_000]):
                yield Finding(f"{_what(ask)} has a url {words}", [evidence(ask.place("url"), shown)], severity)
        elif mode(ask.params) == "form" and (found := forms.link(ask.params)) is not None:
            steps, shown = found
            yield Finding(
                f"{_what(ask)} has a link in a text of its form", [evidence(ask.place(*steps), _without_secrets(shown))]
            )


_CREDENTIALS = frozenset(
    {
        "token",
        "access_token",
        "id_token",
        "refresh_token",
        "api_key",
        "apikey",
        "password",
        "passwd",
        "secret",
        "client_secret",
        "jwt",
    }
)
_MAIL = re.compile(r"[A-Za-z0-9._%+-]+(?:@|%40)[A-Za-z0-9-]+\.[A-Za-z]{2,}")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1|.*\.localhost")


def _unsafe(url: str) -> Iterator[tuple[str, str, Severity]]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        query = parse_qsl(parts.query, max_num_fields=100)
    except ValueError:
        return
    shown = _without_secrets(url)
    if parts.scheme == "http" and not _LOOPBACK.fullmatch(host):
        yield "that is not https", shown, "warning"
    if parts.username is not None:
        yield "with user name or password in it", shown, "warning"
    carries = next((name for name, value in query if name.lower() in _CREDENTIALS and value), None)
    if carries is not None:
        yield f"that carries a credential ({one_line(carries, 30)})", shown, "warning"
    rest = url.partition("://")[2].partition("/")[2]
    if _MAIL.search(rest):
        yield "that carries an e-mail address", shown, "warning"
    if any(label.startswith("xn--") for label in host.split(".")):
        yield f"with a Punycode host ({one_line(host, 60)})", shown, "info"


def _without_secrets(url: str) -> str:
    """The URL with what may be secret in it masked."""
    url = re.sub(r"(?<=://)[^/@\s]+@", lambda m: mask(m.group()[:-1]) + "@", url, count=1)
    return re.sub(r"([?&#;]([A-Za-z_]+)=)([^&#;\s]+)", lambda m: m[1] + mask(m[3]) if m[2].lower() in _CREDENTIALS else m[0], url)


@rule(
    "ELI008",
    "elicit-removed-fields",
    "elicitationId / elicitation/complete on modern",
    on=("answer", "push"),
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec="2026-07-28 changelog#minor-changes",
    sorts=("asking", "error", "request", "notification"),
)
def elicit_removed_fields(message: Message) -> Iterator[Finding]:
    """elicitationId and notifications/elicitation/complete belong to 2025-11-25; in 2026-07-28 the client retries instead.

    Why: a modern client does not wait for the notification; a server that relies on it never goes on.

    Fix: tell by requestState, or by what the server stored, whether the user has finished; answer input_required again if not.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {"url": {}}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/c", "elicitationId": "e1"}}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"elicitation": {"url": {}}}
          -> result {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/c"}}}}
    """
    if message.method == "notifications/elicitation/complete":
        yield Finding(
            "notifications/elicitation/complete does not exist in this revision",
            [evidence(message.place("method"), message.method)],
        )
        return
    for ask in asks(message):
        if ask.method == ELICIT and "elicitationId" in ask.params:
            yield Finding(
                f"{_what(ask)} has an elicitationId, which this revision does not have",
                [evidence(ask.place("elicitationId"), ask.params["elicitationId"], "(absent)")],
            )


@rule(
    "ELI009",
    "elicit-mode-undeclared-legacy",
    "Legacy elicitation mode not negotiated",
    on="push",
    level="must",
    party="server",
    era="legacy",
    severity="error",
    spec="2025-11-25 client/elicitation#capabilities",
    versions=("2025-06-18", "2025-11-25"),
)
def elicit_mode_undeclared_legacy(message: Message) -> Iterator[Finding]:
    """A server sends elicitation/create only to a client that declared elicitation in initialize, and only in a mode that it
    declared.

    Why: the client answers with an error, and the call that needed the answer fails.

    Fix: look at the session's client capabilities first. `elicitation: {}` means forms only.

    Wrong::

        legacy initialize {"capabilities": {}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "deploy"}
          -> sse
          -> ask 1 elicitation/create {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
          -> result {"content": []}

    Right::

        legacy initialize {"capabilities": {"elicitation": {}}}
          -> result {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        legacy tools/call {"name": "deploy"}
          -> sse
          -> ask 1 elicitation/create {"message": "Go on?", "requestedSchema": {"type": "object", "properties": {}}}
          -> result {"content": []}
    """
    for ask in asks(message):
        capabilities = ask.capabilities if ask.method == ELICIT else None
        if capabilities is None or _misshapen(capabilities):
            continue
        lacking = supports(capabilities, ELICIT, ask.params)
        if lacking is not None:
            yield Finding(
                f"the server sends an elicitation in {one_line(str(mode(ask.params)), 20)} mode, the client declared no {lacking}",
                [evidence(message.place("method"), ELICIT), evidence(ask.place("mode"), ask.params.get("mode"), lacking)],
            )


def _misshapen(capabilities: dict[str, Any]) -> bool:
    """Whether the client declared elicitation in a shape that says nothing of its modes (MET015)."""
    declared = capabilities.get("elicitation")
    if declared is None:
        return "elicitation" in capabilities
    return not isinstance(declared, dict) or any(not isinstance(declared[m], dict) for m in ("form", "url") if m in declared)


@rule(
    "ELI010",
    "sampling-request-valid",
    "Sampling request malformed",
    on=("answer", "push"),
    level="must",
    party="server",
    era="both",
    severity="error",
    spec="2026-07-28 client/sampling#messages",
    sep="1577",
    sorts=("asking", "error", "request", "notification"),
)
def sampling_request_valid(message: Message) -> Iterator[Finding]:
    """A sampling request has messages of user and assistant and maxTokens; tool uses are answered by the user message that
    follows, which holds nothing but tool results.

    Why: model providers refuse such a conversation, each in its own way.

    Fix: `{"maxTokens": 100, "messages": [{"role": "user", "content": {...}}]}`.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"sampling": {}}
          -> result {"resultType": "input_required", "inputRequests": {"s": {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}}}}

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"sampling": {}}
          -> result {"resultType": "input_required", "inputRequests": {"s": {"method": "sampling/createMessage", "params": {"maxTokens": 9, "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}}}}
    """
    for ask in asks(message):
        if ask.method == SAMPLE:
            for steps, words, value in _malformed(ask, _revision(message)):
                yield Finding(f"{_what(ask)} {words}", [evidence(ask.place(*steps), value)])


def _malformed(ask: Ask, revision: str | None) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    params = ask.params
    tokens = params.get("maxTokens")
    if not is_integer(tokens):
        yield ("maxTokens",), "has no maxTokens" if tokens is None else "has a maxTokens that is no integer", tokens
    known = ask.origin in ("request", "mrtr") and (revision or "") >= TOOLS_SINCE
    capabilities = ask.capabilities if known else None
    if capabilities is not None and supports(capabilities, SAMPLE, params) == "sampling.tools":
        yield (), "offers tools, the client declared no sampling.tools", sorted(params)[:10]
    messages = params.get("messages")
    if not isinstance(messages, list):
        yield ("messages",), "has no messages array", messages
        return
    for index, item in enumerate(messages[:MOST]):
        role = item.get("role") if isinstance(item, dict) else None
        if role not in ("user", "assistant"):
            yield (
                ("messages", index, "role"),
                f"has a message with the role {one_line(dumps(role, most=60), 40)}",
                dumps(role, most=60),
            )
    if revision is None or revision >= TOOLS_SINCE:
        yield from _unbalanced(messages[:MOST])


def _parts(message: Any) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    return [part for part in (content if isinstance(content, list) else [content]) if isinstance(part, dict)]


def _unbalanced(messages: list[Any]) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Tool uses and tool results that do not fit together."""
    pending: list[Any] = []
    for index, message in enumerate(messages):
        parts = _parts(message)
        results = [part for part in parts if part.get("type") == "tool_result"]
        if results and len(results) != len(parts):
            yield (
                ("messages", index, "content"),
                "mixes tool results with other content in one message",
                [p.get("type") for p in parts],
            )
        answered = [part.get("toolUseId") for part in results]
        strange = [name for name in answered if name not in pending]
        if strange:
            shown = one_line(str(strange[0]), 40)
            yield (
                ("messages", index, "content"),
                f"has a tool result for {shown}, which the message before did not use",
                strange[0],
            )
        elif missing := [name for name in pending if name not in answered]:
            shown = one_line(str(missing[0]), 40)
            yield ("messages", index), f"has a tool use ({shown}) that the next message does not answer", missing[0]
        pending = [part.get("id") for part in parts if part.get("type") == "tool_use"]
    if pending:
        yield ("messages", len(messages) - 1), "ends with a tool use that nothing answers", pending[0]


@rule(
    "ELI011",
    "sampling-response-valid",
    "Sampling result malformed",
    on=("request", "reply"),
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 schema#createmessageresult",
    sep="1577",
    sorts=("retry", "result", "error"),
)
def sampling_response_valid(message: Message) -> Iterator[Finding]:
    """The result of sampling has a role, the content that was generated, and the model that did it.

    Why: the server reads the text from it; a list of blocks is understood from 2025-11-25 on only.

    Fix: `{"role": "assistant", "content": {"type": "text", "text": "..."}, "model": "..."}`.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"sampling": {}}
          -> result {"resultType": "input_required", "inputRequests": {"s": {"method": "sampling/createMessage", "params": {"maxTokens": 9, "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}}}}
        modern tools/call {"name": "deploy", "inputResponses": {"s": {"role": "assistant", "model": "m", "content": "ho"}}}
          capabilities {"sampling": {}}
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"sampling": {}}
          -> result {"resultType": "input_required", "inputRequests": {"s": {"method": "sampling/createMessage", "params": {"maxTokens": 9, "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}}}}
        modern tools/call {"name": "deploy", "inputResponses": {"s": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "ho"}}}}
          capabilities {"sampling": {}}
          -> result {"content": []}
    """
    for reply in replies(message):
        value = reply.value
        if reply.method != SAMPLE or not isinstance(value, dict) or "task" in value or reply.wrapped:
            continue
        name = one_line(reply.name, 60)
        for steps, words, found, severity in _sampled(reply, value, _revision(message)):
            yield Finding(f"{name} {words}", [evidence(reply.place(*steps), found)], severity)


def _sampled(
    reply: Reply, value: dict[str, Any], revision: str | None
) -> Iterator[tuple[tuple[str | int, ...], str, Any, Severity]]:
    role, model, content = value.get("role"), value.get("model"), value.get("content")
    if role not in ("assistant", "user"):
        yield ("role",), f"has the role {one_line(dumps(role, most=60), 40)}", role, "error"
    if not isinstance(model, str):
        yield ("model",), "names no model", model, "error"
    if "content" not in value:
        yield ("content",), "has no content", None, "error"
        return
    listed = isinstance(content, list)
    if listed and revision is not None and revision < TOOLS_SINCE:
        yield ("content",), f"has a list of content blocks, which {revision} does not know", "an array", "error"
    offered = reply.asked is None or "tools" in reply.asked
    for index, block in enumerate(content[:MOST] if isinstance(content, list) else [content]):
        steps: tuple[str | int, ...] = ("content", index) if listed else ("content",)
        for flaw in blocks.flaws(block, revision, sampling=True):
            yield (*steps, *flaw.steps), f"has a content block that {flaw.words}", flaw.value, flaw.severity
        if isinstance(block, dict) and block.get("type") == "tool_use" and not offered:
            yield (*steps, "type"), "uses a tool, but none was offered", "tool_use", "error"


@rule(
    "ELI012",
    "roots-valid",
    "Roots list malformed",
    on=("request", "reply"),
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 client/roots#root",
    sorts=("retry", "result", "error"),
)
def roots_valid(message: Message) -> Iterator[Finding]:
    """The result of roots/list is an array of roots, each with a `file://` URI.

    Why: servers turn roots into paths; anything else is not one.

    Fix: `{"roots": [{"uri": "file:///home/user/project"}]}`.

    Wrong::

        modern tools/call {"name": "deploy"}
          capabilities {"roots": {}}
          -> result {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
        modern tools/call {"name": "deploy", "inputResponses": {"r": {"roots": [{"uri": "/home/user"}]}}}
          capabilities {"roots": {}}
          -> error -32602

    Right::

        modern tools/call {"name": "deploy"}
          capabilities {"roots": {}}
          -> result {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
        modern tools/call {"name": "deploy", "inputResponses": {"r": {"roots": [{"uri": "file:///home/user"}]}}}
          capabilities {"roots": {}}
          -> result {"content": []}
    """
    for reply in replies(message):
        value = reply.value
        if reply.method != ROOTS or not isinstance(value, dict) or reply.wrapped:
            continue
        roots = value.get("roots")
        if not isinstance(roots, list):
            what = "has no roots" if roots is None else f"has roots that are {kind_of(roots)}"
            yield Finding(f"{one_line(reply.name, 60)} {what}", [evidence(reply.place("roots"), roots, "an array")])
            continue
        for index, root in enumerate(roots[:MOST]):
            uri = root.get("uri") if isinstance(root, dict) else None
            if not isinstance(uri, str) or not uri.startswith("file://"):
                shown = one_line(uri, 60) if isinstance(uri, str) else "none"
                yield Finding(
                    f"{one_line(reply.name, 60)} has a root whose uri is no file:// URI: {shown}",
                    [evidence(reply.place("roots", index, "uri"), uri, "file://...")],
                )
