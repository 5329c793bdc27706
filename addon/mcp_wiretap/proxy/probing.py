"""What probes sent and what came, as mitmproxy's flows: for a file that opens in mitmweb, and for its list of flows.

Each flow says in `mcp.probe` which probe it was and what it came to; its client is ours, and is not judged.
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from mitmproxy.connection import Client, Server
from mitmproxy.flow import Error
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.io import FlowWriter

from mcp_wiretap.probe.run import Report, Result
from mcp_wiretap.probe.sending import Sent
from mcp_wiretap.replay.http import Place

PROBE = "mcp.probe"  # metadata: `H02 fail`; `base` for a call that was sent unchanged
_MARKS = {"fail": ":red_circle:", "warn": ":yellow_circle:"}


def write(reports: Iterable[Report], place: Place, file: BinaryIO) -> None:
    """Write all that was sent as a .flow file."""
    writer = FlowWriter(file)
    for report in reports:
        for flow in flows_of(report, place):
            writer.add(flow)


def flows_of(report: Report, place: Place) -> Iterator[HTTPFlow]:
    """The flows of a report, in the order in which they were sent."""
    results = {result.sent.flow: result for result in report.results if result.sent is not None}
    for number, sent in enumerate(report.sent):
        yield flow_of(sent, place, results.get(sent.flow), f"{report.era}-{number}")


def flow_of(sent: Sent, place: Place, result: Result | None, name: str) -> HTTPFlow:
    """One flow, with the verdict of its probe in comment, mark and metadata."""
    client = Client(peername=("127.0.0.1", 0), sockname=("127.0.0.1", 0), timestamp_start=sent.started)
    client.timestamp_end = sent.ended
    server = Server(address=(place.host, place.port), timestamp_start=sent.started)
    server.tls = place.scheme == "https"
    flow = HTTPFlow(client, server)
    flow.id = f"{flow.id[:8]}-probe-{name}"
    host = sent.call.host or place.authority
    flow.request = Request(
        place.host,
        place.port,
        sent.call.http_method.encode(),
        place.scheme.encode(),
        b"",
        sent.target.encode("latin-1"),
        b"HTTP/1.1",
        Headers(
            [(b"Host", host.encode())]
            + [(n.encode("latin-1", "replace"), v.encode("latin-1", "replace")) for n, v in sent.call.headers]
        ),
        sent.call.content,
        None,
        sent.started,
        sent.started,
    )
    if sent.status is not None:
        fields = Headers([(name, value) for name, value in sent.fields.raw if name.lower() != b"transfer-encoding"])
        flow.response = Response(
            b"HTTP/1.1", sent.status, b"", fields, sent.body, None, sent.times[0] if sent.times else sent.ended, sent.ended
        )
    elif sent.error is not None:
        flow.error = Error(sent.error, sent.ended)
    flow.metadata[PROBE] = f"{result.probe.id} {result.verdict}" if result is not None else "base"
    flow.comment = (
        f"probe {result.probe.id} {result.probe.title} -> {result.verdict}: {result.why}"
        if result is not None
        else "probe: unchanged"
    )
    flow.marked = _MARKS.get(result.verdict, "") if result is not None else ""
    return flow
