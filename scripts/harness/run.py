"""The demonstration, the unattended recording of it, and the inspector in front of a server of the user's own.

Usage: see `./scripts/run --help`. What is shown is what a user gets: everything goes through the `mcp-wiretap` command.
"""

import argparse
import contextlib
import json
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from harness.children import Child, ChildError, Children, Stopped, signals_raise_stopped
from harness.proxies import FIRST_PORT, STARTING, Proxy, start_proxy

WEB_PORT = 8081
CLIENT = 240.0
STOPPING = 60.0
READING = 300.0
PAUSE = 30.0
ERAS = ("modern", "legacy")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Programs:
    """The command lines of what we start, so that tests can put others in their place."""

    servers: Sequence[str] = (sys.executable, "-m", "test_servers.demo", "servers")
    client: Sequence[str] = (sys.executable, "-m", "test_servers.demo", "client")
    wiretap: Sequence[str] = (str(Path(sys.executable).parent / "mcp-wiretap"),)


def say(text: str = "") -> None:
    print(text, flush=True)


def warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def start_servers(children: Children, programs: Programs) -> tuple[Child, dict[str, str]]:
    """The embedded servers, once they listen, and their addresses by era."""
    servers = children.start("servers", programs.servers)
    ready = servers.wait_for(r'^\{.*"modern".*\}\s*$', STARTING)
    try:
        addresses = json.loads(ready[0])
        return servers, {era: addresses[era] for era in ERAS}
    except (ValueError, KeyError) as error:
        raise servers.error(f"did not tell where they listen ({error!r})") from error


def run_client(children: Children, programs: Programs, servers: Child, proxy: Proxy) -> None:
    """One round of everything the sample client does. Raises ChildError when it fails or does not end."""
    pairs = zip(ERAS, proxy.upstreams, strict=True)
    addresses = [word for era, upstream in pairs for word in (f"--{era}", upstream.proxied)]
    client = children.start("client", [*programs.client, *addresses])
    try:
        if status := client.wait(CLIENT, needs=(proxy.child, servers)):
            time.sleep(0.5)
            raise client.error(f"failed with status {status}")
    except ChildError:
        # A client whose proxy has just ended fails first, but is not what is wrong.
        proxy.child.must_run()
        servers.must_run()
        raise
    finally:
        client.stop()


def record(children: Children, programs: Programs, output: Path) -> None:
    """One run of the demonstration into `output`/recording.flow and `output`/audit.json."""
    final, report = output / "recording.flow", output / "audit.json"
    for stale in (final, report):
        stale.unlink(missing_ok=True)

    servers, addresses = start_servers(children, programs)
    options = ["dump", "-w", "./provisional.flow", *demonstration_options(children)]
    urls = [addresses[era] for era in ERAS]
    proxy = start_proxy(children, [*programs.wiretap, *options], urls, cwd=children.folder)
    run_client(children, programs, servers, proxy)
    time.sleep(0.5)  # the proxy has still to notice that the last connections were closed
    if not proxy.child.stop(STOPPING) or proxy.child.process.returncode:
        status = proxy.child.process.returncode
        raise proxy.child.error(f"did not stop as it should (status {status}), so the recording may lack flows")

    # What `-w` wrote holds the verdicts of its moment; evidence that came later is only in a reading of the whole.
    # Both commands run in our own folder, where no project file of the user's changes what they check.
    annotating = [*programs.wiretap, "annotate", "provisional.flow", str(final)]
    annotate = children.start("annotate", annotating, cwd=children.folder)
    if status := annotate.wait(READING):
        raise annotate.error(f"failed with status {status}")
    auditing = [*programs.wiretap, "audit", str(final), "--format", "json", "--output", str(report)]
    audit = children.start("audit", auditing, cwd=children.folder)
    if (status := audit.wait(READING)) not in (0, 1):
        raise audit.error(f"failed with status {status}")
    summarize(json.loads(report.read_text(encoding="utf-8")), final, report)


def summarize(report: dict[str, Any], final: Path, written: Path) -> None:
    """What the recording holds, in a few lines. Raises ChildError when the inspector itself was at fault anywhere."""
    eras = Counter(flow["era"] for flow in report["flows"] if flow["era"])
    summary = report["summary"]
    counted = ", ".join(f"{number} {era}" for era, number in sorted(eras.items()))
    say(f"{final}: {summary['flows']} flows, {summary['mcp_flows']} MCP ({counted})")
    severities = ", ".join(f"{summary[name]} {name}" for name in ("error", "warning", "info"))
    say(f"{written}: {len(report['conversations'])} conversations; findings: {severities}")
    if report["faults"]:
        raise ChildError(f'the inspector failed inside on {len(report["faults"])} occasions; see "faults" in {written}')


def demonstration_options(children: Children) -> list[str]:
    """The demonstration must look the same everywhere, so the user's own mitmproxy settings and CA stay out of it."""
    return ["--set", f"confdir={children.folder / 'mitmproxy'}", "--set", "keep_host_header=true"]


def demonstrate(children: Children, programs: Programs, arguments: argparse.Namespace) -> NoReturn:
    """The demonstration with mitmweb, until somebody stops it."""
    servers, addresses = start_servers(children, programs)
    command = [*programs.wiretap, "web", *demonstration_options(children), *browser(arguments), *arguments.mitmproxy]
    urls = [addresses[era] for era in ERAS]
    proxy = start_proxy(children, command, urls, port=arguments.port, web_port=arguments.web_port)
    show_pages(proxy)
    for era, upstream in zip(ERAS, proxy.upstreams, strict=True):
        say(f"  {era:9}   {upstream.proxied}   in front of {upstream.url}; point a client of your own here")
    say()
    say("A sample client is at work, again and again. Ctrl-C stops everything.")
    while True:
        try:
            run_client(children, programs, servers, proxy)
        except ChildError as error:
            # Somebody who tries out mitmweb may hold or change what the client gets; only the proxy's own end is the end.
            proxy.child.must_run()
            servers.must_run()
            warn(f"run: {error}\nThe sample client will try again.")
        stand_by(PAUSE, proxy.child, servers)


def watch(children: Children, programs: Programs, arguments: argparse.Namespace) -> NoReturn:
    """The inspector in front of one server of the user's own, until somebody stops it."""
    # A local server checks Host and writes it into redirects, so it gets the client's own; a remote one wants its name.
    keep = str(urlsplit(arguments.url).hostname in LOOPBACK).lower()
    command = [*programs.wiretap, "web", "--set", f"keep_host_header={keep}", *browser(arguments), *arguments.mitmproxy]
    proxy = start_proxy(children, command, [arguments.url], port=arguments.port, web_port=arguments.web_port, proxied=True)
    here = proxy.upstreams[0].proxied
    show_pages(proxy)
    say()
    say(f"Point the client at  {here}  instead of  {arguments.url}")
    say(f"  Claude Code   claude mcp add --transport http wiretap {here}")
    say(f"  VS Code       {json.dumps({'servers': {'wiretap': {'type': 'http', 'url': here}}})}   in .vscode/mcp.json")
    say("A server that asks for OAuth wants forward mode instead; the README says how. Ctrl-C stops.")
    while True:
        stand_by(3600, proxy.child)


def browser(arguments: argparse.Namespace) -> list[str]:
    return ["--set", f"web_open_browser={str(arguments.open).lower()}"]


def show_pages(proxy: Proxy) -> None:
    address, _, token = proxy.page.partition("?")
    say()
    say(f"  mitmweb     {proxy.page}")
    say(f"  inspector   {address}mcp/{'?' + token if token else ''}")


def stand_by(seconds: float, *children: Child) -> None:
    """Wait, and raise ChildError at once when one of `children` ends."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for child in children:
            child.must_run()
        time.sleep(0.2)


def server_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not re.fullmatch(r"[^@/\s]+", parts.netloc):
        raise argparse.ArgumentTypeError(f"{text!r} is not the http:// or https:// address of a server")
    return text


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="./scripts/run",
        description="Shows the inspector at work, by default in front of embedded servers with a sample client.",
    )
    made.add_argument("url", nargs="?", type=server_url, help="inspect this server instead, e.g. https://host/mcp")
    made.add_argument("--once", action="store_true", help="one unattended run: no terminal, no browser; needs --output")
    made.add_argument("--output", type=Path, metavar="DIR", help="where --once leaves recording.flow and audit.json")
    made.add_argument("--port", type=int, default=FIRST_PORT, help="the first port to try for a proxy (%(default)s)")
    made.add_argument("--web-port", type=int, default=WEB_PORT, help="the first port to try for mitmweb (%(default)s)")
    made.add_argument("--open", action="store_true", help="open mitmweb in the browser")
    made.add_argument("mitmproxy", nargs="*", metavar="-- ARGUMENT", help="after --: more arguments for mitmweb")
    return made


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The checked options. What follows `--` is kept for mitmweb; argparse would take its first word for the URL."""
    ours, further = list(arguments), []
    if "--" in ours:
        at = ours.index("--")
        ours, further = ours[:at], ours[at + 1 :]
    made = parser()
    parsed = made.parse_args(ours)
    if parsed.mitmproxy:
        made.error(f"unexpected {' '.join(parsed.mitmproxy)!r}; arguments for mitmweb go after --")
    parsed.mitmproxy = further
    if parsed.once != (parsed.output is not None):
        made.error("--once and --output DIR belong together")
    if parsed.once and (parsed.url or further):
        made.error("--once runs the embedded demonstration; it takes no URL and nothing for mitmweb")
    return parsed


def main(arguments: Sequence[str] | None = None, programs: Programs | None = None) -> int:
    """0 when all went well or an attended run was stopped, 1 with a message when not, 128 + signal when cut short."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    programs = programs or Programs()
    kept = None
    try:
        with signals_raise_stopped():
            if parsed.once:
                parsed.output = parsed.output.absolute()
                parsed.output.mkdir(parents=True, exist_ok=True)
                kept = parsed.output / "logs"
                shutil.rmtree(kept, ignore_errors=True)
            with Children() as children:
                try:
                    if parsed.once:
                        record(children, programs, parsed.output)
                    elif parsed.url:
                        watch(children, programs, parsed)
                    else:
                        demonstrate(children, programs, parsed)
                except ChildError:
                    if kept:
                        children.keep_logs(kept)
                    raise
    except ChildError as error:
        warn(f"run: {error}")
        if kept:
            warn(f"run: all logs are in {kept}")
        return 1
    except OSError as error:
        warn(f"run: {error}")
        return 1
    except Stopped as stopped:
        with contextlib.suppress(OSError):
            say("stopped")
        return 128 + stopped.number if parsed.once else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
