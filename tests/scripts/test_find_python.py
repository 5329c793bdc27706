"""Which interpreter the scripts choose, tried with made-up ones on a PATH that holds nothing else."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bash", "dirname", "ls", "sort")

Answer = subprocess.CompletedProcess[str]
Machine = Callable[..., Answer]

WORKS = f'exec "{sys.executable}" "$@"'
BROKEN_SHIM = 'echo "pyenv: python3: command not found" >&2; exit 127'
TOO_OLD = 'echo "is Python 3.11.2" >&2; exit 1'
HANGS_ON_STDIN = f'cat >/dev/null; exec "{sys.executable}" "$@"'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A bare machine with the given programs, each a line of shell by its path under the home or on the PATH."""

    def find(programs: dict[str, str], **environment: str) -> Answer:
        folder = tmp_path / "bin"
        folder.mkdir()
        for tool in (*TOOLS, "cat"):
            (folder / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
        for name, line in programs.items():
            path = tmp_path / name if "/" in name else folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
            path.chmod(0o755)
        script = 'source "$1"/scripts/common.sh && find_python && echo "$found"'
        command = [str(folder / "bash"), "-c", script, "bash", str(ROOT)]
        full = {"PATH": str(folder), "HOME": str(tmp_path), **environment}
        return subprocess.run(command, env=full, capture_output=True, text=True, timeout=60, check=False)

    return find


def chosen(answer: Answer) -> str:
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def marked(path: str) -> str:
    """An interpreter that works and answers with a path of its own, to be told from the others."""
    return f'echo "{path}"'


def test_a_shim_that_exists_but_fails_is_passed_over(machine: Machine) -> None:
    assert chosen(machine({"python3": BROKEN_SHIM, "python3.12": WORKS})) == sys.executable


def test_an_old_python3_is_passed_over_for_a_newer_one_by_name(machine: Machine) -> None:
    assert chosen(machine({"python3": TOO_OLD, "python3.14": BROKEN_SHIM, "python3.13": WORKS})) == sys.executable


def test_plain_python3_is_taken_when_it_will_do(machine: Machine) -> None:
    assert chosen(machine({"python3": WORKS, "python3.14": marked("/bin/sh")})) == sys.executable


def test_the_newest_of_pyenv_is_found_when_the_path_has_none(machine: Machine) -> None:
    programs = {
        ".pyenv/versions/3.9.18/bin/python3": TOO_OLD,
        ".pyenv/versions/3.13.0/bin/python3": WORKS,
        ".pyenv/versions/3.12.1/bin/python3": marked("/bin/sh"),
    }
    assert chosen(machine(programs)) == sys.executable


def test_uv_is_asked_when_nothing_else_is_there(machine: Machine, tmp_path: Path) -> None:
    programs = {"uv": f'[ "$2" = find ] && echo "{tmp_path}/managed/python3"', "managed/python3": WORKS}
    assert chosen(machine(programs)) == sys.executable


def test_the_one_that_the_user_names_is_the_only_one_tried(machine: Machine, tmp_path: Path) -> None:
    answer = machine({"python3": WORKS, "own/python": TOO_OLD}, PYTHON=str(tmp_path / "own/python"))
    assert answer.returncode == 1
    assert "own/python is Python 3.11.2" in answer.stderr


def test_a_candidate_that_reads_standard_input_does_not_swallow_the_list(machine: Machine) -> None:
    assert chosen(machine({"python3": HANGS_ON_STDIN + "; exit 1"})) == sys.executable


def test_without_any_the_message_says_what_was_tried_and_what_to_install(machine: Machine) -> None:
    no_ensurepip = 'echo "is Python 3.13.5, but has no ensurepip (apt install python3-venv)" >&2; exit 1'
    answer = machine({"python3": no_ensurepip, "python3.12": BROKEN_SHIM})
    assert answer.returncode == 1
    assert "needs Python 3.12, 3.13 or 3.14" in answer.stderr
    assert "python3 is Python 3.13.5, but has no ensurepip" in answer.stderr
    assert "python3.12 pyenv: python3: command not found" in answer.stderr
    assert "PYTHON=" in answer.stderr


def test_with_nothing_at_all_it_still_says_what_is_needed(machine: Machine) -> None:
    answer = machine({})
    assert answer.returncode == 1
    assert "needs Python 3.12, 3.13 or 3.14" in answer.stderr
    assert "Tried" not in answer.stderr
