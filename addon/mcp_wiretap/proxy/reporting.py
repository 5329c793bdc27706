"""A report of flows that mitmproxy holds: what `mcp-wiretap audit` writes of a recording, in the format that the file's name
asks for.
"""

import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from mitmproxy.http import HTTPFlow

from mcp_wiretap import outfile
from mcp_wiretap.proxy.loaded import recorded_address
from mcp_wiretap.proxy.options import Settings
from mcp_wiretap.proxy.stored import events_of
from mcp_wiretap.report import formats
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.collect import Collector, Input
from mcp_wiretap.report.spool import MemorySpool
from mcp_wiretap.trace.events import Event
from mcp_wiretap.trace.inspector import Inspector

INPUT = "mitmproxy"  # the name of the input in the report: the flows are in no file


def write(flows: Sequence[HTTPFlow], path: Path, settings: Settings, lost: Mapping[str, int] | None = None) -> Audit:
    """Judge the flows as one trace and write the report. `lost`: what else was dropped, by name. ValueError
    for a file name that asks for no known format, OSError."""
    form = formats.ENDINGS.get(path.suffix.lower())
    if form is None:
        raise ValueError(f"{path.name}: the name must end in {', '.join(formats.ENDINGS)}")
    audit = judge(flows, settings)
    for what, count in (lost or {}).items():
        audit.tally.drop(what, count)
    with outfile.writing(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n") as out:
        formats.write(audit, form, out, zone=datetime.now().astimezone().tzinfo or UTC)
    return audit


def judge(flows: Sequence[HTTPFlow], settings: Settings) -> Audit:
    """The audit of flows."""
    spool = MemorySpool()
    places = {flow.id: index for index, flow in enumerate(flows)}
    collector = Collector(spool, lambda flow: (INPUT, places.get(flow)))
    book = settings.book()
    inspector = Inspector(book, settings.limits, settings.expected, collector.retire, settings.promised)
    for event in in_order(flows, settings.limits.stream):
        try:
            inspector.feed(event)
        except Exception as error:  # one flow that we cannot follow must not cost the report
            collector.fault(event.flow, "trace", error)
    inspector.finish()
    trace = collector.close(inspector, book, [Input(INPUT, len(flows))])
    return Audit.of([(trace, spool)], book.rules, rule_files=settings.files)


def in_order(flows: Sequence[HTTPFlow], stream_limit: int) -> list[Event]:
    """The events of flows in the order of their times."""
    timed: list[tuple[float, int, Event]] = []
    for number, flow in enumerate(flows):
        latest = 0.0
        address = recorded_address(flow) if not flow.live else None
        for event in events_of(flow.get_state(), stream_limit, address=address):
            latest = max(latest, event.at)
            timed.append((latest, number, event))
    timed.sort(key=lambda entry: entry[:2])
    return [event for _, _, event in timed]
