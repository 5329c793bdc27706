"""MET: the `_meta` envelope, the names in it, trace context (2026-07-28 basic/index#_meta)."""

import re
from collections.abc import Iterator
from typing import Any

from mcp_wiretap.rule import Finding, evidence, rule
from mcp_wiretap.trace.model import Message
from mcp_wiretap.trace.operations.ids import CAPABILITIES_CHANGE, REUSE, Reuse
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules import icons
from mcp_wiretap_rules.rpc import KNOWN_REQUESTS

META = "2026-07-28 basic/index#_meta"
WITH_GRAMMAR = rev.since("2025-06-18")
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
KNOWN_KEYS = frozenset(
    {
        rev.PROTOCOL_VERSION,
        rev.CLIENT_INFO,
        rev.CLIENT_CAPABILITIES,
        rev.LOG_LEVEL,
        rev.SUBSCRIPTION_ID,
        rev.SERVER_INFO,
        "io.modelcontextprotocol/related-task",
        "io.modelcontextprotocol/model-immediate-response",
    }
)
_DEEPEST, _MOST_METAS = 12, 200  # a tools/list of some hundred tools is judged by its first ones: they share an author


@rule(
    "MET001",
    "envelope-missing-version",
    "_meta lacks protocolVersion",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=META,
    sep="2575",
    malformed=True,
)
def envelope_missing_version(message: Message) -> Iterator[Finding]:
    """Every modern request names its revision in `params._meta["io.modelcontextprotocol/protocolVersion"]`.

    Why: the era is stateless: nothing but the request tells the server how to read it. It answers 400 with -32602.

    Fix: put the envelope on every request, also on retries, tasks/get, server/discover and subscriptions/listen. Where the
    version header was added by a gateway, take it out there.

    Wrong::

        modern tools/list
          params {}
          -> status 400
          -> error -32602

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    if isinstance(message.meta.get(rev.PROTOCOL_VERSION), str):
        return
    if rev.PROTOCOL_VERSION in message.meta and message.meta[rev.PROTOCOL_VERSION] is not None:
        return  # a wrong type is MET003
    basis = message.exchange.claim.basis
    yield Finding(
        f"the envelope has no protocolVersion ({basis})",
        [evidence(message.place("params", "_meta", rev.PROTOCOL_VERSION), None, rev.MODERN_FROM)],
    )


@rule(
    "MET002",
    "envelope-missing-capabilities",
    "_meta lacks clientCapabilities",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=META,
    sep="2575",
)
def envelope_missing_capabilities(message: Message) -> Iterator[Finding]:
    """Every modern request says what its client can do; `{}` says: nothing special.

    Why: the server may only ask for what this very request declares, and may not remember an earlier one.

    Fix: send `"io.modelcontextprotocol/clientCapabilities": {}` at the least.

    Wrong::

        modern tools/list
          -meta io.modelcontextprotocol/clientCapabilities
          -> status 400
          -> error -32602

    Right::

        modern tools/list
          capabilities {}
          -> result {"tools": []}
    """
    if message.meta.get(rev.CLIENT_CAPABILITIES) is None:
        yield Finding(
            "the envelope has no clientCapabilities",
            [evidence(message.place("params", "_meta", rev.CLIENT_CAPABILITIES), None, "an object, {} at the least")],
        )


_TYPES: tuple[tuple[str, type, str], ...] = (
    (rev.PROTOCOL_VERSION, str, "a string"),
    (rev.CLIENT_CAPABILITIES, dict, "an object"),
    (rev.CLIENT_INFO, dict, "an object"),
    (rev.LOG_LEVEL, str, "a string"),
)


@rule(
    "MET003",
    "envelope-wrong-types",
    "Envelope value has the wrong type",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec=META,
    sep="2575",
    malformed=True,
)
def envelope_wrong_types(message: Message) -> Iterator[Finding]:
    """protocolVersion and logLevel are strings, clientCapabilities and clientInfo are objects.

    Why: the server cannot read the envelope and refuses the request.

    Fix: send the types of the schema; leave an optional member out rather than sending null.

    Wrong::

        modern tools/list
          meta io.modelcontextprotocol/clientInfo "my client 1.0"
          -> status 400
          -> error -32602

    Right::

        modern tools/list
          meta io.modelcontextprotocol/clientInfo {"name": "my client", "version": "1.0"}
          -> result {"tools": []}
    """
    meta = message.meta
    for key, kind, words in _TYPES:
        if key not in meta or isinstance(meta[key], kind):
            continue
        if meta[key] is None and key in (rev.PROTOCOL_VERSION, rev.CLIENT_CAPABILITIES):
            continue  # MET001, MET002
        shown = dumps(meta[key], most=60)
        yield Finding(
            f"{key.partition('/')[2]} is {one_line(shown, 40)}, not {words}",
            [evidence(message.place("params", "_meta", key), shown if meta[key] is None else meta[key], words)],
        )


@rule(
    "MET004",
    "client-info-missing",
    "clientInfo omitted",
    on="request",
    level="should",
    party="client",
    era="modern",
    severity="info",
    spec=META,
    sep="2575",
    once="client",
)
def client_info_missing(message: Message) -> Iterator[Finding]:
    """A client should say its name and version in the envelope.

    Why: whoever runs the server cannot tell clients apart when one misbehaves.

    Fix: send `"io.modelcontextprotocol/clientInfo": {"name": ..., "version": ...}`.

    Wrong::

        modern tools/list
          -meta io.modelcontextprotocol/clientInfo
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    if message.exchange.claim.kind == "modern" and rev.CLIENT_INFO not in message.meta:
        yield Finding(
            "the envelope has no clientInfo",
            [evidence(message.place("params", "_meta", rev.CLIENT_INFO), None, "an object with name and version")],
        )


@rule(
    "MET005",
    "implementation-shape",
    "clientInfo/serverInfo lacks name or version",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="error",
    spec="2026-07-28 schema#implementation",
    sep="2575",
    sorts=("request", "result"),
)
def implementation_shape(message: Message) -> Iterator[Finding]:
    """clientInfo and serverInfo have a name and a version, both strings; icons have sources that may be fetched (RES016).

    Why: typed receivers refuse the whole message for it.

    Fix: send both, as strings.

    Wrong::

        modern tools/list
          meta io.modelcontextprotocol/clientInfo {"name": "my client"}
          -> result {"tools": []}

    Right::

        modern tools/list
          meta io.modelcontextprotocol/clientInfo {"name": "my client", "version": "1.0"}
          -> result {"tools": []}
    """
    kind = message.rpc.kind
    if kind == "request" and message.party == "client":
        steps: tuple[str, ...] = ("params", "_meta", rev.CLIENT_INFO)
        info = message.meta.get(rev.CLIENT_INFO)
        if info is None and message.method == "initialize":
            steps, info = ("params", "clientInfo"), message.params.get("clientInfo")
    elif kind == "result" and message.party == "server":
        steps, info = ("result", "_meta", rev.SERVER_INFO), message.meta.get(rev.SERVER_INFO)
        if info is None and message.request is not None and message.request.method == "initialize":
            steps, info = ("result", "serverInfo"), message.result.get("serverInfo")
    else:
        return
    name = steps[-1].rpartition("/")[2]
    if not isinstance(info, dict):
        if info is not None and steps[-1] == rev.SERVER_INFO:  # MET003 and RES006 tell of the others
            shown = one_line(dumps(info, most=60), 40)
            yield Finding(f"{name} is {shown}, not an object", [evidence(message.place(*steps), info, "an object")])
        return
    for member in ("name", "version"):
        if not isinstance(info.get(member), str):
            what = "absent" if member not in info else one_line(dumps(info[member]), 40)
            yield Finding(
                f"{name}.{member} is {what}, not a string",
                [evidence(message.place(*steps, member), info.get(member), "a string")],
            )
    url = info.get("websiteUrl")
    if url is not None and not (isinstance(url, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url)):
        yield Finding(f"{name}.websiteUrl is no URI", [evidence(message.place(*steps, "websiteUrl"), url, "a URI")])
    if message.party == "client" and "icons" in info:  # RES016 tells of the server's
        for place, src, words in icons.unsafe(info, steps):
            yield Finding(
                f"an icon of {name} has {words}: receivers reject it",
                [evidence(message.place(*place), src, icons.EXPECTED)],
                "warning",
                once=one_line(src, 200),
            )


# Members that hold a list of things with a `_meta` of their own, in the order in which they are looked at.
_HOLDERS = dict.fromkeys(("tools", "resources", "resourceTemplates", "prompts", "content", "contents", "messages")).keys()


def _metas(message: Message) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Every `_meta` object that belongs to the protocol: of the message, of the things it lists, of content blocks. Not inside
    arguments, structured content or schemas: those are the user's data."""
    rpc = message.rpc
    name = "result" if rpc.kind == "result" else "params"
    top = rpc.result if rpc.kind == "result" else rpc.params
    if not isinstance(top, dict):
        return
    if isinstance(top.get("_meta"), dict):
        yield (name, "_meta"), top["_meta"]
    if _HOLDERS.isdisjoint(top):
        return
    left = _MOST_METAS
    for member in _HOLDERS:
        items = top.get(member)
        if not isinstance(items, list):
            continue
        for index, item in enumerate(items[:left]):
            if not isinstance(item, dict):
                continue
            if isinstance(item.get("_meta"), dict):
                yield (name, member, index, "_meta"), item["_meta"]
            for inner in ("content", "resource"):
                block = item.get(inner)
                if isinstance(block, dict) and isinstance(block.get("_meta"), dict):
                    yield (name, member, index, inner, "_meta"), block["_meta"]
        left -= min(left, len(items))


def _unknown_keys(message: Message) -> list[tuple[tuple[str | int, ...], str]]:
    """The keys of every `_meta` object that no revision defines, each with the place of its object."""
    rpc = message.rpc
    if rpc.meta.keys() <= KNOWN_KEYS:
        top = rpc.result if rpc.kind == "result" else rpc.params
        if not isinstance(top, dict) or _HOLDERS.isdisjoint(top):
            return []
    return [(steps, key) for steps, meta in _metas(message) for key in list(meta)[:_MOST_METAS] if key not in KNOWN_KEYS]


@rule(
    "MET006",
    "meta-key-grammar",
    "_meta key breaks the naming rules",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="warning",
    spec=META,
    versions=WITH_GRAMMAR,
    sorts=("request", "notification", "result"),
)
def meta_key_grammar(message: Message) -> Iterator[Finding]:
    """A `_meta` key is a name, or a prefix of dot-separated labels, a slash and a name. Labels begin with a letter and end with a
    letter or digit; names begin and end with a letter or digit.

    Why: keys outside the grammar may be dropped or refused by whoever stands between.

    Fix: `com.example/trace-id` is a good key; a second slash, a space or a trailing hyphen is not.

    Wrong::

        modern tools/list
          meta com.example/a/b 1
          -> result {"tools": []}

    Right::

        modern tools/list
          meta com.example/a.b 1
          -> result {"tools": []}
    """
    for steps, key in _unknown_keys(message):
        prefix, slash, name = key.partition("/")
        if slash and not _PREFIX.fullmatch(prefix):
            why = "the prefix is not made of labels"
        elif not _NAME.fullmatch(name if slash else prefix):
            why = "the name has characters or ends that are not allowed"
        else:
            continue
        yield Finding(
            f"the _meta key {one_line(key, 60)!r} breaks the naming rules: {why}", [evidence(message.place(*steps, key), key)]
        )


def _reserved(prefix: str, revision: str | None) -> bool:
    labels = prefix.lower().split(".")
    words = ("modelcontextprotocol", "mcp")
    if revision == "2025-06-18":
        return any(label in words for label in labels[:-1])
    return len(labels) > 1 and labels[1] in words


@rule(
    "MET007",
    "reserved-prefix-unknown-key",
    "Unknown key under a reserved prefix",
    on="message",
    level="must",
    party="either",
    era="both",
    severity="warning",
    spec=META,
    versions=WITH_GRAMMAR,
    sorts=("request", "notification", "result"),
)
def reserved_prefix_unknown_key(message: Message) -> Iterator[Finding]:
    """Prefixes whose second label is `modelcontextprotocol` or `mcp` belong to MCP.

    Why: a later revision may give the key a meaning of its own.

    Fix: use a prefix of your own domain, such as `com.example/`.

    Wrong::

        modern tools/list
          meta dev.mcp/tenant "a"
          -> result {"tools": []}

    Right::

        modern tools/list
          meta com.example.mcp/tenant "a"
          -> result {"tools": []}
    """
    for steps, key in _unknown_keys(message):
        prefix, slash, _ = key.partition("/")
        if not slash or not _reserved(prefix, message.exchange.revision):
            continue
        official = prefix == "io.modelcontextprotocol"
        yield Finding(
            f"the _meta key {one_line(key, 60)!r} is under a prefix reserved for MCP"
            + (" and is not known to this tool" if official else ""),
            [evidence(message.place(*steps, key), key)],
            "info" if official else None,
        )


_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@rule(
    "MET008",
    "traceparent-format",
    "traceparent is not W3C",
    on="message",
    level="must",
    party="either",
    era="modern",
    severity="error",
    spec=META,
    sep="414",
    sorts=("request", "notification", "result"),
    needs=("meta:traceparent",),
)
def traceparent_format(message: Message) -> Iterator[Finding]:
    """`_meta.traceparent` follows W3C Trace Context: lower-case hex, version-traceid-parentid-flags, ids not all zero.

    Why: a tracing backend drops the span, or starts a trace of its own.

    Fix: let a tracing library write it.

    Wrong::

        modern tools/list
          meta traceparent "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"
          -> result {"tools": []}

    Right::

        modern tools/list
          meta traceparent "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
          -> result {"tools": []}
    """
    if "traceparent" not in message.meta:
        return
    value = message.meta["traceparent"]
    why = _traceparent_problem(value)
    if why:
        yield Finding(f"traceparent: {why}", [evidence(_meta_place(message, "traceparent"), value, "W3C traceparent")])


def _traceparent_problem(value: Any) -> str | None:
    if not isinstance(value, str):
        return "not a string"
    found = _TRACEPARENT.match(value)
    if found is None:
        return "not version-traceid-parentid-flags in lower-case hex"
    if found[1] == "ff":
        return "version ff is forbidden"
    if set(found[2]) == {"0"} or set(found[3]) == {"0"}:
        return "an id is all zero"
    rest = value[found.end() :]
    if rest and (found[1] == "00" or not rest.startswith("-")):
        return "version 00 has exactly 55 characters" if found[1] == "00" else "more follows without a hyphen"
    return None


def _meta_place(message: Message, key: str) -> str:
    return message.place("result" if message.rpc.kind == "result" else "params", "_meta", key)


_STATE_KEY = re.compile(r"[a-z0-9][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}")
_STATE_VALUE = re.compile(r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")


@rule(
    "MET009",
    "tracestate-format",
    "tracestate is not W3C",
    on="message",
    level="must",
    party="either",
    era="modern",
    severity="warning",
    spec=META,
    sep="414",
    sorts=("request", "notification", "result"),
    needs=("meta:tracestate",),
)
def tracestate_format(message: Message) -> Iterator[Finding]:
    """`_meta.tracestate` is a comma list of at most 32 key=value members, keys once each, beside a traceparent.

    Why: a tracing library drops the whole list.

    Fix: let a tracing library write it.

    Wrong::

        modern tools/list
          meta traceparent "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
          meta tracestate "Vendor=1"
          -> result {"tools": []}

    Right::

        modern tools/list
          meta traceparent "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
          meta tracestate "vendor=1, ,t@other=2"
          -> result {"tools": []}
    """
    if "tracestate" not in message.meta:
        return
    value = message.meta["tracestate"]
    why = _tracestate_problem(value)
    if why is None and "traceparent" not in message.meta:
        why = "there is no traceparent beside it"
    if why:
        yield Finding(f"tracestate: {why}", [evidence(_meta_place(message, "tracestate"), value, "W3C tracestate")])


def _tracestate_problem(value: Any) -> str | None:
    if not isinstance(value, str):
        return "not a string"
    members = [m for m in (part.strip(" \t") for part in value[:100_000].split(",")) if m]
    if len(members) > 32:
        return f"{len(members)} members, 32 are allowed"
    seen = set()
    for member in members:
        key, equals, text = member.partition("=")
        if not equals or not _STATE_KEY.fullmatch(key) or not _STATE_VALUE.fullmatch(text):
            return f"the member {one_line(member, 40)!r} is not key=value"
        if key in seen:
            return f"the key {key!r} is there twice"
        seen.add(key)
    return None


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_BAGGAGE = re.compile(rf"{_TOKEN}[ \t]*=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*[ \t]*")
_PROPERTY = re.compile(rf"[ \t]*{_TOKEN}[ \t]*(?:=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*[ \t]*)?")


@rule(
    "MET010",
    "baggage-format",
    "baggage is not W3C",
    on="message",
    level="must",
    party="either",
    era="modern",
    severity="warning",
    spec=META,
    sep="414",
    sorts=("request", "notification", "result"),
    needs=("meta:baggage",),
)
def baggage_format(message: Message) -> Iterator[Finding]:
    """`_meta.baggage` is a comma list of key=value members with percent-encoded values and optional `;properties`.

    Why: receivers drop what they cannot read.

    Fix: percent-encode spaces, commas, quotes and everything that is not ASCII.

    Wrong::

        modern tools/list
          meta baggage "user name=ada"
          -> result {"tools": []}

    Right::

        modern tools/list
          meta baggage "user = ada%20l ; secret , tenant=7"
          -> result {"tools": []}
    """
    if "baggage" not in message.meta:
        return
    value = message.meta["baggage"]
    place = _meta_place(message, "baggage")
    if not isinstance(value, str):
        yield Finding("baggage: not a string", [evidence(place, value, "a string")])
        return
    members = [m.strip(" \t") for m in value[:100_000].split(",")]
    if len(members) > 64 or len(value) > 8_192:
        yield Finding("baggage: more than platforms must pass on (64 members, 8192 bytes)", [evidence(place, value)], "info")
    for member in members:
        entry, *properties = member.split(";")
        if not _BAGGAGE.fullmatch(entry) or not all(_PROPERTY.fullmatch(p) for p in properties):
            text = f"baggage: the member {one_line(member, 40)!r} is not key=value"
            yield Finding(text, [evidence(place, value, "W3C baggage")])
            return


@rule(
    "MET011",
    "log-level-value",
    "logLevel is not a defined level",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    spec="2026-07-28 server/utilities/logging#error-handling",
    sep="2575",
    needs=("meta:io.modelcontextprotocol/logLevel",),
)
def log_level_value(message: Message) -> Iterator[Finding]:
    """logLevel is one of debug, info, notice, warning, error, critical, alert, emergency.

    Why: the server answers -32602, or sends no logs at all.

    Fix: `warning`, not `warn`; lower case.

    Wrong::

        modern tools/list
          meta io.modelcontextprotocol/logLevel "warn"
          -> error -32602

    Right::

        modern tools/list
          meta io.modelcontextprotocol/logLevel "warning"
          -> result {"tools": []}
    """
    level = message.meta.get(rev.LOG_LEVEL)
    if isinstance(level, str) and level not in rev.LOG_LEVELS:
        yield Finding(
            f"logLevel {one_line(level, 40)!r} is not a level",
            [evidence(message.place("params", "_meta", rev.LOG_LEVEL), level, ", ".join(rev.LOG_LEVELS))],
        )


@rule(
    "MET012",
    "progress-token-type",
    "progressToken is not a string or integer",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 basic/patterns/progress#progress-flow",
    needs=("meta:progressToken",),
)
def progress_token_type(message: Message) -> Iterator[Finding]:
    """A progress token is a string or an integer; `0` and `""` are tokens.

    Why: the server cannot echo anything else faithfully.

    Fix: use the request id, or leave the member out.

    Wrong::

        modern tools/list
          meta progressToken null
          -> result {"tools": []}

    Right::

        modern tools/list
          meta progressToken 0
          -> result {"tools": []}
    """
    meta = message.meta
    if "progressToken" not in meta:
        return
    token = meta["progressToken"]
    if isinstance(token, str) or (not isinstance(token, bool) and isinstance(token, int)):
        return
    if isinstance(token, float) and token.is_integer():
        return
    yield Finding(
        f"progressToken is {one_line(dumps(token), 40)}, neither a string nor an integer",
        [evidence(message.place("params", "_meta", "progressToken"), dumps(token), "a string or an integer")],
    )


@rule(
    "MET013",
    "progress-token-reused",
    "Token shared by two active requests",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="warning",
    spec="2026-07-28 basic/patterns/progress#progress-flow",
    needs=(REUSE,),
)
def progress_token_reused(message: Message) -> Iterator[Finding]:
    """Each request that is running has a progress token of its own. Over different connections, and outside a legacy session, it
    may be two clients of the same name, and is noted only.

    Why: progress of the one is shown as progress of the other.

    Fix: use the request id as token.

    Wrong::

        modern tools/call {"name": "a"}
          meta progressToken 1
          -> open
        modern tools/call {"name": "b"}
          meta progressToken 1
          -> result {"content": []}

    Right::

        modern tools/call {"name": "a"}
          meta progressToken 1
          -> open
        modern tools/call {"name": "b"}
          meta progressToken "1"
          -> result {"content": []}
    """
    found: list[Reuse] = message.exchange.facts.get(REUSE, [])
    for reuse in found:
        if reuse.what == "progressToken":
            mild = reuse.how == "same-name"
            yield Finding(
                f"progressToken {one_line(dumps(reuse.value), 40)} belongs to a request that is still running"
                + (", perhaps another client's of that name" if mild else ""),
                [evidence(message.place("params", "_meta", "progressToken"), reuse.value, "a token of its own")],
                "info" if mild else None,
                related=(reuse.flow,),
                once="same-name" if mild else None,
            )


@rule(
    "MET014",
    "server-info-missing",
    "Result without serverInfo",
    on="answer",
    level="should",
    party="server",
    era="modern",
    severity="info",
    spec=META,
    sep="2575",
    once="endpoint",
    sorts=("result",),
)
def server_info_missing(message: Message) -> Iterator[Finding]:
    """A server should name itself in `_meta["io.modelcontextprotocol/serverInfo"]` of each result, unless told not to.

    Why: behind a gateway nobody can tell which server answered.

    Fix: add it to every result.

    Wrong::

        modern tools/call {"name": "a"}
          -> raw-result {"resultType": "complete", "content": []}

    Right::

        modern tools/call {"name": "a"}
          -> result {"content": []}
    """
    if message.rpc.kind == "result" and isinstance(message.rpc.result, dict) and message.meta.get(rev.SERVER_INFO) is None:
        yield Finding("results do not name the server", [evidence(message.place("result", "_meta", rev.SERVER_INFO), None)])


_CLIENT_MEMBERS = ("roots", "sampling", "elicitation", "experimental", "extensions", "tasks")
_SERVER_MEMBERS = ("tools", "prompts", "resources", "logging", "completions", "experimental", "extensions", "tasks")


@rule(
    "MET015",
    "capabilities-shape",
    "Known capability has the wrong shape",
    on=("request", "answer"),
    level="must",
    party="either",
    era="both",
    severity="error",
    spec="2026-07-28 schema#clientcapabilities",
    sep="2575",
    sorts=("request", "result"),
    needs=(
        "cap:roots",
        "cap:sampling",
        "cap:elicitation",
        "cap:experimental",
        "cap:extensions",
        "cap:tasks",
        "params:capabilities",
        "result:capabilities",
    ),
)
def capabilities_shape(message: Message) -> Iterator[Finding]:
    """Each known capability is an object; listChanged and subscribe inside are booleans.

    Why: `"sampling": true` is read as no capability, or refuses the whole request.

    Fix: `"sampling": {}`.

    Wrong::

        modern tools/list
          capabilities {"sampling": true}
          -> result {"tools": []}

    Right::

        modern tools/list
          capabilities {"sampling": {}, "com.example": 1}
          -> result {"tools": []}
    """
    if message.rpc.kind == "request":
        steps: tuple[str, ...] = ("params", "_meta", rev.CLIENT_CAPABILITIES)
        found = message.meta.get(rev.CLIENT_CAPABILITIES)
        if found is None and message.method == "initialize":
            steps, found = ("params", "capabilities"), message.params.get("capabilities")
        members: tuple[str, ...] = _CLIENT_MEMBERS
    else:
        request = message.request
        if request is None or request.method not in ("initialize", "server/discover"):
            return
        steps, found, members = ("result", "capabilities"), message.result.get("capabilities"), _SERVER_MEMBERS
    if not isinstance(found, dict) or not found:
        return
    for member in members:
        value = found.get(member)
        if member not in found:
            continue
        if isinstance(value, dict):
            for flag in ("listChanged", "subscribe"):
                if flag in value and not isinstance(value[flag], bool):
                    place = message.place(*steps, member, flag)
                    yield Finding(f"{member}.{flag} is no boolean", [evidence(place, value[flag], "true or false")])
            for path, wrong in _within(value, _PARTS.get(member, ())):
                yield Finding(
                    f"the capability {member}.{'.'.join(path)} is {one_line(dumps(wrong), 40)}, not an object",
                    [evidence(message.place(*steps, member, *path), dumps(wrong), "an object")],
                )
            continue
        yield Finding(
            f"the capability {member} is {one_line(dumps(value), 40)}, not an object",
            [evidence(message.place(*steps, member), dumps(value), "an object")],
        )


# What is an object inside of a known capability.
_PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "elicitation": (("form",), ("url",)),
    "sampling": (("context",), ("tools",)),
    "tasks": (
        ("list",),
        ("cancel",),
        ("requests",),
        ("requests", "tools"),
        ("requests", "tools", "call"),
        ("requests", "sampling"),
        ("requests", "sampling", "createMessage"),
        ("requests", "elicitation"),
        ("requests", "elicitation", "create"),
    ),
}


def _within(value: dict[str, Any], paths: tuple[tuple[str, ...], ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The members at those paths that are there and no objects, each with its path; nothing below one of them."""
    for path in paths:
        holder: Any = value
        for step in path[:-1]:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and path[-1] in holder and not isinstance(holder[path[-1]], dict):
            yield path, holder[path[-1]]


@rule(
    "MET016",
    "capabilities-change",
    "Declared capabilities changed between requests",
    on="request",
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    spec="2026-07-28 basic/index#statelessness",
    sep="2575",
    needs=(CAPABILITIES_CHANGE,),
)
def capabilities_change(message: Message) -> Iterator[Finding]:
    """Capabilities hold for one request; a client may declare others on the next.

    Why: it explains why the server lists other tools, or stops asking.

    Fix: nothing is wrong; declare the same on every request if the server is to behave the same.

    Wrong::

        modern tools/list
          capabilities {"roots": {}}
          -> result {"tools": []}
        modern tools/list
          capabilities {}
          -> result {"tools": []}

    Right::

        modern tools/list
          capabilities {"roots": {}}
          -> result {"tools": []}
        modern tools/list
          capabilities {"roots": {}}
          -> result {"tools": []}
    """
    changed = message.exchange.facts.get(CAPABILITIES_CHANGE)
    if changed is not None:
        added, gone = changed.added, changed.dropped
        words = [f"now declares {', '.join(added)}"] if added else []
        words += [f"no longer declares {', '.join(gone)}"] if gone else []
        yield Finding(
            f"the client {' and '.join(words)}",
            [evidence(message.place("params", "_meta", rev.CLIENT_CAPABILITIES), message.meta.get(rev.CLIENT_CAPABILITIES))],
            related=(changed.before,),
        )


@rule(
    "MET017",
    "subscription-id-elsewhere",
    "subscriptionId outside a listen stream",
    on=("push", "answer"),
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    spec="2026-07-28 schema#notificationmetaobject",
    sep="2575",
    needs=("meta:io.modelcontextprotocol/subscriptionId",),
)
def subscription_id_elsewhere(message: Message) -> Iterator[Finding]:
    """subscriptionId marks the messages of a subscriptions/listen stream, and only those of the methods that are known: an extension
    may open streams of its own.

    Why: a client files the message under a subscription that it does not belong to.

    Fix: leave the key out of other streams and results.

    Wrong::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": [], "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}

    Right::

        modern tools/call {"name": "a"}
          -> sse
          -> result {"content": []}
    """
    method = message.exchange.method
    if rev.SUBSCRIPTION_ID in message.meta and method in KNOWN_REQUESTS and method != "subscriptions/listen":
        yield Finding(
            "subscriptionId on a message that belongs to no listen stream",
            [evidence(_meta_place(message, rev.SUBSCRIPTION_ID), message.meta[rev.SUBSCRIPTION_ID], "no such key")],
        )
