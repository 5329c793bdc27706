"""Pages of mitmweb: whatever was recorded and whatever is asked for, none is an error of the server."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import tornado.testing
from mitmproxy import options
from mitmproxy.tools.web.master import WebMaster

from mcp_wiretap import web
from mcp_wiretap.example import read_script
from mcp_wiretap.pages import network, overview
from mcp_wiretap.trace.events import Event, ExchangeEnded, RequestSeen, ResponseStarted, StreamData
from mcp_wiretap.web.site import NAMES, Site
from tests.web.looking import ROUNDS, Script

HOUR = 3_600.0
LONG = """
legacy initialize {}
  -> result {}
GET
  header Accept: text/event-stream
  -> sse
  -> after 7200
  -> closed client
"""
CALLS = "".join(f'modern tools/call {{"name": "t{n}"}}\n  -> result {{"content": []}}\n' for n in range(6))
TASKS = """
modern tools/list
  -> result {{"tools": [{{"name": "t", "inputSchema": {{"type": "object"}}}}], "ttlMs": {n}}}
modern tools/call {{"name": "t", "_meta": {{"progressToken": {n}}}}}
  -> sse
  -> event {{"jsonrpc": "2.0", "method": "notifications/progress", "params": {{"progressToken": {n}, "progress": {n}}}}}
  -> event {{"jsonrpc": "2.0", "method": "notifications/progress", "params": {{"progressToken": "²", "progress": 1}}}}
  -> event {{"jsonrpc": "2.0", "method": "notifications/progress", "params": {{"progressToken": "--5", "progress": 1}}}}
  -> result {{"content": [], "structuredContent": {{"a": {n}}}}}
modern tools/call {{"name": "t"}}
  -> raw-result {{"resultType": "task", "taskId": "T", "status": "working", "ttlMs": {n}, "pollIntervalMs": {n}}}
modern tasks/get {{"taskId": "T"}}
  -> raw-result {{"resultType": "complete", "taskId": "T", "status": "working", "ttlMs": {n}, "pollIntervalMs": {n}}}
modern tasks/get {{"taskId": "T"}}
  -> raw-result {{"resultType": "complete", "taskId": "T", "status": "completed", "ttlMs": {n}, "result": {{}}}}
"""


class Counting(Script):
    """A script that counts faults where the other tests fail at the first."""

    def fault(self, where: str, error: Exception) -> None:
        self.faults.append((where, error))


def moved(script: str, move: Callable[[int, float], float], monkeypatch: pytest.MonkeyPatch) -> Script:
    """The script with the times of its exchanges changed: `move(number of the exchange, time)`."""
    numbers: dict[str, int] = {}
    events: list[Event] = []
    for event in read_script(script):
        number = numbers.setdefault(event.flow, len(numbers))
        match event:
            case RequestSeen():
                event = replace(event, started=move(number, event.started), at=move(number, event.at))
            case ResponseStarted() | StreamData() | ExchangeEnded():
                event = replace(event, at=move(number, event.at))
        events.append(event)
    monkeypatch.setattr("tests.web.looking.read_script", lambda _: events)
    return Script("")


async def shown(source: Script) -> dict[str, str]:
    """Every page with every row opened and copied."""
    site = Site(source, lambda flow: flow)
    pages = {}
    for name, old in itertools.product(NAMES, ("", "old")):
        pages[name + old] = await site.page(name, {"sort": old} if old else {})
        for exchange in source.exchanges:
            site.detail(name, exchange.flow)
    for exchange, what in itertools.product(source.exchanges, ("json", "curl", "case")):
        site.copy(what, exchange.flow)
    assert not source.faults
    return pages


async def test_a_stream_of_hours_stands_alone() -> None:
    source = Script(LONG)
    pages = await shown(source)
    assert "7200 s" in pages["network"] and source.exchanges[-1].over


@pytest.mark.parametrize(
    "move",
    [
        lambda number, at: at - 11 * 86_400 * (number % 2),
        lambda number, at: at - 10_000 * number,
        lambda number, at: at - 60 * number,
        lambda number, at: 1_785_000_000.0,
        lambda number, at: 0.0,
        lambda number, at: at + 2 * HOUR * number,
        lambda number, at: 2 * 1_785_000_000.0 - at,
    ],
    ids=["every other", "back by hours", "back by a minute", "all equal", "no time", "hours apart", "ends before its start"],
)
async def test_a_clock_that_runs_as_it_likes(move: Callable[[int, float], float], monkeypatch: pytest.MonkeyPatch) -> None:
    for script in (CALLS, ROUNDS, LONG):
        source = moved(script, move, monkeypatch)
        pages = await shown(source)
        for page in pages.values():
            assert "+-" not in page and ">-" not in page and " -0" not in page
        for tally in source.ledger.endpoints.values():
            assert all(0 <= share <= 100 for share in overview.spark(tally))
        rows = [network.row(source.ledger, exchange, None) for exchange in source.exchanges]
        for piece in network.bursts(rows, None):
            marks = piece.get("row", {}).get("marks", [])
            assert all(0 <= mark["x"] <= 100 and mark.get("w", 0) >= 0 for mark in marks)


@pytest.mark.parametrize(
    "number", ["0", "-1", "1e400", "1E+99999", "9" * 400, "-" + "9" * 400, "1." + "1" * 400, "1e-400", "null"]
)
async def test_numbers_that_no_machine_has(number: str) -> None:
    source = Script(TASKS.format(n=number))
    assert [fault for exchange in source.exchanges for fault in exchange.faults] == []
    await shown(source)


async def test_a_row_that_cannot_be_made_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Counting(CALLS)
    site, real = Site(source, lambda flow: flow), network.row

    def row(ledger: Any, exchange: Any, zone: Any) -> dict[str, Any]:
        if exchange.flow == "flow-2":
            raise ZeroDivisionError
        return real(ledger, exchange, zone)

    monkeypatch.setattr(network, "row", row)
    page = await site.page("network", {})
    assert page.count("data-key=") == 5 and [where for where, _ in source.faults] == ["pages: a row of network"]


class TestAddresses(tornado.testing.AsyncHTTPTestCase):
    def get_app(self) -> Any:
        async def make() -> WebMaster:
            master = WebMaster(options.Options(), with_termlog=False)
            master.options.web_password = "right"
            return master

        self.script = Counting(CALLS + ROUNDS)
        self.master = self.io_loop.asyncio_loop.run_until_complete(make())
        self.master.view.get_by_id = lambda flow: flow

        async def mount() -> str | None:
            return web.mount(self.master, self.script)

        self.io_loop.asyncio_loop.run_until_complete(mount())
        return self.master.app

    def ask(self, path: str, **how: Any) -> Any:
        headers = {"Authorization": "Bearer right"} | how.pop("headers", {})
        return self.fetch(path, headers=headers, follow_redirects=False, **how)

    def test_odd_queries(self):
        odd = (
            "%C2%B2.1",
            "1.%C2%B2",
            "%D9%A1.1",
            "1" * 5000 + ".1",
            "..",
            "-1.-1",
            "nan",
            "inf",
            "1e9",
            "%00",
            "%ED%A0%80",
            "%F0",
        )
        odd += ("[[[", "(", "%5C", "~", "a%3Ab%3Ac", "'", "%22%3E%3Cscript%3E")
        for name in NAMES:
            for value in odd if name in ("network", "logs") else odd[::4]:
                query = "&".join(f"{key}={value}" for key in ("before", "q", "only", "level", "state", "endpoint", "sort", "key"))
                for path in (f"/mcp/{name}?{query}", f"/mcp/rows/{name}?{query}", f"/mcp/row/{name}?{query}"):
                    assert self.ask(path).code in (200, 400, 404), path

    def test_a_page_that_fails_says_so_and_leads_to_the_others(self):
        async def fails(*_: Any) -> str:
            raise ZeroDivisionError("<script>")

        from unittest.mock import patch

        with patch.object(Site, "page", fails), patch.object(Site, "rows", fails):
            page = self.ask("/mcp/network")
            assert page.code == 200 and b"cannot be shown" in page.body and b'href="/mcp/findings"' in page.body
            assert b"<script>" not in page.body
            assert self.ask("/mcp/rows/network").code == 200
        assert [where for where, _ in self.script.faults] == ["pages: network"] * 2

    def silence(self, body: bytes) -> Any:
        page = self.ask("/mcp/")
        cookie = next(value for value in page.headers.get_list("Set-Cookie") if value.startswith("_mitmproxy_xsrf"))
        token = cookie.partition("=")[2].partition(";")[0]
        headers = {
            "Cookie": cookie.partition(";")[0],
            "X-XSRFToken": token,
            "Content-Type": "application/json",
        }
        return self.ask("/mcp/silence", method="POST", body=body, headers=headers)

    def test_what_is_no_silence_is_refused(self):
        good = {"rule": "HDR006", "endpoint": "server.example", "reason": "x"}
        bad = [[], 5, None, "x", {}, good | {"reason": ""}, good | {"reason": 5}, good | {"reason": ["x"]}, good | {"rule": []}]
        bad += [good | {"endpoint": word} for word in ("[[[", "a b", "?", 7, {}, "x" * 5_000)]
        for value in bad:
            answer = self.silence(json.dumps(value).encode())
            assert answer.code == 400, (value, answer.code, answer.body)
        for raw in (b"", b"{", b"\xff", b"[" * 50_000, b"9" * 5_000):
            assert self.silence(raw).code == 400, raw[:20]
        assert self.script.book.silences == []
        answer = self.silence(json.dumps(good | {"reason": "\ud800"}).encode())
        assert answer.code == 200 and self.ask("/mcp/findings").code == 200
