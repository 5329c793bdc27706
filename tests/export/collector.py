"""A tiny OTLP collector: takes what is POSTed to /v1/traces and parses it with the protobuf package."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[ExportTraceServiceRequest] = []
        self.came = threading.Event()

    @property
    def spans(self) -> list[Span]:
        return spans_of(self.requests)


def spans_of(requests: list[ExportTraceServiceRequest]) -> list[Span]:
    return [span for one in requests for resource in one.resource_spans for scope in resource.scope_spans for span in scope.spans]


@contextmanager
def collector(status: int = 200) -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            taken.requests.append(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            taken.came.set()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken = Collector(f"http://127.0.0.1:{server.server_address[1]}/v1/traces")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
