"""`python -m test_servers` and `python -m test_servers.demo` as processes: URLs, ports, signals, exit statuses."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from test_servers.config import CONFIGS
from test_servers.drive import main as drive

ROOT = CONFIGS.parents[1]


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", *arguments]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


def config(tmp_path: Path, name: str, port: int) -> str:
    path = tmp_path / f"{name}.json"
    transport = {"modern": True, "port": port}
    path.write_text(json.dumps({"serverInfo": {"name": name, "version": "1"}, "transport": transport}))
    return str(path)


def line(of: subprocess.Popen[str]) -> str:
    assert of.stdout is not None
    return of.stdout.readline().strip()


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_several_servers_print_their_urls_and_stop_at_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with taken_port() as port:
        paths = [config(tmp_path, "one", port), config(tmp_path, "two", port)]
        with process("test_servers", *paths) as servers:
            urls = [line(servers).split() for _ in range(2)]
            assert [name for name, _ in urls] == ["one", "two"]
            for _, url in urls:
                assert httpx2.get(url, trust_env=False).status_code == 405
                assert int(url.split(":")[2].removesuffix("/mcp")) > port
            servers.send_signal(number)
            assert servers.wait(5) == 0
            assert servers.stderr is not None
            assert servers.stderr.read() == ""


@pytest.mark.e2e
def test_a_demanded_port_that_is_taken_is_a_usage_error(tmp_path: Path) -> None:
    with taken_port() as port, process("test_servers", config(tmp_path, "one", 0), "--port", str(port)) as server:
        _, said = server.communicate(timeout=20)
        assert server.returncode == 2
        assert f"port {port} of 127.0.0.1 is in use" in said


@pytest.mark.e2e
def test_a_bad_config_is_a_usage_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    with process("test_servers", str(bad)) as server:
        _, said = server.communicate(timeout=20)
        assert server.returncode == 2
        assert said == f"{bad}: /serverInfo: is required; add it\n"


@pytest.mark.e2e
def test_the_demonstration_runs_to_its_end() -> None:
    with process("test_servers.demo", "servers") as servers:
        urls = json.loads(line(servers))
        with process("test_servers.demo", "client", "--modern", urls["modern"], "--legacy", urls["legacy"]) as client:
            told, _ = client.communicate(timeout=60)
            assert client.returncode == 0, told
            assert "0 failed" in told
        servers.send_signal(signal.SIGTERM)
        assert servers.wait(5) == 0


def test_drive_refuses_what_it_cannot_drive(capsys: pytest.CaptureFixture[str]) -> None:
    assert drive(["no-such-config"]) == 2
    assert drive(["stdio-everything", "--via", "http://127.0.0.1:1"]) == 2
    assert drive(["demo-modern"]) == 2
    assert "there is no scenario for demo-modern" in capsys.readouterr().err
