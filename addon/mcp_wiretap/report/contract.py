"""`audit --format json`: one JSON object, written as a stream, one line for each flow, conversation and finding."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TextIO

from mcp_wiretap.report.audit import SCHEMA, Audit
from mcp_wiretap.report.record import encode


def write(audit: Audit, out: TextIO) -> None:
    out.write("{" + f'"schema": {SCHEMA},\n"tool": {encode(audit.tool)},\n')
    _list(out, "inputs", (encode(asdict(i)) for i in audit.inputs))
    _list(out, "flows", audit.lines("flow"))
    _list(out, "conversations", audit.lines("conversation"))
    _list(out, "endpoints", audit.lines("endpoint"))
    _list(out, "findings", audit.lines("finding"))
    _list(out, "unchecked", audit.lines("unchecked"))
    _list(out, "faults", audit.lines("fault"))
    _list(out, "silenced", (encode(s.as_json()) for s in audit.silenced))
    out.write(f'"dropped": {encode(audit.tally.dropped)},\n')
    out.write(f'"summary": {encode(audit.summary)}' + "}\n")


def _list(out: TextIO, name: str, lines: Iterable[str]) -> None:
    out.write(f'"{name}": [')
    between = "\n"
    for line in lines:
        out.write(between + line)
        between = ",\n"
    out.write("],\n" if between == "\n" else "\n],\n")
