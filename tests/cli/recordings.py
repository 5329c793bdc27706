"""Scripts in the notation of examples made into .flow files, as mitmproxy with the addon would have written them."""

from pathlib import Path
from typing import BinaryIO

from mitmproxy.flow import Error
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.events import Event, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.wire.headers import Fields


def record(path: Path, script: str, prefix: str = "") -> list[str]:
    """Write the flows of a script; returns their ids. Like mitmproxy, a flow is written when it ends."""
    flows: dict[str, HTTPFlow] = {}
    with path.open("wb") as file:
        for event in read_script(script):
            _take(flows, event, file, prefix)
        for flow in flows.values():
            write(file, flow)
    return [prefix + flow for flow in dict.fromkeys(event.flow for event in read_script(script))]


def write(file: BinaryIO, flow: HTTPFlow) -> None:
    FlowWriter(file).add(flow)


def _take(flows: dict[str, HTTPFlow], event: Event, file: BinaryIO, prefix: str) -> None:
    match event:
        case RequestSeen():
            flow = flows[event.flow] = tflow.tflow()
            flow.id = prefix + event.flow
            flow.request = Request(
                event.host,
                event.port,
                event.http_method.encode(),
                event.scheme.encode(),
                b"",
                event.target.encode(),
                b"HTTP/1.1",
                _headers(event.fields),
                event.body,
                None,
                event.started,
                event.at,
            )
        case ResponseStarted():
            flow = flows[event.flow]
            flow.response = Response(b"HTTP/1.1", event.status, b"", _headers(event.fields), None, None, event.at, None)
        case StreamData():
            flow = flows[event.flow]
            assert flow.response is not None
            flow.response.data.content = (flow.response.data.content or b"") + event.data
            times = flow.metadata.setdefault("mcp.events", [])
            times += [event.at] * event.data.count(b"\n\n")
        case ExchangeEnded():
            flow = flows.pop(event.flow)
            if flow.response is not None:
                flow.response.timestamp_end = event.at
                if not event.streamed:
                    flow.response.data.content = event.body
            if event.error is not None or flow.response is None:
                flow.error = Error(event.error or "Client disconnected.", event.at)
            write(file, flow)


def _headers(fields: Fields) -> Headers:
    return Headers([(name, value) for name, value in fields.raw])
