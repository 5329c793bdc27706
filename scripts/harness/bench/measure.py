"""The measurements, each as interleaved pairs of ours and the yardstick, so that a noisy neighbour hits both.

The proxies of one measurement run side by side from its start to its end and are loaded in turn: the idle ones use
nothing, and a slow second of the machine falls on all of them.
"""

import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mitmproxy.io import FlowReader

from harness.bench import load, recording
from harness.children import Child, ChildError, Children
from harness.proxies import FIRST_PORT, start_proxy

BIN = Path(sys.executable).parent
EMPTY = str(Path(__file__).with_name("empty_addon.py"))
COMMANDS = {
    "bare": [str(BIN / "mitmdump")],
    "empty": [str(BIN / "mitmdump"), "-s", EMPTY],
    "ours": [str(BIN / "mcp-wiretap"), "dump"],
}
TURN = 50
READER = "import sys; from mitmproxy.io import FlowReader\nfor _ in FlowReader(open(sys.argv[1], 'rb')).stream(): pass"


@dataclass(frozen=True)
class Size:
    """How much is measured. The pairs are never fewer than five: a median of less says little."""

    pairs: int
    calls: int
    warm_up: int
    flows: int
    growth: Sequence[int]


QUICK = Size(pairs=5, calls=300, warm_up=200, flows=2_000, growth=(500, 2_000))
NORMAL = Size(pairs=7, calls=1_000, warm_up=500, flows=20_000, growth=(1_000, 10_000))
FULL = Size(pairs=9, calls=2_000, warm_up=1_000, flows=20_000, growth=(1_000, 10_000, 100_000))


@dataclass
class Samples:
    """One number a round and variant, by measurement."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, what: str, variant: str, value: float) -> None:
        self.values.setdefault(what, {}).setdefault(variant, []).append(value)

    def median(self, what: str, variant: str) -> float:
        return statistics.median(self.values[what][variant])

    def ratios(self, what: str, ours: str = "ours", yardstick: str = "empty") -> list[float]:
        pairs = zip(self.values[what][ours], self.values[what][yardstick], strict=True)
        return [one / other for one, other in pairs]

    def differences(self, what: str, ours: str = "ours", yardstick: str = "empty") -> list[float]:
        pairs = zip(self.values[what][ours], self.values[what][yardstick], strict=True)
        return [one - other for one, other in pairs]


@dataclass(frozen=True)
class Target:
    """One proxy under load."""

    child: Child
    port: int

    def cpu_seconds(self) -> float:
        """The processor time that it has used since its start, user and system, in steps of 10 ms (Linux)."""
        numbers = Path(f"/proc/{self.child.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        """Its resident memory (Linux)."""
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text(encoding="utf-8").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextlib.contextmanager
def targets(variants: Sequence[str], *options: str) -> Iterator[tuple[dict[str, Target], int]]:
    """A responder with one proxy of each variant in front of it, and the responder's own port."""
    with Children() as children:
        responder = children.start("responder", [sys.executable, "-m", "harness.bench.responder"], cwd=_scripts())
        port = int(responder.wait_for(r'"port": (\d+)', 30)[1])
        started = {}
        for number, variant in enumerate(variants):
            proxy = start_proxy(
                children,
                [*COMMANDS[variant], *_quiet(children), *options],
                [f"http://127.0.0.1:{port}"],
                name=variant,
                port=FIRST_PORT + 1000 + 10 * number,
            )
            started[variant] = Target(proxy.child, proxy.upstreams[0].port)
            load.list_tools(started[variant].port)
        yield started, port


def _scripts() -> Path:
    return Path(__file__).resolve().parents[2]


def _quiet(children: Children) -> list[str]:
    """The user's own settings stay out, and no flow is printed: a terminal is not what is measured."""
    return ["--set", f"confdir={children.folder / 'mitmproxy'}", "--set", "flow_detail=0"]


def order(variants: Sequence[str], number: int) -> Sequence[str]:
    """The variants, every second time backwards: whatever the first of a pair suffers, each suffers as often."""
    return variants if number % 2 == 0 else variants[::-1]


def check_that_ours_works(children: Children) -> None:
    """Raises ChildError unless the addon under test really judges what passes: a broken one would be fast."""
    responder = children.start("responder", [sys.executable, "-m", "harness.bench.responder"], cwd=_scripts())
    port = responder.wait_for(r'"port": (\d+)', 30)[1]
    command = [*COMMANDS["ours"], *_quiet(children), "-w", "./check.flow"]
    proxy = start_proxy(children, command, [f"http://127.0.0.1:{port}"], name="check", cwd=children.folder)
    load.list_tools(proxy.upstreams[0].port)
    with asyncio.Runner() as runner:
        load.Client(runner, proxy.upstreams[0].port, 1).run(3)
    proxy.child.stop()
    with (children.folder / "check.flow").open("rb") as file:
        seen = [flow.comment.partition(":")[0] for flow in FlowReader(file).stream()]
    if seen != ["modern tools/list -> complete", *["modern tools/call lookup -> complete"] * 3]:
        raise ChildError(f"the inspector does not see what it should in the benchmark's own calls: {seen}")


def proxies(size: Size, samples: Samples, tell: Callable[[str], None]) -> None:
    """Small JSON calls: throughput and processor time with eight connections, latency with one."""
    for number in range(size.pairs):
        tell(f"calls, round {number + 1} of {size.pairs}")
        with targets(order(("bare", "empty", "ours"), number)) as (started, _), asyncio.Runner() as runner:
            _round_of_calls(size, started, runner, samples)


def _round_of_calls(size: Size, started: dict[str, Target], runner: asyncio.Runner, samples: Samples) -> None:
    """One pair: fresh processes, since two of the same program differ for life, that take turns of fifty calls."""
    variants = tuple(started)
    many = {variant: load.Client(runner, started[variant].port, 8) for variant in variants}
    single = {variant: load.Client(runner, started[variant].port, 1) for variant in variants}
    for variant in variants:
        many[variant].run(size.warm_up)
        single[variant].run(TURN)
        single[variant].latencies.clear()
    turns = size.calls // TURN
    used = {variant: started[variant].cpu_seconds() for variant in variants}
    seconds = dict.fromkeys(variants, 0.0)
    for turn in range(turns):
        for variant in order(variants, turn):
            seconds[variant] += many[variant].run(TURN)
    for variant in variants:
        spent = started[variant].cpu_seconds() - used[variant]
        samples.add("cpu_ms", variant, spent * 1000 / (turns * TURN))
        samples.add("requests_per_s", variant, turns * TURN / seconds[variant])
    for turn in range(turns):
        for variant in order(variants, turn):
            single[variant].run(TURN)
    for variant in variants:
        cuts = statistics.quantiles(single[variant].latencies, n=100, method="inclusive")
        samples.add("p50_ms", variant, cuts[49] * 1000)
        samples.add("p99_ms", variant, cuts[98] * 1000)


def streams(size: Size, samples: Samples, tell: Callable[[str], None]) -> None:
    """The way of an SSE event. mitmproxy alone holds the stream back until its end, so the yardstick is told to stream."""
    with targets(("ours",)) as (ours, _), targets(("empty",), "--set", "stream_large_bodies=1") as (empty, direct):
        ports = {"direct": direct, "empty": empty["empty"].port, "ours": ours["ours"].port}
        for port in ports.values():
            load.event_delays(port)
        for number in range(size.pairs):
            tell(f"event streams, round {number + 1} of {size.pairs}")
            for variant in order(tuple(ports), number):
                delays = load.event_delays(ports[variant])
                samples.add("sse_p50_ms", variant, statistics.median(delays))
                samples.add("sse_p99_ms", variant, statistics.quantiles(delays, n=100, method="inclusive")[98])


@dataclass(frozen=True)
class Usage:
    """What one command took."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


def timed(command: Sequence[str], *, allowed: Sequence[int] = (0,)) -> Usage:
    """Run a command to its end. Raises ChildError with its last words when it fails."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            words = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.send_signal(signal.SIGKILL)
            raise
    seconds = time.perf_counter() - started
    if process.returncode not in allowed:
        raise ChildError(f"{' '.join(command)} failed with {process.returncode}: {words[-800:].decode(errors='replace')}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Usage(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 2**20)


def audit(path: Path) -> Usage:
    command = [str(BIN / "mcp-wiretap"), "audit", "--jobs", "1", "--format", "json", "--output", os.devnull, str(path)]
    return timed(command, allowed=(0, 1))


def audits(size: Size, samples: Samples, tell: Callable[[str], None]) -> None:
    """`audit --jobs 1` of a recording against only reading it, both as whole processes, start-up included."""
    with Children() as children:
        path = children.folder / "recording.flow"
        tell(f"writing a recording of {size.flows:,} flows")
        recording.write(path, size.flows)
        for number in range(size.pairs):
            tell(f"audit, round {number + 1} of {size.pairs}")
            for variant in order(("reader", "ours"), number):
                used = audit(path) if variant == "ours" else timed([sys.executable, "-c", READER, str(path)])
                samples.add("audit_s", variant, used.seconds)
                samples.add("audit_cpu_s", variant, used.cpu_seconds)
                samples.add("audit_peak_mib", variant, used.peak_mib)


def audit_growth(size: Size, tell: Callable[[str], None]) -> dict[int, tuple[float, float]]:
    """By length of the recording: processor time of `audit` a flow in ms, its start-up left out, and its peak MiB."""
    found = {}
    with Children() as children:
        path = children.folder / "recording.flow"
        path.touch()
        start_up = statistics.median(audit(path).cpu_seconds for _ in range(3))
        for count in size.growth:
            tell(f"audit of {count:,} flows")
            recording.write(path, count)
            used = [audit(path) for _ in range(3 if count <= 10_000 else 1)]  # start-up is the greater part of a short one
            seconds = statistics.median(one.cpu_seconds for one in used)
            found[count] = ((seconds - start_up) * 1000 / count, max(one.peak_mib for one in used))
    return found


def live_growth(size: Size, tell: Callable[[str], None]) -> dict[int, tuple[float, float, float]]:
    """By number of calls that passed before: processor time a call in ms, ours and empty, and our resident MiB."""
    found = {}
    variants = ("empty", "ours")
    with targets(variants) as (started, _), asyncio.Runner() as runner:
        clients = {variant: load.Client(runner, started[variant].port, 8) for variant in variants}
        for count in size.growth:
            tell(f"live, up to {count:,} calls")
            turns = min(1_000, count // 2) // TURN
            # In turns here too: mitmproxy closes a connection that is quiet for ten minutes.
            while (missing := count - turns * TURN - clients["ours"].number) > 0:
                for client in clients.values():
                    client.run(min(missing, 1_000))
                    client.latencies.clear()
            used = {variant: started[variant].cpu_seconds() for variant in variants}
            for turn in range(turns):
                for variant in order(variants, turn):
                    clients[variant].run(TURN)
            ours, empty = (
                (started[variant].cpu_seconds() - used[variant]) * 1000 / (turns * TURN) for variant in ("ours", "empty")
            )
            found[count] = (ours, empty, started["ours"].memory_mib())
    return found
