"""Templates and the few filters that they need. Jinja escapes all text; the only markup made here is that of JSON's colours."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from mcp_wiretap.report.html import prose
from mcp_wiretap.report.words import plural

HERE = Path(__file__).parent
STATIC = HERE / "static"
LONGEST = 60_000  # characters of one JSON text on a page: colouring and parsing more would hold the proxy up

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"(?P<key>\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b')
_CONTROL = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    made.filters["json"] = coloured
    made.filters["prose"] = lambda text: prose(text[:1].upper() + text[1:])
    made.filters["text"] = marked
    made.filters["plural"] = plural
    return made


@cache
def template(name: str) -> Template:
    return environment().get_template(name)


def fragment(name: str, **context: Any) -> str:
    return template(name).render(**context)


def marked(text: str | None) -> Markup:
    """Text from the wire with its escapes of invisible characters set off, in a direction of its own."""
    if not text:
        return Markup("")
    if "\\" not in text:
        return escape(text) if text.isascii() else Markup("<bdi>{}</bdi>").format(text)
    out, end = Markup(""), 0
    for found in _CONTROL.finditer(text):
        out += escape(text[end : found.start()]) + Markup('<span class="ctl" title="invisible character">{}</span>').format(
            found.group()
        )
        end = found.end()
    return Markup("<bdi>{}</bdi>").format(out + escape(text[end:]))


def coloured(text: str) -> Markup:
    """JSON text with its keys, strings, numbers and literals set off."""
    rest = ""
    if len(text) > LONGEST:
        text, rest = text[:LONGEST], "\n… shortened; the flow in mitmweb has all of it"
    out: list[str] = []
    end = 0
    for found in _TOKEN.finditer(text):
        out.append(str(escape(text[end : found.start()])))
        token = found.group()
        end = found.end()
        if found["key"] is not None:
            colon = found["key"]
            out.append(f'<span class="k">{escape(token[: -len(colon)])}</span>{colon}')
        else:
            kind = "s" if token[0] == '"' else "l" if token[0] in "tfn" else "v"
            out.append(f'<span class="{kind}">{escape(token)}</span>')
    out.append(str(escape(text[end:] + rest)))
    return Markup("".join(out))
