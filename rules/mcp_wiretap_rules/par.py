"""PAR: x-mcp-header annotations of tools, and the Mcp-Param-* headers that mirror arguments.

Definitions are read once, by `mcp_wiretap.trace.schema.annotations`, headers compared once, by `mcp_wiretap.trace.mirrored.params`. What
counts as an annotation (PAR009) and where a value is read (PAR026) is decided there and has no rule here.
Spec: 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

from collections.abc import Callable, Iterator

from mcp_wiretap.rule import Evidence, Finding, Severity, evidence, rule
from mcp_wiretap.trace.lists.tools import REPEATS_REFUSED
from mcp_wiretap.trace.mirrored.params import STALE, Stale
from mcp_wiretap.trace.mirrored.verdict import PARAM
from mcp_wiretap.trace.model import HeaderCheck, Message, ToolDefinition
from mcp_wiretap.trace.schema.annotations import Flaw
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.revision import HEADER_MISMATCH
from mcp_wiretap.wire.secret import one_line
from mcp_wiretap_rules.hdr import NAMELESS, both_sides, reason, say

HTTP = "2026-07-28 basic/transports/streamable-http"
MODERN = ("2026-07-28",)
CALL = ("tools/call",)


def _of(definition: ToolDefinition, rule_id: str) -> list[Flaw]:
    annotations = definition.annotations
    if not annotations.flaws and not annotations.remarks:
        return []
    return [flaw for flaw in (*annotations.flaws, *annotations.remarks) if flaw.rule == rule_id]


def _property(flaw: Flaw) -> str:
    """Where an annotation is, in words: its steps from the schema to the property."""
    return one_line("/".join(str(step) for step in flaw.steps[:-1]), 80)


def _plainly(flaw: Flaw) -> str:
    return f"{flaw.detail}, at {_property(flaw)}"


def _flaws(
    definition: ToolDefinition, rule_id: str, expected: str | None, words: Callable[[Flaw], str] = _plainly
) -> Iterator[Finding]:
    """The flaws of one kind, each told in these words."""
    for flaw in _of(definition, rule_id):
        value = flaw.value if isinstance(flaw.value, str) and flaw.value else dumps(flaw.value)
        shown = [evidence(definition.place(*flaw.steps), value, expected)]
        yield Finding(f"tool {say(definition.name)}: {words(flaw)}", shown)


def _params(message: Message, problem: str) -> Iterator[HeaderCheck]:
    for check in message.exchange.header_checks:
        if problem in check.problems and check.header.startswith(PARAM):
            yield check


def _declared(message: Message) -> tuple[str, ...]:
    """The flow of the list that declares what is judged by."""
    view = message.exchange.tool
    return (view.flow,) if view is not None and view.flow else ()


def _severity(check: HeaderCheck) -> Severity:
    return "warning" if check.doubt else "error"


def _but(check: HeaderCheck) -> str:
    return f" ({check.doubt})" if check.doubt else ""


@rule(
    "PAR001",
    "annotation-empty-or-not-string",
    "x-mcp-header is empty or not a string",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_empty_or_not_string(definition: ToolDefinition) -> Iterator[Finding]:
    """The value of x-mcp-header is a string that is not empty: the end of the header's name.

    Why: clients must exclude the whole tool.

    Fix: give the header a name, or drop the annotation.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": ""}}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
    """
    yield from _flaws(definition, "PAR001", "a header name")


@rule(
    "PAR002",
    "annotation-not-token",
    "x-mcp-header is not an HTTP token",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_not_token(definition: ToolDefinition) -> Iterator[Finding]:
    """x-mcp-header has only the characters of a header name (RFC 9110 token): no space, colon, slash, control or non-ASCII one.

    Why: no header can have that name, so clients must exclude the whole tool.

    Fix: use letters, digits and hyphens.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "My Region"}}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "My-Region"}}
    """

    def words(flaw: Flaw) -> str:
        return f"x-mcp-header {say(str(flaw.value))} is no header name, {flaw.detail}"

    yield from _flaws(definition, "PAR002", "an RFC 9110 token", words)


@rule(
    "PAR003",
    "annotation-duplicate",
    "Same header name twice in one tool",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_duplicate(definition: ToolDefinition) -> Iterator[Finding]:
    """In one inputSchema no two x-mcp-header values are the same; upper and lower case are.

    Why: the two parameters would share one header, so clients must exclude the whole tool.

    Fix: give each parameter a header name of its own. Two tools may use the same name.

    Wrong::

        modern tools/list
          -> tool copy {"from": {"type": "string", "x-mcp-header": "Region"}, "to": {"type": "string", "x-mcp-header": "REGION"}}

    Right::

        modern tools/list
          -> tool copy {"from": {"type": "string", "x-mcp-header": "From"}, "to": {"type": "string", "x-mcp-header": "To"}}
    """
    for flaw in _of(definition, "PAR003"):
        value, first = say(str(flaw.value)), one_line(flaw.detail, 80)
        yield Finding(
            f"tool {say(definition.name)}: x-mcp-header {value} is there twice, first at {first}",
            [evidence(definition.place(*flaw.steps), flaw.value, f"a name that {flaw.detail} has not")],
        )


@rule(
    "PAR004",
    "annotation-non-primitive",
    "Annotated property is not integer, string or boolean",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_non_primitive(definition: ToolDefinition) -> Iterator[Finding]:
    """Only integers, strings and booleans are mirrored.

    Why: other values have no form as a header, so clients must exclude the whole tool.

    Fix: annotate a string, integer or boolean below the object, or drop the annotation.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "array", "x-mcp-header": "Region"}}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
    """
    yield from _flaws(definition, "PAR004", "integer, string or boolean")


@rule(
    "PAR005",
    "annotation-on-number",
    "Annotated property has type number",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_on_number(definition: ToolDefinition) -> Iterator[Finding]:
    """A parameter of type number is not mirrored, not even when its values happen to be whole.

    Why: a fraction has many spellings, so header and body could not be compared. Clients must exclude the whole tool, though some
    still mirror it.

    Fix: declare the parameter as integer, or drop the annotation.

    Wrong::

        modern tools/list
          -> tool zoom {"level": {"type": "number", "x-mcp-header": "Level"}}

    Right::

        modern tools/list
          -> tool zoom {"level": {"type": "integer", "x-mcp-header": "Level"}}
    """
    yield from _flaws(definition, "PAR005", "integer, string or boolean")


@rule(
    "PAR006",
    "annotation-type-undetermined",
    "Annotated property has no single primitive type",
    on="tool",
    level="may-note",
    party="server",
    era="modern",
    severity="warning",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_type_undetermined(definition: ToolDefinition) -> Iterator[Finding]:
    """An annotated property says one type: integer, string or boolean. The specification leaves open what a list of types, or no
    type, means.

    Why: clients in use exclude such tools.

    Fix: declare one type; leave an optional parameter out instead of sending null.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": ["string", "null"], "x-mcp-header": "Region"}}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
    """

    def words(flaw: Flaw) -> str:
        return f"{_plainly(flaw)} (the specification's wording leaves this open)"

    yield from _flaws(definition, "PAR006", "one type: integer, string or boolean", words)


@rule(
    "PAR007",
    "annotation-not-reachable",
    "Annotation outside a pure properties chain",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_not_reachable(definition: ToolDefinition) -> Iterator[Finding]:
    """An annotated property is reached from the root of inputSchema through `properties` alone: not through items, oneOf, if,
    $defs or any other keyword, and the root is no property.

    Why: elsewhere it is not settled which value to mirror, so clients must exclude the whole tool, even where nothing refers
    there.

    Fix: move the annotation to a property on such a chain.

    Wrong::

        modern tools/list
          -> tool query {} {"inputSchema": {"anyOf": [{"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}]}}

    Right::

        modern tools/list
          -> tool query {"where": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}
    """

    def words(flaw: Flaw) -> str:
        return f"x-mcp-header stands {flaw.detail}"

    yield from _flaws(definition, "PAR007", "an annotation below properties alone", words)


@rule(
    "PAR008",
    "annotation-behind-ref",
    "Annotation only reachable through $ref",
    on="tool",
    level="must",
    party="server",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_behind_ref(definition: ToolDefinition) -> Iterator[Finding]:
    """An annotation stands on the property itself, not in a definition that the property refers to.

    Why: clients do not resolve references to find annotations; they must exclude the whole tool.

    Fix: write x-mcp-header and its type on the property itself.

    Wrong::

        modern tools/list
          -> tool query {"a": {"$ref": "#/$defs/R"}} {"inputSchema": {"$defs": {"R": {"type": "string", "x-mcp-header": "R"}}}}

    Right::

        modern tools/list
          -> tool query {"a": {"$ref": "#/$defs/R", "type": "string", "x-mcp-header": "R"}} {"inputSchema": {"$defs": {"R": {}}}}
    """

    def words(flaw: Flaw) -> str:
        return f"x-mcp-header at {_property(flaw)} is reached through $ref only"

    yield from _flaws(definition, "PAR008", "an annotation on the property itself", words)


@rule(
    "PAR010",
    "excluded-tool-called",
    "Client called a tool it had to exclude",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="warning",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    transport=("http",),
)
def excluded_tool_called(message: Message) -> Iterator[Finding]:
    """A client leaves a tool with an invalid x-mcp-header out of what it offers, so it does not call it.

    Why: the server's wish cannot be carried out, and what routes on the header would get nothing or something wrong.

    Fix: check annotations when tools are listed, exclude such tools and log why. The server has to repair the definition.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": ""}}
        modern tools/call {"name": "query", "arguments": {}}
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {}}
          -> result {"content": []}
    """
    view = message.exchange.tool
    if view is None or view.definition is None or view.by_other or not view.definition.flaws:
        return
    excluded = view.definition.excluded
    flaw = (excluded or view.definition.flaws)[0]
    yield Finding(
        f"{say(view.definition.name)} is called, which clients have to exclude: {flaw.rule}, {one_line(flaw.detail, 80)}",
        [evidence(message.place("params", "name"), view.definition.name)],
        None if excluded else "info",
        related=(view.flow,),
    )


@rule(
    "PAR011",
    "param-header-missing",
    "Annotated argument present but header absent",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-behavior-for-custom-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_header_missing(message: Message) -> Iterator[Finding]:
    """An argument whose parameter is annotated is mirrored in its Mcp-Param header; the empty string, 0 and false are values too.

    Why: what routes on the header finds nothing, and the server must refuse the call.

    Fix: read x-mcp-header of the tool's inputSchema as tools/list gave it, and send each value that is there.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          -> error -32020

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          -> result {"content": []}
    """
    for check in _params(message, "missing"):
        fields = message.exchange.request_fields
        browser = fields.has("origin") or fields.has("sec-fetch-mode")
        yield Finding(
            f"{check.header} is missing, the argument says {say(check.body)}{_but(check)}"
            + (", as often with clients in browsers" if browser else ""),
            both_sides(message, check),
            _severity(check),
            related=_declared(message),
        )


@rule(
    "PAR012",
    "param-header-for-null",
    "Header sent though the argument is null",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-behavior-for-custom-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_header_for_null(message: Message) -> Iterator[Finding]:
    """An argument that is null has no header, also where the null is an object on the way to it.

    Why: the header would say something that the body does not; "null" in it reads like a string.

    Fix: leave the header out when the argument is null.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": null}}
          header Mcp-Param-Region: null
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": null}}
          -> result {"content": []}
    """
    for check in _params(message, "null"):
        yield Finding(
            f"{check.header} says {say(check.decoded)}, the argument is null{_but(check)}",
            both_sides(message, check),
            _severity(check),
            related=_declared(message),
        )


@rule(
    "PAR013",
    "param-header-for-absent",
    "Header sent though the argument is absent",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-behavior-for-custom-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_header_for_absent(message: Message) -> Iterator[Finding]:
    """An argument that is not there has no header. A default of the schema is no argument.

    Why: what routes on the header acts on a value that the server never gets.

    Fix: send the header only with the argument, or send the default in both places.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "default": "eu", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {}}
          header Mcp-Param-Region: eu
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "default": "eu", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {}}
          -> result {"content": []}
    """
    for check in _params(message, "absent"):
        yield Finding(
            f"{check.header} says {say(check.decoded)}, there is no such argument{_but(check)}",
            [evidence(f"request.header:{check.header}", check.raw), evidence(message.place(*check.where), None)],
            _severity(check),
            related=_declared(message),
        )


def _mismatches(message: Message, kind: str) -> Iterator[Finding]:
    """Mismatches of the headers whose parameter has this type."""
    view = message.exchange.tool
    definition = view.definition if view is not None else None
    if definition is None:
        return
    for check in _params(message, "mismatch"):
        if any(m.type == kind and m.field == check.header for m in definition.mirrors):
            detail = f", which is {check.detail}" if check.detail == "not a decimal number" else ""
            repeated = " (the header is there more than once)" if "duplicate-different" in check.problems else ""
            yield Finding(
                f"{check.header} says {say(check.decoded)}{detail}, the body says {say(check.body)}{repeated}{_but(check)}",
                both_sides(message, check),
                _severity(check),
                related=_declared(message),
            )


@rule(
    "PAR014",
    "param-string-mismatch",
    "String argument and header differ",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-validation",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_string_mismatch(message: Message) -> Iterator[Finding]:
    """The header of a string argument, decoded where it is a sentinel, has the argument's very value.

    Why: what stands before the server routes, limits or allows by the header, the server runs on the body.

    Fix: fill the header from the arguments that are sent, after everything that changes them.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "us"}}
          header Mcp-Param-Region: eu
          -> error -32020

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "us"}}
          header Mcp-Param-Region: us
          -> result {"content": []}
    """
    yield from _mismatches(message, "string")


@rule(
    "PAR015",
    "param-boolean-mismatch",
    "Boolean not mirrored as true/false",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_boolean_mismatch(message: Message) -> Iterator[Finding]:
    """The header of a boolean argument says `true` or `false`, in lower case.

    Why: True, TRUE or 1 is another text, and the server must refuse the call.

    Fix: write the boolean as JSON does.

    Wrong::

        modern tools/list
          -> tool run {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}
        modern tools/call {"name": "run", "arguments": {"dry": true}}
          header Mcp-Param-Dry: True
          -> error -32020

    Right::

        modern tools/list
          -> tool run {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}
        modern tools/call {"name": "run", "arguments": {"dry": true}}
          header Mcp-Param-Dry: true
          -> result {"content": []}
    """
    yield from _mismatches(message, "boolean")


@rule(
    "PAR016",
    "param-integer-mismatch",
    "Integer header not numerically equal",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-validation",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_integer_mismatch(message: Message) -> Iterator[Finding]:
    """The header of an integer argument is a decimal number equal to the argument. Its plain form (`42`) is best;
    `42.0` is equal.

    Why: what stands before the server acts on another number than the server does.

    Fix: write the integer in plain decimal digits, without a detour over floating point.

    Wrong::

        modern tools/list
          -> tool shard {"id": {"type": "integer", "x-mcp-header": "Shard"}}
        modern tools/call {"name": "shard", "arguments": {"id": 42}}
          header Mcp-Param-Shard: 43
          -> error -32020

    Right::

        modern tools/list
          -> tool shard {"id": {"type": "integer", "x-mcp-header": "Shard"}}
        modern tools/call {"name": "shard", "arguments": {"id": 42}}
          header Mcp-Param-Shard: 42
          -> result {"content": []}
    """
    yield from _mismatches(message, "integer")
    for check in _params(message, "not-plain"):
        yield Finding(
            f"{check.header} says {say(check.decoded)} for {say(check.body)}: equal, but not the plain decimal form",
            both_sides(message, check),
            "info",
        )


@rule(
    "PAR017",
    "param-integer-unsafe",
    "Mirrored integer outside the safe range",
    on=("request", "tool"),
    methods=("tools/call", "tools/list"),
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    transport=("http",),
)
def param_integer_unsafe(fact: Message | ToolDefinition) -> Iterator[Finding]:
    """An integer that is mirrored lies between -(2^53-1) and 2^53-1, and the schema does not force it out of there.

    Why: JavaScript rounds greater integers, so header and body no longer agree for some receivers.

    Fix: pass greater numbers as strings.

    Wrong::

        modern tools/list
          -> tool shard {"id": {"type": "integer", "x-mcp-header": "Shard"}}
        modern tools/call {"name": "shard", "arguments": {"id": 9007199254740993}}
          header Mcp-Param-Shard: 9007199254740993
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool shard {"id": {"type": "integer", "x-mcp-header": "Shard"}}
        modern tools/call {"name": "shard", "arguments": {"id": 9007199254740991}}
          header Mcp-Param-Shard: 9007199254740991
          -> result {"content": []}
    """
    if isinstance(fact, ToolDefinition):
        listed = fact.message.request if fact.message is not None else None
        if listed is None or listed.exchange.era == "legacy":
            return  # a legacy server's annotation means nothing
        for flaw in _of(fact, "PAR017"):
            yield Finding(
                f"tool {say(fact.name)}: {flaw.detail} of {_property(flaw)} is outside the safe range of integers",
                [evidence(fact.place(*flaw.steps), flaw.value, "-(2^53-1) to 2^53-1")],
                "warning",
                "server",
            )
        return
    for check in _params(fact, "unsafe-integer"):
        yield Finding(
            f"the argument of {check.header}, {say(check.body)}, is outside the safe range of integers{_but(check)}",
            [evidence(fact.place(*check.where), check.body, "-(2^53-1) to 2^53-1")],
            _severity(check),
            related=_declared(fact),
        )


@rule(
    "PAR018",
    "param-must-be-encoded",
    "Unsafe value mirrored without sentinel",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_must_be_encoded(message: Message) -> Iterator[Finding]:
    """An argument with characters beyond visible ASCII and inner spaces, or with spaces at its ends, travels as a sentinel.

    Why: HTTP loses or changes such values on their way, or a line break in one becomes another header.

    Fix: send `=?base64?` + Base64 of the UTF-8 bytes + `?=`.

    Wrong::

        modern tools/list
          -> tool greet {"who": {"type": "string", "x-mcp-header": "Who"}}
        modern tools/call {"name": "greet", "arguments": {"who": "José"}}
          header Mcp-Param-Who: José
          -> error -32020

    Right::

        modern tools/list
          -> tool greet {"who": {"type": "string", "x-mcp-header": "Who"}}
        modern tools/call {"name": "greet", "arguments": {"who": "José"}}
          header Mcp-Param-Who: =?base64?Sm9zw6k=?=
          -> result {"content": []}
    """
    for check in _params(message, "should-be-encoded"):
        if "lookalike" not in check.problems:
            yield Finding(
                f"{check.header} was sent raw, it has to be encoded: {reason(check)}{_but(check)}",
                both_sides(message, check),
                _severity(check),
                related=_declared(message),
            )


@rule(
    "PAR019",
    "param-sentinel-invalid",
    "Mcp-Param sentinel does not decode",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-behavior-for-custom-headers",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_sentinel_invalid(message: Message) -> Iterator[Finding]:
    """Between `=?base64?` and `?=` of an Mcp-Param header stands padded Base64 of the standard alphabet, of a text in UTF-8.

    Why: a strict receiver must refuse the call, a lenient decoder reads something else than was meant.

    Fix: use the standard Base64 alphabet with padding (not the URL-safe one) on the UTF-8 bytes of the value.

    Wrong::

        modern tools/list
          -> tool greet {"who": {"type": "string", "x-mcp-header": "Who"}}
        modern tools/call {"name": "greet", "arguments": {"who": "José"}}
          header Mcp-Param-Who: =?base64?Sm9zw6k?=
          -> error -32020

    Right::

        modern tools/list
          -> tool greet {"who": {"type": "string", "x-mcp-header": "Who"}}
        modern tools/call {"name": "greet", "arguments": {"who": "José"}}
          header Mcp-Param-Who: =?base64?Sm9zw6k=?=
          -> result {"content": []}
    """
    for check in _params(message, "undecodable"):
        severity = _severity(check)
        if check.problems & {"undeclared", "elsewhere"}:
            severity = "info"
        yield Finding(
            f"{check.header} does not decode: {check.detail}", both_sides(message, check), severity, related=_declared(message)
        )
    for check in _params(message, "spare-bits"):
        yield Finding(
            f"{check.header} is Base64 whose unused bits are not zero: strict decoders refuse it",
            both_sides(message, check),
            "info",
        )


@rule(
    "PAR020",
    "param-needless-base64",
    "Sentinel around a safe value",
    on="request",
    methods=CALL,
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_needless_base64(message: Message) -> Iterator[Finding]:
    """A value that is plain ASCII may be encoded, but need not be. Servers decode before they compare.

    Why: a routing rule that was written for the raw value does not match the encoded one.

    Fix: send plain values as they are. For the empty string both an empty header and `=?base64??=` are right.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: =?base64?ZXU=?=
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          -> result {"content": []}
    """
    for check in _params(message, "needless-encoding"):
        if "undeclared" not in check.problems:
            value = check.body if check.body is not None else check.decoded
            yield Finding(f"{check.header} is encoded though {say(value)} is safe as it is", both_sides(message, check))


@rule(
    "PAR021",
    "param-sentinel-lookalike-raw",
    "Literal that looks like a sentinel sent raw",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#value-encoding",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_sentinel_lookalike_raw(message: Message) -> Iterator[Finding]:
    """An argument that itself begins with `=?base64?` and ends with `?=` is encoded once more.

    Why: every receiver decodes it, gets another value or none, and must refuse the call.

    Fix: encode such a value like any other that is not safe.

    Wrong::

        modern tools/list
          -> tool greet {"who": {"type": "string", "x-mcp-header": "Who"}}
        modern tools/call {"name": "greet", "arguments": {"who": "=?base64?literal?="}}
          header Mcp-Param-Who: =?base64?literal?=
          -> error -32020

    Right::

        modern tools/list
          -> tool greet {"who": {"type": "string", "x-mcp-header": "Who"}}
        modern tools/call {"name": "greet", "arguments": {"who": "=?base64?literal?="}}
          header Mcp-Param-Who: =?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=
          -> result {"content": []}
    """
    for check in _params(message, "lookalike"):
        yield Finding(
            f"{check.header} was sent raw though the value itself looks like a sentinel{_but(check)}",
            both_sides(message, check),
            _severity(check),
            related=_declared(message),
        )


@rule(
    "PAR022",
    "param-header-undeclared",
    "Mcp-Param header the tool does not declare",
    on="request",
    methods=CALL,
    level="may-note",
    party="client",
    era="modern",
    severity="warning",
    versions=MODERN,
    spec=f"{HTTP}#custom-headers-from-tool-parameters",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_header_undeclared(message: Message) -> Iterator[Finding]:
    """Only parameters that the tool's definition annotates are mirrored.

    Why: nobody compares such a header with the body, but something on the way may act on it. Servers must ignore it.

    Fix: mirror what the newest definition annotates and nothing else.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          -> result {"content": []}
    """
    for check in _params(message, "undeclared"):
        yield Finding(
            f"{one_line(check.header, 80)} is sent, but the tool declares no such header{_but(check)}",
            [evidence(f"request.header:{check.header}", check.raw)],
            "info" if check.doubt else "warning",
            related=_declared(message),
        )


@rule(
    "PAR023",
    "param-schema-unknown",
    "No definition seen for the called tool",
    on="answer",
    methods=CALL,
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#client-behavior",
    sep="2243",
    transport=("http",),
)
def param_schema_unknown(message: Message) -> Iterator[Finding]:
    """A client knows the parameters to mirror from tools/list. Without a list of this client its headers cannot be verified.

    Why: a call that the client makes without knowing the definition has no mirrored parameters, and may be refused with -32020.

    Fix: list tools before calling them, and again after a -32020. If the client did so before the recording began,
    nothing is wrong.

    Wrong::

        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          -> error -32020

    Right::

        modern tools/list
          -> tool query
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          -> result {"content": []}
    """
    call, refused = message.request, message.rpc.kind == "error"
    view = call.exchange.tool if call is not None else None
    if call is None or view is None or view.definition is not None:
        return
    if refused and message.error_code != HEADER_MISMATCH:
        return  # it failed for another reason
    headers = [check for check in call.exchange.header_checks if check.header.startswith(PARAM)]
    name = call.params.get("name")
    where = [evidence(call.place("params", "name"), name)]
    if view.first or headers:
        yield Finding(f"whether parameters of {say(str(name))} are mirrored is not known: {view.why_unknown}", where)
    elif refused:
        yield Finding(f"{say(str(name))} is refused with -32020: {view.why_unknown}", where)


@rule(
    "PAR024",
    "param-stale-schema",
    "Headers follow an older definition",
    on="request",
    methods=CALL,
    level="should",
    party="client",
    era="modern",
    severity="warning",
    versions=MODERN,
    spec=f"{HTTP}#client-behavior",
    sep="2243",
    needs=(STALE,),
    transport=("http",),
)
def param_stale_schema(message: Message) -> Iterator[Finding]:
    """A client mirrors what the newest definition annotates that it has seen.

    Why: the server compares with its own definition, and refuses headers that follow an older one.

    Fix: replace the cached definition whenever tools/list is read.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Area"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          -> error -32020

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Area"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Area: eu
          -> result {"content": []}
    """
    stale = message.exchange.facts.get(STALE)
    if not isinstance(stale, Stale):
        return
    headers = list(_params(message, "stale"))
    named = ", ".join(one_line(check.header, 60) for check in headers[:4])
    still = ", whose ttlMs had not run out" if stale.fresh else ""
    places: list[Evidence] = [evidence(f"request.header:{c.header}", c.raw) for c in headers[:4]]
    yield Finding(
        f"{named} follows an older definition of {say(stale.older.name)}{still}",
        places,
        "info" if stale.fresh else "warning",
        related=(stale.older.flow, stale.newest_flow),
    )


@rule(
    "PAR025",
    "param-header-duplicate",
    "Mcp-Param header repeated",
    on="request",
    level="must",
    party="client",
    era="modern",
    severity="error",
    versions=MODERN,
    spec=f"{HTTP}#server-validation",
    sep="2243",
    needs=("headers",),
    transport=("http",),
)
def param_header_duplicate(message: Message) -> Iterator[Finding]:
    """Each Mcp-Param header is there once. A comma in one is part of its value.

    Why: one hop takes the first value, another the last: where they differ, what is allowed is not what is done.

    Fix: set the header, do not add to it, in the client and in what stands before the server.

    Wrong::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          +header mcp-param-region: us
          -> error -32020

    Right::

        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu, us"}}
          header Mcp-Param-Region: eu, us
          -> result {"content": []}
    """
    for check in message.exchange.header_checks:
        different = "duplicate-different" in check.problems
        if not check.header.startswith(PARAM) or not (different or "duplicate-equal" in check.problems):
            continue
        values = message.exchange.request_fields.all(check.header)
        sure = (
            not check.doubt or check.verdict == "unchecked"
        )  # where no definition is known, the two values speak for themselves
        severity: Severity = "error" if different and sure else "warning"
        if check.problems & {"undeclared", "elsewhere"}:
            severity = "info"
        what = "different values" if different else "the same value"
        yield Finding(
            f"{one_line(check.header, 60)} has {what} in {len(values)} lines: the client or an intermediary added one",
            [evidence(f"request.header:{check.header}", check.raw, check.expected if different else "one line of it")],
            severity,
            related=_declared(message),
        )


@rule(
    "PAR027",
    "mismatch-recovery",
    "After -32020 the client should refresh tools/list",
    on="request",
    methods=CALL,
    level="should",
    party="client",
    era="modern",
    severity="warning",
    versions=MODERN,
    spec=f"{HTTP}#client-behavior",
    sep="2243",
    needs=(REPEATS_REFUSED,),
    transport=("http",),
)
def mismatch_recovery(message: Message) -> Iterator[Finding]:
    """After a -32020 about parameters a client lists the tools anew, then repeats the call with the headers that are asked for.

    Why: the definition has changed, or the client never saw it. The same call will be refused again.

    Fix: on -32020 to a call whose standard headers are right, call tools/list, rebuild the headers, and repeat the call once.

    Wrong::

        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          -> error -32020
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          -> error -32020

    Right::

        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          -> error -32020
        modern tools/list
          -> tool query {"region": {"type": "string", "x-mcp-header": "Region"}}
        modern tools/call {"name": "query", "arguments": {"region": "eu"}}
          header Mcp-Param-Region: eu
          -> result {"content": []}
    """
    refused = message.exchange.facts.get(REPEATS_REFUSED)
    if refused is not None:
        name = message.params.get("name")
        yield Finding(
            f"{say(str(name))} was refused with -32020 and is called again, unchanged and without a tools/list between",
            [evidence(message.place("params", "name"), name)],
            related=(refused,),
        )


@rule(
    "PAR028",
    "param-headers-off-tools-call",
    "Mcp-Param on another method",
    on="request",
    methods=NAMELESS | {"prompts/get", "resources/read"},
    level="may-note",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    spec=f"{HTTP}#custom-headers-from-tool-parameters",
    sep="2243",
    transport=("http",),
)
def param_headers_off_tools_call(message: Message) -> Iterator[Finding]:
    """Mcp-Param headers mirror the arguments of tools/call; other methods have none.

    Why: nobody can verify such a value, yet something may route on it.

    Fix: set the Mcp-Param headers per call, not on the connection or the session.

    Wrong::

        modern tools/list
          header Mcp-Param-Region: eu
          -> result {"tools": []}

    Right::

        modern tools/list
          -> result {"tools": []}
    """
    for check in _params(message, "elsewhere"):
        yield Finding(
            f"{one_line(check.header, 80)} is sent with {message.method}, which has no arguments to mirror",
            [evidence(f"request.header:{check.header}", check.raw)],
        )


@rule(
    "PAR029",
    "annotation-in-output-schema",
    "x-mcp-header in outputSchema",
    on="tool",
    level="may-note",
    party="server",
    era="modern",
    severity="info",
    versions=MODERN,
    spec="2026-07-28 server/tools#x-mcp-header",
    sep="2243",
    hint_on=("stdio",),
)
def annotation_in_output_schema(definition: ToolDefinition) -> Iterator[Finding]:
    """x-mcp-header means something in inputSchema only. In outputSchema it does no harm.

    Why: nothing of a result is mirrored into headers, though the author may expect it.

    Fix: drop the annotation from outputSchema.

    Wrong::

        modern tools/list
          -> tool query {} {"outputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}

    Right::

        modern tools/list
          -> tool query {} {"outputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    """
    yield from _flaws(definition, "PAR029", None)


@rule(
    "PAR030",
    "sensitive-annotation",
    "Parameter that looks secret is mirrored",
    on="tool",
    level="should",
    party="server",
    era="modern",
    severity="warning",
    versions=MODERN,
    spec="2026-07-28 server/tools#x-mcp-header",
    sep="2243",
    hint_on=("stdio",),
)
def sensitive_annotation(definition: ToolDefinition) -> Iterator[Finding]:
    """Parameters that hold passwords, keys or tokens are not mirrored. They are told by the words in
    their names.

    Why: headers are read and logged by everything on the way.

    Fix: drop the annotation of the secret parameter.

    Wrong::

        modern tools/list
          -> tool login {"apiKey": {"type": "string", "x-mcp-header": "Key"}}

    Right::

        modern tools/list
          -> tool login {"page_token": {"type": "string", "x-mcp-header": "Page"}}
    """

    def words(flaw: Flaw) -> str:
        return f"{one_line(flaw.detail, 60)} looks like a secret, and is mirrored into a header"

    yield from _flaws(definition, "PAR030", None, words)


@rule(
    "PAR031",
    "valid-tools-kept",
    "One bad tool must not hide the rest",
    on="request",
    methods=CALL,
    level="must",
    party="client",
    era="modern",
    severity="info",
    versions=MODERN,
    once="client",
    spec=f"{HTTP}#schema-extension",
    sep="2243",
    transport=("http",),
)
def valid_tools_kept(message: Message) -> Iterator[Finding]:
    """A client excludes the tools with invalid annotations and goes on using the others of the same list.

    Why: this notes that a client did so. One that calls none of the others proves nothing.

    Fix: nothing here; the server has to repair the definitions of the excluded tools.

    Wrong::

        modern tools/list
          -> tool echo
          -> tool query {"region": {"type": "string", "x-mcp-header": ""}}
        modern tools/call {"name": "echo", "arguments": {}}
          -> result {"content": []}

    Right::

        modern tools/list
          -> tool echo
        modern tools/call {"name": "echo", "arguments": {}}
          -> result {"content": []}
    """
    view = message.exchange.tool
    definition = view.definition if view is not None else None
    if view is None or definition is None or view.by_other or definition.excluded or not definition.beside:
        return
    excluded = ", ".join(say(name) for name in definition.beside[:3])
    yield Finding(
        f"{say(definition.name)} is called though its list also held tools to exclude ({excluded}): the client kept the others",
        [evidence(message.place("params", "name"), definition.name)],
        related=(view.flow,),
    )
