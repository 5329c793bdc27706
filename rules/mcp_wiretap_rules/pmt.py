"""PMT: prompts (2026-07-28 server/prompts)."""

import re
from collections.abc import Iterator

from mcp_wiretap.rule import Finding, Severity, evidence, rule
from mcp_wiretap.trace.lists.catalog import LISTED, Listing
from mcp_wiretap.trace.model import Message
from mcp_wiretap.wire import revision as rev
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules.rsc import listed_twice, pages_apart

PROMPTS = "2026-07-28 server/prompts"
_NAMES_A_FAULT = re.compile(
    r"(?:unknown|no such|invalid) prompt|prompt\b.{0,200}\b(?:not found|unknown|does(?: not|n't) exist)"
    r"|missing\b.{0,60}\bargument|\bargument\b.{0,100}\b(?:missing|required)|required\b.{0,60}\bargument",
    re.I | re.S,
)
_OTHER_FAULTS = frozenset({rev.HEADER_MISMATCH, rev.MISSING_CAPABILITY, rev.UNSUPPORTED_VERSION})


@rule(
    "PMT001",
    "prompt-unknown-or-missing-args",
    "Prompt errors use -32602",
    on="answer",
    level="should",
    party="server",
    era="both",
    severity="warning",
    spec=f"{PROMPTS}#error-handling",
    methods=("prompts/get",),
)
def prompt_unknown_or_missing_args(message: Message) -> Iterator[Finding]:
    """An unknown prompt, or a missing argument, is answered by -32602. A prompt that is given without an argument that its
    definition requires is but a note.

    Why: a client that sees -32603 reports a broken server instead of asking for the argument.

    Fix: answer -32602 and name the prompt or the argument.

    Wrong::

        modern prompts/get {"name": "nope"}
          -> error -32603 {"message": "Unknown prompt: nope"}

    Right::

        modern prompts/get {"name": "nope"}
          -> error -32602 {"message": "Unknown prompt: nope"}
    """
    if message.rpc.kind == "result":
        yield from _given_without(message)
        return
    code, error = message.error_code, message.rpc.error
    if code is None or code == rev.INVALID_PARAMS or code in _OTHER_FAULTS or message.exchange.status in (401, 403):
        return
    text = error.get("message") if isinstance(error, dict) else None
    if isinstance(text, str) and _NAMES_A_FAULT.search(text[:1_000]):
        yield Finding(
            f"{one_line(text, 60)!r} was answered with {code}, not -32602",
            [evidence(message.place("error", "code"), str(code), "-32602")],
        )


def _given_without(message: Message) -> Iterator[Finding]:
    request = message.request
    if request is None or message.result.get("resultType") not in (None, "complete"):
        return
    listing: Listing | None = request.exchange.endpoint.facts.get(LISTED, {}).get("prompts")
    name, given = request.params.get("name"), request.params.get("arguments")
    if listing is None or listing.changed or listing.auth != request.exchange.auth or not isinstance(name, str):
        return
    for argument, required in listing.items.get(one_line(name, 500), {}).get("arguments", ()):
        if required and argument not in (given if isinstance(given, dict) else ()):
            yield Finding(
                f"the prompt {one_line(name, 60)} was given without the argument {one_line(argument, 40)}, which it requires",
                [evidence(request.place("params", "arguments", argument), None, "a string, or error -32602")],
                "info",
                related=(listing.flow,),
            )


@rule(
    "PMT002",
    "prompt-arguments-strings",
    "Prompt arguments are strings",
    on="request",
    level="must",
    party="client",
    era="both",
    severity="error",
    spec="2026-07-28 schema#getpromptrequestparams",
    methods=("prompts/get",),
)
def prompt_arguments_strings(message: Message) -> Iterator[Finding]:
    """The arguments of a prompt are an object of strings.

    Why: the server's template has no other type to put in.

    Fix: write numbers and booleans as strings.

    Wrong::

        modern prompts/get {"name": "greet", "arguments": {"times": 3}}
          -> error -32602

    Right::

        modern prompts/get {"name": "greet", "arguments": {"times": "3"}}
          -> result {"messages": []}
    """
    if "arguments" not in message.params:
        return
    arguments = message.params["arguments"]
    place = message.place("params", "arguments")
    if not isinstance(arguments, dict):
        yield Finding(f"arguments is {one_line(dumps(arguments), 40)}, not an object", [evidence(place, arguments, "an object")])
        return
    for name, value in list(arguments.items())[:100]:
        if not isinstance(value, str):
            yield Finding(
                f"the argument {one_line(name, 40)} is {one_line(dumps(value), 40)}, not a string",
                [evidence(message.place("params", "arguments", name), dumps(value), "a string")],
            )


@rule(
    "PMT003",
    "prompt-message-valid",
    "Prompt message malformed",
    on="answer",
    level="must",
    party="server",
    era="both",
    severity="error",
    spec=f"{PROMPTS}#promptmessage",
    methods=("prompts/get",),
    sorts=("result",),
)
def prompt_message_valid(message: Message) -> Iterator[Finding]:
    """A prompt message has the role user or assistant and one content block.

    Why: a typed client refuses the whole prompt.

    Fix: `{"role": "user", "content": {"type": "text", "text": "..."}}`.

    Wrong::

        modern prompts/get {"name": "greet"}
          -> result {"messages": [{"role": "system", "content": {"type": "text", "text": "hi"}}]}

    Right::

        modern prompts/get {"name": "greet"}
          -> result {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}
    """
    messages = message.result.get("messages")
    for index, item in enumerate(messages[:200] if isinstance(messages, list) else ()):
        if not isinstance(item, dict):
            place = message.place("result", "messages", index)
            yield Finding(f"a prompt message is {one_line(dumps(item), 40)}", [evidence(place, item, "role and content")])
            continue
        role, content = item.get("role"), item.get("content")
        if role not in ("user", "assistant"):
            place = message.place("result", "messages", index, "role")
            yield Finding(
                f"a prompt message has the role {one_line(dumps(role), 40)}", [evidence(place, role, "user or assistant")]
            )
        if not isinstance(content, dict):
            place = message.place("result", "messages", index, "content")
            what = "a list of content blocks" if isinstance(content, list) else f"the content {one_line(dumps(content), 40)}"
            what = what if "content" in item else "no content"
            yield Finding(f"a prompt message has {what}", [evidence(place, content, "one content block")])


@rule(
    "PMT004",
    "prompt-duplicate",
    "Duplicate prompt name",
    on="answer",
    level="may-note",
    party="server",
    era="both",
    severity="warning",
    spec=f"{PROMPTS}#prompt",
    methods=("prompts/list",),
)
def prompt_duplicate(message: Message) -> Iterator[Finding]:
    """A listing names each prompt once, on all its pages.

    Why: clients key prompts by name; one of the two vanishes.

    Fix: give each prompt a name of its own.

    Wrong::

        modern prompts/list
          -> result {"prompts": [{"name": "a"}, {"name": "a"}]}

    Right::

        modern prompts/list
          -> result {"prompts": [{"name": "a"}, {"name": "A"}]}
    """
    for index, name in listed_twice(message, "prompts", "name"):
        place = message.place("result", "prompts", index, "name")
        severity: Severity | None = "info" if pages_apart(message) else None
        yield Finding(f"the prompt {one_line(name, 60)} is listed twice", [evidence(place, name, "each name once")], severity)
