"""RSC: resources (2026-07-28 server/resources)."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from mcp_wiretap.rule import Finding, Severity, evidence, rule
from mcp_wiretap.trace.legacy.session_use import was_subscribed
from mcp_wiretap.trace.lists.catalog import is_unlisted, lists_uri
from mcp_wiretap.trace.lists.pagination import LIST, ListView
from mcp_wiretap.trace.model import Message
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules import blocks

RESOURCES = "2026-07-28 server/resources"
APART_S = 5.0
MOST = 500  # items of one answer that are looked at: the rest has the same author
NOT_FOUND = re.compile(r"resource\b.{0,200}\bnot found|unknown resource|no such resource", re.I | re.S)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[!#$&'()*+,/:;=?@\[\]A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*+")
_FOREIGN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.*?([^!#$%&'()*+,/:;=?@\[\]A-Za-z0-9._~-])", re.DOTALL)
_BROKEN_ESCAPE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.*?(%)(?![0-9A-Fa-f]{2})", re.DOTALL)
_ENVELOPE_CODES = frozenset({rev.METHOD_NOT_FOUND, rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION})


def _items(message: Message, member: str, most: int = MOST) -> list[tuple[int, dict[str, Any]]]:
    items = message.result.get(member)
    return [(i, x) for i, x in enumerate(items[:most]) if isinstance(x, dict)] if isinstance(items, list) else []


@rule(
    "RSC001",
    "read-empty-contents",
    "contents is empty",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="warning",
    spec=f"{RESOURCES}#error-handling",
    sep="2164",
    methods=("resources/read",),
    sorts=("result",),
)
def read_empty_contents(message: Message) -> Iterator[Finding]:
    """Reading a resource gives its contents; a resource that is not there is an error, not an empty list. Where a list of the server
    leaves it out, too, that is likely: but a list need not have all there is.

    Why: the client shows an empty document instead of saying that there is none.

    Fix: answer -32602 with `data.uri`. A listed directory may really be empty.

    Wrong::

        modern resources/read {"uri": "file:///gone"}
          -> result {"contents": []}

    Right::

        modern resources/read {"uri": "file:///gone"}
          -> error -32602 {"data": {"uri": "file:///gone"}}
    """
    if message.result.get("contents") != [] or message.result.get("resultType") not in (None, "complete"):
        return
    uri = message.request.params.get("uri") if message.request is not None else None
    place, expected = message.place("result", "contents"), "contents, or error -32602"
    if isinstance(uri, str) and message.request is not None and is_unlisted(message.request.exchange, uri):
        text = f"contents is empty, and no list or template has {one_line(uri, 80)}"
        yield Finding(text, [evidence(place, "[]", expected)])
    else:
        yield Finding("contents is empty", [evidence(place, "[]", expected)])


@rule(
    "RSC002",
    "read-not-found-code",
    "Missing resource not -32602",
    on="answer",
    level="must",
    party="server",
    era="modern",
    severity="error",
    spec=f"{RESOURCES}#error-handling",
    sep="2164",
    methods=("resources/read",),
    sorts=("error",),
)
def read_not_found_code(message: Message) -> Iterator[Finding]:
    """A resource that is not there is answered by -32602 with `data.uri`.

    Why: clients drop a resource from their lists by that code; any other looks like a broken server.

    Fix: `{"code": -32602, "message": "Resource not found", "data": {"uri": ...}}`.

    Wrong::

        modern resources/read {"uri": "file:///gone"}
          -> result {"contents": [{"uri": "file:///gone", "text": ""}]}
        modern resources/read {"uri": "file:///gone"}
          -> error -32603 {"message": "Resource not found", "data": {"uri": "file:///gone"}}

    Right::

        modern resources/read {"uri": "file:///gone"}
          -> result {"contents": [{"uri": "file:///gone", "text": ""}]}
        modern resources/read {"uri": "file:///gone"}
          -> error -32603 {"message": "upstream said 404"}
    """
    code, request, error = message.error_code, message.request, message.rpc.error
    if code is None or request is None or code in _ENVELOPE_CODES or code in (rev.INVALID_PARAMS, rev.RESOURCE_NOT_FOUND):
        return
    status = message.exchange.status or 0
    if status in (401, 403) or status >= 500 or not isinstance(error, dict):
        return
    uri, data = request.params.get("uri"), error.get("data")
    named = isinstance(data, dict) and isinstance(uri, str) and data.get("uri") == uri
    text = error.get("message")
    if named or (isinstance(text, str) and NOT_FOUND.search(text[:1_000])):
        known = isinstance(uri, str) and lists_uri(request.exchange, uri)
        yield Finding(
            f"a missing resource was answered with {code}, not -32602",
            [evidence(message.place("error", "code"), str(code), "-32602")],
            "warning" if known else None,
        )


@rule(
    "RSC003",
    "content-text-or-blob",
    "Content item needs uri and exactly one of text/blob",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{RESOURCES}#resource-contents",
    methods=("resources/read",),
    sorts=("result",),
)
def content_text_or_blob(message: Message) -> Iterator[Finding]:
    """Each item of `contents` has a uri, and either text or a Base64 blob.

    Why: a typed client refuses the whole answer.

    Fix: give the uri of each item; `text` may be "".

    Wrong::

        modern resources/read {"uri": "file:///a"}
          -> result {"contents": [{"uri": "file:///a", "mimeType": "text/plain"}]}

    Right::

        modern resources/read {"uri": "file:///a"}
          -> result {"contents": [{"uri": "file:///a", "text": ""}]}
    """
    for index, item in _items(message, "contents"):
        place = message.place("result", "contents", index)
        if not isinstance(item.get("uri"), str):
            yield Finding("a content item has no uri", [evidence(f"{place}/uri", item.get("uri"), "a string")])
        has = [name for name in ("text", "blob") if isinstance(item.get(name), str)]
        if len(has) != 1:
            what = "both text and blob" if has else "neither text nor blob"
            yield Finding(f"a content item has {what}", [evidence(place, what, "exactly one of the two, a string")])
        elif has == ["blob"] and (problem := blocks.base64_problem(item["blob"])) is not None:
            words, severity = problem
            text = f"the blob of a content item {words}"
            yield Finding(text, [evidence(f"{place}/blob", item["blob"][:80], "standard Base64")], severity)


@rule(
    "RSC004",
    "uri-valid",
    "URI not RFC 3986",
    on=("request", "answer", "push"),
    level="must",
    party="either",
    era="both",
    severity="warning",
    spec=f"{RESOURCES}#common-uri-schemes",
    methods=(
        "resources/read",
        "resources/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "resources/templates/list",
        "subscriptions/listen",
        "notifications/resources/updated",
        "tools/call",
    ),
    needs=(
        "params:uri",
        "params:notifications",
        "result:resources",
        "result:resourceTemplates",
        "result:contents",
        "result:content",
    ),
)
def uri_valid(message: Message) -> Iterator[Finding]:
    """A resource URI is absolute, with a scheme, by RFC 3986; a template by RFC 6570.

    Why: spaces and raw Unicode are encoded differently by every library, and the two sides no longer mean the same thing.

    Fix: percent-encode what is outside ASCII; a path alone is no URI.

    Wrong::

        modern resources/read {"uri": "docs/a b.txt"}
          -> result {"contents": [{"uri": "docs/a b.txt", "text": ""}]}

    Right::

        modern resources/read {"uri": "file:///docs/a%20b.txt"}
          -> result {"contents": [{"uri": "file:///docs/a%20b.txt", "text": ""}]}
    """
    asked = message.request.params.get("uri") if message.request is not None else None
    for steps, uri in _uris(message):
        if isinstance(uri, str) and not _URI.fullmatch(uri) and uri != asked:  # an answer may repeat what was asked for
            yield _no_uri(uri, message.place(*steps))
    for index, item in _items(message, "resourceTemplates") if "resourceTemplates" in message.result else ():
        template = item.get("uriTemplate")
        if isinstance(template, str) and not _is_template(template):
            place = message.place("result", "resourceTemplates", index, "uriTemplate")
            yield Finding(f"{one_line(template, 80)} is no URI template", [evidence(place, template, "RFC 6570")])


def _uris(message: Message) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """What ought to be the URI of a resource, with its place."""
    if message.rpc.kind in ("request", "notification"):
        yield ("params", "uri"), message.params.get("uri")
        wanted = message.params.get("notifications")
        subscribed = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
        for index, uri in enumerate(subscribed[:MOST] if isinstance(subscribed, list) else ()):
            yield ("params", "notifications", "resourceSubscriptions", index), uri
        return
    if "content" in message.result:
        for index, block in _items(message, "content"):
            if block.get("type") != "text":  # most are
                yield from _of_block(block, ("result", "content", index))
        return
    for member in ("resources", "contents"):
        for index, item in _items(message, member):
            yield ("result", member, index, "uri"), item.get("uri")


def _of_block(block: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "resource_link":
        yield (*steps, "uri"), block.get("uri")
    elif kind == "resource" and isinstance(block.get("resource"), dict):
        yield (*steps, "resource", "uri"), block["resource"].get("uri")


def _no_uri(uri: str, place: str) -> Finding:
    shown = one_line(uri, 80)
    foreign = _FOREIGN.match(uri) or _BROKEN_ESCAPE.match(uri)
    if foreign is not None:
        character = f"U+{ord(foreign[1]):04X} at index {foreign.start(1)}"
        return Finding(f"{shown!r} is no URI: {character} has to be percent-encoded", [evidence(place, uri, "RFC 3986")])
    return Finding(f"{shown!r} is no absolute URI", [evidence(place, uri, "a URI with a scheme")])


_EXPRESSION = re.compile(r"\{[+#./;?&]?[A-Za-z0-9_%.]+(?::[0-9]{1,4}|\*)?(?:,[A-Za-z0-9_%.]+(?::[0-9]{1,4}|\*)?)*\}")


def _is_template(template: str) -> bool:
    rest = _EXPRESSION.sub("", template)
    return "{" not in rest and "}" not in rest


@rule(
    "RSC005",
    "duplicate-uri",
    "Duplicate resource uri in listing",
    on="answer",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=f"{RESOURCES}#resource",
    methods=("resources/list",),
)
def duplicate_uri(message: Message) -> Iterator[Finding]:
    """A listing names each resource once, on all its pages.

    Why: clients key resources by uri; one of the two vanishes.

    Fix: list each uri once.

    Wrong::

        modern resources/list
          -> result {"resources": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///a", "name": "b"}]}

    Right::

        modern resources/list
          -> result {"resources": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///b", "name": "a"}]}
    """
    for index, uri in listed_twice(message, "resources", "uri"):
        place = message.place("result", "resources", index, "uri")
        severity: Severity | None = "info" if pages_apart(message) else None
        yield Finding(f"{one_line(uri, 80)} is listed twice", [evidence(place, uri, "each uri once")], severity)


def pages_apart(message: Message) -> bool:
    """Whether a page was read so long after the one before it that the list may have changed: entries move to the next page."""
    view: ListView | None = message.request.exchange.facts.get(LIST) if message.request is not None else None
    return view is not None and view.issuer is not None and message.at - view.issuer.at > APART_S


def listed_twice(message: Message, member: str, label: str) -> Iterator[tuple[int, str]]:
    """The entries of a list answer that stand in it, or in the pages before it, already."""
    view: ListView | None = message.request.exchange.facts.get(LIST) if message.request is not None else None
    page = view.page if view is not None and not view.shared else None  # a shared cursor: the pages are of several clients
    if page is not None and view is not None and (view.loop or (view.issuer is not None and page.cursor in view.issuer.visited)):
        page = None  # CAC010: the same pages again
    items = message.result.get(member)
    own = len(items) if isinstance(items, list) else 0
    before = page.names[: len(page.names) - own] if page is not None and page.names is not None else ()
    seen = {name for name in before if isinstance(name, str)}
    for index, item in _items(message, member, 1_000):
        name = item.get(label)
        if isinstance(name, str):
            if name in seen:
                yield index, name
            seen.add(name)


@rule(
    "RSC006",
    "path-traversal-probe",
    "Traversal in file URIs",
    on="answer",
    level="may-note",
    party="client",
    era="both",
    severity="warning",
    spec=f"{RESOURCES}#security-considerations",
    methods=("resources/read",),
)
def path_traversal_probe(message: Message) -> Iterator[Finding]:
    """A URI with `..` segments was read, and the server gave content.

    Why: it is how files outside the shared folder are reached.

    Fix: the server resolves the path and refuses what leaves its root; a client has no reason to send `..`.

    Wrong::

        modern resources/read {"uri": "file:///data/../etc/passwd"}
          -> result {"contents": [{"uri": "file:///etc/passwd", "text": "root"}]}

    Right::

        modern resources/read {"uri": "file:///data/..notes"}
          -> result {"contents": [{"uri": "file:///data/..notes", "text": "n"}]}
    """
    request = message.request
    uri = request.params.get("uri") if request is not None else None
    if request is None or not isinstance(uri, str) or message.rpc.kind != "result" or not message.result.get("contents"):
        return
    if ".." not in uri and "%" not in uri:
        return
    if ".." in re.split(r"[/\\]", unquote(unquote(uri))):
        text = f"{one_line(uri, 80)} climbs out of its folder, and the server gave content"
        yield Finding(text, [evidence(request.place("params", "uri"), uri, "no .. segments")])


@rule(
    "RSC007",
    "legacy-subscribe-capability",
    "Legacy subscribe without capability",
    on=("request", "push"),
    level="must",
    party="either",
    era="legacy",
    severity="warning",
    spec="2025-11-25 server/resources#capabilities",
    methods=("resources/subscribe", "notifications/resources/updated"),
)
def legacy_subscribe_capability(message: Message) -> Iterator[Finding]:
    """resources/subscribe needs a server that advertises `resources.subscribe`; updates are sent of what was subscribed to, or of
    what is part of it.

    Why: nothing will ever be sent for it; and a client does not know what to do with an update that it did not ask for.

    Fix: look at the capabilities of the initialize result first; send updates to the sessions that asked for them.

    Wrong::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"resources": {}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy resources/subscribe {"uri": "file:///a"}
          -> result {}

    Right::

        legacy initialize
          -> result {"protocolVersion": "2025-11-25", "capabilities": {"resources": {"subscribe": true}}, "serverInfo": {"name": "s", "version": "1"}}
        legacy resources/subscribe {"uri": "file:///a"}
          -> result {}
    """
    session = message.exchange.session
    if session is None or session.server_capabilities is None:
        return
    if message.rpc.kind == "notification":
        uri, stream = message.params.get("uri"), message.exchange.stream
        known = stream is None or stream.timed  # else it may have come before, or after it was subscribed to
        if known and isinstance(uri, str) and not was_subscribed(session, uri, message.at):
            text = f"an update of {one_line(uri, 80)}, which the session did not subscribe to"
            yield Finding(text, [evidence(message.place("params", "uri"), uri, "a URI of a resources/subscribe")])
        return
    resources = session.server_capabilities.get("resources")
    if not (isinstance(resources, dict) and resources.get("subscribe") is True):
        yield Finding(
            "resources/subscribe, but the server does not advertise resources.subscribe",
            [evidence(message.place("method"), "resources/subscribe", "capabilities.resources.subscribe: true")],
        )


@rule(
    "RSC008",
    "https-resource-via-mcp",
    "https URI served via MCP",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="info",
    spec=f"{RESOURCES}#https",
    methods=("resources/list", "resources/templates/list", "resources/read"),
    once="endpoint",
)
def https_resource_via_mcp(message: Message) -> Iterator[Finding]:
    """The https scheme is for resources that a client can fetch from the web itself.

    Why: clients may fetch the URL instead of asking the server.

    Fix: use a scheme of your own where the content only comes through the server.

    Wrong::

        modern resources/list
          -> result {"resources": [{"uri": "https://example.com/a", "name": "a"}]}

    Right::

        modern resources/list
          -> result {"resources": [{"uri": "docs://a", "name": "a"}]}
    """
    for member, label in (("resources", "uri"), ("resourceTemplates", "uriTemplate"), ("contents", "uri")):
        for index, item in _items(message, member):
            uri = item.get(label)
            if isinstance(uri, str) and uri.lower().startswith("https:"):
                yield Finding(
                    f"{one_line(uri, 80)} is served: a client may fetch it from the web itself",
                    [evidence(message.place("result", member, index, label), uri)],
                )
                return
