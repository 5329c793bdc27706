"""Make recordings of the test servers: server, proxy and client as processes, a .flow and a .txt that says what is in it.

Run by `scripts/record`. The proxy is the project's own `mcp-wiretap dump`, seen from outside, as a user has it. Ports are
those of the configs where they are free, so that two recordings of one config differ little.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from test_servers.config import CONFIGS, load
from test_servers.drive import config_path
from test_servers.flows import lines
from test_servers.rogue_clients import ROGUE_CLIENTS, RogueClient
from test_servers.scenarios import SCENARIOS

ROOT = CONFIGS.parents[1]
RECORDINGS = ROOT / "tests" / "recordings"
TS_CLIENT = ROOT / "scripts" / "ts"
WIRETAP = Path(sys.executable).with_name("mcp-wiretap")
SECONDS = 120
SETTLE_SECONDS = 0.5
"""For streams that end on both sides of the proxy after the client has gone."""


class RecordError(Exception):
    """A recording could not be made; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded: `configs` served, and the commands of the client, given the URL of each as the client sees it."""

    name: str
    client: str
    about: str
    configs: tuple[Path, ...]
    commands: Callable[[Sequence[str], str | None], list[list[str]]]
    """From the URLs, and the URL of the forward proxy where there is one, to the commands."""
    forward: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./scripts/record", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--output", type=Path, default=RECORDINGS, metavar="DIR")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args(argv)
    known = {recording.name: recording for recording in recordings()}
    if options.list:
        print("\n".join(known))
        return 0
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"there is no recording {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in options.names or known:
        try:
            print(f"{name}: {record(known[name], options.output)}", flush=True)
        except RecordError as error:
            failed += 1
            print(f"{name}: NOT recorded: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def recordings() -> list[Recording]:
    """Everything that is recorded, in name order."""
    python = [sys.executable, "-m"]
    made = []
    for path in sorted(CONFIGS.rglob("*.json")):
        if path.stem not in SCENARIOS or load(path).transport.type == "stdio":
            continue
        made.append(_driven(path, forward=load(path).oauth is not None))

    made += [_by_rogue(client) for client in ROGUE_CLIENTS.values()]
    demo = (CONFIGS / "demo-modern.json", CONFIGS / "demo-legacy.json")
    about = "The demonstration: both eras, each error once, every kind of conversation; the faulty requests are on purpose."

    def demonstrate(urls: Sequence[str], proxy: str | None) -> list[list[str]]:
        return [[*python, "test_servers.demo", "client", "--modern", urls[0], "--legacy", urls[1]]]

    made.append(Recording("demo", "Python SDK client, and faulty requests written by hand", about, demo, demonstrate))
    made.append(_by_typescript("ts-demo-modern", demo[0], [["modern"]]))
    made.append(_by_typescript("ts-demo-legacy", demo[1], [["legacy"]]))
    made.append(_by_typescript("ts-dual-era-http", CONFIGS / "dual-era-http.json", [["tour"]]))
    made.append(_by_typescript("ts-mrtr-showcase-http", CONFIGS / "mrtr-showcase-http.json", [["tour"]]))
    return sorted(made, key=lambda recording: recording.name)


def _driven(path: Path, *, forward: bool) -> Recording:
    config = load(path)

    def drive(urls: Sequence[str], proxy: str | None) -> list[list[str]]:
        command = [sys.executable, "-m", "test_servers.drive", str(path)]
        where = ["--server", urls[0], "--forward", proxy] if proxy is not None else ["--via", urls[0]]
        return [command + where]

    client = "requests by hand" if path.parent.name == "rogues" else "Python SDK client"
    client += ", through a forward proxy" if forward else ""
    return Recording(path.stem, client, config.description, (path,), drive, forward)


def _by_rogue(client: RogueClient) -> Recording:
    def drive(urls: Sequence[str], proxy: str | None) -> list[list[str]]:
        return [[sys.executable, "-m", "test_servers.drive", "--rogue", client.name, "--via", urls[0]]]

    return Recording(client.name, "a rogue, by hand", client.about, (config_path(client.config),), drive)


def _by_typescript(name: str, path: Path, scenarios: list[list[str]]) -> Recording:
    def drive(urls: Sequence[str], proxy: str | None) -> list[list[str]]:
        return [["node", str(TS_CLIENT / "drive.mjs"), words[0], urls[0], *words[1:]] for words in scenarios]

    return Recording(name, "TypeScript SDK client", load(path).description, (path,), drive)


def record(recording: Recording, output: Path) -> str:
    """Make one recording; what was done, in a line.

    Raises:
        RecordError: a process failed; what was recorded before is left as it was.
    """
    if recording.name.startswith("ts-") and not _typescript_client_is_there():
        return "left as it is, there is no Node with npm"
    with tempfile.TemporaryDirectory() as folder:
        flow = Path(folder) / f"{recording.name}.flow"
        with _servers(recording) as urls, _proxy(recording, urls, flow, Path(folder)) as (seen, forward):
            for command in recording.commands(seen, forward):
                done = subprocess.run(
                    command, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=SECONDS, check=False
                )
                if done.returncode != 0:
                    raise RecordError(f"the client failed:\n{done.stdout}{done.stderr}")
            time.sleep(SETTLE_SECONDS)
        if not flow.exists():
            raise RecordError("the proxy left no recording")
        told = lines(flow)
        size = flow.stat().st_size
        shutil.move(flow, output / flow.name)
    (output / f"{recording.name}.txt").write_text(_described(recording, told), encoding="utf-8")
    return f"{len(told)} flows, {size // 1024} KiB"


def _typescript_client_is_there() -> bool:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    if not (TS_CLIENT / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent"], cwd=TS_CLIENT, check=True)
    return True


def _environment() -> dict[str, str]:
    """Ours without any proxy: only the one under test may stand between client and server."""
    names = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    return {name: value for name, value in os.environ.items() if name.lower() not in names}


@contextmanager
def _servers(recording: Recording) -> Iterator[list[str]]:
    command = [sys.executable, "-m", "test_servers", *map(str, recording.configs)]
    with _process(command, stdout=subprocess.PIPE) as servers:
        assert servers.stdout is not None
        urls = [servers.stdout.readline().split() for _ in recording.configs]
        if not all(urls):
            raise RecordError("the server did not start")
        yield [words[-1] for words in urls]


@contextmanager
def _proxy(recording: Recording, urls: Sequence[str], flow: Path, folder: Path) -> Iterator[tuple[list[str], str | None]]:
    """The URLs that the client is to use, and the proxy's own where it is a forward proxy."""
    ports = _free_ports(len(urls))
    if recording.forward:
        modes = [f"regular@127.0.0.1:{ports[0]}"]
        seen, forward = list(urls), f"http://127.0.0.1:{ports[0]}"
    else:
        parts = [urlsplit(url) for url in urls]
        modes = [f"reverse:http://{p.netloc}@127.0.0.1:{port}" for p, port in zip(parts, ports, strict=True)]
        seen = [f"http://127.0.0.1:{port}{p.path}" for p, port in zip(parts, ports, strict=True)]
        forward = None
    # A configuration of its own: the user's mitmproxy settings must not change what is recorded.
    command = [str(WIRETAP), "dump", "-q", "--set", f"confdir={folder / 'conf'}", "-w", str(flow)]
    with _process([*command, *(word for mode in modes for word in ("--mode", mode))]) as proxy:
        for port in ports[: len(modes)]:
            _wait_for(port, proxy)
        yield seen, forward


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for sock in sockets:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Until something listens; looking does not connect, for a connection would be passed on."""
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                return
        time.sleep(0.1)
    raise RecordError("the proxy did not start")


@contextmanager
def _process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is asked to end when the block is left."""
    started = subprocess.Popen(command, cwd=ROOT, env=_environment(), text=True, **options)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        if started.stdout is not None:
            started.stdout.close()


def _described(recording: Recording, told: Sequence[str]) -> str:
    """The text beside a recording: what it is, how it was made, one line a flow. Nothing in it changes with time."""
    configs = ", ".join(path.relative_to(ROOT).as_posix() for path in recording.configs)
    head = [
        recording.about,
        "",
        f"Server: {configs}",
        f"Client: {recording.client}",
        f"Made by: ./scripts/record {recording.name}",
        "",
    ]
    return "\n".join([*head, *told]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
