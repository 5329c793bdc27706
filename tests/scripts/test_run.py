"""scripts/run when all goes well and when it does not, with stand-ins for what it starts."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import run
from harness.children import Children, free_ports
from harness.proxies import Upstream

STAND_IN = Path(__file__).with_name("stand_in.py")


def stand_in(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(STAND_IN), *words)


PROGRAMS = run.Programs(servers=stand_in("servers"), client=stand_in("client"), wiretap=stand_in())


@pytest.fixture
def once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs `--once` with the given faults staged; gives the exit status and the output folder."""
    monkeypatch.setattr(run, "STOPPING", 1.0)

    def start(*faults: str) -> tuple[int, Path]:
        monkeypatch.setenv("FAULTS", " ".join(faults))
        monkeypatch.setattr(run, "STARTING", 1.0 if "servers-silent" in faults else 20.0)
        monkeypatch.setattr(run, "CLIENT", 1.0 if "client-hangs" in faults else 20.0)
        output = tmp_path / "out %d"
        return run.main(["--once", "--output", str(output)], PROGRAMS), output

    return start


def test_a_run_without_trouble_leaves_recording_and_audit_and_nothing_else(once) -> None:
    status, output = once()
    assert status == 0
    assert sorted(path.name for path in output.iterdir()) == ["audit.json", "recording.flow"]


def test_findings_in_the_audit_are_no_failure_and_are_counted_on_the_way_out(once, capsys) -> None:
    assert once()[0] == 0
    printed = capsys.readouterr().out
    assert "3 flows, 2 MCP (1 legacy, 1 modern)" in printed
    assert "findings: 1 error, 0 warning, 2 info" in printed


def test_a_port_that_another_program_took_meanwhile_is_given_up_for_the_next(once) -> None:
    assert once("port-lost")[0] == 0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("servers-die", "servers ended with status 1 before it was ready. Its last words:\n    the port is taken"),
        ("servers-silent", "servers was not ready after 1 s"),
        ("client-fails", "client failed with status 1. Its last words:\n    the client has seen what it must not see"),
        ("client-hangs", "client was not done after 1 s"),
        ("proxy-dies client-fails", "proxy ended with status 1. Its last words:"),
        ("proxy-stays", "proxy did not stop as it should (status -9)"),
        ("proxy-fails-at-the-end", "proxy did not stop as it should (status 1)"),
        ("annotate-fails", "annotate failed with status 2"),
        ("audit-fails", "audit failed with status 2"),
        ("internal-fault", "the inspector failed inside on 1 occasions"),
    ],
)
def test_each_failure_ends_with_its_reason_and_keeps_the_logs(once, capsys, fault: str, message: str) -> None:
    status, output = once(fault)
    assert status == 1
    assert message in capsys.readouterr().err
    assert (output / "logs" / "servers.log").exists()


def test_a_failed_run_leaves_no_recording_of_an_earlier_one(once) -> None:
    once()
    _, output = once("client-fails")
    assert not (output / "recording.flow").exists()
    assert not (output / "audit.json").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_every_child(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import sys; from tests.scripts.test_run import PROGRAMS; from harness import run\n"
        "sys.exit(run.main(['--once', '--output', sys.argv[1]], PROGRAMS))"
    )
    root = STAND_IN.parents[2]
    path = f"{root}{os.pathsep}{root / 'scripts'}"
    pids = tmp_path / "pids"
    pids.mkdir()
    environment = {**os.environ, "FAULTS": "client-hangs", "PIDS": str(pids), "PYTHONPATH": path}
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "out")], env=environment)
    try:
        deadline = time.monotonic() + 30
        while len(started := [int(path.name) for path in pids.iterdir()]) < 3:
            assert time.monotonic() < deadline, "the children did not start"
            time.sleep(0.05)
        assert all(map(is_running, started))
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    finally:
        process.kill()
        process.wait()
    assert not any(map(is_running, started))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_ports_that_are_taken_move_on() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        first, second = free_ports(port, port)
    assert port < first < second


def test_the_client_is_pointed_at_the_proxy_with_the_path_of_the_server() -> None:
    upstream = Upstream("https://host.example:8443/a/mcp?key=1", 8080)
    assert upstream.mode == "reverse:https://host.example:8443@8080"
    assert upstream.proxied == "http://127.0.0.1:8080/a/mcp?key=1"


@pytest.mark.parametrize("url", ["host/mcp", "ftp://host/mcp", "http:///mcp", "https://user:secret@host/mcp"])
def test_what_is_no_address_of_a_server_is_refused(url: str, capsys) -> None:
    with pytest.raises(SystemExit):
        run.parse([url])
    assert "is not the http:// or https:// address of a server" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--once"], ["--output", "d"], ["http://h/mcp", "--once", "--output", "d"], ["http://h/mcp", "extra"]]
)
def test_options_that_do_not_belong_together_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        run.parse(arguments)


def test_what_follows_two_dashes_goes_to_mitmweb() -> None:
    parsed = run.parse(["--port", "9000", "--", "--set", "mcp_era=*=modern"])
    assert (parsed.url, parsed.port, parsed.mitmproxy) == (None, 9000, ["--set", "mcp_era=*=modern"])


def test_the_proxy_of_the_environment_is_hidden_from_children_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example")
    monkeypatch.setenv("KEPT", "yes")
    show = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    with Children() as children:
        hidden = children.start("hidden", show)
        shown = children.start("shown", show, proxied=True)
        assert (hidden.wait(20), shown.wait(20)) == (0, 0)
        assert "HTTP_PROXY" not in json.loads(hidden.output())
        assert json.loads(hidden.output())["KEPT"] == "yes"
        assert json.loads(shown.output())["HTTP_PROXY"] == "http://proxy.example"
