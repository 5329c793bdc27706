"""The wrapper as a process: what passes, how it ends, and that nothing in front of it is in the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_wiretap.stdio import address
from tests.stdio.running import ECHO, LONG, Proxy, gone, lines, passed, python, wrapped

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and sockets")]

ODD = [
    b"",
    b"\n",
    b"a\r\nb\r\n",
    b"one\ntwo\nthree",
    b"\xff\xfe not UTF-8 \x00\n",
    b"{" + b"x" * 10_000_000 + b"}\n",
    b"no newline at all " * 1_000_000,
]


@pytest.mark.parametrize("data", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("inline", [False, True], ids=["observed", "inline"])
def test_every_byte_passes_as_it_came(tmp_path: Path, data: bytes, inline: bool) -> None:
    out, _, status = passed(python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"), data, *["--inline"] * inline)
    assert (out == data, status) == (True, 0)


def test_single_bytes_pass_at_once() -> None:
    with wrapped(python(ECHO)) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            for byte in b'{"a": 1}\n':
                process.stdin.write(bytes([byte]))
            assert process.stdout.readline() == b'{"a": 1}\n'


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_exit_status_is_the_servers(code: str, status: int) -> None:
    assert passed(python(code), b"")[2] == status


def test_a_server_that_cannot_be_started_is_status_127() -> None:
    _, err, status = passed(["/no/such/server"], b"")
    assert status == 127
    assert err.startswith(b"mcp-wiretap: /no/such/server cannot be started:")


@pytest.mark.parametrize("arguments", [[], ["--name"], ["--nothing", "x"], ["--record", "/no/such/folder/x.flow", "x"]])
def test_a_wrong_call_is_status_2(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "mcp_wiretap", "stdio", *arguments], capture_output=True, timeout=LONG)
    assert (done.returncode, done.stderr.startswith(b"mcp-wiretap stdio: ")) == (2, True)


def test_a_flood_on_stderr_passes_and_blocks_nothing(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "s", reads=False)
    code = "import sys\nfor _ in range(300): sys.stderr.write('x' * 100_000)\nprint('done')"
    out, err, status = passed(python(code), b"", path=tmp_path / "s")
    assert (out, len(err), status) == (b"done\n", 30_000_000, 0)
    proxy.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_server_behind_its_launcher(tmp_path: Path, number: signal.Signals) -> None:
    server = (
        "import os, signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: (open({str(tmp_path / 'got')!r}, 'w').close(), sys.exit(0)))\n"
        "print(os.getpid())\n"
        "while True: time.sleep(0.1)\n"
    )
    launcher = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-u', '-c', {server!r}]))"
    with wrapped(python(launcher)) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(number)
        process.wait(LONG)
        assert gone(pid)
    assert (tmp_path / "got").exists()


def test_a_wrapper_that_is_killed_leaves_no_server_behind() -> None:
    server = "import os, time; print(os.getpid())\nwhile True: time.sleep(0.1)"
    launcher = (
        f"import subprocess, sys; print(__import__('os').getpid()); subprocess.call([sys.executable, '-u', '-c', {server!r}])"
    )
    with wrapped(python(launcher)) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        assert all(gone(pid) for pid in pids)


def test_a_process_that_the_server_left_behind_does_not_hold_the_wrapper() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print('bye')"
    started = time.monotonic()
    out, _, status = passed(python(code), b"")
    assert (out, status) == (b"bye\n", 0)
    assert time.monotonic() - started < LONG


def test_a_client_that_goes_away_ends_the_server() -> None:
    with wrapped(python("import os, sys; print(os.getpid())\nsys.stdin.read()")) as process:
        assert process.stdin is not None and process.stdout is not None
        pid = int(process.stdout.readline())
        process.stdin.close()
        process.wait(LONG)
        assert gone(pid)


def test_the_proxy_is_told_all_and_of_the_environment_nothing(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "s")
    code = ECHO + "sys.stderr.write('oops')\nsys.exit(3)"
    with wrapped(python(code), "--name", "my server", path=tmp_path / "s", env={**os.environ, "KEY": "sesame-open"}) as process:
        process.communicate(b'{"a": 1}\n\xff\nrest', timeout=LONG)
    frames = proxy.until("exit")
    assert frames[0]["hello"] == 1
    assert (frames[0]["name"], frames[0]["command"]) == ("my-server", python(code))
    assert lines(frames, "c") == ['{"a": 1}', "\udcff", "rest"]
    assert lines(frames, "s") == ['{"a": 1}', "\udcff", "rest"]
    assert [frame for frame in frames if frame.get("open")] != []
    assert "".join(lines(frames, "e")) == "oops"
    assert {"c", "s"} == {frame["eof"] for frame in frames if "eof" in frame}
    assert frames[-1]["exit"] == 3
    assert "sesame-open" not in json.dumps(frames)
    proxy.close()


def test_a_proxy_that_starts_later_or_anew_is_told_from_the_beginning(tmp_path: Path) -> None:
    with wrapped(python(ECHO), path=tmp_path / "s") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"1\n")
        process.stdout.readline()
        for number in range(2):
            proxy = Proxy(tmp_path / "s")
            process.stdin.write(b"%d\n" % (number + 2))
            process.stdout.readline()
            heard: list[dict[str, Any]] = []
            while len(lines(heard, "s")) < number + 2:
                heard.append(proxy.frames.get(timeout=LONG))
            assert lines(heard, "c") == ["1", "2", "3"][: number + 2]
            proxy.close()
            (tmp_path / "s").unlink()


class Deciding(Proxy):
    """Decides what becomes of lines by what they say."""

    def answer(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        number = frame.get("n")
        if number is None:
            return []
        match frame["line"]:
            case "edit" if frame["d"] == "c":
                return [{"n": number, "pass": [["c", "edited"]]}]
            case "kill" if frame["d"] == "c":
                return [{"n": number, "pass": []}]
            case "answer" if frame["d"] == "c":
                return [{"n": number, "pass": [["s", "answered"]]}]
            case "hold" if frame["d"] == "c":
                return [{"n": number, "held": True}]
        return [{"n": number, "pass": None}]


def test_inline_lines_are_edited_answered_killed_and_held_while_others_pass(tmp_path: Path) -> None:
    proxy = Deciding(tmp_path / "s")
    with wrapped(python(ECHO), "--inline", path=tmp_path / "s") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"edit\nkill\nanswer\nhold\nlast\n")
        assert {process.stdout.readline() for _ in range(3)} == {b"edited\n", b"answered\n", b"last\n"}
        proxy.close()  # as if it were killed: what it holds passes as it was, and the session goes on
        assert process.stdout.readline() == b"hold\n"
        process.stdin.write(b"edit\n")
        assert process.stdout.readline() == b"edit\n"


def test_what_is_held_passes_when_the_client_closes_its_end(tmp_path: Path) -> None:
    proxy = Deciding(tmp_path / "s")
    out, _, status = passed(python(ECHO), b"hold\n", "--inline", path=tmp_path / "s")
    assert (out, status) == (b"hold\n", 0)
    proxy.close()


def test_inline_a_proxy_that_hangs_delays_one_line_and_no_more(tmp_path: Path) -> None:
    proxy = Proxy(tmp_path / "s", reads=False)
    started = time.monotonic()
    out, _, _ = passed(python(ECHO), b"1\n2\n3\n4\n5\n", "--inline", path=tmp_path / "s")
    assert out == b"1\n2\n3\n4\n5\n"
    assert time.monotonic() - started < 30
    proxy.close()


def test_the_wrapper_imports_nothing_that_is_slow() -> None:
    code = "import sys, mcp_wiretap.__main__, mcp_wiretap.stdio.wrapper; print(*sys.modules)"
    found = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG).stdout.split())
    slow = {"argparse", "asyncio", "mitmproxy", "pydantic", "dataclasses", "logging", "typing_extensions", "mcp_wiretap.cli"}
    assert not slow & found
    assert not {name for name in found if name.startswith("mcp_wiretap.") and not name.startswith("mcp_wiretap.stdio")} - {
        "mcp_wiretap.__main__"
    }


def test_a_socket_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy(tmp_path / "s")
    address.connect(str(tmp_path / "s"), 1.0).close()
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path / "s").st_uid + 1)  # noqa: PTH116
    if os.stat(tmp_path / "s").st_uid != 0:  # noqa: PTH116
        with pytest.raises(address.NotOurs):
            address.connect(str(tmp_path / "s"), 1.0)
    proxy.close()
