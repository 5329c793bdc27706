"""A script in the notation of examples, written as a .flow file of mitmproxy."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from mitmproxy import http
from mitmproxy.flow import Error
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from mcp_wiretap.example import read_script
from mcp_wiretap.trace.events import ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.wire.headers import Fields


def write(script: str, path: Path) -> None:
    events: dict[str, list[Any]] = defaultdict(list)
    for event in read_script(script):
        events[event.flow].append(event)
    with path.open("wb") as file:
        writer = FlowWriter(file)
        for group in events.values():
            writer.add(_flow(group))


def _flow(events: list[Any]) -> http.HTTPFlow:
    flow = tflow.tflow()
    body, times = b"", []
    for event in events:
        match event:
            case RequestSeen():
                url = f"{event.scheme}://{event.host}:{event.port}{event.target}"
                flow.request = http.Request.make(event.http_method, url, event.body or b"")
                flow.request.headers = _headers(event.fields)
                flow.request.timestamp_start, flow.request.timestamp_end = event.started, event.at
            case ResponseStarted():
                flow.response = http.Response.make(event.status)
                flow.response.headers = _headers(event.fields)
                flow.response.timestamp_start = flow.response.timestamp_end = event.at
            case StreamData():
                body += event.data
                times.append(event.at)
            case ExchangeEnded():
                if flow.response is not None:
                    body = body if event.streamed else event.body or b""
                    flow.response.timestamp_end = event.at
                if event.ended_by == "client":
                    flow.error = Error("Client disconnected.", event.at)
    if flow.response is not None:
        flow.response.raw_content = body
        if times:
            flow.metadata["mcp.events"] = times
    return flow


def _headers(fields: Fields) -> http.Headers:
    return http.Headers([(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields])
