"""The forms of an elicitation: the flat subset of JSON Schema that requestedSchema is limited to, and what a form asks for.

Spec: 2026-07-28 client/elicitation#requested-schema.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcp_wiretap.rule import Severity
from mcp_wiretap.trace.schema.fits import check, kind_of
from mcp_wiretap.wire.jsonrpc import dumps
from mcp_wiretap.wire.secret import looks_secret, one_line

type Steps = tuple[str | int, ...]

MOST_FIELDS = 200
FORMATS = frozenset({"email", "uri", "date", "date-time"})
_COMBINING = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "$dynamicRef")
_TITLED_SINCE = "2025-11-25"  # oneOf with titles, and multiple choice


class Flaw(NamedTuple):
    steps: Steps
    words: str
    value: Any
    severity: Severity = "error"


def flaws(schema: dict[str, Any], revision: str | None) -> Iterator[Flaw]:
    """Where a requestedSchema leaves the subset."""
    if schema.get("type") != "object":
        yield Flaw(("type",), f"its type is {one_line(dumps(schema.get('type'), most=60), 40)}, not object", schema.get("type"))
    for keyword in _COMBINING:
        if keyword in schema:
            yield Flaw((keyword,), f"it uses {keyword}", keyword)
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        what = "has no properties" if properties is None else f"has properties that are {kind_of(properties)}"
        yield Flaw(("properties",), f"it {what}", properties)
        return
    for name, field in list(properties.items())[:MOST_FIELDS]:
        shown = one_line(name, 40)
        for flaw in _field(field, revision):
            yield Flaw(("properties", name, *flaw.steps), f"the field {shown} {flaw.words}", flaw.value, flaw.severity)
    required = schema.get("required")
    if required is None:
        return
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield Flaw(("required",), "required is not a list of names", required)
        return
    unknown = [name for name in required if name not in properties]
    if unknown:
        yield Flaw(("required",), f"it requires {one_line(unknown[0], 40)}, which it does not define", unknown[0])


def _field(field: Any, revision: str | None) -> Iterator[Flaw]:
    if not isinstance(field, dict):
        yield Flaw((), f"is {kind_of(field)}, not a schema", field)
        return
    for keyword in _COMBINING:
        if keyword in field and keyword != "oneOf":
            yield Flaw((keyword,), f"uses {keyword}", field[keyword])
            return
    kind = field.get("type")
    if kind == "string":
        yield from _string(field, revision)
    elif kind == "array":
        yield from _choices(field, revision)
    elif kind not in ("number", "integer", "boolean"):
        what = "has no type" if kind is None else f"has the type {one_line(dumps(kind, most=60), 40)}"
        yield Flaw(("type",), f"{what}: only string, number, integer, boolean and choices are allowed", kind)
        return
    if "default" in field and field["default"] is not None:
        verdict = check({k: v for k, v in field.items() if k != "default"}, field["default"])
        if verdict.problems:
            yield Flaw(("default",), f"has a default that {verdict.problems[0].words}", field["default"])


def _string(field: dict[str, Any], revision: str | None) -> Iterator[Flaw]:
    form = field.get("format")
    if form is not None and not (isinstance(form, str) and form in FORMATS):
        yield Flaw(
            ("format",), f"has the format {one_line(dumps(form, most=60), 40)}, which clients need not know", form, "warning"
        )
    options = field.get("enum")
    if options is not None and not _are_strings(options):
        yield Flaw(("enum",), "has an enum that is not a list of strings", options)
    if "oneOf" in field:
        yield from _titled(field["oneOf"], ("oneOf",), revision)


def _choices(field: dict[str, Any], revision: str | None) -> Iterator[Flaw]:
    """Multiple choice: an array of strings out of an enum, or of titled constants."""
    items = field.get("items")
    if isinstance(items, dict) and "anyOf" in items:
        yield from _titled(items["anyOf"], ("items", "anyOf"), revision)
        return
    if not isinstance(items, dict) or items.get("type") != "string" or not _are_strings(items.get("enum")):
        yield Flaw(("items",), "is an array, but not of strings out of an enum", items)
    elif revision is not None and revision < _TITLED_SINCE:
        yield Flaw(("type",), f"is multiple choice, which {revision} does not know", "array", "warning")


def _titled(options: Any, steps: Steps, revision: str | None) -> Iterator[Flaw]:
    if not isinstance(options, list) or not options:
        yield Flaw(steps, f"has a {steps[-1]} that is not a list of choices", options)
        return
    for index, option in enumerate(options[:MOST_FIELDS]):
        if not isinstance(option, dict) or not isinstance(option.get("const"), str) or not isinstance(option.get("title"), str):
            yield Flaw((*steps, index), "has a choice without const and title", option)
            return
    if revision is not None and revision < _TITLED_SINCE:
        yield Flaw(steps, f"has choices with titles, which {revision} does not know", steps[-1], "warning")


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


_SECRET_TEXT = re.compile(
    r"\b(passwords?|passcodes?|passphrases?|api[ _-]?keys?|secret[ _-]keys?|client[ _-]secrets?|access[ _-]tokens?"
    r"|refresh[ _-]tokens?|bearer tokens?|credit[ _-]cards?|card[ _-]numbers?|cvv2?|cvc|private[ _-]keys?)\b",
    re.I,
)
_NEGATED = re.compile(r"\b(not|never|no|without|don't|do not)\b[^.!?]{0,40}$", re.I)
_SECRET_NAMES = frozenset({"passcode", "passphrase", "cvv", "cvc", "creditcard", "cardnumber", "privatekey"})


def secret(params: dict[str, Any]) -> tuple[Steps, str] | None:
    """What in a form asks for a credential: where, and the words that say so. Fields of choices and switches ask for none."""
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    free = False
    for name, field in list(properties.items())[:MOST_FIELDS] if isinstance(properties, dict) else ():
        if not isinstance(field, dict) or field.get("type") not in ("string", "number", "integer"):
            continue
        if "enum" in field or "oneOf" in field:
            continue
        free = True
        steps: Steps = ("requestedSchema", "properties", name)
        if looks_secret(name) or re.sub(r"[^a-z]", "", name[:100].lower()) in _SECRET_NAMES:
            return steps, name
        for member in ("title", "description"):
            if (said := _says_secret(field.get(member))) is not None:
                return (*steps, member), said
    if free and (said := _says_secret(params.get("message"))) is not None:
        return ("message",), said
    return None


def _says_secret(text: Any) -> str | None:
    found = _SECRET_TEXT.search(text[:2_000]) if isinstance(text, str) else None
    if found is None or _NEGATED.search(text[: found.start()]):
        return None
    return found.group()


_LINK = re.compile(r"https?://[^\s\"'<>)]+", re.I)


def link(params: dict[str, Any]) -> tuple[Steps, str] | None:
    """A URL in the texts of a form, which a client might make clickable: where, and the URL."""
    texts: list[tuple[Steps, Any]] = [(("message",), params.get("message"))]
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in list(properties.items())[:MOST_FIELDS] if isinstance(properties, dict) else ():
        if isinstance(field, dict):
            texts += [(("requestedSchema", "properties", name, m), field.get(m)) for m in ("title", "description")]
    for steps, text in texts:
        if isinstance(text, str) and (found := _LINK.search(text[:2_000])):
            return steps, found.group()
    return None
