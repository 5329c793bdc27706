"""A rule's explanation taken apart: what it demands, why, how to fix it, a wrong and a right example, where it is written.

For `mcp-wiretap explain`, for reports and for the pages in mitmweb. A rule of someone's own pack may have less:
a part is then "".
"""

import inspect
import re
from dataclasses import dataclass

from mcp_wiretap.rule import Rule

_FORM = re.compile(
    r"(?P<demand>.*?)(?:\n\nWhy:\s+(?P<why>.+?))?(?:\n\nFix:\s+(?P<fix>.+?))?"
    r"(?:\n\nWrong::\n\n(?P<wrong>.+?))?(?:\n\nRight::\n\n(?P<right>.+))?",
    re.DOTALL,
)
_REVISION = re.compile(r"(?P<revision>\d{4}-\d\d-\d\d) (?P<page>[a-z0-9/_.-]+)(?P<anchor>#\S+)?")
_ELSEWHERE = (
    (re.compile(r"RFC (\d+)"), r"https://www.rfc-editor.org/rfc/rfc{}"),
    (re.compile(r"(?:SEP-)?(\d{3,4}) "), "https://github.com/modelcontextprotocol/modelcontextprotocol/issues/{}"),
    (re.compile(r"io\.modelcontextprotocol/(tasks)"), "https://github.com/modelcontextprotocol/ext-{}"),
    (re.compile(r"io\.modelcontextprotocol/ui"), "https://github.com/modelcontextprotocol/ext-apps"),
    (re.compile(r"ext-auth"), "https://github.com/modelcontextprotocol/ext-auth"),
)


@dataclass(slots=True, frozen=True)
class Explanation:
    demand: str
    why: str = ""
    fix: str = ""
    wrong: str = ""
    right: str = ""


def of(rule: Rule) -> Explanation:
    """The parts of a rule's docstring."""
    parts = _FORM.fullmatch(inspect.cleandoc(rule.explanation or rule.title))
    assert parts is not None  # every part but the first is optional
    prose = [_paragraphs(parts[name] or "") for name in ("demand", "why", "fix")]
    scripts = [inspect.cleandoc("\n" + (parts[name] or "")) for name in ("wrong", "right")]
    return Explanation(*prose, *scripts)


def link(spec: str) -> str | None:
    """The page that a rule's `spec` names; None where it names none on the web."""
    if found := _REVISION.match(spec):
        page = found["page"].removesuffix("/index")
        return f"https://modelcontextprotocol.io/specification/{found['revision']}/{page}{found['anchor'] or ''}"
    for pattern, address in _ELSEWHERE:
        if found := pattern.match(spec):
            return address.format(*found.groups())
    return None


def _paragraphs(text: str) -> str:
    """Prose with the line breaks of the source taken out; paragraphs stay."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")).strip()
