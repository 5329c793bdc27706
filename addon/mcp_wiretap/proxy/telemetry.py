"""Live traffic as OpenTelemetry spans, sent to a collector by a thread. Never in the way: what does not fit in the queue, and
what the collector does not take, is dropped and counted.
"""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from mitmproxy import exceptions

from mcp_wiretap.export import EXTRA
from mcp_wiretap.export.account import Account
from mcp_wiretap.export.live import Operations
from mcp_wiretap.proxy.faults import Faults
from mcp_wiretap.wire.secret import one_line

logger = logging.getLogger(__name__)

OPTION = "mcp_otlp_endpoint"
QUEUE = 2_000  # operations, about 2 kB each
TOGETHER = 200  # operations of one request
WAIT = 1.0  # seconds for more to come before they are sent
TIMEOUT = 5.0  # seconds for one request
LAST = 3.0  # seconds for what is left when mitmproxy ends


def check(endpoint: str) -> None:
    """OptionsError for an endpoint that can be none, or where the OpenTelemetry SDK is missing."""
    where = urlsplit(endpoint)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise exceptions.OptionsError(f"{OPTION}: {endpoint} is not a URL like http://127.0.0.1:4318/v1/traces")
    try:
        found = find_spec("opentelemetry.sdk") and find_spec("opentelemetry.exporter.otlp.proto.http")
    except ModuleNotFoundError:  # not even what they are parts of
        found = None
    if found is None:
        raise exceptions.OptionsError(f"{OPTION}: the OpenTelemetry SDK is not installed; {EXTRA}")


class Telemetry:
    """The way from the trace to a collector. `operations` stands in front of the rules and fills the queue; `count` is told, in
    the proxy's thread, of operations that were dropped."""

    def __init__(self, endpoint: str, faults: Faults, count: Callable[[int], None]) -> None:
        self.endpoint = endpoint
        self._count = count
        self._counted = 0
        self.operations = Operations(self._put, lambda flow, error: faults.note("otlp", error, flow))
        self.sent = 0
        self._faults = faults
        self._queue: queue.Queue[list[Account] | None] = queue.Queue(QUEUE)
        self._full = 0  # counted by the proxy's thread
        self._refused = 0  # counted by ours
        self._said = False
        self._thread = threading.Thread(target=self._run, name="mcp-wiretap-otlp", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Operations that no collector got."""
        return self._full + self._refused

    def stop(self) -> None:
        """Nothing more comes. What waits is still sent, while traffic goes on."""
        self.operations.finish()
        while True:
            try:
                self._queue.put_nowait(None)
                return
            except queue.Full:  # the last one is lost: the end must be seen
                with contextlib.suppress(queue.Empty):
                    self._queue.get_nowait()
                    self._full += 1

    def close(self) -> None:
        """mitmproxy ends: send what waits, for a short time."""
        self.stop()
        self._thread.join(LAST)

    def _put(self, operation: list[Account]) -> None:
        try:
            self._queue.put_nowait(operation)
        except queue.Full:
            self._full += 1
        if (dropped := self.dropped) > self._counted:
            self._count(dropped - self._counted)
            self._counted = dropped

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:
            self._faults.note("otlp", error)

    def _serve(self) -> None:
        from mcp_wiretap.export import spans

        maker = spans.Maker()
        with spans.Sender(self.endpoint, TIMEOUT) as sender:
            going = True
            while going:
                waiting, going = self._next()
                made: list[Any] = []
                for operation in waiting:
                    try:
                        made += maker.operation(operation)
                    except Exception as error:
                        self._faults.note("otlp", error)
                        self._refused += 1
                        waiting = [each for each in waiting if each is not operation]
                if not made:
                    continue
                if sender.send(made):
                    self.sent += len(waiting)
                    self._said = False
                else:
                    self._refused += len(waiting)
                    self._complain(sender.said)

    def _next(self) -> tuple[list[list[Account]], bool]:
        """What to send next, and whether more may come."""
        found: list[list[Account]] = []
        try:
            first = self._queue.get()
            if first is None:
                return found, False
            found.append(first)
            while len(found) < TOGETHER:
                more = self._queue.get(timeout=WAIT)
                if more is None:
                    return found, False
                found.append(more)
        except queue.Empty:
            pass
        return found, True

    def _complain(self, why: str) -> None:
        """Once, until it takes some again."""
        if not self._said:
            self._said = True
            logger.warning(
                "mcp-wiretap: %s takes no spans (%s); they are dropped and counted, traffic goes on",
                self.endpoint,
                one_line(why or "no answer", 200),
            )
