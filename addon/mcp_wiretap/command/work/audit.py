"""`mcp-wiretap audit`: recordings in, a report out, an exit status that a CI job can go by."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TextIO

from mcp_wiretap.command import settings, tracing
from mcp_wiretap.command.file_spool import FileSpool
from mcp_wiretap.command.output import destination, machine_readable, say
from mcp_wiretap.command.tracing import Advance, Job
from mcp_wiretap.report import formats
from mcp_wiretap.report.audit import Audit
from mcp_wiretap.report.collect import Trace
from mcp_wiretap.report.formats import FORMATS

WORTH_PROCESSES = 4 << 20  # bytes of recordings below which starting processes costs more than it saves


def run(arguments: argparse.Namespace) -> int:
    paths: list[str] = arguments.files
    for path in paths:
        tracing.check_readable(path)
    chosen = settings.read(arguments)
    with tempfile.TemporaryDirectory(prefix="mcp-wiretap-") as scratch:
        jobs = _jobs(paths, arguments.join, Path(scratch), chosen)
        with _progress(paths) as advance:
            traces = _run(jobs, _processes(arguments.jobs, jobs), advance)
        spools = [FileSpool(Path(job.spool)) for job in jobs]
        audit = Audit.of(list(zip(traces, spools, strict=True)), chosen.book().rules, arguments.fail_on, chosen.files)
        with destination(arguments.output, inputs=paths) as out:
            _write(audit, arguments.format, out)
    if (expected := chosen.promised.contract.expect_tools) and not audit.tally.mcp_flows and not audit.damaged:
        say(f"the contract expects {', '.join(expected)}, and there is no MCP traffic: nothing was shown to be offered")
        return 1
    for damaged in audit.damaged:
        say(f"{damaged.path}: {damaged.error}; audited up to there")
    return audit.exit_status


def _jobs(paths: list[str], join: bool, scratch: Path, chosen: tracing.Settings) -> list[Job]:
    groups = [tuple(paths)] if join else [(path,) for path in paths]
    jobs = []
    for number, group in enumerate(groups):
        directory = scratch / str(number)
        directory.mkdir()
        jobs.append(Job(group, str(directory), chosen))
    return jobs


def _processes(wanted: int | None, jobs: list[Job]) -> int:
    if wanted is None:
        size = sum(Path(path).stat().st_size for job in jobs for path in job.paths)
        wanted = (os.cpu_count() or 1) if size >= WORTH_PROCESSES else 1
    return max(min(wanted, len(jobs)), 1)


def _run(jobs: list[Job], processes: int, advance: Advance | None) -> list[Trace]:
    """The traces in the order of the jobs, however they were run."""
    if processes == 1:
        return [tracing.audit(job, advance) for job in jobs]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(tracing.audit, job) for job in jobs]
        if advance is not None:
            for _ in as_completed(futures):
                advance(1.0)
        return [future.result() for future in futures]


@contextmanager
def _progress(paths: list[str]) -> Iterator[Advance | None]:
    """A progress bar on stderr where a person sees it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        what = Path(paths[0]).name if len(paths) == 1 else f"{len(paths)} recordings"
        task = bar.add_task(f"Auditing {what}", total=float(len(paths)))
        yield partial(bar.advance, task)


def _write(audit: Audit, format_: str, out: TextIO) -> None:
    found = FORMATS[format_]
    if found.for_programs:
        machine_readable(out)
    formats.write(audit, found, out, zone=_local_zone())


def _local_zone() -> tzinfo:
    zone = datetime.now().astimezone().tzinfo
    assert zone is not None
    return zone
