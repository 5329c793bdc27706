"""The benchmark's own parts: that it sends what it says, notices wrong answers, and reckons right."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from harness.bench import __main__ as bench
from harness.bench import load, measure, recording
from harness.children import Children

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A responder, asked without a proxy."""
    with Children() as children:
        responder = children.start("responder", [sys.executable, "-m", "harness.bench.responder"], cwd=SCRIPTS)
        yield int(responder.wait_for(r'"port": (\d+)', 30)[1])


def test_calls_are_counted_and_timed(port: int) -> None:
    load.list_tools(port)
    with asyncio.Runner() as runner:
        client = load.Client(runner, port, 4)
        assert client.run(50) > 0
        client.run(30)
        assert client.number == len(client.latencies) == 80


def test_each_event_of_a_stream_says_how_long_it_took(port: int) -> None:
    delays = load.event_delays(port)
    assert len(delays) > 50
    assert all(0 <= delay < 1000 for delay in delays)


def test_a_wrong_answer_ends_the_measurement() -> None:
    async def wrong(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 2\r\n\r\nno")

    with asyncio.Runner() as runner:
        server = runner.run(asyncio.start_server(wrong, "127.0.0.1", 0))
        client = load.Client(runner, server.sockets[0].getsockname()[1], 1)
        with pytest.raises(load.LoadError, match="502 Bad Gateway"):
            client.run(5)
        server.close()


def test_a_recording_has_the_flows_asked_for_and_every_kind_of_them(tmp_path: Path) -> None:
    path = tmp_path / "made.flow"
    recording.write(path, 130)
    with path.open("rb") as file:
        flows = [flow for flow in FlowReader(file).stream() if isinstance(flow, HTTPFlow)]
    assert len(flows) == len({flow.id for flow in flows}) == 130
    kinds = Counter(flow.request.headers.get("mcp-method", "") for flow in flows)
    assert set(kinds) == {"tools/call", "tools/list", ""}
    streams = [flow for flow in flows if "event-stream" in flow.response.headers["content-type"]]
    assert streams
    times = [flow.timestamp_created for flow in flows]
    assert times != sorted(times)  # streams are saved when they end


def test_the_recording_gives_the_inspector_nothing_to_complain_of(tmp_path: Path) -> None:
    path = tmp_path / "made.flow"
    recording.write(path, 60)
    command = [str(Path(sys.executable).parent / "mcp-wiretap"), "audit", "--fail-on", "warning", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ratios_are_medians_of_pairs() -> None:
    samples = measure.Samples()
    for ours, empty in ((90.0, 100.0), (10.0, 100.0), (200.0, 200.0)):
        for what in ("requests_per_s", "p50_ms", "p99_ms", "cpu_ms"):
            samples.add(what, "ours", ours)
            samples.add(what, "empty", empty)
            samples.add(what, "bare", empty)
    results = bench.proxy_results(samples)
    assert results["throughput_ratio"] == 0.9
    assert results["throughput_ratio_range"] == [0.1, 1.0]
    assert results["control_throughput_ratio"] == 1.0


def test_an_audit_as_fast_as_reading_alone_is_one() -> None:
    samples = measure.Samples()
    for what in ("audit_s", "audit_cpu_s", "audit_peak_mib"):
        samples.add(what, "reader", 10.0)
        samples.add(what, "ours", 20.0)
    results = bench.audit_results(samples, 20_000)
    assert results["audit_ratio"] == 0.5
    assert results["audit_flows_per_s"] == {"reader": 2000, "ours": 1000}


def test_a_promise_that_is_not_kept_is_said_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    bench.show({"throughput_ratio": 0.89, "sse_added_ms": 0.5})
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].endswith("target >= 0.9: NOT KEPT")
    assert shown[1].endswith("target < 1.0: kept")


def test_a_command_that_fails_is_not_timed() -> None:
    with pytest.raises(measure.ChildError, match=r"failed with 3: no such thing"):
        measure.timed([sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(3)"])
