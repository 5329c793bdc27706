"""`scripts/bench`: chooses what to measure, prints it for a person, writes it for a program."""

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.bench import load, measure, stdio
from harness.children import ChildError, Children, Stopped, signals_raise_stopped

PARTS = ("proxy", "sse", "audit", "stdio", "growth")
# What the project promises; printed beside what was measured.
TARGETS = {"throughput_ratio": (">=", 0.90), "sse_added_ms": ("<", 1.0), "audit_ratio": (">=", 0.60)}


def tell(text: str) -> None:
    print(f"  ... {text}", file=sys.stderr, flush=True)


def spread(values: Sequence[float]) -> list[float]:
    return [round(min(values), 4), round(max(values), 4)]


def proxy_results(samples: measure.Samples) -> dict[str, Any]:
    """Ours over the empty addon; `control_*` is the same for two proxies that should be equal, and shows the noise."""
    found: dict[str, Any] = {}
    names = {"throughput": "requests_per_s", "p50": "p50_ms", "p99": "p99_ms", "cpu": "cpu_ms"}
    for name, what in names.items():
        ratios = samples.ratios(what)
        found[f"{name}_ratio"] = round(statistics.median(ratios), 4)
        found[f"{name}_ratio_range"] = spread(ratios)
        found[f"control_{name}_ratio"] = round(statistics.median(samples.ratios(what, "bare")), 4)
        found[what] = {variant: round(samples.median(what, variant), 3) for variant in samples.values[what]}
    return found


def sse_results(samples: measure.Samples) -> dict[str, Any]:
    added = samples.differences("sse_p50_ms")
    return {
        "sse_added_ms": round(statistics.median(added), 4),
        "sse_added_ms_range": spread(added),
        "sse_added_p99_ms": round(statistics.median(samples.differences("sse_p99_ms")), 4),
        "sse_over_direct_ms": round(statistics.median(samples.differences("sse_p50_ms", "ours", "direct")), 4),
        "sse_delay_ms": {name: round(samples.median("sse_p50_ms", name), 4) for name in ("direct", "empty", "ours")},
    }


def audit_results(samples: measure.Samples, flows: int) -> dict[str, Any]:
    """The reader's time over ours: 1.0 would be as fast as reading alone."""
    ratios = samples.ratios("audit_s", "reader", "ours")
    return {
        "audit_ratio": round(statistics.median(ratios), 4),
        "audit_ratio_range": spread(ratios),
        "audit_cpu_ratio": round(statistics.median(samples.ratios("audit_cpu_s", "reader", "ours")), 4),
        "audit_flows": flows,
        "audit_flows_per_s": {name: round(flows / samples.median("audit_s", name)) for name in ("reader", "ours")},
        "audit_peak_mib": {name: round(samples.median("audit_peak_mib", name)) for name in ("reader", "ours")},
    }


def growth_results(audits: dict[int, tuple[float, float]], live: dict[int, tuple[float, float, float]]) -> dict[str, Any]:
    """Cost a flow by length. `*_growth_ratio` is the longest over the shortest: 1.0 is a constant cost."""
    first, last = min(audits), max(audits)
    added = {count: (ours - empty, ours / empty) for count, (ours, empty, _) in live.items()}
    return {
        "audit_ms_per_flow": {str(count): round(cost, 4) for count, (cost, _) in audits.items()},
        "audit_peak_mib_by_flows": {str(count): round(peak) for count, (_, peak) in audits.items()},
        "audit_growth_ratio": round(audits[last][0] / audits[first][0], 4),
        "live_cpu_ratio_by_flows": {str(count): round(ratio, 4) for count, (_, ratio) in added.items()},
        "live_added_ms_per_flow": {str(count): round(cost, 4) for count, (cost, _) in added.items()},
        "live_memory_mib_by_flows": {str(count): round(memory) for count, (_, _, memory) in live.items()},
        "live_growth_ratio": round(live[last][0] / live[first][0], 4),
    }


def show(results: dict[str, Any]) -> None:
    """One line a key; a promise is marked as kept or not."""
    width = max(map(len, results))
    for name, value in results.items():
        note = ""
        if name in TARGETS:
            sign, bound = TARGETS[name]
            kept = value >= bound if sign == ">=" else value < bound
            note = f"   target {sign} {bound}: {'kept' if kept else 'NOT KEPT'}"
        if isinstance(value, dict):
            value = "  ".join(f"{key} {number:,}" for key, number in value.items())
        print(f"{name:{width}}  {value}{note}")


def run(parts: Sequence[str], size: measure.Size) -> dict[str, Any]:
    samples = measure.Samples()
    results: dict[str, Any] = {
        "mcp_wiretap": version("mcp-wiretap"),
        "mitmproxy": version("mitmproxy"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "pairs": size.pairs,
        "quick": size is measure.QUICK,
    }
    with Children() as children:
        measure.check_that_ours_works(children)
    if "proxy" in parts:
        measure.proxies(size, samples, tell)
        results |= proxy_results(samples)
    if "sse" in parts:
        measure.streams(size, samples, tell)
        results |= sse_results(samples)
    if "audit" in parts:
        measure.audits(size, samples, tell)
        results |= audit_results(samples, size.flows)
    if "stdio" in parts:
        results |= stdio.results(size.pairs, tell)
    if "growth" in parts:
        results |= growth_results(measure.audit_growth(size, tell), measure.live_growth(size, tell))
    return results


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="./scripts/bench",
        description="What the inspector costs against mitmproxy with an addon that does nothing, in interleaved pairs.",
        epilog="throughput_ratio and audit_ratio: 1.0 is no cost, less is slower. p50, p99, cpu: 1.0 is no cost, more is "
        "slower. control_*: bare mitmproxy against the empty addon, which should be 1.0; its distance is the noise.",
    )
    made.add_argument("--only", action="append", choices=PARTS, help="measure only this (repeatable)")
    size = made.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a rough look in about a minute; too small to quote")
    size.add_argument("--full", action="store_true", help="more of everything, and the cost a flow up to 100,000 flows")
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    return made


def main() -> int:
    arguments = parser().parse_args()
    size = measure.QUICK if arguments.quick else measure.FULL if arguments.full else measure.NORMAL
    parts = arguments.only or [part for part in PARTS if part != "growth" or arguments.full]
    try:
        with signals_raise_stopped():
            results = run(parts, size)
    except (ChildError, load.LoadError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        return 128 + stopped.number
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
