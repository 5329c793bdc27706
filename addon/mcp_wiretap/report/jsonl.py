"""`audit --format jsonl`: the objects of the audit contract, one a line, each with its `type` first; the summary comes last.

For tools that read line by line: the fields are those of `--format json`.
"""

from dataclasses import asdict
from typing import TextIO

from mcp_wiretap.report.audit import SCHEMA, Audit
from mcp_wiretap.report.record import encode
from mcp_wiretap.report.spool import SECTIONS


def write(audit: Audit, out: TextIO) -> None:
    _line(out, {"type": "audit", "schema": SCHEMA, "tool": audit.tool})
    for input_ in audit.inputs:
        _line(out, {"type": "input", **asdict(input_)})
    for section in SECTIONS:
        start = f'{{"type": "{section}", '
        for line in audit.lines(section):
            out.write(f"{start}{line[1:]}\n")
    for silenced in audit.silenced:
        _line(out, {"type": "silenced", **silenced.as_json()})
    _line(out, {"type": "dropped", **audit.tally.dropped})
    _line(out, {"type": "summary", **audit.summary})


def _line(out: TextIO, thing: dict[str, object]) -> None:
    out.write(encode(thing) + "\n")
