"""`--output` and the files of commands: only regular files are replaced, everything else is written through."""

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_wiretap import outfile
from mcp_wiretap.cli import main
from tests.cli.recordings import record

GOOD = 'modern tools/list\n  header Mcp-Method: tools/list\n  -> result {"tools": []}\n'
COMMANDS: dict[str, Callable[[str, str], list[str]]] = {
    "audit": lambda recording, out: ["audit", recording, "--output", out, "--fail-on", "never"],
    "audit html": lambda recording, out: ["audit", recording, "--output", out, "--fail-on", "never", "--format", "html"],
    "annotate": lambda recording, out: ["annotate", recording, out],
    "diff": lambda recording, out: ["diff", recording, recording, "--output", out],
    "export": lambda recording, out: ["export", recording, "--format", "har", "--output", out],
}
every_command = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)


@pytest.fixture
def recording(tmp_path: Path) -> str:
    path = tmp_path / "in.flow"
    record(path, GOOD)
    return str(path)


def collected(read: Callable[[], bytes]) -> tuple[threading.Thread, list[bytes]]:
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(read()), daemon=True)
    thread.start()
    return thread, got


@every_command
def test_a_fifo_stays_one_and_its_reader_gets_all(
    command: Callable[[str, str], list[str]], recording: str, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    thread, got = collected(fifo.read_bytes)
    assert main(command(recording, str(fifo))) == 0
    thread.join(20)
    assert got and got[0] and stat.S_ISFIFO(fifo.lstat().st_mode)


@every_command
def test_a_link_stays_one_and_its_target_is_written(
    command: Callable[[str, str], list[str]], recording: str, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    target, link, farther = tmp_path / "there" / "target", tmp_path / "link", tmp_path / "farther"
    link.symlink_to("there/target")
    farther.symlink_to(link)
    assert main(command(recording, str(farther))) == 0
    assert farther.is_symlink() and link.is_symlink() and target.is_file() and target.stat().st_size
    assert list((tmp_path / "there").iterdir()) == [target]


@every_command
def test_a_device_stays_one(command: Callable[[str, str], list[str]], recording: str, tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        with device.open("wb"):
            pass
    except PermissionError:
        pytest.skip("only root may make a device, and not everywhere")
    assert main(command(recording, str(device))) == 0
    assert stat.S_ISCHR(device.lstat().st_mode)


def test_a_socket_gets_the_report(recording: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread, got = collected(lambda: listener.accept()[0].makefile("rb").read())
        assert main(["audit", recording, "--output", str(path), "--fail-on", "never"]) == 0
        thread.join(20)
    assert got and b"mcp-wiretap audit" in got[0] and stat.S_ISSOCK(path.lstat().st_mode)


def shell(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    called = f'{sys.executable} -m mcp_wiretap "$@"'
    return subprocess.run(["bash", "-c", command.replace("W", called), "bash", *arguments], capture_output=True, text=True)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_by_its_path_is_written_where_it_stands(name: str, recording: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    ran = shell(f"W >> {log}; echo after >> {log}", "audit", recording, "--fail-on", "never", "--output", name)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = log.read_text().splitlines()
    assert lines[0] == "before" and lines[-1] == "after" and any("mcp-wiretap audit" in line for line in lines)
    ran = shell("W | cat", "audit", recording, "--fail-on", "never", "--output", name)
    assert ran.stderr == "" and "mcp-wiretap audit" in ran.stdout


@pytest.mark.e2e
def test_a_process_substitution_is_written_through(recording: str) -> None:
    ran = shell("W --output >(cat); sleep 0.3", "audit", recording, "--fail-on", "never")
    assert ran.stderr == "" and "mcp-wiretap audit" in ran.stdout


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_of_a_file_that_is_replaced_stays(mode: int, recording: str, tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    target.chmod(mode)
    assert main(["audit", recording, "--output", str(target), "--fail-on", "never"]) == 0
    assert stat.S_IMODE(target.stat().st_mode) == mode and "mcp-wiretap audit" in target.read_text()


def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with outfile.writing(tmp_path / "new") as file:
            file.write(b"x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_what_is_written_aside_has_a_name_of_its_own_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        with outfile.writing(tmp_path / "report") as file:
            file.write(b"x")
            (aside,) = tmp_path.glob(".*.part")
            assert stat.S_IMODE(aside.stat().st_mode) == 0o600
            names.add(aside.name)
        (tmp_path / "report").unlink()
    assert len(names) == 3 and not any(str(os.getpid()) in name for name in names)


def test_a_run_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    with pytest.raises(RuntimeError), outfile.writing(target) as file:
        file.write(b"half")
        raise RuntimeError
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_links_in_a_circle_and_directories_are_refused_in_one_line(
    recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "directory").mkdir()
    (tmp_path / "there").symlink_to("directory")
    for name in ("a", "there", "missing/report", "in.flow/report"):
        assert main(["audit", recording, "--output", str(tmp_path / name)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "Traceback" not in said


def test_a_link_that_another_user_put_into_a_shared_directory_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to(tmp_path / "mine")
    (shared / "file").write_text("theirs")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # so that what this test made is another user's
    monkeypatch.setattr(Path, "stat", _owned_by_nobody(Path.stat, shared))
    for name in ("link", "file"):
        with pytest.raises(PermissionError), outfile.writing(shared / name) as file:
            file.write(b"x")
    assert not (tmp_path / "mine").exists() and (shared / "file").read_text() == "theirs"


def _owned_by_nobody(real: Callable[..., os.stat_result], directory: Path) -> Callable[..., os.stat_result]:
    def stat_of(self: Path, **keywords: bool) -> os.stat_result:
        found = real(self, **keywords)
        if self != directory:
            return found
        return os.stat_result((found.st_mode, found.st_ino, found.st_dev, found.st_nlink, 65534, 65534, *found[6:10]))

    return stat_of


def test_a_file_that_cannot_be_replaced_is_written_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file that is mounted by itself into a container."""
    target = tmp_path / "report"
    target.write_text("an old report that is longer")
    number = target.stat().st_ino

    def busy(self: Path, target: Path) -> Path:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    with outfile.writing(target) as file:
        file.write(b"new")
    assert target.read_text() == "new" and target.stat().st_ino == number and list(tmp_path.iterdir()) == [target]
