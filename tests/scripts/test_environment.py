"""When .venv is made, when it is only installed into, and when it is left alone."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import environment


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "common.sh").touch()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("rich==15.0.0\n")
    return tmp_path


@pytest.fixture
def installed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment as a finished set-up leaves it, with pip a stand-in that only counts."""
    folder = checkout / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(environment, "_run", lambda command, quiet=False: 0)
    environment.make(folder, checkout)
    return folder


def test_a_finished_environment_is_ready(checkout: Path, installed: Path) -> None:
    assert environment.is_ready(installed, checkout)


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_what_is_wanted_installs_again_into_the_same_environment(checkout: Path, installed: Path, name: str) -> None:
    (checkout / name).write_text("changed")
    assert not environment.is_ready(installed, checkout)
    assert environment.stands_here(installed)


def test_an_environment_that_was_moved_is_made_anew(checkout: Path, installed: Path) -> None:
    moved = installed.rename(checkout / "elsewhere")
    assert not environment.stands_here(moved)


def test_an_environment_whose_interpreter_is_gone_is_made_anew(installed: Path) -> None:
    (installed / "bin" / "python").unlink()
    assert not environment.stands_here(installed)


def test_one_that_somebody_else_made_is_kept_and_installed_into(checkout: Path, installed: Path) -> None:
    (installed / environment.PLACE_STAMP).unlink()
    (installed / environment.INSTALL_STAMP).unlink()
    assert environment.stands_here(installed)
    assert not environment.is_ready(installed, checkout)


def test_a_set_up_that_failed_leaves_no_stamp(checkout: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_run", lambda command, quiet=False: 1)
    with pytest.raises(environment.SetupError, match="package index"):
        environment.make(installed, checkout)
    assert not environment.is_ready(installed, checkout)


def test_two_set_ups_of_one_checkout_take_turns(checkout: Path) -> None:
    holder = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from harness import environment; from pathlib import Path\n"
        "with environment.alone(Path(sys.argv[2])): print('held', flush=True); time.sleep(0.5)\n"
    )
    scripts = str(environment.ROOT / "scripts")
    with subprocess.Popen([sys.executable, "-c", holder, scripts, str(checkout)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        started = time.monotonic()
        with environment.alone(checkout):
            waited = time.monotonic() - started
    assert waited > 0.2
